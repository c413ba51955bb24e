//! The states of connections, groups, writers and readers (Part 14 §6.2.1).

pub use taktwerk_schema::PubSubState;

/// A trigger of a state change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// It was enabled.
    Enable,
    /// It was disabled.
    Disable,
    /// Its parent became operational.
    ParentOperational,
    /// Its parent is no longer operational.
    ParentStopped,
    /// Everything it waits for is available: keys, a first message.
    Ready,
    /// A fault: keys expired, messages missing.
    Fault,
    /// The fault is gone, and there is nothing to wait for.
    Recovered,
}

/// The next state; unchanged if the trigger has no effect.
///
/// `parent` is whether the component's parent is operational.
#[must_use]
pub const fn next(state: PubSubState, trigger: Trigger, parent: bool) -> PubSubState {
    const DISABLED: i32 = PubSubState::DISABLED.0;
    const PAUSED: i32 = PubSubState::PAUSED.0;
    const OPERATIONAL: i32 = PubSubState::OPERATIONAL.0;
    const ERROR: i32 = PubSubState::ERROR.0;
    const PRE_OPERATIONAL: i32 = PubSubState::PRE_OPERATIONAL.0;
    match (state.0, trigger) {
        (_, Trigger::Disable) => PubSubState::DISABLED,
        (DISABLED, Trigger::Enable) if parent => PubSubState::PRE_OPERATIONAL,
        (DISABLED, Trigger::Enable) => PubSubState::PAUSED,
        (PAUSED, Trigger::ParentOperational) => PubSubState::PRE_OPERATIONAL,
        (OPERATIONAL | PRE_OPERATIONAL | ERROR, Trigger::ParentStopped) => PubSubState::PAUSED,
        (PRE_OPERATIONAL, Trigger::Ready) => PubSubState::OPERATIONAL,
        (OPERATIONAL | PRE_OPERATIONAL, Trigger::Fault) => PubSubState::ERROR,
        (ERROR, Trigger::Recovered | Trigger::Ready) => PubSubState::OPERATIONAL,
        _ => state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table() {
        use PubSubState as S;
        let all = [S::DISABLED, S::PAUSED, S::OPERATIONAL, S::ERROR, S::PRE_OPERATIONAL];
        for state in all {
            assert_eq!(next(state, Trigger::Disable, true), S::DISABLED);
        }
        assert_eq!(next(S::DISABLED, Trigger::Enable, true), S::PRE_OPERATIONAL);
        assert_eq!(next(S::DISABLED, Trigger::Enable, false), S::PAUSED);
        assert_eq!(next(S::PAUSED, Trigger::ParentOperational, true), S::PRE_OPERATIONAL);
        for state in [S::OPERATIONAL, S::ERROR, S::PRE_OPERATIONAL] {
            assert_eq!(next(state, Trigger::ParentStopped, false), S::PAUSED);
        }
        assert_eq!(next(S::PRE_OPERATIONAL, Trigger::Ready, true), S::OPERATIONAL);
        assert_eq!(next(S::OPERATIONAL, Trigger::Fault, true), S::ERROR);
        assert_eq!(next(S::ERROR, Trigger::Recovered, true), S::OPERATIONAL);
        // A disabled or paused component does not change by itself.
        for trigger in [Trigger::Ready, Trigger::Fault, Trigger::Recovered, Trigger::ParentOperational] {
            assert_eq!(next(S::DISABLED, trigger, true), S::DISABLED);
        }
        for trigger in [Trigger::Ready, Trigger::Fault, Trigger::Recovered] {
            assert_eq!(next(S::PAUSED, trigger, true), S::PAUSED);
        }
    }
}
