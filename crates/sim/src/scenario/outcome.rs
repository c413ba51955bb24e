//! What comes of a scenario.

use crate::histogram::Histogram;
use crate::pubsub::figures::{BrokerFigures, PublisherFigures, SubscriberFigures};
use crate::violation::Violation;
use core::time::Duration;

/// What a group of clients saw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadOutcome {
    /// Subscriptions: from the write in the server until the application has the value. Requests: round trips. Nanoseconds.
    pub times: Histogram,
    /// Values that were due in the window over all clients, or requests sent in it.
    pub due: u64,
    /// Of these, the ones that arrived or were answered.
    pub arrived: u64,
    /// Values with the Overflow bit: others before them were dropped from a queue.
    pub overflows: u64,
    /// Notification messages with values of the window.
    pub messages: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Connections that were lost and came back, in the whole simulation.
    pub reconnects: u64,
    /// Subscriptions that had to be created anew, and messages that were lost for good.
    pub losses: u64,
    /// The longest time from the first packet until a session was up, in seconds.
    pub session_up: f64,
}

/// A link while counting: the busiest of its lines.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LineOutcome {
    /// Bits per second from clients to servers, with headers and framing.
    pub up_bits_s: f64,
    /// Bits per second from servers to clients; 0 if both directions share the line.
    pub down_bits_s: f64,
    /// The used share of the busier direction, with the other traffic; `None` if the link has no rate.
    pub utilisation: Option<f64>,
    /// Packets lost on the way or dropped because a queue was full, on all lines.
    pub lost: u64,
    /// How many lines there are.
    pub lines: u32,
}

/// A kind of server or a group of clients: processor time while counting.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HostOutcome {
    /// Processor seconds per second of the one that needs most; `None` without a machine.
    pub cpu: Option<f64>,
}

/// A group of publishers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublisherOutcome {
    /// Sums over the group. Messages and bytes are those while counting, everything else is of the whole simulation.
    pub figures: PublisherFigures,
    /// Processor seconds per second of the one that needs most; `None` without a machine.
    pub cpu: Option<f64>,
}

/// A group of subscribers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubscriberOutcome {
    /// Sums over the group. Values and times are those of the window, everything else is of the whole simulation.
    pub figures: SubscriberFigures,
    /// Values that were written in the window, for each subscriber of the group.
    pub due: u64,
    /// Processor seconds per second of all; `None` without a machine.
    pub cpu: Option<f64>,
}

/// A broker.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BrokerOutcome {
    /// Messages received and sent are those while counting, everything else is of the whole simulation.
    pub figures: BrokerFigures,
    /// Processor seconds per second; `None` without a machine.
    pub cpu: Option<f64>,
}

/// What came of the PubSub parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PubSubOutcome {
    /// By broker.
    pub brokers: Vec<BrokerOutcome>,
    /// By group of publishers.
    pub publishers: Vec<PublisherOutcome>,
    /// By group of subscribers.
    pub subscribers: Vec<SubscriberOutcome>,
}

/// What came of a scenario with one seed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// By group of clients.
    pub loads: Vec<LoadOutcome>,
    /// By kind of link.
    pub lines: Vec<LineOutcome>,
    /// By kind of server.
    pub servers: Vec<HostOutcome>,
    /// By group of clients: their threads.
    pub clients: Vec<HostOutcome>,
    /// Publishers, subscribers and brokers.
    pub pubsub: PubSubOutcome,
    /// Virtual seconds that were counted.
    pub measured: f64,
    /// Virtual seconds in all.
    pub simulated: f64,
    /// Events that were simulated.
    pub events: u64,
}

/// There is no outcome.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario contradicts itself.
    #[error("{key}: {problem}")]
    Invalid {
        /// Where, such as `client.0.count`.
        key: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// Not every client got a session.
    #[error(
        "{0} of {1} clients have no session after {2:?} of virtual time: {3}. Check rate, loss and delay of their link"
    )]
    NoSession(usize, usize, Duration, String),
    /// Not every subscriber got a value of each field.
    #[error(
        "{0} of {1} subscribers have no value of some fields after {2:?} of virtual time; the first is {3}. Check rate, loss and \
         delay of its link, key_frame_count, and whether messages fit"
    )]
    NoValues(usize, usize, Duration, String),
    /// Things happen without end while virtual time stands still.
    #[error(
        "virtual time stands still {0:?} after the start: requests without a pause, to a server whose work takes no time, over a \
         link without delay, are answered without end. Give hosts a profile (--host-profile), the link a delay, or the clients \
         a pause (pause_ms, every_ms)"
    )]
    Standstill(Duration),
    /// The software broke a promise.
    #[error("a promise is broken {0}")]
    Broken(#[from] Violation),
    /// A record could not be written.
    #[error("cannot write {0}")]
    Record(String),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}
