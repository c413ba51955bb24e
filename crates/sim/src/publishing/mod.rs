//! Simulates a subscription over a link with given settings: delays, bandwidth, lost values.
//!
//! [`simulate`] is a pure function: the same [`Setup`] and [`Settings`] give the same [`Outcome`] on every machine. It
//! runs the production client and server cores. The setup is given (link, signals, machines); the settings can be
//! chosen.

mod collector;
mod run;

pub use crate::error::SimulateError;
pub use crate::histogram::Histogram;
pub use crate::signals::value;
pub use run::simulate;

use core::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_model::HostProfile;
use taktwerk_netem::Profile;
use taktwerk_schema::TimestampsToReturn;

/// Signals that change together at a fixed period.
#[derive(Debug, Clone, PartialEq)]
pub struct Signals {
    /// Number of variables.
    pub count: u32,
    /// Interval between new values of each variable.
    pub period: Duration,
    /// Encoded size of a value in bytes: 1, 2, 4 and 8 are integers, others are ByteStrings of this length.
    pub value_len: usize,
}

/// The given plant.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The link between client and server. Its `busy` share is the other traffic.
    pub link: Profile,
    /// Whether both directions share the line's capacity. If so, the line has the properties of the direction from
    /// client to server.
    pub is_half_duplex: bool,
    /// Signals of the server.
    pub signals: Vec<Signals>,
    /// Values are written up to this much later than their period says, evenly, and by at most a period. Then the server
    /// finds no phase in which it publishes right after the writes.
    pub spread: Duration,
    /// Virtual time before the window, until the session is active and the subscription is steady.
    pub warmup: Duration,
    /// Length of the window in virtual time.
    pub measured: Duration,
    /// Costs of work on the server's machine; `None` for zero.
    pub server: Option<HostProfile>,
    /// Costs of work on the client's machine; `None` for zero.
    pub client: Option<HostProfile>,
    /// Maximum delay of TCP acknowledgements at both ends; `None` for Linux defaults.
    pub delayed_ack: Option<Duration>,
    /// Seed of all random decisions.
    pub seed: u64,
}

impl Setup {
    /// A full-duplex line, one second of warm-up, a window of ten seconds, seed 1.
    #[must_use]
    pub fn new(link: Profile, signals: Vec<Signals>) -> Self {
        Self {
            link,
            is_half_duplex: false,
            signals,
            spread: Duration::ZERO,
            warmup: Duration::from_secs(1),
            measured: Duration::from_secs(10),
            server: None,
            client: None,
            delayed_ack: None,
            seed: 1,
        }
    }
}

/// Number of Publish requests queued at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PublishRequests {
    /// Chosen by the client from the number of subscriptions, the publishing interval and the round trip.
    #[default]
    Automatic,
    /// At most this many.
    AtMost(usize),
    /// One each time this percentage of the publishing interval has passed, independent of answers: a client with a
    /// clock. The server refuses excess requests.
    Every {
        /// Percentage of the publishing interval.
        percent: u32,
    },
}

/// The settings that can be chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Publishing interval.
    pub publishing_interval: Duration,
    /// Sampling interval of all items; zero reports every change.
    pub sampling_interval: Duration,
    /// Queue size of each item; `None` is large enough for all values of two publishing intervals and a second.
    pub queue_size: Option<u32>,
    /// Maximum number of notifications per message; 0 means unlimited.
    pub notifications_max: u32,
    /// Publishing intervals without a change before a keep-alive.
    pub keep_alive_count: u32,
    /// Publish requests queued at the server.
    pub publish_requests: PublishRequests,
    /// Timestamps returned with values.
    pub timestamps: TimestampsToReturn,
    /// Policy and mode of the channel.
    pub security: (SecurityPolicy, MessageSecurityMode),
}

impl Settings {
    /// This publishing interval, every change reported, queues that lose no values, no security.
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

/// Delays of the values of one group of signals, from the write in the server to the client's application.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Delays {
    /// All values in nanoseconds.
    pub values: Histogram,
    /// Notification messages with values of the group.
    pub messages: u64,
    /// The shortest delay in a message, averaged over messages, in seconds.
    pub message_min: f64,
    /// The mean delay in a message, averaged over messages, in seconds.
    pub message_mean: f64,
    /// The longest delay in a message, averaged over messages, in seconds.
    pub message_max: f64,
    /// Values written within the window.
    pub written: u64,
    /// Number of these that did not arrive within five seconds after the window.
    pub lost: u64,
    /// Values that arrived with the Overflow bit.
    pub overflows: u64,
}

/// Use of one direction of the line within the window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LineUse {
    /// Bits per second with headers and framing, without other traffic.
    pub bits_per_second: f64,
    /// Packets per second.
    pub packets_per_second: f64,
    /// Utilisation including other traffic, of both directions on a half-duplex line; `None` if the link has no rate.
    pub utilisation: Option<f64>,
    /// Packets lost or dropped.
    pub lost: u64,
}

/// Resources used by a host within the window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HostUse {
    /// Processor time per second of virtual time; `None` without a machine.
    pub cpu: Option<f64>,
}

/// Results.
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
    /// Number of Publish requests that the server refused because there were too many.
    pub refused: u64,
    /// The revised publishing interval in seconds.
    pub publishing_interval: f64,
    /// Notification messages per second.
    pub messages_per_second: f64,
    /// Time from the first packet until the session was active, in seconds.
    pub session_up: f64,
    /// Total virtual time in seconds.
    pub simulated: f64,
    /// Number of simulated events.
    pub events: u64,
}

impl Outcome {
    /// Number of values written within the window that did not arrive.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.groups.iter().map(|group| group.lost).sum()
    }
}
