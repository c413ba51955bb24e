// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Enumerations. Values that the specification does not define are preserved.

enumeration! {
    /// `Enumeration` (DataType i=29).
    pub struct Enumeration = 29 {
    }
}

enumeration! {
    /// `StructureType` (DataType i=98).
    pub struct StructureType = 98 {
        STRUCTURE = 0 "Structure",
        STRUCTURE_WITH_OPTIONAL_FIELDS = 1 "StructureWithOptionalFields",
        UNION = 2 "Union",
        STRUCTURE_WITH_SUBTYPED_VALUES = 3 "StructureWithSubtypedValues",
        UNION_WITH_SUBTYPED_VALUES = 4 "UnionWithSubtypedValues",
    }
}

enumeration! {
    /// `NamingRuleType` (DataType i=120).
    pub struct NamingRuleType = 120 {
        MANDATORY = 1 "Mandatory",
        OPTIONAL = 2 "Optional",
        CONSTRAINT = 3 "Constraint",
    }
}

enumeration! {
    /// `IdType` (DataType i=256).
    pub struct IdType = 256 {
        NUMERIC = 0 "Numeric",
        STRING = 1 "String",
        GUID = 2 "Guid",
        OPAQUE = 3 "Opaque",
    }
}

enumeration! {
    /// `NodeClass` (DataType i=257).
    pub struct NodeClass = 257 {
        UNSPECIFIED = 0 "Unspecified",
        OBJECT = 1 "Object",
        VARIABLE = 2 "Variable",
        METHOD = 4 "Method",
        OBJECT_TYPE = 8 "ObjectType",
        VARIABLE_TYPE = 16 "VariableType",
        REFERENCE_TYPE = 32 "ReferenceType",
        DATA_TYPE = 64 "DataType",
        VIEW = 128 "View",
    }
}

enumeration! {
    /// `MessageSecurityMode` (DataType i=302).
    pub struct MessageSecurityMode = 302 {
        INVALID = 0 "Invalid",
        NONE = 1 "None",
        SIGN = 2 "Sign",
        SIGN_AND_ENCRYPT = 3 "SignAndEncrypt",
    }
}

enumeration! {
    /// `UserTokenType` (DataType i=303).
    pub struct UserTokenType = 303 {
        ANONYMOUS = 0 "Anonymous",
        USER_NAME = 1 "UserName",
        CERTIFICATE = 2 "Certificate",
        ISSUED_TOKEN = 3 "IssuedToken",
    }
}

enumeration! {
    /// `ApplicationType` (DataType i=307).
    pub struct ApplicationType = 307 {
        SERVER = 0 "Server",
        CLIENT = 1 "Client",
        CLIENT_AND_SERVER = 2 "ClientAndServer",
        DISCOVERY_SERVER = 3 "DiscoveryServer",
    }
}

enumeration! {
    /// `SecurityTokenRequestType` (DataType i=315).
    pub struct SecurityTokenRequestType = 315 {
        ISSUE = 0 "Issue",
        RENEW = 1 "Renew",
    }
}

enumeration! {
    /// `NodeAttributesMask` (DataType i=348).
    pub struct NodeAttributesMask = 348 {
        NONE = 0 "None",
        ACCESS_LEVEL = 1 "AccessLevel",
        ARRAY_DIMENSIONS = 2 "ArrayDimensions",
        BROWSE_NAME = 4 "BrowseName",
        CONTAINS_NO_LOOPS = 8 "ContainsNoLoops",
        DATA_TYPE = 16 "DataType",
        DESCRIPTION = 32 "Description",
        DISPLAY_NAME = 64 "DisplayName",
        EVENT_NOTIFIER = 128 "EventNotifier",
        EXECUTABLE = 256 "Executable",
        HISTORIZING = 512 "Historizing",
        INVERSE_NAME = 1024 "InverseName",
        IS_ABSTRACT = 2048 "IsAbstract",
        MINIMUM_SAMPLING_INTERVAL = 4096 "MinimumSamplingInterval",
        NODE_CLASS = 8192 "NodeClass",
        NODE_ID = 16384 "NodeId",
        SYMMETRIC = 32768 "Symmetric",
        USER_ACCESS_LEVEL = 65536 "UserAccessLevel",
        USER_EXECUTABLE = 131072 "UserExecutable",
        USER_WRITE_MASK = 262144 "UserWriteMask",
        VALUE_RANK = 524288 "ValueRank",
        WRITE_MASK = 1048576 "WriteMask",
        VALUE = 2097152 "Value",
        DATA_TYPE_DEFINITION = 4194304 "DataTypeDefinition",
        ROLE_PERMISSIONS = 8388608 "RolePermissions",
        ACCESS_RESTRICTIONS = 16777216 "AccessRestrictions",
        ALL = 33554431 "All",
        BASE_NODE = 26501220 "BaseNode",
        OBJECT = 26501348 "Object",
        OBJECT_TYPE = 26503268 "ObjectType",
        VARIABLE = 26571383 "Variable",
        VARIABLE_TYPE = 28600438 "VariableType",
        METHOD = 26632548 "Method",
        REFERENCE_TYPE = 26537060 "ReferenceType",
        VIEW = 26501356 "View",
    }
}

