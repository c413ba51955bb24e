//! The state machine of a condition. Findings and operations go in; changes to report come out. No clock, no I/O.
//!
//! Each transition cites its clause of Part 9. Times are arguments; [`Machine::deadline`] returns when the next one is
//! due.

mod redefining;

use super::limits::LimitSet;
use super::operation::{Method, Operation};
use super::shelving::later;
use super::state::State;
use smallvec::SmallVec;
use std::collections::VecDeque;
use taktwerk_types::{ByteString, StatusCode, UtcTime};

/// Maximum number of remembered EventIds of one state. Operators may refer to any of them.
pub const EVENT_IDS_MAX: usize = 16;
/// Maximum number of branches of a condition. Beyond it, the oldest branch is dropped.
pub const BRANCHES_MAX: usize = 8;

/// The behaviour of a condition. Durations are in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Whether a new state has to be acknowledged (AckedState).
    pub acknowledges: bool,
    /// Whether an acknowledged state has to be confirmed (ConfirmedState).
    pub confirms: bool,
    /// OnDelay: how long the input must be abnormal until the alarm is active.
    pub on_delay: f64,
    /// OffDelay: how long the input must be normal until the alarm is inactive.
    pub off_delay: f64,
    /// ReAlarmTime: an alarm that is still active after this time is raised again. 0: never.
    pub re_alarm_time: f64,
    /// Whether it stays latched until Reset is called (LatchedState).
    pub latches: bool,
    /// MaxTimeShelved.
    pub shelving_time_max: Option<f64>,
    /// Whether an unacknowledged state is kept as a branch when the alarm becomes active again (§4.4).
    pub keeps_branches: bool,
    /// Whether it is audible (AudibleEnabled, §5.8.2).
    pub audible: bool,
    /// Whether it is an alarm, with the Methods of alarms (§5.8).
    pub is_alarm: bool,
}

impl Default for Rules {
    /// An alarm that requires acknowledgement, without delays.
    fn default() -> Self {
        Self {
            acknowledges: true,
            confirms: false,
            on_delay: 0.0,
            off_delay: 0.0,
            re_alarm_time: 0.0,
            latches: false,
            shelving_time_max: None,
            keeps_branches: false,
            audible: false,
            is_alarm: true,
        }
    }
}

impl Rules {
    /// The rules of a condition that is not an alarm: only those that its type has.
    pub(crate) fn without_alarm(self, acknowledges: bool) -> Self {
        Self {
            acknowledges,
            confirms: acknowledges && self.confirms,
            keeps_branches: self.keeps_branches,
            is_alarm: false,
            ..Self::default()
        }
    }

    /// Whether a condition with these rules has a Method.
    fn has(&self, method: Method) -> bool {
        match method {
            // §5.5.
            Method::Enable | Method::Disable | Method::AddComment => true,
            // §5.7.
            Method::Acknowledge => self.acknowledges || self.is_alarm,
            Method::Confirm => self.confirms,
            // §5.6: only dialogs respond.
            Method::Respond => true,
            // §5.8.
            Method::Reset => self.latches,
            Method::TimedShelve
            | Method::OneShotShelve
            | Method::Unshelve
            | Method::Suppress
            | Method::Unsuppress
            | Method::RemoveFromService
            | Method::PlaceInService
            | Method::Silence => self.is_alarm,
        }
    }
}

/// The result of evaluating the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    /// Whether it is abnormal.
    pub active: bool,
    /// The limits that are exceeded.
    pub limits: LimitSet,
    /// The severity.
    pub severity: u16,
    /// The quality of the input.
    pub quality: StatusCode,
}

