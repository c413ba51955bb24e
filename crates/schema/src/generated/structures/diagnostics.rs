// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Server status, diagnostics and change events (Part 5).

use super::base::{Argument, EndpointUrlListDataType};
use super::discovery::ApplicationDescription;
use crate::generated::enums::{MessageSecurityMode, ServerState};
use taktwerk_types::{
    ByteString, DiagnosticInfo, Guid, LocalizedText, NodeId, StatusCode, UaString, UtcTime, Variant,
};

structure! {
    /// `StatusResult` (DataType i=299).
    pub struct StatusResult = 299, 301 {
        status_code: StatusCode,
        diagnostic_info: DiagnosticInfo,
    }
}

structure! {
    /// `BuildInfo` (DataType i=338).
    pub struct BuildInfo = 338, 340 {
        product_uri: UaString,
        manufacturer_name: UaString,
        product_name: UaString,
        software_version: UaString,
        build_number: UaString,
        build_date: UtcTime,
    }
}

structure! {
    /// `RedundantServerDataType` (DataType i=853).
    pub struct RedundantServerDataType = 853, 855 {
        server_id: UaString,
        service_level: u8,
        server_state: ServerState,
    }
}

structure! {
    /// `SamplingIntervalDiagnosticsDataType` (DataType i=856).
    pub struct SamplingIntervalDiagnosticsDataType = 856, 858 {
        sampling_interval: f64,
        monitored_item_count: u32,
        max_monitored_item_count: u32,
        disabled_monitored_item_count: u32,
    }
}

structure! {
    /// `ServerDiagnosticsSummaryDataType` (DataType i=859).
    pub struct ServerDiagnosticsSummaryDataType = 859, 861 {
        server_view_count: u32,
        current_session_count: u32,
        cumulated_session_count: u32,
        security_rejected_session_count: u32,
        rejected_session_count: u32,
        session_timeout_count: u32,
        session_abort_count: u32,
        current_subscription_count: u32,
        cumulated_subscription_count: u32,
        publishing_interval_count: u32,
        security_rejected_requests_count: u32,
        rejected_requests_count: u32,
    }
}

structure! {
    /// `ServerStatusDataType` (DataType i=862).
    pub struct ServerStatusDataType = 862, 864 {
        start_time: UtcTime,
        current_time: UtcTime,
        state: ServerState,
        build_info: BuildInfo,
        seconds_till_shutdown: u32,
        shutdown_reason: LocalizedText,
    }
}

structure! {
    /// `SessionDiagnosticsDataType` (DataType i=865).
    pub struct SessionDiagnosticsDataType = 865, 867 {
        session_id: NodeId,
        session_name: UaString,
        client_description: ApplicationDescription,
        server_uri: UaString,
        endpoint_url: UaString,
        locale_ids: Vec<UaString>,
        actual_session_timeout: f64,
        max_response_message_size: u32,
        client_connection_time: UtcTime,
        client_last_contact_time: UtcTime,
        current_subscriptions_count: u32,
        current_monitored_items_count: u32,
        current_publish_requests_in_queue: u32,
        total_request_count: ServiceCounterDataType,
        unauthorized_request_count: u32,
        read_count: ServiceCounterDataType,
        history_read_count: ServiceCounterDataType,
        write_count: ServiceCounterDataType,
        history_update_count: ServiceCounterDataType,
        call_count: ServiceCounterDataType,
        create_monitored_items_count: ServiceCounterDataType,
        modify_monitored_items_count: ServiceCounterDataType,
        set_monitoring_mode_count: ServiceCounterDataType,
        set_triggering_count: ServiceCounterDataType,
        delete_monitored_items_count: ServiceCounterDataType,
        create_subscription_count: ServiceCounterDataType,
        modify_subscription_count: ServiceCounterDataType,
        set_publishing_mode_count: ServiceCounterDataType,
        publish_count: ServiceCounterDataType,
        republish_count: ServiceCounterDataType,
        transfer_subscriptions_count: ServiceCounterDataType,
        delete_subscriptions_count: ServiceCounterDataType,
        add_nodes_count: ServiceCounterDataType,
        add_references_count: ServiceCounterDataType,
        delete_nodes_count: ServiceCounterDataType,
        delete_references_count: ServiceCounterDataType,
        browse_count: ServiceCounterDataType,
        browse_next_count: ServiceCounterDataType,
        translate_browse_paths_to_node_ids_count: ServiceCounterDataType,
        query_first_count: ServiceCounterDataType,
        query_next_count: ServiceCounterDataType,
        register_nodes_count: ServiceCounterDataType,
        unregister_nodes_count: ServiceCounterDataType,
    }
}

