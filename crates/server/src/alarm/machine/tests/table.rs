//! Every input in every reachable state, compared with a table.
//!
//! [`Expected`] is the table: it is written from the text of Part 9, with plain values, whole seconds and no code of the
//! machine. A breadth-first search visits all states that some inputs lead to, and applies all inputs to each of them.

use super::*;
use crate::alarm::dialog::Dialog;
use crate::alarm::shelving::Shelving;
use std::collections::{BTreeSet, VecDeque};

/// What happens to a condition.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Input {
    /// The input is evaluated: whether it is abnormal, the severity, whether the quality is good.
    Found(bool, u16, bool),
    /// A second passes.
    Second,
    /// A Method with the event that it refers to, and its number: the shelving time in seconds, or the response.
    Call(Method, u32, i32),
    /// An alarm group suppresses it, or none does any more.
    Group(bool),
    /// A dialog is activated.
    Ask,
}

/// A branch: acknowledged, confirmed, and the last event about it.
type ExpectedBranch = (u32, bool, bool, u32);

/// The expected state.
#[derive(Debug, Clone, PartialEq)]
struct Expected {
    rules: Rules,
    now: i64,
    enabled: bool,
    active: bool,
    acked: bool,
    confirmed: bool,
    latched: bool,
    silenced: bool,
    by_call: bool,
    by_group: bool,
    out_of_service: bool,
    /// Whether it is a one-shot shelving, and when it ends.
    shelved: Option<(bool, Option<i64>)>,
    /// Whether its dialog is active.
    dialog: Option<bool>,
    severity: u16,
    good: bool,
    repeated: i16,
    /// The last evaluation.
    found: Option<(bool, u16, bool)>,
    /// When a delayed change is due, and the next re-alarm.
    change_at: Option<i64>,
    repeat_at: Option<i64>,
    branches: Vec<ExpectedBranch>,
    branches_made: u32,
    /// The last event about the current state, and one about an earlier state.
    event: Option<u32>,
    earlier: Option<u32>,
    events: u32,
}

const NO_EVENT: u32 = 0;

impl Expected {
    fn new(rules: Rules, has_dialog: bool) -> Self {
        Self {
            rules,
            now: 0,
            enabled: true,
            active: false,
            acked: true,
            confirmed: true,
            latched: false,
            silenced: false,
            by_call: false,
            by_group: false,
            out_of_service: false,
            shelved: None,
            dialog: has_dialog.then_some(false),
            severity: 1,
            good: true,
            repeated: 0,
            found: None,
            change_at: None,
            repeat_at: None,
            branches: Vec::new(),
            branches_made: 0,
            event: None,
            earlier: None,
            events: 0,
        }
    }

    /// §5.5.2, Retain.
    fn retain(&self) -> bool {
        let is_of_interest =
            self.active || !self.acked || !self.confirmed || self.latched || self.dialog == Some(true);
        self.enabled && is_of_interest
    }

    /// All inputs, with every kind of event for Methods that refer to one.
    fn inputs(&self) -> Vec<Input> {
        use Input::{Ask, Call, Found, Group, Second};
        let mut inputs = vec![
            Found(NO, 500, YES),
            Found(YES, 500, YES),
            Found(YES, 800, YES),
            Found(YES, 500, NO),
            Second,
            Group(YES),
            Group(NO),
            Ask,
        ];
        let mut events = vec![NO_EVENT];
        events.extend(self.event);
        events.extend(self.earlier);
        events.extend(self.branches.iter().map(|branch| branch.3));
        for method in Method::ALL {
            match method {
                Method::Acknowledge | Method::Confirm | Method::AddComment => {
                    inputs.extend(events.iter().map(|event| Call(method, *event, 0)));
                }
                // In seconds: none, short, longer than the maximum where there is one.
                Method::TimedShelve => inputs.extend([0, 2, 5].map(|seconds| Call(method, 0, seconds))),
                Method::Respond => inputs.extend([0, 1, 2, -1].map(|response| Call(method, 0, response))),
                _ => inputs.push(Call(method, 0, 0)),
            }
        }
        inputs
    }

