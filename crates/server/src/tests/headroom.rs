//! Admission by predicted CPU load: intervals are revised and items refused.

use super::attribute::{add, variable};
use super::events;
use super::*;
use crate::headroom::{Admit, Headroom, Prices, Report};
use schema::{
    CreateMonitoredItemsRequest, CreateSubscriptionRequest, DeleteMonitoredItemsRequest,
    DeleteSubscriptionsRequest, ModifyMonitoredItemsRequest, ModifySubscriptionRequest,
    MonitoredItemCreateRequest, MonitoredItemModifyRequest, MonitoringMode, MonitoringParameters,
    ReadValueId, SetMonitoringModeRequest, SetPublishingModeRequest, TimestampsToReturn,
};
use taktwerk_types::BuiltInType;

/// 1 ms per value and 10 ms per message: a hundred values per second are a tenth of a core.
const PRICES: Prices = Prices { idle: 0.0, value: 1e-3, value_growth: 0.0, message: 1e-2 };

struct World {
    server: Server,
    client: Client,
    headroom: Arc<Headroom>,
}

impl World {
    fn new(limit: f64, admit: Admit) -> Self {
        let headroom = Headroom::new(PRICES, limit, admit);
        let mut server = Server::with(|config| config.headroom = Some(Arc::clone(&headroom)));
        add(&server, variable(1, BuiltInType::Double, 1.0));
        let client = server.session();
        Self { server, client, headroom }
    }

    fn report(&self) -> Report {
        self.headroom.report()
    }

    /// The id and the revised interval.
    fn subscribe(&mut self, interval: f64) -> (u32, f64) {
        self.subscribe_with(interval, true)
    }

    fn subscribe_with(&mut self, interval: f64, publishing_enabled: bool) -> (u32, f64) {
        let request = CreateSubscriptionRequest {
            request_header: self.client.header(),
            requested_publishing_interval: interval,
            requested_lifetime_count: 30,
            requested_max_keep_alive_count: 10,
            publishing_enabled,
            ..Default::default()
        };
        let response = self.client.call(&mut self.server, &request).unwrap();
        (response.subscription_id, response.revised_publishing_interval)
    }

    fn modify(&mut self, subscription_id: u32, interval: f64) -> f64 {
        let request = ModifySubscriptionRequest {
            request_header: self.client.header(),
            subscription_id,
            requested_publishing_interval: interval,
            requested_lifetime_count: 30,
            requested_max_keep_alive_count: 10,
            ..Default::default()
        };
        self.client.call(&mut self.server, &request).unwrap().revised_publishing_interval
    }

    fn items(&mut self, subscription_id: u32, count: usize, mode: MonitoringMode) -> Vec<(StatusCode, u32)> {
        self.items_with(subscription_id, count, mode, MonitoringParameters::default())
    }

