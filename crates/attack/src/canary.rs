//! The honest client that an attack must not affect (`docs/security/README.md`). It uses Basic256Sha256 and
//! SignAndEncrypt, reads ten times per second, and has a subscription of 100 items with a publishing interval of 100
//! ms. No value may be missing.

use core::time::Duration;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use taktwerk_channel::ChannelConfig;
use taktwerk_client::config::{ReconnectPolicy, Security};
use taktwerk_client::{
    Client, ClientConfig, ClientError, DataChanges, Event, Reply, RequestHandle, SubscriptionEvent,
    SubscriptionHandle, SubscriptionParams, Target,
};
use taktwerk_crypto::{MessageSecurityMode, NullProvider, Provider, SecurityPolicy};
use taktwerk_lab::latency::Times;
use taktwerk_net::client::{Fleet, FleetOptions, FleetSink, MemberId};
use taktwerk_net::clock::monotonic;
use taktwerk_schema::{
    MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, ReadRequest, ReadValueId,
};
use taktwerk_types::{Instant, NodeId, Variant};

/// Items of the subscription. The server needs as many signals.
pub(crate) const ITEMS: u32 = 100;
/// The first signal of `taktwerk serve --signals`.
const FIRST: u32 = 100_000;
const READ_EVERY: Duration = Duration::from_millis(100);

/// What the canary measured.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CanaryReport {
    /// Successful reads.
    pub reads: u64,
    /// Reads that failed.
    pub failed_reads: u64,
    /// Median read latency in ms, from the scheduled time.
    pub read_p50_ms: f64,
    /// 99th percentile of the read latency, ms.
    pub read_p99_ms: f64,
    /// Maximum read latency, ms.
    pub read_max_ms: f64,
    /// Received values of the subscription.
    pub values: u64,
    /// Values that are missing.
    pub lost_values: u64,
    /// Number of reconnects.
    pub reconnects: u64,
    /// The error that stopped the canary.
    pub error: Option<String>,
}

impl CanaryReport {
    /// Why the result is not acceptable: an error, a lost value, a reconnect, or a 99th percentile above the limit.
    pub(crate) fn complaint(&self, p99_max_ms: f64) -> Option<String> {
        if let Some(error) = &self.error {
            Some(error.clone())
        } else if self.reads == 0 || self.values == 0 {
            Some("the canary received no reads or no values".to_owned())
        } else if self.reconnects > 0 || self.lost_values > 0 || self.failed_reads > 0 {
            Some(format!(
                "{} values lost, {} reads failed, {} reconnects",
                self.lost_values, self.failed_reads, self.reconnects
            ))
        } else if self.read_p99_ms > p99_max_ms {
            Some(format!("the 99th percentile of reads is {:.1} ms, above {p99_max_ms} ms", self.read_p99_ms))
        } else {
            None
        }
    }
}

/// A canary on its own thread.
#[derive(Debug)]
pub(crate) struct Canary {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<CanaryReport>>,
}

