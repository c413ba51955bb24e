//! CPU headroom of this server: prices from a calibration, measured CPU, and warnings.

use crate::hosts;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use taktwerk::headroom::{Admit, Prices};
use taktwerk_lab::machine::Machine;
use taktwerk_server::headroom::{Headroom, Report};

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

/// What to do about a calibration that cannot be used.
pub(super) const CALIBRATE: &str =
    "`taktwerk lab calibrate --quick`, then `taktwerk model fit -o FILE` writes a cost model of this machine";
/// What to do about a wrong limit.
pub(super) const LIMITS: &str = "write 0.8 for 80 %";

/// The CPU limit in cores: a share of the CPU of all threads.
pub(super) fn limit(share: f64, threads: usize) -> Result<f64, String> {
    match share > 0.0 && share <= 1.0 {
        true => Ok(share * threads.max(1) as f64),
        false => Err(format!("{share} is not a share above 0 and up to 1")),
    }
}

/// Reads the prices of a calibration: a file in `folder`, or a built-in host. Warns if it was measured with another version
/// or on another machine.
pub(super) fn prices(folder: &Path, path: &Path, is_encrypted: bool) -> Result<Prices, String> {
    let models = hosts::models(folder, path).map_err(|error| error.to_string())?;
    let file = path.display();
    let own = models.iter().find(|model| model.stack == "own");
    let own = own.ok_or_else(|| format!("{file} contains no model of taktwerk"))?;
    let machine = Machine::this().cpu;
    if let Some(origin) = own.origin.as_ref().filter(|origin| origin.machine != machine) {
        tracing::warn!(
            "{file}: measured on {}, this machine is {machine}: the predicted CPU can differ. {CALIBRATE}",
            origin.machine
        );
    }
    let [idle, value, value_growth, message] = own.prices(is_encrypted);
    // Convert percent of a core to cores.
    Ok(Prices {
        idle: idle / 100.0,
        value: value / 100.0,
        value_growth: value_growth / 100.0,
        message: message / 100.0,
    })
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
        tracing::warn!("{}", warning(&report));
    }
}

/// The warning near the limit. How many signals fit is only said if the clients' requests are the reason: it does not
/// consider other work.
fn warning(report: &Report) -> String {
    let percent = |cores: f64| taktwerk_model::figures::number(cores * 100.0);
    let [predicted, actual, limit] =
        [report.predicted, report.actual.unwrap_or(0.0), report.limit].map(percent);
    let figures = format!(
        "{predicted} % of a core predicted for the clients' requests, {actual} % used, limit {limit} %"
    );
    if report.predicted >= NEAR * report.limit {
        let left = taktwerk_model::figures::number(report.remaining_values_per_s);
        format!("the CPU limit is nearly reached: {figures}. {left} more signals/s fit")
    } else {
        format!(
            "the CPU limit is nearly reached: {figures}. Other work uses the CPU, such as reads, history or sources"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_calibrations_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("models.json");
        let error = || prices(directory.path(), Path::new("models.json"), false).unwrap_err();
        assert!(error().starts_with("cannot read models.json: "), "{}", error());
        std::fs::write(&path, "[]").unwrap();
        assert!(error().contains("models.json is not a file of models: it contains no model"), "{}", error());
        std::fs::write(&path, "{").unwrap();
        assert!(error().contains("models.json is not a file of models: "), "{}", error());
        for share in [0.0, -0.5, 1.1, 80.0, f64::NAN] {
            assert_eq!(limit(share, 2), Err(format!("{share} is not a share above 0 and up to 1")));
        }
        assert_eq!(limit(0.5, 4), Ok(2.0));
    }

    #[test]
    fn built_in_hosts_are_calibrations() {
        let directory = tempfile::tempdir().unwrap();
        let of = |name: &str| prices(directory.path(), Path::new(name), false);
        let prices = of("epyc-vm").unwrap();
        assert!(prices.value > 0.0 && prices.message > prices.value);
        assert!(of("vax").unwrap_err().contains("come with taktwerk: epyc-vm"));
    }

    #[test]
    fn the_warning_names_the_reason() {
        let prices = Prices { idle: 0.0, value: 1e-6, value_growth: 0.0, message: 1e-5 };
        let report = Headroom::new(prices, 0.8, Admit::Always).report();
        let said = |predicted, actual| warning(&Report { predicted, actual: Some(actual), ..report });
        let of_clients = said(0.79, 0.3);
        assert!(
            of_clients.contains("79.0 % of a core predicted") && of_clients.contains("signals/s fit"),
            "{of_clients}"
        );
        let of_others = said(0.1, 0.78);
        assert!(of_others.contains("Other work uses the CPU") && !of_others.contains("fit"), "{of_others}");
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
