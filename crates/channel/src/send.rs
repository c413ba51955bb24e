//! The send path: encode once, then fill in headers, split into chunks and secure in place.

use crate::channel::{Channel, State};
use crate::error::{ApiMisuse, ChannelError, LimitHit, PeerFault};
use crate::header::{HEAD_LEN, IsFinal, MessageType, SYMMETRIC_LEN};
use crate::hello::{append_error, append_error_body};
use taktwerk_crypto::{ChunkLayout, ChunkNonce, Role};
use taktwerk_types::StatusCode;

/// Where a message starts in the send buffer. Returned by [`Channel::begin`], passed to [`Channel::finish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct MessageStart {
    at: usize,
}

impl MessageStart {
    /// The offset of the message's first byte in the send buffer.
    #[must_use]
    pub const fn offset(self) -> usize {
        self.at
    }

    /// The offset of the body.
    #[must_use]
    pub const fn body(self) -> usize {
        self.at + HEAD_LEN
    }
}

/// Shortest chunk body for which a message is split further: the header and signature are then a small overhead.
const LANE_LEN_MIN: usize = 1024;

/// How a message is split: every chunk but the last carries `body_max` bytes.
#[derive(Debug, Clone, Copy)]
struct Cut {
    layout: ChunkLayout,
    body_max: usize,
}

impl Cut {
    /// MaxBodySize of Part 6 §6.7.2.5.1.
    fn new(layout: ChunkLayout, chunk_max: usize) -> Self {
        let room = chunk_max.saturating_sub(SYMMETRIC_LEN);
        let blocks = room / layout.block_len * layout.block_len;
        let footer = layout.signature_len + usize::from(layout.block_len > 1);
        Self { layout, body_max: blocks.saturating_sub(HEAD_LEN - SYMMETRIC_LEN + footer).max(1) }
    }

    /// Splits a message into up to `lanes` chunks of equal length, so that they are sealed in parallel. Chunks do not
    /// get shorter than [`LANE_LEN_MIN`], and there are at most `count_max` (0: no limit of the peer).
    fn for_lanes(self, body_len: usize, lanes: usize, count_max: u32) -> Self {
        let count_max = if count_max == 0 { usize::MAX } else { count_max as usize };
        let count = lanes.min(body_len / LANE_LEN_MIN).min(count_max).max(1);
        Self { body_max: self.body_max.min(body_len.div_ceil(count).max(1)), ..self }
    }

    /// Bytes of padding after a body of `len`, including its size byte; 0 without padding.
    fn padding_len(&self, len: usize) -> usize {
        if self.layout.block_len == 1 {
            return 0;
        }
        let unpadded = HEAD_LEN - SYMMETRIC_LEN + len + 1 + self.layout.signature_len;
        1 + unpadded.next_multiple_of(self.layout.block_len) - unpadded
    }

    fn chunk_len(&self, body_len: usize) -> usize {
        HEAD_LEN + body_len + self.padding_len(body_len) + self.layout.signature_len
    }
}

impl Channel {
    /// Longest body that the peer accepts as one message, in bytes, by its announced message size and chunk count.
    #[must_use]
    pub fn message_len_max(&self) -> usize {
        let plain = ChunkLayout { signature_len: 0, block_len: 1 };
        let keys = self.tokens.as_ref().and_then(|tokens| tokens.sending_ref().keys.as_ref());
        let cut = Cut::new(keys.map_or(plain, |keys| keys.layout()), self.send_buffer_size as usize);
        let limit = |max: u32, unit: usize| match max {
            0 => usize::MAX,
            max => (max as usize).saturating_mul(unit),
        };
        limit(self.peer_message_size_max, 1).min(limit(self.peer_chunk_count_max, cut.body_max))
    }

    /// Reserves the headers of a message at the end of `out`. Append type id and body, then call [`Channel::finish`].
    /// To drop the message, truncate `out` to [`MessageStart::offset`].
    #[inline]
    pub fn begin(&self, out: &mut Vec<u8>) -> MessageStart {
        let at = out.len();
        out.extend_from_slice(&[0; HEAD_LEN]);
        MessageStart { at }
    }

    /// Completes the message from `start` to the end of `out`: writes the headers, splits it into chunks if it is
    /// longer than the peer's buffer, signs and encrypts in place.
    ///
    /// # Errors
    /// [`LimitHit::PeerLimit`] if the message is larger than the peer accepts: `out` is then truncated to `start`. Send
    /// a fault instead. [`ApiMisuse`] if the channel is not open; `out` is truncated as well. Only
    /// [`ChannelError::Crypto`] and [`PeerFault::TokenExhausted`] end the channel: a server appends what the client may
    /// know, and [`Channel::handle_timeout`], which is due at once, reports the failure to the connection's owner.
    #[inline]
    pub fn finish(
        &mut self,
        start: MessageStart,
        request_id: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        self.finish_as(start, MessageType::Message, request_id, out)
    }

