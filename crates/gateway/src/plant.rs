//! The nodes of the gateway in the address space.

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

/// Folders whose types are remembered.
const MODELS_MAX: usize = 1_000_000;
/// Folders beyond which none is added for an event of another server.
const FOLDERS_MAX: usize = 100_000;
const FOLDER_TYPE: NodeId = NodeId::numeric(0, object_type_ids::FOLDER_TYPE);

/// What variables and methods have below them.
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

/// Decides on what a client writes.
pub type OnWrite = Arc<dyn Fn(Variant) -> StatusCode + Send + Sync>;

/// Who decides on writes now.
type Writer = Arc<Mutex<OnWrite>>;

/// What clients can see of a variable without reading its value. As long as it is the same, the variable stays.
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

/// Variables that there will be, by path and name. Of those that are there already, the ones that look like this stay.
#[derive(Debug, Default)]
pub struct Wanted(HashMap<String, Shape>);

impl Wanted {
    /// Adds the variable of a tag. `every` is the interval of its source.
    pub fn add(&mut self, tag: &Tag, kind: Kind, every: Option<Duration>) {
        self.0.insert(tag.full_name(), Shape::of(tag, kind, every));
    }
}

/// Carries out what a client calls.
pub type OnCall = Arc<dyn Fn(Vec<Variant>) -> BoxFuture<'static, MethodResult> + Send + Sync>;

/// Who carries out calls now.
type Caller = Arc<Mutex<OnCall>>;

/// The arguments of a method.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Signature {
    /// InputArguments.
    pub inputs: Vec<Argument>,
    /// OutputArguments.
    pub outputs: Vec<Argument>,
}

/// What a node is.
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

    /// Nobody is there for clients any more.
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
    /// Whether the source has added it while it ran.
    is_found: bool,
    /// Since when no source feeds it.
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

/// A variable that a source may feed.
#[derive(Debug)]
pub struct Given {
    /// The variable.
    pub handle: VariableHandle,
    /// Whether it was there before, with a value.
    pub is_kept: bool,
}

/// Where tags become nodes.
pub struct Plant {
    namespace: Namespace,
    folders: Mutex<HashMap<String, Node>>,
    /// The variables of all sources by path and name.
    entries: Mutex<HashMap<String, Entry>>,
    /// How many variables no source feeds.
    released: AtomicUsize,
    /// What sources leave for those that follow them, by their names.
    kept: Mutex<HashMap<String, Arc<dyn Any + Send + Sync>>>,
    /// The types of other servers.
    catalogue: Catalogue,
    /// The alarms of other servers.
    alarms: MirroredAlarms,
    /// The alarms of tags, by their variables.
    watched: Mutex<HashMap<NodeId, Alarm>>,
    /// What folders are at the servers that they mirror, by their paths.
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

    /// Says what a folder is at the server that it mirrors. A folder that is there stays as it is.
    pub fn model_folder(&self, path: &[String], model: Model) {
        let key: String = path.iter().flat_map(|name| ["/", name]).collect();
        let mut models = lock(&self.models);
        if model != Model::default() && models.len() < MODELS_MAX {
            models.insert(key, model);
        }
    }

    /// Keeps something for the next source of this name: one whose settings are changed is made anew.
    pub fn keep(&self, source: &str, what: Arc<dyn Any + Send + Sync>) {
        lock(&self.kept).insert(source.to_owned(), what);
    }

    /// What the last source of this name has kept, if it is of this type.
    #[must_use]
    pub fn kept<T: Any + Send + Sync>(&self, source: &str) -> Option<Arc<T>> {
        let what = lock(&self.kept).get(source).cloned()?;
        what.downcast().ok()
    }

    /// There is no source of this name any more.
    pub fn forget(&self, source: &str) {
        lock(&self.kept).remove(source);
        self.catalogue.forget(source);
        self.alarms.end(source);
    }

    /// Removes the types of other servers that nothing uses any more, some at a time. It blocks for as long as that takes.
    pub fn sweep_types(&self) {
        let count = self.catalogue.sweep(self.space(), || self.types());
        if count > 0 {
            tracing::debug!(count, "nodes of types that no source has any more were deleted");
        }
    }

