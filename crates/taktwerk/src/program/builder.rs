//! Adds Programs.

use super::diagnostics::Diagnostics;
use super::{Act, Call, Command, Delete, Inner, Now, Program, Run, State, Transition};
use crate::error::BuildError;
use crate::space::{Arguments, Node, arguments, now, ns0};
use crate::state_machine::Shown;
use std::sync::{Arc, Mutex};
use taktwerk_schema::Argument;
use taktwerk_schema::ids::{object_type_ids, reference_type_ids};
use taktwerk_server::space::NodeSpec;
use taktwerk_types::{NodeId, QualifiedName, StatusCode, Variant};

/// Names, DataTypes and ValueRanks of arguments.
#[derive(Debug, Clone, Default)]
pub(super) struct Typed {
    names: Vec<String>,
    pub(super) types: Vec<(u32, i32)>,
}

impl Typed {
    fn of<A: Arguments>(names: impl IntoIterator<Item = &'static str>) -> Self {
        Self { names: names.into_iter().map(str::to_owned).collect(), types: A::types() }
    }

    /// The value of the InputArguments or OutputArguments Property.
    pub(super) fn described(&self) -> Vec<Argument> {
        // Has been checked when the Program was added.
        let described = arguments("", "arguments", &self.names, &self.types).unwrap_or_default();
        described.into_iter().map(|argument| argument.0).collect()
    }
}

/// The arguments and results of a Method.
#[derive(Debug, Clone, Default)]
pub(super) struct MethodArguments {
    pub(super) inputs: Typed,
    pub(super) outputs: Typed,
}

/// The arguments of all Methods (Part 10 §5.2.4.3).
#[derive(Debug, Clone, Default)]
pub(super) struct Declared([MethodArguments; 5]);

impl Declared {
    fn index(command: Command) -> usize {
        Command::ALL.iter().position(|known| *known == command).unwrap_or_default()
    }

    pub(super) fn of(&self, command: Command) -> &MethodArguments {
        let [first, ..] = &self.0;
        self.0.get(Self::index(command)).unwrap_or(first)
    }

    fn edit(&mut self, command: Command, edit: impl FnOnce(&mut MethodArguments)) {
        if let Some(arguments) = self.0.get_mut(Self::index(command)) {
            edit(arguments);
        }
    }
}

/// Settings of a Program, or of the Programs of a type.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) kind: NodeId,
    declared: Declared,
    auto_delete: bool,
    deletable: bool,
}

/// Settings of a Program; [`ProgramBuilder::add`] adds it.
#[derive(Debug)]
#[must_use = "nothing is added before add()"]
pub struct ProgramBuilder {
    pub(super) parent: Node,
    pub(super) name: String,
    pub(super) settings: Settings,
}

impl Node {
    /// Adds a Program in the state Ready. `act` is called before each transition, on a worker thread if a client caused it. If it
    /// returns an error, the client receives the error, and the state does not change.
    ///
    /// # Errors
    /// The node has a child with that name.
    pub fn program(
        &self,
        name: &str,
        act: impl Fn(&Program, Transition) -> Result<(), StatusCode> + Send + Sync + 'static,
    ) -> Result<Program, BuildError> {
        self.new_program(name).add(act)
    }

    /// Begins a Program whose Methods have arguments, or that deletes itself.
    pub fn new_program(&self, name: &str) -> ProgramBuilder {
        let settings = Settings {
            kind: ns0(object_type_ids::PROGRAM_STATE_MACHINE_TYPE),
            declared: Declared::default(),
            auto_delete: false,
            deletable: false,
        };
        ProgramBuilder { parent: self.clone(), name: name.to_owned(), settings }
    }
}

impl ProgramBuilder {
    /// The arguments of a Method: [`Program::inputs`] returns them.
    pub fn inputs<I: Arguments>(
        mut self,
        command: Command,
        names: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        self.settings.declared.edit(command, |arguments| arguments.inputs = Typed::of::<I>(names));
        self
    }

    /// The results of a Method: [`Program::set_outputs`] sets them.
    pub fn outputs<O: Arguments>(
        mut self,
        command: Command,
        names: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        self.settings.declared.edit(command, |arguments| arguments.outputs = Typed::of::<O>(names));
        self
    }

