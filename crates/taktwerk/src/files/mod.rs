//! Directories on disk as FileType and FileDirectoryType objects (Part 20 §4.2, §4.3).
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use taktwerk::files::{FileSystem, FolderOptions};
//!
//! let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build()?;
//! let files = FileSystem::new(&server)?;
//! let recipes = server.namespace("urn:example").folder("Machine")?;
//! files.share(&recipes, "Recipes", "/var/lib/machine/recipes", FolderOptions::default())?;
//! # Ok(())
//! # }
//! ```
//!
//! No path leads out of a shared directory: names are checked, and symbolic links are neither shown nor followed. Methods run on
//! worker threads. Open files belong to the session that opened them and are charged to it.
//!
//! The application generates and processes temporary files (Part 20 §4.4): see [`FileSystem::transfer`].
//!
//! - `transfer`: temporary files; `preparing`: content that is generated and processed asynchronously; `disk`: access to the
//!   directory; `handles`: open files;
//! - `methods`: the Methods; `nodes`: the objects of files; `shown`: the mapping between nodes and files.

mod disk;
mod handles;
mod methods;
mod nodes;
mod preparing;
mod shown;
mod transfer;

pub use transfer::Transfer;

use crate::error::BuildError;
use crate::lock::lock;
use crate::server::Server;
use crate::space::{Node, Space};
use disk::{Folder, Route};
use handles::Handles;
use shown::Shown;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use taktwerk_server::callback::CallContext;
use taktwerk_types::{NodeId, StatusCode};
use transfer::Transfers;

/// Permissions and limits of a shared directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderOptions {
    /// Roles that may read. Empty (the default): all that may call methods.
    pub read: Vec<NodeId>,
    /// Roles that may write, create, move, delete, and read. Empty (the default): none.
    pub write: Vec<NodeId>,
    /// Largest file that clients can write, in bytes. Default: 64 MiB.
    pub file_bytes_max: u64,
    /// Maximum size of all files together, in bytes; clients cannot write more. Default: 1 GiB.
    pub bytes_max: u64,
    /// Most files and directories that are shown. Default: 10 000.
    pub entries_max: usize,
}

impl Default for FolderOptions {
    fn default() -> Self {
        Self {
            read: Vec::new(),
            write: Vec::new(),
            file_bytes_max: 64 << 20,
            bytes_max: 1 << 30,
            entries_max: 10_000,
        }
    }
}

impl FolderOptions {
    /// Sets the roles that may read.
    #[must_use]
    pub fn read(mut self, roles: impl Into<Vec<NodeId>>) -> Self {
        self.read = roles.into();
        self
    }

    /// Sets the roles that may write.
    #[must_use]
    pub fn write(mut self, roles: impl Into<Vec<NodeId>>) -> Self {
        self.write = roles.into();
        self
    }

    /// Sets the maximum size of all files together, in bytes.
    #[must_use]
    pub fn bytes_max(mut self, bytes: u64) -> Self {
        self.bytes_max = bytes;
        self.file_bytes_max = self.file_bytes_max.min(bytes);
        self
    }

    fn check_write(&self, caller: &CallContext) -> Result<(), StatusCode> {
        let may = caller.roles.iter().any(|role| self.write.contains(role));
        if may { Ok(()) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) }
    }

    fn check_read(&self, caller: &CallContext) -> Result<(), StatusCode> {
        if self.read.is_empty() || caller.roles.iter().any(|role| self.read.contains(role)) {
            return Ok(());
        }
        self.check_write(caller)
    }
}

/// A shared directory.
#[derive(Debug)]
struct Shared {
    folder: Folder,
    options: FolderOptions,
    namespace: u16,
    /// Size of all files as far as known: measured when the directory was last read, plus what was written since.
    used: AtomicU64,
}

impl Shared {
    /// Records that a file has become shorter.
    fn shrink(&self, bytes: u64) {
        // A concurrent refresh resets the number, so it may be smaller than `bytes`.
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Records that a file grows.
    fn grow(&self, bytes: u64) -> Result<(), StatusCode> {
        if bytes == 0 {
            return Ok(());
        }
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.options.bytes_max);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            Err(_) => Err(StatusCode::BAD_RESOURCE_UNAVAILABLE),
        }
    }
}

/// The file or directory of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    /// The index of the shared directory.
    folder: usize,
    route: Route,
    is_directory: bool,
}

struct Inner {
    space: Space,
    folders: Mutex<Vec<Arc<Shared>>>,
    nodes: Mutex<Shown>,
    handles: Mutex<Handles>,
    transfers: Mutex<Transfers>,
    /// Serializes changes of the nodes.
    changing: Mutex<()>,
}

