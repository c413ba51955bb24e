//! Export of metrics and traces with OTLP 1.x over HTTP (protobuf). A slow collector delays nothing else.
//!
//! - `message`: the messages; [`spans`]: collection of spans; [`target`]: the collector.

mod message;
pub mod spans;
pub mod target;
#[cfg(test)]
mod tests;

use crate::exposition::{Collector, Exposition, Family, families};
use crate::metrics;
use message::{Any, Data, Gauge, Metric, Number, Point, Resource, Sum, attribute};
use prost::Message;
use spans::Spans;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use taktwerk_server::ServerShared;
use target::{Failure, OtlpError, Target};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Timeout of an export.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of spans per message.
const SPANS_MAX: usize = 512;

/// What is exported, and to which collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpSettings {
    /// The URL of the collector; `/v1/metrics` and `/v1/traces` are added.
    pub url: String,
    /// The export interval.
    pub every: Duration,
    /// Whether metrics are exported.
    pub metrics: bool,
    /// Whether spans are exported.
    pub traces: bool,
    /// A file with HTTP headers, one per line.
    pub headers_file: Option<PathBuf>,
    /// A file with certificate authorities for HTTPS. Default: those of the system.
    pub ca_file: Option<PathBuf>,
    /// The names of the program (`service.name`) and of this instance (`service.instance.id`).
    pub service: (String, String),
}

impl OtlpSettings {
    /// Validates the settings without starting anything.
    ///
    /// # Errors
    /// A setting cannot be used.
    pub fn check(&self) -> Result<(), OtlpError> {
        self.target().map(drop)
    }

    fn target(&self) -> Result<Target, OtlpError> {
        Target::new(&self.url, self.headers_file.as_deref(), self.ca_file.as_deref())
    }
}

/// Counters of the export.
#[derive(Debug, Default)]
struct Counted {
    exports: AtomicU64,
    errors: AtomicU64,
    spans: Spans,
}

/// Metrics about the export.
#[derive(Debug)]
struct OtlpMetrics(Arc<Counted>);

impl Collector for OtlpMetrics {
    fn collect(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let Counted { exports, errors, spans } = &*self.0;
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed) as f64;
        out.counter("taktwerk_otlp_exports", "Messages accepted by the OTLP collector", count(exports))?;
        out.counter("taktwerk_otlp_errors", "Failed exports to the OTLP collector", count(errors))?;
        let help = "Spans dropped because the queue was full, or because the OTLP collector refused them";
        out.counter("taktwerk_otlp_dropped_spans", help, spans.dropped() as f64)
    }
}

