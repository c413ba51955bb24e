//! Virtual time: client and server cores, publishers and subscribers joined by modelled links, replayed exactly from a seed.
//!
//! The cores are the ones that run in production. A [`World`] is their operating system: it gives them time, bytes and
//! entropy, and does what they ask for. Nothing in it waits, so hours pass in seconds, and everything that is random
//! comes from one seed, so that a failure is repeated by its number.
//!
//! ```text
//!  ClientHost ── Link ── ServerHost      hosts: the drivers of one core each   (client, server)
//!       │     Network     │              network: TCP as applications see it   (network)
//!       └── EventQueue ───┘              the future and the clock              (queue)
//! ```
//!
//! - [`world`]: the whole, its faults and how it is run; [`violation`]: the promises checked after every event;
//! - [`server`], [`client`]: what `taktwerk-net` does, without the system; [`effect`]: how long slow work takes;
//! - [`host`]: machines with processors that hosts share, and what work costs on them;
//! - [`network`]: TCP connections over lines of their own or shared ones, which are cut, partitioned and congested; [`queue`];
//! - [`wire_check`]: an observer that trusts neither end;
//! - [`pubsub`]: publishers, subscribers and MQTT brokers;
//! - [`publishing`]: a plant that publishes, with settings to try: delays, bandwidth and load of the processors;
//! - [`scenario`]: a plant as a user describes it, with hosts, links, faults and promises;
//! - [`meter`]: what the work takes on this machine, for host profiles;
//! - [`campaign`]: random plants and faults, and the shortest script that breaks a promise;
//! - [`trace`]: what happens, in a file for Perfetto; [`capture`]: packets, in a file for Wireshark;
//! - [`calls`]: how long opening a session and reading take; [`authority`]: certificate authorities that are asked;
//! - [`plant`], [`subscriber`]: a small server and an application, for tests and as examples.
//!
//! # Example
//! A client reads every change of a variable over a path that loses one segment in a hundred, and through a cut.
//!
//! ```
//! use core::time::Duration;
//! use std::sync::Arc;
//! use taktwerk_client::{Client, ClientConfig, SubscriptionParams, Target};
//! use taktwerk_sim::plant::{Plant, monitor, url};
//! use taktwerk_sim::{Path, Route, Subscriber, World};
//!
//! let mut world = World::new(42);
//! let entropy = Box::new(world.fork_entropy());
//! let plant = Plant::new("plant", 1, world.utc_origin(), entropy, |_| {})?;
//! let variable = plant.variables[0].clone();
//! world.add_server("plant", plant.shard);
//!
//! let client = Client::new(Arc::new(ClientConfig::default()), Box::new(world.fork_entropy()));
//! let subscriber = Subscriber::new(SubscriptionParams::default(), vec![monitor(0, 100)]);
//! let path = Path { loss_ppm: 10_000, ..Path::LAN.with_delay(Duration::from_millis(20)) };
//! let client = world.add_client(client, subscriber, Route::symmetric(path));
//! let target = Target::new(&url("plant"))?;
//! world.with_client(client, |client, _, now| client.connect(target, now.instant))?;
//! world.run_for(Duration::from_secs(5))?;
//!
//! for value in 1..=1000i64 {
//!     variable.set_at(value, world.now().utc);
//!     world.run_for(Duration::from_millis(50))?;
//!     if value == 500 {
//!         world.cut(client);
//!     }
//! }
//! world.run_for(Duration::from_secs(5))?;
//! assert_eq!(world.client(client).application.values_of(0).len(), 1001);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is modelled
//! Time, the network as [`network`] says, sockets with bounded buffers, processes that die and are started again,
//! effects that take time, readers that stop reading, clocks that differ and jump; processors and several shards of a
//! server, as [`host`] says.
//!
//! # What is not
//! - Caches, memory, disks, and how a processor's frequency changes. What work costs stands in a host profile, and its
//!   spread is drawn independently for each piece of work.
//! - How the system's network code shares the processors: it is part of what receiving and sending cost.
//! - Priorities and groups of threads (see [`host::machine`]).

#![forbid(unsafe_code)]

mod alarm;
pub mod authority;
pub mod calls;
pub mod campaign;
pub mod capture;
pub mod client;
pub mod effect;
mod error;
mod event;
mod fabric;
mod histogram;
pub mod host;
mod ids;
pub mod meter;
pub mod network;
mod pair;
pub mod plant;
pub mod publishing;
pub mod pubsub;
pub mod queue;
pub mod scenario;
pub mod server;
mod signals;
mod source;
pub mod subscriber;
pub mod trace;
pub mod violation;
pub mod wire_check;
pub mod world;

pub use client::{Application, ClientHost, Recorder};
pub use effect::EffectTime;
pub use host::client::ClientThreadId;
pub use host::{Competitor, Costs, MachineId};
pub use network::{LineId, Path, Route, Side, Transport};
pub use plant::Plant;
pub use queue::EventQueue;
pub use server::ServerHost;
pub use subscriber::Subscriber;
pub use trace::Trace;
pub use violation::{Broken, Violation};
pub use world::{ClientId, HostId, NodeId, ServerId, World};
