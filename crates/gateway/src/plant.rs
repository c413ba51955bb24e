//! The gateway's nodes in the address space.

use crate::alarms::MirroredAlarms;
use crate::catalogue::Catalogue;
use crate::roles::TagRoles;
use crate::tag::{Access, Model, Tag};
use crate::tag_alarm::TagAlarm;
use crate::value::Kind;
use core::time::Duration;
use futures_util::future::BoxFuture;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use taktwerk::alarms::Alarm;
use taktwerk::{BuildError, Namespace, Node};
use taktwerk_schema::ids::object_type_ids;
use taktwerk_schema::{Argument, EUInformation};
use taktwerk_server::NewEvent;
use taktwerk_server::callback::MethodResult;
use taktwerk_server::history::NodeHistory;
use taktwerk_server::space::{AddressSpace, NodeError, VariableHandle};
use taktwerk_types::{DataValue, NodeId, QualifiedName, StatusCode, Variant};

/// Most folders whose types are stored.
const MODELS_MAX: usize = 1_000_000;
/// Above this number, no folder is added for an event of another server.
const FOLDERS_MAX: usize = 100_000;
const FOLDER_TYPE: NodeId = NodeId::numeric(0, object_type_ids::FOLDER_TYPE);

/// The child nodes of variables and methods.
const PROPERTIES: [&str; 9] = [
    "EURange",
    "EngineeringUnits",
    "TrueState",
    "FalseState",
    "EnumStrings",
    "EnumValues",
    "ValueAsText",
    "InputArguments",
    "OutputArguments",
];

/// Decides on a client's write.
pub type OnWrite = Arc<dyn Fn(Variant) -> StatusCode + Send + Sync>;

/// The current decider on writes. It can be replaced.
type Writer = Arc<Mutex<OnWrite>>;

/// What clients see of a variable apart from its value. A variable stays as long as this is unchanged.
#[derive(Debug, Clone, PartialEq)]
struct Shape {
    kind: Kind,
    every: Option<Duration>,
    description: Option<String>,
    units: Option<EUInformation>,
    range: Option<(f64, f64)>,
    states: Vec<(i64, String)>,
    access: Access,
    historize: bool,
    roles: TagRoles,
    alarm: Option<TagAlarm>,
    model: Model,
}

impl Shape {
    fn of(tag: &Tag, kind: Kind, every: Option<Duration>) -> Self {
        Self {
            kind,
            every,
            description: tag.description.clone(),
            units: tag.units.clone(),
            range: tag.range,
            states: tag.states.clone(),
            access: tag.access,
            historize: tag.historize,
            roles: tag.roles.clone(),
            alarm: tag.alarm.clone(),
            model: tag.model.clone(),
        }
    }
}

/// The variables of a future configuration, by path and name. Existing variables of the same shape stay.
#[derive(Debug, Default)]
pub struct Wanted(HashMap<String, Shape>);

impl Wanted {
    /// Adds the variable of a tag. `every` is the interval of its source.
    pub fn add(&mut self, tag: &Tag, kind: Kind, every: Option<Duration>) {
        self.0.insert(tag.full_name(), Shape::of(tag, kind, every));
    }
}

/// Carries out a method call of a client.
pub type OnCall = Arc<dyn Fn(Vec<Variant>) -> BoxFuture<'static, MethodResult> + Send + Sync>;

/// The current handler of calls. It can be replaced.
type Caller = Arc<Mutex<OnCall>>;

/// The arguments of a method.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Signature {
    /// InputArguments.
    pub inputs: Vec<Argument>,
    /// OutputArguments.
    pub outputs: Vec<Argument>,
}

/// The kind of a node.
enum What {
    Variable {
        handle: VariableHandle,
        shape: Box<Shape>,
        /// `None` if clients cannot write.
        writer: Option<Writer>,
    },
    Method {
        signature: Signature,
        caller: Caller,
    },
}

impl What {
    fn shape(&self) -> Option<&Shape> {
        match self {
            Self::Variable { shape, .. } => Some(shape.as_ref()),
            Self::Method { .. } => None,
        }
    }

    /// Rejects clients' writes and calls until a source takes over.
    fn disconnect(&self) {
        match self {
            Self::Variable { writer: Some(writer), .. } => {
                *lock(writer) = Arc::new(|_| StatusCode::BAD_NO_COMMUNICATION);
            }
            Self::Variable { .. } => {}
            Self::Method { caller, .. } => *lock(caller) = nobody(),
        }
    }
}