/// A running export. Dropping it sends the rest once and stops it.
#[derive(Debug)]
pub struct Otlp {
    counted: Arc<Counted>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Otlp {
    /// Starts the export on its own thread. `more` provides metrics besides those of server and process. `spans` must
    /// be a layer of the program's subscriber.
    ///
    /// # Errors
    /// A setting cannot be used.
    pub fn start(
        settings: OtlpSettings,
        server: Arc<ServerShared>,
        more: Vec<Arc<dyn Collector>>,
        spans: Spans,
    ) -> Result<Self, OtlpError> {
        let target = settings.target()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(OtlpError::Thread)?;
        let counted = Arc::new(Counted { spans, ..Counted::default() });
        let (stop, stopped) = watch::channel(false);
        let export =
            Export { target, settings, server, more, counted: Arc::clone(&counted), start: spans::now() };
        let thread = std::thread::Builder::new().name("otlp".to_owned()).spawn(move || {
            runtime.block_on(export.run(stopped));
            runtime.shutdown_timeout(Duration::from_millis(100));
        });
        Ok(Self { counted, stop, thread: Some(thread.map_err(OtlpError::Thread)?) })
    }

    /// The metrics about the export.
    #[must_use]
    pub fn collector(&self) -> Arc<dyn Collector> {
        Arc::new(OtlpMetrics(Arc::clone(&self.counted)))
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        // If the receiver is gone, the thread has ended.
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Export {
    target: Target,
    settings: OtlpSettings,
    server: Arc<ServerShared>,
    more: Vec<Arc<dyn Collector>>,
    counted: Arc<Counted>,
    /// Start time of the counters, in nanoseconds since 1970.
    start: u64,
}

impl Export {
    async fn run(self, mut stopped: watch::Receiver<bool>) {
        let mut ticks = interval(self.settings.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_told = None;
        loop {
            let is_last = tokio::select! {
                _ = ticks.tick() => false,
                _ = stopped.wait_for(|stopped| *stopped) => true,
            };
            let patience = if is_last { Duration::from_secs(1) } else { PATIENCE };
            let export = timeout(patience, self.export());
            let exported = if is_last {
                export.await
            } else {
                tokio::select! {
                    exported = export => exported,
                    // Unsent spans are put back, and are sent below.
                    _ = stopped.wait_for(|stopped| *stopped) => continue,
                }
            };
            let told = match exported {
                Ok(exported) => exported.err(),
                Err(_) => Some(format!("no answer within {patience:?}")),
            };
            if let Some(reason) = &told {
                self.counted.errors.fetch_add(1, Ordering::Relaxed);
                if told != last_told {
                    let collector = self.target.describe();
                    tracing::warn!(collector, reason, "cannot export metrics and traces; retrying");
                }
            }
            last_told = told;
            if is_last {
                return;
            }
        }
    }

    async fn export(&self) -> Result<(), String> {
        // A collector may accept only one kind.
        let metrics = if self.settings.metrics { self.send_metrics().await } else { Ok(()) };
        let spans = if self.settings.traces { self.send_spans().await } else { Ok(()) };
        metrics.and(spans).map_err(|failure| failure.reason)
    }

    async fn send_metrics(&self) -> Result<(), Failure> {
        let reason = || "the metrics cannot be written".to_owned();
        let metrics = self.metrics().map_err(|_| Failure { reason: reason(), is_final: true })?;
        self.send("/v1/metrics", message::metrics(self.resource(), metrics).encode_to_vec()).await
    }

    async fn send_spans(&self) -> Result<(), Failure> {
        let mut waiting = Waiting { spans: self.counted.spans.take(), counted: &self.counted };
        let mut refused = Ok(());
        while !waiting.spans.is_empty() {
            let count = waiting.spans.len().min(SPANS_MAX);
            let first: Vec<_> = waiting.spans.iter().take(count).cloned().collect();
            let sent = self.send("/v1/traces", message::traces(self.resource(), first).encode_to_vec()).await;
            match sent {
                Ok(()) => {}
                // Drop them, because retrying would block the spans behind them.
                Err(failure) if failure.is_final => {
                    self.counted.spans.lose(count);
                    refused = Err(failure);
                }
                Err(failure) => return Err(failure),
            }
            waiting.spans.drain(..count);
        }
        refused
    }

    async fn send(&self, path: &str, body: Vec<u8>) -> Result<(), Failure> {
        self.target.post(path, body).await?;
        self.counted.exports.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn resource(&self) -> Resource {
        let (name, instance) = &self.settings.service;
        let attributes = [
            ("service.name", name.clone()),
            ("service.instance.id", instance.clone()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        Resource { attributes: attributes.map(|(key, value)| attribute(key, Any::Text(value))).to_vec() }
    }

    fn metrics(&self) -> Result<Vec<Metric>, fmt::Error> {
        let own = metrics::of_server(&self.server);
        let export: Arc<dyn Collector> = Arc::new(OtlpMetrics(Arc::clone(&self.counted)));
        let families = families(own.into_iter().chain(self.more.iter().cloned()).chain([export]))?;
        let now = spans::now();
        Ok(families.into_iter().map(|family| metric(family, self.start, now)).collect())
    }
}

/// Spans that are put back if an export fails or is cancelled.
struct Waiting<'a> {
    spans: Vec<message::Span>,
    counted: &'a Counted,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.spans.is_empty() {
            self.counted.spans.put_back(std::mem::take(&mut self.spans));
        }
    }
}

fn metric(family: Family, start: u64, time: u64) -> Metric {
    let points = family.points.into_iter().map(|(label, value)| Point {
        start: if family.is_counter { start } else { 0 },
        time,
        value: Some(Number::Double(value)),
        attributes: label.into_iter().map(|(key, value)| attribute(key, Any::Text(value))).collect(),
    });
    let points = points.collect();
    let data = match family.is_counter {
        true => Data::Sum(Sum::counter(points)),
        false => Data::Gauge(Gauge { points }),
    };
    Metric { name: family.name, description: family.help, data: Some(data) }
}
