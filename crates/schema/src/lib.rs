//! OPC UA service messages, structures, enumerations, numeric ids and namespace 0 (1.05.07).
//!
//! `cargo xtask codegen` generates almost everything here from the published NodeSet. The crate does no I/O. Modules:
//!
//! - at the root: structures, enumerations and option sets: [`ReadRequest`], [`NodeClass`], …;
//! - [`ids`]: numeric ids by node class, [`message_name`]: the name of a message on the wire;
//! - [`service`]: request and response pairs, and access to their headers;
//! - [`description`]: run-time descriptions of all types;
//! - [`dynamic`]: decodes and encodes structures known only at run time;
//! - [`ns0`]: all nodes of namespace 0, read from a blob without heap.

#[macro_use]
mod macros;

pub mod description;
pub mod dynamic;
mod generated;
pub mod ns0;
pub mod service;

pub use generated::*;