    fn apply(&mut self, input: Input) -> Result<Vec<(Option<u32>, Change)>, StatusCode> {
        let mut told = Vec::new();
        match input {
            Input::Found(active, severity, good) => self.evaluate((active, severity, good), &mut told),
            Input::Second => self.second(&mut told),
            Input::Group(suppresses) => {
                let before = self.by_call || self.by_group;
                self.by_group = suppresses;
                // §5.5.2: nothing is reported while disabled.
                if self.enabled && before != (self.by_call || self.by_group) {
                    told.push((None, Change::GroupSuppression));
                }
            }
            Input::Ask => {
                if self.enabled && self.dialog.is_some() {
                    self.dialog = Some(true);
                    self.forget_event();
                    told.push((None, Change::Asked));
                }
            }
            Input::Call(method, event, number) => self.call(method, event, number, &mut told)?,
        }
        for (branch, _) in &told {
            self.events += 1;
            match branch {
                None => self.event = Some(self.events),
                Some(number) => {
                    if let Some(branch) = self.branches.iter_mut().find(|branch| branch.0 == *number) {
                        branch.3 = self.events;
                    }
                }
            }
        }
        Ok(told)
    }

    fn forget_event(&mut self) {
        self.earlier = self.event.take().or(self.earlier);
    }

    /// §5.7.2: a new state is unacknowledged; it is confirmed as long as it is unacknowledged.
    fn unacknowledge(&mut self) {
        self.forget_event();
        (self.acked, self.confirmed) = (self.acked && !self.rules.acknowledges, true);
        self.silenced = false;
    }

    fn evaluate(&mut self, found: (bool, u16, bool), told: &mut Vec<(Option<u32>, Change)>) {
        if self.found == Some(found) {
            return;
        }
        self.found = Some(found);
        if !self.enabled {
            return;
        }
        let (active, severity, good) = found;
        let delay = if active { self.rules.on_delay } else { self.rules.off_delay };
        if active != self.active {
            // §5.8.2, OnDelay and OffDelay: counted from the first such evaluation.
            if delay > 0.0 {
                self.change_at = self.change_at.or(Some(self.now + (delay / 1e3) as i64));
            } else {
                self.change(told);
            }
        } else {
            self.change_at = None;
            if active && severity != self.severity {
                let is_worse = severity > self.severity;
                self.severity = severity;
                if is_worse {
                    self.unacknowledge();
                }
                told.push((None, Change::Level));
            }
        }
        if good != self.good {
            self.good = good;
            if told.is_empty() {
                told.push((None, Change::Quality));
            }
        }
    }

    /// ActiveState becomes what was found.
    fn change(&mut self, told: &mut Vec<(Option<u32>, Change)>) {
        self.change_at = None;
        let Some((active, severity, _)) = self.found else { return };
        if active == self.active {
            return;
        }
        if !active {
            (self.active, self.repeat_at) = (false, None);
            // Table 73: a one-shot shelving ends.
            self.shelved = self.shelved.filter(|(is_one_shot, _)| !is_one_shot);
            told.push((None, Change::Inactive));
            return;
        }
        if !self.acked && self.rules.keeps_branches {
            // §4.4: the previous state still needs acknowledgement.
            self.branches_made += 1;
            let event = self.event.take().unwrap_or(NO_EVENT);
            self.branches.push((self.branches_made, self.acked, self.confirmed, event));
            told.push((Some(self.branches_made), Change::Branched));
        }
        self.unacknowledge();
        (self.active, self.severity, self.repeated) = (true, severity, 0);
        self.latched |= self.rules.latches;
        self.plan_repeat();
        told.push((None, Change::Active));
    }

