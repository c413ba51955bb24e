//! A publisher and a subscriber connected directly by a test.
#![allow(dead_code, unreachable_pub)] // not every test uses all of it

use std::sync::Arc;
use taktwerk_crypto::{PubSubSecurityPolicy, SeededEntropy};
use taktwerk_crypto_dummy::DummyPubSubProvider;
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{Configuration, Connection, DataSetWriter, PublishedDataSet, WriterGroup};
use taktwerk_pubsub::security::SecurityKeys;
use taktwerk_pubsub::uadp::DataSetMessageKind;
use taktwerk_pubsub::uadp::fields::ReceivedField;
use taktwerk_pubsub::{
    DataSetMessage, Now, Publisher, PublisherId, PublisherOptions, ReaderIndex, Sink, Subscriber,
    SubscriberEvent, SubscriberOptions,
};
use taktwerk_types::{BuiltInType, DataValue, Instant, StatusCode, UtcTime, Variant};

pub fn at(millis: u64) -> Now {
    let utc = UtcTime::from_ticks(133_000_000_000_000_000 + i64::try_from(millis).unwrap() * 10_000);
    Now { instant: Instant::from_nanos(millis * 1_000_000), utc }
}

/// A data set of a float, a string and a word.
pub fn data_set(name: &str) -> PublishedDataSet {
    let text = taktwerk_schema::FieldMetaData { max_string_length: 8, ..field("text", BuiltInType::String) };
    PublishedDataSet::new(name, vec![field("x", BuiltInType::Float), text, field("n", BuiltInType::UInt16)])
}

pub fn connection() -> Connection {
    Connection::new("udp", Some(PublisherId::UInt16(2234)), "opc.udp://239.0.0.1:4840")
}

/// One connection with one group and this number of writers, each with a data set.
pub fn configuration(
    mut group: WriterGroup,
    writers: u16,
    make: fn(&str, u16, &str) -> DataSetWriter,
) -> Configuration {
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    for id in 1..=writers {
        let name = format!("set{id}");
        configuration.data_sets.push(data_set(&name));
        group.writers.push(make(&format!("writer{id}"), id, &name));
    }
    let mut connection = connection();
    connection.writer_groups.push(group);
    configuration.connections.push(connection);
    configuration
}

pub fn publisher(configuration: Configuration) -> Publisher {
    let provider = Arc::new(DummyPubSubProvider);
    let entropy = Box::new(SeededEntropy::new(11));
    Publisher::new(configuration, PublisherOptions::default(), provider, entropy).unwrap()
}

pub fn subscriber(configuration: Configuration) -> Subscriber {
    Subscriber::new(configuration, SubscriberOptions::default(), Arc::new(DummyPubSubProvider)).unwrap()
}

/// Everything that a sink has received.
#[derive(Debug, Default)]
pub struct Got {
    pub messages: Vec<Message>,
    pub events: Vec<SubscriberEvent>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub reader: ReaderIndex,
    pub kind: DataSetMessageKind,
    pub sequence_number: Option<u32>,
    pub missing: u32,
    pub timestamp: Option<UtcTime>,
    pub status: StatusCode,
    pub fields: Vec<ReceivedField>,
    pub names: Vec<String>,
}

impl Sink for Got {
    fn message(&mut self, message: &DataSetMessage<'_>) {
        self.messages.push(Message {
            reader: message.reader,
            kind: message.kind,
            sequence_number: message.sequence_number,
            missing: message.missing,
            timestamp: message.timestamp,
            status: message.status,
            fields: message.fields.to_vec(),
            names: message.names.iter().map(|name| (*name).to_owned()).collect(),
        });
    }

    fn event(&mut self, event: SubscriberEvent) {
        self.events.push(event);
    }
}

/// Values that depend on the data set and a counter.
pub fn values(count: u16) -> impl FnMut(usize, &mut [DataValue]) {
    move |set, fields| {
        let parts: [Variant; 3] = [
            (f32::from(count) + 0.5).into(),
            format!("s{set}").into(),
            count.wrapping_add(set as u16).into(),
        ];
        for (field, value) in fields.iter_mut().zip(parts) {
            *field = DataValue::new(value);
        }
    }
}

pub fn keys(first: u32, count: u8, time_to_next: f64, lifetime: f64) -> SecurityKeys {
    SecurityKeys {
        security_policy_uri: PubSubSecurityPolicy::Aes128Ctr.uri().to_owned(),
        first_token_id: first,
        keys: (0..count).map(|index| vec![(first as u8).wrapping_add(index); 52]).collect(),
        time_to_next_key: time_to_next,
        key_lifetime: lifetime,
        current_token_id: None,
        nonces: None,
    }
}
