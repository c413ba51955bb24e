//! Suggests changes for a node: the smallest change of each kind that makes it fit.

use super::{Hardware, Needs, Node, needs};
use crate::cpu::Model;
use serde::Serialize;

/// A change that reduces a node's demand.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Description.
    pub what: String,
    /// CPU after the change, in percent of one core.
    pub cpu_percent: f64,
    /// Memory after the change in megabytes; `None` if the model has no measurements of it.
    pub memory_mb: Option<f64>,
    /// Bandwidth after the change in Mbit/s; `None` if the model has no measurements of it.
    pub network_mbit: Option<f64>,
    /// The decisive demand: the one nearest to its limit after the change; for a node that fits already, the one that
    /// reaches its limit first.
    pub nearest: &'static str,
    /// Share of that limit at the upper end of the interval.
    pub share: f64,
    /// Whether the node fits after the change: no share is above one.
    pub fits: bool,
}

/// Maximum number of suggested changes.
const NAMED: usize = 3;
/// Changes that gain less than 1 % are ignored.
const GAIN: f64 = 0.99;

/// One kind of change, from its smallest to its largest step: description, and the node and hardware after it.
type Steps = Vec<(String, Node, Hardware)>;

/// All kinds, ordered by effort: changes of the load first, then new hardware.
fn kinds(node: &Node, hardware: &Hardware) -> Vec<Steps> {
    let same = || (node.clone(), hardware.clone());
    let of_node = |what: String, node: Node| (what, node, hardware.clone());
    let intervals = [2.0, 5.0, 10.0].map(|times| {
        let interval_ms = node.interval_ms * times;
        // In a longer interval, more of the points change at least once: all except those that do not change in any of
        // the shorter intervals.
        let changing = 1.0 - (1.0 - node.changing).powf(times);
        of_node(format!("publish every {interval_ms} ms"), Node { interval_ms, changing, ..same().0 })
    });
    let shares = [("half", 0.5), ("a quarter", 0.25), ("a tenth", 0.1)].map(|(name, share)| {
        let what = format!("report {name} of the values (set a deadband, or remove unused points)");
        of_node(what, Node { changing: node.changing * share, ..same().0 })
    });
    let mut fewer = Vec::new();
    let mut clients = node.clients;
    while clients > 1.0 {
        clients = (clients / 2.0).ceil();
        let plural = if clients > 1.0 { "s" } else { "" };
        let what = format!("{clients} connection{plural} (an aggregating server for the others)");
        fewer.push(of_node(what, Node { clients, ..same().0 }));
    }
    let nodes = [("two", 2.0), ("three", 3.0), ("five", 5.0), ("ten", 10.0)].map(|(name, count)| {
        of_node(format!("{name} nodes instead of one"), Node { points: node.points / count, ..same().0 })
    });
    let better = |what: String, change: &dyn Fn(&mut Hardware)| {
        let (node, mut hardware) = same();
        change(&mut hardware);
        (what, node, hardware)
    };
    let cpus = [2.0, 4.0, 8.0]
        .map(|times| better(format!("a CPU {times} times as fast"), &|hardware| hardware.slower /= times));
    let memory = [2.0, 4.0, 8.0].map(|times| {
        let what = format!("{} MB of memory", hardware.memory_mb * times);
        better(what, &|hardware| hardware.memory_mb *= times)
    });
    let networks = [10.0, 100.0].map(|times| {
        let what = format!("a network of {} Mbit/s", hardware.network_mbit * times);
        better(what, &|hardware| hardware.network_mbit *= times)
    });
    vec![intervals.into(), shares.into(), fewer, nodes.into(), memory.into(), networks.into(), cpus.into()]
}

/// Number of [`kinds`] that change the load; the others change hardware.
const OF_LOAD: usize = 4;

