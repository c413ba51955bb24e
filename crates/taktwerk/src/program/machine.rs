//! The states of a Program as a pure state machine (Part 10 §5.2.3).

use taktwerk_schema::ids::object_ids;

/// A state of a Program (Part 10 §5.2.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The Program can be started.
    Ready,
    /// The Program runs.
    Running,
    /// The Program was suspended and can be resumed.
    Suspended,
    /// The Program has ended or failed, and must be reset.
    Halted,
}

/// A transition of a Program (Part 10 §5.2.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the specification's
pub enum Transition {
    HaltedToReady,
    ReadyToRunning,
    RunningToHalted,
    RunningToReady,
    RunningToSuspended,
    SuspendedToRunning,
    SuspendedToHalted,
    SuspendedToReady,
    ReadyToHalted,
}

/// A command of a client (Part 10 §5.2.3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the specification's
pub enum Command {
    Start,
    Suspend,
    Resume,
    Halt,
    Reset,
}

impl State {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Ready, Self::Running, Self::Suspended, Self::Halted];

    /// The name of the state's object.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Running => "Running",
            Self::Suspended => "Suspended",
            Self::Halted => "Halted",
        }
    }

    /// The StateNumber.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Halted => 11,
            Self::Ready => 12,
            Self::Running => 13,
            Self::Suspended => 14,
        }
    }

    /// The state's object in namespace 0.
    #[must_use]
    pub const fn object_id(self) -> u32 {
        match self {
            Self::Ready => object_ids::PROGRAM_STATE_MACHINE_TYPE_READY,
            Self::Running => object_ids::PROGRAM_STATE_MACHINE_TYPE_RUNNING,
            Self::Suspended => object_ids::PROGRAM_STATE_MACHINE_TYPE_SUSPENDED,
            Self::Halted => object_ids::PROGRAM_STATE_MACHINE_TYPE_HALTED,
        }
    }

    /// The transition caused by a command in this state; `None` if the command is not allowed.
    #[must_use]
    pub const fn on(self, command: Command) -> Option<Transition> {
        match (self, command) {
            (Self::Ready, Command::Start) => Some(Transition::ReadyToRunning),
            (Self::Ready, Command::Halt) => Some(Transition::ReadyToHalted),
            (Self::Running, Command::Suspend) => Some(Transition::RunningToSuspended),
            (Self::Running, Command::Halt) => Some(Transition::RunningToHalted),
            (Self::Suspended, Command::Resume) => Some(Transition::SuspendedToRunning),
            (Self::Suspended, Command::Halt) => Some(Transition::SuspendedToHalted),
            (Self::Halted, Command::Reset) => Some(Transition::HaltedToReady),
            _ => None,
        }
    }

    /// The transition to another state; `None` if there is none.
    #[must_use]
    pub fn to(self, other: Self) -> Option<Transition> {
        Transition::ALL.into_iter().find(|transition| transition.from() == self && transition.to() == other)
    }
}