/// What changed, for the message of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The alarm is active.
    Active,
    /// Other limits are exceeded, or the severity changed.
    Level,
    /// The alarm is no longer active.
    Inactive,
    /// It is still active after ReAlarmTime.
    ReAlarm,
    /// The quality of the input changed.
    Quality,
    /// The message or the fields of the application's own type changed.
    Stated,
    /// The condition is removed.
    Removed,
    /// The previous state became a branch.
    Branched,
    /// The branch was dropped: for newer ones, or together with its condition.
    BranchDropped,
    /// The shelving time has expired.
    ShelvingEnded,
    /// An alarm group now suppresses it, or no group does any more.
    GroupSuppression,
    /// A dialog became active.
    Asked,
    /// An operator called a Method.
    Called(Method),
}

/// A change to report: each raises an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// The number and state of the branch concerned. `None`: the condition itself.
    pub branch: Option<(u32, Box<State>)>,
    /// The change.
    pub change: Change,
}

/// The changes caused by one input.
pub type Notes = SmallVec<[Note; 2]>;

/// A previous state that still needs an operator's attention.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Its number, which is part of its BranchId.
    pub number: u32,
    /// Its state.
    pub state: State,
    /// EventIds that refer to it.
    pub ids: VecDeque<ByteString>,
}

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Its behaviour.
    pub rules: Rules,
    /// The current state.
    pub(crate) state: State,
    /// Branches, the oldest first.
    pub(crate) branches: Vec<Branch>,
    /// EventIds that refer to the current state.
    pub(crate) ids: VecDeque<ByteString>,
    pub(crate) branches_made: u32,
    /// The last finding, also while the condition is disabled.
    seen: Option<Finding>,
    /// A delayed change of ActiveState.
    pending: Option<Box<Pending>>,
    re_alarm: Option<UtcTime>,
    /// Suppress was called.
    pub(crate) is_suppressed_by_call: bool,
    /// One of its AlarmSuppressionGroups is active.
    is_suppressed_by_group: bool,
}

/// A change of ActiveState that waits for OnDelay or OffDelay.
#[derive(Debug, Clone, PartialEq)]
struct Pending {
    due: UtcTime,
    /// The message of the state then. Until then, the previous one describes the condition.
    message: Box<str>,
}

impl Machine {
    /// Creates a machine in a state.
    #[must_use]
    pub fn new(rules: Rules, state: State) -> Self {
        Self {
            rules,
            state,
            branches: Vec::new(),
            ids: VecDeque::new(),
            branches_made: 0,
            seen: None,
            pending: None,
            re_alarm: None,
            is_suppressed_by_call: false,
            is_suppressed_by_group: false,
        }
    }

    /// The current state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Branches, the oldest first.
    #[must_use]
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// When the state changes without a new input.
    #[must_use]
    pub fn deadline(&self) -> Option<UtcTime> {
        let pending = self.pending.as_ref().map(|pending| pending.due);
        [pending, self.re_alarm, self.state.shelving.ends()].into_iter().flatten().min()
    }

    /// Remembers the EventId of an event about the current state or a branch.
    pub fn told(&mut self, branch: Option<u32>, id: ByteString) {
        let ids = match branch {
            None => &mut self.ids,
            Some(number) => match self.branches.iter_mut().find(|branch| branch.number == number) {
                Some(branch) => &mut branch.ids,
                // The branch has ended.
                None => return,
            },
        };
        if ids.len() >= EVENT_IDS_MAX {
            ids.pop_front();
        }
        ids.push_back(id);
    }

    /// Whether a finding changes nothing. Check this before building a message for it.
    #[must_use]
    pub fn knows(&self, finding: &Finding) -> bool {
        self.seen.as_ref() == Some(finding)
    }

