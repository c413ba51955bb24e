// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! PubSub configuration and messages (Part 14).

use super::base::{EnumDescription, KeyValuePair, SimpleTypeDescription, StructureDescription};
use super::configuration::{ConfigurationVersionDataType, RolePermissionType};
use super::discovery::{ApplicationDescription, EndpointDescription, UserTokenPolicy};
use super::query::{ContentFilter, SimpleAttributeOperand};
use crate::generated::enums::{
    ActionState, BrokerTransportQualityOfService, DataSetOrderingType, MessageSecurityMode,
    OverrideValueHandling, PubSubState,
};
use crate::generated::option_sets::{
    DataSetFieldContentMask, DataSetFieldFlags, JsonDataSetMessageContentMask, JsonNetworkMessageContentMask,
    PubSubConfigurationRefMask, UadpDataSetMessageContentMask, UadpNetworkMessageContentMask,
};
use taktwerk_types::{
    ByteString, ExtensionObject, Guid, LocalizedText, NodeId, QualifiedName, StatusCode, UaString, UtcTime,
    Variant,
};

structure! {
    /// `PublishedVariableDataType` (DataType i=14273).
    pub struct PublishedVariableDataType = 14273, 14323 {
        published_variable: NodeId,
        attribute_id: u32,
        sampling_interval_hint: f64,
        deadband_type: u32,
        deadband_value: f64,
        index_range: UaString,
        substitute_value: Variant,
        meta_data_properties: Vec<QualifiedName>,
    }
}

structure! {
    /// `DataSetMetaDataType` (DataType i=14523).
    pub struct DataSetMetaDataType = 14523, 124 {
        namespaces: Vec<UaString>,
        structure_data_types: Vec<StructureDescription>,
        enum_data_types: Vec<EnumDescription>,
        simple_data_types: Vec<SimpleTypeDescription>,
        name: UaString,
        description: LocalizedText,
        fields: Vec<FieldMetaData>,
        data_set_class_id: Guid,
        configuration_version: ConfigurationVersionDataType,
    }
}

structure! {
    /// `FieldMetaData` (DataType i=14524).
    pub struct FieldMetaData = 14524, 14839 {
        name: UaString,
        description: LocalizedText,
        field_flags: DataSetFieldFlags,
        built_in_type: u8,
        data_type: NodeId,
        value_rank: i32,
        array_dimensions: Vec<u32>,
        max_string_length: u32,
        data_set_field_id: Guid,
        properties: Vec<KeyValuePair>,
    }
}

structure! {
    /// `FieldTargetDataType` (DataType i=14744).
    pub struct FieldTargetDataType = 14744, 14848 {
        data_set_field_id: Guid,
        receiver_index_range: UaString,
        target_node_id: NodeId,
        attribute_id: u32,
        write_index_range: UaString,
        override_value_handling: OverrideValueHandling,
        override_value: Variant,
    }
}

structure! {
    /// `BrokerConnectionTransportDataType` (DataType i=15007).
    pub struct BrokerConnectionTransportDataType = 15007, 15479 {
        resource_uri: UaString,
        authentication_profile_uri: UaString,
    }
}

structure! {
    /// `WriterGroupDataType` (DataType i=15480).
    pub struct WriterGroupDataType = 15480, 21150 {
        name: UaString,
        enabled: bool,
        security_mode: MessageSecurityMode,
        security_group_id: UaString,
        security_key_services: Vec<EndpointDescription>,
        max_network_message_size: u32,
        group_properties: Vec<KeyValuePair>,
        writer_group_id: u16,
        publishing_interval: f64,
        keep_alive_time: f64,
        priority: u8,
        locale_ids: Vec<UaString>,
        header_layout_uri: UaString,
        transport_settings: ExtensionObject,
        message_settings: ExtensionObject,
        data_set_writers: Vec<DataSetWriterDataType>,
    }
}

structure! {
    /// `NetworkAddressUrlDataType` (DataType i=15510).
    pub struct NetworkAddressUrlDataType = 15510, 21152 {
        network_interface: UaString,
        url: UaString,
    }
}

structure! {
    /// `ReaderGroupDataType` (DataType i=15520).
    pub struct ReaderGroupDataType = 15520, 21153 {
        name: UaString,
        enabled: bool,
        security_mode: MessageSecurityMode,
        security_group_id: UaString,
        security_key_services: Vec<EndpointDescription>,
        max_network_message_size: u32,
        group_properties: Vec<KeyValuePair>,
        transport_settings: ExtensionObject,
        message_settings: ExtensionObject,
        data_set_readers: Vec<DataSetReaderDataType>,
    }
}

