//! Runs Action requestors and responders on their own threads (Part 14 §5.4.3).

use super::PubSubError;
use super::floor::{self, FloorFile};
use super::inlet::{self, Inlet};
use super::keys::{KeySource, KeyThread};
use super::link::{self, Link};
use super::publisher::read;
use super::subscriber::InletMaker;
use super::udp::UdpOptions;
use crate::clock::Clock;
use crate::poll::{Interest, Poller};
use crate::wake::Waker;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use taktwerk_pubsub::action::ActionEngine;
use taktwerk_pubsub::config::Connection;
use taktwerk_pubsub::{Now, Transmit};
use taktwerk_types::Instant;

/// How long the thread sleeps when nothing is due.
const IDLE: Duration = Duration::from_secs(1);
/// How long it sleeps if the link may want an announcement: that does not wake the thread.
const LOOK: Duration = Duration::from_millis(20);

/// Options of an Action engine's thread.
#[non_exhaustive]
#[derive(Default)]
pub struct ActionDriverOptions {
    /// UDP options.
    pub udp: UdpOptions,
    /// Source of the keys of security groups.
    pub keys: Option<Box<dyn KeySource>>,
    /// The link to send through, if it was opened elsewhere.
    pub link: Option<Box<dyn Link>>,
    /// The inlet to receive from, if it is opened elsewhere.
    pub inlet: Option<InletMaker>,
    /// A file that keeps the received sequence numbers, so that messages are not accepted again after a restart. After
    /// a crash, messages of the last second may be accepted again. Each engine needs a file of its own.
    pub replay_floor: Option<PathBuf>,
    /// Whether responses to an announcement would be received now. With a broker, nothing is announced before that.
    pub hears: Option<Box<dyn Fn() -> bool + Send>>,
}

impl core::fmt::Debug for ActionDriverOptions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ActionDriverOptions").field("udp", &self.udp).finish_non_exhaustive()
    }
}

/// An Action engine together with the code that uses it.
pub trait ActionUser: Send + 'static {
    /// The engine.
    type Engine: ActionEngine;

    /// The engine.
    fn engine(&mut self) -> &mut Self::Engine;

    /// Processes a received datagram. Malformed and foreign ones are ignored.
    fn receive(&mut self, datagram: &mut [u8], now: Now);

    /// Called in every turn after all received datagrams were processed.
    fn turn(&mut self, now: Now);
}

type Command<U> = Box<dyn FnOnce(&mut U, Now) + Send>;

struct Shared<U> {
    stop: AtomicBool,
    commands: Mutex<VecDeque<Command<U>>>,
}

/// A running Action engine. Dropping it stops the engine.
pub struct RunningActions<U> {
    shared: Arc<Shared<U>>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl<U> core::fmt::Debug for RunningActions<U> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RunningActions").field("thread", &self.thread).finish_non_exhaustive()
    }
}

impl<U: ActionUser> RunningActions<U> {
    /// Sends to the address of `to` and listens at the address of `from`.
    ///
    /// # Errors
    /// An address is invalid, or a socket or thread could not be set up.
    pub fn start(
        mut user: U,
        to: &Connection,
        from: &Connection,
        mut options: ActionDriverOptions,
    ) -> Result<Self, PubSubError> {
        let fail = |source| PubSubError::Thread { thread: "Actions'", source };
        let mut floor = None;
        if let Some(path) = options.replay_floor.take() {
            let (file, known) = FloorFile::open(&path)?;
            user.engine().not_below(known);
            floor = Some(file);
        }
        let waker = Waker::new().map_err(fail)?;
        let link = match options.link.take() {
            Some(link) => link,
            None => link::open(to, &options.udp)?,
        };
        let wake = waker.clone();
        let keys = options.keys.take().map(|source| KeyThread::start(source, move || wake.wake()));
        let keys = keys.transpose().map_err(fail)?;
        let shared = Arc::new(Shared { stop: AtomicBool::new(false), commands: Mutex::default() });
        let (theirs, their_waker, from) = (Arc::clone(&shared), waker.clone(), from.clone());
        let (inlet, hears) = (options.inlet.take(), options.hears.take());
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("pubsub-actions".to_owned())
            .spawn(move || {
                let opened = match inlet {
                    Some(make) => make().map(|inlet| vec![inlet]),
                    None => inlet::open(&from).map(|inlet| {
                        let mut inlets = vec![inlet];
                        // Without discovery, known Actions can still be requested.
                        match inlet::open_discovery(&from) {
                            Ok(discovery) => inlets.extend(discovery),
                            Err(error) => tracing::warn!(%error, "cannot listen for discovery: probes and announcements are not received"),
                        }
                        inlets
                    }),
                };
                let opened = opened.and_then(|inlets| {
                    let poller = poller(&inlets, &their_waker)?;
                    Ok((inlets, poller))
                });
                match opened {
                    Ok((inlets, poller)) => {
                        if tell.send(Ok(())).is_ok() {
                            let hears = hears.unwrap_or_else(|| Box::new(|| true));
                            let side = Side { keys, floor, hears };
                            run(&mut user, link, inlets, poller, side, &theirs, &their_waker);
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

    /// Runs a command on the thread soon.
    pub fn run(&self, command: impl FnOnce(&mut U, Now) + Send + 'static) {
        self.commander().run(command);
    }

    /// Stops, and waits at most for this time. For a process that ends while the owner of this hangs. Returns whether it has
    /// stopped. Then the file with the received sequence numbers is complete.
    pub fn end_within(&self, most: Duration) -> bool {
        self.ask_to_end();
        floor::has_ended(self.thread.as_ref(), most)
    }

    /// A handle that runs commands on the thread. It does not keep the thread running.
    #[must_use]
    pub fn commander(&self) -> Commander<U> {
        Commander { shared: Arc::clone(&self.shared), waker: self.waker.clone() }
    }
}

/// Runs commands on the thread of an Action engine.
pub struct Commander<U> {
    shared: Arc<Shared<U>>,
    waker: Waker,
}

impl<U> Clone for Commander<U> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), waker: self.waker.clone() }
    }
}

impl<U> core::fmt::Debug for Commander<U> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Commander").finish_non_exhaustive()
    }
}

