//! A machine: processors that threads share.
//!
//! Threads have work of a known length. The thread with the least run time runs next. A thread that wakes up preempts
//! one that has run for longer. No thread keeps a processor for more than a time slice while others wait. Linux does
//! this for threads of equal priority. Groups, priorities, caches, migration and frequency are not modelled.

use crate::event::Event;
use crate::queue::EventQueue;
use core::cell::RefCell;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_model::host::Cost;
use taktwerk_types::Instant;

use super::costs::Costs;
pub use crate::ids::MachineId;

/// A thread of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadId(u32);

/// The owner of a thread, notified when its work is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// A shard of a server, with the server's incarnation.
    Shard { server: u32, shard: u32, incarnation: u32 },
    /// A worker thread of a server.
    Worker { server: u32, pool: u8, slot: u32, incarnation: u32 },
    /// A thread of clients.
    Clients(u32),
    /// The thread of a publisher, subscriber, broker, authority or asker, with its incarnation.
    Node { node: u32, incarnation: u32 },
    /// A program unrelated to OPC UA.
    Competitor(u32),
}

/// A program that uses a share of a processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Competitor {
    /// Share of one processor, from 0 to 1; 1 never sleeps.
    pub share: f64,
    /// Mean length of its bursts of work.
    pub burst: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Asleep,
    Ready,
    /// On a processor, working.
    Running(u32),
    /// On a processor; its work is complete, and its owner decides how to continue.
    Held(u32),
}

#[derive(Debug)]
struct Thread {
    owner: Owner,
    state: State,
    remaining: Duration,
    /// Run time in nanoseconds, advanced when it wakes up.
    runtime: u64,
    used: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    thread: ThreadId,
    since: Instant,
    number: u64,
}

/// Additional time of a turn after its processor has slept, normally and deeply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cold {
    pub(crate) asleep: Duration,
    pub(crate) deep: Duration,
}

/// A period in which a thread had a processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ran {
    pub(crate) machine: MachineId,
    pub(crate) core: u32,
    pub(crate) owner: Owner,
    pub(crate) since: Instant,
    pub(crate) until: Instant,
}

/// Periods of the machines of a world since the last reading.
pub(crate) type RanLog = Rc<RefCell<Vec<Ran>>>;

/// Processors and their threads.
#[derive(Debug)]
pub struct Machine {
    id: MachineId,
    pub(crate) costs: Arc<Costs>,
    entropy: SeededEntropy,
    cores: Vec<Option<Run>>,
    /// Since when each processor has been idle.
    idle_since: Vec<Instant>,
    threads: Vec<Thread>,
    ready: BTreeSet<(u64, ThreadId)>,
    spare: Vec<ThreadId>,
    /// Processor time of threads that have ended, by their owner: a server that restarts has used it all the same.
    ended: BTreeMap<Owner, Duration>,
    competitors: Vec<(Competitor, ThreadId)>,
    /// The smallest run time of the runnable threads, as far as known.
    floor: u64,
    runs: u64,
    used: Duration,
    /// For a trace.
    pub(crate) log: Option<RanLog>,
}

impl Machine {
    pub(crate) fn new(id: MachineId, costs: Arc<Costs>, entropy: SeededEntropy) -> Self {
        let cores = vec![None; costs.cores.max(1) as usize];
        // No thread has run on them.
        let idle_since = vec![Instant::ZERO; cores.len()];
        Self {
            id,
            costs,
            entropy,
            cores,
            idle_since,
            threads: Vec::new(),
            ready: BTreeSet::new(),
            spare: Vec::new(),
            ended: BTreeMap::new(),
            competitors: Vec::new(),
            floor: 0,
            runs: 0,
            used: Duration::ZERO,
            log: None,
        }
    }

    /// Number of processors.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Total processor time used by all threads.
    #[must_use]
    pub fn used(&self) -> Duration {
        self.used
    }

    pub(crate) fn used_by(&self, owns: impl Fn(Owner) -> bool) -> Duration {
        let present = self.threads.iter().map(|thread| (thread.owner, thread.used));
        let ended = self.ended.iter().map(|(owner, used)| (*owner, *used));
        present.chain(ended).filter(|(owner, _)| owns(*owner)).map(|(_, used)| used).sum()
    }

    /// Draws from a distribution of durations in nanoseconds.
    pub(crate) fn draw(&mut self, cost: &Cost) -> Duration {
        let nanos = match cost {
            Cost::Fixed(nanos) => *nanos,
            Cost::Quantiles(_) => cost.quantile(fraction(&mut self.entropy)),
        };
        nanoseconds(nanos)
    }

    /// Draws the duration of work with this mean.
    pub(crate) fn noisy(&mut self, nanos: f64) -> Duration {
        let costs = Arc::clone(&self.costs);
        let factor = match &costs.noise {
            Cost::Fixed(factor) => *factor,
            spread => spread.quantile(fraction(&mut self.entropy)),
        };
        nanoseconds(nanos * factor)
    }

