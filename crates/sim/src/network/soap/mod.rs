//! SOAP over HTTP instead of UA TCP, as a simulated transport. The cores use UA TCP; on the wire, each message has the
//! length, round trips and processing time of a SOAP message.
//!
//! The mapping is that of Part 6 version 1.02, which later versions removed; it serves for comparison with published
//! figures. Modelled: HTTP/1.1 with one persistent connection, SOAP envelopes with WS-Addressing, binary bodies in
//! base64 or XML bodies by a factor, WS-SecureConversation with its handshake in place of OpenSecureChannel, and the
//! time for reading and writing XML. A message is delivered when it has arrived completely. Simplified: Hello,
//! Acknowledge and CloseSecureChannel, which SOAP does not have, are a single byte; answers may overtake each other,
//! which would need several HTTP connections.

mod text;

use super::stream::take_front;
use core::time::Duration;
use std::collections::VecDeque;
use taktwerk_types::Instant;

/// Encoding of service messages in the SOAP body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Body {
    /// UA Binary in base64.
    #[default]
    Binary,
    /// UA XML, by its length relative to UA Binary.
    Xml {
        /// Length in percent of the length in UA Binary; typically 500 to 1 000 for messages with many small values.
        factor_percent: u32,
    },
}

/// Security of SOAP messages on a secured channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Security {
    /// WS-SecureConversation: keys, signatures and ciphertext in each envelope, as XML.
    #[default]
    WsSecureConversation,
    /// UA Secure Conversation: envelopes around the same chunks as in UA TCP.
    UaSecureConversation,
}

/// SOAP over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Soap {
    /// Encoding of service messages.
    pub body: Body,
    /// Security of messages.
    pub security: Security,
    /// Processing time of each message at each end in addition to the stack: XML, canonical form, HTTP.
    pub per_message: Duration,
    /// Additional time of a message with WS-Security.
    pub per_secured_message: Duration,
    /// Processing time per byte of the SOAP message at each end, in picoseconds.
    pub per_byte_ps: u64,
}

impl Soap {
    fn time(&self, len: usize, is_secured: bool) -> Duration {
        let bytes = Duration::from_nanos((len as u64).saturating_mul(self.per_byte_ps) / 1000);
        self.per_message + if is_secured { self.per_secured_message } else { Duration::ZERO } + bytes
    }
}

/// Maximum length of a message assembled from chunks.
const MESSAGE_MAX: usize = 64 << 20;
/// Length of a chunk's headers without security: header, token, sequence header (Part 6 §6.7.2).
const CHUNK_HEAD: usize = 24;

/// A message in transfer from one end to the other.
#[derive(Debug)]
struct Message {
    /// The bytes written by the core.
    chunks: Vec<u8>,
    /// Length on the wire.
    len: usize,
    /// Bytes still to be sent.
    unsent: usize,
    /// Bytes still to arrive.
    missing: usize,
    /// When it is encoded; after arrival, when it is decoded.
    ready: Instant,
    is_secured: bool,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    /// Written by the core; not a complete message yet.
    partial: Vec<u8>,
    /// Start of the next chunk in `partial`.
    chunk_at: usize,
    /// Being encoded or in transfer; oldest first.
    under_way: VecDeque<Message>,
    /// Being decoded.
    reading: VecDeque<Message>,
    busy_until: Instant,
    reader_busy_until: Instant,
    /// Decoded.
    inbox: VecDeque<u8>,
}

/// The SOAP state of a connection. Directions are those of the writing [`Side`](super::Side).
#[derive(Debug)]
pub(crate) struct Carriage {
    soap: Soap,
    directions: [Direction; 2],
    is_secured: bool,
    /// Whether a core was told to pause.
    pub(crate) wants_room: [bool; 2],
}

impl Carriage {
    pub(crate) fn new(soap: Soap) -> Self {
        Self {
            soap,
            directions: [Direction::default(), Direction::default()],
            is_secured: false,
            wants_room: [false; 2],
        }
    }

