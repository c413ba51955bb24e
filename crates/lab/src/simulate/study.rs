//! A file as cases to simulate.

use super::{capacity, convert, figures, spec};
use crate::scenario::{CpuCondition, Threshold, key_of_threshold};
use taktwerk_model::host::HostProfile;
use taktwerk_model::tune::document::{Document, DocumentError};
use taktwerk_model::tune::problem::ProblemError;
use taktwerk_sim::scenario::Scenario;

/// The parts of the simulator's own files.
const PARTS: [&str; 5] = ["server", "client", "publisher", "subscriber", "broker"];

/// One combination of everything that varies.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// What tells it from the others.
    pub label: String,
    /// What is simulated.
    pub scenario: Scenario,
    /// What else runs on the server's CPU, if a profile is given.
    pub cpu: CpuCondition,
}

/// What a file asks for.
#[derive(Debug, Clone)]
pub struct Study {
    /// What it is called.
    pub name: String,
    /// What is simulated, one by one.
    pub cases: Vec<Case>,
    /// What must hold.
    pub thresholds: Vec<Threshold>,
    /// What the user should know.
    pub notes: Vec<String>,
    document: Document,
}

/// A file that cannot be simulated. Each error names the place: file, line and key, or the option.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// It cannot be read.
    #[error("{0}")]
    Document(#[from] DocumentError),
    /// It is a plant of `taktwerk tune` with a mistake.
    #[error("{0}")]
    Plant(#[from] ProblemError),
    /// A value makes no sense.
    #[error("{place}: {problem}")]
    Value {
        /// Where.
        place: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// It is none of the files that are known.
    #[error(
        "{file} describes no plant: write [[server]] and [[client]], or [[publisher]] and [[subscriber]] (docs/simulator.md), \
         [load] (a scenario of the laboratory), [[node]] (a plant of `taktwerk size`) or [[signals]] (a plant of `taktwerk tune`)"
    )]
    Unknown {
        /// Which file.
        file: String,
    },
}

/// Where profiles come from: the name that stands in the file to the profile.
pub type Profiles<'a> = &'a dyn Fn(&str) -> Result<HostProfile, String>;

/// What the command line adds to a file.
pub struct Options<'a> {
    /// `--set key=value`.
    pub sets: Vec<String>,
    /// Reads the profiles that a file names.
    pub profiles: Profiles<'a>,
    /// The machine of all servers and clients that have none.
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

/// What a reader makes of a file.
pub(super) struct Parts {
    pub(super) name: String,
    pub(super) cases: Vec<Case>,
    pub(super) thresholds: Vec<Threshold>,
    pub(super) notes: Vec<String>,
}

impl Study {
    /// Reads a file. `file` is for messages.
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
            convert::of_tune(text, file, &document, &options.sets)?
        } else if has_array("node") {
            convert::of_plant(text, file, &document)?
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
        for case in &study.cases {
            if let Some((key, problem)) = capacity::problem(&case.scenario) {
                return Err(study.at(&key, &problem));
            }
            for Threshold { metric, below, above, .. } in &study.thresholds {
                let problem = figures::unknown(&case.scenario, metric);
                let has_none = below.is_none() && above.is_none();
                let problem = problem.or(has_none.then(|| "a threshold needs below or above".to_owned()));
                if let Some(problem) = problem {
                    return Err(study.at(&key_of_threshold(&study.document, metric), &problem));
                }
            }
        }
        Ok(study)
    }

    /// An error at a key.
    #[must_use]
    pub fn at(&self, key: &str, problem: &dyn core::fmt::Display) -> StudyError {
        StudyError::Value { place: self.document.place(key), problem: problem.to_string() }
    }
}
