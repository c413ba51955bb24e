//! PubSub in a server's address space (Part 14 §9): its configuration as objects, their states, methods to switch them
//! and to hand out keys.
//!
//! ```no_run
//! # fn example(configuration: taktwerk_pubsub::config::Configuration) -> Result<(), Box<dyn std::error::Error>> {
//! use taktwerk::pubsub_model::PubSubModel;
//!
//! let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build()?;
//! let model = PubSubModel::add_to(&server, &configuration)?;
//! model.serve_security_keys()?; // this server is the key service of the configuration's security groups
//! # Ok(())
//! # }
//! ```
//!
//! [`PubSubModel`] shows a configuration and its states; engines that run it are attached to it
//! ([`PubSubModel::attach_publisher`], [`PubSubModel::attach_subscriber`]) and report through
//! [`PubSubModel::publisher_events`], [`PubSubModel::subscriber_events`] or [`PubSubModel::observing`]. Clients change
//! the configuration through the PubSubConfiguration file and the Methods, the application through
//! [`PubSubModel::change`]: the engines that are attached go on with it. Methods that are not offered are not
//! executable.
//!
//! - `live`: the configuration while it is in use; `nodes`: the objects; `settings`: their
//!   TransportSettings and MessageSettings; `states`: what switches them;
//! - `file`: the configuration as a file; `methods`: what changes a part of it; `engines`: who runs it;
//! - `authorized`: what somebody may configure; `diagnostics`: what is counted;
//! - `keys`: the key service, and keys that are pushed to us; [`pull`]: the client of a key service.

mod authorized;
mod diagnostics;
mod engines;
mod file;
mod keys;
mod live;
mod methods;
mod nodes;
pub mod pull;
mod settings;
mod states;

pub use authorized::{NotPermitted, not_permitted};
pub use engines::{RunsPublisher, RunsResponders, RunsSubscriber};
pub use pull::{KeyServiceClient, get_security_keys};

use crate::error::BuildError;
use crate::lock::lock;
use crate::server::Server;
use crate::space::{Space, now, ns0};
use live::Live;
use states::States;
use std::sync::{Arc, Mutex, Weak};
use taktwerk_net::entropy::OsEntropy;
use taktwerk_net::pubsub::publisher::EventHandler;
use taktwerk_pubsub::component::{Component, StateCounters};
use taktwerk_pubsub::config::Configuration;
use taktwerk_pubsub::security::KeyService;
use taktwerk_pubsub::state::PubSubState;
use taktwerk_pubsub::{DataSetMessage, PublisherEvent, Sink, SubscriberEvent};
use taktwerk_schema::ids::object_ids;
use taktwerk_server::callback::CallContext;
use taktwerk_types::{NodeId, StatusCode};

/// Whether a caller has one of some well-known roles.
fn has_role(caller: &CallContext, roles: &[u32]) -> bool {
    caller.roles.iter().any(|role| role.ns0().is_some_and(|id| roles.contains(&id)))
}

/// Lets those in who administer the server.
fn administers(caller: &CallContext) -> Result<(), StatusCode> {
    let roles = [object_ids::WELL_KNOWN_ROLE_CONFIGURE_ADMIN, object_ids::WELL_KNOWN_ROLE_SECURITY_ADMIN];
    if has_role(caller, &roles) { Ok(()) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) }
}

/// PubSub as a server shows it. Clones are the same one.
#[derive(Clone)]
pub struct PubSubModel {
    space: Space,
    states: Arc<States>,
    live: Arc<Live>,
    service: Arc<Mutex<KeyService>>,
}

impl core::fmt::Debug for PubSubModel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PubSubModel").finish_non_exhaustive()
    }
}

