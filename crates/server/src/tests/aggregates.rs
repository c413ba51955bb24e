//! AggregateFilters of MonitoredItems over the wire.

use super::attribute::{add, variable};
use super::flow::publish;
use super::*;
use crate::history::aggregate::{Aggregate, bits};
use schema::{
    AggregateConfiguration, AggregateFilter, AggregateFilterResult, CreateMonitoredItemsRequest,
    CreateSubscriptionRequest, DataChangeNotification, ModifyMonitoredItemsRequest,
    MonitoredItemCreateRequest, MonitoredItemCreateResult, MonitoredItemModifyRequest, MonitoringMode,
    MonitoringParameters, PublishResponse, ReadValueId,
};
use taktwerk_types::{BuiltInType, DataValue, ExtensionObject, Variant};

fn filter(aggregate: Aggregate, start_time: UtcTime, milliseconds: f64) -> AggregateFilter {
    AggregateFilter {
        start_time,
        aggregate_type: NodeId::numeric(0, aggregate.id()),
        processing_interval: milliseconds,
        aggregate_configuration: AggregateConfiguration {
            use_server_capabilities_defaults: true,
            ..Default::default()
        },
    }
}

fn parameters(filter: &AggregateFilter, queue_size: u32) -> MonitoringParameters {
    MonitoringParameters {
        client_handle: 3,
        sampling_interval: 50.0,
        filter: ExtensionObject::new(filter),
        queue_size,
        discard_oldest: true,
    }
}

fn subscription(client: &mut Client, server: &mut Server) -> u32 {
    let request = CreateSubscriptionRequest {
        request_header: client.header(),
        requested_publishing_interval: 100.0,
        requested_lifetime_count: 1000,
        requested_max_keep_alive_count: 100,
        publishing_enabled: true,
        ..Default::default()
    };
    client.call(server, &request).unwrap().subscription_id
}

fn create(
    client: &mut Client,
    server: &mut Server,
    subscription_id: u32,
    attribute_id: u32,
    requested_parameters: MonitoringParameters,
) -> MonitoredItemCreateResult {
    let item = MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId { node_id: NodeId::numeric(1, 1), attribute_id, ..Default::default() },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters,
    };
    let request = CreateMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id,
        timestamps_to_return: schema::TimestampsToReturn::BOTH,
        items_to_create: vec![item],
    };
    client.call(server, &request).unwrap().results.remove(0)
}

/// The values of the next message after a time.
fn next(client: &mut Client, server: &mut Server, milliseconds: u64) -> Vec<DataValue> {
    let request = publish(client, server);
    server.pass(Duration::from_millis(milliseconds));
    client.drain(server);
    let Some(response) = client.response::<PublishResponse>(request) else { return Vec::new() };
    let data = response.unwrap().notification_message.notification_data;
    let changes = data.iter().map(|data| data.decode::<DataChangeNotification>().unwrap());
    changes.flat_map(|change| change.monitored_items).map(|item| item.value).collect()
}

fn set(server: &Server, number: f64) {
    server.space.variable(&NodeId::numeric(1, 1)).unwrap().set_at(number, server.now.utc);
}

