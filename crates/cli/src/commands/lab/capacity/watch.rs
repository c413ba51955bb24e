//! What others notice of a load: Reads of a session of its own, beside the load and as long as it lasts.

use crate::attribute::Attribute;
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::session::Session;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use taktwerk_lab::statistics::median;
use taktwerk_schema::ReadValueId;
use taktwerk_schema::ids::variable_ids;
use taktwerk_types::NodeId;

/// From one Read to the next on average: few enough to be no load themselves, also for a server that needs a millisecond for
/// each.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a server is looked at that has nothing to do.
const AT_REST: Duration = Duration::from_millis(800);
/// Who waits so long for an answer, and so many times longer than at rest, is kept from work: the load ends at once.
const PATIENCE: (Duration, f64) = (Duration::from_secs(1), 5.0);
/// How often it is looked whether somebody waits.
const LOOK: Duration = Duration::from_millis(10);

/// What was noticed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Noticed {
    /// Median time of a Read while the load was measured, microseconds; infinite without an answer.
    pub(super) middle_us: f64,
    /// The longest that a Read took, also while the load was set up, microseconds; infinite without an answer.
    pub(super) longest_us: f64,
    /// Whether the load was ended because somebody had waited too long.
    pub(super) is_ended: bool,
}

/// Somebody who reads.
pub(super) struct Watch<'a> {
    connection: &'a ConnectionArgs,
    session: Option<Session>,
    /// Ends the load that is being measured.
    stop: Arc<AtomicBool>,
}

/// Reads that were answered: when they were sent, and how long they took in microseconds. And the one that was not yet.
#[derive(Debug, Default)]
struct Reads {
    answered: Vec<(Instant, f64)>,
    waiting: Option<Instant>,
    /// The last one was given up.
    has_failed: bool,
}

impl Reads {
    fn noticed(&self, since: Option<Instant>, is_ended: bool) -> Noticed {
        let recent = self.answered.iter().filter(|(sent, _)| since.is_none_or(|since| *sent >= since));
        let recent: Vec<f64> = recent.map(|(_, took)| *took).collect();
        // Who was not answered has waited for ever.
        let lost = if self.has_failed { f64::INFINITY } else { 0.0 };
        let middle_us = median(&recent).unwrap_or(f64::INFINITY);
        let longest_us = self.answered.iter().map(|(_, took)| *took).fold(lost, f64::max);
        Noticed { middle_us, longest_us, is_ended }
    }
}

impl<'a> Watch<'a> {
    /// Nobody reads before the first load. `stop` is set to end a load.
    pub(super) fn new(connection: &'a ConnectionArgs, stop: Arc<AtomicBool>) -> Self {
        Self { connection, session: None, stop }
    }

    /// Median time of a Read when there is no load, microseconds.
    ///
    /// # Errors
    /// If the server cannot be reached, or does not answer.
    pub(super) fn at_rest(&mut self) -> Result<f64, Failure> {
        if self.session.is_none() {
            self.session = Some(Session::connect(self.connection)?);
        }
        let ((), noticed) = self.beside(None, AT_REST, || thread::sleep(AT_REST));
        if noticed.middle_us.is_finite() {
            return Ok(noticed.middle_us);
        }
        Err(Failure::Connect(format!("{} does not answer Reads", self.connection.endpoint)))
    }

    /// Goes away, until the next time.
    pub(super) fn leave(&mut self) {
        if let Some(session) = self.session.take() {
            session.close();
        }
    }

    /// Reads while something is done, which has its window in the last `window` of its time. With the time that a Read takes at
    /// rest, in microseconds, it is ended when somebody has to wait too long.
    pub(super) fn beside<T>(
        &mut self,
        rest: Option<f64>,
        window: Duration,
        work: impl FnOnce() -> T,
    ) -> (T, Noticed) {
        self.stop.store(false, Ordering::Relaxed);
        let (reads, is_over) = (Mutex::new(Reads::default()), AtomicBool::new(false));
        let (connection, session, stop) = (self.connection, &mut self.session, &self.stop);
        let (result, since) = thread::scope(|scope| {
            scope.spawn(|| read_on(connection, session, &reads, &is_over));
            scope.spawn(|| guard(rest, &reads, &is_over, stop));
            let result = work();
            let since = Instant::now().checked_sub(window);
            is_over.store(true, Ordering::Relaxed);
            (result, since)
        });
        let is_ended = self.stop.swap(false, Ordering::Relaxed);
        let reads = reads.into_inner().unwrap_or_else(PoisonError::into_inner);
        (result, reads.noticed(since, is_ended))
    }
}

/// How long somebody may wait, where a Read takes so many microseconds at rest.
pub(super) fn patience(rest: f64) -> Duration {
    PATIENCE.0.max(Duration::from_secs_f64((rest * PATIENCE.1 / 1e6).min(60.0)))
}

