//! The schedule of a WriterGroup: when it samples and sends.

use crate::time::nanos;
use taktwerk_types::Instant;

/// A due step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Sample the values of a cycle.
    Sample,
    /// Send the due messages of the cycle, up to this position.
    Send {
        /// End of the positions, exclusive.
        until: usize,
    },
}

/// The schedule of a group: cycles, and offsets within them (Part 14 §6.3.1.1.5, §6.3.1.1.6).
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    interval: u64,
    /// Nanoseconds from the start of a cycle to sampling; `None`: when the first message is due.
    sampling_offset: Option<u64>,
    /// Nanoseconds from the start of a cycle to each message; the last offset applies to all further messages.
    publishing_offsets: Vec<u64>,
    start: Option<Instant>,
    cycle: u64,
    sampled: bool,
    sent: usize,
}

impl Schedule {
    /// Intervals and offsets in milliseconds.
    pub(super) fn new(interval: f64, sampling_offset: f64, publishing_offsets: &[f64]) -> Self {
        Self {
            interval: nanos(interval).max(1),
            // Negative means not configured.
            sampling_offset: (sampling_offset >= 0.0).then(|| nanos(sampling_offset)),
            publishing_offsets: publishing_offsets.iter().map(|offset| nanos(*offset)).collect(),
            start: None,
            cycle: 0,
            sampled: false,
            sent: 0,
        }
    }

    /// The first cycle starts at `start`.
    pub(super) fn start(&mut self, start: Instant) {
        self.start = Some(start);
        (self.cycle, self.sampled, self.sent) = (0, false, 0);
    }

    /// Keeps the phase of another schedule.
    pub(super) fn take_over(&mut self, old: &Self, now: Instant) {
        self.start = old.start;
        self.resume(now);
    }

    /// The next cycle is the first one that starts at `now` or later; missed cycles are not repeated.
    pub(super) fn resume(&mut self, now: Instant) {
        let since = now.as_nanos().saturating_sub(self.at(0, 0).as_nanos());
        (self.cycle, self.sampled, self.sent) = (since.div_ceil(self.interval), false, 0);
    }

    fn at(&self, cycle: u64, offset: u64) -> Instant {
        let start = self.start.unwrap_or(Instant::FAR).as_nanos();
        Instant::from_nanos(start.saturating_add(cycle.saturating_mul(self.interval)).saturating_add(offset))
    }

    fn offset(&self, message: usize) -> u64 {
        self.publishing_offsets.get(message).or(self.publishing_offsets.last()).copied().unwrap_or(0)
    }

    /// When a message of this cycle is due.
    pub(super) fn due(&self, message: usize) -> Instant {
        self.at(self.cycle, self.offset(message))
    }

    /// When the next step is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.start?;
        if !self.sampled {
            return Some(self.at(self.cycle, self.sampling_offset.unwrap_or_else(|| self.offset(0))));
        }
        Some(self.due(self.sent))
    }

    /// The step due at `now`; `messages` is the number of messages in this cycle.
    pub(super) fn step(&self, now: Instant, messages: usize) -> Option<Step> {
        if self.deadline()? > now {
            return None;
        }
        if !self.sampled {
            return Some(Step::Sample);
        }
        let due = (self.sent..messages).take_while(|message| self.due(*message) <= now).count();
        Some(Step::Send { until: self.sent + due })
    }

    /// The values of this cycle were sampled.
    pub(super) fn sampled(&mut self) {
        self.sampled = true;
    }

    /// The messages before `until` were sent. After the last one, the next cycle begins. Returns the number of missed
    /// cycles.
    pub(super) fn sent(&mut self, until: usize, messages: usize, now: Instant) -> u64 {
        self.sent = until;
        if until < messages {
            return 0;
        }
        (self.sampled, self.sent) = (false, 0);
        self.cycle += 1;
        // Continue with the last cycle that has started; those before it are missed.
        let since = now.as_nanos().saturating_sub(self.at(0, 0).as_nanos());
        let latest = since / self.interval;
        let missed = latest.saturating_sub(self.cycle);
        self.cycle += missed;
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Runs one cycle of `messages` messages at `now`.
    fn run(schedule: &mut Schedule, messages: usize, now: Instant) -> (usize, u64) {
        let (mut sent, mut missed) = (0, 0);
        while let Some(step) = schedule.step(now, messages) {
            match step {
                Step::Sample => schedule.sampled(),
                Step::Send { until } => {
                    sent += until - schedule.sent;
                    missed += schedule.sent(until, messages, now);
                }
            }
        }
        (sent, missed)
    }

    #[test]
    fn lateness_does_not_add_up_and_missed_cycles_are_counted() {
        let mut schedule = Schedule::new(10.0, -1.0, &[]);
        assert_eq!(schedule.deadline(), None);
        schedule.start(at(5));
        assert_eq!(schedule.deadline(), Some(at(5)));
        assert_eq!(run(&mut schedule, 1, at(9)), (1, 0));
        assert_eq!(schedule.deadline(), Some(at(15)));
        assert_eq!(run(&mut schedule, 1, at(14)), (0, 0));
        // At 48, the cycle of 15 runs late, those of 25 and 35 are missed, and that of 45 runs.
        assert_eq!(run(&mut schedule, 1, at(48)), (2, 2));
        assert_eq!(schedule.deadline(), Some(at(55)));
    }

    #[test]
    fn offsets_within_a_cycle() {
        let mut schedule = Schedule::new(10.0, 2.0, &[5.0, 7.0]);
        schedule.start(at(0));
        assert_eq!(schedule.deadline(), Some(at(2)));
        assert_eq!(run(&mut schedule, 3, at(2)), (0, 0));
        assert_eq!(schedule.deadline(), Some(at(5)));
        assert_eq!(run(&mut schedule, 3, at(5)), (1, 0));
        assert_eq!(schedule.deadline(), Some(at(7)));
        assert_eq!(run(&mut schedule, 3, at(7)), (2, 0), "the last offset holds for the third message too");
        assert_eq!(schedule.deadline(), Some(at(12)));
    }

    #[test]
    fn a_cycle_without_messages_ends_by_itself() {
        let mut schedule = Schedule::new(10.0, -1.0, &[]);
        schedule.start(at(0));
        assert_eq!(run(&mut schedule, 0, at(0)), (0, 0));
        assert_eq!(schedule.deadline(), Some(at(10)));
    }
}
