//! NodeSets that administrators load and unload with Methods while the server runs.
//!
//! - this module: the settings, the Object with its Methods, and who may call them;
//! - `loaded`: the loaded NodeSets, how they are replaced, and the folder that keeps them over a restart;
//! - `set`: one of them and its file;
//! - `removal`: what a change removes, for applications that need some of it.

mod loaded;
mod removal;
mod set;

use crate::error::BuildError;
use crate::space::{Node, Variable, ns0};
use core::fmt;
use loaded::Loaded;
pub use removal::NodeSetRemoval;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use taktwerk_schema::ids::object_ids;
use taktwerk_schema::{AccessRestrictionType, PermissionType};
use taktwerk_server::AddressSpace;
use taktwerk_server::authorization::Access;
use taktwerk_server::callback::CallContext;
use taktwerk_server::space::import::Importer;
use taktwerk_types::{ByteString, NodeId, StatusCode};

/// Default of [`NodeSetMethods::length_max`].
const LENGTH_MAX: usize = 16 << 20;
/// The roles that may load NodeSets.
const ROLES: [u32; 2] =
    [object_ids::WELL_KNOWN_ROLE_CONFIGURE_ADMIN, object_ids::WELL_KNOWN_ROLE_SECURITY_ADMIN];

/// Whether a change is allowed; an error says what must stay.
type Keep = dyn Fn(&NodeSetRemoval<'_>) -> Result<(), String> + Send + Sync;

/// Settings of the Methods that load NodeSets.
pub struct NodeSetMethods {
    folder: Option<PathBuf>,
    length_max: usize,
    reserved: Vec<String>,
    keep: Box<Keep>,
}

impl fmt::Debug for NodeSetMethods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = f.debug_struct("NodeSetMethods");
        all.field("folder", &self.folder).field("length_max", &self.length_max).finish_non_exhaustive()
    }
}

impl Default for NodeSetMethods {
    fn default() -> Self {
        Self { folder: None, length_max: LENGTH_MAX, reserved: Vec::new(), keep: Box::new(|_| Ok(())) }
    }
}

impl NodeSetMethods {
    /// Without a folder: loaded NodeSets are lost when the server ends.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The folder that keeps loaded NodeSets over a restart. The server imports all its `.xml` files at the start. No
    /// other program should change them while the server runs.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Longest NodeSet in bytes. Default: 16 MiB. All together may have four times as many.
    #[must_use]
    pub fn length_max(mut self, bytes: usize) -> Self {
        self.length_max = bytes;
        self
    }

    /// Namespaces that NodeSets cannot define, because the application may add nodes to them later. Those of which it has
    /// nodes need not be named.
    #[must_use]
    pub fn reserve<U: Into<String>>(mut self, uris: impl IntoIterator<Item = U>) -> Self {
        self.reserved.extend(uris.into_iter().map(Into::into));
        self
    }

    /// Keeps namespaces and nodes that the application needs, for example because its configuration refers to them.
    ///
    /// `keep` is called once before each change that would remove any ([`NodeSetRemoval::nodes`] says what counts as removed),
    /// and by CheckNodeSet. With an `Err`, the change is
    /// refused. Its text is the reason in the log and in the answer of CheckNodeSet. Meanwhile no NodeSet can be loaded or
    /// reloaded, so `keep` must not wait for such a change.
    #[must_use]
    pub fn keep(
        mut self,
        keep: impl Fn(&NodeSetRemoval<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.keep = Box::new(keep);
        self
    }
}

/// The loaded NodeSets and the Methods that change them.
struct NodeSets {
    settings: NodeSetMethods,
    /// The address space owns the Methods, which own this.
    space: Weak<AddressSpace>,
    importer: Arc<Mutex<Importer>>,
    loaded: Mutex<Loaded>,
}

/// Results of a change: the namespaces, the numbers of added and deleted nodes, and warnings.
type Changed = (Vec<String>, u32, u32, Vec<String>);

/// Adds the Object `NodeSets` below the Server Object, and imports the NodeSets in the folder.
pub(super) fn install(
    space: &Arc<AddressSpace>,
    importer: &Arc<Mutex<Importer>>,
    settings: NodeSetMethods,
) -> Result<(), BuildError> {
    let mut loaded = Loaded::default();
    if let Some(folder) = &settings.folder {
        loaded.read(folder)?;
        loaded.import(space, &mut importer.lock().unwrap_or_else(PoisonError::into_inner))?;
    }
    let server = Node { space: Arc::clone(space), id: ns0(object_ids::SERVER), namespace: 1 };
    let object = server.object("NodeSets").node_id(NodeId::string(1, "NodeSets")).add()?;
    let shown = object.variable("NamespaceUris", loaded.namespaces()).add()?;
    let nodesets = Arc::new(NodeSets {
        settings,
        space: Arc::downgrade(space),
        importer: Arc::clone(importer),
        loaded: Mutex::new(loaded),
    });
    let mut added = vec![object.id().clone(), shown.id().clone()];
    let (all, list) = (Arc::clone(&nodesets), shown.clone());
    let load = object
        .method("LoadNodeSet")
        .description("Loads a NodeSet2 file, or replaces the one that defines the same namespaces.")
        .inputs(["NodeSet"])
        .outputs(["NamespaceUris", "AddedNodes", "DeletedNodes", "Warnings"])
        .blocking_handler(move |caller, (text,): (ByteString,)| all.load(caller, &text, &list))?;
    let (all, list) = (Arc::clone(&nodesets), shown);
    let unload = object
        .method("UnloadNamespace")
        .description("Deletes the nodes of the NodeSet that defines a namespace.")
        .inputs(["NamespaceUri"])
        .outputs(["NamespaceUris", "AddedNodes", "DeletedNodes", "Warnings"])
        .blocking_handler(move |caller, (uri,): (String,)| all.unload(caller, &uri, &list))?;
    let check = object
        .method("CheckNodeSet")
        .description("Says why LoadNodeSet would refuse a NodeSet2 file. Empty if it would load it.")
        .inputs(["NodeSet"])
        .outputs(["Problem"])
        .blocking_handler(move |caller, (text,): (ByteString,)| nodesets.check(caller, &text))?;
    for method in [load, unload, check] {
        for arguments in ["InputArguments", "OutputArguments"] {
            let name = taktwerk_types::QualifiedName::new(0, arguments);
            added.extend(space.child(method.id(), &name));
        }
        added.push(method.id().clone());
    }
    for id in added {
        space.set_access(&id, access())?;
    }
    Ok(())
}

/// Administrators may use the Methods, over encrypted channels.
fn access() -> Access {
    let all = PermissionType::BROWSE
        | PermissionType::READ
        | PermissionType::CALL
        | PermissionType::READ_ROLE_PERMISSIONS
        | PermissionType::RECEIVE_EVENTS;
    let encrypted = AccessRestrictionType::SIGNING_REQUIRED | AccessRestrictionType::ENCRYPTION_REQUIRED;
    Access::roles(ROLES.map(|role| (ns0(role), all))).restricted(encrypted)
}

/// Why a Method refuses a NodeSet.
struct Refusal {
    status: StatusCode,
    /// For administrators, in the log and in the answer of CheckNodeSet.
    reason: String,
}

impl Refusal {
    fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }
}

