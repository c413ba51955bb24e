//! An independent observer of the wire: it checks that what each end sends is valid according to the specification.
//!
//! It shares no code with the stack. It reads the headers of chunks (Part 6 §6.7.2) on connections without security and
//! keeps records: sequence numbers follow each other, every response answers one request, and no request is answered
//! twice. After a secured OpenSecureChannel it sees only TokenIds: neither end may use a token that was not issued, or
//! return to an earlier one.

use crate::network::Side;
use std::collections::BTreeMap;
use taktwerk_types::Instant;

/// Size of the largest chunk that is configured in any simulation.
const CHUNK_LEN_MAX: usize = 1 << 20;
/// The id of a PublishRequest's binary encoding.
pub const PUBLISH_REQUEST: u32 = 826;

/// A request that has not been answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unanswered {
    /// Its RequestId.
    pub request_id: u32,
    /// The numeric id of its encoding, for example 631 for a Read; 0 if it is not in namespace 0.
    pub type_id: u32,
    /// When its last byte was passed to the network.
    pub sent_at: Instant,
}

/// A violated rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireFault {
    /// The message type or chunk size is impossible.
    #[error("no chunk starts with {0:02x?}")]
    Head([u8; 8]),
    /// A SequenceNumber does not follow the previous one (Part 6 §6.7.2.4).
    #[error("sequence number {found} follows {last}")]
    Sequence {
        /// The previous one.
        last: u32,
        /// The one that was sent.
        found: u32,
    },
    /// A chunk of another message appears between the chunks of a message (Part 6 §6.7.3).
    #[error("a chunk of request {found} appears within message {open}")]
    Interleaved {
        /// The incomplete message.
        open: u32,
        /// The other message.
        found: u32,
    },
    /// A RequestId is used again before the request was answered.
    #[error("request id {0} is used again before the request was answered")]
    Repeated(u32),
    /// A response without a request, or a second response.
    #[error("response {0} belongs to no pending request")]
    Unasked(u32),
    /// A different TokenId than before, although none was issued since (Part 6 §6.7.7).
    #[error("token {found} is used after {last}, but none was issued in between")]
    Token {
        /// The previous one.
        last: u32,
        /// The one that was used.
        found: u32,
    },
}

/// How the security tokens of a connection were used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUse {
    /// Number of tokens that the server has issued: one more than the renewals.
    pub issued: u32,
    /// Number of renewals after which the client still sent with the previous token, because it had not received the
    /// new one.
    pub overlaps_of_client: u32,
    /// The same for the server, which waits until the client has used the new token (Part 4 §5.6.2.1).
    pub overlaps_of_server: u32,
}

/// The records of one connection.
#[derive(Debug, Default)]
pub(crate) struct WireCheck {
    /// By the [`Side`] that sends.
    senders: [Sender; 2],
    outstanding: BTreeMap<u32, (u32, Instant)>,
    /// OpenSecureChannel messages of the client: one more than the renewals.
    opens: u32,
    issued: u32,
    /// Chunks are encrypted or signed: only the first eight bytes can be read.
    blind: bool,
}

#[derive(Debug, Default)]
struct Sender {
    /// The part of a chunk that has been sent so far.
    partial: Vec<u8>,
    last_sequence: Option<u32>,
    /// The message whose chunks are being sent, with its type.
    open: Option<(u32, u32)>,
    /// The last TokenId used.
    token: Option<u32>,
    /// A token was issued that has not been used yet.
    may_change: bool,
    /// The previous token was used after that.
    is_late: bool,
    overlaps: u32,
}

impl Sender {
    /// A chunk uses a token.
    fn token(&mut self, found: u32) -> Result<(), WireFault> {
        match self.token {
            Some(last) if last == found => {
                if self.may_change && !self.is_late {
                    self.is_late = true;
                    self.overlaps += 1;
                }
            }
            Some(last) if !self.may_change => return Err(WireFault::Token { last, found }),
            _ => {
                self.token = Some(found);
                self.may_change = false;
            }
        }
        Ok(())
    }

    /// The server has issued a token.
    fn issued(&mut self) {
        self.may_change = true;
        self.is_late = false;
    }
}