    fn plan_repeat(&mut self) {
        let time = (self.rules.re_alarm_time / 1e3) as i64;
        self.repeat_at = (time > 0).then_some(self.now + time);
    }

    fn second(&mut self, told: &mut Vec<(Option<u32>, Change)>) {
        self.now += 1;
        if self.change_at.is_some_and(|at| at <= self.now) {
            self.change(told);
        }
        if self.shelved.is_some_and(|(_, end)| end.is_some_and(|end| end <= self.now)) {
            self.shelved = None;
            if self.enabled {
                told.push((None, Change::ShelvingEnded));
            }
        }
        if self.repeat_at.is_some_and(|at| at <= self.now) {
            self.repeated += 1;
            self.unacknowledge();
            self.plan_repeat();
            told.push((None, Change::ReAlarm));
        }
    }

    /// The result codes of the Methods' clauses, then their effects.
    fn call(
        &mut self,
        method: Method,
        event: u32,
        number: i32,
        told: &mut Vec<(Option<u32>, Change)>,
    ) -> Result<(), StatusCode> {
        use StatusCode as S;
        let called = (None, Change::Called(method));
        match method {
            Method::Enable if self.enabled => return Err(S::BAD_CONDITION_ALREADY_ENABLED),
            Method::Disable if !self.enabled => return Err(S::BAD_CONDITION_ALREADY_DISABLED),
            Method::Enable => {
                self.enabled = true;
                told.push(called);
                let mut more = Vec::new();
                if let Some(found) = self.found.take() {
                    self.evaluate(found, &mut more);
                }
                told.append(&mut more);
            }
            _ if !self.enabled => return Err(S::BAD_CONDITION_DISABLED),
            Method::Disable => {
                told.extend(self.branches.drain(..).map(|branch| (Some(branch.0), Change::BranchDropped)));
                (self.enabled, self.active, self.latched) = (false, false, false);
                (self.acked, self.confirmed) = (true, true);
                (self.change_at, self.repeat_at) = (None, None);
                told.push(called);
            }
            Method::AddComment | Method::Acknowledge | Method::Confirm => {
                if method == Method::Confirm && !self.rules.confirms {
                    return Err(S::BAD_METHOD_INVALID);
                }
                let branch = self.branches.iter().position(|branch| branch.3 == event);
                let (acked, confirmed) = match branch {
                    _ if event == NO_EVENT => return Err(S::BAD_EVENT_ID_UNKNOWN),
                    _ if self.event == Some(event) => (self.acked, self.confirmed),
                    Some(at) => (self.branches[at].1, self.branches[at].2),
                    None => return Err(S::BAD_EVENT_ID_UNKNOWN),
                };
                let (acked, confirmed) = match method {
                    Method::Acknowledge if acked => return Err(S::BAD_CONDITION_BRANCH_ALREADY_ACKED),
                    Method::Confirm if confirmed => return Err(S::BAD_CONDITION_BRANCH_ALREADY_CONFIRMED),
                    // Annex B.1.2: what is acknowledged waits for its confirmation.
                    Method::Acknowledge => (true, confirmed && !self.rules.confirms),
                    Method::Confirm => (acked, true),
                    _ => (acked, confirmed),
                };
                if self.event == Some(event) {
                    (self.acked, self.confirmed) = (acked, confirmed);
                    told.push(called);
                } else if let Some(at) = branch {
                    let number = self.branches[at].0;
                    (self.branches[at].1, self.branches[at].2) = (acked, confirmed);
                    // A branch that needs nothing any more has ended.
                    if acked && confirmed {
                        self.branches.remove(at);
                    }
                    told.push((Some(number), Change::Called(method)));
                }
            }
            Method::TimedShelve => {
                let max = self.rules.shelving_time_max.map_or(i32::MAX, |max| (max / 1e3) as i32);
                if number <= 0 || number > max {
                    return Err(S::BAD_SHELVING_TIME_OUT_OF_RANGE);
                }
                if matches!(self.shelved, Some((false, _))) {
                    return Err(S::BAD_CONDITION_ALREADY_SHELVED);
                }
                self.shelved = Some((false, Some(self.now + i64::from(number))));
                told.push(called);
            }
            Method::OneShotShelve => {
                if matches!(self.shelved, Some((true, _))) {
                    return Err(S::BAD_CONDITION_ALREADY_SHELVED);
                }
                let end = self.rules.shelving_time_max.map(|max| self.now + (max / 1e3) as i64);
                self.shelved = Some((true, end));
                told.push(called);
            }
            Method::Unshelve => {
                self.shelved.take().ok_or(S::BAD_CONDITION_NOT_SHELVED)?;
                told.push(called);
            }
            Method::Suppress | Method::Unsuppress => {
                let before = self.by_call || self.by_group;
                self.by_call = method == Method::Suppress;
                told.extend((before != (self.by_call || self.by_group)).then_some(called));
            }
            Method::RemoveFromService | Method::PlaceInService => {
                let out = method == Method::RemoveFromService;
                told.extend((out != self.out_of_service).then_some(called));
                self.out_of_service = out;
            }
            Method::Silence => {
                told.extend((!self.silenced).then_some(called));
                self.silenced = true;
            }
            Method::Reset => {
                if !self.rules.latches {
                    return Err(S::BAD_METHOD_INVALID);
                }
                if !self.latched || self.active || !self.acked || !self.confirmed {
                    return Err(S::BAD_INVALID_STATE);
                }
                self.latched = false;
                told.push(called);
            }
            Method::Respond => match self.dialog {
                None => return Err(S::BAD_METHOD_INVALID),
                Some(false) => return Err(S::BAD_DIALOG_NOT_ACTIVE),
                Some(true) if !(0..2).contains(&number) => return Err(S::BAD_DIALOG_RESPONSE_INVALID),
                Some(true) => {
                    self.dialog = Some(false);
                    told.push(called);
                }
            },
        }
        Ok(())
    }

