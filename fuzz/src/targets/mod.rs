//! The implementations of the targets. Each takes any bytes and panics if a guarantee of the code under test is
//! violated.

pub mod alarms;
pub mod certificate;
pub mod chunk;
pub mod client;
pub mod crypto;
pub mod decode;
mod driven;
pub mod durable;
pub mod dynamic;
pub mod events;
pub mod files;
pub mod gateway;
pub mod history;
pub mod nodeset;
pub mod pubsub;
pub mod query;
pub mod requests;
pub mod secured;
pub mod server;
pub mod sessions;
pub mod sources;
pub mod text;
pub mod token;