    pub(crate) fn spawn(&mut self, owner: Owner) -> ThreadId {
        let thread = Thread {
            owner,
            state: State::Asleep,
            remaining: Duration::ZERO,
            runtime: self.floor,
            used: Duration::ZERO,
        };
        if let Some(id) = self.spare.pop()
            && let Some(place) = self.threads.get_mut(id.0 as usize)
        {
            *place = thread;
            return id;
        }
        let id = ThreadId(u32::try_from(self.threads.len()).unwrap_or(u32::MAX));
        self.threads.push(thread);
        id
    }

    /// Adds a competing program.
    pub(crate) fn compete(&mut self, competitor: Competitor, queue: &mut EventQueue<Event>) {
        let number = u32::try_from(self.competitors.len()).unwrap_or(u32::MAX);
        let thread = self.spawn(Owner::Competitor(number));
        self.competitors.push((competitor, thread));
        self.compete_again(number, queue);
    }

    /// A competitor wakes up.
    pub(crate) fn wake_competitor(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let Some((competitor, thread)) = self.competitors.get(number as usize).copied() else { return };
        let burst = self.varied(competitor.burst);
        self.start(thread, burst, Cold::default(), queue);
    }

    /// A competitor has worked: it sleeps, or continues at once if it never sleeps.
    pub(crate) fn compete_again(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let Some((competitor, thread)) = self.competitors.get(number as usize).copied() else { return };
        let is_held = self.thread(thread).is_some_and(|thread| matches!(thread.state, State::Held(_)));
        if competitor.share >= 1.0 && is_held {
            let burst = self.varied(competitor.burst);
            return self.resume(thread, burst, queue);
        }
        if is_held {
            self.sleep(thread, queue);
        }
        if competitor.share > 0.0 {
            let share = competitor.share.min(1.0);
            let pause = competitor.burst.mul_f64((1.0 - share) / share);
            let pause = self.varied(pause);
            queue.schedule_in(pause, Event::Competitor { machine: self.id, number });
        }
    }

    /// Uniform between half and one and a half of a span.
    fn varied(&mut self, span: Duration) -> Duration {
        span.mul_f64(0.5 + fraction(&mut self.entropy))
    }

    /// Ends a thread in any state.
    pub(crate) fn kill(&mut self, id: ThreadId, queue: &mut EventQueue<Event>) {
        let Some(thread) = self.threads.get_mut(id.0 as usize) else { return };
        self.ready.remove(&(thread.runtime, id));
        let state = core::mem::replace(&mut thread.state, State::Asleep);
        if let State::Running(core) | State::Held(core) = state {
            self.account(core, queue.now());
            self.dispatch(core, queue);
        }
        if let Some(thread) = self.threads.get_mut(id.0 as usize) {
            *self.ended.entry(thread.owner).or_default() += core::mem::take(&mut thread.used);
        }
        self.spare.push(id);
    }

    /// Wakes a sleeping thread, which then works for `cost`, plus additional time for an idle processor.
    pub(crate) fn start(&mut self, id: ThreadId, cost: Duration, cold: Cold, queue: &mut EventQueue<Event>) {
        let slice = u64::try_from(self.costs.slice.as_nanos()).unwrap_or(u64::MAX);
        let lag = self.floor.saturating_sub(slice / 2);
        let Some(thread) = self.thread_mut(id) else { return };
        if thread.state != State::Asleep {
            thread.remaining += cost;
            return;
        }
        thread.remaining = cost;
        // A thread that has slept does not catch up completely.
        thread.runtime = thread.runtime.max(lag);
        let runtime = thread.runtime;
        if let Some(core) = self.cores.iter().position(Option::is_none) {
            let costs = Arc::clone(&self.costs);
            let idle = self.idle_since.get(core).map_or(Duration::ZERO, |since| queue.now().since(*since));
            let coldness = (idle.as_secs_f64() / costs.asleep.as_secs_f64()).min(1.0);
            // Caches are lost gradually: beyond `asleep`, with the logarithm of the time.
            let (asleep, deep) = (costs.asleep.as_secs_f64(), costs.deep.as_secs_f64());
            let share = ((idle.as_secs_f64() / asleep).ln() / (deep / asleep).ln()).clamp(0.0, 1.0);
            let latency = self.draw(&costs.wake);
            let latency = match &costs.wake_asleep {
                Some(asleep) => latency.mul_f64(1.0 - coldness) + self.draw(asleep).mul_f64(coldness),
                None => latency,
            };
            if let Some(thread) = self.thread_mut(id) {
                thread.remaining += cold.asleep.mul_f64(coldness);
                thread.remaining += cold.deep.saturating_sub(cold.asleep).mul_f64(share);
            }
            let core = u32::try_from(core).unwrap_or(u32::MAX);
            return self.run(core, id, queue.now() + latency, queue);
        }
        let now = queue.now();
        let victim = (0..).zip(&self.cores).filter_map(|(core, run)| {
            let run = (*run)?;
            let running = self.thread(run.thread)?;
            let ran = u64::try_from(now.since(run.since).as_nanos()).unwrap_or(u64::MAX);
            matches!(running.state, State::Running(_))
                .then(|| (running.runtime.saturating_add(ran), core, run.thread))
        });
        match victim.max_by_key(|(ran, ..)| *ran) {
            Some((ran, core, thread)) if ran > runtime.saturating_add(slice / 4) => {
                self.account(core, now);
                self.make_ready(thread);
                self.run(core, id, now, queue);
            }
            _ => self.make_ready(id),
        }
    }

