//! Host profiles: the processor time that the work of a server or client needs on a machine. `taktwerk lab calibrate`
//! writes the file.
//!
//! A [`HostProfile`] is data: nanoseconds per counter of `Work`, per kind of slow job and per turn of a driver, and the
//! machine and build of the measurement. The simulator and the headroom of the running server use it. They also check
//! the names of counters, which are not known here.

mod cost;

pub use cost::Cost;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use taktwerk_explain::{Mistake, key_span, line_of};

/// Version of the file format.
pub const FORMAT: u32 = 1;

/// A host profile cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The text is not a profile.
    #[error("not a host profile: line {line}: {0}", line = .0.line)]
    Syntax(Mistake),
    /// It was written by another version.
    #[error(
        "format = {found}: this version reads format {FORMAT}. Measure again with `taktwerk lab calibrate --host`"
    )]
    Format {
        /// The version in the file.
        found: u32,
    },
    /// A value is invalid.
    #[error("{key} = {value}: {must}")]
    Value {
        /// Its key.
        key: String,
        /// The value.
        value: String,
        /// The valid values.
        must: &'static str,
    },
    /// It was measured with another build.
    #[error(
        "the profile was measured with version {found} ({target}), this is {own}. Run `taktwerk lab calibrate --host` again"
    )]
    Build {
        /// The profile's version.
        found: String,
        /// The profile's target.
        target: String,
        /// This version.
        own: String,
    },
    /// It was measured on another machine.
    #[error(
        "the profile was measured on {found}, this machine has {own}. Run `taktwerk lab calibrate --host` here"
    )]
    Machine {
        /// The profile's processor.
        found: String,
        /// This one's.
        own: String,
    },
}

impl ProfileError {
    /// The message with its position in the file: `pi.toml:12: build.version: …`. `text` is the file's content.
    #[must_use]
    pub fn within(&self, file: &dyn core::fmt::Display, text: &str) -> String {
        let at = |key: &str| match key_span(text, key) {
            Some(span) => format!("{file}:{}", line_of(text, span.start)),
            None => file.to_string(),
        };
        match self {
            Self::Syntax(mistake) => format!("{}; this is not a host profile", mistake.within(file)),
            Self::Format { .. } => format!("{}: {self}", at("format")),
            // The message begins with the key.
            Self::Value { key, .. } => format!("{}: {self}", at(key)),
            Self::Build { .. } => format!("{}: build.version: {self}", at("build.version")),
            Self::Machine { .. } => format!("{}: machine.cpu: {self}", at("machine.cpu")),
        }
    }
}

/// The machine of the measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineFacts {
    /// The processor's name.
    pub cpu: String,
    /// Number of processors of the system.
    pub cores: u32,
    /// Kernel release.
    #[serde(default)]
    pub kernel: String,
}

/// The build used for the measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildFacts {
    /// The version.
    pub version: String,
    /// Architecture and system.
    pub target: String,
}

/// Scheduling by the operating system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SchedulerCosts {
    /// Time from waking a thread until it runs on an idle processor, in nanoseconds.
    pub wake: Cost,
    /// The same after the processor has slept for `asleep`; `wake` if missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_asleep: Option<Cost>,
    /// Idle time after which a processor sleeps and its caches are cold, in nanoseconds.
    pub asleep: f64,
    /// Idle time after which it has lost all of its caches, in nanoseconds.
    pub deep: f64,
    /// Time slice of a thread on a processor that other threads wait for, in nanoseconds.
    pub slice: f64,
    /// Factor between the cost of one piece of work and its mean.
    pub noise: Cost,
}

impl Default for SchedulerCosts {
    fn default() -> Self {
        let (wake, noise) = (Cost::Fixed(0.0), Cost::Fixed(1.0));
        Self { wake, wake_asleep: None, asleep: 4e6, deep: 1e8, slice: 3e6, noise }
    }
}

/// Costs that replace those of the same name behind the laboratory's emulator of links, which runs on the same
/// processor just before and after. Not for links between two machines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmulatedCosts {
    /// Replaces entries of `server`.
    pub server: BTreeMap<String, f64>,
    /// Replaces entries of `client`.
    pub client: BTreeMap<String, f64>,
}

impl EmulatedCosts {
    fn is_empty(&self) -> bool {
        self.server.is_empty() && self.client.is_empty()
    }
}