    fn items_with(
        &mut self,
        subscription_id: u32,
        count: usize,
        mode: MonitoringMode,
        requested_parameters: MonitoringParameters,
    ) -> Vec<(StatusCode, u32)> {
        let item = MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId {
                node_id: NodeId::numeric(1, 1),
                attribute_id: 13,
                ..Default::default()
            },
            monitoring_mode: mode,
            requested_parameters,
        };
        self.create(subscription_id, vec![item; count])
    }

    /// Items for events of the Server object.
    fn event_items(
        &mut self,
        subscription_id: u32,
        count: usize,
        mode: MonitoringMode,
    ) -> Vec<(StatusCode, u32)> {
        let parameters = events::parameters(&events::filter(&["Severity"]), 10);
        let mut item = events::item(events::SERVER, parameters);
        item.monitoring_mode = mode;
        self.create(subscription_id, vec![item; count])
    }

    fn create(
        &mut self,
        subscription_id: u32,
        items_to_create: Vec<MonitoredItemCreateRequest>,
    ) -> Vec<(StatusCode, u32)> {
        let request = CreateMonitoredItemsRequest {
            request_header: self.client.header(),
            subscription_id,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_create,
        };
        let results = self.client.call(&mut self.server, &request).unwrap().results;
        results.iter().map(|one| (one.status_code, one.monitored_item_id)).collect()
    }

    fn set_mode(
        &mut self,
        subscription_id: u32,
        items: &[(StatusCode, u32)],
        monitoring_mode: MonitoringMode,
    ) -> Vec<StatusCode> {
        let request = SetMonitoringModeRequest {
            request_header: self.client.header(),
            subscription_id,
            monitoring_mode,
            monitored_item_ids: items.iter().map(|one| one.1).collect(),
        };
        self.client.call(&mut self.server, &request).unwrap().results
    }

    fn set_publishing(&mut self, publishing_enabled: bool, subscription_ids: Vec<u32>) -> Vec<StatusCode> {
        let request = SetPublishingModeRequest {
            request_header: self.client.header(),
            publishing_enabled,
            subscription_ids,
        };
        self.client.call(&mut self.server, &request).unwrap().results
    }

    fn modify_item(
        &mut self,
        subscription_id: u32,
        item: (StatusCode, u32),
        requested_parameters: MonitoringParameters,
    ) -> StatusCode {
        let modify = MonitoredItemModifyRequest { monitored_item_id: item.1, requested_parameters };
        let request = ModifyMonitoredItemsRequest {
            request_header: self.client.header(),
            subscription_id,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_modify: vec![modify],
        };
        self.client.call(&mut self.server, &request).unwrap().results[0].status_code
    }

    fn delete(&mut self, subscription_id: u32, items: &[(StatusCode, u32)]) {
        let request = DeleteMonitoredItemsRequest {
            request_header: self.client.header(),
            subscription_id,
            monitored_item_ids: items.iter().map(|one| one.1).collect(),
        };
        self.client.call(&mut self.server, &request).unwrap();
    }
}

const FULL: StatusCode = StatusCode::BAD_TOO_MANY_MONITORED_ITEMS;

/// How many are Good; the others must have the StatusCode.
fn granted(results: impl IntoIterator<Item = StatusCode>, other: StatusCode) -> usize {
    let (good, rest): (Vec<_>, Vec<_>) = results.into_iter().partition(|status| *status == StatusCode::GOOD);
    assert!(rest.iter().all(|status| *status == other), "{rest:?}");
    good.len()
}

fn queue(queue_size: u32, sampling_interval: f64) -> MonitoringParameters {
    MonitoringParameters { queue_size, sampling_interval, ..Default::default() }
}

#[test]
fn demand_follows_every_change_of_a_subscription() {
    let mut world = World::new(10.0, Admit::Always);
    let (id, interval) = world.subscribe(100.0);
    assert_eq!((interval, world.report().subscriptions, world.report().predicted), (100.0, 1, 0.0));
    let items = world.items(id, 5, MonitoringMode::REPORTING);
    // 50 values and 10 messages per second.
    assert!((world.report().predicted - 0.15).abs() < 1e-9, "{:?}", world.report());
    assert_eq!(world.modify(id, 200.0), 200.0);
    assert!((world.report().predicted - 0.075).abs() < 1e-9, "{:?}", world.report());
    world.set_mode(id, &items[..1], MonitoringMode::DISABLED);
    assert_eq!((world.report().items, world.report().values_per_s), (4, 20.0));
    world.delete(id, &items[1..2]);
    assert_eq!(world.report().values_per_s, 15.0);
    for (publishing_enabled, values) in [(false, 0.0), (true, 15.0)] {
        world.set_publishing(publishing_enabled, vec![id]);
        assert_eq!(world.report().values_per_s, values);
    }
    let delete =
        DeleteSubscriptionsRequest { request_header: world.client.header(), subscription_ids: vec![id] };
    world.client.call(&mut world.server, &delete).unwrap();
    let report = world.report();
    assert_eq!((report.predicted, report.items, report.subscriptions), (0.0, 0, 0));
}

