//! Negotiated properties of a connection, and socket options.

use std::time::Duration;

/// Congestion control algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// RFC 5681: halves the window after a loss, and adds one segment per round trip.
    Reno,
    /// RFC 9438, the default of Linux, Windows and macOS.
    #[default]
    Cubic,
}

/// Settings of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Maximum payload of a segment in bytes.
    pub mss: usize,
    /// Size of the send buffer in bytes, which holds data until it is acknowledged. Writes beyond it are partial.
    pub send_buffer: usize,
    /// Size of the receive buffer in bytes, which holds data until it is read. Beyond it, the peer pauses.
    pub receive_buffer: usize,
    /// Initial congestion window, in segments.
    pub initial_window: u32,
    /// Congestion control algorithm.
    pub algorithm: Algorithm,
    /// Delays small segments while data is in flight (Nagle's algorithm; false is TCP_NODELAY).
    pub nagle: bool,
    /// Maximum delay of an acknowledgement; zero acknowledges every segment at once.
    pub delayed_ack: Duration,
    /// Minimum addition to the round trip in the retransmission timer (Linux: TCP_RTO_MIN).
    pub rto_min: Duration,
    /// Maximum retransmission timeout (Linux: TCP_RTO_MAX).
    pub rto_max: Duration,
    /// First retransmission timeout of a handshake (Linux: TCP_TIMEOUT_INIT).
    pub rto_initial: Duration,
    /// The connection ends after this time without an acknowledgement.
    pub give_up: Duration,
    /// Sends a probe before the retransmission timer expires (RFC 8985 §7).
    pub tail_loss_probe: bool,
}

impl Config {
    /// Settings of Linux with TCP_NODELAY, for packets of at most `mtu` bytes; timestamps take 12 bytes.
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
