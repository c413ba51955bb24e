//! Worker threads of a server for slow jobs.

use super::machine::{Machine, Owner, ThreadId};
use crate::effect::run;
use crate::event::Event;
use crate::queue::EventQueue;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_server::recorder::Recorded;
use taktwerk_server::{Job, JobKind, JobResult, Token};

/// Work of a worker thread.
#[derive(Debug)]
pub(crate) enum Task {
    /// A slow job of a shard.
    Job(JobKind, Job),
    /// A job that was run when its thread began with it, because its cost depends on the result.
    Done(JobResult),
    /// Values for the history.
    Record(Vec<Recorded>),
}

/// Work with its cost, and the shard and token of a job.
#[derive(Debug)]
pub(crate) struct Priced {
    pub(crate) of: Option<(usize, Token)>,
    pub(crate) task: Task,
    pub(crate) cost: Duration,
    /// The thread waits for the verdict of certificate authorities before it begins.
    pub(crate) needs_check: bool,
}

/// Number of values of history that one cost in a host profile is for.
const VALUES: u64 = 1_000;

/// The cost of this many values. A request for few values costs as much as one for [`VALUES`]: no cost of its own was
/// measured for it.
pub(crate) fn of_values(cost: Duration, values: u64) -> Duration {
    cost.mul_f64(values.max(VALUES) as f64 / VALUES as f64)
}

impl Priced {
    /// Called when a thread begins with it.
    fn begin(self, values_read: &AtomicU64) -> Self {
        let Self { of, task: Task::Job(JobKind::ReadHistory, job), cost, needs_check } = self else {
            return self;
        };
        values_read.store(0, Ordering::Relaxed);
        match run(job) {
            Ok(result) => {
                let cost = of_values(cost, values_read.load(Ordering::Relaxed));
                Self { of, task: Task::Done(result), cost, needs_check }
            }
            Err(job) => Self { of, task: Task::Job(JobKind::ReadHistory, job), cost, needs_check },
        }
    }
}

/// Kinds of work with separate threads, as in `taktwerk-net`: handshakes and signatures; passwords and other
/// credentials; functions of the application; history. The last one is the thread that records history.
pub(crate) const POOLS: usize = 5;

/// The pool of the thread that records history.
pub(crate) const RECORDER: u8 = 4;

/// Names of the pools.
pub(crate) const POOL_NAMES: [&str; POOLS] =
    ["handshakes", "credentials", "application", "history", "recorder"];

/// Maximum number of threads per pool, the defaults of `taktwerk-net`.
const THREADS_MAX: [usize; POOLS] = [4, 4, 8, 2, 1];

/// The pool for a kind of job.
pub(crate) fn pool_of(kind: JobKind) -> u8 {
    match kind {
        JobKind::CheckCredential => 1,
        JobKind::ReadValue | JobKind::SampleValue | JobKind::CallMethod | JobKind::WriteValue => 2,
        JobKind::ReadHistory
        | JobKind::ReadRemoteHistory
        | JobKind::UpdateHistory
        | JobKind::WriteSubscriptions => 3,
        _ => 0,
    }
}

#[derive(Debug)]
struct Worker {
    thread: ThreadId,
    job: Option<Priced>,
}

/// The threads of all pools of a server.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    workers: [Vec<Worker>; POOLS],
    waiting: [VecDeque<Priced>; POOLS],
    /// Threads whose job needs a check that has not been requested.
    unchecked: VecDeque<(u8, u32)>,
    /// Counts the values that jobs read from the history.
    pub(crate) values_read: Arc<AtomicU64>,
}

impl Pools {
    pub(crate) fn new(values_read: Arc<AtomicU64>) -> Self {
        Self { values_read, ..Self::default() }
    }

