//! Energy from the processor's counters (RAPL, through the kernel's powercap tree), and from the record of a current
//! sensor in the power supply.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The kernel's directory of energy counters.
const POWERCAP: &str = "/sys/class/powercap";

/// Why energy cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnergyError {
    /// The machine has no visible counters.
    #[error(
        "this machine has no energy counters ({POWERCAP}/intel-rapl:*; virtual machines have none): measure the supply \
         current and pass it to lab report --current"
    )]
    Missing,
    /// Reading the counters is not permitted.
    #[error("cannot read the energy counter {0}: run as root, or make it readable (chmod a+r)")]
    NotPermitted(PathBuf),
}

/// An energy counter.
#[derive(Debug, Clone)]
struct Domain {
    name: String,
    path: PathBuf,
    /// The counter wraps at this many microjoules.
    range: u64,
    before: u64,
}

/// Counters with their values at the start.
#[derive(Debug, Clone)]
pub struct Energy(Vec<Domain>);

fn number(path: &Path) -> io::Result<u64> {
    fs::read_to_string(path)?.trim().parse().map_err(io::Error::other)
}

impl Energy {
    /// Reads all counters: packages and their subdomains.
    ///
    /// # Errors
    /// If there are none, or reading them is not permitted.
    pub fn begin() -> Result<Self, EnergyError> {
        Self::begin_in(Path::new(POWERCAP))
    }

    fn begin_in(root: &Path) -> Result<Self, EnergyError> {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let mut zones: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("intel-rapl:"))
            .map(|entry| entry.path())
            .collect();
        zones.sort();
        let mut domains = Vec::new();
        for zone in zones {
            let path = zone.join("energy_uj");
            let before = match number(&path) {
                Ok(before) => before,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(EnergyError::NotPermitted(path));
                }
                // Some zones only have limits.
                Err(_) => continue,
            };
            let name = fs::read_to_string(zone.join("name")).unwrap_or_default().trim().to_owned();
            let range = number(&zone.join("max_energy_range_uj")).unwrap_or(u64::MAX);
            domains.push(Domain { name, path, range, before });
        }
        if domains.is_empty() { Err(EnergyError::Missing) } else { Ok(Self(domains)) }
    }

    /// Joules since the start by name; `package` is the sum over all packages. Empty if the counters have disappeared.
    #[must_use]
    pub fn joules(&self) -> BTreeMap<String, f64> {
        let mut joules = BTreeMap::new();
        for domain in &self.0 {
            let Ok(now) = number(&domain.path) else { continue };
            let used = if now >= domain.before {
                now - domain.before
            } else {
                domain.range.saturating_sub(domain.before).saturating_add(now)
            };
            let name = if domain.name.starts_with("package") { "package" } else { &domain.name };
            *joules.entry(name.to_owned()).or_insert(0.0) += used as f64 / 1e6;
        }
        joules
    }
}

/// Current of a power supply over time, from the record of a sensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Current(Vec<(f64, f64)>);

/// The file is not a record of a current.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} is {text:?}: write seconds since 1970 and amperes, separated by a comma, in ascending order (a header \
     line is allowed)"
)]
pub struct ParseCurrentError {
    line: usize,
    text: String,
}

impl Current {
    /// Parses lines of `time,ampere` with seconds since 1970.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(text: &str) -> Result<Self, ParseCurrentError> {
        let mut samples: Vec<(f64, f64)> = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = || ParseCurrentError { line: at + 1, text: line.to_owned() };
            let pair = line.split_once(',').and_then(|(time, ampere)| {
                let numbers = (time.trim().parse::<f64>().ok()?, ampere.trim().parse::<f64>().ok()?);
                (numbers.0.is_finite() && numbers.1.is_finite()).then_some(numbers)
            });
            match pair {
                Some(pair) if samples.last().is_none_or(|last| last.0 < pair.0) => samples.push(pair),
                None if at == 0 => {}
                _ => return Err(wrong()),
            }
        }
        Ok(Self(samples))
    }

    /// The mean over a time span. Each sample counts until the next one. `None` if the record does not cover the span.
    #[must_use]
    pub fn mean(&self, from: f64, to: f64) -> Option<f64> {
        if !(self.0.first()?.0 <= from && from < to && to <= self.0.last()?.0) {
            return None;
        }
        let charge = self.0.windows(2).map(|pair| match pair {
            [(start, ampere), (end, _)] => ampere * (end.min(to) - start.max(from)).max(0.0),
            _ => 0.0,
        });
        Some(charge.sum::<f64>() / (to - from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(root: &Path, zone: &str, name: &str, energy: &str) -> PathBuf {
        let path = root.join(zone);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("name"), name).unwrap();
        fs::write(path.join("energy_uj"), energy).unwrap();
        fs::write(path.join("max_energy_range_uj"), "1000000\n").unwrap();
        path.join("energy_uj")
    }

    #[test]
    fn counters_are_summed_and_may_wrap() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(Energy::begin_in(root).unwrap_err(), EnergyError::Missing);
        let first = zone(root, "intel-rapl:0", "package-0\n", "100000\n");
        let second = zone(root, "intel-rapl:1", "package-1\n", "900000\n");
        let core = zone(root, "intel-rapl:0:0", "core\n", "5\n");
        fs::create_dir_all(root.join("intel-rapl-mmio")).unwrap();
        let energy = Energy::begin_in(root).unwrap();
        fs::write(first, "300000").unwrap();
        fs::write(second, "100000").unwrap();
        let joules = energy.joules();
        // 0.2 J; and 0.1 J to the end of the range plus 0.1 J after wrapping.
        assert!((joules["package"] - 0.4).abs() < 1e-9 && joules["core"] == 0.0, "{joules:?}");
        fs::remove_file(core).unwrap();
        assert!(!energy.joules().contains_key("core"));
    }

    #[test]
    fn energy_is_read_or_the_error_says_why_not() {
        match Energy::begin() {
            Ok(energy) => assert!(energy.joules().values().all(|joules| *joules >= 0.0)),
            Err(error) => {
                assert!(error.to_string().contains("--current") || error.to_string().contains("root"))
            }
        }
    }

    #[test]
    fn a_record_of_a_current() {
        let current = Current::parse("time,ampere\n10,0.5\n11, 1.5\n12.0,1.0\n\n").unwrap();
        assert_eq!(current.mean(10.0, 12.0), Some(1.0));
        assert_eq!(current.mean(10.5, 11.5), Some(1.0));
        assert_eq!(current.mean(11.0, 12.0), Some(1.5));
        assert_eq!((current.mean(9.0, 11.0), current.mean(11.0, 12.5)), (None, None));
        for wrong in ["1,2\nx,3", "1,2\n1,3", "1,2\n3", "time\n1,NaN"] {
            assert!(Current::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Current::parse("").unwrap().mean(0.0, 1.0), None);
    }
}
