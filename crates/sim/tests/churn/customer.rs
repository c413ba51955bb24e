//! A client that changes its subscriptions all the time.

use crate::common::{SERVER, secs};
use crate::model::{Confirmed, Life, Seen};
use crate::plant::{POLLED, SHARED, Site, VARIABLES, WRITER};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_channel::ChannelConfig;
use taktwerk_client::{Client, ClientConfig, RequestHandle, SubscriptionHandle, SubscriptionParams, Target};
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_schema::{
    ModifyMonitoredItemsRequest, MonitoredItemCreateRequest, MonitoredItemModifyRequest, MonitoringMode,
    MonitoringParameters, ReadRequest, TimestampsToReturn, WriteRequest, WriteResponse, WriteValue,
};
use taktwerk_sim::plant::{monitor, url, value_of, variable_id};
use taktwerk_sim::{ClientId, Path, Route, Subscriber, World};
use taktwerk_types::DataValue;

/// AttributeId of Value (Part 6 Annex A).
const VALUE: u32 = 13;

fn path(entropy: &mut SeededEntropy) -> Path {
    Path {
        delay: Duration::from_micros(entropy.below(30_000)),
        jitter: Duration::from_micros(entropy.below(10_000)),
        loss_ppm: if entropy.below(4) == 0 { entropy.below(30_000) as u32 } else { 0 },
        give_up: secs(10 + entropy.below(40)),
        ..Path::LAN
    }
}

fn params(entropy: &mut SeededEntropy) -> SubscriptionParams {
    SubscriptionParams {
        publishing_interval_ms: 20.0 + entropy.below(500) as f64,
        lifetime_count: 60 + entropy.below(600) as u32,
        keep_alive_count: 3 + entropy.below(7) as u32,
        notifications_max: if entropy.below(2) == 0 { 0 } else { 1 + entropy.below(20) as u32 },
        ..SubscriptionParams::default()
    }
}

/// Settings of an item that reports every write, or of one that only samples.
fn settings(life: &Life, entropy: &mut SeededEntropy) -> MonitoringParameters {
    let is_polled = POLLED.contains(&life.variable);
    MonitoringParameters {
        client_handle: life.handle,
        sampling_interval: match (life.wants_all, is_polled) {
            (true, _) => 0.0,
            (false, false) => entropy.below(4) as f64 * 50.0,
            (false, true) => 50.0 + entropy.below(300) as f64,
        },
        queue_size: if life.wants_all { 2 + entropy.below(30) } else { 1 + entropy.below(3) } as u32,
        discard_oldest: entropy.below(4) != 0,
        ..MonitoringParameters::default()
    }
}

pub(crate) struct Customer {
    pub(crate) id: ClientId,
    /// All items that it has ever had.
    pub(crate) lives: Vec<Life>,
    subscription: SubscriptionHandle,
    /// The first part of its numbers.
    writer: i64,
    written: i64,
    /// Writes that have not been answered.
    open: BTreeMap<RequestHandle, Vec<(u32, i64)>>,
}

impl Customer {
    pub(crate) fn new(writer: u64, site: &mut Site, entropy: &mut SeededEntropy) -> Self {
        let channel = ChannelConfig { utc_origin: site.world.utc_origin(), ..ChannelConfig::default() };
        let mut config = ClientConfig {
            channel: Arc::new(channel),
            session_timeout_ms: 2000.0 + entropy.below(60_000) as f64,
            publish_max: 1 + entropy.below(6) as usize,
            ..ClientConfig::default()
        };
        config.reconnect.retry_first = true;
        let client = Client::new(Arc::new(config), Box::new(site.world.fork_entropy()));
        let route = Route { to_server: path(entropy), to_client: path(entropy), ..Route::default() };
        let id = site.world.add_client(client, Subscriber::default(), route);
        let target = Target::new(&url(SERVER)).unwrap();
        site.world.with_client(id, |client, _, now| client.connect(target, now.instant)).unwrap();
        let (writer, lives) = (writer as i64 * WRITER, Vec::new());
        let subscription = SubscriptionHandle(0);
        let mut customer = Self { id, lives, subscription, writer, written: 0, open: BTreeMap::new() };
        customer.subscribe(&mut site.world, entropy);
        customer
    }