impl WireCheck {
    /// `side` passes bytes to the network.
    pub(crate) fn sent(&mut self, side: Side, bytes: &[u8], now: Instant) -> Result<(), WireFault> {
        let mut partial = core::mem::take(&mut self.senders[side as usize].partial);
        partial.extend_from_slice(bytes);
        let mut rest = partial.as_slice();
        while let Some(head) = rest.first_chunk::<8>() {
            let size = u32_at(rest, 4).unwrap_or_default() as usize;
            if !(8..=CHUNK_LEN_MAX).contains(&size) {
                return Err(WireFault::Head(*head));
            }
            let Some((chunk, behind)) = rest.split_at_checked(size) else { break };
            rest = behind;
            self.chunk(side, chunk, *head, now)?;
        }
        let kept = rest.to_vec();
        self.senders[side as usize].partial = kept;
        Ok(())
    }

    fn chunk(&mut self, side: Side, chunk: &[u8], head: [u8; 8], now: Instant) -> Result<(), WireFault> {
        let [a, b, c, flag, ..] = head;
        match (&[a, b, c], side) {
            (b"OPN", Side::Client) => self.opens += 1,
            (b"OPN", Side::Server) => {
                self.issued += 1;
                self.senders.iter_mut().for_each(Sender::issued);
            }
            (b"MSG" | b"CLO", _) => {
                let token = u32_at(chunk, 12).ok_or(WireFault::Head(head))?;
                self.senders[side as usize].token(token)?;
            }
            _ => {}
        }
        if self.blind {
            return Ok(());
        }
        let sequence_at = match &[a, b, c] {
            b"HEL" | b"ACK" | b"ERR" | b"RHE" => return Ok(()),
            b"MSG" | b"CLO" => 16,
            b"OPN" => match open_head_len(chunk) {
                Some(len) => len,
                None => {
                    self.blind = true;
                    return Ok(());
                }
            },
            _ => return Err(WireFault::Head(head)),
        };
        let fields = (u32_at(chunk, sequence_at), u32_at(chunk, sequence_at + 4));
        let (Some(sequence), Some(request_id)) = fields else { return Err(WireFault::Head(head)) };
        let sender = &mut self.senders[side as usize];
        if let Some(last) = sender.last_sequence.replace(sequence)
            && !follows(last, sequence)
        {
            return Err(WireFault::Sequence { last, found: sequence });
        }
        let body = chunk.get(sequence_at + 8..).unwrap_or_default();
        let (open, type_id) = *sender.open.get_or_insert((request_id, type_id(body)));
        if open != request_id {
            return Err(WireFault::Interleaved { open, found: request_id });
        }
        if flag == b'C' {
            return Ok(());
        }
        sender.open = None;
        match side {
            Side::Client if &[a, b, c] == b"CLO" => {}
            Side::Client => {
                if self.outstanding.insert(request_id, (type_id, now)).is_some() {
                    return Err(WireFault::Repeated(request_id));
                }
            }
            Side::Server => {
                if self.outstanding.remove(&request_id).is_none() {
                    return Err(WireFault::Unasked(request_id));
                }
            }
        }
        Ok(())
    }

    /// How often the client requested a token.
    pub(crate) fn opens(&self) -> u32 {
        self.opens
    }

    /// How the tokens were used.
    pub(crate) fn tokens(&self) -> TokenUse {
        TokenUse {
            issued: self.issued,
            overlaps_of_client: self.senders[Side::Client as usize].overlaps,
            overlaps_of_server: self.senders[Side::Server as usize].overlaps,
        }
    }

    /// The requests that have no response yet.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = Unanswered> {
        let entry = |(id, (type_id, at)): (&u32, &(u32, Instant))| Unanswered {
            request_id: *id,
            type_id: *type_id,
            sent_at: *at,
        };
        self.outstanding.iter().map(entry)
    }
}

/// Sequence numbers increase by one and may restart below 1024 when they wrap (Part 6 §6.7.2.4).
fn follows(last: u32, next: u32) -> bool {
    next == last.wrapping_add(1) || (last >= u32::MAX - 1024 && next < 1024)
}

/// Where the sequence header of an OpenSecureChannel chunk without security starts; `None` if it has security.
fn open_head_len(chunk: &[u8]) -> Option<usize> {
    let policy_len = u32_at(chunk, 12)? as usize;
    let policy = chunk.get(16..16 + policy_len)?;
    // It is followed by the sender's certificate and the receiver's thumbprint, both null.
    policy.ends_with(b"#None").then_some(16 + policy_len + 8)
}

