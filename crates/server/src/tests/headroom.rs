//! What clients ask for is reckoned with, slowed down and refused.

use super::attribute::{add, variable};
use super::*;
use crate::headroom::{Admit, Headroom, Prices, Report};
use schema::{
    CreateMonitoredItemsRequest, CreateSubscriptionRequest, DeleteMonitoredItemsRequest,
    DeleteSubscriptionsRequest, ModifySubscriptionRequest, MonitoredItemCreateRequest, MonitoringMode,
    MonitoringParameters, ReadValueId, SetMonitoringModeRequest, SetPublishingModeRequest,
    TimestampsToReturn,
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
        let request = CreateSubscriptionRequest {
            request_header: self.client.header(),
            requested_publishing_interval: interval,
            requested_lifetime_count: 30,
            requested_max_keep_alive_count: 10,
            publishing_enabled: true,
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
        let item = MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId {
                node_id: NodeId::numeric(1, 1),
                attribute_id: 13,
                ..Default::default()
            },
            monitoring_mode: mode,
            requested_parameters: MonitoringParameters::default(),
        };
        let request = CreateMonitoredItemsRequest {
            request_header: self.client.header(),
            subscription_id,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_create: vec![item; count],
        };
        let results = self.client.call(&mut self.server, &request).unwrap().results;
        results.iter().map(|one| (one.status_code, one.monitored_item_id)).collect()
    }
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
    let disable = SetMonitoringModeRequest {
        request_header: world.client.header(),
        subscription_id: id,
        monitoring_mode: MonitoringMode::DISABLED,
        monitored_item_ids: vec![items[0].1],
    };
    world.client.call(&mut world.server, &disable).unwrap();
    assert_eq!((world.report().items, world.report().values_per_s), (4, 20.0));
    let delete = DeleteMonitoredItemsRequest {
        request_header: world.client.header(),
        subscription_id: id,
        monitored_item_ids: vec![items[1].1],
    };
    world.client.call(&mut world.server, &delete).unwrap();
    assert_eq!(world.report().values_per_s, 15.0);
    for (publishing_enabled, values) in [(false, 0.0), (true, 15.0)] {
        let request = SetPublishingModeRequest {
            request_header: world.client.header(),
            publishing_enabled,
            subscription_ids: vec![id],
        };
        world.client.call(&mut world.server, &request).unwrap();
        assert_eq!(world.report().values_per_s, values);
    }
    let delete =
        DeleteSubscriptionsRequest { request_header: world.client.header(), subscription_ids: vec![id] };
    world.client.call(&mut world.server, &delete).unwrap();
    let report = world.report();
    assert_eq!((report.predicted, report.items, report.subscriptions), (0.0, 0, 0));
}

#[test]
fn what_does_not_fit_is_refused_or_published_less_often() {
    let mut world = World::new(0.5, Admit::Headroom);
    let (id, _) = world.subscribe(100.0);
    // A message costs 0.1, each item 0.01.
    let full = StatusCode::BAD_TOO_MANY_MONITORED_ITEMS;
    let results = world.items(id, 50, MonitoringMode::REPORTING);
    let granted = results.iter().filter(|one| one.0 == StatusCode::GOOD).count();
    assert_eq!((granted, results.last().map(|one| one.0)), (40, Some(full)));
    assert_eq!(world.report().refused, 10);
    // Items that are disabled cost nothing yet.
    assert_eq!(world.items(id, 1, MonitoringMode::DISABLED)[0].0, StatusCode::GOOD);
    // Twice as often is too often, half as often is not.
    let revised = world.modify(id, 50.0);
    assert!((100.0..101.0).contains(&revised), "{revised}");
    assert_eq!(world.modify(id, 200.0), 200.0);
    assert_eq!(world.items(id, 1, MonitoringMode::REPORTING)[0].0, StatusCode::GOOD);
    // Another subscription can have what is left: 0.245.
    let (_, interval) = world.subscribe(10.0);
    assert!((44.0..46.0).contains(&interval), "{interval}");
    assert_eq!(world.report().revised, 2);
    assert!(world.report().predicted <= 0.5);
}