structure! {
    /// `SessionSecurityDiagnosticsDataType` (DataType i=868).
    pub struct SessionSecurityDiagnosticsDataType = 868, 870 {
        session_id: NodeId,
        client_user_id_of_session: UaString,
        client_user_id_history: Vec<UaString>,
        authentication_mechanism: UaString,
        encoding: UaString,
        transport_protocol: UaString,
        security_mode: MessageSecurityMode,
        security_policy_uri: UaString,
        client_certificate: ByteString,
    }
}

structure! {
    /// `ServiceCounterDataType` (DataType i=871).
    pub struct ServiceCounterDataType = 871, 873 {
        total_count: u32,
        error_count: u32,
    }
}

structure! {
    /// `SubscriptionDiagnosticsDataType` (DataType i=874).
    pub struct SubscriptionDiagnosticsDataType = 874, 876 {
        session_id: NodeId,
        subscription_id: u32,
        priority: u8,
        publishing_interval: f64,
        max_keep_alive_count: u32,
        max_lifetime_count: u32,
        max_notifications_per_publish: u32,
        publishing_enabled: bool,
        modify_count: u32,
        enable_count: u32,
        disable_count: u32,
        republish_request_count: u32,
        republish_message_request_count: u32,
        republish_message_count: u32,
        transfer_request_count: u32,
        transferred_to_alt_client_count: u32,
        transferred_to_same_client_count: u32,
        publish_request_count: u32,
        data_change_notifications_count: u32,
        event_notifications_count: u32,
        notifications_count: u32,
        late_publish_request_count: u32,
        current_keep_alive_count: u32,
        current_lifetime_count: u32,
        unacknowledged_message_count: u32,
        discarded_message_count: u32,
        monitored_item_count: u32,
        disabled_monitored_item_count: u32,
        monitoring_queue_overflow_count: u32,
        next_sequence_number: u32,
        event_queue_overflow_count: u32,
    }
}

structure! {
    /// `ModelChangeStructureDataType` (DataType i=877).
    pub struct ModelChangeStructureDataType = 877, 879 {
        affected: NodeId,
        affected_type: NodeId,
        verb: u8,
    }
}

structure! {
    /// `ProgramDiagnosticDataType` (DataType i=894).
    pub struct ProgramDiagnosticDataType = 894, 896 {
        create_session_id: NodeId,
        create_client_name: UaString,
        invocation_creation_time: UtcTime,
        last_transition_time: UtcTime,
        last_method_call: UaString,
        last_method_session_id: NodeId,
        last_method_input_arguments: Vec<Argument>,
        last_method_output_arguments: Vec<Argument>,
        last_method_call_time: UtcTime,
        last_method_return_status: StatusResult,
    }
}

structure! {
    /// `SemanticChangeStructureDataType` (DataType i=897).
    pub struct SemanticChangeStructureDataType = 897, 899 {
        affected: NodeId,
        affected_type: NodeId,
    }
}

structure! {
    /// `NetworkGroupDataType` (DataType i=11944).
    pub struct NetworkGroupDataType = 11944, 11958 {
        server_uri: UaString,
        network_paths: Vec<EndpointUrlListDataType>,
    }
}

structure_with_optional_fields! {
    /// `LogRecord` (DataType i=19361).
    pub struct LogRecord = 19361, 19379 {
        required time: UtcTime,
        required severity: u16,
        optional event_type: NodeId,
        optional source_node: NodeId,
        optional source_name: UaString,
        required message: LocalizedText,
        optional trace_context: TraceContextDataType,
        optional additional_data: Vec<NameValuePair>,
    }
}

structure! {
    /// `LogRecordsDataType` (DataType i=19745).
    pub struct LogRecordsDataType = 19745, 19753 {
        log_record_array: Vec<LogRecord>,
    }
}

structure! {
    /// `SpanContextDataType` (DataType i=19746).
    pub struct SpanContextDataType = 19746, 19754 {
        trace_id: Guid,
        span_id: u64,
    }
}

structure! {
    /// `TraceContextDataType` (DataType i=19747).
    pub struct TraceContextDataType = 19747, 19755 {
        trace_id: Guid,
        span_id: u64,
        parent_span_id: u64,
        parent_identifier: UaString,
    }
}

structure! {
    /// `NameValuePair` (DataType i=19748).
    pub struct NameValuePair = 19748, 19756 {
        name: UaString,
        value: Variant,
    }
}

structure! {
    /// `ProgramDiagnostic2DataType` (DataType i=24033).
    pub struct ProgramDiagnostic2DataType = 24033, 24034 {
        create_session_id: NodeId,
        create_client_name: UaString,
        invocation_creation_time: UtcTime,
        last_transition_time: UtcTime,
        last_method_call: UaString,
        last_method_session_id: NodeId,
        last_method_input_arguments: Vec<Argument>,
        last_method_output_arguments: Vec<Argument>,
        last_method_input_values: Vec<Variant>,
        last_method_output_values: Vec<Variant>,
        last_method_call_time: UtcTime,
        last_method_return_status: StatusCode,
    }
}
