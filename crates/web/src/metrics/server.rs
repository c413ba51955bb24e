//! Counters of the server.

use crate::backlog::Counts;
use crate::exposition::{Collector, Exposition};
use std::fmt;
use std::sync::Arc;
use taktwerk_server::{Category, ServerShared};

/// The counters of the server.
#[derive(Debug)]
pub(crate) struct ServerMetrics(pub(crate) Arc<ServerShared>);

/// Number of users logged on to the dashboard, and its streams of values.
#[derive(Debug)]
pub(crate) struct DashboardMetrics(pub(crate) usize, pub(crate) Counts);

impl Collector for DashboardMetrics {
    fn collect(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let Counts { streams, bytes, ended } = self.1;
        out.gauge("taktwerk_dashboard_visitors", "Users who are logged on to the dashboard", self.0 as f64)?;
        out.gauge("taktwerk_dashboard_streams", "Open streams of values of the dashboard", streams as f64)?;
        out.gauge(
            "taktwerk_dashboard_stream_backlog_bytes",
            "Values that pages have not read yet",
            bytes as f64,
        )?;
        out.counter(
            "taktwerk_dashboard_streams_ended",
            "Streams that ended because pages did not read and all of them together were too large",
            ended as f64,
        )
    }
}

impl Collector for ServerMetrics {
    fn collect(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let live = self.0.live();
        let counters = &live.counters;
        let build = &self.0.config().build_info;
        let version = match build.software_version.as_str() {
            "" => env!("CARGO_PKG_VERSION"),
            version => version,
        };
        let version = ("version", version.to_owned());
        out.gauges("taktwerk_build_info", "The version of the running software", [(version, 1.0)])?;
        let start = unix_seconds(live.start_time());
        out.gauge("taktwerk_start_time_seconds", "When the server started, since 1970", start)?;
        let state = f64::from(live.current_state().0);
        out.gauge("taktwerk_server_state", "ServerState as Part 5 numbers it; 0 is Running", state)?;
        out.gauge("taktwerk_nodes", "Nodes of the address space", self.0.space().node_count() as f64)?;
        out.gauge(
            "taktwerk_connections",
            "Open connections",
            f64::from(counters.current_connection_count.value()),
        )?;
        let ended = [
            ("refused", counters.refused_connection_count.value()),
            ("evicted", counters.evicted_connection_count.value()),
            ("handshake_shed", counters.shed_handshake_count.value()),
        ];
        out.counters(
            "taktwerk_connections_turned_away",
            "Connections and handshakes refused because of limits",
            ended.map(|(reason, count)| (("reason", reason.to_owned()), f64::from(count))),
        )?;
        out.gauge("taktwerk_sessions", "Open sessions", f64::from(counters.current_session_count.value()))?;
        out.counter(
            "taktwerk_sessions_created",
            "Sessions created",
            f64::from(counters.cumulated_session_count.value()),
        )?;
        let ended = [
            ("rejected", counters.rejected_session_count.value()),
            ("security_rejected", counters.security_rejected_session_count.value()),
            ("timeout", counters.session_timeout_count.value()),
            ("abort", counters.session_abort_count.value()),
        ];
        out.counters(
            "taktwerk_sessions_failed",
            "Sessions rejected, or closed without CloseSession",
            ended.map(|(reason, count)| (("reason", reason.to_owned()), f64::from(count))),
        )?;
        out.gauge(
            "taktwerk_subscriptions",
            "Subscriptions",
            f64::from(counters.current_subscription_count.value()),
        )?;
        out.counter(
            "taktwerk_subscriptions_created",
            "Subscriptions created",
            f64::from(counters.cumulated_subscription_count.value()),
        )?;
        out.gauge(
            "taktwerk_monitored_items",
            "Monitored items",
            f64::from(counters.current_monitored_item_count.value()),
        )?;
        let rejected = [
            ("any", counters.rejected_requests_count.value()),
            ("security", counters.security_rejected_requests_count.value()),
        ];
        out.counters(
            "taktwerk_requests_rejected",
            "Requests rejected; the label security counts those rejected for security reasons",
            rejected.map(|(reason, count)| (("reason", reason.to_owned()), f64::from(count))),
        )?;
        let account = self.0.account();
        let bytes = || Category::ALL.into_iter().filter(|category| category.is_bytes());
        let label =
            |category: Category| ("category", category.name().replace(' ', "_").replace("_bytes", ""));
        out.gauges(
            "taktwerk_client_memory_bytes",
            "Memory used by the requests and subscriptions of clients",
            bytes().map(|category| (label(category), account.used(category) as f64)),
        )?;
        out.gauges(
            "taktwerk_client_memory_limit_bytes",
            "Limit of the memory used by the requests and subscriptions of clients",
            bytes().map(|category| (label(category), account.max(category) as f64)),
        )
    }
}

/// Seconds since 1970.
pub(crate) fn unix_seconds(time: taktwerk_types::UtcTime) -> f64 {
    (time.ticks() - taktwerk_types::UtcTime::from_unix(std::time::Duration::ZERO).ticks()) as f64 / 1e7
}