    /// The state without what does not affect the future: absolute times and numbers of events.
    fn key(&self) -> Self {
        let mut key = self.clone();
        let since = |at: &mut Option<i64>| *at = at.map(|at| at - self.now);
        since(&mut key.change_at);
        since(&mut key.repeat_at);
        if let Some((_, end)) = &mut key.shelved {
            since(end);
        }
        key.now = 0;
        key.repeated = key.repeated.min(1);
        (key.event, key.earlier) = (key.event.map(|_| 1), key.earlier.map(|_| 1));
        for (number, branch) in (1..).zip(&mut key.branches) {
            (branch.0, branch.3) = (number, number);
        }
        (key.branches_made, key.events) = (0, 0);
        key
    }

    /// Compares everything that clients see.
    fn assert_is(&self, machine: &Machine, way: &dyn core::fmt::Debug) {
        let state = machine.state();
        let expected = [
            ("enabled", self.enabled, state.enabled),
            ("active", self.active, state.active),
            ("acked", self.acked, state.acked),
            ("confirmed", self.confirmed, state.confirmed),
            ("latched", self.latched, state.latched),
            ("silenced", self.silenced, state.silenced),
            ("suppressed", self.by_call || self.by_group, state.suppressed),
            ("out of service", self.out_of_service, state.out_of_service),
            ("good", self.good, state.quality == StatusCode::GOOD),
            ("retain", self.retain(), state.retain()),
            ("audible", self.is_audible(), state.is_audible(&machine.rules)),
            ("suppressed or shelved", self.is_hidden(), state.suppressed_or_shelved()),
            ("dialog", self.dialog == Some(true), state.dialog.as_ref().is_some_and(|it| it.is_active)),
        ];
        for (what, expected, is) in expected {
            assert_eq!(is, expected, "{what} after {way:?}");
        }
        let shelving = match self.shelved {
            None => Shelving::Unshelved,
            Some((true, end)) => Shelving::OneShotShelved { until: end.map(at) },
            Some((false, end)) => Shelving::TimedShelved { until: at(end.unwrap_or_default()) },
        };
        assert_eq!(state.shelving, shelving, "{way:?}");
        assert_eq!((state.severity, state.re_alarms), (self.severity, self.repeated), "{way:?}");
        assert_eq!(state.limits != LimitSet::NONE, self.active, "{way:?}");
        let branches = machine.branches().iter();
        let branches: Vec<_> =
            branches.map(|branch| (branch.number, branch.state.acked, branch.state.confirmed)).collect();
        let expected: Vec<_> = self.branches.iter().map(|branch| (branch.0, branch.1, branch.2)).collect();
        assert_eq!(branches, expected, "{way:?}");
        let end = self.shelved.and_then(|(_, end)| end);
        let next = [self.change_at, self.repeat_at, end].into_iter().flatten().min();
        assert_eq!(machine.deadline(), next.map(at), "{way:?}");
    }

