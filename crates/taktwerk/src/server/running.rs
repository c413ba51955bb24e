//! A server while it runs.

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

/// A running server. Dropping it closes all connections at once; [`RunningServer::stop`] lets them end.
#[derive(Debug)]
pub struct RunningServer {
    inner: taktwerk_net::RunningServer,
    /// Ends after the server.
    recorder: Option<RecorderThread>,
    /// Written a last time when it is dropped.
    alarm_file: Option<AlarmFile>,
    /// Knows which NodeSets there are.
    importer: Mutex<Importer>,
}

impl RunningServer {
    pub(super) fn new(
        inner: taktwerk_net::RunningServer,
        recorder: Option<RecorderThread>,
        alarm_file: Option<AlarmFile>,
        importer: Mutex<Importer>,
    ) -> Self {
        Self { inner, recorder, alarm_file, importer }
    }

    /// Reads NodeSet2 files that are to replace those of an earlier import, or, without one, to come besides all others.
    /// Nothing changes before [`Self::replace_nodesets`], except that their namespaces are registered.
    ///
    /// # Errors
    /// A file cannot be read, has a mistake or does not fit what is there, or a model of another import requires one that
    /// would go.
    pub fn prepare_nodesets<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
        instead: Option<Batch>,
    ) -> Result<Prepared, BuildError> {
        let importer = self.importer.lock().unwrap_or_else(PoisonError::into_inner);
        import::prepare(self.space(), &importer, paths, instead)
    }

    /// Puts files in place of others while clients are connected. Nodes that are the same in both stay, with their values,
    /// what monitors them and what the application has bound to them. Nodes that have changed are deleted and added again.
    /// Namespaces stay registered.
    pub fn replace_nodesets(&self, prepared: Prepared) -> Imported {
        let mut importer = self.importer.lock().unwrap_or_else(PoisonError::into_inner);
        import::replace(self.space(), &mut importer, prepared)
    }

    /// Where the server listens, with the ports that were really taken.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.inner.addresses()
    }

    /// An URL that clients on this machine can use.
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

    /// How many connections are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.inner.connections()
    }

    /// What was recorded; `None` without a store of history.
    #[must_use]
    pub fn recorder(&self) -> Option<&Arc<RecorderCounters>> {
        self.recorder.as_ref().map(RecorderThread::counters)
    }

    /// To be called when the provider has other certificates than before: the alarm CertificateExpired follows.
    pub fn certificates_changed(&self) {
        certificate_alarms::certificates_changed(self.space(), &*self.shared().config().provider);
    }

    /// Its conditions, for lists and operators' actions in this process: dashboards, panels.
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

    /// A namespace to add nodes to; registers it if it is new.
    #[must_use]
    pub fn namespace(&self, uri: &str) -> Namespace {
        Namespace::new(Arc::clone(self.space()), uri)
    }

    /// Begins a source that answers for many variables at once, such as a device. The name is for logs.
    pub fn source(&self, name: &str) -> SourceBuilder {
        SourceBuilder::new(Arc::clone(self.space()), name)
    }

    /// The Objects folder. Its children go into the server's own namespace, which has index 1.
    #[must_use]
    pub fn objects(&self) -> Node {
        Node { space: Arc::clone(self.space()), id: ns0(object_ids::OBJECTS_FOLDER), namespace: 1 }
    }

    /// Stops listening and ends all sessions; connections that have not ended after `grace` are closed.
    pub fn stop(self, grace: Duration) {
        self.inner.stop(grace);
        drop(self.alarm_file);
    }

    /// Whether the server has ended by itself, after a fault of the system or a defect of its own. The log says which.
    /// Start a new one.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner.has_ended()
    }

    /// Waits until the server ends, which without [`Self::stop`] happens only if the kernel fails it.
    pub fn join(self) {
        self.inner.join();
    }
}