    /// The core writes. Returns the encoding times of newly completed messages.
    pub(crate) fn write(&mut self, writer: usize, bytes: &[u8], now: Instant) -> Vec<Instant> {
        let mut ready = Vec::new();
        let Some(direction) = self.directions.get_mut(writer) else { return ready };
        direction.partial.extend_from_slice(bytes);
        while let Some(head) = direction.partial.get(direction.chunk_at..direction.chunk_at + 8) {
            let size =
                head.get(4..).and_then(|size| size.first_chunk()).map_or(0, |size| u32::from_le_bytes(*size));
            let end = direction.chunk_at + (size as usize).clamp(8, MESSAGE_MAX);
            if direction.partial.len() < end {
                break;
            }
            let is_final = head.get(3) != Some(&b'C');
            direction.chunk_at = end;
            if !is_final && end < MESSAGE_MAX {
                continue;
            }
            let rest = direction.partial.split_off(end);
            let chunks = core::mem::replace(&mut direction.partial, rest);
            direction.chunk_at = 0;
            self.is_secured |= chunks.starts_with(b"OPN")
                && !chunks.get(16..80).unwrap_or(&chunks).windows(5).any(|part| part == b"#None");
            let len = length(&chunks, &self.soap, writer == 0, self.is_secured);
            let is_text = len > 1;
            let time = if is_text { self.soap.time(len, self.is_secured) } else { Duration::ZERO };
            direction.busy_until = direction.busy_until.max(now) + time;
            let is_secured = self.is_secured;
            direction.under_way.push_back(Message {
                chunks,
                len,
                unsent: len,
                missing: len,
                ready: direction.busy_until,
                is_secured,
            });
            ready.push(direction.busy_until);
        }
        ready
    }

    /// Bytes of messages that are encoded but not sent.
    pub(crate) fn pending(&self, writer: usize, now: Instant) -> usize {
        let made = |message: &&Message| message.ready <= now;
        self.directions.get(writer).map_or(0, |direction| {
            direction.under_way.iter().take_while(made).map(|message| message.unsent).sum()
        })
    }

    /// Whether the core should pause because too much is queued.
    pub(crate) fn is_full(&self, writer: usize, limit: usize) -> bool {
        self.directions.get(writer).is_some_and(|direction| {
            direction.under_way.iter().map(|message| message.unsent).sum::<usize>() > limit
        })
    }

    /// Whether everything written has been sent.
    pub(crate) fn is_sent(&self, writer: usize) -> bool {
        self.directions
            .get(writer)
            .is_none_or(|direction| direction.under_way.iter().all(|message| message.unsent == 0))
    }

    /// Records sent bytes.
    pub(crate) fn put(&mut self, writer: usize, mut bytes: usize) {
        let Some(direction) = self.directions.get_mut(writer) else { return };
        for message in &mut direction.under_way {
            let part = bytes.min(message.unsent);
            message.unsent -= part;
            bytes -= part;
            if bytes == 0 {
                return;
            }
        }
    }

    /// Records arrived bytes. Returns the decoding times of newly completed messages.
    pub(crate) fn arrive(&mut self, writer: usize, mut bytes: usize, now: Instant) -> Vec<Instant> {
        let mut read = Vec::new();
        let Some(direction) = self.directions.get_mut(writer) else { return read };
        while bytes > 0 {
            let Some(first) = direction.under_way.front_mut() else { break };
            let part = bytes.min(first.missing);
            first.missing -= part;
            bytes -= part;
            if first.missing > 0 {
                break;
            }
            let Some(mut message) = direction.under_way.pop_front() else { break };
            let time = if message.len > 1 {
                self.soap.time(message.len, message.is_secured)
            } else {
                Duration::ZERO
            };
            direction.reader_busy_until = direction.reader_busy_until.max(now) + time;
            message.ready = direction.reader_busy_until;
            read.push(message.ready);
            direction.reading.push_back(message);
        }
        read
    }

    /// Moves messages that are decoded by now to the core's input.
    pub(crate) fn deliver(&mut self, writer: usize, now: Instant) {
        let Some(direction) = self.directions.get_mut(writer) else { return };
        while direction.reading.front().is_some_and(|message| message.ready <= now) {
            if let Some(message) = direction.reading.pop_front() {
                direction.inbox.extend(message.chunks);
            }
        }
    }

    /// Number of bytes that the core can read.
    pub(crate) fn readable(&self, writer: usize) -> usize {
        self.directions.get(writer).map_or(0, |direction| direction.inbox.len())
    }

