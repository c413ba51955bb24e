//! The state machine of conditions: examples of Part 9, and in [`table`] every input in every state.

mod table;

use super::*;
use taktwerk_types::LocalizedText;

fn at(seconds: i64) -> UtcTime {
    UtcTime::from_ticks(1_000_000_000 + seconds * 10_000_000)
}

fn finding(active: bool, severity: u16) -> Finding {
    let limits = if active { LimitSet::HIGH } else { LimitSet::NONE };
    Finding { active, limits, severity, quality: StatusCode::GOOD }
}

/// A condition whose events have increasing numbers as EventIds.
struct Bench {
    machine: Machine,
    last: u8,
    seconds: i64,
}

impl Bench {
    fn new(rules: Rules) -> Self {
        Self { machine: Machine::new(rules, State::new(1, at(0))), last: 0, seconds: 0 }
    }

    /// Gives each event an id. Returns the reported changes.
    fn tell(&mut self, notes: Notes) -> Vec<Change> {
        for note in &notes {
            self.last += 1;
            let branch = note.branch.as_ref().map(|(number, _)| *number);
            self.machine.told(branch, ByteString::from(vec![self.last]));
        }
        notes.into_iter().map(|note| note.change).collect()
    }

    fn found(&mut self, active: bool, severity: u16) -> Vec<Change> {
        self.seconds += 1;
        let notes = self.machine.found(finding(active, severity), "it happened", at(self.seconds));
        self.tell(notes)
    }

    fn wait(&mut self, seconds: i64) -> Vec<Change> {
        self.seconds += seconds;
        let notes = self.machine.tick(at(self.seconds));
        self.tell(notes)
    }

    /// Calls a Method about the last event.
    fn call(&mut self, method: Method) -> Result<Vec<Change>, StatusCode> {
        let last = self.last;
        self.call_about(method, last)
    }

    fn call_about(&mut self, method: Method, event: u8) -> Result<Vec<Change>, StatusCode> {
        self.seconds += 1;
        let mut operation =
            Operation::new(method).event(ByteString::from(vec![event])).comment("why").by("ann");
        operation.shelving_time = 60_000.0;
        let notes = self.machine.operate(&operation, at(self.seconds))?;
        Ok(self.tell(notes))
    }

    /// Active, acked, confirmed, retain.
    fn shows(&self) -> [bool; 4] {
        let state = self.machine.state();
        [state.active, state.acked, state.confirmed, state.retain()]
    }
}

const NO: bool = false;
const YES: bool = true;

/// Annex B.1.2: one alarm that is acknowledged and confirmed, without branches.
#[test]
fn the_example_of_annex_b_1_2() {
    let mut bench = Bench::new(Rules { confirms: true, ..Rules::default() });
    assert_eq!(bench.shows(), [NO, YES, YES, NO]);
    assert_eq!(bench.found(YES, 500), [Change::Active]);
    assert_eq!(bench.shows(), [YES, NO, YES, YES]);
    assert_eq!(bench.call(Method::Acknowledge).unwrap(), [Change::Called(Method::Acknowledge)]);
    assert_eq!(bench.shows(), [YES, YES, NO, YES]);
    assert_eq!(bench.found(NO, 500), [Change::Inactive]);
    assert_eq!(bench.shows(), [NO, YES, NO, YES]);
    assert_eq!(bench.call(Method::Confirm).unwrap(), [Change::Called(Method::Confirm)]);
    assert_eq!(bench.shows(), [NO, YES, YES, NO]);
    // Active again; it becomes inactive before it was acknowledged.
    bench.found(YES, 500);
    bench.found(NO, 500);
    assert_eq!(bench.shows(), [NO, NO, YES, YES]);
    bench.call(Method::Acknowledge).unwrap();
    assert_eq!(bench.shows(), [NO, YES, NO, YES]);
    bench.call(Method::Confirm).unwrap();
    assert_eq!(bench.shows(), [NO, YES, YES, NO]);
    let state = bench.machine.state();
    assert_eq!((&*state.user, state.comment.clone()), ("ann", LocalizedText::from("why")));
}

