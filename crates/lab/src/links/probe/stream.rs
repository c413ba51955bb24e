//! Streams of datagrams in one direction, on the link and in the emulator's model: loss, duplication, reordering, rate
//! and queueing delay.

use super::{Direction, Effort, HEADERS, RATE_MAX, SMALL, Whole};
use crate::clock;
use crate::links::driver;
use std::collections::BTreeSet;
use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;
use taktwerk_netem::emulator::delay::Delay;
use taktwerk_netem::emulator::loss::Loss;
use taktwerk_netem::emulator::{Conditions, Emulator, nanos};
use taktwerk_netem::profile::Profile;

/// Expected number of rare events that a stream must contain, so that their absence is significant.
const EXPECTED_MIN: f64 = 24.0;
/// Maximum load of the line, as a multiple of its rate.
const OVERLOAD_MAX: f64 = 4.0;
/// Datagrams that the model sends to estimate rare events; enough to make its own randomness negligible.
const MODELLED: usize = 20_000;

/// Datagrams of equal size, sent at a fixed gap in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stream {
    /// Payload of each datagram in bytes.
    bytes: usize,
    gap: u64,
    count: usize,
}

/// A datagram that has arrived: its number, and when it was sent and received.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Arrival {
    number: u64,
    sent: u64,
    at: u64,
}

/// Maximum transit time without queueing, in nanoseconds.
fn quiet(conditions: &Conditions) -> u64 {
    ((conditions.delay.mean() + 8.0 * conditions.delay.std()) * 1e9) as u64 + 200_000_000
}

impl Stream {
    /// Small datagrams to observe loss, duplication and reordering, if the profile has any. Half the rate, so that the
    /// queue never fills.
    pub(super) fn small(conditions: &Conditions, effort: &Effort) -> Option<Self> {
        let shares = [conditions.loss.share(), conditions.reorder, conditions.duplicate];
        let rarest = shares.into_iter().filter(|share| *share > 0.0).reduce(f64::min)?;
        let wanted = (EXPECTED_MIN / rarest).ceil() as usize;
        let gap = (2 * conditions.line_time(SMALL + HEADERS)).max(200_000);
        Some(Self { bytes: SMALL, gap, count: wanted.clamp(effort.datagrams, 4 * effort.datagrams) })
    }

    /// Datagrams of full size at more than the rate, if the rate is limited. The queue is full after half of the time,
    /// unless that takes more than four times the rate.
    pub(super) fn large(conditions: &Conditions, mtu: u16, effort: &Effort) -> Option<Self> {
        conditions.usable_rate().filter(|rate| *rate <= RATE_MAX)?;
        // Long enough that the delays of the first and the last packet do not matter.
        let seconds = effort.rate.as_secs_f64().max((20.0 * conditions.delay.std()).min(3.0));
        let overload = (1.0 + 2.0 * conditions.queue.as_secs_f64() / seconds).clamp(1.3, OVERLOAD_MAX);
        let bytes = usize::from(mtu).saturating_sub(HEADERS);
        let line = conditions.line_time(bytes + HEADERS).max(1);
        let gap = ((line as f64 / overload) as u64).max(1);
        Some(Self { bytes, gap, count: ((seconds * 1e9) as u64 / gap).max(40) as usize })
    }

    /// A few datagrams of full size, if the rate is not measured, to check that the link carries them.
    pub(super) fn full(conditions: &Conditions, mtu: u16, effort: &Effort) -> Option<Self> {
        const COUNT: usize = 20;
        if Self::large(conditions, mtu, effort).is_some() {
            return None;
        }
        let bytes = usize::from(mtu).saturating_sub(HEADERS);
        Some(Self { bytes, gap: 2 * conditions.line_time(bytes + HEADERS) + 1_000_000, count: COUNT })
    }

    /// Estimated duration of sending and waiting for the last datagram, in seconds.
    pub(super) fn seconds(&self, conditions: &Conditions) -> f64 {
        let sending = self.gap as f64 * self.count as f64 / 1e9;
        let offered = self.count as u64 * conditions.line_time(self.bytes + HEADERS);
        let waiting = (offered as f64 / 1e9 - sending).clamp(0.0, conditions.queue.as_secs_f64());
        sending + waiting + quiet(conditions) as f64 / 1e9
    }