impl<U: ActionUser> Commander<U> {
    /// Runs a command on the thread soon, if it still runs.
    pub fn run(&self, command: impl FnOnce(&mut U, Now) + Send + 'static) {
        lock(&self.shared.commands).push_back(Box::new(command));
        self.waker.wake();
    }
}

impl<U> RunningActions<U> {
    fn ask_to_end(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl<U> Drop for RunningActions<U> {
    fn drop(&mut self) {
        self.ask_to_end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The queue is valid even if a command has panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn poller(inlets: &[Box<dyn Inlet>], waker: &Waker) -> Result<Poller, PubSubError> {
    let fail = |error: std::io::Error| PubSubError::socket("wait for Actions", error);
    let poller = Poller::new().map_err(fail)?;
    poller.add_edge(waker.fd(), u64::MAX).map_err(fail)?;
    for (key, inlet) in inlets.iter().enumerate() {
        poller.add(inlet.fd(), key as u64, Interest::READ).map_err(fail)?;
    }
    Ok(poller)
}

/// The thread's resources besides the engine.
struct Side {
    keys: Option<KeyThread>,
    floor: Option<FloorFile>,
    hears: Box<dyn Fn() -> bool + Send>,
}

fn run<U: ActionUser>(
    user: &mut U,
    mut link: Box<dyn Link>,
    mut inlets: Vec<Box<dyn Inlet>>,
    mut poller: Poller,
    side: Side,
    shared: &Shared<U>,
    waker: &Waker,
) {
    let Side { keys, mut floor, hears } = side;
    let mut seen = 0;
    let mut clock = Clock::new();
    let mut out = Transmit::new();
    // With a broker, only after the connection is made.
    if !link.may_announce() {
        user.engine().announce(read(&mut clock));
    }
    let mut is_silent = false;
    while !shared.stop.load(Ordering::Acquire) {
        let mut more = false;
        for inlet in &mut inlets {
            let received = inlet.receive(&mut |datagram| {
                seen += 1;
                user.receive(datagram, read(&mut clock));
            });
            more |= received.unwrap_or_else(|error| {
                tracing::warn!(%error, "Actions cannot be received");
                false
            });
        }
        let now = read(&mut clock);
        is_silent |= link.wants_announcement();
        // Receivers may send requests at once.
        if is_silent && hears() {
            is_silent = false;
            user.engine().announce(now);
        }
        while let Some(command) = { lock(&shared.commands).pop_front() } {
            command(user, now);
        }
        if let Some(keys) = &keys {
            while let Some((group, outcome)) = keys.answer() {
                let outcome = outcome.as_ref().map_err(|status| *status);
                if let Err(error) = user.engine().set_keys(&group, outcome, now) {
                    tracing::warn!(group, %error, "the key service's answer cannot be used");
                }
            }
            while let Some(request) = user.engine().poll_key_request(now) {
                keys.ask(request);
            }
        }
        user.turn(now);
        out.clear();
        if user.engine().poll_timeout().is_some_and(|due| due <= now.instant) {
            if let Err(error) = user.engine().poll(now, &mut out) {
                tracing::debug!(%error, "an Action message was not sent");
            }
            // Requests that timed out in this turn are reported in this turn.
            user.turn(now);
        }
        // They all belong to the same connection, whatever its position was.
        let mut connections: Vec<usize> = out.iter().map(|datagram| datagram.connection).collect();
        connections.dedup();
        for connection in connections {
            link.send(connection, &out, None);
        }
        if let Some(floor) = &mut floor {
            floor.look(seen, now.instant, || user.engine().replay_floor());
        }
        if more {
            continue;
        }
        if waker.sleep() {
            let due = user.engine().poll_timeout().unwrap_or(Instant::FAR);
            let wanted = if keys.is_some() { user.engine().key_timeout() } else { None };
            let span = due.min(wanted.unwrap_or(Instant::FAR)).since(now.instant);
            let span = span.min(if link.may_announce() { LOOK } else { IDLE });
            if let Err(error) = poller.wait(Some(span)) {
                tracing::error!(%error, "cannot wait for Actions: the engine stops");
                break;
            }
        }
        waker.awake();
    }
    if let Some(floor) = floor {
        floor.end(user.engine().replay_floor());
    }
}
