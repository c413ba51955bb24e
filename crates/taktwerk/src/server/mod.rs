//! Servers: configured with [`ServerBuilder`], populated as a [`Server`], then running.

mod alias_methods;
mod builder;
mod certificate_alarms;
mod identities;
mod import;
mod nodesets;
mod push;
mod running;
mod stopper;

pub use builder::{ServerBuilder, default_application_uri};
pub use nodesets::{NodeSetMethods, NodeSetRemoval};
pub use running::RunningServer;
pub use stopper::Stopper;
pub use taktwerk_crypto::Secret;
pub use taktwerk_net::{AuditSink, ServerOptions, TurnTimes, Turns};
pub use taktwerk_server::ModelChangeEvents;
pub use taktwerk_server::audit::{AuditConfig, AuditRecord};
pub use taktwerk_server::authorization::{self, Authorization};
pub use taktwerk_server::config::{BuildInfo, ConfigProblem, EndpointConfig, UserTokenConfig, UserTokenKind};
pub use taktwerk_server::durable::{Change as DurableChange, DurableConfig, DurableStore, Log as DurableLog};
pub use taktwerk_server::identity::{Accepted, Credential, IdentityVerifier, User, Verdict, Verification};
pub use taktwerk_server::space::import::Imported;

use crate::alarms::{AlarmError, AlarmFile, ConditionSpec, Conditions, GroupSpec};
use crate::error::BuildError;
use crate::history::{HistoryOpener, QUEUE_LEN, RecorderThread, WaitingStore};
use crate::space::{Namespace, Node, SourceBuilder, ns0};
use core::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_net::{Listener, StartError};
use taktwerk_nodeset::TypeDictionary;
use taktwerk_schema::ids::object_ids;
use taktwerk_server::space::QUEUED_CHANGES_MAX;
use taktwerk_server::space::import::Importer;
use taktwerk_server::{AddressSpace, ServerConfig, ServerShared};
use taktwerk_types::NodeId;

/// A server before it runs. Nodes can be added before and while it runs.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    space: Arc<AddressSpace>,
    shards: usize,
    options: ServerOptions,
    listeners: Vec<Listener>,
    importer: Arc<Mutex<Importer>>,
    alarm_file: Option<AlarmFile>,
    history: Option<Arc<WaitingStore>>,
}

