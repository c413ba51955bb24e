//! The compared figures and their limits.

mod allocations;
mod delay;
mod memory;
mod pubsub;
mod read;
mod security;
mod slow_reader;
mod subscribe;
mod sustained;

use super::row::Row;
use super::samples::{Quantities, Samples, Side};
use super::stand::{Programs, Stand, VersusError};

/// One figure: how to measure it once, and how to judge its repetitions.
pub(super) trait Figure {
    /// Its name on the command line.
    fn id(&self) -> &'static str;

    /// The measured sides.
    fn sides(&self) -> &[Side];

    /// Measures one side once.
    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError>;

    /// Why this machine cannot measure it, or `None`.
    fn lacks(&self, _programs: &Programs) -> Option<&'static str> {
        None
    }

    /// The rows of the table.
    fn judge(&self, samples: &Samples) -> Vec<Row>;
}

/// All figures in the order of the table; `quick` shortens the windows.
pub(super) fn all(quick: bool) -> Vec<Box<dyn Figure>> {
    let mut all: Vec<Box<dyn Figure>> = vec![
        Box::new(read::RoundTrip { quick }),
        Box::new(read::ThousandNodes { quick }),
        Box::new(subscribe::PerSignal { quick }),
        Box::new(sustained::Sustained::new(quick)),
        Box::new(subscribe::ManyClients { quick }),
        Box::new(subscribe::Spread { quick }),
        Box::new(memory::PerSession { quick }),
        Box::new(memory::PerItem),
        Box::new(memory::Idle),
        Box::new(slow_reader::SlowReader { quick }),
        Box::new(allocations::Allocations),
        Box::new(security::SecureRead { quick }),
        Box::new(security::SecureConnect { quick }),
        Box::new(security::SecureSessions { quick }),
        Box::new(security::SecureSignals { quick, clients: "1" }),
        Box::new(security::SecureSignals { quick, clients: "10" }),
        Box::new(pubsub::Cpu { quick }),
        Box::new(pubsub::Rate { quick }),
        Box::new(pubsub::Period { quick }),
        Box::new(pubsub::Growth { quick }),
        Box::new(pubsub::Drift { quick, done: false }),
        Box::new(pubsub::Delivery { quick }),
        Box::new(pubsub::Clients { quick }),
        Box::new(pubsub::Overhead),
    ];
    all.extend(delay::Delay::all(quick));
    all
}
