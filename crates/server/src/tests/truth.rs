//! Consistency of the address space: a walk over all nodes under Objects.

use super::*;
use crate::space::NodeIx;
use crate::space::view::attribute;
use schema::{
    CreateMonitoredItemsRequest, CreateSubscriptionRequest, MonitoredItemCreateRequest, MonitoringMode,
    MonitoringParameters, ReadRequest, ReadValueId, TimestampsToReturn, WriteRequest, WriteValue,
};
use std::collections::BTreeSet;
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::{object_ids, reference_type_ids, variable_ids};
use taktwerk_types::{BuiltInType, DataValue, Variant};

/// All nodes below Objects, with their classes.
fn below_objects(server: &Server) -> Vec<(NodeId, NodeClass)> {
    let nodes = server.space.read();
    let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut left = vec![NodeIx::ns0(object_ids::OBJECTS_FOLDER)];
    while let Some(ix) = left.pop() {
        let id = nodes.id_of(ix);
        if !seen.insert(id.clone()) {
            continue;
        }
        found.push((id, nodes.view(ix).unwrap().class()));
        nodes.references(ix, |reference| {
            if reference.is_forward && nodes.is_subtype(reference.reference_type, hierarchical) {
                left.push(reference.target);
            }
            true
        });
    }
    found
}

fn read(client: &mut Client, server: &mut Server, id: &NodeId, attribute_id: u32) -> DataValue {
    let item = ReadValueId { node_id: id.clone(), attribute_id, ..Default::default() };
    let request = ReadRequest {
        request_header: client.header(),
        timestamps_to_return: TimestampsToReturn::BOTH,
        nodes_to_read: vec![item],
        ..Default::default()
    };
    client.call(server, &request).unwrap().results.remove(0)
}

#[test]
fn no_value_is_good_and_null() {
    let mut server = Server::new();
    let mut client = server.session();
    let all = below_objects(&server);
    assert!(all.len() > 300, "{}", all.len());
    let (mut good, mut without) = (0, Vec::new());
    for (id, class) in &all {
        match *class {
            NodeClass::VARIABLE => {
                let value = read(&mut client, &mut server, id, attribute::VALUE);
                let is_null = value.value.as_ref().is_none_or(Variant::is_empty);
                assert!(!(value.status().is_good() && is_null), "{id} is Good and null");
                good += u32::from(value.status().is_good());
                if value.status().is_bad() {
                    without.push((id.clone(), value.status()));
                }
            }
            NodeClass::OBJECT => {
                let notifier = read(&mut client, &mut server, id, attribute::EVENT_NOTIFIER);
                // Some objects are visible only to administrators.
                if notifier.status() == StatusCode::BAD_USER_ACCESS_DENIED {
                    continue;
                }
                // The Server Object reports all events; there is no event history in this test.
                let bits = u8::from(*id == NodeId::from(object_ids::SERVER));
                assert_eq!(notifier.value, Some(bits.into()), "{id}");
            }
            _ => {}
        }
    }
    assert!(good > 100, "{good} Good, {without:?}");
}

#[test]
fn events_are_monitored_only_with_an_event_filter() {
    let mut server = Server::new();
    let mut client = server.session();
    let header = client.header();
    let subscription = client
        .call(&mut server, &CreateSubscriptionRequest { request_header: header, ..Default::default() })
        .unwrap();
    let mut status = |filter: taktwerk_types::ExtensionObject| {
        let item = MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId {
                node_id: object_ids::SERVER.into(),
                attribute_id: attribute::EVENT_NOTIFIER,
                ..Default::default()
            },
            monitoring_mode: MonitoringMode::REPORTING,
            requested_parameters: MonitoringParameters { filter, ..Default::default() },
        };
        let request = CreateMonitoredItemsRequest {
            request_header: client.header(),
            subscription_id: subscription.subscription_id,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_create: vec![item],
        };
        client.call(&mut server, &request).unwrap().results[0].status_code
    };
    let filter = taktwerk_types::ExtensionObject::new(&schema::EventFilter::default());
    // It selects nothing.
    assert_eq!(status(filter), StatusCode::BAD_EVENT_FILTER_INVALID);
    let filter = taktwerk_types::ExtensionObject::new(&schema::DataChangeFilter::default());
    assert_eq!(status(filter), StatusCode::BAD_FILTER_NOT_ALLOWED);
    assert_eq!(status(taktwerk_types::ExtensionObject::NULL), StatusCode::BAD_EVENT_FILTER_INVALID);
}

#[test]
fn unsupported_writes_are_refused() {
    let mut server = Server::new();
    super::attribute::add(&server, super::attribute::variable(1, BuiltInType::Double, 1.0));
    let mut client = server.session();
    let mut write = |value: DataValue| {
        let node = WriteValue {
            node_id: NodeId::numeric(1, 1),
            attribute_id: attribute::VALUE,
            value,
            ..Default::default()
        };
        let request = WriteRequest { request_header: client.header(), nodes_to_write: vec![node] };
        client.call(&mut server, &request).unwrap().results[0]
    };
    let time = UtcTime::from_ticks(1_000_000);
    let value = || DataValue::new(2.0);
    assert_eq!(write(value()), StatusCode::GOOD);
    assert_eq!(write(DataValue { source_timestamp: Some(time), ..value() }), StatusCode::GOOD);
    for refused in [
        DataValue { server_timestamp: Some(time), ..value() },
        DataValue { source_timestamp: Some(time), source_picoseconds: Some(10), ..value() },
        DataValue { server_picoseconds: Some(1), ..value() },
    ] {
        assert_eq!(write(refused), StatusCode::BAD_WRITE_NOT_SUPPORTED);
    }
    assert_eq!(write(DataValue { source_picoseconds: Some(0), ..value() }), StatusCode::GOOD);
}

#[test]
fn rejected_sessions_include_those_rejected_for_security() {
    let mut server = Server::new();
    let mut client = server.session();
    let counters = &server.shard.shared().live().counters;
    counters.security_rejected_session_count.up();
    counters.security_rejected_session_count.up();
    counters.rejected_session_count.up();
    let summary = variable_ids::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY_REJECTED_SESSION_COUNT;
    let shown = read(&mut client, &mut server, &summary.into(), attribute::VALUE);
    assert_eq!(shown.value, Some(3u32.into()));
}