    /// Handles a finding. `message` is the event's message if ActiveState or the limits change.
    pub fn found(&mut self, finding: Finding, message: &str, now: UtcTime) -> Notes {
        let mut notes = Notes::new();
        if self.knows(&finding) {
            return notes;
        }
        self.seen = Some(finding);
        // §5.5.2: a disabled condition reports nothing.
        if !self.state.enabled {
            return notes;
        }
        if finding.active == self.state.active {
            // The input returned before the delay was over.
            self.pending = None;
            if self.state.active
                && (finding.limits != self.state.limits || finding.severity != self.state.severity)
            {
                self.change_level(finding, message, now, &mut notes);
            }
        } else {
            let delay = if finding.active { self.rules.on_delay } else { self.rules.off_delay };
            if delay > 0.0 {
                let due = self.pending.as_ref().map_or_else(|| later(now, delay), |pending| pending.due);
                self.pending = Some(Box::new(Pending { due, message: message.into() }));
            } else {
                self.switch(finding, message, now, &mut notes);
            }
        }
        if finding.quality != self.state.quality {
            // §5.5.2: a change of Quality is reported.
            (self.state.quality, self.state.times.quality) = (finding.quality, now);
            if notes.is_empty() {
                self.note(Change::Quality, now, &mut notes);
            }
        }
        notes
    }

    /// Event data beyond the finding changed: the message, or fields of the application's own type.
    pub fn restated(&mut self, severity: u16, message: &str, now: UtcTime) -> Notes {
        let mut notes = Notes::new();
        if self.state.enabled {
            self.set_severity(severity, now);
            message.clone_into_box(&mut self.state.message);
            self.note(Change::Stated, now, &mut notes);
        }
        notes
    }

    /// Ends the condition with its branches. Operators need not see it any more.
    pub fn end(&mut self, now: UtcTime) -> Notes {
        let mut notes = Notes::new();
        (self.pending, self.re_alarm) = (None, None);
        self.drop_branches(now, &mut notes);
        if self.state.retain() {
            let state = &mut self.state;
            (state.active, state.limits, state.latched) = (false, LimitSet::NONE, false);
            (state.acked, state.confirmed) = (true, true);
            if let Some(dialog) = &mut state.dialog {
                dialog.set_active(false, now);
            }
            self.note(Change::Removed, now, &mut notes);
        }
        notes
    }

    fn drop_branches(&mut self, now: UtcTime, notes: &mut Notes) {
        for mut branch in core::mem::take(&mut self.branches) {
            (branch.state.enabled, branch.state.time) = (false, now);
            let branch = Some((branch.number, Box::new(branch.state)));
            notes.push(Note { branch, change: Change::BranchDropped });
        }
    }

    /// Advances the time.
    pub fn tick(&mut self, now: UtcTime) -> Notes {
        let mut notes = Notes::new();
        if let (Some(pending), Some(finding)) =
            (self.pending.take_if(|pending| now.ticks() >= pending.due.ticks()), self.seen)
        {
            self.switch(finding, &pending.message, now, &mut notes);
        }
        let shelving = self.state.shelving.at(now);
        if shelving != self.state.shelving {
            // §5.8.17.1: the shelving time has expired.
            self.state.shelving = shelving;
            // §5.5.2: a disabled condition reports nothing.
            if self.state.enabled {
                self.note(Change::ShelvingEnded, now, &mut notes);
            }
        }
        if self.re_alarm.is_some_and(|due| now.ticks() >= due.ticks()) {
            // §5.8.2, ReAlarmTime: treated as if it had just become active.
            self.state.re_alarms = self.state.re_alarms.saturating_add(1);
            self.demand_acknowledgement(now);
            self.set_silenced(false, now);
            self.plan_re_alarm(now);
            self.note(Change::ReAlarm, now, &mut notes);
        }
        notes
    }

    /// Activates a dialog (§5.6.2).
    pub fn ask(&mut self, now: UtcTime) -> Notes {
        let mut notes = Notes::new();
        if let Some(dialog) = self.state.dialog.as_mut().filter(|_| self.state.enabled) {
            dialog.set_active(true, now);
            let prompt = dialog.prompt.text.as_str().to_owned();
            self.state.message = prompt.into();
            self.ids.clear();
            self.note(Change::Asked, now, &mut notes);
        }
        notes
    }

