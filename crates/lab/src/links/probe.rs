//! Verifies that a link has the requested properties. Links that fail are not used for measurements.
//!
//! `stream` sends datagrams in one direction; `judge` compares the observations with the emulator's own model.

mod judge;
mod stream;

use super::link::{Link, Method};
use crate::clock;
use serde::Serialize;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use stream::Stream;
use taktwerk_netem::emulator::{Conditions, Emulator, Fate};
use taktwerk_netem::profile::Profile;

/// Bytes of the IP and UDP headers.
const HEADERS: usize = 28;
/// Payload of a small datagram in bytes.
const SMALL: usize = 32;
/// Rates above this are not measured, because the sender in user space would be the bottleneck.
const RATE_MAX: f64 = 300e6;

/// Effort of a probe.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Time for round trips.
    pub round_trips: Duration,
    /// Maximum number of round trips.
    pub round_trips_max: usize,
    /// Datagrams per direction to test loss, duplication and reordering, if the profile has any; up to four times as
    /// many if these are rare.
    pub datagrams: usize,
    /// Time to measure the rate of each direction.
    pub rate: Duration,
}

impl Effort {
    /// Enough to verify a link before a measurement.
    pub const BRIEF: Self = Self {
        round_trips: Duration::from_secs(2),
        round_trips_max: 100,
        datagrams: 300,
        rate: Duration::from_millis(400),
    };

    /// Estimated duration of a probe, in seconds.
    #[must_use]
    pub fn seconds(&self, profile: &Profile) -> f64 {
        let trip = profile.round_trip(SMALL + HEADERS).max(1e-4);
        let direction = |conditions: &Conditions| {
            let mtu = profile.mtu;
            let all = [
                Stream::small(conditions, self),
                Stream::large(conditions, mtu, self),
                Stream::full(conditions, mtu, self),
            ];
            all.into_iter().flatten().map(|stream| stream.seconds(conditions)).sum::<f64>()
        };
        self.trips(trip) as f64 * trip + direction(&profile.up) + direction(&profile.down)
    }

    /// Number of round trips that fit into the time.
    fn trips(&self, seconds: f64) -> usize {
        let count = (self.round_trips.as_secs_f64() / seconds) as usize;
        count.clamp(10, self.round_trips_max.max(10))
    }
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            round_trips: Duration::from_secs(4),
            round_trips_max: 200,
            datagrams: 1_000,
            rate: Duration::from_millis(700),
        }
    }
}

/// Observed round trips, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct RoundTrips {
    /// Number of answers.
    pub count: usize,
    /// Mean.
    pub mean_ms: f64,
    /// Standard deviation.
    pub std_ms: f64,
    /// Shortest.
    pub min_ms: f64,
    /// First quartile.
    pub p25_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// Third quartile.
    pub p75_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// Longest.
    pub max_ms: f64,
}

impl RoundTrips {
    fn of(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        let count = nanos.len();
        if count == 0 {
            return Self::default();
        }
        let ms: Vec<f64> = nanos.iter().map(|it| *it as f64 / 1e6).collect();
        let mean = ms.iter().sum::<f64>() / count as f64;
        let at = |share: f64| ms.get(((count - 1) as f64 * share).round() as usize).copied().unwrap_or(0.0);
        Self {
            count,
            mean_ms: mean,
            std_ms: (ms.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count as f64).sqrt(),
            min_ms: at(0.0),
            p25_ms: at(0.25),
            p50_ms: at(0.5),
            p75_ms: at(0.75),
            p95_ms: at(0.95),
            max_ms: at(1.0),
        }
    }
}

/// One direction, as observed or as modelled by the emulator.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Direction {
    /// Bits of IP packets per second, if the rate is limited.
    pub rate: Option<f64>,
    /// Queueing delay in milliseconds when more is sent than the line takes; `None` if it was not observed.
    pub queue_ms: Option<f64>,
    /// Datagrams sent to test loss, duplication and reordering.
    pub sent: usize,
    /// Datagrams that did not arrive.
    pub lost: usize,
    /// Datagrams that arrived twice.
    pub doubled: usize,
    /// Datagrams that arrived before one that was sent earlier.
    pub overtook: usize,
    /// Datagrams of full size, if the rate was not measured.
    pub whole: Option<Whole>,
}

