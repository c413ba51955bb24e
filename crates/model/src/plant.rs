//! Checks whether the nodes of a plant fit their hardware, using a cost model.

mod changes;

pub use changes::Change;

use crate::cpu::{Model, Observation};
use crate::document::{Document, DocumentError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A plant as described in a file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plant {
    /// Name.
    pub name: String,
    /// Kinds of hardware.
    #[serde(default, rename = "hardware")]
    pub hardware: Vec<Hardware>,
    /// Kinds of nodes.
    #[serde(rename = "node")]
    pub nodes: Vec<Node>,
}

/// A kind of hardware.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// Name that nodes refer to.
    pub name: String,
    /// Path of a cost model for this hardware, relative to the plant's file, as written by `taktwerk model fit -o`
    /// after a `lab calibrate`. Nothing is scaled then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<String>,
    /// How many times slower one of its cores is than one of the model's machine. Without it, the hardware is the
    /// model's machine.
    #[serde(default = "one")]
    pub slower: f64,
    /// Memory available to the server, in megabytes.
    #[serde(default = "plenty")]
    pub memory_mb: f64,
    /// Rate of the network, in Mbit/s.
    #[serde(default = "fast_ethernet")]
    pub network_mbit: f64,
    /// CPU available to the server, in percent of one core. Burger et al. 2019 observed missed cycles above 75.
    #[serde(default = "three_quarters")]
    pub cpu_percent: f64,
}

fn one() -> f64 {
    1.0
}
fn plenty() -> f64 {
    512.0
}
fn fast_ethernet() -> f64 {
    100.0
}
fn three_quarters() -> f64 {
    75.0
}
fn single() -> u32 {
    1
}

impl Default for Hardware {
    fn default() -> Self {
        Self {
            name: "the model's machine".to_owned(),
            calibration: None,
            slower: one(),
            memory_mb: plenty(),
            network_mbit: fast_ethernet(),
            cpu_percent: three_quarters(),
        }
    }
}

impl Hardware {
    /// The first key with a contradiction or an invalid value, and the problem.
    fn problem(&self) -> Option<(&'static str, String)> {
        let figures = [
            ("slower", self.slower),
            ("memory_mb", self.memory_mb),
            ("network_mbit", self.network_mbit),
            ("cpu_percent", self.cpu_percent),
        ];
        if let Some((key, figure)) = figures.into_iter().find(|(_, figure)| !is_positive(*figure)) {
            return Some((key, format!("{figure}: it must be a positive number")));
        }
        (self.calibration.is_some() && self.is_scaled()).then(|| {
            ("slower", "with a calibration nothing is scaled: remove either slower or calibration".to_owned())
        })
    }

    /// Whether it is a different machine than the model's.
    fn is_scaled(&self) -> bool {
        (self.slower - 1.0).abs() > 1e-9
    }
}

/// A kind of node: a server with its load.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Number of these nodes.
    #[serde(default = "single")]
    pub count: u32,
    /// Monitored values over all connections.
    pub points: f64,
    /// Connections, each with one subscription.
    pub clients: f64,
    /// Publishing interval in milliseconds.
    pub interval_ms: f64,
    /// Share of the points that change in each interval.
    #[serde(default = "one")]
    pub changing: f64,
    /// Whether messages are signed and encrypted.
    #[serde(default)]
    pub encrypted: bool,
    /// Name of its hardware; the model's machine if missing.
    #[serde(default)]
    pub hardware: Option<String>,
}

/// An invalid plant.
#[derive(Debug, thiserror::Error)]
pub enum PlantError {
    /// It cannot be parsed.
    #[error("{0}")]
    Document(#[from] DocumentError),
    /// It has no nodes.
    #[error("{file} has no [[node]]: describe at least one")]
    Empty {
        /// Name of the file.
        file: String,
    },
    /// Hardware is described twice, a node refers to unknown hardware, or a value is invalid.
    #[error("{place}: {problem}")]
    Value {
        /// File, line and key.
        place: String,
        /// The problem and its correction.
        problem: String,
    },
}

/// A demand and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Need {
    /// Expected demand.
    pub expected: f64,
    /// 90 % interval of the demand.
    pub interval90: (f64, f64),
    /// Limit.
    pub limit: f64,
}

impl Need {
    /// Share of the limit at the upper end of the interval.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.interval90.1 / self.limit.max(1e-9)
    }
}

/// All demands of a node.
struct Needs {
    cpu: Need,
    memory: Option<Need>,
    network: Option<Need>,
}

