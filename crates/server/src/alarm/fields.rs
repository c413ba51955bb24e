//! The fields of a condition, by their paths from the type: used for its events and its Variables.

use super::condition::ConditionSpec;
use super::detector::{Kind, Quantity};
use super::limits::{LimitSet, Limits};
use super::machine::Rules;
use super::shelving::Shelving;
use super::state::State;
use crate::event::FieldName;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use taktwerk_schema::ids::{object_ids as o, object_type_ids};
use taktwerk_schema::ns0::Ns0;
use taktwerk_types::{LocalizedText, NodeId, UtcTime, Variant};

/// A path and its value.
pub(crate) type Field = (&'static str, Variant);

/// The name of a field. Names are interned: their number is limited by the types.
pub(crate) fn name_of(path: &'static str) -> FieldName {
    static NAMES: OnceLock<Mutex<BTreeMap<&'static str, FieldName>>> = OnceLock::new();
    let mut names = NAMES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    names.entry(path).or_insert_with(|| FieldName::from(path)).clone()
}

/// Collects fields.
struct Fields {
    all: Vec<Field>,
    now: UtcTime,
}

impl Fields {
    fn add(&mut self, path: &'static str, value: impl Into<Variant>) {
        self.all.push((path, value.into()));
    }

    /// A TwoStateVariable (§5.2): its text, its Id and when it changed.
    fn two_states(&mut self, paths: [&'static str; 3], value: bool, texts: [&str; 2], changed: UtcTime) {
        let [text, id, time] = paths;
        let [no, yes] = texts;
        self.add(text, LocalizedText::new("en", if value { yes } else { no }));
        self.add(id, value);
        if !changed.is_null() {
            self.add(time, changed);
        }
    }
}

macro_rules! two_states {
    ($fields:ident, $name:literal, $value:expr, $texts:expr, $changed:expr) => {
        $fields.two_states(
            [$name, concat!($name, "/Id"), concat!($name, "/TransitionTime")],
            $value,
            $texts,
            $changed,
        )
    };
}

/// All fields except those of BaseEventType.
pub(crate) fn fields(
    spec: &ConditionSpec,
    rules: &Rules,
    state: &State,
    branch: Option<u32>,
    input: &Variant,
    now: UtcTime,
) -> Vec<Field> {
    let mut fields = Fields { all: Vec::with_capacity(56), now };
    condition(&mut fields, spec, rules, state, branch);
    if let Some(dialog) = &state.dialog {
        two_states!(fields, "DialogState", dialog.is_active, ["Inactive", "Active"], dialog.changed);
        fields.add("Prompt", dialog.prompt.clone());
        fields.add("ResponseOptionSet", dialog.responses.clone());
        fields.add("DefaultResponse", dialog.default_response);
        fields.add("OkResponse", dialog.ok_response);
        fields.add("CancelResponse", dialog.cancel_response);
        fields.add("LastResponse", dialog.last_response);
        return fields.all;
    }
    if rules.acknowledges || rules.is_alarm {
        acknowledgeable(&mut fields, rules, state);
    }
    if !rules.is_alarm {
        return fields.all;
    }
    alarm(&mut fields, spec, rules, state);
    kind(&mut fields, spec, state, input);
    fields.all
}

/// §5.5.2.
fn condition(fields: &mut Fields, spec: &ConditionSpec, rules: &Rules, state: &State, branch: Option<u32>) {
    let times = &state.times;
    let class = Ns0::get().node(spec.class).map_or("", |node| node.browse_name());
    fields.add("ConditionClassId", NodeId::numeric(0, spec.class));
    fields.add("ConditionClassName", LocalizedText::new("en", class));
    fields.add("ConditionName", &*spec.name);
    fields.add("BranchId", branch.map_or(NodeId::NULL, |number| branch_id(&spec.id, number)));
    fields.add("Retain", state.retain());
    two_states!(fields, "EnabledState", state.enabled, ["Disabled", "Enabled"], times.enabled);
    fields.add("EnabledState/EffectiveDisplayName", LocalizedText::new("en", effective(rules, state)));
    let known = |time: UtcTime| if time.is_null() { state.time } else { time };
    fields.add("Quality", state.quality);
    fields.add("Quality/SourceTimestamp", known(times.quality));
    fields.add("LastSeverity", state.last_severity);
    fields.add("LastSeverity/SourceTimestamp", known(times.severity));
    fields.add("Comment", state.comment.clone());
    fields.add("Comment/SourceTimestamp", known(times.comment));
    fields.add("ClientUserId", &*state.user);
}

/// §5.7.2.
fn acknowledgeable(fields: &mut Fields, rules: &Rules, state: &State) {
    let times = &state.times;
    two_states!(fields, "AckedState", state.acked, ["Unacknowledged", "Acknowledged"], times.acked);
    if rules.confirms {
        let texts = ["Unconfirmed", "Confirmed"];
        two_states!(fields, "ConfirmedState", state.confirmed, texts, times.confirmed);
    }
}

/// §5.8.2.
fn alarm(fields: &mut Fields, spec: &ConditionSpec, rules: &Rules, state: &State) {
    let times = &state.times;
    two_states!(fields, "ActiveState", state.active, ["Inactive", "Active"], times.active);
    fields.add("ActiveState/EffectiveDisplayName", LocalizedText::new("en", effective(rules, state)));
    fields.add("InputNode", spec.input.clone().unwrap_or(NodeId::NULL));
    let texts = ["Unsuppressed", "Suppressed"];
    two_states!(fields, "SuppressedState", state.suppressed, texts, times.suppressed);
    let texts = ["In Service", "Out of Service"];
    two_states!(fields, "OutOfServiceState", state.out_of_service, texts, times.out_of_service);
    let texts = ["Not Silenced", "Silenced"];
    two_states!(fields, "SilenceState", state.silenced, texts, times.silenced);
    fields.add("ShelvingState/CurrentState", LocalizedText::new("en", state.shelving.name()));
    fields.add(
        "ShelvingState/CurrentState/Id",
        NodeId::numeric(
            0,
            match state.shelving {
                Shelving::Unshelved => o::SHELVED_STATE_MACHINE_TYPE_UNSHELVED,
                Shelving::TimedShelved { .. } => o::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVED,
                Shelving::OneShotShelved { .. } => o::SHELVED_STATE_MACHINE_TYPE_ONE_SHOT_SHELVED,
            },
        ),
    );
    fields.add("ShelvingState/UnshelveTime", state.shelving.unshelve_time(fields.now));
    fields.add("SuppressedOrShelved", state.suppressed_or_shelved());
    if let Some(is_first) = state.first_in_group {
        fields.add("FirstInGroupFlag", is_first);
    }
    if let Some(max) = rules.shelving_time_max {
        fields.add("MaxTimeShelved", max);
    }
    if rules.audible {
        fields.add("AudibleEnabled", state.is_audible(rules));
    }
    if rules.on_delay > 0.0 {
        fields.add("OnDelay", rules.on_delay);
    }
    if rules.off_delay > 0.0 {
        fields.add("OffDelay", rules.off_delay);
    }
    if rules.re_alarm_time > 0.0 {
        fields.add("ReAlarmTime", rules.re_alarm_time);
        fields.add("ReAlarmRepeatCount", state.re_alarms);
    }
    if rules.latches {
        two_states!(fields, "LatchedState", state.latched, ["Not Latched", "Latched"], times.latched);
    }
}

/// The fields that the alarm types add (§5.8.18 to §5.8.25).
fn kind(fields: &mut Fields, spec: &ConditionSpec, state: &State, input: &Variant) {
    let target = || spec.target.clone().unwrap_or(NodeId::NULL);
    match &spec.kind {
        Kind::Limit { quantity, limits, is_exclusive } => {
            limit_properties(fields, limits);
            if *is_exclusive {
                exclusive(fields, state.limits.outermost());
            } else {
                non_exclusive(fields, limits, state);
            }
            if *quantity == Quantity::Deviation {
                fields.add("SetpointNode", target());
            }
        }
        Kind::OffNormal { .. } => fields.add("NormalState", target()),
        Kind::Discrepancy { tolerance, expected_time } => {
            fields.add("TargetValueNode", target());
            fields.add("ExpectedTime", *expected_time);
            fields.add("Tolerance", *tolerance);
        }
        Kind::Expiration { limit } => {
            fields.add("ExpirationDate", input.clone());
            fields.add("ExpirationLimit", *limit);
            let any = || NodeId::numeric(0, object_type_ids::APPLICATION_CERTIFICATE_TYPE);
            let certified = spec.certified.as_ref();
            fields.add("CertificateType", certified.map_or_else(any, |certified| certified.kind.clone()));
            let certificate = certified.map(|certified| certified.certificate.clone());
            fields.add("Certificate", certificate.unwrap_or_default());
            fields.add("NormalState", NodeId::NULL);
        }
        Kind::OutOfDate { frequency, trust_list } => {
            fields.add("TrustListId", trust_list.clone());
            fields.add("LastUpdateTime", input.clone());
            fields.add("UpdateFrequency", *frequency);
            fields.add("NormalState", NodeId::NULL);
        }
        Kind::Set | Kind::Acknowledgeable | Kind::Condition => {}
    }
}

fn limit_properties(fields: &mut Fields, limits: &Limits) {
    for (path, value) in [
        ("HighHighLimit", limits.high_high),
        ("HighLimit", limits.high),
        ("LowLimit", limits.low),
        ("LowLowLimit", limits.low_low),
    ] {
        if let Some(value) = value {
            fields.add(path, value);
        }
    }
    if limits.deadband > 0.0 {
        for (path, value) in [
            ("HighHighDeadband", limits.high_high),
            ("HighDeadband", limits.high),
            ("LowDeadband", limits.low),
            ("LowLowDeadband", limits.low_low),
        ] {
            if value.is_some() {
                fields.add(path, limits.deadband);
            }
        }
    }
}

/// The ExclusiveLimitStateMachine (§5.8.19.2). Within all limits it has no current state.
fn exclusive(fields: &mut Fields, limit: Option<LimitSet>) {
    let Some(limit) = limit else {
        fields.add("LimitState/CurrentState", LocalizedText::default());
        fields.add("LimitState/CurrentState/Id", NodeId::NULL);
        return;
    };
    let id = match limit {
        LimitSet::HIGH_HIGH => o::EXCLUSIVE_LIMIT_STATE_MACHINE_TYPE_HIGH_HIGH,
        LimitSet::HIGH => o::EXCLUSIVE_LIMIT_STATE_MACHINE_TYPE_HIGH,
        LimitSet::LOW => o::EXCLUSIVE_LIMIT_STATE_MACHINE_TYPE_LOW,
        _ => o::EXCLUSIVE_LIMIT_STATE_MACHINE_TYPE_LOW_LOW,
    };
    fields.add("LimitState/CurrentState", LocalizedText::new("en", limit.name()));
    fields.add("LimitState/CurrentState/Id", NodeId::numeric(0, id));
}

/// The states of a NonExclusiveLimitAlarm (§5.8.20), for the limits that it has.
fn non_exclusive(fields: &mut Fields, limits: &Limits, state: &State) {
    let changed = state.times.limits;
    let on = |limit| state.limits.contains(limit);
    if limits.high_high.is_some() {
        let texts = ["HighHigh inactive", "HighHigh active"];
        two_states!(fields, "HighHighState", on(LimitSet::HIGH_HIGH), texts, changed);
    }
    if limits.high.is_some() {
        let texts = ["High inactive", "High active"];
        two_states!(fields, "HighState", on(LimitSet::HIGH), texts, changed);
    }
    if limits.low.is_some() {
        two_states!(fields, "LowState", on(LimitSet::LOW), ["Low inactive", "Low active"], changed);
    }
    if limits.low_low.is_some() {
        let texts = ["LowLow inactive", "LowLow active"];
        two_states!(fields, "LowLowState", on(LimitSet::LOW_LOW), texts, changed);
    }
}

/// A readable name of the state (EffectiveDisplayName, §5.2).
fn effective(rules: &Rules, state: &State) -> String {
    if !state.enabled {
        return "Disabled".to_owned();
    }
    let active = match (state.active, state.limits.outermost()) {
        _ if !rules.is_alarm => "Enabled".to_owned(),
        (true, Some(limit)) => format!("Active/{}", limit.name()),
        (true, None) => "Active".to_owned(),
        (false, _) => "Inactive".to_owned(),
    };
    match (state.acked, state.confirmed) {
        (false, _) => format!("{active}/Unacknowledged"),
        (true, false) => format!("{active}/Unconfirmed"),
        (true, true) => active,
    }
}

/// The BranchId of a branch: the condition's id and the branch number.
pub(crate) fn branch_id(condition: &NodeId, number: u32) -> NodeId {
    NodeId::string(condition.namespace_index, format!("{condition}#{number}"))
}

/// The optional members that the instance has in the address space.
pub(crate) fn optional_members(spec: &ConditionSpec) -> Vec<&'static str> {
    if spec.is_dialog() {
        return vec!["DialogState/TransitionTime"];
    }
    let rules = &spec.rules;
    let mut optional = vec!["EnabledState/TransitionTime", "EnabledState/EffectiveDisplayName"];
    if rules.acknowledges || rules.is_alarm {
        optional.push("AckedState/TransitionTime");
    }
    if rules.confirms {
        optional.extend(["ConfirmedState", "ConfirmedState/TransitionTime", "Confirm"]);
    }
    if !rules.is_alarm {
        return optional;
    }
    optional.extend([
        "ActiveState/TransitionTime",
        "ActiveState/EffectiveDisplayName",
        "SuppressedState",
        "OutOfServiceState",
        "SilenceState",
        "ShelvingState",
        "Silence",
        "Suppress",
        "Unsuppress",
        "RemoveFromService",
        "PlaceInService",
    ]);
    let mut add = |wanted: bool, members: &[&'static str]| {
        if wanted {
            optional.extend_from_slice(members);
        }
    };
    add(rules.latches, &["LatchedState", "Reset"]);
    add(rules.shelving_time_max.is_some(), &["MaxTimeShelved"]);
    add(rules.audible, &["AudibleEnabled"]);
    add(spec.sound.is_some(), &["AudibleSound"]);
    add(rules.on_delay > 0.0, &["OnDelay"]);
    add(rules.off_delay > 0.0, &["OffDelay"]);
    add(rules.re_alarm_time > 0.0, &["ReAlarmTime", "ReAlarmRepeatCount"]);
    match &spec.kind {
        Kind::Limit { limits, is_exclusive, .. } => {
            let shown = |limit: Option<f64>| limit.is_some();
            let bands = limits.deadband > 0.0;
            add(shown(limits.high_high), &["HighHighLimit"]);
            add(shown(limits.high), &["HighLimit"]);
            add(shown(limits.low), &["LowLimit"]);
            add(shown(limits.low_low), &["LowLowLimit"]);
            add(bands && shown(limits.high_high), &["HighHighDeadband"]);
            add(bands && shown(limits.high), &["HighDeadband"]);
            add(bands && shown(limits.low), &["LowDeadband"]);
            add(bands && shown(limits.low_low), &["LowLowDeadband"]);
            add(!is_exclusive && shown(limits.high_high), &["HighHighState"]);
            add(!is_exclusive && shown(limits.high), &["HighState"]);
            add(!is_exclusive && shown(limits.low), &["LowState"]);
            add(!is_exclusive && shown(limits.low_low), &["LowLowState"]);
        }
        Kind::Discrepancy { .. } => add(true, &["Tolerance"]),
        Kind::Expiration { .. } => add(true, &["ExpirationLimit"]),
        Kind::OffNormal { .. }
        | Kind::OutOfDate { .. }
        | Kind::Set
        | Kind::Acknowledgeable
        | Kind::Condition => {}
    }
    optional
}
