//! Runs a subscriber on its own thread: waits for datagrams on all its sockets and passes their contents to a [`Sink`].

use super::expecting::Expecting;
use super::floor::{self, FloorFile};
use super::inlet::{self, Closing, Inlet};
use super::keys::{KeySource, KeyThread};
use super::link::{self, Link};
use super::publisher::read;
use super::timer::RealTime;
use super::udp::UdpOptions;
use super::{Address, PubSubError};
use crate::clock::Clock;
use crate::entropy::OsEntropy;
use crate::poll::{Interest, Poller};
use crate::wake::Waker;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use taktwerk_crypto::PubSubProvider;
use taktwerk_pubsub::config::{Configuration, Connection};
use taktwerk_pubsub::subscriber::SubscriberCounters;
use taktwerk_pubsub::{Now, Sink, Subscriber, SubscriberOptions, Transmit};
use taktwerk_types::Instant;

/// Maximum batches from one socket before the others are read.
const BATCHES: usize = 8;

/// Creates an inlet on the subscriber's thread. The inlet wakes the thread through the waker.
pub type InletMaker = Box<dyn FnOnce() -> Result<Box<dyn Inlet>, PubSubError> + Send>;

/// Options of a subscriber besides its configuration.
#[non_exhaustive]
#[derive(Default)]
pub struct SubscriberDriverOptions {
    /// Options of the engine.
    pub engine: SubscriberOptions,
    /// UDP options of probes.
    pub udp: UdpOptions,
    /// Real-time options of the thread.
    pub real_time: RealTime,
    /// Never sleep: lower latency, but one CPU at 100 %.
    pub busy_poll: bool,
    /// Always sleep until a message arrives. Otherwise the thread spins for a message whose PublishingInterval is
    /// configured (Part 14 §6.3.1.4.7) and that arrives on time. The spin time is limited to 1.5 % of the interval,
    /// where the limit is between 60 µs and 375 µs. Waking a sleeping processor takes longer than the rest of a
    /// delivery.
    pub only_sleep: bool,
    /// Source of the keys of security groups.
    pub keys: Option<Box<dyn KeySource>>,
    /// A file that keeps the received sequence numbers, so that messages are not accepted again after a restart. It
    /// covers only messages with message security. Written every second and at the end; `None`: nothing is kept.
    pub replay_floor: Option<PathBuf>,
    /// Inlets that are opened elsewhere, by the position of their connection.
    pub inlets: Vec<(usize, InletMaker)>,
    /// Links for probes that are opened elsewhere, by the position of their connection.
    pub links: Vec<(usize, Box<dyn Link>)>,
}

impl core::fmt::Debug for SubscriberDriverOptions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SubscriberDriverOptions")
            .field("real_time", &self.real_time)
            .field("busy_poll", &self.busy_poll)
            .finish_non_exhaustive()
    }
}

type Command = Box<dyn FnOnce(&mut Receiving, Now) + Send>;

/// Changes the sink of a running subscriber, on its thread.
pub type SinkChange = Box<dyn FnOnce(&mut dyn Sink) + Send>;

/// A new configuration for a running subscriber: see [`RunningSubscriber::reconfigure`].
#[non_exhaustive]
pub struct SubscriberChange {
    /// The new configuration.
    pub configuration: Configuration,
    /// Inlets that are opened elsewhere, by the position of their connection.
    pub inlets: Vec<(usize, InletMaker)>,
    /// Links for probes that are opened elsewhere, by the position of their connection.
    pub links: Vec<(usize, Box<dyn Link>)>,
    /// Changes the sink, right before the engine is reconfigured.
    pub sink: Option<SinkChange>,
}

impl SubscriberChange {
    /// A change to a configuration.
    #[must_use]
    pub fn new(configuration: Configuration) -> Self {
        Self { configuration, inlets: Vec::new(), links: Vec::new(), sink: None }
    }
}

impl core::fmt::Debug for SubscriberChange {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SubscriberChange").field("inlets", &self.inlets.len()).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    commands: Mutex<VecDeque<Command>>,
    counters: Mutex<SubscriberCounters>,
}