    fn is_hidden(&self) -> bool {
        self.by_call || self.by_group || self.out_of_service || self.shelved.is_some()
    }

    /// §5.8.2, AudibleEnabled.
    fn is_audible(&self) -> bool {
        let is_new = !self.acked || !self.rules.acknowledges;
        self.enabled && self.active && is_new && !self.silenced && !self.is_hidden()
    }
}

fn apply(machine: &mut Machine, input: Input, now: i64) -> Result<Notes, StatusCode> {
    let now = at(now);
    Ok(match input {
        Input::Found(active, severity, good) => {
            let quality = if good { StatusCode::GOOD } else { StatusCode::BAD_COMMUNICATION_ERROR };
            machine.found(Finding { quality, ..finding(active, severity) }, "it happened", now)
        }
        Input::Second => machine.tick(now),
        Input::Group(suppresses) => machine.group_suppresses(suppresses, now),
        Input::Ask => machine.ask(now),
        Input::Call(method, event, number) => {
            let id = ByteString::from(event.to_be_bytes().as_slice());
            let mut operation = Operation::new(method).event(id).comment("why").by("ann");
            (operation.shelving_time, operation.response) = (f64::from(number) * 1e3, number);
            machine.operate(&operation, now)?
        }
    })
}

/// Visits all states that `moves` leads to, with at most two branches, and applies all inputs to each. Returns the
/// number of states.
fn explore(rules: &Rules, has_dialog: bool, moves: fn(&Input) -> bool) -> usize {
    let mut machine = Machine::new(rules.clone(), State::new(1, at(0)));
    machine.state.dialog = has_dialog.then(|| Box::new(Dialog::new("Open the valve?", &["Yes", "No"])));
    let start = Expected::new(rules.clone(), has_dialog);
    let mut known = BTreeSet::from([format!("{:?}", start.key())]);
    let mut queue = VecDeque::from([(machine, start, Vec::new())]);
    while let Some((machine, expected, way)) = queue.pop_front() {
        for input in expected.inputs() {
            let (mut machine, mut expected, before) = (machine.clone(), expected.clone(), machine.clone());
            let mut way: Vec<Input> = way.clone();
            way.push(input);
            let now = expected.now + i64::from(input == Input::Second);
            let mut event = expected.events;
            let wanted = expected.apply(input);
            let notes = apply(&mut machine, input, now);
            let told = notes.as_ref().map_err(|status| *status).map(|notes| {
                let told = |note: &Note| (note.branch.as_ref().map(|(number, _)| *number), note.change);
                notes.iter().map(told).collect::<Vec<_>>()
            });
            assert_eq!(told, wanted, "{way:?}");
            let Ok(notes) = notes else {
                assert_eq!(machine, before, "a refused Method changes nothing: {way:?}");
                continue;
            };
            for note in &notes {
                event += 1;
                let branch = note.branch.as_ref().map(|(number, _)| *number);
                machine.told(branch, ByteString::from(event.to_be_bytes().as_slice()));
            }
            expected.assert_is(&machine, &way);
            let is_small = expected.branches.len() <= 2;
            if is_small && moves(&input) && known.insert(format!("{:?}", expected.key())) {
                queue.push_back((machine, expected, way));
            }
        }
    }
    known.len()
}

