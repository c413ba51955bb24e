//! Application-defined state machines (Part 16).
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use taktwerk::state_machine::Definition;
//!
//! let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build()?;
//! let plant = server.namespace("urn:example");
//! let door = plant.state_machine_type(
//!     Definition::new("DoorStateMachineType", "Closed")
//!         .state("Opened")
//!         .state("Locked")
//!         .transition("Closed", "Opened", "Open")
//!         .transition("Opened", "Closed", "Close")
//!         .own_transition("Closed", "Locked")
//!         .own_transition("Locked", "Closed"),
//! )?;
//! let oven = plant.object("Oven").event_notifier().add()?;
//! let door = oven.state_machine("Door", &door, |_, step| {
//!     println!("from {} to {}", step.from, step.to);
//!     Ok(())
//! })?;
//! door.go_to("Locked")?; // clients cannot open it now
//! # Ok(())
//! # }
//! ```
//!
//! - `definition`: the definition, independent of nodes; `kind`: the nodes of a type; `shown`: variables and events, also for
//!   Programs.

mod definition;
mod kind;
mod shown;

pub use definition::Definition;
pub use kind::StateMachineType;
pub(crate) use shown::{Named, Shown};

use crate::error::BuildError;
use crate::lock::lock;
use crate::space::{Arguments, Node};
use core::cell::RefCell;
use core::fmt;
use std::sync::{Arc, Mutex};
use taktwerk_schema::ids::object_type_ids;
use taktwerk_server::callback::{CallContext, MethodCall, MethodHandler};
use taktwerk_types::{NodeId, StatusCode, Variant};

/// Called before each transition: decides on it and acts.
type Act = dyn Fn(&StateMachine, Step<'_>) -> Result<(), StatusCode> + Send + Sync;

/// A transition that is about to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Step<'a> {
    /// Its name: `ClosedToOpened`.
    pub transition: &'a str,
    /// The state before the transition.
    pub from: &'a str,
    /// The state after the transition.
    pub to: &'a str,
    /// The state that a sub-machine of the next state enters; `None` if all enter their initial states.
    pub inner: Option<&'a str>,
    /// The arguments of the causing Method.
    arguments: &'a [Variant],
    outputs: &'a Outputs<'a>,
}

/// The results of the causing Method: their types, and the values set by the application.
#[derive(Debug, PartialEq)]
struct Outputs<'a> {
    types: &'a [(u32, i32)],
    values: RefCell<Vec<Variant>>,
}

impl Step<'_> {
    /// The arguments of the causing Method, as declared by [`Definition::inputs`].
    ///
    /// # Errors
    /// Bad_InvalidArgument if the types differ, or if the application makes the transition without arguments.
    pub fn inputs<I: Arguments>(&self) -> Result<I, StatusCode> {
        let invalid = StatusCode::BAD_INVALID_ARGUMENT;
        if self.arguments.len() != I::types().len() {
            return Err(invalid);
        }
        I::from_variants(self.arguments.to_vec()).map_err(|_| invalid)
    }

    /// Sets the results of the causing Method, as declared by [`Definition::outputs`]. Results that are not set are null. They
    /// are discarded if the application makes the transition without a Method.
    ///
    /// # Errors
    /// Bad_TypeMismatch if other types are declared, unless no results are needed.
    pub fn set_outputs<O: Arguments>(&self, outputs: O) -> Result<(), StatusCode> {
        if *self.outputs.types != *O::types() {
            return if self.outputs.types.is_empty() { Ok(()) } else { Err(StatusCode::BAD_TYPE_MISMATCH) };
        }
        *self.outputs.values.borrow_mut() = outputs.into_variants();
        Ok(())
    }
}

struct Inner {
    shown: Shown,
    kind: StateMachineType,
    /// The Methods of the instance, in the order of the type's causes.
    methods: Vec<NodeId>,
    now: Mutex<Now>,
    act: Arc<Act>,
    /// The sub-machines, with their states.
    machines: Vec<(usize, StateMachine)>,
    /// Held while states change and are shown. Shared by a machine and its sub-machines: threads make transitions of both
    /// concurrently, and the last shown state must be the current one.
    changing: Arc<Mutex<()>>,
}

#[derive(Default)]
struct Now {
    /// `None`: the containing machine is in another state.
    state: Option<usize>,
    /// How often the state was entered or left by the containing machine.
    entered: u64,
    /// A transition is in progress, so no other one can begin.
    is_moving: bool,
}

/// A state machine. Clones refer to the same machine.
#[derive(Clone)]
pub struct StateMachine(Arc<Inner>);

impl fmt::Debug for StateMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateMachine").field("node", &self.0.shown.id).field("state", &self.state()).finish()
    }
}

