//! Services at and beyond their limits. Each must return the StatusCode that the specification defines.

use crate::Run;
use crate::report::{Findings, Tally};
use crate::wire::{Wire, WireError, decode};
use taktwerk_schema::ids::variable_ids as v;
use taktwerk_schema::{
    BrowseDescription, BrowseRequest, CloseSessionRequest, CreateMonitoredItemsRequest,
    CreateSubscriptionRequest, MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters,
    PublishRequest, PublishResponse, ReadRequest, ReadValueId, TimestampsToReturn,
};
use taktwerk_types::{NodeId, StatusCode, Variant};

/// Items per request.
const ITEMS_PER_CALL: usize = 5_000;
/// Maximum number of items to create, whatever the server allows.
const ITEMS_MAX: u32 = 300_000;

pub(crate) fn limits(run: &Run<'_>) -> Result<Findings, String> {
    let at = |what: &'static str| move |error: WireError| format!("{what}: {error}");
    let text = at("a session");
    let mut findings = Findings::default();
    let mut wire = Wire::session(run.address, run.source(0, 1)).map_err(text)?;
    subscriptions(&mut wire, &mut findings).map_err(at("subscriptions"))?;
    monitored_items(&mut wire, &mut findings).map_err(at("items"))?;
    publish_requests(&mut wire, &mut findings).map_err(at("Publish requests"))?;
    continuation_points(&mut wire, &mut findings).map_err(at("continuation points"))?;
    let most = run.rss();
    findings.fact("memory with all of them", format!("{:.1} MiB", most as f64 / f64::from(1 << 20)));
    wire.call(&mut CloseSessionRequest { delete_subscriptions: true, ..Default::default() })
        .map_err(at("closing the session"))?;
    sessions(run, &mut findings)?;
    Ok(findings)
}

fn published(wire: &mut Wire, id: u32) -> Result<u32, WireError> {
    let node = ReadValueId { node_id: NodeId::numeric(0, id), attribute_id: 13, ..ReadValueId::default() };
    let response = wire.call(&mut ReadRequest { nodes_to_read: vec![node], ..ReadRequest::default() })?;
    match response.results.into_iter().next().and_then(|value| value.value) {
        Some(Variant::UInt32(value)) => Ok(value),
        Some(Variant::UInt16(value)) => Ok(value.into()),
        _ => Err(WireError::Protocol(format!("i={id} is no limit"))),
    }
}

fn subscribe(wire: &mut Wire) -> Result<u32, WireError> {
    let mut request = CreateSubscriptionRequest {
        requested_publishing_interval: 60_000.0,
        requested_lifetime_count: 60,
        requested_max_keep_alive_count: 20,
        publishing_enabled: true,
        ..CreateSubscriptionRequest::default()
    };
    wire.call(&mut request).map(|response| response.subscription_id)
}

fn subscriptions(wire: &mut Wire, findings: &mut Findings) -> Result<(), WireError> {
    let limit = published(wire, v::SERVER_SERVER_CAPABILITIES_MAX_SUBSCRIPTIONS_PER_SESSION)?;
    let mut count = 0;
    let refused = loop {
        match subscribe(wire) {
            Ok(_) if count < limit => count += 1,
            Ok(_) => break None,
            Err(error) => break error.status(),
        }
    };
    findings.fact("subscriptions", format!("{count} of {limit}, then {}", told(refused)));
    let exact = count == limit && refused == Some(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
    findings.claim("the published number of subscriptions, then Bad_TooManySubscriptions", exact);
    Ok(())
}

fn told(status: Option<StatusCode>) -> String {
    status.map_or_else(|| "nothing".to_owned(), |status| status.to_string())
}

fn monitored_items(wire: &mut Wire, findings: &mut Findings) -> Result<(), WireError> {
    let limit = published(wire, v::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS_PER_SUBSCRIPTION)?;
    // The session has the maximum number of subscriptions. Their ids are consecutive, so any of them can be used.
    wire.call(&mut CloseSessionRequest { delete_subscriptions: true, ..Default::default() })?;
    wire.create_session()?;
    wire.activate(taktwerk_types::ExtensionObject::NULL)?;
    let subscription_id = subscribe(wire)?;
    let item = MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: NodeId::numeric(1, 100_000),
            attribute_id: 13,
            ..ReadValueId::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            sampling_interval: 60_000.0,
            queue_size: 100,
            ..MonitoringParameters::default()
        },
    };
    let (mut count, mut places, mut refused) = (0u32, 0u64, None);
    while refused.is_none() && count < ITEMS_MAX {
        let mut request = CreateMonitoredItemsRequest {
            subscription_id,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_create: vec![item.clone(); ITEMS_PER_CALL],
            ..CreateMonitoredItemsRequest::default()
        };
        for result in wire.call(&mut request)?.results {
            if result.status_code == StatusCode::GOOD {
                count += 1;
                places += u64::from(result.revised_queue_size);
            } else {
                refused = Some(result.status_code);
            }
        }
    }
    findings
        .fact("items", format!("{count} of {limit} with {places} places in queues, then {}", told(refused)));
    let exact = count == limit && refused == Some(StatusCode::BAD_TOO_MANY_MONITORED_ITEMS);
    findings.claim(
        "the published number of items, then Bad_TooManyMonitoredItems",
        exact || (limit > ITEMS_MAX && count >= ITEMS_MAX),
    );
    Ok(())
}

