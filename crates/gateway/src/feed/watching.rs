//! Connections that come and go, and values that do not come.

use super::held::Quality;
use super::{Feed, lock};
use crate::fault::Fault;
use crate::plant::Wanted;
use crate::statistics::Count;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;
use taktwerk_net::clock::wall;

/// The target of errors of sources that go on. Programs that print seldom need not limit it: [`Telling`] does.
///
/// [`Telling`]: super::telling::Telling
const ERRORS: &str = "taktwerk::source";

/// Times without a connection. Connections that give no answer do not end them: values of a device that only connects
/// again and again are lost as those of one that is gone.
#[derive(Debug, Default)]
pub(super) struct Down {
    /// Since when there is no connection.
    pub(super) since: Option<Instant>,
    /// Since when there was none last time, and how many answers had come by then.
    pub(super) last: Option<(Instant, u64)>,
}

impl Down {
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
        // What came before the end is the last usable value. There is at most one for each tag.
        self.store_those(None);
        lock(&self.0.down).begin(self.0.statistics.answers());
    }

    /// There is a connection.
    pub fn connected(&self) {
        lock(&self.0.down).since = None;
        self.0.statistics.connected();
    }

    /// Something has failed, and the source goes on. It is counted and logged, unless the log has it already.
    pub fn failed(&self, fault: &Fault) {
        let error = fault.to_string();
        self.0.statistics.failed(&error);
        let Some(before) = lock(&self.0.telling).tell(&error, Instant::now()) else { return };
        let source = self.0.settings.name.as_str();
        match before {
            0 => tracing::warn!(target: ERRORS, source, error, "an error of a source that goes on"),
            not_logged => {
                tracing::warn!(target: ERRORS, source, error, not_logged, "an error of a source that goes on")
            }
        }
    }

    /// The connection has failed, and another one is made at once. Values stay as they are meanwhile, unless that takes
    /// longer than one look for values that do not come.
    pub fn faltered(&self, fault: &Fault) {
        self.go_down();
        self.0.statistics.disconnected();
        self.failed(fault);
    }

    /// Another gateway may ask the source, and fill the destinations: they get nothing from here until [`Self::take_over`].
    pub fn wait(&self) {
        for held in lock(&self.0.held).iter_mut() {
            held.is_standby = true;
        }
    }

    /// This gateway asks the source from now on. The destinations get the first value, whatever they had before, and Bad if
    /// none comes. Nothing happens if it did not wait.
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

    /// Another gateway asks the source.
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
        // Whoever tries again logs it.
        self.0.statistics.failed(&fault.to_string());
        self.watch();
    }

    /// How often [`Self::watch`] has to look.
    #[must_use]
    pub fn watch_interval(&self) -> Duration {
        let every = lock(&self.0.held).iter().filter_map(|held| held.every).min();
        let shortest = every.into_iter().chain(self.0.settings.stale_after).min();
        shortest
            .map_or(Duration::from_secs(1), |shortest| shortest / 2)
            .clamp(Duration::from_millis(50), Duration::from_secs(1))
    }

    /// Looks for values that did not come.
    pub fn watch(&self) {
        let (now, utc) = (Instant::now(), wall());
        let down = lock(&self.0.down).since;
        let settings = &self.0.settings;
        let (mut uncertain, mut lost, mut missed) = (0, 0, 0);
        for held in lock(&self.0.held).iter_mut() {
            let age = now.duration_since(held.answered);
            let stale_after = settings.stale_after.or(held.every.map(|every| every * 2));
            // Values that come by themselves are as old as the connection's end.
            let (is_stale, is_lost) = match (stale_after, down) {
                (Some(after), _) => (age > after, age > after.max(settings.lost_after)),
                (None, Some(since)) => (true, now.duration_since(since) > settings.lost_after),
                (None, None) => (false, false),
            };
            let quality = match held.quality {
                Quality::Waiting if is_lost => Quality::Lost,
                Quality::Waiting => Quality::Waiting,
                _ if is_lost => Quality::Lost,
                Quality::Fresh if is_stale => Quality::Stale,
                other => other,
            };
            // What was lost here before was there for the destinations.
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
        // What the source had found before its settings were changed, and has not found again.
        let grace = settings.lost_after + settings.deadline;
        if self.0.plant.sweep(&self.0.name, grace, &Wanted::default())
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let plant = Arc::clone(&self.0.plant);
            runtime.spawn_blocking(move || plant.sweep_types());
        }
    }
}
