// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Discovery (Part 4 §5.5).

use super::session::{RequestHeader, ResponseHeader};
use crate::generated::enums::{ApplicationType, MessageSecurityMode, UserTokenType};
use taktwerk_types::{
    ByteString, DiagnosticInfo, ExtensionObject, LocalizedText, StatusCode, UaString, UtcTime,
};

structure! {
    /// `UserTokenPolicy` (DataType i=304).
    pub struct UserTokenPolicy = 304, 306 {
        policy_id: UaString,
        token_type: UserTokenType,
        issued_token_type: UaString,
        issuer_endpoint_url: UaString,
        security_policy_uri: UaString,
    }
}

structure! {
    /// `ApplicationDescription` (DataType i=308).
    pub struct ApplicationDescription = 308, 310 {
        application_uri: UaString,
        product_uri: UaString,
        application_name: LocalizedText,
        application_type: ApplicationType,
        gateway_server_uri: UaString,
        discovery_profile_uri: UaString,
        discovery_urls: Vec<UaString>,
    }
}

structure! {
    /// `EndpointDescription` (DataType i=312).
    pub struct EndpointDescription = 312, 314 {
        endpoint_url: UaString,
        server: ApplicationDescription,
        server_certificate: ByteString,
        security_mode: MessageSecurityMode,
        security_policy_uri: UaString,
        user_identity_tokens: Vec<UserTokenPolicy>,
        transport_profile_uri: UaString,
        security_level: u8,
    }
}

structure! {
    /// `FindServersRequest` (DataType i=420).
    pub struct FindServersRequest = 420, 422 {
        request_header: RequestHeader,
        endpoint_url: UaString,
        locale_ids: Vec<UaString>,
        server_uris: Vec<UaString>,
    }
}

structure! {
    /// `FindServersResponse` (DataType i=423).
    pub struct FindServersResponse = 423, 425 {
        response_header: ResponseHeader,
        servers: Vec<ApplicationDescription>,
    }
}

structure! {
    /// `GetEndpointsRequest` (DataType i=426).
    pub struct GetEndpointsRequest = 426, 428 {
        request_header: RequestHeader,
        endpoint_url: UaString,
        locale_ids: Vec<UaString>,
        profile_uris: Vec<UaString>,
    }
}

structure! {
    /// `GetEndpointsResponse` (DataType i=429).
    pub struct GetEndpointsResponse = 429, 431 {
        response_header: ResponseHeader,
        endpoints: Vec<EndpointDescription>,
    }
}

structure! {
    /// `RegisteredServer` (DataType i=432).
    pub struct RegisteredServer = 432, 434 {
        server_uri: UaString,
        product_uri: UaString,
        server_names: Vec<LocalizedText>,
        server_type: ApplicationType,
        gateway_server_uri: UaString,
        discovery_urls: Vec<UaString>,
        semaphore_file_path: UaString,
        is_online: bool,
    }
}

structure! {
    /// `RegisterServerRequest` (DataType i=435).
    pub struct RegisterServerRequest = 435, 437 {
        request_header: RequestHeader,
        server: RegisteredServer,
    }
}

structure! {
    /// `RegisterServerResponse` (DataType i=438).
    pub struct RegisterServerResponse = 438, 440 {
        response_header: ResponseHeader,
    }
}

structure! {
    /// `ServerOnNetwork` (DataType i=12189).
    pub struct ServerOnNetwork = 12189, 12207 {
        record_id: u32,
        server_name: UaString,
        discovery_url: UaString,
        server_capabilities: Vec<UaString>,
    }
}

structure! {
    /// `FindServersOnNetworkRequest` (DataType i=12190).
    pub struct FindServersOnNetworkRequest = 12190, 12208 {
        request_header: RequestHeader,
        starting_record_id: u32,
        max_records_to_return: u32,
        server_capability_filter: Vec<UaString>,
    }
}

structure! {
    /// `FindServersOnNetworkResponse` (DataType i=12191).
    pub struct FindServersOnNetworkResponse = 12191, 12209 {
        response_header: ResponseHeader,
        last_counter_reset_time: UtcTime,
        servers: Vec<ServerOnNetwork>,
    }
}

structure! {
    /// `RegisterServer2Request` (DataType i=12193).
    pub struct RegisterServer2Request = 12193, 12211 {
        request_header: RequestHeader,
        server: RegisteredServer,
        discovery_configuration: Vec<ExtensionObject>,
    }
}

structure! {
    /// `RegisterServer2Response` (DataType i=12194).
    pub struct RegisterServer2Response = 12194, 12212 {
        response_header: ResponseHeader,
        configuration_results: Vec<StatusCode>,
        diagnostic_infos: Vec<DiagnosticInfo>,
    }
}

structure! {
    /// `DiscoveryConfiguration` (DataType i=12890).
    pub struct DiscoveryConfiguration = 12890, 12900 {}
}

structure! {
    /// `MdnsDiscoveryConfiguration` (DataType i=12891).
    pub struct MdnsDiscoveryConfiguration = 12891, 12901 {
        mdns_server_name: UaString,
        server_capabilities: Vec<UaString>,
    }
}