    /// The arrivals if the emulator alone carries the stream.
    fn modelled(&self, conditions: &Conditions) -> Vec<Arrival> {
        let mut way = Emulator::new(conditions.clone(), 3);
        for number in 0..self.count as u64 {
            let sent = 1 + number * self.gap;
            way.send(sent, self.bytes + HEADERS, (number, sent));
        }
        let mut arrived = Vec::with_capacity(self.count);
        while let Some(at) = way.next_arrival() {
            arrived.extend(way.receive(at).map(|(number, sent)| Arrival { number, sent, at }));
        }
        arrived
    }

    /// Sends the stream and records the arrivals.
    fn carried(
        &self,
        send: &(dyn Fn(&[u8]) -> io::Result<usize> + Sync),
        receiver: &UdpSocket,
        conditions: &Conditions,
    ) -> io::Result<Vec<Arrival>> {
        let start = clock::monotonic() + 1_000_000;
        let end = start + self.gap * self.count as u64;
        let quiet = quiet(conditions);
        let latest = end + quiet + nanos(conditions.queue);
        receiver.set_read_timeout(Some(Duration::from_millis(20)))?;
        thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let mut seen = vec![false; self.count];
                let mut arrived = Vec::with_capacity(self.count);
                let mut buffer = vec![0; self.bytes + 1];
                let (mut missing, mut last) = (self.count, end);
                while missing > 0 && clock::monotonic() < latest.min(last.max(end) + quiet) {
                    let Ok(length) = receiver.recv(&mut buffer) else { continue };
                    let word = |at: usize| {
                        let bytes = buffer.get(at..at + 8).and_then(|bytes| bytes.first_chunk::<8>());
                        bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
                    };
                    // The start time distinguishes these datagrams from those of an earlier round.
                    if length != self.bytes || word(8) != start {
                        continue;
                    }
                    let arrival = Arrival { number: word(0), sent: word(16), at: clock::monotonic() };
                    let Some(mark) = seen.get_mut(arrival.number as usize) else { continue };
                    missing -= usize::from(!*mark);
                    *mark = true;
                    last = arrival.at;
                    arrived.push(arrival);
                }
                arrived
            });
            let mut packet = vec![0; self.bytes];
            for number in 0..self.count as u64 {
                clock::sleep_until(start + number * self.gap);
                let words = [number, start, clock::monotonic()];
                for (place, word) in packet.chunks_exact_mut(8).zip(words) {
                    place.copy_from_slice(&word.to_be_bytes());
                }
                // A full send buffer means that the link is slow, which is what the probe measures.
                let _ = send(&packet);
            }
            receiving.join().map_err(|_| io::Error::other("the receiver panicked"))
        })
    }

    /// Counts lost, duplicated and reordered datagrams.
    fn count(&self, arrived: &[Arrival], seen: &mut Direction) {
        let mut times = vec![0usize; self.count];
        for arrival in arrived {
            if let Some(times) = times.get_mut(arrival.number as usize) {
                *times += 1;
            }
        }
        let mut earliest = u64::MAX;
        for arrival in arrived.iter().rev() {
            seen.overtook += usize::from(arrival.number > earliest);
            earliest = earliest.min(arrival.number);
        }
        seen.sent = self.count;
        seen.lost = times.iter().filter(|times| **times == 0).count();
        seen.doubled = times.iter().filter(|times| **times > 1).count();
    }

    /// Counts the arrived datagrams.
    fn whole(&self, arrived: &[Arrival]) -> Whole {
        let numbers: BTreeSet<u64> = arrived.iter().map(|arrival| arrival.number).collect();
        Whole { sent: self.count, arrived: numbers.len() }
    }

    /// From large datagrams: the rate, and the queueing delay of the last ones, if enough were sent to fill the queue.
    fn weigh(&self, arrived: &[Arrival], conditions: &Conditions, seen: &mut Direction) {
        let (Some(first), Some(last)) = (arrived.first(), arrived.last()) else { return };
        if last.at <= first.at {
            return;
        }
        let bits = (arrived.len() - 1) as f64 * (self.bytes + HEADERS) as f64 * 8.0;
        seen.rate = Some(bits / ((last.at - first.at) as f64 / 1e9));
        let line = conditions.line_time(self.bytes + HEADERS) as f64;
        let is_late = |arrival: &&Arrival| arrival.number >= self.count as u64 * 3 / 4;
        let Some(from) = arrived.iter().find(is_late) else { return };
        // As sent, not as scheduled: a busy machine sends later.
        let offered = from.number as f64 * line - from.sent.saturating_sub(first.sent) as f64;
        if offered < nanos(conditions.queue) as f64 * 1.1 {
            return;
        }
        let mut waits: Vec<u64> =
            arrived.iter().filter(is_late).map(|one| one.at.saturating_sub(one.sent)).collect();
        waits.sort_unstable();
        let middle = waits.get(waits.len() / 2).copied().unwrap_or(0) as f64;
        seen.queue_ms = Some((middle - line - conditions.delay.mean() * 1e9).max(0.0) / 1e6);
    }
}

