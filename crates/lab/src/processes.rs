//! Tables and charts of the processes of a server: itself, its child processes such as adapters, and the network.

use crate::chart::{Axis, Chart, Mark, Point, Series};
use crate::measurement::{Group, Measurement};
use crate::outcome::{Grid, interval};
use crate::statistics::Repeated;
use taktwerk_load::result::{OfProcess, Profile, Profiled};

/// The name of the network.
const NETWORK: &str = "network";
/// The sum of all processes.
const TOTAL: &str = "total";
/// Child processes that are drawn separately; the others are one part.
const CHILDREN_MAX: usize = 5;
const OTHERS: &str = "other processes";
/// Loads that are drawn over time.
const LOADS_MAX: usize = 6;

/// The profile of a measurement; `None` if it has none.
#[must_use]
pub fn profile(measurement: &Measurement) -> Option<Profile> {
    measurement.part::<Profiled>()?.profile
}

/// The profiles of all valid repetitions.
#[must_use]
pub fn profiles(group: &Group<'_>) -> Vec<Profile> {
    group.valid.iter().filter_map(|one| profile(one)).collect()
}

/// A figure of the profile of each repetition.
#[must_use]
pub fn repeated(group: &Group<'_>, figure: impl Fn(&Profile) -> Option<f64>) -> Option<Repeated> {
    Repeated::new(profiles(group).iter().filter_map(figure).collect())
}