    /// Gives a job to an idle thread, or queues it.
    pub(crate) fn submit(
        &mut self,
        (server, incarnation): (u32, u32),
        pool: u8,
        priced: Priced,
        machine: &mut Machine,
        queue: &mut EventQueue<Event>,
    ) {
        let at = usize::from(pool);
        let (Some(workers), Some(waiting)) = (self.workers.get_mut(at), self.waiting.get_mut(at)) else {
            return;
        };
        let max = THREADS_MAX.get(at).copied().unwrap_or(1);
        let wake = machine.costs.server.wake;
        let cold = machine.costs.server.cold();
        let wake = machine.noisy(wake);
        let slot = match workers.iter().position(|worker| worker.job.is_none()) {
            Some(idle) => idle,
            None if workers.len() < max => {
                let slot = u32::try_from(workers.len()).unwrap_or(u32::MAX);
                let thread = machine.spawn(Owner::Worker { server, pool, slot, incarnation });
                workers.push(Worker { thread, job: None });
                workers.len() - 1
            }
            None => return waiting.push_back(priced),
        };
        let Some(worker) = workers.get_mut(slot) else { return };
        let priced = priced.begin(&self.values_read);
        if priced.needs_check {
            self.unchecked.push_back((pool, u32::try_from(slot).unwrap_or(u32::MAX)));
        } else {
            machine.start(worker.thread, priced.cost + wake, cold, queue);
        }
        worker.job = Some(priced);
    }

    /// The next thread whose job needs a check: its pool and slot.
    pub(crate) fn poll_unchecked(&mut self) -> Option<(u8, u32)> {
        self.unchecked.pop_front()
    }

    /// The check for a thread's job has ended: the thread begins with the job, or only reports the error.
    pub(crate) fn checked(
        &mut self,
        (pool, slot): (u8, u32),
        refused: Option<JobResult>,
        machine: &mut Machine,
        queue: &mut EventQueue<Event>,
    ) {
        let worker = self.workers.get_mut(usize::from(pool)).and_then(|all| all.get_mut(slot as usize));
        let Some(worker) = worker else { return };
        let Some(job) = &mut worker.job else { return };
        if let Some(result) = refused {
            (job.task, job.cost) = (Task::Done(result), Duration::ZERO);
        }
        job.needs_check = false;
        let (wake, cold) = (machine.costs.server.wake, machine.costs.server.cold());
        let cost = job.cost + machine.noisy(wake);
        machine.start(worker.thread, cost, cold, queue);
    }

    /// A thread has completed its job: returns it, and starts the next one.
    pub(crate) fn done(
        &mut self,
        pool: u8,
        slot: u32,
        machine: &mut Machine,
        queue: &mut EventQueue<Event>,
    ) -> Option<Priced> {
        let at = usize::from(pool);
        let worker = self.workers.get_mut(at)?.get_mut(slot as usize)?;
        let done = worker.job.take();
        match self.waiting.get_mut(at).and_then(VecDeque::pop_front) {
            Some(next) => {
                let next = next.begin(&self.values_read);
                if next.needs_check {
                    self.unchecked.push_back((pool, slot));
                    machine.sleep(worker.thread, queue);
                } else {
                    machine.resume(worker.thread, next.cost, queue);
                }
                worker.job = Some(next);
            }
            None => machine.sleep(worker.thread, queue),
        }
        done
    }

    /// Whether a pool has no work.
    pub(crate) fn is_idle(&self, pool: u8) -> bool {
        let workers = self.workers.get(usize::from(pool)).into_iter().flatten();
        workers.clone().all(|worker| worker.job.is_none())
    }

    /// Called when the process ends.
    pub(crate) fn kill(&mut self, machine: &mut Machine, queue: &mut EventQueue<Event>) {
        for worker in self.workers.iter_mut().flat_map(|workers| workers.drain(..)) {
            machine.kill(worker.thread, queue);
        }
    }

    /// Number of queued and running jobs.
    pub(crate) fn len(&self) -> usize {
        let busy = self.workers.iter().flatten().filter(|worker| worker.job.is_some()).count();
        busy + self.waiting.iter().map(VecDeque::len).sum::<usize>()
    }
}
