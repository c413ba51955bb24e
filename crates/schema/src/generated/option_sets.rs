// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Option sets: unsigned integers whose bits have names.

option_set! {
    /// `PermissionType` (DataType i=94).
    pub struct PermissionType(u32) = 94 {
        BROWSE = 0 "Browse",
        READ_ROLE_PERMISSIONS = 1 "ReadRolePermissions",
        WRITE_ATTRIBUTE = 2 "WriteAttribute",
        WRITE_ROLE_PERMISSIONS = 3 "WriteRolePermissions",
        WRITE_HISTORIZING = 4 "WriteHistorizing",
        READ = 5 "Read",
        WRITE = 6 "Write",
        READ_HISTORY = 7 "ReadHistory",
        INSERT_HISTORY = 8 "InsertHistory",
        MODIFY_HISTORY = 9 "ModifyHistory",
        DELETE_HISTORY = 10 "DeleteHistory",
        RECEIVE_EVENTS = 11 "ReceiveEvents",
        CALL = 12 "Call",
        ADD_REFERENCE = 13 "AddReference",
        REMOVE_REFERENCE = 14 "RemoveReference",
        DELETE_NODE = 15 "DeleteNode",
        ADD_NODE = 16 "AddNode",
    }
}

option_set! {
    /// `AccessRestrictionType` (DataType i=95).
    pub struct AccessRestrictionType(u16) = 95 {
        SIGNING_REQUIRED = 0 "SigningRequired",
        ENCRYPTION_REQUIRED = 1 "EncryptionRequired",
        SESSION_REQUIRED = 2 "SessionRequired",
        APPLY_RESTRICTIONS_TO_BROWSE = 3 "ApplyRestrictionsToBrowse",
    }
}

option_set! {
    /// `AttributeWriteMask` (DataType i=347).
    pub struct AttributeWriteMask(u32) = 347 {
        ACCESS_LEVEL = 0 "AccessLevel",
        ARRAY_DIMENSIONS = 1 "ArrayDimensions",
        BROWSE_NAME = 2 "BrowseName",
        CONTAINS_NO_LOOPS = 3 "ContainsNoLoops",
        DATA_TYPE = 4 "DataType",
        DESCRIPTION = 5 "Description",
        DISPLAY_NAME = 6 "DisplayName",
        EVENT_NOTIFIER = 7 "EventNotifier",
        EXECUTABLE = 8 "Executable",
        HISTORIZING = 9 "Historizing",
        INVERSE_NAME = 10 "InverseName",
        IS_ABSTRACT = 11 "IsAbstract",
        MINIMUM_SAMPLING_INTERVAL = 12 "MinimumSamplingInterval",
        NODE_CLASS = 13 "NodeClass",
        NODE_ID = 14 "NodeId",
        SYMMETRIC = 15 "Symmetric",
        USER_ACCESS_LEVEL = 16 "UserAccessLevel",
        USER_EXECUTABLE = 17 "UserExecutable",
        USER_WRITE_MASK = 18 "UserWriteMask",
        VALUE_RANK = 19 "ValueRank",
        WRITE_MASK = 20 "WriteMask",
        VALUE_FOR_VARIABLE_TYPE = 21 "ValueForVariableType",
        DATA_TYPE_DEFINITION = 22 "DataTypeDefinition",
        ROLE_PERMISSIONS = 23 "RolePermissions",
        ACCESS_RESTRICTIONS = 24 "AccessRestrictions",
        ACCESS_LEVEL_EX = 25 "AccessLevelEx",
    }
}

option_set! {
    /// `AccessLevelType` (DataType i=15031).
    pub struct AccessLevelType(u8) = 15031 {
        CURRENT_READ = 0 "CurrentRead",
        CURRENT_WRITE = 1 "CurrentWrite",
        HISTORY_READ = 2 "HistoryRead",
        HISTORY_WRITE = 3 "HistoryWrite",
        SEMANTIC_CHANGE = 4 "SemanticChange",
        STATUS_WRITE = 5 "StatusWrite",
        TIMESTAMP_WRITE = 6 "TimestampWrite",
    }
}

option_set! {
    /// `EventNotifierType` (DataType i=15033).
    pub struct EventNotifierType(u8) = 15033 {
        SUBSCRIBE_TO_EVENTS = 0 "SubscribeToEvents",
        HISTORY_READ = 2 "HistoryRead",
        HISTORY_WRITE = 3 "HistoryWrite",
    }
}

