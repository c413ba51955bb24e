//! The driver of a client, and its application.

use crate::alarm::Alarm;
use crate::authority::{Verdict, refusal};
use crate::effect::EffectTime;
use crate::event::Event;
use crate::fabric::Fabric;
use crate::host::client::ClientThreadId;
use crate::host::client_job_name;
use crate::host::machine::MachineId;
use crate::ids::{ClientId, HostId, NodeId, ServerId};
use crate::meter::Piece;
use crate::network::{End, LinkId, Route, Side};
use crate::violation::Broken;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use taktwerk_client::{
    Client, ConnectionId, Delivery, Effect, EndpointUrl, EventQueue, JobToken, RequestHandle,
};
use taktwerk_crypto::{Job, Provider, SeededEntropy};
use taktwerk_server::Now;
use taktwerk_types::Instant;

/// Maximum number of timer calls at one instant; more are a broken promise.
const TURNS_MAX: usize = 10_000;
/// Number of answered requests that are remembered, to detect a second answer.
const ANSWERED_KEPT: usize = 64;

/// The application of a client.
pub trait Application {
    /// Handles a delivery. It may use the client.
    fn deliver(&mut self, delivery: Delivery, client: &mut Client, now: Now);

    /// When to call [`Application::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Handles an expired timeout. It may use the client.
    fn handle_timeout(&mut self, _client: &mut Client, _now: Now) {}
}

/// An application that records all deliveries with their time.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Deliveries, oldest first.
    pub log: Vec<(Instant, Delivery)>,
}

impl Application for Recorder {
    fn deliver(&mut self, delivery: Delivery, _: &mut Client, now: Now) {
        self.log.push((now.instant, delivery));
    }
}

/// An input from the network, waiting for the client's thread.
#[derive(Debug)]
enum Input {
    Connected(End),
    Readable(End),
    Writable(End),
    Closed(End, Box<str>),
    /// A check of a certificate has ended.
    Checked(u64, Verdict),
}

/// A job of a client, with its provider.
type Pending = (JobToken, Box<Job>, Arc<dyn Provider>);

/// A process that runs a client.
#[derive(Debug)]
pub struct ClientHost<A> {
    id: ClientId,
    client: Client,
    /// The application.
    pub application: A,
    /// The path to the server, for the next connection.
    pub route: Route,
    /// Duration of effects for clients without a machine.
    pub effect_time: EffectTime,
    /// The next connection is cut after this many bytes, sent by this side.
    pub cut_next: Option<(Side, u64)>,
    pub(crate) partitioned: bool,
    reads: bool,
    socket: Option<Socket>,
    deliveries: EventQueue,
    /// Pending requests, as far as they were announced.
    waiting: BTreeSet<RequestHandle>,
    /// Recently answered requests.
    answered: VecDeque<RequestHandle>,
    entropy: SeededEntropy,
    alarm: Alarm,
    /// Offset of its wall clock in nanoseconds.
    clock_offset: i64,
    /// Its thread, if it is on a machine.
    thread: Option<(ClientThreadId, MachineId)>,
    inputs: VecDeque<Input>,
    is_sending: bool,
    job: Option<Pending>,
    /// Asks certificate authorities about the certificates of servers.
    asker: Option<NodeId>,
    /// Jobs that wait for certificate authorities. The client works on in the meantime.
    checks: BTreeMap<u64, Pending>,
    /// Jobs that are ready for the thread.
    ready: VecDeque<Pending>,
    /// Remaining cost of the last step after the delivery to the application, in nanoseconds.
    behind: f64,
}

#[derive(Debug)]
struct Socket {
    connection: ConnectionId,
    end: End,
    is_connected: bool,
    is_blocked: bool,
    inbox: Vec<u8>,
}

impl<A: Application> ClientHost<A> {
    pub(crate) fn new(
        id: ClientId,
        client: Client,
        application: A,
        route: Route,
        entropy: SeededEntropy,
    ) -> Self {
        Self {
            id,
            client,
            application,
            route,
            effect_time: EffectTime::Inline,
            cut_next: None,
            partitioned: false,
            reads: true,
            socket: None,
            deliveries: EventQueue::default(),
            waiting: BTreeSet::new(),
            answered: VecDeque::new(),
            entropy,
            alarm: Alarm::default(),
            clock_offset: 0,
            thread: None,
            inputs: VecDeque::new(),
            is_sending: false,
            job: None,
            asker: None,
            checks: BTreeMap::new(),
            ready: VecDeque::new(),
            behind: 0.0,
        }
    }

