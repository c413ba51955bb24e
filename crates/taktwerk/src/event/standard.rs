// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Event types of namespace 0.

taktwerk::event_type! {
    /// Events of the type `AcknowledgeableConditionType`.
    pub struct AcknowledgeableCondition is ("http://opcfoundation.org/UA/", "i=2881") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AlarmConditionType`.
    pub struct AlarmCondition is ("http://opcfoundation.org/UA/", "i=2915") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditActivateSessionEventType`.
    pub struct AuditActivateSessionEvent is ("http://opcfoundation.org/UA/", "i=2075") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `SessionId`.
        pub session_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "SessionId")],
        /// `ClientSoftwareCertificates`.
        pub client_software_certificates: Vec<taktwerk::Struct<taktwerk::schema::SignedSoftwareCertificate>> = [("http://opcfoundation.org/UA/", "ClientSoftwareCertificates")],
        /// `UserIdentityToken`.
        pub user_identity_token: taktwerk::types::ExtensionObject = [("http://opcfoundation.org/UA/", "UserIdentityToken")],
        /// `SecureChannelId`.
        pub secure_channel_id: String = [("http://opcfoundation.org/UA/", "SecureChannelId")],
        /// `CurrentRoleIds`.
        pub current_role_ids: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "CurrentRoleIds")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditAddNodesEventType`.
    pub struct AuditAddNodesEvent is ("http://opcfoundation.org/UA/", "i=2091") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `NodesToAdd`.
        pub nodes_to_add: Vec<taktwerk::Struct<taktwerk::schema::AddNodesItem>> = [("http://opcfoundation.org/UA/", "NodesToAdd")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditAddReferencesEventType`.
    pub struct AuditAddReferencesEvent is ("http://opcfoundation.org/UA/", "i=2095") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `ReferencesToAdd`.
        pub references_to_add: Vec<taktwerk::Struct<taktwerk::schema::AddReferencesItem>> = [("http://opcfoundation.org/UA/", "ReferencesToAdd")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditCancelEventType`.
    pub struct AuditCancelEvent is ("http://opcfoundation.org/UA/", "i=2078") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `SessionId`.
        pub session_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "SessionId")],
        /// `RequestHandle`.
        pub request_handle: u32 = [("http://opcfoundation.org/UA/", "RequestHandle")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditCertificateDataMismatchEventType`.
    pub struct AuditCertificateDataMismatchEvent is ("http://opcfoundation.org/UA/", "i=2082") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `Certificate`.
        pub certificate: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "Certificate")],
        /// `InvalidHostname`.
        pub invalid_hostname: String = [("http://opcfoundation.org/UA/", "InvalidHostname")],
        /// `InvalidUri`.
        pub invalid_uri: String = [("http://opcfoundation.org/UA/", "InvalidUri")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditCertificateEventType`.
    pub struct AuditCertificateEvent is ("http://opcfoundation.org/UA/", "i=2080") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `Certificate`.
        pub certificate: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "Certificate")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditCertificateExpiredEventType`.
    pub struct AuditCertificateExpiredEvent is ("http://opcfoundation.org/UA/", "i=2085") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `Certificate`.
        pub certificate: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "Certificate")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditCertificateInvalidEventType`.
    pub struct AuditCertificateInvalidEvent is ("http://opcfoundation.org/UA/", "i=2086") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `Certificate`.
        pub certificate: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "Certificate")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditCertificateMismatchEventType`.
    pub struct AuditCertificateMismatchEvent is ("http://opcfoundation.org/UA/", "i=2089") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `Certificate`.
        pub certificate: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "Certificate")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditCertificateRevokedEventType`.
    pub struct AuditCertificateRevokedEvent is ("http://opcfoundation.org/UA/", "i=2088") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `Certificate`.
        pub certificate: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "Certificate")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditCertificateUntrustedEventType`.
    pub struct AuditCertificateUntrustedEvent is ("http://opcfoundation.org/UA/", "i=2087") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `Certificate`.
        pub certificate: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "Certificate")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditChannelEventType`.
    pub struct AuditChannelEvent is ("http://opcfoundation.org/UA/", "i=2059") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `SecureChannelId`.
        pub secure_channel_id: String = [("http://opcfoundation.org/UA/", "SecureChannelId")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditClientEventType`.
    pub struct AuditClientEvent is ("http://opcfoundation.org/UA/", "i=23606") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `ServerUri`.
        pub server_uri: String = [("http://opcfoundation.org/UA/", "ServerUri")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditClientUpdateMethodResultEventType`.
    pub struct AuditClientUpdateMethodResultEvent is ("http://opcfoundation.org/UA/", "i=23926") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `ServerUri`.
        pub server_uri: String = [("http://opcfoundation.org/UA/", "ServerUri")],
        /// `ObjectId`.
        pub object_id: taktwerk::types::ExpandedNodeId = [("http://opcfoundation.org/UA/", "ObjectId")],
        /// `MethodId`.
        pub method_id: taktwerk::types::ExpandedNodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "OutputArguments")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditConditionAcknowledgeEventType`.
    pub struct AuditConditionAcknowledgeEvent is ("http://opcfoundation.org/UA/", "i=8944") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `ConditionEventId`.
        pub condition_event_id: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "ConditionEventId")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditConditionCommentEventType`.
    pub struct AuditConditionCommentEvent is ("http://opcfoundation.org/UA/", "i=2829") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `ConditionEventId`.
        pub condition_event_id: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "ConditionEventId")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditConditionConfirmEventType`.
    pub struct AuditConditionConfirmEvent is ("http://opcfoundation.org/UA/", "i=8961") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `ConditionEventId`.
        pub condition_event_id: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "ConditionEventId")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditConditionEnableEventType`.
    pub struct AuditConditionEnableEvent is ("http://opcfoundation.org/UA/", "i=2803") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditConditionEventType`.
    pub struct AuditConditionEvent is ("http://opcfoundation.org/UA/", "i=2790") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditConditionOutOfServiceEventType`.
    pub struct AuditConditionOutOfServiceEvent is ("http://opcfoundation.org/UA/", "i=17259") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditConditionResetEventType`.
    pub struct AuditConditionResetEvent is ("http://opcfoundation.org/UA/", "i=15013") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditConditionRespondEventType`.
    pub struct AuditConditionRespondEvent is ("http://opcfoundation.org/UA/", "i=8927") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `SelectedResponse`.
        pub selected_response: u32 = [("http://opcfoundation.org/UA/", "SelectedResponse")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditConditionShelvingEventType`.
    pub struct AuditConditionShelvingEvent is ("http://opcfoundation.org/UA/", "i=11093") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `ShelvingTime`.
        pub shelving_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingTime")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditConditionSilenceEventType`.
    pub struct AuditConditionSilenceEvent is ("http://opcfoundation.org/UA/", "i=17242") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditConditionSuppressionEventType`.
    pub struct AuditConditionSuppressionEvent is ("http://opcfoundation.org/UA/", "i=17225") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditCreateSessionEventType`.
    pub struct AuditCreateSessionEvent is ("http://opcfoundation.org/UA/", "i=2071") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `SessionId`.
        pub session_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "SessionId")],
        /// `SecureChannelId`.
        pub secure_channel_id: String = [("http://opcfoundation.org/UA/", "SecureChannelId")],
        /// `ClientCertificate`.
        pub client_certificate: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "ClientCertificate")],
        /// `ClientCertificateThumbprint`.
        pub client_certificate_thumbprint: String = [("http://opcfoundation.org/UA/", "ClientCertificateThumbprint")],
        /// `RevisedSessionTimeout`.
        pub revised_session_timeout: f64 = [("http://opcfoundation.org/UA/", "RevisedSessionTimeout")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditDeleteNodesEventType`.
    pub struct AuditDeleteNodesEvent is ("http://opcfoundation.org/UA/", "i=2093") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `NodesToDelete`.
        pub nodes_to_delete: Vec<taktwerk::Struct<taktwerk::schema::DeleteNodesItem>> = [("http://opcfoundation.org/UA/", "NodesToDelete")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditDeleteReferencesEventType`.
    pub struct AuditDeleteReferencesEvent is ("http://opcfoundation.org/UA/", "i=2097") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `ReferencesToDelete`.
        pub references_to_delete: Vec<taktwerk::Struct<taktwerk::schema::DeleteReferencesItem>> = [("http://opcfoundation.org/UA/", "ReferencesToDelete")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditEventType`.
    pub struct AuditEvent is ("http://opcfoundation.org/UA/", "i=2052") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditHistoryAnnotationUpdateEventType`.
    pub struct AuditHistoryAnnotationUpdateEvent is ("http://opcfoundation.org/UA/", "i=19095") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `ParameterDataTypeId`.
        pub parameter_data_type_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ParameterDataTypeId")],
        /// `PerformInsertReplace`.
        pub perform_insert_replace: i32 = [("http://opcfoundation.org/UA/", "PerformInsertReplace")],
        /// `NewValues`.
        pub new_values: Vec<taktwerk::Struct<taktwerk::schema::Annotation>> = [("http://opcfoundation.org/UA/", "NewValues")],
        /// `OldValues`.
        pub old_values: Vec<taktwerk::Struct<taktwerk::schema::Annotation>> = [("http://opcfoundation.org/UA/", "OldValues")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditHistoryAtTimeDeleteEventType`.
    pub struct AuditHistoryAtTimeDeleteEvent is ("http://opcfoundation.org/UA/", "i=3019") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `ParameterDataTypeId`.
        pub parameter_data_type_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ParameterDataTypeId")],
        /// `UpdatedNode`.
        pub updated_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "UpdatedNode")],
        /// `ReqTimes`.
        pub req_times: Vec<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ReqTimes")],
        /// `OldValues`.
        pub old_values: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "OldValues")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditHistoryBulkInsertEventType`.
    pub struct AuditHistoryBulkInsertEvent is ("http://opcfoundation.org/UA/", "i=32803") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `UpdatedNode`.
        pub updated_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "UpdatedNode")],
        /// `StartTime`.
        pub start_time: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "StartTime")],
        /// `EndTime`.
        pub end_time: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "EndTime")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditHistoryConfigurationChangeEventType`.
    pub struct AuditHistoryConfigurationChangeEvent is ("http://opcfoundation.org/UA/", "i=32758") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditHistoryDeleteEventType`.
    pub struct AuditHistoryDeleteEvent is ("http://opcfoundation.org/UA/", "i=3012") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `ParameterDataTypeId`.
        pub parameter_data_type_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ParameterDataTypeId")],
        /// `UpdatedNode`.
        pub updated_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "UpdatedNode")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditHistoryEventDeleteEventType`.
    pub struct AuditHistoryEventDeleteEvent is ("http://opcfoundation.org/UA/", "i=3022") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `ParameterDataTypeId`.
        pub parameter_data_type_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ParameterDataTypeId")],
        /// `UpdatedNode`.
        pub updated_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "UpdatedNode")],
        /// `EventIds`.
        pub event_ids: Vec<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "EventIds")],
        /// `OldValues`.
        pub old_values: taktwerk::Struct<taktwerk::schema::HistoryEventFieldList> = [("http://opcfoundation.org/UA/", "OldValues")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditHistoryEventUpdateEventType`.
    pub struct AuditHistoryEventUpdateEvent is ("http://opcfoundation.org/UA/", "i=2999") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `ParameterDataTypeId`.
        pub parameter_data_type_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ParameterDataTypeId")],
        /// `UpdatedNode`.
        pub updated_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "UpdatedNode")],
        /// `PerformInsertReplace`.
        pub perform_insert_replace: i32 = [("http://opcfoundation.org/UA/", "PerformInsertReplace")],
        /// `Filter`.
        pub filter: taktwerk::Struct<taktwerk::schema::EventFilter> = [("http://opcfoundation.org/UA/", "Filter")],
        /// `NewValues`.
        pub new_values: Vec<taktwerk::Struct<taktwerk::schema::HistoryEventFieldList>> = [("http://opcfoundation.org/UA/", "NewValues")],
        /// `OldValues`.
        pub old_values: Vec<taktwerk::Struct<taktwerk::schema::HistoryEventFieldList>> = [("http://opcfoundation.org/UA/", "OldValues")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditHistoryRawModifyDeleteEventType`.
    pub struct AuditHistoryRawModifyDeleteEvent is ("http://opcfoundation.org/UA/", "i=3014") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `ParameterDataTypeId`.
        pub parameter_data_type_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ParameterDataTypeId")],
        /// `UpdatedNode`.
        pub updated_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "UpdatedNode")],
        /// `IsDeleteModified`.
        pub is_delete_modified: bool = [("http://opcfoundation.org/UA/", "IsDeleteModified")],
        /// `StartTime`.
        pub start_time: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "StartTime")],
        /// `EndTime`.
        pub end_time: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "EndTime")],
        /// `OldValues`.
        pub old_values: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "OldValues")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditHistoryUpdateEventType`.
    pub struct AuditHistoryUpdateEvent is ("http://opcfoundation.org/UA/", "i=2104") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `ParameterDataTypeId`.
        pub parameter_data_type_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ParameterDataTypeId")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditHistoryValueUpdateEventType`.
    pub struct AuditHistoryValueUpdateEvent is ("http://opcfoundation.org/UA/", "i=3006") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `ParameterDataTypeId`.
        pub parameter_data_type_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ParameterDataTypeId")],
        /// `UpdatedNode`.
        pub updated_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "UpdatedNode")],
        /// `PerformInsertReplace`.
        pub perform_insert_replace: i32 = [("http://opcfoundation.org/UA/", "PerformInsertReplace")],
        /// `NewValues`.
        pub new_values: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "NewValues")],
        /// `OldValues`.
        pub old_values: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "OldValues")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditNodeManagementEventType`.
    pub struct AuditNodeManagementEvent is ("http://opcfoundation.org/UA/", "i=2090") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditOpenSecureChannelEventType`.
    pub struct AuditOpenSecureChannelEvent is ("http://opcfoundation.org/UA/", "i=2060") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `SecureChannelId`.
        pub secure_channel_id: String = [("http://opcfoundation.org/UA/", "SecureChannelId")],
        /// `ClientCertificate`.
        pub client_certificate: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "ClientCertificate")],
        /// `ClientCertificateThumbprint`.
        pub client_certificate_thumbprint: String = [("http://opcfoundation.org/UA/", "ClientCertificateThumbprint")],
        /// `RequestType`.
        pub request_type: i32 = [("http://opcfoundation.org/UA/", "RequestType")],
        /// `SecurityPolicyUri`.
        pub security_policy_uri: String = [("http://opcfoundation.org/UA/", "SecurityPolicyUri")],
        /// `SecurityMode`.
        pub security_mode: i32 = [("http://opcfoundation.org/UA/", "SecurityMode")],
        /// `RequestedLifetime`.
        pub requested_lifetime: f64 = [("http://opcfoundation.org/UA/", "RequestedLifetime")],
        /// `CertificateErrorEventId`.
        pub certificate_error_event_id: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "CertificateErrorEventId")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditProgramTransitionEventType`.
    pub struct AuditProgramTransitionEvent is ("http://opcfoundation.org/UA/", "i=11856") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `OldStateId`.
        pub old_state_id: taktwerk::Variant = [("http://opcfoundation.org/UA/", "OldStateId")],
        /// `NewStateId`.
        pub new_state_id: taktwerk::Variant = [("http://opcfoundation.org/UA/", "NewStateId")],
        /// `TransitionNumber`.
        pub transition_number: u32 = [("http://opcfoundation.org/UA/", "TransitionNumber")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditSecurityEventType`.
    pub struct AuditSecurityEvent is ("http://opcfoundation.org/UA/", "i=2058") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditSessionEventType`.
    pub struct AuditSessionEvent is ("http://opcfoundation.org/UA/", "i=2069") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `SessionId`.
        pub session_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "SessionId")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditUpdateEventType`.
    pub struct AuditUpdateEvent is ("http://opcfoundation.org/UA/", "i=2099") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditUpdateMethodEventType`.
    pub struct AuditUpdateMethodEvent is ("http://opcfoundation.org/UA/", "i=2127") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditUpdateStateEventType`.
    pub struct AuditUpdateStateEvent is ("http://opcfoundation.org/UA/", "i=2315") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `OldStateId`.
        pub old_state_id: taktwerk::Variant = [("http://opcfoundation.org/UA/", "OldStateId")],
        /// `NewStateId`.
        pub new_state_id: taktwerk::Variant = [("http://opcfoundation.org/UA/", "NewStateId")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditUrlMismatchEventType`.
    pub struct AuditUrlMismatchEvent is ("http://opcfoundation.org/UA/", "i=2748") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `SessionId`.
        pub session_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "SessionId")],
        /// `SecureChannelId`.
        pub secure_channel_id: String = [("http://opcfoundation.org/UA/", "SecureChannelId")],
        /// `ClientCertificate`.
        pub client_certificate: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "ClientCertificate")],
        /// `ClientCertificateThumbprint`.
        pub client_certificate_thumbprint: String = [("http://opcfoundation.org/UA/", "ClientCertificateThumbprint")],
        /// `RevisedSessionTimeout`.
        pub revised_session_timeout: f64 = [("http://opcfoundation.org/UA/", "RevisedSessionTimeout")],
        /// `EndpointUrl`.
        pub endpoint_url: String = [("http://opcfoundation.org/UA/", "EndpointUrl")],
    }
}

taktwerk::event_type! {
    /// Events of the type `AuditWriteUpdateEventType`.
    pub struct AuditWriteUpdateEvent is ("http://opcfoundation.org/UA/", "i=2100") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `AttributeId`.
        pub attribute_id: u32 = [("http://opcfoundation.org/UA/", "AttributeId")],
        /// `IndexRange`.
        pub index_range: String = [("http://opcfoundation.org/UA/", "IndexRange")],
        /// `OldValue`.
        pub old_value: taktwerk::Variant = [("http://opcfoundation.org/UA/", "OldValue")],
        /// `NewValue`.
        pub new_value: taktwerk::Variant = [("http://opcfoundation.org/UA/", "NewValue")],
    }
}

taktwerk::event_type! {
    /// Events of the type `BaseLogEventType`.
    pub struct BaseLogEvent is ("http://opcfoundation.org/UA/", "i=19362") {
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ErrorCode`.
        pub error_code: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "ErrorCode")],
        /// `ErrorCodeNode`.
        pub error_code_node: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ErrorCodeNode")],
        /// `TraceContext`.
        pub trace_context: Option<taktwerk::Struct<taktwerk::schema::TraceContextDataType>> = [("http://opcfoundation.org/UA/", "TraceContext")],
    }
}

