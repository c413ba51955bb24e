//! A plant as described by a user: hosts, links, servers, clients and faults, run with one seed.
//!
//! [`run`] is a pure function: the same [`Scenario`] and seed give the same [`Outcome`] on every machine. It runs the
//! same client and server cores that are used in production.
//!
//! - [`outcome`]: the results;
//! - [`fault`]: faults and their times; [`instruments`]: records of a run;
//! - [`pubsub`]: publishers, subscribers and brokers; [`authority`]: certificate authorities; [`text`]: a scenario as a
//!   file;
//! - `build` creates the world, `application` runs on each client, `clock` sends Publish requests at fixed times, `item` checks the promise of each monitored item,
//!   `events` that of event items; `durable` is the store of durable subscriptions, `history` that of values, `login`
//!   verifies users; `check` finds contradictions, `prices` costs that a
//!   host profile lacks.

mod application;
pub mod authority;
mod build;
mod check;
pub(crate) mod clock;
mod durable;
mod events;
pub mod fault;
pub(crate) mod history;
pub mod instruments;
mod item;
mod login;
pub mod outcome;
mod prices;
pub mod pubsub;
mod run;
mod site;
pub mod text;

pub use authority::Authority;
pub use check::check;
pub use fault::{Fault, FaultKind};
pub use instruments::Instruments;
pub use outcome::{HostOutcome, LineOutcome, LoadOutcome, Outcome, RunError};
pub use pubsub::PubSub;
pub use run::{Progress, run, run_with};

use crate::host::Competitor;
use core::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_model::HostProfile;
use taktwerk_netem::Profile;

/// A scenario. Indexes refer to the lists of this structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Machines.
    pub hosts: Vec<Host>,
    /// Network links.
    pub links: Vec<Link>,
    /// Servers.
    pub servers: Vec<Server>,
    /// Groups of equal clients.
    pub clients: Vec<Clients>,
    /// Publishers, subscribers and brokers.
    pub pubsub: PubSub,
    /// Certificate authorities.
    pub authorities: Vec<Authority>,
    /// The faults.
    pub faults: Vec<Fault>,
    /// Virtual time before the measured window, counted from the moment when all clients are connected.
    pub warmup: Duration,
    /// Length of the measured window in virtual time.
    pub measured: Duration,
    /// Maximum virtual time that late values and clients may take after the window; after that they are reported as
    /// stuck.
    pub settle: Duration,
}

/// A machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Name.
    pub name: String,
    /// Processor costs.
    pub profile: HostProfile,
    /// Other programs that run on it.
    pub competitors: Vec<Competitor>,
}

/// Number of lines of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lines {
    /// One line, shared by all clients and servers that use the link.
    #[default]
    One,
    /// One for each server.
    PerServer,
    /// One for each client.
    PerClient,
}

/// A kind of network link.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Name.
    pub name: String,
    /// Rate, delay, jitter and loss.
    pub profile: Profile,
    /// Whether both directions take turns on one line.
    pub is_half_duplex: bool,
    /// Number of its lines.
    pub lines: Lines,
}

/// Variables of a server that change together.
#[derive(Debug, Clone, PartialEq)]
pub struct Signals {
    /// Number of variables.
    pub count: u32,
    /// Interval between new values; zero means never.
    pub period: Duration,
    /// Encoded size of a value in bytes: 1, 2, 4 and 8 are integers, all other sizes are ByteStrings of this length.
    pub value_len: usize,
}

/// Equal servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Name.
    pub name: String,
    /// Number of servers.
    pub count: u32,
    /// Its machine; `None` means that work takes no time. Each of several servers has its own machine of this kind.
    pub host: Option<usize>,
    /// Threads that serve connections.
    pub shards: u32,
    /// Its variables.
    pub signals: Vec<Signals>,
    /// Interval between the numbered events that it raises; zero means none.
    pub event_period: Duration,
    /// Variables are written up to this much later than their period says, evenly, and by at most a period. Then the
    /// server finds no phase in which it publishes right after the writes.
    pub spread: Duration,
    /// Number of values that its history keeps of each variable; 0 means no history. The history is full at the start.
    pub history: u32,
    /// The authorities that it asks about certificates of clients, one after the other. Empty: it asks none.
    pub authorities: Vec<usize>,
}

