//! The driver of a server: what `taktwerk-net` does with sockets and threads, done with links and events.

use crate::alarm::Alarm;
use crate::effect::{EffectTime, run};
use crate::event::Event;
use crate::fabric::Fabric;
use crate::network::{End, LinkId};
use crate::source::{VirtualSources, do_work};
use crate::violation::Broken;
use crate::world::{HostId, ServerId};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use taktwerk_crypto::SeededEntropy;
use taktwerk_server::Now;
use taktwerk_server::source::{SourceDriver, Work};
use taktwerk_server::space::Wake;
use taktwerk_server::{ConnectionId, Effect, Shard, Token};

/// Timer calls at one instant after which a shard is said not to come to rest.
const TURNS_MAX: usize = 100_000;
/// Futures are asked again so often whether they are ready.
const POLL_EVERY: Duration = Duration::from_millis(1);

/// A process that runs a server of one shard.
#[derive(Debug)]
pub struct ServerHost {
    id: ServerId,
    name: Box<str>,
    running: Option<Running>,
    entropy: SeededEntropy,
    /// How long effects take, and work of sources.
    pub effect_time: EffectTime,
    /// Bytes of a response that may stand behind a full send budget.
    pub response_len_max: usize,
    /// Counts the restarts.
    incarnation: u32,
    alarm: Alarm,
}

/// What dies with the process.
#[derive(Debug)]
struct Running {
    shard: Shard,
    /// Set by writes to variables.
    woken: Arc<Awake>,
    sources: Arc<VirtualSources>,
    sockets: BTreeMap<ConnectionId, Socket>,
    by_link: BTreeMap<LinkId, ConnectionId>,
    /// The shard wants no bytes of these: the network keeps them, and so the clients are held back.
    paused: BTreeSet<ConnectionId>,
}

#[derive(Debug)]
struct Socket {
    end: End,
    /// Received and not consumed.
    inbox: Vec<u8>,
}

#[derive(Debug, Default)]
struct Awake(AtomicBool);

struct Waker(Arc<Awake>);

