//! Runs a scenario with one seed.

use super::Scenario;
use super::application::Worker;
use super::build::{Built, build, start_server, target};
use super::check::check;
use super::durable::LIFETIME_HOURS;
use super::fault::{FaultKind, Role, Which};
use super::instruments::Instruments;
use super::outcome::{HostOutcome, LineOutcome, LoadOutcome, Outcome, RunError};
use super::pubsub::PubSubReadings;
use crate::ids::ClientId;
use crate::network::LineId;
use crate::violation::{Broken, Violation};
use crate::world::World;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use taktwerk_netem::emulator::Counters;
use taktwerk_types::Instant;

/// Maximum virtual time until all clients have a session.
const CONNECT_MAX: Duration = Duration::from_secs(600);
/// Lifetime of a durable subscription without its client.
const DURABLE_LIFETIME: Duration = Duration::from_secs(3_600 * LIFETIME_HOURS as u64);
/// Interval in virtual time at which the run checks its state.
const SLICE: Duration = Duration::from_millis(50);
/// Number of events after which it checks its state too, because virtual time may stand still.
const PORTION: u64 = 50_000;
/// Maximum number of events at the same time, plus this many for each client; more are reported as endless.
const STANDSTILL: u64 = 500_000;
const STANDSTILL_CLIENT: u64 = 1_000;

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Virtual time so far.
    pub simulated: Duration,
    /// Total virtual time, as far as it is known.
    pub expected: Duration,
}

/// Runs the scenario. `report` is called regularly and returns whether to continue.
///
/// # Errors
/// [`RunError`]: a contradiction, clients without a session, a broken promise, a panic of the software, or a stop
/// requested by `report`.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    report: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    run_with(scenario, seed, Instruments::default(), report)
}

/// Like [`run`], and writes records. The files are complete even if a promise is broken: they end at that event.
///
/// # Errors
/// The errors of [`run`], and a record that could not be written.
pub fn run_with(
    scenario: &Scenario,
    seed: u64,
    instruments: Instruments,
    report: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    // Nothing that may be inconsistent after a panic outlives the closure.
    catch_unwind(AssertUnwindSafe(|| simulate(scenario, seed, instruments, report))).unwrap_or_else(
        |payload| {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            Err(RunError::Panicked(text.unwrap_or("without a message").to_owned()))
        },
    )
}

fn simulate(
    scenario: &Scenario,
    seed: u64,
    mut instruments: Instruments,
    report: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    check(scenario)?;
    let built = build(scenario, seed, &mut instruments)?;
    let farewell = instruments.farewell;
    let mut running = Running { scenario, built, report, started: Instant::ZERO, farewell };
    running.started = running.built.world.now().instant;
    let outcome = running.run();
    let world = &mut running.built.world;
    if let Err(error) = &outcome {
        world.mark(&error.to_string());
    }
    let trace = world.finish_trace().map_err(|error| RunError::Record(format!("the trace: {error}")));
    let captures = world.finish_tap().map_err(|error| RunError::Record(format!("a capture: {error}")));
    let outcome = outcome?;
    trace.and(captures)?;
    Ok(outcome)
}

struct Running<'a> {
    scenario: &'a Scenario,
    built: Built,
    report: &'a mut dyn FnMut(Progress) -> bool,
    started: Instant,
    farewell: Option<Duration>,
}

/// Counters at one time.
struct Readings {
    lines: Vec<Vec<[Counters; 2]>>,
    servers: Vec<Duration>,
    threads: Vec<Vec<Duration>>,
    pubsub: PubSubReadings,
    authorities: Vec<Duration>,
}

