//! From the field to a server's address space: sources with tags, as a configuration file describes them.
//!
//! Each source runs in a task of its own, with deadlines for all that it waits for, pauses that grow after failures, a
//! budget for values, and statistics. Values that do not come in time say so by their status.
//!
//! - [`GatewayConfig`]: the sections `[gateway]`, `[[source]]` and `[[tag]]` of a file; [`fields`]: settings with their
//!   lines; [`tag`], [`tag_alarm`], [`roles`]: what every tag has, its alarm and who may use it; [`value`]: types and conversions;
//! - [`settings`]: what every source has; [`source`]: what a source is; [`adapter`]: the kinds of sources; [`fault`]: why one
//!   does not work; [`connect`], [`tls`], [`mqtt`], [`http`], [`opcua`], [`sparkplug`]: connections and messages; `database`, `nats`:
//!   connections to PostgreSQL and NATS; [`serial`]: serial ports; [`json_path`], [`json_time`]: values within JSON;
//!   [`lines`], [`extract`]: lines, and values within texts; [`table`]: tags as CSV; [`template`]: tags of a type of device;
//! - [`feed`]: where readings go: scaling, deadband, budget, quality; [`plant`]: nodes; [`catalogue`], [`alarms`]: types and alarms of other
//!   servers; [`statistics`]: counters;
//! - [`destination`]: where values are sent, with a queue on disk for each destination;
//! - [`init`]: files to begin with; [`import`]: files of other products; [`review`]: what is allowed in a file but probably
//!   not meant; [`discover`], [`offer`]: what sources offer;
//! - [`lease`]: sources that several gateways share;
//! - [`supervisor`]: running sources again and again; [`gateway`]: all of it beside a server.

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
pub mod gateway;
pub mod http;
pub mod import;
pub mod init;
pub mod json_path;
pub mod json_time;
pub mod lease;
pub mod lines;
pub mod mqtt;
#[cfg(feature = "nats")]
mod nats;
pub mod offer;
pub mod opcua;
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

pub use configuration::GatewayConfig;
pub use destination::forward::DestinationView;
pub use fields::Mistake;
pub use gateway::{Applied, Destinations, Gateway, GatewayError, PreparedGateway, SourceView, Sources};