option_set! {
    /// `AccessLevelExType` (DataType i=15406).
    pub struct AccessLevelExType(u32) = 15406 {
        CURRENT_READ = 0 "CurrentRead",
        CURRENT_WRITE = 1 "CurrentWrite",
        HISTORY_READ = 2 "HistoryRead",
        HISTORY_WRITE = 3 "HistoryWrite",
        SEMANTIC_CHANGE = 4 "SemanticChange",
        STATUS_WRITE = 5 "StatusWrite",
        TIMESTAMP_WRITE = 6 "TimestampWrite",
        NONATOMIC_READ = 8 "NonatomicRead",
        NONATOMIC_WRITE = 9 "NonatomicWrite",
        WRITE_FULL_ARRAY_ONLY = 10 "WriteFullArrayOnly",
        NO_SUB_DATA_TYPES = 11 "NoSubDataTypes",
        NON_VOLATILE = 12 "NonVolatile",
        CONSTANT = 13 "Constant",
    }
}

option_set! {
    /// `DataSetFieldContentMask` (DataType i=15583).
    pub struct DataSetFieldContentMask(u32) = 15583 {
        STATUS_CODE = 0 "StatusCode",
        SOURCE_TIMESTAMP = 1 "SourceTimestamp",
        SERVER_TIMESTAMP = 2 "ServerTimestamp",
        SOURCE_PICO_SECONDS = 3 "SourcePicoSeconds",
        SERVER_PICO_SECONDS = 4 "ServerPicoSeconds",
        RAW_DATA = 5 "RawData",
    }
}

option_set! {
    /// `UadpNetworkMessageContentMask` (DataType i=15642).
    pub struct UadpNetworkMessageContentMask(u32) = 15642 {
        PUBLISHER_ID = 0 "PublisherId",
        GROUP_HEADER = 1 "GroupHeader",
        WRITER_GROUP_ID = 2 "WriterGroupId",
        GROUP_VERSION = 3 "GroupVersion",
        NETWORK_MESSAGE_NUMBER = 4 "NetworkMessageNumber",
        SEQUENCE_NUMBER = 5 "SequenceNumber",
        PAYLOAD_HEADER = 6 "PayloadHeader",
        TIMESTAMP = 7 "Timestamp",
        PICO_SECONDS = 8 "PicoSeconds",
        DATA_SET_CLASS_ID = 9 "DataSetClassId",
        PROMOTED_FIELDS = 10 "PromotedFields",
    }
}

option_set! {
    /// `UadpDataSetMessageContentMask` (DataType i=15646).
    pub struct UadpDataSetMessageContentMask(u32) = 15646 {
        TIMESTAMP = 0 "Timestamp",
        PICO_SECONDS = 1 "PicoSeconds",
        STATUS = 2 "Status",
        MAJOR_VERSION = 3 "MajorVersion",
        MINOR_VERSION = 4 "MinorVersion",
        SEQUENCE_NUMBER = 5 "SequenceNumber",
    }
}

option_set! {
    /// `JsonNetworkMessageContentMask` (DataType i=15654).
    pub struct JsonNetworkMessageContentMask(u32) = 15654 {
        NETWORK_MESSAGE_HEADER = 0 "NetworkMessageHeader",
        DATA_SET_MESSAGE_HEADER = 1 "DataSetMessageHeader",
        SINGLE_DATA_SET_MESSAGE = 2 "SingleDataSetMessage",
        PUBLISHER_ID = 3 "PublisherId",
        DATA_SET_CLASS_ID = 4 "DataSetClassId",
        REPLY_TO = 5 "ReplyTo",
        WRITER_GROUP_NAME = 6 "WriterGroupName",
    }
}

option_set! {
    /// `JsonDataSetMessageContentMask` (DataType i=15658).
    pub struct JsonDataSetMessageContentMask(u32) = 15658 {
        DATA_SET_WRITER_ID = 0 "DataSetWriterId",
        META_DATA_VERSION = 1 "MetaDataVersion",
        SEQUENCE_NUMBER = 2 "SequenceNumber",
        TIMESTAMP = 3 "Timestamp",
        STATUS = 4 "Status",
        MESSAGE_TYPE = 5 "MessageType",
        DATA_SET_WRITER_NAME = 6 "DataSetWriterName",
        FIELD_ENCODING1 = 7 "FieldEncoding1",
        PUBLISHER_ID = 8 "PublisherId",
        WRITER_GROUP_NAME = 9 "WriterGroupName",
        MINOR_VERSION = 10 "MinorVersion",
        FIELD_ENCODING2 = 11 "FieldEncoding2",
    }
}

option_set! {
    /// `DataSetFieldFlags` (DataType i=15904).
    pub struct DataSetFieldFlags(u16) = 15904 {
        PROMOTED_FIELD = 0 "PromotedField",
    }
}