impl Needs {
    fn all(&self) -> impl Iterator<Item = (&'static str, Need)> {
        let optional = [("memory", self.memory), ("network", self.network)];
        let known = optional.into_iter().filter_map(|(name, need)| need.map(|need| (name, need)));
        std::iter::once(("CPU", self.cpu)).chain(known)
    }

    /// The demand nearest to its limit, and its share of the limit.
    fn nearest(&self) -> (&'static str, f64) {
        let shares = self.all().map(|(name, need)| (name, need.share()));
        shares.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("CPU", self.cpu.share()))
    }
}

/// Whether a node's load fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within the limits, also at the upper end of the interval.
    Fits,
    /// Within the limits as expected, but not at the upper end.
    Tight,
    /// Beyond a limit as expected.
    DoesNotFit,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Tight => "tight",
            Self::DoesNotFit => "does not fit",
        }
    }
}

/// The result for a kind of node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sized {
    /// The node.
    pub node: Node,
    /// CPU, percent of one core.
    pub cpu: Need,
    /// Memory in megabytes; `None` if the model has no measurements of it.
    pub memory: Option<Need>,
    /// Bandwidth in Mbit/s; `None` if the model has no measurements of it.
    pub network: Option<Need>,
    /// Whether it fits.
    pub verdict: Verdict,
    /// The demand that reaches its limit first.
    pub first_limit: &'static str,
    /// Factor for the points at which that limit is reached. `None` if not within a factor of [`FAR`]; zero if even a
    /// fraction of 1/[`FAR`] of the points is too much.
    pub headroom: Option<f64>,
    /// The three cheapest changes.
    pub changes: Vec<Change>,
    /// How the load is outside the range of the model's measurements.
    pub outside: Vec<String>,
    /// Whether figures were scaled from the model's machine to another one.
    pub scaled: bool,
}

/// Maximum factor considered for the headroom.
const FAR: f64 = 1_000.0;

impl Plant {
    /// Parses a plant. `file` is used in messages.
    ///
    /// # Errors
    /// With file, line and key.
    pub fn parse(text: &str, file: &str) -> Result<Self, PlantError> {
        Self::read(&Document::parse(text, file, &[])?)
    }

    /// Reads a plant from a document, which can have replaced values.
    ///
    /// # Errors
    /// With file, line and key, or the option that replaced a value.
    pub fn read(document: &Document) -> Result<Self, PlantError> {
        let plant: Self = document.read()?;
        if plant.nodes.is_empty() {
            return Err(PlantError::Empty { file: document.file().to_owned() });
        }
        let wrong =
            |key: &str, problem: String| Err(PlantError::Value { place: document.place(key), problem });
        for (at, hardware) in plant.hardware.iter().enumerate() {
            if let Some((key, problem)) = hardware.problem() {
                return wrong(&format!("hardware.{at}.{key}"), problem);
            }
            if plant.hardware.iter().take(at).any(|earlier| earlier.name == hardware.name) {
                let problem = format!("{:?} is described twice: remove one description", hardware.name);
                return wrong(&format!("hardware.{at}.name"), problem);
            }
        }
        for (at, node) in plant.nodes.iter().enumerate() {
            if let Some((key, problem)) = node.problem(&plant.hardware) {
                return wrong(&format!("node.{at}.{key}"), problem);
            }
        }
        Ok(plant)
    }

    /// Hardware with its own calibration: its position, its name and the file.
    pub fn calibrations(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        let all = self.hardware.iter().enumerate();
        all.filter_map(|(at, one)| Some((at, one.name.as_str(), one.calibration.as_deref()?)))
    }

    /// Whether there are nodes on hardware without its own calibration.
    #[must_use]
    pub fn needs_a_model(&self) -> bool {
        self.nodes.iter().any(|node| self.hardware_of(node).calibration.is_none())
    }

    /// Sizes every node, with the model of its hardware's own calibration or else with `model`.
    #[must_use]
    pub fn size(&self, model: &Model, calibrated: &BTreeMap<String, Model>) -> Vec<Sized> {
        let sized = |node: &Node| {
            let hardware = self.hardware_of(node);
            size(node, &hardware, calibrated.get(&hardware.name).unwrap_or(model))
        };
        self.nodes.iter().map(sized).collect()
    }

    fn hardware_of(&self, node: &Node) -> Hardware {
        let named = node.hardware.as_ref();
        let found = named.and_then(|name| self.hardware.iter().find(|hardware| hardware.name == *name));
        found.cloned().unwrap_or_default()
    }
}

fn is_positive(figure: f64) -> bool {
    figure > 0.0 && figure.is_finite()
}