fn publish_requests(wire: &mut Wire, findings: &mut Findings) -> Result<(), WireError> {
    // The first notifications are sent at once. Later Publish requests wait.
    let mut refused = Tally::default();
    let mut sent = 0;
    for _ in 0..1_000 {
        wire.send(&mut PublishRequest::default())?;
        sent += 1;
    }
    // A request that is answered at once shows that the server has processed all before it.
    let node = ReadValueId { node_id: NodeId::numeric(0, 2258), attribute_id: 13, ..ReadValueId::default() };
    let last = wire.send(&mut ReadRequest { nodes_to_read: vec![node], ..ReadRequest::default() })?;
    loop {
        let (id, body) = wire.next()?;
        if id == last {
            break;
        }
        match decode::<PublishResponse>(&body) {
            Ok(_) => refused.add("answered"),
            Err(error) => refused.status(error.status()),
        }
    }
    let too_many = refused.count(&StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS.to_string());
    findings.fact("Publish requests", format!("{sent} sent, {refused}"));
    findings.claim("the oldest Publish requests are refused with Bad_TooManyPublishRequests", too_many > 0);
    Ok(())
}

fn continuation_points(wire: &mut Wire, findings: &mut Findings) -> Result<(), WireError> {
    let limit = published(wire, v::SERVER_SERVER_CAPABILITIES_MAX_BROWSE_CONTINUATION_POINTS)?;
    let node = BrowseDescription { node_id: NodeId::numeric(0, 84), result_mask: 63, ..Default::default() };
    let mut request = BrowseRequest {
        requested_max_references_per_node: 1,
        nodes_to_browse: vec![node; limit as usize + 1],
        ..BrowseRequest::default()
    };
    let results = wire.call(&mut request)?.results;
    let good = results.iter().filter(|result| result.status_code == StatusCode::GOOD).count();
    let last = results.last().map(|result| result.status_code);
    findings.fact("continuation points", format!("{good} of {limit}, then {}", told(last)));
    let exact = good == limit as usize && last == Some(StatusCode::BAD_NO_CONTINUATION_POINTS);
    findings.claim("the published number of continuation points, then Bad_NoContinuationPoints", exact);
    Ok(())
}

/// Activates sessions until the server refuses more. Sessions of other clients must not be closed.
fn sessions(run: &Run<'_>, findings: &mut Findings) -> Result<(), String> {
    let mut probe = Wire::session(run.address, run.source(0, 1)).map_err(|error| error.to_string())?;
    let limit = published(&mut probe, v::SERVER_SERVER_CAPABILITIES_MAX_SESSIONS)
        .map_err(|error| error.to_string())?;
    drop(probe);
    let per_connection = 40;
    let mut wires = Vec::new();
    let mut count = 0u32;
    let mut refused = None;
    while refused.is_none() && count <= limit && !run.is_over() {
        let mut wire = match Wire::open(run.address, run.source(wires.len(), 20)) {
            Ok(wire) => wire,
            Err(error) => {
                refused = error.status();
                break;
            }
        };
        for _ in 0..per_connection {
            let made =
                wire.create_session().and_then(|()| wire.activate(taktwerk_types::ExtensionObject::NULL));
            match made {
                Ok(()) => count += 1,
                Err(error) => {
                    refused = error.status();
                    break;
                }
            }
        }
        wires.push(wire);
    }
    // The canary has a session, and so has the probe of the limit until its timeout.
    findings.fact("sessions", format!("{count} of {limit} and those of others, then {}", told(refused)));
    // A tenth is reserved for clients with certificates and for known addresses.
    let rest = limit - limit / 10;
    let exact = count + 3 >= rest && count <= rest && refused == Some(StatusCode::BAD_TOO_MANY_SESSIONS);
    findings.claim("nine tenths of the published number of sessions, then Bad_TooManySessions", exact);
    for wire in &mut wires {
        // Closes only the last session of each connection. The others expire.
        let _ = wire.call(&mut CloseSessionRequest { delete_subscriptions: true, ..Default::default() });
    }
    Ok(())
}

/// Sessions that are never activated: the server closes the oldest of them and keeps sessions in use.
pub(crate) fn unactivated(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let mut tally = Tally::default();
    let mut wires = Vec::new();
    let mut made = 0;
    while made < run.connections && !run.is_over() {
        let mut wire = match Wire::open(run.address, run.source(wires.len(), 40)) {
            Ok(wire) => wire,
            Err(error) => {
                tally.status(error.status());
                made += 1;
                continue;
            }
        };
        for _ in 0..50 {
            made += 1;
            match wire.create_session() {
                Ok(()) => tally.add("created"),
                Err(error) => tally.status(error.status()),
            }
        }
        wires.push(wire);
    }
    let mut honest =
        Wire::session(run.address, None).map_err(|error| format!("an honest client: {error}"))?;
    let node = ReadValueId { node_id: NodeId::numeric(0, 2258), attribute_id: 13, ..ReadValueId::default() };
    let read = honest.call(&mut ReadRequest { nodes_to_read: vec![node], ..ReadRequest::default() });
    findings.fact("CreateSession", tally);
    findings.claim("an honest client gets a session during the attack", read.is_ok());
    Ok(findings)
}
