//! Programs: what clients start, suspend, resume, halt and reset (Part 10).
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use taktwerk::program::Transition;
//!
//! let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build()?;
//! let machine = server.namespace("urn:example").object("Machine").event_notifier().add()?;
//! let batch = machine.program("Batch", |_, transition| {
//!     if transition == Transition::ReadyToRunning {
//!         // Begin. What is returned here as an error is what the client gets, and nothing changes.
//!     }
//!     Ok(())
//! })?;
//! batch.finish()?; // once it is done: Running to Ready
//! # Ok(())
//! # }
//! ```
//!
//! - `machine`: states, transitions and commands.

mod machine;

pub use machine::{Command, State, Transition};

use crate::error::BuildError;
use crate::lock::lock;
use crate::space::{Node, ns0};
use crate::state_machine::{Named, Shown};
use std::sync::{Arc, Mutex};
use taktwerk_schema::ids::{object_type_ids, reference_type_ids};
use taktwerk_server::callback::{CallContext, MethodCall, MethodHandler};
use taktwerk_server::space::NodeSpec;
use taktwerk_types::{QualifiedName, StatusCode, Variant};

/// Decides on transitions and acts on them: it is asked before each one.
type Act = dyn Fn(&Program, Transition) -> Result<(), StatusCode> + Send + Sync;

struct Inner {
    shown: Shown,
    state: Mutex<Now>,
    act: Box<Act>,
}

struct Now {
    state: State,
    /// A transition is under way: no other one can begin.
    is_moving: bool,
    /// How the work has ended during that transition.
    ended: Option<End>,
    recycled: i32,
}

/// How the work of a Program ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Finished,
    Failed,
}

impl End {
    fn transition(self, state: State) -> Option<Transition> {
        match self {
            Self::Finished => state.to(State::Ready).filter(|_| state != State::Halted),
            Self::Failed => state.to(State::Halted),
        }
    }
}

/// A Program. Clones are the same one.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

impl core::fmt::Debug for Program {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Program").field("node", &self.0.shown.id).field("state", &self.state()).finish()
    }
}

impl Node {
    /// Adds a Program, which is Ready. `act` is called before each transition, on a worker thread if a client has asked for
    /// it; if it returns an error, the client gets that, and the state stays.
    ///
    /// # Errors
    /// The node has such a child already.
    pub fn program(
        &self,
        name: &str,
        act: impl Fn(&Program, Transition) -> Result<(), StatusCode> + Send + Sync + 'static,
    ) -> Result<Program, BuildError> {
        let object =
            self.object(name).of_type(ns0(object_type_ids::PROGRAM_STATE_MACHINE_TYPE)).event_notifier();
        let node = object.with("LastTransition").with("LastTransition/TransitionTime").add()?;
        let state = Mutex::new(Now { state: State::Ready, is_moving: false, ended: None, recycled: 0 });
        let program = Program(Arc::new(Inner { shown: Shown::new(&node, name), state, act: Box::new(act) }));
        for command in Command::ALL {
            // The type has them with the rule OptionalPlaceholder: an instance gets its own.
            let handler = Arc::new(Run { program: Arc::clone(&program.0), command });
            let name = QualifiedName::new(0, command.name());
            let method = NodeSpec::method(node.child_id(command.name()), name, Some(handler));
            node.add(method, reference_type_ids::HAS_COMPONENT, None)?;
        }
        program.0.shown.set(&["Deletable"], false);
        program.0.shown.set(&["AutoDelete"], false);
        program.show(State::Ready, None, 0);
        Ok(program)
    }
}

/// A method of a program, which lives as long as the address space has it.
struct Run {
    program: Arc<Inner>,
    command: Command,
}

impl MethodHandler for Run {
    fn call(&self, _: &CallContext, _: Vec<Variant>) -> MethodCall {
        let (program, command) = (Program(Arc::clone(&self.program)), self.command);
        MethodCall::Blocking(Box::new(move || {
            program.go(|state| state.on(command))?;
            Ok(Vec::new())
        }))
    }
}

impl Program {
    /// The object; `None` if the server is gone.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        self.0.shown.node()
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> State {
        lock(&self.0.state).state
    }