/// The numeric id that a message starts with (Part 6 §5.2.2.9).
fn type_id(body: &[u8]) -> u32 {
    match body {
        [0, id, ..] => u32::from(*id),
        [1, 0, low, high, ..] => u32::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn message(flag: u8, sequence: u32, request_id: u32) -> Vec<u8> {
        let mut chunk = b"MSG".to_vec();
        chunk.push(flag);
        for field in [28, 1, 1, sequence, request_id] {
            chunk.extend_from_slice(&u32::to_le_bytes(field));
        }
        chunk.extend_from_slice(&[1, 0, 0x77, 0x02]);
        chunk
    }

    fn check(sent: &[(Side, Vec<u8>)]) -> Result<Vec<Unanswered>, WireFault> {
        let mut check = WireCheck::default();
        for (side, bytes) in sent {
            let (one, two) = bytes.split_at(bytes.len() / 3);
            check.sent(*side, one, NOW)?;
            check.sent(*side, two, NOW)?;
        }
        Ok(check.unanswered().collect())
    }

    #[test]
    fn requests_and_responses_are_recorded() {
        use Side::{Client, Server};
        let ask = |sequence, id| (Client, message(b'F', sequence, id));
        let answer = |sequence, id| (Server, message(b'F', sequence, id));
        let left = check(&[ask(1, 7), ask(2, 8), answer(50, 8)]).unwrap();
        assert_eq!(left, [Unanswered { request_id: 7, type_id: 631, sent_at: NOW }]);
        assert_eq!(check(&[ask(1, 7), ask(3, 8)]), Err(WireFault::Sequence { last: 1, found: 3 }));
        assert_eq!(check(&[ask(1, 7), ask(2, 7)]), Err(WireFault::Repeated(7)));
        assert_eq!(check(&[ask(1, 7), answer(1, 7), answer(2, 7)]), Err(WireFault::Unasked(7)));
        let parts = [(Client, message(b'C', 1, 7)), ask(2, 7), answer(1, 7)];
        assert_eq!(check(&parts), Ok(vec![]));
        let parts = [(Client, message(b'C', 1, 7)), ask(2, 8)];
        assert_eq!(check(&parts), Err(WireFault::Interleaved { open: 7, found: 8 }));
        assert!(matches!(check(&[(Client, b"GET / HTTP".to_vec())]), Err(WireFault::Head(_))));
        assert_eq!(check(&[ask(u32::MAX - 5, 1), ask(1, 2)]).map(|left| left.len()), Ok(2));
    }

    /// A chunk with security: only its header can be read.
    fn secured(kind: &[u8; 3], token: u32) -> Vec<u8> {
        let mut chunk = kind.to_vec();
        chunk.push(b'F');
        for field in [28, 1, token, 0xdead_beef, 0xdead_beef, 0xdead_beef] {
            chunk.extend_from_slice(&u32::to_le_bytes(field));
        }
        chunk
    }

    #[test]
    fn tokens_are_counted_and_unissued_ones_are_reported() {
        use Side::{Client, Server};
        let run = |sent: &[(Side, &[u8; 3], u32)]| {
            let mut check = WireCheck::default();
            for (side, kind, token) in sent {
                check.sent(*side, &secured(kind, *token), NOW)?;
            }
            Ok(check.tokens())
        };
        let begin = [(Client, b"OPN", 0), (Server, b"OPN", 0), (Client, b"MSG", 5), (Server, b"MSG", 5)];
        let with = |more: &[(Side, &'static [u8; 3], u32)]| run(&[&begin, more].concat());
        let used = |issued, overlaps_of_client, overlaps_of_server| {
            Ok(TokenUse { issued, overlaps_of_client, overlaps_of_server })
        };
        assert_eq!(with(&[]), used(1, 0, 0));
        let renewal = [(Client, b"OPN", 0), (Client, b"MSG", 5), (Server, b"OPN", 0)];
        assert_eq!(with(&renewal), used(2, 0, 0), "the next token was not known yet");
        let late = [(Server, b"MSG", 5), (Server, b"MSG", 5), (Client, b"MSG", 5), (Client, b"MSG", 6)];
        assert_eq!(with(&[&renewal[..], &late].concat()), used(2, 1, 1));
        let back = [(Client, b"MSG", 6), (Client, b"MSG", 5)];
        let fault = Err(WireFault::Token { last: 6, found: 5 });
        assert_eq!(with(&[&renewal[..], &back].concat()), fault);
        assert_eq!(with(&[(Server, b"MSG", 6)]), Err(WireFault::Token { last: 5, found: 6 }));
    }
}
