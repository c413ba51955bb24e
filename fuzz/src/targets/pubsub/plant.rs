//! A publisher and a subscriber shared by the PubSub targets.

use std::sync::Arc;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_crypto::{PubSubSecurityPolicy, SeededEntropy};
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetReader, DataSetWriter, PublishedDataSet, ReaderGroup, WriterGroup,
};
use taktwerk_pubsub::security::SecurityKeys;
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_pubsub::{Now, Publisher, PublisherId, PublisherOptions, Subscriber, SubscriberOptions};
use taktwerk_schema::FieldMetaData;
use taktwerk_types::{BuiltInType, Instant, UtcTime};

/// Index of the secured WriterGroup and ReaderGroup.
pub const SECURED: usize = 2;
/// PublisherId of our messages.
pub const PUBLISHER: u16 = 2234;

/// A point in time.
#[must_use]
pub fn at(millis: u64) -> Now {
    let ticks = 133_000_000_000_000_000 + i64::try_from(millis % (1 << 40)).unwrap_or(0) * 10_000;
    Now { instant: Instant::from_nanos(millis.saturating_mul(1_000_000)), utc: UtcTime::from_ticks(ticks) }
}

/// A data set of a float, a short text, a word and an array.
#[must_use]
pub fn data_set(name: &str) -> PublishedDataSet {
    let text = FieldMetaData { max_string_length: 8, ..field("text", BuiltInType::String) };
    let array =
        FieldMetaData { value_rank: 1, array_dimensions: vec![3], ..field("array", BuiltInType::Int16) };
    let fields = vec![field("x", BuiltInType::Float), text, field("n", BuiltInType::UInt16), array];
    PublishedDataSet::new(name, fields)
}

/// Three groups of two writers each: dynamic, periodic fixed, and dynamic with message security; and one that sends
/// chunks.
#[must_use]
pub fn publishing() -> Configuration {
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    let mut connection =
        Connection::new("udp", Some(PublisherId::UInt16(PUBLISHER)), "opc.udp://239.0.0.1:4840");
    let mut secured = WriterGroup::dynamic("secured", 3, 10.0);
    secured.security.mode = SecurityMode::SignAndEncrypt;
    secured.security.security_group_id = "group".into();
    let mut chunked = WriterGroup::dynamic("chunked", 4, 10.0);
    chunked.max_network_message_size = 40;
    type Make = fn(&str, u16, &str) -> DataSetWriter;
    let groups: [(WriterGroup, Make); 4] = [
        (WriterGroup::dynamic("dynamic", 1, 10.0), DataSetWriter::dynamic),
        (WriterGroup::periodic_fixed("fixed", 2, 10.0), DataSetWriter::periodic_fixed),
        (secured, DataSetWriter::dynamic),
        (chunked, DataSetWriter::dynamic),
    ];
    let mut id = 0;
    for (mut group, make) in groups {
        for _ in 0..2 {
            id += 1;
            let name = format!("set{id}");
            configuration.data_sets.push(data_set(&name));
            let mut writer = make(&name, id, &name);
            if id == 2 {
                writer.key_frame_count = 3;
            }
            group.writers.push(writer);
        }
        connection.writer_groups.push(group);
    }
    configuration.connections.push(connection);
    configuration
}

/// Readers of these, and one without filters.
#[must_use]
pub fn subscribing() -> Configuration {
    let mut configuration = Configuration::subscriber_of(&publishing());
    let any = DataSetReader { name: "any".into(), enabled: true, ..DataSetReader::default() };
    configuration.connections[0].reader_groups.push(ReaderGroup::new("any", vec![any]));
    configuration
}

/// The keys of the secured group: three, with a lifetime of a second each.
#[must_use]
pub fn keys() -> SecurityKeys {
    SecurityKeys {
        security_policy_uri: PubSubSecurityPolicy::Aes256Ctr.uri().to_owned(),
        first_token_id: 7,
        keys: (1..4).map(|number| vec![number; 68]).collect(),
        time_to_next_key: 1000.0,
        key_lifetime: 1000.0,
        current_token_id: None,
        nonces: None,
    }
}

/// A stopped publisher.
#[must_use]
pub fn publisher(configuration: Configuration) -> Publisher {
    let entropy = Box::new(SeededEntropy::new(3));
    Publisher::new(configuration, PublisherOptions::default(), Arc::new(AwsPubSubProvider), entropy)
        .expect("the configuration is in order")
}

/// A stopped subscriber.
#[must_use]
pub fn subscriber(configuration: Configuration) -> Subscriber {
    Subscriber::new(configuration, SubscriberOptions::default(), Arc::new(AwsPubSubProvider))
        .expect("the configuration is in order")
}