impl Running<'_> {
    fn run(&mut self) -> Result<Outcome, RunError> {
        let board = Rc::clone(&self.built.board);
        self.built.world.promise(move |_| board.broken.borrow().clone().map_or(Ok(()), Err));
        if !self.scenario.pubsub.is_empty() {
            let complaints = self.built.pubsub.complaints();
            self.built.world.promise(move |_| complaints.borrow().clone().map_or(Ok(()), Err));
        }
        self.connect()?;
        self.until(self.built.world.now().instant + self.scenario.warmup)?;
        let from = self.built.world.now().instant;
        let until = from + self.scenario.measured;
        for site in &self.built.sites {
            let mut site = site.borrow_mut();
            (site.window, site.until) = ((from, until), until);
        }
        for client in self.built.clients.iter().flatten() {
            self.built.world.client_mut(*client).application.window = (from, until);
        }
        self.built.pubsub.set_window((from, until));
        self.plan_faults(from);
        let before = self.readings();
        self.until(until)?;
        let after = self.readings();
        self.settle()?;
        let outcome = self.outcome(&before, &after);
        if let Some(limit) = self.farewell {
            self.leave(limit)?;
        }
        Ok(outcome)
    }

    /// Disconnects all clients; after that, the servers must not keep anything of them.
    fn leave(&mut self, limit: Duration) -> Result<(), RunError> {
        for client in self.built.clients.iter().flatten() {
            self.built.world.client_mut(*client).application.is_leaving = true;
            self.built.world.with_client(*client, |client, _, now| client.disconnect(now.instant));
        }
        self.built.pubsub.leave(&mut self.built.world);
        // A durable subscription that its client has lost stays until its lifetime has passed.
        let has_durable = self.scenario.clients.iter().any(|clients| clients.load.is_durable());
        let durable = if has_durable { DURABLE_LIFETIME } else { Duration::ZERO };
        let limit = self.built.world.now().instant + limit + durable;
        loop {
            let world = &self.built.world;
            let kept = self.built.sites.iter().filter_map(|site| {
                let site = site.borrow();
                let server = world.server(site.id);
                let stored = site.stores.durable.as_ref().map_or(0, |store| store.len());
                let stored = (stored > 0).then(|| format!("{stored} durable subscriptions in its store"));
                server.keeps().or(stored).map(|what| format!("{} still keeps {what}", server.name()))
            });
            let kept = kept.chain(self.built.pubsub.kept(world));
            let Some(kept) = kept.reduce(|first, _| first) else { return Ok(()) };
            let at = world.now().instant;
            if at >= limit {
                let what = format!("{kept} after all clients have disconnected");
                return Err(Violation { at, what: Broken::Scenario(what) }.into());
            }
            self.slice(at + SLICE)?;
        }
    }

    fn connect(&mut self) -> Result<(), RunError> {
        for (start, id) in self.built.starts.clone() {
            let worker = &self.built.world.client(id).application;
            let (site, group) = (worker.site, worker.group);
            let Some(clients) = self.scenario.clients.get(group) else { continue };
            let Some(server) = self.built.sites.get(site).map(|site| site.borrow().id) else { continue };
            let target = target(clients, id, self.built.world.server(server).name())?;
            self.built.world.at(start, move |world| {
                let connected = world.with_client(id, |client, worker, now| {
                    worker.connecting_since = now.instant;
                    client.connect(target, now.instant)
                });
                if let Err(error) = connected {
                    world.client_mut(id).application.trouble = Some(error.to_string());
                }
            });
        }
        let limit = self.started + CONNECT_MAX;
        loop {
            let waiting: Vec<&Worker> = self.workers().filter(|worker| !worker.has_begun()).collect();
            let (silent, first) = self.built.pubsub.waiting();
            if waiting.is_empty() && silent == 0 {
                return Ok(());
            }
            let is_late = self.built.world.now().instant >= limit;
            if is_late && waiting.is_empty() {
                let (all, first) = (self.built.pubsub.subscribers(), first.unwrap_or_default());
                return Err(RunError::NoValues(silent, all, CONNECT_MAX, first));
            }
            if is_late {
                let why = waiting.iter().find_map(|worker| worker.trouble.clone());
                let all = self.built.starts.len();
                let why = why.unwrap_or_else(|| "no answer".to_owned());
                return Err(RunError::NoSession(waiting.len(), all, CONNECT_MAX, why));
            }
            self.slice(self.built.world.now().instant + SLICE)?;
        }
    }

    fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.built.clients.iter().flatten().map(|client| &self.built.world.client(*client).application)
    }

    fn until(&mut self, until: Instant) -> Result<(), RunError> {
        while self.built.world.now().instant < until {
            self.slice((self.built.world.now().instant + SLICE).min(until))?;
        }
        Ok(())
    }

    fn slice(&mut self, until: Instant) -> Result<(), RunError> {
        let endless = STANDSTILL + STANDSTILL_CLIENT * self.built.clients.iter().flatten().count() as u64;
        let mut at = (self.built.world.now().instant, 0);
        while !self.built.world.run_some(until, PORTION)? {
            let now = self.built.world.now().instant;
            at = if now == at.0 { (now, at.1 + PORTION) } else { (now, 0) };
            if at.1 > endless {
                return Err(RunError::Standstill(now.since(self.started)));
            }
            self.report()?;
        }
        let world = &self.built.world;
        let over = self.built.sites.iter().find_map(|site| world.server(site.borrow().id).over_budget());
        let over = over.or_else(|| self.built.pubsub.over_budget(world));
        if let Some(what) = over {
            return Err(Violation { at: world.now().instant, what: Broken::Scenario(what) }.into());
        }
        self.report()
    }

    fn report(&mut self) -> Result<(), RunError> {
        let simulated = self.built.world.now().instant.since(self.started);
        let expected = self.scenario.warmup + self.scenario.measured;
        if !(self.report)(Progress { simulated, expected: expected.max(simulated) }) {
            return Err(RunError::Stopped);
        }
        Ok(())
    }

    /// Ends all faults. The last values must arrive and the last requests must be answered, except those that could not
    /// be sent in time.
    fn settle(&mut self) -> Result<(), RunError> {
        let last_fault = self.scenario.faults.iter().map(|fault| fault.at + fault.lasts).max();
        let behind = last_fault.unwrap_or_default().saturating_sub(self.scenario.measured);
        self.until(self.built.world.now().instant + behind)?;
        let healed = self.built.world.now().instant;
        let limit = healed + self.scenario.settle;
        // Events continue; each client must get one that was raised from now on.
        let events: Vec<Option<i64>> =
            self.built.sites.iter().map(|site| site.borrow().last_event()).collect();
        loop {
            let at = self.built.world.now().instant;
            let last: Vec<Vec<i64>> = self
                .built
                .sites
                .iter()
                .map(|site| site.borrow().groups.iter().map(|group| group.count).collect())
                .collect();
            let is_over = at >= limit;
            let stuck = self.workers().find_map(|worker| {
                let event = events.get(worker.site).copied().flatten();
                let stuck = worker.is_stuck(last.get(worker.site)?, event);
                stuck.filter(|_| !(is_over && worker.is_behind(healed)))
            });
            let stuck = stuck.or_else(|| self.built.pubsub.is_stuck());
            let Some(stuck) = stuck else { return Ok(()) };
            if is_over {
                let settle = self.scenario.settle;
                let what = format!("{stuck} {settle:?} after all faults have ended (time.settle_s)");
                return Err(Violation { at, what: Broken::Scenario(what) }.into());
            }
            self.slice(at + SLICE)?;
        }
    }

    // ---- faults

    fn plan_faults(&mut self, from: Instant) {
        for fault in &self.scenario.faults {
            let which = fault.kind.which();
            let name = fault.kind.name();
            self.built.world.at(from + fault.at, move |world| world.mark(name));
            if fault.kind.lasts() {
                let over = format!("{name} is over");
                self.built.world.at(from + fault.at + fault.lasts, move |world| world.mark(&over));
            }
            if fault.kind.role() == Some(Role::Authority) {
                self.built.authorities.plan(fault, from, &mut self.built.world);
            } else if fault.kind.role().is_some() {
                self.built.pubsub.plan(fault, from, &mut self.built.world);
            } else if fault.kind.is_of_server() {
                for (number, site) in self.sites_of(which) {
                    self.plan_server_fault(from + fault.at, fault.lasts, fault.kind, number, site);
                }
            } else {
                for client in self.clients_of(which) {
                    plan_client_fault(
                        &mut self.built.world,
                        from + fault.at,
                        fault.lasts,
                        fault.kind,
                        client,
                    );
                }
            }
        }
    }

    fn clients_of(&self, which: Which) -> Vec<ClientId> {
        let all = self.built.clients.get(which.group).map(Vec::as_slice).unwrap_or_default();
        match which.number {
            Some(number) => all.get(number as usize).copied().into_iter().collect(),
            None => all.to_vec(),
        }
    }

    /// The servers of a kind: their numbers within the kind, and their indexes among all servers.
    fn sites_of(&self, which: Which) -> Vec<(u32, usize)> {
        let all = self.built.kind_of.iter().enumerate().filter(|(_, kind)| **kind == which.group);
        let all = (0..).zip(all.map(|(site, _)| site));
        all.filter(|(number, _)| which.number.is_none_or(|wanted| wanted == *number)).collect()
    }

    fn plan_server_fault(&mut self, at: Instant, lasts: Duration, kind: FaultKind, number: u32, site: usize) {
        let Some(shared) = self.built.sites.get(site).map(Rc::clone) else { return };
        let id = shared.borrow().id;
        let group = kind.which().group;
        let world = &mut self.built.world;
        match kind {
            FaultKind::ServerClock(_, nanos) => {
                world.at(at, move |world| world.set_server_clock(id, nanos));
                world.at(at + lasts, move |world| world.set_server_clock(id, 0));
            }
            FaultKind::Storm(_) => {
                let clients: Vec<ClientId> = self
                    .built
                    .clients
                    .iter()
                    .flatten()
                    .copied()
                    .filter(|client| world.client(*client).application.site == site)
                    .collect();
                world.at(at, move |world| clients.iter().for_each(|client| world.cut(*client)));
            }
            FaultKind::Crash(_) | FaultKind::Restart(_) => {
                let stopped = Rc::clone(&shared);
                world.at(at, move |world| {
                    stopped.borrow_mut().is_up = false;
                    world.crash(id);
                });
                let lasts = if kind.lasts() { lasts } else { Duration::ZERO };
                let scenario = self.scenario.clone();
                let providers = self.built.providers.clone();
                world.at(at + lasts, move |world| {
                    let mut site = shared.borrow_mut();
                    if site.is_up {
                        return;
                    }
                    let (of, stores) = ((group, number), site.stores.clone());
                    let started =
                        start_server(world, &scenario, of, &mut site.groups, &stores, providers.as_ref());
                    if let Ok(started) = started {
                        world.restart_of(id, started.shards);
                        site.emitter.space = Some(started.space);
                        site.is_up = true;
                    }
                });
            }
            _ => {}
        }
    }

    // ---- figures

    fn readings(&self) -> Readings {
        let world = &self.built.world;
        let line = |line: &LineId| world.network().line(*line);
        Readings {
            pubsub: self.built.pubsub.readings(world),
            authorities: self.built.authorities.readings(world),
            lines: self.built.lines.iter().map(|lines| lines.iter().map(line).collect()).collect(),
            servers: self.built.sites.iter().map(|site| world.server_used(site.borrow().id)).collect(),
            threads: self
                .built
                .threads
                .iter()
                .map(|threads| threads.iter().map(|thread| world.client_thread_used(*thread)).collect())
                .collect(),
        }
    }

    fn outcome(&self, before: &Readings, after: &Readings) -> Outcome {
        let seconds = self.scenario.measured.as_secs_f64();
        Outcome {
            loads: self.loads(),
            lines: self.lines(before, after, seconds),
            servers: self.servers(before, after, seconds),
            clients: self
                .scenario
                .clients
                .iter()
                .zip(before.threads.iter().zip(&after.threads))
                .map(|(clients, (before, after))| {
                    let used = before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before));
                    let used: Duration = used.sum();
                    HostOutcome { cpu: clients.host.map(|_| used.as_secs_f64() / seconds) }
                })
                .collect(),
            pubsub: self.built.pubsub.outcome(
                &self.scenario.pubsub,
                &self.built.world,
                (&before.pubsub, &after.pubsub),
                seconds,
            ),
            authorities: self.built.authorities.outcome(
                &self.scenario.authorities,
                (&before.authorities, &after.authorities),
                seconds,
            ),
            measured: seconds,
            simulated: self.built.world.now().instant.since(self.started).as_secs_f64(),
            events: self.built.world.events(),
        }
    }

    fn loads(&self) -> Vec<LoadOutcome> {
        let mut loads = vec![LoadOutcome::default(); self.scenario.clients.len()];
        for worker in self.workers() {
            let Some(load) = loads.get_mut(worker.group) else { continue };
            let one = &worker.outcome;
            load.times.merge(&one.times);
            load.arrived += one.arrived;
            load.overflows += one.overflows;
            load.messages += one.messages;
            load.failed += one.failed;
            load.reconnects += one.reconnects;
            load.losses += one.losses;
            load.events += one.events;
            load.event_overflows += one.event_overflows;
            load.durable += one.durable;
            load.transfers += one.transfers;
            load.session_up = load.session_up.max(one.session_up);
            load.failed_attempts += one.failed_attempts;
            load.outage = load.outage.max(one.outage);
            load.due += one.due;
            if let Some(site) = self.built.sites.get(worker.site) {
                let items = worker.items_per_group();
                let site = site.borrow();
                load.due +=
                    items.iter().zip(&site.groups).map(|(items, group)| items * group.written).sum::<u64>();
            }
        }
        loads
    }

    fn lines(&self, before: &Readings, after: &Readings, seconds: f64) -> Vec<LineOutcome> {
        let mut all = Vec::new();
        for (link, (before, after)) in self.scenario.links.iter().zip(before.lines.iter().zip(&after.lines)) {
            let mut outcome = LineOutcome::default();
            for (before, after) in before.iter().zip(after) {
                let bits = |direction: usize| {
                    let bytes = after[direction].line_bytes.saturating_sub(before[direction].line_bytes);
                    bytes as f64 * 8.0 / seconds
                };
                let (up, down) = (bits(0), bits(1));
                let conditions = [&link.profile.up, &link.profile.down];
                let share = |bits: f64, direction: usize| {
                    conditions[direction]
                        .rate
                        .map(|rate| bits / rate.max(1) as f64 + conditions[direction].busy)
                };
                let used = share(up, 0).into_iter().chain(share(down, 1)).reduce(f64::max);
                if used >= outcome.utilisation {
                    outcome.utilisation = used;
                }
                outcome.up_bits_s = outcome.up_bits_s.max(up);
                outcome.down_bits_s = outcome.down_bits_s.max(down);
                outcome.lost += (0..2)
                    .map(|direction: usize| {
                        let gone = |counters: &Counters| counters.lost + counters.dropped;
                        gone(&after[direction]).saturating_sub(gone(&before[direction]))
                    })
                    .sum::<u64>();
                outcome.lines += 1;
            }
            all.push(outcome);
        }
        all
    }

    fn servers(&self, before: &Readings, after: &Readings, seconds: f64) -> Vec<HostOutcome> {
        let mut all = Vec::new();
        for (kind, server) in self.scenario.servers.iter().enumerate() {
            let used = before.servers.iter().zip(&after.servers).zip(&self.built.kind_of);
            let used = used.filter(|(_, other)| **other == kind);
            let used = used.map(|((before, after), _)| after.saturating_sub(*before)).max();
            let cpu = used.filter(|_| server.host.is_some()).map(|used| used.as_secs_f64() / seconds);
            all.push(HostOutcome { cpu });
        }
        all
    }
}

fn plan_client_fault(
    world: &mut World<Worker>,
    at: Instant,
    lasts: Duration,
    kind: FaultKind,
    client: ClientId,
) {
    match kind {
        FaultKind::Cut(_) => world.at(at, move |world| world.cut(client)),
        FaultKind::Partition(_) => {
            world.at(at, move |world| world.partition(client));
            world.at(at + lasts, move |world| world.heal(client));
        }
        FaultKind::ClientClock(_, nanos) => {
            world.at(at, move |world| world.set_client_clock(client, nanos));
            world.at(at + lasts, move |world| world.set_client_clock(client, 0));
        }
        FaultKind::SlowReader(_) => {
            world.at(at, move |world| world.set_reads(client, false));
            world.at(at + lasts, move |world| world.set_reads(client, true));
        }
        _ => {}
    }
}
