//! Shared parts of `bench roundtrip` and `bench fan`: a value is written and returns through a subscription.

use crate::account::{Account, Window};
use crate::common::{Generator, environment};
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use crate::report::{Finished, Report};
use crate::values;
use std::time::Duration;
use taktwerk_client::SubscriptionParams;
use taktwerk_load::attribute::Attribute;
use taktwerk_load::clock;
use taktwerk_load::latency::Times;
use taktwerk_load::process::Process;
use taktwerk_load::result::{Returned, ReturnedRequested, Unit};
use taktwerk_load::specification::Common;
use taktwerk_load::validity::Invalid;
use taktwerk_model::figures;
use taktwerk_net::client::{Fleet, FleetSink};
use taktwerk_schema::{MonitoredItemCreateRequest, WriteRequest, WriteValue};
use taktwerk_types::{DataValue, Instant, NodeId, Variant};

/// Measured transactions.
pub(crate) struct Transactions {
    pub(crate) times: Times,
    account: Account,
}

impl Transactions {
    /// Runs transactions one after the other: for the warm-up, then `count` of them, or as many as fit into the
    /// duration. `one` returns the time of a transaction in nanoseconds, or `None` if it was interrupted. Polling
    /// without events does not count as work.
    pub(crate) fn measure(
        common: &Common,
        server: Option<Process>,
        count: Option<u64>,
        what: &'static str,
        context: &Context<'_>,
        fleet: &mut Fleet,
        mut one: impl FnMut(&mut Fleet) -> Result<Option<u64>, GeneratorError>,
    ) -> Result<Self, GeneratorError> {
        let warm = clock::monotonic() + nanos(common.warmup);
        while clock::monotonic() < warm && !context.is_ended() {
            one(fleet)?;
        }
        let polled = fleet.stats().in_vain;
        let window = Window::open(server, common.port())?;
        let start = window.start();
        let mut measuring = context.measuring(what, count, start, common.duration);
        let mut times = Times::new();
        while times.count() < measuring.count && clock::monotonic() < measuring.end && !context.is_ended() {
            if let Some(time) = one(fleet)? {
                times.record(time);
            }
            measuring.at(times.count());
        }
        let account = window.close()?.polling(fleet.stats().in_vain.saturating_sub(polled));
        Ok(Self { times, account })
    }

    /// Adds the times and finishes the report. `described` names the times; `unit` is the divisor of the server's cost.
    pub(crate) fn report(
        &self,
        mut report: Report,
        (described, unit): (&'static str, Unit),
        requested: ReturnedRequested,
        revised_publishing_ms: f64,
        context: &Context<'_>,
    ) -> Finished {
        report.part(&Returned { requested, revised_publishing_ms });
        report.returned(unit == Unit::Transaction, &self.times);
        report.times(described, &self.times);
        report
            .fact("publishing interval", format!("revised to {} ms", figures::number(revised_publishing_ms)));
        report.account(&self.account, unit, self.times.count());
        if self.times.count() == 0 {
            report.invalid([Invalid::NoSamples]);
        }
        report.finish(context, None)
    }
}

/// Pause before a transaction in nanoseconds: a varying part of the publishing interval. Without it, each transaction
/// would start right after the server has published and wait for a whole interval. Multiples of the golden section
/// cover all phases evenly after a few transactions.
fn rest_ns(turn: u64, interval_ms: f64) -> u64 {
    const GOLDEN_SECTION: f64 = 0.618_033_988_749_894_8;
    // At most a second, for any interval of the server.
    ((turn as f64 * GOLDEN_SECTION).fract() * interval_ms.clamp(0.0, 1_000.0) * 1e6) as u64
}

/// Pauses before the next transaction, so that all phases of the publishing interval occur.
pub(crate) fn rest(
    fleet: &mut Fleet,
    sink: &mut impl FleetSink,
    turn: u64,
    interval_ms: f64,
) -> Result<(), GeneratorError> {
    let mut now = clock::monotonic();
    let end = now + rest_ns(turn, interval_ms);
    while now < end {
        fleet.run_once(Instant::from_nanos(end), sink).map_err(environment)?;
        now = clock::monotonic();
    }
    Ok(())
}

/// A subscription that survives pauses of the machine.
pub(crate) fn subscription(interval: Duration) -> SubscriptionParams {
    let interval = interval.as_secs_f64() * 1e3;
    SubscriptionParams {
        publishing_interval_ms: interval,
        lifetime_count: (120_000.0 / interval.max(1.0)) as u32,
        keep_alive_count: (10_000.0 / interval.max(1.0)) as u32,
        ..SubscriptionParams::default()
    }
}

/// An item that reports every new value of a variable immediately.
pub(crate) fn item(node_id: NodeId, client_handle: u32) -> MonitoredItemCreateRequest {
    values::monitored(node_id, client_handle, Duration::ZERO, 1)
}

/// A request that writes one value.
pub(crate) fn write(node_id: NodeId, value: Variant) -> WriteRequest {
    WriteRequest {
        nodes_to_write: vec![WriteValue {
            node_id,
            attribute_id: Attribute::VALUE.id(),
            value: DataValue { value: Some(value), ..DataValue::default() },
            ..Default::default()
        }],
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::rest_ns;

    #[test]
    fn pauses_cover_the_interval_evenly() {
        let mut tenths = [0; 10];
        for turn in 0..1_000 {
            tenths[(rest_ns(turn, 2.0) / 200_000) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (97..=103).contains(count)), "{tenths:?}");
    }

    #[test]
    fn invalid_intervals_give_no_pause() {
        assert_eq!((rest_ns(1, 0.0), rest_ns(1, -5.0), rest_ns(1, f64::NAN)), (0, 0, 0));
        assert!(rest_ns(1, f64::INFINITY) < 1_000_000_000);
    }
}
