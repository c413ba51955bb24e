// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Node management (Part 4 §5.8).

use super::session::{RequestHeader, ResponseHeader};
use crate::generated::enums::NodeClass;
use taktwerk_types::{
    DiagnosticInfo, ExpandedNodeId, ExtensionObject, LocalizedText, NodeId, QualifiedName, StatusCode,
    UaString, Variant,
};

structure! {
    /// `NodeAttributes` (DataType i=349).
    pub struct NodeAttributes = 349, 351 {
        specified_attributes: u32,
        display_name: LocalizedText,
        description: LocalizedText,
        write_mask: u32,
        user_write_mask: u32,
    }
}

structure! {
    /// `ObjectAttributes` (DataType i=352).
    pub struct ObjectAttributes = 352, 354 {
        specified_attributes: u32,
        display_name: LocalizedText,
        description: LocalizedText,
        write_mask: u32,
        user_write_mask: u32,
        event_notifier: u8,
    }
}

structure! {
    /// `VariableAttributes` (DataType i=355).
    pub struct VariableAttributes = 355, 357 {
        specified_attributes: u32,
        display_name: LocalizedText,
        description: LocalizedText,
        write_mask: u32,
        user_write_mask: u32,
        value: Variant,
        data_type: NodeId,
        value_rank: i32,
        array_dimensions: Vec<u32>,
        access_level: u8,
        user_access_level: u8,
        minimum_sampling_interval: f64,
        historizing: bool,
    }
}

structure! {
    /// `MethodAttributes` (DataType i=358).
    pub struct MethodAttributes = 358, 360 {
        specified_attributes: u32,
        display_name: LocalizedText,
        description: LocalizedText,
        write_mask: u32,
        user_write_mask: u32,
        executable: bool,
        user_executable: bool,
    }
}

structure! {
    /// `ObjectTypeAttributes` (DataType i=361).
    pub struct ObjectTypeAttributes = 361, 363 {
        specified_attributes: u32,
        display_name: LocalizedText,
        description: LocalizedText,
        write_mask: u32,
        user_write_mask: u32,
        is_abstract: bool,
    }
}

structure! {
    /// `VariableTypeAttributes` (DataType i=364).
    pub struct VariableTypeAttributes = 364, 366 {
        specified_attributes: u32,
        display_name: LocalizedText,
        description: LocalizedText,
        write_mask: u32,
        user_write_mask: u32,
        value: Variant,
        data_type: NodeId,
        value_rank: i32,
        array_dimensions: Vec<u32>,
        is_abstract: bool,
    }
}

structure! {
    /// `ReferenceTypeAttributes` (DataType i=367).
    pub struct ReferenceTypeAttributes = 367, 369 {
        specified_attributes: u32,
        display_name: LocalizedText,
        description: LocalizedText,
        write_mask: u32,
        user_write_mask: u32,
        is_abstract: bool,
        symmetric: bool,
        inverse_name: LocalizedText,
    }
}

structure! {
    /// `DataTypeAttributes` (DataType i=370).
    pub struct DataTypeAttributes = 370, 372 {
        specified_attributes: u32,
        display_name: LocalizedText,
        description: LocalizedText,
        write_mask: u32,
        user_write_mask: u32,
        is_abstract: bool,
    }
}

structure! {
    /// `ViewAttributes` (DataType i=373).
    pub struct ViewAttributes = 373, 375 {
        specified_attributes: u32,
        display_name: LocalizedText,
        description: LocalizedText,
        write_mask: u32,
        user_write_mask: u32,
        contains_no_loops: bool,
        event_notifier: u8,
    }
}

structure! {
    /// `AddNodesItem` (DataType i=376).
    pub struct AddNodesItem = 376, 378 {
        parent_node_id: ExpandedNodeId,
        reference_type_id: NodeId,
        requested_new_node_id: ExpandedNodeId,
        browse_name: QualifiedName,
        node_class: NodeClass,
        node_attributes: ExtensionObject,
        type_definition: ExpandedNodeId,
    }
}

structure! {
    /// `AddReferencesItem` (DataType i=379).
    pub struct AddReferencesItem = 379, 381 {
        source_node_id: NodeId,
        reference_type_id: NodeId,
        is_forward: bool,
        target_server_uri: UaString,
        target_node_id: ExpandedNodeId,
        target_node_class: NodeClass,
    }
}

structure! {
    /// `DeleteNodesItem` (DataType i=382).
    pub struct DeleteNodesItem = 382, 384 {
        node_id: NodeId,
        delete_target_references: bool,
    }
}

structure! {
    /// `DeleteReferencesItem` (DataType i=385).
    pub struct DeleteReferencesItem = 385, 387 {
        source_node_id: NodeId,
        reference_type_id: NodeId,
        is_forward: bool,
        target_node_id: ExpandedNodeId,
        delete_bidirectional: bool,
    }
}

structure! {
    /// `AddNodesResult` (DataType i=483).
    pub struct AddNodesResult = 483, 485 {
        status_code: StatusCode,
        added_node_id: NodeId,
    }
}

structure! {
    /// `AddNodesRequest` (DataType i=486).
    pub struct AddNodesRequest = 486, 488 {
        request_header: RequestHeader,
        nodes_to_add: Vec<AddNodesItem>,
    }
}

structure! {
    /// `AddNodesResponse` (DataType i=489).
    pub struct AddNodesResponse = 489, 491 {
        response_header: ResponseHeader,
        results: Vec<AddNodesResult>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `AddReferencesRequest` (DataType i=492).
    pub struct AddReferencesRequest = 492, 494 {
        request_header: RequestHeader,
        references_to_add: Vec<AddReferencesItem>,
    }
}

structure! {
    /// `AddReferencesResponse` (DataType i=495).
    pub struct AddReferencesResponse = 495, 497 {
        response_header: ResponseHeader,
        results: Vec<StatusCode>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `DeleteNodesRequest` (DataType i=498).
    pub struct DeleteNodesRequest = 498, 500 {
        request_header: RequestHeader,
        nodes_to_delete: Vec<DeleteNodesItem>,
    }
}

structure! {
    /// `DeleteNodesResponse` (DataType i=501).
    pub struct DeleteNodesResponse = 501, 503 {
        response_header: ResponseHeader,
        results: Vec<StatusCode>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `DeleteReferencesRequest` (DataType i=504).
    pub struct DeleteReferencesRequest = 504, 506 {
        request_header: RequestHeader,
        references_to_delete: Vec<DeleteReferencesItem>,
    }
}

structure! {
    /// `DeleteReferencesResponse` (DataType i=507).
    pub struct DeleteReferencesResponse = 507, 509 {
        response_header: ResponseHeader,
        results: Vec<StatusCode>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `GenericAttributeValue` (DataType i=17606).
    pub struct GenericAttributeValue = 17606, 17610 {
        attribute_id: u32,
        value: Variant,
    }
}

structure! {
    /// `GenericAttributes` (DataType i=17607).
    pub struct GenericAttributes = 17607, 17611 {
        specified_attributes: u32,
        display_name: LocalizedText,
        description: LocalizedText,
        write_mask: u32,
        user_write_mask: u32,
        attribute_values: Vec<GenericAttributeValue>,
    }
}