impl Node {
    /// The first key with an invalid value, and the problem.
    fn problem(&self, hardware: &[Hardware]) -> Option<(&'static str, String)> {
        let figures = [("points", self.points), ("clients", self.clients), ("interval_ms", self.interval_ms)];
        if let Some((key, figure)) = figures.into_iter().find(|(_, figure)| !is_positive(*figure)) {
            return Some((key, format!("{figure}: it must be a positive number")));
        }
        if self.count == 0 {
            return Some(("count", "it must be at least 1: otherwise remove the node".to_owned()));
        }
        if !(0.0..=1.0).contains(&self.changing) {
            return Some(("changing", format!("{} is not a share from 0 to 1", self.changing)));
        }
        let unknown = self.hardware.as_ref().filter(|name| hardware.iter().all(|one| one.name != **name))?;
        let problem = format!("{unknown:?} is not described: add [[hardware]] with this name");
        Some(("hardware", problem))
    }
}

fn load(node: &Node) -> Observation {
    let mut load = Observation::planned(node.points, node.clients, node.interval_ms, node.encrypted);
    load.signals_per_s *= node.changing;
    load
}

fn cpu(node: &Node, hardware: &Hardware, model: &Model) -> Need {
    let predicted = model.predict(&load(node));
    let (low, high) = predicted.interval90;
    Need {
        expected: predicted.cpu_percent * hardware.slower,
        interval90: (low * hardware.slower, high * hardware.slower),
        limit: hardware.cpu_percent,
    }
}

fn size(node: &Node, hardware: &Hardware, model: &Model) -> Sized {
    let needs = needs(node, hardware, model);
    let (first_limit, headroom) = first_limit(node, hardware, model);
    let all = |holds: &dyn Fn(&Need) -> bool| needs.all().all(|(_, need)| holds(&need));
    let verdict = if all(&|need| need.share() <= 1.0) {
        Verdict::Fits
    } else if all(&|need| need.expected <= need.limit) {
        Verdict::Tight
    } else {
        Verdict::DoesNotFit
    };
    Sized {
        node: node.clone(),
        cpu: needs.cpu,
        memory: needs.memory,
        network: needs.network,
        verdict,
        first_limit,
        headroom,
        changes: changes::changes(node, hardware, model, first_limit),
        outside: model.outside(&load(node)),
        scaled: hardware.is_scaled(),
    }
}

/// The demands of a node and their limits.
fn needs(node: &Node, hardware: &Hardware, model: &Model) -> Needs {
    let around = |expected: f64, (low, high): (f64, f64), limit: f64| Need {
        expected,
        interval90: (expected * low, expected * high),
        limit,
    };
    let memory = model.memory(node.points, node.clients);
    let network = model.wire(&load(node));
    Needs {
        cpu: cpu(node, hardware, model),
        memory: memory.map(|bytes| around(bytes / 1e6, model.memory_ratio90, hardware.memory_mb)),
        network: network.map(|bytes| around(bytes * 8.0 / 1e6, model.wire_ratio90, hardware.network_mbit)),
    }
}