taktwerk::event_type! {
    /// Events of the type `BaseModelChangeEventType`.
    pub struct BaseModelChangeEvent is ("http://opcfoundation.org/UA/", "i=2132") {
    }
}

taktwerk::event_type! {
    /// Events of the type `CertificateExpirationAlarmType`.
    pub struct CertificateExpirationAlarm is ("http://opcfoundation.org/UA/", "i=13225") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `NormalState`.
        pub normal_state: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "NormalState")],
        /// `ExpirationDate`.
        pub expiration_date: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ExpirationDate")],
        /// `ExpirationLimit`.
        pub expiration_limit: Option<f64> = [("http://opcfoundation.org/UA/", "ExpirationLimit")],
        /// `CertificateType`.
        pub certificate_type: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "CertificateType")],
        /// `Certificate`.
        pub certificate: taktwerk::types::ByteString = [("http://opcfoundation.org/UA/", "Certificate")],
    }
}

taktwerk::event_type! {
    /// Events of the type `CertificateUpdateRequestedAuditEventType`.
    pub struct CertificateUpdateRequestedAuditEvent is ("http://opcfoundation.org/UA/", "i=32306") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
    }
}

taktwerk::event_type! {
    /// Events of the type `CertificateUpdatedAuditEventType`.
    pub struct CertificateUpdatedAuditEvent is ("http://opcfoundation.org/UA/", "i=12620") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `CertificateGroup`.
        pub certificate_group: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "CertificateGroup")],
        /// `CertificateType`.
        pub certificate_type: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "CertificateType")],
    }
}

