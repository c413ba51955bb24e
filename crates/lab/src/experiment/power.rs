//! Morato et al. 2021, Table X: energy and time of many reads, with the CPU governor on and off.

use super::{Experiment, Plan, Wish, conditions, is_less, published, shown, stack_name, time, valid_groups};
use crate::energy::Energy;
use crate::figures;
use crate::measurement::{Group, Measurement};
use crate::outcome::{Grid, Outcome, maybe};
use crate::scenario::{Kind, LoadSpec, Scenario};
use crate::statistics::Repeated;
use taktwerk_load::result::Figure;

pub(super) static ALL: [&dyn Experiment; 1] = [&Power];

struct Power;

/// Reads of a session in the paper.
const SESSION: f64 = 100_000.0;
/// The link of the paper.
const LINK: &str = "wifi-802.11g";

fn scenario(quick: bool, governor: Option<String>) -> Scenario {
    let mut load = LoadSpec::new(Kind::Read);
    load.count = Some(if quick { 1_000 } else { 100_000 });
    let mut scenario = Scenario::new("morato-power", load);
    scenario.server.signals = 1;
    scenario.server.update_ms = 1_000.0;
    scenario.cpu.governor = governor;
    scenario.time = if quick { time(0.2, 1.0, 2) } else { time(2.0, 1.0, 5) };
    scenario
}

/// The same machine and server with only one read per second: the idle baseline.
fn idle(quick: bool, governor: Option<String>) -> Scenario {
    let mut scenario = scenario(quick, governor);
    scenario.load.count = None;
    scenario.load.pause_ms = Some(1_000.0);
    scenario.time.duration_s = if quick { 2.5 } else { 60.0 };
    scenario
}

/// Whether a group is the idle machine.
fn is_idle(group: &Group<'_>) -> bool {
    group.condition.pause_ms.is_some()
}

/// A figure of a group, scaled to the paper's session of 100 000 reads.
fn per_session(group: &Group<'_>, figure: Figure) -> Option<f64> {
    let reads = group.mean(Figure::LATENCY_UNCORRECTED_COUNT).filter(|reads| *reads > 0.0)?;
    Some(group.mean(figure)? / reads * SESSION)
}

/// The time of such a session in each repetition, in seconds.
fn completion(group: &Group<'_>) -> Option<Repeated> {
    let each = group.valid.iter().filter_map(|one| {
        let reads = one.get(Figure::LATENCY_UNCORRECTED_COUNT).filter(|reads| *reads > 0.0)?;
        Some(one.get(Figure::WINDOW_S)? / reads * SESSION)
    });
    Repeated::new(each.collect())
}

