//! States, transitions and their causes, without nodes (Part 16 §4.4.6).

use super::StateMachineType;
use crate::space::Arguments;

/// States and transitions of a type of state machines. States and transitions are numbered from 1 on, in the order in which
/// they are named here.
///
/// ```
/// use taktwerk::state_machine::Definition;
///
/// let door = Definition::new("DoorStateMachineType", "Closed")
///     .state("Opened")
///     .state("Locked")
///     .transition("Closed", "Opened", "Open")
///     .transition("Opened", "Closed", "Close")
///     .own_transition("Closed", "Locked")
///     .own_transition("Locked", "Closed");
/// # let _ = door;
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub(super) name: String,
    states: Vec<String>,
    /// Names of the states before and behind it, and of the Method that causes it.
    transitions: Vec<(String, String, Option<String>)>,
    inputs: Vec<(String, Inputs)>,
    /// The state, the name and the type.
    machines: Vec<(String, String, StateMachineType)>,
}

/// The names of arguments, and their DataTypes and ValueRanks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Inputs {
    pub(super) names: Vec<String>,
    pub(super) types: Vec<(u32, i32)>,
}

impl Definition {
    /// A type with its initial state.
    #[must_use]
    pub fn new(name: &str, initial: &str) -> Self {
        Self { name: name.to_owned(), states: vec![initial.to_owned()], ..Self::empty() }
    }

    fn empty() -> Self {
        let (name, states, transitions) = (String::new(), Vec::new(), Vec::new());
        Self { name, states, transitions, inputs: Vec::new(), machines: Vec::new() }
    }

    /// One more state.
    #[must_use]
    pub fn state(mut self, name: &str) -> Self {
        self.states.push(name.to_owned());
        self
    }

    /// A transition that clients cause by calling a Method; the application can make it too. Its name is made of its states:
    /// `ClosedToOpened`. One Method can cause several transitions, if they begin in different states.
    #[must_use]
    pub fn transition(mut self, from: &str, to: &str, cause: &str) -> Self {
        self.transitions.push((from.to_owned(), to.to_owned(), Some(cause.to_owned())));
        self
    }

    /// A transition that only the application makes.
    #[must_use]
    pub fn own_transition(mut self, from: &str, to: &str) -> Self {
        self.transitions.push((from.to_owned(), to.to_owned(), None));
        self
    }

    /// The arguments of a Method that causes transitions: [`Step::inputs`](super::Step::inputs) has them.
    ///
    /// ```
    /// # use taktwerk::state_machine::Definition;
    /// let valve = Definition::new("ValveStateMachineType", "Closed")
    ///     .state("Opened")
    ///     .transition("Closed", "Opened", "Open")
    ///     .inputs::<(f64, String)>("Open", ["percent", "reason"]);
    /// # let _ = valve;
    /// ```
    #[must_use]
    pub fn inputs<I: Arguments>(
        mut self,
        cause: &str,
        names: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let names = names.into_iter().map(str::to_owned).collect();
        self.inputs.push((cause.to_owned(), Inputs { names, types: I::types() }));
        self
    }

    /// A state machine inside a state (HasSubStateMachine): it begins in its initial state whenever the state is entered, and
    /// is not active in the other states.
    #[must_use]
    pub fn sub_machine(mut self, state: &str, name: &str, kind: &StateMachineType) -> Self {
        self.machines.push((state.to_owned(), name.to_owned(), kind.clone()));
        self
    }

    /// The machine, or what is wrong with it.
    pub(super) fn compile(self) -> Result<Machine, String> {
        let mut machine = Machine { states: self.states, ..Machine::default() };
        for (from, to, cause) in self.transitions {
            let state = |name: &String| {
                let found = machine.states.iter().position(|known| known == name);
                found.ok_or_else(|| format!("there is no state {name}: name it with state() first"))
            };
            let (at, next) = (state(&from)?, state(&to)?);
            let cause = cause.map(|cause| {
                machine.causes.iter().position(|known| *known == cause).unwrap_or_else(|| {
                    machine.causes.push(cause);
                    machine.causes.len() - 1
                })
            });
            if let Some(cause) = cause.filter(|cause| machine.on(at, *cause).is_some()) {
                let cause = machine.causes.get(cause).map_or("", String::as_str);
                return Err(format!("{cause} causes two transitions in the state {from}"));
            }
            machine.transitions.push(Transition { name: format!("{from}To{to}"), from: at, to: next, cause });
        }
        machine.inputs.resize(machine.causes.len(), Inputs::default());
        for (cause, inputs) in self.inputs {
            let at = machine
                .cause(&cause)
                .ok_or_else(|| format!("{cause} has inputs and causes no transition"))?;
            if inputs.names.len() != inputs.types.len() {
                return Err(format!(
                    "{cause} has {} names and {} types of inputs",
                    inputs.names.len(),
                    inputs.types.len()
                ));
            }
            if let Some(known) = machine.inputs.get_mut(at) {
                *known = inputs;
            }
        }
        for (state, name, kind) in self.machines {
            let found = machine.states.iter().position(|known| *known == state);
            let at = found.ok_or_else(|| format!("there is no state {state}: name it with state() first"))?;
            machine.machines.push(SubMachine { state: at, name, kind });
        }
        let transitions = machine.transitions.iter().map(|transition| &transition.name);
        let machines = machine.machines.iter().map(|sub| &sub.name);
        let mut names: Vec<&String> =
            machine.states.iter().chain(transitions).chain(&machine.causes).chain(machines).collect();
        names.sort_unstable();
        if names.first().is_some_and(|name| name.is_empty()) {
            return Err("a state or a Method has no name".to_owned());
        }
        // They are all children of the type.
        if let Some((twice, _)) = names.iter().zip(names.iter().skip(1)).find(|(one, other)| one == other) {
            return Err(format!(
                "{twice} is the name of two of its states, transitions, Methods and machines: rename one"
            ));
        }
        Ok(machine)
    }
}

