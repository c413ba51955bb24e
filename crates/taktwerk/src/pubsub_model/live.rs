//! The running configuration. Changes are serialized and atomic: in the address space, in the engines, and in the file.

use super::authorized::Caller;
use super::keys;
use super::nodes::{Nodes, Object};
use super::saved::SavedConfiguration;
use super::states::{States, Unanswered};
use crate::error::BuildError;
use crate::lock::lock;
use crate::pubsub::action::FailedResponder;
use crate::space::{Space, now};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, Weak};
use taktwerk_files::Staged;
use taktwerk_net::pubsub::Address;
use taktwerk_pubsub::PublisherId;
use taktwerk_pubsub::component::Component;
use taktwerk_pubsub::config::reserve::Reservations;
use taktwerk_pubsub::config::unused::{unused_by_publishers, unused_by_subscribers};
use taktwerk_pubsub::config::version::{touch, version_time};
use taktwerk_pubsub::config::{Configuration, Element, Problem, validate};
use taktwerk_server::callback::{CallContext, SessionLife};
use taktwerk_server::space::AddressSpace;
use taktwerk_types::{NodeId, StatusCode};

/// Most elements of each kind that clients may add.
const ELEMENTS_MAX: usize = 10_000;

/// State that changes one at a time.
#[derive(Default)]
pub(super) struct Inner {
    pub(super) nodes: Nodes,
    /// Folders of data sets that were added and may be empty.
    pub(super) folders: BTreeSet<Vec<String>>,
    pub(super) reservations: Reservations,
    /// Sessions with reservations.
    pub(super) reserving: Vec<(NodeId, SessionLife)>,
    file: Option<SavedConfiguration>,
    pub(super) key_server: Option<Arc<keys::Server>>,
}

impl Inner {
    /// Releases reservations of ended sessions.
    fn tidy(&mut self) {
        let reservations = &mut self.reservations;
        self.reserving.retain(|(session, life)| {
            let is_over = life.is_over();
            if is_over {
                reservations.release(session);
            }
            !is_over
        });
    }
}

/// State shared by all Methods.
pub(super) struct Live {
    /// Weak, because the address space owns the Methods.
    space: Weak<AddressSpace>,
    pub(super) states: Arc<States>,
    pub(super) counted: super::diagnostics::Engines,
    inner: Mutex<Inner>,
}

impl core::fmt::Debug for Live {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

impl Live {
    pub(super) fn new(
        space: &Space,
        configuration: &Configuration,
        states: Arc<States>,
    ) -> Result<Arc<Self>, BuildError> {
        let live = Arc::new(Self {
            space: Arc::downgrade(space),
            states,
            counted: super::diagnostics::Engines::default(),
            inner: Mutex::default(),
        });
        {
            let mut inner = lock(&live.inner);
            let folders = BTreeSet::new();
            inner.nodes.sync(&live, space, configuration, &folders)?;
        }
        Ok(live)
    }

    pub(super) fn space(&self) -> Result<Space, StatusCode> {
        self.space.upgrade().ok_or(StatusCode::BAD_SHUTDOWN)
    }

    pub(super) fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        let mut inner = lock(&self.inner);
        inner.tidy();
        inner
    }

    /// The element of a node.
    pub(super) fn element(&self, node: &NodeId) -> Option<Element> {
        match lock(&self.inner).nodes.object(node) {
            Some(Object::Element(element)) => Some(element.clone()),
            _ => None,
        }
    }

    /// The element to which an object below it belongs, such as its ExtensionFields.
    pub(super) fn owner(&self, node: &NodeId) -> Option<Element> {
        lock(&self.inner).nodes.owner(node).cloned()
    }

    /// The folder of data sets of a node.
    pub(super) fn folder(&self, node: &NodeId) -> Option<Vec<String>> {
        if *node == super::nodes::folder_id(&[]) {
            return Some(Vec::new());
        }
        match lock(&self.inner).nodes.object(node) {
            Some(Object::Folder(path)) => Some(path.clone()),
            _ => None,
        }
    }

    /// The node of an element.
    pub(super) fn node(&self, element: &Element) -> NodeId {
        lock(&self.inner).nodes.node(element).unwrap_or_default()
    }

    /// Saves every change to a file from now on.
    pub(super) fn save_to(&self, file: SavedConfiguration) -> std::io::Result<()> {
        let mut inner = lock(&self.inner);
        file.stage(&self.states.configuration())?.commit()?;
        inner.file = Some(file);
        Ok(())
    }

