//! What the ends of a connection agree on, and the socket options.

use std::time::Duration;

/// How the congestion window grows and shrinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// RFC 5681: half after a loss, one segment more per round trip.
    Reno,
    /// RFC 9438, the default of Linux, Windows and macOS.
    #[default]
    Cubic,
}

/// Settings of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Most bytes of the stream in one segment.
    pub mss: usize,
    /// Bytes that the socket holds until they are acknowledged; beyond, a write takes only a part.
    pub send_buffer: usize,
    /// Bytes that the socket holds until they are read; beyond, the peer pauses.
    pub receive_buffer: usize,
    /// Congestion window at the start, in segments.
    pub initial_window: u32,
    /// How the congestion window grows and shrinks.
    pub algorithm: Algorithm,
    /// Waits with a small segment while another one is under way (Nagle; off is TCP_NODELAY).
    pub nagle: bool,
    /// How long an acknowledgement waits for company; zero acknowledges every segment at once.
    pub delayed_ack: Duration,
    /// Least addition to the round trip in the retransmission timer (Linux: TCP_RTO_MIN).
    pub rto_min: Duration,
    /// Longest retransmission timer (Linux: TCP_RTO_MAX).
    pub rto_max: Duration,
    /// First retransmission timer of a handshake (Linux: TCP_TIMEOUT_INIT).
    pub rto_initial: Duration,
    /// Without an acknowledgement for so long the connection is given up.
    pub give_up: Duration,
    /// Sends a probe before the retransmission timer runs out (RFC 8985 §7).
    pub tail_loss_probe: bool,
}

impl Config {
    /// As on Linux with TCP_NODELAY, for packets of at most `mtu` bytes: timestamps take 12 bytes.
    #[must_use]
    pub const fn linux(mtu: u16) -> Self {
        let headers = Self::HEADERS as u16;
        Self {
            mss: if mtu > headers { (mtu - headers) as usize } else { 1 },
            send_buffer: 256 << 10,
            receive_buffer: 128 << 10,
            initial_window: 10,
            algorithm: Algorithm::Cubic,
            nagle: false,
            delayed_ack: Duration::from_millis(40),
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_secs(120),
            rto_initial: Duration::from_secs(1),
            give_up: Duration::from_secs(120),
            tail_loss_probe: true,
        }
    }

    /// Bytes of the IPv4 and TCP headers with timestamps (RFC 7323).
    pub const HEADERS: usize = 52;
}