impl PubSubModel {
    /// Adds a configuration's objects under PublishSubscribe. Methods that change something are for ConfigureAdmin and
    /// SecurityAdmin.
    ///
    /// # Errors
    /// The configuration has two elements of the same name, or was added to this server before.
    pub fn add_to(server: &Server, configuration: &Configuration) -> Result<Self, BuildError> {
        let space = Arc::clone(server.space());
        let states = Arc::new(States::new(configuration));
        let live = Live::new(&space, configuration, Arc::clone(&states))?;
        nodes::add_root(&space)?;
        states.add_root(&space)?;
        diagnostics::add_root(&space, &states)?;
        methods::add(&space, &live)?;
        file::add(&space, &live)?;
        Ok(Self { space, states, live, service: Arc::default() })
    }

    /// The configuration as it stands.
    #[must_use]
    pub fn configuration(&self) -> Arc<Configuration> {
        self.states.configuration()
    }

    /// Changes the configuration, as clients can: in the address space, in the engines that are attached, and in the
    /// file. Versions change as Part 14 §6.2.3.2.6 says.
    ///
    /// # Errors
    /// Bad_InvalidArgument if the configuration has a problem afterwards that it did not have, or why the engines
    /// cannot run it. Nothing has changed then.
    pub fn change(&self, edit: impl FnOnce(&mut Configuration)) -> Result<(), StatusCode> {
        self.live.change(|configuration, _| {
            edit(configuration);
            Ok(())
        })
    }

    /// Saves the configuration to a file, now and after every change, in the standard binary format. What replaces
    /// the old content is whole: [`load`] reads it at the next start.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_to(&self, path: impl AsRef<std::path::Path>) -> std::io::Result<()> {
        self.live.save_to(path.as_ref())
    }

    /// The state of a component.
    #[must_use]
    pub fn state(&self, component: Component) -> PubSubState {
        self.states.state(component)
    }

    /// How often a component has changed its state.
    #[must_use]
    pub fn counters(&self, component: Component) -> StateCounters {
        self.states.counters(component)
    }

    /// Enables or disables a component, as the Methods do.
    ///
    /// # Errors
    /// Bad_InvalidState if it is enabled or disabled already, Bad_NodeIdUnknown if there is no such component. Why Actions
    /// of what was enabled cannot be answered: it is enabled then, and their DataSetWriters are in Error.
    pub fn set_enabled(&self, component: Component, enabled: bool) -> Result<(), StatusCode> {
        self.live.set_enabled(component, enabled)
    }

    /// An engine says what became of a WriterGroup or DataSetReader.
    pub fn report(&self, component: Component, state: PubSubState) {
        self.states.report(component, state);
    }

    /// Something of the configuration cannot run here, such as a DataSetWriter of Variables that are gone: it is in error
    /// until there is another configuration, which the engines run or refuse.
    pub fn cannot_run(&self, component: Component) {
        self.states.cannot_run(component);
    }

    /// What a publisher's events are told to, so that its WriterGroups' states are shown.
    #[must_use]
    pub fn publisher_events(&self) -> EventHandler {
        let states = Arc::clone(&self.states);
        let mut configuration = states.configuration();
        Box::new(move |event| match event {
            PublisherEvent::Reconfigured(new) => configuration = Arc::clone(new),
            PublisherEvent::GroupState { group, state, .. } => {
                states.report_from(&configuration, Component::WriterGroup(*group), *state);
            }
            _ => {}
        })
    }

    /// What a subscriber's events are told to, so that its DataSetReaders' states are shown.
    pub fn subscriber_events(&self) -> impl FnMut(&SubscriberEvent) + Send + 'static {
        let states = Arc::clone(&self.states);
        let mut configuration = states.configuration();
        move |event: &SubscriberEvent| match event {
            SubscriberEvent::Reconfigured(new) => configuration = Arc::clone(new),
            SubscriberEvent::State { reader, state } => {
                states.report_from(&configuration, Component::DataSetReader(*reader), *state);
            }
            _ => {}
        }
    }

    /// A sink that shows the states of DataSetReaders and passes everything on.
    #[must_use]
    pub fn observing<S: Sink>(&self, sink: S) -> Observing<S> {
        Observing { events: Box::new(self.subscriber_events()), sink }
    }

    /// Lets methods start and stop the WriterGroups of a publisher, and gives it the keys that are pushed. The model
    /// does not keep it running.
    pub fn attach_publisher<P: RunsPublisher>(&self, publisher: &Arc<P>) {
        let publisher: Weak<P> = Arc::downgrade(publisher);
        self.states.attach_publisher(publisher);
    }

    /// Lets methods start and stop the DataSetReaders of a subscriber, and gives it the keys that are pushed. The model
    /// does not keep it running.
    pub fn attach_subscriber<S: RunsSubscriber>(&self, subscriber: &Arc<S>) {
        let subscriber: Weak<S> = Arc::downgrade(subscriber);
        self.states.attach_subscriber(subscriber);
    }

    /// Lets Actions follow the configuration: what answers them is given every change. The model does not keep it running.
    pub fn attach_responders<R: RunsResponders>(&self, responders: &Arc<R>) {
        let responders: Weak<R> = Arc::downgrade(responders);
        self.states.attach_responders(responders);
    }

    /// Makes the server the key service (SKS, Part 14 §8) of the configuration's SecurityGroups, and of those that
    /// administrators add. Keys are handed out over encrypting channels only: to the roles that a group names, or else
    /// to SecurityKeyServerAccess.
    ///
    /// # Errors
    /// A group is not in order.
    pub fn serve_security_keys(&self) -> Result<(), BuildError> {
        keys::serve(&self.space, &self.service, &self.live)
    }

    /// Takes keys that a key service pushes (SetSecurityKeys, Part 14 §9.1.3.3), over encrypting channels and from
    /// SecurityKeyServerPush only.
    ///
    /// # Errors
    /// Never, as long as namespace 0 has the Method.
    pub fn accept_security_keys(&self) -> Result<(), BuildError> {
        keys::accept(&self.space, &self.states)
    }

    /// Keys of a SecurityGroup for an engine in the same process, without a client.
    ///
    /// # Errors
    /// Bad_NotFound.
    pub fn local_keys(
        &self,
        security_group_id: &str,
        requested_key_count: u32,
    ) -> Result<taktwerk_pubsub::security::SecurityKeys, StatusCode> {
        let now = taktwerk_net::clock::monotonic();
        let mut service = lock(&self.service);
        service.get_security_keys(security_group_id, 0, requested_key_count, true, true, &mut OsEntropy, now)
    }
}

