//! Load generators. Each one runs a specification of the crate `load` on a server, a broker, a gateway or a network,
//! and returns the result as a document.
//!
//! Commands need only [`run`]. A generator takes its specification and a [`Context`], and returns a [`Finished`]:
//!
//! - `request`: Read, Write and Browse, back to back or at a rate; `connect`: sessions; `subscribe`: values;
//! - `mqtt`: the corresponding loads of an MQTT broker; [`pubsub`]: a publisher and its lateness;
//! - `igmp`: multicast at a switch;
//! - `roundtrip`, `fan`: values that return to their sender, one `transaction` after the other;
//! - [`gateway`]: from field devices, an MQTT broker or other servers to clients;
//! - `probe`: causes of slow requests; `update`: setting values.
//!
//! Shared parts:
//!
//! - [`context`]: progress and stopping; [`error`]: why a load has no result, or an invalid one;
//! - [`client`]: sessions from connection options, nodes from the user's notation; also used by commands;
//! - [`nodes`]: choice of nodes; [`signals`]: the signals of servers under test;
//! - `common`: operations for the options of all loads; `again`: reconnecting; `link`: an emulated network between
//!   generator and server;
//! - `station`: publisher and subscriber without a network; `values`: requests for reading and monitoring values;
//!   `account`: CPU, memory, context switches; [`report`]: the document and the same in words.

mod account;
mod again;
pub mod client;
mod common;
mod connect;
pub mod context;
pub mod error;
mod fan;
pub mod gateway;
mod igmp;
mod link;
mod mqtt;
pub mod nodes;
mod probe;
pub mod pubsub;
pub mod report;
mod request;
mod roundtrip;
pub mod signals;
mod station;
mod subscribe;
mod transaction;
mod update;
mod values;

pub use context::{Attendant, Context, Step};
pub use error::GeneratorError;
pub use report::{Finished, Lines};

use taktwerk_load::Specification;

/// Runs a load.
///
/// # Errors
/// If there is no result. An invalid result is a [`Finished`] with the reason.
pub fn run(specification: &mut Specification, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    taktwerk_load::files::raise_limit();
    let _link = match specification.common() {
        Some(common) => common::go_over_link(common, context)?,
        None => None,
    };
    match specification {
        Specification::Connect(load) => connect::run(load, context),
        Specification::Read(load) => request::read(load, context),
        Specification::Write(load) => request::write(load, context),
        Specification::Browse(load) => request::browse(load, context),
        Specification::Subscribe(load) => subscribe::run(load, context),
        Specification::Mqtt(load) => mqtt::run(load, context),
        Specification::PubSub(load) => pubsub::run(load, context),
        Specification::Igmp(load) => igmp::run(load, context),
        Specification::Roundtrip(load) => roundtrip::run(load, context),
        Specification::Fan(load) => fan::run(load, context),
        Specification::Probe(load) => probe::run(load, context),
        Specification::Update(load) => update::run(load, context),
        Specification::Gateway(load) => gateway::registers::run(load, context),
        Specification::GatewayMqtt(load) => gateway::messages::run(load, context),
        Specification::GatewayOpcUa(load) => gateway::servers::run(load, context),
        Specification::GatewayApply(load) => gateway::apply::run(load, context),
    }
}
