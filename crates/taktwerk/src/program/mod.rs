//! Programs, which clients start, suspend, resume, halt and reset (Part 10).
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
//! - `machine`: states, transitions and commands; `builder`: adds a Program; `kind`: types of Programs;
//! - `diagnostics`: ProgramDiagnostic.

mod builder;
mod diagnostics;
mod kind;
mod machine;

pub use builder::ProgramBuilder;
pub use kind::ProgramType;
pub use machine::{Command, State, Transition};

use crate::error::BuildError;
use crate::lock::lock;
use crate::space::{Arguments, Node, now, ns0};
use crate::state_machine::{Named, Shown};
use builder::Declared;
use diagnostics::Diagnostics;
use std::sync::{Arc, Mutex, Weak};
use taktwerk_schema::ids::object_type_ids;
use taktwerk_server::callback::{CallContext, DeleteHandler, MethodCall, MethodHandler};
use taktwerk_types::{StatusCode, Variant};

/// Called before each transition: decides on it and acts.
type Act = dyn Fn(&Program, Transition) -> Result<(), StatusCode> + Send + Sync;

struct Inner {
    shown: Shown,
    state: Mutex<Now>,
    act: Arc<Act>,
    /// The arguments of its Methods.
    declared: Declared,
    diagnostics: Mutex<Diagnostics>,
    /// The Program deletes itself when its execution has ended (AutoDelete).
    auto_delete: bool,
}

struct Now {
    state: State,
    /// A transition is in progress, so no other one can begin.
    is_moving: bool,
    /// How the work ended during that transition.
    ended: Option<End>,
    recycled: i32,
    /// The Method that caused the transition.
    call: Call,
    /// IntermediateResult of future events.
    intermediate: Variant,
    /// The Program has ended and is about to be deleted.
    is_over: bool,
}

/// Arguments and results of a Method during the transition that it causes.
#[derive(Default)]
struct Call {
    command: Option<Command>,
    inputs: Vec<Variant>,
    outputs: Vec<Variant>,
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

/// A Program. Clones refer to the same Program.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

impl core::fmt::Debug for Program {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Program").field("node", &self.0.shown.id).field("state", &self.state()).finish()
    }
}

/// A Method of a Program. It lives as long as its node.
struct Run {
    program: Arc<Inner>,
    command: Command,
}

impl MethodHandler for Run {
    fn call(&self, context: &CallContext, inputs: Vec<Variant>) -> MethodCall {
        let (program, command) = (Program(Arc::clone(&self.program)), self.command);
        let context = context.clone();
        MethodCall::Blocking(Box::new(move || program.called(command, &context, inputs)))
    }

    fn may_block(&self) -> bool {
        true
    }
}

/// Deletes a Program on a client's request.
struct Delete(Weak<Inner>);

impl DeleteHandler for Delete {
    /// Only in the state Halted (Part 10 §4.2.10).
    fn delete(&self, _: &CallContext) -> Result<(), StatusCode> {
        let program = self.0.upgrade().ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        {
            let mut now = lock(&program.state);
            if now.is_moving || now.state != State::Halted {
                return Err(StatusCode::BAD_INVALID_STATE);
            }
            // Prevents further transitions.
            now.is_moving = true;
        }
        program.shown.delete();
        Ok(())
    }
}