#[test]
fn an_item_reports_the_aggregate_of_each_interval() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 10.0));
    set(&server, 10.0);
    let mut client = server.session();
    let id = subscription(&mut client, &mut server);
    let filter = filter(Aggregate::TimeAverage2, UtcTime::NULL, 1_000.0);
    let result = create(&mut client, &mut server, id, 13, parameters(&filter, 10));
    assert_eq!(result.status_code, StatusCode::GOOD);
    let revised: AggregateFilterResult = result.filter_result.decode().unwrap();
    assert_eq!(revised.revised_processing_interval, 1_000.0);
    assert_eq!(revised.revised_start_time, server.now.utc);
    assert!(revised.revised_aggregate_configuration.treat_uncertain_as_bad);
    assert_eq!(result.revised_queue_size, 10);
    let requests: Vec<u32> = (0..4).map(|_| publish(&mut client, &mut server)).collect();
    server.pass(Duration::from_millis(500));
    set(&server, 20.0);
    server.pass(Duration::from_millis(400));
    client.drain(&mut server);
    let mut values = Vec::new();
    let mut collect = |client: &mut Client| {
        let taken = requests.iter().filter_map(|request| client.response::<PublishResponse>(*request));
        for response in taken {
            for data in response.unwrap().notification_message.notification_data {
                values.extend(data.decode::<DataChangeNotification>().unwrap().monitored_items);
            }
        }
        values.len()
    };
    assert_eq!(collect(&mut client), 0, "raw values are not reported");
    server.pass(Duration::from_millis(1_400));
    client.drain(&mut server);
    collect(&mut client);
    let numbers: Vec<f64> =
        values.iter().map(|item| item.value.value.as_ref().unwrap().as_f64().unwrap()).collect();
    assert_eq!(numbers.len(), 2, "{values:?}");
    assert!((numbers[0] - 15.0).abs() < 0.5 && numbers[1] == 20.0, "{numbers:?}");
    assert!(values.iter().all(|item| item.client_handle == 3));
    let value = &values[1].value;
    let start = UtcTime::from_ticks(revised.revised_start_time.ticks() + 10_000_000);
    assert_eq!((value.source_timestamp, value.status().0 & 0x1f), (Some(start), bits::CALCULATED));
}

#[test]
fn filters_are_checked_and_can_be_changed() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 4.0));
    set(&server, 4.0);
    let mut client = server.session();
    let id = subscription(&mut client, &mut server);
    let good = filter(Aggregate::Maximum, UtcTime::NULL, 1_000.0);
    let mut status = |filter: &AggregateFilter, attribute| {
        create(&mut client, &mut server, id, attribute, parameters(filter, 1)).status_code
    };
    let no_such = AggregateFilter { aggregate_type: NodeId::numeric(0, 2253), ..good.clone() };
    assert_eq!(status(&no_such, 13), StatusCode::BAD_MONITORED_ITEM_FILTER_UNSUPPORTED);
    let annotations = filter(Aggregate::AnnotationCount, UtcTime::NULL, 1_000.0);
    assert_eq!(status(&annotations, 13), StatusCode::BAD_MONITORED_ITEM_FILTER_UNSUPPORTED);
    for interval in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let odd = filter(Aggregate::Maximum, UtcTime::NULL, interval);
        assert_eq!(status(&odd, 13), StatusCode::BAD_MONITORED_ITEM_FILTER_INVALID, "{interval}");
    }
    assert_eq!(status(&good, 4), StatusCode::BAD_FILTER_NOT_ALLOWED);
    let contradiction = AggregateFilter {
        aggregate_configuration: AggregateConfiguration {
            percent_data_good: 10,
            percent_data_bad: 10,
            ..Default::default()
        },
        ..good.clone()
    };
    assert_eq!(status(&contradiction, 13), StatusCode::BAD_AGGREGATE_CONFIGURATION_REJECTED);
    // Times and intervals at the limits of the data types.
    for (start, interval) in [(i64::MAX, 1e300), (i64::MIN, f64::MIN_POSITIVE), (1, 1e18)] {
        let edge = filter(Aggregate::Maximum, UtcTime::from_ticks(start), interval);
        assert_eq!(status(&edge, 13), StatusCode::GOOD);
    }
    server.pass(Duration::from_millis(500));
    let created = create(&mut client, &mut server, id, 13, parameters(&good, 1));
    // Another filter: raw values again.
    let request = ModifyMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id: id,
        timestamps_to_return: schema::TimestampsToReturn::BOTH,
        items_to_modify: vec![MonitoredItemModifyRequest {
            monitored_item_id: created.monitored_item_id,
            requested_parameters: MonitoringParameters {
                filter: ExtensionObject::NULL,
                ..parameters(&good, 1)
            },
        }],
    };
    let modified = client.call(&mut server, &request).unwrap();
    assert!(modified.results[0].filter_result.is_null());
    set(&server, 77.0);
    let found = next(&mut client, &mut server, 300);
    assert!(found.iter().any(|value| value.value == Some(Variant::from(77.0))), "{found:?}");
}