/// The three best changes. First those that make the node fit, the easiest first; otherwise the most effective ones.
/// For a node that fits already, the smallest step of each change of the load, with its effect on the limit that is
/// reached first.
pub(super) fn changes(node: &Node, hardware: &Hardware, model: &Model, first: &'static str) -> Vec<Change> {
    let before = needs(node, hardware, model);
    let is_fine = before.nearest().1 <= 1.0;
    let decides = |needs: &Needs| {
        let of_first = needs.all().find(|(name, _)| *name == first).filter(|_| is_fine);
        of_first.map_or_else(|| needs.nearest(), |(name, need)| (name, need.share()))
    };
    let (_, now) = decides(&before);
    let change = |(what, node, hardware): &(String, Node, Hardware)| {
        let needs = needs(node, hardware, model);
        let (nearest, share) = decides(&needs);
        let fits = needs.nearest().1 <= 1.0;
        let Needs { cpu, memory, network } = needs;
        Change {
            what: what.clone(),
            cpu_percent: cpu.expected,
            memory_mb: memory.map(|need| need.expected),
            network_mbit: network.map(|need| need.expected),
            nearest,
            share,
            fits,
        }
    };
    let best = |steps: Steps| {
        let all: Vec<Change> = steps.iter().map(change).filter(|one| one.share < now * GAIN).collect();
        all.iter().find(|one| one.fits).or(all.last()).cloned()
    };
    let kinds = kinds(node, hardware).into_iter().take(if is_fine { OF_LOAD } else { usize::MAX });
    let mut changes: Vec<Change> = kinds.filter_map(best).collect();
    if changes.iter().any(|change| change.fits) {
        changes.sort_by_key(|change| !change.fits);
    } else {
        changes.sort_by(|a, b| a.share.total_cmp(&b.share));
    }
    changes.truncate(NAMED);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::tests_support::synthetic_model;

    fn node() -> Node {
        Node {
            name: "x".into(),
            count: 1,
            points: 3_000.0,
            clients: 4.0,
            interval_ms: 100.0,
            changing: 1.0,
            encrypted: false,
            hardware: None,
        }
    }

    /// 20 MB, 1 kB per item, 10 kB per client; 30 B per signal, 400 B per message.
    fn model() -> Model {
        let mut model = synthetic_model();
        model.memory = vec![20e6, 1e3, 1e4];
        model.wire = vec![30.0, 400.0];
        (model.memory_ratio90, model.wire_ratio90) = ((1.0, 1.0), (1.0, 1.0));
        model
    }

    fn texts(changes: &[Change]) -> Vec<&str> {
        changes.iter().map(|change| change.what.as_str()).collect()
    }

    #[test]
    fn suggestions_depend_on_the_limit() {
        // 7.3 Mbit/s: a faster CPU does not help, and halving the connections has almost no effect.
        let slow = Hardware { network_mbit: 4.0, ..Hardware::default() };
        let found = changes(&node(), &slow, &model(), "network");
        assert!(found.iter().all(|change| change.fits && change.share <= 1.0), "{found:?}");
        let expected = [
            "publish every 200 ms",
            "report half of the values (set a deadband, or remove unused points)",
            "two nodes instead of one",
        ];
        assert_eq!(texts(&found), expected);
        // 23.04 MB, of which 20 MB are idle cost: only memory helps.
        let tight = Hardware { memory_mb: 15.0, ..Hardware::default() };
        let found = changes(&node(), &tight, &model(), "memory");
        assert_eq!(found[0].what, "30 MB of memory");
        assert!(found[0].fits && found.iter().skip(1).all(|change| !change.fits), "{found:?}");
        assert_eq!(found[0].memory_mb.map(f64::round), Some(23.0));
    }

    #[test]
    fn the_smallest_sufficient_step_is_suggested() {
        // 1.58 % of a core, a hundred times slower, with a limit of 75 %.
        let small = Hardware { slower: 100.0, ..Hardware::default() };
        let found = changes(&node(), &small, &model(), "CPU");
        assert!(texts(&found).contains(&"publish every 500 ms"), "{found:?}");
        assert!(found.iter().all(|change| change.nearest == "CPU" && change.fits), "{found:?}");
        // If nothing is sufficient, the most effective change comes first.
        let smaller = Hardware { slower: 5_000.0, ..Hardware::default() };
        let found = changes(&node(), &smaller, &model(), "CPU");
        assert!(found.iter().all(|change| !change.fits), "{found:?}");
        assert!(found.is_sorted_by(|a, b| a.share <= b.share), "{found:?}");
    }

    #[test]
    fn in_a_longer_interval_more_of_the_points_change() {
        let node = Node { changing: 0.1, ..node() };
        let steps = kinds(&node, &Hardware::default()).remove(0);
        let rate = |node: &Node| node.points * node.changing / node.interval_ms;
        let rates: Vec<f64> = steps.iter().map(|(_, after, _)| rate(after) / rate(&node)).collect();
        // 19 % of the points change in two intervals, 41 % in five, 65 % in ten.
        let expected = [0.19 / 0.2, 0.409_51 / 0.5, 0.651_321_559_9 / 1.0];
        assert!(
            rates.iter().zip(expected).all(|(rate, expected)| (rate - expected).abs() < 1e-9),
            "{rates:?}"
        );
    }

    #[test]
    fn nodes_that_fit_get_suggestions_for_their_first_limit() {
        // Memory is nearest to its limit, but no change of the load affects it; more points reach the network's limit
        // first.
        let found =
            changes(&node(), &Hardware { memory_mb: 30.0, ..Hardware::default() }, &model(), "network");
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].what, "publish every 200 ms");
        assert!(found.iter().all(|change| change.nearest == "network" && change.fits), "{found:?}");
        let still = Node { points: 0.001, clients: 1.0, ..node() };
        let found = changes(&still, &Hardware::default(), &model(), "CPU");
        assert!(found.iter().all(|change| !change.what.starts_with("report")), "{found:?}");
    }
}