/// Annex B.1.3: an alarm that becomes active again before it was acknowledged keeps the old state as a branch.
#[test]
fn the_example_of_annex_b_1_3_with_branches() {
    let mut bench = Bench::new(Rules { keeps_branches: true, confirms: true, ..Rules::default() });
    bench.found(YES, 500);
    bench.found(NO, 500);
    let about_the_first = bench.last;
    assert_eq!(bench.found(YES, 500), [Change::Branched, Change::Active]);
    assert_eq!(bench.shows(), [YES, NO, YES, YES]);
    let [branch] = bench.machine.branches() else { panic!("one branch") };
    assert!(!branch.state.acked && !branch.state.active && branch.state.retain());
    // Acknowledging with the old EventId acknowledges the branch, not the current state.
    bench.call_about(Method::Acknowledge, about_the_first).unwrap();
    assert!(!bench.machine.state().acked && bench.machine.branches()[0].state.acked);
    let already = bench.call_about(Method::Acknowledge, about_the_first);
    assert_eq!(already, Err(StatusCode::BAD_CONDITION_BRANCH_ALREADY_ACKED));
    bench.call_about(Method::Confirm, about_the_first).unwrap();
    assert!(bench.machine.branches().is_empty(), "the branch has ended");
    let gone = bench.call_about(Method::AddComment, about_the_first);
    assert_eq!(gone, Err(StatusCode::BAD_EVENT_ID_UNKNOWN));
}

/// Figure 2 and the tables of §5.7.3, §5.7.4: results of Acknowledge and Confirm in each state, with and without
/// Confirm.
#[test]
fn acknowledge_and_confirm_in_every_state() {
    use StatusCode as S;
    for confirms in [NO, YES] {
        // How the state is reached; the results of Acknowledge and Confirm.
        let ways: [(&[&str], S, S); 4] = [
            (&["on"], S::GOOD, S::BAD_CONDITION_BRANCH_ALREADY_CONFIRMED),
            (&["on", "off"], S::GOOD, S::BAD_CONDITION_BRANCH_ALREADY_CONFIRMED),
            (&["on", "ack"], S::BAD_CONDITION_BRANCH_ALREADY_ACKED, S::GOOD),
            (&["on", "ack", "off"], S::BAD_CONDITION_BRANCH_ALREADY_ACKED, S::GOOD),
        ];
        for (way, acknowledge, confirm) in ways {
            let confirm = if confirms { confirm } else { S::BAD_METHOD_INVALID };
            for (method, expected) in [(Method::Acknowledge, acknowledge), (Method::Confirm, confirm)] {
                let mut bench = Bench::new(Rules { confirms, ..Rules::default() });
                for step in way {
                    match *step {
                        "on" => drop(bench.found(YES, 500)),
                        "off" => drop(bench.found(NO, 500)),
                        _ => drop(bench.call(Method::Acknowledge).unwrap()),
                    }
                }
                let answer = bench.call(method).map_or_else(|status| status, |_| S::GOOD);
                assert_eq!(answer, expected, "{way:?}, {method:?}, confirms: {confirms}");
            }
        }
    }
}

/// Table 137: a disabled condition only accepts Enable.
#[test]
fn a_disabled_condition_only_accepts_enable() {
    let mut bench = Bench::new(Rules { confirms: true, latches: true, ..Rules::default() });
    bench.found(YES, 500);
    assert_eq!(bench.call(Method::Enable), Err(StatusCode::BAD_CONDITION_ALREADY_ENABLED));
    assert_eq!(bench.call(Method::Disable).unwrap(), [Change::Called(Method::Disable)]);
    assert_eq!(bench.shows(), [NO, YES, YES, NO]);
    for method in Method::ALL {
        let expected = match method {
            Method::Enable => continue,
            Method::Disable => StatusCode::BAD_CONDITION_ALREADY_DISABLED,
            _ => StatusCode::BAD_CONDITION_DISABLED,
        };
        assert_eq!(bench.call(method), Err(expected), "{method:?}");
    }
    // §5.5.2: nothing is reported while disabled.
    assert!(bench.found(NO, 500).is_empty() && bench.found(YES, 700).is_empty());
    assert_eq!(bench.machine.deadline(), None);
    // The current state is reported when it is enabled.
    assert_eq!(bench.call(Method::Enable).unwrap(), [Change::Called(Method::Enable), Change::Active]);
    assert_eq!((bench.shows(), bench.machine.state().severity), ([YES, NO, YES, YES], 700));
}

