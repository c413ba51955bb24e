//! Types of Programs whose instances clients create (Creatable, Part 10 §4.2.10, §5.2.2).

use super::builder::{ProgramBuilder, Settings};
use super::diagnostics::Diagnostics;
use super::{Act, Inner, Program, Transition};
use crate::error::BuildError;
use crate::lock::lock;
use crate::space::{Node, arguments, now, ns0};
use crate::state_machine::Shown;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError, Weak};
use taktwerk_schema::ids::{object_type_ids, reference_type_ids};
use taktwerk_server::callback::{CallContext, MethodCall, MethodHandler};
use taktwerk_server::space::NodeSpec;
use taktwerk_types::{NodeId, QualifiedName, StatusCode, UaString, Variant};

/// Longest name of a Program that a client creates, in bytes.
const NAME_LEN_MAX: usize = 128;

struct Kind {
    /// The ObjectType.
    shown: Shown,
    /// The parent of the instances.
    folder: Shown,
    settings: Settings,
    act: Arc<Act>,
    instances_max: usize,
    /// The existing instances, and possibly deleted ones.
    instances: Mutex<Vec<Weak<Inner>>>,
    /// InstanceCount must be updated.
    is_uncounted: AtomicBool,
}

/// A type of Programs whose instances clients create with its Method Create. Clones refer to the same type.
#[derive(Clone)]
pub struct ProgramType(Arc<Kind>);

impl core::fmt::Debug for ProgramType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ProgramType").field("node", &self.0.shown.id).finish_non_exhaustive()
    }
}

impl ProgramBuilder {
    /// Adds a type of Programs instead of one Program: a subtype of ProgramStateMachineType named like the builder. Clients that
    /// may call its Method Create (Part 3 §4.7.5) create instances below the node of the builder, at most `instances_max` at a
    /// time. `act` is called before each transition of each instance.
    ///
    /// # Errors
    /// A type with this name exists, or the number of names of a Method's arguments is wrong.
    pub fn add_type(
        self,
        instances_max: u32,
        act: impl Fn(&Program, Transition) -> Result<(), StatusCode> + Send + Sync + 'static,
    ) -> Result<ProgramType, BuildError> {
        let Self { parent, name, mut settings } = self;
        settings.check()?;
        let base = Node { id: ns0(object_type_ids::PROGRAM_STATE_MACHINE_TYPE), ..parent.clone() };
        let id = base.child_id(&name);
        base.add(
            NodeSpec::object_type(id.clone(), base.child_name(&name)),
            reference_type_ids::HAS_SUBTYPE,
            None,
        )?;
        let node = Node { id: id.clone(), ..base };
        node.standard_property("Creatable", true)?;
        node.standard_property("InstanceCount", 0u32)?;
        node.standard_property("MaxInstanceCount", instances_max)?;
        settings.kind = id;
        let kind = Arc::new(Kind {
            shown: Shown::new(&node, &name),
            folder: Shown::new(&parent, &name),
            settings,
            act: Arc::new(act),
            instances_max: instances_max as usize,
            instances: Mutex::default(),
            is_uncounted: AtomicBool::new(false),
        });
        let create = node.child_id("Create");
        let handler = Arc::new(Create(Arc::clone(&kind)));
        let method = NodeSpec::method(create.clone(), QualifiedName::new(0, "Create"), Some(handler));
        node.add(method, reference_type_ids::HAS_COMPONENT, None)?;
        let method = Node { id: create, ..node };
        for (property, what, argument, data_type) in
            [("InputArguments", "inputs", "Name", 12), ("OutputArguments", "outputs", "Program", 17)]
        {
            let described = arguments("Create", what, &[argument.to_owned()], &[(data_type, -1)])?;
            method.standard_property(property, described)?;
        }
        Ok(ProgramType(kind))
    }
}

impl ProgramType {
    /// The ObjectType.
    #[must_use]
    pub fn id(&self) -> &NodeId {
        &self.0.shown.id
    }

    /// The existing instances.
    #[must_use]
    pub fn programs(&self) -> Vec<Program> {
        let programs = {
            let mut instances = lock(&self.0.instances);
            retain(&mut instances);
            instances.iter().filter_map(Weak::upgrade).map(Program).collect()
        };
        self.0.count_if_necessary();
        programs
    }
}

/// Removes deleted instances from the list.
fn retain(instances: &mut Vec<Weak<Inner>>) {
    instances.retain(|instance| instance.upgrade().is_some_and(|inner| inner.shown.is_there()));
}

/// The Method Create.
struct Create(Arc<Kind>);

impl MethodHandler for Create {
    fn call(&self, context: &CallContext, inputs: Vec<Variant>) -> MethodCall {
        let (kind, context) = (Arc::clone(&self.0), context.clone());
        MethodCall::Blocking(Box::new(move || {
            let name = inputs.into_iter().next().and_then(|name| UaString::try_from(name).ok());
            let program = kind.create(name.unwrap_or_default().as_str(), &context)?;
            Ok(vec![program.0.shown.id.clone().into()])
        }))
    }

