//! A plant as a user describes it: hosts, links, servers, clients and faults, run with one seed.
//!
//! [`run`] is a pure function: the same [`Scenario`] and seed give the same [`Outcome`], on every machine. It runs the client
//! and server cores that run in production.
//!
//! - [`outcome`]: what comes of it;
//! - [`fault`]: what goes wrong, and when; [`instruments`]: records of a run;
//! - [`pubsub`]: publishers, subscribers and brokers; [`text`]: a scenario as its file;
//! - `build` makes the world, `application` is what runs on each client, `item` holds each monitored item to its promise.

mod application;
mod build;
pub mod fault;
pub mod instruments;
mod item;
pub mod outcome;
pub mod pubsub;
mod run;
mod site;
pub mod text;

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

/// What is simulated. Indexes refer to the lists of this structure.
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
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// Virtual time before counting, behind the moment at which all clients are connected.
    pub warmup: Duration,
    /// Virtual time that is counted.
    pub measured: Duration,
    /// Longest virtual time that late values and clients may take behind it; then they are stuck.
    pub settle: Duration,
}

/// A machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// What people call it.
    pub name: String,
    /// What work costs on it.
    pub profile: HostProfile,
    /// Other programs on it.
    pub competitors: Vec<Competitor>,
}

/// How many lines of a link there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lines {
    /// One, for all clients and servers that use it.
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
    /// What people call it.
    pub name: String,
    /// Its rate, delay, jitter and loss.
    pub profile: Profile,
    /// Whether both directions take turns on one line.
    pub is_half_duplex: bool,
    /// How many of them there are.
    pub lines: Lines,
}

/// Variables of a server that change together.
#[derive(Debug, Clone, PartialEq)]
pub struct Signals {
    /// How many.
    pub count: u32,
    /// They get new values so often; zero is never.
    pub period: Duration,
    /// Bytes of a value as encoded: 1, 2, 4 and 8 are integers, everything else is a ByteString of this length.
    pub value_len: usize,
}

/// Equal servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// What people call it.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// Its machine; none needs no time. Several servers have a machine of this kind each.
    pub host: Option<usize>,
    /// Threads that serve connections.
    pub shards: u32,
    /// Its variables.
    pub signals: Vec<Signals>,
}

/// What a client does.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    /// It subscribes to variables.
    Subscribe(Subscription),
    /// It reads or writes variables.
    Request(Requests),
}

/// A subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// Publishing interval.
    pub publishing_interval: Duration,
    /// Sampling interval; zero reports every change.
    pub sampling_interval: Duration,
    /// Queue of each item; `None` holds every value of two publishing intervals and a second.
    pub queue_size: Option<u32>,
    /// Most notifications in one message; 0 is no limit.
    pub notifications_max: u32,
    /// Publishing intervals without a change before a keep-alive.
    pub keep_alive_count: u32,
    /// Publishing intervals without a Publish request before the server ends the subscription; `None` is ten minutes.
    pub lifetime_count: Option<u32>,
    /// Most Publish requests that the client keeps at the server; `None` leaves it to the client.
    pub publish_requests: Option<u32>,
}

impl Subscription {
    /// With this publishing interval; every change is reported, and queues lose nothing.
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
        }
    }
}

/// When a client sends its next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// So long after the answer to the last one.
    Pause(Duration),
    /// At fixed times, whether or not there was an answer. Round trips count from these times.
    Every(Duration),
}

/// Requests one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Requests {
    /// Whether they write; otherwise they read.
    pub writes: bool,
    /// Variables in each.
    pub batch: u32,
    /// When.
    pub pace: Pace,
}

/// Equal clients of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Clients {
    /// What people call them.
    pub name: String,
    /// How many each server of the kind has.
    pub count: u32,
    /// The kind of server.
    pub server: usize,
    /// The link to it; none is a network without limits.
    pub link: Option<usize>,
    /// Their machine; none needs no time.
    pub host: Option<usize>,
    /// Threads on it that they share.
    pub threads: u32,
    /// Variables of each client; `None` is all. Client after client takes the next ones, from the start again at the end.
    pub items: Option<u32>,
    /// What they do.
    pub load: Load,
    /// Policy and mode of their channels.
    pub security: (SecurityPolicy, MessageSecurityMode),
    /// How long the server keeps a session without a connection.
    pub session_timeout: Duration,
}
