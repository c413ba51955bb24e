//! Worker threads of a server for slow jobs.

use super::machine::{Machine, Owner, ThreadId};
use crate::event::Event;
use crate::queue::EventQueue;
use core::time::Duration;
use std::collections::VecDeque;
use taktwerk_server::{Job, JobKind, Token};

/// A job with its cost.
#[derive(Debug)]
pub(crate) struct Priced {
    pub(crate) shard: usize,
    pub(crate) token: Token,
    pub(crate) kind: JobKind,
    pub(crate) job: Job,
    pub(crate) cost: Duration,
}

/// Kinds of work with separate threads, as in `taktwerk-net`: handshakes and signatures; passwords and other
/// credentials; functions of the application; history.
pub(crate) const POOLS: usize = 4;

/// Names of the pools.
pub(crate) const POOL_NAMES: [&str; POOLS] = ["handshakes", "credentials", "application", "history"];

/// Maximum number of threads per pool, the defaults of `taktwerk-net`.
const THREADS_MAX: [usize; POOLS] = [4, 4, 8, 2];

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
}

impl Pools {
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
        let cost = priced.cost + machine.noisy(wake);
        if let Some(worker) = workers.iter_mut().find(|worker| worker.job.is_none()) {
            worker.job = Some(priced);
            machine.start(worker.thread, cost, cold, queue);
        } else if workers.len() < max {
            let slot = u32::try_from(workers.len()).unwrap_or(u32::MAX);
            let thread = machine.spawn(Owner::Worker { server, pool, slot, incarnation });
            workers.push(Worker { thread, job: Some(priced) });
            machine.start(thread, cost, cold, queue);
        } else {
            waiting.push_back(priced);
        }
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
                let cost = next.cost;
                worker.job = Some(next);
                machine.resume(worker.thread, cost, queue);
            }
            None => machine.sleep(worker.thread, queue),
        }
        done
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
