//! Causes of late answers.

use crate::chart::{Axis, Chart, Mark, Point, Series};
use crate::experiment::{
    Experiment, Plan, Wish, conditions, is_less, published, stack_name, stacks, time, valid_groups,
};
use crate::figures;
use crate::measurement::Measurement;
use crate::outcome::{Finding, Grid, Outcome, maybe};
use crate::outliers::{Cause, Sample, Slow, explain, fastest, kulczynski, pearson, stolen_share};
use crate::scenario::{CpuCondition, Kind, LoadSpec, Scenario};
use crate::statistics::{Repeated, mean, quantile, share_ci95, within};
use taktwerk_load::result::Probed;

pub(super) struct Outliers;

/// An answer is slow if it takes this many times as long as the fastest.
const SLOW: f64 = 5.0;
/// A network with loss, on which TCP retransmits.
const LOSSY: &str = "ethernet-100m,loss=3%";

fn samples(measurement: &Measurement) -> Vec<Sample> {
    measurement.part::<Probed>().map(|probed| probed.samples).unwrap_or_default()
}

/// The samples of a measurement and the fastest of them; `None` if there are none.
fn with_fastest(measurement: &Measurement) -> Option<(Vec<Sample>, f64)> {
    let samples = samples(measurement);
    let fastest = fastest(&samples)?;
    Some((samples, fastest))
}

