//! A publisher on its own thread, which sleeps until absolute times and does nothing but make and send messages.
//!
//! A cycle is woken early by what waking and making its messages are known to take, and sends when it is due: neither the
//! number of signals nor the lateness of the last cycle moves the next one. Several WriterGroups share the thread; what is due at
//! the same time goes out together.

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