impl Node {
    /// Adds a state machine of a type, in its initial state. `act` is called before each transition, on a worker thread if a
    /// client caused it. If it returns an error, the client receives the error, and the state does not change.
    ///
    /// # Errors
    /// The node has a child with that name.
    pub fn state_machine(
        &self,
        name: &str,
        kind: &StateMachineType,
        act: impl Fn(&StateMachine, Step<'_>) -> Result<(), StatusCode> + Send + Sync + 'static,
    ) -> Result<StateMachine, BuildError> {
        let mut object = self.object(name).of_type(kind.id().clone()).event_notifier();
        for optional in shown_members(kind, "") {
            object = object.with(&optional);
        }
        let machine =
            StateMachine::of(&object.add()?, name, kind, &(Arc::new(act) as Arc<Act>), &Arc::default())?;
        let changing = lock(&machine.0.changing);
        machine.enter();
        drop(changing);
        Ok(machine)
    }
}

/// The paths of the optional members of an instance and of its sub-machines.
fn shown_members(kind: &StateMachineType, path: &str) -> Vec<String> {
    let own = [
        "CurrentState/Name",
        "CurrentState/Number",
        "LastTransition/Name",
        "LastTransition/Number",
        "LastTransition/TransitionTime",
        "AvailableStates",
        "AvailableTransitions",
    ];
    let mut all: Vec<String> = own.iter().map(|member| format!("{path}{member}")).collect();
    for sub in &kind.machine().machines {
        all.extend(shown_members(&sub.kind, &format!("{path}{}/", sub.name)));
    }
    all
}

/// A Method of a state machine. It lives as long as its node.
struct Cause {
    machine: Arc<Inner>,
    cause: usize,
}

impl MethodHandler for Cause {
    fn call(&self, _: &CallContext, inputs: Vec<Variant>) -> MethodCall {
        let (machine, cause) = (StateMachine(Arc::clone(&self.machine)), self.cause);
        MethodCall::Blocking(Box::new(move || {
            // The state may have changed since the Method was executable.
            machine.make(StatusCode::BAD_NOT_EXECUTABLE, (Some(cause), &inputs), |state| {
                machine.0.kind.machine().on(state, cause)
            })
        }))
    }

    fn may_block(&self) -> bool {
        true
    }
}

impl StateMachine {
    /// The machine of an object, with its sub-machines. None of them has a state yet.
    fn of(
        node: &Node,
        name: &str,
        kind: &StateMachineType,
        act: &Arc<Act>,
        changing: &Arc<Mutex<()>>,
    ) -> Result<Self, BuildError> {
        let mut machines = Vec::new();
        for sub in &kind.machine().machines {
            let inside = kind.sub_of(node, &sub.name)?;
            machines.push((sub.state, Self::of(&inside, &sub.name, &sub.kind, act, changing)?));
        }
        let machine = Self(Arc::new(Inner {
            shown: Shown::new(node, name),
            kind: kind.clone(),
            methods: kind.methods_of(node)?,
            now: Mutex::default(),
            act: Arc::clone(act),
            machines,
            changing: Arc::clone(changing),
        }));
        for (cause, method) in machine.0.methods.iter().enumerate() {
            node.space.set_method(method, Arc::new(Cause { machine: Arc::clone(&machine.0), cause }))?;
        }
        let shown = &machine.0.shown;
        shown.set(&["AvailableStates"], kind.states().to_vec());
        shown.set(&["AvailableTransitions"], kind.transitions().to_vec());
        let changing = lock(&machine.0.changing);
        machine.leave();
        drop(changing);
        Ok(machine)
    }

    /// The name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.shown.name
    }

    /// A sub-machine by its name.
    #[must_use]
    pub fn sub_machine(&self, name: &str) -> Option<Self> {
        self.0.machines.iter().map(|(_, machine)| machine).find(|machine| machine.name() == name).cloned()
    }

    /// Enters the initial state because the containing state is entered.
    fn enter(&self) {
        self.place(Some(0));
    }

    /// Becomes inactive because the containing state is left.
    fn leave(&self) {
        self.place(None);
    }

    /// Enters a state because a transition of the containing machine leads to it.
    fn enter_at(&self, state: usize) {
        self.place(Some(state));
    }

    /// Sets the state. The caller must hold [`Inner::changing`].
    fn place(&self, state: Option<usize>) {
        {
            let mut now = lock(&self.0.now);
            now.state = state;
            now.entered += 1;
        }
        self.show(state);
        if state.is_some() {
            self.0.shown.show_no_transition();
        }
        for (inside, machine) in &self.0.machines {
            if Some(*inside) == state { machine.enter() } else { machine.leave() }
        }
    }