    /// Continues a thread whose owner has more work.
    pub(crate) fn resume(&mut self, id: ThreadId, cost: Duration, queue: &mut EventQueue<Event>) {
        let slice = u64::try_from(self.costs.slice.as_nanos()).unwrap_or(u64::MAX);
        let first = self.ready.first().map(|(runtime, _)| *runtime);
        let Some(thread) = self.thread_mut(id) else { return };
        let State::Held(core) = thread.state else { return };
        thread.remaining = cost;
        if first.is_some_and(|first| thread.runtime > first.saturating_add(slice)) {
            self.make_ready(id);
            return self.dispatch(core, queue);
        }
        self.run(core, id, queue.now(), queue);
    }

    /// A thread whose owner has no work goes to sleep.
    pub(crate) fn sleep(&mut self, id: ThreadId, queue: &mut EventQueue<Event>) {
        let Some(thread) = self.thread_mut(id) else { return };
        if let State::Held(core) = thread.state {
            thread.state = State::Asleep;
            self.dispatch(core, queue);
        }
    }

    /// Handles an event of a processor. Returns the owner whose thread has completed its work; [`Self::resume`] or
    /// [`Self::sleep`] must follow.
    pub(crate) fn event(
        &mut self,
        core: u32,
        number: u64,
        queue: &mut EventQueue<Event>,
    ) -> Option<(Owner, ThreadId)> {
        let run = (*self.cores.get(core as usize)?)?;
        if run.number != number {
            return None;
        }
        self.account(core, queue.now());
        let first = self.ready.first().map(|(runtime, _)| *runtime);
        let thread = self.thread_mut(run.thread)?;
        if thread.remaining.is_zero() {
            thread.state = State::Held(core);
            return Some((thread.owner, run.thread));
        }
        // Its time slice has ended.
        if first.is_some_and(|first| first < thread.runtime) {
            self.make_ready(run.thread);
            self.dispatch(core, queue);
        } else {
            self.run(core, run.thread, queue.now(), queue);
        }
        None
    }

    /// Accounts for the work of the thread on a processor until now.
    fn account(&mut self, core: u32, now: Instant) {
        let Some(Some(run)) = self.cores.get_mut(core as usize) else { return };
        let (since, ran) = (run.since, now.since(run.since));
        run.since = run.since.max(now);
        let thread = run.thread;
        if let Some(thread) = self.threads.get_mut(thread.0 as usize) {
            let ran = ran.min(thread.remaining);
            if let Some(log) = self.log.as_ref().filter(|_| !ran.is_zero()) {
                let owner = thread.owner;
                log.borrow_mut().push(Ran { machine: self.id, core, owner, since, until: since + ran });
            }
            self.used += ran;
            thread.remaining -= ran;
            thread.used += ran;
            thread.runtime = thread.runtime.saturating_add(u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    fn run(&mut self, core: u32, id: ThreadId, since: Instant, queue: &mut EventQueue<Event>) {
        self.runs += 1;
        let (number, slice, floor) = (self.runs, self.costs.slice, self.floor);
        let Some(thread) = self.thread_mut(id) else { return };
        thread.state = State::Running(core);
        let until = since + thread.remaining.min(slice);
        let least = thread.runtime;
        self.floor = floor.max(self.ready.first().map_or(least, |(first, _)| least.min(*first)));
        if let Some(place) = self.cores.get_mut(core as usize) {
            *place = Some(Run { thread: id, since, number });
        }
        queue.schedule(until, Event::Core { machine: self.id, core, number });
    }

    fn dispatch(&mut self, core: u32, queue: &mut EventQueue<Event>) {
        if let Some(place) = self.cores.get_mut(core as usize) {
            *place = None;
        }
        if let Some(since) = self.idle_since.get_mut(core as usize) {
            *since = queue.now();
        }
        if let Some((_, next)) = self.ready.pop_first() {
            self.run(core, next, queue.now(), queue);
        }
    }

    fn make_ready(&mut self, id: ThreadId) {
        if let Some(thread) = self.thread_mut(id) {
            thread.state = State::Ready;
            let runtime = thread.runtime;
            self.ready.insert((runtime, id));
        }
    }

    fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(id.0 as usize)
    }

    fn thread_mut(&mut self, id: ThreadId) -> Option<&mut Thread> {
        self.threads.get_mut(id.0 as usize)
    }
}

/// Uniform from 0 to 1.
fn fraction(entropy: &mut SeededEntropy) -> f64 {
    const STEPS: u64 = 1 << 32;
    entropy.below(STEPS) as f64 / STEPS as f64
}

pub(crate) fn nanoseconds(nanos: f64) -> Duration {
    Duration::from_nanos(nanos.max(0.0).round() as u64)
}

#[cfg(test)]
mod tests;
