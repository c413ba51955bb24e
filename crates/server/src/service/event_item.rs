//! MonitoredItems for events: CreateMonitoredItems and ModifyMonitoredItems with EventFilters (Part 4 §5.13.2, §5.13.3,
//! §7.22.3).

use super::monitored_item::{Answer, FilterResult, Parameters, checked_mode};
use super::subscription_context::SubscriptionContext;
use crate::authorization::Denial;
use crate::event::filter::EventFilter;
use crate::space::NodeIx;
use crate::space::attribute_permission;
use crate::space::events::SUBSCRIBE_TO_EVENTS;
use crate::space::view::attribute;
use crate::subscription::events::{EventSettings, EventSpec};
use taktwerk_schema::{EventFilter as WireFilter, EventFilterResult, MonitoringMode};
use taktwerk_types::{NodeIdRef, StatusCode};

/// Creates an item on the EventNotifier of a node. `is_whole` means that neither an IndexRange nor a DataEncoding was
/// given.
pub(super) fn create(
    context: &mut SubscriptionContext<'_>,
    place: u32,
    id: NodeIdRef<'_>,
    is_whole: bool,
    mode: MonitoringMode,
    parameters: &Parameters,
) -> Answer {
    let checked = check(context, id, is_whole).and_then(|node| Ok((node, checked_mode(mode)?)));
    let ((node, denial), mode) = match checked {
        Ok(checked) => checked,
        Err(status) => return Err(status).into(),
    };
    let (settings, filter_result) = match settings(context, parameters) {
        Ok(settings) => settings,
        Err((status, filter_result)) => return Answer { result: Err(status), filter_result },
    };
    let spec = EventSpec { node, denial, mode, settings };
    Answer { result: context.engine.create_event_item(place, spec), filter_result }
}

/// Modifies an event item.
pub(super) fn modify(context: &mut SubscriptionContext<'_>, index: u32, parameters: &Parameters) -> Answer {
    let (settings, filter_result) = match settings(context, parameters) {
        Ok(settings) => settings,
        Err((status, filter_result)) => return Answer { result: Err(status), filter_result },
    };
    Answer { result: context.engine.modify_event_item(index, settings), filter_result }
}

/// Whether a node's events can be monitored.
fn check(
    context: &SubscriptionContext<'_>,
    id: NodeIdRef<'_>,
    is_whole: bool,
) -> Result<(NodeIx, Denial), StatusCode> {
    let (nodes, decisions) = (context.space.read(), &context.decisions);
    let node = nodes.resolve(id).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    let view = nodes.view(node).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    if !decisions.knows(&nodes, node) {
        return Err(StatusCode::BAD_NODE_ID_UNKNOWN);
    }
    let bits = view.event_notifier().ok_or(StatusCode::BAD_ATTRIBUTE_ID_INVALID)?;
    if bits & SUBSCRIBE_TO_EVENTS == 0 {
        return Err(StatusCode::BAD_NOT_SUPPORTED);
    }
    if !is_whole {
        return Err(StatusCode::BAD_INDEX_RANGE_INVALID);
    }
    let permission = attribute_permission(attribute::EVENT_NOTIFIER);
    Ok((node, Denial::of(decisions.check(&nodes, node, permission))))
}

type Refused = (StatusCode, Option<FilterResult>);

fn settings(
    context: &SubscriptionContext<'_>,
    parameters: &Parameters,
) -> Result<(EventSettings, Option<FilterResult>), Refused> {
    if !parameters.filter.is::<WireFilter>() {
        // Event items accept only an EventFilter.
        let is_missing = parameters.filter.is_null();
        let status = if is_missing {
            StatusCode::BAD_EVENT_FILTER_INVALID
        } else {
            StatusCode::BAD_FILTER_NOT_ALLOWED
        };
        return Err((status, None));
    }
    let filter: WireFilter =
        parameters.filter.decode().map_err(|_| (StatusCode::BAD_EVENT_FILTER_INVALID, None))?;
    let nodes = context.space.read();
    let compiled = EventFilter::compile(&filter, &*nodes, context.limits.event_filter(), &|text| {
        context.limits.index_range(text)
    });
    let said =
        |result: Option<EventFilterResult>| result.map(|result| FilterResult::Events(Box::new(result)));
    let (filter, result) = compiled.map_err(|(status, result)| (status, said(result)))?;
    let settings = EventSettings {
        client_handle: parameters.client_handle,
        queue_size: parameters.queue_size,
        discard_oldest: parameters.discard_oldest,
        filter,
    };
    Ok((settings, said(result)))
}
