//! What `bench roundtrip` and `bench fan` have in common: a value is written, and comes back by a subscription.

use super::account::{Account, Window};
use super::common::{Generator, environment, nanos};
use super::report::Report;
use crate::attribute::Attribute;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use serde_json::Value;
use std::time::Duration;
use taktwerk_client::SubscriptionParams;
use taktwerk_lab::latency::Times;
use taktwerk_lab::process::Process;
use taktwerk_lab::validity::Invalid;
use taktwerk_lab::{clock, figures};
use taktwerk_load::result::{Returned, Unit};
use taktwerk_load::specification::Common;
use taktwerk_net::client::{Fleet, FleetSink};
use taktwerk_schema::{
    MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, ReadValueId, WriteRequest, WriteValue,
};
use taktwerk_types::{DataValue, Instant, NodeId, Variant};

/// Transactions that were measured.
pub(super) struct Transactions {
    pub(super) times: Times,
    account: Account,
}

impl Transactions {
    /// Makes one after the other: for the warm-up, then `count` of them, or as many as fit into the duration. `one`
    /// gives its time in nanoseconds, or nothing if it was interrupted. What the fleet polls in vain is no work.
    pub(super) fn measure(
        common: &Common,
        server: Option<Process>,
        count: Option<u64>,
        what: &'static str,
        interrupt: &Interrupt,
        fleet: &mut Fleet,
        mut one: impl FnMut(&mut Fleet) -> Result<Option<u64>, Failure>,
    ) -> Result<Self, Failure> {
        let warm = clock::monotonic() + nanos(common.warmup);
        while clock::monotonic() < warm && !interrupt.asked() {
            one(fleet)?;
        }
        let polled = fleet.stats().in_vain;
        let window = Window::open(server, common.port())?;
        let start = window.start();
        let end = if count.is_some() { u64::MAX } else { start + nanos(common.duration) };
        let mut progress = match count {
            Some(count) => Progress::new(what, count),
            None => Progress::of_time("measuring", common.duration),
        };
        let wanted = count.unwrap_or(u64::MAX);
        let mut times = Times::new();
        while times.count() < wanted && clock::monotonic() < end && !interrupt.asked() {
            if let Some(time) = one(fleet)? {
                times.record(time);
            }
            let seconds = (clock::monotonic() - start) / 1_000_000_000;
            progress.at(if count.is_some() { times.count() } else { seconds });
        }
        let account = window.close()?.polling(fleet.stats().in_vain.saturating_sub(polled));
        Ok(Self { times, account })
    }

    /// Adds the times and shows the report. `described` is what they are the time of, `unit` is what the server's cost is
    /// counted by.
    pub(super) fn report(
        &self,
        mut report: Report,
        (described, unit): (&'static str, Unit),
        requested: Value,
        revised_publishing_ms: f64,
        output: Output,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        report.part(&Returned { requested, revised_publishing_ms });
        report.returned(unit == Unit::Transaction, &self.times);
        report.times(described, &self.times);
        report
            .fact("publishing interval", format!("revised to {} ms", figures::number(revised_publishing_ms)));
        report.account(&self.account, unit, self.times.count());
        if self.times.count() == 0 {
            report.invalid([Invalid::NoSamples]);
        }
        report.print(output, interrupt)
    }
}

/// How long to rest before a transaction, in nanoseconds: a part of the publishing interval, another one each time. A
/// transaction that begins when the one before has ended begins right after the server has published, and waits a whole
/// interval, whatever else it takes. Multiples of the golden section meet all phases evenly from the first few on.
fn rest_ns(turn: u64, interval_ms: f64) -> u64 {
    const GOLDEN_SECTION: f64 = 0.618_033_988_749_894_8;
    // No pause is longer than a second, whatever interval a server wants.
    ((turn as f64 * GOLDEN_SECTION).fract() * interval_ms.clamp(0.0, 1_000.0) * 1e6) as u64
}

/// Lets the fleet rest before its next transaction, so that all phases of the publishing interval occur.
pub(super) fn rest(
    fleet: &mut Fleet,
    sink: &mut impl FleetSink,
    turn: u64,
    interval_ms: f64,
) -> Result<(), Failure> {
    let mut now = clock::monotonic();
    let end = now + rest_ns(turn, interval_ms);
    while now < end {
        fleet.run_once(Instant::from_nanos(end), sink).map_err(environment)?;
        now = clock::monotonic();
    }
    Ok(())
}

/// A subscription that outlives pauses of the machine.
pub(super) fn subscription(interval: Duration) -> SubscriptionParams {
    let interval = interval.as_secs_f64() * 1e3;
    SubscriptionParams {
        publishing_interval_ms: interval,
        lifetime_count: (120_000.0 / interval.max(1.0)) as u32,
        keep_alive_count: (10_000.0 / interval.max(1.0)) as u32,
        ..SubscriptionParams::default()
    }
}

/// An item that reports every new value of a variable at once.
pub(super) fn item(node_id: NodeId, client_handle: u32) -> MonitoredItemCreateRequest {
    MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId { node_id, attribute_id: Attribute::VALUE.id(), ..Default::default() },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle,
            sampling_interval: 0.0,
            queue_size: 1,
            discard_oldest: true,
            ..Default::default()
        },
    }
}

/// Writes one value.
pub(super) fn write(node_id: NodeId, value: Variant) -> WriteRequest {
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
    fn rests_meet_each_tenth_of_the_interval_equally_often() {
        let mut tenths = [0; 10];
        for turn in 0..1_000 {
            tenths[(rest_ns(turn, 2.0) / 200_000) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (97..=103).contains(count)), "{tenths:?}");
    }

    #[test]
    fn an_interval_that_makes_no_sense_is_no_rest() {
        assert_eq!((rest_ns(1, 0.0), rest_ns(1, -5.0), rest_ns(1, f64::NAN)), (0, 0, 0));
        assert!(rest_ns(1, f64::INFINITY) < 1_000_000_000);
    }
}