    /// Does what a client's method does.
    ///
    /// # Errors
    /// Bad_InvalidState if the command cannot be given in this state, or what the application says.
    pub fn command(&self, command: Command) -> Result<(), StatusCode> {
        self.go(|state| state.on(command))
    }

    /// The work is done: from Running or Suspended to Ready. If a transition is under way, the Program becomes Ready right
    /// behind it; if that is not possible then, nothing happens.
    ///
    /// # Errors
    /// Bad_InvalidState if it is in another state.
    pub fn finish(&self) -> Result<(), StatusCode> {
        self.end(End::Finished)
    }

    /// The work has failed: to Halted. If a transition is under way, the Program is halted right behind it.
    ///
    /// # Errors
    /// Bad_InvalidState if it is there already.
    pub fn fail(&self) -> Result<(), StatusCode> {
        self.end(End::Failed)
    }

    fn go(&self, choose: impl FnOnce(State) -> Option<Transition>) -> Result<(), StatusCode> {
        let transition = {
            let mut now = lock(&self.0.state);
            let transition = choose(now.state).filter(|_| !now.is_moving);
            let transition = transition.ok_or(StatusCode::BAD_INVALID_STATE)?;
            now.is_moving = true;
            transition
        };
        self.make(transition)
    }

    /// The work has ended: makes the transition, now or behind the one that is under way.
    fn end(&self, end: End) -> Result<(), StatusCode> {
        let transition = {
            let mut now = lock(&self.0.state);
            if now.is_moving {
                // A failure is what counts.
                if now.ended != Some(End::Failed) {
                    now.ended = Some(end);
                }
                return Ok(());
            }
            let transition = end.transition(now.state).ok_or(StatusCode::BAD_INVALID_STATE)?;
            now.is_moving = true;
            transition
        };
        self.make(transition)
    }

    /// Makes a transition that has begun, and what has become necessary meanwhile.
    fn make(&self, transition: Transition) -> Result<(), StatusCode> {
        let moving = Moving(self);
        let result = self.pass(transition);
        while let Some(transition) = self.next_move() {
            if let Err(status) = self.pass(transition) {
                tracing::warn!(program = %self.0.shown.name, ?transition, %status, "the program does not end its work");
            }
        }
        // The next transition may have begun already.
        core::mem::forget(moving);
        result
    }

    /// Makes one transition.
    fn pass(&self, transition: Transition) -> Result<(), StatusCode> {
        // Without the lock: it may ask for the state, and take its time.
        (self.0.act)(self, transition)?;
        let recycled = {
            let mut now = lock(&self.0.state);
            now.state = transition.to();
            if transition == Transition::HaltedToReady {
                now.recycled = now.recycled.saturating_add(1);
            }
            now.recycled
        };
        self.show(transition.to(), Some(transition), recycled);
        self.raise(transition);
        Ok(())
    }

    /// How the work has ended while a transition was under way. If it has not, the next transition can begin.
    fn next_move(&self) -> Option<Transition> {
        let mut now = lock(&self.0.state);
        let next = now.ended.take().and_then(|end| end.transition(now.state));
        now.is_moving = next.is_some();
        next
    }

    fn show(&self, state: State, transition: Option<Transition>, recycled: i32) {
        self.0.shown.show_state(&state.named());
        self.0.shown.set(&["RecycleCount"], recycled);
        if let Some(transition) = transition {
            self.0.shown.show_transition(&transition.named());
        }
    }

    /// ProgramTransitionEventType (Part 10 §5.2.5.2).
    fn raise(&self, transition: Transition) {
        let ends = (&transition.from().named(), &transition.to().named());
        self.0.shown.raise(object_type_ids::PROGRAM_TRANSITION_EVENT_TYPE, &transition.named(), ends);
    }
}

impl State {
    fn named(self) -> Named<'static> {
        Named { name: self.name(), id: ns0(self.object_id()), number: self.number() }
    }
}

impl Transition {
    fn named(self) -> Named<'static> {
        Named { name: self.name(), id: ns0(self.object_id()), number: self.number() }
    }
}

/// A transition under way, which ends when the application panics.
struct Moving<'a>(&'a Program);

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        let mut now = lock(&self.0.0.state);
        (now.is_moving, now.ended) = (false, None);
    }
}