/// Costs of a host, in nanoseconds of processor time unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostProfile {
    /// [`FORMAT`].
    pub format: u32,
    /// Display name.
    pub name: String,
    /// How and when it was measured, or that it was not measured.
    pub source: String,
    /// The machine.
    pub machine: MachineFacts,
    /// The build.
    pub build: BuildFacts,
    /// Scheduling by the operating system.
    #[serde(default)]
    pub scheduler: SchedulerCosts,
    /// Costs per counter of the server's `Work`, and of its driver: `wake`, `turn`, `receive`, `send`, `timer`. `cold`
    /// and `cold_deep` are the additional time of a turn after the processor has slept for `asleep` and for `deep`.
    #[serde(default)]
    pub server: BTreeMap<String, f64>,
    /// The same for the client.
    #[serde(default)]
    pub client: BTreeMap<String, f64>,
    /// Costs that differ behind the laboratory's emulator of links.
    #[serde(default, skip_serializing_if = "EmulatedCosts::is_empty")]
    pub emulated: EmulatedCosts,
    /// Slow jobs of a server, by `JobKind::name`.
    #[serde(default)]
    pub jobs: BTreeMap<String, Cost>,
    /// Slow jobs of a client.
    #[serde(default)]
    pub client_jobs: BTreeMap<String, Cost>,
}

impl HostProfile {
    /// A host on which work costs nothing.
    #[must_use]
    pub fn free(cores: u32) -> Self {
        Self {
            format: FORMAT,
            name: "free".into(),
            source: "not measured: all costs are zero".into(),
            machine: MachineFacts { cores, ..MachineFacts::default() },
            build: BuildFacts::default(),
            scheduler: SchedulerCosts::default(),
            server: BTreeMap::new(),
            client: BTreeMap::new(),
            emulated: EmulatedCosts::default(),
            jobs: BTreeMap::new(),
            client_jobs: BTreeMap::new(),
        }
    }

