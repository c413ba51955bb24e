//! `taktwerk watch`: subscribes, prints changes and reconnects if the connection is lost. With --durable it also prints
//! changes from the time without a connection.

mod durable;

use crate::attribute::Attribute;
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::node::Operand;
use crate::output::{self, Output};
use crate::session::{self, Session};
use crate::{reconnection, resolve, span};
use clap::Args;
use durable::Kept;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use taktwerk_client::{Delivery, Event, SubscriptionEvent, SubscriptionParams};
use taktwerk_net::clock::monotonic;
use taktwerk_schema::{
    DataChangeFilter, DataChangeTrigger, MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters,
    ReadValueId,
};
use taktwerk_types::{DataValue, ExtensionObject, NodeId};

/// Arguments of `taktwerk watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// NodeIds or browse paths (with * and ?) to monitor. Append #Attribute to choose an attribute.
    #[arg(value_name = "NODE", required = true)]
    nodes: Vec<Operand>,

    /// Publishing interval in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "1000", value_parser = span::millis)]
    interval: Duration,

    /// Sampling interval in milliseconds; 0 for every change. Default: the publishing interval.
    #[arg(long, value_name = "MS", value_parser = span::millis)]
    sampling: Option<Duration>,

    /// Queue size per item. If it overflows, the oldest values are lost.
    #[arg(long, value_name = "N", default_value_t = 1)]
    queue: u32,

    /// Make the subscription durable for this many hours, and print the changes from the time without a connection,
    /// even after a restart of the server, up to --queue values. 0 requests the maximum.
    #[arg(long, value_name = "HOURS")]
    durable: Option<u32>,

    /// Report only changes larger than this.
    #[arg(long, value_name = "DELTA")]
    deadband: Option<f64>,

    /// Stop after this many changes.
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u64>,

    /// Stop after this time.
    #[arg(short, long, value_name = "SPAN", value_parser = span::seconds)]
    duration: Option<Duration>,
}

/// A monitored attribute.
struct Watched {
    node: NodeId,
    attribute: Attribute,
}

/// Interval at which interruption is checked.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(200);

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Subscribes and prints until the count is reached or the user interrupts.
pub(crate) fn run(arguments: &WatchArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut session = Session::connect_again(&arguments.connection)?;
    let mut watched = Vec::new();
    for operand in &arguments.nodes {
        let attribute = operand.attribute.unwrap_or(Attribute::VALUE);
        watched.extend(
            resolve::with(&mut session, &operand.node, attribute)?
                .into_iter()
                .map(|node| Watched { node, attribute }),
        );
    }
    subscribe(&mut session, arguments, &watched, output)?;
    let mut kept = Kept::new(arguments.durable.is_some());
    let end = arguments.duration.map(|span| monotonic() + span);
    let mut left = arguments.count.unwrap_or(u64::MAX);
    let mut items = Items::default();
    while left > 0 && !interrupt.asked() {
        let now = monotonic();
        if end.is_some_and(|end| now >= end) {
            break;
        }
        let until = end.map_or(now + INTERRUPT_INTERVAL, |end| end.min(now + INTERRUPT_INTERVAL));
        match session.client().wait(until) {
            Some(Delivery::DataChanges { values, .. }) => {
                kept.count(values.iter().map(|(_, value)| value), output)?;
                for (handle, value) in values {
                    let Some(item) = watched.get(handle as usize) else { continue };
                    // If the connection was just lost, the value is printed without type definitions.
                    let _ = session.learn_types(value.value.as_ref());
                    print(&session, item, &value, output)?;
                    left -= 1;
                    if left == 0 {
                        break;
                    }
                }
            }
            Some(Delivery::Event(event)) => {
                kept.on_event(&event, output)?;
                on_event(event, arguments, &watched, &mut items, output)?;
            }
            Some(Delivery::Response(..) | Delivery::Events { .. }) | None => {}
        }
        if !items.have_worked && items.refused.len() == watched.len() {
            break;
        }
    }
    session.close();
    if interrupt.asked() {
        return Err(Failure::Interrupted);
    }
    match items.refused.values().next() {
        Some(first) => Err(Failure::BadStatus(format!(
            "{} of {} items were refused; {first}",
            items.refused.len(),
            watched.len()
        ))),
        None => Ok(()),
    }
}

/// The results of creating the monitored items.
#[derive(Debug, Default)]
struct Items {
    /// Why items were refused, by client handle. They are requested again with each new subscription.
    refused: BTreeMap<u32, String>,
    /// Whether any item was ever created. If so, refusals after a restart of the server do not end the command, because
    /// its nodes may appear later.
    have_worked: bool,
}

