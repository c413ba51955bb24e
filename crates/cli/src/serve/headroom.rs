//! CPU headroom of this server: prices from a calibration, measured CPU, and warnings.

use crate::failure::Failure;
use crate::hosts;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use taktwerk::headroom::{Admit, Prices};
use taktwerk_model::Model;
use taktwerk_server::headroom::Headroom;

/// The headroom settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) prices: Prices,
    /// CPU limit in cores.
    pub(super) limit: f64,
    pub(super) admit: Admit,
}

/// Default share of the CPU for clients.
pub(super) const LIMIT: f64 = 0.8;

/// Reads a calibration: a file in `folder`, or a built-in host. `share` of `threads` cores may be used.
pub(super) fn load(
    folder: &Path,
    path: &Path,
    share: f64,
    threads: usize,
    admit: Admit,
    is_encrypted: bool,
) -> Result<Settings, Failure> {
    let file = path.display();
    let wrong = |problem: &dyn std::fmt::Display| Failure::Usage(format!("headroom: {file}: {problem}"));
    if !(share > 0.0 && share <= 1.0) {
        return Err(Failure::Usage(format!("headroom: limit {share} is not a share above 0 and up to 1")));
    }
    let text = hosts::read(folder, path, hosts::Kind::Models).map_err(|error| {
        Failure::Usage(format!("headroom: {error}; `taktwerk model fit -o FILE` writes a cost model"))
    })?;
    let models: Vec<Model> = serde_json::from_str(&text).map_err(|error| {
        wrong(&format!("not a cost model: {error}; `taktwerk model fit -o FILE` writes one"))
    })?;
    if let Some(problem) = models.iter().find_map(Model::problem) {
        return Err(wrong(&problem));
    }
    let own = models.iter().find(|model| model.stack == "own").ok_or_else(|| {
        wrong(&"it contains no model of taktwerk: run `taktwerk lab calibrate --quick`, then `taktwerk model fit -o FILE`")
    })?;
    let [idle, value, value_growth, message] = own.prices(is_encrypted);
    // Convert percent of a core to cores.
    let prices = Prices {
        idle: idle / 100.0,
        value: value / 100.0,
        value_growth: value_growth / 100.0,
        message: message / 100.0,
    };
    Ok(Settings { prices, limit: share * threads.max(1) as f64, admit })
}

/// Measures the CPU each second and warns near the limit.
#[derive(Debug)]
pub(super) struct Watch {
    headroom: Arc<Headroom>,
    /// Time and CPU time of the last measurement.
    last: (Instant, Duration),
    warned: Option<Instant>,
}

/// Interval of the measurement.
const INTERVAL: Duration = Duration::from_secs(1);
/// Minimum interval of warnings.
const QUIET: Duration = Duration::from_secs(60);
/// Share of the limit above which warnings are logged.
const NEAR: f64 = 0.9;

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

impl Watch {
    pub(super) fn new(headroom: Arc<Headroom>) -> Self {
        Self { headroom, last: (Instant::now(), cpu()), warned: None }
    }

    /// Call it several times per second.
    pub(super) fn tick(&mut self) {
        let (now, (then, before)) = (Instant::now(), self.last);
        let elapsed = now - then;
        if elapsed < INTERVAL {
            return;
        }
        let used = cpu();
        self.headroom.measured(used.saturating_sub(before).as_secs_f64() / elapsed.as_secs_f64(), elapsed);
        self.last = (now, used);
        let report = self.headroom.report();
        let is_near = report.predicted.max(report.actual.unwrap_or(0.0)) >= NEAR * report.limit;
        if !is_near || self.warned.is_some_and(|warned| now - warned < QUIET) {
            return;
        }
        self.warned = Some(now);
        let percent = |cores: f64| taktwerk_model::figures::number(cores * 100.0);
        tracing::warn!(
            "the CPU limit is nearly reached: {} % of a core predicted for the clients' requests, {} % used, limit {} %. \
             {} more signals/s are possible",
            percent(report.predicted),
            percent(report.actual.unwrap_or(0.0)),
            percent(report.limit),
            taktwerk_model::figures::number(report.remaining_values_per_s),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_calibrations_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("models.json");
        let named = Path::new("models.json");
        let load =
            |share: f64| load(directory.path(), named, share, 1, Admit::Always, false).map(|one| one.limit);
        let error = |share: f64| load(share).unwrap_err().to_string();
        assert!(error(0.8).contains("model fit -o"), "{}", error(0.8));
        std::fs::write(&path, "[]").unwrap();
        assert!(error(0.8).contains("lab calibrate"), "{}", error(0.8));
        std::fs::write(&path, "{").unwrap();
        assert!(error(0.8).contains("not a cost model"), "{}", error(0.8));
        assert!(error(0.0).contains("limit 0"), "{}", error(0.0));
    }

    #[test]
    fn built_in_hosts_are_calibrations() {
        let directory = tempfile::tempdir().unwrap();
        let of = |name: &str| load(directory.path(), Path::new(name), 0.5, 2, Admit::Headroom, false);
        let settings = of("epyc-vm").unwrap();
        assert!(settings.prices.value > 0.0 && settings.prices.message > settings.prices.value);
        assert_eq!(settings.limit, 1.0);
        assert!(of("vax").unwrap_err().to_string().contains("come with taktwerk: epyc-vm"));
    }

    #[test]
    fn the_cpu_is_measured() {
        let prices = Prices { idle: 0.0, value: 1e-6, value_growth: 0.0, message: 1e-5 };
        let headroom = Headroom::new(prices, 0.8, Admit::Always);
        let mut watch = Watch::new(Arc::clone(&headroom));
        watch.tick();
        assert_eq!(headroom.report().actual, None);
        watch.last.0 -= Duration::from_secs(2);
        watch.tick();
        assert!(headroom.report().actual.is_some());
    }
}
