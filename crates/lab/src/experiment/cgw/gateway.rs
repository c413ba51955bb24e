//! The gateway with its adapters at work: which process uses the CPU, over time.

use super::with_adapters;
use crate::experiment::{Plan, Wish, all_hold, is_below, is_less, is_under, network_name, published};
use crate::figures;
use crate::measurement::Group;
use crate::outcome::{Grid, Outcome, interval, maybe};
use crate::processes;
use crate::scenario::{Kind, LoadSpec, Scenario, TimeSpec};
use crate::statistics::{Repeated, mean};
use taktwerk_load::result::{Figure, Profile};

/// The networks of the paper's Figures 9 and 8, with their names in Table II, and none.
const NETWORKS: [(Option<&str>, &str); 3] =
    [(None, ""), (Some(ETHERNET), "Ethernet-VPN"), (Some(WIFI), "WiFi-VPN")];
const ETHERNET: &str = "ethernet-100m+vpn";
const WIFI: &str = "wifi-802.11g+vpn";
/// What "nearly the whole CPU load" in the paper means here.
const NEARLY_ALL: f64 = 0.9;

/// Adds the loads: test case C, 30 nodes per Read without pauses, as in the figures.
pub(super) fn add(wish: &Wish<'_>, time: &TimeSpec, plan: &mut Plan) {
    if !wish.stacks.iter().any(|stack| stack == "own") {
        return;
    }
    for (link, _) in NETWORKS {
        // The short form has only the networks of the figures.
        if wish.quick && link.is_none() {
            continue;
        }
        if let Some(Err(error)) = link.map(|link| wish.place.know_link(link)) {
            plan.skipped.push(error.to_string());
            continue;
        }
        let mut load = LoadSpec::new(Kind::Read);
        load.batch = Some(30.into());
        let mut scenario = Scenario::new("cgw-profile", load);
        // The server publishes its profile, as the paper's gateway does.
        scenario.server.profile = true;
        scenario.link = link.map(str::to_owned);
        scenario.time = time.clone();
        if wish.quick {
            scenario.time.duration_s = 1.0;
        }
        plan.conditions.extend(scenario.conditions().into_iter().map(with_adapters));
    }
}

/// CPU of the server's own process.
fn server(profile: &Profile) -> Option<f64> {
    Some(profile.processes.get(Profile::SERVER)?.cpu_percent)
}

/// CPU of all adapters; `None` on a kernel that does not list child processes.
fn adapters(profile: &Profile) -> Option<f64> {
    (profile.processes.len() > 1).then_some(profile.total.cpu_percent - server(profile)?)
}

/// The server's share of the CPU of all processes. Without the network: it is emulated on this machine, for both ends.
fn share(profile: &Profile) -> Option<f64> {
    adapters(profile)?;
    Some(server(profile)? / profile.total.cpu_percent.max(1e-9))
}

/// Standard deviation of the CPU of all processes over time, relative to its mean. Without the network: the time in
/// interrupts is counted in steps of ten milliseconds, which are large in a short interval.
fn variation(profile: &Profile) -> Option<f64> {
    let values = &profile.total.over_time.cpu_percent;
    let middle = mean(values)?;
    let squares: Vec<f64> = values.iter().map(|value| (value - middle).powi(2)).collect();
    (middle > 0.0).then_some(mean(&squares)?.sqrt() / middle)
}

