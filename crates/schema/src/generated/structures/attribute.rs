// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Reading, writing and history (Part 4 §5.11, Part 11).

use super::monitored_item::EventFilter;
use super::query::SimpleAttributeOperand;
use super::session::{RequestHeader, ResponseHeader};
use crate::generated::enums::{HistoryUpdateType, PerformUpdateType, SortOrderType, TimestampsToReturn};
use taktwerk_types::{
    ByteString, DataValue, DiagnosticInfo, ExtensionObject, NodeId, QualifiedName, StatusCode, UaString,
    UtcTime, Variant,
};

structure! {
    /// `ReadValueId` (DataType i=626).
    pub struct ReadValueId = 626, 628 {
        node_id: NodeId,
        attribute_id: u32,
        index_range: UaString,
        data_encoding: QualifiedName,
    }
}

structure! {
    /// `ReadRequest` (DataType i=629).
    pub struct ReadRequest = 629, 631 {
        request_header: RequestHeader,
        max_age: f64,
        timestamps_to_return: TimestampsToReturn,
        nodes_to_read: Vec<ReadValueId>,
    }
}

structure! {
    /// `ReadResponse` (DataType i=632).
    pub struct ReadResponse = 632, 634 {
        response_header: ResponseHeader,
        results: Vec<DataValue>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `HistoryReadValueId` (DataType i=635).
    pub struct HistoryReadValueId = 635, 637 {
        node_id: NodeId,
        index_range: UaString,
        data_encoding: QualifiedName,
        continuation_point: ByteString,
    }
}

structure! {
    /// `HistoryReadResult` (DataType i=638).
    pub struct HistoryReadResult = 638, 640 {
        status_code: StatusCode,
        continuation_point: ByteString,
        history_data: ExtensionObject,
    }
}

structure! {
    /// `HistoryReadDetails` (DataType i=641).
    pub struct HistoryReadDetails = 641, 643 {}
}

structure! {
    /// `ReadEventDetails` (DataType i=644).
    pub struct ReadEventDetails = 644, 646 {
        num_values_per_node: u32,
        start_time: UtcTime,
        end_time: UtcTime,
        filter: EventFilter,
    }
}

structure! {
    /// `ReadRawModifiedDetails` (DataType i=647).
    pub struct ReadRawModifiedDetails = 647, 649 {
        is_read_modified: bool,
        start_time: UtcTime,
        end_time: UtcTime,
        num_values_per_node: u32,
        return_bounds: bool,
    }
}

structure! {
    /// `ReadProcessedDetails` (DataType i=650).
    pub struct ReadProcessedDetails = 650, 652 {
        start_time: UtcTime,
        end_time: UtcTime,
        processing_interval: f64,
        aggregate_type: Vec<NodeId>,
        aggregate_configuration: AggregateConfiguration,
    }
}

structure! {
    /// `ReadAtTimeDetails` (DataType i=653).
    pub struct ReadAtTimeDetails = 653, 655 {
        req_times: Vec<UtcTime>,
        use_simple_bounds: bool,
    }
}

structure! {
    /// `HistoryData` (DataType i=656).
    pub struct HistoryData = 656, 658 {
        data_values: Vec<DataValue>,
    }
}

structure! {
    /// `HistoryEvent` (DataType i=659).
    pub struct HistoryEvent = 659, 661 {
        events: Vec<HistoryEventFieldList>,
    }
}

structure! {
    /// `HistoryReadRequest` (DataType i=662).
    pub struct HistoryReadRequest = 662, 664 {
        request_header: RequestHeader,
        history_read_details: ExtensionObject,
        timestamps_to_return: TimestampsToReturn,
        release_continuation_points: bool,
        nodes_to_read: Vec<HistoryReadValueId>,
    }
}

structure! {
    /// `HistoryReadResponse` (DataType i=665).
    pub struct HistoryReadResponse = 665, 667 {
        response_header: ResponseHeader,
        results: Vec<HistoryReadResult>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `WriteValue` (DataType i=668).
    pub struct WriteValue = 668, 670 {
        node_id: NodeId,
        attribute_id: u32,
        index_range: UaString,
        value: DataValue,
    }
}

structure! {
    /// `WriteRequest` (DataType i=671).
    pub struct WriteRequest = 671, 673 {
        request_header: RequestHeader,
        nodes_to_write: Vec<WriteValue>,
    }
}

structure! {
    /// `WriteResponse` (DataType i=674).
    pub struct WriteResponse = 674, 676 {
        response_header: ResponseHeader,
        results: Vec<StatusCode>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `HistoryUpdateDetails` (DataType i=677).
    pub struct HistoryUpdateDetails = 677, 679 {}
}

structure! {
    /// `UpdateDataDetails` (DataType i=680).
    pub struct UpdateDataDetails = 680, 682 {
        node_id: NodeId,
        perform_insert_replace: PerformUpdateType,
        update_values: Vec<DataValue>,
    }
}

structure! {
    /// `UpdateEventDetails` (DataType i=683).
    pub struct UpdateEventDetails = 683, 685 {
        node_id: NodeId,
        perform_insert_replace: PerformUpdateType,
        filter: EventFilter,
        event_data: Vec<HistoryEventFieldList>,
    }
}

structure! {
    /// `DeleteRawModifiedDetails` (DataType i=686).
    pub struct DeleteRawModifiedDetails = 686, 688 {
        node_id: NodeId,
        is_delete_modified: bool,
        start_time: UtcTime,
        end_time: UtcTime,
    }
}

structure! {
    /// `DeleteAtTimeDetails` (DataType i=689).
    pub struct DeleteAtTimeDetails = 689, 691 {
        node_id: NodeId,
        req_times: Vec<UtcTime>,
    }
}

structure! {
    /// `DeleteEventDetails` (DataType i=692).
    pub struct DeleteEventDetails = 692, 694 {
        node_id: NodeId,
        event_ids: Vec<ByteString>,
    }
}

structure! {
    /// `HistoryUpdateResult` (DataType i=695).
    pub struct HistoryUpdateResult = 695, 697 {
        status_code: StatusCode,
        operation_results: Vec<StatusCode>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `HistoryUpdateRequest` (DataType i=698).
    pub struct HistoryUpdateRequest = 698, 700 {
        request_header: RequestHeader,
        history_update_details: Vec<ExtensionObject>,
    }
}

structure! {
    /// `HistoryUpdateResponse` (DataType i=701).
    pub struct HistoryUpdateResponse = 701, 703 {
        response_header: ResponseHeader,
        results: Vec<HistoryUpdateResult>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `Annotation` (DataType i=891).
    pub struct Annotation = 891, 893 {
        message: UaString,
        user_name: UaString,
        annotation_time: UtcTime,
    }
}

structure! {
    /// `HistoryEventFieldList` (DataType i=920).
    pub struct HistoryEventFieldList = 920, 922 {
        event_fields: Vec<Variant>,
    }
}

structure! {
    /// `AggregateConfiguration` (DataType i=948).
    pub struct AggregateConfiguration = 948, 950 {
        use_server_capabilities_defaults: bool,
        treat_uncertain_as_bad: bool,
        percent_data_bad: u8,
        percent_data_good: u8,
        use_sloped_extrapolation: bool,
    }
}

structure! {
    /// `ModificationInfo` (DataType i=11216).
    pub struct ModificationInfo = 11216, 11226 {
        modification_time: UtcTime,
        update_type: HistoryUpdateType,
        user_name: UaString,
    }
}

structure! {
    /// `HistoryModifiedData` (DataType i=11217).
    pub struct HistoryModifiedData = 11217, 11227 {
        data_values: Vec<DataValue>,
        modification_infos: Vec<ModificationInfo>,
    }
}

structure! {
    /// `UpdateStructureDataDetails` (DataType i=11295).
    pub struct UpdateStructureDataDetails = 11295, 11300 {
        node_id: NodeId,
        perform_insert_replace: PerformUpdateType,
        update_values: Vec<DataValue>,
    }
}

structure! {
    /// `SortRuleElement` (DataType i=18648).
    pub struct SortRuleElement = 18648, 18650 {
        sort_order: SortOrderType,
        event_field: SimpleAttributeOperand,
    }
}

structure! {
    /// `ReadEventDetailsSorted` (DataType i=18649).
    pub struct ReadEventDetailsSorted = 18649, 18651 {
        num_values_per_node: u32,
        start_time: UtcTime,
        end_time: UtcTime,
        filter: EventFilter,
        sort_clause: Vec<SortRuleElement>,
    }
}

structure! {
    /// `ReadAnnotationDataDetails` (DataType i=23497).
    pub struct ReadAnnotationDataDetails = 23497, 23500 {
        req_times: Vec<UtcTime>,
    }
}

structure! {
    /// `ReadEventDetails2` (DataType i=32799).
    pub struct ReadEventDetails2 = 32799, 32800 {
        num_values_per_node: u32,
        start_time: UtcTime,
        end_time: UtcTime,
        filter: EventFilter,
        read_modified: bool,
    }
}

structure! {
    /// `HistoryModifiedEvent` (DataType i=32824).
    pub struct HistoryModifiedEvent = 32824, 32825 {
        events: Vec<HistoryEventFieldList>,
        modification_infos: Vec<ModificationInfo>,
    }
}