    #[inline]
    pub(crate) fn finish_as(
        &mut self,
        start: MessageStart,
        message_type: MessageType,
        request_id: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        let size = out.len().saturating_sub(start.at);
        if let (State::Open, Some(tokens)) = (self.state, &self.tokens) {
            let token = tokens.sending_ref();
            let fits = size <= self.send_buffer_size as usize
                && (self.peer_message_size_max == 0
                    || size.saturating_sub(HEAD_LEN) <= self.peer_message_size_max as usize);
            if fits && token.keys.is_none() && self.pending.is_none() {
                let token_id = token.id;
                let sequence_number = self.sent.take();
                let head = Head { message_type, is_final: IsFinal::Final, channel_id: self.id, token_id };
                if let Some(gap) = out.get_mut(start.at..start.at + HEAD_LEN) {
                    head.write(gap, size, sequence_number, request_id);
                }
                return Ok(());
            }
        }
        self.finish_general(start, message_type, IsFinal::Final, request_id, out)
    }

    /// Ends a message whose chunks may already have been sent: appends an abort chunk with the reason (Part 6 §6.7.3).
    /// The receiver drops the partial message; the channel stays open.
    ///
    /// # Errors
    /// As [`Channel::finish`].
    pub fn abort(
        &mut self,
        request_id: u32,
        status: StatusCode,
        reason: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        let start = self.begin(out);
        append_error_body(status, reason, out);
        self.finish_general(start, MessageType::Message, IsFinal::Abort, request_id, out)
    }

    /// The path for messages of several chunks and for secured ones.
    fn finish_general(
        &mut self,
        start: MessageStart,
        message_type: MessageType,
        last_flag: IsFinal,
        request_id: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        let result = self.try_finish(start, message_type, last_flag, request_id, out);
        if let Err(error) = &result {
            out.truncate(start.at);
            if matches!(error, ChannelError::Crypto(_) | ChannelError::Peer(PeerFault::TokenExhausted)) {
                // Sequence numbers have been used and cannot be reused.
                self.set_closed();
                self.send_failure = Some(Box::new(error.clone()));
                if let (Role::Server, Some((status, reason))) = (self.role, error.wire()) {
                    append_error(status, reason, out);
                }
            }
        } else if self.is_sealing() {
            self.held.extend_from_slice(out.get(start.at..).unwrap_or_default());
            out.truncate(start.at);
        }
        result
    }

    fn try_finish(
        &mut self,
        start: MessageStart,
        message_type: MessageType,
        last_flag: IsFinal,
        request_id: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        let tokens = match (self.state, &mut self.tokens) {
            (State::Open, Some(tokens)) => tokens,
            (State::Closed, _) => return Err(ApiMisuse::Closed.into()),
            _ => return Err(ApiMisuse::NotOpen.into()),
        };
        let token = tokens.sending();
        let layout =
            token.keys.as_ref().map_or(ChunkLayout { signature_len: 0, block_len: 1 }, |keys| keys.layout());
        let lanes = token.keys.as_ref().map_or(1, |keys| keys.lanes());
        let body_len = out.len().checked_sub(start.body()).ok_or(ApiMisuse::NotOpen)?;
        let cut = Cut::new(layout, self.send_buffer_size as usize);
        let cut = cut.for_lanes(body_len, lanes, self.peer_chunk_count_max);
        let count = body_len.div_ceil(cut.body_max).max(1);
        let over = |len: usize, max: u32| max != 0 && len > max as usize;
        if over(body_len, self.peer_message_size_max) || over(count, self.peer_chunk_count_max) {
            let status = match self.role {
                Role::Server => StatusCode::BAD_RESPONSE_TOO_LARGE,
                Role::Client => StatusCode::BAD_REQUEST_TOO_LARGE,
            };
            return Err(LimitHit::PeerLimit { status }.into());
        }
        if token.keys.is_some() {
            token.count_sent(count)?;
        }
        spread(start, cut, body_len, count, out);
        let full_len = cut.chunk_len(cut.body_max);
        let mut numbers = self.sent;
        for at in 0..count {
            let last = at + 1 == count;
            let chunk_body_len = if last { body_len - at * cut.body_max } else { cut.body_max };
            let chunk_start = start.at + at * full_len;
            let chunk_len = cut.chunk_len(chunk_body_len);
            let Some(chunk) = out.get_mut(chunk_start..chunk_start + chunk_len) else { break };
            let is_final = if last { last_flag } else { IsFinal::Intermediate };
            let head = Head { message_type, is_final, channel_id: self.id, token_id: token.id };
            let sequence_number = self.sent.take();
            head.write(chunk, chunk_len, sequence_number, request_id);
            let padding_len = cut.padding_len(chunk_body_len);
            if let (Some(padding), Ok(byte)) = (
                chunk.get_mut(HEAD_LEN + chunk_body_len..HEAD_LEN + chunk_body_len + padding_len),
                u8::try_from(padding_len.saturating_sub(1)),
            ) {
                padding.fill(byte);
            }
        }
        if let (Some(keys), Some(message)) = (&mut token.keys, out.get_mut(start.at..)) {
            let token_id = token.id;
            let mut nonces = core::iter::repeat_with(|| ChunkNonce {
                token_id,
                last_sequence_number: numbers.take().wrapping_sub(1),
            });
            keys.seal_message(message, full_len, SYMMETRIC_LEN, &mut nonces)?;
        }
        Ok(())
    }
}