/// Tables, charts and findings of the loads with adapters.
pub(super) fn evaluate(groups: &[Group<'_>], outcome: &mut Outcome) {
    if groups.is_empty() {
        return;
    }
    let label = |group: &Group<'_>| network_name(group.condition.link.as_deref()).to_owned();
    let labelled: Vec<(String, &Group<'_>)> = groups.iter().map(|group| (label(group), group)).collect();
    outcome.grids.extend(beside_the_paper(groups));
    outcome.grids.extend(processes::grid(
        "Processes of the gateway: mean CPU in % of one core, memory and context switches",
        &labelled,
    ));
    outcome.charts.extend(processes::charts("CPU by process of the gateway", &labelled));
    let of = |link: &str| groups.iter().find(|group| group.condition.link.as_deref() == Some(link));
    most_is_the_servers(groups, outcome);
    if let Some(share) = of(ETHERNET).and_then(|group| processes::repeated(group, share)) {
        outcome.finding(
            "over Ethernet with a VPN, the server takes nearly the whole load of the processes (at least 90 %)",
            is_under(&share, NEARLY_ALL).map(|is_less| !is_less),
            format!("{} % of all processes", figures::number(share.median * 100.0)),
        );
    }
    if let (Some(ethernet), Some(wifi)) = (of(ETHERNET), of(WIFI)) {
        let varied = [ethernet, wifi].map(|group| processes::repeated(group, variation));
        if let [Some(ethernet), Some(wifi)] = varied {
            outcome.finding(
                "the load of the processes varies more over Wi-Fi with a VPN than over Ethernet with a VPN",
                is_less(&ethernet, &wifi),
                format!(
                    "standard deviation over time {} % of the mean, and {} %",
                    figures::number(wifi.median * 100.0),
                    figures::number(ethernet.median * 100.0)
                ),
            );
        }
    }
    accounts_agree(groups, outcome);
}

/// The published number of Reads per second: one after the other, each taking the mean of test case C.
fn published_rate(network: &str) -> Option<f64> {
    let [mean_ms, ..] = published::cgw_rtd(network, "C")?;
    Some(1e3 / mean_ms)
}

/// The paper prints its profiles as figures without numbers, so its statements stand beside our shares.
fn beside_the_paper(groups: &[Group<'_>]) -> Option<Grid> {
    let mut grid = Grid::new(
        "Load of the gateway with adapters at work (test case C), measured and published",
        2,
        &[
            "network",
            "server's share in the paper",
            "Reads/s",
            "1/(paper's mean)",
            "server CPU %",
            "adapters CPU %",
            "network CPU %",
            "server, % of processes",
        ],
    );
    for group in groups {
        let link = group.condition.link.as_deref();
        let network = NETWORKS.iter().find(|(known, _)| *known == link).map_or("", |(_, name)| *name);
        let said = match network {
            "Ethernet-VPN" => "nearly all",
            "WiFi-VPN" => "most",
            _ => "–",
        };
        let percent =
            |figure: fn(&Profile) -> Option<f64>| interval(processes::repeated(group, figure).as_ref());
        grid.row([
            network_name(link).to_owned(),
            said.to_owned(),
            interval(group.metric(Figure::PER_SECOND).as_ref()),
            maybe(published_rate(network)),
            percent(server),
            percent(adapters),
            percent(|profile| profile.network_percent),
            percent(|profile| Some(share(profile)? * 100.0)),
        ]);
    }
    (!grid.rows.is_empty()).then_some(grid)
}

/// The paper's main statement about its figures.
fn most_is_the_servers(groups: &[Group<'_>], outcome: &mut Outcome) {
    let mut evidence = Vec::new();
    let mut verdicts = Vec::new();
    for group in groups {
        let figures = [server, adapters].map(|of| processes::repeated(group, of));
        let [Some(server), Some(adapters)] = figures else { continue };
        verdicts.push(is_below(Some(&adapters), Some(&server)));
        evidence.push(format!(
            "{}: {} and {} % of a core",
            network_name(group.condition.link.as_deref()),
            figures::number(server.median),
            figures::number(adapters.median)
        ));
    }
    if !evidence.is_empty() {
        outcome.finding(
            "the server takes more CPU than all adapters together",
            all_hold(verdicts),
            evidence.join("; "),
        );
    }
}

/// Two accounts of the server's process: the sum over time, and the difference between both ends of the window, which
/// the load generator reads.
fn accounts_agree(groups: &[Group<'_>], outcome: &mut Outcome) {
    let off = |group: &Group<'_>| -> Vec<f64> {
        let each = group.valid.iter().filter_map(|one| {
            let over_time = server(&processes::profile(one)?)?;
            Some((over_time / one.get(Figure::SERVER_CPU_PERCENT)?.max(1e-9) - 1.0).abs())
        });
        each.collect()
    };
    let all: Vec<f64> = groups.iter().flat_map(off).collect();
    if let Some(all) = Repeated::new(all) {
        outcome.finding(
            "the account of the server over time agrees with that of the whole window within 5 %",
            is_under(&all, 0.05),
            format!(
                "median {} % apart in {} measurements",
                figures::number(all.median * 100.0),
                all.values.len()
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{Measurement, group};
    use crate::place::Place;
    use serde_json::{Value, json};
    use taktwerk_load::result::{Document, OfProcess, Profiled, Series};

    fn of(cpu: &[f64]) -> OfProcess {
        let cpu_percent = mean(cpu).unwrap();
        let over_time = Series { cpu_percent: cpu.to_vec(), ..Series::default() };
        OfProcess { cpu_percent, over_time, ..OfProcess::default() }
    }

    /// Two repetitions for each network, in which the server's process has this CPU over time.
    fn measured(
        server: fn(Option<&str>) -> Vec<f64>,
        adapter: f64,
        per_second: fn(Option<&str>) -> f64,
    ) -> Outcome {
        let place = Place::new("/bin/true".into(), "/none".into());
        let wish = Wish { quick: false, stacks: vec!["own".into()], place: &place };
        let mut plan = Plan::default();
        add(&wish, &TimeSpec::default(), &mut plan);
        assert_eq!(plan.conditions.len(), 3, "{:?}", plan.skipped);
        let mut all = Vec::new();
        for (condition, repetition) in
            plan.conditions.into_iter().flat_map(|one| [(one.clone(), 0), (one, 1)])
        {
            let link = condition.link.as_deref();
            let values = server(link);
            let sum: Vec<f64> = values.iter().map(|value| value + 2.0 * adapter).collect();
            let adapters = ["adapter-1", "adapter-2"].map(|name| (name.to_owned(), of(&[adapter; 4])));
            let wobble = 1.0 + 0.001 * f64::from(repetition);
            let profile = Profile {
                window_s: 4.0,
                at_s: vec![1.0, 2.0, 3.0, 4.0],
                processes: adapters.into_iter().chain([("server".to_owned(), of(&values))]).collect(),
                total: of(&sum),
                network_percent: Some(1.0 * wobble),
                network_percents: vec![1.0; 4],
            };
            let cpu: Value = json!({"cpu_percent": mean(&values)});
            let mut document =
                Document::from(json!({"server": cpu, "per_second": per_second(link) * wobble}));
            document.add(&Profiled { profile: Some(profile) });
            all.push(Measurement::from_document("cgw-profile", condition, repetition, document));
        }
        let mut outcome = Outcome::default();
        evaluate(&group(&all), &mut outcome);
        outcome
    }

    fn verdicts(outcome: &Outcome) -> Vec<Option<bool>> {
        outcome.findings.iter().map(|finding| finding.holds).collect()
    }

    #[test]
    fn a_gateway_like_the_papers_fulfils_all_claims_and_another_one_none() {
        let like = measured(
            |link| {
                if link == Some(WIFI) { vec![60.0, 90.0, 30.0, 60.0] } else { vec![60.0, 61.0, 59.0, 60.0] }
            },
            1.0,
            |link| if link == Some(WIFI) { 57.0 } else { 135.0 },
        );
        assert_eq!(verdicts(&like), [Some(true); 4], "{:?}", like.findings);
        let text = like.text();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("nearly all") && text.contains("135"), "{text}");
        assert_eq!(like.charts.iter().filter(|chart| chart.title.contains("over time")).count(), 9);
        // The adapters take most, and the load over Ethernet varies.
        let unlike = measured(
            |link| if link == Some(WIFI) { vec![9.0, 9.1, 8.9, 9.0] } else { vec![9.0, 15.0, 3.0, 9.0] },
            20.0,
            |link| if link == Some(WIFI) { 900.0 } else { 135.0 },
        );
        let [rest @ .., agree] = &verdicts(&unlike)[..] else { panic!() };
        assert_eq!((rest, agree), (&[Some(false); 3][..], &Some(true)), "{:?}", unlike.findings);
    }

    /// Interrupts are counted in steps of 10 ms: 10 % of a core in an interval of 100 ms, or none.
    #[test]
    fn steps_of_the_clock_are_no_variation() {
        let mut profile = Profile { total: of(&[20.0; 10]), ..Profile::default() };
        profile.network_percents = (0..10).map(|at| if at % 2 == 0 { 10.0 } else { 0.0 }).collect();
        assert_eq!(variation(&profile), Some(0.0));
    }

    /// Without a list of child processes, nothing is known of the adapters.
    #[test]
    fn a_profile_without_adapters_decides_nothing() {
        let processes = [("server".to_owned(), of(&[60.0; 4]))].into();
        let profile = Profile { processes, total: of(&[60.0; 4]), ..Profile::default() };
        assert_eq!((adapters(&profile), share(&profile), server(&profile)), (None, None, Some(60.0)));
    }

    #[test]
    fn other_stacks_have_no_adapters() {
        let place = Place::new("/bin/true".into(), "/none".into());
        let wish = Wish { quick: true, stacks: vec!["milo".into()], place: &place };
        let mut plan = Plan::default();
        add(&wish, &TimeSpec::default(), &mut plan);
        assert!(plan.conditions.is_empty());
        let mut outcome = Outcome::default();
        evaluate(&[], &mut outcome);
        assert_eq!(outcome, Outcome::default());
    }
}
