//! The timer thread: it sleeps until a cycle has to be prepared, encodes its messages, and sends them when they are
//! due.

use super::super::early::Usual;
use super::super::keys::{KeyThread, LOOK};
use super::super::lateness::TurnTimes;
use super::super::link::Link;
use super::super::timer::{awake_max, sleep_until};
use super::super::udp;
use super::{Prepare, PublisherDriverOptions, Shared, lock};
use crate::clock::{Clock, monotonic, thread_cpu};
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use taktwerk_pubsub::{GroupIndex, Now, Publisher, PublisherEvent, Transmit, Values};
use taktwerk_types::{Instant, UtcTime};

/// Upper limit of the time allowed for waking, in nanoseconds.
const WAKE_MAX: u64 = 250_000;
/// How much earlier than due the kernel gets datagrams that it sends at a given time, in nanoseconds.
const HAND_OVER: u64 = 200_000;
/// State of the timer thread.
pub(super) struct Timer {
    pub(super) engine: Publisher,
    pub(super) links: Vec<Option<Box<dyn Link>>>,
    pub(super) values: Box<dyn Values + Send>,
    pub(super) shared: Arc<Shared>,
    pub(super) keys: Option<KeyThread>,
    pub(super) out: Transmit,
    /// How late the thread wakes.
    pub(super) waking: Usual,
    /// Time for encoding a turn's messages.
    pub(super) making: Usual,
    /// How late the thread wakes after a sleep of some microseconds.
    pub(super) resting: Usual,
    /// When the last turn was due.
    pub(super) last_due: Instant,
    pub(super) busy: Busy,
    /// A failure to send was already logged.
    pub(super) has_failed: bool,
    pub(super) options: PublisherDriverOptions,
}

/// Duration of the last turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Busy {
    /// Until its messages were sent, without the wait until they were due, in nanoseconds.
    wall: u64,
    /// CPU time, including the time before the turn.
    cpu: u64,
    /// The thread's CPU time at the end of the turn.
    cpu_until: u64,
}

impl Timer {
    pub(super) fn run(mut self) {
        let mut clock = Clock::new();
        let now = read(&mut clock);
        self.engine.start(self.options.start.unwrap_or(now.instant), now);
        while !self.shared.stop.load(Ordering::Acquire) {
            let now = read(&mut clock);
            self.look(now);
            let due = self.engine.poll_timeout().unwrap_or(Instant::FAR);
            let wanted = Instant::from_nanos(due.as_nanos().saturating_sub(self.lead()));
            let look = self.next_look(now);
            if wanted > look {
                self.shared.alarm.sleep_until(look);
                continue;
            }
            let was_asleep = wanted > now.instant;
            if was_asleep && self.shared.alarm.sleep_until(wanted) {
                continue;
            }
            self.turn(&mut clock, wanted, due, was_asleep);
        }
        let now = read(&mut clock);
        self.engine.stop(now);
    }

    /// When to poll for what cannot wake the thread.
    fn next_look(&self, now: Now) -> Instant {
        let soon = now.instant + LOOK;
        if self.links.iter().flatten().any(|link| link.may_announce()) {
            return soon;
        }
        let keys = self.keys.as_ref().and_then(|_| self.engine.key_timeout());
        keys.map_or(Instant::FAR, |due| due.max(soon))
    }

    /// By how many nanoseconds the next cycle is prepared early.
    fn lead(&self) -> u64 {
        let waking = self.waking.nanos().min(WAKE_MAX);
        match self.options.prepare {
            Prepare::WhenDue if self.options.udp.send_time => HAND_OVER,
            Prepare::WhenDue => 0,
            Prepare::Early(span) => u64::try_from(span.as_nanos()).unwrap_or(u64::MAX),
            Prepare::Automatic if self.options.udp.send_time => waking + self.making.nanos() + HAND_OVER,
            Prepare::Automatic => waking + self.making.nanos(),
        }
    }

