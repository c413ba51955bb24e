//! Metrics of the recorder of history.

use crate::exposition::{Collector, Exposition};
use std::fmt;
use std::sync::Arc;
use taktwerk::history::RecorderCounters;

/// The counters of the recorder.
#[derive(Debug)]
pub struct HistoryMetrics(pub Arc<RecorderCounters>);

impl Collector for HistoryMetrics {
    fn collect(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let counters = &*self.0;
        let store = || ("store", counters.kind().to_owned());
        let lost = [
            ("too_fast", counters.lost_early()),
            ("queue_full", counters.lost_full()),
            ("stopped", counters.lost_at_stop()),
        ];
        let failing = f64::from(u8::from(counters.problem().is_some()));
        let what = "1 while the history cannot be stored; the label is the kind of store";
        out.gauges("taktwerk_history_failing", what, [(store(), failing)])?;
        let kinds = |values: u64, events: u64| {
            [("values", values), ("events", events)]
                .map(|(kind, count)| (("kind", kind.to_owned()), count as f64))
        };
        out.counters(
            "taktwerk_history_stored",
            "Values and events that the store has confirmed",
            kinds(counters.recorded(), counters.events()),
        )?;
        out.gauges(
            "taktwerk_history_queued",
            "Values and events that wait to be stored",
            kinds(counters.waiting(), counters.waiting_events()),
        )?;
        let queued = counters.waiting_bytes() as f64;
        out.gauge("taktwerk_history_queued_bytes", "Memory of what waits to be stored", queued)?;
        let oldest = counters.oldest().as_secs_f64();
        out.gauge(
            "taktwerk_history_queue_age_seconds",
            "For how long the oldest value in the queue waits",
            oldest,
        )?;
        out.counters(
            "taktwerk_history_lost",
            "Values and events that were not stored, by reason",
            lost.map(|(reason, count)| (("reason", reason.to_owned()), count as f64)),
        )?;
        out.counter("taktwerk_history_errors", "Failed attempts to store", counters.failures() as f64)
    }
}