/// Answers calls while there is no source.
fn nobody() -> OnCall {
    Arc::new(|_| Box::pin(core::future::ready(Err(StatusCode::BAD_NO_COMMUNICATION))))
}

/// A node of a source.
struct Entry {
    node: Node,
    what: What,
    source: Arc<str>,
    /// Whether the source added it while running.
    is_found: bool,
    /// When the source stopped feeding it; `None` while it is fed.
    released: Option<Instant>,
    /// Whether it was added for a source that does not run yet.
    is_staged: bool,
}

impl Entry {
    fn new(node: Node, what: What, source: &Arc<str>, is_found: bool) -> Self {
        Self { node, what, source: Arc::clone(source), is_found, released: None, is_staged: false }
    }

    fn take_over(&mut self, source: &Arc<str>, is_found: bool) {
        self.released = None;
        self.is_staged = false;
        self.source = Arc::clone(source);
        self.is_found = is_found;
    }
}

/// A variable that is handed to a source.
#[derive(Debug)]
pub struct Given {
    /// The variable.
    pub handle: VariableHandle,
    /// Whether it existed before, with a value.
    pub is_kept: bool,
}

/// Manages the nodes of tags.
pub struct Plant {
    namespace: Namespace,
    folders: Mutex<HashMap<String, Node>>,
    /// The variables of all sources by path and name.
    entries: Mutex<HashMap<String, Entry>>,
    /// Number of variables without a source.
    released: AtomicUsize,
    /// State that sources leave for their successors, by source name.
    kept: Mutex<HashMap<String, Arc<dyn Any + Send + Sync>>>,
    /// The types of other servers.
    catalogue: Catalogue,
    /// The alarms of other servers.
    alarms: MirroredAlarms,
    /// The alarms of tags, by their variables.
    watched: Mutex<HashMap<NodeId, Alarm>>,
    /// The types of mirrored folders, by path.
    models: Mutex<HashMap<String, Model>>,
}

impl core::fmt::Debug for Plant {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Plant").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Plant {
    /// The nodes of a namespace.
    #[must_use]
    pub fn new(namespace: Namespace) -> Self {
        Self {
            namespace,
            folders: Mutex::default(),
            entries: Mutex::default(),
            released: AtomicUsize::new(0),
            kept: Mutex::default(),
            catalogue: Catalogue::default(),
            alarms: MirroredAlarms::default(),
            watched: Mutex::default(),
            models: Mutex::default(),
        }
    }

    /// The types of other servers.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The alarms of other servers.
    #[must_use]
    pub fn alarms(&self) -> &MirroredAlarms {
        &self.alarms
    }

    /// The address space.
    #[must_use]
    pub fn space(&self) -> &Arc<AddressSpace> {
        self.namespace.space()
    }

    /// Sets the type of a folder that mirrors one of another server. Existing folders do not change.
    pub fn model_folder(&self, path: &[String], model: Model) {
        let key: String = path.iter().flat_map(|name| ["/", name]).collect();
        let mut models = lock(&self.models);
        if model != Model::default() && models.len() < MODELS_MAX {
            models.insert(key, model);
        }
    }

    /// Keeps state for the next source of this name: changed settings create a new source.
    pub fn keep(&self, source: &str, what: Arc<dyn Any + Send + Sync>) {
        lock(&self.kept).insert(source.to_owned(), what);
    }

    /// The state kept by the last source of this name, if it is of type `T`.
    #[must_use]
    pub fn kept<T: Any + Send + Sync>(&self, source: &str) -> Option<Arc<T>> {
        let what = lock(&self.kept).get(source).cloned()?;
        what.downcast().ok()
    }

    /// Forgets a source that was removed.
    pub fn forget(&self, source: &str) {
        lock(&self.kept).remove(source);
        self.catalogue.forget(source);
        self.alarms.end(source);
    }

    /// Removes unused types of other servers, in portions. Blocks until done.
    pub fn sweep_types(&self) {
        let count = self.catalogue.sweep(self.space(), || self.types());
        if count > 0 {
            tracing::debug!(count, "unused type nodes of other servers were deleted");
        }
    }

