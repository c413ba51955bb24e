//! Definition of states, transitions and causes, independent of nodes (Part 16 §4.4.6).

use super::StateMachineType;
use crate::space::Arguments;

/// States and transitions of a state machine type. Both are numbered from 1 in the order of their definition.
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
    transitions: Vec<Named>,
    inputs: Vec<(String, Inputs)>,
    outputs: Vec<(String, Inputs)>,
    /// State, name and type.
    machines: Vec<(String, String, StateMachineType)>,
}

/// A transition, with the names of its states.
#[derive(Debug, Clone, PartialEq)]
struct Named {
    from: String,
    to: Target,
    /// The Method that causes it.
    cause: Option<String>,
}

/// The target of a transition.
#[derive(Debug, Clone, PartialEq)]
enum Target {
    State(String),
    /// A state of a sub-machine: the machine and the state.
    Inside(String, String),
}

/// Names, DataTypes and ValueRanks of arguments.
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
        Self { name, states, transitions, inputs: Vec::new(), outputs: Vec::new(), machines: Vec::new() }
    }

    /// Adds a state.
    #[must_use]
    pub fn state(mut self, name: &str) -> Self {
        self.states.push(name.to_owned());
        self
    }

    /// Adds a transition that clients cause by calling a Method; the application can make it too. Its name consists of its
    /// states: `ClosedToOpened`. One Method can cause several transitions that begin in different states.
    #[must_use]
    pub fn transition(self, from: &str, to: &str, cause: &str) -> Self {
        self.joined(from, Target::State(to.to_owned()), Some(cause))
    }

    fn joined(mut self, from: &str, to: Target, cause: Option<&str>) -> Self {
        self.transitions.push(Named { from: from.to_owned(), to, cause: cause.map(str::to_owned) });
        self
    }

    /// Adds a transition, caused by a Method, to a certain state of a [sub-machine](Self::sub_machine): the sub-machine enters
    /// that state instead of its initial state (Part 16 §4.4.10). Its name consists of the state before and that state:
    /// `StoppedToFast`.
    #[must_use]
    pub fn transition_into(self, from: &str, machine: &str, state: &str, cause: &str) -> Self {
        self.joined(from, Target::Inside(machine.to_owned(), state.to_owned()), Some(cause))
    }

    /// The same for a transition that only the application makes.
    #[must_use]
    pub fn own_transition_into(self, from: &str, machine: &str, state: &str) -> Self {
        self.joined(from, Target::Inside(machine.to_owned(), state.to_owned()), None)
    }

    /// Adds a transition that only the application makes.
    #[must_use]
    pub fn own_transition(self, from: &str, to: &str) -> Self {
        self.joined(from, Target::State(to.to_owned()), None)
    }

    /// Declares the arguments of a Method that causes transitions: [`Step::inputs`](super::Step::inputs) returns them.
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

    /// Declares the results of a Method that causes transitions: [`Step::set_outputs`](super::Step::set_outputs) sets them.
    #[must_use]
    pub fn outputs<O: Arguments>(
        mut self,
        cause: &str,
        names: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let names = names.into_iter().map(str::to_owned).collect();
        self.outputs.push((cause.to_owned(), Inputs { names, types: O::types() }));
        self
    }

    /// Adds a state machine inside a state (HasSubStateMachine). It enters its initial state whenever the state is entered, and
    /// is inactive in the other states.
    #[must_use]
    pub fn sub_machine(mut self, state: &str, name: &str, kind: &StateMachineType) -> Self {
        self.machines.push((state.to_owned(), name.to_owned(), kind.clone()));
        self
    }

    /// Checks the definition and compiles it.
    pub(super) fn compile(self) -> Result<Machine, String> {
        let mut machine = Machine { states: self.states, ..Machine::default() };
        for (state, name, kind) in self.machines {
            let at = machine.state(&state)?;
            machine.machines.push(SubMachine { state: at, name, kind });
        }
        for Named { from, to, cause } in self.transitions {
            let at = machine.state(&from)?;
            let (next, into, target) = match to {
                Target::State(to) => (machine.state(&to)?, None, to),
                Target::Inside(sub, state) => {
                    let (next, into) = machine.inside(&sub, &state)?;
                    (next, Some(into), state)
                }
            };
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
            let name = format!("{from}To{target}");
            machine.transitions.push(Transition { name, from: at, to: next, into, cause });
        }
        machine.inputs = machine.arguments(self.inputs, "inputs")?;
        machine.outputs = machine.arguments(self.outputs, "outputs")?;
        let transitions = machine.transitions.iter().map(|transition| &transition.name);
        let machines = machine.machines.iter().map(|sub| &sub.name);
        let mut names: Vec<&String> =
            machine.states.iter().chain(transitions).chain(&machine.causes).chain(machines).collect();
        names.sort_unstable();
        if names.first().is_some_and(|name| name.is_empty()) {
            return Err("a state or a Method has no name".to_owned());
        }
        // They are all children of the type, so names must be unique.
        if let Some((twice, _)) = names.iter().zip(names.iter().skip(1)).find(|(one, other)| one == other) {
            return Err(format!(
                "{twice} is the name of two of its states, transitions, Methods and machines: rename one"
            ));
        }
        Ok(machine)
    }
}

