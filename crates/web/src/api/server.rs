//! State and counters of the server, and clients with their sessions and subscriptions.

use super::values::millis;
use super::{Problem, Who};
use crate::state::App;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use std::sync::Arc;
use taktwerk::client::Attribute;
use taktwerk::{DataValue, NodeId, Variant};
use taktwerk_schema::ids::variable_ids as v;
use taktwerk_schema::{
    ServerDiagnosticsSummaryDataType, ServerStatusDataType, SessionDiagnosticsDataType,
    SubscriptionDiagnosticsDataType,
};
use taktwerk_server::headroom::{Prices, Report};
use taktwerk_types::{ArrayValues, Structure};

/// The server's diagnostics, limited to what the visitor may read.
pub(crate) async fn get(State(app): State<Arc<App>>, Who(visitor): Who) -> Result<Json<Value>, Problem> {
    let wanted = [
        v::SERVER_SERVER_STATUS,
        v::SERVER_SERVER_DIAGNOSTICS_SERVER_DIAGNOSTICS_SUMMARY,
        v::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_DIAGNOSTICS_ARRAY,
        v::SERVER_SERVER_DIAGNOSTICS_SUBSCRIPTION_DIAGNOSTICS_ARRAY,
    ];
    let ids = wanted.map(|id| (NodeId::numeric(0, id), Attribute::Value));
    let mut values = visitor.client.read_many(ids).await?.into_iter();
    let mut next = || values.next().unwrap_or_default();
    let (status, summary, sessions, subscriptions) = (next(), next(), next(), next());
    let status = one::<ServerStatusDataType>(&status);
    let summary = one::<ServerDiagnosticsSummaryDataType>(&summary);
    let subscriptions = many::<SubscriptionDiagnosticsDataType>(&subscriptions).unwrap_or_default();
    let sessions = many::<SessionDiagnosticsDataType>(&sessions);
    let live = &app.subject.shared.live().counters;
    // What fails names files of the server.
    let history = app.subject.history.as_ref().map(|history| {
        json!({
            "problem": history.problem().map(|problem| if sessions.is_some() { problem } else { String::new() }),
            "queued": history.waiting() + history.waiting_events(),
            "lost": history.lost(),
        })
    });
    // Visitors that may see the sessions may also see their CPU cost.
    let headroom = app.subject.shared.config().headroom.as_ref().filter(|_| sessions.is_some());
    let headroom = headroom.map(|headroom| headroom_of(&headroom.report(), &headroom.prices()));
    Ok(Json(json!({
        "state": status.as_ref().map(|status| status.state.0),
        "startTime": status.as_ref().map(|status| millis(status.start_time)),
        "software": status.as_ref().map(|status| status.build_info.software_version.as_str().to_owned()),
        "nodes": app.subject.shared.space().node_count(),
        "connections": live.current_connection_count.value(),
        "monitoredItems": live.current_monitored_item_count.value(),
        "sessionCount": summary.as_ref().map(|summary| summary.current_session_count),
        "subscriptionCount": summary.as_ref().map(|summary| summary.current_subscription_count),
        "rejectedSessions": summary.as_ref().map(|summary| summary.rejected_session_count),
        "rejectedRequests": summary.as_ref().map(|summary| summary.rejected_requests_count),
        "headroom": headroom,
        "history": history,
        "sessions": sessions.map(|sessions| {
            sessions.iter().map(|session| describe(session, &subscriptions)).collect::<Vec<_>>()
        }),
    })))
}

/// CPU in cores; prices in core seconds per value and per message.
fn headroom_of(report: &Report, prices: &Prices) -> Value {
    json!({
        "predicted": report.predicted,
        "actual": report.actual,
        "limit": report.limit,
        "remainingValues": report.remaining_values_per_s,
        "remainingItems": report.remaining_items,
        "remainingSessions": report.remaining_sessions,
        "refused": report.refused,
        "revised": report.revised,
        "valuePrice": prices.value + prices.value_growth * report.subscriptions as f64,
        "messagePrice": prices.message,
    })
}

fn describe(
    session: &SessionDiagnosticsDataType,
    subscriptions: &[SubscriptionDiagnosticsDataType],
) -> Value {
    let own = subscriptions.iter().filter(|subscription| subscription.session_id == session.session_id);
    let subscriptions: Vec<Value> = own
        .map(|subscription| {
            json!({
                "id": subscription.subscription_id,
                "interval": subscription.publishing_interval,
                "items": subscription.monitored_item_count,
                "notifications": subscription.notifications_count,
                "messages": subscription.next_sequence_number,
                "lost": subscription.monitoring_queue_overflow_count,
                "late": subscription.late_publish_request_count,
                "unacknowledged": subscription.unacknowledged_message_count,
            })
        })
        .collect();
    json!({
        "name": session.session_name.as_str(),
        "application": session.client_description.application_name.text.as_str(),
        "applicationUri": session.client_description.application_uri.as_str(),
        "connected": millis(session.client_connection_time),
        "lastContact": millis(session.client_last_contact_time),
        "requests": session.total_request_count.total_count,
        "errors": session.total_request_count.error_count,
        "reads": session.read_count.total_count,
        "writes": session.write_count.total_count,
        "publishes": session.publish_count.total_count,
        "items": session.current_monitored_items_count,
        "subscriptions": subscriptions,
    })
}

fn one<T: Structure>(value: &DataValue) -> Option<T> {
    match value.value.as_ref()? {
        Variant::ExtensionObject(object) => object.decode().ok(),
        _ => None,
    }
}

fn many<T: Structure>(value: &DataValue) -> Option<Vec<T>> {
    match &value.value.as_ref()?.as_array()?.values {
        ArrayValues::ExtensionObject(objects) => {
            Some(objects.iter().filter_map(|object| object.decode().ok()).collect())
        }
        _ => None,
    }
}
