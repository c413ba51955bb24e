//! Finds MQTT packets in a stream (MQTT 3.1.1 §2), regardless of how the stream is split.

use super::messages::Message;

/// The names of packets by their types.
const NAMES: [&str; 16] = [
    "reserved",
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
];

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Packets {
    /// The packet type, while the length is being read.
    kind: Option<u8>,
    shift: u32,
    len: u64,
    /// Number of remaining bytes of the current packet.
    left: u64,
    header: u64,
    offset: u64,
}

impl Packets {
    /// Processes the next bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8], found: &mut dyn FnMut(Message)) {
        while let Some((first, rest)) = bytes.split_first() {
            if self.left > 0 {
                let now = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.left -= now as u64;
                self.offset += now as u64;
                bytes = bytes.get(now..).unwrap_or_default();
            } else {
                self.offset += 1;
                self.header += 1;
                bytes = rest;
                if self.kind.is_none() {
                    self.kind = Some(first >> 4);
                    continue;
                }
                self.len |= u64::from(first & 0x7f) << self.shift;
                self.shift += 7;
                // Lengths have at most four bytes (§2.2.3).
                if first & 0x80 != 0 && self.shift < 28 {
                    continue;
                }
                self.left = self.len;
            }
            if self.left == 0 {
                self.complete(found);
            }
        }
    }

    fn complete(&mut self, found: &mut dyn FnMut(Message)) {
        let kind = self.kind.take().unwrap_or_default();
        let name = NAMES.get(usize::from(kind)).copied().unwrap_or("packet");
        found(Message { end: self.offset, name, len: self.header + self.len });
        (self.shift, self.len, self.header) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_however_the_stream_is_split() {
        let mut stream = vec![0x10, 3, 1, 2, 3, 0xc0, 0, 0x30, 0x82, 0x01];
        stream.extend([7; 130]);
        stream.extend([0x40, 2, 0, 1]);
        for step in [1, 2, 3, 100, 1_000] {
            let (mut packets, mut found) = (Packets::default(), Vec::new());
            for bytes in stream.chunks(step) {
                packets.feed(bytes, &mut |message| found.push((message.name, message.len, message.end)));
            }
            let all = [("CONNECT", 5, 5), ("PINGREQ", 2, 7), ("PUBLISH", 133, 140), ("PUBACK", 4, 144)];
            assert_eq!(found, all, "{step}");
        }
    }
}
