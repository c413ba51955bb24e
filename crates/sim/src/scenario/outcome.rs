//! The results of a scenario.

use crate::authority::AuthorityFigures;
use crate::histogram::Histogram;
use crate::pubsub::figures::{BrokerFigures, PublisherFigures, SubscriberFigures};
use crate::violation::Violation;
use core::time::Duration;

/// Results of a group of clients.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadOutcome {
    /// Times in nanoseconds. Subscriptions: from the write in the server until the application has the value. Requests:
    /// round trips.
    pub times: Histogram,
    /// Values that were due in the window, summed over all clients, or requests sent in it.
    pub due: u64,
    /// Of these, the number that arrived or were answered.
    pub arrived: u64,
    /// Values with the Overflow bit: earlier values were dropped from a queue.
    pub overflows: u64,
    /// Notification messages with values of the window.
    pub messages: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Lost connections that were restored, in the whole simulation.
    pub reconnects: u64,
    /// Subscriptions that had to be created again, and messages that were lost permanently.
    pub losses: u64,
    /// Numbered events that arrived, in the whole simulation.
    pub events: u64,
    /// EventQueueOverflowEvents: events were dropped from a queue.
    pub event_overflows: u64,
    /// Subscriptions that were made durable.
    pub durable: u64,
    /// Durable subscriptions that a new session took over, such as after a restart of the server.
    pub transfers: u64,
    /// The longest time from the first packet until a session was up, in seconds.
    pub session_up: f64,
    /// Attempts to connect that failed, in the whole simulation.
    pub failed_attempts: u64,
    /// The longest time from the loss of a connection until it was restored, in seconds; 0 if none was restored.
    pub outage: f64,
}

/// A link in the measured window: the values of its busiest line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LineOutcome {
    /// Bits per second from clients to servers, including headers and framing.
    pub up_bits_s: f64,
    /// Bits per second from servers to clients; 0 if both directions share the line.
    pub down_bits_s: f64,
    /// Utilisation of the busier direction, including other traffic; `None` if the link has no rate.
    pub utilisation: Option<f64>,
    /// Packets lost in transit or dropped because a queue was full, on all lines.
    pub lost: u64,
    /// Number of lines.
    pub lines: u32,
}

/// Processor time of a kind of server or a group of clients in the measured window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HostOutcome {
    /// Processor seconds per second of the busiest one; `None` without a machine.
    pub cpu: Option<f64>,
}

/// A group of publishers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublisherOutcome {
    /// Sums over the group. Messages and bytes are those in the measured window, everything else covers the whole
    /// simulation.
    pub figures: PublisherFigures,
    /// Processor seconds per second of the busiest one; `None` without a machine.
    pub cpu: Option<f64>,
}

/// A group of subscribers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubscriberOutcome {
    /// Sums over the group. Values and times are those of the window, everything else covers the whole simulation.
    pub figures: SubscriberFigures,
    /// Values that were written in the window, for each subscriber of the group.
    pub due: u64,
    /// Processor seconds per second of all subscribers together; `None` without a machine.
    pub cpu: Option<f64>,
}

/// A broker.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BrokerOutcome {
    /// Messages received and sent are those in the measured window, everything else covers the whole simulation.
    pub figures: BrokerFigures,
    /// Processor seconds per second; `None` without a machine.
    pub cpu: Option<f64>,
}

/// Results of the PubSub parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PubSubOutcome {
    /// By broker.
    pub brokers: Vec<BrokerOutcome>,
    /// By group of publishers.
    pub publishers: Vec<PublisherOutcome>,
    /// By group of subscribers.
    pub subscribers: Vec<SubscriberOutcome>,
}

/// A certificate authority.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthorityOutcome {
    /// Counters of the whole simulation.
    pub figures: AuthorityFigures,
    /// Processor seconds per second of the measured window; `None` without a machine.
    pub cpu: Option<f64>,
}

/// The results of a scenario with one seed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// By group of clients.
    pub loads: Vec<LoadOutcome>,
    /// By kind of link.
    pub lines: Vec<LineOutcome>,
    /// By kind of server.
    pub servers: Vec<HostOutcome>,
    /// By group of clients: the processor time of their threads.
    pub clients: Vec<HostOutcome>,
    /// Publishers, subscribers and brokers.
    pub pubsub: PubSubOutcome,
    /// Certificate authorities.
    pub authorities: Vec<AuthorityOutcome>,
    /// Length of the measured window in virtual seconds.
    pub measured: f64,
    /// Total virtual time in seconds.
    pub simulated: f64,
    /// Number of simulated events.
    pub events: u64,
}

/// Why a scenario has no outcome.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario is invalid or contradicts itself.
    #[error("{key}: {problem}")]
    Invalid {
        /// The key concerned, such as `client.0.count`.
        key: String,
        /// The problem and how to correct it.
        problem: String,
    },
    /// Some clients did not get a session.
    #[error(
        "{0} of {1} clients have no session after {2:?} of virtual time: {3}. Check rate, loss and delay of their link"
    )]
    NoSession(usize, usize, Duration, String),
    /// Some subscribers did not receive a value for every field.
    #[error(
        "{0} of {1} subscribers have no value of some fields after {2:?} of virtual time; the first is {3}. Check rate, loss and \
         delay of its link, key_frame_count, and whether messages fit"
    )]
    NoValues(usize, usize, Duration, String),
    /// An endless number of events happens at the same virtual time.
    #[error(
        "virtual time stands still {0:?} after the start: requests without a pause, to a server whose work takes no time, over a \
         link without delay, are answered without end. Give hosts a profile (--host-profile), the link a delay, or the clients \
         a pause (pause_ms, every_ms)"
    )]
    Standstill(Duration),
    /// The software broke a promise.
    #[error("a promise is broken {0}")]
    Broken(#[from] Violation),
    /// The software panicked.
    #[error("the simulation panicked: {0}")]
    Panicked(String),
    /// A record could not be written.
    #[error("cannot write {0}")]
    Record(String),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}