    fn subscribe(&mut self, world: &mut World<Subscriber>, entropy: &mut SeededEntropy) {
        let params = params(entropy);
        let create = |client: &mut Client, now| client.create_subscription(params, now);
        self.subscription = world.with_client(self.id, |client, _, now| create(client, now.instant));
        (0..VARIABLES).for_each(|variable| self.watch(variable, world, entropy));
    }

    /// Adds an item. Its handle is never reused, so that notifications of one item are not attributed to another.
    fn watch(&mut self, variable: u32, world: &mut World<Subscriber>, entropy: &mut SeededEntropy) {
        let life = Life {
            handle: self.lives.len() as u32,
            variable,
            subscription: self.subscription,
            wants_all: !POLLED.contains(&variable) && entropy.below(3) != 0,
            is_live: true,
            switched: 0,
        };
        let requested_parameters = settings(&life, entropy);
        let item = MonitoredItemCreateRequest { requested_parameters, ..monitor(variable, 0) };
        self.lives.push(life);
        let subscription = self.subscription;
        world
            .with_client(self.id, |client, _, now| client.add_items(subscription, [item], now.instant))
            .unwrap();
    }

    /// One of its current items, if it has any.
    fn pick(&self, entropy: &mut SeededEntropy) -> Option<usize> {
        let at = entropy.below(self.lives.len() as u64) as usize;
        self.lives.get(at).filter(|life| life.is_live).map(|_| at)
    }

    /// Does something at random.
    pub(crate) fn act(
        &mut self,
        world: &mut World<Subscriber>,
        entropy: &mut SeededEntropy,
        seen: &mut Seen,
    ) {
        match entropy.below(24) {
            0..6 => self.write(world, entropy),
            6..9 => seen.modified += u64::from(self.modify_item(world, entropy)),
            9..12 => self.replace(world, entropy, seen),
            12 => {
                let (subscription, params) = (self.subscription, params(entropy));
                let modify = |client: &mut Client, now| client.modify_subscription(subscription, params, now);
                world.with_client(self.id, |client, _, now| modify(client, now.instant)).unwrap();
            }
            13 => self.set_publishing(entropy.below(3) != 0, world),
            14 | 15 => {
                let mode = match entropy.below(3) {
                    0 => MonitoringMode::DISABLED,
                    1 => MonitoringMode::SAMPLING,
                    _ => MonitoringMode::REPORTING,
                };
                let picked = self.pick(entropy).filter(|at| !self.lives[*at].wants_all);
                if picked.is_some() {
                    self.set_mode(picked, mode, world);
                }
            }
            16 if entropy.below(3) == 0 => {
                let subscription = self.subscription;
                let delete = |client: &mut Client, now| client.delete_subscription(subscription, now);
                world.with_client(self.id, |client, _, now| delete(client, now.instant)).unwrap();
                self.lives.iter_mut().for_each(|life| life.is_live = false);
                seen.deleted += 1;
                self.subscribe(world, entropy);
            }
            17 => {
                let nodes_to_read = (0..VARIABLES).map(value_of).collect();
                let request = ReadRequest {
                    timestamps_to_return: TimestampsToReturn::BOTH,
                    nodes_to_read,
                    ..ReadRequest::default()
                };
                // The request fails if the client is not connected.
                let _ = world.request(self.id, request);
            }
            _ => {}
        }
    }