impl Program {
    /// The object; `None` if the server has stopped.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        self.0.shown.node()
    }

    /// Whether the object still exists: it may have deleted itself, or a client may have deleted it.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.0.shown.is_there()
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> State {
        lock(&self.0.state).state
    }

    /// Performs a command, as if a client had called its Method.
    ///
    /// # Errors
    /// Bad_InvalidState if the command is not allowed in this state, or the error of the application.
    pub fn command(&self, command: Command) -> Result<(), StatusCode> {
        self.go(Call { command: Some(command), ..Call::default() }, |state| state.on(command)).map(drop)
    }

    /// Performs a command and records it in the diagnostics.
    fn called(
        &self,
        command: Command,
        context: &CallContext,
        inputs: Vec<Variant>,
    ) -> Result<Vec<Variant>, StatusCode> {
        let began = now();
        let call = Call { command: Some(command), inputs: inputs.clone(), ..Call::default() };
        let result = self.go(call, |state| state.on(command));
        let declared = self.0.declared.of(command);
        lock(&self.0.diagnostics).called(command, context, declared, (inputs, &result), began);
        self.show_diagnostics();
        result
    }

    /// The arguments of the Method that causes the current transition, for use in `act`.
    ///
    /// # Errors
    /// Bad_InvalidArgument if the types differ, or the application makes the transition.
    pub fn inputs<I: Arguments>(&self) -> Result<I, StatusCode> {
        let inputs = lock(&self.0.state).call.inputs.clone();
        let invalid = StatusCode::BAD_INVALID_ARGUMENT;
        if inputs.len() != I::types().len() {
            return Err(invalid);
        }
        I::from_variants(inputs).map_err(|_| invalid)
    }

    /// Sets the results of the Method that causes the current transition. Results that are not set are null.
    ///
    /// # Errors
    /// Bad_TypeMismatch if other types are declared; Bad_InvalidState if no Method causes the current transition.
    pub fn set_outputs<O: Arguments>(&self, outputs: O) -> Result<(), StatusCode> {
        let mut now = lock(&self.0.state);
        let command = now.call.command.filter(|_| now.is_moving).ok_or(StatusCode::BAD_INVALID_STATE)?;
        if self.0.declared.of(command).outputs.types != O::types() {
            return Err(StatusCode::BAD_TYPE_MISMATCH);
        }
        now.call.outputs = outputs.into_variants();
        Ok(())
    }

    /// Sets IntermediateResult for future transition events (Part 10 §5.2.5.2). Call it before the transition, for example in
    /// `act`.
    pub fn set_intermediate_result(&self, value: impl Into<Variant>) {
        lock(&self.0.state).intermediate = value.into();
    }

    /// FinalResultData, the Object whose Variables are the results (Part 10 §4.2.9). It is added at the first call.
    ///
    /// # Errors
    /// The server has stopped, or the Program was deleted.
    pub fn final_results(&self) -> Result<Node, BuildError> {
        self.0.shown.final_results()
    }

    /// Ends the work: from Running or Suspended to Ready. During a transition, the Program becomes Ready after it; if that is
    /// impossible then, the call has no effect.
    ///
    /// # Errors
    /// Bad_InvalidState in other states.
    pub fn finish(&self) -> Result<(), StatusCode> {
        self.end(End::Finished)
    }

    /// Reports that the work has failed: to Halted. During a transition, the Program is halted after it.
    ///
    /// # Errors
    /// Bad_InvalidState if it is halted already.
    pub fn fail(&self) -> Result<(), StatusCode> {
        self.end(End::Failed)
    }

    fn go(
        &self,
        call: Call,
        choose: impl FnOnce(State) -> Option<Transition>,
    ) -> Result<Vec<Variant>, StatusCode> {
        let command = call.command;
        let transition = {
            let mut now = lock(&self.0.state);
            let transition = choose(now.state).filter(|_| !now.is_moving);
            let transition = transition.ok_or(StatusCode::BAD_INVALID_STATE)?;
            (now.is_moving, now.call) = (true, call);
            transition
        };
        let mut outputs = self.make(transition)?;
        let declared = command.map_or(0, |command| self.0.declared.of(command).outputs.types.len());
        outputs.resize(declared, Variant::Empty);
        Ok(outputs)
    }

    /// Ends the work: makes the transition now, or after the current one.
    fn end(&self, end: End) -> Result<(), StatusCode> {
        let transition = {
            let mut now = lock(&self.0.state);
            if now.is_moving {
                // A failure takes precedence.
                if now.ended != Some(End::Failed) {
                    now.ended = Some(end);
                }
                return Ok(());
            }
            let transition = end.transition(now.state).ok_or(StatusCode::BAD_INVALID_STATE)?;
            (now.is_moving, now.call) = (true, Call::default());
            transition
        };
        self.make(transition).map(drop)
    }

    /// Completes a transition that has begun, and those that became necessary during it. Returns the results of the Method.
    fn make(&self, transition: Transition) -> Result<Vec<Variant>, StatusCode> {
        let moving = Moving(self);
        let result = self.pass(transition);
        let mut made = result.is_ok().then_some(transition);
        let outputs = core::mem::take(&mut lock(&self.0.state).call).outputs;
        while let Some(transition) = self.next_move(made) {
            match self.pass(transition) {
                Ok(()) => made = Some(transition),
                Err(status) => {
                    tracing::warn!(program = %self.0.shown.name, ?transition, %status, "the program cannot make the transition that ends its work");
                }
            }
        }
        // The next transition may have begun already.
        core::mem::forget(moving);
        let is_over = core::mem::take(&mut lock(&self.0.state).is_over);
        if is_over {
            self.0.shown.delete();
        }
        result.map(|()| outputs)
    }

    /// Makes one transition.
    fn pass(&self, transition: Transition) -> Result<(), StatusCode> {
        // Without the lock: `act` may ask for the state, and may take long.
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

    /// The transition that became necessary during the current one. Otherwise the next transition can begin. `made` is the last
    /// completed transition.
    fn next_move(&self, made: Option<Transition>) -> Option<Transition> {
        let mut now = lock(&self.0.state);
        let next = now.ended.take().and_then(|end| end.transition(now.state));
        // Part 10 §5.2.2: no further transition before the deletion.
        now.is_over = next.is_none() && self.0.auto_delete && made.is_some_and(Transition::ends_execution);
        now.is_moving = next.is_some() || now.is_over;
        next
    }

    fn show(&self, state: State, transition: Option<Transition>, recycled: i32) {
        self.0.shown.show_state(&state.named());
        self.0.shown.set(&["RecycleCount"], recycled);
        if let Some(transition) = transition {
            self.0.shown.show_transition(&transition.named());
            lock(&self.0.diagnostics).made(now());
        }
        self.show_diagnostics();
    }

    fn show_diagnostics(&self) {
        let shown = lock(&self.0.diagnostics).clone();
        shown.show(&self.0.shown);
    }

    /// ProgramTransitionEventType (Part 10 §5.2.5.2).
    fn raise(&self, transition: Transition) {
        let ends = (&transition.from().named(), &transition.to().named());
        let intermediate = lock(&self.0.state).intermediate.clone();
        let kind = object_type_ids::PROGRAM_TRANSITION_EVENT_TYPE;
        self.0.shown.raise_with(kind, &transition.named(), ends, &[("IntermediateResult", intermediate)]);
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

/// The current transition. Dropping it ends the transition, also if the application panics.
struct Moving<'a>(&'a Program);

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        let mut now = lock(&self.0.0.state);
        (now.is_moving, now.ended, now.call) = (false, None, Call::default());
    }
}