impl Transition {
    /// All transitions, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::HaltedToReady,
        Self::ReadyToRunning,
        Self::RunningToHalted,
        Self::RunningToReady,
        Self::RunningToSuspended,
        Self::SuspendedToRunning,
        Self::SuspendedToHalted,
        Self::SuspendedToReady,
        Self::ReadyToHalted,
    ];

    /// The name of the transition's object.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HaltedToReady => "HaltedToReady",
            Self::ReadyToRunning => "ReadyToRunning",
            Self::RunningToHalted => "RunningToHalted",
            Self::RunningToReady => "RunningToReady",
            Self::RunningToSuspended => "RunningToSuspended",
            Self::SuspendedToRunning => "SuspendedToRunning",
            Self::SuspendedToHalted => "SuspendedToHalted",
            Self::SuspendedToReady => "SuspendedToReady",
            Self::ReadyToHalted => "ReadyToHalted",
        }
    }

    /// The TransitionNumber.
    #[must_use]
    pub fn number(self) -> u32 {
        let position = Self::ALL.iter().position(|known| *known == self);
        u32::try_from(position.map_or(0, |at| at + 1)).unwrap_or(0)
    }

    /// The transition's object in namespace 0.
    #[must_use]
    pub const fn object_id(self) -> u32 {
        use object_ids as o;
        match self {
            Self::HaltedToReady => o::PROGRAM_STATE_MACHINE_TYPE_HALTED_TO_READY,
            Self::ReadyToRunning => o::PROGRAM_STATE_MACHINE_TYPE_READY_TO_RUNNING,
            Self::RunningToHalted => o::PROGRAM_STATE_MACHINE_TYPE_RUNNING_TO_HALTED,
            Self::RunningToReady => o::PROGRAM_STATE_MACHINE_TYPE_RUNNING_TO_READY,
            Self::RunningToSuspended => o::PROGRAM_STATE_MACHINE_TYPE_RUNNING_TO_SUSPENDED,
            Self::SuspendedToRunning => o::PROGRAM_STATE_MACHINE_TYPE_SUSPENDED_TO_RUNNING,
            Self::SuspendedToHalted => o::PROGRAM_STATE_MACHINE_TYPE_SUSPENDED_TO_HALTED,
            Self::SuspendedToReady => o::PROGRAM_STATE_MACHINE_TYPE_SUSPENDED_TO_READY,
            Self::ReadyToHalted => o::PROGRAM_STATE_MACHINE_TYPE_READY_TO_HALTED,
        }
    }

    /// The state before the transition.
    #[must_use]
    pub const fn from(self) -> State {
        match self {
            Self::HaltedToReady => State::Halted,
            Self::ReadyToRunning | Self::ReadyToHalted => State::Ready,
            Self::RunningToHalted | Self::RunningToReady | Self::RunningToSuspended => State::Running,
            Self::SuspendedToRunning | Self::SuspendedToHalted | Self::SuspendedToReady => State::Suspended,
        }
    }

    /// Whether the execution has ended after it.
    #[must_use]
    pub const fn ends_execution(self) -> bool {
        matches!(
            self,
            Self::RunningToHalted
                | Self::SuspendedToHalted
                | Self::ReadyToHalted
                | Self::RunningToReady
                | Self::SuspendedToReady
        )
    }

    /// The state after the transition.
    #[must_use]
    pub const fn to(self) -> State {
        match self {
            Self::HaltedToReady | Self::RunningToReady | Self::SuspendedToReady => State::Ready,
            Self::ReadyToRunning | Self::SuspendedToRunning => State::Running,
            Self::RunningToHalted | Self::SuspendedToHalted | Self::ReadyToHalted => State::Halted,
            Self::RunningToSuspended => State::Suspended,
        }
    }
}

impl Command {
    /// All commands.
    pub const ALL: [Self; 5] = [Self::Start, Self::Suspend, Self::Resume, Self::Halt, Self::Reset];

    /// The name of the Method.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "Start",
            Self::Suspend => "Suspend",
            Self::Resume => "Resume",
            Self::Halt => "Halt",
            Self::Reset => "Reset",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::ns0::Ns0;

    #[test]
    fn every_command_in_every_state() {
        use State as S;
        use Transition as T;
        // Start, Suspend, Resume, Halt, Reset: Part 10 §5.2.3.4.
        let table = [
            (S::Ready, [Some(T::ReadyToRunning), None, None, Some(T::ReadyToHalted), None]),
            (S::Running, [None, Some(T::RunningToSuspended), None, Some(T::RunningToHalted), None]),
            (S::Suspended, [None, None, Some(T::SuspendedToRunning), Some(T::SuspendedToHalted), None]),
            (S::Halted, [None, None, None, None, Some(T::HaltedToReady)]),
        ];
        for (state, expected) in table {
            assert_eq!(Command::ALL.map(|command| state.on(command)), expected, "{state:?}");
        }
    }

    #[test]
    fn names_and_ends_are_those_of_the_objects() {
        let name = |id: u32| Ns0::get().node(id).unwrap().browse_name();
        for state in State::ALL {
            assert_eq!(name(state.object_id()), state.name());
            for other in State::ALL {
                let wanted = format!("{}To{}", state.name(), other.name());
                let known = Transition::ALL.into_iter().find(|transition| transition.name() == wanted);
                assert_eq!(state.to(other), known, "{wanted}");
            }
        }
        for transition in Transition::ALL {
            assert_eq!(name(transition.object_id()), transition.name());
            assert_eq!(
                transition.name(),
                format!("{}To{}", transition.from().name(), transition.to().name())
            );
        }
        let numbers = Transition::ALL.map(Transition::number);
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }
}
