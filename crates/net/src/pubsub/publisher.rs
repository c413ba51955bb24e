//! A publisher on its own thread, which sleeps until absolute times and does nothing but make and send messages.
//!
//! A cycle is woken early by what waking and making its messages are known to take, and sends when it is due: neither the
//! number of signals nor the lateness of the last cycle moves the next one. Several WriterGroups share the thread; what is due at
//! the same time goes out together.

use super::early::Usual;
use super::inlet::{self, Inlet};
use super::interface::Interface;
use super::keys::{KeySource, KeyThread, LOOK};
use super::lateness::{Lateness, LatenessSnapshot, TurnTimes};
use super::link::{self, Link};
use super::timer::{Alarm, RealTime, sleep_until};
use super::udp::{self, UdpOptions};
use super::{Address, PubSubError};
use crate::clock::{Clock, monotonic, thread_cpu};
use crate::entropy::OsEntropy;
use crate::poll::{Interest, Poller};
use crate::wake::Waker;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use taktwerk_crypto::PubSubProvider;
use taktwerk_pubsub::config::{Configuration, Connection};
use taktwerk_pubsub::{GroupIndex, Now, Publisher, PublisherEvent, PublisherOptions, Transmit, Values};
use taktwerk_types::{Instant, UtcTime};

/// What waking may take at most when a cycle is prepared early, whatever it has taken lately.
const WAKE_MAX: u64 = 250_000;
/// How much earlier than they are due the kernel is given datagrams that it sends by itself.
const HAND_OVER: u64 = 200_000;
/// A shorter rest than this is waited for awake: going to sleep and waking up takes as long.
const REST: u64 = 15_000;
/// Discovery probes that wait for the timer thread.
const PROBES_MAX: usize = 256;

/// How much earlier than due a cycle's messages are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Prepare {
    /// By what waking and making them have taken lately: values are as fresh as being on time allows.
    #[default]
    Automatic,
    /// Not at all: values are sampled when the cycle is due, and sent when that is done.
    WhenDue,
    /// By a fixed span.
    Early(Duration),
}

/// What a publisher's thread is told of what happened; called on it, so it must not wait.
pub type EventHandler = Box<dyn FnMut(&PublisherEvent) + Send>;

/// What a publisher is given besides its configuration.
#[non_exhaustive]
pub struct PublisherDriverOptions {
    /// Of the engine.
    pub engine: PublisherOptions,
    /// How datagrams travel.
    pub udp: UdpOptions,
    /// What the kernel is asked to do for the timer thread.
    pub real_time: RealTime,
    /// When messages are made.
    pub prepare: Prepare,
    /// Cycles sent later than this after they were due are counted as late, with the reason.
    pub late_after: Duration,
    /// When the first cycle is, on the monotonic clock; `None`: at once.
    pub start: Option<Instant>,
    /// Answer discovery probes.
    pub discovery: bool,
    /// Where keys of security groups come from.
    pub keys: Option<Box<dyn KeySource>>,
    /// Told what happened.
    pub events: Option<EventHandler>,
    /// Links that were opened elsewhere, by the position of their connection.
    pub links: Vec<(usize, Box<dyn Link>)>,
}

impl Default for PublisherDriverOptions {
    fn default() -> Self {
        Self {
            engine: PublisherOptions::default(),
            udp: UdpOptions::default(),
            real_time: RealTime::default(),
            prepare: Prepare::default(),
            late_after: Duration::from_millis(1),
            start: None,
            discovery: true,
            keys: None,
            events: None,
            links: Vec::new(),
        }
    }
}

impl core::fmt::Debug for PublisherDriverOptions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PublisherDriverOptions")
            .field("udp", &self.udp)
            .field("real_time", &self.real_time)
            .field("prepare", &self.prepare)
            .finish_non_exhaustive()
    }
}

type Command = Box<dyn FnOnce(&mut Timer, Now) + Send>;

/// Another configuration for a publisher that runs: see [`RunningPublisher::reconfigure`].
#[non_exhaustive]
pub struct PublisherChange {
    /// The new configuration.
    pub configuration: Configuration,
    /// Links that were opened elsewhere, by the position of their connection.
    pub links: Vec<(usize, Box<dyn Link>)>,
    /// Changes the source of values, on the timer thread, right after the engine has changed.
    pub values: Option<ValuesChange>,
}