impl Experiment for Outliers {
    fn id(&self) -> &'static str {
        "cgw-outliers"
    }
    fn question(&self) -> &'static str {
        "Are late answers caused by CPU load, and if not, by what?"
    }
    fn source(&self) -> &'static str {
        "C-GW paper, Table III, Figure 7: peaks of delay and load, correlated"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let make = |kind: CpuCondition, link: Option<&str>, rate: f64, count: u64| {
            let mut load = LoadSpec::new(Kind::Probe);
            load.batch = Some(30.into());
            load.rate = Some(rate.into());
            load.count = Some(count);
            let mut scenario = Scenario::new("cgw-outliers", load);
            scenario.server.signals = 30;
            scenario.server.update_ms = 10.0;
            scenario.link = link.map(str::to_owned);
            scenario.cpu.condition = kind;
            scenario.time = time(0.2, 1.0, if wish.quick { 1 } else { 5 });
            scenario
        };
        let count = if wish.quick { 400 } else { 10_000 };
        let mut scenarios = vec![
            make(CpuCondition::Loaded, None, 100.0, count),
            make(CpuCondition::Isolated, None, 100.0, count),
        ];
        let mut skipped = Vec::new();
        match wish.place.know_link(LOSSY) {
            // Each loss costs 200 ms; most requests should not have to wait for one.
            Ok(()) => scenarios.push(make(CpuCondition::Isolated, Some(LOSSY), 20.0, count * 3 / 10)),
            Err(error) => skipped.push(format!("lost packets: {error}")),
        }
        Plan { conditions: conditions(wish, scenarios), skipped }
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let mut causes = Grid::new(
            "Slow answers (more than 5 times the fastest) by proven cause",
            2,
            &[
                "stack",
                "CPU",
                "network",
                "samples",
                "slow",
                "run queue",
                "turn",
                "TCP",
                "timer",
                "client",
                "hypervisor",
                "not proven",
            ],
        );
        let mut table = Grid::new(
            "Correlation of delay peaks (> N times the fastest) and load peaks (CPU > K)",
            2,
            &["stack", "CPU", "N", "K %", "peaks", "Pearson", "published", "Kulczynski", "published"],
        );
        let mut worst: Vec<(String, Slow)> = Vec::new();
        for group in valid_groups(measurements) {
            // Each repetition has its own fastest and median answer. The counts are added up.
            let runs: Vec<(Vec<Sample>, f64)> =
                group.valid.iter().filter_map(|one| with_fastest(one)).collect();
            let stack = stack_name(&group.condition.stack);
            let cpu = group.condition.cpu.condition.name();
            let explained: Vec<Vec<Slow>> = runs.iter().map(|(samples, _)| explain(samples, SLOW)).collect();
            let slow: Vec<&Slow> = explained.iter().flatten().collect();
            let count = |cause: Cause| slow.iter().filter(|one| one.cause == cause).count().to_string();
            let network = group.condition.link.as_deref();
            causes.row([
                stack.to_owned(),
                cpu.to_owned(),
                network.unwrap_or("loopback").to_owned(),
                runs.iter().map(|(samples, _)| samples.len()).sum::<usize>().to_string(),
                slow.len().to_string(),
                count(Cause::ServerRunQueue),
                count(Cause::ServerTurn),
                count(Cause::Retransmission),
                count(Cause::Timer),
                count(Cause::Generator),
                count(Cause::Hypervisor),
                count(Cause::NotProven),
            ]);
            if let Some(network) = network {
                outcome.findings.extend(lost(stack, network, &runs, &slow));
                let mut slowest: Vec<Slow> = explained.into_iter().flatten().collect();
                slowest.sort_by(|a, b| b.rtt_us.total_cmp(&a.rtt_us));
                worst.extend(slowest.into_iter().take(3).map(|one| (format!("{stack}, {network}"), one)));
                continue;
            }
            for gain in [5, 10, 20] {
                for threshold in [40, 50, 60] {
                    let all = || {
                        runs.iter()
                            .flat_map(|(samples, fastest)| samples.iter().map(move |one| (one, *fastest)))
                    };
                    let late: Vec<bool> =
                        all().map(|(sample, fastest)| sample.rtt_us > f64::from(gain) * fastest).collect();
                    let loaded: Vec<bool> = all()
                        .zip(&late)
                        .map(|((sample, _), late)| {
                            // The paper's definition: a load peak counts only if it coincides with a delay peak.
                            *late
                                && sample.context.load_percent.is_some_and(|load| load > f64::from(threshold))
                        })
                        .collect();
                    let paper = published::cgw_correlation(gain, threshold);
                    table.row([
                        stack.to_owned(),
                        cpu.to_owned(),
                        gain.to_string(),
                        threshold.to_string(),
                        late.iter().filter(|late| **late).count().to_string(),
                        maybe(pearson(&late, &loaded)),
                        maybe(paper.map(|(pearson, _)| pearson)),
                        maybe(kulczynski(&late, &loaded)),
                        maybe(paper.map(|(_, kulczynski)| kulczynski)),
                    ]);
                }
            }
            if let Some((samples, _)) = runs.first() {
                outcome.charts.push(over_time(&format!("{stack}, CPU {cpu}"), samples));
            }
            let proved = slow.iter().filter(|one| one.cause != Cause::NotProven).count();
            if group.condition.cpu.condition == CpuCondition::Loaded && slow.len() >= 5 {
                // Stolen time is counted in ticks that are longer than most late answers. Only the sum is known, not
                // the share of each answer.
                let shares = runs
                    .iter()
                    .zip(&explained)
                    .filter_map(|((samples, _), slow)| stolen_share(samples, slow));
                let stolen = mean(&shares.collect::<Vec<f64>>()).unwrap_or(0.0);
                // True if the whole confidence interval is above one half, false if it is below.
                let open = share_ci95(slow.len() - proved, slow.len()).and_then(|it| within(it, 0.5));
                let (holds, said) = match open {
                    Some(false) if stolen >= 0.5 => (
                        None,
                        format!(
                            "; the hypervisor took {} % of the delay of the others, in clock ticks that cannot be \
                            assigned to single answers",
                            figures::number(stolen * 100.0)
                        ),
                    ),
                    other => (other, String::new()),
                };
                outcome.finding(
                    "with a competing program, most late answers have a proven cause",
                    holds,
                    format!("{stack}: {proved} of {} have a proven cause{said}", slow.len()),
                );
            }
            let mut slowest: Vec<Slow> = explained.into_iter().flatten().collect();
            slowest.sort_by(|a, b| b.rtt_us.total_cmp(&a.rtt_us));
            worst.extend(slowest.into_iter().take(5).map(|one| (format!("{stack}, {cpu}"), one)));
        }
        let late = |kind: CpuCondition, stack: &str| {
            let of = |one: &&Measurement| {
                one.is_valid()
                    && one.condition.link.is_none()
                    && one.condition.cpu.condition == kind
                    && one.condition.stack == stack
            };
            let p95 = |one: &Measurement| {
                quantile(&samples(one).iter().map(|sample| sample.rtt_us).collect::<Vec<_>>(), 0.95)
            };
            Repeated::new(measurements.iter().filter(of).filter_map(p95).collect())
        };
        for stack in stacks(measurements) {
            if let (Some(shared), Some(alone)) =
                (late(CpuCondition::Loaded, &stack), late(CpuCondition::Isolated, &stack))
            {
                outcome.finding(
                    "load on the server's CPU makes answers late (p95)",
                    is_less(&alone, &shared).filter(|_| alone.values.len().min(shared.values.len()) > 1),
                    format!(
                        "{}: p95 {} with a competing program, {} without",
                        stack_name(&stack),
                        figures::micros(shared.median),
                        figures::micros(alone.median)
                    ),
                );
            }
        }
        outcome.grids.push(causes);
        let mut proofs =
            Grid::new("The slowest answers, each with its cause and the proof", 2, &["where", "proof", "µs"]);
        for (place, slow) in worst {
            proofs.row([place, slow.proof, figures::number(slow.rtt_us)]);
        }
        outcome.grids.push(proofs);
        outcome.grids.push(table);
        outcome.remark(
            "Correlation is not a cause. A cause is proven if the counters of the scheduler, TCP, the client's timer \
             or the hypervisor account for at least half of the request's extra time compared with a usual request. \
             (TCP counts retransmitted segments, not their time, so retransmission is the cause if no other cause is \
             found.) Causes that cannot be proven are the link, interrupts, and stolen time shorter than the clock \
             tick. 'turn' is a long turn of the server itself. 'timer' is a request that was sent late; its delay is \
             added to its time. The load peaks in the table follow the paper's definition, which counts a load peak \
             only if there is a delay peak. This alone makes the coefficients high.",
        );
        outcome.remark(
            "Comparable: that delay peaks coincide with load peaks, and the coefficients at the same N and K. Not \
             comparable: the number of late answers and their delay, because the gateway had a Cortex-A8 and ran other \
             programs. The paper names no causes.",
        );
        outcome.remark(
            "The load on the paper's gateway came from its own protocol adapters. Here, a program that computes in \
             bursts of 1 to 16 ms, half of the time, competes for the server's CPU ('loaded').",
        );
    }
}