/// A valid machine. States, transitions and causes are identified by index; state 0 is the initial one.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Machine {
    pub(super) states: Vec<String>,
    pub(super) transitions: Vec<Transition>,
    pub(super) causes: Vec<String>,
    /// The arguments of each cause.
    pub(super) inputs: Vec<Inputs>,
    /// The results of each cause.
    pub(super) outputs: Vec<Inputs>,
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
    /// The sub-machine of the target state, and the state that it enters instead of its initial one.
    pub(super) into: Option<(usize, usize)>,
    pub(super) cause: Option<usize>,
}

impl Machine {
    fn state(&self, name: &str) -> Result<usize, String> {
        let found = self.states.iter().position(|known| known == name);
        found.ok_or_else(|| format!("there is no state {name}: name it with state() first"))
    }

    /// Finds a state of a sub-machine: the containing state, the machine, and its state.
    fn inside(&self, machine: &str, state: &str) -> Result<(usize, (usize, usize)), String> {
        let at = self.machines.iter().position(|known| known.name == machine);
        let (at, sub) = at
            .and_then(|at| Some((at, self.machines.get(at)?)))
            .ok_or_else(|| format!("there is no machine {machine}: name it with sub_machine()"))?;
        let inner = sub.kind.machine().states.iter().position(|known| known == state);
        let inner = inner.ok_or_else(|| format!("the machine {machine} has no state {state}"))?;
        Ok((sub.state, (at, inner)))
    }

    /// The arguments of each cause.
    fn arguments(&self, given: Vec<(String, Inputs)>, what: &str) -> Result<Vec<Inputs>, String> {
        let mut all = vec![Inputs::default(); self.causes.len()];
        for (cause, arguments) in given {
            let at = self.cause(&cause).and_then(|at| all.get_mut(at));
            let known = at.ok_or_else(|| format!("{cause} has {what} and causes no transition"))?;
            let (names, types) = (arguments.names.len(), arguments.types.len());
            if names != types {
                return Err(format!("{cause} has {names} names and {types} types of {what}"));
            }
            *known = arguments;
        }
        Ok(all)
    }

    /// The transition that a cause makes in a state; `None` if there is none.
    pub(super) fn on(&self, state: usize, cause: usize) -> Option<usize> {
        self.transitions
            .iter()
            .position(|transition| transition.from == state && transition.cause == Some(cause))
    }

    /// The transition between two states; `None` if there is none.
    pub(super) fn between(&self, from: usize, to: &str) -> Option<usize> {
        let is_it = |transition: &Transition| {
            transition.from == from
                && transition.into.is_none()
                && self.states.get(transition.to).is_some_and(|state| state == to)
        };
        self.transitions.iter().position(is_it)
    }

    /// The transition from a state to a state of a sub-machine; `None` if there is none.
    pub(super) fn between_inside(&self, from: usize, machine: &str, state: &str) -> Option<usize> {
        let (_, into) = self.inside(machine, state).ok()?;
        self.transitions
            .iter()
            .position(|transition| transition.from == from && transition.into == Some(into))
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
    fn invalid_definitions_are_rejected() {
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
        assert!(problem(door().outputs::<(f64,)>("Lock", ["x"])).contains("Lock has outputs and causes no"));
        assert!(
            problem(door().transition_into("Closed", "Motor", "Fast", "Run")).contains("no machine Motor")
        );
    }
}