/// A running subscriber. Dropping it stops the subscriber.
pub struct RunningSubscriber {
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl core::fmt::Debug for RunningSubscriber {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RunningSubscriber").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

impl RunningSubscriber {
    /// Listens at the addresses of a configuration's reader groups. `sink` is called on the thread, so it must not
    /// block.
    ///
    /// # Errors
    /// The configuration or an address is invalid, or the kernel refuses a request.
    pub fn start(
        configuration: Configuration,
        sink: impl Sink + Send + 'static,
        provider: Arc<dyn PubSubProvider>,
        mut options: SubscriberDriverOptions,
    ) -> Result<Self, PubSubError> {
        for problem in taktwerk_pubsub::config::unused::unused_by_subscribers(&configuration) {
            tracing::warn!("the PubSub configuration: {problem}");
        }
        let fail = |source| PubSubError::Thread { thread: "subscriber's", source };
        let waker = Waker::new().map_err(fail)?;
        let engine =
            Subscriber::new(configuration, options.engine, provider).map_err(PubSubError::Configuration)?;
        let mut engine = engine.securing_probes(Box::new(OsEntropy));
        let mut floor = None;
        if let Some(path) = options.replay_floor.take() {
            let (file, known) = FloorFile::open(&path)?;
            (floor, engine) = (Some(file), engine.not_below(known));
        }
        let wake = waker.clone();
        let keys = options.keys.take().map(|source| KeyThread::start(source, move || wake.wake()));
        let keys = keys.transpose().map_err(fail)?;
        let shared = Arc::new(Shared::default());
        let (theirs, their_waker) = (Arc::clone(&shared), waker.clone());
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("pubsub-receive".to_owned())
            .spawn(move || {
                let opened = options.real_time.apply().and_then(|()| {
                    Receiving::open(engine, Box::new(sink), options, keys, floor, theirs, their_waker)
                });
                match opened {
                    Ok(receiving) => {
                        if tell.send(Ok(())).is_ok() {
                            receiving.run();
                        }
                    }
                    Err(error) => {
                        let _ = tell.send(Err(error));
                    }
                }
            })
            .map_err(fail)?;
        let running = Self { shared, waker, thread: Some(thread) };
        match told.recv() {
            Ok(Ok(())) => Ok(running),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(fail(std::io::Error::other("it ended at once"))),
        }
    }

    /// The current configuration; `None` if the subscriber has stopped.
    #[must_use]
    pub fn configuration(&self) -> Option<Arc<Configuration>> {
        self.ask(|engine, _, _| Arc::clone(engine.configuration()))
    }

    /// Applies another configuration and waits until it is active. Unchanged readers continue
    /// ([`Subscriber::reconfigure`]); connections that are new or have other addresses are opened.
    ///
    /// # Errors
    /// The configuration or an address is invalid. Nothing has changed then.
    pub fn reconfigure(&self, change: SubscriberChange) -> Result<(), PubSubError> {
        let (tell, told) = mpsc::channel();
        self.push(Box::new(move |receiving, now| {
            // Closing unused connections may take time, which the subscriber's thread does not have.
            let mut unused = Vec::new();
            let outcome = receiving.reconfigure(change, now, &mut unused);
            let _ = tell.send((outcome, unused));
        }));
        match told.recv_timeout(Duration::from_secs(10)) {
            Ok((outcome, unused)) => {
                // If the thread cannot be started, they are closed here.
                let close = std::thread::Builder::new().name("pubsub-close".to_owned());
                let _ = close.spawn(move || unused.into_iter().for_each(|close| close()));
                outcome
            }
            Err(_) => {
                let source = std::io::Error::other("the subscriber has stopped or does not respond");
                Err(PubSubError::Thread { thread: "subscriber's", source })
            }
        }
    }

    fn push(&self, command: Command) {
        lock(&self.shared.commands).push_back(command);
        self.waker.wake();
    }

    /// Runs a command on the engine soon.
    pub fn run(&self, command: impl FnOnce(&mut Subscriber, Now, &mut dyn Sink) + Send + 'static) {
        self.push(Box::new(move |receiving, now| {
            command(&mut receiving.engine, now, &mut *receiving.sink);
        }));
    }

    /// Runs a command on the engine and waits for its result; `None` if the subscriber has stopped.
    pub fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Subscriber, Now, &mut dyn Sink) -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = mpsc::channel();
        self.run(move |engine, now, sink| {
            let _ = tell.send(question(engine, now, sink));
        });
        told.recv_timeout(Duration::from_secs(10)).ok()
    }

