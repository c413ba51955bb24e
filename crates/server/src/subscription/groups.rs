//! Rate groups: items with the same sampling interval share one timer (design §5).
//!
//! Clients choose intervals freely. So intervals are revised to a grid, and a group is freed with its last item.

use super::phase::SharedPhases;
use super::timer::{Due, Timers};
use std::collections::BTreeMap;
use taktwerk_types::Instant;

/// Items with one sampling interval.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// In ns.
    pub(super) interval: u64,
    pub(super) next: Instant,
    pub(super) armed: bool,
    /// Items whose variable has changed since the last tick.
    pub(super) pending: Vec<u32>,
    /// Items whose value must be read at each tick.
    pub(super) polled: Vec<u32>,
    /// Number of items that need every tick because they have a queue.
    pub(super) every_tick: u32,
    /// Items of the group, enabled or not. An empty group is freed.
    members: u32,
}

impl Group {
    /// Starts the timer of group `number` if it is stopped, aligned with the publishing of subscriptions with this
    /// interval, so that these have fresh samples.
    pub(super) fn arm(&mut self, number: u32, now: Instant, phases: &SharedPhases, timers: &mut Timers) {
        if !self.armed {
            self.next = phases.first_after(now, self.interval);
            self.armed = true;
            timers.push(self.next, Due::Group(number));
        }
    }
}

/// The rate groups of an engine, by number and by interval.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    all: Vec<Group>,
    /// Numbers of groups without items.
    free: Vec<u32>,
    by_interval: BTreeMap<u64, u32>,
}

impl Groups {
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&Group> {
        self.all.get(number as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Group> {
        self.all.get_mut(number as usize)
    }

    /// Adds an item to the group of an interval (ns), which is created if necessary.
    pub(super) fn enter(&mut self, interval: u64) -> u32 {
        let Self { all, free, by_interval } = self;
        let number = *by_interval.entry(interval).or_insert_with(|| {
            free.pop().unwrap_or_else(|| {
                all.push(Group::default());
                u32::try_from(all.len() - 1).unwrap_or(0)
            })
        });
        if let Some(group) = all.get_mut(number as usize) {
            group.interval = interval;
            group.members += 1;
        }
        number
    }

    /// Removes an item from its group. Values that stand for other ways of sampling are ignored.
    pub(super) fn leave(&mut self, number: u32) {
        let Some(group) = self.all.get_mut(number as usize) else { return };
        group.members = group.members.saturating_sub(1);
        if group.members > 0 {
            return;
        }
        self.by_interval.remove(&group.interval);
        // A remaining timer entry finds a group that is not armed, or armed for another instant.
        *group = Group::default();
        self.free.push(number);
        if self.by_interval.is_empty() {
            (self.all, self.free) = (Vec::new(), Vec::new());
        }
    }

    /// Number of groups with items.
    pub(super) fn count(&self) -> usize {
        self.by_interval.len()
    }

    /// Number of groups with items, and the number allocated.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        (self.by_interval.len(), self.all.len())
    }
}

/// The shortest interval on the grid that is at least `interval`, both in ms: three significant decimal digits.
pub(super) fn on_grid(interval: f64) -> f64 {
    if !(interval.is_finite() && interval > 0.0) {
        return interval;
    }
    let mut step = 0.000_001;
    while step * 1000.0 <= interval {
        step *= 10.0;
    }
    // Rounding errors of the division must not raise it: 100 ms are on the grid.
    let steps = (interval / step - 1e-6).ceil();
    // Steps are powers of ten. Below 1 they have no exact binary form, so divide by their inverse.
    if step >= 0.5 { steps * step.round() } else { steps / (1.0 / step).round() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_intervals_are_on_the_grid_and_others_are_raised_to_it() {
        let usual =
            [0.1, 0.25, 1.0, 1.5, 2.5, 10.0, 12.5, 20.0, 33.3, 50.0, 100.0, 125.0, 250.0, 500.0, 999.0];
        for interval in usual.into_iter().chain([1_000.0, 1_500.0, 60_000.0, 3_600_000.0, 0.0]) {
            assert_eq!(on_grid(interval), interval);
        }
        for (interval, expected) in [(33.34, 33.4), (1_001.0, 1_010.0), (99.91, 100.0), (0.012_345, 0.0124)] {
            assert_eq!(on_grid(interval), expected);
        }
    }

    #[test]
    fn the_grid_is_bounded_and_idempotent() {
        let mut values = std::collections::BTreeSet::new();
        let mut interval = 1.0;
        while interval < 3_600_000.0 {
            let revised = on_grid(interval);
            assert!(revised >= interval && revised < interval * 1.0101, "{interval} {revised}");
            assert_eq!(on_grid(revised), revised);
            values.insert(revised.to_bits());
            interval *= 1.000_1;
        }
        assert!(values.len() <= 6_300, "{}", values.len());
    }

    #[test]
    fn groups_are_shared_and_freed_with_their_last_item() {
        let mut groups = Groups::default();
        let (one, two) = (groups.enter(100), groups.enter(200));
        assert_eq!((groups.enter(100), groups.len()), (one, (2, 2)));
        groups.leave(one);
        assert_eq!(groups.len(), (2, 2));
        groups.leave(one);
        assert_eq!(groups.len(), (1, 2));
        assert_eq!(groups.enter(300), one, "the number is reused");
        assert_eq!(groups.get(one).map(|group| (group.interval, group.armed)), Some((300, false)));
        groups.leave(one);
        groups.leave(two);
        groups.leave(u32::MAX);
        assert_eq!(groups.len(), (0, 0));
    }
}
