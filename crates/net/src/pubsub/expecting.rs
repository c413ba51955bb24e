//! How a subscriber's thread waits: it sleeps, but spins while a message is expected.

use super::rhythm::Rhythm;
use super::timer::timespec;
use crate::clock::monotonic;
use crate::poll::Poller;
use core::time::Duration;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use taktwerk_pubsub::config::{Configuration, Connection, DataSetReader, DataSetReaderMessage};
use taktwerk_types::Instant;

/// How long the thread sleeps when nothing is due.
const IDLE: Duration = Duration::from_secs(1);
/// Key of the timer among the descriptors in epoll.
const TIMER: u64 = u64::MAX - 1;

/// The expected arrival times of messages.
#[derive(Debug)]
pub(super) struct Expecting {
    only_sleep: bool,
    /// One per connection, for the shortest of its intervals.
    rhythms: Vec<Option<Rhythm>>,
    /// epoll timeouts may be late by a thousandth of their length, and are; a timer descriptor is exact.
    timer: OwnedFd,
}

impl Expecting {
    /// # Errors
    /// No file descriptor is left.
    pub(super) fn new(only_sleep: bool) -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { only_sleep, rhythms: Vec::new(), timer })
    }

    /// Starts with the connections of a configuration. `poller` waits for their messages.
    ///
    /// # Errors
    /// The timer cannot be registered with epoll.
    pub(super) fn begin(&mut self, configuration: &Configuration, poller: &Poller) -> io::Result<()> {
        self.rhythms = match self.only_sleep {
            true => Vec::new(),
            false => configuration.connections.iter().map(rhythm).collect(),
        };
        poller.add_edge(&self.timer, TIMER)
    }

    /// Messages of a connection have arrived.
    pub(super) fn arrived(&mut self, connection: usize, at: Instant) {
        if let Some(Some(rhythm)) = self.rhythms.get_mut(connection) {
            rhythm.arrived(at);
        }
    }

    /// Waits until something arrives or is due.
    ///
    /// # Errors
    /// Waiting failed.
    pub(super) fn wait(&mut self, poller: &mut Poller, now: Instant, due: Instant) -> io::Result<()> {
        let windows = self.rhythms.iter().enumerate().filter_map(|(connection, rhythm)| {
            let window = rhythm.as_ref()?.window(now)?;
            Some((window.from, window.until, connection))
        });
        let Some((from, until, connection)) = windows.min().filter(|(from, ..)| *from < due) else {
            return poller.wait(Some(due.since(now).min(IDLE)));
        };
        if from > now {
            self.set(from)?;
            // A little longer than until the timer fires.
            poller.wait(Some(from.since(now).min(IDLE) + Duration::from_millis(1)))?;
            let woken = monotonic();
            if woken < from {
                return Ok(());
            }
            // Also if a message has arrived in the meantime: then the thread has woken too late for it.
            if let Some(Some(rhythm)) = self.rhythms.get_mut(connection) {
                rhythm.woken(from, woken);
            }
            if has_come(poller) {
                return Ok(());
            }
        }
        loop {
            poller.wait(Some(Duration::ZERO))?;
            if has_come(poller) || monotonic() >= until.min(due) {
                return Ok(());
            }
            // Yield to other threads that want this processor.
            std::thread::yield_now();
        }
    }

    fn set(&self, at: Instant) -> io::Result<()> {
        let once = Itimerspec { it_interval: timespec(Instant::ZERO), it_value: timespec(at) };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }
}

/// Whether there are events other than the timer's.
fn has_come(poller: &Poller) -> bool {
    (0..poller.len()).any(|at| poller.get(at).is_some_and(|event| event.key != TIMER))
}

