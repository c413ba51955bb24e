//! Encodes and decodes MQTT packets.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Maximum accepted packet size; larger announcements are an error.
pub const PACKET_MAX: usize = 16 << 20;

/// MQTT version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Version {
    /// 3.1.1 (ISO/IEC 20922).
    #[default]
    #[serde(rename = "3.1.1")]
    V311,
    /// 5.0.
    #[serde(rename = "5")]
    V5,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V311 => "3.1.1",
            Self::V5 => "5",
        })
    }
}

impl FromStr for Version {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "3.1.1" | "3" | "4" => Ok(Self::V311),
            "5" | "5.0" => Ok(Self::V5),
            _ => Err(format!("unknown MQTT version {text:?}: use 3.1.1 or 5")),
        }
    }
}

/// Quality of service (§4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum Qos {
    /// At most once.
    #[default]
    #[serde(rename = "0")]
    AtMostOnce,
    /// At least once.
    #[serde(rename = "1")]
    AtLeastOnce,
    /// Exactly once.
    #[serde(rename = "2")]
    ExactlyOnce,
}

impl Qos {
    /// The number.
    #[must_use]
    pub fn level(self) -> u8 {
        match self {
            Self::AtMostOnce => 0,
            Self::AtLeastOnce => 1,
            Self::ExactlyOnce => 2,
        }
    }

    fn of(level: u8) -> Result<Self, MqttError> {
        match level {
            0 => Ok(Self::AtMostOnce),
            1 => Ok(Self::AtLeastOnce),
            2 => Ok(Self::ExactlyOnce),
            _ => Err(MqttError::Malformed("quality of service 3")),
        }
    }
}

impl FromStr for Qos {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let level = text.parse().map_err(|_| format!("{text:?} is not a QoS level: use 0, 1 or 2"))?;
        Self::of(level).map_err(|_| format!("{text:?} is not a QoS level: use 0, 1 or 2"))
    }
}

/// Protocol violations and refusals of a broker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MqttError {
    /// Bytes that are not a packet.
    #[error("the broker sent a malformed packet: {0}")]
    Malformed(&'static str),
    /// A packet that only clients may send.
    #[error("the broker sent a packet of type {0}, which only clients may send")]
    Unexpected(u8),
    /// A packet larger than [`PACKET_MAX`].
    #[error("the broker announced a packet of {0} bytes, which exceeds the limit")]
    TooLarge(usize),
    /// The broker refused a request.
    #[error("the broker refused the {what} with code {code}")]
    Refused {
        /// Connection or subscription.
        what: &'static str,
        /// The reason code.
        code: u8,
    },
    /// The broker disconnected (MQTT 5 §3.14).
    #[error("the broker disconnected with code {0}")]
    Disconnected(u8),
}

/// A packet from a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// The connection is accepted or refused (§3.2).
    ConnAck {
        /// 0 is accepted.
        code: u8,
    },
    /// A message (§3.3).
    Publish {
        /// Topic.
        topic: &'a str,
        /// Payload.
        payload: &'a [u8],
        /// QoS level.
        qos: Qos,
        /// The packet identifier, 0 with [`Qos::AtMostOnce`].
        id: u16,
    },
    /// §3.4.
    PubAck(u16),
    /// §3.5.
    PubRec(u16),
    /// §3.6.
    PubRel(u16),
    /// §3.7.
    PubComp(u16),
    /// §3.9, for one filter.
    SubAck {
        /// Packet identifier of the request.
        id: u16,
        /// 0 to 2 is the granted quality of service.
        code: u8,
    },
    /// §3.13.
    PingResp,
    /// MQTT 5 §3.14.
    Disconnect {
        /// Reason code.
        code: u8,
    },
}

/// Parses the packet at the beginning of `bytes`. Returns it with its length; `None` if it is incomplete.
///
/// # Errors
/// If these bytes can never become a packet.
pub fn parse(bytes: &[u8], version: Version) -> Result<Option<(Packet<'_>, usize)>, MqttError> {
    let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
    let Some((length, used)) = variable(rest)? else { return Ok(None) };
    if length > PACKET_MAX {
        return Err(MqttError::TooLarge(length));
    }
    let Some(body) = rest.get(used..used + length) else { return Ok(None) };
    let mut body = Body(body);
    let packet = match first >> 4 {
        2 => {
            body.byte()?;
            Packet::ConnAck { code: body.byte()? }
        }
        3 => {
            let qos = Qos::of((first >> 1) & 3)?;
            let topic_length = usize::from(body.word()?);
            let topic = std::str::from_utf8(body.take(topic_length)?)
                .map_err(|_| MqttError::Malformed("a topic that is not UTF-8"))?;
            let id = if qos == Qos::AtMostOnce { 0 } else { body.identifier()? };
            body.properties(version)?;
            Packet::Publish { topic, payload: body.0, qos, id }
        }
        4 => Packet::PubAck(body.identifier()?),
        5 => Packet::PubRec(body.identifier()?),
        6 => Packet::PubRel(body.identifier()?),
        7 => Packet::PubComp(body.identifier()?),
        9 => {
            let id = body.identifier()?;
            body.properties(version)?;
            Packet::SubAck { id, code: body.byte()? }
        }
        13 => Packet::PingResp,
        14 => Packet::Disconnect { code: body.byte().unwrap_or(0) },
        other => return Err(MqttError::Unexpected(other)),
    };
    Ok(Some((packet, 1 + used + length)))
}

