//! Redundant servers: detects within an interval that the current one fails, and gets all values of the next one at once.
//!
//! `session` switches between them.

use super::session::Links;
use super::updates::reading;
use crate::fault::Fault;
use crate::feed::Reading;
use core::time::Duration;
use taktwerk::Client;
use taktwerk::client::Attribute;
use taktwerk_types::NodeId;
use tokio::time::timeout;

/// Timeout for a server that hangs, as a fraction of the interval.
const PATIENCE: f64 = 0.75;
/// Shortest session after which a failure is the first one again. Two servers that fail in turn do not keep the gateway busy.
const STEADY_MIN: Duration = Duration::from_secs(1);
/// Most values read per request.
const READS_MAX: usize = 1000;

/// How long a server must have served until the next switch has no pause, even if all others have failed before.
pub(super) fn steady(interval: Duration, retry: Duration) -> Duration {
    interval.max(STEADY_MIN).min(retry)
}

/// Polls the status of a redundant server until it fails. Never ends for a single server.
pub(super) async fn probe(is_redundant: bool, client: &Client, interval: Duration, target: &str) -> Fault {
    if !is_redundant {
        return core::future::pending().await;
    }
    let mut ticks = tokio::time::interval(interval / 2);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(fault) = ask(client, interval, target).await {
            return fault;
        }
    }
}

/// Checks that a server runs and has data (ServerStatus.State, ServiceLevel; Part 4 §6.6.2).
async fn ask(client: &Client, interval: Duration, target: &str) -> Result<(), Fault> {
    let wanted = [2259, 2267].map(|node| (NodeId::numeric(0, node), Attribute::Value));
    let after = interval.mul_f64(PATIENCE);
    let values = match timeout(after, client.read_many(wanted)).await {
        Err(_) => return Err(Fault::NoAnswer { target: target.to_owned(), after }),
        Ok(values) => values.map_err(|error| Fault::other(target, error))?,
    };
    let number = |at: usize| values.get(at)?.value.as_ref()?.as_f64();
    match (number(0), number(1)) {
        (Some(state), _) if state != 0.0 => {
            Err(Fault::other(target, format!("the server does not run (state {state})")))
        }
        // 0: maintenance; 1: no data.
        (_, Some(level)) if level < 2.0 => {
            Err(Fault::other(target, format!("the server has no data (service level {level})")))
        }
        _ => Ok(()),
    }
}

/// The current values of all variables. The first message of a subscription arrives only after an interval (Part 4 §5.14.1.2),
/// which together with the detection of a server that hangs would take longer than two.
pub(super) async fn current(
    client: &Client,
    links: &Links,
    target: &str,
) -> Result<Vec<(usize, Reading)>, Fault> {
    let wanted = links.in_order();
    let mut readings = Vec::with_capacity(wanted.len());
    for part in wanted.chunks(READS_MAX) {
        let nodes = part.iter().map(|(_, node)| (node.clone(), Attribute::Value));
        let values = client.read_many(nodes).await.map_err(|error| Fault::other(target, error))?;
        let here = part.iter().zip(values).map(|((at, _), value)| (*at, reading(value, &links.translation)));
        readings.extend(here);
    }
    Ok(readings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_served_for_an_interval_is_steady() {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        assert_eq!(steady(ms(50), s(10)), s(1));
        assert_eq!(steady(s(2), s(600)), s(2));
        assert_eq!(steady(s(2), ms(500)), ms(500));
    }
}