taktwerk::event_type! {
    /// Events of the type `ConditionType`.
    pub struct Condition is ("http://opcfoundation.org/UA/", "i=2782") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
    }
}

taktwerk::event_type! {
    /// Events of the type `ConfigurationUpdatedAuditEventType`.
    pub struct ConfigurationUpdatedAuditEvent is ("http://opcfoundation.org/UA/", "i=15541") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `OldVersion`.
        pub old_version: u32 = [("http://opcfoundation.org/UA/", "OldVersion")],
        /// `NewVersion`.
        pub new_version: u32 = [("http://opcfoundation.org/UA/", "NewVersion")],
    }
}

taktwerk::event_type! {
    /// Events of the type `DeviceFailureEventType`.
    pub struct DeviceFailureEvent is ("http://opcfoundation.org/UA/", "i=2131") {
    }
}

taktwerk::event_type! {
    /// Events of the type `DialogConditionType`.
    pub struct DialogCondition is ("http://opcfoundation.org/UA/", "i=2830") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `DialogState`.
        pub dialog_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "DialogState")],
        /// `DialogState/Id`.
        pub dialog_state_id: bool = [("http://opcfoundation.org/UA/", "DialogState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `DialogState/TransitionTime`.
        pub dialog_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "DialogState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `Prompt`.
        pub prompt: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Prompt")],
        /// `ResponseOptionSet`.
        pub response_option_set: Vec<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ResponseOptionSet")],
        /// `DefaultResponse`.
        pub default_response: i32 = [("http://opcfoundation.org/UA/", "DefaultResponse")],
        /// `OkResponse`.
        pub ok_response: i32 = [("http://opcfoundation.org/UA/", "OkResponse")],
        /// `CancelResponse`.
        pub cancel_response: i32 = [("http://opcfoundation.org/UA/", "CancelResponse")],
        /// `LastResponse`.
        pub last_response: i32 = [("http://opcfoundation.org/UA/", "LastResponse")],
    }
}

