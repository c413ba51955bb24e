//! What publishers, subscribers and brokers have counted, over all lives of their processes.

use crate::histogram::Histogram;
use std::collections::BTreeMap;

/// A publisher.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublisherFigures {
    /// NetworkMessages made.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Cycles that were missed because the publisher came too late.
    pub missed_cycles: u64,
    /// DataSetMessages that were too large and were not sent.
    pub too_large: u64,
    /// Messages dropped because too many waited for the broker.
    pub dropped: u64,
    /// Messages that were lost with a connection or with the broker's session.
    pub forgotten: u64,
    /// Connections to the broker.
    pub connections: u64,
    /// How often the process was started.
    pub lives: u32,
}

impl PublisherFigures {
    /// Adds those of another one.
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
    /// From the write in the publisher until the application has the value. Nanoseconds.
    pub times: Histogram,
    /// Values that arrived.
    pub arrived: u64,
    /// DataSetMessages given to the application, with keep-alives.
    pub messages: u64,
    /// DataSetMessages that are missing by their sequence numbers.
    pub lost: u64,
    /// DataSetMessages that came twice or were overtaken, and were dropped.
    pub old: u64,
    /// DataSetMessages whose sequence numbers made no sense, as after a restart of the publisher.
    pub out_of_sequence: u64,
    /// NetworkMessages dropped because of their security; replays count too.
    pub security_errors: u64,
    /// NetworkMessages that could not be read.
    pub malformed: u64,
    /// Readers that went into the state Error because nothing came for too long.
    pub timeouts: u64,
    /// Readers that left it.
    pub recoveries: u64,
    /// Datagrams dropped because the socket's buffer was full.
    pub socket_dropped: u64,
    /// Connections to the broker.
    pub connections: u64,
    /// How often the process was started.
    pub lives: u32,
}

impl SubscriberFigures {
    /// Adds those of another one.
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
    /// Messages sent to subscribers, with repetitions.
    pub sent: u64,
    /// Of these, repetitions after a client has come back.
    pub repeated: u64,
    /// Messages dropped because a client's queue was full.
    pub dropped: u64,
    /// The same by client.
    pub dropped_of: BTreeMap<String, u64>,
    /// The longest queue of a client, with what was sent and not acknowledged.
    pub queue_max: u64,
    /// Clients that were silent for too long.
    pub silent: u64,
    /// How often the process was started.
    pub lives: u32,
}