/// Datagrams of full size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Whole {
    /// Number sent.
    pub sent: usize,
    /// Number arrived.
    pub arrived: usize,
}

/// Requested and observed properties.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probed {
    /// Method of the link.
    pub method: Method,
    /// The requested profile.
    pub asked: Profile,
    /// Round trips that the emulator's model gives for the profile.
    pub expected: RoundTrips,
    /// The same for client to server.
    pub expected_up: Direction,
    /// The same for server to client.
    pub expected_down: Direction,
    /// Observed round trips.
    pub round_trips: RoundTrips,
    /// Client to server.
    pub up: Direction,
    /// Server to client.
    pub down: Direction,
    /// Bytes of the IP packets used to measure rate and queue.
    pub packet_bytes: usize,
    /// Deviations. A link with any of them must not be used for measurements.
    pub deviations: Vec<String>,
    /// Properties that this probe was too short to verify, each with the reason.
    pub not_looked_at: Vec<String>,
}

impl Probed {
    /// Whether the link has the requested properties.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.deviations.is_empty()
    }
}

/// Probes a link.
///
/// # Errors
/// If sockets cannot be opened, or no datagram comes back.
pub fn probe(link: &Link, effort: &Effort) -> io::Result<Probed> {
    let profile = link.profile();
    let far_address: SocketAddr = (link.server_address(), 0).into();
    let open = |address: SocketAddr| -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind(address)?;
        stream::enlarge(&socket, profile);
        Ok(socket)
    };
    let far = match link.server_place() {
        Some(place) => place.inside(|| open(far_address))??,
        None => open(far_address)?,
    };
    let target = link.reach_udp(far.local_addr()?)?;
    let any: SocketAddr = (std::net::Ipv4Addr::UNSPECIFIED, 0).into();
    let near = match link.client_place() {
        Some(place) => place.inside(|| open(any))??,
        None => open(any)?,
    };
    near.connect(target)?;

    let far_trip = profile.round_trip(usize::from(profile.mtu));
    let patience = Duration::from_secs_f64(far_trip + 12.0 * profile.round_trip_std() + 1.0);
    let (round_trips, client) = round_trips(&near, &far, patience, profile, effort)?;
    let to_far = |bytes: &[u8]| near.send(bytes);
    let to_near = |bytes: &[u8]| far.send_to(bytes, client);
    let (mtu, ways) = (profile.mtu, [&profile.up, &profile.down]);
    let [expected_up, expected_down] = ways.map(|conditions| stream::modelled(conditions, mtu, effort));
    let mut probed = Probed {
        method: link.method(),
        asked: profile.clone(),
        expected: expected(profile),
        expected_up,
        expected_down,
        round_trips,
        up: stream::seen(&profile.up, mtu, &to_far, &far, effort)?,
        down: stream::seen(&profile.down, mtu, &to_near, &near, effort)?,
        packet_bytes: usize::from(mtu),
        deviations: Vec::new(),
        not_looked_at: Vec::new(),
    };
    (probed.deviations, probed.not_looked_at) = judge::judge(&probed);
    Ok(probed)
}

/// Measures round trips one after the other. Also returns the address at which the far end sees the near end.
fn round_trips(
    near: &UdpSocket,
    far: &UdpSocket,
    patience: Duration,
    profile: &Profile,
    effort: &Effort,
) -> io::Result<(RoundTrips, SocketAddr)> {
    let stop = AtomicBool::new(false);
    far.set_read_timeout(Some(Duration::from_millis(50)))?;
    near.set_read_timeout(Some(patience.min(Duration::from_secs(5))))?;
    let count = effort.trips(profile.round_trip(SMALL + HEADERS).max(1e-4));
    thread::scope(|scope| {
        let echo = scope.spawn(|| {
            let mut buffer = [0; 2_048];
            let mut client = None;
            while !stop.load(Ordering::Relaxed) {
                if let Ok((count, from)) = far.recv_from(&mut buffer) {
                    client = Some(from);
                    let _ = far.send_to(buffer.get(..count).unwrap_or_default(), from);
                }
            }
            client
        });
        let mut trips = Vec::with_capacity(count);
        let mut silent = 0;
        let mut buffer = [0; 2_048];
        let mut number = 0u64;
        while trips.len() < count && silent < 10 {
            number += 1;
            let mut ping = [0; SMALL];
            ping[..8].copy_from_slice(&number.to_be_bytes());
            let start = clock::monotonic();
            near.send(&ping)?;
            // Late and duplicated answers belong to earlier numbers.
            let answered = loop {
                match near.recv(&mut buffer) {
                    Ok(_) if buffer.get(..8) == Some(&number.to_be_bytes()[..]) => break true,
                    Ok(_) => {}
                    Err(_) => break false,
                }
            };
            if answered {
                trips.push(clock::monotonic() - start);
            } else {
                silent += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let client = echo.join().ok().flatten();
        let client = client
            .filter(|_| !trips.is_empty())
            .ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "nothing comes back over the link"))?;
        Ok((RoundTrips::of(trips), client))
    })
}