    /// Whether arrived messages are still being decoded.
    pub(crate) fn is_reading(&self, writer: usize) -> bool {
        self.directions
            .get(writer)
            .is_some_and(|direction| !direction.reading.is_empty() || !direction.inbox.is_empty())
    }

    pub(crate) fn read(&mut self, writer: usize, max: usize, into: &mut Vec<u8>) {
        let Some(direction) = self.directions.get_mut(writer) else { return };
        let len = direction.inbox.len().min(max);
        take_front(&mut direction.inbox, len, into);
    }
}

/// Length of a message on the wire.
fn length(chunks: &[u8], soap: &Soap, is_request: bool, is_secured: bool) -> usize {
    let body = soap.body;
    match chunks.get(..3) {
        // Chunks are binary in any case.
        Some(b"OPN" | b"MSG") if is_secured && soap.security == Security::UaSecureConversation => {
            text::message(chunks.len(), Body::Binary, is_request, false)
        }
        Some(b"OPN") if is_secured => text::handshake(is_request),
        Some(b"MSG") => {
            // Includes signatures and padding of the chunks, a few percent of a message that is mostly envelope.
            let heads = chunks.len().div_ceil(65_536) * CHUNK_HEAD;
            text::message(chunks.len().saturating_sub(heads), body, is_request, is_secured)
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &[u8; 4], len: usize) -> Vec<u8> {
        let mut chunk = kind.to_vec();
        chunk.extend_from_slice(&(len as u32).to_le_bytes());
        chunk.resize(len, 7);
        chunk
    }

    const AT: Instant = Instant::from_nanos(5);

    #[test]
    fn messages_arrive_completely_after_their_processing_time() {
        let per_message = Duration::from_millis(3);
        let mut carriage = Carriage::new(Soap { per_message, ..Soap::default() });
        let message = [chunk(b"MSGC", 100), chunk(b"MSGF", 60)].concat();
        assert!(carriage.write(0, &message[..130], AT).is_empty());
        assert_eq!(carriage.write(0, &message[130..], AT), [AT + per_message]);
        assert!(carriage.pending(0, AT) == 0 && !carriage.is_sent(0));
        let made = AT + per_message;
        let len = carriage.pending(0, made);
        assert!(len > 700 + 160 * 4 / 3, "{len}");
        carriage.put(0, len);
        assert!(carriage.arrive(0, len - 1, made).is_empty());
        assert_eq!(carriage.arrive(0, 1, made), [made + per_message]);
        carriage.deliver(0, made);
        assert_eq!((carriage.readable(0), carriage.is_reading(0)), (0, true));
        carriage.deliver(0, made + per_message);
        let mut read = Vec::new();
        carriage.read(0, usize::MAX, &mut read);
        assert_eq!(read, message);
    }

    #[test]
    fn lengths_are_those_of_soap() {
        let plain = text::message(90, Body::Binary, true, false);
        let secured = text::message(90, Body::Binary, true, true);
        let xml = text::message(90, Body::Xml { factor_percent: 800 }, true, false);
        assert!((800..1400).contains(&plain) && (4500..8000).contains(&secured), "{plain} {secured}");
        assert!(xml > plain);
        // For large messages, base64 adds a third.
        let ratio = text::message(1 << 20, Body::Binary, false, false) as f64 / f64::from(1 << 20);
        assert!((1.33..1.35).contains(&ratio), "{ratio}");
        assert!((7000..14_000).contains(&text::handshake(true)), "{}", text::handshake(true));
        let soap = Soap::default();
        assert_eq!(length(&chunk(b"HELF", 60), &soap, true, true), 1);
        // Chunks in envelopes are shorter than signed and encrypted XML, and longer than plain chunks.
        let ua = Soap { security: Security::UaSecureConversation, ..soap };
        for kind in [b"MSGF", b"OPNF"] {
            let [ws, ua] = [&soap, &ua].map(|soap| length(&chunk(kind, 2_000), soap, true, true));
            assert!((2_000 * 4 / 3..ws - 3_000).contains(&ua), "{ws} {ua}");
        }
        assert_eq!(
            length(&chunk(b"MSGF", 90), &ua, true, false),
            length(&chunk(b"MSGF", 90), &soap, true, false)
        );
    }
}