#[test]
fn excess_demand_is_refused_or_published_less_often() {
    let mut world = World::new(0.5, Admit::Headroom);
    let (id, _) = world.subscribe(100.0);
    // A message costs 0.1, each item 0.01.
    let full = StatusCode::BAD_TOO_MANY_MONITORED_ITEMS;
    let results = world.items(id, 50, MonitoringMode::REPORTING);
    let granted = results.iter().filter(|one| one.0 == StatusCode::GOOD).count();
    assert_eq!((granted, results.last().map(|one| one.0)), (40, Some(full)));
    assert_eq!(world.report().refused, 10);
    // Disabled items cost nothing yet.
    assert_eq!(world.items(id, 1, MonitoringMode::DISABLED)[0].0, StatusCode::GOOD);
    // Twice the rate is too much, half the rate is not.
    let revised = world.modify(id, 50.0);
    assert!((100.0..101.0).contains(&revised), "{revised}");
    assert_eq!(world.modify(id, 200.0), 200.0);
    assert_eq!(world.items(id, 1, MonitoringMode::REPORTING)[0].0, StatusCode::GOOD);
    // Another subscription can use the rest: 0.245.
    let (_, interval) = world.subscribe(10.0);
    assert!((44.0..46.0).contains(&interval), "{interval}");
    assert_eq!(world.report().revised, 2);
    assert!(world.report().predicted <= 0.5);
}

/// Prices follow the CPU of sent messages; without messages they do not change.
#[test]
fn sent_messages_are_compared_with_the_cpu() {
    let mut world = World::new(1.0, Admit::Always);
    let (id, _) = world.subscribe(100.0);
    world.items(id, 5, MonitoringMode::REPORTING);
    let span = core::time::Duration::from_millis(100);
    // The subscription is new.
    world.headroom.measured(0.3, span);
    world.headroom.measured(0.3, span);
    assert_eq!(world.report().factor, 1.0);
    super::flow::publish(&mut world.client, &mut world.server);
    world.server.pass(core::time::Duration::from_millis(250));
    world.client.drain(&mut world.server);
    // Five values and a message are 15 ms, or 0.15 cores.
    world.headroom.measured(0.3, span);
    let factor = world.report().factor;
    assert!(factor > 1.01, "{factor}");
    world.headroom.measured(0.9, span);
    assert_eq!(world.report().factor, factor);
}

/// Items that are created disabled are admitted when they are enabled.
#[test]
fn enabling_items_is_refused_beyond_the_headroom() {
    let (disabled, reporting) = (MonitoringMode::DISABLED, MonitoringMode::REPORTING);
    let mut world = World::new(0.5, Admit::Headroom);
    let (id, _) = world.subscribe(100.0);
    let items = world.items(id, 50, disabled);
    assert_eq!((granted(items.iter().map(|one| one.0), FULL), world.report().predicted), (50, 0.0));
    // A message costs 0.1, each item 0.01.
    let results = world.set_mode(id, &items, reporting);
    assert_eq!((granted(results.clone(), FULL), results[49]), (40, FULL));
    assert_eq!((world.report().items, world.report().refused), (40, 10));
    assert!(world.report().predicted <= 0.5, "{:?}", world.report());
    // Enabled items may change between Sampling and Reporting.
    assert_eq!(granted(world.set_mode(id, &items[..40], MonitoringMode::SAMPLING), FULL), 40);
    assert_eq!(world.set_mode(id, &items[40..41], MonitoringMode::SAMPLING), [FULL]);
    // A disabled item frees capacity for another.
    assert_eq!(world.set_mode(id, &items[..1], disabled), [StatusCode::GOOD]);
    assert_eq!(granted(world.set_mode(id, &items[40..], reporting), FULL), 1);
    // Without admission, all are enabled.
    let mut world = World::new(0.5, Admit::Always);
    let (id, _) = world.subscribe(100.0);
    let items = world.items(id, 50, disabled);
    assert_eq!(granted(world.set_mode(id, &items, reporting), FULL), 50);
}

/// Event items count as one value per interval, when they are created and when they are enabled.
#[test]
fn event_items_are_refused_beyond_the_headroom() {
    let mut world = World::new(0.5, Admit::Headroom);
    let (id, _) = world.subscribe(100.0);
    let created = world.event_items(id, 30, MonitoringMode::REPORTING);
    assert_eq!(granted(created.iter().map(|one| one.0), FULL), 30);
    assert_eq!(world.report().values_per_s, 300.0);
    let created = world.event_items(id, 20, MonitoringMode::DISABLED);
    assert_eq!(granted(created.iter().map(|one| one.0), FULL), 20);
    assert_eq!(granted(world.set_mode(id, &created, MonitoringMode::REPORTING), FULL), 10);
    assert_eq!(world.event_items(id, 1, MonitoringMode::REPORTING)[0].0, FULL);
    assert_eq!((world.report().items, world.report().refused), (40, 11));
    world.set_mode(id, &created, MonitoringMode::DISABLED);
    assert_eq!(world.report().values_per_s, 300.0);
}

