//! Contents of the load's messages: bytes that start with a number, or a PubSub NetworkMessage (UADP, Part 14 §7.2.4)
//! with one ByteString of such bytes, as sent by a publisher over MQTT (§7.3.4).

use crate::error::GeneratorError;
use crate::station::{Place, Station, now, number, set_number};
use taktwerk_load::specification::{Content, Mqtt};

/// Maximum size of a NetworkMessage; large enough that messages are not split into chunks, which MQTT does not need.
const LARGEST: u32 = 16 << 20;
/// Placeholder; the load connects to the broker itself.
const BROKER: &str = "mqtt://broker";
const PLACE: Place<'static> =
    Place { to: BROKER, at: BROKER, interface: "", message_size_max: Some(LARGEST) };

/// Encodes and decodes messages, separately for each client.
pub(super) struct Messages {
    payload: Vec<u8>,
    /// One station per client; empty for plain bytes.
    stations: Vec<Station>,
    /// Copy of a received message, which decoding modifies.
    heard: Vec<u8>,
}

impl Messages {
    /// For the clients in the arguments.
    pub(super) fn new(arguments: &Mqtt) -> Result<Self, GeneratorError> {
        let stations = match arguments.message {
            Content::Bytes => Vec::new(),
            Content::Uadp => {
                (0..arguments.clients).map(|client| Station::new(client, &PLACE)).collect::<Result<_, _>>()?
            }
        };
        Ok(Self { payload: vec![0x55; arguments.payload as usize], stations, heard: Vec::new() })
    }

    /// The message of a client with this number.
    pub(super) fn with(&mut self, client: usize, number: u64) -> &[u8] {
        set_number(&mut self.payload, number);
        match self.stations.get_mut(client) {
            Some(station) => {
                station.publish(&self.payload).iter().next().map_or(&[], |datagram| datagram.bytes)
            }
            None => &self.payload,
        }
    }

    /// The number in a message received by a client; `None` if it is not a message of this load.
    pub(super) fn number(&mut self, client: usize, message: &[u8]) -> Option<u64> {
        let Some(station) = self.stations.get_mut(client) else { return Some(number(message)) };
        let mut found = None;
        self.heard.clear();
        self.heard.extend_from_slice(message);
        station.receive(&mut self.heard, now(), |value| found = Some(number(value)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(payload: usize, clients: u32) -> Messages {
        Messages {
            payload: vec![0x55; payload],
            stations: (0..clients).map(|client| Station::new(client, &PLACE).unwrap()).collect(),
            heard: Vec::new(),
        }
    }

    #[test]
    fn bytes_carry_a_number() {
        let mut bytes = Messages { payload: vec![0x55; 10], stations: Vec::new(), heard: Vec::new() };
        let message = bytes.with(3, 7).to_vec();
        assert_eq!((message.len(), bytes.number(0, &message)), (10, Some(7)));
    }

    #[test]
    fn network_messages_are_not_split_into_chunks() {
        for payload in [16, 1_000_000, 4 << 20] {
            let mut of = messages(payload, 2);
            for number in [1, 2, 900] {
                let message = of.with(0, number).to_vec();
                let header = message.len() - payload;
                assert!((10..64).contains(&header), "{header} bytes around {payload}");
                // The station receives its own messages and those of others.
                assert_eq!(of.number(0, &message), Some(number));
                assert_eq!(of.number(1, &message), Some(number));
            }
            assert_eq!(of.number(0, b"no NetworkMessage"), None);
        }
    }

    #[test]
    fn the_first_client_receives_all_answers() {
        let mut of = messages(16, 20);
        for round in 1..=3 {
            for client in 1..20 {
                let answer = of.with(client, round).to_vec();
                assert_eq!(of.number(0, &answer), Some(round), "client {client}");
            }
        }
    }
}