enumeration! {
    /// `BrowseDirection` (DataType i=510).
    pub struct BrowseDirection = 510 {
        FORWARD = 0 "Forward",
        INVERSE = 1 "Inverse",
        BOTH = 2 "Both",
        INVALID = 3 "Invalid",
    }
}

enumeration! {
    /// `BrowseResultMask` (DataType i=517).
    pub struct BrowseResultMask = 517 {
        NONE = 0 "None",
        REFERENCE_TYPE_ID = 1 "ReferenceTypeId",
        IS_FORWARD = 2 "IsForward",
        NODE_CLASS = 4 "NodeClass",
        BROWSE_NAME = 8 "BrowseName",
        DISPLAY_NAME = 16 "DisplayName",
        TYPE_DEFINITION = 32 "TypeDefinition",
        ALL = 63 "All",
        REFERENCE_TYPE_INFO = 3 "ReferenceTypeInfo",
        TARGET_INFO = 60 "TargetInfo",
    }
}

enumeration! {
    /// `FilterOperator` (DataType i=576).
    pub struct FilterOperator = 576 {
        EQUALS = 0 "Equals",
        IS_NULL = 1 "IsNull",
        GREATER_THAN = 2 "GreaterThan",
        LESS_THAN = 3 "LessThan",
        GREATER_THAN_OR_EQUAL = 4 "GreaterThanOrEqual",
        LESS_THAN_OR_EQUAL = 5 "LessThanOrEqual",
        LIKE = 6 "Like",
        NOT = 7 "Not",
        BETWEEN = 8 "Between",
        IN_LIST = 9 "InList",
        AND = 10 "And",
        OR = 11 "Or",
        CAST = 12 "Cast",
        IN_VIEW = 13 "InView",
        OF_TYPE = 14 "OfType",
        RELATED_TO = 15 "RelatedTo",
        BITWISE_AND = 16 "BitwiseAnd",
        BITWISE_OR = 17 "BitwiseOr",
    }
}

enumeration! {
    /// `TimestampsToReturn` (DataType i=625).
    pub struct TimestampsToReturn = 625 {
        SOURCE = 0 "Source",
        SERVER = 1 "Server",
        BOTH = 2 "Both",
        NEITHER = 3 "Neither",
        INVALID = 4 "Invalid",
    }
}

enumeration! {
    /// `MonitoringMode` (DataType i=716).
    pub struct MonitoringMode = 716 {
        DISABLED = 0 "Disabled",
        SAMPLING = 1 "Sampling",
        REPORTING = 2 "Reporting",
    }
}

enumeration! {
    /// `DataChangeTrigger` (DataType i=717).
    pub struct DataChangeTrigger = 717 {
        STATUS = 0 "Status",
        STATUS_VALUE = 1 "StatusValue",
        STATUS_VALUE_TIMESTAMP = 2 "StatusValueTimestamp",
    }
}

enumeration! {
    /// `DeadbandType` (DataType i=718).
    pub struct DeadbandType = 718 {
        NONE = 0 "None",
        ABSOLUTE = 1 "Absolute",
        PERCENT = 2 "Percent",
    }
}

enumeration! {
    /// `RedundancySupport` (DataType i=851).
    pub struct RedundancySupport = 851 {
        NONE = 0 "None",
        COLD = 1 "Cold",
        WARM = 2 "Warm",
        HOT = 3 "Hot",
        TRANSPARENT = 4 "Transparent",
        HOT_AND_MIRRORED = 5 "HotAndMirrored",
    }
}

enumeration! {
    /// `ServerState` (DataType i=852).
    pub struct ServerState = 852 {
        RUNNING = 0 "Running",
        FAILED = 1 "Failed",
        NO_CONFIGURATION = 2 "NoConfiguration",
        SUSPENDED = 3 "Suspended",
        SHUTDOWN = 4 "Shutdown",
        TEST = 5 "Test",
        COMMUNICATION_FAULT = 6 "CommunicationFault",
        UNKNOWN = 7 "Unknown",
    }
}

