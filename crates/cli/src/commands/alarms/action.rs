//! Operations of the command line on alarms.

use super::AlarmsArgs;
use taktwerk_client::condition::{ConditionEvent, calls};
use taktwerk_schema::CallMethodRequest;
use taktwerk_types::StatusCode;

/// An operation on alarms.
pub(super) struct Action {
    /// The alarm, or "all".
    pub(super) which: String,
    /// The operation, for messages.
    pub(super) verb: &'static str,
    /// Whether an alarm needs it. Others are skipped if several alarms are selected.
    pub(super) applies: fn(&ConditionEvent) -> bool,
    /// Whether conditions may lack the Method, as dialogs do.
    pub(super) is_optional: bool,
    /// Builds the method call for an alarm.
    pub(super) call: Box<dyn Fn(&ConditionEvent) -> CallMethodRequest>,
}

impl Action {
    /// Whether the state already is the wanted one, or the condition does not have it, as a dialog. Not a failure if the
    /// operation is for all conditions.
    pub(super) fn is_not_needed(&self, status: StatusCode) -> bool {
        let is_there = [
            StatusCode::BAD_CONDITION_BRANCH_ALREADY_ACKED,
            StatusCode::BAD_CONDITION_BRANCH_ALREADY_CONFIRMED,
            StatusCode::BAD_CONDITION_ALREADY_SHELVED,
            StatusCode::BAD_CONDITION_NOT_SHELVED,
        ];
        is_there.contains(&status) || self.is_optional && status == StatusCode::BAD_METHOD_INVALID
    }
}

impl AlarmsArgs {
    /// The selected alarm and the operation.
    pub(super) fn action(&self) -> Option<Action> {
        type Call = Box<dyn Fn(&ConditionEvent) -> CallMethodRequest>;
        let (comment, time) = (self.comment.clone().unwrap_or_default(), self.time);
        let can_be_shelved: fn(&ConditionEvent) -> bool = |event| !event.shelving.is_empty();
        let (which, verb, applies, call): (_, _, fn(&ConditionEvent) -> bool, Call) = if let Some(which) =
            &self.acknowledge
        {
            let call = move |event: &ConditionEvent| {
                calls::acknowledge(&event.condition_id, &event.event_id, &comment)
            };
            (which, "acknowledge", |event| event.acked == Some(false), Box::new(call))
        } else if let Some(which) = &self.confirm {
            let call =
                move |event: &ConditionEvent| calls::confirm(&event.condition_id, &event.event_id, &comment);
            (which, "confirm", |event| event.confirmed == Some(false), Box::new(call))
        } else if let Some(which) = &self.on {
            let call = move |event: &ConditionEvent| {
                calls::add_comment(&event.condition_id, &event.event_id, &comment)
            };
            (which, "comment on", |_| true, Box::new(call))
        } else if let Some(which) = &self.shelve {
            let call = move |event: &ConditionEvent| match time {
                Some(time) => calls::timed_shelve(&event.condition_id, time.as_secs_f64() * 1e3),
                None => calls::one_shot_shelve(&event.condition_id),
            };
            (which, "shelve", can_be_shelved, Box::new(call))
        } else if let Some(which) = &self.unshelve {
            let call = |event: &ConditionEvent| calls::unshelve(&event.condition_id);
            (which, "unshelve", can_be_shelved, Box::new(call))
        } else {
            let call = |event: &ConditionEvent| calls::reset(&event.condition_id);
            (self.reset.as_ref()?, "reset", |event| event.active.is_some(), Box::new(call))
        };
        // Selected alarms have a state to acknowledge or confirm. Then the server must have the Method.
        let is_optional = self.acknowledge.is_none() && self.confirm.is_none();
        Some(Action { which: which.clone(), verb, applies, is_optional, call })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::Parser;

    /// A server without the Method has acknowledged nothing.
    #[test]
    fn a_missing_method_is_a_failure_unless_conditions_may_lack_it() {
        for (option, is_optional) in [
            ("--acknowledge", false),
            ("--confirm", false),
            ("--on", true),
            ("--shelve", true),
            ("--unshelve", true),
            ("--reset", true),
        ] {
            let words = ["taktwerk", "alarms", "localhost", option, "all", "--comment", "seen"];
            let words = &words[..if option == "--on" { 7 } else { 5 }];
            let crate::Command::Alarms(arguments) = Cli::parse_from(words).command else {
                panic!("{words:?}")
            };
            let action = arguments.action().unwrap();
            assert_eq!(action.is_not_needed(StatusCode::BAD_METHOD_INVALID), is_optional, "{option}");
            assert!(action.is_not_needed(StatusCode::BAD_CONDITION_NOT_SHELVED), "{option}");
        }
    }
}