taktwerk::event_type! {
    /// Events of the type `DiscrepancyAlarmType`.
    pub struct DiscrepancyAlarm is ("http://opcfoundation.org/UA/", "i=17080") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `TargetValueNode`.
        pub target_value_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "TargetValueNode")],
        /// `ExpectedTime`.
        pub expected_time: f64 = [("http://opcfoundation.org/UA/", "ExpectedTime")],
        /// `Tolerance`.
        pub tolerance: Option<f64> = [("http://opcfoundation.org/UA/", "Tolerance")],
    }
}

taktwerk::event_type! {
    /// Events of the type `EventQueueOverflowEventType`.
    pub struct EventQueueOverflowEvent is ("http://opcfoundation.org/UA/", "i=3035") {
    }
}

taktwerk::event_type! {
    /// Events of the type `ExclusiveDeviationAlarmType`.
    pub struct ExclusiveDeviationAlarm is ("http://opcfoundation.org/UA/", "i=9764") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `HighHighLimit`.
        pub high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighLimit")],
        /// `HighLimit`.
        pub high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighLimit")],
        /// `LowLimit`.
        pub low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLimit")],
        /// `LowLowLimit`.
        pub low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowLimit")],
        /// `BaseHighHighLimit`.
        pub base_high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighHighLimit")],
        /// `BaseHighLimit`.
        pub base_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighLimit")],
        /// `BaseLowLimit`.
        pub base_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLimit")],
        /// `BaseLowLowLimit`.
        pub base_low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLowLimit")],
        /// `SeverityHighHigh`.
        pub severity_high_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHighHigh")],
        /// `SeverityHigh`.
        pub severity_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHigh")],
        /// `SeverityLow`.
        pub severity_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLow")],
        /// `SeverityLowLow`.
        pub severity_low_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLowLow")],
        /// `HighHighDeadband`.
        pub high_high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighDeadband")],
        /// `HighDeadband`.
        pub high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighDeadband")],
        /// `LowDeadband`.
        pub low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowDeadband")],
        /// `LowLowDeadband`.
        pub low_low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowDeadband")],
        /// `LimitState/CurrentState`.
        pub limit_state_current_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `LimitState/CurrentState/Id`.
        pub limit_state_current_state_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LimitState/LastTransition`.
        pub limit_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `LimitState/LastTransition/Id`.
        pub limit_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LimitState/LastTransition/TransitionTime`.
        pub limit_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `SetpointNode`.
        pub setpoint_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "SetpointNode")],
        /// `BaseSetpointNode`.
        pub base_setpoint_node: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "BaseSetpointNode")],
    }
}

taktwerk::event_type! {
    /// Events of the type `ExclusiveLevelAlarmType`.
    pub struct ExclusiveLevelAlarm is ("http://opcfoundation.org/UA/", "i=9482") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `HighHighLimit`.
        pub high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighLimit")],
        /// `HighLimit`.
        pub high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighLimit")],
        /// `LowLimit`.
        pub low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLimit")],
        /// `LowLowLimit`.
        pub low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowLimit")],
        /// `BaseHighHighLimit`.
        pub base_high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighHighLimit")],
        /// `BaseHighLimit`.
        pub base_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighLimit")],
        /// `BaseLowLimit`.
        pub base_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLimit")],
        /// `BaseLowLowLimit`.
        pub base_low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLowLimit")],
        /// `SeverityHighHigh`.
        pub severity_high_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHighHigh")],
        /// `SeverityHigh`.
        pub severity_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHigh")],
        /// `SeverityLow`.
        pub severity_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLow")],
        /// `SeverityLowLow`.
        pub severity_low_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLowLow")],
        /// `HighHighDeadband`.
        pub high_high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighDeadband")],
        /// `HighDeadband`.
        pub high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighDeadband")],
        /// `LowDeadband`.
        pub low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowDeadband")],
        /// `LowLowDeadband`.
        pub low_low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowDeadband")],
        /// `LimitState/CurrentState`.
        pub limit_state_current_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `LimitState/CurrentState/Id`.
        pub limit_state_current_state_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LimitState/LastTransition`.
        pub limit_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `LimitState/LastTransition/Id`.
        pub limit_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LimitState/LastTransition/TransitionTime`.
        pub limit_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
    }
}