impl Experiment for Power {
    fn id(&self) -> &'static str {
        "morato-power"
    }
    fn question(&self) -> &'static str {
        "What do 100 000 reads cost in energy and time, with the CPU governor on and off?"
    }
    fn source(&self) -> &'static str {
        "Morato et al. 2021, Table X: 0.4175 A and 236 s with the governor, 0.4767 A and 215 s without"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let mut plan = Plan::default();
        let governors = wish.place.governors();
        // The governors of this machine, including the one without power saving. If none can be set, the machine's own.
        let mut wanted: Vec<Option<String>> = governors.into_iter().map(Some).collect();
        if wanted.is_empty() {
            plan.skipped.push(
                "the governor cannot be set on this machine (it needs root, and virtual machines usually have none): \
                 measured without changing it"
                    .to_owned(),
            );
            wanted.push(None);
        }
        if let Err(error) = Energy::begin() {
            plan.skipped.push(error.to_string());
        }
        let is_linked = match wish.place.know_link(LINK) {
            Ok(()) => true,
            Err(error) => {
                plan.skipped.push(error.to_string());
                false
            }
        };
        for governor in wanted {
            let mut scenarios = [scenario(wish.quick, governor.clone()), idle(wish.quick, governor)];
            scenarios.iter_mut().for_each(|one| one.link = is_linked.then(|| LINK.to_owned()));
            plan.conditions.extend(conditions(wish, scenarios.into()));
        }
        plan
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut grid = Grid::new(
            "100 000 reads over Wi-Fi, and the idle machine",
            3,
            &[
                "stack",
                "governor",
                "load",
                "completion s",
                "CPU %",
                "processor J",
                "processor W",
                "supply A",
                "supply J",
            ],
        );
        for group in &groups {
            let watts =
                group.mean(Figure::ENERGY_J_PACKAGE).zip(group.mean(Figure::WINDOW_S)).map(|(j, s)| j / s);
            let session = |figure: Figure| maybe(per_session(group, figure).filter(|_| !is_idle(group)));
            grid.row([
                stack_name(&group.condition.stack).to_owned(),
                group.condition.cpu.governor.clone().unwrap_or_else(|| "unchanged".to_owned()),
                if is_idle(group) { "idle" } else { "reads" }.to_owned(),
                session(Figure::WINDOW_S),
                shown(group, Figure::SERVER_CPU_PERCENT),
                session(Figure::ENERGY_J_PACKAGE),
                maybe(watts),
                maybe(group.mean(Figure::SUPPLY_AMPERE)),
                session(Figure::SUPPLY_JOULE),
            ]);
        }
        for (governor, name) in [("enabled", "on"), ("disabled", "off")] {
            if let Some((ampere, seconds, idle)) = published::morato_power(governor) {
                let joule = ampere * 5.0 * seconds;
                grid.row([
                    "open62541 (published)".to_owned(),
                    name.to_owned(),
                    "reads".to_owned(),
                    figures::number(seconds),
                    maybe(None),
                    maybe(None),
                    maybe(None),
                    figures::number(ampere),
                    figures::number(joule),
                ]);
                let unknown = || maybe(None);
                grid.row([
                    "open62541 (published)".to_owned(),
                    name.to_owned(),
                    "idle".to_owned(),
                    unknown(),
                    unknown(),
                    unknown(),
                    unknown(),
                    figures::number(idle),
                    unknown(),
                ]);
            }
        }
        outcome.grids.push(grid);
        let of = |is_fast: bool| {
            let group = groups.iter().find(|group| {
                let governor = group.condition.cpu.governor.as_deref();
                group.condition.stack == "own"
                    && !is_idle(group)
                    && governor.is_some_and(|it| (it == "performance") == is_fast)
            });
            group.and_then(completion)
        };
        if let (Some(with), Some(without)) = (of(false), of(true)) {
            outcome.finding(
                "without the governor's power saving, the same reads take less time",
                is_less(&without, &with),
                format!(
                    "{} s without, {} s with (published: 215 s and 236 s)",
                    figures::number(without.median),
                    figures::number(with.median)
                ),
            );
        }
        outcome.remark(
            "Processor: RAPL, for the whole package with everything that runs on it. Supply: from a record of the \
             current (lab report --current FILE --volts V; each line has seconds since 1970 and amperes). Comparable: \
             the ratio between both governors in time and energy. Not comparable: joules of a server processor and of \
             a whole Raspberry Pi.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn energy_and_time_are_those_of_a_hundred_thousand_reads() {
        let measure = |governor: &str, window: f64, joules: f64| {
            let condition = scenario(true, Some(governor.to_owned())).conditions().remove(0);
            let document = json!({
                "window_s": window, "energy_j": {"package": joules}, "latency": {"uncorrected": {"count": 1_000}},
            });
            Measurement::from_document("morato-power", condition, 0, document)
        };
        let mut outcome = Outcome::default();
        let all = [measure("performance", 2.0, 10.0), measure("powersave", 3.5, 9.0)];
        Power.evaluate(&all, &mut outcome);
        let rows = &outcome.grids[0].rows;
        assert_eq!(rows.len(), 6);
        let fast = rows.iter().find(|row| row[1] == "performance").unwrap();
        assert_eq!((fast[3].as_str(), fast[5].as_str(), fast[6].as_str()), ("200", "1\u{202f}000", "5.00"));
        assert_eq!(outcome.findings[0].holds, Some(true));
        assert!(
            rows[2][0].contains("published") && rows[3][2] == "idle" && rows[3][7] == "0.393",
            "{rows:?}"
        );
        let waiting = idle(true, None).conditions().remove(0);
        let document = json!({"window_s": 2.0, "latency": {"uncorrected": {"count": 2}}});
        let mut outcome = Outcome::default();
        Power.evaluate(&[Measurement::from_document("morato-power", waiting, 0, document)], &mut outcome);
        assert_eq!(outcome.grids[0].rows[0][2..4], ["idle".to_owned(), "–".to_owned()]);
    }
}
