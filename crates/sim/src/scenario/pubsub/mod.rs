//! The PubSub parts of a plant: publishers, subscribers and brokers as a user describes them.

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
    /// What people call it.
    pub name: String,
    /// Its machine; none needs no time.
    pub host: Option<usize>,
    /// What it keeps for each client.
    pub limits: BrokerLimits,
    /// After so long its clients ask whether it is there.
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

/// How NetworkMessages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP to a multicast group: each line carries a message once.
    Multicast,
    /// UDP to each subscriber.
    Unicast,
    /// Over a broker.
    Broker(usize, Quality),
}

/// How they are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// UADP with the header layout UADP-Dynamic.
    #[default]
    Uadp,
    /// JSON; only over a broker.
    Json,
}

/// Equal publishers, each with one WriterGroup.
#[derive(Debug, Clone, PartialEq)]
pub struct Publishers {
    /// What people call them.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// The link between them and the core of the network, or the broker; none is a network without limits.
    pub link: Option<usize>,
    /// Their machine; none needs no time. Several publishers have a machine of this kind each.
    pub host: Option<usize>,
    /// How they send.
    pub transport: Transport,
    /// How messages are encoded.
    pub encoding: Encoding,
    /// PublishingInterval.
    pub publishing_interval: Duration,
    /// KeepAliveTime; `None` is ten publishing intervals.
    pub keep_alive_time: Option<Duration>,
    /// A key frame in so many messages.
    pub key_frame_count: u32,
    /// Most fields of a DataSet; `None` is one DataSet for each group of signals.
    pub fields: Option<u32>,
    /// Message security.
    pub security: SecurityMode,
    /// How long the keys of the SecurityGroup live.
    pub key_lifetime: Duration,
    /// What they measure.
    pub signals: Vec<Signals>,
}

impl Publishers {
    /// DataSets: the group of signals of each, and how many fields it has.
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

    /// KeepAliveTime as it holds.
    pub(crate) fn keep_alive(&self) -> Duration {
        self.keep_alive_time.unwrap_or(self.publishing_interval * 10)
    }
}

/// Equal subscribers.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscribers {
    /// What people call them.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// Groups of publishers that each of them listens to, all of which use the same transport and encoding.
    pub publishers: Vec<usize>,
    /// The link between them and the core of the network, or the broker; none is a network without limits.
    pub link: Option<usize>,
    /// Their machine; none needs no time.
    pub host: Option<usize>,
    /// Of their subscriptions at a broker; `None` is that of the publishers.
    pub quality: Option<Quality>,
    /// MessageReceiveTimeout; `None` is three times the KeepAliveTime.
    pub timeout: Option<Duration>,
}
