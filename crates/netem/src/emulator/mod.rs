//! One direction of a link as a state machine: packets and time in, packets and deadlines out.
//!
//! There is no clock and no socket, so that drivers, simulations and tests run the same code. In order:
//!
//! 1. [`loss`] drops packets;
//! 2. the line sends packets one after the other at its rate; waiting packets are in a queue with a limit;
//! 3. [`delay`] delays each packet; packets stay in order, except those chosen for reordering;
//! 4. some packets arrive twice.

pub mod delay;
pub mod loss;
pub mod random;

use delay::Delay;
use loss::{Losing, Loss};
use random::Random;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Properties of one direction of a link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conditions {
    /// Bits per second; `None` for unlimited.
    pub rate: Option<u64>,
    /// Share of the rate used by other traffic, 0 to 1.
    pub busy: f64,
    /// Additional bytes per packet on the line: framing, gaps, tunnel headers.
    pub overhead: usize,
    /// Maximum queue, as the time that the line needs to send it. Packets beyond are dropped.
    pub queue: Duration,
    /// Delay.
    pub delay: Delay,
    /// Loss.
    pub loss: Loss,
    /// Probability that a packet overtakes packets in flight: it skips the variation of the delay, and the order.
    pub reorder: f64,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Time per packet at the sender, one after the other: for example, encryption of a tunnel on a small machine.
    pub per_packet: Duration,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            rate: None,
            busy: 0.0,
            overhead: 0,
            queue: Duration::from_millis(200),
            delay: Delay::default(),
            loss: Loss::None,
            reorder: 0.0,
            duplicate: 0.0,
            per_packet: Duration::ZERO,
        }
    }
}

impl Conditions {
    /// Bits per second that remain beside other traffic.
    #[must_use]
    pub fn usable_rate(&self) -> Option<f64> {
        self.rate.map(|rate| rate as f64 * (1.0 - self.busy.clamp(0.0, 1.0)))
    }

    /// Transmission time of a packet of this size, in nanoseconds.
    #[must_use]
    pub fn line_time(&self, bytes: usize) -> u64 {
        let bits = (bytes + self.overhead) as f64 * 8.0;
        let sending = self.usable_rate().map_or(0.0, |rate| bits / rate.max(1.0) * 1e9);
        sending as u64 + nanos(self.per_packet)
    }
}

/// Result of sending a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at this time.
    Arrives(u64),
    /// It was lost on the way.
    Lost,
    /// The queue was full.
    Dropped,
}

/// Counters of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counters {
    /// Packets sent.
    pub packets: u64,
    /// Their bytes, without overhead.
    pub bytes: u64,
    /// Bytes on the line: with overhead, without packets dropped before it.
    pub line_bytes: u64,
    /// Lost on the way.
    pub lost: u64,
    /// Dropped because the queue was full.
    pub dropped: u64,
    /// Reordered.
    pub reordered: u64,
    /// Delivered twice.
    pub duplicated: u64,
}

/// A packet in flight. Ordered by arrival, then by the order of sending.
#[derive(Debug)]
struct Flying<T> {
    arrival: u64,
    number: u64,
    item: T,
}

impl<T> PartialEq for Flying<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.arrival, self.number) == (other.arrival, other.number)
    }
}
impl<T> Eq for Flying<T> {}
impl<T> PartialOrd for Flying<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Flying<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.arrival, self.number).cmp(&(other.arrival, other.number))
    }
}

/// The fate of packets of one direction, without storing them. Times are nanoseconds of any one clock.
#[derive(Debug)]
pub struct Line {
    conditions: Conditions,
    random: Random,
    losing: Losing,
    /// When the line has sent its queue.
    free: u64,
    /// Latest arrival of a packet that is not reordered.
    last_arrival: u64,
    /// The current variation of the delay, and until when it is valid.
    delay: u64,
    delay_until: u64,
    counters: Counters,
}

impl Line {
    /// An idle direction.
    #[must_use]
    pub fn new(conditions: Conditions, seed: u64) -> Self {
        Self {
            conditions,
            random: Random::new(seed),
            losing: Losing::default(),
            free: 0,
            last_arrival: 0,
            delay: 0,
            delay_until: 0,
            counters: Counters::default(),
        }
    }