    /// The types of other servers that nodes use.
    fn types(&self) -> HashSet<NodeId> {
        let mut types = self.alarms.types();
        let mut keep = |model: &Model| {
            types.extend([&model.type_definition, &model.data_type].into_iter().flatten().cloned())
        };
        lock(&self.entries)
            .values()
            .filter_map(|entry| entry.what.shape())
            .for_each(|shape| keep(&shape.model));
        let folders = lock(&self.folders);
        // Models of deleted folders may be used again, but their types need not stay.
        lock(&self.models)
            .iter()
            .filter(|(key, _)| folders.contains_key(*key))
            .for_each(|(_, model)| keep(model));
        types
    }

    /// The folder of a path. Missing folders are added.
    fn folder(&self, path: &[String]) -> Result<Node, BuildError> {
        let mut folders = lock(&self.folders);
        let mut parent = self.namespace.objects();
        let mut key = String::new();
        for name in path {
            key.push('/');
            key.push_str(name);
            // Clients with the permission can delete nodes; a deleted folder must be added again.
            let is_there = |folder: &&Node| self.namespace.node(folder.id().clone()).is_ok();
            parent = match folders.get(&key).filter(is_there) {
                Some(folder) => folder.clone(),
                None => {
                    let model = lock(&self.models).get(&key).cloned().unwrap_or_default();
                    let mut folder = parent.object(name).event_notifier();
                    folder = match model.type_definition {
                        Some(kind) => folder.declared_type(kind),
                        None => folder.of_type(FOLDER_TYPE).organized(),
                    };
                    if let Some(name) = model.browse_name {
                        folder = folder.browse_name(name);
                    }
                    let folder = folder.add()?;
                    folders.insert(key.clone(), folder.clone());
                    folder
                }
            };
        }
        Ok(parent)
    }

    /// Whether the variable of a tag could be added after removing the sources in `going`.
    ///
    /// # Errors
    /// A node of that name exists.
    pub fn check(&self, tag: &Tag, going: &HashSet<String>) -> Result<(), BuildError> {
        let name = tag.full_name();
        let id = NodeId::string(self.namespace.index(), name.as_str());
        let is_free = |entry: &Entry| entry.released.is_some() || going.contains(&*entry.source);
        let known = lock(&self.entries).get(&name).map(is_free);
        match known {
            Some(true) => Ok(()),
            Some(false) => Err(NodeError::IdExists(id).into()),
            None if lock(&self.folders).contains_key(&format!("/{name}")) => Ok(()),
            None if self.namespace.node(id.clone()).is_ok() => Err(NodeError::IdExists(id).into()),
            None => Ok(()),
        }
    }

    /// The variable of a tag. An existing variable of the same shape without a source is taken over.
    ///
    /// # Errors
    /// A node of that name exists.
    pub fn variable(
        &self,
        source: &Arc<str>,
        tag: &Tag,
        kind: Kind,
        every: Option<Duration>,
        is_found: bool,
        on_write: OnWrite,
    ) -> Result<Given, BuildError> {
        let name = tag.full_name();
        let shape = Shape::of(tag, kind, every);
        let mut entries = lock(&self.entries);
        let mut other = None;
        if let Some(entry) = entries.get_mut(&name).filter(|entry| entry.released.is_some()) {
            self.released.fetch_sub(1, Ordering::Relaxed);
            match &entry.what {
                What::Variable { handle, shape: known, writer } if **known == shape => {
                    if let Some(writer) = writer {
                        *lock(writer) = on_write;
                    }
                    let handle = handle.clone();
                    entry.take_over(source, is_found);
                    return Ok(Given { handle, is_kept: true });
                }
                _ => {}
            }
            other = entries.remove(&name);
        }
        // Release this lock before changing the address space: its holder may wait for a feed, which may wait for this lock.
        drop(entries);
        if let Some(other) = other {
            self.delete(&[other.node]);
        }
        let (node, handle, writer) = self.add(tag, &shape, on_write)?;
        let what = What::Variable { handle: handle.clone(), shape: Box::new(shape), writer };
        self.insert(name, Entry::new(node, what, source, is_found));
        Ok(Given { handle, is_kept: false })
    }