impl Canary {
    /// Starts the canary and waits for the first values. Without a provider, it uses no security.
    pub(crate) fn start(url: &str, provider: Option<Arc<dyn Provider>>) -> Result<Self, String> {
        let parsed = if provider.is_some() { Target::new(url) } else { Target::direct(url) };
        let mut target = parsed.map_err(|error| error.to_string())?;
        if provider.is_some() {
            target.security =
                Security::Exactly(SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt);
        }
        let provider = provider.unwrap_or_else(|| Arc::new(NullProvider));
        let stop = Arc::new(AtomicBool::new(false));
        let ready = Arc::new(AtomicBool::new(false));
        let (stopped, is_ready) = (Arc::clone(&stop), Arc::clone(&ready));
        let thread = thread::Builder::new()
            .name("canary".to_owned())
            .spawn(move || watch_server(target, provider, &stopped, &is_ready))
            .map_err(|error| error.to_string())?;
        let mut canary = Self { stop, thread: Some(thread) };
        let end = monotonic() + Duration::from_secs(10);
        while !ready.load(Ordering::Relaxed) {
            if monotonic() > end {
                let report = canary.stop();
                return Err(report.error.unwrap_or_else(|| "the canary receives no values".to_owned()));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(canary)
    }

    /// Stops the canary.
    pub(crate) fn stop(&mut self) -> CanaryReport {
        self.stop.store(true, Ordering::Relaxed);
        let failed = || CanaryReport {
            error: Some("the canary's thread panicked".to_owned()),
            ..CanaryReport::default()
        };
        self.thread.take().map_or_else(failed, |thread| thread.join().unwrap_or_else(|_| failed()))
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Watcher {
    report: CanaryReport,
    latency: Option<Times>,
    is_connected: bool,
    /// Pending reads with their scheduled times.
    due: BTreeMap<u32, Instant>,
    /// The last value of each item.
    last: BTreeMap<u32, f64>,
}

impl FleetSink for Watcher {
    fn event(&mut self, _: MemberId, event: Event, _: Instant) {
        match event {
            Event::Connected(_) => self.is_connected = true,
            Event::ConnectionLost { error, .. } => {
                self.report.reconnects += 1;
                self.report.error.get_or_insert(format!("the connection was lost: {error}"));
            }
            Event::Disconnected(Some(error)) | Event::ConnectFailed { error, .. } => {
                self.report.error.get_or_insert(format!("cannot connect: {error}"));
            }
            Event::Subscription(_, SubscriptionEvent::DataLost { from, to }) => {
                self.report.lost_values += u64::from(to.wrapping_sub(from)) + 1;
            }
            _ => {}
        }
    }

    fn response(
        &mut self,
        _: MemberId,
        handle: RequestHandle,
        result: Result<Reply<'_>, ClientError>,
        now: Instant,
    ) {
        let Some(due) = self.due.remove(&handle.0) else { return };
        match result {
            Ok(_) => {
                self.report.reads += 1;
                let nanos = u64::try_from(now.since(due).as_nanos()).unwrap_or(u64::MAX);
                self.latency.get_or_insert_with(Times::new).record(nanos);
            }
            Err(_) => self.report.failed_reads += 1,
        }
    }

    fn data_changes(&mut self, _: MemberId, _: SubscriptionHandle, changes: DataChanges<'_>, _: Instant) {
        for change in changes {
            let Ok((handle, value)) = change else { continue };
            self.report.values += 1;
            let Some(Variant::Double(value)) = value.value else { continue };
            // Each signal counts up by one.
            if let Some(last) = self.last.insert(handle, value) {
                let missing = value - last - 1.0;
                if missing > 0.0 {
                    self.report.lost_values += missing as u64;
                }
            }
        }
    }
}

fn watch_server(
    target: Target,
    provider: Arc<dyn Provider>,
    stop: &AtomicBool,
    ready: &AtomicBool,
) -> CanaryReport {
    let mut watcher = Watcher::default();
    if let Err(error) = try_watch(target, provider, stop, ready, &mut watcher) {
        watcher.report.error.get_or_insert(error);
    }
    let millis = |nanos: u64| nanos as f64 / 1e6;
    if let Some(latency) = &watcher.latency {
        watcher.report.read_p50_ms = millis(latency.percentile(50.0));
        watcher.report.read_p99_ms = millis(latency.percentile(99.0));
        watcher.report.read_max_ms = millis(latency.max());
    }
    watcher.report
}

fn try_watch(
    target: Target,
    provider: Arc<dyn Provider>,
    stop: &AtomicBool,
    ready: &AtomicBool,
    watcher: &mut Watcher,
) -> Result<(), String> {
    let text = |error: &dyn core::fmt::Display| error.to_string();
    let reconnect = ReconnectPolicy { retry_first: true, ..ReconnectPolicy::default() };
    let channel = Arc::new(ChannelConfig { provider, ..ChannelConfig::default() });
    let config = ClientConfig { read_limits: false, reconnect, channel, ..ClientConfig::default() };
    let mut fleet = Fleet::new(Arc::new(config), FleetOptions::default()).map_err(|error| text(&error))?;
    let member = fleet.add(target);
    while !watcher.is_connected && !stop.load(Ordering::Relaxed) {
        fleet.run_once(monotonic() + READ_EVERY, watcher).map_err(|error| text(&error))?;
    }
    let params = SubscriptionParams { publishing_interval_ms: 100.0, ..SubscriptionParams::default() };
    let subscribe = |client: &mut Client, now| {
        let subscription = client.create_subscription(params, now);
        client.add_items(subscription, (0..ITEMS).map(item), now)
    };
    if let Some(Err(error)) = fleet.with(member, subscribe, watcher) {
        return Err(error.to_string());
    }
    let mut due = monotonic();
    while !stop.load(Ordering::Relaxed) {
        due = due + READ_EVERY;
        fleet.run_until(due, watcher).map_err(|error| text(&error))?;
        if !watcher.last.is_empty() {
            ready.store(true, Ordering::Relaxed);
        }
        let node_id = NodeId::numeric(1, FIRST);
        let mut request = ReadRequest {
            nodes_to_read: vec![ReadValueId { node_id, attribute_id: 13, ..ReadValueId::default() }],
            ..ReadRequest::default()
        };
        let sent = fleet.with(member, |client, now| client.request(&mut request, None, now), watcher);
        match sent.and_then(Result::ok) {
            Some(handle) => drop(watcher.due.insert(handle.0, due)),
            None => watcher.report.failed_reads += 1,
        }
    }
    Ok(())
}

fn item(number: u32) -> MonitoredItemCreateRequest {
    MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: NodeId::numeric(1, FIRST + number),
            attribute_id: 13,
            ..ReadValueId::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: number,
            // Every write is sampled, with a queue for two seconds.
            sampling_interval: 0.0,
            queue_size: 20,
            discard_oldest: true,
            ..MonitoringParameters::default()
        },
    }
}
