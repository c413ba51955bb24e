//! The baseline loop for a publisher: wake up, send prepared datagrams, sleep.

use super::plant::Plant;
use super::{Options, PubSub, failure};
use crate::context::Context;
use crate::error::GeneratorError;
use std::time::Duration;
use taktwerk::pubsub::{PubSubError, UdpOptions};
use taktwerk_load::latency::Times;
use taktwerk_net::clock::{monotonic, thread_cpu};
use taktwerk_net::pubsub::interface::Interface;
use taktwerk_net::pubsub::{Address, UdpReceiver, UdpSender, sleep_until};
use taktwerk_types::Instant;

/// Results.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) lateness: Times,
    pub(super) cycles: u64,
    pub(super) missed: u64,
    pub(super) cpu_nanos: u64,
    pub(super) nanos: u64,
}

/// Measures one round.
pub(super) fn run(
    arguments: &PubSub,
    plant: &Plant,
    round: Duration,
    context: &Context<'_>,
    outcome: &mut Outcome,
) -> Result<(), GeneratorError> {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| on_thread(arguments, plant, round, context));
        running
            .join()
            .unwrap_or_else(|_| Err(GeneratorError::Environment("the bare loop has failed".to_owned())))
    })
    .map(|one| {
        for (nanos, count) in one.lateness.values() {
            (0..count).for_each(|_| outcome.lateness.record(nanos));
        }
        outcome.cycles += one.cycles;
        outcome.missed += one.missed;
        outcome.cpu_nanos += one.cpu_nanos;
        outcome.nanos += one.nanos;
    })
}

fn on_thread(
    arguments: &PubSub,
    plant: &Plant,
    round: Duration,
    context: &Context<'_>,
) -> Result<Outcome, GeneratorError> {
    arguments.real_time().apply().map_err(failure)?;
    let interface = Interface::find(&arguments.interface).map_err(failure)?;
    let Address::Udp(to) = Address::parse(&arguments.url).map_err(failure)? else {
        return Err(failure(PubSubError::Address {
            url: arguments.url.clone(),
            reason: "the bare loop sends opc.udp:// only; add --no-bare".to_owned(),
        }));
    };
    // A listener, as with the publisher, because delivery is part of sending.
    let _listener = match arguments.no_subscriber {
        true => None,
        false => Some(UdpReceiver::new(to, &interface).map_err(failure)?),
    };
    let sender = UdpSender::new(to, &interface, &UdpOptions::default()).map_err(failure)?;
    let datagrams: Vec<&[u8]> = plant.datagrams.iter().map(Vec::as_slice).collect();
    let mut outcome = Outcome::default();
    let interval = arguments.interval_nanos();
    let start = monotonic().as_nanos() + 1_000_000;
    let (cpu, end) = (thread_cpu(), start + u64::try_from(round.as_nanos()).unwrap_or(u64::MAX));
    let mut cycle = 0;
    while !context.is_ended() {
        let due = Instant::from_nanos(start + cycle * interval);
        if due.as_nanos() >= end {
            break;
        }
        sleep_until(due);
        let now = monotonic();
        sender.send(&datagrams, None);
        outcome.lateness.record(now.since(due).as_nanos().try_into().unwrap_or(u64::MAX));
        outcome.cycles += 1;
        let since = monotonic().as_nanos().saturating_sub(start);
        // Like the publisher: only the latest cycle that has begun is sent; earlier ones are lost.
        let next = (cycle + 1).max(since / interval);
        outcome.missed += next - cycle - 1;
        cycle = next;
    }
    outcome.cpu_nanos = (thread_cpu() - cpu).as_nanos().try_into().unwrap_or(u64::MAX);
    outcome.nanos = monotonic().as_nanos().saturating_sub(start);
    Ok(outcome)
}
