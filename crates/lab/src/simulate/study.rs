//! Reads a file as cases to simulate.

use super::{capacity, convert, endless, figures, spec};
use crate::scenario::{CpuCondition, ScenarioError, Threshold, key_of_threshold, wrong_threshold};
use taktwerk_model::document::{Document, DocumentError};
use taktwerk_model::host::HostProfile;
use taktwerk_model::plant::PlantError;
use taktwerk_model::tune::problem::ProblemError;
use taktwerk_sim::scenario::{RunError, Scenario, check};

/// The sections of the simulator's own files.
const PARTS: [&str; 5] = ["server", "client", "publisher", "subscriber", "broker"];

/// One combination of all factors.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Label that distinguishes it from other cases.
    pub label: String,
    /// The simulation.
    pub scenario: Scenario,
    /// Condition of the server's CPU, if a host profile is given.
    pub cpu: CpuCondition,
}

/// The simulations that a file describes.
#[derive(Debug, Clone)]
pub struct Study {
    /// Name.
    pub name: String,
    /// Cases, simulated one by one.
    pub cases: Vec<Case>,
    /// Limits for figures.
    pub thresholds: Vec<Threshold>,
    /// Notes for the user, such as parts that were left out.
    pub notes: Vec<String>,
    document: Document,
}

/// A file that cannot be simulated. Each error names the position: file, line and key, or the option.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// It cannot be parsed.
    #[error("{0}")]
    Document(#[from] DocumentError),
    /// A scenario of the laboratory is invalid.
    #[error("{0}")]
    Scenario(#[from] ScenarioError),
    /// A plant of `taktwerk tune` is invalid.
    #[error("{0}")]
    Problem(#[from] ProblemError),
    /// A plant of `taktwerk size` is invalid.
    #[error("{0}")]
    Plant(#[from] PlantError),
    /// A value is invalid.
    #[error("{place}: {problem}")]
    Value {
        /// Position.
        place: String,
        /// The mistake and its correction.
        problem: String,
    },
    /// The kind of file is unknown.
    #[error(
        "{file} does not describe a plant: write [[server]] and [[client]], or [[publisher]] and [[subscriber]] \
         (docs/simulator.md), [load] (a scenario of the laboratory), [[node]] (a plant of `taktwerk size`) or \
         [[signals]] (a plant of `taktwerk tune`)"
    )]
    Unknown {
        /// Name of the file.
        file: String,
    },
}

/// Reads a host profile by the name used in the file.
pub type Profiles<'a> = &'a dyn Fn(&str) -> Result<HostProfile, String>;

/// Options of the command line.
pub struct Options<'a> {
    /// `--set key=value`.
    pub sets: Vec<String>,
    /// Reads the host profiles that the file names.
    pub profiles: Profiles<'a>,
    /// Host profile for all servers and clients without a machine.
    pub profile: Option<HostProfile>,
}

impl core::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Options")
            .field("sets", &self.sets)
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

/// The content of a file.
pub(super) struct Parts {
    pub(super) name: String,
    pub(super) cases: Vec<Case>,
    pub(super) thresholds: Vec<Threshold>,
    pub(super) notes: Vec<String>,
}

impl Study {
    /// Parses a file. `file` is used in messages.
    ///
    /// # Errors
    /// [`StudyError`], with file, line and key.
    pub fn parse(text: &str, file: &str, options: &Options<'_>) -> Result<Self, StudyError> {
        let document = Document::parse(text, file, &options.sets)?;
        let table = document.table();
        let has_array = |key: &str| table.get(key).is_some_and(toml::Value::is_array);
        let mut parts = if table.contains_key("load") {
            convert::of_laboratory(&document)?
        } else if PARTS.iter().any(|part| has_array(part)) {
            spec::read(&document, options.profiles)?
        } else if has_array("signals") {
            convert::of_tune(text, &document, file, options)?
        } else if has_array("node") {
            convert::of_plant(&document)?
        } else {
            return Err(StudyError::Unknown { file: file.to_owned() });
        };
        for case in &mut parts.cases {
            if let Some(profile) = &options.profile {
                convert::place(&mut case.scenario, profile, case.cpu);
            }
        }
        let study = Self {
            name: parts.name,
            cases: parts.cases,
            thresholds: parts.thresholds,
            notes: parts.notes,
            document,
        };
        if let Some((key, problem)) = wrong_threshold(&study.thresholds) {
            return Err(study.at(&key, &problem));
        }
        for case in &study.cases {
            // First, because a wrong value can look like a link without capacity.
            if let Err(RunError::Invalid { key, problem }) = check(&case.scenario) {
                return Err(study.at(&key, &problem));
            }
            if let Some((at, problem)) = endless::problem(&case.scenario) {
                return Err(study.at(&study.pause_of(at), &problem));
            }
            if let Some((key, problem)) = capacity::problem(&case.scenario) {
                return Err(study.at(&key, &problem));
            }
            for Threshold { metric, .. } in &study.thresholds {
                if let Some(problem) = figures::unknown(&case.scenario, metric) {
                    return Err(study.at(&key_of_threshold(&study.document, metric), &problem));
                }
            }
        }
        Ok(study)
    }

    /// The key of the pause of a group of clients, or their kind if the file does not have it.
    fn pause_of(&self, at: usize) -> String {
        let table = self.document.table();
        let (load, name) = match table.get("load") {
            Some(load) => (Some(load), "load".to_owned()),
            None => (table.get("client").and_then(|clients| clients.get(at)), format!("client.{at}")),
        };
        let has_pause = load.is_some_and(|load| load.get("pause_ms").is_some());
        format!("{name}.{}", if has_pause { "pause_ms" } else { "kind" })
    }

    /// The key in the file. Files with one link have it as `link`, not as the first of `[[link]]`. Nodes have the link of
    /// their hardware.
    fn key(&self, key: &str) -> String {
        let field = key.strip_prefix("link.").and_then(|rest| rest.split_once('.'));
        if let Some(node) = field.and_then(|(at, _)| self.node(at.parse().ok()?)) {
            return node;
        }
        let has_links = self.document.table().get("link").and_then(toml::Value::as_array);
        let has_links = has_links.is_some_and(|links| links.iter().all(toml::Value::is_table));
        match key.strip_prefix("link.0.") {
            Some(field) if !has_links => format!("link.{field}"),
            _ => key.to_owned(),
        }
    }

    /// The key of the network of a node, if the file has nodes.
    fn node(&self, at: usize) -> Option<String> {
        let table = self.document.table();
        let node = table.get("node")?.get(at)?;
        let of_node = || Some(format!("node.{at}.hardware"));
        let Some(name) = node.get("hardware") else { return of_node() };
        let hardware = table.get("hardware").and_then(toml::Value::as_array);
        let found = hardware?.iter().position(|one| one.get("name") == Some(name));
        found.map_or_else(of_node, |found| Some(format!("hardware.{found}.network_mbit")))
    }

    /// An error at a key.
    #[must_use]
    pub fn at(&self, key: &str, problem: &dyn core::fmt::Display) -> StudyError {
        // Machines that the file does not describe have the profile of the command line.
        if key.starts_with("host.") && self.document.table().get("host").is_none() {
            return StudyError::Value { place: "--host-profile".to_owned(), problem: problem.to_string() };
        }
        StudyError::Value { place: self.document.place(&self.key(key)), problem: problem.to_string() }
    }
}