    /// What was received so far.
    #[must_use]
    pub fn counters(&self) -> SubscriberCounters {
        *lock(&self.shared.counters)
    }

    /// Stops and waits for the thread.
    pub fn stop(mut self) {
        self.end();
    }

    /// Stops, and waits at most for this time. For a process that ends while the owner of this hangs. Returns whether it has
    /// stopped. Then the file with the received sequence numbers is complete.
    pub fn end_within(&self, most: Duration) -> bool {
        self.ask_to_end();
        floor::has_ended(self.thread.as_ref(), most)
    }

    fn ask_to_end(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.waker.wake();
    }

    fn end(&mut self) {
        self.ask_to_end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for RunningSubscriber {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The queue is valid even if a command has panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The inlets of a connection and its link for probes.
#[derive(Default)]
struct Ways {
    inlets: Vec<Box<dyn Inlet>>,
    link: Option<Box<dyn Link>>,
}

impl Ways {
    fn open(
        position: usize,
        connection: &Connection,
        given_inlets: &mut Vec<(usize, InletMaker)>,
        given_links: &mut Vec<(usize, Box<dyn Link>)>,
        udp: &UdpOptions,
    ) -> Result<Self, PubSubError> {
        let given = given_inlets.iter().position(|(of, _)| *of == position);
        let given_link = given_links.iter().position(|(of, _)| *of == position);
        let mut ways = Self { inlets: Vec::new(), link: given_link.map(|at| given_links.swap_remove(at).1) };
        if let Some(at) = given {
            ways.inlets.push(given_inlets.swap_remove(at).1()?);
            return Ok(ways);
        }
        if connection.reader_groups.is_empty() {
            return Ok(ways);
        }
        ways.inlets.push(inlet::open(connection)?);
        // Without discovery, data that does not need it is still received.
        match inlet::open_discovery(connection) {
            Ok(discovery) => ways.inlets.extend(discovery),
            Err(error) => {
                tracing::warn!(connection = connection.name, %error, "cannot listen for discovery: announcements are not received");
            }
        }
        // Probes are sent to the discovery address; the unicast address of a reader is local and cannot be sent to.
        if ways.link.is_none() && matches!(Address::parse(&connection.url), Ok(Address::Udp(_))) {
            match link::open(connection, udp) {
                Ok(link) => ways.link = Some(link),
                Err(error) => {
                    tracing::warn!(connection = connection.name, %error, "cannot open the discovery address: no probes are sent");
                }
            }
        }
        Ok(ways)
    }
}

impl Ways {
    /// Closes them; the slow parts go to `left`.
    fn close(self, left: &mut Vec<Closing>) {
        left.extend(self.inlets.into_iter().filter_map(Inlet::close));
        if let Some(link) = self.link {
            left.push(Box::new(move || drop(link)));
        }
    }
}

/// An epoll instance with all inlets; the keys are their positions.
fn poller(inlets: &[(usize, Box<dyn Inlet>)], waker: &Waker) -> Result<Poller, PubSubError> {
    let poller = Poller::new().map_err(cannot_wait)?;
    poller.add_edge(waker.fd(), u64::MAX).map_err(cannot_wait)?;
    for (key, (_, inlet)) in inlets.iter().enumerate() {
        poller.add(inlet.fd(), key as u64, Interest::READ).map_err(cannot_wait)?;
    }
    Ok(poller)
}

fn cannot_wait(error: std::io::Error) -> PubSubError {
    PubSubError::socket("wait for messages", error)
}

/// State of the thread.
struct Receiving {
    engine: Subscriber,
    sink: Box<dyn Sink + Send>,
    inlets: Vec<(usize, Box<dyn Inlet>)>,
    links: Vec<Option<Box<dyn Link>>>,
    keys: Option<KeyThread>,
    floor: Option<FloorFile>,
    poller: Poller,
    shared: Arc<Shared>,
    waker: Waker,
    out: Transmit,
    busy_poll: bool,
    expecting: Expecting,
    udp: UdpOptions,
    /// The inlets have changed, so all of them have to be read.
    look_everywhere: bool,
}

impl Receiving {
    fn open(
        engine: Subscriber,
        sink: Box<dyn Sink + Send>,
        mut options: SubscriberDriverOptions,
        keys: Option<KeyThread>,
        floor: Option<FloorFile>,
        shared: Arc<Shared>,
        waker: Waker,
    ) -> Result<Self, PubSubError> {
        let (mut inlets, mut links) = (Vec::new(), Vec::new());
        let configuration = Arc::clone(engine.configuration());
        for (position, connection) in configuration.connections.iter().enumerate() {
            let (given, given_links) = (&mut options.inlets, &mut options.links);
            let ways = Ways::open(position, connection, given, given_links, &options.udp)?;
            inlets.extend(ways.inlets.into_iter().map(|inlet| (position, inlet)));
            links.push(ways.link);
        }
        let poller = poller(&inlets, &waker)?;
        let expecting = Expecting::new(options.only_sleep).and_then(|mut expecting| {
            expecting.begin(&configuration, &poller)?;
            Ok(expecting)
        });
        let expecting = expecting.map_err(cannot_wait)?;
        Ok(Self {
            engine,
            sink,
            inlets,
            links,
            keys,
            floor,
            poller,
            shared,
            waker,
            out: Transmit::new(),
            busy_poll: options.busy_poll,
            expecting,
            udp: options.udp,
            look_everywhere: false,
        })
    }

    /// Applies another configuration. Connections that are no longer used, or not used after all, go to `unused`.
    fn reconfigure(
        &mut self,
        mut change: SubscriberChange,
        now: Now,
        unused: &mut Vec<Closing>,
    ) -> Result<(), PubSubError> {
        let problems = taktwerk_pubsub::config::validate(&change.configuration);
        if !problems.is_empty() {
            return Err(PubSubError::Configuration(problems));
        }
        let old = Arc::clone(self.engine.configuration());
        let mut next = Vec::new();
        for (position, connection) in change.configuration.connections.iter().enumerate() {
            let is_given = change.inlets.iter().any(|(of, _)| *of == position);
            let before = old.connections.iter().position(|before| before.name == connection.name);
            let kept = before.filter(|at| {
                old.connections.get(*at).is_some_and(|before| inlet::receives_alike(before, connection))
            });
            next.push(match kept.filter(|_| !is_given) {
                Some(at) => Err(at),
                None => {
                    let (given, given_links) = (&mut change.inlets, &mut change.links);
                    match Ways::open(position, connection, given, given_links, &self.udp) {
                        Ok(ways) => Ok(ways),
                        Err(error) => {
                            next.into_iter().flatten().for_each(|ways: Ways| ways.close(unused));
                            return Err(error);
                        }
                    }
                }
            });
        }
        if let Some(change) = change.sink.take() {
            change(&mut *self.sink);
        }
        self.engine
            .reconfigure(change.configuration, now, &mut *self.sink)
            .map_err(PubSubError::Configuration)?;
        let mut old_links = core::mem::take(&mut self.links);
        let mut old_inlets = core::mem::take(&mut self.inlets);
        for (position, ways) in next.into_iter().enumerate() {
            let ways = ways.unwrap_or_else(|at| {
                let (kept, others) =
                    core::mem::take(&mut old_inlets).into_iter().partition(|(of, _)| *of == at);
                old_inlets = others;
                let kept: Vec<(usize, Box<dyn Inlet>)> = kept;
                let link = old_links.get_mut(at).and_then(Option::take);
                Ways { inlets: kept.into_iter().map(|(_, inlet)| inlet).collect(), link }
            });
            self.inlets.extend(ways.inlets.into_iter().map(|inlet| (position, inlet)));
            self.links.push(ways.link);
        }
        Ways { inlets: old_inlets.into_iter().map(|(_, inlet)| inlet).collect(), link: None }.close(unused);
        old_links.into_iter().for_each(|link| Ways { inlets: Vec::new(), link }.close(unused));
        self.poller = poller(&self.inlets, &self.waker)?;
        self.expecting.begin(self.engine.configuration(), &self.poller).map_err(cannot_wait)?;
        self.look_everywhere = true;
        Ok(())
    }

    fn run(mut self) {
        let mut clock = Clock::new();
        let now = read(&mut clock);
        self.engine.start(now, &mut *self.sink);
        let mut ready: Vec<usize> = (0..self.inlets.len()).collect();
        while !self.shared.stop.load(Ordering::Acquire) {
            let more = self.receive(&mut clock, &ready);
            let now = read(&mut clock);
            self.look(now);
            if self.engine.poll_timeout().is_some_and(|due| due <= now.instant) {
                self.out.clear();
                self.engine.poll(now, &mut *self.sink, &mut self.out);
                for (connection, link) in self.links.iter_mut().enumerate() {
                    if let Some(link) = link {
                        link.send(connection, &self.out, None);
                    }
                }
            }
            *lock(&self.shared.counters) = self.engine.counters();
            if let Some(floor) = &mut self.floor {
                let seen = self.engine.counters().network_messages;
                floor.look(seen, now.instant, || self.engine.replay_floor());
            }
            ready.clear();
            if more || self.busy_poll || core::mem::take(&mut self.look_everywhere) {
                ready.extend(0..self.inlets.len());
                continue;
            }
            if self.waker.sleep() {
                let due = self.engine.poll_timeout().unwrap_or(Instant::FAR);
                let keys = self.keys.as_ref().and_then(|_| self.engine.key_timeout()).unwrap_or(Instant::FAR);
                if let Err(error) = self.expecting.wait(&mut self.poller, now.instant, due.min(keys)) {
                    tracing::error!(%error, "the subscriber cannot wait for messages and stops");
                    break;
                }
            }
            self.waker.awake();
            let keys = (0..self.poller.len()).filter_map(|at| self.poller.get(at));
            ready.extend(keys.filter_map(|event| usize::try_from(event.key).ok()));
        }
        self.engine.stop(&mut *self.sink);
        if let Some(floor) = self.floor {
            floor.end(self.engine.replay_floor());
        }
    }

    /// Reads the ready inlets. True if there may be more.
    fn receive(&mut self, clock: &mut Clock, ready: &[usize]) -> bool {
        let mut more = false;
        for at in ready {
            let Some((connection, inlet)) = self.inlets.get_mut(*at) else { continue };
            let mut first = None;
            for _ in 0..BATCHES {
                let outcome = inlet.receive(&mut |datagram| {
                    let now = read(clock);
                    first.get_or_insert(now.instant);
                    self.engine.receive(*connection, datagram, now, &mut *self.sink);
                });
                match outcome {
                    Ok(true) => more = true,
                    Ok(false) => {
                        more = false;
                        break;
                    }
                    Err(error) => {
                        tracing::warn!(%error, connection, "cannot receive");
                        break;
                    }
                }
            }
            if let Some(at) = first {
                self.expecting.arrived(*connection, at);
            }
        }
        more
    }

    /// Processes commands and keys.
    fn look(&mut self, now: Now) {
        while let Some(command) = { lock(&self.shared.commands).pop_front() } {
            command(self, now);
        }
        let Some(keys) = &self.keys else { return };
        while let Some((group, outcome)) = keys.answer() {
            if let Err(error) = self.engine.set_keys(&group, outcome.as_ref().map_err(|status| *status), now)
            {
                tracing::warn!(group, %error, "the key service's answer cannot be used");
            }
        }
        while let Some(request) = self.engine.poll_key_request(now) {
            keys.ask(request);
        }
    }
}