/// How long to wait before a Read, from 0.4 to 1.6 times the average, spread evenly. Pauses that are all alike meet what the
/// server does every so often each time or never: a Read that waits until 50 ms of work are done would be followed by one that
/// comes with the work of the next 100 ms.
fn pause(read: u32) -> Duration {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    PAUSE.mul_f64(0.4 + 1.2 * (f64::from(read) * GOLDEN).fract())
}

/// One Read after the other.
fn read_on(
    connection: &ConnectionArgs,
    session: &mut Option<Session>,
    reads: &Mutex<Reads>,
    is_over: &AtomicBool,
) {
    let with =
        |change: &dyn Fn(&mut Reads)| change(&mut reads.lock().unwrap_or_else(PoisonError::into_inner));
    let node = ReadValueId {
        node_id: NodeId::numeric(0, variable_ids::SERVER_SERVER_STATUS_CURRENT_TIME),
        attribute_id: Attribute::VALUE.id(),
        ..Default::default()
    };
    for read in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let sent = Instant::now();
        with(&|reads| reads.waiting = Some(sent));
        let connected = match session.take() {
            Some(session) => Ok(session),
            None => Session::connect(connection),
        };
        let answered = connected.and_then(|mut session| {
            session.read(vec![node.clone()])?;
            Ok(session)
        });
        let took = sent.elapsed().as_secs_f64() * 1e6;
        match answered {
            Ok(again) => {
                *session = Some(again);
                with(&|reads| (reads.waiting, reads.has_failed) = (None, false));
                with(&|reads| reads.answered.push((sent, took)));
            }
            Err(error) => {
                tracing::info!("another client's Read: {error}");
                with(&|reads| (reads.waiting, reads.has_failed) = (None, true));
                with(&|reads| reads.answered.push((sent, f64::INFINITY)));
            }
        }
        thread::sleep(pause(read));
    }
}

/// Ends the load when somebody waits too long.
fn guard(rest: Option<f64>, reads: &Mutex<Reads>, is_over: &AtomicBool, stop: &AtomicBool) {
    let Some(rest) = rest else { return };
    let patience = patience(rest);
    while !is_over.load(Ordering::Relaxed) {
        let waiting = reads.lock().unwrap_or_else(PoisonError::into_inner).waiting;
        if waiting.is_some_and(|since| since.elapsed() > patience) {
            stop.store(true, Ordering::Relaxed);
            return;
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_of_the_window_and_the_longest_of_all() {
        let begin = Instant::now();
        let at = |millis: u64| begin + Duration::from_millis(millis);
        let mut reads = Reads {
            answered: vec![(at(0), 9_000.0), (at(50), 100.0), (at(100), 300.0), (at(150), 200.0)],
            ..Reads::default()
        };
        let noticed = reads.noticed(Some(at(50)), false);
        assert_eq!((noticed.middle_us, noticed.longest_us), (200.0, 9_000.0));
        // Nobody was answered in the window.
        assert_eq!(reads.noticed(Some(at(200)), true).middle_us, f64::INFINITY);
        reads.has_failed = true;
        assert_eq!(reads.noticed(None, false).longest_us, f64::INFINITY);
        assert_eq!(Reads::default().noticed(None, false).middle_us, f64::INFINITY);
    }

    #[test]
    fn reads_meet_what_is_regular_as_often_as_its_share() {
        // A server that works 40 ms of every 100, and lets Reads wait until it is done.
        let (mut now, mut waited) = (0.0, 0);
        for read in 0..1_000 {
            let phase = now % 100.0;
            if phase < 40.0 {
                (now, waited) = (now + 40.0 - phase, waited + 1);
            }
            now += pause(read).as_secs_f64() * 1e3;
        }
        assert!((250..500).contains(&waited), "{waited}");
    }

    #[test]
    fn who_waits_too_long_ends_the_load() {
        let ends = |waiting: Option<Duration>, rest: Option<f64>| {
            let waiting = waiting.and_then(|waited| Instant::now().checked_sub(waited));
            let reads = Mutex::new(Reads { waiting, ..Reads::default() });
            let (is_over, stop) = (AtomicBool::new(false), AtomicBool::new(false));
            thread::scope(|scope| {
                scope.spawn(|| guard(rest, &reads, &is_over, &stop));
                thread::sleep(LOOK);
                is_over.store(true, Ordering::Relaxed);
            });
            stop.into_inner()
        };
        let long = Some(Duration::from_secs(2));
        assert!(ends(long, Some(150.0)));
        assert!(!ends(None, Some(150.0)) && !ends(long, None));
        // A server that needs a second at rest is given five.
        assert!(!ends(long, Some(1e6)));
    }
}