/// See [`PublisherChange::values`].
pub type ValuesChange = Box<dyn FnOnce(&mut dyn Values) + Send>;

impl PublisherChange {
    /// A change to a configuration.
    #[must_use]
    pub fn new(configuration: Configuration) -> Self {
        Self { configuration, links: Vec::new(), values: None }
    }
}

impl core::fmt::Debug for PublisherChange {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PublisherChange").field("links", &self.links.len()).finish_non_exhaustive()
    }
}

/// What is there of a change before it is made: addresses that are none have shown themselves.
#[must_use = "nothing changes before it is committed"]
pub struct PreparedChange {
    configuration: Configuration,
    /// A new link, or the position of the one that goes on.
    links: Vec<NextLink>,
    values: Option<ValuesChange>,
    message_len_max: usize,
}

impl core::fmt::Debug for PreparedChange {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PreparedChange").field("links", &self.links.len()).finish_non_exhaustive()
    }
}

enum NextLink {
    New(Box<dyn Link>),
    Kept(usize),
    None,
}

/// What has left since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SentTotals {
    /// Turns of the timer thread in which something was sent.
    pub turns: u64,
    /// NetworkMessages the kernel or the broker's client took.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// NetworkMessages they did not take.
    pub failed: u64,
    /// CPU time the thread has used, in nanoseconds.
    pub cpu_nanos: u64,
}

#[derive(Default)]
struct Shared {
    alarm: Alarm,
    stop: AtomicBool,
    has_commands: AtomicBool,
    commands: Mutex<VecDeque<Command>>,
    probes: Mutex<VecDeque<(usize, Vec<u8>)>>,
    has_probes: AtomicBool,
    lateness: Lateness,
    turns: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
    failed: AtomicU64,
    cpu_nanos: AtomicU64,
    sending: Arc<AtomicU64>,
}

/// A publisher that runs; it stops when this is dropped.
#[derive(Debug)]
pub struct RunningPublisher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    listener: Mutex<Option<Listener>>,
    /// What runs, or will as soon as the timer thread has taken it.
    configuration: Mutex<Configuration>,
    udp: UdpOptions,
    message_len_max: usize,
    discovery: bool,
}

/// The thread that takes discovery probes.
#[derive(Debug)]
struct Listener {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: JoinHandle<()>,
}

impl Listener {
    fn end(self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        let _ = self.thread.join();
    }
}

impl core::fmt::Debug for Shared {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shared").field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl RunningPublisher {
    /// Opens the links of a configuration and starts publishing.
    ///
    /// # Errors
    /// What is wrong with the configuration, its addresses, or what was asked of the kernel.
    pub fn start(
        configuration: Configuration,
        values: impl Values + Send + 'static,
        provider: Arc<dyn PubSubProvider>,
        mut options: PublisherDriverOptions,
    ) -> Result<Self, PubSubError> {
        let (udp, message_len_max) = (options.udp.clone(), options.engine.message_len_max);
        fit_to_frames(&configuration, &mut options.engine.message_len_max, &mut options.udp);
        let running_configuration = configuration.clone();
        let discovery = options.discovery;
        let mut links = Vec::new();
        for (position, connection) in configuration.connections.iter().enumerate() {
            let is_publishing = !connection.writer_groups.is_empty();
            let given = options.links.iter().position(|(of, _)| *of == position);
            let link = match given.map(|at| options.links.swap_remove(at).1) {
                Some(given) => Some(given),
                None if is_publishing => Some(link::open(connection, &options.udp)?),
                None => None,
            };
            links.push(link);
        }
        let shared = Arc::new(Shared::default());
        let listener = if options.discovery { listen(&configuration, &shared) } else { None };
        let engine_options = core::mem::take(&mut options.engine);
        let engine = Publisher::new(configuration, engine_options, provider, Box::new(OsEntropy))
            .map_err(PubSubError::Configuration)?;
        let waking = Arc::clone(&shared);
        let keys = options.keys.take().map(|source| KeyThread::start(source, move || waking.alarm.wake()));
        let keys = keys.transpose();
        let keys = keys.map_err(|source| PubSubError::Thread { thread: "key", source })?;
        let (tell, told) = mpsc::channel();
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("pubsub-timer".to_owned())
            .spawn(move || {
                let outcome = options.real_time.apply();
                let is_fine = outcome.is_ok();
                if tell.send(outcome).is_err() || !is_fine {
                    return;
                }
                let turn = Timer {
                    engine,
                    links,
                    values: Box::new(values),
                    shared: theirs,
                    keys,
                    out: Transmit::new(),
                    waking: Usual::default(),
                    making: Usual::default(),
                    busy: Busy::default(),
                    has_failed: false,
                    options,
                };
                turn.run();
            })
            .map_err(|source| PubSubError::Thread { thread: "publisher's timer", source })?;
        let running = Self {
            shared,
            thread: Some(thread),
            listener: Mutex::new(listener),
            configuration: Mutex::new(running_configuration),
            udp,
            message_len_max,
            discovery,
        };
        match told.recv() {
            Ok(Ok(())) => Ok(running),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(PubSubError::Thread {
                thread: "publisher's timer",
                source: std::io::Error::other("it ended at once"),
            }),
        }
    }

