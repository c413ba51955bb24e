//! A field gateway: reads sources such as devices, brokers and other servers, and writes their tags into a server's address space
//! and to destinations. A configuration file describes it.
//!
//! Each source runs in its own task, with deadlines for all waiting, growing pauses after failures, a rate limit for values, and
//! statistics. The status of a value says when it is overdue.
//!
//! - [`GatewayConfig`]: the sections `[gateway]`, `[[source]]` and `[[tag]]` of a file; [`fields`]: settings with their lines;
//!   [`tag`], [`tag_alarm`], [`roles`]: a tag, its alarm, and the roles that may use it; [`value`]: types and conversions;
//! - [`settings`]: settings common to all sources; [`source`]: the trait of sources; [`adapter`]: the kinds of sources;
//!   [`fault`]: why a source failed; [`connect`], [`tls`], [`mqtt`], [`http`], [`opcua`], [`sparkplug`]: connections and
//!   messages; `database`, `nats`: connections to PostgreSQL and NATS; [`serial`]: serial ports; [`json_path`], [`json_time`]:
//!   values within JSON; [`lines`], [`extract`]: lines, and values within texts; [`table`]: tags as CSV; [`template`]: tags of a
//!   type of device;
//! - [`feed`]: the path of readings: scaling, deadband, rate limit, quality; [`plant`]: nodes; [`catalogue`], [`alarms`]: types
//!   and alarms of other servers; [`statistics`]: counters;
//! - [`destination`]: where values are sent, with a queue on disk for each destination;
//! - [`init`]: sample configuration files; [`files`]: the files that a configuration names; [`import`]: files of other products;
//!   [`review`]: settings that are valid but probably unintended; [`discover`], [`offer`]: what sources offer;
//! - [`lease`]: sources that several gateways share;
//! - [`supervisor`]: runs and restarts a source; [`gateway`]: runs all of it next to a server.

#![forbid(unsafe_code)]

pub mod adapter;
pub mod alarms;
pub mod catalogue;
pub mod configuration;
pub mod connect;
#[cfg(feature = "postgres")]
pub mod database;
pub mod destination;
pub mod discover;
pub mod extract;
pub mod fault;
pub mod feed;
pub mod fields;
pub mod files;
pub mod gateway;
pub mod http;
pub mod import;
pub mod init;
pub mod json_path;
pub mod json_time;
pub mod lease;
pub mod linear;
pub mod lines;
pub mod mqtt;
#[cfg(feature = "nats")]
mod nats;
pub mod offer;
pub mod opcua;
pub(crate) mod outlets;
mod pause;
pub mod plant;
pub mod review;
pub mod roles;
pub mod serial;
pub mod settings;
pub mod source;
pub mod sparkplug;
pub mod statistics;
pub mod supervisor;
pub mod table;
pub mod tag;
pub mod tag_alarm;
pub mod template;
pub mod tls;
pub mod trace;
pub mod value;

pub use configuration::{GatewayConfig, NAMESPACE_DEFAULT};
pub use destination::forward::DestinationView;

pub use fields::Mistake;
pub use gateway::{Applied, Destinations, Gateway, GatewayError, PreparedGateway, SourceView, Sources};
pub use outlets::{Changes, LeftQueue, Unusable};