enumeration! {
    /// `ExceptionDeviationFormat` (DataType i=890).
    pub struct ExceptionDeviationFormat = 890 {
        ABSOLUTE_VALUE = 0 "AbsoluteValue",
        PERCENT_OF_VALUE = 1 "PercentOfValue",
        PERCENT_OF_RANGE = 2 "PercentOfRange",
        PERCENT_OF_EU_RANGE = 3 "PercentOfEURange",
        UNKNOWN = 4 "Unknown",
    }
}

enumeration! {
    /// `HistoryUpdateType` (DataType i=11234).
    pub struct HistoryUpdateType = 11234 {
        INSERT = 1 "Insert",
        REPLACE = 2 "Replace",
        UPDATE = 3 "Update",
        DELETE = 4 "Delete",
    }
}

enumeration! {
    /// `PerformUpdateType` (DataType i=11293).
    pub struct PerformUpdateType = 11293 {
        INSERT = 1 "Insert",
        REPLACE = 2 "Replace",
        UPDATE = 3 "Update",
        REMOVE = 4 "Remove",
    }
}

enumeration! {
    /// `OpenFileMode` (DataType i=11939).
    pub struct OpenFileMode = 11939 {
        READ = 1 "Read",
        WRITE = 2 "Write",
        ERASE_EXISTING = 4 "EraseExisting",
        APPEND = 8 "Append",
    }
}

enumeration! {
    /// `ModelChangeStructureVerbMask` (DataType i=11941).
    pub struct ModelChangeStructureVerbMask = 11941 {
        NODE_ADDED = 1 "NodeAdded",
        NODE_DELETED = 2 "NodeDeleted",
        REFERENCE_ADDED = 4 "ReferenceAdded",
        REFERENCE_DELETED = 8 "ReferenceDeleted",
        DATA_TYPE_CHANGED = 16 "DataTypeChanged",
    }
}

enumeration! {
    /// `AxisScaleEnumeration` (DataType i=12077).
    pub struct AxisScaleEnumeration = 12077 {
        LINEAR = 0 "Linear",
        LOG = 1 "Log",
        LN = 2 "Ln",
    }
}

enumeration! {
    /// `TrustListMasks` (DataType i=12552).
    pub struct TrustListMasks = 12552 {
        NONE = 0 "None",
        TRUSTED_CERTIFICATES = 1 "TrustedCertificates",
        TRUSTED_CRLS = 2 "TrustedCrls",
        ISSUER_CERTIFICATES = 4 "IssuerCertificates",
        ISSUER_CRLS = 8 "IssuerCrls",
        ALL = 15 "All",
    }
}

enumeration! {
    /// `PubSubState` (DataType i=14647).
    pub struct PubSubState = 14647 {
        DISABLED = 0 "Disabled",
        PAUSED = 1 "Paused",
        OPERATIONAL = 2 "Operational",
        ERROR = 3 "Error",
        PRE_OPERATIONAL = 4 "PreOperational",
    }
}

enumeration! {
    /// `BrokerTransportQualityOfService` (DataType i=15008).
    pub struct BrokerTransportQualityOfService = 15008 {
        NOT_SPECIFIED = 0 "NotSpecified",
        BEST_EFFORT = 1 "BestEffort",
        AT_LEAST_ONCE = 2 "AtLeastOnce",
        AT_MOST_ONCE = 3 "AtMostOnce",
        EXACTLY_ONCE = 4 "ExactlyOnce",
    }
}

enumeration! {
    /// `ConfigurationUpdateType` (DataType i=15539).
    pub struct ConfigurationUpdateType = 15539 {
        INSERT = 1 "Insert",
        REPLACE = 2 "Replace",
        INSERT_OR_REPLACE = 3 "InsertOrReplace",
        DELETE = 4 "Delete",
    }
}

enumeration! {
    /// `IdentityCriteriaType` (DataType i=15632).
    pub struct IdentityCriteriaType = 15632 {
        USER_NAME = 1 "UserName",
        THUMBPRINT = 2 "Thumbprint",
        ROLE = 3 "Role",
        GROUP_ID = 4 "GroupId",
        ANONYMOUS = 5 "Anonymous",
        AUTHENTICATED_USER = 6 "AuthenticatedUser",
        APPLICATION = 7 "Application",
        X509_SUBJECT = 8 "X509Subject",
        TRUSTED_APPLICATION = 9 "TrustedApplication",
    }
}