/// Observes one direction.
pub(super) fn seen(
    conditions: &Conditions,
    mtu: u16,
    send: &(dyn Fn(&[u8]) -> io::Result<usize> + Sync),
    receiver: &UdpSocket,
    effort: &Effort,
) -> io::Result<Direction> {
    let mut seen = Direction::default();
    if let Some(stream) = Stream::small(conditions, effort) {
        stream.count(&stream.carried(send, receiver, conditions)?, &mut seen);
    }
    if let Some(stream) = Stream::large(conditions, mtu, effort) {
        stream.weigh(&stream.carried(send, receiver, conditions)?, conditions, &mut seen);
    }
    if let Some(stream) = Stream::full(conditions, mtu, effort) {
        seen.whole = Some(stream.whole(&stream.carried(send, receiver, conditions)?));
    }
    Ok(seen)
}

/// Models one direction.
pub(super) fn modelled(conditions: &Conditions, mtu: u16, effort: &Effort) -> Direction {
    let mut expected = Direction::default();
    let lossless = Conditions { loss: Loss::None, ..conditions.clone() };
    if let Some(stream) = Stream::small(conditions, effort) {
        let mut many = Direction::default();
        let long = Stream { count: MODELLED, ..stream };
        long.count(&long.modelled(&lossless), &mut many);
        // Known shares are computed, not drawn.
        let sent = stream.count as f64;
        let arrive = 1.0 - conditions.loss.share();
        expected.sent = stream.count;
        expected.lost = (sent * conditions.loss.share()).round() as usize;
        expected.doubled = (sent * arrive * conditions.duplicate).round() as usize;
        expected.overtook = (sent * arrive * many.overtook as f64 / MODELLED as f64).round() as usize;
    }
    if let Some(stream) = Stream::large(conditions, mtu, effort) {
        let delay = Delay::constant(Duration::from_secs_f64(conditions.delay.mean()));
        let even = Conditions { delay, reorder: 0.0, duplicate: 0.0, ..lossless };
        stream.weigh(&stream.modelled(&even), &even, &mut expected);
        expected.rate = expected.rate.map(|rate| rate * (1.0 - conditions.loss.share()));
    }
    if let Some(stream) = Stream::full(conditions, mtu, effort) {
        let arrived = (stream.count as f64 * (1.0 - conditions.loss.share())).round() as usize;
        expected.whole = Some(Whole { sent: stream.count, arrived });
    }
    expected
}

