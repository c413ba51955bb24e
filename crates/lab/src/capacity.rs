//! Searches for the largest load that a system sustains, and decides whether a load was sustained.

use crate::measurement::Measurement;
use crate::validity::Invalid;
use serde::Serialize;
use taktwerk_load::result::{Ending, Figure, Reason};

/// An adaptive search that brackets the limit between a sustained and a failed load.
#[derive(Debug, Clone)]
pub struct Search {
    next: Option<u64>,
    most: u64,
    growth: f64,
    bracket: f64,
    sustained: Option<u64>,
    failed: Option<u64>,
    /// A load that failed once. It must fail twice, so that one short disturbance does not decide.
    doubted: Option<u64>,
}

/// Result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The largest load that was sustained.
    pub sustained: Option<u64>,
    /// The smallest load that failed; `None` if the search ended before one failed.
    pub failed: Option<u64>,
}

impl Search {
    /// Starts at `first` and multiplies by `growth` until a load fails or `most` is reached. Then halves the gap until
    /// it is narrower than `bracket` (0.1 means 10 %).
    #[must_use]
    pub fn new(first: u64, most: u64, growth: f64, bracket: f64) -> Self {
        Self {
            next: Some(first.clamp(1, most.max(1))),
            most: most.max(1),
            growth: growth.max(1.05),
            bracket: bracket.max(0.001),
            sustained: None,
            failed: None,
            doubted: None,
        }
    }

    /// The next load to try; `None` when the search is complete.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// Records the result of the load from [`Self::next`]. `is_clear` marks a miss too large for a disturbance; it
    /// counts at once.
    pub fn note(&mut self, is_sustained: bool, is_clear: bool) {
        let Some(load) = self.next else { return };
        if is_sustained {
            self.sustained = Some(self.sustained.map_or(load, |best| best.max(load)));
            self.doubted = None;
        } else if is_clear || self.doubted == Some(load) {
            self.failed = Some(load);
            self.doubted = None;
        } else {
            self.doubted = Some(load);
            return;
        }
        self.next = self.step();
    }

    /// Ends the search here, with what it has found.
    pub fn stop(&mut self) {
        self.next = None;
    }

    fn step(&self) -> Option<u64> {
        match (self.sustained, self.failed) {
            (Some(low), None) if low >= self.most => None,
            (Some(low), None) => Some(((low as f64 * self.growth).ceil() as u64).max(low + 1).min(self.most)),
            (None, Some(high)) if high <= 1 => None,
            (None, Some(high)) => Some((high / 4).max(1)),
            (Some(low), Some(high)) => {
                let is_narrow = (high - low) as f64 <= low as f64 * self.bracket;
                let middle = ((low as f64) * (high as f64)).sqrt().round() as u64;
                (!is_narrow && high - low > 1).then(|| middle.clamp(low + 1, high - 1))
            }
            (None, None) => None,
        }
    }

    /// The result so far.
    #[must_use]
    pub fn found(&self) -> Found {
        Found { sustained: self.sustained, failed: self.failed }
    }
}

/// Verdict on one load.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// All values arrived in time.
    Sustained,
    /// Values were late or missing.
    NotSustained {
        /// What was missed.
        why: String,
        /// Whether the miss is so large that a repetition is pointless.
        clear: bool,
    },
    /// The measurement does not show the server's limit, because the generator was the bottleneck.
    Unknown {
        /// The reason.
        why: String,
    },
}

/// Share of its expected values that every item must receive, including the worst item.
const PROGRESS: f64 = 0.99;
/// Maximum mean message interval, relative to the publishing interval.
const LATE: f64 = 1.1;

/// Below this share of the expected values, a miss is clear and not repeated.
const FAR_OFF: f64 = 0.8;

/// Values per second that every item received under a load, if known. One value less than the median item, because that
/// item may have received an extra one at the edge of the window.
#[must_use]
pub fn usual(measurement: &Measurement) -> Option<f64> {
    let [expected, seconds] =
        [Figure::PROGRESS_EXPECTED_PER_ITEM, Figure::WINDOW_S].map(|name| measurement.get(name));
    let (expected, seconds) = (expected?, seconds.filter(|seconds| *seconds > 0.0)?);
    (expected > 1.0).then(|| (expected - 1.0) / seconds)
}