    /// The configuration that runs, or will within some milliseconds.
    #[must_use]
    pub fn configuration(&self) -> Configuration {
        lock(&self.configuration).clone()
    }

    /// Takes another configuration: what is not touched by it runs on ([`Publisher::reconfigure`]), connections that
    /// are new or have other addresses are opened.
    ///
    /// # Errors
    /// What is wrong with the configuration or its addresses; nothing has changed then.
    pub fn reconfigure(&self, change: PublisherChange) -> Result<(), PubSubError> {
        let prepared = self.prepare(change)?;
        self.commit(prepared);
        Ok(())
    }

    /// The first half of [`Self::reconfigure`], which can fail: opens what has to be opened.
    ///
    /// # Errors
    /// What is wrong with the configuration or its addresses.
    pub fn prepare(&self, mut change: PublisherChange) -> Result<PreparedChange, PubSubError> {
        let configuration = change.configuration;
        let problems = taktwerk_pubsub::config::validate(&configuration);
        if !problems.is_empty() {
            return Err(PubSubError::Configuration(problems));
        }
        let (mut udp, mut message_len_max) = (self.udp.clone(), self.message_len_max);
        fit_to_frames(&configuration, &mut message_len_max, &mut udp);
        let current = lock(&self.configuration).clone();
        let mut links = Vec::new();
        for (position, connection) in configuration.connections.iter().enumerate() {
            let given = change.links.iter().position(|(of, _)| *of == position);
            let before = current.connections.iter().position(|before| before.name == connection.name);
            let kept = before.filter(|at| {
                let before = current.connections.get(*at);
                before.is_some_and(|before| link::sends_alike(before, connection))
            });
            links.push(match (given.map(|at| change.links.swap_remove(at).1), kept) {
                (Some(given), _) => NextLink::New(given),
                (None, Some(at)) => NextLink::Kept(at),
                (None, None) if connection.writer_groups.is_empty() => NextLink::None,
                (None, None) => NextLink::New(link::open(connection, &udp)?),
            });
        }
        Ok(PreparedChange { configuration, links, values: change.values, message_len_max })
    }

    /// The second half of [`Self::reconfigure`]: within some milliseconds the timer thread goes on with it. One that
    /// was prepared before another was committed must not be committed any more.
    pub fn commit(&self, change: PreparedChange) {
        let PreparedChange { configuration, links, values, message_len_max } = change;
        if self.discovery {
            let listener = lock(&self.listener).take();
            *lock(&self.listener) = match listener {
                Some(listener) if listens_alike(&lock(&self.configuration), &configuration) => Some(listener),
                old => {
                    if let Some(old) = old {
                        old.end();
                    }
                    listen(&configuration, &self.shared)
                }
            };
        }
        *lock(&self.configuration) = configuration.clone();
        let (done, unused) = mpsc::channel();
        self.push(Box::new(move |timer, now| {
            timer.engine.set_message_len_max(message_len_max);
            if let Err(problems) = timer.engine.reconfigure(configuration, now) {
                // It was looked through before, and nothing else can be wrong with it.
                tracing::error!(?problems, "the new configuration cannot run");
                return;
            }
            if let Some(change) = values {
                change(&mut *timer.values);
            }
            let mut old = core::mem::take(&mut timer.links);
            timer.links = links
                .into_iter()
                .map(|link| match link {
                    NextLink::New(link) => Some(link),
                    NextLink::Kept(at) => old.get_mut(at).and_then(Option::take),
                    NextLink::None => None,
                })
                .collect();
            // Closing a link may take its time, and this thread has none.
            let _ = done.send(old);
        }));
        let closing = move || drop(unused.recv_timeout(Duration::from_secs(10)));
        // Without a thread for it, it is closed when the publisher ends.
        let _ = std::thread::Builder::new().name("pubsub-close".to_owned()).spawn(closing);
    }