    /// One of its AlarmSuppressionGroups became active, or none is active any more (§5.8.2, SuppressedState).
    pub fn group_suppresses(&mut self, is_active: bool, now: UtcTime) -> Notes {
        let mut notes = Notes::new();
        self.is_suppressed_by_group = is_active;
        if self.update_suppressed(now) && self.state.enabled {
            self.note(Change::GroupSuppression, now, &mut notes);
        }
        notes
    }

    fn update_suppressed(&mut self, now: UtcTime) -> bool {
        let suppressed = self.is_suppressed_by_call || self.is_suppressed_by_group;
        let is_new = suppressed != self.state.suppressed;
        if is_new {
            (self.state.suppressed, self.state.times.suppressed) = (suppressed, now);
        }
        is_new
    }

    /// Executes a Method for an operator.
    ///
    /// # Errors
    /// The result code of the Method's clause.
    pub fn operate(&mut self, operation: &Operation, now: UtcTime) -> Result<Notes, StatusCode> {
        let mut notes = Notes::new();
        match operation.method {
            // §5.5.5.
            Method::Enable if self.state.enabled => return Err(StatusCode::BAD_CONDITION_ALREADY_ENABLED),
            Method::Enable => self.enable(operation, now, &mut notes),
            // §5.5.4.
            Method::Disable if !self.state.enabled => return Err(StatusCode::BAD_CONDITION_ALREADY_DISABLED),
            Method::Disable => self.disable(operation, now, &mut notes),
            // All other Methods (Table 137).
            _ if !self.state.enabled => return Err(StatusCode::BAD_CONDITION_DISABLED),
            method if !self.rules.has(method) => return Err(StatusCode::BAD_METHOD_INVALID),
            Method::AddComment | Method::Acknowledge | Method::Confirm => {
                return self.answer(operation, now);
            }
            Method::TimedShelve => {
                let max = self.rules.shelving_time_max;
                self.state.shelving = self.state.shelving.timed_shelve(operation.shelving_time, max, now)?;
                self.called(operation, now, &mut notes);
            }
            Method::OneShotShelve => {
                self.state.shelving =
                    self.state.shelving.one_shot_shelve(self.rules.shelving_time_max, now)?;
                self.called(operation, now, &mut notes);
            }
            Method::Unshelve => {
                self.state.shelving = self.state.shelving.unshelve()?;
                self.called(operation, now, &mut notes);
            }
            // §5.8.8, §5.8.10: no event if the state does not change. An active group suppresses regardless of the
            // call.
            Method::Suppress | Method::Unsuppress => {
                self.is_suppressed_by_call = operation.method == Method::Suppress;
                if self.update_suppressed(now) {
                    self.called(operation, now, &mut notes);
                }
            }
            // §5.8.12, §5.8.14.
            Method::RemoveFromService | Method::PlaceInService => {
                let out = operation.method == Method::RemoveFromService;
                if self.state.out_of_service != out {
                    (self.state.out_of_service, self.state.times.out_of_service) = (out, now);
                    self.called(operation, now, &mut notes);
                }
            }
            // §5.8.7.
            Method::Silence => {
                if !self.state.silenced {
                    self.set_silenced(true, now);
                    self.called(operation, now, &mut notes);
                }
            }
            // §5.8.5: only a latched alarm that is inactive, acknowledged and confirmed can be reset.
            Method::Reset => {
                let state = &self.state;
                if !state.latched || state.active || !state.acked || !state.confirmed {
                    return Err(StatusCode::BAD_INVALID_STATE);
                }
                (self.state.latched, self.state.times.latched) = (false, now);
                self.called(operation, now, &mut notes);
            }
            // §5.6.3.
            Method::Respond => {
                let dialog = self.state.dialog.as_mut().ok_or(StatusCode::BAD_METHOD_INVALID)?;
                dialog.respond(operation.response, now)?;
                self.called(operation, now, &mut notes);
            }
        }
        Ok(notes)
    }

    // ---- transitions

