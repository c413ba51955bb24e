//! Looks whether a link does what was asked for: a link that was not verified is not reported.

use super::emulator::{Conditions, Emulator, Fate};
use super::link::{Link, Method};
use super::profile::{Profile, rate_text, short};
use crate::clock;
use serde::Serialize;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Bytes of the IP and UDP headers.
const HEADERS: usize = 28;
/// Bytes of data in a small datagram.
const SMALL: usize = 32;
/// Bytes of data in a large one.
const LARGE: usize = 1_200;
/// Rates above this are not measured: a user-space sender would measure itself.
const RATE_MAX: f64 = 300e6;

/// How thoroughly to look.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Time for round trips.
    pub round_trips: Duration,
    /// The most round trips.
    pub round_trips_max: usize,
    /// Datagrams for the loss in each direction, if there is any.
    pub datagrams: usize,
    /// Time for the rate of each direction.
    pub rate: Duration,
}

impl Effort {
    /// Enough to see whether a link does what was asked for, before it is measured over.
    pub const BRIEF: Self = Self {
        round_trips: Duration::from_secs(2),
        round_trips_max: 100,
        datagrams: 300,
        rate: Duration::from_millis(400),
    };

    /// How long probing a link takes, roughly, in seconds.
    #[must_use]
    pub fn seconds(&self, profile: &Profile) -> f64 {
        let trip = profile.round_trip(SMALL + HEADERS).max(1e-4);
        let direction = |conditions: &Conditions| {
            let mut spent = 0.0;
            if conditions.loss.share() > 0.0 {
                spent +=
                    self.datagrams as f64 * loss_gap(conditions) as f64 / 1e9 + tail(conditions) as f64 / 1e9;
            }
            if conditions.usable_rate().is_some_and(|rate| rate <= RATE_MAX) {
                // More is sent than gets through, and waits in the queue.
                spent += rate_time(conditions, self.rate) * 1.3 + conditions.delay.mean();
            }
            spent
        };
        self.trips(trip) as f64 * trip + direction(&profile.up) + direction(&profile.down)
    }

    /// How many round trips of so many seconds there is time for.
    fn trips(&self, seconds: f64) -> usize {
        let count = (self.round_trips.as_secs_f64() / seconds) as usize;
        count.clamp(10, self.round_trips_max.max(10))
    }
}

/// Nanoseconds between two datagrams when losses are counted: slow enough that the queue never fills, half the rate.
fn loss_gap(conditions: &Conditions) -> u64 {
    (2 * conditions.line_time(SMALL + HEADERS)).max(200_000)
}

/// Nanoseconds that the last datagram may be on its way: what is still queued, and the longest delay.
fn tail(conditions: &Conditions) -> u64 {
    super::emulator::nanos(conditions.queue)
        + ((conditions.delay.mean() + 8.0 * conditions.delay.std()) * 1e9) as u64
        + 200_000_000
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

/// What was seen of the round trips, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct RoundTrips {
    /// How many were answered.
    pub count: usize,
    /// Mean.
    pub mean_ms: f64,
    /// Standard deviation.
    pub std_ms: f64,
    /// Shortest.
    pub min_ms: f64,
    /// Median.
    pub p50_ms: f64,
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
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            max_ms: at(1.0),
        }
    }
}

/// One direction as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Direction {
    /// Bits of IP packets per second, if the rate is limited.
    pub rate: Option<f64>,
    /// Datagrams sent in order to see the loss.
    pub sent: usize,
    /// How many of them did not arrive.
    pub lost: usize,
}

/// What was asked for and what was seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probed {
    /// How the link was made.
    pub method: Method,
    /// What was asked for.
    pub asked: Profile,
    /// The round trips that the emulator's own model gives for what was asked.
    pub expected: RoundTrips,
    /// The round trips that were seen.
    pub round_trips: RoundTrips,
    /// Client to server.
    pub up: Direction,
    /// Server to client.
    pub down: Direction,
    /// What does not agree. A link with any of them must not be measured over.
    pub deviations: Vec<String>,
}

impl Probed {
    /// Whether the link does what was asked for.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.deviations.is_empty()
    }
}