/// Subscriptions that are created without publishing are admitted when publishing is enabled.
#[test]
fn enabling_publishing_is_refused_beyond_the_headroom() {
    let refused = StatusCode::BAD_RESOURCE_UNAVAILABLE;
    let mut world = World::new(0.5, Admit::Headroom);
    let ids: Vec<u32> = (0..4).map(|_| world.subscribe_with(100.0, false).0).collect();
    for id in &ids {
        // A message costs 0.1, and the items of each subscription 0.1.
        let items = world.items(*id, 10, MonitoringMode::REPORTING);
        assert!(items.iter().all(|one| one.0 == StatusCode::GOOD));
    }
    assert_eq!(world.report().predicted, 0.0);
    let results = world.set_publishing(true, ids.clone());
    assert_eq!(results, [StatusCode::GOOD, StatusCode::GOOD, refused, refused]);
    assert_eq!((world.report().items, world.report().refused), (20, 2));
    // No admission for what is enabled already, and for disabling.
    assert_eq!(world.set_publishing(true, ids[..2].to_vec()), [StatusCode::GOOD; 2]);
    assert_eq!(world.set_publishing(false, vec![ids[0], ids[3]]), [StatusCode::GOOD; 2]);
    assert_eq!(world.set_publishing(true, vec![ids[2]]), [StatusCode::GOOD]);
    // Without items there are only keep-alives.
    let (empty, _) = world.subscribe_with(100.0, false);
    assert_eq!(world.set_publishing(true, vec![empty]), [StatusCode::GOOD]);
}

/// Items with queues deliver several values per interval (Part 4 §5.13.1.5).
#[test]
fn demand_follows_queues_and_sampling_intervals() {
    let (disabled, reporting) = (MonitoringMode::DISABLED, MonitoringMode::REPORTING);
    let mut world = World::new(0.5, Admit::Headroom);
    let (id, _) = world.subscribe(1_000.0);
    // A message per second costs 0.01; each value per second 0.001.
    let items = world.items_with(id, 5, reporting, queue(100, 10.0));
    assert_eq!(granted(items.iter().map(|one| one.0), FULL), 4);
    assert_eq!((world.report().values_per_s, world.report().refused), (400.0, 1));
    // Half as long an interval: half as many values per message, and twice the messages.
    assert_eq!(world.modify(id, 500.0), 500.0);
    assert_eq!(world.report().values_per_s, 400.0);
    // Twice as long: the queue is the limit.
    assert_eq!(world.modify(id, 2_000.0), 2_000.0);
    assert_eq!(world.report().values_per_s, 200.0);
    assert_eq!(world.modify(id, 1_000.0), 1_000.0);
    assert_eq!(world.modify_item(id, items[0], queue(10, 10.0)), StatusCode::GOOD);
    assert_eq!(world.report().values_per_s, 310.0);
    assert_eq!(world.set_mode(id, &items[..2], disabled), [StatusCode::GOOD; 2]);
    assert_eq!(world.report().values_per_s, 200.0);
    // Every write: up to the queue.
    let more = world.items_with(id, 1, reporting, queue(50, 0.0))[0];
    assert_eq!((more.0, world.report().values_per_s), (StatusCode::GOOD, 250.0));
    // More than fits: the item keeps its settings.
    assert_eq!(world.modify_item(id, more, queue(400, 0.0)), FULL);
    assert_eq!(world.report().values_per_s, 250.0);
    assert_eq!(world.modify_item(id, more, queue(1, 0.0)), StatusCode::GOOD);
    assert_eq!(world.report().values_per_s, 201.0);
    // A disabled item gets its settings, and is refused when it is enabled.
    assert_eq!(world.modify_item(id, items[0], queue(400, 0.0)), StatusCode::GOOD);
    assert_eq!(world.set_mode(id, &items[..1], reporting), [FULL]);
    world.delete(id, &items[..4]);
    assert_eq!((world.report().items, world.report().values_per_s), (1, 1.0));
}
