//! Clients of a gateway, or of a source behind it. Each subscribes to all tags and evaluates the times in the values.

use crate::client::session;
use crate::context::Context;
use crate::error::GeneratorError;
use crate::values;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use taktwerk_channel::{ChannelConfig, ChannelLimits};
use taktwerk_client::config::ReconnectPolicy;
use taktwerk_client::{
    Client, ClientConfig, ClientError, DataChanges, Event, Reply, RequestHandle, SubscriptionEvent,
    SubscriptionHandle, SubscriptionParams, Target,
};
use taktwerk_load::clock;
use taktwerk_load::latency::Times;
use taktwerk_net::client::{Fleet, FleetOptions, FleetSink, MemberId};
use taktwerk_schema::MonitoredItemCreateRequest;
use taktwerk_types::{Instant, NodeId, Variant};

/// Monitored items per request.
const ITEMS_PER_REQUEST: usize = 2_000;
/// Timeout for subscribing, in nanoseconds.
const PATIENCE: u64 = 60_000_000_000;

/// Observations within a window.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Number of received values.
    pub(super) values: u64,
    /// Delays from the change at the source to the client, for values that contain a time.
    pub(super) delays: Times,
}

/// Time since a value changed at its source, in nanoseconds, if the value contains it. Arguments: index of the tag,
/// value, and monotonic time.
pub(super) type AgeOf = Box<dyn Fn(u32, &Variant, u64) -> Option<u64> + Send>;

/// What to subscribe to.
pub(super) struct Watched {
    /// The tags.
    pub(super) nodes: Vec<NodeId>,
    /// Requested sampling interval; zero is the fastest.
    pub(super) sampling: Duration,
    /// Queue size of each monitored item.
    pub(super) queue: u32,
    /// How to read the age of values.
    pub(super) age: AgeOf,
}

/// Clients that subscribe to the tags of a gateway.
pub(super) struct Watcher {
    fleet: Fleet,
    sink: Sink,
    port: u16,
}

struct Sink {
    age: AgeOf,
    members: Vec<Member>,
    /// Number of items per client.
    items: usize,
    refused: Option<String>,
    error: Option<ClientError>,
    /// Which items have received a value: those of the first client, then of the second, and so on.
    heard: Vec<bool>,
    seen: Seen,
}

/// Progress of a client.
#[derive(Debug, Clone, Default)]
struct Member {
    connected: bool,
    is_creating: bool,
    subscription: Option<SubscriptionHandle>,
    is_adding: bool,
}

impl Sink {
    fn set(&mut self, id: MemberId, what: impl FnOnce(&mut Member)) {
        if let Some(member) = self.members.get_mut(id.0 as usize) {
            what(member);
        }
    }
}

impl FleetSink for Sink {
    fn event(&mut self, id: MemberId, event: Event, _: Instant) {
        match event {
            Event::Connected(_) => self.set(id, |member| member.connected = true),
            Event::Disconnected(error) => self.error = error.or_else(|| self.error.take()),
            Event::ConnectionLost { error, .. } => self.error = Some(error),
            Event::Subscription(handle, SubscriptionEvent::Created { .. }) => {
                self.set(id, |member| member.subscription = Some(handle));
            }
            Event::Subscription(_, SubscriptionEvent::CreateFailed(error)) => self.error = Some(error),
            Event::Subscription(_, SubscriptionEvent::Items(results)) => {
                if let Some(bad) = results.iter().find(|item| item.status.is_bad()) {
                    self.refused = Some(bad.status.to_string());
                }
            }
            _ => {}
        }
    }

    fn response(&mut self, _: MemberId, _: RequestHandle, _: Result<Reply<'_>, ClientError>, _: Instant) {}

    fn data_changes(&mut self, id: MemberId, _: SubscriptionHandle, changes: DataChanges<'_>, now: Instant) {
        let first = id.0 as usize * self.items;
        for (handle, value) in changes.flatten() {
            let Some(content) = value.value.as_ref().filter(|_| value.status().is_good()) else { continue };
            self.seen.values += 1;
            if let Some(heard) = self.heard.get_mut(first + handle as usize) {
                *heard = true;
            }
            if let Some(age) = (self.age)(handle, content, now.as_nanos()) {
                self.seen.delays.record(age);
            }
        }
    }
}

impl Watcher {
    /// Connects one client and subscribes. Returns when every tag has had a value.
    pub(super) fn connect(
        url: &str,
        watched: Watched,
        interval: Duration,
        context: &Context<'_>,
    ) -> Result<Self, GeneratorError> {
        Self::connect_all(url, 1, watched, interval, context)
    }