    fn push(&self, command: Command) {
        lock(&self.shared.commands).push_back(command);
        self.shared.has_commands.store(true, Ordering::Release);
        self.shared.alarm.wake();
    }

    /// Runs something on the engine, within some milliseconds.
    pub fn run(&self, command: impl FnOnce(&mut Publisher, Now) + Send + 'static) {
        self.push(Box::new(move |timer, now| command(&mut timer.engine, now)));
    }

    /// Runs something on the engine and waits for what it gives; `None` if the publisher has stopped.
    pub fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Publisher, Now) -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = mpsc::channel();
        self.run(move |engine, now| {
            let _ = tell.send(question(engine, now));
        });
        told.recv_timeout(Duration::from_secs(10)).ok()
    }

    /// How late its cycles were, and why.
    #[must_use]
    pub fn lateness(&self) -> LatenessSnapshot {
        self.shared.lateness.snapshot()
    }

    /// What has left.
    #[must_use]
    pub fn sent(&self) -> SentTotals {
        let load = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        SentTotals {
            turns: load(&self.shared.turns),
            messages: load(&self.shared.messages),
            bytes: load(&self.shared.bytes),
            failed: load(&self.shared.failed),
            cpu_nanos: load(&self.shared.cpu_nanos),
        }
    }

    /// When the messages of the last turn were ready and began to be sent, on the monotonic clock in nanoseconds; 0 before
    /// the first. Who receives them in the same process can tell the wire's share of a delay.
    #[must_use]
    pub fn sending(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.shared.sending)
    }

    /// Stops and waits for the thread.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.alarm.wake();
        if let Some(listener) = lock(&self.listener).take() {
            listener.end();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for RunningPublisher {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What a panicking command has left is still a queue.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Messages are made to fit a frame, where the configuration does not ask for larger ones.
fn fit_to_frames(configuration: &Configuration, message_len_max: &mut usize, udp: &mut UdpOptions) {
    for connection in &configuration.connections {
        let frame = match Address::parse(&connection.url) {
            Ok(Address::Udp(address)) => {
                let interface = Interface::find(&connection.network_interface);
                udp::payload_max(address, &interface.unwrap_or_else(|_| Interface::any()))
            }
            Ok(Address::Ethernet { .. }) => super::ethernet::PAYLOAD_MAX,
            _ => continue,
        };
        if !connection.writer_groups.is_empty() {
            *message_len_max = (*message_len_max).min(frame);
        }
        let largest = connection.writer_groups.iter().map(|group| group.max_network_message_size).max();
        if largest.is_some_and(|size| size as usize > frame) {
            udp.fragment = true;
        }
    }
}

/// What the timer thread works with.
struct Timer {
    engine: Publisher,
    links: Vec<Option<Box<dyn Link>>>,
    values: Box<dyn Values + Send>,
    shared: Arc<Shared>,
    keys: Option<KeyThread>,
    out: Transmit,
    /// How late the thread wakes.
    waking: Usual,
    /// What making a turn's messages takes.
    making: Usual,
    busy: Busy,
    /// A message could not be sent, and that was told.
    has_failed: bool,
    options: PublisherDriverOptions,
}

/// What the last turn took.
#[derive(Debug, Clone, Copy, Default)]
struct Busy {
    /// Until its messages were sent, in nanoseconds.
    wall: u64,
    /// Of the CPU, with what led to it.
    cpu: u64,
    /// The thread's CPU time when it had ended.
    cpu_until: u64,
}

impl Timer {
    fn run(mut self) {
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

    /// When to look for what nobody wakes us for.
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
        // What is prepared early is dated at the time it is due.
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
        if at.is_none() {
            rest(prepared, due);
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
                // The second sleep of a prepared cycle is the timer's too.
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
                tracing::warn!(failed = sent.failed, %error, "messages were not sent; from now on this is only counted");
            }
        }
        // A thread that others kept from running did not use the CPU.
        let was_busy = !was_asleep && self.busy.cpu >= self.busy.wall / 2;
        self.events(was_busy);
        let cpu = u64::try_from(thread_cpu().as_nanos()).unwrap_or(u64::MAX);
        self.shared.cpu_nanos.store(cpu, Ordering::Relaxed);
        let (wall, used) = (nanos_between(woken.instant, done), cpu.saturating_sub(self.busy.cpu_until));
        self.busy = Busy { wall, cpu: used, cpu_until: cpu };
    }

    /// Tells what happened; cycles that were missed in a turn were so because the one before it `was_busy`, or not.
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

    /// Commands, keys and probes.
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
                tracing::warn!(group, %error, "the key service's answer is of no use");
            }
        }
        if self.engine.key_timeout().is_some_and(|due| due <= now.instant) {
            while let Some(request) = self.engine.poll_key_request(now) {
                keys.ask(request);
            }
        }
    }
}

