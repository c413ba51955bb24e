//! `taktwerk bench`: load for any OPC UA server, and what it did to it. What can be asked for is a [`Specification`].
//!
//! - [`request`]: Read, Write and Browse, back to back or at a rate; [`connect`]: sessions; [`subscribe`]: values;
//! - [`mqtt`]: the same questions put to an MQTT broker; [`pubsub`]: a publisher and how late it is;
//! - [`igmp`]: multicast at a switch;
//! - [`roundtrip`], [`fan`]: values that come back, one [`transaction`] after the other;
//! - `gateway`: from field devices, an MQTT broker or other servers to clients;
//! - [`probe`]: why a request was slow; [`again`]: its connection; [`update`]: setting values;
//! - [`common`]: options that they share; [`link`]: a network that is not there; [`nodes`]: which nodes are used;
//! - [`account`]: CPU, memory, switches; [`report`]: the table and the document.

mod account;
mod again;
mod common;
mod connect;
mod fan;
#[cfg(feature = "gateway")]
mod gateway;
mod igmp;
mod link;
mod mqtt;
pub(crate) mod nodes;
mod probe;
mod pubsub;
mod report;
mod request;
mod roundtrip;
mod subscribe;
mod transaction;
mod update;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::Subcommand;
#[cfg(feature = "gateway")]
pub(crate) use gateway::field_devices;
use std::io::BufRead;
use taktwerk_load::Specification;

/// What to load a server with.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one, for as long as the command runs
pub(crate) enum BenchCommand {
    /// A load that the laboratory can start as well.
    #[command(flatten)]
    Load(Specification),
    /// Read a specification from standard input, one line of JSON, and print the document: for the laboratory.
    #[command(hide = true)]
    Specified,
    /// Read field devices through a gateway; measure latency and CPU cost of their values.
    #[cfg(feature = "gateway")]
    Gateway(gateway::GatewayArgs),
    /// Feed a gateway from an MQTT broker; measure throughput and latency.
    #[cfg(feature = "gateway")]
    GatewayMqtt(gateway::MessagesArgs),
    /// Aggregate OPC UA servers through a gateway; measure their CPU cost and the added delay.
    #[cfg(feature = "gateway")]
    GatewayOpcua(gateway::ServersArgs),
}

/// The longest specification that is read: five hundred nodes have names of some length.
const SPECIFICATION_MAX: u64 = 8 << 20;

/// Runs one of them.
pub(crate) fn run(command: &mut BenchCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    taktwerk_lab::files::raise_limit();
    match command {
        BenchCommand::Load(load) => generate(load, output, interrupt),
        BenchCommand::Specified => {
            let load = specified(std::io::stdin().lock())?;
            crate::supervised::end_with_stdin()?;
            generate(&mut { load }, output.as_json(), interrupt)
        }
        #[cfg(feature = "gateway")]
        BenchCommand::Gateway(arguments) => gateway::run_registers(arguments, output, interrupt),
        #[cfg(feature = "gateway")]
        BenchCommand::GatewayMqtt(arguments) => gateway::run_messages(arguments, output, interrupt),
        #[cfg(feature = "gateway")]
        BenchCommand::GatewayOpcua(arguments) => gateway::run_servers(arguments, output, interrupt),
    }
}

/// Reads one line, and leaves the input open: a load that ends with it watches it from then on.
fn specified(input: impl BufRead) -> Result<Specification, Failure> {
    let mut line = String::new();
    input
        .take(SPECIFICATION_MAX)
        .read_line(&mut line)
        .map_err(|error| Failure::Environment(format!("cannot read the specification: {error}")))?;
    serde_json::from_str(&line).map_err(|error| Failure::Usage(format!("the specification: {error}")))
}

fn generate(load: &mut Specification, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let _link = load.common().map_or(Ok(None), common::go_over_link)?;
    match load {
        Specification::Connect(load) => connect::run(load, output, interrupt),
        Specification::Read(load) => request::read(load, output, interrupt),
        Specification::Write(load) => request::write(load, output, interrupt),
        Specification::Browse(load) => request::browse(load, output, interrupt),
        Specification::Subscribe(load) => subscribe::run(load, output, interrupt),
        Specification::Mqtt(load) => mqtt::run(load, output, interrupt),
        Specification::PubSub(load) => pubsub::run(load, output, interrupt),
        Specification::Igmp(load) => igmp::run(load, output, interrupt),
        Specification::Roundtrip(load) => roundtrip::run(load, output, interrupt),
        Specification::Fan(load) => fan::run(load, output, interrupt),
        Specification::Probe(load) => probe::run(load, output, interrupt),
        Specification::Update(load) => update::run(load, output, interrupt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_is_one_line() {
        let mut input = &b"{\"load\":\"read\",\"batch\":7}\nrest"[..];
        assert!(matches!(specified(&mut input).unwrap(), Specification::Read(load) if load.batch == 7));
        assert_eq!(input, b"rest");
        for (text, why) in
            [("", "EOF"), ("{\"load\":\"reed\"}", "reed"), ("{\"load\":\"read\",\"bach\":1}", "bach")]
        {
            let refused = specified(text.as_bytes()).unwrap_err();
            assert!(matches!(refused, Failure::Usage(_)) && refused.to_string().contains(why), "{refused}");
        }
    }
}
