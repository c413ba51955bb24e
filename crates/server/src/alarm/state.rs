//! The state of a condition: the source of its Variables and events.

use super::dialog::Dialog;
use super::limits::LimitSet;
use super::machine::Rules;
use super::shelving::Shelving;
use crate::event::FieldName;
use std::sync::Arc;
use taktwerk_types::{LocalizedText, StatusCode, UtcTime, Variant};

/// When each part of a state last changed (TransitionTime, SourceTimestamp).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Times {
    /// EnabledState.
    pub enabled: UtcTime,
    /// ActiveState.
    pub active: UtcTime,
    /// AckedState.
    pub acked: UtcTime,
    /// ConfirmedState.
    pub confirmed: UtcTime,
    /// SuppressedState.
    pub suppressed: UtcTime,
    /// OutOfServiceState.
    pub out_of_service: UtcTime,
    /// SilenceState.
    pub silenced: UtcTime,
    /// LatchedState.
    pub latched: UtcTime,
    /// The exceeded limits.
    pub limits: UtcTime,
    /// Quality.
    pub quality: UtcTime,
    /// LastSeverity.
    pub severity: UtcTime,
    /// Comment.
    pub comment: UtcTime,
}

/// The state of a condition, or of one of its branches.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// EnabledState (§5.5.2).
    pub enabled: bool,
    /// ActiveState (§5.8.2).
    pub active: bool,
    /// The exceeded limits (§5.8.18).
    pub limits: LimitSet,
    /// AckedState (§5.7.2).
    pub acked: bool,
    /// ConfirmedState (§5.7.2).
    pub confirmed: bool,
    /// SuppressedState (§5.8.2).
    pub suppressed: bool,
    /// FirstInGroupFlag (§5.8.2); `None` if it is in no FirstInGroup group.
    pub first_in_group: Option<bool>,
    /// OutOfServiceState (§5.8.2).
    pub out_of_service: bool,
    /// SilenceState (§5.8.2).
    pub silenced: bool,
    /// LatchedState (§5.8.2).
    pub latched: bool,
    /// ShelvingState (§5.8.17).
    pub shelving: Shelving,
    /// Severity.
    pub severity: u16,
    /// LastSeverity (§5.5.2).
    pub last_severity: u16,
    /// Quality of the input (§5.5.2).
    pub quality: StatusCode,
    /// The last comment (§5.5.2).
    pub comment: LocalizedText,
    /// The author of the comment (ClientUserId).
    pub user: Box<str>,
    /// ReAlarmRepeatCount (§5.8.2).
    pub re_alarms: i16,
    /// The last message for operators (Message).
    pub message: Box<str>,
    /// The time of the last event (Time).
    pub time: UtcTime,
    /// The question, if it is a dialog (§5.6.2).
    pub dialog: Option<Box<Dialog>>,
    /// Fields of an application's own type, if it has set any.
    pub own: Option<Arc<OwnFields>>,
    /// When its parts changed.
    pub times: Times,
}

/// Fields of an application's own type with their values.
pub type OwnFields = Vec<(FieldName, Variant)>;

impl State {
    /// Enabled, inactive, nothing to acknowledge.
    #[must_use]
    pub fn new(severity: u16, now: UtcTime) -> Self {
        Self {
            enabled: true,
            active: false,
            limits: LimitSet::NONE,
            acked: true,
            confirmed: true,
            suppressed: false,
            first_in_group: None,
            out_of_service: false,
            silenced: false,
            latched: false,
            shelving: Shelving::Unshelved,
            severity,
            last_severity: severity,
            quality: StatusCode::GOOD,
            comment: LocalizedText::default(),
            user: Box::default(),
            re_alarms: 0,
            message: Box::default(),
            time: now,
            dialog: None,
            own: None,
            times: Times { enabled: now, ..Times::default() },
        }
    }

    /// Retain (§5.5.2): whether operators still have to see the condition.
    #[must_use]
    pub fn retain(&self) -> bool {
        let asks = self.dialog.as_ref().is_some_and(|dialog| dialog.is_active);
        self.enabled && (self.active || !self.acked || !self.confirmed || self.latched || asks)
    }

    /// When the condition became active or inactive; a dialog: when it was asked or answered. Comments and
    /// acknowledgements do not change it. Without such a state, the time of the last event.
    #[must_use]
    pub fn since(&self) -> UtcTime {
        let changed = self.dialog.as_ref().map_or(self.times.active, |dialog| dialog.changed);
        if changed.is_null() { self.time } else { changed }
    }

    /// AudibleEnabled (§5.8.2) of an audible alarm: true while it is active and unacknowledged, unless it is silenced,
    /// suppressed or shelved. Alarms without acknowledgement are audible as long as they are active.
    #[must_use]
    pub fn is_audible(&self, rules: &Rules) -> bool {
        let is_new = !self.acked || !rules.acknowledges;
        self.enabled && self.active && is_new && !self.silenced && !self.suppressed_or_shelved()
    }

    /// SuppressedOrShelved (§5.8.2).
    #[must_use]
    pub fn suppressed_or_shelved(&self) -> bool {
        self.suppressed || self.out_of_service || self.shelving.is_shelved()
    }
}