    fn may_block(&self) -> bool {
        true
    }
}

impl Kind {
    fn create(self: &Arc<Self>, name: &str, context: &CallContext) -> Result<Program, StatusCode> {
        let created = self.create_one(name, context);
        self.count();
        created
    }

    fn create_one(self: &Arc<Self>, name: &str, context: &CallContext) -> Result<Program, StatusCode> {
        let is_name = !name.is_empty() && name.len() <= NAME_LEN_MAX;
        if !is_name || name.contains('/') || name.chars().any(char::is_control) {
            return Err(StatusCode::BAD_BROWSE_NAME_INVALID);
        }
        let folder = self.folder.node().ok_or(StatusCode::BAD_SHUTDOWN)?;
        // One call at a time, so that the limit holds.
        let mut instances = lock(&self.instances);
        retain(&mut instances);
        if instances.len() >= self.instances_max {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        if folder.space.contains(&folder.child_id(name)) {
            return Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED);
        }
        let diagnostics = Diagnostics::created(Some(context), now());
        let added = self.settings.add(&folder, name, Arc::clone(&self.act), diagnostics);
        let program = added.map_err(|error| error.status())?;
        let kind = Arc::downgrade(self);
        program.0.shown.when_deleted(move || {
            if let Some(kind) = kind.upgrade() {
                kind.count();
            }
        });
        instances.push(Arc::downgrade(&program.0));
        Ok(program)
    }

    /// Updates InstanceCount.
    fn count(&self) {
        self.is_uncounted.store(true, Ordering::SeqCst);
        self.count_if_necessary();
    }

    /// Updates InstanceCount without waiting: clients delete Programs on a thread that also serves others. If the list is locked,
    /// the thread that holds it updates the count afterwards.
    fn count_if_necessary(&self) {
        while self.is_uncounted.load(Ordering::SeqCst) {
            let mut instances = match self.instances.try_lock() {
                Ok(instances) => instances,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.is_uncounted.store(false, Ordering::SeqCst);
            retain(&mut instances);
            self.shown.set(&["InstanceCount"], u32::try_from(instances.len()).unwrap_or(u32::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;
    use crate::program::{Command, State};

    fn kind(server: &Server) -> (ProgramType, Node) {
        let plant = server.namespace("urn:plant");
        let hall = plant.object("Hall").add().unwrap();
        let kind = hall.new_program("BatchType").deletable().add_type(2, |_, _| Ok(())).unwrap();
        (kind, hall)
    }

    fn halted(kind: &ProgramType, name: &str) -> Program {
        let program = kind.0.create(name, &CallContext::in_process(NodeId::NULL, &[], true)).unwrap();
        program.command(Command::Halt).unwrap();
        program
    }

    fn shown_count(kind: &ProgramType) -> u32 {
        let node = kind.0.shown.node().unwrap();
        let id = node.space.child(&node.id, &QualifiedName::new(0, "InstanceCount")).unwrap();
        node.space.variable(&id).unwrap().get().value.unwrap().try_into().unwrap()
    }

    /// Deleting must not wait for a client that creates an instance: that would deadlock.
    #[test]
    fn programs_are_deleted_while_others_are_created() {
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let (kind, _hall) = kind(&server);
        let (first, _second) = (halted(&kind, "One"), halted(&kind, "Two"));
        assert_eq!(shown_count(&kind), 2);
        let creating = lock(&kind.0.instances);
        first.0.shown.delete();
        drop(creating);
        assert_eq!(kind.programs().len(), 1);
        assert_eq!(shown_count(&kind), 1, "who had the instances has counted them");
    }

    /// The application keeps a handle to a deleted Program, and a client creates another one with the same name.
    #[test]
    fn a_new_program_with_the_same_name_is_independent() {
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let (kind, hall) = kind(&server);
        let mut kept = Vec::new();
        for _ in 0..4 {
            let program = halted(&kind, "One");
            program.0.shown.delete();
            program.0.shown.delete();
            kept.push(program);
        }
        let new = halted(&kind, "One");
        assert!(kept.iter().all(|old| !old.exists() && old.node().is_none()) && new.exists());
        assert_eq!((shown_count(&kind), kind.programs().len()), (1, 1));
        kept.iter().for_each(|old| old.0.shown.set(&["AutoDelete"], true));
        kept.iter().for_each(|old| old.0.shown.delete());
        let id = hall.child_id("One");
        let id = hall.space.child(&id, &QualifiedName::new(0, "AutoDelete")).unwrap();
        assert_eq!(hall.space.variable(&id).unwrap().get().value, Some(false.into()));
        assert_eq!(new.state(), State::Halted);
    }
}