option_set! {
    /// `LldpSystemCapabilitiesMap` (DataType i=18956).
    pub struct LldpSystemCapabilitiesMap(u32) = 18956 {
        OTHER = 0 "Other",
        REPEATER = 1 "Repeater",
        BRIDGE = 2 "Bridge",
        WLAN_ACCESS_POINT = 3 "WlanAccessPoint",
        ROUTER = 4 "Router",
        TELEPHONE = 5 "Telephone",
        DOCSIS_CABLE_DEVICE = 6 "DocsisCableDevice",
        STATION_ONLY = 7 "StationOnly",
        CVLAN_COMPONENT = 8 "CvlanComponent",
        SVLAN_COMPONENT = 9 "SvlanComponent",
        TWO_PORT_MAC_RELAY = 10 "TwoPortMacRelay",
    }
}

option_set! {
    /// `LogRecordMask` (DataType i=19749).
    pub struct LogRecordMask(u32) = 19749 {
        EVENT_TYPE = 0 "EventType",
        SOURCE_NODE = 1 "SourceNode",
        SOURCE_NAME = 2 "SourceName",
        TRACE_CONTEXT = 3 "TraceContext",
        ADDITIONAL_DATA = 4 "AdditionalData",
    }
}

option_set! {
    /// `TrustListValidationOptions` (DataType i=23564).
    pub struct TrustListValidationOptions(u32) = 23564 {
        SUPPRESS_CERTIFICATE_EXPIRED = 0 "SuppressCertificateExpired",
        SUPPRESS_HOST_NAME_INVALID = 1 "SuppressHostNameInvalid",
        SUPPRESS_REVOCATION_STATUS_UNKNOWN = 2 "SuppressRevocationStatusUnknown",
        SUPPRESS_ISSUER_CERTIFICATE_EXPIRED = 3 "SuppressIssuerCertificateExpired",
        SUPPRESS_ISSUER_REVOCATION_STATUS_UNKNOWN = 4 "SuppressIssuerRevocationStatusUnknown",
        CHECK_REVOCATION_STATUS_ONLINE = 5 "CheckRevocationStatusOnline",
        CHECK_REVOCATION_STATUS_OFFLINE = 6 "CheckRevocationStatusOffline",
    }
}

option_set! {
    /// `PasswordOptionsMask` (DataType i=24277).
    pub struct PasswordOptionsMask(u32) = 24277 {
        SUPPORT_INITIAL_PASSWORD_CHANGE = 0 "SupportInitialPasswordChange",
        SUPPORT_DISABLE_USER = 1 "SupportDisableUser",
        SUPPORT_DISABLE_DELETE_FOR_USER = 2 "SupportDisableDeleteForUser",
        SUPPORT_NO_CHANGE_FOR_USER = 3 "SupportNoChangeForUser",
        SUPPORT_DESCRIPTION_FOR_USER = 4 "SupportDescriptionForUser",
        REQUIRES_UPPER_CASE_CHARACTERS = 5 "RequiresUpperCaseCharacters",
        REQUIRES_LOWER_CASE_CHARACTERS = 6 "RequiresLowerCaseCharacters",
        REQUIRES_DIGIT_CHARACTERS = 7 "RequiresDigitCharacters",
        REQUIRES_SPECIAL_CHARACTERS = 8 "RequiresSpecialCharacters",
    }
}

option_set! {
    /// `UserConfigurationMask` (DataType i=24279).
    pub struct UserConfigurationMask(u32) = 24279 {
        NO_DELETE = 0 "NoDelete",
        DISABLED = 1 "Disabled",
        NO_CHANGE_BY_USER = 2 "NoChangeByUser",
        MUST_CHANGE_PASSWORD = 3 "MustChangePassword",
    }
}

option_set! {
    /// `PubSubConfigurationRefMask` (DataType i=25517).
    pub struct PubSubConfigurationRefMask(u32) = 25517 {
        ELEMENT_ADD = 0 "ElementAdd",
        ELEMENT_MATCH = 1 "ElementMatch",
        ELEMENT_MODIFY = 2 "ElementModify",
        ELEMENT_REMOVE = 3 "ElementRemove",
        REFERENCE_WRITER = 4 "ReferenceWriter",
        REFERENCE_READER = 5 "ReferenceReader",
        REFERENCE_WRITER_GROUP = 6 "ReferenceWriterGroup",
        REFERENCE_READER_GROUP = 7 "ReferenceReaderGroup",
        REFERENCE_CONNECTION = 8 "ReferenceConnection",
        REFERENCE_PUB_DATASET = 9 "ReferencePubDataset",
        REFERENCE_SUB_DATASET = 10 "ReferenceSubDataset",
        REFERENCE_SECURITY_GROUP = 11 "ReferenceSecurityGroup",
        REFERENCE_PUSH_TARGET = 12 "ReferencePushTarget",
    }
}

option_set! {
    /// `AlarmMask` (DataType i=32251).
    pub struct AlarmMask(u16) = 32251 {
        ACTIVE = 0 "Active",
        UNACKNOWLEDGED = 1 "Unacknowledged",
        UNCONFIRMED = 2 "Unconfirmed",
    }
}
