//! Opens connections, and does not wait for ever: a database whose process hangs accepts a connection and never answers.

use core::fmt;
use core::time::Duration;
use postgres::config::Host;
use postgres::{Client, Config};
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;
use taktwerk_server::history::StoreError;

/// Time limit for an answer of a database that has accepted a connection.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// Most attempts that wait at once. Each one has a thread until the database answers or closes the connection.
const ATTEMPTS_MAX: usize = 8;

/// Connects. The argument is told how many addresses are tried, one after the other.
type Connect = Arc<dyn Fn(&dyn Fn(usize)) -> Result<Client, StoreError> + Send + Sync>;

/// What an attempt reports.
enum Step {
    Addresses(usize),
    Ended(Box<Result<Client, StoreError>>),
}

/// How many addresses a database has. Names are looked up, which can take a while.
pub(super) fn addresses(config: &Config) -> usize {
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().len();
    }
    let count = |host: &Host| match host {
        Host::Tcp(name) => (name.as_str(), 0).to_socket_addrs().map_or(1, Iterator::count),
        Host::Unix(_) => 1,
    };
    config.get_hosts().iter().map(count).sum()
}

/// Opens connections.
pub(super) struct Connector {
    connect: Connect,
    /// Time limit for connecting to one address.
    address_max: Duration,
    answer_max: Duration,
    /// Every attempt has a share.
    attempts: Arc<()>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    /// `address_max`: how long `connect` tries one address.
    pub(super) fn new(
        address_max: Duration,
        connect: impl Fn(&dyn Fn(usize)) -> Result<Client, StoreError> + Send + Sync + 'static,
    ) -> Self {
        let connect = Arc::new(connect);
        Self { connect, address_max, answer_max: ANSWER_MAX, attempts: Arc::default() }
    }

    /// Time limit for one attempt.
    fn attempt_max(&self, addresses: usize) -> Duration {
        let addresses = u32::try_from(addresses.max(1)).unwrap_or(u32::MAX);
        self.address_max.saturating_mul(addresses).saturating_add(self.answer_max)
    }

    pub(super) fn connect(&self) -> Result<Client, StoreError> {
        if Arc::strong_count(&self.attempts) > ATTEMPTS_MAX {
            return Err(unanswered(self.attempt_max(1)));
        }
        let (answer, answered) = channel();
        let (connect, attempt) = (Arc::clone(&self.connect), Arc::clone(&self.attempts));
        let run = move || {
            let result = connect(&|addresses| drop(answer.send(Step::Addresses(addresses))));
            drop(attempt);
            // If nobody waits any more, the connection is closed.
            drop(answer.send(Step::Ended(Box::new(result))));
        };
        let started = thread::Builder::new().name("taktwerk-connect".to_owned()).spawn(run);
        started.map_err(|error| StoreError::unavailable(format!("cannot start a thread: {error}")))?;
        let began = Instant::now();
        let mut limit = self.attempt_max(1);
        loop {
            match answered.recv_timeout(limit.saturating_sub(began.elapsed())) {
                Ok(Step::Ended(result)) => return *result,
                Ok(Step::Addresses(count)) => limit = self.attempt_max(count),
                // The thread can also have ended by a panic.
                Err(_) => return Err(unanswered(limit)),
            }
        }
    }
}

fn unanswered(limit: Duration) -> StoreError {
    let seconds = limit.as_secs();
    StoreError::unavailable(format!(
        "PostgreSQL does not answer within {seconds} s. It may accept connections while its processes are stopped or overloaded"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each address that does not answer takes its time, and the last one can be the right one.
    #[test]
    fn an_attempt_has_time_for_every_address() {
        let reached = |addresses: usize, spans: u32| {
            let span = Duration::from_millis(100);
            let connect = move |tries: &dyn Fn(usize)| {
                tries(addresses);
                thread::sleep(span * spans);
                Err(StoreError::mistake("reached".to_owned()))
            };
            let connector = Connector { answer_max: span * 2, ..Connector::new(span, connect) };
            connector.connect().err().is_some_and(|error| error.to_string().contains("reached"))
        };
        assert!(reached(1, 1) && reached(10, 8));
        assert!(!reached(1, 20) && !reached(4, 20), "it does not wait for ever");
    }

    #[test]
    fn all_addresses_are_counted() {
        let count = |url: &str| addresses(&url.parse().unwrap());
        assert_eq!(count("postgresql://127.0.0.1,127.0.0.2,127.0.0.3/history"), 3);
        assert_eq!(count("host=/run/postgresql,127.0.0.1 dbname=history"), 2);
    }
}