    /// The Program deletes itself when its execution has ended, in the state Halted or Ready (AutoDelete, Part 10 §5.2.2).
    pub fn auto_delete(mut self) -> Self {
        self.settings.auto_delete = true;
        self
    }

    /// Lets clients with the permission DeleteNode delete it with DeleteNodes while it is Halted (Deletable, Part 10 §4.2.10,
    /// §5.2.2).
    pub fn deletable(mut self) -> Self {
        self.settings.deletable = true;
        self
    }

    /// Adds the Program in the state Ready. `act` is called before each transition, on a worker thread if a client caused it. If
    /// it returns an error, the client receives the error, and the state does not change.
    ///
    /// # Errors
    /// The node has a child with that name, or the number of names of a Method's arguments is wrong.
    #[allow(clippy::should_implement_trait)] // not an arithmetic sum
    pub fn add(
        self,
        act: impl Fn(&Program, Transition) -> Result<(), StatusCode> + Send + Sync + 'static,
    ) -> Result<Program, BuildError> {
        self.settings.check()?;
        self.settings.add(&self.parent, &self.name, Arc::new(act), Diagnostics::created(None, now()))
    }
}

impl Settings {
    /// Checks the number of argument names.
    pub(super) fn check(&self) -> Result<(), BuildError> {
        for command in Command::ALL {
            let MethodArguments { inputs, outputs } = self.declared.of(command);
            for (what, typed) in [("inputs", inputs), ("outputs", outputs)] {
                arguments(command.name(), what, &typed.names, &typed.types)?;
            }
        }
        Ok(())
    }

    /// Adds a Program below a node.
    pub(super) fn add(
        &self,
        parent: &Node,
        name: &str,
        act: Arc<Act>,
        diagnostics: Diagnostics,
    ) -> Result<Program, BuildError> {
        let object = parent.object(name).of_type(self.kind.clone()).event_notifier();
        let optional = ["LastTransition", "LastTransition/TransitionTime", "ProgramDiagnostic"];
        let node = optional.iter().fold(object, |object, path| object.with(path)).add()?;
        let state = Now {
            state: State::Ready,
            is_moving: false,
            ended: None,
            recycled: 0,
            call: Call::default(),
            intermediate: Variant::Empty,
            is_over: false,
        };
        let program = Program(Arc::new(Inner {
            shown: Shown::new(&node, name),
            state: Mutex::new(state),
            act,
            declared: self.declared.clone(),
            diagnostics: Mutex::new(diagnostics),
            auto_delete: self.auto_delete,
        }));
        if let Err(error) = self.add_methods(&program, &node) {
            // Adding fails if a node of a client has the id of a Method. Delete the partial Program then.
            node.space.delete_tree(&node.id, now());
            return Err(error);
        }
        program.0.shown.set(&["Deletable"], self.deletable);
        if self.deletable {
            let handler = Arc::new(Delete(Arc::downgrade(&program.0)));
            node.space.set_delete_handler(&node.id, handler)?;
        }
        program.0.shown.set(&["AutoDelete"], self.auto_delete);
        program.show(State::Ready, None, 0);
        Ok(program)
    }

    fn add_methods(&self, program: &Program, node: &Node) -> Result<(), BuildError> {
        for command in Command::ALL {
            // The type declares them with the rule OptionalPlaceholder, so an instance gets its own.
            let handler = Arc::new(Run { program: Arc::clone(&program.0), command });
            let name = QualifiedName::new(0, command.name());
            let id = node.child_id(command.name());
            node.add(
                NodeSpec::method(id.clone(), name, Some(handler)),
                reference_type_ids::HAS_COMPONENT,
                None,
            )?;
            let method = Node { id, ..node.clone() };
            let MethodArguments { inputs, outputs } = self.declared.of(command);
            for (property, what, typed) in
                [("InputArguments", "inputs", inputs), ("OutputArguments", "outputs", outputs)]
            {
                if !typed.types.is_empty() {
                    let described = arguments(command.name(), what, &typed.names, &typed.types)?;
                    method.standard_property(property, described)?;
                }
            }
        }
        Ok(())
    }
}
