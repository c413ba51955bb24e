//! Runs a publisher on its own thread, which sleeps until absolute times and only encodes and sends messages.
//!
//! The thread wakes early by the usual time for waking and encoding, and sends when the cycle is due. Neither signals
//! nor the lateness of a cycle move the next one. Several WriterGroups share the thread; messages that are due at the
//! same time are sent together.

mod probes;
mod timing;

pub(crate) use timing::read;

use self::probes::{Listener, listen, listens_alike};
use self::timing::{Busy, Timer};
use super::early::Usual;
use super::interface::Interface;
use super::keys::{KeySource, KeyThread};
use super::lateness::{Lateness, LatenessSnapshot};
use super::link::{self, Link};
use super::timer::{Alarm, RealTime};
use super::udp::{self, UdpOptions};
use super::{Address, PubSubError};
use crate::entropy::OsEntropy;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use taktwerk_crypto::PubSubProvider;
use taktwerk_pubsub::config::Configuration;
use taktwerk_pubsub::{Now, Publisher, PublisherEvent, PublisherOptions, Transmit, Values};
use taktwerk_types::Instant;

/// How much earlier than due a cycle's messages are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Prepare {
    /// By the time that waking and encoding have usually taken lately: the freshest values that can be sent on time.
    #[default]
    Automatic,
    /// Not at all: values are sampled when the cycle is due, and sent after that.
    WhenDue,
    /// By a fixed time.
    Early(Duration),
}

/// Receives the publisher's events. It is called on the timer thread, so it must not block.
pub type EventHandler = Box<dyn FnMut(&PublisherEvent) + Send>;

/// Options of a publisher besides its configuration.
#[non_exhaustive]
pub struct PublisherDriverOptions {
    /// Options of the engine.
    pub engine: PublisherOptions,
    /// UDP options.
    pub udp: UdpOptions,
    /// Real-time options of the timer thread.
    pub real_time: RealTime,
    /// When messages are encoded.
    pub prepare: Prepare,
    /// Cycles that are sent later than this are counted as late, with the cause.
    pub late_after: Duration,
    /// Time of the first cycle on the monotonic clock; `None`: at once.
    pub start: Option<Instant>,
    /// Answer discovery probes.
    pub discovery: bool,
    /// Source of the keys of security groups.
    pub keys: Option<Box<dyn KeySource>>,
    /// Receives the publisher's events.
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

/// A new configuration for a running publisher: see [`RunningPublisher::reconfigure`].
#[non_exhaustive]
pub struct PublisherChange {
    /// The new configuration.
    pub configuration: Configuration,
    /// Links that were opened elsewhere, by the position of their connection.
    pub links: Vec<(usize, Box<dyn Link>)>,
    /// Changes the source of values, on the timer thread, right after the engine was reconfigured.
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

/// A prepared change; invalid addresses were reported during preparation.
#[must_use = "nothing changes before it is committed"]
pub struct PreparedChange {
    configuration: Configuration,
    /// New links, and positions of the links that are kept.
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

/// What was sent since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SentTotals {
    /// Turns of the timer thread in which something was sent.
    pub turns: u64,
    /// NetworkMessages that the kernel or the broker client accepted.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// NetworkMessages that were not accepted.
    pub failed: u64,
    /// CPU time of the thread, in nanoseconds.
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

/// A running publisher. Dropping it stops the publisher.
#[derive(Debug)]
pub struct RunningPublisher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    listener: Mutex<Option<Listener>>,
    /// The current configuration, or the one the timer thread is about to use.
    configuration: Mutex<Configuration>,
    udp: UdpOptions,
    message_len_max: usize,
    discovery: bool,
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
    /// The configuration or an address is invalid, or the kernel refuses a request.
    pub fn start(
        configuration: Configuration,
        values: impl Values + Send + 'static,
        provider: Arc<dyn PubSubProvider>,
        mut options: PublisherDriverOptions,
    ) -> Result<Self, PubSubError> {
        for problem in taktwerk_pubsub::config::unused::unused_by_publishers(&configuration) {
            tracing::warn!("the PubSub configuration: {problem}");
        }
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
                    resting: Usual::default(),
                    last_due: Instant::ZERO,
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

    /// The current configuration; a new one takes effect within some milliseconds.
    #[must_use]
    pub fn configuration(&self) -> Configuration {
        lock(&self.configuration).clone()
    }

    /// Applies another configuration. Unchanged parts continue ([`Publisher::reconfigure`]); connections that are new
    /// or have other addresses are opened.
    ///
    /// # Errors
    /// The configuration or an address is invalid. Nothing has changed then.
    pub fn reconfigure(&self, change: PublisherChange) -> Result<(), PubSubError> {
        let prepared = self.prepare(change)?;
        self.commit(prepared);
        Ok(())
    }

    /// The first half of [`Self::reconfigure`], which can fail: opens new connections.
    ///
    /// # Errors
    /// The configuration or an address is invalid.
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

    /// The second half of [`Self::reconfigure`]: the timer thread applies the change within some milliseconds. A change
    /// must not be committed if another one was committed after it was prepared.
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
                // It was validated before, so this cannot fail.
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
            // Closing a link may take time, which the timer thread does not have.
            let _ = done.send(old);
        }));
        let closing = move || drop(unused.recv_timeout(Duration::from_secs(10)));
        // If the thread cannot be started, the links are closed when the publisher ends.
        let _ = std::thread::Builder::new().name("pubsub-close".to_owned()).spawn(closing);
    }

    fn push(&self, command: Command) {
        lock(&self.shared.commands).push_back(command);
        self.shared.has_commands.store(true, Ordering::Release);
        self.shared.alarm.wake();
    }

    /// Runs a command on the engine, within some milliseconds.
    pub fn run(&self, command: impl FnOnce(&mut Publisher, Now) + Send + 'static) {
        self.push(Box::new(move |timer, now| command(&mut timer.engine, now)));
    }

    /// Runs a command on the engine and waits for its result; `None` if the publisher has stopped.
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

    /// How late the cycles were, and why.
    #[must_use]
    pub fn lateness(&self) -> LatenessSnapshot {
        self.shared.lateness.snapshot()
    }

    /// What was sent.
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

    /// When sending of the last turn's messages began, on the monotonic clock in nanoseconds; 0 before the first. A
    /// receiver in the same process can compute the network's share of the latency.
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
    // The queue is valid even if a command has panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Limits messages to the size of a frame, unless the configuration asks for larger ones.
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