taktwerk::event_type! {
    /// Events of the type `ExclusiveLimitAlarmType`.
    pub struct ExclusiveLimitAlarm is ("http://opcfoundation.org/UA/", "i=9341") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `HighHighLimit`.
        pub high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighLimit")],
        /// `HighLimit`.
        pub high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighLimit")],
        /// `LowLimit`.
        pub low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLimit")],
        /// `LowLowLimit`.
        pub low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowLimit")],
        /// `BaseHighHighLimit`.
        pub base_high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighHighLimit")],
        /// `BaseHighLimit`.
        pub base_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighLimit")],
        /// `BaseLowLimit`.
        pub base_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLimit")],
        /// `BaseLowLowLimit`.
        pub base_low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLowLimit")],
        /// `SeverityHighHigh`.
        pub severity_high_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHighHigh")],
        /// `SeverityHigh`.
        pub severity_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHigh")],
        /// `SeverityLow`.
        pub severity_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLow")],
        /// `SeverityLowLow`.
        pub severity_low_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLowLow")],
        /// `HighHighDeadband`.
        pub high_high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighDeadband")],
        /// `HighDeadband`.
        pub high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighDeadband")],
        /// `LowDeadband`.
        pub low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowDeadband")],
        /// `LowLowDeadband`.
        pub low_low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowDeadband")],
        /// `LimitState/CurrentState`.
        pub limit_state_current_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `LimitState/CurrentState/Id`.
        pub limit_state_current_state_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LimitState/LastTransition`.
        pub limit_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `LimitState/LastTransition/Id`.
        pub limit_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LimitState/LastTransition/TransitionTime`.
        pub limit_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
    }
}