    /// The state machine.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Its current connection or connection attempt.
    #[must_use]
    pub fn link(&self) -> Option<LinkId> {
        self.socket.as_ref().map(|socket| socket.end.link)
    }

    /// Number of pending requests made with [`World::request`](crate::World::request).
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn expect(&mut self, handle: RequestHandle) {
        self.waiting.insert(handle);
    }

    pub(crate) fn parts(&mut self) -> (&mut Client, &mut A) {
        (&mut self.client, &mut self.application)
    }

    pub(crate) fn set_reads(&mut self, reads: bool, fabric: &mut Fabric) {
        self.reads = reads;
        if let Some(end) = self.socket.as_ref().map(|socket| socket.end) {
            self.readable(end, fabric);
        }
    }

    /// Lets an asker check the certificates of servers.
    pub(crate) fn set_asker(&mut self, asker: NodeId) {
        self.asker = Some(asker);
    }

    fn is_current(&self, end: End) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.end == end)
    }

    pub(crate) fn set_thread(&mut self, thread: ClientThreadId, machine: MachineId) {
        self.thread = Some((thread, machine));
    }

    /// Its thread.
    #[must_use]
    pub fn thread(&self) -> Option<ClientThreadId> {
        self.thread.map(|(thread, _)| thread)
    }

    /// The time on its clocks.
    pub(crate) fn now(&self, fabric: &Fabric) -> Now {
        fabric.now_off_by(self.clock_offset)
    }

    /// Sets the offset of its wall clock.
    pub(crate) fn set_clock_offset(&mut self, nanos: i64, fabric: &Fabric) {
        self.clock_offset = nanos;
        let origin =
            taktwerk_types::UtcTime::from_ticks(fabric.utc_origin.ticks().saturating_add(nanos / 100));
        self.client.set_utc_origin(origin);
    }

    pub(crate) fn connected(&mut self, end: End, fabric: &mut Fabric) {
        self.give(Input::Connected(end), fabric);
    }

    pub(crate) fn readable(&mut self, end: End, fabric: &mut Fabric) {
        let is_known = matches!(self.inputs.back(), Some(Input::Readable(known)) if *known == end);
        if !is_known {
            self.give(Input::Readable(end), fabric);
        }
    }

    pub(crate) fn writable(&mut self, end: End, fabric: &mut Fabric) {
        self.give(Input::Writable(end), fabric);
    }

    pub(crate) fn closed(&mut self, end: End, reason: &str, fabric: &mut Fabric) {
        self.give(Input::Closed(end, reason.into()), fabric);
    }

    /// A check of a certificate has ended.
    pub(crate) fn checked(&mut self, ticket: u64, verdict: Verdict, fabric: &mut Fabric) {
        self.give(Input::Checked(ticket, verdict), fabric);
    }

    /// Applies an input at once, or queues it for its thread.
    fn give(&mut self, input: Input, fabric: &mut Fabric) {
        if self.thread.is_some() {
            self.inputs.push_back(input);
        } else {
            self.apply(input, fabric);
        }
    }

    fn apply(&mut self, input: Input, fabric: &mut Fabric) {
        match input {
            Input::Connected(end) => self.on_connected(end, fabric),
            Input::Readable(end) => self.on_readable(end, fabric),
            Input::Writable(end) => self.on_writable(end),
            Input::Closed(end, reason) => self.on_closed(end, &reason, fabric),
            Input::Checked(ticket, verdict) => self.on_checked(ticket, verdict, fabric),
        }
    }

    fn on_checked(&mut self, ticket: u64, verdict: Verdict, fabric: &mut Fabric) {
        let Some((token, job, provider)) = self.checks.remove(&ticket) else { return };
        match verdict {
            Ok(()) => self.start_job((token, job, provider), fabric),
            Err(place) => {
                let now = fabric.queue.now();
                self.client.complete(token, Err(refusal(place)), now, &mut self.deliveries);
            }
        }
    }

    fn start_job(&mut self, (token, job, provider): Pending, fabric: &mut Fabric) {
        // Its thread runs the job, and does nothing else in the meantime.
        if self.thread.is_some() {
            return self.ready.push_back((token, job, provider));
        }
        match self.effect_time.draw(&mut self.entropy) {
            Some(span) => {
                let event = Event::ClientEffect { client: self.id, token, job, provider };
                fabric.queue.schedule_in(span, event);
            }
            None => self.effect_done(token, *job, provider.as_ref(), fabric),
        }
    }

    fn on_connected(&mut self, end: End, fabric: &mut Fabric) {
        if let Some(socket) = self.socket.as_mut().filter(|socket| socket.end == end) {
            socket.is_connected = true;
            let connection = socket.connection;
            self.client.handle_connected(connection, fabric.queue.now(), &mut self.deliveries);
        }
    }

    fn on_readable(&mut self, end: End, fabric: &mut Fabric) {
        if !self.reads {
            return;
        }
        let Some(socket) = self.socket.as_mut().filter(|socket| socket.end == end) else { return };
        fabric.read(socket.end, &mut socket.inbox);
        let given = socket.inbox.len();
        let now = fabric.queue.now();
        let consumed = self.client.received(socket.connection, &mut socket.inbox, now, &mut self.deliveries);
        if consumed > given {
            fabric.broken(Broken::Consumed { host: HostId::Client(self.id), consumed, given });
        }
        socket.inbox.drain(..consumed.min(given));
    }

    fn on_writable(&mut self, end: End) {
        if let Some(socket) = self.socket.as_mut().filter(|socket| socket.end == end) {
            socket.is_blocked = false;
        }
    }

    fn on_closed(&mut self, end: End, reason: &str, fabric: &mut Fabric) {
        if self.is_current(end)
            && let Some(socket) = self.socket.take()
        {
            let now = fabric.queue.now();
            self.client.handle_closed(socket.connection, reason, now, &mut self.deliveries);
        }
    }

    pub(crate) fn effect_done(
        &mut self,
        token: JobToken,
        job: taktwerk_crypto::Job,
        provider: &dyn taktwerk_crypto::Provider,
        fabric: &mut Fabric,
    ) {
        let result = job.run(provider);
        self.client.complete(token, result, fabric.queue.now(), &mut self.deliveries);
    }

    pub(crate) fn ring(&mut self, number: u64) -> bool {
        self.alarm.ring(number)
    }

    /// Processes everything that is due at this instant.
    pub(crate) fn settle(&mut self, fabric: &mut Fabric, resolve: impl Fn(&EndpointUrl) -> Option<ServerId>) {
        for _ in 0..TURNS_MAX {
            self.deliver(fabric);
            while let Some(effect) = self.client.poll_effect() {
                self.perform(effect, fabric, &resolve);
            }
            self.transmit(fabric);
            match self.poll_timeout() {
                Some((at, _)) if at <= fabric.queue.now() => self.handle_timeout(fabric),
                timeout if self.deliveries.deliveries.is_empty() => {
                    if let Some((at, _)) = timeout {
                        self.alarm.arm(HostId::Client(self.id), 0, at, &mut fabric.queue);
                    }
                    return;
                }
                _ => {}
            }
        }
        let reason = self.poll_timeout().map_or("something other than a deadline", |(_, reason)| reason);
        fabric.broken(Broken::Restless { host: HostId::Client(self.id), reason });
    }

    /// Whether a deadline has expired.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.poll_timeout().is_some_and(|(at, _)| at <= now)
    }

    /// The next deadline of the client or its application.
    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let own = self.application.poll_timeout().map(|at| (at, "the application's"));
        self.client.poll_timeout().into_iter().chain(own).min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, fabric: &Fabric) {
        let now = fabric.now_off_by(self.clock_offset);
        if self.client.poll_timeout().is_some_and(|(at, _)| at <= now.instant) {
            self.client.handle_timeout(now.instant, &mut self.deliveries);
        }
        if self.application.poll_timeout().is_some_and(|at| at <= now.instant) {
            self.application.handle_timeout(&mut self.client, now);
        }
    }

    /// Called when its thread has finished a step. Carries out the results and starts the next step: its cost, or
    /// `None` if there is nothing to do.
    pub(crate) fn step(
        &mut self,
        fabric: &mut Fabric,
        resolve: impl Fn(&EndpointUrl) -> Option<ServerId>,
    ) -> Option<Duration> {
        let (_, machine) = self.thread?;
        let costs = Arc::clone(&fabric.machine(machine)?.costs);
        if let Some((token, job, provider)) = self.job.take() {
            let name = fabric.meter.as_ref().map(|_| client_job_name(&job));
            fabric.meter_begin();
            self.effect_done(token, *job, provider.as_ref(), fabric);
            if let Some(name) = name {
                fabric.meter_end(Piece::ClientJob(&name));
            }
        }
        if core::mem::take(&mut self.is_sending) {
            self.transmit(fabric);
        }
        self.deliver(fabric);
        while self.ready.is_empty()
            && let Some(effect) = self.client.poll_effect()
        {
            self.perform(effect, fabric, &resolve);
        }
        self.job = self.ready.pop_front();
        // Results of the last input and of the application's commands.
        let mut nanos = core::mem::take(&mut self.behind) + costs.of_client(&self.client.take_work());
        if let Some((_, job, _)) = &self.job {
            let cost = costs.of_client_job(job);
            let machine = fabric.machine(machine)?;
            return Some(machine.noisy(nanos) + cost.map_or(Duration::ZERO, |cost| machine.draw(cost)));
        }
        let can_send = self.socket.as_ref().is_some_and(|socket| socket.is_connected && !socket.is_blocked);
        if can_send && !self.client.transmit().is_empty() {
            self.is_sending = true;
            return Some(fabric.machine(machine)?.noisy(nanos + costs.client.send));
        }
        let is_input = !self.inputs.is_empty();
        fabric.meter_begin();
        if let Some(input) = self.inputs.pop_front() {
            if matches!(input, Input::Readable(_)) {
                nanos += costs.client.receive;
            }
            self.apply(input, fabric);
        } else if self.is_due(fabric.queue.now()) {
            nanos += costs.client.timer;
            self.handle_timeout(fabric);
        } else if self.deliveries.deliveries.is_empty() {
            if let Some((at, _)) = self.poll_timeout() {
                self.alarm.arm(HostId::Client(self.id), 0, at, &mut fabric.queue);
            }
            return (nanos > 0.0)
                .then(|| fabric.machine(machine).map(|machine| machine.noisy(nanos)))
                .flatten();
        }
        let work = self.client.take_work();
        fabric.meter_end(Piece::Client(&work, !is_input));
        self.behind = costs.of_client_behind(&work);
        nanos += costs.of_client(&work) - self.behind;
        Some(fabric.machine(machine)?.noisy(nanos))
    }

    fn deliver(&mut self, fabric: &mut Fabric) {
        while let Some(delivery) = self.deliveries.pop() {
            if let Delivery::Response(handle, _) = &delivery {
                self.waiting.remove(handle);
                if self.answered.contains(handle) {
                    fabric.broken(Broken::Answered { host: HostId::Client(self.id), handle: handle.0 });
                }
                self.answered.push_back(*handle);
                if self.answered.len() > ANSWERED_KEPT {
                    self.answered.pop_front();
                }
            }
            let now = fabric.now_off_by(self.clock_offset);
            self.application.deliver(delivery, &mut self.client, now);
        }
    }

    fn perform(
        &mut self,
        effect: Effect,
        fabric: &mut Fabric,
        resolve: &impl Fn(&EndpointUrl) -> Option<ServerId>,
    ) {
        match effect {
            Effect::Connect { connection, url } => {
                let Some(server) = resolve(&url) else {
                    let reason = format!("no host is called {}", url.host);
                    let now = fabric.queue.now();
                    return self.client.handle_closed(connection, &reason, now, &mut self.deliveries);
                };
                let link = fabric.connect(self.id, server, &self.route);
                if self.partitioned {
                    fabric.network.partition(link);
                }
                if let Some((side, bytes)) = self.cut_next.take() {
                    fabric.network.cut_at_byte(End { link, side }, bytes);
                }
                let end = End { link, side: Side::Client };
                let socket =
                    Socket { connection, end, is_connected: false, is_blocked: false, inbox: Vec::new() };
                if let Some(old) = self.socket.replace(socket) {
                    fabric.close(old.end);
                }
            }
            Effect::Disconnect { connection, unsent } => {
                if let Some(socket) = self.socket.take_if(|socket| socket.connection == connection) {
                    // The final bytes of a blocked client are lost, because it does not wait for the socket.
                    fabric.write(socket.end, &unsent);
                    fabric.close(socket.end);
                }
            }
            Effect::Crypto { token, job, provider } => {
                let validates = matches!(*job, Job::OpenChunk(_) | Job::Validate { .. });
                match self.asker.filter(|_| validates) {
                    Some(asker) => {
                        let ticket = fabric.check(asker, HostId::Client(self.id));
                        self.checks.insert(ticket, (token, job, provider));
                    }
                    None => self.start_job((token, job, provider), fabric),
                }
            }
        }
    }

    fn transmit(&mut self, fabric: &mut Fabric) {
        let Some(socket) = self.socket.as_mut().filter(|socket| socket.is_connected && !socket.is_blocked)
        else {
            return;
        };
        let out = self.client.transmit();
        if out.is_empty() {
            return;
        }
        let taken = fabric.write(socket.end, out);
        socket.is_blocked = taken < out.len();
        out.drain(..taken);
    }
}