/// Waits until a time that is near.
fn rest(now: Instant, until: Instant) {
    if nanos_between(now, until) > REST {
        sleep_until(until);
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

/// Starts the thread that takes discovery probes; without one, probes are not answered.
fn listen(configuration: &Configuration, shared: &Arc<Shared>) -> Option<Listener> {
    let publishing: Vec<(usize, Connection)> =
        probed(configuration).map(|(position, connection)| (position, connection.clone())).collect();
    if publishing.is_empty() {
        return None;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let waker = Waker::new().ok()?;
    let (told, theirs, shared) = (Arc::clone(&stop), waker.clone(), Arc::clone(shared));
    let thread = std::thread::Builder::new().name("pubsub-probes".to_owned()).spawn(move || {
        if let Err(error) = take_probes(&publishing, &theirs, &shared, &told) {
            tracing::warn!(%error, "discovery probes are not answered");
        }
    });
    Some(Listener { stop, waker, thread: thread.ok()? })
}

/// The connections on which probes may come.
fn probed(configuration: &Configuration) -> impl Iterator<Item = (usize, &Connection)> {
    configuration.connections.iter().enumerate().filter(|(_, connection)| {
        !connection.writer_groups.is_empty() && connection.url.starts_with("opc.udp")
    })
}

/// Whether probes come the same way in two configurations.
fn listens_alike(old: &Configuration, new: &Configuration) -> bool {
    let ways = |configuration: &Configuration| {
        let ways = probed(configuration).map(|(position, connection)| {
            (
                position,
                connection.url.clone(),
                connection.network_interface.clone(),
                link::discovery_url(connection),
            )
        });
        ways.collect::<Vec<_>>()
    };
    ways(old) == ways(new)
}

fn take_probes(
    publishing: &[(usize, Connection)],
    waker: &Waker,
    shared: &Shared,
    stop: &AtomicBool,
) -> Result<(), PubSubError> {
    let fail = |error: std::io::Error| PubSubError::socket("wait for discovery probes", error);
    let mut poller = Poller::new().map_err(fail)?;
    poller.add_edge(waker.fd(), u64::MAX).map_err(fail)?;
    let mut inlets: Vec<(usize, Box<dyn Inlet>)> = Vec::new();
    for (position, connection) in publishing {
        // Where data is sent to one station, that station's port is not ours to listen at.
        let is_group = Address::parse(&connection.url)?.is_multicast();
        let inlet = match inlet::open_discovery(connection)? {
            Some(inlet) => inlet,
            None if is_group => inlet::open(connection)?,
            None => continue,
        };
        poller.add(inlet.fd(), inlets.len() as u64, Interest::READ).map_err(fail)?;
        inlets.push((*position, inlet));
    }
    while !stop.load(Ordering::Acquire) {
        if waker.sleep() {
            poller.wait(Some(Duration::from_secs(1))).map_err(fail)?;
        }
        waker.awake();
        for (connection, inlet) in &mut inlets {
            let more = inlet.receive(&mut |datagram| {
                let mut probes = lock(&shared.probes);
                if probes.len() < PROBES_MAX {
                    probes.push_back((*connection, datagram.to_vec()));
                    shared.has_probes.store(true, Ordering::Release);
                    shared.alarm.wake();
                }
            });
            more.map_err(fail)?;
        }
    }
    Ok(())
}
