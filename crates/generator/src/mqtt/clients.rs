//! Clients of a broker, connected and subscribed.

use super::broker::Broker;
use crate::common::environment;
use crate::context::Context;
use crate::error::GeneratorError;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};
use taktwerk_lab::mqtt::{Event, Fleet, Happened};
use taktwerk_load::clock;
use taktwerk_load::specification::Mqtt;

/// Interval for checking whether the user wants to stop.
pub(super) const LOOK: u64 = 100_000_000;
/// Timeout without progress for the broker to accept all subscriptions.
const PATIENCE: u64 = 10_000_000_000;

/// An error of the broker.
fn refused(broker: &Broker, reason: impl std::fmt::Display) -> GeneratorError {
    GeneratorError::Connect(format!("{}: {reason}", broker.name()))
}

/// Distinguishes the clients and topics of this process from others at the same broker. The process id is not
/// sufficient, because it is not unique across containers and machines.
pub(super) fn mark() -> u32 {
    static MARK: OnceLock<u32> = OnceLock::new();
    *MARK.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        mixed(now, std::process::id())
    })
}

/// Spreads differences in the lowest bits over all bits (Knuth: The Art of Computer Programming, 6.4, Fibonacci
/// hashing).
fn mixed(nanos: u64, pid: u32) -> u32 {
    ((nanos ^ (u64::from(pid) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// Connects all clients, and subscribes each to the topic returned by `filter`.
pub(super) fn connect(
    arguments: &Mqtt,
    broker: &Broker,
    context: &Context<'_>,
    filter: impl Fn(usize) -> String,
) -> Result<Fleet, GeneratorError> {
    let mut fleet = Fleet::new(arguments.busy_poll).map_err(environment)?;
    let clients = arguments.clients as usize;
    let mut progress = context.step("connecting", u64::from(arguments.clients));
    for number in 0..clients {
        // At most the 23 characters that every broker must accept (MQTT 3.1.1 §3.1.3.1).
        let name = format!("tw-{:08x}-{number}", mark());
        fleet.add(broker.address(), arguments.mqtt, &name).map_err(|error| refused(broker, error))?;
        // One after the other, because a broker with a short accept queue would refuse simultaneous connections.
        wait(&mut fleet, broker, context, |event| event == Event::Connected)?;
        fleet.subscribe(number, &filter(number), arguments.qos);
        wait(&mut fleet, broker, context, |event| event == Event::Subscribed)?;
        progress.at(number as u64);
    }
    Ok(fleet)
}

fn wait(
    fleet: &mut Fleet,
    broker: &Broker,
    context: &Context<'_>,
    wanted: impl Fn(Event<'_>) -> bool,
) -> Result<(), GeneratorError> {
    let end = clock::monotonic() + PATIENCE;
    let (mut came, mut failed) = (false, None);
    while !came && failed.is_none() {
        if context.is_ended() {
            return Err(GeneratorError::Interrupted);
        }
        let now = clock::monotonic();
        if now >= end {
            return Err(refused(broker, "no answer within 10 s"));
        }
        fleet
            .run_once(end.min(now + LOOK), |_, what| match what {
                Happened::Event(event) => came |= wanted(event),
                Happened::Lost => failed = Some("the broker closed the connection".to_owned()),
                Happened::Failed(error) => failed = Some(error.to_string()),
            })
            .map_err(environment)?;
    }
    match failed {
        Some(reason) => Err(refused(broker, reason)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{mark, mixed};

    #[test]
    fn marks_differ_between_processes() {
        assert_eq!(mark(), mark());
        // The same process id in two containers, and two processes that start within one clock tick.
        assert_ne!(mixed(1_700_000_000_000_000_000, 7), mixed(1_700_000_000_000_001_000, 7));
        assert_ne!(mixed(1_700_000_000_000_000_000, 7), mixed(1_700_000_000_000_000_000, 8));
    }
}