impl Inner {
    fn folder(&self, number: usize) -> Result<Arc<Shared>, StatusCode> {
        lock(&self.folders).get(number).cloned().ok_or(StatusCode::BAD_NOT_FOUND)
    }

    /// Deletes temporary files that are no longer used.
    fn tidy_transfers(&self) {
        let gone = lock(&self.transfers).tidy(std::time::Instant::now());
        gone.forget(&self.space);
    }

    /// The file or directory of the object on which a method is called.
    fn target(&self, node: &NodeId, is_directory: bool) -> Result<(Target, Arc<Shared>), StatusCode> {
        let target =
            lock(&self.nodes).target(node).cloned().filter(|target| target.is_directory == is_directory);
        let target = target.ok_or(StatusCode::BAD_NOT_SUPPORTED)?;
        let folder = self.folder(target.folder)?;
        Ok((target, folder))
    }
}

/// The files of a server. Create one per server; it can share many directories.
#[derive(Clone)]
pub struct FileSystem(Arc<Inner>);

impl core::fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FileSystem").finish_non_exhaustive()
    }
}

impl FileSystem {
    /// Implements the Methods of FileType and FileDirectoryType.
    ///
    /// # Errors
    /// The standard types are missing from namespace 0, which does not happen.
    pub fn new(server: &Server) -> Result<Self, BuildError> {
        let inner = Arc::new(Inner {
            space: Arc::clone(server.space()),
            folders: Mutex::default(),
            nodes: Mutex::default(),
            handles: Mutex::default(),
            transfers: Mutex::default(),
            changing: Mutex::default(),
        });
        methods::install(&inner)?;
        Ok(Self(inner))
    }

    /// Shows a directory on disk below a node.
    ///
    /// # Errors
    /// The directory cannot be read, or the node has a child with that name.
    pub fn share(
        &self,
        parent: &Node,
        name: &str,
        folder: impl AsRef<Path>,
        options: FolderOptions,
    ) -> Result<Node, BuildError> {
        let path = folder.as_ref();
        let failed = |source| BuildError::File { path: path.to_owned(), source };
        let folder = Folder::open(path).map_err(failed)?;
        let id = parent.child_id(name);
        let shared =
            Arc::new(Shared { folder, options, namespace: parent.namespace, used: AtomicU64::new(0) });
        nodes::add_directory(&self.0, &shared, &id, parent.child_name(name), &parent.id)?;
        let number = {
            let mut folders = lock(&self.0.folders);
            folders.push(Arc::clone(&shared));
            folders.len() - 1
        };
        let target = Target { folder: number, route: Route::default(), is_directory: true };
        lock(&self.0.nodes).insert(id.clone(), target);
        nodes::refresh(&self.0, number).map_err(failed)?;
        Ok(Node { space: Arc::clone(&parent.space), id, namespace: parent.namespace })
    }

    /// Shows an Object of TemporaryFileTransferType below a node: clients download files that `transfer` generates, and upload
    /// files to it.
    ///
    /// ```no_run
    /// # fn example(files: taktwerk::files::FileSystem, machine: taktwerk::Node) -> Result<(), Box<dyn std::error::Error>> {
    /// use taktwerk::files::{FolderOptions, Transfer};
    ///
    /// let report = Transfer::new(FolderOptions::default())
    ///     .on_read(|_, _| Ok(b"shift;pieces\nearly;1200\n".to_vec()));
    /// files.transfer(&machine, "Report", report)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The node has a child with that name.
    pub fn transfer(&self, parent: &Node, name: &str, transfer: Transfer) -> Result<Node, BuildError> {
        let id = parent.child_id(name);
        nodes::add_transfer(&self.0, &transfer, &id, parent.child_name(name), &parent.id)?;
        lock(&self.0.transfers).add(id.clone(), transfer);
        Ok(Node { space: Arc::clone(&parent.space), id, namespace: parent.namespace })
    }

    /// Reads the directories again, to show what other programs have added or deleted. It reads all directories and may block. It
    /// also deletes temporary files of ended sessions and silent clients.
    ///
    /// # Errors
    /// The first directory that cannot be read; the others are updated.
    pub fn refresh(&self) -> std::io::Result<()> {
        self.0.tidy_transfers();
        let count = lock(&self.0.folders).len();
        let mut first = Ok(());
        for number in 0..count {
            let refreshed = nodes::refresh(&self.0, number);
            first = first.and(refreshed);
        }
        first
    }
}
