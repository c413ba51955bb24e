//! Connection state of a source, and overdue values.

use super::held::Quality;
use super::{Feed, lock};
use crate::fault::Fault;
use crate::plant::Wanted;
use crate::statistics::Count;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_net::clock::wall;
use tokio::time::Instant;

/// The log target of errors after which a source continues. [`Telling`] already limits them, so programs need not.
///
/// [`Telling`]: super::telling::Telling
const ERRORS: &str = "taktwerk::source";

/// Outages. A connection without an answer does not end an outage: values of a device that only reconnects expire like those of a
/// lost device.
#[derive(Debug, Default)]
pub(super) struct Down {
    /// Start of the current outage.
    pub(super) since: Option<Instant>,
    /// Start of the previous outage, and the number of answers at its end.
    pub(super) last: Option<(Instant, u64)>,
}

impl Down {
    /// Start of the outage that lasts until there is an answer.
    fn now(&self, answers: u64) -> Option<Instant> {
        let unanswered = self.last.filter(|(_, before)| *before == answers);
        self.since.or(unanswered.map(|(since, _)| since))
    }

    fn begin(&mut self, answers: u64) {
        if self.since.is_none() {
            let last = self.last.filter(|(_, before)| *before == answers);
            let since = last.map_or_else(Instant::now, |(since, _)| since);
            self.since = Some(since);
            self.last = Some((since, answers));
        }
    }
}

impl Feed {
    fn go_down(&self) {
        // The last reading before the end is the last usable value. There is at most one per tag.
        self.store_those(true);
        lock(&self.0.down).begin(self.0.statistics.answers());
    }

    /// The connection is established.
    pub fn connected(&self) {
        lock(&self.0.down).since = None;
        self.0.statistics.connected();
    }

    /// Records a failure after which the source continues. It is counted, and logged unless logged recently.
    pub fn failed(&self, fault: &Fault) {
        let error = fault.to_string();
        self.0.statistics.failed(&error);
        let Some(before) = lock(&self.0.telling).tell(&error, Instant::now()) else { return };
        let source = self.0.settings.name.as_str();
        match before {
            0 => tracing::warn!(target: ERRORS, source, error, "a source has an error and continues"),
            not_logged => {
                tracing::warn!(target: ERRORS, source, error, not_logged, "a source has an error and continues")
            }
        }
    }

    /// Records a connection failure with immediate reconnection. Values stay unless reconnecting takes longer than a check for
    /// overdue values.
    pub fn faltered(&self, fault: &Fault) {
        self.go_down();
        self.0.statistics.disconnected();
        self.failed(fault);
    }

    /// Another gateway may poll the source and supply the destinations. This gateway sends them nothing until
    /// [`Self::take_over`].
    pub fn wait(&self) {
        for held in lock(&self.0.held).iter_mut() {
            held.is_standby = true;
        }
    }

    /// This gateway polls the source from now on. The destinations receive the first value even if it is unchanged, and Bad if
    /// none arrives. Without a preceding [`Self::wait`] this has no effect.
    pub fn take_over(&self) {
        let now = Instant::now();
        let mut all = lock(&self.0.held);
        if !all.iter().any(|held| held.is_standby) {
            return;
        }
        for held in all.iter_mut().filter(|held| held.is_standby) {
            held.is_standby = false;
            held.is_untold = true;
            held.last_tapped = None;
            held.last_number = None;
            if held.quality != Quality::Fresh {
                held.answered = now;
            }
        }
        drop(all);
        let mut down = lock(&self.0.down);
        down.last = None;
        if let Some(since) = &mut down.since {
            *since = now;
        }
    }

    /// Another gateway polls the source.
    pub fn stand_by(&self) {
        self.wait();
        self.go_down();
        self.0.statistics.disconnected();
        self.watch();
    }

    /// The source has ended with a fault.
    pub fn disconnected(&self, fault: &Fault) {
        self.go_down();
        self.0.statistics.disconnected();
        // The caller that retries logs it.
        self.0.statistics.failed(&fault.to_string());
        self.watch();
    }

    /// The interval for [`Self::watch`].
    #[must_use]
    pub fn watch_interval(&self) -> Duration {
        let held = lock(&self.0.held);
        let shortest = held
            .iter()
            .filter(|held| !held.is_released)
            .flat_map(|held| [held.stale_after, Some(held.lost_after)])
            .flatten()
            .min();
        shortest
            .map_or(Duration::from_secs(1), |shortest| shortest / 4)
            .clamp(Duration::from_millis(50), Duration::from_secs(1))
    }

    /// Detects overdue values.
    pub fn watch(&self) {
        let (now, utc) = (Instant::now(), wall());
        let down = lock(&self.0.down).now(self.0.statistics.answers());
        let settings = &self.0.settings;
        let (mut uncertain, mut lost, mut missed) = (0, 0, 0);
        for held in lock(&self.0.held).iter_mut().filter(|held| !held.is_released) {
            let age = now.duration_since(held.answered);
            // Values that the source sends on its own expire with the connection.
            let (is_stale, is_lost) = match (held.stale_after, down) {
                (Some(after), _) => (age > after, age > after.max(held.lost_after)),
                (None, Some(since)) => (true, now.duration_since(since) > held.lost_after),
                (None, None) => (false, false),
            };
            let quality = match held.quality {
                Quality::Waiting if is_lost => Quality::Lost,
                Quality::Waiting => Quality::Waiting,
                _ if is_lost => Quality::Lost,
                Quality::Fresh if is_stale => Quality::Stale,
                other => other,
            };
            // The value is Lost here already, but the other gateway supplied the destinations.
            let is_due = held.is_untold && is_lost && quality == Quality::Lost;
            if quality != held.quality || is_due {
                missed += usize::from(held.quality == Quality::Fresh);
                held.decline(quality, utc);
            }
            uncertain += usize::from(held.quality == Quality::Stale);
            lost += usize::from(held.quality == Quality::Lost);
        }
        self.0.statistics.add(Count::Missed, missed);
        self.0.statistics.set_quality(uncertain, lost);
        if down.is_some_and(|since| now.duration_since(since) > settings.lost_after) {
            self.0.plant.alarms().lost(&self.0.name);
        }
        // Variables that the source had found before its settings changed, and has not found again.
        let grace = settings.lost_after + settings.deadline;
        if self.0.plant.sweep(&self.0.name, grace, &Wanted::default())
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let plant = Arc::clone(&self.0.plant);
            runtime.spawn_blocking(move || plant.sweep_types());
        }
    }
}
