//! A running server.

use super::stopper::Stopper;
use super::{certificate_alarms, import};
use crate::alarms::{AlarmFile, Conditions};
use crate::error::BuildError;
use crate::history::{RecorderCounters, RecorderThread};
use crate::space::{Namespace, Node, SourceBuilder, ns0};
use core::net::SocketAddr;
use core::time::Duration;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_schema::ids::object_ids;
use taktwerk_server::space::import::{Batch, Imported, Importer, Prepared};
use taktwerk_server::{AddressSpace, ServerShared};

/// A running server. Dropping it closes all connections immediately; [`RunningServer::stop`] closes them gracefully.
#[derive(Debug)]
pub struct RunningServer {
    inner: taktwerk_net::RunningServer,
    /// Stopped after the server.
    recorder: Option<RecorderThread>,
    /// Written once more on drop.
    alarm_file: Option<AlarmFile>,
    /// Knows the imported NodeSets.
    importer: Arc<Mutex<Importer>>,
}

impl RunningServer {
    pub(super) fn new(
        inner: taktwerk_net::RunningServer,
        recorder: Option<RecorderThread>,
        alarm_file: Option<AlarmFile>,
        importer: Arc<Mutex<Importer>>,
    ) -> Self {
        Self { inner, recorder, alarm_file, importer }
    }

    /// Reads NodeSet2 files that replace those of an earlier import, or, without one, are added. Nothing changes before
    /// [`Self::replace_nodesets`], except that their namespaces are registered.
    ///
    /// # Errors
    /// A file cannot be read, has a mistake or conflicts with existing nodes, or another import requires a model that would be
    /// removed.
    pub fn prepare_nodesets<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
        instead: Option<Batch>,
    ) -> Result<Prepared, BuildError> {
        let mut importer = self.importer.lock().unwrap_or_else(PoisonError::into_inner);
        import::prepare(self.space(), &mut importer, paths, instead)
    }

    /// Reserves a namespace for nodes that the application may add. NodeSets that define it cannot be imported or loaded.
    /// `coming` are the NodeSets that [`Self::replace_nodesets`] imports next.
    ///
    /// # Errors
    /// An imported or coming NodeSet defines it. Nothing is reserved then.
    pub fn reserve_namespace(&self, uri: &str, coming: Option<&Prepared>) -> Result<(), BuildError> {
        let mut importer = self.importer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(importer.reserve(uri, coming)?)
    }

    /// Replaces NodeSets while clients are connected. Nodes that are equal in both stay, with their values, monitored items and
    /// application bindings. Changed nodes are deleted and added again. Namespaces stay registered.
    ///
    /// # Errors
    /// [`BuildError::Outdated`]: nothing has changed.
    pub fn replace_nodesets(&self, prepared: Prepared) -> Result<Imported, BuildError> {
        let mut importer = self.importer.lock().unwrap_or_else(PoisonError::into_inner);
        if !importer.is_current(&prepared) {
            return Err(BuildError::Outdated);
        }
        Ok(import::replace(self.space(), &mut importer, prepared))
    }

    /// The addresses on which the server listens, with the actual ports.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.inner.addresses()
    }

    /// A URL for clients on this machine.
    #[must_use]
    pub fn url(&self) -> String {
        let address = self.addresses().first().copied();
        let mut address = address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 4840)));
        if address.ip().is_unspecified() {
            let loopback = if address.is_ipv4() { "127.0.0.1" } else { "::1" };
            address.set_ip(loopback.parse().unwrap_or(address.ip()));
        }
        format!("opc.tcp://{address}")
    }

    /// The number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.inner.connections()
    }

    /// The recorder's counters; `None` without a history store.
    #[must_use]
    pub fn recorder(&self) -> Option<&Arc<RecorderCounters>> {
        self.recorder.as_ref().map(RecorderThread::counters)
    }

    /// A handle that stops the server from any thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        let recording = self.recorder.as_ref().map(|it| Arc::clone(it.recording()));
        let alarms = self.alarm_file.as_ref().map(AlarmFile::saver).unwrap_or_default();
        Stopper::new(self.inner.stopper(), recording, alarms)
    }

    /// Call this when the provider's certificates have changed: it updates the alarm CertificateExpired.
    pub fn certificates_changed(&self) {
        certificate_alarms::certificates_changed(self.space(), &*self.shared().config().provider);
    }

    /// The server's conditions, for lists and operators' actions in this process, such as in a dashboard.
    #[must_use]
    pub fn conditions(&self) -> Conditions {
        Conditions::of(self.space())
    }

    /// Configuration and counters.
    #[must_use]
    pub fn shared(&self) -> &Arc<ServerShared> {
        self.inner.shared()
    }

    /// The address space.
    #[must_use]
    pub fn space(&self) -> &Arc<AddressSpace> {
        self.inner.shared().space()
    }

    /// A namespace to add nodes to. A new one is registered.
    #[must_use]
    pub fn namespace(&self, uri: &str) -> Namespace {
        Namespace::new(Arc::clone(self.space()), uri)
    }

    /// Begins a source that reads many variables together, such as a device. The name is for logs.
    pub fn source(&self, name: &str) -> SourceBuilder {
        SourceBuilder::new(Arc::clone(self.space()), name)
    }

    /// The Objects folder. Its children are in the server's own namespace with index 1.
    #[must_use]
    pub fn objects(&self) -> Node {
        Node { space: Arc::clone(self.space()), id: ns0(object_ids::OBJECTS_FOLDER), namespace: 1 }
    }

    /// Stops listening and ends all sessions. Connections still open after `grace` are closed.
    pub fn stop(self, grace: Duration) {
        self.inner.stop(grace);
        drop(self.alarm_file);
    }

    /// Whether the server has stopped after a failure of the system or an internal error; the log has the reason. Start a new
    /// server then.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner.has_ended()
    }

    /// Waits until the server stops. Without [`Self::stop`] this happens only after a failure of the kernel.
    pub fn join(self) {
        self.inner.join();
    }
}
