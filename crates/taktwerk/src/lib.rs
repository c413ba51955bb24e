//! OPC UA servers and clients.
//!
//! # A server
//! ```
//! use taktwerk::{Server, Unit};
//!
//! let server = Server::builder().application_name("Boiler house").bind("127.0.0.1:0").anonymous().build()?;
//! let boiler = server.namespace("urn:example:boilers").object("Boiler 1").add()?;
//! let temperature = boiler
//!     .variable("Temperature", 21.5)
//!     .units(Unit::CELSIUS)
//!     .range(0.0..=150.0)
//!     .add()?;
//! let setpoint = boiler.variable("Setpoint", 60.0).writable().add()?;
//! boiler.method("Reset").handler(move |_, ()| {
//!     setpoint.set(60.0);
//!     Ok(())
//! })?;
//!
//! let running = server.spawn()?;
//! temperature.set(22.0); // from any thread, at any time
//! println!("listening at {}", running.url());
//! running.stop(std::time::Duration::from_secs(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A client
//! ```no_run
//! use std::time::Duration;
//! use taktwerk::Client;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("opc.tcp://localhost:4840").await?;
//! let temperature: f64 = client.read_value("ns=2;s=Boiler 1/Temperature").await?;
//! client.write("ns=2;s=Boiler 1/Setpoint", temperature + 5.0).await?;
//!
//! let mut subscription = client.subscribe(Duration::from_millis(100)).await?;
//! subscription.monitor("ns=2;s=Boiler 1/Temperature").await?;
//! while let Some(change) = subscription.next_change().await {
//!     println!("{:?}", change.value);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//! - [`server`]: configuring, starting and stopping a server; [`space`]: its nodes, values and methods;
//! - [`client`]: connecting, reading, writing, browsing, calling, subscribing;
//! - [`pubsub`]: publishing and subscribing without a connection;
//! - [`event`]: typed events, for servers and clients;
//! - [`alarms`]: lists of conditions, operators' actions, states that survive a restart;
//! - [`history`]: stores of history, and what is recorded;
//! - [`files`]: directories on disk as FileType and FileDirectoryType;
//! - [`pki`]: certificates and trust lists in a directory;
//! - [`program`]: Programs that clients start and stop (Part 10);
//! - [`state_machine`]: application-defined state machines (Part 16);
//! - [`pubsub_model`]: PubSub in a server's address space, and key services;
//! - [`value`]: Rust types as OPC UA values; [`mod@unit`]: engineering units;
//! - [`headroom`]: predicted CPU use of the clients' subscriptions;
//! - [`error`]: errors with advice.

#![forbid(unsafe_code)]

// Generated event types refer to this crate by its name, as in applications.
extern crate self as taktwerk;

pub mod alarms;
pub mod client;
pub mod error;
pub mod event;
pub mod files;
pub mod headroom;
pub mod history;
mod lock;
pub mod pki;
pub mod program;
pub mod pubsub;
pub mod pubsub_model;
pub mod server;
pub mod space;
pub mod state_machine;
pub mod unit;
pub mod value;

pub use client::Client;
pub use error::BuildError;
pub use server::{RunningServer, Server, ServerBuilder};
pub use space::{
    Alarm, AlarmBuilder, EventBuilder, Namespace, Node, Readings, SourceBuilder, SourceHandle, Variable,
};
pub use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
pub use taktwerk_net::StartError;
pub use taktwerk_schema as schema;
pub use taktwerk_server::Limits;
pub use taktwerk_server::callback::CallContext;
pub use taktwerk_types as types;
pub use taktwerk_types::{DataValue, LocalizedText, NodeId, QualifiedName, StatusCode, UtcTime, Variant};
pub use unit::Unit;
pub use value::{Struct, Value};

/// Compiles what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles what the library tutorial shows.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorials/library.md")]
#[doc = include_str!("../../../docs/sources.md")]
#[doc = include_str!("../../../docs/events.md")]
#[doc = include_str!("../../../docs/alarms.md")]
#[doc = include_str!("../../../docs/programs.md")]
#[doc = include_str!("../../../docs/files.md")]
#[doc = include_str!("../../../docs/nodes.md")]
#[doc = include_str!("../../../docs/durable-subscriptions.md")]
#[doc = include_str!("../../../docs/authorization.md")]
#[doc = include_str!("../../../docs/pubsub.md")]
#[doc = include_str!("../../../docs/reference/pubsub-actions.md")]
struct LibraryTutorial;
