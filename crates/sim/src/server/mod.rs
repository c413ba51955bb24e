//! The driver of a server: what `taktwerk-net` does with sockets and threads, implemented with links and events.

mod runner;

use crate::authority::{Verdict, refusal};
use crate::effect::{EffectTime, run};
use crate::event::Event;
use crate::fabric::Fabric;
use crate::host::machine::{Machine, MachineId, Owner, nanoseconds};
use crate::host::pool::{Pools, Priced, RECORDER, Task, of_values, pool_of};
use crate::ids::{HostId, NodeId, ServerId};
use crate::meter::Piece;
use crate::network::{End, LinkId};
use crate::source::{VirtualSources, do_work};
use crate::trace::Track;
use crate::violation::Broken;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use runner::{Input, Runner};
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_crypto::SeededEntropy;
use taktwerk_server::history::HistoryStore;
use taktwerk_server::recorder::{Recorded, Recorder};
use taktwerk_server::source::{SourceDriver, Work};
use taktwerk_server::{Category, Effect, Job, JobKind, JobResult, Now, Shard, Token};

/// Number of timer calls at one instant after which a shard is reported as never idle.
const TURNS_MAX: usize = 100_000;
/// Interval at which futures are polled.
const POLL_EVERY: Duration = Duration::from_millis(1);

/// A process that runs a server.
#[derive(Debug)]
pub struct ServerHost {
    id: ServerId,
    name: Box<str>,
    running: Option<Running>,
    entropy: SeededEntropy,
    /// Duration of effects and of the work of sources. On a machine it is used only for sources and for jobs whose cost
    /// the profile does not define.
    pub effect_time: EffectTime,
    /// Number of bytes of a response that may exceed a full send budget.
    pub response_len_max: usize,
    /// Offset of its wall clock in nanoseconds.
    pub clock_offset: i64,
    /// Number of restarts.
    incarnation: u32,
    /// Number of connections that moved to another shard.
    moves: u64,
    machine: Option<MachineId>,
    /// Asks certificate authorities about the certificates of clients.
    asker: Option<NodeId>,
    /// Counts the values that jobs read from the history.
    values_read: Arc<AtomicU64>,
    /// Flag of the world: some shard was woken.
    any_woken: Arc<AtomicBool>,
}

/// State that is lost when the process dies.
#[derive(Debug)]
struct Running {
    runners: Vec<Runner>,
    sources: Arc<VirtualSources>,
    /// The shard of each connection.
    shard_of: BTreeMap<LinkId, usize>,
    pools: Pools,
    /// Takes the values of variables with history; `None` if there is no history.
    recorder: Option<Recorder>,
    /// The store of recorded values.
    history: Option<Arc<dyn HistoryStore>>,
    /// What waits for certificate authorities.
    checks: BTreeMap<u64, Checked>,
}

/// Waits for certificate authorities.
#[derive(Debug)]
enum Checked {
    /// The thread of a pool with its job.
    Worker(u8, u32),
    /// A job of a shard without a machine.
    Job(usize, Token, Job),
}

impl ServerHost {
    pub(crate) fn new(
        id: ServerId,
        name: &str,
        shards: Vec<Shard>,
        entropy: SeededEntropy,
        any_woken: Arc<AtomicBool>,
        fabric: &mut Fabric,
    ) -> Self {
        let mut host = Self {
            id,
            name: name.into(),
            running: None,
            entropy,
            effect_time: EffectTime::Inline,
            response_len_max: 1 << 20,
            clock_offset: 0,
            incarnation: 0,
            moves: 0,
            machine: None,
            asker: None,
            values_read: Arc::default(),
            any_woken,
        };
        host.start(shards, fabric);
        host
    }

    pub(crate) fn id(&self) -> ServerId {
        self.id
    }

    /// The name in URLs.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first shard's state machine; `None` while the process is down.
    #[must_use]
    pub fn shard(&self) -> Option<&Shard> {
        self.shards().next()
    }