/// Enlarges socket buffers to hold the queue. Sent packets count against the socket until they are on the line, and a
/// blocked sender cannot fill a queue.
pub(super) fn enlarge(socket: &UdpSocket, profile: &Profile) {
    let waiting = |conditions: &Conditions| {
        let rate = conditions.usable_rate().filter(|rate| *rate <= RATE_MAX).unwrap_or(0.0);
        rate / 8.0 * conditions.queue.as_secs_f64()
    };
    // The kernel's accounting per packet is larger than the packet.
    let most = waiting(&profile.up).max(waiting(&profile.down)) * 3.0;
    let bytes = (most as usize).clamp(1 << 18, 1 << 26);
    driver::enlarge(socket, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(text: &str) -> Conditions {
        text.parse::<Profile>().unwrap().up
    }

    #[test]
    fn the_model_has_the_requested_properties() {
        let seen = modelled(&conditions("rate=10mbit,delay=20ms,loss=2%"), 1500, &Effort::default());
        assert_eq!((seen.sent, seen.lost, seen.doubled, seen.overtook), (1_200, 24, 0, 0));
        assert!((seen.rate.unwrap() / 9.8e6 - 1.0).abs() < 0.01, "{seen:?}");
        assert!((seen.queue_ms.unwrap() - 200.0).abs() < 2.0, "{seen:?}");
        let seen = modelled(&conditions("delay=20ms,reorder=5%,duplicate=3%"), 1500, &Effort::default());
        assert_eq!((seen.rate, seen.queue_ms, seen.lost, seen.doubled), (None, None, 0, 30));
        assert!((40..=55).contains(&seen.overtook), "{seen:?}");
        // Without other packets in flight, nothing can be reordered.
        assert_eq!(modelled(&conditions("reorder=5%"), 1500, &Effort::default()).overtook, 0);
    }

    #[test]
    fn queues_of_named_lines_are_filled_but_not_a_queue_of_a_minute() {
        for name in taktwerk_netem::profile::NAMES {
            let profile: Profile = name.parse().unwrap();
            for effort in [Effort::BRIEF, Effort::default()] {
                let queue = profile.up.queue.as_secs_f64() * 1e3;
                let seen = modelled(&profile.up, profile.mtu, &effort).queue_ms.unwrap();
                assert!((seen / queue - 1.0).abs() < 0.05, "{name}: {seen} of {queue} ms");
            }
        }
        let long = conditions("rate=2mbit,queue=60s");
        assert_eq!(modelled(&long, 1500, &Effort::default()).queue_ms, None);
    }

    #[test]
    fn rare_events_take_longer_streams() {
        let count = |text: &str| Stream::small(&conditions(text), &Effort::BRIEF).map(|it| it.count);
        assert_eq!(count("rate=1mbit"), None);
        assert_eq!(count("loss=10%"), Some(300));
        assert_eq!(count("loss=10%,duplicate=4%"), Some(600));
        assert_eq!(count("loss=0.01%"), Some(1_200));
    }

    #[test]
    fn arrivals_are_counted() {
        let stream = Stream { bytes: SMALL, gap: 1_000, count: 6 };
        let arrive = |numbers: &[u64]| {
            let arrived: Vec<Arrival> =
                numbers.iter().map(|number| Arrival { number: *number, sent: 0, at: 1 }).collect();
            let mut seen = Direction::default();
            stream.count(&arrived, &mut seen);
            (seen.lost, seen.doubled, seen.overtook)
        };
        assert_eq!(arrive(&[0, 1, 2, 3, 4, 5]), (0, 0, 0));
        assert_eq!(arrive(&[0, 3, 3, 1, 2, 5]), (1, 1, 2), "both copies of 3 come before 1");
        assert_eq!(arrive(&[]), (6, 0, 0));
    }

    #[test]
    fn the_queue_is_unknown_if_the_sender_was_too_slow() {
        let conditions = conditions("rate=8mbit,queue=10ms");
        let stream = Stream { bytes: 1_472, gap: 750_000, count: 100 };
        let mut seen = Direction::default();
        stream.weigh(&stream.modelled(&conditions), &conditions, &mut seen);
        assert!((seen.queue_ms.unwrap() - 10.0).abs() < 2.0, "{seen:?}");
        // As slow as the line.
        let slow = Stream { gap: 1_500_000, ..stream };
        let mut seen = Direction::default();
        slow.weigh(&slow.modelled(&conditions), &conditions, &mut seen);
        assert_eq!(seen.queue_ms, None);
        assert!(seen.rate.is_some());
    }
}
