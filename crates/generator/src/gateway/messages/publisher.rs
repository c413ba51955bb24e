//! A publisher on its own thread.

use super::payload;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use taktwerk_lab::mqtt::{Qos, Version, packet};
use taktwerk_load::clock;

/// Interval between bursts of messages, in nanoseconds.
const TICK: u64 = 1_000_000;
/// Maximum number of messages per burst.
const BURST: u64 = 500;
/// Timeout for the broker to accept the connection or bytes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Publishing rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// No messages.
    Pause,
    /// This many messages per second.
    Rate(u32),
    /// As fast as the broker takes them.
    All,
}

/// State shared with the thread.
#[derive(Debug)]
struct Shared {
    pace: AtomicU64,
    sent: AtomicU64,
    is_lost: AtomicBool,
    ends: AtomicBool,
}

/// Publishes until it is dropped.
#[derive(Debug)]
pub(super) struct Publisher(Arc<Shared>);

/// Value for the maximum rate.
const ALL: u64 = u64::MAX;

impl Publisher {
    /// Connects; initially paused.
    pub(super) fn start(broker: SocketAddr, topics: u32) -> io::Result<Self> {
        let stream = connect(broker)?;
        let shared = Arc::new(Shared {
            pace: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            ends: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        thread::Builder::new().name("publisher".to_owned()).spawn(move || {
            if publish(stream, topics, &of_thread).is_err() {
                of_thread.is_lost.store(true, Ordering::Relaxed);
            }
        })?;
        Ok(Self(shared))
    }

    /// Sets the rate.
    pub(super) fn pace(&self, pace: Pace) {
        let number = match pace {
            Pace::Pause => 0,
            Pace::Rate(rate) => rate.into(),
            Pace::All => ALL,
        };
        self.0.pace.store(number, Ordering::Relaxed);
    }

    /// Number of messages written to the broker's connection.
    pub(super) fn sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// Whether it is still publishing.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.0.is_lost.load(Ordering::Relaxed) {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the publisher's connection is lost",
            ));
        }
        Ok(())
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.0.ends.store(true, Ordering::Relaxed);
    }
}

fn connect(broker: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&broker, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut out = Vec::new();
    packet::connect(&mut out, Version::V311, &format!("tw-publisher-{}", std::process::id()));
    stream.write_all(&out)?;
    // CONNACK: its last byte is the return code (MQTT 3.1.1 §3.2).
    let mut answer = [0u8; 4];
    stream.read_exact(&mut answer)?;
    if answer[0] != 0x20 || answer[3] != 0 {
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "the broker refused the publisher"));
    }
    Ok(stream)
}

fn publish(mut stream: TcpStream, topics: u32, shared: &Shared) -> io::Result<()> {
    let topics: Vec<_> = (0..topics).map(payload::topic).collect();
    let mut turn = topics.iter().cycle();
    let mut out = Vec::new();
    let (mut pace, mut begun, mut done) = (0, 0, 0u64);
    while !shared.ends.load(Ordering::Relaxed) {
        let now = clock::monotonic();
        let wanted = shared.pace.load(Ordering::Relaxed);
        if wanted != pace {
            (pace, begun, done) = (wanted, now, 0);
        }
        let count = if pace == ALL {
            BURST
        } else {
            let due = u128::from(now - begun) * u128::from(pace) / 1_000_000_000;
            u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(done).min(BURST)
        };
        if count == 0 {
            clock::sleep_until(now + TICK);
            continue;
        }
        out.clear();
        let message = payload::message(now);
        for topic in turn.by_ref().take(usize::try_from(count).unwrap_or(usize::MAX)) {
            packet::publish(&mut out, Version::V311, topic, message.as_bytes(), Qos::AtMostOnce, 0);
        }
        stream.write_all(&out)?;
        done += count;
        shared.sent.fetch_add(count, Ordering::Relaxed);
    }
    Ok(())
}