    /// The state machines of all shards; none while the process is down.
    pub fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.running.iter().flat_map(|running| &running.runners).map(|runner| &runner.shard)
    }

    pub(crate) fn shard_mut(&mut self) -> Option<&mut Shard> {
        self.running.as_mut()?.runners.first_mut().map(|runner| &mut runner.shard)
    }

    /// Sets the counter of the values that jobs read from the history. The cost of a job depends on it.
    pub fn set_values_read(&mut self, counter: Arc<AtomicU64>) {
        if let Some(running) = &mut self.running {
            running.pools.values_read = Arc::clone(&counter);
        }
        self.values_read = counter;
    }

    /// Lets an asker check the certificates of clients.
    pub(crate) fn set_asker(&mut self, asker: NodeId) {
        self.asker = Some(asker);
    }

    /// The machine that it runs on.
    #[must_use]
    pub fn machine(&self) -> Option<MachineId> {
        self.machine
    }

    /// Describes what it keeps for clients, if anything: connections, sessions, and memory charged to its account.
    pub(crate) fn keeps(&self) -> Option<String> {
        let connections: usize = self.shards().map(Shard::connection_count).sum();
        let sessions: usize = self.shards().map(Shard::session_count).sum();
        let account = self.shard()?.shared().account();
        let charged = Category::ALL.into_iter().map(|category| (account.used(category), category.name()));
        let all = [(connections, "connections"), (sessions, "sessions")].into_iter().chain(charged);
        let all: Vec<String> =
            all.filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Describes a limit of its account that is exceeded.
    pub(crate) fn over_budget(&self) -> Option<String> {
        let account = self.shard()?.shared().account();
        let over = Category::ALL.into_iter().find(|category| account.is_over(*category))?;
        let (used, max) = (account.used(over), account.max(over));
        Some(format!("{} keeps {used} {}, more than its limit of {max}", self.name, over.name()))
    }

    /// Number of connections that moved to another shard.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Number of slow jobs that wait for a worker thread or are being executed.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.running.as_ref().map_or(0, |running| running.pools.len())
    }

    /// The time shown by its clocks.
    pub(crate) fn now(&self, fabric: &Fabric) -> Now {
        fabric.now_off_by(self.clock_offset)
    }

    fn host(&self) -> HostId {
        HostId::Server(self.id)
    }

    pub(crate) fn start(&mut self, shards: Vec<Shard>, fabric: &mut Fabric) {
        self.incarnation += 1;
        let sources = Arc::new(VirtualSources::new(self.now(fabric)));
        if let Some(shard) = shards.first() {
            shard.shared().space().sources().start(Arc::clone(&sources) as Arc<dyn SourceDriver>);
        }
        let recorder = shards.first().and_then(|shard| Recorder::new(shard.shared().space()));
        let history = shards.first().and_then(|shard| shard.shared().space().history_store().cloned());
        let pools = Pools::new(Arc::clone(&self.values_read));
        let any = &self.any_woken;
        let runners = (0..).zip(shards).map(|(number, shard)| Runner::new(number, shard, any));
        let runners = runners.collect();
        let checks = BTreeMap::new();
        self.running =
            Some(Running { runners, sources, shard_of: BTreeMap::new(), pools, recorder, history, checks });
        if let Some(machine) = self.machine {
            self.place(machine, fabric);
        }
    }

    /// Gives every shard a thread on a machine.
    pub(crate) fn place(&mut self, id: MachineId, fabric: &mut Fabric) {
        self.machine = Some(id);
        let (server, incarnation) = (self.id.number(), self.incarnation);
        let Some(machine) = fabric.machine(id) else { return };
        let runners = self.running.iter_mut().flat_map(|running| &mut running.runners);
        for (shard, runner) in (0..).zip(runners) {
            runner.thread = Some(machine.spawn(Owner::Shard { server, shard, incarnation }));
            runner.is_awake = false;
        }
    }

    /// The process dies; its operating system resets the connections.
    pub(crate) fn crash(&mut self, fabric: &mut Fabric) {
        let Some(mut running) = self.running.take() else { return };
        for link in running.shard_of.keys() {
            fabric.reset(End { link: *link, side: crate::network::Side::Server });
        }
        if let Some((machine, queue)) = self.machine.and_then(|id| fabric.machine_and_queue(id)) {
            running.pools.kill(machine, queue);
            for thread in running.runners.iter().filter_map(|runner| runner.thread) {
                machine.kill(thread, queue);
            }
        }
        for shard in (0..).zip(&running.runners).map(|(shard, _)| shard) {
            fabric.trace_end_all(Track::Shard(self.id, shard));
        }
    }

    // ---- what the network reports

    /// Assigns the connection to the shard with the fewest connections.
    pub(crate) fn accept(&mut self, link: LinkId, fabric: &mut Fabric) {
        let Some(running) = &mut self.running else {
            return fabric.network.refuse(link, &mut fabric.queue);
        };
        let mut counts = vec![0usize; running.runners.len()];
        for shard in running.shard_of.values() {
            if let Some(count) = counts.get_mut(*shard) {
                *count += 1;
            }
        }
        let shard = (0..counts.len()).min_by_key(|shard| counts.get(*shard)).unwrap_or(0);
        let end = fabric.network.accept(link, &mut fabric.queue);
        running.shard_of.insert(link, shard);
        self.give(shard, Input::Accepted(end, None), fabric);
    }

    pub(crate) fn readable(&mut self, end: End, fabric: &mut Fabric) {
        self.give_to_owner(end.link, Input::Readable(end.link), fabric);
    }

    pub(crate) fn writable(&mut self, end: End, fabric: &mut Fabric) {
        self.give_to_owner(end.link, Input::Writable(end.link), fabric);
    }

    pub(crate) fn closed(&mut self, end: End, fabric: &mut Fabric) {
        let Some(running) = &mut self.running else { return };
        if let Some(shard) = running.shard_of.remove(&end.link) {
            self.give(shard, Input::Closed(end.link), fabric);
        }
    }

    fn give_to_owner(&mut self, link: LinkId, input: Input, fabric: &mut Fabric) {
        let shard = self.running.as_ref().and_then(|running| running.shard_of.get(&link)).copied();
        if let Some(shard) = shard {
            self.give(shard, input, fabric);
        }
    }

    /// Passes an input to a shard: immediately, or when its thread gets to it.
    fn give(&mut self, shard: usize, input: Input, fabric: &mut Fabric) {
        let (host, now) = (self.host(), self.now(fabric));
        let Some(runner) = self.runner(shard) else { return };
        if runner.thread.is_none() {
            return runner.apply(input, host, now, fabric);
        }
        // The operating system reports once that bytes are available, however many segments brought them.
        let is_known = match &input {
            Input::Readable(link) => runner
                .inputs
                .iter()
                .rev()
                .take(16)
                .any(|known| matches!(known, Input::Readable(other) if other == link)),
            _ => false,
        };
        if !is_known {
            runner.inputs.push_back(input);
        }
    }

    fn runner(&mut self, shard: usize) -> Option<&mut Runner> {
        self.running.as_mut()?.runners.get_mut(shard)
    }

    // ---- certificates

    /// Requests the checks for jobs that threads have begun.
    fn request_checks(&mut self, fabric: &mut Fabric) {
        let (Some(asker), Some(running)) = (self.asker, &mut self.running) else { return };
        while let Some((pool, slot)) = running.pools.poll_unchecked() {
            let ticket = fabric.check(asker, HostId::Server(self.id));
            running.checks.insert(ticket, Checked::Worker(pool, slot));
        }
    }

    /// A check has ended. Checks of an earlier process are ignored.
    pub(crate) fn checked(&mut self, ticket: u64, verdict: Verdict, fabric: &mut Fabric) {
        let Some(running) = &mut self.running else { return };
        let refused = verdict.err().map(|place| JobResult::Crypto(Err(refusal(place))));
        match running.checks.remove(&ticket) {
            Some(Checked::Worker(pool, slot)) => {
                if let Some((machine, queue)) = self.machine.and_then(|id| fabric.machine_and_queue(id)) {
                    running.pools.checked((pool, slot), refused, machine, queue);
                }
            }
            Some(Checked::Job(shard, token, job)) => match refused {
                Some(result) => self.give(shard, Input::Done(token, result), fabric),
                None => self.start_unplaced(shard, token, job, fabric),
            },
            None => {}
        }
    }

    /// Starts a job of a server without a machine.
    fn start_unplaced(&mut self, shard: usize, token: Token, job: Job, fabric: &mut Fabric) {
        match self.effect_time.draw(&mut self.entropy) {
            Some(span) => {
                let event = self.effect_event(shard, token, job);
                fabric.queue.schedule_in(span, event);
            }
            None => self.run_job(shard, token, job, fabric),
        }
    }

    // ---- what happens later

    pub(crate) fn ring(&mut self, shard: u32, number: u64) -> bool {
        self.runner(shard as usize).is_some_and(|runner| runner.alarm.ring(number))
    }

    pub(crate) fn is_woken(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.runners.iter().any(Runner::is_woken))
    }

    pub(crate) fn effect_done(
        &mut self,
        (incarnation, shard): (u32, u32),
        token: Token,
        job: Job,
        fabric: &mut Fabric,
    ) {
        if self.running.is_some() && incarnation == self.incarnation {
            self.run_job(shard as usize, token, job, fabric);
        }
    }

    /// Runs a job whose time has elapsed, and passes its result to the shard.
    fn run_job(&mut self, shard: usize, token: Token, job: Job, fabric: &mut Fabric) {
        match run(job) {
            Ok(result) => self.give(shard, Input::Done(token, result), fabric),
            Err(job) => {
                let event = self.effect_event(shard, token, job);
                fabric.queue.schedule_in(POLL_EVERY, event);
            }
        }
    }

    fn effect_event(&self, shard: usize, token: Token, job: Job) -> Event {
        let shard = u32::try_from(shard).unwrap_or(u32::MAX);
        Event::ServerEffect { server: self.id, incarnation: self.incarnation, shard, token, job }
    }

    /// A worker thread has finished its job.
    pub(crate) fn worker_done(&mut self, incarnation: u32, pool: u8, slot: u32, fabric: &mut Fabric) {
        if incarnation != self.incarnation {
            return;
        }
        let Some(running) = &mut self.running else { return };
        let Some((machine, queue)) = self.machine.and_then(|id| fabric.machine_and_queue(id)) else { return };
        let done = running.pools.done(pool, slot, machine, queue);
        self.request_checks(fabric);
        let Some(Priced { of, task, .. }) = done else { return };
        match (task, of) {
            (Task::Job(kind, job), Some((shard, token))) => {
                fabric.meter_begin();
                self.run_job(shard, token, job, fabric);
                if fabric.meter.is_some() {
                    fabric.meter_end(Piece::Job(&kind.name()));
                }
            }
            (Task::Done(result), Some((shard, token))) => {
                self.give(shard, Input::Done(token, result), fabric)
            }
            (Task::Record(values), _) => {
                store(self.running.as_ref().and_then(|running| running.history.as_deref()), values);
            }
            (Task::Job(..) | Task::Done(_), None) => {}
        }
    }

    /// Stores the values that were written since the last call. Does nothing while earlier values are being stored.
    pub(crate) fn record(&mut self, fabric: &mut Fabric) {
        let now = self.now(fabric);
        let Some(running) = &mut self.running else { return };
        let Some(recorder) = running.recorder.as_mut().filter(|_| running.pools.is_idle(RECORDER)) else {
            return;
        };
        let mut values = Vec::new();
        recorder.take(now.utc, &mut values, || ());
        if values.is_empty() {
            return;
        }
        let Some((machine, queue)) = self.machine.and_then(|id| fabric.machine_and_queue(id)) else {
            return store(running.history.as_deref(), values);
        };
        let costs = Arc::clone(&machine.costs);
        let cost = costs.of_recording().map_or(Duration::ZERO, |cost| machine.draw(cost));
        let cost = of_values(cost, values.len() as u64);
        let priced = Priced { of: None, task: Task::Record(values), cost, needs_check: false };
        running.pools.submit((self.id.number(), self.incarnation), RECORDER, priced, machine, queue);
    }

    /// Continues the work of a source; a future that is not ready is polled again later.
    pub(crate) fn source_works(&mut self, incarnation: u32, work: Work, fabric: &mut Fabric) {
        let server = self.id;
        let now = self.now(fabric);
        let Some(running) = self.running.as_mut().filter(|_| incarnation == self.incarnation) else { return };
        running.sources.set_now(now);
        if let Some(work) = do_work(work) {
            fabric.queue.schedule_in(POLL_EVERY, Event::SourceWork { server, incarnation, work });
        }
    }

    /// Makes the due calls for the sources, and distributes their work.
    fn run_sources(&mut self, fabric: &mut Fabric) {
        let (server, incarnation) = (self.id, self.incarnation);
        let now = self.now(fabric);
        let Some(running) = &mut self.running else { return };
        running.sources.set_now(now);
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

    // ---- without a processor: everything immediately

    /// Does everything that is pending for the shards at this instant, or ensures that their threads will do it.
    pub(crate) fn settle(&mut self, fabric: &mut Fabric) {
        if self.machine.is_some() {
            return self.wake_threads(fabric);
        }
        for _ in 0..TURNS_MAX {
            self.run_sources(fabric);
            self.flush(fabric);
            let (host, now) = (self.host(), self.now(fabric));
            let Some(running) = &mut self.running else { return };
            let mut moves_on = false;
            for runner in &mut running.runners {
                if runner.resume(host, now, fabric) {
                    moves_on = true;
                } else if runner.is_due(now) {
                    runner.woken.flag.store(false, Ordering::Relaxed);
                    runner.shard.timer(now);
                    moves_on = true;
                }
            }
            // A shard that was just polled may have requested something from a source.
            if !moves_on && !running.sources.is_busy() {
                return self.arm(fabric);
            }
        }
        let timeout = self.shards().filter_map(Shard::poll_timeout).min();
        let reason = timeout.map_or("something other than a deadline", |(_, reason)| reason);
        fabric.broken(Broken::Restless { host: self.host(), reason });
    }

    /// Ensures that the host is woken for its next deadlines.
    fn arm(&mut self, fabric: &mut Fabric) {
        let host = self.host();
        let Some(running) = &mut self.running else { return };
        let mut source = running.sources.next();
        for (shard, runner) in (0..).zip(&mut running.runners) {
            let deadline = runner.shard.poll_timeout().map(|(at, _)| at);
            if let Some(at) = deadline.into_iter().chain(source.take()).min() {
                runner.alarm.arm(host, shard, at, &mut fabric.queue);
            }
        }
    }

    /// Carries out all requests of the shards, until none has any: a message for a shard can make it request something.
    fn flush(&mut self, fabric: &mut Fabric) {
        let mut moves_on = true;
        while core::mem::take(&mut moves_on) {
            for shard in 0..self.running.as_ref().map_or(0, |running| running.runners.len()) {
                let now = self.now(fabric);
                loop {
                    let Some(runner) = self.runner(shard) else { return };
                    while let Some(id) = runner.shard.poll_transmit() {
                        runner.send(id, now, fabric);
                    }
                    if !self.carry_out(shard, fabric) {
                        break;
                    }
                    moves_on = true;
                }
            }
        }
    }

    /// Carries out the next request of a shard other than sending. Returns whether there was one.
    fn carry_out(&mut self, shard: usize, fabric: &mut Fabric) -> bool {
        let now = self.now(fabric);
        let Some(runner) = self.runner(shard) else { return false };
        // The audit records of a simulated server are discarded.
        while runner.shard.poll_audit().is_some() {}
        if let Some(effect) = runner.shard.poll_effect() {
            self.start_effect(shard, effect, fabric);
            return true;
        }
        if let Some((to, message)) = runner.shard.poll_message() {
            self.give(to, Input::Message(message), fabric);
            return true;
        }
        if let Some((id, to)) = runner.shard.poll_move() {
            if let Some(state) = runner.shard.export(id, now)
                && let Some(socket) = runner.remove(id)
            {
                let end = socket.end;
                if let Some(running) = &mut self.running {
                    running.shard_of.insert(end.link, to);
                }
                self.moves += 1;
                self.give(to, Input::Moved(end, Box::new(state), socket.inbox), fabric);
                // Bytes received before the move are reported again to the new shard.
                self.give(to, Input::Readable(end.link), fabric);
            }
            return true;
        }
        let Some(id) = runner.shard.poll_close() else { return false };
        if let Some(socket) = runner.remove(id) {
            if let Some(running) = &mut self.running {
                running.shard_of.remove(&socket.end.link);
            }
            fabric.close(socket.end);
        }
        true
    }

    fn start_effect(&mut self, shard: usize, effect: Effect, fabric: &mut Fabric) {
        let Effect { token, kind, job } = effect;
        // A future only waits: the work it waits for is accounted for elsewhere.
        if matches!(job, Job::Future(_)) {
            return self.run_job(shard, token, job, fabric);
        }
        // Every request for a channel or a new token has its certificate validated (Part 4 §6.1.7).
        let needs_check =
            self.asker.is_some() && matches!(kind, JobKind::OpenChannel(_) | JobKind::ValidateCertificate);
        let identity = (self.id.number(), self.incarnation);
        if let (Some(running), Some((machine, queue))) =
            (&mut self.running, self.machine.and_then(|id| fabric.machine_and_queue(id)))
        {
            let cost = job_cost(machine, kind, self.effect_time, &mut self.entropy);
            let priced = Priced { of: Some((shard, token)), task: Task::Job(kind, job), cost, needs_check };
            running.pools.submit(identity, pool_of(kind), priced, machine, queue);
            return self.request_checks(fabric);
        }
        if let (true, Some(asker), Some(running)) = (needs_check, self.asker, &mut self.running) {
            let ticket = fabric.check(asker, HostId::Server(self.id));
            running.checks.insert(ticket, Checked::Job(shard, token, job));
            return;
        }
        self.start_unplaced(shard, token, job, fabric);
    }

    // ---- with a processor: step by step

    fn wake_threads(&mut self, fabric: &mut Fabric) {
        self.run_sources(fabric);
        let now = self.now(fabric);
        let (Some(running), Some((machine, queue))) =
            (&mut self.running, self.machine.and_then(|id| fabric.machine_and_queue(id)))
        else {
            return;
        };
        let cost = machine.costs.server.wake + machine.costs.server.turn;
        let cold = machine.costs.server.cold();
        let mut woken = 0u64;
        for (shard, runner) in (0..).zip(&mut running.runners) {
            let has_work = !runner.inputs.is_empty() || runner.is_due(now) || !runner.resumable().is_empty();
            if let Some(thread) = runner.thread.filter(|_| has_work && !runner.is_awake) {
                runner.is_awake = true;
                runner.batch = runner.inputs.len();
                let cost = machine.noisy(cost);
                machine.start(thread, cost, cold, queue);
                woken |= 1u64 << (shard & 63);
            }
        }
        if fabric.trace.is_some() {
            for shard in (0..64).filter(|shard| woken & (1 << shard) != 0) {
                fabric.trace_begin(Track::Shard(self.id, shard), "turn");
                fabric.trace_begin(Track::Shard(self.id, shard), "wake");
            }
        }
        self.arm_sleepers(fabric);
    }

    fn arm_sleepers(&mut self, fabric: &mut Fabric) {
        let host = self.host();
        let Some(running) = &mut self.running else { return };
        let mut source = running.sources.next();
        for (shard, runner) in (0..).zip(&mut running.runners) {
            let deadline = runner.shard.poll_timeout().map(|(at, _)| at).filter(|_| !runner.is_awake);
            if let Some(at) = deadline.into_iter().chain(source.take()).min() {
                runner.alarm.arm(host, shard, at, &mut fabric.queue);
            }
        }
    }

    /// A shard's thread has finished a step. Carries out the results and begins the next step: returns its cost and
    /// name, or `None` if there is nothing to do.
    pub(crate) fn step(
        &mut self,
        incarnation: u32,
        shard: u32,
        fabric: &mut Fabric,
    ) -> Option<(Duration, &'static str)> {
        if incarnation != self.incarnation {
            return None;
        }
        let number = shard as usize;
        let (host, now) = (self.host(), self.now(fabric));
        let machine = self.machine?;
        let runner = self.runner(number)?;
        if let Some(id) = runner.sending.take() {
            runner.send(id, now, fabric);
        }
        loop {
            let runner = self.runner(number)?;
            while let Some(id) = runner.shard.poll_transmit() {
                runner.outgoing.push_back(id);
            }
            if let Some(id) = runner.outgoing.pop_front() {
                runner.sending = Some(id);
                let machine = fabric.machine(machine)?;
                let cost = machine.costs.server.send;
                return Some((machine.noisy(cost), "send"));
            }
            if !self.carry_out(number, fabric) {
                break;
            }
        }
        self.run_sources(fabric);
        let costs = Arc::clone(&fabric.machine(machine)?.costs);
        let runner = self.runner(number)?;
        let mut nanos = 0.0;
        let name;
        fabric.meter_begin();
        if let Some(input) = (runner.batch > 0).then(|| runner.inputs.pop_front()).flatten() {
            runner.batch -= 1;
            name = input.name();
            if matches!(input, Input::Readable(_)) {
                nanos += costs.server.receive;
            }
            runner.apply(input, host, now, fabric);
        } else if runner.is_due(now) {
            runner.woken.flag.store(false, Ordering::Relaxed);
            nanos += costs.server.timer;
            name = "timer";
            runner.shard.timer(now);
        } else if runner.resume(host, now, fabric) {
            nanos += costs.server.receive;
            name = "resume";
        } else if !runner.inputs.is_empty() {
            // The next turn.
            runner.batch = runner.inputs.len();
            nanos += costs.server.turn;
            name = "poll";
        } else {
            runner.is_awake = false;
            self.arm_sleepers(fabric);
            return None;
        }
        // Its output belongs to the step in which it was created.
        while let Some(id) = runner.shard.poll_transmit() {
            runner.outgoing.push_back(id);
        }
        let work = runner.shard.take_work();
        fabric.meter_end(Piece::Server(&work, name == "timer"));
        nanos += costs.of_server(&work);
        Some((fabric.machine(machine)?.noisy(nanos), name))
    }

    pub(crate) fn check(&self, fabric: &mut Fabric) {
        let Some(running) = &self.running else { return };
        for runner in &running.runners {
            runner.check(self.host(), self.response_len_max, fabric);
        }
    }

    /// Processor time that its threads have used on its machine since the last start.
    pub(crate) fn used(&self, machine: &Machine) -> Duration {
        let own = self.id.number();
        machine.used_by(|owner| match owner {
            Owner::Shard { server, .. } | Owner::Worker { server, .. } => server == own,
            _ => false,
        })
    }
}

/// Stores recorded values.
fn store(store: Option<&dyn HistoryStore>, values: Vec<Recorded>) {
    let values: Vec<_> = values.into_iter().map(|recorded| (recorded.node, recorded.value)).collect();
    // Stores of simulations are in memory: they cannot fail.
    let stored = store.map_or(Ok(()), |store| store.append(&values));
    debug_assert!(stored.is_ok(), "{stored:?}");
}

/// The cost of a job: from the profile, or from the host's effect time.
fn job_cost(machine: &mut Machine, kind: JobKind, time: EffectTime, entropy: &mut SeededEntropy) -> Duration {
    let costs = Arc::clone(&machine.costs);
    match costs.of_job(kind) {
        Some(parts) => parts.into_iter().map(|cost| machine.draw(cost)).sum(),
        None => time.draw(entropy).unwrap_or(nanoseconds(0.0)),
    }
}
