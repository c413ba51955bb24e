//! Publisher and subscriber of one ByteString without a network; the load transports their messages.

use crate::error::GeneratorError;
use std::sync::Arc;
use taktwerk::pubsub::PublisherId;
use taktwerk::pubsub::config::build::field;
use taktwerk::pubsub::config::{Configuration, Connection, DataSetWriter, PublishedDataSet, WriterGroup};
// tidy: repeatable: a load.
use taktwerk_crypto::SeededEntropy;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_net::clock::{monotonic, wall};
use taktwerk_pubsub::{
    DataSetMessage, Now, Publisher, PublisherOptions, Subscriber, SubscriberOptions, Transmit,
};
use taktwerk_types::{BuiltInType, ByteString, DataValue, Instant, Variant};

/// Milliseconds per cycle of the WriterGroup. Its time advances by one cycle per message.
const CYCLE: f64 = 1.0;
/// Maximum number of senders, because the first station receives from all others.
const SENDERS_MAX: usize = 20_000;
/// Name of all parts of the configuration.
const NAME: &str = "station";

/// Addresses of a station.
pub(crate) struct Place<'a> {
    /// Address to publish to.
    pub(crate) to: &'a str,
    /// Address to listen on.
    pub(crate) at: &'a str,
    /// The network interface.
    pub(crate) interface: &'a str,
    /// Maximum size of a NetworkMessage; `None` for one that fits the network.
    pub(crate) message_size_max: Option<u32>,
}

/// Publisher and subscriber.
pub(crate) struct Station {
    publisher: Publisher,
    subscriber: Subscriber,
    out: Transmit,
}

impl Station {
    /// A station by its number, from 0.
    pub(crate) fn new(number: u32, place: &Place<'_>) -> Result<Self, GeneratorError> {
        let id = u16::try_from(number + 1).unwrap_or(u16::MAX);
        let publishing = configuration(id, place.to, place);
        // The subscriber accepts any publisher at its address, because all stations send the same kind of message.
        let mut theirs = Configuration::subscriber_of(&configuration(id, place.at, place));
        for group in theirs.connections.iter_mut().flat_map(|connection| &mut connection.reader_groups) {
            group.readers.iter_mut().for_each(|reader| reader.publisher_id = None);
        }
        let provider = || Arc::new(AwsPubSubProvider);
        // tidy: repeatable: the load is the same every time, and nothing that it sends is worth protecting.
        let entropy = Box::new(SeededEntropy::new(id.into()));
        let mut options = SubscriberOptions::default();
        options.senders_max = SENDERS_MAX;
        let mut station = Self {
            publisher: Publisher::new(publishing, PublisherOptions::default(), provider(), entropy)
                .map_err(|problems| usage(&problems))?,
            subscriber: Subscriber::new(theirs, options, provider()).map_err(|problems| usage(&problems))?,
            out: Transmit::new(),
        };
        let now = now();
        station.publisher.start(now.instant, now);
        station.subscriber.start(now, &mut |_: &DataSetMessage<'_>| {});
        Ok(station)
    }

    /// The messages for one value.
    pub(crate) fn publish(&mut self, value: &[u8]) -> &Transmit {
        let value = Variant::ByteString(ByteString::from(value.to_vec()));
        let mut values = |_: usize, fields: &mut [DataValue]| {
            if let Some(field) = fields.first_mut() {
                *field = DataValue::new(value.clone());
            }
        };
        // The cycle starts when there is something to send.
        let due = self.publisher.poll_timeout().unwrap_or(Instant::ZERO);
        self.out.clear();
        self.publisher.poll(Now { instant: due, utc: wall() }, &mut values, &mut self.out);
        &self.out
    }

    /// Decodes a message, which is modified in the process, and passes its value to `take`.
    pub(crate) fn receive(&mut self, message: &mut [u8], now: Now, mut take: impl FnMut(&[u8])) {
        self.subscriber.receive(0, message, now, &mut |message: &DataSetMessage<'_>| {
            let value = message.fields.first().and_then(|field| field.value.value.as_ref());
            if let Some(Variant::ByteString(bytes)) = value {
                take(bytes.as_bytes());
            }
        });
    }
}

fn configuration(id: u16, url: &str, place: &Place<'_>) -> Configuration {
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    let fields = vec![field("value", BuiltInType::ByteString)];
    configuration.data_sets.push(PublishedDataSet::new(NAME, fields));
    let mut group = WriterGroup::dynamic("group", 1, CYCLE);
    if let Some(size) = place.message_size_max {
        group.max_network_message_size = size;
    }
    group.writers.push(DataSetWriter::dynamic(NAME, 1, NAME));
    let mut connection = Connection::new(NAME, Some(PublisherId::UInt16(id)), url);
    place.interface.clone_into(&mut connection.network_interface);
    connection.writer_groups.push(group);
    configuration.connections.push(connection);
    configuration
}

fn usage(problems: &[impl std::fmt::Display]) -> GeneratorError {
    GeneratorError::Usage(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// The time on both clocks.
pub(crate) fn now() -> Now {
    Now { instant: monotonic(), utc: wall() }
}

/// The first eight bytes of a value are its number.
pub(crate) fn number(value: &[u8]) -> u64 {
    value.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// Writes the number of a value.
pub(crate) fn set_number(value: &mut [u8], number: u64) {
    if let Some(place) = value.first_chunk_mut::<8>() {
        *place = number.to_be_bytes();
    }
}
