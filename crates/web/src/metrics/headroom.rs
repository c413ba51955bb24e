//! The server's CPU headroom, if predictions are enabled.

use crate::exposition::{Collector, Exposition};
use std::fmt;
use taktwerk_server::ServerShared;
use taktwerk_server::headroom::Report;

/// The headroom at the time of the scrape.
#[derive(Debug)]
pub(crate) struct HeadroomMetrics(Option<Report>);

impl HeadroomMetrics {
    pub(crate) fn of(shared: &ServerShared) -> Self {
        Self(shared.config().headroom.as_ref().map(|headroom| headroom.report()))
    }
}

impl Collector for HeadroomMetrics {
    fn collect(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let Some(report) = &self.0 else { return Ok(()) };
        let of = |kind: &str| ("kind", kind.to_owned());
        let cpu =
            [("predicted", Some(report.predicted)), ("actual", report.actual), ("limit", Some(report.limit))];
        out.gauges(
            "taktwerk_headroom_cpu_cores",
            "CPU predicted for the clients' requests, CPU used in the last second, and the CPU limit",
            cpu.into_iter().filter_map(|(kind, cores)| Some((of(kind), cores?))),
        )?;
        let demand = [
            ("signals_per_second", report.values_per_s),
            ("messages_per_second", report.messages_per_s),
            ("items", report.items as f64),
            ("subscriptions", report.subscriptions as f64),
        ];
        out.gauges(
            "taktwerk_headroom_demand",
            "Items, subscriptions and values per second that clients have requested",
            demand.map(|(kind, value)| (of(kind), value)),
        )?;
        let remaining = [
            ("signals_per_second", report.remaining_values_per_s),
            ("items", report.remaining_items),
            ("sessions", report.remaining_sessions),
        ];
        out.gauges(
            "taktwerk_headroom_remaining",
            "Remaining capacity: values per second, and items and sessions like the present ones",
            remaining.map(|(kind, value)| (of(kind), value)),
        )?;
        out.gauge(
            "taktwerk_headroom_price_factor_ratio",
            "Cost of work relative to the calibration, from 0.7 to 2",
            report.factor,
        )?;
        let limited = [("revised", report.revised as f64), ("refused", report.refused as f64)];
        out.counters(
            "taktwerk_headroom_limited",
            "Publishing intervals that were revised upward, and monitored items that were refused",
            limited.map(|(kind, value)| (of(kind), value)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::exposition;
    use std::sync::Arc;
    use taktwerk_server::headroom::{Admit, Headroom, Prices};

    #[test]
    fn headroom_metrics_exist_only_with_a_prediction() {
        let of = |report: Option<Report>| {
            exposition([Arc::new(HeadroomMetrics(report)) as Arc<dyn Collector>]).unwrap()
        };
        assert!(!of(None).contains("headroom"));
        let prices = Prices { idle: 0.01, value: 1e-6, value_growth: 0.0, message: 1e-5 };
        let headroom = Headroom::new(prices, 0.8, Admit::Always);
        let before = of(Some(headroom.report()));
        assert!(before.contains("taktwerk_headroom_cpu_cores{kind=\"predicted\"} 0.01"), "{before}");
        assert!(!before.contains("kind=\"actual\""), "{before}");
        headroom.measured(0.25, std::time::Duration::from_secs(1));
        let after = of(Some(headroom.report()));
        for wanted in [
            "taktwerk_headroom_cpu_cores{kind=\"actual\"} 0.25",
            "taktwerk_headroom_cpu_cores{kind=\"limit\"} 0.8",
            "taktwerk_headroom_demand{kind=\"items\"} 0.0",
            "taktwerk_headroom_remaining{kind=\"signals_per_second\"} 790000.0",
            "taktwerk_headroom_price_factor_ratio 1.0",
            "taktwerk_headroom_limited_total{kind=\"refused\"} 0.0",
        ] {
            assert!(after.contains(wanted), "{wanted}: {after}");
        }
    }
}