/// Whether late answers over a lossy network are attributed to retransmission. Only answers late by at least the time
/// TCP needs to notice a loss count: Linux waits at least 200 ms, RFC 6298 recommends 1 s.
fn lost(stack: &str, network: &str, runs: &[(Vec<Sample>, f64)], slow: &[&Slow]) -> Option<Finding> {
    const NOTICED_US: f64 = 100_000.0;
    let again: u64 =
        runs.iter().flat_map(|(samples, _)| samples).map(|sample| sample.context.retransmitted).sum();
    let late: Vec<_> = slow.iter().filter(|one| one.excess_us >= NOTICED_US).collect();
    let named = late.iter().filter(|one| one.cause == Cause::Retransmission).count();
    if late.is_empty() {
        return None;
    }
    let (holds, said) = match again {
        0 => (
            None,
            "; TCP retransmitted nothing: without network namespaces, a relay emulates the link, which delays but does \
            not drop"
                .to_owned(),
        ),
        again => (
            share_ci95(late.len() - named, late.len()).and_then(|it| within(it, 0.5)),
            format!("; {again} segments were retransmitted"),
        ),
    };
    Some(Finding {
        claim:
            "over a network that loses packets, answers late by 100 ms or more are caused by retransmission"
                .to_owned(),
        holds,
        evidence: format!("{stack} over {network}: {named} of {}{said}", late.len()),
    })
}

