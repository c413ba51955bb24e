//! Export of metrics and traces of a server to a collector.

use super::web::Extras;
use crate::failure::Failure;
use std::sync::Arc;
use std::time::Duration;
use taktwerk::RunningServer;
use taktwerk_config::ConfigFile;
use taktwerk_web::otlp::{Otlp, OtlpSettings};

/// The export settings of a file, if any. `instance` is the ApplicationUri.
fn settings(file: &ConfigFile, instance: &str) -> Result<Option<OtlpSettings>, Failure> {
    let section = &file.config().otlp;
    let Some(url) = &section.url else { return Ok(None) };
    if section.services && !section.traces {
        let mistake = file.mistake_of("otlp.services", "it needs traces", "set traces = true");
        return Err(Failure::Usage(mistake.to_string()));
    }
    let name = section.service_name.as_ref().unwrap_or(&file.config().server.application_name);
    let settings = OtlpSettings {
        url: url.get_ref().clone(),
        every: Duration::from_secs(section.every_seconds.max(1).into()),
        metrics: section.metrics,
        traces: section.traces,
        headers_file: section.headers_file.as_deref().map(|path| file.resolve(path)),
        ca_file: section.ca_file.as_deref().map(|path| file.resolve(path)),
        service: (name.clone(), instance.to_owned()),
    };
    settings.check().map_err(|error| Failure::Usage(file.mistake_of("otlp", error, "").to_string()))?;
    Ok(Some(settings))
}

/// Checks the settings without starting anything.
pub(super) fn check(file: &ConfigFile) -> Result<(), Failure> {
    settings(file, "").map(drop)
}

/// Starts the export, if configured. `extras` provides the metrics of sources and destinations, and receives those of
/// the export.
pub(super) fn start(
    file: &ConfigFile,
    running: &RunningServer,
    extras: &mut Extras,
) -> Result<Option<Otlp>, Failure> {
    let instance = running.shared().config().application_uri.to_string();
    let Some(settings) = settings(file, &instance)? else { return Ok(None) };
    if settings.traces {
        crate::logging::trace(file.config().otlp.services);
    }
    let (url, more) = (settings.url.clone(), extras.collectors.clone());
    let spans = crate::logging::spans();
    let otlp = Otlp::start(settings, Arc::clone(running.shared()), more, spans);
    let otlp = otlp.map_err(|error| Failure::Usage(file.mistake_of("otlp", error, "").to_string()))?;
    extras.collectors.push(otlp.collector());
    tell!("metrics and traces: {url}");
    Ok(Some(otlp))
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(feature = "gateway")]
    fn the_gateway_uses_the_exported_target() {
        assert_eq!(taktwerk_gateway::trace::TARGET, taktwerk_web::otlp::spans::TARGET);
        assert_eq!(super::super::reload::TRACE, taktwerk_web::otlp::spans::TARGET);
    }
}