fn rhythm(connection: &Connection) -> Option<Rhythm> {
    let interval = |reader: &DataSetReader| match &reader.message {
        DataSetReaderMessage::Uadp(uadp) => Some(uadp.publishing_interval).filter(|interval| *interval > 0.0),
        _ => None,
    };
    let readers = connection.reader_groups.iter().flat_map(|group| &group.readers);
    readers.filter_map(interval).min_by(f64::total_cmp).and_then(Rhythm::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::Interest;
    use crate::wake::Waker;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use taktwerk_pubsub::config::ReaderGroup;
    use taktwerk_schema::UadpDataSetReaderMessageDataType;

    fn connection(intervals: &[f64]) -> Connection {
        let reader = |interval: &f64| DataSetReader {
            message: DataSetReaderMessage::Uadp(UadpDataSetReaderMessageDataType {
                publishing_interval: *interval,
                ..UadpDataSetReaderMessageDataType::default()
            }),
            ..DataSetReader::default()
        };
        let mut connection = Connection::new("c", None, "opc.udp://239.0.0.1:4840");
        connection.reader_groups = vec![ReaderGroup::new("g", intervals.iter().map(reader).collect())];
        connection
    }

    /// A state in which messages arrived every second and the next one is expected in half a second, with the stream it
    /// arrives on.
    fn expecting() -> (Expecting, Poller, UnixStream, UnixStream, Waker) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut poller, waker) = (Poller::new().unwrap(), Waker::new().unwrap());
        poller.add(&ours, 0, Interest::READ).unwrap();
        poller.add_edge(waker.fd(), u64::MAX).unwrap();
        let configuration = Configuration {
            connections: vec![connection(&[]), connection(&[1000.0])],
            ..Configuration::default()
        };
        let mut expecting = Expecting::new(false).unwrap();
        expecting.begin(&configuration, &poller).unwrap();
        let past = |millis: u64| Instant::from_nanos(monotonic().as_nanos() - millis * 1_000_000);
        let last = past(500).as_nanos();
        (0..6)
            .rev()
            .for_each(|cycle| expecting.arrived(1, Instant::from_nanos(last - cycle * 1_000_000_000)));
        expecting.wait(&mut poller, monotonic(), Instant::ZERO).unwrap();
        (expecting, poller, ours, theirs, waker)
    }

    fn keys(poller: &Poller) -> Vec<u64> {
        (0..poller.len()).filter_map(|at| poller.get(at)).map(|event| event.key).collect()
    }

    #[test]
    fn the_shortest_interval_is_used() {
        assert_eq!(rhythm(&connection(&[100.0, 0.0, 20.0])), Rhythm::new(20.0));
        assert_eq!(rhythm(&connection(&[0.0])), None);
        assert_eq!(rhythm(&connection(&[])), None);
    }

    #[test]
    fn waiting_ends_when_the_message_is_late() {
        let (mut expecting, mut poller, _ours, _theirs, _waker) = expecting();
        let start = monotonic();
        let window = expecting.rhythms[1].unwrap().window(start).unwrap();
        expecting.wait(&mut poller, start, Instant::FAR).unwrap();
        assert!(monotonic() >= window.until, "awake until then");
        assert!(!has_come(&poller));
        assert_eq!(expecting.rhythms[1].unwrap().window(monotonic()), None);
    }

    #[test]
    fn messages_end_the_wait_in_and_before_the_window() {
        for early in [true, false] {
            let (mut expecting, mut poller, _ours, mut theirs, _waker) = expecting();
            let mut now = monotonic();
            let window = expecting.rhythms[1].unwrap().window(now).unwrap();
            if !early {
                super::super::timer::sleep_until(window.from);
                now = window.from;
            }
            theirs.write_all(b"a message").unwrap();
            expecting.wait(&mut poller, now, Instant::FAR).unwrap();
            assert_eq!(keys(&poller), [0], "early: {early}");
        }
    }

    #[test]
    fn commands_and_deadlines_end_the_wait() {
        let (mut expecting, mut poller, _ours, _theirs, waker) = expecting();
        assert!(waker.sleep());
        waker.wake();
        expecting.wait(&mut poller, monotonic(), Instant::FAR).unwrap();
        assert_eq!(keys(&poller), [u64::MAX]);
        // Another deadline comes before the message.
        let due = Instant::from_nanos(monotonic().as_nanos() + 1_000_000);
        expecting.wait(&mut poller, monotonic(), due).unwrap();
        assert!(!has_come(&poller));
        let window = expecting.rhythms[1].unwrap().window(monotonic());
        assert!(window.is_none_or(|window| due < window.from), "{window:?}");
    }

    #[test]
    fn only_sleep_disables_the_window() {
        let poller = Poller::new().unwrap();
        let configuration =
            Configuration { connections: vec![connection(&[100.0])], ..Configuration::default() };
        let mut expecting = Expecting::new(true).unwrap();
        expecting.begin(&configuration, &poller).unwrap();
        assert!(expecting.rhythms.is_empty());
    }
}