impl Wake for Waker {
    fn wake(&self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl ServerHost {
    pub(crate) fn new(id: ServerId, name: &str, shard: Shard, entropy: SeededEntropy, now: Now) -> Self {
        let mut host = Self {
            id,
            name: name.into(),
            running: None,
            entropy,
            effect_time: EffectTime::Inline,
            response_len_max: 1 << 20,
            incarnation: 0,
            alarm: Alarm::default(),
        };
        host.start(shard, now);
        host
    }

    /// The name in URLs.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The state machine; `None` while the process is down.
    #[must_use]
    pub fn shard(&self) -> Option<&Shard> {
        self.running.as_ref().map(|running| &running.shard)
    }

    pub(crate) fn shard_mut(&mut self) -> Option<&mut Shard> {
        self.running.as_mut().map(|running| &mut running.shard)
    }

    pub(crate) fn start(&mut self, shard: Shard, now: Now) {
        let woken = Arc::<Awake>::default();
        shard.shared().space().set_waker(0, Box::new(Waker(Arc::clone(&woken))));
        self.incarnation += 1;
        let sources = Arc::new(VirtualSources::new(now));
        shard.shared().space().sources().start(Arc::clone(&sources) as Arc<dyn SourceDriver>);
        self.running = Some(Running {
            shard,
            woken,
            sources,
            sockets: BTreeMap::new(),
            by_link: BTreeMap::new(),
            paused: BTreeSet::new(),
        });
    }

    /// The process dies; its operating system resets the connections.
    pub(crate) fn crash(&mut self, fabric: &mut Fabric) {
        let Some(running) = self.running.take() else { return };
        for socket in running.sockets.values() {
            fabric.reset(socket.end);
        }
    }

    pub(crate) fn accept(&mut self, link: LinkId, fabric: &mut Fabric) {
        let now = fabric.now();
        let Some(running) = &mut self.running else {
            return fabric.network.refuse(link, &mut fabric.queue);
        };
        let end = fabric.network.accept(link, &mut fabric.queue);
        let id = running.shard.opened(now);
        running.sockets.insert(id, Socket { end, inbox: Vec::new() });
        running.by_link.insert(link, id);
    }

    pub(crate) fn readable(&mut self, end: End, fabric: &mut Fabric) {
        let Some(running) = &mut self.running else { return };
        let Some(id) = running.by_link.get(&end.link) else { return };
        let (id, host) = (*id, HostId::Server(self.id));
        running.feed(id, host, fabric);
    }

    pub(crate) fn writable(&mut self, end: End) {
        let Some(running) = &mut self.running else { return };
        if let Some(id) = running.by_link.get(&end.link) {
            running.shard.writable(*id);
        }
    }

    pub(crate) fn closed(&mut self, end: End, fabric: &mut Fabric) {
        let Some(running) = &mut self.running else { return };
        if let Some(id) = running.by_link.remove(&end.link) {
            running.sockets.remove(&id);
            running.paused.remove(&id);
            running.shard.closed(id, fabric.now());
        }
    }

    pub(crate) fn ring(&mut self, number: u64) -> bool {
        self.alarm.ring(number)
    }

    pub(crate) fn is_woken(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.woken.0.load(Ordering::Relaxed))
    }

    pub(crate) fn effect_done(
        &mut self,
        incarnation: u32,
        token: Token,
        job: taktwerk_server::Job,
        fabric: &mut Fabric,
    ) {
        let server = self.id;
        let Some(running) = self.running.as_mut().filter(|_| incarnation == self.incarnation) else { return };
        match run(job) {
            Ok(result) => running.shard.done(token, result, fabric.now()),
            Err(job) => {
                fabric.queue.schedule_in(POLL_EVERY, Event::ServerEffect { server, incarnation, token, job });
            }
        }
    }

    /// A source gets on; a future that waits is asked again later.
    pub(crate) fn source_works(&mut self, incarnation: u32, work: Work, fabric: &mut Fabric) {
        let server = self.id;
        let Some(running) = self.running.as_mut().filter(|_| incarnation == self.incarnation) else { return };
        running.sources.set_now(fabric.now());
        if let Some(work) = do_work(work) {
            fabric.queue.schedule_in(POLL_EVERY, Event::SourceWork { server, incarnation, work });
        }
    }

    /// Calls what is due for the sources, and hands out their work.
    fn run_sources(&mut self, fabric: &mut Fabric) {
        let (server, incarnation) = (self.id, self.incarnation);
        let Some(running) = &mut self.running else { return };
        running.sources.set_now(fabric.now());
        loop {
            if let Some(work) = running.sources.take_work() {
                let (span, work) = match self.effect_time.draw(&mut self.entropy) {
                    Some(span) => (span, Some(work)),
                    None => (POLL_EVERY, do_work(work)),
                };
                if let Some(work) = work {
                    fabric.queue.schedule_in(span, Event::SourceWork { server, incarnation, work });
                }
            } else if !running.sources.call_due() {
                return;
            }
        }
    }

    /// Does everything that the shard has to say or to do at this instant.
    pub(crate) fn settle(&mut self, fabric: &mut Fabric) {
        for _ in 0..TURNS_MAX {
            self.run_sources(fabric);
            self.flush(fabric);
            let Some(running) = &mut self.running else { return };
            if running.resume(HostId::Server(self.id), fabric) {
                continue;
            }
            let now = fabric.now();
            let due = running.shard.poll_timeout().is_some_and(|(at, _)| at <= now.instant);
            if due || running.woken.0.swap(false, Ordering::Relaxed) {
                running.shard.timer(now);
                continue;
            }
            // A shard that was just asked may have asked a source.
            if running.sources.is_busy() {
                continue;
            }
            let shard = running.shard.poll_timeout().map(|(at, _)| at);
            if let Some(at) = shard.into_iter().chain(running.sources.next()).min() {
                self.alarm.arm(HostId::Server(self.id), at, &mut fabric.queue);
            }
            return;
        }
        let timeout = self.shard().and_then(Shard::poll_timeout);
        let reason = timeout.map_or("something other than a deadline", |(_, reason)| reason);
        fabric.broken(Broken::Restless { host: HostId::Server(self.id), reason });
    }

    fn flush(&mut self, fabric: &mut Fabric) {
        let (server, incarnation) = (self.id, self.incarnation);
        let Some(running) = &mut self.running else { return };
        loop {
            running.transmit(fabric);
            if let Some(Effect { token, job, .. }) = running.shard.poll_effect() {
                // A future only waits: what it waits for takes its time elsewhere.
                let time = match job {
                    taktwerk_server::Job::Future(_) => None,
                    taktwerk_server::Job::Blocking(_) => self.effect_time.draw(&mut self.entropy),
                };
                let (span, job) = match time {
                    Some(span) => (span, job),
                    None => match run(job) {
                        Ok(result) => {
                            running.shard.done(token, result, fabric.now());
                            continue;
                        }
                        Err(job) => (POLL_EVERY, job),
                    },
                };
                fabric.queue.schedule_in(span, Event::ServerEffect { server, incarnation, token, job });
                continue;
            }
            let Some(id) = running.shard.poll_close() else { return };
            if let Some(socket) = running.sockets.remove(&id) {
                running.by_link.remove(&socket.end.link);
                running.paused.remove(&id);
                fabric.close(socket.end);
            }
        }
    }

    pub(crate) fn check(&self, fabric: &mut Fabric) {
        let Some(running) = &self.running else { return };
        let host = HostId::Server(self.id);
        let (counted, real) = (running.shard.connection_count(), running.sockets.len());
        if counted != real {
            fabric.broken(Broken::Connections { host, counted, real });
        }
        let budget = running.shard.shared().config().limits.send_budget;
        let limit = budget + self.response_len_max;
        for (id, socket) in &running.sockets {
            let len = running.shard.unsent(*id).len();
            if len > limit {
                fabric.broken(Broken::Unsent { host, link: socket.end.link, len, limit });
            }
        }
        // One that is due right now has its event still to come.
        let missed = running.shard.poll_timeout().filter(|(at, _)| *at < fabric.queue.now());
        if let Some((_, reason)) = missed {
            fabric.broken(Broken::Restless { host, reason });
        }
    }
}

impl Running {
    fn transmit(&mut self, fabric: &mut Fabric) {
        while let Some(id) = self.shard.poll_transmit() {
            let Some(socket) = self.sockets.get(&id) else { continue };
            let unsent = self.shard.unsent(id);
            let taken = fabric.write(socket.end, unsent);
            let is_blocked = taken < unsent.len();
            self.shard.sent(id, taken);
            if is_blocked {
                self.shard.blocked(id, fabric.now());
            }
        }
    }

    /// Hands over what has arrived on a connection, if the shard wants it.
    fn feed(&mut self, id: ConnectionId, host: HostId, fabric: &mut Fabric) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if !self.shard.wants_read(id) {
            self.paused.insert(id);
            return;
        }
        self.paused.remove(&id);
        fabric.read(socket.end, &mut socket.inbox);
        let given = socket.inbox.len();
        let consumed = self.shard.received(id, &mut socket.inbox, fabric.now());
        if consumed > given {
            fabric.broken(Broken::Consumed { host, consumed, given });
        }
        socket.inbox.drain(..consumed.min(given));
        if !self.shard.wants_read(id) {
            self.paused.insert(id);
        }
    }

    /// Reads on where the shard wants bytes again. Says whether there was anything.
    fn resume(&mut self, host: HostId, fabric: &mut Fabric) -> bool {
        let ready: Vec<ConnectionId> =
            self.paused.iter().copied().filter(|id| self.shard.wants_read(*id)).collect();
        for id in &ready {
            self.feed(*id, host, fabric);
        }
        !ready.is_empty()
    }
}