/// Moves the parts of a contiguous body apart to make space for headers, padding and signatures. It goes from the last
/// part to the first, so that nothing is overwritten and every byte moves once.
fn spread(start: MessageStart, cut: Cut, body_len: usize, count: usize, out: &mut Vec<u8>) {
    let full_len = cut.chunk_len(cut.body_max);
    let last_body_len = body_len - (count - 1) * cut.body_max;
    out.resize(start.at + (count - 1) * full_len + cut.chunk_len(last_body_len), 0);
    for at in (1..count).rev() {
        let from = start.body() + at * cut.body_max;
        let len = if at + 1 == count { last_body_len } else { cut.body_max };
        out.copy_within(from..from + len, start.at + at * full_len + HEAD_LEN);
    }
}

/// The header fields that are the same in all chunks of a message.
#[derive(Debug, Clone, Copy)]
struct Head {
    message_type: MessageType,
    is_final: IsFinal,
    channel_id: u32,
    token_id: u32,
}

impl Head {
    #[inline]
    fn write(self, chunk: &mut [u8], size: usize, sequence_number: u32, request_id: u32) {
        let Some(gap) = chunk.first_chunk_mut::<HEAD_LEN>() else { return };
        let [a, b, c] = *self.message_type.letters();
        gap[..4].copy_from_slice(&[a, b, c, self.is_final.letter()]);
        // The peer's buffer size is a UInt32, and a chunk is no longer than that.
        gap[4..8].copy_from_slice(&(size as u32).to_le_bytes());
        gap[8..12].copy_from_slice(&self.channel_id.to_le_bytes());
        gap[12..16].copy_from_slice(&self.token_id.to_le_bytes());
        gap[16..20].copy_from_slice(&sequence_number.to_le_bytes());
        gap[20..24].copy_from_slice(&request_id.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_split_into_lanes_of_equal_length() {
        let cut = Cut::new(ChunkLayout { signature_len: 32, block_len: 16 }, 65_536);
        let chunks = |body_len: usize, lanes, count_max| {
            let cut = cut.for_lanes(body_len, lanes, count_max);
            assert!(cut.chunk_len(cut.body_max) <= 65_536);
            body_len.div_ceil(cut.body_max).max(1)
        };
        assert_eq!([0, 1, 2047].map(|len| chunks(len, 4, 0)), [1, 1, 1]);
        assert_eq!(
            [2048, 3071, 3072, 4096, 15_000, 200_000].map(|len| chunks(len, 4, 0)),
            [2, 2, 3, 4, 4, 4]
        );
        // The peer's chunk limit takes precedence. Longer messages are split as without lanes.
        assert_eq!([1, 2, 3].map(|most| chunks(15_000, 4, most)), [1, 2, 3]);
        assert_eq!(chunks(1_000_000, 4, 0), chunks(1_000_000, 1, 0));
        assert_eq!(chunks(15_000, 1, 0), 1);
        let cut = cut.for_lanes(15_001, 4, 0);
        let last = 15_001 - 3 * cut.body_max;
        assert!(cut.body_max - last < 4);
    }

    #[test]
    fn chunks_are_filled_and_never_exceed_the_maximum() {
        for (signature_len, block_len) in [(0, 1), (32, 1), (32, 16), (20, 16), (48, 16), (16, 1)] {
            let layout = ChunkLayout { signature_len, block_len };
            for chunk_max in 8192..8192 + 17 {
                let cut = Cut::new(layout, chunk_max);
                let full = cut.chunk_len(cut.body_max);
                assert!(full <= chunk_max && full + block_len > chunk_max);
                assert!((full - SYMMETRIC_LEN).is_multiple_of(block_len));
                for body_len in [0, 1, 15, 16, 17, 1000] {
                    assert!((cut.chunk_len(body_len) - SYMMETRIC_LEN).is_multiple_of(block_len));
                    assert!(cut.padding_len(body_len) <= block_len);
                }
            }
        }
    }
}
