//! The honest client that must not notice anything (`docs/security/README.md`): over Basic256Sha256 and SignAndEncrypt it
//! reads ten times a second and has a subscription of a hundred items with a publishing interval of 100 ms in which no
//! value may be missing.

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

/// Items of the subscription; the server needs as many signals.
pub(crate) const ITEMS: u32 = 100;
/// The first signal of `taktwerk serve --signals`.
const FIRST: u32 = 100_000;
const READ_EVERY: Duration = Duration::from_millis(100);

/// What the canary noticed.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Song {
    pub(crate) reads: u64,
    pub(crate) failed_reads: u64,
    /// Milliseconds, counted from when the read was due.
    pub(crate) read_p50_ms: f64,
    pub(crate) read_p99_ms: f64,
    pub(crate) read_max_ms: f64,
    pub(crate) values: u64,
    /// Values that should have come and did not.
    pub(crate) lost_values: u64,
    pub(crate) reconnects: u64,
    pub(crate) error: Option<String>,
}

impl Song {
    /// What is wrong with it, if anything: nothing lost, no reconnect, the 99th percentile of reads in time.
    pub(crate) fn complaint(&self, p99_max_ms: f64) -> Option<String> {
        if let Some(error) = &self.error {
            Some(error.clone())
        } else if self.reads == 0 || self.values == 0 {
            Some("it never sang".to_owned())
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

/// A canary on a thread of its own.
#[derive(Debug)]
pub(crate) struct Canary {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Song>>,
}

impl Canary {
    /// Starts it and waits until values arrive.
    /// Without a provider it goes without security.
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
            .spawn(move || sing(target, provider, &stopped, &is_ready))
            .map_err(|error| error.to_string())?;
        let mut canary = Self { stop, thread: Some(thread) };
        let end = monotonic() + Duration::from_secs(10);
        while !ready.load(Ordering::Relaxed) {
            if monotonic() > end {
                let song = canary.stop();
                return Err(song.error.unwrap_or_else(|| "the canary gets no values".to_owned()));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(canary)
    }

    /// Ends it.
    pub(crate) fn stop(&mut self) -> Song {
        self.stop.store(true, Ordering::Relaxed);
        let failed = || Song { error: Some("the canary's thread panicked".to_owned()), ..Song::default() };
        self.thread.take().map_or_else(failed, |thread| thread.join().unwrap_or_else(|_| failed()))
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Ear {
    song: Song,
    latency: Option<Times>,
    is_connected: bool,
    /// Reads under way: when they were due.
    due: BTreeMap<u32, Instant>,
    /// The last value of each item.
    last: BTreeMap<u32, f64>,
}

impl FleetSink for Ear {
    fn event(&mut self, _: MemberId, event: Event, _: Instant) {
        match event {
            Event::Connected(_) => self.is_connected = true,
            Event::ConnectionLost { error, .. } => {
                self.song.reconnects += 1;
                self.song.error.get_or_insert(format!("the connection was lost: {error}"));
            }
            Event::Disconnected(Some(error)) | Event::ConnectFailed { error, .. } => {
                self.song.error.get_or_insert(format!("it cannot connect: {error}"));
            }
            Event::Subscription(_, SubscriptionEvent::DataLost { from, to }) => {
                self.song.lost_values += u64::from(to.wrapping_sub(from)) + 1;
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
                self.song.reads += 1;
                let nanos = u64::try_from(now.since(due).as_nanos()).unwrap_or(u64::MAX);
                self.latency.get_or_insert_with(Times::new).record(nanos);
            }
            Err(_) => self.song.failed_reads += 1,
        }
    }

    fn data_changes(&mut self, _: MemberId, _: SubscriptionHandle, changes: DataChanges<'_>, _: Instant) {
        for change in changes {
            let Ok((handle, value)) = change else { continue };
            self.song.values += 1;
            let Some(Variant::Double(value)) = value.value else { continue };
            // Each signal counts up by one.
            if let Some(last) = self.last.insert(handle, value) {
                let missing = value - last - 1.0;
                if missing > 0.0 {
                    self.song.lost_values += missing as u64;
                }
            }
        }
    }
}

fn sing(target: Target, provider: Arc<dyn Provider>, stop: &AtomicBool, ready: &AtomicBool) -> Song {
    let mut ear = Ear::default();
    if let Err(error) = try_sing(target, provider, stop, ready, &mut ear) {
        ear.song.error.get_or_insert(error);
    }
    let millis = |nanos: u64| nanos as f64 / 1e6;
    if let Some(latency) = &ear.latency {
        ear.song.read_p50_ms = millis(latency.percentile(50.0));
        ear.song.read_p99_ms = millis(latency.percentile(99.0));
        ear.song.read_max_ms = millis(latency.max());
    }
    ear.song
}

fn try_sing(
    target: Target,
    provider: Arc<dyn Provider>,
    stop: &AtomicBool,
    ready: &AtomicBool,
    ear: &mut Ear,
) -> Result<(), String> {
    let text = |error: &dyn core::fmt::Display| error.to_string();
    let reconnect = ReconnectPolicy { retry_first: true, ..ReconnectPolicy::default() };
    let channel = Arc::new(ChannelConfig { provider, ..ChannelConfig::default() });
    let config = ClientConfig { read_limits: false, reconnect, channel, ..ClientConfig::default() };
    let mut fleet = Fleet::new(Arc::new(config), FleetOptions::default()).map_err(|error| text(&error))?;
    let member = fleet.add(target);
    while !ear.is_connected && !stop.load(Ordering::Relaxed) {
        fleet.run_once(monotonic() + READ_EVERY, ear).map_err(|error| text(&error))?;
    }
    let params = SubscriptionParams { publishing_interval_ms: 100.0, ..SubscriptionParams::default() };
    let subscribe = |client: &mut Client, now| {
        let subscription = client.create_subscription(params, now);
        client.add_items(subscription, (0..ITEMS).map(item), now)
    };
    if let Some(Err(error)) = fleet.with(member, subscribe, ear) {
        return Err(error.to_string());
    }
    let mut due = monotonic();
    while !stop.load(Ordering::Relaxed) {
        due = due + READ_EVERY;
        fleet.run_until(due, ear).map_err(|error| text(&error))?;
        if !ear.last.is_empty() {
            ready.store(true, Ordering::Relaxed);
        }
        let node_id = NodeId::numeric(1, FIRST);
        let mut request = ReadRequest {
            nodes_to_read: vec![ReadValueId { node_id, attribute_id: 13, ..ReadValueId::default() }],
            ..ReadRequest::default()
        };
        let sent = fleet.with(member, |client, now| client.request(&mut request, None, now), ear);
        match sent.and_then(Result::ok) {
            Some(handle) => drop(ear.due.insert(handle.0, due)),
            None => ear.song.failed_reads += 1,
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
            // Every write, and room for two seconds of them.
            sampling_interval: 0.0,
            queue_size: 20,
            discard_oldest: true,
            ..MonitoringParameters::default()
        },
    }
}
