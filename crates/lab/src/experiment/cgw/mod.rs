//! The C-GW paper: round-trip delay over access networks, causes of late answers, and the CPU profile of the gateway.

mod gateway;
mod outliers;
mod profile;
mod round_trip;

use super::Experiment;
use crate::scenario::Condition;
use taktwerk_load::adapters::Adapters;

pub(super) static ALL: [&dyn Experiment; 3] =
    [&round_trip::RoundTrip, &outliers::Outliers, &profile::Profile];

/// The adapters of the paper's gateway: 30 Doubles, set every 10 ms by two processes (Figure 1).
const ADAPTERS: Adapters = Adapters { count: 2, tags: 15, period_ms: 10.0 };

/// Lets adapters set the values of our own server. Other stacks have none, so a thread of theirs does it.
fn with_adapters(mut condition: Condition) -> Condition {
    if condition.stack == "own" {
        let server = &mut condition.server;
        (server.adapters, server.signals, server.update_ms) = (Some(ADAPTERS), 0, 0.0);
    }
    condition
}
