//! Creates a server from its parts, and publishes its configuration in namespace 0.

use crate::config::ServerConfig;
use crate::diagnostics::Live;
use crate::service::table;
use crate::shared::ServerShared;
use crate::space::nodes::Nodes;
use crate::space::{AddressSpace, role_set};
use std::sync::Arc;
use taktwerk_schema::ids::variable_ids as v;
use taktwerk_types::{QualifiedName, StatusCode, UaString, Variant};

impl ServerShared {
    /// Creates a server from a configuration and an address space, and publishes the configuration in namespace 0.
    ///
    /// `channel_origin` is the wall time at [`taktwerk_types::Instant::ZERO`] of the driver's clock.
    #[must_use]
    pub fn new(
        mut config: ServerConfig,
        space: Arc<AddressSpace>,
        shards: usize,
        channel_origin: taktwerk_types::UtcTime,
    ) -> Arc<Self> {
        config.limits = config.limits.at_least_one();
        // Zero in the Acknowledge means "no limit" (Part 6 §7.1.2.4).
        config.channel.message_size_max = config.channel.message_size_max.max(8192);
        config.channel.chunk_count_max = config.channel.chunk_count_max.max(1);
        let live = Arc::new(Live::new(&config));
        {
            let mut nodes = space.write();
            nodes.set_live(Arc::clone(&live));
            nodes.set_durable(config.durable.is_some());
            publish(&config, &live, &mut nodes);
            nodes.configure_access(&config.authorization);
            role_set::publish(&config.authorization, &mut nodes, config.start_time);
        }
        Self::assemble(config, space, live, shards, channel_origin)
    }
}

/// Writes the values of namespace 0 that do not change while the server runs (Part 5 §6.3.1, §6.3.2, §6.3.11).
fn publish(config: &ServerConfig, live: &Live, nodes: &mut Nodes) {
    let limits = &config.limits;
    let subscriptions = &limits.subscriptions;
    let build = live.build_info().clone();
    let strings = |values: &[String]| -> Variant {
        values.iter().map(|value| UaString::from(value.as_str())).collect::<Vec<_>>().into()
    };
    let count = |value: usize| -> Variant { u32::try_from(value).unwrap_or(u32::MAX).into() };
    // The service table enforces and publishes the limits of operations per request.
    let values: Vec<(u32, Variant)> = vec![
        (v::SERVER_SERVER_ARRAY, strings(core::slice::from_ref(&config.application_uri))),
        (v::SERVER_AUDITING, (config.audit.sessions && config.audit.updates).into()),
        (v::SERVER_SERVER_STATUS_START_TIME, config.start_time.into()),
        (v::SERVER_SERVER_STATUS_BUILD_INFO, Variant::from_structure(&build)),
        (v::SERVER_SERVER_STATUS_BUILD_INFO_PRODUCT_URI, build.product_uri.into()),
        (v::SERVER_SERVER_STATUS_BUILD_INFO_MANUFACTURER_NAME, build.manufacturer_name.into()),
        (v::SERVER_SERVER_STATUS_BUILD_INFO_PRODUCT_NAME, build.product_name.into()),
        (v::SERVER_SERVER_STATUS_BUILD_INFO_SOFTWARE_VERSION, build.software_version.into()),
        (v::SERVER_SERVER_STATUS_BUILD_INFO_BUILD_NUMBER, build.build_number.into()),
        (v::SERVER_SERVER_STATUS_BUILD_INFO_BUILD_DATE, build.build_date.into()),
        (v::SERVER_SERVER_STATUS_SECONDS_TILL_SHUTDOWN, 0u32.into()),
        (v::SERVER_SERVER_STATUS_SHUTDOWN_REASON, taktwerk_types::LocalizedText::default().into()),
        (v::SERVER_SERVER_DIAGNOSTICS_ENABLED_FLAG, true.into()),
        (v::SERVER_SERVER_CAPABILITIES_SERVER_PROFILE_ARRAY, strings(&config.profiles)),
        (v::SERVER_SERVER_CAPABILITIES_LOCALE_ID_ARRAY, strings(&config.locale_ids)),
        (v::SERVER_SERVER_CAPABILITIES_MIN_SUPPORTED_SAMPLE_RATE, subscriptions.sampling_interval_min.into()),
        (
            v::SERVER_SERVER_CAPABILITIES_MAX_BROWSE_CONTINUATION_POINTS,
            limits.browse_continuation_points_max.into(),
        ),
        (
            v::SERVER_SERVER_CAPABILITIES_MAX_QUERY_CONTINUATION_POINTS,
            limits.browse_continuation_points_max.into(),
        ),
        (
            v::SERVER_SERVER_CAPABILITIES_MAX_HISTORY_CONTINUATION_POINTS,
            limits.history_continuation_points_max.into(),
        ),
        (v::SERVER_SERVER_CAPABILITIES_MAX_ARRAY_LENGTH, limits.array_len_max.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_STRING_LENGTH, limits.string_len_max.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_BYTE_STRING_LENGTH, limits.byte_string_len_max.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_SESSIONS, count(limits.sessions_max)),
        (v::SERVER_SERVER_CAPABILITIES_MAX_SUBSCRIPTIONS, subscriptions.subscriptions_max.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS, subscriptions.monitored_items_max.into()),
        (
            v::SERVER_SERVER_CAPABILITIES_MAX_SUBSCRIPTIONS_PER_SESSION,
            subscriptions.subscriptions_per_session_max.into(),
        ),
        (
            v::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS_PER_SUBSCRIPTION,
            subscriptions.monitored_items_per_subscription_max.into(),
        ),
        (v::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS_QUEUE_SIZE, subscriptions.queue_size_max.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_SELECT_CLAUSE_PARAMETERS, limits.select_clauses_max.into()),
        (v::SERVER_SERVER_CAPABILITIES_MAX_WHERE_CLAUSE_PARAMETERS, limits.where_operands_max.into()),
        (v::SERVER_SERVER_CAPABILITIES_CONFORMANCE_UNITS, Vec::<QualifiedName>::new().into()),
        (v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_READ_EVENTS, 0u32.into()),
        (v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_UPDATE_EVENTS, 0u32.into()),
    ];
    nodes.publish_history(u32::try_from(limits.history_values_max).unwrap_or(u32::MAX), config.start_time);
    let operations = table::published(limits).map(|(id, max)| (id, max.into()));
    for (id, value) in values.into_iter().chain(operations) {
        nodes.ns0_slot(id).set(value, StatusCode::GOOD, config.start_time, config.start_time);
    }
}