impl From<BuildError> for Refusal {
    fn from(error: BuildError) -> Self {
        Self::new(error.status(), error.to_string())
    }
}

impl NodeSets {
    fn load(
        &self,
        caller: &CallContext,
        text: &ByteString,
        shown: &Variable<Vec<String>>,
    ) -> Result<Changed, StatusCode> {
        self.change(caller, shown, "load", |loaded, space| {
            let text = self.text(text)?;
            loaded.load(space, &mut self.importer(), text, &self.settings)
        })
    }

    fn unload(
        &self,
        caller: &CallContext,
        uri: &str,
        shown: &Variable<Vec<String>>,
    ) -> Result<Changed, StatusCode> {
        self.change(caller, shown, "unload", |loaded, space| {
            loaded.unload(space, &mut self.importer(), uri, &self.settings)
        })
    }

    fn check(&self, caller: &CallContext, text: &ByteString) -> Result<(String,), StatusCode> {
        administers(caller)?;
        let space = self.space.upgrade().ok_or(StatusCode::BAD_SHUTDOWN)?;
        let checked = self
            .text(text)
            .and_then(|text| self.lock().check(&space, &self.importer(), text, &self.settings).map(drop));
        Ok((checked.err().map(|refusal| refusal.reason).unwrap_or_default(),))
    }

    /// Makes a change, logs it, and shows the namespaces that are loaded then.
    fn change(
        &self,
        caller: &CallContext,
        shown: &Variable<Vec<String>>,
        what: &str,
        change: impl FnOnce(&mut Loaded, &AddressSpace) -> Result<Changed, Refusal>,
    ) -> Result<Changed, StatusCode> {
        administers(caller)?;
        let space = self.space.upgrade().ok_or(StatusCode::BAD_SHUTDOWN)?;
        let user = caller.user.as_deref().unwrap_or("Anonymous");
        let mut loaded = self.lock();
        match change(&mut loaded, &space) {
            Ok(changed) => {
                let (uris, added, deleted) = (changed.0.join(", "), changed.1, changed.2);
                tracing::info!(user, uris, added, deleted, "{what} a NodeSet");
                shown.set(loaded.namespaces());
                Ok(changed)
            }
            Err(refusal) => {
                tracing::warn!(user, reason = refusal.reason, "cannot {what} a NodeSet");
                Err(refusal.status)
            }
        }
    }

    fn text<'a>(&self, bytes: &'a ByteString) -> Result<&'a str, Refusal> {
        let (len, max) = (bytes.as_bytes().len(), self.settings.length_max);
        if len > max {
            let reason = format!("the NodeSet has {len} bytes; at most {max} are allowed");
            return Err(Refusal::new(StatusCode::BAD_REQUEST_TOO_LARGE, reason));
        }
        core::str::from_utf8(bytes.as_bytes())
            .map_err(|error| Refusal::new(StatusCode::BAD_DECODING_ERROR, format!("not UTF-8: {error}")))
    }

    fn importer(&self) -> MutexGuard<'_, Importer> {
        self.importer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The nodes have these restrictions, too. An application may have changed them.
fn administers(caller: &CallContext) -> Result<(), StatusCode> {
    if !caller.encrypted {
        return Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    }
    let is_admin = ROLES.iter().any(|role| caller.roles.contains(&ns0(*role)));
    if is_admin { Ok(()) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) }
}
