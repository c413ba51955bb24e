//! Generators of load: each runs what a specification of the crate `load` asks for, on a server, a broker, a gateway or a
//! network, and returns the result as a document.
//!
//! [`run`] is all that a command needs. A generator takes its specification and a [`Context`], and returns a [`Finished`]:
//!
//! - `request`: Read, Write and Browse, back to back or at a rate; `connect`: sessions; `subscribe`: values;
//! - `mqtt`: the same questions put to an MQTT broker; [`pubsub`]: a publisher and how late it is;
//! - `igmp`: multicast at a switch;
//! - `roundtrip`, `fan`: values that come back, one `transaction` after the other;
//! - [`gateway`]: from field devices, an MQTT broker or other servers to clients;
//! - `probe`: why a request was slow; `update`: setting values.
//!
//! What they share:
//!
//! - [`context`]: who has a load generated; [`error`]: why a load gave no result, or one that does not count;
//! - [`client`]: sessions as connection options describe them, nodes as users write them. Commands use them as well;
//! - [`nodes`]: which nodes are used; [`signals`]: those that servers under test offer;
//! - `common`: what follows from the options of all loads of servers; `again`: a connection that is made again; `link`: an
//!   emulated network between generator and server;
//! - `station`: publisher and subscriber without a network; `values`: reading and monitoring the value of a node; `account`: CPU, memory, switches; [`report`]: the document, and the same in words.

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
/// If there is no result. One that does not count is a [`Finished`] that says so.
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