    fn turn(&mut self, clock: &mut Clock, wanted: Instant, due: Instant, was_asleep: bool) {
        let woken = read(clock);
        if was_asleep {
            self.waking.saw(nanos_between(wanted, woken.instant));
        }
        // Messages prepared early carry the time at which they are due.
        let ahead = due.since(woken.instant);
        let now = Now { instant: woken.instant.max(due), utc: woken.utc.plus(ahead) };
        self.out.clear();
        self.engine.poll(now, &mut *self.values, &mut self.out);
        if self.out.is_empty() {
            self.events(false);
            return;
        }
        let prepared = monotonic();
        let encode = nanos_between(woken.instant, prepared);
        self.making.saw(encode);
        let at = self.options.udp.send_time.then_some(due.as_nanos());
        let since = nanos_between(core::mem::replace(&mut self.last_due, due), due);
        if at.is_none() {
            rest(&mut self.resting, since, prepared, due);
        }
        let sending = monotonic();
        self.shared.sending.store(sending.as_nanos(), Ordering::Release);
        let mut sent = udp::Sent::default();
        for (connection, link) in self.links.iter_mut().enumerate() {
            let Some(link) = link else { continue };
            let of_link = link.send(connection, &self.out, at);
            if of_link.failed > 0 {
                for (group, messages) in link.failures() {
                    self.engine.transmission_failed(GroupIndex { connection, group: *group }, *messages);
                }
            }
            sent.add(of_link);
        }
        let done = monotonic();
        let times = TurnTimes {
            total: nanos_between(due, sending),
            timer: nanos_between(wanted, woken.instant).max(match prepared < due {
                // The second sleep of a prepared cycle counts as timer lateness, too.
                true => nanos_between(due, sending),
                false => 0,
            }),
            encode,
            send: nanos_between(sending, done),
        };
        let late_after = u64::try_from(self.options.late_after.as_nanos()).unwrap_or(u64::MAX);
        self.shared.lateness.record(times, late_after);
        let add = |cell: &AtomicU64, more: usize| {
            cell.store(cell.load(Ordering::Relaxed) + more as u64, Ordering::Relaxed);
        };
        add(&self.shared.turns, 1);
        add(&self.shared.messages, sent.datagrams);
        add(&self.shared.bytes, sent.bytes);
        add(&self.shared.failed, sent.failed);
        if let Some(error) = sent.error {
            let error = std::io::Error::from_raw_os_error(error);
            if core::mem::replace(&mut self.has_failed, true) {
                tracing::debug!(failed = sent.failed, %error, "messages were not sent");
            } else {
                tracing::warn!(failed = sent.failed, %error, "messages were not sent; further failures are only counted");
            }
        }
        // A preempted thread did not use the CPU.
        let was_busy = !was_asleep && self.busy.cpu >= self.busy.wall / 2;
        self.events(was_busy);
        let cpu = u64::try_from(thread_cpu().as_nanos()).unwrap_or(u64::MAX);
        self.shared.cpu_nanos.store(cpu, Ordering::Relaxed);
        // Waiting, asleep or spinning, is not work.
        let waited = nanos_between(prepared, sending);
        let wall = nanos_between(woken.instant, done).saturating_sub(waited);
        let used = cpu.saturating_sub(self.busy.cpu_until).saturating_sub(waited);
        self.busy = Busy { wall, cpu: used, cpu_until: cpu };
    }

    /// Reports events. `was_busy` says whether missed cycles of this turn were caused by the previous turn's work.
    fn events(&mut self, was_busy: bool) {
        while let Some(event) = self.engine.poll_event() {
            tracing::debug!(?event, "publisher");
            if let PublisherEvent::Missed { cycles, .. } = event {
                self.shared.lateness.missed(cycles, was_busy);
            }
            if let Some(handler) = &mut self.options.events {
                handler(&event);
            }
        }
    }

    /// Processes commands, keys and probes.
    fn look(&mut self, now: Now) {
        if self.shared.has_commands.swap(false, Ordering::Acquire) {
            while let Some(command) = { lock(&self.shared.commands).pop_front() } {
                command(self, now);
                self.events(false);
            }
        }
        if self.shared.has_probes.swap(false, Ordering::Acquire) {
            while let Some((connection, probe)) = { lock(&self.shared.probes).pop_front() } {
                self.engine.receive(connection, &probe, now);
            }
        }
        for (connection, link) in self.links.iter_mut().enumerate() {
            if link.as_mut().is_some_and(|link| link.wants_announcement()) {
                self.engine.announce(connection, now);
            }
        }
        let Some(keys) = &self.keys else { return };
        while let Some((group, outcome)) = keys.answer() {
            if let Err(error) = self.engine.set_keys(&group, outcome.as_ref().map_err(|status| *status), now)
            {
                tracing::warn!(group, %error, "the key service's answer cannot be used");
            }
        }
        if self.engine.key_timeout().is_some_and(|due| due <= now.instant) {
            while let Some(request) = self.engine.poll_key_request(now) {
                keys.ask(request);
            }
        }
    }
}

/// Waits until a near time: spins if that is cheap, otherwise sleeps and leaves time for waking.
fn rest(resting: &mut Usual, since: u64, now: Instant, until: Instant) {
    let awake_max = awake_max(since);
    if nanos_between(now, until) > awake_max {
        let wanted = Instant::from_nanos(until.as_nanos().saturating_sub(resting.nanos().min(awake_max)));
        if wanted > now {
            sleep_until(wanted);
            resting.saw(nanos_between(wanted, monotonic()));
        }
    }
    while monotonic() < until {
        core::hint::spin_loop();
    }
}

fn nanos_between(from: Instant, to: Instant) -> u64 {
    to.as_nanos().saturating_sub(from.as_nanos())
}

/// The time on both clocks.
pub(crate) fn read(clock: &mut Clock) -> Now {
    let (instant, utc): (Instant, UtcTime) = clock.read();
    Now { instant, utc }
}
