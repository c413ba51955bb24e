//! `taktwerk bench`: load for any OPC UA server, and what it did to it.
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
use common::CommonArgs;
#[cfg(feature = "gateway")]
pub(crate) use gateway::field_devices;

/// What to load a server with.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Open sessions.
    Connect(connect::ConnectArgs),
    /// Read values.
    Read(request::ReadArgs),
    /// Write values.
    Write(request::WriteArgs),
    /// Browse nodes.
    Browse(request::BrowseArgs),
    /// Subscribe to values that change.
    Subscribe(subscribe::SubscribeArgs),
    /// Round trips, fan-out and fan-in through an MQTT broker.
    Mqtt(mqtt::MqttArgs),
    /// Publish values; measure latency, CPU cost and throughput.
    #[command(name = "pubsub")]
    PubSub(pubsub::PubSubArgs),
    /// Check whether a switch filters multicast or floods hosts that did not join.
    Igmp(igmp::IgmpArgs),
    /// Write a value and wait until a subscription brings it back.
    Roundtrip(roundtrip::RoundtripArgs),
    /// One client writes, all others answer, the first waits for all of them.
    Fan(fan::FanArgs),
    /// Read field devices through a gateway; measure latency and CPU cost of their values.
    #[cfg(feature = "gateway")]
    Gateway(gateway::GatewayArgs),
    /// Feed a gateway from an MQTT broker; measure throughput and latency.
    #[cfg(feature = "gateway")]
    GatewayMqtt(gateway::MessagesArgs),
    /// Aggregate OPC UA servers through a gateway; measure their CPU cost and the added delay.
    #[cfg(feature = "gateway")]
    GatewayOpcua(gateway::ServersArgs),
    /// Read at fixed times and find the cause of each slow response.
    Probe(probe::ProbeArgs),
    /// Set values of a server in this process from one or several threads.
    Update(update::UpdateArgs),
}

impl BenchCommand {
    /// The options of loads on OPC UA servers.
    fn common(&mut self) -> Option<&mut CommonArgs> {
        match self {
            Self::Connect(arguments) => Some(&mut arguments.common),
            Self::Read(arguments) => Some(&mut arguments.request.common),
            Self::Write(arguments) => Some(&mut arguments.request.common),
            Self::Browse(arguments) => Some(&mut arguments.request.common),
            Self::Subscribe(arguments) => Some(&mut arguments.common),
            Self::Roundtrip(arguments) => Some(&mut arguments.common),
            Self::Fan(arguments) => Some(&mut arguments.common),
            Self::Probe(arguments) => Some(&mut arguments.common),
            #[cfg(feature = "gateway")]
            Self::Gateway(_) | Self::GatewayMqtt(_) | Self::GatewayOpcua(_) => None,
            Self::Mqtt(_) | Self::PubSub(_) | Self::Igmp(_) | Self::Update(_) => None,
        }
    }
}

/// Runs one of them.
pub(crate) fn run(command: &mut BenchCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    taktwerk_lab::files::raise_limit();
    command.common().map_or(Ok(()), CommonArgs::go_over_link)?;
    match command {
        BenchCommand::Connect(arguments) => connect::run(arguments, output, interrupt),
        BenchCommand::Read(arguments) => request::read(arguments, output, interrupt),
        BenchCommand::Write(arguments) => request::write(arguments, output, interrupt),
        BenchCommand::Browse(arguments) => request::browse(arguments, output, interrupt),
        BenchCommand::Subscribe(arguments) => subscribe::run(arguments, output, interrupt),
        BenchCommand::Mqtt(arguments) => mqtt::run(arguments, output, interrupt),
        BenchCommand::PubSub(arguments) => pubsub::run(arguments, output, interrupt),
        BenchCommand::Igmp(arguments) => igmp::run(arguments, output, interrupt),
        BenchCommand::Roundtrip(arguments) => roundtrip::run(arguments, output, interrupt),
        BenchCommand::Fan(arguments) => fan::run(arguments, output, interrupt),
        #[cfg(feature = "gateway")]
        BenchCommand::Gateway(arguments) => gateway::run_registers(arguments, output, interrupt),
        #[cfg(feature = "gateway")]
        BenchCommand::GatewayMqtt(arguments) => gateway::run_messages(arguments, output, interrupt),
        #[cfg(feature = "gateway")]
        BenchCommand::GatewayOpcua(arguments) => gateway::run_servers(arguments, output, interrupt),
        BenchCommand::Probe(arguments) => probe::run(arguments, output, interrupt),
        BenchCommand::Update(arguments) => update::run(arguments, output, interrupt),
    }
}
