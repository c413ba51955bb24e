//! The state of a condition: what its Variables and its events show.

use super::dialog::Dialog;
use super::limits::LimitSet;
use super::machine::Rules;
use super::shelving::Shelving;
use crate::event::FieldName;
use std::sync::Arc;
use taktwerk_types::{LocalizedText, StatusCode, UtcTime, Variant};

/// When each part of a state changed last (TransitionTime, SourceTimestamp).
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
    /// The limits that are exceeded.
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
    /// The limits that are exceeded (§5.8.18).
    pub limits: LimitSet,
    /// AckedState (§5.7.2).
    pub acked: bool,
    /// ConfirmedState (§5.7.2).
    pub confirmed: bool,
    /// SuppressedState (§5.8.2).
    pub suppressed: bool,
    /// FirstInGroupFlag (§5.8.2); `None`: it is in no group that says which alarm was first.
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
    /// Who made it (ClientUserId).
    pub user: Box<str>,
    /// ReAlarmRepeatCount (§5.8.2).
    pub re_alarms: i16,
    /// What happened last, for people (Message).
    pub message: Box<str>,
    /// When the last event happened (Time).
    pub time: UtcTime,
    /// What is asked, if it is a dialog (§5.6.2).
    pub dialog: Option<Box<Dialog>>,
    /// Fields of an application's own type, if it has set some.
    pub own: Option<Arc<OwnFields>>,
    /// When its parts changed.
    pub times: Times,
}

/// Fields of an application's own type with their values.
pub type OwnFields = Vec<(FieldName, Variant)>;

impl State {
    /// Enabled, inactive, with nothing to acknowledge.
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

    /// Retain (§5.5.2): whether there is something that operators should see.
    #[must_use]
    pub fn retain(&self) -> bool {
        let asks = self.dialog.as_ref().is_some_and(|dialog| dialog.is_active);
        self.enabled && (self.active || !self.acked || !self.confirmed || self.latched || asks)
    }

    /// AudibleEnabled (§5.8.2) of an alarm that can be heard: as long as it is active and unacknowledged, unless somebody has
    /// silenced it or it is suppressed or shelved. What nobody has to acknowledge can be heard as long as it is active.
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
