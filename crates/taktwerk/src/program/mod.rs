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
use crate::space::{Node, now, ns0};
use std::sync::{Arc, Mutex, Weak};
use taktwerk_schema::ids::{object_type_ids, reference_type_ids};
use taktwerk_server::AddressSpace;
use taktwerk_server::callback::{CallContext, MethodCall, MethodHandler};
use taktwerk_server::space::NodeSpec;
use taktwerk_types::{LocalizedText, NodeId, QualifiedName, StatusCode, Variant};

/// How urgent a transition is, as the examples of Part 10 have it for ordinary ones.
const SEVERITY: u16 = 100;

/// Decides on transitions and acts on them: it is asked before each one.
type Act = dyn Fn(&Program, Transition) -> Result<(), StatusCode> + Send + Sync;

struct Inner {
    /// The address space has the program's methods, which have this.
    space: Weak<AddressSpace>,
    id: NodeId,
    namespace: u16,
    name: String,
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
        f.debug_struct("Program").field("node", &self.0.id).field("state", &self.state()).finish()
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
        let program = Program(Arc::new(Inner {
            space: Arc::downgrade(&node.space),
            id: node.id.clone(),
            namespace: node.namespace,
            name: name.to_owned(),
            state,
            act: Box::new(act),
        }));
        for command in Command::ALL {
            // The type has them with the rule OptionalPlaceholder: an instance gets its own.
            let handler = Arc::new(Run { program: Arc::clone(&program.0), command });
            let name = QualifiedName::new(0, command.name());
            let method = NodeSpec::method(node.child_id(command.name()), name, Some(handler));
            node.add(method, reference_type_ids::HAS_COMPONENT, None)?;
        }
        program.set(&["Deletable"], false);
        program.set(&["AutoDelete"], false);
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
        let Inner { space, id, namespace, .. } = &*self.0;
        Some(Node { space: space.upgrade()?, id: id.clone(), namespace: *namespace })
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
                tracing::warn!(program = %self.0.name, ?transition, %status, "the program does not end its work");
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

    fn set(&self, path: &[&str], value: impl Into<Variant>) {
        let Some(Node { space, id, .. }) = self.node() else { return };
        let id = path.iter().try_fold(id, |id, name| space.child(&id, &QualifiedName::new(0, *name)));
        // What the type does not have, or somebody has deleted, is not shown.
        if let Some(variable) = id.and_then(|id| space.variable(&id).ok()) {
            variable.set_at(value, now());
        }
    }

    fn show(&self, state: State, transition: Option<Transition>, recycled: i32) {
        self.set(&["CurrentState"], LocalizedText::new("en", state.name()));
        self.set(&["CurrentState", "Id"], ns0(state.object_id()));
        self.set(&["CurrentState", "Number"], state.number());
        self.set(&["RecycleCount"], recycled);
        let Some(transition) = transition else { return };
        self.set(&["LastTransition"], LocalizedText::new("en", transition.name()));
        self.set(&["LastTransition", "Id"], ns0(transition.object_id()));
        self.set(&["LastTransition", "Number"], transition.number());
        self.set(&["LastTransition", "TransitionTime"], now());
    }

    /// ProgramTransitionEventType (Part 10 §5.2.5.2).
    fn raise(&self, transition: Transition) {
        let (from, to) = (transition.from(), transition.to());
        let text = |text: &str| LocalizedText::new("en", text);
        let name = &self.0.name;
        let Some(node) = self.node() else { return };
        node.event(ns0(object_type_ids::PROGRAM_TRANSITION_EVENT_TYPE))
            .severity(SEVERITY)
            .message(text(&format!("{name} is {}", to.name())))
            .field("Transition", text(transition.name()))
            .field("Transition/Id", ns0(transition.object_id()))
            .field("FromState", text(from.name()))
            .field("FromState/Id", ns0(from.object_id()))
            .field("ToState", text(to.name()))
            .field("ToState/Id", ns0(to.object_id()))
            .emit();
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