taktwerk::event_type! {
    /// Events of the type `ExclusiveRateOfChangeAlarmType`.
    pub struct ExclusiveRateOfChangeAlarm is ("http://opcfoundation.org/UA/", "i=9623") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `HighHighLimit`.
        pub high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighLimit")],
        /// `HighLimit`.
        pub high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighLimit")],
        /// `LowLimit`.
        pub low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLimit")],
        /// `LowLowLimit`.
        pub low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowLimit")],
        /// `BaseHighHighLimit`.
        pub base_high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighHighLimit")],
        /// `BaseHighLimit`.
        pub base_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighLimit")],
        /// `BaseLowLimit`.
        pub base_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLimit")],
        /// `BaseLowLowLimit`.
        pub base_low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLowLimit")],
        /// `SeverityHighHigh`.
        pub severity_high_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHighHigh")],
        /// `SeverityHigh`.
        pub severity_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHigh")],
        /// `SeverityLow`.
        pub severity_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLow")],
        /// `SeverityLowLow`.
        pub severity_low_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLowLow")],
        /// `HighHighDeadband`.
        pub high_high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighDeadband")],
        /// `HighDeadband`.
        pub high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighDeadband")],
        /// `LowDeadband`.
        pub low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowDeadband")],
        /// `LowLowDeadband`.
        pub low_low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowDeadband")],
        /// `LimitState/CurrentState`.
        pub limit_state_current_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `LimitState/CurrentState/Id`.
        pub limit_state_current_state_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LimitState/LastTransition`.
        pub limit_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `LimitState/LastTransition/Id`.
        pub limit_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LimitState/LastTransition/TransitionTime`.
        pub limit_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LimitState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EngineeringUnits`.
        pub engineering_units: Option<taktwerk::Struct<taktwerk::schema::EUInformation>> = [("http://opcfoundation.org/UA/", "EngineeringUnits")],
    }
}

taktwerk::event_type! {
    /// Events of the type `GeneralModelChangeEventType`.
    pub struct GeneralModelChangeEvent is ("http://opcfoundation.org/UA/", "i=2133") {
        /// `Changes`.
        pub changes: Vec<taktwerk::Struct<taktwerk::schema::ModelChangeStructureDataType>> = [("http://opcfoundation.org/UA/", "Changes")],
    }
}

taktwerk::event_type! {
    /// Events of the type `KeyCredentialAuditEventType`.
    pub struct KeyCredentialAuditEvent is ("http://opcfoundation.org/UA/", "i=18011") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `ResourceUri`.
        pub resource_uri: String = [("http://opcfoundation.org/UA/", "ResourceUri")],
    }
}

taktwerk::event_type! {
    /// Events of the type `KeyCredentialDeletedAuditEventType`.
    pub struct KeyCredentialDeletedAuditEvent is ("http://opcfoundation.org/UA/", "i=18047") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `ResourceUri`.
        pub resource_uri: String = [("http://opcfoundation.org/UA/", "ResourceUri")],
    }
}

taktwerk::event_type! {
    /// Events of the type `KeyCredentialUpdatedAuditEventType`.
    pub struct KeyCredentialUpdatedAuditEvent is ("http://opcfoundation.org/UA/", "i=18029") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `ResourceUri`.
        pub resource_uri: String = [("http://opcfoundation.org/UA/", "ResourceUri")],
    }
}

taktwerk::event_type! {
    /// Events of the type `LimitAlarmType`.
    pub struct LimitAlarm is ("http://opcfoundation.org/UA/", "i=2955") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `HighHighLimit`.
        pub high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighLimit")],
        /// `HighLimit`.
        pub high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighLimit")],
        /// `LowLimit`.
        pub low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLimit")],
        /// `LowLowLimit`.
        pub low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowLimit")],
        /// `BaseHighHighLimit`.
        pub base_high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighHighLimit")],
        /// `BaseHighLimit`.
        pub base_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighLimit")],
        /// `BaseLowLimit`.
        pub base_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLimit")],
        /// `BaseLowLowLimit`.
        pub base_low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLowLimit")],
        /// `SeverityHighHigh`.
        pub severity_high_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHighHigh")],
        /// `SeverityHigh`.
        pub severity_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHigh")],
        /// `SeverityLow`.
        pub severity_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLow")],
        /// `SeverityLowLow`.
        pub severity_low_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLowLow")],
        /// `HighHighDeadband`.
        pub high_high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighDeadband")],
        /// `HighDeadband`.
        pub high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighDeadband")],
        /// `LowDeadband`.
        pub low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowDeadband")],
        /// `LowLowDeadband`.
        pub low_low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowDeadband")],
    }
}

taktwerk::event_type! {
    /// Events of the type `LogOverflowEventType`.
    pub struct LogOverflowEvent is ("http://opcfoundation.org/UA/", "i=19369") {
    }
}

taktwerk::event_type! {
    /// Events of the type `NonExclusiveDeviationAlarmType`.
    pub struct NonExclusiveDeviationAlarm is ("http://opcfoundation.org/UA/", "i=10368") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `HighHighLimit`.
        pub high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighLimit")],
        /// `HighLimit`.
        pub high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighLimit")],
        /// `LowLimit`.
        pub low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLimit")],
        /// `LowLowLimit`.
        pub low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowLimit")],
        /// `BaseHighHighLimit`.
        pub base_high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighHighLimit")],
        /// `BaseHighLimit`.
        pub base_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighLimit")],
        /// `BaseLowLimit`.
        pub base_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLimit")],
        /// `BaseLowLowLimit`.
        pub base_low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLowLimit")],
        /// `SeverityHighHigh`.
        pub severity_high_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHighHigh")],
        /// `SeverityHigh`.
        pub severity_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHigh")],
        /// `SeverityLow`.
        pub severity_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLow")],
        /// `SeverityLowLow`.
        pub severity_low_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLowLow")],
        /// `HighHighDeadband`.
        pub high_high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighDeadband")],
        /// `HighDeadband`.
        pub high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighDeadband")],
        /// `LowDeadband`.
        pub low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowDeadband")],
        /// `LowLowDeadband`.
        pub low_low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowDeadband")],
        /// `HighHighState`.
        pub high_high_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "HighHighState")],
        /// `HighHighState/Id`.
        pub high_high_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "HighHighState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `HighHighState/TransitionTime`.
        pub high_high_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "HighHighState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `HighState`.
        pub high_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "HighState")],
        /// `HighState/Id`.
        pub high_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "HighState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `HighState/TransitionTime`.
        pub high_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "HighState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `LowState`.
        pub low_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LowState")],
        /// `LowState/Id`.
        pub low_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LowState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LowState/TransitionTime`.
        pub low_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LowState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `LowLowState`.
        pub low_low_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LowLowState")],
        /// `LowLowState/Id`.
        pub low_low_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LowLowState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LowLowState/TransitionTime`.
        pub low_low_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LowLowState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `SetpointNode`.
        pub setpoint_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "SetpointNode")],
        /// `BaseSetpointNode`.
        pub base_setpoint_node: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "BaseSetpointNode")],
    }
}

taktwerk::event_type! {
    /// Events of the type `NonExclusiveLevelAlarmType`.
    pub struct NonExclusiveLevelAlarm is ("http://opcfoundation.org/UA/", "i=10060") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `HighHighLimit`.
        pub high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighLimit")],
        /// `HighLimit`.
        pub high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighLimit")],
        /// `LowLimit`.
        pub low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLimit")],
        /// `LowLowLimit`.
        pub low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowLimit")],
        /// `BaseHighHighLimit`.
        pub base_high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighHighLimit")],
        /// `BaseHighLimit`.
        pub base_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighLimit")],
        /// `BaseLowLimit`.
        pub base_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLimit")],
        /// `BaseLowLowLimit`.
        pub base_low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLowLimit")],
        /// `SeverityHighHigh`.
        pub severity_high_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHighHigh")],
        /// `SeverityHigh`.
        pub severity_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHigh")],
        /// `SeverityLow`.
        pub severity_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLow")],
        /// `SeverityLowLow`.
        pub severity_low_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLowLow")],
        /// `HighHighDeadband`.
        pub high_high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighDeadband")],
        /// `HighDeadband`.
        pub high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighDeadband")],
        /// `LowDeadband`.
        pub low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowDeadband")],
        /// `LowLowDeadband`.
        pub low_low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowDeadband")],
        /// `HighHighState`.
        pub high_high_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "HighHighState")],
        /// `HighHighState/Id`.
        pub high_high_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "HighHighState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `HighHighState/TransitionTime`.
        pub high_high_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "HighHighState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `HighState`.
        pub high_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "HighState")],
        /// `HighState/Id`.
        pub high_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "HighState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `HighState/TransitionTime`.
        pub high_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "HighState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `LowState`.
        pub low_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LowState")],
        /// `LowState/Id`.
        pub low_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LowState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LowState/TransitionTime`.
        pub low_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LowState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `LowLowState`.
        pub low_low_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LowLowState")],
        /// `LowLowState/Id`.
        pub low_low_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LowLowState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LowLowState/TransitionTime`.
        pub low_low_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LowLowState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
    }
}

taktwerk::event_type! {
    /// Events of the type `NonExclusiveLimitAlarmType`.
    pub struct NonExclusiveLimitAlarm is ("http://opcfoundation.org/UA/", "i=9906") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `HighHighLimit`.
        pub high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighLimit")],
        /// `HighLimit`.
        pub high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighLimit")],
        /// `LowLimit`.
        pub low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLimit")],
        /// `LowLowLimit`.
        pub low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowLimit")],
        /// `BaseHighHighLimit`.
        pub base_high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighHighLimit")],
        /// `BaseHighLimit`.
        pub base_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighLimit")],
        /// `BaseLowLimit`.
        pub base_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLimit")],
        /// `BaseLowLowLimit`.
        pub base_low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLowLimit")],
        /// `SeverityHighHigh`.
        pub severity_high_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHighHigh")],
        /// `SeverityHigh`.
        pub severity_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHigh")],
        /// `SeverityLow`.
        pub severity_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLow")],
        /// `SeverityLowLow`.
        pub severity_low_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLowLow")],
        /// `HighHighDeadband`.
        pub high_high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighDeadband")],
        /// `HighDeadband`.
        pub high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighDeadband")],
        /// `LowDeadband`.
        pub low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowDeadband")],
        /// `LowLowDeadband`.
        pub low_low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowDeadband")],
        /// `HighHighState`.
        pub high_high_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "HighHighState")],
        /// `HighHighState/Id`.
        pub high_high_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "HighHighState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `HighHighState/TransitionTime`.
        pub high_high_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "HighHighState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `HighState`.
        pub high_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "HighState")],
        /// `HighState/Id`.
        pub high_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "HighState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `HighState/TransitionTime`.
        pub high_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "HighState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `LowState`.
        pub low_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LowState")],
        /// `LowState/Id`.
        pub low_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LowState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LowState/TransitionTime`.
        pub low_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LowState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `LowLowState`.
        pub low_low_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LowLowState")],
        /// `LowLowState/Id`.
        pub low_low_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LowLowState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LowLowState/TransitionTime`.
        pub low_low_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LowLowState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
    }
}

taktwerk::event_type! {
    /// Events of the type `NonExclusiveRateOfChangeAlarmType`.
    pub struct NonExclusiveRateOfChangeAlarm is ("http://opcfoundation.org/UA/", "i=10214") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `HighHighLimit`.
        pub high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighLimit")],
        /// `HighLimit`.
        pub high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "HighLimit")],
        /// `LowLimit`.
        pub low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLimit")],
        /// `LowLowLimit`.
        pub low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowLimit")],
        /// `BaseHighHighLimit`.
        pub base_high_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighHighLimit")],
        /// `BaseHighLimit`.
        pub base_high_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseHighLimit")],
        /// `BaseLowLimit`.
        pub base_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLimit")],
        /// `BaseLowLowLimit`.
        pub base_low_low_limit: Option<f64> = [("http://opcfoundation.org/UA/", "BaseLowLowLimit")],
        /// `SeverityHighHigh`.
        pub severity_high_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHighHigh")],
        /// `SeverityHigh`.
        pub severity_high: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityHigh")],
        /// `SeverityLow`.
        pub severity_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLow")],
        /// `SeverityLowLow`.
        pub severity_low_low: Option<u16> = [("http://opcfoundation.org/UA/", "SeverityLowLow")],
        /// `HighHighDeadband`.
        pub high_high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighHighDeadband")],
        /// `HighDeadband`.
        pub high_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "HighDeadband")],
        /// `LowDeadband`.
        pub low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowDeadband")],
        /// `LowLowDeadband`.
        pub low_low_deadband: Option<f64> = [("http://opcfoundation.org/UA/", "LowLowDeadband")],
        /// `HighHighState`.
        pub high_high_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "HighHighState")],
        /// `HighHighState/Id`.
        pub high_high_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "HighHighState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `HighHighState/TransitionTime`.
        pub high_high_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "HighHighState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `HighState`.
        pub high_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "HighState")],
        /// `HighState/Id`.
        pub high_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "HighState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `HighState/TransitionTime`.
        pub high_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "HighState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `LowState`.
        pub low_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LowState")],
        /// `LowState/Id`.
        pub low_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LowState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LowState/TransitionTime`.
        pub low_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LowState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `LowLowState`.
        pub low_low_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LowLowState")],
        /// `LowLowState/Id`.
        pub low_low_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LowLowState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LowLowState/TransitionTime`.
        pub low_low_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LowLowState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EngineeringUnits`.
        pub engineering_units: Option<taktwerk::Struct<taktwerk::schema::EUInformation>> = [("http://opcfoundation.org/UA/", "EngineeringUnits")],
    }
}