enumeration! {
    /// `OverrideValueHandling` (DataType i=15874).
    pub struct OverrideValueHandling = 15874 {
        DISABLED = 0 "Disabled",
        LAST_USABLE_VALUE = 1 "LastUsableValue",
        OVERRIDE_VALUE = 2 "OverrideValue",
    }
}

enumeration! {
    /// `ActionState` (DataType i=18595).
    pub struct ActionState = 18595 {
        IDLE = 0 "Idle",
        EXECUTING = 1 "Executing",
        DONE = 2 "Done",
    }
}

enumeration! {
    /// `SortOrderType` (DataType i=18646).
    pub struct SortOrderType = 18646 {
        ASCENDING = 0 "Ascending",
        DESCENDING = 1 "Descending",
    }
}

enumeration! {
    /// `ChassisIdSubtype` (DataType i=18947).
    pub struct ChassisIdSubtype = 18947 {
        CHASSIS_COMPONENT = 1 "ChassisComponent",
        INTERFACE_ALIAS = 2 "InterfaceAlias",
        PORT_COMPONENT = 3 "PortComponent",
        MAC_ADDRESS = 4 "MacAddress",
        NETWORK_ADDRESS = 5 "NetworkAddress",
        INTERFACE_NAME = 6 "InterfaceName",
        LOCAL = 7 "Local",
    }
}

enumeration! {
    /// `PortIdSubtype` (DataType i=18949).
    pub struct PortIdSubtype = 18949 {
        INTERFACE_ALIAS = 1 "InterfaceAlias",
        PORT_COMPONENT = 2 "PortComponent",
        MAC_ADDRESS = 3 "MacAddress",
        NETWORK_ADDRESS = 4 "NetworkAddress",
        INTERFACE_NAME = 5 "InterfaceName",
        AGENT_CIRCUIT_ID = 6 "AgentCircuitId",
        LOCAL = 7 "Local",
    }
}

enumeration! {
    /// `ManAddrIfSubtype` (DataType i=18951).
    pub struct ManAddrIfSubtype = 18951 {
        NONE = 0 "None",
        UNKNOWN = 1 "Unknown",
        PORT_REF = 2 "PortRef",
        SYSTEM_PORT_NUMBER = 3 "SystemPortNumber",
    }
}

enumeration! {
    /// `DiagnosticsLevel` (DataType i=19723).
    pub struct DiagnosticsLevel = 19723 {
        BASIC = 0 "Basic",
        ADVANCED = 1 "Advanced",
        INFO = 2 "Info",
        LOG = 3 "Log",
        DEBUG = 4 "Debug",
    }
}

enumeration! {
    /// `PubSubDiagnosticsCounterClassification` (DataType i=19730).
    pub struct PubSubDiagnosticsCounterClassification = 19730 {
        INFORMATION = 0 "Information",
        ERROR = 1 "Error",
    }
}

enumeration! {
    /// `DataSetOrderingType` (DataType i=20408).
    pub struct DataSetOrderingType = 20408 {
        UNDEFINED = 0 "Undefined",
        ASCENDING_WRITER_ID = 1 "AscendingWriterId",
        ASCENDING_WRITER_ID_SINGLE = 2 "AscendingWriterIdSingle",
    }
}

enumeration! {
    /// `Duplex` (DataType i=24210).
    pub struct Duplex = 24210 {
        FULL = 0 "Full",
        HALF = 1 "Half",
        UNKNOWN = 2 "Unknown",
    }
}

enumeration! {
    /// `InterfaceAdminStatus` (DataType i=24212).
    pub struct InterfaceAdminStatus = 24212 {
        UP = 0 "Up",
        DOWN = 1 "Down",
        TESTING = 2 "Testing",
    }
}

enumeration! {
    /// `InterfaceOperStatus` (DataType i=24214).
    pub struct InterfaceOperStatus = 24214 {
        UP = 0 "Up",
        DOWN = 1 "Down",
        TESTING = 2 "Testing",
        UNKNOWN = 3 "Unknown",
        DORMANT = 4 "Dormant",
        NOT_PRESENT = 5 "NotPresent",
        LOWER_LAYER_DOWN = 6 "LowerLayerDown",
    }
}

enumeration! {
    /// `NegotiationStatus` (DataType i=24216).
    pub struct NegotiationStatus = 24216 {
        IN_PROGRESS = 0 "InProgress",
        COMPLETE = 1 "Complete",
        FAILED = 2 "Failed",
        UNKNOWN = 3 "Unknown",
        NO_NEGOTIATION = 4 "NoNegotiation",
    }
}

