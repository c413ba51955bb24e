//! A server of a scenario and its sensors.

use super::Signals;
use super::durable::Memory;
use super::events::Emitter;
use super::history::Archive;
use crate::ids::ServerId;
use crate::signals::value;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_server::space::VariableHandle;
use taktwerk_types::Instant;

/// Number of the first variable: its id is ns=1;i=100000, as in servers for measurements, so that requests have the
/// same length.
pub(super) const FIRST: u32 = 99_000;

/// Variables that change together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) signals: Signals,
    /// Value number `n` is written `n` periods after this time.
    pub(super) start: Instant,
    /// Values are written up to this much later.
    pub(super) spread: Duration,
    /// The number of the last value that was due.
    pub(super) count: i64,
    pub(super) variables: Vec<VariableHandle>,
    /// Number of values written in the window, for each variable.
    pub(super) written: u64,
}

/// What outlives the processes of a server.
#[derive(Debug, Clone, Default)]
pub(super) struct Stores {
    /// The durable subscriptions; `None` if no client has one.
    pub(super) durable: Option<Arc<Memory>>,
    /// The history; `None` if the server has none.
    pub(super) history: Option<Arc<Archive>>,
}

/// One server.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) id: ServerId,
    pub(super) is_up: bool,
    pub(super) groups: Vec<Group>,
    pub(super) emitter: Emitter,
    pub(super) stores: Stores,
    /// Writes are counted from the first of these times on, and before the second.
    pub(super) window: (Instant, Instant),
    /// Sensors deliver no new values after this time.
    pub(super) until: Instant,
}

impl Site {
    /// The number of the last event; `None` if it raises none.
    pub(super) fn last_event(&self) -> Option<i64> {
        self.emitter.raises().then_some(self.emitter.count)
    }
}

impl Group {
    /// The next value is due. If the server is down, its sensors are not read.
    pub(super) fn tick(&mut self, is_up: bool, is_counted: bool, now: taktwerk_types::UtcTime) {
        self.count += 1;
        if is_up {
            let (len, count) = (self.signals.value_len, self.count);
            self.variables.iter().for_each(|variable| variable.set_at(value(len, count), now));
            self.written += u64::from(is_counted);
        }
    }
}
