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
use crate::space::Node;
use core::fmt;
use std::sync::{Arc, Mutex};
use taktwerk_schema::ids::object_type_ids;
use taktwerk_server::callback::{CallContext, MethodCall, MethodHandler};
use taktwerk_types::{NodeId, StatusCode, Variant};

/// Decides on transitions and acts on them: it is asked before each one.
type Act = dyn Fn(&StateMachine, Step<'_>) -> Result<(), StatusCode> + Send + Sync;

/// A transition that is about to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step<'a> {
    /// Its name: `ClosedToOpened`.
    pub transition: &'a str,
    /// The state before it.
    pub from: &'a str,
    /// The state behind it.
    pub to: &'a str,
}

struct Inner {
    shown: Shown,
    kind: StateMachineType,
    /// Its own Methods, as the causes of its type are numbered.
    methods: Vec<NodeId>,
    now: Mutex<Now>,
    act: Box<Act>,
}

#[derive(Default)]
struct Now {
    state: usize,
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
        for optional in [
            "CurrentState/Name",
            "CurrentState/Number",
            "LastTransition/Name",
            "LastTransition/Number",
            "LastTransition/TransitionTime",
            "AvailableStates",
            "AvailableTransitions",
        ] {
            object = object.with(optional);
        }
        let node = object.add()?;
        let methods = kind.methods_of(&node)?;
        let machine = StateMachine(Arc::new(Inner {
            shown: Shown::new(&node, name),
            kind: kind.clone(),
            methods,
            now: Mutex::default(),
            act: Box::new(act),
        }));
        for (cause, method) in machine.0.methods.iter().enumerate() {
            node.space.set_method(method, Arc::new(Cause { machine: Arc::clone(&machine.0), cause }))?;
        }
        let shown = &machine.0.shown;
        shown.set(&["AvailableStates"], kind.states().to_vec());
        shown.set(&["AvailableTransitions"], kind.transitions().to_vec());
        machine.show(0);
        Ok(machine)
    }
}

/// A Method of a state machine, which lives as long as the address space has it.
struct Cause {
    machine: Arc<Inner>,
    cause: usize,
}

impl MethodHandler for Cause {
    fn call(&self, _: &CallContext, _: Vec<Variant>) -> MethodCall {
        let (machine, cause) = (StateMachine(Arc::clone(&self.machine)), self.cause);
        MethodCall::Blocking(Box::new(move || {
            // The state may have changed since the Method was executable.
            machine
                .make(StatusCode::BAD_NOT_EXECUTABLE, |state| machine.0.kind.machine().on(state, cause))
                .map(|()| Vec::new())
        }))
    }
}

impl StateMachine {
    /// The object; `None` if the server is gone.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        self.0.shown.node()
    }

    /// The name of the state.
    #[must_use]
    pub fn state(&self) -> &str {
        let state = lock(&self.0.now).state;
        self.0.kind.machine().states.get(state).map_or("", String::as_str)
    }

    /// Makes the transition to another state.
    ///
    /// # Errors
    /// Bad_InvalidState if there is none from the present state, or another transition is under way; else what the
    /// application says.
    pub fn go_to(&self, state: &str) -> Result<(), StatusCode> {
        self.make(StatusCode::BAD_INVALID_STATE, |now| self.0.kind.machine().between(now, state))
    }

    /// Does what a Method does.
    ///
    /// # Errors
    /// Bad_InvalidState if it causes nothing in the present state, or another transition is under way; else what the
    /// application says.
    pub fn cause(&self, method: &str) -> Result<(), StatusCode> {
        let machine = self.0.kind.machine();
        self.make(StatusCode::BAD_INVALID_STATE, |now| machine.on(now, machine.cause(method)?))
    }

    fn make(
        &self,
        refusal: StatusCode,
        choose: impl FnOnce(usize) -> Option<usize>,
    ) -> Result<(), StatusCode> {
        let kind = &self.0.kind;
        let transition = {
            let mut now = lock(&self.0.now);
            let transition = choose(now.state).filter(|_| !now.is_moving).ok_or(refusal)?;
            now.is_moving = true;
            transition
        };
        // Ends the transition when the application refuses it or panics, too.
        let _moving = Moving(self);
        let (Some(shown), Some((from, to))) = (kind.transition(transition), kind.ends(transition)) else {
            return Err(StatusCode::BAD_INTERNAL_ERROR);
        };
        let (Some(before), Some(behind)) = (kind.state(from), kind.state(to)) else {
            return Err(StatusCode::BAD_INTERNAL_ERROR);
        };
        // Without the lock: it may ask for the state, and take its time.
        (self.0.act)(self, Step { transition: shown.name, from: before.name, to: behind.name })?;
        lock(&self.0.now).state = to;
        self.show(to);
        self.0.shown.show_transition(&shown);
        self.0.shown.raise(object_type_ids::TRANSITION_EVENT_TYPE, &shown, (&before, &behind));
        Ok(())
    }

    /// Shows a state: its name, and which Methods cause something in it (Part 16 §4.4.2).
    fn show(&self, state: usize) {
        let kind = &self.0.kind;
        if let Some(named) = kind.state(state) {
            self.0.shown.show_state(&named);
        }
        let Some(node) = self.node() else { return };
        for (cause, method) in self.0.methods.iter().enumerate() {
            // Somebody may have deleted it.
            let _ = node.space.set_executable(method, kind.machine().on(state, cause).is_some());
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