    /// The default PublisherId of connections without one: stable across restarts of the same application (Part 14 §6.2.7.1).
    pub(super) fn default_publisher_id(&self, transport_profile: &str) -> PublisherId {
        let uri = self.space.upgrade().and_then(|space| space.namespaces().into_iter().nth(1));
        // FNV-1a: ids must differ between applications but need not be secret.
        let id = uri.unwrap_or_default().bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        if transport_profile.contains("mqtt") || transport_profile.contains("amqp") {
            PublisherId::String(format!("{id:016x}").into())
        } else {
            PublisherId::UInt64(id)
        }
    }

    /// The Enable and Disable Methods.
    pub(super) fn set_element_enabled(&self, element: &Element, enabled: bool) -> Result<(), StatusCode> {
        self.set_enabled(self.states.component(element)?, enabled)
    }

    /// Enables or disables a component. If Actions of the enabled component cannot be answered, it returns the reason: the
    /// component is enabled all the same, and their DataSetWriters are in Error (Part 14 §6.2.1).
    pub(super) fn set_enabled(&self, component: Component, enabled: bool) -> Result<(), StatusCode> {
        let inner = self.inner();
        self.states.set_enabled(component, enabled)?;
        let unanswered = self.switched(&inner);
        let why = unanswered.into_iter().find(|one| enabled && one.is_of(component));
        why.map_or(Ok(()), |one| Err(one.status))
    }

    /// Updates responders and file after a component was enabled or disabled. DataSetWriters whose Actions cannot be answered are
    /// in Error; returns them.
    fn switched(&self, inner: &Inner) -> Vec<Unanswered> {
        let mut unanswered = Vec::new();
        if let Some(responders) = self.states.responders() {
            let configuration = self.states.configuration();
            let failed = responders.switch(&configuration);
            for FailedResponder { connection, writer_group, error, .. } in &failed {
                let status = error.status();
                tracing::error!(connection, writer_group, %status, %error, "Actions are not answered: their DataSetWriters are in Error");
            }
            let why_not = |connection: &str, group: &str| {
                let mut failed = failed.iter();
                let found = failed.find(|one| one.connection == connection && one.writer_group == group);
                found.map(|one| one.error.status())
            };
            unanswered = self.states.answered(&configuration, why_not);
        }
        self.save(inner);
        unanswered
    }

    /// Saves a change that was already made.
    pub(super) fn save(&self, inner: &Inner) {
        let Some(file) = &inner.file else { return };
        let saved = file.stage(&self.states.configuration()).and_then(Staged::commit);
        if let Err(error) = saved {
            tracing::error!(path = %file.path().display(), %error, "the PubSub configuration was not saved");
        }
    }

    /// Changes the configuration for a caller, who needs permissions for nodes that it newly uses.
    ///
    /// # Errors
    /// As [`Self::change`], or the caller lacks a permission.
    pub(super) fn change_for<T>(
        self: &Arc<Self>,
        caller: &CallContext,
        edit: impl FnOnce(&mut Configuration, &mut Inner) -> Result<T, StatusCode>,
    ) -> Result<T, StatusCode> {
        let space = self.space()?;
        self.change(|configuration, inner| {
            let old = configuration.clone();
            let given = edit(configuration, inner)?;
            Caller::new(&space, &caller.roles).check_change(&old, configuration)?;
            Ok(given)
        })
    }

    /// Changes the configuration. Returns the result of `edit`.
    ///
    /// # Errors
    /// The error of `edit`; Bad_InvalidArgument if the change introduces a problem; or why the configuration cannot run. Nothing
    /// has changed then.
    pub(super) fn change<T>(
        self: &Arc<Self>,
        edit: impl FnOnce(&mut Configuration, &mut Inner) -> Result<T, StatusCode>,
    ) -> Result<T, StatusCode> {
        let mut inner = self.inner();
        let folders = inner.folders.clone();
        let outcome = self.try_change(&mut inner, edit);
        if outcome.is_err() {
            inner.folders = folders;
        }
        outcome
    }