/// Probes a link.
///
/// # Errors
/// If sockets cannot be opened or nothing at all comes back.
pub fn probe(link: &Link, effort: &Effort) -> io::Result<Probed> {
    let profile = link.profile();
    let far_address: SocketAddr = (link.server_address(), 0).into();
    let open = |address: SocketAddr| -> io::Result<UdpSocket> { UdpSocket::bind(address) };
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

    let patience = Duration::from_secs_f64(profile.round_trip(LARGE) + 12.0 * profile.round_trip_std() + 1.0);
    let (trips, client) = round_trips(&near, &far, patience, profile, effort)?;
    let to_far = |bytes: &[u8]| near.send(bytes);
    let to_near = |bytes: &[u8]| far.send_to(bytes, client);
    let mut probed = Probed {
        method: link.method(),
        asked: profile.clone(),
        expected: expected(profile),
        round_trips: trips,
        up: Direction::default(),
        down: Direction::default(),
        deviations: Vec::new(),
    };
    probed.up = direction(&profile.up, &to_far, &far, effort)?;
    probed.down = direction(&profile.down, &to_near, &near, effort)?;
    probed.deviations = deviations(&probed);
    Ok(probed)
}

/// Ping and pong, one after the other. Also says where the far end sees the near one.
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
            // Late and doubled answers belong to earlier numbers.
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
    Conditions { loss: super::emulator::loss::Loss::None, ..conditions.clone() }
}

/// Rate and loss of one direction.
fn direction(
    conditions: &Conditions,
    send: &(dyn Fn(&[u8]) -> io::Result<usize> + Sync),
    receiver: &UdpSocket,
    effort: &Effort,
) -> io::Result<Direction> {
    let mut seen = Direction::default();
    if conditions.loss.share() > 0.0 {
        let gap = loss_gap(conditions);
        let (_, arrived) = stream(send, receiver, SMALL, gap, effort.datagrams, conditions)?;
        seen.sent = effort.datagrams;
        seen.lost = effort.datagrams.saturating_sub(arrived.len());
    }
    if conditions.usable_rate().is_some_and(|rate| rate <= RATE_MAX) {
        let line = conditions.line_time(LARGE + HEADERS).max(1);
        let gap = line * 10 / 13;
        let count = ((rate_time(conditions, effort.rate) * 1e9) as u64 / gap).max(30) as usize;
        let (_, arrived) = stream(send, receiver, LARGE, gap, count, conditions)?;
        let span = match (arrived.first(), arrived.last()) {
            (Some(first), Some(last)) if last > first => (last - first) as f64 / 1e9,
            _ => return Ok(seen),
        };
        let bits = (arrived.len() - 1) as f64 * (LARGE + HEADERS) as f64 * 8.0;
        seen.rate = Some(bits / span);
    }
    Ok(seen)
}

/// Seconds for which the rate is looked at: long enough that the delays of the first and the last packet do not matter.
fn rate_time(conditions: &Conditions, effort: Duration) -> f64 {
    effort.as_secs_f64().max((20.0 * conditions.delay.std()).min(3.0))
}

/// Sends numbered datagrams, one each `gap` nanoseconds, and notes when each arrived for the first time.
fn stream(
    send: &(dyn Fn(&[u8]) -> io::Result<usize> + Sync),
    receiver: &UdpSocket,
    bytes: usize,
    gap: u64,
    count: usize,
    conditions: &Conditions,
) -> io::Result<(u64, Vec<u64>)> {
    let start = clock::monotonic() + 1_000_000;
    let end = start + gap * count as u64;
    let tail = tail(conditions);
    receiver.set_read_timeout(Some(Duration::from_millis(20)))?;
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut seen = vec![false; count];
            let mut arrived = Vec::with_capacity(count);
            let mut buffer = [0; 2_048];
            while clock::monotonic() < end + tail && arrived.len() < count {
                let Ok(length) = receiver.recv(&mut buffer) else { continue };
                // The start tells these from what an earlier round left on the way.
                let is_ours = length == bytes && buffer.get(8..16) == Some(&start.to_be_bytes()[..]);
                let number = buffer.first_chunk::<8>().map_or(0, |it| u64::from_be_bytes(*it));
                if let Some(mark) = seen.get_mut(number as usize).filter(|mark| is_ours && !**mark) {
                    *mark = true;
                    arrived.push(clock::monotonic());
                }
            }
            arrived
        });
        let mut packet = vec![0; bytes];
        if let Some(place) = packet.get_mut(8..16) {
            place.copy_from_slice(&start.to_be_bytes());
        }
        for number in 0..count as u64 {
            clock::sleep_until(start + number * gap);
            if let Some(place) = packet.get_mut(..8) {
                place.copy_from_slice(&number.to_be_bytes());
            }
            // A full send buffer is the link being slow, which is what is being looked at.
            let _ = send(&packet);
        }
        let arrived = receiving.join().map_err(|_| io::Error::other("the receiver panicked"))?;
        Ok((start, arrived))
    })
}