/// The demand that reaches its limit first when points are added, and the factor for the points; without one within
/// [`FAR`] times, the nearest demand. Idle cost does not grow with the points.
fn first_limit(node: &Node, hardware: &Hardware, model: &Model) -> (&'static str, Option<f64>) {
    let grown = |times: f64| Node { points: node.points * times, ..node.clone() };
    let at = |times: f64| needs(&grown(times), hardware, model).nearest();
    let (mut low, mut high) = (1.0 / FAR, FAR);
    let (name, share) = at(high);
    if share <= 1.0 {
        return (name, None);
    }
    let (name, share) = at(low);
    if share > 1.0 {
        return (name, Some(0.0));
    }
    // Accurate to 0.1 %.
    while high / low > 1.001 {
        let middle = (low * high).sqrt();
        if at(middle).1 > 1.0 { high = middle } else { low = middle }
    }
    (at(high).0, Some(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::tests_support::synthetic_model;

    const TEXT: &str = r#"
        name = "case 1"
        [[hardware]]
        name = "small"
        slower = 100
        memory_mb = 64
        [[node]]
        name = "controller"
        count = 2
        points = 3000
        clients = 4
        interval_ms = 100
        hardware = "small"
        [[node]]
        name = "FCI"
        points = 750
        clients = 2
        interval_ms = 100
    "#;

    #[test]
    fn nodes_are_sized_and_changes_are_suggested() {
        let plant = Plant::parse(TEXT, "x").unwrap();
        let sized = plant.size(&synthetic_model(), &BTreeMap::new());
        let [controller, fci] = &sized[..] else { panic!() };
        // 0.3 + 30 000 · 0.4e-4 + 40 · 20e-4 = 1.58 %, a hundred times slower: exceeds the limit.
        assert!((controller.cpu.expected - 158.0).abs() < 10.0, "{:?}", controller.cpu);
        assert_eq!((controller.verdict, controller.first_limit), (Verdict::DoesNotFit, "CPU"));
        assert!(controller.scaled && controller.changes.len() == 3);
        // About a third of the points: 0.3 + 0.08 % are constant.
        let headroom = controller.headroom.unwrap();
        assert!((0.2..0.4).contains(&headroom), "{headroom}");
        assert_eq!((fci.verdict, fci.scaled), (Verdict::Fits, false));
        let headroom = fci.headroom.unwrap();
        assert!((200.0..260.0).contains(&headroom) && fci.changes[0].fits, "{headroom}");
    }

    #[test]
    fn limits_exceeded_without_points_are_reported() {
        let plant = Plant::parse(&TEXT.replace("slower = 100", "slower = 1_000"), "x").unwrap();
        let sized = plant.size(&synthetic_model(), &BTreeMap::new());
        // Idle cost and forty messages per second: 380 % of a core.
        assert_eq!((sized[0].first_limit, sized[0].headroom), ("CPU", Some(0.0)));
    }

    #[test]
    fn calibrated_hardware_is_not_scaled() {
        let text = TEXT.replace("slower = 100", "calibration = \"small.json\"");
        let plant = Plant::parse(&text, "x").unwrap();
        assert_eq!(plant.calibrations().collect::<Vec<_>>(), [(0, "small", "small.json")]);
        // The other node is on the model's machine.
        assert!(plant.needs_a_model());
        let all = text.replace("clients = 2\n", "clients = 2\n        hardware = \"small\"\n");
        assert!(!Plant::parse(&all, "x").unwrap().needs_a_model());
        let slow: Vec<Observation> = crate::cpu::tests_support::synthetic()
            .into_iter()
            .map(|one| Observation { cpu_percent: one.cpu_percent * 20.0, ..one })
            .collect();
        let slow = BTreeMap::from([("small".to_owned(), Model::new("own", &slow).unwrap())]);
        let sized = plant.size(&synthetic_model(), &slow);
        assert!((sized[0].cpu.expected / 31.6 - 1.0).abs() < 0.1 && !sized[0].scaled, "{:?}", sized[0].cpu);
        assert!(sized[1].cpu.expected < 1.0);
    }

    #[test]
    fn mistakes_are_reported() {
        let error =
            Plant::parse(&TEXT.replace("hardware = \"small\"", "hardware = \"tiny\""), "x").unwrap_err();
        assert!(error.to_string().contains("not described"), "{error}");
        assert!(Plant::parse(&TEXT.replace("points", "pionts"), "x").is_err());
        let error = Plant::parse(&TEXT.replace("memory_mb = 64", "memory_mb = 0"), "x").unwrap_err();
        assert!(error.to_string().contains("must be a positive number"), "{error}");
        for (line, wrong, place, hint) in [
            (
                "slower = 100",
                "slower = 100\ncalibration = \"small.json\"",
                "x:5: hardware.0.slower: ",
                "nothing is scaled",
            ),
            (
                "slower = 100",
                "slower = 100\n[[hardware]]\nname = \"small\"",
                "x:7: hardware.1.name: ",
                "twice",
            ),
            ("memory_mb = 64", "network_mbit = 0", "x:6: hardware.0.network_mbit: ", "positive"),
            ("count = 2", "count = 0", "x:9: node.0.count: ", "at least 1"),
            ("clients = 2", "clients = 2\nchanging = 2.0", "x:18: node.1.changing: ", "from 0 to 1"),
            ("hardware = \"small\"", "hardware = \"tiny\"", "x:13: node.0.hardware: ", "not described"),
        ] {
            let error = Plant::parse(&TEXT.replace(line, wrong), "x").unwrap_err().to_string();
            assert!(error.starts_with(place) && error.contains(hint), "{error}");
        }
        let error = Plant::parse("name = \"x\"\nnode = []", "empty.toml").unwrap_err().to_string();
        assert!(error.contains("empty.toml has no [[node]]"), "{error}");
        for clients in ["0", "-1", "inf", "nan"] {
            let text = TEXT.replace("clients = 4", &format!("clients = {clients}"));
            assert!(Plant::parse(&text, "x").is_err(), "{clients}");
        }
    }
}