/// The same round trips in virtual time.
fn expected(profile: &Profile) -> RoundTrips {
    const COUNT: usize = 20_000;
    let mut up = Emulator::new(lossless(&profile.up), 1);
    let mut down = Emulator::new(lossless(&profile.down), 2);
    let mut now = 1;
    let mut trips = Vec::with_capacity(COUNT);
    for _ in 0..COUNT {
        let start = now;
        for way in [&mut up, &mut down] {
            if let Fate::Arrives(at) = way.send(now, SMALL + HEADERS, ()) {
                now = now.max(at);
            }
            while way.receive(now).is_some() {}
        }
        trips.push(now - start);
        now += 1_000_000;
    }
    RoundTrips::of(trips)
}

fn lossless(conditions: &Conditions) -> Conditions {
    Conditions { loss: taktwerk_netem::emulator::loss::Loss::None, ..conditions.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Effort = Effort {
        round_trips: Duration::from_millis(500),
        round_trips_max: 20,
        datagrams: 300,
        rate: Duration::from_millis(150),
    };

    #[test]
    fn the_model_gives_the_requested_properties() {
        let expected = expected(&"wan-tokyo".parse().unwrap());
        assert!((expected.mean_ms - 327.8).abs() < 0.5, "{expected:?}");
        assert!((expected.std_ms - 7.79).abs() < 0.3 && expected.min_ms > 295.4);
    }

    /// Every method that works on this machine carries packets, and not faster than requested.
    #[test]
    fn links_carry_and_delay() {
        let profile: Profile = "rate=5mbit,delay=8ms,loss=10%".parse().unwrap();
        let mut worked = 0;
        for method in [Method::Tun, Method::Proxy] {
            let link = match Link::by(method, &profile, 5) {
                Ok(link) => link,
                Err(error) => {
                    assert!(method == Method::Tun && !error.to_string().is_empty());
                    continue;
                }
            };
            let probed = probe(&link, &QUICK).unwrap();
            assert!(probed.round_trips.min_ms >= 16.0, "{probed:?}");
            for way in [probed.up, probed.down] {
                assert!((5..90).contains(&way.lost), "{probed:?}");
                assert!(way.rate.is_some_and(|rate| rate > 0.0 && rate < 5.6e6), "{probed:?}");
            }
            let [up, down] = link.counters();
            assert!(up.lost > 0 && down.lost > 0 && up.bytes > 10_000);
            worked += 1;
        }
        assert!(worked >= 1);
    }

    #[test]
    fn the_kernel_alone_keeps_a_rate() {
        let profile: Profile = "rate=50mbit".parse().unwrap();
        let link = match Link::by(Method::Kernel, &profile, 5) {
            Ok(link) => link,
            // Without rights or `tc`, the message says so.
            Err(error) => {
                assert!(error.to_string().contains("kernel"), "{error}");
                return;
            }
        };
        let probed = probe(&link, &QUICK).unwrap();
        assert!(probed.up.rate.is_some_and(|rate| rate > 1e5 && rate < 56e6), "{probed:?}");
        assert!(probed.down.rate.is_some_and(|rate| rate > 1e5 && rate < 56e6), "{probed:?}");
        assert!(link.counters()[0].packets > 20);
    }
}
