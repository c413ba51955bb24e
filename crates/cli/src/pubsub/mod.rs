//! `taktwerk pubsub`: publishing and subscribing without a server.
//!
//! - [`publish`]: publishes simulated values, or those of a server ([`bridge`]); [`listen`]: prints received messages;
//! - [`call`]: calls Actions of responders;
//! - [`keys`]: keys of security groups from files or a key service; [`broker`]: the embedded broker;
//! - [`demand`]: checks that message security has keys; [`send_time`]: checks support for exact sending times;
//! - [`common`]: shared options.

mod bridge;
mod broker;
mod call;
mod common;
mod demand;
mod keys;
mod listen;
mod publish;
mod send_time;

pub(crate) use common::read as read_configuration;
pub(crate) use demand::{Side, secured};
pub(crate) use keys::{KeyFile, fixed as fixed_keys};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::Subcommand;

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum PubSubCommand {
    /// Publish simulated values or those of any server.
    Publish(Box<publish::PublishArgs>),
    /// Print received messages.
    Listen(Box<listen::ListenArgs>),
    /// Call an Action of a responder, or list its Actions.
    Call(Box<call::CallArgs>),
    /// Print a file with new keys for a security group.
    Keys(keys::KeysArgs),
    /// Run the broker of --embedded-broker alone: for programs that measure it.
    #[command(hide = true)]
    Broker(broker::BrokerArgs),
}

/// Runs a subcommand.
pub(crate) fn run(command: &PubSubCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        PubSubCommand::Publish(arguments) => publish::run(arguments, output, interrupt),
        PubSubCommand::Listen(arguments) => listen::run(arguments, output, interrupt),
        PubSubCommand::Call(arguments) => call::run(arguments, output, interrupt),
        PubSubCommand::Keys(arguments) => keys::run(arguments, output),
        PubSubCommand::Broker(arguments) => broker::run(arguments, output, interrupt),
    }
}
