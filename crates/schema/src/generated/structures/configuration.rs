// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Configuration, certificates and users (Part 12, Part 18).

use super::base::{EndpointDataType, KeyValuePair, PortableNodeId, ServerEndpointDataType};
use super::discovery::ApplicationDescription;
use crate::generated::enums::{
    ConfigurationUpdateType, IdentityCriteriaType, MessageSecurityMode, UserTokenType,
};
use crate::generated::option_sets::{PermissionType, TrustListValidationOptions, UserConfigurationMask};
use taktwerk_types::{
    ByteString, ExpandedNodeId, LocalizedText, NodeId, QualifiedName, StatusCode, UaString, UtcTime,
};

structure! {
    /// `RolePermissionType` (DataType i=96).
    pub struct RolePermissionType = 96, 128 {
        role_id: NodeId,
        permissions: PermissionType,
    }
}

structure! {
    /// `EndpointConfiguration` (DataType i=331).
    pub struct EndpointConfiguration = 331, 333 {
        operation_timeout: i32,
        use_binary_encoding: bool,
        max_string_length: i32,
        max_byte_string_length: i32,
        max_array_length: i32,
        max_message_size: i32,
        max_buffer_size: i32,
        channel_lifetime: i32,
        security_token_lifetime: i32,
    }
}

structure! {
    /// `TrustListDataType` (DataType i=12554).
    pub struct TrustListDataType = 12554, 12680 {
        specified_lists: u32,
        trusted_certificates: Vec<ByteString>,
        trusted_crls: Vec<ByteString>,
        issuer_certificates: Vec<ByteString>,
        issuer_crls: Vec<ByteString>,
    }
}

structure! {
    /// `ConfigurationVersionDataType` (DataType i=14593).
    pub struct ConfigurationVersionDataType = 14593, 14847 {
        major_version: u32,
        minor_version: u32,
    }
}

structure! {
    /// `CertificateGroupDataType` (DataType i=15436).
    pub struct CertificateGroupDataType = 15436, 16540 {
        name: UaString,
        record_properties: Vec<KeyValuePair>,
        purpose: NodeId,
        certificate_types: Vec<NodeId>,
        is_certificate_assigned: Vec<bool>,
        validation_options: TrustListValidationOptions,
    }
}

structure! {
    /// `ConfigurationUpdateTargetType` (DataType i=15538).
    pub struct ConfigurationUpdateTargetType = 15538, 16541 {
        path: UaString,
        update_type: ConfigurationUpdateType,
    }
}

structure! {
    /// `ApplicationIdentityDataType` (DataType i=15556).
    pub struct ApplicationIdentityDataType = 15556, 16543 {
        name: UaString,
        record_properties: Vec<KeyValuePair>,
        application_uri: UaString,
        application_names: Vec<LocalizedText>,
        additional_servers: Vec<ApplicationDescription>,
    }
}

structure! {
    /// `SecuritySettingsDataType` (DataType i=15559).
    pub struct SecuritySettingsDataType = 15559, 16546 {
        name: UaString,
        record_properties: Vec<KeyValuePair>,
        security_modes: Vec<MessageSecurityMode>,
        security_policy_uris: Vec<UaString>,
        certificate_group_name: UaString,
    }
}

structure! {
    /// `UserTokenSettingsDataType` (DataType i=15560).
    pub struct UserTokenSettingsDataType = 15560, 16547 {
        name: UaString,
        record_properties: Vec<KeyValuePair>,
        token_type: UserTokenType,
        issued_token_type: UaString,
        issuer_endpoint_url: UaString,
        security_policy_uri: UaString,
        certificate_group_name: UaString,
        authorization_service_name: UaString,
    }
}

structure! {
    /// `IdentityMappingRuleType` (DataType i=15634).
    pub struct IdentityMappingRuleType = 15634, 15736 {
        criteria_type: IdentityCriteriaType,
        criteria: UaString,
    }
}

structure! {
    /// `AliasNameDataType` (DataType i=23468).
    pub struct AliasNameDataType = 23468, 23499 {
        alias_name: QualifiedName,
        referenced_nodes: Vec<ExpandedNodeId>,
    }
}

structure! {
    /// `ServiceCertificateDataType` (DataType i=23724).
    pub struct ServiceCertificateDataType = 23724, 23725 {
        certificate: ByteString,
        issuers: Vec<ByteString>,
        valid_from: UtcTime,
        valid_to: UtcTime,
    }
}

structure! {
    /// `ApplicationConfigurationDataType` (DataType i=23743).
    pub struct ApplicationConfigurationDataType = 23743, 23754 {
        configuration_version: u32,
        configuration_properties: Vec<KeyValuePair>,
        application_identity: ApplicationIdentityDataType,
        certificate_groups: Vec<CertificateGroupDataType>,
        server_endpoints: Vec<ServerEndpointDataType>,
        client_endpoints: Vec<EndpointDataType>,
        security_settings: Vec<SecuritySettingsDataType>,
        user_token_settings: Vec<UserTokenSettingsDataType>,
        authorization_services: Vec<AuthorizationServiceConfigurationDataType>,
    }
}

structure! {
    /// `AuthorizationServiceConfigurationDataType` (DataType i=23744).
    pub struct AuthorizationServiceConfigurationDataType = 23744, 23755 {
        name: UaString,
        record_properties: Vec<KeyValuePair>,
        service_uri: UaString,
        service_certificates: Vec<ServiceCertificateDataType>,
        issuer_endpoint_settings: UaString,
    }
}

structure! {
    /// `AliasNameVerboseDataType` (DataType i=24051).
    pub struct AliasNameVerboseDataType = 24051, 24262 {
        alias_name: QualifiedName,
        referenced_nodes: Vec<ExpandedNodeId>,
        server_uris: Vec<UaString>,
        alias_name_category_id: NodeId,
    }
}

structure! {
    /// `AliasCategoryUpdateDataType` (DataType i=24052).
    pub struct AliasCategoryUpdateDataType = 24052, 24338 {
        category: PortableNodeId,
        last_change: u32,
    }
}

structure! {
    /// `AliasUpdateDataType` (DataType i=24053).
    pub struct AliasUpdateDataType = 24053, 24339 {
        application_uri: UaString,
        categories: Vec<AliasCategoryUpdateDataType>,
    }
}

structure! {
    /// `UserManagementDataType` (DataType i=24281).
    pub struct UserManagementDataType = 24281, 24292 {
        user_name: UaString,
        user_configuration: UserConfigurationMask,
        description: UaString,
    }
}

structure! {
    /// `TransactionErrorType` (DataType i=32285).
    pub struct TransactionErrorType = 32285, 32382 {
        target_id: NodeId,
        error: StatusCode,
        message: LocalizedText,
    }
}
