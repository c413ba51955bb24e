// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Monitored items (Part 4 §5.13).

use super::attribute::{AggregateConfiguration, ReadValueId};
use super::query::{ContentFilter, ContentFilterResult, SimpleAttributeOperand};
use super::session::{RequestHeader, ResponseHeader};
use crate::generated::enums::{DataChangeTrigger, MonitoringMode, TimestampsToReturn};
use taktwerk_types::{DiagnosticInfo, ExtensionObject, NodeId, StatusCode, UtcTime};

structure! {
    /// `MonitoringFilter` (DataType i=719).
    pub struct MonitoringFilter = 719, 721 {}
}

structure! {
    /// `DataChangeFilter` (DataType i=722).
    pub struct DataChangeFilter = 722, 724 {
        trigger: DataChangeTrigger,
        deadband_type: u32,
        deadband_value: f64,
    }
}

structure! {
    /// `EventFilter` (DataType i=725).
    pub struct EventFilter = 725, 727 {
        select_clauses: Vec<SimpleAttributeOperand>,
        where_clause: ContentFilter,
    }
}

structure! {
    /// `AggregateFilter` (DataType i=728).
    pub struct AggregateFilter = 728, 730 {
        start_time: UtcTime,
        aggregate_type: NodeId,
        processing_interval: f64,
        aggregate_configuration: AggregateConfiguration,
    }
}

structure! {
    /// `MonitoringFilterResult` (DataType i=731).
    pub struct MonitoringFilterResult = 731, 733 {}
}

structure! {
    /// `EventFilterResult` (DataType i=734).
    pub struct EventFilterResult = 734, 736 {
        select_clause_results: Vec<StatusCode>,
        select_clause_diagnostic_infos: Vec<DiagnosticInfo>,
        where_clause_result: ContentFilterResult,
    }
}

structure! {
    /// `AggregateFilterResult` (DataType i=737).
    pub struct AggregateFilterResult = 737, 739 {
        revised_start_time: UtcTime,
        revised_processing_interval: f64,
        revised_aggregate_configuration: AggregateConfiguration,
    }
}

structure! {
    /// `MonitoringParameters` (DataType i=740).
    pub struct MonitoringParameters = 740, 742 {
        client_handle: u32,
        sampling_interval: f64,
        filter: ExtensionObject,
        queue_size: u32,
        discard_oldest: bool,
    }
}

structure! {
    /// `MonitoredItemCreateRequest` (DataType i=743).
    pub struct MonitoredItemCreateRequest = 743, 745 {
        item_to_monitor: ReadValueId,
        monitoring_mode: MonitoringMode,
        requested_parameters: MonitoringParameters,
    }
}

structure! {
    /// `MonitoredItemCreateResult` (DataType i=746).
    pub struct MonitoredItemCreateResult = 746, 748 {
        status_code: StatusCode,
        monitored_item_id: u32,
        revised_sampling_interval: f64,
        revised_queue_size: u32,
        filter_result: ExtensionObject,
    }
}

structure! {
    /// `CreateMonitoredItemsRequest` (DataType i=749).
    pub struct CreateMonitoredItemsRequest = 749, 751 {
        request_header: RequestHeader,
        subscription_id: u32,
        timestamps_to_return: TimestampsToReturn,
        items_to_create: Vec<MonitoredItemCreateRequest>,
    }
}

structure! {
    /// `CreateMonitoredItemsResponse` (DataType i=752).
    pub struct CreateMonitoredItemsResponse = 752, 754 {
        response_header: ResponseHeader,
        results: Vec<MonitoredItemCreateResult>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `MonitoredItemModifyRequest` (DataType i=755).
    pub struct MonitoredItemModifyRequest = 755, 757 {
        monitored_item_id: u32,
        requested_parameters: MonitoringParameters,
    }
}

structure! {
    /// `MonitoredItemModifyResult` (DataType i=758).
    pub struct MonitoredItemModifyResult = 758, 760 {
        status_code: StatusCode,
        revised_sampling_interval: f64,
        revised_queue_size: u32,
        filter_result: ExtensionObject,
    }
}

structure! {
    /// `ModifyMonitoredItemsRequest` (DataType i=761).
    pub struct ModifyMonitoredItemsRequest = 761, 763 {
        request_header: RequestHeader,
        subscription_id: u32,
        timestamps_to_return: TimestampsToReturn,
        items_to_modify: Vec<MonitoredItemModifyRequest>,
    }
}

structure! {
    /// `ModifyMonitoredItemsResponse` (DataType i=764).
    pub struct ModifyMonitoredItemsResponse = 764, 766 {
        response_header: ResponseHeader,
        results: Vec<MonitoredItemModifyResult>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `SetMonitoringModeRequest` (DataType i=767).
    pub struct SetMonitoringModeRequest = 767, 769 {
        request_header: RequestHeader,
        subscription_id: u32,
        monitoring_mode: MonitoringMode,
        monitored_item_ids: Vec<u32>,
    }
}

structure! {
    /// `SetMonitoringModeResponse` (DataType i=770).
    pub struct SetMonitoringModeResponse = 770, 772 {
        response_header: ResponseHeader,
        results: Vec<StatusCode>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `SetTriggeringRequest` (DataType i=773).
    pub struct SetTriggeringRequest = 773, 775 {
        request_header: RequestHeader,
        subscription_id: u32,
        triggering_item_id: u32,
        links_to_add: Vec<u32>,
        links_to_remove: Vec<u32>,
    }
}

structure! {
    /// `SetTriggeringResponse` (DataType i=776).
    pub struct SetTriggeringResponse = 776, 778 {
        response_header: ResponseHeader,
        add_results: Vec<StatusCode>,
        add_diagnostic_infos: Vec<DiagnosticInfo>,
        remove_results: Vec<StatusCode>,
        remove_diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `DeleteMonitoredItemsRequest` (DataType i=779).
    pub struct DeleteMonitoredItemsRequest = 779, 781 {
        request_header: RequestHeader,
        subscription_id: u32,
        monitored_item_ids: Vec<u32>,
    }
}

structure! {
    /// `DeleteMonitoredItemsResponse` (DataType i=782).
    pub struct DeleteMonitoredItemsResponse = 782, 784 {
        response_header: ResponseHeader,
        results: Vec<StatusCode>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}