    /// The object; `None` if the server has stopped.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        self.0.shown.node()
    }

    /// The name of the current state; empty if the machine is a sub-machine of a state that is not active.
    #[must_use]
    pub fn state(&self) -> &str {
        let state = lock(&self.0.now).state;
        state.and_then(|state| self.0.kind.machine().states.get(state)).map_or("", String::as_str)
    }

    /// Makes the transition to another state.
    ///
    /// # Errors
    /// Bad_InvalidState if there is no transition from the current state, or another one is in progress; or the error of the
    /// application.
    pub fn go_to(&self, state: &str) -> Result<(), StatusCode> {
        let machine = self.0.kind.machine();
        self.make(StatusCode::BAD_INVALID_STATE, (None, &[]), |now| machine.between(now, state)).map(drop)
    }

    /// Makes the transition that leads to a state of a sub-machine.
    ///
    /// # Errors
    /// As [`Self::go_to`].
    pub fn go_into(&self, machine: &str, state: &str) -> Result<(), StatusCode> {
        let own = self.0.kind.machine();
        self.make(StatusCode::BAD_INVALID_STATE, (None, &[]), |now| own.between_inside(now, machine, state))
            .map(drop)
    }

    /// Performs a Method, as if a client had called it.
    ///
    /// # Errors
    /// Bad_InvalidState if the Method causes no transition in the current state, or another one is in progress; or the error of
    /// the application.
    pub fn cause(&self, method: &str) -> Result<(), StatusCode> {
        self.cause_with(method, ())
    }

    /// Performs a Method with arguments.
    ///
    /// # Errors
    /// As [`Self::cause`].
    pub fn cause_with(&self, method: &str, inputs: impl Arguments) -> Result<(), StatusCode> {
        self.cause_by(method, inputs).map(drop)
    }

    /// Performs a Method and returns its results.
    ///
    /// # Errors
    /// As [`Self::cause`]; Bad_TypeMismatch if the results have other types, although the transition was made.
    pub fn cause_for<O: Arguments>(&self, method: &str, inputs: impl Arguments) -> Result<O, StatusCode> {
        let outputs = self.cause_by(method, inputs)?;
        let mismatch = StatusCode::BAD_TYPE_MISMATCH;
        if outputs.len() != O::types().len() {
            return Err(mismatch);
        }
        O::from_variants(outputs).map_err(|_| mismatch)
    }

    fn cause_by(&self, method: &str, inputs: impl Arguments) -> Result<Vec<Variant>, StatusCode> {
        let machine = self.0.kind.machine();
        let (cause, inputs) = (machine.cause(method), inputs.into_variants());
        self.make(StatusCode::BAD_INVALID_STATE, (cause, &inputs), |now| machine.on(now, cause?))
    }

    fn make(
        &self,
        refusal: StatusCode,
        (cause, arguments): (Option<usize>, &[Variant]),
        choose: impl FnOnce(usize) -> Option<usize>,
    ) -> Result<Vec<Variant>, StatusCode> {
        let kind = &self.0.kind;
        let (transition, entered) = {
            let mut now = lock(&self.0.now);
            let transition = now.state.and_then(choose).filter(|_| !now.is_moving).ok_or(refusal)?;
            now.is_moving = true;
            (transition, now.entered)
        };
        // Ends the transition even if the application returns an error or panics.
        let _moving = Moving(self);
        let (Some(shown), Some((from, to, into))) = (kind.transition(transition), kind.ends(transition))
        else {
            return Err(StatusCode::BAD_INTERNAL_ERROR);
        };
        let (Some(before), Some(behind)) = (kind.state(from), kind.state(to)) else {
            return Err(StatusCode::BAD_INTERNAL_ERROR);
        };
        // Without the lock: `act` may ask for the state, and may take long.
        let types = cause.and_then(|cause| kind.machine().outputs.get(cause));
        let types = types.map_or(&[][..], |declared| &declared.types);
        let outputs = Outputs { types, values: RefCell::default() };
        let inner = into.and_then(|into| kind.inner_state(into));
        let (transition, from_name, to_name) = (shown.name, before.name, behind.name);
        let step = Step { transition, from: from_name, to: to_name, inner, arguments, outputs: &outputs };
        (self.0.act)(self, step)?;
        let _changing = lock(&self.0.changing);
        {
            let mut now = lock(&self.0.now);
            if now.entered != entered {
                // The containing state was left in the meantime.
                return Err(StatusCode::BAD_STATE_NOT_ACTIVE);
            }
            now.state = Some(to);
        }
        self.show(Some(to));
        // A transition to the same state leaves and enters it.
        self.0.machines.iter().filter(|(inside, _)| *inside == from).for_each(|(_, machine)| machine.leave());
        for (at, (_, machine)) in self.0.machines.iter().enumerate().filter(|(_, (inside, _))| *inside == to)
        {
            match into.filter(|(sub, _)| *sub == at) {
                Some((_, state)) => machine.enter_at(state),
                None => machine.enter(),
            }
        }
        self.0.shown.show_transition(&shown);
        self.0.shown.raise(object_type_ids::TRANSITION_EVENT_TYPE, &shown, (&before, &behind));
        let mut outputs = outputs.values.into_inner();
        outputs.resize(types.len(), Variant::Empty);
        Ok(outputs)
    }

    /// Shows a state: its name, and which Methods are executable in it (Part 16 §4.4.2).
    fn show(&self, state: Option<usize>) {
        let kind = &self.0.kind;
        match state.and_then(|state| kind.state(state)) {
            Some(named) => self.0.shown.show_state(&named),
            None => self.0.shown.show_inactive(),
        }
        let Some(node) = self.node() else { return };
        for (cause, method) in self.0.methods.iter().enumerate() {
            // The node may already be deleted.
            let _ = node
                .space
                .set_executable(method, state.is_some_and(|state| kind.machine().on(state, cause).is_some()));
        }
    }
}

/// The current transition.
struct Moving<'a>(&'a StateMachine);

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        lock(&self.0.0.now).is_moving = false;
    }
}