structure! {
    /// `PubSubConfigurationDataType` (DataType i=15530).
    pub struct PubSubConfigurationDataType = 15530, 21154 {
        published_data_sets: Vec<PublishedDataSetDataType>,
        connections: Vec<PubSubConnectionDataType>,
        enabled: bool,
    }
}

structure! {
    /// `DatagramWriterGroupTransportDataType` (DataType i=15532).
    pub struct DatagramWriterGroupTransportDataType = 15532, 21155 {
        message_repeat_count: u8,
        message_repeat_delay: f64,
    }
}

structure! {
    /// `PublishedDataSetDataType` (DataType i=15578).
    pub struct PublishedDataSetDataType = 15578, 15677 {
        name: UaString,
        data_set_folder: Vec<UaString>,
        data_set_meta_data: DataSetMetaDataType,
        extension_fields: Vec<KeyValuePair>,
        data_set_source: ExtensionObject,
    }
}

structure! {
    /// `PublishedDataItemsDataType` (DataType i=15581).
    pub struct PublishedDataItemsDataType = 15581, 15679 {
        published_data: Vec<PublishedVariableDataType>,
    }
}

structure! {
    /// `PublishedEventsDataType` (DataType i=15582).
    pub struct PublishedEventsDataType = 15582, 15681 {
        event_notifier: NodeId,
        selected_fields: Vec<SimpleAttributeOperand>,
        filter: ContentFilter,
    }
}

structure! {
    /// `DataSetWriterDataType` (DataType i=15597).
    pub struct DataSetWriterDataType = 15597, 15682 {
        name: UaString,
        enabled: bool,
        data_set_writer_id: u16,
        data_set_field_content_mask: DataSetFieldContentMask,
        key_frame_count: u32,
        data_set_name: UaString,
        data_set_writer_properties: Vec<KeyValuePair>,
        transport_settings: ExtensionObject,
        message_settings: ExtensionObject,
    }
}

structure! {
    /// `PubSubConnectionDataType` (DataType i=15617).
    pub struct PubSubConnectionDataType = 15617, 15694 {
        name: UaString,
        enabled: bool,
        publisher_id: Variant,
        transport_profile_uri: UaString,
        address: ExtensionObject,
        connection_properties: Vec<KeyValuePair>,
        transport_settings: ExtensionObject,
        writer_groups: Vec<WriterGroupDataType>,
        reader_groups: Vec<ReaderGroupDataType>,
    }
}

structure! {
    /// `DataSetReaderDataType` (DataType i=15623).
    pub struct DataSetReaderDataType = 15623, 15703 {
        name: UaString,
        enabled: bool,
        publisher_id: Variant,
        writer_group_id: u16,
        data_set_writer_id: u16,
        data_set_meta_data: DataSetMetaDataType,
        data_set_field_content_mask: DataSetFieldContentMask,
        message_receive_timeout: f64,
        key_frame_count: u32,
        header_layout_uri: UaString,
        security_mode: MessageSecurityMode,
        security_group_id: UaString,
        security_key_services: Vec<EndpointDescription>,
        data_set_reader_properties: Vec<KeyValuePair>,
        transport_settings: ExtensionObject,
        message_settings: ExtensionObject,
        subscribed_data_set: ExtensionObject,
    }
}

structure! {
    /// `TargetVariablesDataType` (DataType i=15631).
    pub struct TargetVariablesDataType = 15631, 15712 {
        target_variables: Vec<FieldTargetDataType>,
    }
}

structure! {
    /// `SubscribedDataSetMirrorDataType` (DataType i=15635).
    pub struct SubscribedDataSetMirrorDataType = 15635, 15713 {
        parent_node_name: UaString,
        role_permissions: Vec<RolePermissionType>,
    }
}

structure! {
    /// `UadpWriterGroupMessageDataType` (DataType i=15645).
    pub struct UadpWriterGroupMessageDataType = 15645, 15715 {
        group_version: u32,
        data_set_ordering: DataSetOrderingType,
        network_message_content_mask: UadpNetworkMessageContentMask,
        sampling_offset: f64,
        publishing_offset: Vec<f64>,
    }
}

structure! {
    /// `UadpDataSetWriterMessageDataType` (DataType i=15652).
    pub struct UadpDataSetWriterMessageDataType = 15652, 15717 {
        data_set_message_content_mask: UadpDataSetMessageContentMask,
        configured_size: u16,
        network_message_number: u16,
        data_set_offset: u16,
    }
}