    /// The types of other servers that nodes have.
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
        // Models of folders that are not there any more may be of use again, but their types need not stay.
        lock(&self.models)
            .iter()
            .filter(|(key, _)| folders.contains_key(*key))
            .for_each(|(_, model)| keep(model));
        types
    }

    /// The folder of a path; what is missing of it is added.
    fn folder(&self, path: &[String]) -> Result<Node, BuildError> {
        let mut folders = lock(&self.folders);
        let mut parent = self.namespace.objects();
        let mut key = String::new();
        for name in path {
            key.push('/');
            key.push_str(name);
            // Clients with the right to it can delete nodes, and the folder then has to be added again.
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

    /// Whether the variable of a tag could be added, if the sources in `going` were not there.
    ///
    /// # Errors
    /// There is a node of that name.
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

    /// The variable of a tag. One that is there, looks the same and is not fed any more is taken over.
    ///
    /// # Errors
    /// There is a node of that name.
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
        // The address space is changed without this lock: what holds the address space may wait for a feed, which may
        // wait for this.
        drop(entries);
        if let Some(other) = other {
            self.delete(&[other.node]);
        }
        let (node, handle, writer) = self.add(tag, &shape, on_write)?;
        let what = What::Variable { handle: handle.clone(), shape: Box::new(shape), writer };
        self.insert(name, Entry::new(node, what, source, is_found));
        Ok(Given { handle, is_kept: false })
    }

    /// Adds the variable of a tag before its source runs. What cannot be added before other variables are gone is left
    /// out. [`Self::unstage`] takes back what was added.
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

    /// Deletes the variables that were added for sources that do not run, and the folders that are empty then.
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
                // An error status is what the client gets; it may be good.
                Err(decide(value))
            });
        }
        if tag.historize {
            builder = builder.historize();
        }
        let variable = builder.add()?;
        let access = tag.roles.access(tag.access == Access::ReadWrite);
        if access != Default::default() {
            // With its Properties: they tell as much as the value.
            for node in self.with_properties(core::slice::from_ref(variable.node())) {
                self.space().set_access(node.id(), access.clone())?;
            }
        }
        if let Some(alarm) = &tag.alarm {
            // The type may have become known only now.
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

    /// The method of a source, below a folder. One that is there, looks the same and has nobody to carry it out is taken
    /// over.
    ///
    /// # Errors
    /// There is a node of that name.
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

    /// Lets clients read the history of a variable from a store that is not the server's.
    ///
    /// # Errors
    /// There is no such variable.
    pub fn keep_history(&self, name: &str, history: NodeHistory) -> Result<(), BuildError> {
        let id = self.id(name);
        Ok(self.namespace.space().set_history(&id, history, false, false, taktwerk_net::clock::wall())?)
    }

    /// The node of a folder or variable, where its events come from. A folder is added if it is not there.
    #[must_use]
    pub fn notifier(&self, path: &[String], is_folder: bool) -> Option<Node> {
        match self.namespace.node(self.id(&path.join("/"))) {
            Ok(node) => Some(node),
            // Other servers say which objects there are, again and again.
            Err(_) if is_folder && lock(&self.folders).len() < FOLDERS_MAX => self.folder(path).ok(),
            Err(_) => None,
        }
    }

    /// Raises an event of one of the nodes.
    pub fn raise(&self, event: NewEvent) {
        self.namespace.space().raise(event, taktwerk_net::clock::wall());
    }

    /// A number that another one follows whenever the state of an alarm of the server changes.
    #[must_use]
    pub fn alarm_changes(&self) -> u64 {
        self.namespace.space().alarms().map_or(0, |alarms| alarms.changes())
    }

    /// The id of the node of a path and name.
    #[must_use]
    pub fn id(&self, name: &str) -> NodeId {
        NodeId::string(self.namespace.index(), name)
    }

    /// The variables of a source are not fed any more. They stay until they are taken over or deleted.
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

    /// One variable is not fed any more.
    pub fn release_one(&self, name: &str) {
        if let Some(entry) = lock(&self.entries).get_mut(name).filter(|entry| entry.released.is_none()) {
            entry.released = Some(Instant::now());
            self.released.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Deletes variables of a source that are not fed, unless they are wanted as they are: those of tags at once, those
    /// that the source had found itself after `grace`, because it needs time to find them again. Folders that are empty
    /// then go too.
    ///
    /// Says whether anything was deleted.
    pub fn sweep(&self, source: &str, grace: Duration, wanted: &Wanted) -> bool {
        self.remove(|name, entry| {
            let is_over = |since: Instant| !entry.is_found || since.elapsed() >= grace;
            let is_free = &*entry.source == source && !entry.is_staged && entry.released.is_some_and(is_over);
            is_free && !(wanted.0.contains_key(name) && wanted.0.get(name) == entry.what.shape())
        })
    }

    /// Deletes variables that are not fed, and the folders that are empty then.
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
            // What is above a folder that is known is known too.
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

    /// Deletes variables with their properties. They may be gone: clients with the right to it can delete nodes.
    fn delete(&self, variables: &[Node]) {
        // While their variables are there: clients that monitor them are told that the alarms are gone.
        for variable in variables {
            let alarm = lock(&self.watched).remove(variable.id());
            alarm.into_iter().for_each(Alarm::remove);
        }
        self.namespace.delete_nodes(&self.with_properties(variables));
    }

    /// Variables with their properties, which come first.
    fn with_properties(&self, variables: &[Node]) -> Vec<Node> {
        let of = |node: &Node| {
            let name = |name| QualifiedName::new(0, name);
            PROPERTIES.into_iter().filter_map(|it| node.child_named(&name(it)).ok()).collect::<Vec<_>>()
        };
        variables.iter().flat_map(of).chain(variables.iter().cloned()).collect()
    }

    /// Variables that no source feeds get the status of a value that is not fresh.
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

    /// The value of the tag with a path and name, such as `Line 1/Oven/Temperature`.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<DataValue> {
        match &lock(&self.entries).get(path)?.what {
            What::Variable { handle, .. } => Some(handle.get()),
            What::Method { .. } => None,
        }
    }
}

/// The folders of a path and name, the nearest one first.
fn above(name: &str) -> impl Iterator<Item = &str> {
    core::iter::successors(name.rsplit_once('/'), |(folder, _)| folder.rsplit_once('/'))
        .map(|(folder, _)| folder)
}