#[test]
fn delays_ignore_short_changes() {
    let mut bench = Bench::new(Rules { on_delay: 5_000.0, off_delay: 3_000.0, ..Rules::default() });
    assert!(bench.found(YES, 500).is_empty());
    assert!(bench.wait(3).is_empty());
    assert!(bench.found(NO, 500).is_empty(), "it returned before the delay");
    assert!(bench.wait(10).is_empty());
    bench.found(YES, 500);
    assert_eq!(bench.machine.deadline(), Some(at(bench.seconds + 5)));
    // A worse value in the meantime does not restart the delay.
    assert!(bench.found(YES, 800).is_empty());
    assert_eq!(bench.wait(4), [Change::Active]);
    assert_eq!(bench.machine.state().severity, 800);
    assert_eq!(&*bench.machine.state().message, "it happened");
    assert!(bench.found(NO, 500).is_empty() && bench.wait(2).is_empty());
    assert_eq!(bench.wait(1), [Change::Inactive]);
}

/// Whoever refreshes or acknowledges meanwhile must not read what has not happened yet.
#[test]
fn a_delayed_change_keeps_the_message_until_it_happens() {
    let mut bench = Bench::new(Rules { on_delay: 5_000.0, off_delay: 3_000.0, ..Rules::default() });
    let message = |bench: &Bench| bench.machine.state().message.to_string();
    let before = message(&bench);
    let find = |bench: &mut Bench, active, text: &str| {
        bench.seconds += 1;
        let notes = bench.machine.found(finding(active, 500), text, at(bench.seconds));
        assert!(bench.tell(notes).is_empty());
    };
    find(&mut bench, YES, "too hot");
    assert_eq!(message(&bench), before);
    find(&mut bench, NO, "normal");
    assert_eq!((message(&bench), bench.wait(10)), (before.clone(), vec![]));
    find(&mut bench, YES, "too hot");
    assert_eq!(message(&bench), before);
    assert_eq!(bench.wait(5), [Change::Active]);
    assert_eq!(message(&bench), "too hot");
    find(&mut bench, NO, "normal");
    assert_eq!(message(&bench), "too hot");
    assert_eq!(bench.wait(3), [Change::Inactive]);
    assert_eq!(message(&bench), "normal");
}

#[test]
fn a_higher_severity_must_be_acknowledged_again() {
    let mut bench = Bench::new(Rules::default());
    bench.found(YES, 500);
    let first = bench.last;
    bench.call(Method::Acknowledge).unwrap();
    assert_eq!(bench.found(YES, 800), [Change::Level]);
    assert_eq!(bench.shows(), [YES, NO, YES, YES]);
    assert_eq!((bench.machine.state().severity, bench.machine.state().last_severity), (800, 500));
    // The earlier EventId does not refer to the current state.
    assert_eq!(bench.call_about(Method::Acknowledge, first), Err(StatusCode::BAD_EVENT_ID_UNKNOWN));
    bench.call(Method::Acknowledge).unwrap();
    assert_eq!(bench.found(YES, 500), [Change::Level]);
    assert_eq!(bench.shows(), [YES, YES, YES, YES], "a lower severity need not be");
}

/// §5.8.5: Reset.
#[test]
fn a_latched_alarm_stays_until_it_is_reset() {
    let mut bench = Bench::new(Rules { latches: true, confirms: true, ..Rules::default() });
    let reset = |bench: &mut Bench| bench.call(Method::Reset);
    assert_eq!(reset(&mut bench), Err(StatusCode::BAD_INVALID_STATE), "not latched");
    bench.found(YES, 500);
    assert_eq!(reset(&mut bench), Err(StatusCode::BAD_INVALID_STATE), "active");
    bench.found(NO, 500);
    assert_eq!(reset(&mut bench), Err(StatusCode::BAD_INVALID_STATE), "not acknowledged");
    bench.call(Method::Acknowledge).unwrap();
    assert_eq!(reset(&mut bench), Err(StatusCode::BAD_INVALID_STATE), "not confirmed");
    bench.call(Method::Confirm).unwrap();
    assert_eq!(bench.shows(), [NO, YES, YES, YES], "latched is retained");
    assert!(reset(&mut bench).is_ok());
    assert_eq!(bench.shows(), [NO, YES, YES, NO]);
    let mut plain = Bench::new(Rules::default());
    assert_eq!(reset(&mut plain), Err(StatusCode::BAD_METHOD_INVALID));
}