structure! {
    /// `UadpDataSetReaderMessageDataType` (DataType i=15653).
    pub struct UadpDataSetReaderMessageDataType = 15653, 15718 {
        group_version: u32,
        network_message_number: u16,
        data_set_offset: u16,
        data_set_class_id: Guid,
        network_message_content_mask: UadpNetworkMessageContentMask,
        data_set_message_content_mask: UadpDataSetMessageContentMask,
        publishing_interval: f64,
        receive_offset: f64,
        processing_offset: f64,
    }
}

structure! {
    /// `JsonWriterGroupMessageDataType` (DataType i=15657).
    pub struct JsonWriterGroupMessageDataType = 15657, 15719 {
        network_message_content_mask: JsonNetworkMessageContentMask,
    }
}

structure! {
    /// `JsonDataSetWriterMessageDataType` (DataType i=15664).
    pub struct JsonDataSetWriterMessageDataType = 15664, 15724 {
        data_set_message_content_mask: JsonDataSetMessageContentMask,
    }
}

structure! {
    /// `JsonDataSetReaderMessageDataType` (DataType i=15665).
    pub struct JsonDataSetReaderMessageDataType = 15665, 15725 {
        network_message_content_mask: JsonNetworkMessageContentMask,
        data_set_message_content_mask: JsonDataSetMessageContentMask,
    }
}

structure! {
    /// `BrokerWriterGroupTransportDataType` (DataType i=15667).
    pub struct BrokerWriterGroupTransportDataType = 15667, 15727 {
        queue_name: UaString,
        resource_uri: UaString,
        authentication_profile_uri: UaString,
        requested_delivery_guarantee: BrokerTransportQualityOfService,
    }
}

structure! {
    /// `BrokerDataSetWriterTransportDataType` (DataType i=15669).
    pub struct BrokerDataSetWriterTransportDataType = 15669, 15729 {
        queue_name: UaString,
        resource_uri: UaString,
        authentication_profile_uri: UaString,
        requested_delivery_guarantee: BrokerTransportQualityOfService,
        meta_data_queue_name: UaString,
        meta_data_update_time: f64,
    }
}

structure! {
    /// `BrokerDataSetReaderTransportDataType` (DataType i=15670).
    pub struct BrokerDataSetReaderTransportDataType = 15670, 15733 {
        queue_name: UaString,
        resource_uri: UaString,
        authentication_profile_uri: UaString,
        requested_delivery_guarantee: BrokerTransportQualityOfService,
        meta_data_queue_name: UaString,
    }
}

structure! {
    /// `DatagramConnectionTransportDataType` (DataType i=17467).
    pub struct DatagramConnectionTransportDataType = 17467, 17468 {
        discovery_address: ExtensionObject,
    }
}

structure! {
    /// `ActionTargetDataType` (DataType i=18593).
    pub struct ActionTargetDataType = 18593, 18598 {
        action_target_id: u16,
        name: UaString,
        description: LocalizedText,
    }
}

structure! {
    /// `PublishedActionDataType` (DataType i=18594).
    pub struct PublishedActionDataType = 18594, 18599 {
        request_data_set_meta_data: DataSetMetaDataType,
        action_targets: Vec<ActionTargetDataType>,
    }
}

structure! {
    /// `ActionMethodDataType` (DataType i=18597).
    pub struct ActionMethodDataType = 18597, 18600 {
        object_id: NodeId,
        method_id: NodeId,
    }
}

structure! {
    /// `PublishedActionMethodDataType` (DataType i=18793).
    pub struct PublishedActionMethodDataType = 18793, 18795 {
        request_data_set_meta_data: DataSetMetaDataType,
        action_targets: Vec<ActionTargetDataType>,
        action_methods: Vec<ActionMethodDataType>,
    }
}

structure! {
    /// `DtlsPubSubConnectionDataType` (DataType i=18794).
    pub struct DtlsPubSubConnectionDataType = 18794, 18930 {
        client_cipher_suite: UaString,
        server_cipher_suites: Vec<UaString>,
        zero_rtt: bool,
        certificate_group_id: NodeId,
        verify_client_certificate: bool,
    }
}

structure! {
    /// `JsonNetworkMessage` (DataType i=19311).
    pub struct JsonNetworkMessage = 19311 {
        message_id: UaString,
        message_type: UaString,
        publisher_id: UaString,
        writer_group_name: UaString,
        data_set_class_id: UaString,
        messages: Vec<ExtensionObject>,
    }
}