    /// AddComment (§5.5.6), Acknowledge (§5.7.3), Confirm (§5.7.4) for the state that an event reported.
    fn answer(&mut self, operation: &Operation, now: UtcTime) -> Result<Notes, StatusCode> {
        let mut notes = Notes::new();
        if self.ids.contains(&operation.event_id) {
            answered(&mut self.state, &self.rules, operation, now)?;
            self.note(Change::Called(operation.method), now, &mut notes);
            return Ok(notes);
        }
        let found = self.branches.iter().position(|branch| branch.ids.contains(&operation.event_id));
        let Some(at) = found else { return Err(StatusCode::BAD_EVENT_ID_UNKNOWN) };
        let Some(branch) = self.branches.get_mut(at) else { return Err(StatusCode::BAD_EVENT_ID_UNKNOWN) };
        answered(&mut branch.state, &self.rules, operation, now)?;
        branch.state.time = now;
        let (number, state) = (branch.number, Box::new(branch.state.clone()));
        if !state.retain() {
            // §5.5.2, Retain: the branch is reported a last time, then removed.
            self.branches.remove(at);
        }
        notes.push(Note { branch: Some((number, state)), change: Change::Called(operation.method) });
        Ok(notes)
    }

    fn enable(&mut self, operation: &Operation, now: UtcTime, notes: &mut Notes) {
        (self.state.enabled, self.state.times.enabled) = (true, now);
        self.called(operation, now, notes);
        // The last finding made while disabled applies from now on.
        if let Some(finding) = self.seen.take() {
            let message = core::mem::take(&mut self.state.message);
            notes.extend(self.found(finding, &message, now));
            if self.state.message.is_empty() {
                self.state.message = message;
            }
        }
    }

    fn disable(&mut self, operation: &Operation, now: UtcTime, notes: &mut Notes) {
        (self.state.enabled, self.state.times.enabled) = (false, now);
        (self.pending, self.re_alarm) = (None, None);
        // §5.5.2: a disabled condition has no branches, is inactive and needs no acknowledgement.
        self.drop_branches(now, notes);
        (self.state.active, self.state.limits, self.state.latched) = (false, LimitSet::NONE, false);
        (self.state.acked, self.state.confirmed) = (true, true);
        self.called(operation, now, notes);
    }

    /// ActiveState changes (§5.8.2).
    fn switch(&mut self, finding: Finding, message: &str, now: UtcTime, notes: &mut Notes) {
        self.pending = None;
        if finding.active == self.state.active {
            return;
        }
        if finding.active && !self.state.acked && self.rules.keeps_branches {
            self.branch(now, notes);
        }
        self.state.active = finding.active;
        (self.state.times.active, self.state.times.limits) = (now, now);
        self.state.limits = finding.limits;
        message.clone_into_box(&mut self.state.message);
        if finding.active {
            self.set_severity(finding.severity, now);
            self.demand_acknowledgement(now);
            self.set_silenced(false, now);
            self.state.re_alarms = 0;
            if self.rules.latches && !self.state.latched {
                (self.state.latched, self.state.times.latched) = (true, now);
            }
            self.plan_re_alarm(now);
            self.note(Change::Active, now, notes);
        } else {
            self.re_alarm = None;
            self.state.shelving = self.state.shelving.inactive();
            self.note(Change::Inactive, now, notes);
        }
    }

    /// The exceeded limits or the severity changed.
    fn change_level(&mut self, finding: Finding, message: &str, now: UtcTime, notes: &mut Notes) {
        let is_worse = finding.severity > self.state.severity;
        (self.state.limits, self.state.times.limits) = (finding.limits, now);
        message.clone_into_box(&mut self.state.message);
        self.set_severity(finding.severity, now);
        if is_worse {
            // §4.3: a higher severity must be acknowledged again.
            self.demand_acknowledgement(now);
            self.set_silenced(false, now);
        }
        self.note(Change::Level, now, notes);
    }

