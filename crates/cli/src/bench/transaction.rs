//! What `bench roundtrip` and `bench fan` have in common: a value is written, and comes back by a subscription.

use super::account::{Account, Window};
use super::common::{CommonArgs, nanos};
use super::report::Report;
use crate::attribute::Attribute;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use serde_json::json;
use std::time::Duration;
use taktwerk_client::SubscriptionParams;
use taktwerk_lab::latency::Times;
use taktwerk_lab::process::Process;
use taktwerk_lab::validity::Invalid;
use taktwerk_lab::{clock, figures};
use taktwerk_schema::{
    MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, ReadValueId, WriteRequest, WriteValue,
};
use taktwerk_types::{DataValue, NodeId, Variant};

/// Transactions that were measured.
pub(super) struct Transactions {
    pub(super) times: Times,
    account: Account,
}

impl Transactions {
    /// Makes one after the other: for the warm-up, then `count` of them, or as many as fit into the duration. `one`
    /// gives its time in nanoseconds, or nothing if it was interrupted.
    pub(super) fn measure(
        common: &CommonArgs,
        server: Option<Process>,
        count: Option<u64>,
        what: &'static str,
        interrupt: &Interrupt,
        mut one: impl FnMut() -> Result<Option<u64>, Failure>,
    ) -> Result<Self, Failure> {
        let warm = clock::monotonic() + nanos(common.warmup);
        while clock::monotonic() < warm && !interrupt.asked() {
            one()?;
        }
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
            if let Some(time) = one()? {
                times.record(time);
            }
            let seconds = (clock::monotonic() - start) / 1_000_000_000;
            progress.at(if count.is_some() { times.count() } else { seconds });
        }
        Ok(Self { times, account: window.close()? })
    }

    /// Adds the times under `name` and shows the report. `described` is what they are the time of, `unit` is what the
    /// server's cost is counted by.
    pub(super) fn report(
        &self,
        mut report: Report,
        (name, described, unit): (&'static str, &'static str, &'static str),
        revised_ms: f64,
        output: Output,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        report.set("revised_publishing_ms", revised_ms);
        report.set(name, json!(self.times.summary()));
        report.histogram(name, &self.times);
        report.times(described, &self.times);
        report.fact("publishing interval", format!("revised to {} ms", figures::number(revised_ms)));
        report.account(&self.account, unit, self.times.count());
        if self.times.count() == 0 {
            report.invalid([Invalid::NoSamples]);
        }
        report.print(output, interrupt)
    }
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