structure! {
    /// `JsonDataSetMessage` (DataType i=19312).
    pub struct JsonDataSetMessage = 19312 {
        data_set_writer_id: u16,
        data_set_writer_name: UaString,
        publisher_id: UaString,
        writer_group_name: UaString,
        sequence_number: u32,
        meta_data_version: ConfigurationVersionDataType,
        minor_version: u32,
        timestamp: UtcTime,
        status: StatusCode,
        message_type: UaString,
        payload: ExtensionObject,
    }
}

structure! {
    /// `JsonDataSetMetaDataMessage` (DataType i=19313).
    pub struct JsonDataSetMetaDataMessage = 19313 {
        message_id: UaString,
        message_type: UaString,
        publisher_id: UaString,
        data_set_writer_id: u16,
        writer_group_name: UaString,
        data_set_writer_name: UaString,
        timestamp: UtcTime,
        meta_data: DataSetMetaDataType,
    }
}

structure! {
    /// `JsonApplicationDescriptionMessage` (DataType i=19314).
    pub struct JsonApplicationDescriptionMessage = 19314 {
        message_id: UaString,
        message_type: UaString,
        publisher_id: UaString,
        timestamp: UtcTime,
        description: ApplicationDescription,
        server_capabilities: Vec<UaString>,
    }
}

structure! {
    /// `JsonServerEndpointsMessage` (DataType i=19315).
    pub struct JsonServerEndpointsMessage = 19315 {
        message_id: UaString,
        message_type: UaString,
        publisher_id: UaString,
        timestamp: UtcTime,
        description: ApplicationDescription,
        endpoints: Vec<EndpointDescription>,
    }
}

structure! {
    /// `JsonStatusMessage` (DataType i=19316).
    pub struct JsonStatusMessage = 19316 {
        message_id: UaString,
        message_type: UaString,
        publisher_id: UaString,
        timestamp: UtcTime,
        is_cyclic: bool,
        status: PubSubState,
        next_report_time: UtcTime,
    }
}

structure! {
    /// `JsonPubSubConnectionMessage` (DataType i=19317).
    pub struct JsonPubSubConnectionMessage = 19317 {
        message_id: UaString,
        message_type: UaString,
        publisher_id: UaString,
        timestamp: UtcTime,
        connection: PubSubConnectionDataType,
    }
}

structure! {
    /// `JsonActionMetaDataMessage` (DataType i=19318).
    pub struct JsonActionMetaDataMessage = 19318 {
        message_id: UaString,
        message_type: UaString,
        publisher_id: UaString,
        data_set_writer_id: u16,
        data_set_writer_name: UaString,
        timestamp: UtcTime,
        action_targets: Vec<ActionTargetDataType>,
        request: DataSetMetaDataType,
        response: DataSetMetaDataType,
        action_methods: Vec<ActionMethodDataType>,
    }
}

structure! {
    /// `JsonActionResponderMessage` (DataType i=19319).
    pub struct JsonActionResponderMessage = 19319 {
        message_id: UaString,
        message_type: UaString,
        publisher_id: UaString,
        timestamp: UtcTime,
        connection: PubSubConnectionDataType,
    }
}

structure! {
    /// `JsonActionNetworkMessage` (DataType i=19320).
    pub struct JsonActionNetworkMessage = 19320 {
        message_id: UaString,
        message_type: UaString,
        publisher_id: UaString,
        timestamp: UtcTime,
        response_address: UaString,
        correlation_data: ByteString,
        requestor_id: UaString,
        timeout_hint: f64,
        messages: Vec<ExtensionObject>,
    }
}

structure! {
    /// `JsonActionRequestMessage` (DataType i=19321).
    pub struct JsonActionRequestMessage = 19321 {
        data_set_writer_id: u16,
        action_target_id: u16,
        data_set_writer_name: UaString,
        writer_group_name: UaString,
        meta_data_version: ConfigurationVersionDataType,
        minor_version: u32,
        timestamp: UtcTime,
        message_type: UaString,
        request_id: u16,
        action_state: ActionState,
        payload: ExtensionObject,
    }
}

structure! {
    /// `JsonActionResponseMessage` (DataType i=19322).
    pub struct JsonActionResponseMessage = 19322 {
        data_set_writer_id: u16,
        action_target_id: u16,
        data_set_writer_name: UaString,
        writer_group_name: UaString,
        meta_data_version: ConfigurationVersionDataType,
        minor_version: u32,
        timestamp: UtcTime,
        status: StatusCode,
        message_type: UaString,
        request_id: u16,
        action_state: ActionState,
        payload: ExtensionObject,
    }
}