/// Shows the states of DataSetReaders and passes everything on: see [`PubSubModel::observing`].
pub struct Observing<S> {
    events: Box<dyn FnMut(&SubscriberEvent) + Send>,
    sink: S,
}

impl<S> core::fmt::Debug for Observing<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Observing").finish_non_exhaustive()
    }
}

impl<S: Sink> Sink for Observing<S> {
    fn message(&mut self, message: &DataSetMessage<'_>) {
        self.sink.message(message);
    }

    fn event(&mut self, event: SubscriberEvent) {
        (self.events)(&event);
        self.sink.event(event);
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn core::any::Any> {
        self.sink.as_any_mut()
    }
}

/// The configuration that [`PubSubModel::save_to`] has saved; `None` if there is no such file yet.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn load(path: impl AsRef<std::path::Path>) -> std::io::Result<Option<Configuration>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let configuration = taktwerk_pubsub::config::binary_file::read(&bytes);
    configuration.map(Some).map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
}

/// A node of namespace 0 whose value is made when it is read.
fn computed<T: Into<taktwerk_types::Variant>>(
    space: &Space,
    id: u32,
    value: impl Fn() -> T + Send + Sync + 'static,
) -> Result<(), BuildError> {
    let source = move || taktwerk_types::DataValue::new(value());
    Ok(space.set_source(&ns0(id), Arc::new(source))?)
}

/// Sets the value of a Variable.
fn set(space: &Space, id: &NodeId, value: impl Into<taktwerk_types::Variant>) -> Result<(), BuildError> {
    space.variable(id)?.set_at(value, now());
    Ok(())
}
