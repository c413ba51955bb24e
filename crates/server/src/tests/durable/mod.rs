//! Durable subscriptions over the wire: they survive the server, with undelivered notifications.

mod full_disk;
mod limits;
mod restarted;
mod survival;

use super::attribute::{add, variable};
use super::flow::{publish, values};
use super::transfer::Pair;
use super::*;
use crate::durable::{Change, DurableConfig, DurableStore, Log};
use crate::history::StoreError;
use schema::ids::{method_ids, object_ids, object_type_ids};
use schema::{
    CallMethodRequest, CallMethodResult, CallRequest, CreateMonitoredItemsRequest, CreateSubscriptionRequest,
    DataChangeNotification, DeleteMonitoredItemsRequest, DeleteSubscriptionsRequest, EventFilter,
    EventNotificationList, MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters,
    NotificationMessage, PublishResponse, ReadValueId, RepublishRequest, RepublishResponse,
    SetMonitoringModeRequest, SimpleAttributeOperand, SubscriptionAcknowledgement, TimestampsToReturn,
    TransferResult, TransferSubscriptionsRequest,
};
use std::collections::BTreeMap;
use std::sync::Mutex;
use taktwerk_types::{BuiltInType, ExtensionObject, QualifiedName, Variant};

/// A store that outlives servers, and can be full.
#[derive(Debug, Default)]
pub(super) struct Memory {
    logs: Mutex<BTreeMap<u32, Vec<Vec<u8>>>>,
    is_full: Mutex<bool>,
    /// Bytes of the last attempted write.
    asked: Mutex<usize>,
}

impl DurableStore for Memory {
    fn load(&self) -> Result<Vec<Log>, StoreError> {
        let logs = self.logs.lock().unwrap();
        Ok(logs.iter().map(|(id, records)| Log { subscription: *id, records: records.clone() }).collect())
    }

    fn write(&self, changes: &[Change]) -> Result<(), StoreError> {
        let len = |change: &Change| match change {
            Change::Append { record, .. } | Change::Replace { record, .. } => record.len(),
            Change::Delete { .. } => 0,
        };
        *self.asked.lock().unwrap() = changes.iter().map(len).sum();
        if *self.is_full.lock().unwrap() {
            return Err(StoreError::unavailable("the disk is full".to_owned()));
        }
        let mut logs = self.logs.lock().unwrap();
        for change in changes {
            match change.clone() {
                Change::Append { subscription, record } => logs.entry(subscription).or_default().push(record),
                Change::Replace { subscription, record } => {
                    logs.insert(subscription, vec![record]);
                }
                Change::Delete { subscription } => {
                    logs.remove(&subscription);
                }
            }
        }
        Ok(())
    }

    fn records(&self, subscription: u32) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(self.logs.lock().unwrap().get(&subscription).cloned().unwrap_or_default())
    }
}

fn started(store: &Arc<Memory>, change: impl FnOnce(&mut DurableConfig)) -> Server {
    started_with(store, change, |_| {})
}

fn started_with(
    store: &Arc<Memory>,
    change: impl FnOnce(&mut DurableConfig),
    change_server: impl FnOnce(&mut ServerConfig),
) -> Server {
    let utc = UtcTime::parse("2026-01-01T00:00:00Z").unwrap();
    let mut config = ServerConfig::new("Test", APPLICATION, URL, utc);
    let mut durable = DurableConfig::new(Arc::clone(store) as Arc<dyn DurableStore>);
    change(&mut durable);
    config.durable = Some(durable);
    change_server(&mut config);
    let space = Arc::new(AddressSpace::new(1, 4096, APPLICATION));
    let shared = ServerShared::new(config, Arc::clone(&space), 1, utc);
    let now = Now { instant: Instant::ZERO + Duration::from_secs(1), utc };
    shared.load_durable().unwrap();
    let shard = Shard::new(0, shared, Box::new(SeededEntropy::new(1)));
    let server = Server { shard, space, now, from: None };
    add(&server, variable(1, BuiltInType::Double, 0.0));
    server
}

pub(super) fn server(store: &Arc<Memory>) -> Server {
    started(store, |_| {})
}

impl Server {
    fn set(&self, value: f64) {
        self.space.variable(&NodeId::numeric(1, 1)).unwrap().set_at(value, self.now.utc);
    }

    /// Advances the time, and writes everything that is due.
    pub(super) fn pass_and_write(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(10) {
            self.pass(Duration::from_millis(10));
            while self.run_effect() {}
        }
    }
}

fn create(client: &mut Client, server: &mut Server) -> u32 {
    let request = CreateSubscriptionRequest {
        request_header: client.header(),
        requested_publishing_interval: 100.0,
        requested_lifetime_count: 1000,
        requested_max_keep_alive_count: 10,
        publishing_enabled: true,
        ..Default::default()
    };
    client.call(server, &request).unwrap().subscription_id
}

fn set_durable(id: u32, hours: u32) -> CallMethodRequest {
    CallMethodRequest {
        object_id: object_ids::SERVER.into(),
        method_id: method_ids::SERVER_SET_SUBSCRIPTION_DURABLE.into(),
        input_arguments: vec![id.into(), hours.into()],
    }
}

fn make_durable(client: &mut Client, server: &mut Server, id: u32, hours: u32) -> CallMethodResult {
    let methods_to_call = vec![set_durable(id, hours)];
    let request = CallRequest { request_header: client.header(), methods_to_call };
    client.call(server, &request).unwrap().results.remove(0)
}

fn add_item(client: &mut Client, server: &mut Server, id: u32, queue_size: u32, handle: u32) -> u32 {
    let item = MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: NodeId::numeric(1, 1),
            attribute_id: 13,
            ..Default::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: handle,
            sampling_interval: 0.0,
            queue_size,
            discard_oldest: true,
            ..Default::default()
        },
    };
    create_items(client, server, id, item)
}

fn create_items(client: &mut Client, server: &mut Server, id: u32, item: MonitoredItemCreateRequest) -> u32 {
    let request = CreateMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id: id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_create: vec![item],
    };
    let result = client.call(server, &request).unwrap().results.remove(0);
    assert_eq!(result.status_code, StatusCode::GOOD);
    result.monitored_item_id
}

pub(super) fn durable(client: &mut Client, server: &mut Server) -> u32 {
    let id = create(client, server);
    let result = make_durable(client, server, id, 0);
    assert_eq!(result.status_code, StatusCode::GOOD);
    assert_eq!(result.output_arguments, [Variant::from(168u32)]);
    id
}

fn transfer(client: &mut Client, server: &mut Server, id: u32) -> TransferResult {
    let request = TransferSubscriptionsRequest {
        request_header: client.header(),
        subscription_ids: vec![id],
        send_initial_values: false,
    };
    client.call(server, &request).unwrap().results.remove(0)
}

fn next(client: &mut Client, server: &mut Server) -> PublishResponse {
    let request = publish(client, server);
    server.pass_and_write(300);
    client.drain(server);
    client.response::<PublishResponse>(request).unwrap().unwrap()
}

/// The values of one item with their Overflow bits.
fn of_item(message: &NotificationMessage, handle: u32) -> Vec<(f64, bool)> {
    let data =
        message.notification_data.iter().filter_map(|data| data.decode::<DataChangeNotification>().ok());
    data.flat_map(|data| data.monitored_items)
        .filter(|item| item.client_handle == handle)
        .map(|item| {
            let overflow = item.value.status().has_overflow();
            (item.value.value.as_ref().and_then(Variant::as_f64).unwrap_or(f64::NAN), overflow)
        })
        .collect()
}