/// Share of the window that a program may wait for a CPU before it counts as disturbed.
pub const WAITED: f64 = 0.1;

/// Why a miss proves nothing about the server: another program used the generator's CPU. `None` if not disturbed.
fn disturbed(measurement: &Measurement) -> Option<String> {
    let waited = measurement.get(Figure::GENERATOR_RUNQUEUE_WAIT_S)?;
    let share = waited / measurement.get(Figure::WINDOW_S).filter(|window| *window > 0.0)?;
    (share > WAITED).then(|| {
        format!(
            "the load generator waited for its CPU during {:.0} % of the window: stop other programs on this machine",
            share * 100.0
        )
    })
}

/// Judges a subscription. The worst item counts, not the mean, and cycles must be kept. A miss counts only if the
/// generator had its CPU. `usual` is the result of [`usual`] for a small load. It is needed because a server that
/// delays all items equally has a low median too, and a server that reduces its sampling rate under load announces
/// fewer values.
#[must_use]
pub fn judge(measurement: &Measurement, usual: Option<f64>) -> Verdict {
    match (delivered(measurement, usual), disturbed(measurement)) {
        (Verdict::NotSustained { .. }, Some(why)) => Verdict::Unknown { why },
        (verdict, _) => verdict,
    }
}

/// Whether all values arrived in time.
fn delivered(measurement: &Measurement, usual: Option<f64>) -> Verdict {
    let not = |why: String, clear: bool| Verdict::NotSustained { why, clear };
    // Missing values and lost connections are failures of the server; all other reasons concern the generator.
    let reasons = measurement.part::<Ending>().unwrap_or_default().invalid;
    let is_servers = |reason: &Reason| {
        use Invalid::{ConnectionsLost, NoSamples, Unanswered};
        matches!(reason.reason, Some(NoSamples | ConnectionsLost { .. } | Unanswered { .. }))
    };
    if !measurement.is_valid() && !reasons.iter().all(is_servers) {
        return Verdict::Unknown { why: measurement.invalid.join("; ") };
    }
    if let Some(reason) = measurement.invalid.first() {
        return not(reason.clone(), false);
    }
    let get = |figure: Figure| measurement.get(figure).unwrap_or(0.0);
    if get(Figure::CONNECTIONS_LOST) > 0.0 {
        return not(format!("{} connections were lost", get(Figure::CONNECTIONS_LOST)), false);
    }
    // A window of n cycles contains n ± 1 values.
    let as_usual = (usual.unwrap_or(0.0) * get(Figure::WINDOW_S) + 1e-6).floor();
    let expected = get(Figure::PROGRESS_EXPECTED_PER_ITEM).max(as_usual);
    let received = get(Figure::PROGRESS_MIN_PER_ITEM);
    if received + 1.0 < expected * PROGRESS {
        let clear = received < expected * FAR_OFF;
        return not(format!("an item received {received} of {expected} values"), clear);
    }
    if get(Figure::PROGRESS_OVERFLOWS) > 0.0 || get(Figure::LOST_MESSAGES) > 0.0 {
        return not("values were lost".to_owned(), false);
    }
    let interval = measurement.condition.publishing_ms.unwrap_or(0.0);
    let mean = get(Figure::MESSAGE_INTERVAL_MEAN_US) / 1e3;
    if interval > 0.0 && mean > interval * LATE {
        let clear = interval < mean * FAR_OFF;
        return not(format!("messages came every {mean:.0} ms instead of {interval:.0} ms"), clear);
    }
    Verdict::Sustained
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Kind, LoadSpec, Scenario};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn run(search: &mut Search, limit: u64) -> Vec<u64> {
        let mut tried = Vec::new();
        while let Some(load) = search.next() {
            tried.push(load);
            search.note(load <= limit, false);
            assert!(tried.len() < 200, "{tried:?}");
        }
        tried
    }

    proptest! {
        #[test]
        fn the_limit_is_bracketed_narrowly(limit in 20u64..1_000_000, first in 1u64..10_000, safe: bool) {
            let growth = if safe { 1.3 } else { 2.0 };
            let mut search = Search::new(first, 4_000_000, growth, 0.1);
            run(&mut search, limit);
            let Found { sustained, failed } = search.found();
            let (low, high) = (sustained.unwrap(), failed.unwrap());
            prop_assert!(low <= limit && limit < high);
            prop_assert!((high - low) as f64 <= (low as f64 * 0.1).max(1.0), "{} {}", low, high);
        }
    }

    #[test]
    fn the_search_stops_at_the_maximum() {
        let mut search = Search::new(10, 1_000, 2.0, 0.1);
        let tried = run(&mut search, u64::MAX);
        assert_eq!(tried.last(), Some(&1_000));
        assert_eq!(search.found(), Found { sustained: Some(1_000), failed: None });
    }

    #[test]
    fn the_search_ends_if_no_load_is_sustained() {
        let mut search = Search::new(100, 1_000, 2.0, 0.1);
        run(&mut search, 0);
        assert_eq!(search.found(), Found { sustained: None, failed: Some(1) });
    }

    #[test]
    fn one_disturbance_does_not_decide() {
        let mut search = Search::new(100, 150, 2.0, 0.1);
        search.note(false, false);
        assert_eq!(search.next(), Some(100));
        search.note(true, false);
        assert_eq!((search.found().sustained, search.next()), (Some(100), Some(150)));
        // Clear misses are not repeated.
        search.note(false, true);
        assert_eq!((search.found().failed, search.next()), (Some(150), Some(122)));
    }

    fn measured(change: impl FnOnce(&mut Value)) -> Measurement {
        let mut load = LoadSpec::new(Kind::Subscribe);
        load.publishing_ms = Some(100.0.into());
        let condition = Scenario::new("x", load).conditions().remove(0);
        let mut document = json!({
            "window_s": 20.0, "connections_lost": 0, "lost_messages": 0, "message_interval": {"mean_us": 100_000.0},
            "progress": {"expected_per_item": 200.0, "min_per_item": 199.0, "overflows": 0}, "invalid": [],
        });
        change(&mut document);
        Measurement::from_document("", condition, 0, document)
    }

    #[test]
    fn the_worst_item_and_the_cycle_decide() {
        assert_eq!(judge(&measured(|_| ()), None), Verdict::Sustained);
        let verdict = judge(&measured(|document| document["progress"]["min_per_item"] = json!(190)), None);
        assert!(matches!(verdict, Verdict::NotSustained { .. }));
        let verdict = judge(&measured(|document| document["progress"]["min_per_item"] = json!(90)), None);
        assert!(matches!(verdict, Verdict::NotSustained { clear: true, .. }));
        let verdict =
            judge(&measured(|document| document["message_interval"]["mean_us"] = json!(120_000.0)), None);
        assert!(matches!(verdict, Verdict::NotSustained { why, clear: false } if why.contains("120 ms")));
        let verdict = judge(&measured(|document| document["invalid"] = json!([{"message": "late"}])), None);
        assert_eq!(verdict, Verdict::Unknown { why: "late".into() });
        // All items are equally slow, so their median is low too.
        let starved = |document: &mut Value| {
            document["progress"] = json!({"expected_per_item": 100.0, "min_per_item": 100, "overflows": 0});
        };
        assert_eq!(judge(&measured(starved), None), Verdict::Sustained);
        let before = usual(&measured(|_| ()));
        assert_eq!(before, Some(199.0 / 20.0));
        let verdict = judge(&measured(starved), before);
        assert!(matches!(verdict, Verdict::NotSustained { why, clear: true } if why.contains("100 of 199")));
        assert_eq!(judge(&measured(|_| ()), before), Verdict::Sustained);
        assert_eq!(usual(&measured(|document| document["window_s"] = json!(0.0))), None);
        // Another program used the generator's CPU: a miss proves nothing, complete delivery still counts.
        let busy = |missed: u64| {
            measured(|document| {
                document["generator"] = json!({"runqueue_wait_s": 3.0});
                document["progress"]["min_per_item"] = json!(missed);
            })
        };
        assert!(
            matches!(judge(&busy(90), None), Verdict::Unknown { why } if why.contains("15 % of the window"))
        );
        assert_eq!(judge(&busy(199), None), Verdict::Sustained);
        let silent = json!([{"reason": "no_samples", "message": "nothing came"}]);
        let verdict = judge(&measured(|document| document["invalid"] = silent), None);
        assert_eq!(verdict, Verdict::NotSustained { why: "nothing came".into(), clear: false });
    }
}
