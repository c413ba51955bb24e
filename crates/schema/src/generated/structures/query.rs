// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Queries and content filters (Part 4 §5.10, §7.7).

use super::session::{RequestHeader, ResponseHeader};
use super::view::{RelativePath, ViewDescription};
use crate::generated::enums::FilterOperator;
use taktwerk_types::{
    ByteString, DiagnosticInfo, ExpandedNodeId, ExtensionObject, NodeId, QualifiedName, StatusCode, UaString,
    Variant,
};

structure! {
    /// `QueryDataDescription` (DataType i=570).
    pub struct QueryDataDescription = 570, 572 {
        relative_path: RelativePath,
        attribute_id: u32,
        index_range: UaString,
    }
}

structure! {
    /// `NodeTypeDescription` (DataType i=573).
    pub struct NodeTypeDescription = 573, 575 {
        type_definition_node: ExpandedNodeId,
        include_sub_types: bool,
        data_to_return: Vec<QueryDataDescription>,
    }
}

structure! {
    /// `QueryDataSet` (DataType i=577).
    pub struct QueryDataSet = 577, 579 {
        node_id: ExpandedNodeId,
        type_definition_node: ExpandedNodeId,
        values: Vec<Variant>,
    }
}

structure! {
    /// `NodeReference` (DataType i=580).
    pub struct NodeReference = 580, 582 {
        node_id: NodeId,
        reference_type_id: NodeId,
        is_forward: bool,
        referenced_node_ids: Vec<NodeId>,
    }
}

structure! {
    /// `ContentFilterElement` (DataType i=583).
    pub struct ContentFilterElement = 583, 585 {
        filter_operator: FilterOperator,
        filter_operands: Vec<ExtensionObject>,
    }
}

structure! {
    /// `ContentFilter` (DataType i=586).
    pub struct ContentFilter = 586, 588 {
        elements: Vec<ContentFilterElement>,
    }
}

structure! {
    /// `ElementOperand` (DataType i=592).
    pub struct ElementOperand = 592, 594 {
        index: u32,
    }
}

structure! {
    /// `LiteralOperand` (DataType i=595).
    pub struct LiteralOperand = 595, 597 {
        value: Variant,
    }
}

structure! {
    /// `AttributeOperand` (DataType i=598).
    pub struct AttributeOperand = 598, 600 {
        node_id: NodeId,
        alias: UaString,
        browse_path: RelativePath,
        attribute_id: u32,
        index_range: UaString,
    }
}

structure! {
    /// `SimpleAttributeOperand` (DataType i=601).
    pub struct SimpleAttributeOperand = 601, 603 {
        type_definition_id: NodeId,
        browse_path: Vec<QualifiedName>,
        attribute_id: u32,
        index_range: UaString,
    }
}

structure! {
    /// `ContentFilterElementResult` (DataType i=604).
    pub struct ContentFilterElementResult = 604, 606 {
        status_code: StatusCode,
        operand_status_codes: Vec<StatusCode>,
        operand_diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `ContentFilterResult` (DataType i=607).
    pub struct ContentFilterResult = 607, 609 {
        element_results: Vec<ContentFilterElementResult>,
        element_diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `ParsingResult` (DataType i=610).
    pub struct ParsingResult = 610, 612 {
        status_code: StatusCode,
        data_status_codes: Vec<StatusCode>,
        data_diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `QueryFirstRequest` (DataType i=613).
    pub struct QueryFirstRequest = 613, 615 {
        request_header: RequestHeader,
        view: ViewDescription,
        node_types: Vec<NodeTypeDescription>,
        filter: ContentFilter,
        max_data_sets_to_return: u32,
        max_references_to_return: u32,
    }
}

structure! {
    /// `QueryFirstResponse` (DataType i=616).
    pub struct QueryFirstResponse = 616, 618 {
        response_header: ResponseHeader,
        query_data_sets: Vec<QueryDataSet>,
        continuation_point: ByteString,
        parsing_results: Vec<ParsingResult>,
        diagnostic_infos: Vec<DiagnosticInfo>,
        filter_result: ContentFilterResult,
    }
}

structure! {
    /// `QueryNextRequest` (DataType i=619).
    pub struct QueryNextRequest = 619, 621 {
        request_header: RequestHeader,
        release_continuation_point: bool,
        continuation_point: ByteString,
    }
}

structure! {
    /// `QueryNextResponse` (DataType i=622).
    pub struct QueryNextResponse = 622, 624 {
        response_header: ResponseHeader,
        query_data_sets: Vec<QueryDataSet>,
        revised_continuation_point: ByteString,
    }
}