structure! {
    /// `StandaloneSubscribedDataSetRefDataType` (DataType i=23599).
    pub struct StandaloneSubscribedDataSetRefDataType = 23599, 23851 {
        data_set_name: UaString,
    }
}

structure! {
    /// `StandaloneSubscribedDataSetDataType` (DataType i=23600).
    pub struct StandaloneSubscribedDataSetDataType = 23600, 23852 {
        name: UaString,
        data_set_folder: Vec<UaString>,
        data_set_meta_data: DataSetMetaDataType,
        subscribed_data_set: ExtensionObject,
    }
}

structure! {
    /// `SecurityGroupDataType` (DataType i=23601).
    pub struct SecurityGroupDataType = 23601, 23853 {
        name: UaString,
        security_group_folder: Vec<UaString>,
        key_lifetime: f64,
        security_policy_uri: UaString,
        max_future_key_count: u32,
        max_past_key_count: u32,
        security_group_id: UaString,
        role_permissions: Vec<RolePermissionType>,
        group_properties: Vec<KeyValuePair>,
    }
}

structure! {
    /// `PubSubConfiguration2DataType` (DataType i=23602).
    pub struct PubSubConfiguration2DataType = 23602, 23854 {
        published_data_sets: Vec<PublishedDataSetDataType>,
        connections: Vec<PubSubConnectionDataType>,
        enabled: bool,
        subscribed_data_sets: Vec<StandaloneSubscribedDataSetDataType>,
        data_set_classes: Vec<DataSetMetaDataType>,
        default_security_key_services: Vec<EndpointDescription>,
        security_groups: Vec<SecurityGroupDataType>,
        pub_sub_key_push_targets: Vec<PubSubKeyPushTargetDataType>,
        configuration_version: u32,
        configuration_properties: Vec<KeyValuePair>,
    }
}

structure! {
    /// `TransmitQosPriorityDataType` (DataType i=23605).
    pub struct TransmitQosPriorityDataType = 23605, 23857 {
        priority_label: UaString,
    }
}

structure! {
    /// `ReceiveQosPriorityDataType` (DataType i=23609).
    pub struct ReceiveQosPriorityDataType = 23609, 23861 {
        priority_label: UaString,
    }
}

structure! {
    /// `DatagramConnectionTransport2DataType` (DataType i=23612).
    pub struct DatagramConnectionTransport2DataType = 23612, 23864 {
        discovery_address: ExtensionObject,
        discovery_announce_rate: u32,
        discovery_max_message_size: u32,
        qos_category: UaString,
        datagram_qos: Vec<ExtensionObject>,
    }
}

structure! {
    /// `DatagramWriterGroupTransport2DataType` (DataType i=23613).
    pub struct DatagramWriterGroupTransport2DataType = 23613, 23865 {
        message_repeat_count: u8,
        message_repeat_delay: f64,
        address: ExtensionObject,
        qos_category: UaString,
        datagram_qos: Vec<ExtensionObject>,
        discovery_announce_rate: u32,
        topic: UaString,
    }
}

structure! {
    /// `DatagramDataSetReaderTransportDataType` (DataType i=23614).
    pub struct DatagramDataSetReaderTransportDataType = 23614, 23866 {
        address: ExtensionObject,
        qos_category: UaString,
        datagram_qos: Vec<ExtensionObject>,
        topic: UaString,
    }
}

structure! {
    /// `PublishedDataSetCustomSourceDataType` (DataType i=25269).
    pub struct PublishedDataSetCustomSourceDataType = 25269, 25529 {
        cyclic_data_set: bool,
    }
}

structure! {
    /// `PubSubKeyPushTargetDataType` (DataType i=25270).
    pub struct PubSubKeyPushTargetDataType = 25270, 25530 {
        application_uri: UaString,
        push_target_folder: Vec<UaString>,
        endpoint_url: UaString,
        security_policy_uri: UaString,
        user_token_type: UserTokenPolicy,
        requested_key_count: u16,
        retry_interval: f64,
        push_target_properties: Vec<KeyValuePair>,
        security_groups: Vec<UaString>,
    }
}

structure! {
    /// `PubSubConfigurationRefDataType` (DataType i=25519).
    pub struct PubSubConfigurationRefDataType = 25519, 25531 {
        configuration_mask: PubSubConfigurationRefMask,
        element_index: u16,
        connection_index: u16,
        group_index: u16,
    }
}

structure! {
    /// `PubSubConfigurationValueDataType` (DataType i=25520).
    pub struct PubSubConfigurationValueDataType = 25520, 25532 {
        configuration_element: PubSubConfigurationRefDataType,
        name: UaString,
        identifier: Variant,
    }
}