#[test]
fn re_alarms_repeat_while_the_alarm_is_active() {
    let mut bench = Bench::new(Rules { re_alarm_time: 10_000.0, ..Rules::default() });
    bench.found(YES, 500);
    bench.call(Method::Silence).unwrap();
    bench.call(Method::Acknowledge).unwrap();
    assert_eq!(bench.wait(20), [Change::ReAlarm]);
    assert_eq!((bench.shows(), bench.machine.state().re_alarms), ([YES, NO, YES, YES], 1));
    assert!(!bench.machine.state().silenced);
    assert_eq!(bench.wait(10), [Change::ReAlarm]);
    bench.found(NO, 500);
    assert!(bench.wait(100).is_empty());
    bench.found(YES, 500);
    assert_eq!(bench.machine.state().re_alarms, 0);
}

#[test]
fn shelving_ends_by_time_or_with_the_alarm() {
    let mut bench = Bench::new(Rules::default());
    bench.found(YES, 500);
    bench.call(Method::TimedShelve).unwrap();
    assert!(bench.machine.state().suppressed_or_shelved());
    assert_eq!(bench.wait(60), [Change::ShelvingEnded]);
    bench.call(Method::OneShotShelve).unwrap();
    assert!(bench.machine.state().shelving.is_shelved());
    assert_eq!(bench.found(NO, 500), [Change::Inactive]);
    assert!(!bench.machine.state().suppressed_or_shelved());
    assert_eq!(bench.call(Method::Unshelve), Err(StatusCode::BAD_CONDITION_NOT_SHELVED));
}

#[test]
fn unchanged_states_are_not_reported_again() {
    for (on, off) in
        [(Method::Suppress, Method::Unsuppress), (Method::RemoveFromService, Method::PlaceInService)]
    {
        let mut bench = Bench::new(Rules::default());
        assert!(bench.call(off).unwrap().is_empty());
        assert_eq!(bench.call(on).unwrap(), [Change::Called(on)]);
        assert!(bench.call(on).unwrap().is_empty());
        assert!(bench.machine.state().suppressed_or_shelved());
        assert_eq!(bench.call(off).unwrap(), [Change::Called(off)]);
        assert!(!bench.machine.state().suppressed_or_shelved());
    }
}

#[test]
fn a_change_of_quality_alone_is_reported() {
    let mut bench = Bench::new(Rules::default());
    bench.found(YES, 500);
    let bad = Finding { quality: StatusCode::BAD_COMMUNICATION_ERROR, ..finding(YES, 500) };
    let notes = bench.machine.found(bad, "", at(9));
    assert_eq!(bench.tell(notes), [Change::Quality]);
    assert!(!bench.machine.state().acked, "nothing else changed");
}

#[test]
fn event_ids_and_branches_are_bounded() {
    let mut bench = Bench::new(Rules { keeps_branches: true, ..Rules::default() });
    let mut dropped = 0;
    for _ in 0..3 * BRANCHES_MAX {
        dropped += bench.found(YES, 500).iter().filter(|change| **change == Change::BranchDropped).count();
        bench.found(NO, 500);
    }
    assert_eq!(bench.machine.branches().len(), BRANCHES_MAX);
    assert_eq!(dropped, 3 * BRANCHES_MAX - 1 - BRANCHES_MAX);
    for _ in 0..3 * EVENT_IDS_MAX {
        bench.call(Method::AddComment).unwrap();
    }
    assert_eq!(bench.machine.ids.len(), EVENT_IDS_MAX);
    assert_eq!(bench.call(Method::Disable).unwrap().len(), 1 + BRANCHES_MAX);
    assert!(bench.machine.branches().is_empty());
}

#[test]
fn an_empty_comment_keeps_the_old_comment() {
    let mut bench = Bench::new(Rules::default());
    bench.found(YES, 500);
    bench.call(Method::AddComment).unwrap();
    let id = ByteString::from(vec![bench.last]);
    let operation = Operation::new(Method::Acknowledge).event(id).comment("").by("bob");
    bench.machine.operate(&operation, at(99)).unwrap();
    let state = bench.machine.state();
    assert_eq!((state.comment.text.as_str(), &*state.user), ("why", "bob"));
}

