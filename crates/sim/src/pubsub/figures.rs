//! Counters of publishers, subscribers and brokers, over all runs of their processes.

use crate::histogram::Histogram;
use std::collections::BTreeMap;

/// A publisher.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublisherFigures {
    /// NetworkMessages created.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Cycles that were missed because the publisher was late.
    pub missed_cycles: u64,
    /// DataSetMessages that were too large and were not sent.
    pub too_large: u64,
    /// Messages dropped because too many waited for the broker.
    pub dropped: u64,
    /// Messages lost with a connection or with the broker's session.
    pub forgotten: u64,
    /// Connections to the broker.
    pub connections: u64,
    /// Number of times the process was started.
    pub lives: u32,
}

impl PublisherFigures {
    /// Adds the counters of another one.
    pub fn add(&mut self, other: &Self) {
        let Self { messages, bytes, missed_cycles, too_large, dropped, forgotten, connections, lives } =
            other;
        self.messages += messages;
        self.bytes += bytes;
        self.missed_cycles += missed_cycles;
        self.too_large += too_large;
        self.dropped += dropped;
        self.forgotten += forgotten;
        self.connections += connections;
        self.lives += lives;
    }
}

/// A subscriber.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubscriberFigures {
    /// Time in nanoseconds from the write in the publisher until the application has the value.
    pub times: Histogram,
    /// Values that arrived.
    pub arrived: u64,
    /// DataSetMessages given to the application, including keep-alives.
    pub messages: u64,
    /// Missing DataSetMessages, determined by their sequence numbers.
    pub lost: u64,
    /// DataSetMessages that were dropped because they were duplicates or arrived out of order.
    pub old: u64,
    /// DataSetMessages with invalid sequence numbers, for example after a restart of the publisher.
    pub out_of_sequence: u64,
    /// NetworkMessages dropped for security reasons, including replays.
    pub security_errors: u64,
    /// NetworkMessages that could not be read.
    pub malformed: u64,
    /// How often a reader entered the state Error because nothing was received for too long.
    pub timeouts: u64,
    /// How often a reader left it.
    pub recoveries: u64,
    /// Datagrams dropped because the socket's buffer was full.
    pub socket_dropped: u64,
    /// Connections to the broker.
    pub connections: u64,
    /// Number of times the process was started.
    pub lives: u32,
}

impl SubscriberFigures {
    /// Adds the counters of another one.
    pub fn add(&mut self, other: &Self) {
        self.times.merge(&other.times);
        self.arrived += other.arrived;
        self.messages += other.messages;
        self.lost += other.lost;
        self.old += other.old;
        self.out_of_sequence += other.out_of_sequence;
        self.security_errors += other.security_errors;
        self.malformed += other.malformed;
        self.timeouts += other.timeouts;
        self.recoveries += other.recoveries;
        self.socket_dropped += other.socket_dropped;
        self.connections += other.connections;
        self.lives += other.lives;
    }
}

/// A broker.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BrokerFigures {
    /// Messages from publishers.
    pub received: u64,
    /// Messages sent to subscribers, including repetitions.
    pub sent: u64,
    /// Of these, repetitions after a client reconnected.
    pub repeated: u64,
    /// Messages dropped because a client's queue was full.
    pub dropped: u64,
    /// The same by client.
    pub dropped_of: BTreeMap<String, u64>,
    /// The longest queue of a client, including messages sent and not acknowledged.
    pub queue_max: u64,
    /// Clients that were disconnected because they were silent for too long.
    pub silent: u64,
    /// Number of times the process was started.
    pub lives: u32,
}