/// A machine that is in order. States, transitions and causes are named by their indexes; state 0 is the initial one.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Machine {
    pub(super) states: Vec<String>,
    pub(super) transitions: Vec<Transition>,
    pub(super) causes: Vec<String>,
    /// The arguments of each cause.
    pub(super) inputs: Vec<Inputs>,
    pub(super) machines: Vec<SubMachine>,
}

/// A state machine inside a state.
#[derive(Debug, PartialEq)]
pub(super) struct SubMachine {
    pub(super) state: usize,
    pub(super) name: String,
    pub(super) kind: StateMachineType,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Transition {
    pub(super) name: String,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) cause: Option<usize>,
}

impl Machine {
    /// The transition that a cause leads to in a state; `None` if there is none.
    pub(super) fn on(&self, state: usize, cause: usize) -> Option<usize> {
        self.transitions
            .iter()
            .position(|transition| transition.from == state && transition.cause == Some(cause))
    }

    /// The transition between two states; `None` if there is none.
    pub(super) fn between(&self, from: usize, to: &str) -> Option<usize> {
        let is_it = |transition: &Transition| {
            transition.from == from && self.states.get(transition.to).is_some_and(|state| state == to)
        };
        self.transitions.iter().position(is_it)
    }

    pub(super) fn cause(&self, name: &str) -> Option<usize> {
        self.causes.iter().position(|cause| cause == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> Definition {
        Definition::new("Door", "Closed")
            .state("Opened")
            .state("Locked")
            .transition("Closed", "Opened", "Open")
            .transition("Opened", "Closed", "Close")
            .transition("Locked", "Opened", "Open")
            .own_transition("Closed", "Locked")
    }

    #[test]
    fn every_cause_and_target_in_every_state() {
        let machine = door().compile().unwrap();
        let name = |at: Option<usize>| at.map(|at| machine.transitions[at].name.as_str());
        let (open, close) = (machine.cause("Open").unwrap(), machine.cause("Close").unwrap());
        let on = |state| (name(machine.on(state, open)), name(machine.on(state, close)));
        assert_eq!(on(0), (Some("ClosedToOpened"), None));
        assert_eq!(on(1), (None, Some("OpenedToClosed")));
        assert_eq!(on(2), (Some("LockedToOpened"), None));
        let to = |state| ["Closed", "Opened", "Locked", "?"].map(|to| name(machine.between(state, to)));
        assert_eq!(to(0), [None, Some("ClosedToOpened"), Some("ClosedToLocked"), None]);
        assert_eq!(to(1), [Some("OpenedToClosed"), None, None, None]);
        assert_eq!(to(2), [None, Some("LockedToOpened"), None, None]);
        assert_eq!(machine.cause("Lock"), None);
    }

    #[test]
    fn what_is_not_in_order_is_said() {
        let problem = |definition: Definition| definition.compile().unwrap_err();
        assert!(problem(door().own_transition("Closed", "Ajar")).contains("no state Ajar"));
        assert!(
            problem(door().transition("Closed", "Locked", "Open"))
                .contains("Open causes two transitions in the state Closed")
        );
        assert!(
            problem(door().own_transition("Closed", "Locked")).contains("ClosedToLocked is the name of two")
        );
        assert!(problem(door().state("Close")).contains("Close is the name of two"));
        assert!(problem(door().state("")).contains("no name"));
        assert!(
            problem(door().inputs::<(f64,)>("Lock", ["force"])).contains("Lock has inputs and causes no")
        );
        assert!(problem(door().inputs::<(f64,)>("Open", [])).contains("Open has 0 names and 1 types"));
    }
}
