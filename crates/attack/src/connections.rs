//! Many sockets at once.

use crate::Run;
use crate::report::Tally;
use crate::wire::{Raw, dial};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// One connection.
pub(crate) struct Member {
    pub(crate) raw: Raw,
    /// When it was connected.
    pub(crate) since: Instant,
    /// When the server closed it.
    pub(crate) ended: Option<Instant>,
}

/// Connections that are polled in turn.
#[derive(Default)]
pub(crate) struct Connections {
    pub(crate) members: Vec<Member>,
    /// Connects that failed.
    pub(crate) failed: u64,
}

impl Connections {
    /// Connects `count` sockets, `per_address` from each address, and calls `greet` on each.
    pub(crate) fn gather(
        run: &Run<'_>,
        count: usize,
        per_address: usize,
        mut greet: impl FnMut(&mut Raw),
    ) -> Self {
        let mut connections = Self::default();
        for number in 0..count {
            if run.is_over() {
                break;
            }
            match dial(run.address, run.source(number, per_address), None).and_then(Raw::new) {
                Ok(mut raw) => {
                    greet(&mut raw);
                    connections.members.push(Member { raw, since: Instant::now(), ended: None });
                }
                Err(_) => connections.failed += 1,
            }
            // Pauses, because the kernel's accept queue is not under test.
            if number % 256 == 255 {
                thread::sleep(Duration::from_millis(5));
                connections.listen();
            }
        }
        connections
    }

    /// Polls all connections once.
    pub(crate) fn listen(&mut self) {
        for member in self.members.iter_mut().filter(|member| member.ended.is_none()) {
            member.raw.listen();
            if member.raw.is_closed {
                member.ended = Some(Instant::now());
            }
        }
    }

    pub(crate) fn open(&self) -> usize {
        self.members.iter().filter(|member| member.ended.is_none()).count()
    }

    /// Waits until the server has closed all connections, at most `patience`, and calls `each` in every round.
    pub(crate) fn wait(&mut self, run: &Run<'_>, patience: Duration, mut each: impl FnMut(&mut Self)) {
        let end = Instant::now() + patience;
        while self.open() > 0 && Instant::now() < end && !run.is_over() {
            each(self);
            self.listen();
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The longest time that a connection was open.
    pub(crate) fn longest(&self) -> Duration {
        let now = Instant::now();
        let lived = self.members.iter().map(|member| member.ended.unwrap_or(now) - member.since);
        lived.max().unwrap_or_default()
    }

    /// How the server closed the connections.
    pub(crate) fn outcomes(&self) -> Tally {
        let mut tally = Tally::default();
        for member in &self.members {
            match member.ended {
                Some(_) => tally.status(member.raw.error()),
                None => tally.add("still open"),
            }
        }
        tally
    }
}

/// Connects, and returns the start time.
pub(crate) fn timed_dial(run: &Run<'_>, number: usize, per_address: usize) -> io::Result<(Raw, Instant)> {
    let began = Instant::now();
    let raw = Raw::new(dial(run.address, run.source(number, per_address), None)?)?;
    Ok((raw, began))
}
