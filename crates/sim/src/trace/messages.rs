//! Finds messages in a stream of chunks (Part 6 §6.7.2), regardless of how the stream is split.

use taktwerk_schema::message_name;

/// Number of bytes of a chunk that are examined: enough for the policy of an OpenSecureChannel without security.
const HEAD_MAX: usize = 64;
/// The end of the URI of the policy None.
const NO_POLICY: &[u8] = b"#None";

/// A message whose last byte was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    /// Offset in the stream just after it.
    pub(super) end: u64,
    /// The name used in the specification; for encrypted messages, the type of the chunks.
    pub(super) name: &'static str,
    /// Bytes of all its chunks.
    pub(super) len: u64,
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The start of the current chunk.
    head: Vec<u8>,
    /// Number of its bytes seen so far.
    seen: u64,
    offset: u64,
    /// Name from the message's first chunk.
    name: Option<&'static str>,
    len: u64,
    is_secured: bool,
    /// The stream is not OPC UA.
    is_lost: bool,
}

impl Messages {
    /// Processes the next bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8], found: &mut dyn FnMut(Message)) {
        while !bytes.is_empty() && !self.is_lost {
            let size = self.size();
            // Byte by byte up to the size field, then as much as belongs to the chunk.
            let wanted = size.map_or_else(|| 8 - self.head.len() as u64, |size| size - self.seen);
            let (now, rest) = bytes.split_at(bytes.len().min(usize::try_from(wanted).unwrap_or(usize::MAX)));
            bytes = rest;
            let room = HEAD_MAX - self.head.len();
            self.head.extend_from_slice(now.get(..now.len().min(room)).unwrap_or_default());
            self.seen += now.len() as u64;
            self.offset += now.len() as u64;
            match self.size() {
                Some(size) if size < 8 => self.is_lost = true,
                Some(size) if size == self.seen => self.complete(found),
                _ => {}
            }
        }
    }

    fn size(&self) -> Option<u64> {
        u32_at(&self.head, 4).map(u64::from)
    }

    fn complete(&mut self, found: &mut dyn FnMut(Message)) {
        let name = self.name_of_chunk();
        let name = *self.name.get_or_insert(name);
        self.len += self.seen;
        let is_last = self.head.get(3) != Some(&b'C');
        self.head.clear();
        self.seen = 0;
        if is_last {
            self.name = None;
            found(Message { end: self.offset, name, len: core::mem::take(&mut self.len) });
        }
    }

    fn name_of_chunk(&mut self) -> &'static str {
        let kind: &[u8] = self.head.get(..3).unwrap_or_default();
        match kind {
            b"HEL" => "Hello",
            b"ACK" => "Acknowledge",
            b"ERR" => "Error",
            b"RHE" => "ReverseHello",
            b"CLO" => "CloseSecureChannel",
            b"OPN" => {
                let policy_len = u32_at(&self.head, 12).unwrap_or_default() as usize;
                let policy = self.head.get(16..16usize.saturating_add(policy_len));
                self.is_secured = !policy.is_some_and(|policy| policy.ends_with(NO_POLICY));
                "OpenSecureChannel"
            }
            _ if self.is_secured => "MSG",
            _ => self.head.get(24..).and_then(type_id).and_then(message_name).unwrap_or("MSG"),
        }
    }
}

/// The numeric id that a message starts with (Part 6 §5.2.2.9).
fn type_id(body: &[u8]) -> Option<u32> {
    match body {
        [0, id, ..] => Some(u32::from(*id)),
        [1, 0, low, high, ..] => Some(u32::from(u16::from_le_bytes([*low, *high]))),
        _ => None,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let mut chunk = kind.to_vec();
        chunk.extend_from_slice(&u32::to_le_bytes(8 + body.len() as u32));
        chunk.extend_from_slice(body);
        chunk
    }

    fn open(policy: &[u8]) -> Vec<u8> {
        let mut body = vec![1, 0, 0, 0];
        body.extend_from_slice(&u32::to_le_bytes(policy.len() as u32));
        body.extend_from_slice(policy);
        body.extend_from_slice(&[0xff; 300]);
        chunk(b"OPNF", &body)
    }

    fn message(flag: u8) -> Vec<u8> {
        let mut body = vec![0; 16];
        body.extend_from_slice(&[1, 0, 0x3a, 0x03]);
        body.resize(200, 7);
        chunk(&[b'M', b'S', b'G', flag], &body)
    }

    fn names(policy: &[u8], step: usize) -> Vec<(&'static str, u64)> {
        let parts = [chunk(b"HELF", &[0; 24]), open(policy), message(b'C'), message(b'F'), message(b'F')];
        let (mut messages, mut found) = (Messages::default(), Vec::new());
        for bytes in parts.concat().chunks(step) {
            messages.feed(bytes, &mut |message| found.push(message));
        }
        assert_eq!(found.last().map(|last| last.end), Some(parts.concat().len() as u64));
        found.iter().map(|message| (message.name, message.len)).collect()
    }

    #[test]
    fn messages_are_found_however_the_stream_is_split() {
        let policy = b"http://opcfoundation.org/UA/SecurityPolicy#None";
        let (hello, publish) = (("Hello", 32), ("PublishRequest", 208));
        let all = [hello, ("OpenSecureChannel", 363), ("PublishRequest", 416), publish];
        for step in [1, 2, 7, 8, 9, 100, 10_000] {
            assert_eq!(names(policy, step), all, "{step}");
        }
    }

    #[test]
    fn encrypted_messages_have_no_name() {
        let policy = b"http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256";
        assert_eq!(names(policy, 50).last(), Some(&("MSG", 208)));
    }

    #[test]
    fn streams_that_are_not_opc_ua_are_ignored() {
        let mut messages = Messages::default();
        let mut bytes = b"GET ".to_vec();
        bytes.extend_from_slice(&[0; 50]);
        messages.feed(&bytes, &mut |message| panic!("{message:?}"));
        assert!(messages.is_lost && messages.head.len() <= HEAD_MAX);
    }
}