    /// Like [`Self::connect`], with several clients.
    pub(super) fn connect_all(
        url: &str,
        clients: u32,
        watched: Watched,
        interval: Duration,
        context: &Context<'_>,
    ) -> Result<Self, GeneratorError> {
        let target =
            Target::direct(url).map_err(|error| GeneratorError::Environment(format!("{url}: {error}")))?;
        let limits = ChannelLimits {
            message_size_max: 64 << 20,
            chunk_count_max: 1 << 16,
            ..ChannelLimits::default()
        };
        let config = ClientConfig {
            channel: Arc::new(ChannelConfig { limits, ..ChannelConfig::default() }),
            read_limits: false,
            reconnect: ReconnectPolicy { enabled: false, ..ReconnectPolicy::default() },
            ..ClientConfig::default()
        };
        let mut fleet =
            Fleet::new(Arc::new(config), FleetOptions::default()).map_err(crate::common::environment)?;
        for _ in 0..clients {
            fleet.add(target.clone());
        }
        let items: Vec<_> = watched
            .nodes
            .into_iter()
            .zip(0..)
            .map(|(node, handle)| values::monitored(node, handle, watched.sampling, watched.queue))
            .collect();
        let sink = Sink {
            age: watched.age,
            members: vec![Member::default(); clients as usize],
            items: items.len(),
            refused: None,
            error: None,
            heard: vec![false; items.len() * clients as usize],
            seen: Seen::default(),
        };
        let port =
            url.rsplit(':').next().and_then(|port| port.trim_end_matches('/').parse().ok()).unwrap_or(0);
        let mut watcher = Self { fleet, sink, port };
        watcher.subscribe(&items, interval, context)?;
        Ok(watcher)
    }

    fn subscribe(
        &mut self,
        items: &[MonitoredItemCreateRequest],
        interval: Duration,
        context: &Context<'_>,
    ) -> Result<(), GeneratorError> {
        let params = SubscriptionParams {
            publishing_interval_ms: interval.as_secs_f64() * 1e3,
            ..SubscriptionParams::default()
        };
        let end = clock::monotonic() + PATIENCE;
        let mut progress = context.step("subscribing", self.sink.heard.len() as u64);
        loop {
            let silent = self.sink.heard.iter().filter(|heard| !**heard).count();
            if silent == 0 {
                return Ok(());
            }
            progress.at((self.sink.heard.len() - silent) as u64);
            if context.is_ended() {
                return Err(GeneratorError::Interrupted);
            }
            self.check()?;
            if clock::monotonic() > end {
                return Err(GeneratorError::Environment(format!(
                    "{silent} of {} items have no value after {} s",
                    self.sink.heard.len(),
                    PATIENCE / 1_000_000_000
                )));
            }
            for number in 0..self.sink.members.len() {
                self.go_on(number, items, &params)?;
            }
            let until = clock::monotonic() + 50_000_000;
            self.fleet
                .run_once(Instant::from_nanos(until), &mut self.sink)
                .map_err(crate::common::environment)?;
        }
    }

    /// The next step of a client's set-up.
    fn go_on(
        &mut self,
        number: usize,
        items: &[MonitoredItemCreateRequest],
        params: &SubscriptionParams,
    ) -> Result<(), GeneratorError> {
        let (Some(member), Ok(id)) = (self.sink.members.get_mut(number), u32::try_from(number)) else {
            return Ok(());
        };
        if member.connected && !member.is_creating {
            member.is_creating = true;
            self.fleet.with(
                MemberId(id),
                |core, now| core.create_subscription(params.clone(), now),
                &mut self.sink,
            );
        } else if let (Some(handle), false) = (member.subscription, member.is_adding) {
            member.is_adding = true;
            for part in items.chunks(ITEMS_PER_REQUEST) {
                let add = |core: &mut Client, now| core.add_items(handle, part.to_vec(), now);
                if let Some(Err(error)) = self.fleet.with(MemberId(id), add, &mut self.sink) {
                    return Err(GeneratorError::Connect(error.to_string()));
                }
            }
        }
        Ok(())
    }

    /// The first error since the last call.
    pub(super) fn check(&self) -> Result<(), GeneratorError> {
        if let Some(error) = &self.sink.error {
            return Err(session::failure(error));
        }
        match &self.sink.refused {
            Some(status) => Err(GeneratorError::BadStatus(format!("an item was refused: {status}"))),
            None => Ok(()),
        }
    }

    /// Receives until a time.
    pub(super) fn run_until(&mut self, until: u64) -> io::Result<()> {
        self.fleet.run_until(Instant::from_nanos(until), &mut self.sink).map(drop)
    }

    /// The observations since the last call.
    pub(super) fn take(&mut self) -> Seen {
        std::mem::take(&mut self.sink.seen)
    }

    /// The port of the gateway.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Closes the sessions.
    pub(super) fn leave(&mut self) {
        for id in 0..self.sink.members.len() as u32 {
            self.fleet.with(MemberId(id), |core, now| core.disconnect(now), &mut self.sink);
        }
    }
}