/// A variable byte integer (§2.2.3) and its length.
fn variable(bytes: &[u8]) -> Result<Option<(usize, usize)>, MqttError> {
    let mut value = 0usize;
    for (index, byte) in bytes.iter().take(4).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((value, index + 1)));
        }
    }
    if bytes.len() >= 4 { Err(MqttError::Malformed("a length of more than four bytes")) } else { Ok(None) }
}

struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], MqttError> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or(MqttError::Malformed("a packet that ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, MqttError> {
        Ok(self.take(1)?.first().copied().unwrap_or(0))
    }

    fn word(&mut self) -> Result<u16, MqttError> {
        Ok(u16::from(self.byte()?) << 8 | u16::from(self.byte()?))
    }

    fn identifier(&mut self) -> Result<u16, MqttError> {
        match self.word()? {
            0 => Err(MqttError::Malformed("the packet identifier 0")),
            id => Ok(id),
        }
    }

    fn properties(&mut self, version: Version) -> Result<(), MqttError> {
        if version == Version::V311 {
            return Ok(());
        }
        let (length, used) = variable(self.0)?.ok_or(MqttError::Malformed("a packet that ends early"))?;
        self.take(used + length).map(|_| ())
    }
}

/// Appends a packet; `write` appends the body.
fn packet(out: &mut Vec<u8>, first: u8, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(first);
    let mut left = length;
    loop {
        let low = (left & 0x7f) as u8;
        left >>= 7;
        out.push(if left > 0 { low | 0x80 } else { low });
        if left == 0 {
            break;
        }
    }
    write(out);
}

fn text(out: &mut Vec<u8>, text: &str) {
    // Topics and names in this module are short.
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text.as_bytes().get(..usize::from(length)).unwrap_or_default());
}

/// CONNECT with a clean session, no user, and the longest keep-alive, so that pings do not disturb measurements (§3.1).
/// Not 0 (no keep-alive), because rumqttd treats such connections as timed out.
pub fn connect(out: &mut Vec<u8>, version: Version, name: &str) {
    let is_5 = version == Version::V5;
    packet(out, 0x10, 10 + usize::from(is_5) + 2 + name.len(), |out| {
        text(out, "MQTT");
        out.extend_from_slice(&[if is_5 { 5 } else { 4 }, 2, 0xff, 0xff]);
        if is_5 {
            out.push(0);
        }
        text(out, name);
    });
}

/// SUBSCRIBE to one filter (§3.8).
pub fn subscribe(out: &mut Vec<u8>, version: Version, id: u16, filter: &str, qos: Qos) {
    let is_5 = version == Version::V5;
    packet(out, 0x82, 2 + usize::from(is_5) + 2 + filter.len() + 1, |out| {
        out.extend_from_slice(&id.to_be_bytes());
        if is_5 {
            out.push(0);
        }
        text(out, filter);
        out.push(qos.level());
    });
}

/// PUBLISH; `id` is left out with [`Qos::AtMostOnce`] (§3.3).
pub fn publish(out: &mut Vec<u8>, version: Version, topic: &str, payload: &[u8], qos: Qos, id: u16) {
    let is_5 = version == Version::V5;
    let has_id = qos != Qos::AtMostOnce;
    let length = 2 + topic.len() + 2 * usize::from(has_id) + usize::from(is_5) + payload.len();
    packet(out, 0x30 | qos.level() << 1, length, |out| {
        text(out, topic);
        if has_id {
            out.extend_from_slice(&id.to_be_bytes());
        }
        if is_5 {
            out.push(0);
        }
        out.extend_from_slice(payload);
    });
}

/// PUBACK, PUBREC, PUBREL or PUBCOMP by its type and flags (§3.4 to §3.7).
fn acknowledge(out: &mut Vec<u8>, first: u8, id: u16) {
    packet(out, first, 2, |out| out.extend_from_slice(&id.to_be_bytes()));
}