fn is_about_service(method: Method) -> bool {
    use Method::{Disable, Enable, OneShotShelve, PlaceInService, RemoveFromService, Suppress, TimedShelve};
    matches!(
        method,
        Enable
            | Disable
            | Suppress
            | Method::Unsuppress
            | RemoveFromService
            | PlaceInService
            | TimedShelve
            | OneShotShelve
            | Method::Unshelve
    )
}

/// §5.5 to §5.8: Enable, AddComment, Acknowledge, Confirm, Silence and Reset, with branches.
#[test]
fn every_input_in_every_state_of_acknowledgement() {
    let moves = |input: &Input| match input {
        Input::Found(..) => true,
        Input::Call(method, ..) => {
            !is_about_service(*method) || *method == Method::Disable || *method == Method::Enable
        }
        _ => false,
    };
    let mut states = Vec::new();
    for bits in 0..16u8 {
        let has = |bit: u8| bits & (1 << bit) != 0;
        let rules = Rules {
            acknowledges: !has(0),
            confirms: has(1) && !has(0),
            latches: has(2),
            keeps_branches: has(3),
            ..Rules::default()
        };
        states.push(explore(&rules, false, moves));
    }
    assert!(states.iter().sum::<usize>() > 1_000, "{states:?}");
}

/// §5.8.2: OnDelay, OffDelay and ReAlarmTime.
#[test]
fn every_input_in_every_state_of_delays() {
    let moves = |input: &Input| {
        matches!(
            input,
            Input::Found(..)
                | Input::Second
                | Input::Call(Method::Acknowledge | Method::Silence | Method::Disable | Method::Enable, ..)
        )
    };
    let mut states = Vec::new();
    for (on_delay, off_delay, re_alarm_time) in
        [(2e3, 0.0, 0.0), (0.0, 2e3, 0.0), (2e3, 1e3, 0.0), (0.0, 0.0, 2e3), (1e3, 2e3, 3e3)]
    {
        for keeps_branches in [NO, YES] {
            let rules = Rules { on_delay, off_delay, re_alarm_time, keeps_branches, ..Rules::default() };
            states.push(explore(&rules, false, moves));
        }
    }
    assert!(states.iter().sum::<usize>() > 500, "{states:?}");
}

/// §5.8.2, §5.8.17: shelving, suppression by Methods and by groups, out of service.
#[test]
fn every_input_in_every_state_of_suppression_and_shelving() {
    let moves = |input: &Input| match input {
        Input::Found(_, 500, YES) | Input::Second | Input::Group(_) => true,
        Input::Call(method, ..) => is_about_service(*method),
        _ => false,
    };
    let mut states = Vec::new();
    for shelving_time_max in [None, Some(3_000.0)] {
        let rules = Rules { shelving_time_max, ..Rules::default() };
        states.push(explore(&rules, false, moves));
    }
    assert!(states.iter().sum::<usize>() > 300, "{states:?}");
}

/// §5.6: dialogs.
#[test]
fn every_input_in_every_state_of_dialogs() {
    let moves = |input: &Input| {
        matches!(
            input,
            Input::Ask
                | Input::Found(..)
                | Input::Call(
                    Method::Respond
                        | Method::Acknowledge
                        | Method::Confirm
                        | Method::Disable
                        | Method::Enable,
                    ..
                )
        )
    };
    let rules = Rules { confirms: true, ..Rules::default() };
    let states = explore(&rules, true, moves);
    assert!(states > 40, "{states}");
}