enumeration! {
    /// `TsnFailureCode` (DataType i=24218).
    pub struct TsnFailureCode = 24218 {
        NO_FAILURE = 0 "NoFailure",
        INSUFFICIENT_BANDWIDTH = 1 "InsufficientBandwidth",
        INSUFFICIENT_RESOURCES = 2 "InsufficientResources",
        INSUFFICIENT_TRAFFIC_CLASS_BANDWIDTH = 3 "InsufficientTrafficClassBandwidth",
        STREAM_ID_IN_USE = 4 "StreamIdInUse",
        STREAM_DESTINATION_ADDRESS_IN_USE = 5 "StreamDestinationAddressInUse",
        STREAM_PREEMPTED_BY_HIGHER_RANK = 6 "StreamPreemptedByHigherRank",
        LATENCY_HAS_CHANGED = 7 "LatencyHasChanged",
        EGRESS_PORT_NOT_AVB_CAPABLE = 8 "EgressPortNotAvbCapable",
        USE_DIFFERENT_DESTINATION_ADDRESS = 9 "UseDifferentDestinationAddress",
        OUT_OF_MSRP_RESOURCES = 10 "OutOfMsrpResources",
        OUT_OF_MMRP_RESOURCES = 11 "OutOfMmrpResources",
        CANNOT_STORE_DESTINATION_ADDRESS = 12 "CannotStoreDestinationAddress",
        PRIORITY_IS_NOT_AN_SRC_CLASS = 13 "PriorityIsNotAnSrcClass",
        MAX_FRAME_SIZE_TOO_LARGE = 14 "MaxFrameSizeTooLarge",
        MAX_FAN_IN_PORTS_LIMIT_REACHED = 15 "MaxFanInPortsLimitReached",
        FIRST_VALUE_CHANGED_FOR_STREAM_ID = 16 "FirstValueChangedForStreamId",
        VLAN_BLOCKED_ON_EGRESS = 17 "VlanBlockedOnEgress",
        VLAN_TAGGING_DISABLED_ON_EGRESS = 18 "VlanTaggingDisabledOnEgress",
        SR_CLASS_PRIORITY_MISMATCH = 19 "SrClassPriorityMismatch",
        FEATURE_NOT_PROPAGATED = 20 "FeatureNotPropagated",
        MAX_LATENCY_EXCEEDED = 21 "MaxLatencyExceeded",
        BRIDGE_DOES_NOT_PROVIDE_NETWORK_ID = 22 "BridgeDoesNotProvideNetworkId",
        STREAM_TRANSFORM_NOT_SUPPORTED = 23 "StreamTransformNotSupported",
        STREAM_ID_TYPE_NOT_SUPPORTED = 24 "StreamIdTypeNotSupported",
        FEATURE_NOT_SUPPORTED = 25 "FeatureNotSupported",
    }
}

enumeration! {
    /// `TsnStreamState` (DataType i=24220).
    pub struct TsnStreamState = 24220 {
        DISABLED = 0 "Disabled",
        CONFIGURING = 1 "Configuring",
        READY = 2 "Ready",
        OPERATIONAL = 3 "Operational",
        ERROR = 4 "Error",
    }
}

enumeration! {
    /// `TsnTalkerStatus` (DataType i=24222).
    pub struct TsnTalkerStatus = 24222 {
        NONE = 0 "None",
        READY = 1 "Ready",
        FAILED = 2 "Failed",
    }
}

enumeration! {
    /// `TsnListenerStatus` (DataType i=24224).
    pub struct TsnListenerStatus = 24224 {
        NONE = 0 "None",
        READY = 1 "Ready",
        PARTIAL_FAILED = 2 "PartialFailed",
        FAILED = 3 "Failed",
    }
}

enumeration! {
    /// `RedundantServerMode` (DataType i=32417).
    pub struct RedundantServerMode = 32417 {
        PRIMARY_WITH_BACKUP = 0 "PrimaryWithBackup",
        PRIMARY_ONLY = 1 "PrimaryOnly",
        BACKUP_READY = 2 "BackupReady",
        BACKUP_NOT_READY = 3 "BackupNotReady",
    }
}

enumeration! {
    /// `ConversionLimitEnum` (DataType i=32436).
    pub struct ConversionLimitEnum = 32436 {
        NO_CONVERSION = 0 "NoConversion",
        LIMITED = 1 "Limited",
        UNLIMITED = 2 "Unlimited",
    }
}
