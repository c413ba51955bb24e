// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Browsing and registering nodes (Part 4 §5.9).

use super::session::{RequestHeader, ResponseHeader};
use crate::generated::enums::{BrowseDirection, NodeClass};
use taktwerk_types::{
    ByteString, DiagnosticInfo, ExpandedNodeId, LocalizedText, NodeId, QualifiedName, StatusCode, UtcTime,
};

structure! {
    /// `ViewDescription` (DataType i=511).
    pub struct ViewDescription = 511, 513 {
        view_id: NodeId,
        timestamp: UtcTime,
        view_version: u32,
    }
}

structure! {
    /// `BrowseDescription` (DataType i=514).
    pub struct BrowseDescription = 514, 516 {
        node_id: NodeId,
        browse_direction: BrowseDirection,
        reference_type_id: NodeId,
        include_subtypes: bool,
        node_class_mask: u32,
        result_mask: u32,
    }
}

structure! {
    /// `ReferenceDescription` (DataType i=518).
    pub struct ReferenceDescription = 518, 520 {
        reference_type_id: NodeId,
        is_forward: bool,
        node_id: ExpandedNodeId,
        browse_name: QualifiedName,
        display_name: LocalizedText,
        node_class: NodeClass,
        type_definition: ExpandedNodeId,
    }
}

structure! {
    /// `BrowseResult` (DataType i=522).
    pub struct BrowseResult = 522, 524 {
        status_code: StatusCode,
        continuation_point: ByteString,
        references: Vec<ReferenceDescription>,
    }
}

structure! {
    /// `BrowseRequest` (DataType i=525).
    pub struct BrowseRequest = 525, 527 {
        request_header: RequestHeader,
        view: ViewDescription,
        requested_max_references_per_node: u32,
        nodes_to_browse: Vec<BrowseDescription>,
    }
}

structure! {
    /// `BrowseResponse` (DataType i=528).
    pub struct BrowseResponse = 528, 530 {
        response_header: ResponseHeader,
        results: Vec<BrowseResult>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `BrowseNextRequest` (DataType i=531).
    pub struct BrowseNextRequest = 531, 533 {
        request_header: RequestHeader,
        release_continuation_points: bool,
        continuation_points: Vec<ByteString>,
    }
}

structure! {
    /// `BrowseNextResponse` (DataType i=534).
    pub struct BrowseNextResponse = 534, 536 {
        response_header: ResponseHeader,
        results: Vec<BrowseResult>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `RelativePathElement` (DataType i=537).
    pub struct RelativePathElement = 537, 539 {
        reference_type_id: NodeId,
        is_inverse: bool,
        include_subtypes: bool,
        target_name: QualifiedName,
    }
}

structure! {
    /// `RelativePath` (DataType i=540).
    pub struct RelativePath = 540, 542 {
        elements: Vec<RelativePathElement>,
    }
}

structure! {
    /// `BrowsePath` (DataType i=543).
    pub struct BrowsePath = 543, 545 {
        starting_node: NodeId,
        relative_path: RelativePath,
    }
}

structure! {
    /// `BrowsePathTarget` (DataType i=546).
    pub struct BrowsePathTarget = 546, 548 {
        target_id: ExpandedNodeId,
        remaining_path_index: u32,
    }
}

structure! {
    /// `BrowsePathResult` (DataType i=549).
    pub struct BrowsePathResult = 549, 551 {
        status_code: StatusCode,
        targets: Vec<BrowsePathTarget>,
    }
}

structure! {
    /// `TranslateBrowsePathsToNodeIdsRequest` (DataType i=552).
    pub struct TranslateBrowsePathsToNodeIdsRequest = 552, 554 {
        request_header: RequestHeader,
        browse_paths: Vec<BrowsePath>,
    }
}

structure! {
    /// `TranslateBrowsePathsToNodeIdsResponse` (DataType i=555).
    pub struct TranslateBrowsePathsToNodeIdsResponse = 555, 557 {
        response_header: ResponseHeader,
        results: Vec<BrowsePathResult>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `RegisterNodesRequest` (DataType i=558).
    pub struct RegisterNodesRequest = 558, 560 {
        request_header: RequestHeader,
        nodes_to_register: Vec<NodeId>,
    }
}

structure! {
    /// `RegisterNodesResponse` (DataType i=561).
    pub struct RegisterNodesResponse = 561, 563 {
        response_header: ResponseHeader,
        registered_node_ids: Vec<NodeId>,
    }
}

structure! {
    /// `UnregisterNodesRequest` (DataType i=564).
    pub struct UnregisterNodesRequest = 564, 566 {
        request_header: RequestHeader,
        nodes_to_unregister: Vec<NodeId>,
    }
}

structure! {
    /// `UnregisterNodesResponse` (DataType i=567).
    pub struct UnregisterNodesResponse = 567, 569 {
        response_header: ResponseHeader,
    }
}