/// Time that a machine with sleeping cores adds to a round trip through user space.
const WAKING_MS: f64 = 0.6;

fn deviations(probed: &Probed) -> Vec<String> {
    let mut found = Vec::new();
    let (asked, seen) = (&probed.expected, &probed.round_trips);
    // The median of n values has a standard error of 1.25 σ / √n.
    let noise = 4.0 * 1.25 * asked.std_ms / (seen.count.max(1) as f64).sqrt();
    let allowed = 0.1 * asked.p50_ms + noise + WAKING_MS;
    if (seen.p50_ms - asked.p50_ms).abs() > allowed {
        found.push(format!(
            "half of the round trips should take less than {} ms, and it is {} ms (allowed: ± {} ms)",
            short(asked.p50_ms),
            short(seen.p50_ms),
            short(allowed)
        ));
    }
    let ways = [("up", &probed.asked.up, &probed.up), ("down", &probed.asked.down, &probed.down)];
    for (way, conditions, seen) in ways {
        let share = conditions.loss.share();
        if seen.sent > 0 {
            let expected = share * seen.sent as f64;
            // Losses in bursts scatter more, by the length of a burst.
            let burst = match conditions.loss {
                super::emulator::loss::Loss::Bursts { end, .. } => 2.0 / end.max(1e-3),
                _ => 1.0,
            };
            let allowed = 4.0 * (expected * (1.0 - share) * burst).sqrt() + 2.0;
            if (seen.lost as f64 - expected).abs() > allowed {
                found.push(format!(
                    "{way}: {} of {} datagrams should be lost, and {} are (allowed: ± {})",
                    short(expected),
                    seen.sent,
                    seen.lost,
                    short(allowed)
                ));
            }
        }
        let limited = conditions.usable_rate().is_some_and(|rate| rate <= RATE_MAX);
        if limited {
            let bits = (LARGE + HEADERS) as f64 * 8.0;
            let expected = bits / (conditions.line_time(LARGE + HEADERS).max(1) as f64 / 1e9) * (1.0 - share);
            let rate = seen.rate.unwrap_or(0.0);
            let std = conditions.delay.std();
            let tolerance = (0.1 + 3.0 * std / rate_time(conditions, Duration::from_millis(500))).min(0.4);
            if (rate / expected - 1.0).abs() > tolerance {
                found.push(format!(
                    "{way}: {} of IP packets should get through, and it is {} (allowed: ± {} %)",
                    rate_text(Some(expected)),
                    rate_text(Some(rate)),
                    short(tolerance * 100.0)
                ));
            }
        }
    }
    found
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
    fn what_was_asked_is_expected() {
        let expected = expected(&"wan-tokyo".parse().unwrap());
        assert!((expected.mean_ms - 327.8).abs() < 0.5, "{expected:?}");
        assert!((expected.std_ms - 7.79).abs() < 0.3 && expected.min_ms > 295.4);
    }

    fn probed(rate: f64, p50_ms: f64, lost: usize) -> Vec<String> {
        let asked: Profile = "rate=10mbit,delay=10ms,loss=1%".parse().unwrap();
        let round_trips = RoundTrips { count: 100, p50_ms, ..RoundTrips::default() };
        let way = Direction { rate: Some(rate), sent: 1_000, lost };
        let expected = expected(&asked);
        let mut probed = Probed {
            method: Method::Tun,
            asked,
            expected,
            round_trips,
            up: way,
            down: way,
            deviations: Vec::new(),
        };
        probed.deviations = deviations(&probed);
        assert_eq!(probed.is_verified(), probed.deviations.is_empty());
        probed.deviations
    }

    #[test]
    fn deviations_are_found_and_agreement_is_not_one() {
        assert_eq!(probed(9.9e6, 20.3, 12), Vec::<String>::new());
        for (rate, p50, lost, count, hint) in [
            (8e6, 20.3, 12, 2, "get through"),
            (9.9e6, 30.0, 12, 1, "round trips"),
            (9.9e6, 0.1, 12, 1, "round trips"),
            (9.9e6, 20.3, 0, 0, ""),
            (9.9e6, 20.3, 60, 2, "datagrams"),
        ] {
            let found = probed(rate, p50, lost);
            assert_eq!(found.len(), count, "{found:?}");
            assert!(found.iter().all(|it| it.contains(hint)), "{found:?}");
        }
    }

    /// Every way that works on this machine carries packets, and no faster than asked for.
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
            // Without rights or without tc the message says so.
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