    /// Parses a profile.
    ///
    /// # Errors
    /// The text is not a profile, or a value is invalid.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let profile: Self =
            toml::from_str(text).map_err(|error| ProfileError::Syntax(Mistake::of(&error, Some(text))))?;
        profile.check()?;
        Ok(profile)
    }

    /// The profile as a file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        // Strings, numbers and maps of them can always be serialized.
        toml::to_string_pretty(self).unwrap_or_default()
    }

    /// Checks the values.
    ///
    /// # Errors
    /// [`ProfileError::Format`], [`ProfileError::Value`].
    pub fn check(&self) -> Result<(), ProfileError> {
        if self.format != FORMAT {
            return Err(ProfileError::Format { found: self.format });
        }
        let wrong = |key: String, value: String, must| Err(ProfileError::Value { key, value, must });
        if !(1..=4096).contains(&self.machine.cores) {
            return wrong("machine.cores".into(), self.machine.cores.to_string(), "from 1 to 4096");
        }
        let slice = self.scheduler.slice;
        if !(1e3..=1e9).contains(&slice) {
            return wrong("scheduler.slice".into(), slice.to_string(), "from 1000 to 1000000000 ns");
        }
        let asleep = self.scheduler.asleep;
        if !(1e3..=1e9).contains(&asleep) {
            return wrong("scheduler.asleep".into(), asleep.to_string(), "from 1000 to 1000000000 ns");
        }
        let deep = self.scheduler.deep;
        if !(asleep * 2.0..=1e10).contains(&deep) {
            return wrong(
                "scheduler.deep".into(),
                deep.to_string(),
                "at least twice scheduler.asleep, at most 1e10 ns",
            );
        }
        let costs = [
            ("server", &self.server),
            ("client", &self.client),
            ("emulated.server", &self.emulated.server),
            ("emulated.client", &self.emulated.client),
        ];
        for (section, costs) in costs {
            for (name, cost) in costs {
                if !(0.0..=MAX).contains(cost) {
                    return wrong(format!("{section}.{name}"), cost.to_string(), BOUNDS);
                }
            }
        }
        let jobs = self.jobs.iter().map(|job| ("jobs", job));
        let client_jobs = self.client_jobs.iter().map(|job| ("client_jobs", job));
        let all = jobs.chain(client_jobs).map(|(section, (name, cost))| (format!("{section}.{name}"), cost));
        let scheduler = [("wake", &self.scheduler.wake), ("noise", &self.scheduler.noise)];
        let scheduler = scheduler.map(|(name, cost)| (format!("scheduler.{name}"), cost));
        let asleep = self.scheduler.wake_asleep.iter().map(|cost| ("scheduler.wake_asleep".to_owned(), cost));
        for (key, cost) in all.chain(scheduler).chain(asleep) {
            if !cost.is_within(MAX) {
                return wrong(key, format!("{cost:?}"), BOUNDS);
            }
        }
        Ok(())
    }

    /// The profile with the costs behind the laboratory's emulator of links. The emulator runs just before a turn, so
    /// without a specific cost for cold caches there is none.
    #[must_use]
    pub fn behind_emulator(mut self) -> Self {
        self.server.remove("cold");
        self.client.remove("cold");
        self.server.append(&mut self.emulated.server);
        self.client.append(&mut self.emulated.client);
        self
    }

    /// Checks that the profile was measured with this build and, if `cpu` is given, on this machine.
    ///
    /// # Errors
    /// [`ProfileError::Build`], [`ProfileError::Machine`].
    pub fn check_origin(&self, version: &str, cpu: Option<&str>) -> Result<(), ProfileError> {
        if self.build.version != version {
            return Err(ProfileError::Build {
                found: self.build.version.clone(),
                target: self.build.target.clone(),
                own: version.to_owned(),
            });
        }
        match cpu {
            Some(cpu) if cpu != self.machine.cpu => {
                Err(ProfileError::Machine { found: self.machine.cpu.clone(), own: cpu.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

/// Fits non-negative costs of counters. Each row has counts, a duration and a weight. `None` if there is too little
/// data.
#[must_use]
pub fn prices(rows: &[Vec<f64>], targets: &[f64], importance: &[f64]) -> Option<Vec<f64>> {
    crate::cpu::least_squares(rows, targets, importance, &[], true)
}

/// Maximum cost: ten minutes.
const MAX: f64 = 600e9;
const BOUNDS: &str = "numbers from 0 to 600000000000, in ascending order where there are several";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_round_trip_through_files() {
        let mut profile = HostProfile::free(4);
        profile.server.insert("turn".into(), 812.5);
        profile.jobs.insert("open-channel/Basic256Sha256".into(), Cost::Quantiles(vec![5e5, 6e5, 9e5]));
        profile.scheduler.wake = Cost::Quantiles(vec![1e3, 5e4]);
        profile.emulated.client.insert("send".into(), 4e3);
        assert_eq!(HostProfile::parse(&profile.to_toml()), Ok(profile));
    }

    #[test]
    fn invalid_values_are_reported() {
        let said = |change: fn(&mut HostProfile)| {
            let mut profile = HostProfile::free(1);
            change(&mut profile);
            profile.check().unwrap_err().to_string()
        };
        assert!(said(|profile| profile.machine.cores = 0).starts_with("machine.cores = 0"));
        let said_turn = said(|profile| profile.server.extend([("turn".into(), -1.0)]));
        assert!(said_turn.starts_with("server.turn = -1"));
        let nan = said(|profile| profile.client.extend([("send".into(), f64::NAN)]));
        assert!(nan.starts_with("client.send = NaN"));
        let emulated = said(|profile| profile.emulated.server.extend([("send".into(), -2.0)]));
        assert!(emulated.starts_with("emulated.server.send = -2"));
        let order = said(|profile| profile.scheduler.wake = Cost::Quantiles(vec![2.0, 1.0]));
        assert!(order.starts_with("scheduler.wake"));
        let empty = said(|profile| profile.jobs.extend([("x".into(), Cost::Quantiles(Vec::new()))]));
        assert!(empty.starts_with("jobs.x"));
        assert!(said(|profile| profile.format = 9).contains("format = 9"));
        assert!(HostProfile::parse("format = 1\nwhat = 2").unwrap_err().to_string().contains("what"));
    }

    #[test]
    fn costs_behind_the_emulator_have_priority() {
        let mut profile = HostProfile::free(1);
        profile.server.extend([("send".to_owned(), 9e3), ("wake".to_owned(), 7e3)]);
        profile.client.insert("cold".into(), 5e3);
        profile.emulated.server.extend([("send".to_owned(), 4e3), ("cold".to_owned(), 3e3)]);
        let behind = profile.behind_emulator();
        assert_eq!(["send", "wake", "cold"].map(|name| behind.server[name]), [4e3, 7e3, 3e3]);
        assert!(behind.client.is_empty() && behind.emulated.is_empty());
    }

    #[test]
    fn other_builds_and_machines_are_refused() {
        let mut profile = HostProfile::free(1);
        profile.build.version = "1.0.0".into();
        profile.machine.cpu = "Cortex-A72".into();
        assert_eq!(profile.check_origin("1.0.0", Some("Cortex-A72")), Ok(()));
        assert!(matches!(profile.check_origin("1.0.1", None), Err(ProfileError::Build { .. })));
        assert!(matches!(profile.check_origin("1.0.0", Some("Xeon")), Err(ProfileError::Machine { .. })));
    }
}
