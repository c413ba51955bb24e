//! What a subscription delivers over a link with given settings: delays, bandwidth, lost values.
//!
//! [`simulate`] is a pure function: the same [`Setup`] and [`Settings`] give the same [`Outcome`], on every machine. It runs
//! the client and server cores that run in production. The Setup is what is given (link, signals, machines), the Settings
//! are what can be chosen.

mod collector;
mod run;

pub use crate::error::SimulateError;
pub use crate::histogram::Histogram;
pub use run::simulate;
pub(crate) use run::value;

use core::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_model::HostProfile;
use taktwerk_netem::Profile;
use taktwerk_schema::TimestampsToReturn;

/// Signals that change together at a fixed period.
#[derive(Debug, Clone, PartialEq)]
pub struct Signals {
    /// How many variables.
    pub count: u32,
    /// Each gets a new value so often.
    pub period: Duration,
    /// Bytes of a value as encoded: 1, 2, 4 and 8 are integers, everything else is a ByteString of this length.
    pub value_len: usize,
}

/// What is given: the plant.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The link between client and server. Its `busy` share is the other traffic.
    pub link: Profile,
    /// What the server has.
    pub signals: Vec<Signals>,
    /// Virtual time before counting starts: the session is up and the subscription has become steady.
    pub warmup: Duration,
    /// Virtual time that is counted.
    pub measured: Duration,
    /// What work costs on the server's machine; `None` is nothing.
    pub server: Option<HostProfile>,
    /// What work costs on the client's machine; `None` is nothing.
    pub client: Option<HostProfile>,
    /// How long both ends of TCP wait with an acknowledgement that could travel with data; `None` is as on Linux.
    pub delayed_ack: Option<Duration>,
    /// Decides on everything that is random.
    pub seed: u64,
}

impl Setup {
    /// One second of warm-up, ten seconds counted, seed 1.
    #[must_use]
    pub fn new(link: Profile, signals: Vec<Signals>) -> Self {
        Self {
            link,
            signals,
            warmup: Duration::from_secs(1),
            measured: Duration::from_secs(10),
            server: None,
            client: None,
            delayed_ack: None,
            seed: 1,
        }
    }
}

/// How many Publish requests the client keeps at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PublishRequests {
    /// As many as this client decides: by number of subscriptions, publishing interval and round trip.
    #[default]
    Automatic,
    /// Never more than this.
    AtMost(usize),
    /// One whenever so many per cent of the publishing interval have passed, whatever has been answered: a client that goes by
    /// its clock. What the server has too many of, it refuses.
    Every {
        /// Per cent of the publishing interval.
        percent: u32,
    },
}

/// What can be chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Publishing interval.
    pub publishing_interval: Duration,
    /// Sampling interval of all items; zero reports every change.
    pub sampling_interval: Duration,
    /// Queue of each item; `None` is large enough for every value of two publishing intervals and a second.
    pub queue_size: Option<u32>,
    /// Most notifications in one message; 0 is no limit.
    pub notifications_max: u32,
    /// Publishing intervals without a change before a keep-alive.
    pub keep_alive_count: u32,
    /// How many Publish requests wait at the server.
    pub publish_requests: PublishRequests,
    /// Which timestamps come with values.
    pub timestamps: TimestampsToReturn,
    /// Policy and mode of the channel.
    pub security: (SecurityPolicy, MessageSecurityMode),
}

impl Settings {
    /// This publishing interval, every change reported, queues that lose nothing, no security.
    #[must_use]
    pub fn new(publishing_interval: Duration) -> Self {
        Self {
            publishing_interval,
            sampling_interval: Duration::ZERO,
            queue_size: None,
            notifications_max: 0,
            keep_alive_count: 10,
            publish_requests: PublishRequests::Automatic,
            timestamps: TimestampsToReturn::BOTH,
            security: (SecurityPolicy::None, MessageSecurityMode::None),
        }
    }
}

/// Delays of the values of one group of signals: from the write in the server until the application of the client has it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Delays {
    /// All values, in nanoseconds.
    pub values: Histogram,
    /// Notification messages with values of the group.
    pub messages: u64,
    /// The shortest delay in a message, averaged over messages, in seconds.
    pub message_min: f64,
    /// The mean delay in a message, averaged over messages, in seconds.
    pub message_mean: f64,
    /// The longest delay in a message, averaged over messages, in seconds.
    pub message_max: f64,
    /// Values written while counting.
    pub written: u64,
    /// Of these, those that did not arrive within five seconds after counting ended.
    pub lost: u64,
    /// Values that arrived with the Overflow bit.
    pub overflows: u64,
}

/// One direction of the line while counting.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LineUse {
    /// Bits per second with headers and framing, of this load alone.
    pub bits_per_second: f64,
    /// Packets per second.
    pub packets_per_second: f64,
    /// Share of the rate that is used, with the other traffic; `None` if the link has no rate.
    pub utilisation: Option<f64>,
    /// Packets lost or dropped.
    pub lost: u64,
}

/// What a host did while counting.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HostUse {
    /// Processor time per second of virtual time; `None` if the host has no processor model.
    pub cpu: Option<f64>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// By group of signals, as in the setup.
    pub groups: Vec<Delays>,
    /// All values of all groups, in nanoseconds.
    pub values: Histogram,
    /// Client to server.
    pub up: LineUse,
    /// Server to client.
    pub down: LineUse,
    /// The client's machine.
    pub client: HostUse,
    /// The server's machine.
    pub server: HostUse,
    /// Publish requests that the server refused because it had too many.
    pub refused: u64,
    /// The publishing interval that the server granted, in seconds.
    pub publishing_interval: f64,
    /// Notification messages per second.
    pub messages_per_second: f64,
    /// From the first packet until the session was up, in seconds.
    pub session_up: f64,
    /// Virtual time in all, in seconds.
    pub simulated: f64,
    /// Events that were simulated.
    pub events: u64,
}

impl Outcome {
    /// Values written while counting that did not arrive.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.groups.iter().map(|group| group.lost).sum()
    }
}
