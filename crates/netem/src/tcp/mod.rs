//! TCP as a pure state machine: segments and time in, segments and deadlines out.
//!
//! An [`Endpoint`] is one end of a connection. It tracks the number of bytes and which of them have arrived, not their
//! content, which the caller stores. Times are nanoseconds of one clock. Sequence numbers count the bytes of the stream
//! from zero and never wrap; the end of the stream takes one number, the SYN none.
//!
//! # What is modelled
//! Three-way handshake with retransmission; segmentation; receive window with persist timer and silly window avoidance
//! (RFC 9293); initial window of ten segments (RFC 6928), slow start with HyStart, congestion avoidance by Reno (RFC
//! 5681) or CUBIC (RFC 9438); selective acknowledgements (RFC 2018), time-based loss detection (RACK, RFC 8985) with
//! tail loss probes, proportional rate reduction (RFC 6937); the retransmission timer (RFC 6298) with the limits of
//! Linux; delayed acknowledgements with the quick phase and the interactive mode of Linux; Nagle's algorithm if
//! enabled; the window after idle time (RFC 2861); orderly and abortive closing; a timeout for connections without
//! answers.
//!
//! # What is not modelled
//! Undoing a reduction after a spurious retransmission (Eifel, F-RTO, DSACK), pacing, ECN, automatic buffer tuning,
//! TIME-WAIT, keep-alive probes, urgent data, wrapping sequence numbers, offloads of network cards.

mod config;
mod congestion;
mod endpoint;
mod exchange;
mod receiver;
mod rtt;
mod sender;

pub use config::{Algorithm, Config};
pub use endpoint::{Endpoint, Event};
pub use exchange::{Exchange, ExchangeError, Exchanged, exchange};

/// Maximum number of selective acknowledgement blocks in a segment with timestamps.
pub const SACK_MAX: usize = 3;

/// A segment on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// Opens the connection.
    pub syn: bool,
    /// Carries an acknowledgement.
    pub ack: bool,
    /// The stream ends after this segment.
    pub fin: bool,
    /// The connection is aborted.
    pub rst: bool,
    /// The sender had nothing more to send. Without data: a window probe.
    pub push: bool,
    /// Offset of the first byte in the sender's stream.
    pub sequence: u64,
    /// Bytes of the stream.
    pub len: usize,
    /// Everything before this offset has arrived.
    pub acknowledged: u64,
    /// Bytes before this offset fit into the receive buffer.
    pub window_end: u64,
    /// Received ranges beyond a gap.
    pub sack: [Option<(u64, u64)>; SACK_MAX],
}

impl Segment {
    /// Bytes of the IP packet, if TCP and IP headers without selective acknowledgements take `headers`.
    #[must_use]
    pub fn packet_len(&self, headers: usize) -> usize {
        let blocks = self.sack.iter().flatten().count();
        // Kind, length and two bytes of padding (RFC 2018 §3); MSS, window scale and SACK-permitted in a SYN.
        let options = if blocks > 0 { 4 + 8 * blocks } else { 8 * usize::from(self.syn) };
        headers + options + self.len
    }

    /// The offset after the segment, including the end of the stream.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.sequence + self.len as u64 + u64::from(self.fin)
    }

    /// Whether it only acknowledges data.
    #[must_use]
    pub fn is_pure_ack(&self) -> bool {
        self.len == 0 && !self.syn && !self.fin && !self.rst
    }
}

#[cfg(test)]
mod tests;