fn subscribe(
    session: &mut Session,
    arguments: &WatchArgs,
    watched: &[Watched],
    output: Output,
) -> Result<(), Failure> {
    let filter = arguments.deadband.map_or(ExtensionObject::NULL, |deadband_value| {
        ExtensionObject::new(&DataChangeFilter {
            trigger: DataChangeTrigger::STATUS_VALUE,
            deadband_type: 1,
            deadband_value,
        })
    });
    let params = SubscriptionParams {
        publishing_interval_ms: millis(arguments.interval),
        ..SubscriptionParams::default()
    };
    let items = (0u32..).zip(watched).map(|(client_handle, item)| MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: item.node.clone(),
            attribute_id: item.attribute.id(),
            ..Default::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle,
            sampling_interval: millis(arguments.sampling.unwrap_or(arguments.interval)),
            filter: filter.clone(),
            queue_size: arguments.queue,
            discard_oldest: true,
        },
    });
    let items: Vec<_> = items.collect();
    let core = session.client().core();
    let handle = core.create_subscription(params, monotonic());
    if let Some(hours) = arguments.durable {
        // A subscription with items cannot be made durable.
        let created = durable::created(session)?;
        if let Event::Subscription(_, SubscriptionEvent::Created { subscription_id, .. }) = created {
            durable::request(session, subscription_id, hours, arguments.queue, output)?;
        }
        on_event(created, arguments, watched, &mut Items::default(), output)?;
    }
    let core = session.client().core();
    core.add_items(handle, items, monotonic()).map_err(|error| Failure::Usage(error.to_string()))
}

fn on_event(
    event: Event,
    arguments: &WatchArgs,
    watched: &[Watched],
    items: &mut Items,
    output: Output,
) -> Result<(), Failure> {
    match event {
        Event::Subscription(
            _,
            SubscriptionEvent::Created { publishing_interval_ms, keep_alive_count, lifetime_count, .. },
        ) => {
            let requested = millis(arguments.interval);
            if output.is_json() {
                return output.line(&json!({
                    "Event": "Created",
                    "RequestedPublishingInterval": requested,
                    "RevisedPublishingInterval": publishing_interval_ms,
                    "RevisedMaxKeepAliveCount": keep_alive_count,
                    "RevisedLifetimeCount": lifetime_count,
                }));
            }
            tell!("publishing interval: requested {requested} ms, revised {publishing_interval_ms} ms");
        }
        Event::Subscription(_, SubscriptionEvent::Items(results)) => {
            for result in results {
                if !result.status.is_bad() {
                    items.have_worked = true;
                    items.refused.remove(&result.client_handle);
                }
                let name = watched
                    .get(result.client_handle as usize)
                    .map_or(String::new(), |item| item.node.to_string());
                if result.status.is_bad() {
                    tell!("{}", output.bad(&format!("{}: {}", output::in_line(&name), result.status)));
                    let why = result.status.description().unwrap_or_default();
                    let advice = watched
                        .get(result.client_handle as usize)
                        .map_or_else(String::new, |item| session::advice(&item.node, result.status));
                    let problem = format!("{}: {}: {why}{advice}", output::in_line(&name), result.status);
                    items.refused.insert(result.client_handle, problem);
                } else if output.is_json() {
                    output.line(&json!({
                        "Event": "ItemCreated",
                        "NodeId": name,
                        "RevisedSamplingInterval": result.revised_sampling_interval_ms,
                        "RevisedQueueSize": result.revised_queue_size,
                    }))?;
                } else {
                    let requested = millis(arguments.sampling.unwrap_or(arguments.interval));
                    tell!(
                        "{}: sampling requested {requested} ms, revised {} ms; queue requested {}, revised {}",
                        output::in_line(&name.to_string()),
                        result.revised_sampling_interval_ms,
                        arguments.queue,
                        result.revised_queue_size
                    );
                }
            }
        }
        Event::Subscription(_, SubscriptionEvent::CreateFailed(error)) => {
            return Err(session::failure(&error));
        }
        Event::Subscription(_, SubscriptionEvent::DataLost { from, to }) => {
            tell!("{}", output.bad(&format!("messages {from} to {to} are lost")));
        }
        Event::Subscription(_, SubscriptionEvent::Ended(status)) => {
            return Err(Failure::BadStatus(format!("the server ended the subscription: {status}")));
        }
        Event::Disconnected(error) => return Err(reconnection::ended(error)),
        _ => {}
    }
    Ok(())
}

fn print(session: &Session, item: &Watched, value: &DataValue, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        let mut document = output::data_value(value);
        if let Some(object) = document.as_object_mut() {
            object.insert("NodeId".into(), json!(item.node.to_string()));
            if item.attribute != Attribute::VALUE {
                object.insert("Attribute".into(), json!(item.attribute.name()));
            }
        }
        return output.line(&document);
    }
    let status = value.status();
    let time = output::short(value.source_timestamp.or(value.server_timestamp));
    let shown = value.value.as_ref().map_or_else(|| "–".to_owned(), |value| session.show(value));
    let quality = if status.is_good() && !status.has_overflow() {
        String::new()
    } else if status.has_overflow() {
        format!("  {}", output.bad(&format!("{status}, values were lost (Overflow)")))
    } else {
        format!("  {}", output.bad(&status.to_string()))
    };
    let (node, shown) = (item.node.to_string(), output::in_line(&shown));
    output.text(&format!("{}  {}  {shown}{quality}", output.faint(&time), output::in_line(&node)))
}