    /// Its properties.
    #[must_use]
    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// Its counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// When the queue has space again; not after `now` if it has.
    #[must_use]
    pub fn room_at(&self, now: u64) -> u64 {
        self.free.saturating_sub(nanos(self.conditions.queue)).max(now)
    }

    /// Sends a packet of this size at the time `now`.
    pub fn send(&mut self, now: u64, bytes: usize) -> Fate {
        self.counters.packets += 1;
        self.counters.bytes += bytes as u64;
        if self.room_at(now) > now {
            self.counters.dropped += 1;
            return Fate::Dropped;
        }
        // A lost packet has used the line; a dropped one has not.
        self.free = self.free.max(now).saturating_add(self.conditions.line_time(bytes));
        self.counters.line_bytes += (bytes + self.conditions.overhead) as u64;
        if self.losing.next(&self.conditions.loss, &mut self.random) {
            self.counters.lost += 1;
            return Fate::Lost;
        }
        if self.random.chance(self.conditions.reorder) {
            self.counters.reordered += 1;
            return Fate::Arrives(self.free.saturating_add(nanos(self.conditions.delay.base) / 2));
        }
        self.last_arrival = self.free.saturating_add(self.delay_at(now)).max(self.last_arrival);
        Fate::Arrives(self.last_arrival)
    }

    /// The delay of a packet sent at `now`. The variation of the delay changes slowly: packets sent within one standard
    /// deviation share it. With independent delays, the slowest packet of a dense stream would block all others, and
    /// the link would be slower than its rate.
    fn delay_at(&mut self, now: u64) -> u64 {
        if now >= self.delay_until {
            self.delay = self.conditions.delay.draw(&mut self.random);
            self.delay_until = now.saturating_add((self.conditions.delay.std() * 1e9) as u64);
        }
        self.delay
    }

    /// Whether the last packet arrives twice.
    pub fn twice(&mut self) -> bool {
        let twice = self.random.chance(self.conditions.duplicate);
        self.counters.duplicated += u64::from(twice);
        twice
    }

    /// Additional delay of data whose first packet was lost, with retransmission as in TCP: two round trips or 10 ms,
    /// whichever is longer (RFC 8985 §7.2). If that is lost too, 200 ms, 400 ms, …
    pub fn retransmission(&mut self, round_trip: Duration) -> u64 {
        const REPEATS_MAX: u32 = 6;
        let mut late = nanos((2 * round_trip).max(Duration::from_millis(10)));
        let mut repeats = 0;
        while repeats < REPEATS_MAX && self.losing.next(&self.conditions.loss, &mut self.random) {
            late = late.saturating_add(200_000_000 << repeats);
            repeats += 1;
        }
        late.saturating_add(self.conditions.delay.draw(&mut self.random))
    }
}

/// One direction of a link, with the packets in flight.
#[derive(Debug)]
pub struct Emulator<T> {
    line: Line,
    flying: BinaryHeap<Reverse<Flying<T>>>,
    number: u64,
}

impl<T: Clone> Emulator<T> {
    /// An idle direction.
    #[must_use]
    pub fn new(conditions: Conditions, seed: u64) -> Self {
        Self { line: Line::new(conditions, seed), flying: BinaryHeap::new(), number: 0 }
    }

    /// Its counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.line.counters()
    }

    /// Number of packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flying.len()
    }

    /// Sends a packet of this size at the time `now`.
    pub fn send(&mut self, now: u64, bytes: usize, item: T) -> Fate {
        let fate = self.line.send(now, bytes);
        if let Fate::Arrives(arrival) = fate {
            if self.line.twice() {
                self.fly(arrival, item.clone());
            }
            self.fly(arrival, item);
        }
        fate
    }

    fn fly(&mut self, arrival: u64, item: T) {
        self.number += 1;
        self.flying.push(Reverse(Flying { arrival, number: self.number, item }));
    }

    /// When the next packet arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<u64> {
        self.flying.peek().map(|Reverse(flying)| flying.arrival)
    }

    /// The next packet that has arrived by `now`.
    pub fn receive(&mut self, now: u64) -> Option<T> {
        if self.next_arrival()? > now {
            return None;
        }
        self.flying.pop().map(|Reverse(flying)| flying.item)
    }
}

/// Converts to nanoseconds.
pub fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
