//! OPC UA service messages, structures, enumerations, numeric ids and namespace 0 (1.05.07).
//!
//! Almost everything here is written by `cargo xtask codegen` from the published NodeSet; nothing does I/O. The map:
//!
//! - the structures, enumerations and option sets stand at the root: [`ReadRequest`], [`NodeClass`], …;
//! - [`ids`]: numeric ids by node class, [`message_name`]: what a message on the wire is called;
//! - [`service`]: which response answers which request, and access to their headers;
//! - [`description`]: what each type looks like, at run time;
//! - [`dynamic`]: decodes and encodes structures that are known only at run time;
//! - [`ns0`]: all nodes of namespace 0, read from a blob without heap.

#[macro_use]
mod macros;

pub mod description;
pub mod dynamic;
mod generated;
pub mod ns0;
pub mod service;

pub use generated::*;
