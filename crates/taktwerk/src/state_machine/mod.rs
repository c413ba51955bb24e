//! State machines of an application's own types (Part 16).
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
//! - `definition`: the machine without nodes; `kind`: the nodes of its type; `shown`: variables and events, for Programs too.

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

/// Decides on transitions and acts on them: it is asked before each one.
type Act = dyn Fn(&StateMachine, Step<'_>) -> Result<(), StatusCode> + Send + Sync;

/// A transition that is about to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Step<'a> {
    /// Its name: `ClosedToOpened`.
    pub transition: &'a str,
    /// The state before it.
    pub from: &'a str,
    /// The state behind it.
    pub to: &'a str,
    /// The state of a machine inside the state behind it that it goes to; `None`: all of them begin in their initial states.
    pub inner: Option<&'a str>,
    /// The arguments of the Method that causes it.
    arguments: &'a [Variant],
    outputs: &'a Outputs<'a>,
}

/// The results of the Method that causes a transition: their types, and what the application has set.
#[derive(Debug, PartialEq)]
struct Outputs<'a> {
    types: &'a [(u32, i32)],
    values: RefCell<Vec<Variant>>,
}

impl Step<'_> {
    /// The arguments of the Method that causes it, as [`Definition::inputs`] has declared them.
    ///
    /// # Errors
    /// Bad_InvalidArgument if they are others, as for a transition that the application makes without arguments.
    pub fn inputs<I: Arguments>(&self) -> Result<I, StatusCode> {
        let invalid = StatusCode::BAD_INVALID_ARGUMENT;
        if self.arguments.len() != I::types().len() {
            return Err(invalid);
        }
        I::from_variants(self.arguments.to_vec()).map_err(|_| invalid)
    }

    /// What the Method that causes it returns, as [`Definition::outputs`] has declared it. What is not set is null. If the
    /// application makes the transition without a Method, nobody gets them.
    ///
    /// # Errors
    /// Bad_TypeMismatch if others are declared, unless none are needed.
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
    /// Its own Methods, as the causes of its type are numbered.
    methods: Vec<NodeId>,
    now: Mutex<Now>,
    act: Arc<Act>,
    /// The machines inside its states, and those states.
    machines: Vec<(usize, StateMachine)>,
    /// Held while states change and are shown, one for a machine and those inside it: threads make transitions of both at the
    /// same time, and what is shown last must be the last state.
    changing: Arc<Mutex<()>>,
}

#[derive(Default)]
struct Now {
    /// `None`: it is inside a state of another machine, which is in another one.
    state: Option<usize>,
    /// How often it was entered or left from outside.
    entered: u64,
    /// A transition is under way: no other one can begin.
    is_moving: bool,
}

/// A state machine. Clones are the same one.
#[derive(Clone)]
pub struct StateMachine(Arc<Inner>);

impl fmt::Debug for StateMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateMachine").field("node", &self.0.shown.id).field("state", &self.state()).finish()
    }
}

impl Node {
    /// Adds a state machine of a type, in its initial state. `act` is called before each transition, on a worker thread if a
    /// client has caused it; if it returns an error, the client gets that, and the state stays.
    ///
    /// # Errors
    /// The node has such a child already.
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

/// The optional members of an instance and of the machines inside it, by their paths.
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

/// A Method of a state machine, which lives as long as the address space has it.
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
    /// That of an object, and those of the objects inside it. None of them is in a state yet.
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

    /// Its name, that of its object.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.shown.name
    }

    /// A state machine inside one of its states, by its name.
    #[must_use]
    pub fn sub_machine(&self, name: &str) -> Option<Self> {
        self.0.machines.iter().map(|(_, machine)| machine).find(|machine| machine.name() == name).cloned()
    }

    /// Goes to its initial state, because the state that it is inside of is entered.
    fn enter(&self) {
        self.place(Some(0));
    }

    /// Is in no state, because the state that it is inside of is left.
    fn leave(&self) {
        self.place(None);
    }

    /// Goes to a state, because a transition leads to that state inside another one.
    fn enter_at(&self, state: usize) {
        self.place(Some(state));
    }

    /// The caller holds [`Inner::changing`].
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

    /// The object; `None` if the server is gone.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        self.0.shown.node()
    }

    /// The name of the state; empty if the machine is inside a state that another one is not in.
    #[must_use]
    pub fn state(&self) -> &str {
        let state = lock(&self.0.now).state;
        state.and_then(|state| self.0.kind.machine().states.get(state)).map_or("", String::as_str)
    }

    /// Makes the transition to another state.
    ///
    /// # Errors
    /// Bad_InvalidState if there is none from the present state, or another transition is under way; else what the
    /// application says.
    pub fn go_to(&self, state: &str) -> Result<(), StatusCode> {
        let machine = self.0.kind.machine();
        self.make(StatusCode::BAD_INVALID_STATE, (None, &[]), |now| machine.between(now, state)).map(drop)
    }

    /// Makes the transition that goes directly to a state of a machine inside a state.
    ///
    /// # Errors
    /// As [`Self::go_to`].
    pub fn go_into(&self, machine: &str, state: &str) -> Result<(), StatusCode> {
        let own = self.0.kind.machine();
        self.make(StatusCode::BAD_INVALID_STATE, (None, &[]), |now| own.between_inside(now, machine, state))
            .map(drop)
    }

    /// Does what a Method does.
    ///
    /// # Errors
    /// Bad_InvalidState if it causes nothing in the present state, or another transition is under way; else what the
    /// application says.
    pub fn cause(&self, method: &str) -> Result<(), StatusCode> {
        self.cause_with(method, ())
    }

    /// Does what a Method with arguments does.
    ///
    /// # Errors
    /// As [`Self::cause`].
    pub fn cause_with(&self, method: &str, inputs: impl Arguments) -> Result<(), StatusCode> {
        self.cause_by(method, inputs).map(drop)
    }

    /// Does what a Method does, and gives what it returns.
    ///
    /// # Errors
    /// As [`Self::cause`], and Bad_TypeMismatch if the Method returns something else; the transition has been made then.
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
        // Ends the transition when the application refuses it or panics, too.
        let _moving = Moving(self);
        let (Some(shown), Some((from, to, into))) = (kind.transition(transition), kind.ends(transition))
        else {
            return Err(StatusCode::BAD_INTERNAL_ERROR);
        };
        let (Some(before), Some(behind)) = (kind.state(from), kind.state(to)) else {
            return Err(StatusCode::BAD_INTERNAL_ERROR);
        };
        // Without the lock: it may ask for the state, and take its time.
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
                // Meanwhile the state that it is inside of was left.
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

    /// Shows a state: its name, and which Methods cause something in it (Part 16 §4.4.2).
    fn show(&self, state: Option<usize>) {
        let kind = &self.0.kind;
        match state.and_then(|state| kind.state(state)) {
            Some(named) => self.0.shown.show_state(&named),
            None => self.0.shown.show_inactive(),
        }
        let Some(node) = self.node() else { return };
        for (cause, method) in self.0.methods.iter().enumerate() {
            // Somebody may have deleted it.
            let _ = node
                .space
                .set_executable(method, state.is_some_and(|state| kind.machine().on(state, cause).is_some()));
        }
    }
}

/// A transition under way.
struct Moving<'a>(&'a StateMachine);

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        lock(&self.0.0.now).is_moving = false;
    }
}
