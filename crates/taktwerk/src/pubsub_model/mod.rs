//! PubSub in a server's address space (Part 14 §9): the configuration as objects, their states, and Methods to control them and
//! to distribute keys.
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
//! [`PubSubModel`] shows a configuration and its states. Engines that run it are attached ([`PubSubModel::attach_publisher`],
//! [`PubSubModel::attach_subscriber`]). They report through [`PubSubModel::publisher_events`], [`PubSubModel::subscriber_events`]
//! or [`PubSubModel::observing`]. Clients change the configuration through the PubSubConfiguration file and the Methods, the
//! application through [`PubSubModel::change`]; attached engines follow. Methods that are not implemented are not executable.
//!
//! - `live`: the running configuration; `nodes`: the objects; `settings`: their TransportSettings and MessageSettings; `states`:
//!   the states;
//! - `file`: the configuration as a file for clients; `saved`: the file where it is kept; `methods`: partial changes; `engines`: the attached engines;
//! - `authorized`: permissions; `diagnostics`: counters;
//! - `keys`: the key service, and pushed keys; [`pull`]: the client of a key service.

mod authorized;
mod diagnostics;
mod engines;
mod file;
mod keys;
mod live;
mod methods;
mod nodes;
pub mod pull;
mod saved;
mod settings;
mod states;

pub use authorized::{NotPermitted, not_permitted};
pub use engines::{RunsPublisher, RunsResponders, RunsSubscriber};
pub use pull::{KeyServiceClient, get_security_keys};
pub use saved::{SavedConfiguration, load};

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

/// Allows only administrators of the server.
fn administers(caller: &CallContext) -> Result<(), StatusCode> {
    let roles = [object_ids::WELL_KNOWN_ROLE_CONFIGURE_ADMIN, object_ids::WELL_KNOWN_ROLE_SECURITY_ADMIN];
    if has_role(caller, &roles) { Ok(()) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) }
}

/// PubSub in a server's address space. Clones refer to the same model.
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
    /// Adds the objects of a configuration under PublishSubscribe. Methods that change something require ConfigureAdmin or
    /// SecurityAdmin.
    ///
    /// # Errors
    /// The configuration has two elements with the same name, or this was called before for the same server.
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

    /// The current configuration.
    #[must_use]
    pub fn configuration(&self) -> Arc<Configuration> {
        self.states.configuration()
    }

    /// Changes the configuration, as clients can: in the address space, in the attached engines, and in the file. Versions change
    /// as Part 14 §6.2.3.2.6 requires.
    ///
    /// # Errors
    /// Bad_InvalidArgument if the change introduces a problem, or why the engines cannot run the configuration. Nothing has
    /// changed then.
    pub fn change(&self, edit: impl FnOnce(&mut Configuration)) -> Result<(), StatusCode> {
        self.live.change(|configuration, _| {
            edit(configuration);
            Ok(())
        })
    }

    /// Saves the configuration to a file, now and after every change, in the standard binary format. The file is replaced
    /// atomically. [`SavedConfiguration::load`] reads it at the next start.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_to(&self, file: SavedConfiguration) -> std::io::Result<()> {
        self.live.save_to(file)
    }

    /// The state of a component.
    #[must_use]
    pub fn state(&self, component: Component) -> PubSubState {
        self.states.state(component)
    }

    /// The state counters of a component.
    #[must_use]
    pub fn counters(&self, component: Component) -> StateCounters {
        self.states.counters(component)
    }

    /// Enables or disables a component, as the Methods do.
    ///
    /// # Errors
    /// Bad_InvalidState if it is enabled or disabled already; Bad_NodeIdUnknown if there is no such component. If Actions of an
    /// enabled component cannot be answered, the reason: the component is enabled then, and their DataSetWriters are in Error.
    pub fn set_enabled(&self, component: Component, enabled: bool) -> Result<(), StatusCode> {
        self.live.set_enabled(component, enabled)
    }

    /// Reports the state of a WriterGroup or DataSetReader from an engine.
    pub fn report(&self, component: Component, state: PubSubState) {
        self.states.report(component, state);
    }

    /// Sets a component to Error because it cannot run, such as a DataSetWriter of deleted Variables. The state lasts until the
    /// next configuration.
    pub fn cannot_run(&self, component: Component) {
        self.states.cannot_run(component);
    }

    /// An event handler for a publisher, which shows the states of its WriterGroups.
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

    /// An event handler for a subscriber, which shows the states of its DataSetReaders.
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

    /// A sink that shows the states of DataSetReaders and forwards everything.
    #[must_use]
    pub fn observing<S: Sink>(&self, sink: S) -> Observing<S> {
        Observing { events: Box::new(self.subscriber_events()), sink }
    }

    /// Lets Methods start and stop the WriterGroups of a publisher, and passes pushed keys to it. The model does not keep the
    /// publisher alive.
    pub fn attach_publisher<P: RunsPublisher>(&self, publisher: &Arc<P>) {
        let publisher: Weak<P> = Arc::downgrade(publisher);
        self.states.attach_publisher(publisher);
    }

    /// Lets Methods start and stop the DataSetReaders of a subscriber, and passes pushed keys to it. The model does not keep the
    /// subscriber alive.
    pub fn attach_subscriber<S: RunsSubscriber>(&self, subscriber: &Arc<S>) {
        let subscriber: Weak<S> = Arc::downgrade(subscriber);
        self.states.attach_subscriber(subscriber);
    }

    /// Lets responders of Actions follow every change of the configuration. The model does not keep them alive.
    pub fn attach_responders<R: RunsResponders>(&self, responders: &Arc<R>) {
        let responders: Weak<R> = Arc::downgrade(responders);
        self.states.attach_responders(responders);
    }

    /// Makes the server the key service (SKS, Part 14 §8) for the configuration's SecurityGroups, and for those that
    /// administrators add. Keys are sent over encrypted channels only: to the roles that a group sets, or else to
    /// SecurityKeyServerAccess.
    ///
    /// # Errors
    /// The settings of a group are invalid.
    pub fn serve_security_keys(&self) -> Result<(), BuildError> {
        keys::serve(&self.space, &self.service, &self.live)
    }

    /// Accepts keys that a key service pushes (SetSecurityKeys, Part 14 §9.1.3.3), only over encrypted channels and from
    /// SecurityKeyServerPush.
    ///
    /// # Errors
    /// The Method is missing from namespace 0, which does not happen.
    pub fn accept_security_keys(&self) -> Result<(), BuildError> {
        keys::accept(&self.space, &self.states)
    }

    /// The keys of a SecurityGroup for an engine in the same process, without a client.
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

/// Shows the states of DataSetReaders and forwards everything: see [`PubSubModel::observing`].
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

/// A node of namespace 0 whose value is computed when it is read.
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
