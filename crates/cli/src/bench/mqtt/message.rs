//! What the messages of the load hold: bytes with a number in front, or a NetworkMessage of PubSub (UADP, Part 14 §7.2.4) with
//! one ByteString of such bytes, as a publisher over MQTT sends it (§7.3.4).

use super::clients::{number, set_number};
use crate::failure::Failure;
use std::sync::Arc;
use taktwerk::pubsub::PublisherId;
use taktwerk::pubsub::config::build::field;
use taktwerk::pubsub::config::{Configuration, Connection, DataSetWriter, PublishedDataSet, WriterGroup};
// tidy: repeatable: a load.
use taktwerk_crypto::SeededEntropy;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_load::specification::{Content, Mqtt};
use taktwerk_net::clock::{monotonic, wall};
use taktwerk_pubsub::{
    DataSetMessage, Now, Publisher, PublisherOptions, Subscriber, SubscriberOptions, Transmit,
};
use taktwerk_types::{BuiltInType, ByteString, DataValue, Instant, Variant};

/// Milliseconds of the WriterGroups' cycles. Time that passes for them is made of such cycles: one for each message.
const CYCLE: f64 = 1.0;
/// The largest NetworkMessage: none of a load is cut into chunks, which MQTT does not need.
const LARGEST: u32 = 16 << 20;

/// Makes messages and reads them again, each client its own.
pub(super) struct Messages {
    payload: Vec<u8>,
    /// Of each client; none where messages are bytes.
    stations: Vec<Station>,
}

impl Messages {
    /// For the clients that the arguments ask for.
    pub(super) fn new(arguments: &Mqtt) -> Result<Self, Failure> {
        let stations = match arguments.message {
            Content::Bytes => Vec::new(),
            Content::Uadp => (0..arguments.clients).map(Station::new).collect::<Result<_, _>>()?,
        };
        Ok(Self { payload: vec![0x55; arguments.payload as usize], stations })
    }

    /// The message of a client that carries a number.
    pub(super) fn with(&mut self, client: usize, number: u64) -> &[u8] {
        set_number(&mut self.payload, number);
        match self.stations.get_mut(client) {
            Some(station) => station.message(&self.payload),
            None => &self.payload,
        }
    }

    /// The number in a message that a client received; `None` if it is none of these.
    pub(super) fn number(&mut self, client: usize, message: &[u8]) -> Option<u64> {
        match self.stations.get_mut(client) {
            Some(station) => station.number(message),
            None => Some(number(message)),
        }
    }
}

/// Publisher and subscriber of one client, without a network: the messages go through the load's own connections.
struct Station {
    publisher: Publisher,
    subscriber: Subscriber,
    out: Transmit,
    /// What came, which the subscriber may change.
    heard: Vec<u8>,
}

impl Station {
    fn new(client: u32) -> Result<Self, Failure> {
        let id = u16::try_from(client + 1).unwrap_or(u16::MAX);
        let sending = configuration(id);
        let mut theirs = Configuration::subscriber_of(&sending);
        for group in theirs.connections.iter_mut().flat_map(|connection| &mut connection.reader_groups) {
            // It is the same message of everybody.
            group.readers.iter_mut().for_each(|reader| reader.publisher_id = None);
        }
        let provider = || Arc::new(AwsPubSubProvider);
        // tidy: repeatable: the load is the same every time, and nothing that it sends is worth protecting.
        let entropy = Box::new(SeededEntropy::new(id.into()));
        // With fan the first hears all others.
        let mut options = SubscriberOptions::default();
        options.senders_max = 20_000;
        let mut station = Self {
            publisher: Publisher::new(sending, PublisherOptions::default(), provider(), entropy)
                .map_err(|problems| usage(&problems))?,
            subscriber: Subscriber::new(theirs, options, provider()).map_err(|problems| usage(&problems))?,
            out: Transmit::new(),
            heard: Vec::new(),
        };
        let now = now();
        station.publisher.start(now.instant, now);
        station.subscriber.start(now, &mut |_: &DataSetMessage<'_>| {});
        Ok(station)
    }

    fn message(&mut self, payload: &[u8]) -> &[u8] {
        let value = Variant::ByteString(ByteString::from(payload.to_vec()));
        let mut values = |_: usize, fields: &mut [DataValue]| {
            if let Some(field) = fields.first_mut() {
                *field = DataValue::new(value.clone());
            }
        };
        // The cycle begins when there is something to say.
        let due = self.publisher.poll_timeout().unwrap_or(Instant::ZERO);
        self.out.clear();
        self.publisher.poll(Now { instant: due, utc: wall() }, &mut values, &mut self.out);
        self.out.iter().next().map_or(&[], |datagram| datagram.bytes)
    }

    fn number(&mut self, message: &[u8]) -> Option<u64> {
        let mut found = None;
        self.heard.clear();
        self.heard.extend_from_slice(message);
        self.subscriber.receive(0, &mut self.heard, now(), &mut |message: &DataSetMessage<'_>| {
            let value = message.fields.first().and_then(|field| field.value.value.as_ref());
            if let Some(Variant::ByteString(bytes)) = value {
                found = Some(number(bytes.as_bytes()));
            }
        });
        found
    }
}

fn configuration(id: u16) -> Configuration {
    const NAME: &str = "station";
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    let fields = vec![field("value", BuiltInType::ByteString)];
    configuration.data_sets.push(PublishedDataSet::new(NAME, fields));
    let mut group = WriterGroup::dynamic("group", 1, CYCLE);
    group.max_network_message_size = LARGEST;
    group.writers.push(DataSetWriter::dynamic(NAME, 1, NAME));
    // Where the broker is, is the load's affair.
    let mut connection = Connection::new(NAME, Some(PublisherId::UInt16(id)), "mqtt://broker");
    connection.writer_groups.push(group);
    configuration.connections.push(connection);
    configuration
}

fn usage(problems: &[impl std::fmt::Display]) -> Failure {
    Failure::Usage(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

fn now() -> Now {
    Now { instant: monotonic(), utc: wall() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(payload: usize, clients: u32) -> Messages {
        Messages {
            payload: vec![0x55; payload],
            stations: (0..clients).map(|client| Station::new(client).unwrap()).collect(),
        }
    }

    #[test]
    fn bytes_carry_a_number() {
        let mut bytes = Messages { payload: vec![0x55; 10], stations: Vec::new() };
        let message = bytes.with(3, 7).to_vec();
        assert_eq!((message.len(), bytes.number(0, &message)), (10, Some(7)));
    }

    #[test]
    fn a_network_message_carries_it_in_one_piece_whatever_its_size() {
        for payload in [16, 1_000_000, 4 << 20] {
            let mut of = messages(payload, 2);
            for number in [1, 2, 900] {
                let message = of.with(0, number).to_vec();
                let header = message.len() - payload;
                assert!((10..64).contains(&header), "{header} bytes around {payload}");
                // Its own publisher hears it, and everybody else.
                assert_eq!(of.number(0, &message), Some(number));
                assert_eq!(of.number(1, &message), Some(number));
            }
            assert_eq!(of.number(0, b"no NetworkMessage"), None);
        }
    }

    #[test]
    fn the_first_hears_everybody() {
        let mut of = messages(16, 20);
        for round in 1..=3 {
            for client in 1..20 {
                let answer = of.with(client, round).to_vec();
                assert_eq!(of.number(0, &answer), Some(round), "client {client}");
            }
        }
    }
}