    /// Writes the next number to variables that others write too.
    fn write(&mut self, world: &mut World<Subscriber>, entropy: &mut SeededEntropy) {
        let count = 1 + entropy.below(4);
        let mut numbers = Vec::new();
        let nodes_to_write = (0..count).map(|_| {
            self.written += 1;
            let number = self.writer + self.written;
            let variable = SHARED.start + entropy.below(u64::from(SHARED.end - SHARED.start)) as u32;
            numbers.push((variable, number));
            WriteValue {
                node_id: variable_id(variable),
                attribute_id: VALUE,
                value: DataValue::new(number),
                ..WriteValue::default()
            }
        });
        let request = WriteRequest { nodes_to_write: nodes_to_write.collect(), ..WriteRequest::default() };
        if let Ok(handle) = world.request(self.id, request) {
            self.open.insert(handle, numbers);
        }
    }

    /// Modifies an item by its id on the server; returns `false` if it currently has none.
    fn modify_item(&mut self, world: &mut World<Subscriber>, entropy: &mut SeededEntropy) -> bool {
        let Some(life) = self.pick(entropy).map(|at| &self.lives[at]) else { return false };
        let client = world.client(self.id).client();
        let ids = client
            .subscription_id(life.subscription)
            .zip(client.monitored_item_id(life.subscription, life.handle));
        let Some((subscription_id, monitored_item_id)) = ids else { return false };
        let requested_parameters = settings(life, entropy);
        let request = ModifyMonitoredItemsRequest {
            subscription_id,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_modify: vec![MonitoredItemModifyRequest { monitored_item_id, requested_parameters }],
            ..ModifyMonitoredItemsRequest::default()
        };
        world.request(self.id, request).is_ok()
    }

    /// Replaces an item by a new one for the same variable.
    fn replace(&mut self, world: &mut World<Subscriber>, entropy: &mut SeededEntropy, seen: &mut Seen) {
        let Some(at) = self.pick(entropy) else { return };
        let (subscription, handle) = (self.subscription, self.lives[at].handle);
        self.lives[at].is_live = false;
        let remove = |client: &mut Client, now| client.remove_items(subscription, &[handle], now);
        world.with_client(self.id, |client, _, now| remove(client, now.instant)).unwrap();
        seen.deleted += 1;
        self.watch(self.lives[at].variable, world, entropy);
    }

    pub(crate) fn set_publishing(&mut self, enabled: bool, world: &mut World<Subscriber>) {
        let subscription = self.subscription;
        let set = |client: &mut Client, now| client.set_publishing_mode(subscription, enabled, now);
        world.with_client(self.id, |client, _, now| set(client, now.instant)).unwrap();
    }

    /// Sets the mode of one item, or of all its items.
    pub(crate) fn set_mode(
        &mut self,
        at: Option<usize>,
        mode: MonitoringMode,
        world: &mut World<Subscriber>,
    ) {
        let lives = self.lives.iter_mut().enumerate();
        let lives = lives.filter(|(number, life)| at.is_none_or(|at| at == *number) && life.is_live);
        let handles = lives.map(|(_, life)| {
            life.switched += 1;
            life.handle
        });
        let (handles, subscription) = (handles.collect::<Vec<u32>>(), self.subscription);
        let set = |client: &mut Client, now| client.set_monitoring_mode(subscription, &handles, mode, now);
        world.with_client(self.id, |client, _, now| set(client, now.instant)).unwrap();
    }

    /// Records which writes were answered.
    pub(crate) fn confirm(&mut self, world: &mut World<Subscriber>, confirmed: &mut Confirmed) {
        let responses = core::mem::take(&mut world.client_mut(self.id).application.responses);
        for (_, handle, result) in responses {
            let (Some(numbers), Ok(reply)) = (self.open.remove(&handle), result) else { continue };
            let response: WriteResponse = reply.decode().unwrap();
            assert_eq!(response.results.len(), numbers.len());
            let written = numbers.iter().zip(&response.results).filter(|(_, status)| status.is_good());
            for ((variable, number), _) in written {
                confirmed.entry(*variable).or_default().insert(*number);
            }
        }
    }
}