/// PUBACK.
pub fn puback(out: &mut Vec<u8>, id: u16) {
    acknowledge(out, 0x40, id);
}

/// PUBREC.
pub fn pubrec(out: &mut Vec<u8>, id: u16) {
    acknowledge(out, 0x50, id);
}

/// PUBREL.
pub fn pubrel(out: &mut Vec<u8>, id: u16) {
    acknowledge(out, 0x62, id);
}

/// PUBCOMP.
pub fn pubcomp(out: &mut Vec<u8>, id: u16) {
    acknowledge(out, 0x70, id);
}

/// DISCONNECT (§3.14).
pub fn disconnect(out: &mut Vec<u8>) {
    packet(out, 0xe0, 0, |_| {});
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn packets_of_the_specification() {
        let mut out = Vec::new();
        connect(&mut out, Version::V311, "a");
        assert_eq!(out, [0x10, 13, 0, 4, b'M', b'Q', b'T', b'T', 4, 2, 0xff, 0xff, 0, 1, b'a']);
        out.clear();
        subscribe(&mut out, Version::V5, 10, "a/b", Qos::AtLeastOnce);
        assert_eq!(out, [0x82, 9, 0, 10, 0, 0, 3, b'a', b'/', b'b', 1]);
        out.clear();
        publish(&mut out, Version::V311, "a/b", b"x", Qos::AtMostOnce, 0);
        assert_eq!(out, [0x30, 6, 0, 3, b'a', b'/', b'b', b'x']);
        out.clear();
        pubrel(&mut out, 0x0102);
        disconnect(&mut out);
        assert_eq!(out, [0x62, 2, 1, 2, 0xe0, 0]);
    }

    #[test]
    fn answers() {
        fn whole(bytes: &[u8], version: Version) -> Packet<'_> {
            parse(bytes, version).unwrap().unwrap().0
        }
        let both = [Version::V311, Version::V5];
        assert_eq!(whole(&[0x20, 2, 0, 5], both[0]), Packet::ConnAck { code: 5 });
        assert_eq!(whole(&[0x20, 3, 0, 0, 0], both[1]), Packet::ConnAck { code: 0 });
        assert_eq!(whole(&[0x90, 3, 0, 7, 0x80], both[0]), Packet::SubAck { id: 7, code: 0x80 });
        assert_eq!(whole(&[0x90, 4, 0, 7, 0, 1], both[1]), Packet::SubAck { id: 7, code: 1 });
        assert_eq!(whole(&[0x40, 4, 0, 7, 0x10, 0], both[1]), Packet::PubAck(7));
        assert_eq!(whole(&[0xe0, 1, 0x8e], both[1]), Packet::Disconnect { code: 0x8e });
        assert_eq!(whole(&[0xd0, 0], both[0]), Packet::PingResp);
        for bad in [
            &[0x36, 4, 0, 1, b'a', 0][..],
            &[0x40, 2, 0, 0],
            &[0x40, 1, 0],
            &[0x30, 3, 0, 9, b'a'],
            &[0x30, 3, 0, 1, 0xff],
            &[0x10, 0],
            &[0x30, 0xff, 0xff, 0xff, 0xff],
            &[0x30, 0xff, 0xff, 0xff, 0x7f],
        ] {
            assert!(parse(bad, Version::V311).is_err(), "{bad:?}");
        }
    }

    proptest! {
        /// Encoded messages are decoded unchanged, with any bytes after them; incomplete ones are detected.
        #[test]
        fn messages_come_back(
            topic in "[a-z/]{1,40}", payload in proptest::collection::vec(any::<u8>(), 0..300),
            level in 0u8..3, id in 1u16.., is_5: bool, more in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let version = if is_5 { Version::V5 } else { Version::V311 };
            let qos = Qos::of(level).unwrap();
            let mut out = Vec::new();
            publish(&mut out, version, &topic, &payload, qos, id);
            let length = out.len();
            for end in 0..length {
                prop_assert_eq!(parse(&out[..end], version), Ok(None));
            }
            out.extend_from_slice(&more);
            let id = if qos == Qos::AtMostOnce { 0 } else { id };
            let expected = Packet::Publish { topic: &topic, payload: &payload, qos, id };
            prop_assert_eq!(parse(&out, version), Ok(Some((expected, length))));
        }

        /// No input causes a panic, and no more bytes are consumed than given.
        #[test]
        fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..64), is_5: bool) {
            let version = if is_5 { Version::V5 } else { Version::V311 };
            if let Ok(Some((_, length))) = parse(&bytes, version) {
                prop_assert!(length <= bytes.len() && length >= 2);
            }
        }
    }
}