    /// Turns the current state into a branch (§4.4, §5.5.2 BranchId).
    fn branch(&mut self, now: UtcTime, notes: &mut Notes) {
        if self.branches.len() >= BRANCHES_MAX {
            let mut oldest = self.branches.remove(0);
            (oldest.state.acked, oldest.state.confirmed, oldest.state.active) = (true, true, false);
            (oldest.state.latched, oldest.state.time) = (false, now);
            let branch = Some((oldest.number, Box::new(oldest.state)));
            notes.push(Note { branch, change: Change::BranchDropped });
        }
        self.branches_made = self.branches_made.wrapping_add(1);
        let number = self.branches_made;
        let state = State { latched: false, ..self.state.clone() };
        notes.push(Note { branch: Some((number, Box::new(state.clone()))), change: Change::Branched });
        self.branches.push(Branch { number, state, ids: core::mem::take(&mut self.ids) });
    }

    /// Requires a new acknowledgement (§5.7.2). EventIds of earlier events no longer refer to the state.
    fn demand_acknowledgement(&mut self, now: UtcTime) {
        self.ids.clear();
        if self.rules.acknowledges && self.state.acked {
            (self.state.acked, self.state.times.acked) = (false, now);
        }
        if !self.state.confirmed {
            (self.state.confirmed, self.state.times.confirmed) = (true, now);
        }
    }

    fn set_silenced(&mut self, silenced: bool, now: UtcTime) {
        if self.state.silenced != silenced {
            (self.state.silenced, self.state.times.silenced) = (silenced, now);
        }
    }

    fn set_severity(&mut self, severity: u16, now: UtcTime) {
        if severity != self.state.severity {
            self.state.last_severity = self.state.severity;
            (self.state.severity, self.state.times.severity) = (severity, now);
        }
    }

    fn plan_re_alarm(&mut self, now: UtcTime) {
        self.re_alarm = (self.rules.re_alarm_time > 0.0).then(|| later(now, self.rules.re_alarm_time));
    }

    /// After a restart: resumes what depends on time.
    pub(crate) fn resume(&mut self, now: UtcTime) {
        if self.state.active {
            self.plan_re_alarm(now);
        }
    }

    /// Reports an operator's call, with the comment.
    fn called(&mut self, operation: &Operation, now: UtcTime, notes: &mut Notes) {
        comment(&mut self.state, operation, now);
        self.note(Change::Called(operation.method), now, notes);
    }

    fn note(&mut self, change: Change, now: UtcTime, notes: &mut Notes) {
        self.state.time = now;
        notes.push(Note { branch: None, change });
    }
}

/// Comments, acknowledges or confirms the condition or a branch.
fn answered(state: &mut State, rules: &Rules, operation: &Operation, now: UtcTime) -> Result<(), StatusCode> {
    match operation.method {
        Method::Acknowledge => {
            if state.acked {
                return Err(StatusCode::BAD_CONDITION_BRANCH_ALREADY_ACKED);
            }
            (state.acked, state.times.acked) = (true, now);
            if rules.confirms {
                // Annex B.1.2: an acknowledged state waits for confirmation.
                (state.confirmed, state.times.confirmed) = (false, now);
            }
        }
        Method::Confirm => {
            if state.confirmed {
                return Err(StatusCode::BAD_CONDITION_BRANCH_ALREADY_CONFIRMED);
            }
            (state.confirmed, state.times.confirmed) = (true, now);
        }
        _ => {}
    }
    comment(state, operation, now);
    Ok(())
}

/// §5.5.2: Comment and ClientUserId of the last operator.
fn comment(state: &mut State, operation: &Operation, now: UtcTime) {
    if let Some(comment) = operation.new_comment() {
        state.comment = comment.clone();
        state.times.comment = now;
    }
    state.user.clone_from(&operation.user);
}

/// Copies a text into a box if it differs.
trait CloneIntoBox {
    fn clone_into_box(&self, place: &mut Box<str>);
}

impl CloneIntoBox for str {
    fn clone_into_box(&self, place: &mut Box<str>) {
        if **place != *self {
            *place = self.into();
        }
    }
}

#[cfg(test)]
mod tests;