/// The names of the processes in all profiles: the server first.
fn names(profiles: &[Profile]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in profiles.iter().flat_map(Profile::in_order) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// CPU, memory and context switches of each process, the network and the total; `None` without profiles. Loads have the
/// given names.
#[must_use]
pub fn grid(title: &str, groups: &[(String, &Group<'_>)]) -> Option<Grid> {
    let columns =
        ["load", "process", "CPU %", "memory MB", "voluntary switches/s", "involuntary switches/s", "starts"];
    let mut grid = Grid::new(title, 2, &columns);
    for (label, group) in groups {
        let profiles = profiles(group);
        let cells = |of: &dyn Fn(&Profile) -> Option<f64>| {
            interval(Repeated::new(profiles.iter().filter_map(of).collect()).as_ref())
        };
        let mut row = |name: &str, of: &dyn Fn(&Profile) -> Option<OfProcess>| {
            let figure = |what: fn(&OfProcess, f64) -> f64| {
                cells(&|profile| of(profile).map(|process| what(&process, profile.window_s.max(1e-9))))
            };
            grid.row([
                label.clone(),
                name.to_owned(),
                figure(|process, _| process.cpu_percent),
                figure(|process, _| process.rss_bytes / 1e6),
                figure(|process, seconds| process.voluntary_switches / seconds),
                figure(|process, seconds| process.involuntary_switches / seconds),
                figure(|process, _| process.starts as f64),
            ]);
        };
        for name in names(&profiles) {
            row(&name, &|profile| profile.processes.get(&name).cloned());
        }
        if !profiles.is_empty() {
            row(TOTAL, &|profile| Some(profile.total.clone()));
        }
        if profiles.iter().any(|profile| profile.network_percent.is_some()) {
            let cpu = cells(&|profile| profile.network_percent);
            let none = || "–".to_owned();
            grid.row([label.clone(), NETWORK.to_owned(), cpu, none(), none(), none(), none()]);
        }
    }
    (!grid.rows.is_empty()).then_some(grid)
}

/// The parts of a stack: the server, its child processes, and the network.
struct Parts {
    /// Processes that are drawn separately.
    named: Vec<String>,
    has_others: bool,
    has_network: bool,
}

impl Parts {
    fn of(profiles: &[Profile]) -> Self {
        let mut named = names(profiles);
        let has_others = named.len() > CHILDREN_MAX + 1;
        named.truncate(CHILDREN_MAX + 1);
        let has_network = profiles.iter().any(|profile| profile.network_percent.is_some());
        Self { named, has_others, has_network }
    }

    fn names(&self) -> Vec<String> {
        let others = self.has_others.then(|| OTHERS.to_owned());
        let network = self.has_network.then(|| NETWORK.to_owned());
        self.named.iter().cloned().chain(others).chain(network).collect()
    }

    /// A value of each part; `of` is that of a process.
    fn sizes(&self, profile: &Profile, of: &dyn Fn(&OfProcess) -> f64, network: f64) -> Vec<f64> {
        let value = |name: &String| profile.processes.get(name).map_or(0.0, of);
        let mut sizes: Vec<f64> = self.named.iter().map(value).collect();
        if self.has_others {
            sizes.push((of(&profile.total) - sizes.iter().sum::<f64>()).max(0.0));
        }
        sizes.extend(self.has_network.then_some(network));
        sizes
    }
}

/// CPU of the processes as stacked bars, one for each load; and of the first repetition of each of the first six loads
/// over time: the CPU as stacked areas, context switches and memory as lines.
#[must_use]
pub fn charts(title: &str, groups: &[(String, &Group<'_>)]) -> Vec<Chart> {
    let all: Vec<(&String, Vec<Profile>)> = groups
        .iter()
        .map(|(label, group)| (label, profiles(group)))
        .filter(|(_, all)| !all.is_empty())
        .collect();
    let every: Vec<Profile> = all.iter().flat_map(|(_, profiles)| profiles.iter().cloned()).collect();
    let parts = Parts::of(&every);
    let mean = |profiles: &[Profile]| {
        let mut sums = vec![0.0; parts.names().len()];
        for profile in profiles {
            let network = profile.network_percent.unwrap_or_default();
            let sizes = parts.sizes(profile, &|process| process.cpu_percent, network);
            sums.iter_mut().zip(sizes).for_each(|(sum, size)| *sum += size / profiles.len() as f64);
        }
        sums
    };
    let bars = all.iter().map(|(label, profiles)| ((*label).clone(), mean(profiles))).collect();
    let mut charts = Chart::stacks_apart(
        title,
        "Each bar is a load; its parts are the processes. 'network' is the time in interrupts of the whole machine, and \
         the emulated link with its VPN.",
        &Axis::linear("CPU, % of one core"),
        &parts.names(),
        bars,
    );
    charts.retain(|chart| !chart.is_empty());
    for (label, profiles) in all.iter().take(LOADS_MAX) {
        if let Some(first) = profiles.first() {
            charts.push(cpu_over_time(&format!("{title} over time: {label}"), first));
            let lines = [
                ("Context switches", "context switches per second", switches(first)),
                ("Memory", "resident memory, MB", memory(first)),
            ];
            for (what, axis, lines) in lines {
                let reading = "First repetition. Each line is a process of the server.";
                let axes = (Axis::linear("time, s"), Axis::linear(axis));
                charts.extend(Chart::lines_apart(
                    &format!("{what} over time: {label}"),
                    reading,
                    axes,
                    lines,
                ));
            }
        }
    }
    charts
}

/// The CPU over time as areas on top of each other.
fn cpu_over_time(title: &str, profile: &Profile) -> Chart {
    let parts = Parts::of(std::slice::from_ref(profile));
    let names = parts.names();
    let mut bands: Vec<Vec<Point>> = vec![Vec::new(); names.len()];
    let mut tops = Vec::new();
    for (at, x) in profile.at_s.iter().enumerate() {
        let value = |process: &OfProcess| process.over_time.cpu_percent.get(at).copied().unwrap_or_default();
        let network = profile.network_percents.get(at).copied().unwrap_or_default();
        let mut below = 0.0;
        for (band, size) in bands.iter_mut().zip(parts.sizes(profile, &value, network)) {
            band.push(Point { x: *x, y: below + size, interval: Some((below, below + size)) });
            below += size;
        }
        tops.push(Point::new(*x, below));
    }
    let band = |(colour, (name, band)): (usize, (String, Vec<Point>))| {
        // The line makes a thin area visible.
        let line = band.iter().map(|point| Point::new(point.x, point.y)).collect();
        let line = Series { name: name.clone(), mark: Mark::Line(line), colour };
        [Series { name, mark: Mark::Band(band), colour }, line]
    };
    let series = names.into_iter().zip(bands).enumerate().flat_map(band).collect();
    Chart::plane(
        title,
        "First repetition. The areas are on top of each other: the upper edge is the sum of all processes and the network.",
        Axis::linear("time, s"),
        Axis::linear("CPU, % of one core"),
        series,
    )
}

/// A value over time of a process as a line.
fn line(profile: &Profile, values: &[f64], divisor: f64) -> Vec<Point> {
    profile.at_s.iter().zip(values).map(|(x, value)| Point::new(*x, value / divisor)).collect()
}

/// Voluntary and involuntary switches of the processes that are drawn separately.
fn switches(profile: &Profile) -> Vec<(String, Vec<Point>)> {
    let of = |(name, process): (&str, &OfProcess)| {
        let (voluntary, involuntary) =
            (&process.over_time.voluntary_per_s, &process.over_time.involuntary_per_s);
        [
            (format!("{name}, voluntary"), line(profile, voluntary, 1.0)),
            (format!("{name}, involuntary"), line(profile, involuntary, 1.0)),
        ]
    };
    profile.in_order().take(CHILDREN_MAX + 1).flat_map(of).collect()
}

/// Memory of the same processes, and the total.
fn memory(profile: &Profile) -> Vec<(String, Vec<Point>)> {
    let all = profile.in_order().take(CHILDREN_MAX + 1).chain([(TOTAL, &profile.total)]);
    all.map(|(name, process)| (name.to_owned(), line(profile, &process.over_time.rss_bytes, 1e6))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Content;
    use crate::measurement::group;
    use crate::scenario::{Kind, LoadSpec, Scenario};
    use serde_json::json;
    use taktwerk_load::result::{Document, Series as OverTime};

    fn of(cpu: f64) -> OfProcess {
        OfProcess {
            starts: 1,
            cpu_s: cpu / 50.0,
            cpu_percent: cpu,
            rss_bytes: 5e6,
            voluntary_switches: 20.0,
            involuntary_switches: 2.0,
            over_time: OverTime {
                cpu_percent: vec![cpu, cpu],
                rss_bytes: vec![5e6, 5e6],
                voluntary_per_s: vec![10.0, 10.0],
                involuntary_per_s: vec![1.0, 1.0],
            },
        }
    }

    /// A server with 40 %, and adapters with 2 % each.
    fn measured(adapters: usize, repetition: u32) -> Measurement {
        let condition = Scenario::new("x", LoadSpec::new(Kind::Read)).conditions().remove(0);
        let names = (0..adapters).map(|number| (format!("adapter-{number}"), of(2.0)));
        let processes = names.chain([(Profile::SERVER.to_owned(), of(40.0))]).collect();
        let total = of(40.0 + 2.0 * adapters as f64);
        let profile = Profile {
            window_s: 2.0,
            at_s: vec![1.0, 2.0],
            processes,
            total,
            network_percent: Some(3.0),
            network_percents: vec![3.0, 3.0],
        };
        let mut document = Document::from(json!({}));
        document.add(&Profiled { profile: Some(profile) });
        Measurement::from_document("x", condition, repetition, document)
    }

    #[test]
    fn the_table_has_each_process_the_total_and_the_network() {
        let all = [measured(2, 0), measured(2, 1)];
        let groups = group(&all);
        let labelled = [("a load with a name of some length, over a network".to_owned(), &groups[0])];
        let grid = grid("t", &labelled).unwrap();
        let names: Vec<&str> = grid.rows.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(names, ["server", "adapter-0", "adapter-1", "total", "network"]);
        assert_eq!(grid.rows[3][2], "44.0 ± 0");
        assert_eq!((grid.rows[0][4].as_str(), grid.rows[4][3].as_str()), ("10.0 ± 0", "–"));
        let outcome = crate::outcome::Outcome { grids: vec![grid], ..Default::default() };
        assert!(outcome.text().lines().all(|line| line.chars().count() <= 100), "{}", outcome.text());
        let plain = [Measurement::failed("x", all[0].condition.clone(), 0, "x".into())];
        assert!(super::grid("t", &[(String::new(), &group(&plain)[0])]).is_none());
    }

    #[test]
    fn areas_lie_on_top_of_each_other_and_many_adapters_are_combined() {
        for (adapters, parts) in [(2, 4), (30, 8)] {
            let all = [measured(adapters, 0)];
            let groups = group(&all);
            let charts = charts("CPU by process", &[("one".to_owned(), &groups[0])]);
            let Content::Stack { parts: names, bars, .. } = &charts[0].content else { panic!("no bars") };
            assert_eq!((names.len(), bars.len()), (parts, 1));
            let sum: f64 = bars[0].1.iter().sum();
            assert!((sum - (43.0 + 2.0 * adapters as f64)).abs() < 1e-9, "{sum}");
            let Content::Plane { series, .. } = &charts[1].content else { panic!("no areas") };
            let tops: Vec<f64> = series.iter().map(|one| one.mark.points()[0].y).collect();
            assert!(tops.is_sorted() && (tops.last().unwrap() - sum).abs() < 1e-9, "{tops:?}");
            assert_eq!(charts[1].legend().len(), parts);
            assert!(charts[2..].iter().any(|chart| chart.title.starts_with("Memory over time")));
        }
        assert!(charts("t", &[]).is_empty());
    }
}
