taktwerk::event_type! {
    /// Events of the type `PumpAlarmType`.
    pub struct PumpAlarm is ("urn:example:pumps", "i=1003") {
        /// The condition that the event reports.
        pub condition_id: taktwerk::NodeId = [],
        /// `Retain`.
        pub retain: bool = [("http://opcfoundation.org/UA/", "Retain")],
        /// `ConditionName`.
        pub condition_name: String = [("http://opcfoundation.org/UA/", "ConditionName")],
        /// `BranchId`.
        pub branch_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "BranchId")],
        /// `ClientUserId`.
        pub client_user_id: String = [("http://opcfoundation.org/UA/", "ClientUserId")],
        /// `ConditionClassId`.
        pub condition_class_id: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "ConditionClassId")],
        /// `ConditionClassName`.
        pub condition_class_name: taktwerk::LocalizedText = [("http://opcfoundation.org/UA/", "ConditionClassName")],
        /// `ConditionSubClassId`.
        pub condition_sub_class_id: Option<Vec<taktwerk::NodeId>> = [("http://opcfoundation.org/UA/", "ConditionSubClassId")],
        /// `ConditionSubClassName`.
        pub condition_sub_class_name: Option<Vec<taktwerk::LocalizedText>> = [("http://opcfoundation.org/UA/", "ConditionSubClassName")],
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
        /// `SuppressedOrShelved`.
        pub suppressed_or_shelved: bool = [("http://opcfoundation.org/UA/", "SuppressedOrShelved")],
        /// `MaxTimeShelved`.
        pub max_time_shelved: Option<f64> = [("http://opcfoundation.org/UA/", "MaxTimeShelved")],
        /// `InputNode`.
        pub input_node: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "InputNode")],
        /// `AudibleEnabled`.
        pub audible_enabled: Option<bool> = [("http://opcfoundation.org/UA/", "AudibleEnabled")],
        /// `OnDelay`.
        pub on_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OnDelay")],
        /// `OffDelay`.
        pub off_delay: Option<f64> = [("http://opcfoundation.org/UA/", "OffDelay")],
        /// `ReAlarmTime`.
        pub re_alarm_time: Option<f64> = [("http://opcfoundation.org/UA/", "ReAlarmTime")],
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
        /// `SuppressedState`.
        pub suppressed_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SuppressedState")],
        /// `SuppressedState/Id`.
        pub suppressed_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SuppressedState/TransitionTime`.
        pub suppressed_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SuppressedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `ShelvingState/UnshelveTime`.
        pub shelving_state_unshelve_time: Option<f64> = [("http://opcfoundation.org/UA/", "ShelvingState"), ("http://opcfoundation.org/UA/", "UnshelveTime")],
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
        /// `OutOfServiceState`.
        pub out_of_service_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "OutOfServiceState")],
        /// `OutOfServiceState/Id`.
        pub out_of_service_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `OutOfServiceState/TransitionTime`.
        pub out_of_service_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "OutOfServiceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `SilenceState`.
        pub silence_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "SilenceState")],
        /// `SilenceState/Id`.
        pub silence_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `SilenceState/TransitionTime`.
        pub silence_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "SilenceState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `AudibleSound`.
        pub audible_sound: Option<taktwerk::types::ByteString> = [("http://opcfoundation.org/UA/", "AudibleSound")],
        /// `FirstInGroupFlag`.
        pub first_in_group_flag: Option<bool> = [("http://opcfoundation.org/UA/", "FirstInGroupFlag")],
        /// `ReAlarmRepeatCount`.
        pub re_alarm_repeat_count: Option<i16> = [("http://opcfoundation.org/UA/", "ReAlarmRepeatCount")],
        /// `LatchedState`.
        pub latched_state: Option<taktwerk::LocalizedText> = [("http://opcfoundation.org/UA/", "LatchedState")],
        /// `LatchedState/Id`.
        pub latched_state_id: Option<bool> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "Id")],
        /// `LatchedState/TransitionTime`.
        pub latched_state_transition_time: Option<taktwerk::UtcTime> = [("http://opcfoundation.org/UA/", "LatchedState"), ("http://opcfoundation.org/UA/", "TransitionTime")],
        /// `NormalState`.
        pub normal_state: taktwerk::NodeId = [("http://opcfoundation.org/UA/", "NormalState")],
        /// `Cause`.
        pub cause: String = [("urn:example:pumps", "Cause")],
        /// `Operator`.
        pub operator: Option<String> = [("urn:example:pumps", "Operator")],
    }
}

taktwerk::event_type! {
    /// Events of the type `PumpStoppedEventType`.
    ///
    /// A pump has stopped.
    pub struct PumpStoppedEvent is ("urn:example:pumps", "i=1001") {
        /// Why it has stopped \[for operators\].
        pub reason: String = [("urn:example:pumps", "Reason")],
        /// `Pressure`.
        pub pressure: Option<f64> = [("urn:example:pumps", "Pressure")],
        /// `Pressure/EURange`.
        pub pressure_eu_range: Option<taktwerk::Struct<taktwerk::schema::Range>> = [("urn:example:pumps", "Pressure"), ("http://opcfoundation.org/UA/", "EURange")],
        /// `Speeds`.
        pub speeds: Vec<f64> = [("urn:example:pumps", "Speeds")],
    }
}

taktwerk::event_type! {
    /// Events of the type `PumpWornEventType`.
    pub struct PumpWornEvent is ("urn:example:pumps", "i=1002") {
        /// Why it has stopped \[for operators\].
        pub reason: String = [("urn:example:pumps", "Reason")],
        /// `Pressure`.
        pub pressure: Option<f64> = [("urn:example:pumps", "Pressure")],
        /// `Pressure/EURange`.
        pub pressure_eu_range: Option<taktwerk::Struct<taktwerk::schema::Range>> = [("urn:example:pumps", "Pressure"), ("http://opcfoundation.org/UA/", "EURange")],
        /// `Speeds`.
        pub speeds: Vec<f64> = [("urn:example:pumps", "Speeds")],
        /// `Type`.
        pub r#type: f64 = [("urn:example:pumps", "Type")],
    }
}