    fn try_change<T>(
        self: &Arc<Self>,
        inner: &mut Inner,
        edit: impl FnOnce(&mut Configuration, &mut Inner) -> Result<T, StatusCode>,
    ) -> Result<T, StatusCode> {
        let old = self.states.configuration();
        let mut new = (*old).clone();
        let folders = inner.folders.clone();
        let given = edit(&mut new, inner)?;
        if new == *old && folders == inner.folders {
            return Ok(given);
        }
        let known = validate(&old);
        let problems: Vec<_> =
            validate(&new).into_iter().filter(|problem| !known.contains(problem)).collect();
        if !problems.is_empty() {
            tracing::info!(?problems, "a change of the PubSub configuration was refused");
            return Err(StatusCode::BAD_INVALID_ARGUMENT);
        }
        for connection in &new.connections {
            let is_known = old.connection(&connection.name).is_some_and(|old| old.url == connection.url);
            if let (false, Err(error)) = (is_known, Address::parse(&connection.url)) {
                tracing::info!(%error, "a change of the PubSub configuration was refused");
                return Err(StatusCode::BAD_INVALID_ARGUMENT);
            }
        }
        if !is_bounded(&new) {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        let (had, has) = (unused(&old), unused(&new));
        for problem in has.iter().filter(|problem| !had.contains(problem)) {
            tracing::warn!("the PubSub configuration: {problem}");
        }
        touch(&old, &mut new, version_time(now()));
        self.apply(inner, &old, Arc::new(new), &folders)?;
        Ok(given)
    }

    /// Applies a configuration, or leaves everything as it was.
    fn apply(
        self: &Arc<Self>,
        inner: &mut Inner,
        old: &Arc<Configuration>,
        new: Arc<Configuration>,
        old_folders: &BTreeSet<Vec<String>>,
    ) -> Result<(), StatusCode> {
        let space = self.space()?;
        let staged = match &inner.file {
            Some(file) => Some(file.stage(&new).map_err(|error| {
                tracing::error!(path = %file.path().display(), %error, "cannot save the PubSub configuration");
                StatusCode::BAD_RESOURCE_UNAVAILABLE
            })?),
            None => None,
        };
        let folders = inner.folders.clone();
        let outcome = inner.nodes.sync(self, &space, &new, &folders).map_err(|error| error.status());
        let outcome = outcome.and_then(|()| self.apply_to_engines(old, &new));
        if let Err(status) = outcome {
            if let Err(error) = inner.nodes.sync(self, &space, old, old_folders) {
                tracing::error!(%error, "cannot restore the objects of the PubSub configuration");
            }
            return Err(status);
        }
        if let Some(server) = &inner.key_server {
            server.sync(&space, &new);
        }
        if let Some(staged) = staged
            && let Err(error) = staged.commit()
        {
            tracing::error!(%error, "the PubSub configuration was not saved");
        }
        inner.reservations.used(&new);
        Ok(())
    }

    fn apply_to_engines(&self, old: &Arc<Configuration>, new: &Arc<Configuration>) -> Result<(), StatusCode> {
        let refused = |error: crate::pubsub::PubSubStartError| {
            tracing::info!(%error, "a change of the PubSub configuration was refused");
            error.status()
        };
        let publisher = self.states.publisher();
        let prepared = publisher.as_ref().map(|publisher| publisher.prepare((**new).clone()));
        let prepared = prepared.transpose().map_err(refused)?;
        // Before the engines, because they report the states of new elements immediately.
        self.states.reconfigure(Arc::clone(new));
        let subscriber = self.states.subscriber();
        if let Some(subscriber) = &subscriber
            && let Err(error) = subscriber.reconfigure((**new).clone())
        {
            self.states.reconfigure(Arc::clone(old));
            return Err(refused(error));
        }
        if let Some(responders) = self.states.responders()
            && let Err(error) = responders.reconfigure(new)
        {
            self.states.reconfigure(Arc::clone(old));
            if let Some(Err(error)) = subscriber.map(|subscriber| subscriber.reconfigure((**old).clone())) {
                tracing::error!(%error, "cannot restore the subscriber's configuration");
            }
            return Err(refused(error));
        }
        if let (Some(publisher), Some(prepared)) = (publisher, prepared) {
            publisher.publisher().commit(prepared);
        }
        Ok(())
    }
}

/// Configured parts that have no effect.
fn unused(configuration: &Configuration) -> Vec<Problem> {
    let mut all = unused_by_publishers(configuration);
    all.extend(unused_by_subscribers(configuration));
    all
}

/// Whether the number of elements is within the limits.
fn is_bounded(configuration: &Configuration) -> bool {
    let connections = &configuration.connections;
    let writers = connections.iter().flat_map(|one| &one.writer_groups).map(|group| 1 + group.writers.len());
    let readers = connections.iter().flat_map(|one| &one.reader_groups).map(|group| 1 + group.readers.len());
    configuration.data_sets.len() <= ELEMENTS_MAX
        && configuration.subscribed_data_sets.len() <= ELEMENTS_MAX
        && configuration.security_groups.len() <= ELEMENTS_MAX
        && connections.len() <= ELEMENTS_MAX
        && writers.sum::<usize>() <= ELEMENTS_MAX
        && readers.sum::<usize>() <= ELEMENTS_MAX
}
