//! Open-loop schedules: send times that do not depend on earlier requests.

/// Maximum number of overdue sends that are listed.
const LEFT_MAX: usize = 1_000_000;

/// Evenly spaced send times at a fixed rate.
///
/// Times are computed from the start and the number of the request, not from the previous send. So neither rounding nor
/// late sends shift later times.
#[derive(Debug, Clone, Copy)]
pub struct OpenLoop {
    start: u64,
    per_second: f64,
    /// Total number of sends; `None` for unlimited.
    total: Option<u64>,
    next: u64,
}

impl OpenLoop {
    /// A schedule with `per_second` sends, starting at `start` (monotonic nanoseconds).
    ///
    /// # Panics
    /// Never; a rate that is not positive and finite gives an empty schedule.
    #[must_use]
    pub fn new(start: u64, per_second: f64, total: Option<u64>) -> Self {
        let empty = !(per_second.is_finite() && per_second > 0.0);
        Self { start, per_second, total: if empty { Some(0) } else { total }, next: 0 }
    }

    /// When send number `index` is due.
    #[must_use]
    pub fn due(&self, index: u64) -> u64 {
        self.start.saturating_add((index as f64 * 1e9 / self.per_second) as u64)
    }

    /// When the next send is due, or `None` after the last.
    #[must_use]
    pub fn next_due(&self) -> Option<u64> {
        match self.total {
            Some(total) if self.next >= total => None,
            _ => Some(self.due(self.next)),
        }
    }

    /// Takes the next send if it is due at `now`; returns its scheduled time, from which latency counts.
    pub fn take(&mut self, now: u64) -> Option<u64> {
        let due = self.next_due().filter(|due| *due <= now)?;
        self.next += 1;
        Some(due)
    }

    /// Sends taken so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.next
    }

    /// Number of sends that are due at `now` but not taken: the backlog of a late generator.
    #[must_use]
    pub fn backlog(&self, now: u64) -> u64 {
        if now < self.start || self.next_due().is_none() {
            return 0;
        }
        let due = ((now - self.start) as f64 * self.per_second / 1e9) as u64 + 1;
        due.min(self.total.unwrap_or(u64::MAX)).saturating_sub(self.next)
    }

    /// Scheduled times of the backlog, at most a million.
    pub fn left(&self, now: u64) -> impl Iterator<Item = u64> + use<> {
        let schedule = *self;
        let numbers = schedule.next..schedule.total.unwrap_or(u64::MAX);
        numbers.map(move |number| schedule.due(number)).take_while(move |due| *due <= now).take(LEFT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_from_the_number_and_never_drift() {
        let schedule = OpenLoop::new(1_000, 3.0, None);
        assert_eq!(schedule.due(0), 1_000);
        assert_eq!(schedule.due(3), 1_000_001_000);
        assert_eq!(schedule.due(3_000_000), 1_000_000_000_001_000);
    }

    #[test]
    fn a_stall_leaves_a_backlog_with_the_old_due_times() {
        let mut schedule = OpenLoop::new(0, 1_000.0, Some(5));
        assert_eq!(schedule.take(0), Some(0));
        assert_eq!(schedule.take(999_999), None);
        // Nothing was sent for 3.5 ms: three sends are late, and each keeps its scheduled time.
        assert_eq!(schedule.backlog(3_500_000), 3);
        assert_eq!(schedule.left(3_500_000).collect::<Vec<_>>(), [1_000_000, 2_000_000, 3_000_000]);
        assert_eq!(schedule.take(3_500_000), Some(1_000_000));
        assert_eq!(schedule.take(3_500_000), Some(2_000_000));
        assert_eq!(schedule.take(3_500_000), Some(3_000_000));
        assert_eq!(schedule.take(3_500_000), None);
        assert_eq!(schedule.take(u64::MAX), Some(4_000_000));
        assert_eq!((schedule.next_due(), schedule.backlog(u64::MAX)), (None, 0));
    }

    #[test]
    fn a_zero_rate_sends_nothing() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(OpenLoop::new(0, rate, None).take(u64::MAX), None, "{rate}");
            assert_eq!(OpenLoop::new(0, rate, None).left(u64::MAX).count(), 0, "{rate}");
        }
        // The list is limited, however many sends are due.
        assert_eq!(OpenLoop::new(0, 1e15, None).left(u64::MAX).count(), LEFT_MAX);
    }
}
