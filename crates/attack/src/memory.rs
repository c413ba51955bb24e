//! Requests with fields of maximum length, stored by the server as long as the protocol allows. Memory must stay within
//! the sum of the budgets.

use crate::Run;
use crate::report::{Findings, Tally};
use crate::wire::{Wire, WireError};
use taktwerk_schema::{
    ApplicationDescription, CreateMonitoredItemsRequest, CreateSessionRequest, CreateSubscriptionRequest,
    MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, PublishRequest, ReadValueId,
    SubscriptionAcknowledgement, TimestampsToReturn,
};
use taktwerk_server::Limits;
use taktwerk_types::{ExtensionObject, NodeId, UaString};

/// Memory that a process needs in addition to its budgets, in bytes.
const BESIDES: u64 = 64 << 20;
/// Sessions on one connection.
const PER_CONNECTION: usize = 40;

/// Checks whether the server's memory has stayed within its budgets.
fn judge(run: &Run<'_>, findings: &mut Findings, before: u64) {
    let shards = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let budgets = Limits::default().memory_max(&taktwerk_channel::ChannelLimits::default(), shards) as u64;
    let mebi = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    findings.fact("memory taken", mebi(run.peak().saturating_sub(before)));
    findings.fact("sum of the budgets", mebi(budgets));
    findings.claim("memory stays below the sum of the budgets + 64 MiB", run.peak() <= budgets + BESIDES);
}

/// CreateSession with nonces and strings of maximum length.
pub(crate) fn sessions(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let before = run.rss();
    let (mut nonces, mut strings) = (Tally::default(), Tally::default());
    let long = UaString::from("x".repeat(1_000_000).as_str());
    let mut wires = Vec::new();
    for number in 0..run.connections {
        if run.is_over() {
            break;
        }
        if number % PER_CONNECTION == 0 {
            wires.extend(Wire::open(run.address, run.source(wires.len(), 20)));
        }
        let Some(wire) = wires.last_mut() else { continue };
        let is_nonce = number % 2 == 0;
        let mut request = CreateSessionRequest {
            endpoint_url: "opc.tcp://localhost:4840".into(),
            requested_session_timeout: 3_600_000.0,
            ..CreateSessionRequest::default()
        };
        if is_nonce {
            request.client_nonce = vec![7; 15_000_000].into();
        } else {
            request.endpoint_url = long.clone();
            request.session_name = long.clone();
            request.client_description = ApplicationDescription {
                application_uri: long.clone(),
                product_uri: long.clone(),
                gateway_server_uri: long.clone(),
                discovery_profile_uri: long.clone(),
                discovery_urls: vec![long.clone(); 4],
                ..ApplicationDescription::default()
            };
        }
        let outcome = wire.call(&mut request).and_then(|response| {
            wire.set_token(response.authentication_token);
            wire.activate(ExtensionObject::NULL)
        });
        let tally = if is_nonce { &mut nonces } else { &mut strings };
        note(tally, outcome, "kept");
    }
    findings.fact("sessions with nonces of 15 MB", nonces);
    findings.fact("sessions with strings of 1 MB", strings);
    judge(run, &mut findings, before);
    Ok(findings)
}

/// Publish requests with a million acknowledgements, which the server stores until it has a notification.
pub(crate) fn acknowledgements(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let before = run.rss();
    let mut outcome = Tally::default();
    let acknowledgement = SubscriptionAcknowledgement { subscription_id: 1, sequence_number: 1 };
    let mut request = PublishRequest {
        subscription_acknowledgements: vec![acknowledgement; 1_000_000],
        ..PublishRequest::default()
    };
    let mut wires = Vec::new();
    for number in 0..run.connections {
        if run.is_over() {
            break;
        }
        let mut ask = || -> Result<Wire, WireError> {
            let mut wire = Wire::session(run.address, run.source(number, 20))?;
            wire.call(&mut CreateSubscriptionRequest {
                requested_publishing_interval: 3_600_000.0,
                requested_lifetime_count: 10_000,
                requested_max_keep_alive_count: 1_000,
                publishing_enabled: true,
                ..CreateSubscriptionRequest::default()
            })?;
            for _ in 0..20 {
                wire.send(&mut request)?;
            }
            // Refusals have arrived before this response.
            wire.call(&mut taktwerk_schema::ReadRequest::default()).map(drop).or_else(
                |error| match error {
                    WireError::Fault(_) => Ok(()),
                    other => Err(other),
                },
            )?;
            Ok(wire)
        };
        match ask() {
            Ok(wire) => {
                outcome.add("20 requests sent");
                wires.push(wire);
            }
            Err(error) => note(&mut outcome, Err(error), ""),
        }
    }
    findings.fact("sessions that acknowledge 1 000 000 messages", outcome);
    judge(run, &mut findings, before);
    Ok(findings)
}

/// Items with an IndexRange of a megabyte.
pub(crate) fn index_ranges(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let before = run.rss();
    let mut outcome = Tally::default();
    let range = vec!["0:1"; 250_000].join(",");
    let item = MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: NodeId::numeric(1, 100_000),
            attribute_id: 13,
            index_range: range.as_str().into(),
            ..ReadValueId::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters { sampling_interval: 1_000.0, ..Default::default() },
    };
    let mut wires = Vec::new();
    for number in 0..run.connections {
        if run.is_over() {
            break;
        }
        let ask = |outcome: &mut Tally| -> Result<Wire, WireError> {
            let mut wire = Wire::session(run.address, run.source(number, 20))?;
            let subscription = wire.call(&mut CreateSubscriptionRequest {
                requested_publishing_interval: 3_600_000.0,
                requested_lifetime_count: 10_000,
                requested_max_keep_alive_count: 1_000,
                publishing_enabled: true,
                ..CreateSubscriptionRequest::default()
            })?;
            let mut request = CreateMonitoredItemsRequest {
                subscription_id: subscription.subscription_id,
                timestamps_to_return: TimestampsToReturn::BOTH,
                items_to_create: vec![item.clone(); 8],
                ..CreateMonitoredItemsRequest::default()
            };
            for result in wire.call(&mut request)?.results {
                outcome.status(Some(result.status_code));
            }
            Ok(wire)
        };
        match ask(&mut outcome) {
            Ok(wire) => wires.push(wire),
            Err(error) => note(&mut outcome, Err(error), ""),
        }
    }
    findings.fact("items with an IndexRange of 1 MB", outcome);
    judge(run, &mut findings, before);
    Ok(findings)
}

fn note(tally: &mut Tally, outcome: Result<(), WireError>, good: &str) {
    match outcome {
        Ok(()) => tally.add(good),
        Err(error) => match error.status() {
            Some(status) => tally.status(Some(status)),
            None => tally.add("connection broken"),
        },
    }
}
