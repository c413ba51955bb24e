//! The PubSub parts of a plant: publishers, subscribers and brokers as described by a user.

mod build;
mod check;
mod configuration;
mod parts;
mod text;

pub(super) use build::build;
pub(super) use check::{check, target};
pub(super) use parts::{Parts, PubSubReadings};
pub(super) use text::write;

use super::Signals;
pub use crate::pubsub::broker::BrokerLimits;
use core::time::Duration;
pub use taktwerk_pubsub::uadp::SecurityMode;

/// All PubSub parts of a plant. Indexes refer to the lists of this structure, and to hosts and links of the scenario.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PubSub {
    /// Brokers.
    pub brokers: Vec<Broker>,
    /// Groups of equal publishers.
    pub publishers: Vec<Publishers>,
    /// Groups of equal subscribers.
    pub subscribers: Vec<Subscribers>,
}

impl PubSub {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.brokers.is_empty() && self.publishers.is_empty() && self.subscribers.is_empty()
    }
}

/// An MQTT broker.
#[derive(Debug, Clone, PartialEq)]
pub struct Broker {
    /// Name.
    pub name: String,
    /// Its machine; `None` means that work takes no time.
    pub host: Option<usize>,
    /// Its limits per client.
    pub limits: BrokerLimits,
    /// Keep-alive interval of its clients.
    pub keep_alive: Duration,
}

/// MQTT's quality of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Quality {
    /// 0.
    #[default]
    AtMostOnce,
    /// 1.
    AtLeastOnce,
}

/// The transport of NetworkMessages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP to a multicast group: each line carries a message once.
    Multicast,
    /// UDP to each subscriber.
    Unicast,
    /// Through a broker.
    Broker(usize, Quality),
}

/// The encoding of NetworkMessages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// UADP with the header layout UADP-Dynamic.
    #[default]
    Uadp,
    /// JSON; only through a broker.
    Json,
}

/// Equal publishers, each with one WriterGroup.
#[derive(Debug, Clone, PartialEq)]
pub struct Publishers {
    /// Name.
    pub name: String,
    /// Number of publishers.
    pub count: u32,
    /// The link between each of them and the core of the network, or the broker; `None` means a network without limits.
    pub link: Option<usize>,
    /// Their machine; `None` means that work takes no time. Each of several publishers has its own machine of this
    /// kind.
    pub host: Option<usize>,
    /// Transport.
    pub transport: Transport,
    /// Encoding of messages.
    pub encoding: Encoding,
    /// PublishingInterval.
    pub publishing_interval: Duration,
    /// KeepAliveTime; `None` means ten publishing intervals.
    pub keep_alive_time: Option<Duration>,
    /// One in this many messages is a key frame.
    pub key_frame_count: u32,
    /// Maximum number of fields of a DataSet; `None` means one DataSet for each group of signals.
    pub fields: Option<u32>,
    /// Message security.
    pub security: SecurityMode,
    /// Lifetime of the keys of the SecurityGroup.
    pub key_lifetime: Duration,
    /// Their signals.
    pub signals: Vec<Signals>,
}

impl Publishers {
    /// DataSets: the signal group and the number of fields of each.
    pub(crate) fn data_sets(&self) -> Vec<(usize, u32)> {
        let mut all = Vec::new();
        for (group, signals) in self.signals.iter().enumerate() {
            let most = self.fields.unwrap_or(signals.count).max(1);
            let mut left = signals.count;
            while left > 0 {
                let fields = left.min(most);
                all.push((group, fields));
                left -= fields;
            }
        }
        all
    }

    /// The effective KeepAliveTime.
    pub(crate) fn keep_alive(&self) -> Duration {
        self.keep_alive_time.unwrap_or(self.publishing_interval * 10)
    }
}

/// Equal subscribers.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscribers {
    /// Name.
    pub name: String,
    /// Number of subscribers.
    pub count: u32,
    /// The groups of publishers that each of them receives. All of them must use the same transport and encoding.
    pub publishers: Vec<usize>,
    /// The link between each of them and the core of the network, or the broker; `None` means a network without limits.
    pub link: Option<usize>,
    /// Their machine; `None` means that work takes no time.
    pub host: Option<usize>,
    /// The quality of service of their subscriptions at a broker; `None` means that of the publishers.
    pub quality: Option<Quality>,
    /// MessageReceiveTimeout; `None` means three times the KeepAliveTime.
    pub timeout: Option<Duration>,
}
