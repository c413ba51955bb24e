//! Where the publishing cycles of a shard meet.
//!
//! A cycle that stands alone wakes its shard, and so does the Publish request that answers it. With ten clients this
//! costs as much as encrypting everything that they are sent, and it is by chance: clients begin when they begin. So
//! cycles of one interval are brought together, each by one earlier cycle, once it is known when its values are written
//! ([`Room`](super::phase::Room)). What is published at one point is bounded: the last one there waits for all others.

use super::phase::{Room, shorter_way};
use super::timer::{align_up, grid};
use taktwerk_types::Instant;

/// What a subscription weighs without its items: making a message, sealing and sending it costs as much as so many
/// values.
const SUBSCRIPTION_WEIGHT: u32 = 200;
/// Most weight at one point, one or two milliseconds.
const WEIGHT_MAX: u32 = 10_000;
/// Points of a shard. Who finds none publishes alone.
const POINTS_MAX: usize = 64;
/// Longer intervals wake nobody often, and a moved cycle of theirs would be missed, ns.
const INTERVAL_MAX: u64 = 2_000_000_000;

/// The points of a shard.
#[derive(Debug, Default)]
pub(crate) struct Meetings {
    points: Vec<Option<Point>>,
}

#[derive(Debug)]
struct Point {
    /// ns.
    interval: u64,
    /// Cycles start a whole number of intervals and this after time zero, ns.
    phase: u64,
    weight: u32,
    subscriptions: u32,
}

/// A subscription's part in a point. To be given back.
#[derive(Debug)]
pub(crate) struct Seat {
    point: usize,
    weight: u32,
}

/// A subscription that may be moved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cycle {
    /// When its next cycle would start.
    pub(crate) next: Instant,
    /// ns.
    pub(crate) interval: u64,
    pub(crate) items: usize,
    /// Spreads those that find no company.
    pub(crate) seed: u32,
}

impl Meetings {
    /// Finds a place in its room for a subscription. Returns when its next cycle starts.
    pub(crate) fn settle(&mut self, seat: &mut Option<Seat>, room: Room, cycle: Cycle) -> Instant {
        let Cycle { next, interval, items, seed } = cycle;
        let weight = u32::try_from(items).unwrap_or(u32::MAX).saturating_add(SUBSCRIPTION_WEIGHT);
        let crowded = match seat.as_mut().map(|seat| self.weigh(seat, weight)) {
            Some(false)
                if !room.must
                    && !self.is_alone(seat.as_ref())
                    && !self.has_better(seat.as_ref(), room, cycle, weight) =>
            {
                return next;
            }
            Some(crowded) => crowded,
            None => false,
        };
        self.leave(seat);
        if (1..=INTERVAL_MAX).contains(&interval) {
            if let Some((point, ago)) = self.company(room, cycle, weight) {
                *seat = self.join(point, weight);
                let (ago, whole) = (ago as i64, interval as i64);
                // Who need not move has no cycle that is longer than it asked for.
                let moved = if room.must { shorter_way(ago, whole) } else { -ago };
                return Instant::from_nanos(next.as_nanos().saturating_add_signed(moved));
            }
        }
        let at = match room.must || crowded {
            true => {
                let moved = next.as_nanos().saturating_add_signed(room.best(interval, seed));
                align_up(Instant::from_nanos(moved), grid(interval))
            }
            false => next,
        };
        *seat = self.open(interval, at, weight);
        at
    }

