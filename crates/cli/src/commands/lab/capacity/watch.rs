//! Observes the effect of a load on other clients, by Reads on a separate session.

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

/// Mean time between Reads. Long enough to be no load, even for a server that needs a millisecond per Read.
const PAUSE: Duration = Duration::from_millis(50);
/// Duration of the observation of the idle server.
const AT_REST: Duration = Duration::from_millis(800);
/// Maximum wait, absolute and relative to the idle response time. If exceeded, the load is stopped at once.
const PATIENCE: (Duration, f64) = (Duration::from_secs(1), 5.0);
/// Interval at which waiting Reads are checked.
const LOOK: Duration = Duration::from_millis(10);

/// The observed effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Noticed {
    /// Median duration of a Read in the measured window, microseconds; infinite without a response.
    pub(super) middle_us: f64,
    /// Longest duration of a Read, including setup, microseconds; infinite without a response.
    pub(super) longest_us: f64,
    /// Whether the load was stopped because a Read had waited too long.
    pub(super) is_ended: bool,
}

/// The observer.
pub(super) struct Watch<'a> {
    connection: &'a ConnectionArgs,
    session: Option<Session>,
    /// Stops the load that is being measured.
    stop: Arc<AtomicBool>,
}

/// Answered Reads: time of sending and duration in microseconds; and the pending one.
#[derive(Debug, Default)]
struct Reads {
    answered: Vec<(Instant, f64)>,
    waiting: Option<Instant>,
    /// The last Read timed out.
    has_failed: bool,
}

impl Reads {
    fn noticed(&self, since: Option<Instant>, is_ended: bool) -> Noticed {
        let recent = self.answered.iter().filter(|(sent, _)| since.is_none_or(|since| *sent >= since));
        let recent: Vec<f64> = recent.map(|(_, took)| *took).collect();
        // A Read without a response counts as infinite.
        let lost = if self.has_failed { f64::INFINITY } else { 0.0 };
        let middle_us = median(&recent).unwrap_or(f64::INFINITY);
        let longest_us = self.answered.iter().map(|(_, took)| *took).fold(lost, f64::max);
        Noticed { middle_us, longest_us, is_ended }
    }
}

impl<'a> Watch<'a> {
    /// An observer without a session, which [`Self::at_rest`] opens. `stop` is set to stop a load.
    pub(super) fn new(connection: &'a ConnectionArgs, stop: Arc<AtomicBool>) -> Self {
        Self { connection, session: None, stop }
    }

    /// Median duration of a Read on the idle server, in microseconds.
    ///
    /// # Errors
    /// The server cannot be reached or does not respond.
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

    /// Closes the session until the next use.
    pub(super) fn leave(&mut self) {
        if let Some(session) = self.session.take() {
            session.close();
        }
    }

    /// Reads during a load whose window is the last `window` of its time. With the idle duration of a Read, in
    /// microseconds, the load is stopped if a Read waits too long.
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
            scope.spawn(|| read_repeatedly(connection, session, &reads, &is_over));
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

/// The maximum wait for a given idle duration of a Read in microseconds.
pub(super) fn patience(rest: f64) -> Duration {
    PATIENCE.0.max(Duration::from_secs_f64((rest * PATIENCE.1 / 1e6).min(60.0)))
}

/// The pause before a Read: evenly distributed from 0.4 to 1.6 times the mean. Constant pauses could synchronize with
/// periodic work of the server, and meet it always or never.
fn pause(read: u32) -> Duration {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    PAUSE.mul_f64(0.4 + 1.2 * (f64::from(read) * GOLDEN).fract())
}

/// Reads one after another.
fn read_repeatedly(
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

/// Stops the load if a Read waits too long.
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
    fn the_median_is_of_the_window_and_the_maximum_of_all() {
        let begin = Instant::now();
        let at = |millis: u64| begin + Duration::from_millis(millis);
        let mut reads = Reads {
            answered: vec![(at(0), 9_000.0), (at(50), 100.0), (at(100), 300.0), (at(150), 200.0)],
            ..Reads::default()
        };
        let noticed = reads.noticed(Some(at(50)), false);
        assert_eq!((noticed.middle_us, noticed.longest_us), (200.0, 9_000.0));
        // No Read in the window was answered.
        assert_eq!(reads.noticed(Some(at(200)), true).middle_us, f64::INFINITY);
        reads.has_failed = true;
        assert_eq!(reads.noticed(None, false).longest_us, f64::INFINITY);
        assert_eq!(Reads::default().noticed(None, false).middle_us, f64::INFINITY);
    }

    #[test]
    fn reads_sample_periodic_work_proportionally() {
        // A server that is busy for 40 ms of every 100 ms, and answers Reads afterwards.
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
    fn a_read_that_waits_too_long_stops_the_load() {
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
        // A server that needs a second when idle is given five seconds.
        assert!(!ends(long, Some(1e6)));
    }
}