#[test]
fn a_dialog_is_active_until_it_is_answered() {
    use crate::alarm::dialog::Dialog;
    let mut bench = Bench::new(Rules::default());
    assert_eq!(bench.call(Method::Respond), Err(StatusCode::BAD_METHOD_INVALID), "it is not a dialog");
    bench.machine.state.dialog = Some(Box::new(Dialog::new("Open the valve?", &["Yes", "No"])));
    assert_eq!(bench.call(Method::Respond), Err(StatusCode::BAD_DIALOG_NOT_ACTIVE));
    let notes = bench.machine.ask(at(5));
    assert_eq!(bench.tell(notes), [Change::Asked]);
    assert!(bench.machine.state().retain());
    assert_eq!(bench.call(Method::Respond).unwrap(), [Change::Called(Method::Respond)]);
    assert!(!bench.machine.state().retain());
}

#[test]
fn suppression_by_call_and_by_group_in_every_state() {
    for steps in 0..4u32.pow(4) {
        let mut machine = Bench::new(Rules::default()).machine;
        let (mut by_call, mut by_group) = (false, false);
        for step in 0..4 {
            let before = by_call || by_group;
            let notes = match steps / 4u32.pow(step) % 4 {
                0 | 1 => {
                    by_call = steps / 4u32.pow(step) % 4 == 0;
                    let method = if by_call { Method::Suppress } else { Method::Unsuppress };
                    machine.operate(&Operation::new(method), at(i64::from(step))).unwrap()
                }
                other => {
                    by_group = other == 2;
                    machine.group_suppresses(by_group, at(i64::from(step)))
                }
            };
            let after = by_call || by_group;
            assert_eq!(machine.state().suppressed, after, "{steps} {step}");
            assert_eq!(machine.state().suppressed_or_shelved(), after);
            assert_eq!(
                notes.len(),
                usize::from(before != after),
                "told if and only if it changes: {steps} {step}"
            );
        }
    }
    // A disabled condition reports nothing, but has the current state when it is enabled.
    let mut machine = Bench::new(Rules::default()).machine;
    machine.operate(&Operation::new(Method::Disable), at(0)).unwrap();
    assert!(machine.group_suppresses(true, at(1)).is_empty());
    machine.operate(&Operation::new(Method::Enable), at(2)).unwrap();
    assert!(machine.state().suppressed);
}

/// §5.5 to §5.8: each type has its Methods; a condition does not have those of types that it is not.
#[test]
fn methods_of_other_types_are_refused() {
    use Method as M;
    let condition = [M::Enable, M::Disable, M::AddComment].as_slice();
    let alarm = [
        M::TimedShelve,
        M::OneShotShelve,
        M::Unshelve,
        M::Suppress,
        M::Unsuppress,
        M::RemoveFromService,
        M::PlaceInService,
        M::Silence,
    ];
    let all = Rules { confirms: true, latches: true, on_delay: 5.0, ..Rules::default() };
    for (rules, has) in [
        (all.clone().without_alarm(false), condition.to_vec()),
        (all.clone().without_alarm(true), [condition, &[M::Acknowledge, M::Confirm]].concat()),
        (Rules::default(), [condition, &[M::Acknowledge], &alarm].concat()),
        (all, [condition, &[M::Acknowledge, M::Confirm, M::Reset], &alarm].concat()),
    ] {
        for method in Method::ALL {
            let mut bench = Bench::new(rules.clone());
            bench.found(YES, 500);
            bench.wait(10);
            let is_refused = bench.call(method) == Err(StatusCode::BAD_METHOD_INVALID);
            assert_eq!(is_refused, !has.contains(&method), "{method:?} {rules:?}");
        }
    }
}

/// A condition without acknowledgement is retained as long as the application says so.
#[test]
fn a_plain_condition_is_retained_while_it_is_set() {
    let mut bench = Bench::new(Rules { on_delay: 5_000.0, ..Rules::default() }.without_alarm(false));
    assert_eq!(bench.found(YES, 500), [Change::Active], "delays belong to alarms");
    assert_eq!(bench.shows(), [YES, YES, YES, YES]);
    assert_eq!(bench.found(YES, 700), [Change::Level]);
    assert_eq!(bench.shows(), [YES, YES, YES, YES]);
    assert_eq!(bench.found(NO, 700), [Change::Inactive]);
    assert_eq!(bench.shows(), [NO, YES, YES, NO]);
}
