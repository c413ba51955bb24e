//! Deterministic simulation of client and server cores, publishers and subscribers in virtual time, joined by modelled
//! links.
//!
//! The cores are the ones that run in production. A [`World`] replaces their operating system: it provides time, bytes
//! and entropy, and carries out their effects. Nothing waits in real time, so hours pass in seconds. All randomness
//! comes from one seed, so a failure is reproduced by its seed.
//!
//! ```text
//!  ClientHost ── Link ── ServerHost      hosts: the drivers of one core each   (client, server)
//!       │     Network     │              network: TCP as applications see it   (network)
//!       └── EventQueue ───┘              scheduled events and the clock   (queue)
//! ```
//!
//! - [`world`]: the world with its faults; [`violation`]: the promises, which are checked after every event;
//! - [`server`], [`client`]: the work of `taktwerk-net` without an operating system; [`effect`]: duration of slow work;
//! - [`host`]: machines with shared processors, and costs of work;
//! - [`network`]: TCP connections over separate or shared lines, with cuts, partitions and congestion; [`queue`];
//! - [`wire_check`]: an observer that checks both ends of a connection;
//! - [`pubsub`]: publishers, subscribers and MQTT brokers; [`authority`]: certificate authorities; [`node`]: the
//!   processes of both;
//! - [`publishing`]: a publishing plant, to try settings: delays, bandwidth and processor load;
//! - [`scenario`]: a plant described by a user, with hosts, links, faults and promises;
//! - [`meter`]: measures the cost of work on this machine for host profiles;
//! - [`campaign`]: random plants and faults, and the shortest script that breaks a promise;
//! - [`trace`]: events in a file for Perfetto; [`capture`]: packets in a file for Wireshark;
//! - [`calls`]: time to open a session and to read;
//! - [`plant`], [`subscriber`]: a small server and an application, for tests and as examples.
//!
//! # Example
//! A client receives every change of a variable over a path with 1 % loss, and through a cut.
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
//! Time, the network as described in [`network`], sockets with limited buffers, processes that crash and restart,
//! effects that take time, readers that stop reading, clocks with offsets and jumps; processors and several shards per
//! server, as described in [`host`].
//!
//! # What is not modelled
//! - Caches, memory, disks, and changes of a processor's frequency. Costs are in a host profile; their variation is
//!   drawn independently for each piece of work.
//! - Processor use of the operating system's network code: it is part of the cost of receiving and sending.
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
pub mod node;
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