    /// Adds the variable of a tag before its source runs. Variables that conflict with existing ones are skipped.
    /// [`Self::unstage`] reverts this.
    ///
    /// # Errors
    /// The variable cannot be added.
    pub fn stage(
        &self,
        source: &Arc<str>,
        tag: &Tag,
        kind: Kind,
        every: Option<Duration>,
    ) -> Result<(), BuildError> {
        let name = tag.full_name();
        let has_folder = lock(&self.folders).contains_key(&format!("/{name}"));
        let is_variable = |name: &str| lock(&self.entries).contains_key(name);
        if has_folder || is_variable(&name) || above(&name).any(is_variable) {
            return Ok(());
        }
        let shape = Shape::of(tag, kind, every);
        let (node, handle, writer) = self.add(tag, &shape, Arc::new(|_| StatusCode::BAD_NO_COMMUNICATION))?;
        let what = What::Variable { handle, shape: Box::new(shape), writer };
        let entry = Entry::new(node, what, source, false);
        self.insert(name, Entry { released: Some(Instant::now()), is_staged: true, ..entry });
        self.released.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Deletes the variables that were added for sources that do not run, and folders that become empty.
    pub fn unstage(&self) {
        self.remove(|_, entry| entry.is_staged);
    }

    fn add(
        &self,
        tag: &Tag,
        shape: &Shape,
        on_write: OnWrite,
    ) -> Result<(Node, VariableHandle, Option<Writer>), BuildError> {
        let folder = self.folder(&tag.path)?;
        let zero = shape.kind.zero();
        let is_typed = !zero.is_empty();
        let waiting = StatusCode::BAD_WAITING_FOR_INITIAL_DATA;
        let mut builder = folder.variable(&tag.name, zero).initial_status(waiting);
        let Model { type_definition, data_type, browse_name } = shape.model.clone();
        if let Some(data_type) = data_type {
            builder = builder.data_type(data_type);
        } else if !is_typed {
            builder = builder.data_type(NodeId::numeric(0, u32::from(shape.kind.element.number())));
        }
        builder = match type_definition {
            Some(kind) => builder.declared_type(kind),
            // The member of a type is a component.
            None if browse_name.is_some() => builder,
            None => builder.organized(),
        };
        if let Some(name) = browse_name {
            builder = builder.browse_name(name);
        }
        if let Some(every) = shape.every {
            builder = builder.minimum_sampling_interval((every.as_secs_f64() * 1e3) as f32);
        }
        if let Some(description) = &tag.description {
            builder = builder.description(description.as_str());
        }
        if let Some(units) = &tag.units {
            builder = builder.engineering_units(units.clone());
        }
        if let Some((low, high)) = tag.range {
            builder = builder.range(low..=high);
        }
        if !shape.kind.is_array {
            builder = builder.states(tag.states.iter().map(|(value, name)| (*value, name.as_str())));
        }
        let writer = (tag.access == Access::ReadWrite).then(|| Arc::new(Mutex::new(on_write)));
        if let Some(writer) = &writer {
            let writer = Arc::clone(writer);
            builder = builder.on_write(move |_, value: Variant| {
                let decide = Arc::clone(&*lock(&writer));
                // The status that the client receives, which may be a good one.
                Err(decide(value))
            });
        }
        if tag.historize {
            builder = builder.historize();
        }
        let variable = builder.add()?;
        let access = tag.roles.access(tag.access == Access::ReadWrite);
        if access != Default::default() {
            // Properties are as sensitive as the value, so they get the same permissions.
            for node in self.with_properties(core::slice::from_ref(variable.node())) {
                self.space().set_access(node.id(), access.clone())?;
            }
        }
        if let Some(alarm) = &tag.alarm {
            // The type may not have been known before.
            match alarm.problem(shape.kind) {
                Some((problem, hint)) => tracing::warn!(tag = tag.full_name(), problem, hint, "no alarm"),
                None => match alarm.add(&variable, shape.kind, access) {
                    Ok(alarm) => drop(lock(&self.watched).insert(variable.id().clone(), alarm)),
                    Err(error) => tracing::warn!(tag = tag.full_name(), %error, "no alarm"),
                },
            }
        }
        Ok((variable.node().clone(), variable.handle().clone(), writer))
    }

    /// A source's method below a folder. An existing method with the same signature and without a source is taken over.
    ///
    /// # Errors
    /// A node of that name exists.
    pub fn method(
        &self,
        source: &Arc<str>,
        path: &[String],
        name: &str,
        signature: Signature,
        on_call: OnCall,
    ) -> Result<(), BuildError> {
        let full = path.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("/");
        let mut entries = lock(&self.entries);
        let mut other = None;
        if let Some(entry) = entries.get_mut(&full).filter(|entry| entry.released.is_some()) {
            self.released.fetch_sub(1, Ordering::Relaxed);
            match &entry.what {
                What::Method { signature: known, caller } if *known == signature => {
                    *lock(caller) = on_call;
                    entry.take_over(source, true);
                    return Ok(());
                }
                _ => other = entries.remove(&full),
            }
        }
        drop(entries);
        if let Some(other) = other {
            self.delete(&[other.node]);
        }
        let caller: Caller = Arc::new(Mutex::new(on_call));
        let asked = Arc::clone(&caller);
        let method = self.folder(path)?.method(name);
        let Signature { inputs, outputs } = signature.clone();
        let node = method.dynamic_handler(inputs, outputs, move |_, inputs| {
            let call = Arc::clone(&*lock(&asked));
            call(inputs)
        })?;
        self.insert(full, Entry::new(node, What::Method { signature, caller }, source, true));
        Ok(())
    }

    fn insert(&self, name: String, entry: Entry) {
        lock(&self.entries).insert(name, entry);
    }

    /// Lets clients read the history of a variable from a store other than the server's.
    ///
    /// # Errors
    /// There is no such variable.
    pub fn keep_history(&self, name: &str, history: NodeHistory) -> Result<(), BuildError> {
        let id = self.id(name);
        Ok(self.namespace.space().set_history(&id, history, false, false, taktwerk_net::clock::wall())?)
    }

    /// The node of a folder or variable that is the source of events. A missing folder is added.
    #[must_use]
    pub fn notifier(&self, path: &[String], is_folder: bool) -> Option<Node> {
        match self.namespace.node(self.id(&path.join("/"))) {
            Ok(node) => Some(node),
            // Limited, because other servers determine the number of objects.
            Err(_) if is_folder && lock(&self.folders).len() < FOLDERS_MAX => self.folder(path).ok(),
            Err(_) => None,
        }
    }

    /// Raises an event of one of the nodes.
    pub fn raise(&self, event: NewEvent) {
        self.namespace.space().raise(event, taktwerk_net::clock::wall());
    }

    /// A counter that changes whenever the state of an alarm of the server changes.
    #[must_use]
    pub fn alarm_changes(&self) -> u64 {
        self.namespace.space().alarms().map_or(0, |alarms| alarms.changes())
    }

    /// The id of the node of a path and name.
    #[must_use]
    pub fn id(&self, name: &str) -> NodeId {
        NodeId::string(self.namespace.index(), name)
    }

    /// Releases the variables of a source. They stay until they are taken over or deleted.
    pub fn release(&self, source: &str) {
        let now = Instant::now();
        for entry in lock(&self.entries).values_mut() {
            if &*entry.source == source && entry.released.is_none() {
                entry.released = Some(now);
                self.released.fetch_add(1, Ordering::Relaxed);
                entry.what.disconnect();
            }
        }
    }

    /// Releases one variable or method.
    pub fn release_one(&self, name: &str) {
        if let Some(entry) = lock(&self.entries).get_mut(name).filter(|entry| entry.released.is_none()) {
            entry.released = Some(Instant::now());
            self.released.fetch_add(1, Ordering::Relaxed);
            entry.what.disconnect();
        }
    }

    /// Deletes released variables of a source unless they are in `wanted` with the same shape. Those of tags are deleted at once.
    /// Those that the source found itself are deleted after `grace`, because finding them again takes time. Folders that become
    /// empty are deleted too.
    ///
    /// Returns whether anything was deleted.
    pub fn sweep(&self, source: &str, grace: Duration, wanted: &Wanted) -> bool {
        self.remove(|name, entry| {
            let is_over = |since: Instant| !entry.is_found || since.elapsed() >= grace;
            let is_free = &*entry.source == source && !entry.is_staged && entry.released.is_some_and(is_over);
            is_free && !(wanted.0.contains_key(name) && wanted.0.get(name) == entry.what.shape())
        })
    }

    /// Deletes the released nodes of these names, and folders that become empty.
    pub fn delete_released(&self, names: &HashSet<String>) {
        if !names.is_empty() {
            self.remove(|name, _| names.contains(name));
        }
    }

    /// Deletes released variables, and folders that become empty.
    fn remove(&self, goes: impl Fn(&str, &Entry) -> bool) -> bool {
        if self.released.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let mut gone = Vec::new();
        let mut entries = lock(&self.entries);
        entries.retain(|name, entry| {
            let goes = entry.released.is_some() && goes(name, entry);
            if goes {
                gone.push(entry.node.clone());
            }
            !goes
        });
        if gone.is_empty() {
            return false;
        }
        let mut used = HashSet::new();
        for name in entries.keys() {
            // All ancestors of a known folder are known too.
            above(name).take_while(|folder| used.insert((*folder).to_owned())).for_each(drop);
        }
        drop(entries);
        self.released.fetch_sub(gone.len(), Ordering::Relaxed);
        self.delete(&gone);
        let mut folders = Vec::new();
        lock(&self.folders).retain(|key, folder| {
            let stays = used.contains(key.trim_start_matches('/'));
            if !stays {
                folders.push(folder.clone());
            }
            stays
        });
        self.namespace.delete_nodes(&folders);
        true
    }

    /// Deletes all nodes and folders.
    pub(crate) fn clear(&self) {
        let entries = core::mem::take(&mut *lock(&self.entries));
        self.released.store(0, Ordering::Relaxed);
        self.delete(&entries.into_values().map(|entry| entry.node).collect::<Vec<_>>());
        let folders = core::mem::take(&mut *lock(&self.folders));
        self.namespace.delete_nodes(&folders.into_values().collect::<Vec<_>>());
    }

    /// Deletes variables with their properties. Some may already be deleted by clients.
    fn delete(&self, variables: &[Node]) {
        // Remove alarms while their variables exist, so that clients that monitor them are notified.
        for variable in variables {
            let alarm = lock(&self.watched).remove(variable.id());
            alarm.into_iter().for_each(Alarm::remove);
        }
        self.namespace.delete_nodes(&self.with_properties(variables));
    }

    /// Variables with their properties, properties first.
    fn with_properties(&self, variables: &[Node]) -> Vec<Node> {
        let of = |node: &Node| {
            let name = |name| QualifiedName::new(0, name);
            PROPERTIES.into_iter().filter_map(|it| node.child_named(&name(it)).ok()).collect::<Vec<_>>()
        };
        variables.iter().flat_map(of).chain(variables.iter().cloned()).collect()
    }

    /// Marks the released variables of a source as stale.
    pub fn age(&self, source: &str, now: taktwerk_types::UtcTime) {
        for entry in lock(&self.entries).values() {
            if &*entry.source == source && entry.released.is_some() {
                let What::Variable { handle, .. } = &entry.what else { continue };
                let last = handle.get();
                if let (Some(value), false) = (last.value, last.status.unwrap_or_default().is_bad()) {
                    let status = StatusCode::UNCERTAIN_LAST_USABLE_VALUE;
                    handle.set_with(value, status, now, now);
                }
            }
        }
    }

    /// Writes the variable of a tag as a client would. Returns what the client would get.
    #[must_use]
    pub fn write(&self, name: &str, value: Variant) -> StatusCode {
        let decide = match lock(&self.entries).get(name).map(|entry| &entry.what) {
            Some(What::Variable { writer: Some(writer), .. }) => Arc::clone(&*lock(writer)),
            Some(_) => return StatusCode::BAD_NOT_WRITABLE,
            None => return StatusCode::BAD_NODE_ID_UNKNOWN,
        };
        // Without the lock: the feed has locks of its own.
        decide(value)
    }

    /// The value of the tag with a path and name, such as `Line 1/Oven/Temperature`.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<DataValue> {
        match &lock(&self.entries).get(path)?.what {
            What::Variable { handle, .. } => Some(handle.get()),
            What::Method { .. } => None,
        }
    }
}

/// The ancestor folders of a name, nearest first.
fn above(name: &str) -> impl Iterator<Item = &str> {
    core::iter::successors(name.rsplit_once('/'), |(folder, _)| folder.rsplit_once('/'))
        .map(|(folder, _)| folder)
}