impl Server {
    /// Begins a server.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    pub(super) fn new(
        config: ServerConfig,
        shards: usize,
        history: Option<HistoryOpener>,
        options: ServerOptions,
        listeners: Vec<Listener>,
    ) -> Self {
        let uri = &config.application_uri;
        let space = match &history {
            Some(_) => AddressSpace::with_recorder(shards, QUEUED_CHANGES_MAX, QUEUE_LEN, uri),
            None => AddressSpace::new(shards, QUEUED_CHANGES_MAX, uri),
        };
        let history = history.map(|store| Arc::new(WaitingStore::new(store)));
        if let Some(store) = &history {
            space.set_history_store(Arc::clone(store) as _);
        }
        let space = Arc::new(space);
        if config.node_management {
            alias_methods::install(&space, &config.application_uri);
        }
        let importer = Arc::new(Mutex::new(Importer::new(TypeDictionary::namespace_zero())));
        Self { config, space, shards, options, listeners, importer, alarm_file: None, history }
    }

    pub(super) fn keep_alarms(&mut self, file: AlarmFile) {
        self.alarm_file = Some(file);
    }

    /// Adds a condition that the builders do not support.
    ///
    /// # Errors
    /// As [`AlarmBuilder::add`](crate::AlarmBuilder::add).
    pub fn add_condition(&self, spec: ConditionSpec) -> Result<(), AlarmError> {
        self.conditions().add(spec)
    }

    /// Adds a group of existing alarms.
    ///
    /// # Errors
    /// As [`AlarmGroupBuilder::add`](crate::space::AlarmGroupBuilder::add).
    pub fn add_alarm_group(&self, spec: &GroupSpec) -> Result<(), AlarmError> {
        self.conditions().add_group(spec)
    }

    /// Computes metrics of all alarms of the server as the component AlarmMetrics of the Server Object. Rates are alarms per
    /// `rate_minutes`.
    ///
    /// # Errors
    /// The server has metrics already.
    pub fn alarm_metrics(&self, rate_minutes: u16) -> Result<(), AlarmError> {
        let object = ns0(object_ids::SERVER);
        let id = NodeId::string(1, "AlarmMetrics");
        self.space.add_alarm_metrics(&object, id, rate_minutes, crate::space::now())?;
        crate::space::alarm_thread::watch(&self.space);
        Ok(())
    }

    /// Stores all events in the history. Clients can read those of every Object with an EventNotifier, and can change them if
    /// `writable` is set and their roles allow it.
    ///
    /// # Errors
    /// The server has no history store.
    pub fn record_events(&self, writable: bool) -> Result<(), BuildError> {
        Ok(self.space.historize_events(writable, crate::space::now())?)
    }

    /// Call this when the provider's certificates have changed: it updates the alarm CertificateExpired.
    pub fn certificates_changed(&self) {
        certificate_alarms::certificates_changed(&self.space, &*self.config.provider);
    }

    /// The server's conditions, for lists and operators' actions in this process.
    #[must_use]
    pub fn conditions(&self) -> Conditions {
        Conditions::of(&self.space)
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// A namespace to add nodes to. A new one is registered.
    #[must_use]
    pub fn namespace(&self, uri: &str) -> Namespace {
        Namespace::new(Arc::clone(&self.space), uri)
    }

    /// The Objects folder. Its children are in the server's own namespace with index 1.
    #[must_use]
    pub fn objects(&self) -> Node {
        Node { space: Arc::clone(&self.space), id: ns0(object_ids::OBJECTS_FOLDER), namespace: 1 }
    }

    /// Begins a source that reads many variables together, such as a device. The name is for logs.
    pub fn source(&self, name: &str) -> SourceBuilder {
        SourceBuilder::new(Arc::clone(&self.space), name)
    }

    /// The address space, for functions that the builders do not offer.
    #[must_use]
    pub fn space(&self) -> &Arc<AddressSpace> {
        &self.space
    }

    /// The addresses on which the server listens, with the actual ports.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(Listener::address).collect()
    }

    /// Imports NodeSet2 files, in any order: companion specifications and models based on them. Required files must be imported
    /// together or before.
    ///
    /// # Errors
    /// A file cannot be read, has a mistake (the error names file and line), or requires a model that is missing. No nodes are
    /// added then.
    pub fn import_nodesets<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Imported, BuildError> {
        let mut importer = self.importer.lock().unwrap_or_else(PoisonError::into_inner);
        import::import(&self.space, &mut importer, paths)
    }

    /// Registers a namespace for nodes of the application. NodeSets that define it cannot be imported or loaded.
    ///
    /// # Errors
    /// An imported NodeSet defines it.
    pub fn reserve_namespace(&self, uri: &str) -> Result<(), BuildError> {
        self.importer.lock().unwrap_or_else(PoisonError::into_inner).reserve(uri, None)?;
        self.space.add_namespace(uri);
        Ok(())
    }

    /// Adds the Object `NodeSets` (`ns=1;s=NodeSets`) below the Server Object. Administrators load and unload NodeSets with
    /// its Methods while clients are connected. They need the role ConfigureAdmin or SecurityAdmin, and an encrypted channel.
    ///
    /// # Errors
    /// A file in the folder cannot be read or has a mistake, or the Object exists already.
    pub fn nodeset_methods(&self, settings: NodeSetMethods) -> Result<(), BuildError> {
        nodesets::install(&self.space, &self.importer, settings)
    }

    /// Runs the server on its own threads.
    ///
    /// # Errors
    /// A thread cannot be started, or the durable subscriptions cannot be read.
    pub fn spawn(self) -> Result<RunningServer, StartError> {
        let origin = taktwerk_net::clock::origin();
        let shared = ServerShared::new(self.config, self.space, self.shards, origin);
        let restored = shared.load_durable();
        restored.map_err(|error| StartError::Durable { reason: error.message })?;
        let recorder = match &self.history {
            Some(store) => RecorderThread::start(shared.space(), store),
            None => Ok(None),
        };
        let recorder = recorder.map_err(|source| StartError::Recorder { source })?;
        let inner = taktwerk_net::RunningServer::start_on(&shared, self.listeners, self.options)?;
        Ok(RunningServer::new(inner, recorder, self.alarm_file, self.importer))
    }

    /// Runs the server and returns only after a failure of the kernel. Use [`Self::spawn`] to be able to stop it.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn run(self) -> Result<(), StartError> {
        self.spawn()?.join();
        Ok(())
    }
}
