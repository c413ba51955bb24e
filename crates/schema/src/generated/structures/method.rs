// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Calling methods (Part 4 §5.12).

use super::session::{RequestHeader, ResponseHeader};
use taktwerk_types::{DiagnosticInfo, NodeId, StatusCode, Variant};

structure! {
    /// `CallMethodRequest` (DataType i=704).
    pub struct CallMethodRequest = 704, 706 {
        object_id: NodeId,
        method_id: NodeId,
        input_arguments: Vec<Variant>,
    }
}

structure! {
    /// `CallMethodResult` (DataType i=707).
    pub struct CallMethodResult = 707, 709 {
        status_code: StatusCode,
        input_argument_results: Vec<StatusCode>,
        input_argument_diagnostic_infos: Vec<DiagnosticInfo>,
        output_arguments: Vec<Variant>,
    }
}

structure! {
    /// `CallRequest` (DataType i=710).
    pub struct CallRequest = 710, 712 {
        request_header: RequestHeader,
        methods_to_call: Vec<CallMethodRequest>,
    }
}

structure! {
    /// `CallResponse` (DataType i=713).
    pub struct CallResponse = 713, 715 {
        response_header: ResponseHeader,
        results: Vec<CallMethodResult>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}
