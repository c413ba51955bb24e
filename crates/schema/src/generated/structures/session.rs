// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Secure channels, sessions and the headers of all messages (Part 4 §5.6, §5.7).

use super::base::KeyValuePair;
use super::discovery::{ApplicationDescription, EndpointDescription};
use crate::generated::enums::{MessageSecurityMode, SecurityTokenRequestType};
use taktwerk_types::{ByteString, DiagnosticInfo, ExtensionObject, NodeId, StatusCode, UaString, UtcTime};

structure! {
    /// `AnonymousIdentityToken` (DataType i=319).
    pub struct AnonymousIdentityToken = 319, 321 {
        policy_id: UaString,
    }
}

structure! {
    /// `UserNameIdentityToken` (DataType i=322).
    pub struct UserNameIdentityToken = 322, 324 {
        policy_id: UaString,
        user_name: UaString,
        password: ByteString,
        encryption_algorithm: UaString,
    }
}

structure! {
    /// `X509IdentityToken` (DataType i=325).
    pub struct X509IdentityToken = 325, 327 {
        policy_id: UaString,
        certificate_data: ByteString,
    }
}

structure! {
    /// `SignedSoftwareCertificate` (DataType i=344).
    pub struct SignedSoftwareCertificate = 344, 346 {
        certificate_data: ByteString,
        signature: ByteString,
    }
}

structure! {
    /// `RequestHeader` (DataType i=389).
    pub struct RequestHeader = 389, 391 {
        authentication_token: NodeId,
        timestamp: UtcTime,
        request_handle: u32,
        return_diagnostics: u32,
        audit_entry_id: UaString,
        timeout_hint: u32,
        additional_header: ExtensionObject,
    }
}

structure! {
    /// `ResponseHeader` (DataType i=392).
    pub struct ResponseHeader = 392, 394 {
        timestamp: UtcTime,
        request_handle: u32,
        service_result: StatusCode,
        service_diagnostics: DiagnosticInfo,
        string_table: Vec<UaString>,
        additional_header: ExtensionObject,
    }
}

structure! {
    /// `ServiceFault` (DataType i=395).
    pub struct ServiceFault = 395, 397 {
        response_header: ResponseHeader,
    }
}

structure! {
    /// `ChannelSecurityToken` (DataType i=441).
    pub struct ChannelSecurityToken = 441, 443 {
        channel_id: u32,
        token_id: u32,
        created_at: UtcTime,
        revised_lifetime: u32,
    }
}

structure! {
    /// `OpenSecureChannelRequest` (DataType i=444).
    pub struct OpenSecureChannelRequest = 444, 446 {
        request_header: RequestHeader,
        client_protocol_version: u32,
        request_type: SecurityTokenRequestType,
        security_mode: MessageSecurityMode,
        client_nonce: ByteString,
        requested_lifetime: u32,
    }
}

structure! {
    /// `OpenSecureChannelResponse` (DataType i=447).
    pub struct OpenSecureChannelResponse = 447, 449 {
        response_header: ResponseHeader,
        server_protocol_version: u32,
        security_token: ChannelSecurityToken,
        server_nonce: ByteString,
    }
}

structure! {
    /// `CloseSecureChannelRequest` (DataType i=450).
    pub struct CloseSecureChannelRequest = 450, 452 {
        request_header: RequestHeader,
    }
}

structure! {
    /// `CloseSecureChannelResponse` (DataType i=453).
    pub struct CloseSecureChannelResponse = 453, 455 {
        response_header: ResponseHeader,
    }
}

structure! {
    /// `SignatureData` (DataType i=456).
    pub struct SignatureData = 456, 458 {
        algorithm: UaString,
        signature: ByteString,
    }
}

structure! {
    /// `CreateSessionRequest` (DataType i=459).
    pub struct CreateSessionRequest = 459, 461 {
        request_header: RequestHeader,
        client_description: ApplicationDescription,
        server_uri: UaString,
        endpoint_url: UaString,
        session_name: UaString,
        client_nonce: ByteString,
        client_certificate: ByteString,
        requested_session_timeout: f64,
        max_response_message_size: u32,
    }
}

structure! {
    /// `CreateSessionResponse` (DataType i=462).
    pub struct CreateSessionResponse = 462, 464 {
        response_header: ResponseHeader,
        session_id: NodeId,
        authentication_token: NodeId,
        revised_session_timeout: f64,
        server_nonce: ByteString,
        server_certificate: ByteString,
        server_endpoints: Vec<EndpointDescription>,
        server_software_certificates: Vec<SignedSoftwareCertificate>,
        server_signature: SignatureData,
        max_request_message_size: u32,
    }
}

structure! {
    /// `ActivateSessionRequest` (DataType i=465).
    pub struct ActivateSessionRequest = 465, 467 {
        request_header: RequestHeader,
        client_signature: SignatureData,
        client_software_certificates: Vec<SignedSoftwareCertificate>,
        locale_ids: Vec<UaString>,
        user_identity_token: ExtensionObject,
        user_token_signature: SignatureData,
    }
}

structure! {
    /// `ActivateSessionResponse` (DataType i=468).
    pub struct ActivateSessionResponse = 468, 470 {
        response_header: ResponseHeader,
        server_nonce: ByteString,
        results: Vec<StatusCode>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `CloseSessionRequest` (DataType i=471).
    pub struct CloseSessionRequest = 471, 473 {
        request_header: RequestHeader,
        delete_subscriptions: bool,
    }
}

structure! {
    /// `CloseSessionResponse` (DataType i=474).
    pub struct CloseSessionResponse = 474, 476 {
        response_header: ResponseHeader,
    }
}

structure! {
    /// `CancelRequest` (DataType i=477).
    pub struct CancelRequest = 477, 479 {
        request_header: RequestHeader,
        request_handle: u32,
    }
}

structure! {
    /// `CancelResponse` (DataType i=480).
    pub struct CancelResponse = 480, 482 {
        response_header: ResponseHeader,
        cancel_count: u32,
    }
}

structure! {
    /// `IssuedIdentityToken` (DataType i=938).
    pub struct IssuedIdentityToken = 938, 940 {
        policy_id: UaString,
        token_data: ByteString,
        encryption_algorithm: UaString,
    }
}

structure! {
    /// `SessionlessInvokeRequestType` (DataType i=15901).
    pub struct SessionlessInvokeRequestType = 15901, 15903 {
        uris_version: u32,
        namespace_uris: Vec<UaString>,
        server_uris: Vec<UaString>,
        locale_ids: Vec<UaString>,
        service_id: u32,
    }
}

structure! {
    /// `AdditionalParametersType` (DataType i=16313).
    pub struct AdditionalParametersType = 16313, 17537 {
        parameters: Vec<KeyValuePair>,
    }
}

structure! {
    /// `EphemeralKeyType` (DataType i=17548).
    pub struct EphemeralKeyType = 17548, 17549 {
        public_key: ByteString,
        signature: ByteString,
    }
}

structure! {
    /// `SessionlessInvokeResponseType` (DataType i=20999).
    pub struct SessionlessInvokeResponseType = 20999, 21001 {
        namespace_uris: Vec<UaString>,
        server_uris: Vec<UaString>,
        service_id: u32,
    }
}