taktwerk::event_type! {
    /// Events of the type `OffNormalAlarmType`.
    pub struct OffNormalAlarm is ("http://opcfoundation.org/UA/", "i=10637") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `EnabledState`.
        pub enabled_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "EnabledState")],
        /// `EnabledState/Id`.
        pub enabled_state_id: bool = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `EnabledState/EffectiveDisplayName`.
        pub enabled_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `EnabledState/TransitionTime`.
        pub enabled_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `EnabledState/EffectiveTransitionTime`.
        pub enabled_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "EnabledState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `Quality`.
        pub quality: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Quality")],
        /// `Quality/SourceTimestamp`.
        pub quality_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Quality"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `LastSeverity`.
        pub last_severity: u16 = [("http://opcfoundation.org/UA/", "LastSeverity")],
        /// `LastSeverity/SourceTimestamp`.
        pub last_severity_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "LastSeverity"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `Comment`.
        pub comment: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Comment")],
        /// `Comment/SourceTimestamp`.
        pub comment_source_timestamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "Comment"), ("http://opcfoundation.org/UA/", "SourceTimestamp")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `AckedState`.
        pub acked_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "AckedState")],
        /// `AckedState/Id`.
        pub acked_state_id: bool = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `AckedState/TransitionTime`.
        pub acked_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "AckedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ConfirmedState`.
        pub confirmed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ConfirmedState")],
        /// `ConfirmedState/Id`.
        pub confirmed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ConfirmedState/TransitionTime`.
        pub confirmed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ConfirmedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState`.
        pub active_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ActiveState")],
        /// `ActiveState/Id`.
        pub active_state_id: bool = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ActiveState/EffectiveDisplayName`.
        pub active_state_effective_display_name: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveDisplayName")],
        /// `ActiveState/TransitionTime`.
        pub active_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ActiveState/EffectiveTransitionTime`.
        pub active_state_effective_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ActiveState"), ("http://opcfoundation.org/UA/", "EffectiveTransitionTime")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/CurrentState`.
        pub shelving_state_current_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState")],
        /// `ShelvingState/CurrentState/Id`.
        pub shelving_state_current_state_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "CurrentState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition`.
        pub shelving_state_last_transition: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition")],
        /// `ShelvingState/LastTransition/Id`.
        pub shelving_state_last_transition_id: Option<taktwerk::NodeId> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ShelvingState/LastTransition/TransitionTime`.
        pub shelving_state_last_transition_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "LastTransition"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `NormalState`.
        pub normal_state: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "NormalState")],
    }
}

taktwerk::event_type! {
    /// Events of the type `ProgramTransitionAuditEventType`.
    pub struct ProgramTransitionAuditEvent is ("http://opcfoundation.org/UA/", "i=3806") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `OldStateId`.
        pub old_state_id: taktwerk::Variant = [("http://opcfoundation.org/UA/", "OldStateId")],
        /// `NewStateId`.
        pub new_state_id: taktwerk::Variant = [("http://opcfoundation.org/UA/", "NewStateId")],
        /// `Transition`.
        pub transition: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Transition")],
        /// `Transition/Id`.
        pub transition_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "Transition"), ("http://opcfoundation.org/UA/", "Id")],
    }
}

taktwerk::event_type! {
    /// Events of the type `ProgramTransitionEventType`.
    pub struct ProgramTransitionEvent is ("http://opcfoundation.org/UA/", "i=2378") {
        /// `Transition`.
        pub transition: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Transition")],
        /// `Transition/Id`.
        pub transition_id: taktwerk::Variant = [("http://opcfoundation.org/UA/", "Transition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `FromState`.
        pub from_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "FromState")],
        /// `FromState/Id`.
        pub from_state_id: taktwerk::Variant = [("http://opcfoundation.org/UA/", "FromState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ToState`.
        pub to_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ToState")],
        /// `ToState/Id`.
        pub to_state_id: taktwerk::Variant = [("http://opcfoundation.org/UA/", "ToState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `IntermediateResult`.
        pub intermediate_result: taktwerk::Variant = [("http://opcfoundation.org/UA/", "IntermediateResult")],
    }
}

