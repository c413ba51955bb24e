//! A condition whose definition changes keeps its state.

use super::{Branch, Change, Machine, Note, Notes, Rules};
use crate::alarm::limits::LimitSet;
use taktwerk_types::UtcTime;

/// A deadline whose delay has another length now.
fn moved(due: UtcTime, before: f64, after: f64) -> UtcTime {
    // Delays are limited to years, so the difference fits.
    UtcTime::from_ticks(due.ticks().saturating_add(((after - before) * 1e4) as i64))
}

impl Machine {
    /// Takes over changed rules. The state stays, except for parts that the condition no longer has. Delays that have
    /// begun end as if they had begun with the new rules.
    pub(crate) fn redefine(&mut self, rules: Rules, now: UtcTime) -> Notes {
        let old = core::mem::replace(&mut self.rules, rules);
        let rules = &self.rules;
        let (before, after) =
            if self.state.active { (old.off_delay, rules.off_delay) } else { (old.on_delay, rules.on_delay) };
        if let Some(pending) = &mut self.pending {
            pending.due = moved(pending.due, before, after);
        }
        if self.state.active && self.state.enabled && old.re_alarm_time != rules.re_alarm_time {
            let (before, after) = (old.re_alarm_time, rules.re_alarm_time);
            let begun = self.re_alarm.map_or(now, |due| moved(due, before, 0.0));
            self.re_alarm = (after > 0.0).then(|| moved(begun, 0.0, after));
        }
        if !old.latches && rules.latches && self.state.active {
            (self.state.latched, self.state.times.latched) = (true, now);
        }
        self.state.latched &= rules.latches;
        let branches = self.branches.iter_mut().map(|branch| &mut branch.state);
        for state in core::iter::once(&mut self.state).chain(branches) {
            state.acked |= !rules.acknowledges;
            state.confirmed |= !rules.confirms;
        }
        let mut notes = Notes::new();
        let keeps = rules.keeps_branches;
        let is_over = |branch: &mut Branch| !keeps || !branch.state.retain();
        for mut branch in self.branches.extract_if(.., is_over) {
            (branch.state.enabled, branch.state.time) = (false, now);
            let branch = Some((branch.number, Box::new(branch.state)));
            notes.push(Note { branch, change: Change::BranchDropped });
        }
        notes
    }

    /// Limits have other severities from now on. What operators have acknowledged stays acknowledged.
    pub(crate) fn reclassify(&mut self, now: UtcTime, severity_of: impl Fn(LimitSet) -> u16) {
        // Without an active alarm, operators who have not acknowledged it still see the severity that it had.
        if self.state.active || !self.state.retain() {
            self.set_severity(severity_of(self.state.limits), now);
        }
        if let Some(seen) = &mut self.seen {
            seen.severity = severity_of(seen.limits);
        }
    }
}
