//! The configuration of so many signals, in messages that fit a frame.

use super::{LayoutName, Mode, PubSubArgs};
use std::sync::Arc;
use taktwerk::pubsub::config::build::field;
use taktwerk::pubsub::config::{
    Configuration, Connection, DataSetWriter, DataSetWriterMessage, PublishedDataSet, WriterGroup,
};
use taktwerk::pubsub::{PublisherId, SecurityKeys, StaticKeys};
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
// tidy: repeatable: a load.
use taktwerk_crypto::{PubSubSecurityPolicy, SeededEntropy};
use taktwerk_pubsub::{Now, Publisher, PublisherOptions, Transmit};
use taktwerk_types::{BuiltInType, DataValue};

/// The security group.
const GROUP: &str = "bench";
/// Fields of a data set whose message still fits a frame with all headers and a signature.
const RAW: usize = 330;
const VARIANTS: usize = 255;

/// What is published.
pub(super) struct Plant {
    /// For the publisher.
    pub(super) configuration: Configuration,
    /// The messages of one cycle, as the bare loop sends them.
    pub(super) datagrams: Vec<Vec<u8>>,
}

/// Values that change in every cycle; the first data set says when it was sampled, and the number of the cycle.
pub(super) fn values() -> impl FnMut(usize, &mut [DataValue]) + Send {
    let (mut state, mut cycle) = (0x9e37_79b9_7f4a_7c15_u64, 0u32);
    move |data_set, fields| {
        if let (0, [stamp, number]) = (data_set, &mut *fields) {
            cycle = cycle.wrapping_add(1);
            *stamp = DataValue::new(taktwerk_net::clock::monotonic().as_nanos());
            *number = DataValue::new(cycle);
            return;
        }
        for field in fields {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *field = DataValue::new((state >> 40) as f32);
        }
    }
}

impl Plant {
    pub(super) fn new(arguments: &PubSubArgs) -> Self {
        let interval = arguments.interval.as_secs_f64() * 1e3;
        let is_fixed = arguments.layout == LayoutName::PeriodicFixed;
        let mut group = if is_fixed {
            WriterGroup::periodic_fixed("group", 1, interval)
        } else {
            WriterGroup::dynamic("group", 1, interval)
        };
        if arguments.security != Mode::None {
            group.security.mode = arguments.security.mode();
            group.security.security_group_id = GROUP.to_owned();
        }
        let mut configuration = Configuration { enabled: true, ..Configuration::default() };
        let mut writer = |name: String, number: u16| {
            let id = u16::try_from(configuration_len(&group) + 1).unwrap_or(u16::MAX);
            let mut writer = if is_fixed {
                DataSetWriter::periodic_fixed(&name, id, &name)
            } else {
                DataSetWriter::dynamic(&name, id, &name)
            };
            if let (true, DataSetWriterMessage::Uadp(message)) = (is_fixed, &mut writer.message) {
                message.network_message_number = number;
            }
            group.writers.push(writer);
        };
        let stamp = vec![field("sampled", BuiltInType::UInt64), field("cycle", BuiltInType::UInt32)];
        configuration.data_sets.push(PublishedDataSet::new("stamp", stamp));
        writer("stamp".to_owned(), 1);
        let per_message = if is_fixed { RAW } else { VARIANTS };
        let signals = arguments.signals as usize;
        for (position, first) in (0..signals).step_by(per_message).enumerate() {
            let name = format!("set{position}");
            let fields = (first..signals.min(first + per_message))
                .map(|number| field(&format!("s{number}"), BuiltInType::Float))
                .collect();
            configuration.data_sets.push(PublishedDataSet::new(&name, fields));
            writer(name, u16::try_from(position + 1).unwrap_or(u16::MAX));
        }
        let mut connection = Connection::new("bench", Some(PublisherId::UInt16(1)), &arguments.url);
        connection.network_interface.clone_from(&arguments.interface);
        connection.writer_groups.push(group);
        configuration.connections.push(connection);
        let datagrams = datagrams(&configuration);
        Self { configuration, datagrams }
    }

    /// Keys, if there is security.
    pub(super) fn keys() -> StaticKeys {
        StaticKeys::new().with(GROUP, keys())
    }

    /// The configuration of a subscriber to the first data set, which says when it was sampled.
    pub(super) fn subscriber(&self) -> Configuration {
        let mut theirs = Configuration::subscriber_of(&self.configuration);
        for connection in &mut theirs.connections {
            for group in &mut connection.reader_groups {
                group.readers.truncate(1);
            }
        }
        theirs
    }
}

fn configuration_len(group: &WriterGroup) -> usize {
    group.writers.len()
}

fn keys() -> SecurityKeys {
    let policy = PubSubSecurityPolicy::Aes256Ctr;
    SecurityKeys {
        security_policy_uri: policy.uri().to_owned(),
        first_token_id: 1,
        keys: vec![vec![7; policy.key_data_len()]],
        time_to_next_key: 1e9,
        key_lifetime: 1e9,
        current_token_id: None,
    }
}

/// What one cycle sends.
fn datagrams(configuration: &Configuration) -> Vec<Vec<u8>> {
    // tidy: repeatable: the load is the same every time, and nothing that it sends is worth protecting.
    let (provider, entropy) = (Arc::new(AwsPubSubProvider), Box::new(SeededEntropy::new(1)));
    let options = PublisherOptions::default();
    let Ok(mut publisher) = Publisher::new(configuration.clone(), options, provider, entropy) else {
        return Vec::new();
    };
    let now = Now::default();
    publisher.start(now.instant, now);
    while let Some(request) = publisher.poll_key_request(now) {
        let _ = publisher.set_keys(&request.security_group_id, Ok(&keys()), now);
    }
    let mut out = Transmit::new();
    publisher.poll(now, &mut values(), &mut out);
    out.iter().map(|datagram| datagram.bytes.to_vec()).collect()
}