impl Server {
    /// Number of its variables.
    #[must_use]
    pub fn variables(&self) -> u64 {
        self.signals.iter().map(|signals| u64::from(signals.count)).sum()
    }
}

/// What a client does.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    /// It subscribes to variables.
    Subscribe(Subscription),
    /// It reads or writes variables, or reads their history.
    Request(Requests),
}

/// A subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// Publishing interval.
    pub publishing_interval: Duration,
    /// Sampling interval; zero reports every change.
    pub sampling_interval: Duration,
    /// Queue size of each item; `None` means room for every value of two publishing intervals plus one second.
    pub queue_size: Option<u32>,
    /// Maximum number of notifications in one message; 0 means no limit.
    pub notifications_max: u32,
    /// Number of publishing intervals without a change before a keep-alive.
    pub keep_alive_count: u32,
    /// Number of publishing intervals without a Publish request before the server ends the subscription; `None` means
    /// ten minutes.
    pub lifetime_count: Option<u32>,
    /// Maximum number of Publish requests that the client keeps pending at the server; `None` leaves it to the client.
    pub publish_requests: Option<u32>,
    /// The client sends a Publish request each time this percentage of the publishing interval has passed, independent of
    /// responses; `None` leaves it to the client.
    pub publish_every: Option<u32>,
    /// Queue size of an item for the numbered events of the server, 0 for the server's default; `None` means no such
    /// item.
    pub event_queue: Option<u32>,
    /// Whether it is made durable before its items are created (Part 4 §6.8).
    pub is_durable: bool,
}

impl Subscription {
    /// Creates a subscription with this publishing interval that reports every change and whose queues lose nothing.
    #[must_use]
    pub fn new(publishing_interval: Duration) -> Self {
        Self {
            publishing_interval,
            sampling_interval: Duration::ZERO,
            queue_size: None,
            notifications_max: 0,
            keep_alive_count: 10,
            lifetime_count: None,
            publish_requests: None,
            publish_every: None,
            event_queue: None,
            is_durable: false,
        }
    }
}

/// When a client sends its next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// This long after the response to the previous one.
    Pause(Duration),
    /// At fixed times, whether or not the previous request was answered. Round trips are measured from these times.
    Every(Duration),
}

/// A service that a client calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Read: the present values.
    Read,
    /// Write.
    Write,
    /// HistoryRead: so many of the newest values of each variable.
    ReadHistory(u32),
}

/// Requests sent one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Requests {
    /// The service.
    pub operation: Operation,
    /// Number of variables per request.
    pub batch: u32,
    /// Timing.
    pub pace: Pace,
}

impl Load {
    /// Whether it is a durable subscription.
    pub(crate) fn is_durable(&self) -> bool {
        matches!(self, Self::Subscribe(it) if it.is_durable)
    }
}

/// How a client identifies its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Login {
    /// Without a user.
    #[default]
    Anonymous,
    /// By a name and a password, which the server verifies with a deliberately slow hash.
    Password,
}

/// Equal clients of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Clients {
    /// Name.
    pub name: String,
    /// Number of clients per server of the kind.
    pub count: u32,
    /// The kind of server.
    pub server: usize,
    /// The link to the server; `None` means a network without limits.
    pub link: Option<usize>,
    /// Their machine; `None` means that work takes no time.
    pub host: Option<usize>,
    /// Number of threads on the machine that they share.
    pub threads: u32,
    /// Number of variables of each client; `None` means all. Each client takes the variables after those of the
    /// previous client, wrapping around at the end.
    pub items: Option<u32>,
    /// Their work.
    pub load: Load,
    /// Security policy and mode of their channels.
    pub security: (SecurityPolicy, MessageSecurityMode),
    /// Their users.
    pub login: Login,
    /// How long the server keeps a session without a connection.
    pub session_timeout: Duration,
    /// The authorities that they ask about certificates of servers, one after the other. Empty: they ask none.
    pub authorities: Vec<usize>,
}