fn over_time(name: &str, samples: &[Sample]) -> Chart {
    let delay = samples.iter().map(|sample| Point::new(sample.at_s, sample.rtt_us / 1e3));
    let load = samples.iter().filter_map(|s| Some(Point::new(s.at_s, s.context.load_percent? / 100.0)));
    Chart::plane(
        &format!("Delay and CPU load over time: {name}, first repetition"),
        "Delay peaks that coincide with load are explained by it; peaks without load have another cause. Load is drawn \
         from 0 to 1, where 1 is a busy CPU.",
        Axis::linear("time, s"),
        Axis::linear("delay, ms, and load of the server's CPU"),
        vec![
            Series { name: "load (0 to 1)".into(), mark: Mark::Line(load.collect()), colour: 5 },
            Series { name: "delay, ms".into(), mark: Mark::Line(delay.collect()), colour: 1 },
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn late_answers_of_all_repetitions_count() {
        let mut load = LoadSpec::new(Kind::Probe);
        load.rate = Some(100.0.into());
        let mut scenario = Scenario::new("cgw-outliers", load);
        scenario.cpu.condition = CpuCondition::Loaded;
        let condition = scenario.conditions().remove(0);
        // The second repetition is slower overall; its slow answers are judged by its own fastest.
        let measure = |repetition: u32, usual: f64| {
            let sample = |at: usize| {
                let waited = if at % 10 == 9 { usual * 9.0 } else { 0.0 };
                json!({"at_s": at as f64 / 100.0, "rtt_us": usual + waited, "context": {
                    "timer_late_us": 0.0, "server_wait_us": waited, "server_run_us": usual / 2.0, "client_wait_us": 0.0,
                    "retransmitted": 0, "load_percent": if waited > 0.0 { 90.0 } else { 10.0 }, "server_known": true,
                }})
            };
            let document = json!({"samples": (0..50).map(sample).collect::<Vec<_>>()});
            Measurement::from_document("cgw-outliers", condition.clone(), repetition, document)
        };
        let mut outcome = Outcome::default();
        Outliers.evaluate(&[measure(0, 100.0), measure(1, 700.0)], &mut outcome);
        // Network, samples, slow, run queue.
        assert_eq!(outcome.grids[0].rows[0][2..6], ["loopback", "100", "10", "10"].map(str::to_owned));
        let correlated = &outcome.grids[2].rows[0];
        assert_eq!((correlated[4].as_str(), correlated[5].as_str()), ("10", "1.00"));
        assert_eq!(outcome.findings[0].holds, Some(true), "{:?}", outcome.findings);
        assert_eq!(outcome.charts.len(), 1);
    }

    #[test]
    fn retransmission_is_distinguished_from_other_delay() {
        let mut load = LoadSpec::new(Kind::Probe);
        load.rate = Some(100.0.into());
        let mut scenario = Scenario::new("cgw-outliers", load);
        scenario.link = Some(LOSSY.to_owned());
        let condition = scenario.conditions().remove(0);
        let findings = |again: u64| {
            let sample = |at: usize| {
                let is_late = at % 10 == 9;
                json!({"at_s": at as f64 / 100.0, "rtt_us": if is_late { 200_500.0 } else { 500.0 }, "context": {
                    "timer_late_us": 60.0, "server_wait_us": 0.0, "server_run_us": 20.0, "client_wait_us": 0.0,
                    "retransmitted": if is_late { again } else { 0 }, "load_percent": 10.0, "server_known": true,
                }})
            };
            let document = json!({"samples": (0..50).map(sample).collect::<Vec<_>>()});
            let one = Measurement::from_document("cgw-outliers", condition.clone(), 0, document);
            let mut outcome = Outcome::default();
            Outliers.evaluate(&[one], &mut outcome);
            outcome.findings
        };
        let [lost] = &findings(1)[..] else { panic!() };
        assert!(lost.holds == Some(true) && lost.evidence.contains("5 of 5; 5 segments"), "{lost:?}");
        let [late] = &findings(0)[..] else { panic!() };
        assert!(late.holds.is_none() && late.evidence.contains("a relay"), "{late:?}");
    }
}
