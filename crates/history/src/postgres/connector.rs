//! Opens connections, and does not wait for ever: a database whose process hangs accepts a connection and never answers.

use core::fmt;
use core::time::Duration;
use postgres::Client;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use taktwerk_server::history::StoreError;

/// Time limit for one attempt.
const ATTEMPT_MAX: Duration = Duration::from_secs(8);
/// Most attempts that wait at once. Each one has a thread until the database answers or closes the connection.
const ATTEMPTS_MAX: usize = 8;

type Connect = Arc<dyn Fn() -> Result<Client, StoreError> + Send + Sync>;

/// Opens connections.
pub(super) struct Connector {
    connect: Connect,
    /// Every attempt has a share.
    attempts: Arc<()>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    pub(super) fn new(connect: impl Fn() -> Result<Client, StoreError> + Send + Sync + 'static) -> Self {
        Self { connect: Arc::new(connect), attempts: Arc::default() }
    }

    pub(super) fn connect(&self) -> Result<Client, StoreError> {
        if Arc::strong_count(&self.attempts) > ATTEMPTS_MAX {
            return Err(unanswered());
        }
        let (answer, answered) = channel();
        let (connect, attempt) = (Arc::clone(&self.connect), Arc::clone(&self.attempts));
        let run = move || {
            let result = connect();
            drop(attempt);
            // If nobody waits any more, the connection is closed.
            drop(answer.send(result));
        };
        let started = thread::Builder::new().name("taktwerk-connect".to_owned()).spawn(run);
        started.map_err(|error| StoreError::unavailable(format!("cannot start a thread: {error}")))?;
        // The thread can also have ended by a panic.
        answered.recv_timeout(ATTEMPT_MAX).unwrap_or_else(|_| Err(unanswered()))
    }
}

fn unanswered() -> StoreError {
    let seconds = ATTEMPT_MAX.as_secs();
    StoreError::unavailable(format!(
        "PostgreSQL does not answer within {seconds} s. It may accept connections while its processes are stopped or overloaded"
    ))
}