    /// Gives a seat back.
    pub(crate) fn leave(&mut self, seat: &mut Option<Seat>) {
        let Some(Seat { point, weight }) = seat.take() else { return };
        let Some(entry) = self.points.get_mut(point) else { return };
        if let Some(there) = entry {
            there.weight = there.weight.saturating_sub(weight);
            there.subscriptions -= 1;
            if there.subscriptions == 0 {
                *entry = None;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.points.iter().all(Option::is_none)
    }

    fn is_alone(&self, seat: Option<&Seat>) -> bool {
        let point = seat.and_then(|seat| self.points.get(seat.point)?.as_ref());
        point.is_some_and(|point| point.subscriptions == 1)
    }

    /// Whether more meet somewhere else in the room: points that have come to be at the same time come together too. Each
    /// move makes the fuller one fuller, so they end.
    fn has_better(&self, seat: Option<&Seat>, room: Room, cycle: Cycle, weight: u32) -> bool {
        let Some(seat) = seat else { return false };
        let Some(Some(own)) = self.points.get(seat.point) else { return false };
        self.company(room, cycle, weight).is_some_and(|(point, _)| {
            let there = self.points.get(point).and_then(Option::as_ref);
            point != seat.point && there.is_some_and(|there| there.weight >= own.weight)
        })
    }

    /// Items have come or gone. Returns whether there is too much at the point now.
    fn weigh(&mut self, seat: &mut Seat, weight: u32) -> bool {
        let Some(Some(point)) = self.points.get_mut(seat.point) else { return false };
        point.weight = point.weight.saturating_sub(seat.weight).saturating_add(weight);
        seat.weight = weight;
        point.weight > WEIGHT_MAX && point.subscriptions > 1
    }

    /// The fullest point in the room that has a place, and how long before the cycle it is, ns.
    fn company(&self, room: Room, cycle: Cycle, weight: u32) -> Option<(usize, u64)> {
        let here = cycle.next.as_nanos() % cycle.interval;
        self.points
            .iter()
            .enumerate()
            .filter_map(|(index, point)| Some((index, point.as_ref()?)))
            .filter(|(_, point)| point.interval == cycle.interval)
            .filter(|(_, point)| point.weight.saturating_add(weight) <= WEIGHT_MAX)
            .map(|(index, point)| {
                (index, (here + cycle.interval - point.phase) % cycle.interval, point.weight)
            })
            .filter(|(_, ago, _)| room.holds(*ago, cycle.interval))
            .max_by_key(|(_, _, weight)| *weight)
            .map(|(index, ago, _)| (index, ago))
    }

    fn join(&mut self, point: usize, weight: u32) -> Option<Seat> {
        let there = self.points.get_mut(point)?.as_mut()?;
        there.weight = there.weight.saturating_add(weight);
        there.subscriptions += 1;
        Some(Seat { point, weight })
    }

    fn open(&mut self, interval: u64, at: Instant, weight: u32) -> Option<Seat> {
        if !(1..=INTERVAL_MAX).contains(&interval) {
            return None;
        }
        let point = match self.points.iter().position(Option::is_none) {
            Some(free) => free,
            None if self.points.len() < POINTS_MAX => {
                self.points.push(None);
                self.points.len() - 1
            }
            None => return None,
        };
        let phase = at.as_nanos() % interval;
        *self.points.get_mut(point)? = Some(Point { interval, phase, weight, subscriptions: 1 });
        Some(Seat { point, weight })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const INTERVAL: u64 = 100 * MS;

    fn cycle(at_ms: u64, items: usize) -> Cycle {
        Cycle { next: Instant::from_nanos(at_ms * MS), interval: INTERVAL, items, seed: 7 }
    }

    #[test]
    fn those_who_may_stand_anywhere_meet_earlier() {
        let mut meetings = Meetings::default();
        let (mut first, mut second) = (None, None);
        assert_eq!(
            meetings.settle(&mut first, Room::ANYWHERE, cycle(135, 10)),
            Instant::from_nanos(135 * MS)
        );
        // 130 and 230 are 5 ms too early and 95 too late.
        assert_eq!(
            meetings.settle(&mut second, Room::ANYWHERE, cycle(230, 10)),
            Instant::from_nanos(135 * MS)
        );
        // And stay there.
        assert_eq!(
            meetings.settle(&mut second, Room::ANYWHERE, cycle(335, 10)),
            Instant::from_nanos(335 * MS)
        );
    }

    #[test]
    fn pairs_that_found_each_other_apart_come_together() {
        let mut meetings = Meetings::default();
        let mut seats = [const { None }; 4];
        let [a, b, c, d] = &mut seats;
        meetings.settle(a, Room::ANYWHERE, cycle(120, 10));
        *b = meetings.join(0, 210);
        *c = meetings.open(INTERVAL, Instant::from_nanos(185 * MS), 210);
        *d = meetings.join(1, 210);
        for turn in 2..4 {
            for seat in &mut seats {
                let phase = if seat.as_ref().unwrap().point == 0 { 20 } else { 85 };
                meetings.settle(seat, Room::ANYWHERE, cycle(turn * 100 + phase, 10));
            }
        }
        let points: Vec<_> = seats.iter().map(|seat| seat.as_ref().unwrap().point).collect();
        assert!(points.windows(2).all(|pair| pair[0] == pair[1]), "{points:?}");
        // And nobody moves any more.
        for seat in &mut seats {
            let phase = if points[0] == 0 { 20 } else { 85 };
            assert_eq!(
                meetings.settle(seat, Room::ANYWHERE, cycle(400 + phase, 10)),
                cycle(400 + phase, 10).next
            );
        }
    }

    #[test]
    fn other_intervals_do_not_meet_and_long_ones_never_move() {
        let mut meetings = Meetings::default();
        let (mut first, mut second) = (None, None);
        meetings.settle(&mut first, Room::ANYWHERE, cycle(135, 10));
        let other = Cycle { interval: 2 * INTERVAL, ..cycle(170, 10) };
        assert_eq!(meetings.settle(&mut second, Room::ANYWHERE, other), other.next);
        for at in [3_000_000, 3_000_500] {
            let mut seat = None;
            let long = Cycle { interval: 3_600_000 * MS, ..cycle(at, 10) };
            assert_eq!(meetings.settle(&mut seat, Room::ANYWHERE, long), long.next);
            assert!(seat.is_none());
        }
    }

    #[test]
    fn a_full_point_takes_nobody_and_lets_go_of_who_grows() {
        let mut meetings = Meetings::default();
        let (mut first, mut second, mut third) = (None, None, None);
        meetings.settle(&mut first, Room::ANYWHERE, cycle(100, 5_000));
        assert_eq!(meetings.settle(&mut second, Room::ANYWHERE, cycle(150, 4_000)), cycle(100, 0).next);
        assert_eq!(meetings.settle(&mut third, Room::ANYWHERE, cycle(170, 4_000)), cycle(170, 0).next);
        // There is more than was said.
        let moved = meetings.settle(&mut second, Room::ANYWHERE, cycle(200, 9_000));
        assert!(moved != cycle(200, 0).next && moved != cycle(170, 0).next, "{moved:?}");
        // Alone, nobody is too much.
        meetings.leave(&mut third);
        let alone = meetings.settle(&mut first, Room::ANYWHERE, cycle(300, 50_000));
        assert_eq!(alone, cycle(300, 0).next);
    }

    proptest! {
        /// Whatever comes and goes: the points add up, and end with those who were there.
        #[test]
        fn seats_are_given_back(
            steps in prop::collection::vec((0usize..20, 0u64..400, 0usize..6_000, 0u8..4), 1..200),
        ) {
            let mut meetings = Meetings::default();
            let mut seats: Vec<Option<Seat>> = (0..20).map(|_| None).collect();
            for (who, at, items, what) in steps {
                match what {
                    0 => meetings.leave(&mut seats[who]),
                    _ => {
                        let mut room = Room::ANYWHERE;
                        room.must = what == 1;
                        let cycle = cycle(1_000 + at, items);
                        let next = meetings.settle(&mut seats[who], room, cycle);
                        let moved = next.as_nanos().abs_diff(cycle.next.as_nanos());
                        prop_assert!(moved < INTERVAL + 5 * MS);
                    }
                }
                for (index, point) in meetings.points.iter().enumerate() {
                    let there = seats.iter().flatten().filter(|seat| seat.point == index);
                    let (count, weight) = there.fold((0, 0), |sum, seat| (sum.0 + 1, sum.1 + seat.weight));
                    let said = point.as_ref().map_or((0, 0), |point| (point.subscriptions, point.weight));
                    prop_assert_eq!(said, (count, weight));
                }
            }
        }
    }
}