taktwerk::event_type! {
    /// Events of the type `ProgressEventType`.
    pub struct ProgressEvent is ("http://opcfoundation.org/UA/", "i=11436") {
        /// `Context`.
        pub context: taktwerk::Variant = [("http://opcfoundation.org/UA/", "Context")],
        /// `Progress`.
        pub progress: u16 = [("http://opcfoundation.org/UA/", "Progress")],
    }
}

taktwerk::event_type! {
    /// Events of the type `PubSubCommunicationFailureEventType`.
    pub struct PubSubCommunicationFailureEvent is ("http://opcfoundation.org/UA/", "i=15563") {
        /// `ConnectionId`.
        pub connection_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConnectionId")],
        /// `GroupId`.
        pub group_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "GroupId")],
        /// `State`.
        pub state: i32 = [("http://opcfoundation.org/UA/", "State")],
        /// `Error`.
        pub error: taktwerk::StatusCode = [("http://opcfoundation.org/UA/", "Error")],
    }
}

taktwerk::event_type! {
    /// Events of the type `PubSubStatusEventType`.
    pub struct PubSubStatusEvent is ("http://opcfoundation.org/UA/", "i=15535") {
        /// `ConnectionId`.
        pub connection_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConnectionId")],
        /// `GroupId`.
        pub group_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "GroupId")],
        /// `State`.
        pub state: i32 = [("http://opcfoundation.org/UA/", "State")],
    }
}

taktwerk::event_type! {
    /// Events of the type `PubSubTransportLimitsExceedEventType`.
    pub struct PubSubTransportLimitsExceedEvent is ("http://opcfoundation.org/UA/", "i=15548") {
        /// `ConnectionId`.
        pub connection_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConnectionId")],
        /// `GroupId`.
        pub group_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "GroupId")],
        /// `State`.
        pub state: i32 = [("http://opcfoundation.org/UA/", "State")],
        /// `Actual`.
        pub actual: u32 = [("http://opcfoundation.org/UA/", "Actual")],
        /// `Maximum`.
        pub maximum: u32 = [("http://opcfoundation.org/UA/", "Maximum")],
    }
}

taktwerk::event_type! {
    /// Events of the type `RefreshEndEventType`.
    pub struct RefreshEndEvent is ("http://opcfoundation.org/UA/", "i=2788") {
    }
}

taktwerk::event_type! {
    /// Events of the type `RefreshRequiredEventType`.
    pub struct RefreshRequiredEvent is ("http://opcfoundation.org/UA/", "i=2789") {
    }
}

taktwerk::event_type! {
    /// Events of the type `RefreshStartEventType`.
    pub struct RefreshStartEvent is ("http://opcfoundation.org/UA/", "i=2787") {
    }
}

taktwerk::event_type! {
    /// Events of the type `RoleMappingRuleChangedAuditEventType`.
    pub struct RoleMappingRuleChangedAuditEvent is ("http://opcfoundation.org/UA/", "i=17641") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
    }
}

taktwerk::event_type! {
    /// Events of the type `SemanticChangeEventType`.
    pub struct SemanticChangeEvent is ("http://opcfoundation.org/UA/", "i=2738") {
        /// `Changes`.
        pub changes: Vec<taktwerk::Struct<taktwerk::schema::SemanticChangeStructureDataType>> = [("http://opcfoundation.org/UA/", "Changes")],
    }
}

taktwerk::event_type! {
    /// Events of the type `SystemEventType`.
    pub struct SystemEvent is ("http://opcfoundation.org/UA/", "i=2130") {
    }
}

taktwerk::event_type! {
    /// Events of the type `SystemStatusChangeEventType`.
    pub struct SystemStatusChangeEvent is ("http://opcfoundation.org/UA/", "i=11446") {
        /// `SystemState`.
        pub system_state: i32 = [("http://opcfoundation.org/UA/", "SystemState")],
    }
}

taktwerk::event_type! {
    /// Events of the type `TransitionEventType`.
    pub struct TransitionEvent is ("http://opcfoundation.org/UA/", "i=2311") {
        /// `Transition`.
        pub transition: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "Transition")],
        /// `Transition/Id`.
        pub transition_id: taktwerk::Variant = [("http://opcfoundation.org/UA/", "Transition"), ("http://opcfoundation.org/UA/", "Id")],
        /// `FromState`.
        pub from_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "FromState")],
        /// `FromState/Id`.
        pub from_state_id: taktwerk::Variant = [("http://opcfoundation.org/UA/", "FromState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `ToState`.
        pub to_state: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ToState")],
        /// `ToState/Id`.
        pub to_state_id: taktwerk::Variant = [("http://opcfoundation.org/UA/", "ToState"), ("http://opcfoundation.org/UA/", "Id")],
    }
}

taktwerk::event_type! {
    /// Events of the type `TrustListUpdateRequestedAuditEventType`.
    pub struct TrustListUpdateRequestedAuditEvent is ("http://opcfoundation.org/UA/", "i=32260") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
    }
}

taktwerk::event_type! {
    /// Events of the type `TrustListUpdatedAuditEventType`.
    pub struct TrustListUpdatedAuditEvent is ("http://opcfoundation.org/UA/", "i=12561") {
        /// `ActionTimeStamp`.
        pub action_time_stamp: taktwerk::UtcTime = [("http://opcfoundation.org/UA/", "ActionTimeStamp")],
        /// `Status`.
        pub status: bool = [("http://opcfoundation.org/UA/", "Status")],
        /// `ServerId`.
        pub server_id: String = [("http://opcfoundation.org/UA/", "ServerId")],
        /// `ClientAuditEntryId`.
        pub client_audit_entry_id: String = [("http://opcfoundation.org/UA/", "ClientAuditEntryId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ClientApplicationUri`.
        pub client_application_uri: Option<String> = [("http://opcfoundation.org/UA/", "ClientApplicationUri")],
        /// `MethodId`.
        pub method_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "MethodId")],
        /// `StatusCodeId`.
        pub status_code_id: Option<taktwerk::StatusCode> = [("http://opcfoundation.org/UA/", "StatusCodeId")],
        /// `InputArguments`.
        pub input_arguments: Vec<taktwerk::Variant> = [("http://opcfoundation.org/UA/", "InputArguments")],
        /// `OutputArguments`.
        pub output_arguments: Option<Vec<taktwerk::Variant>> = [("http://opcfoundation.org/UA/", "OutputArguments")],
        /// `TrustListId`.
        pub trust_list_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "TrustListId")],
    }
}
