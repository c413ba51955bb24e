//! The states of all components, their variables, and the engines behind them.

use super::{administers, computed, lock};
use crate::error::BuildError;
use crate::space::{Space, now, ns0};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use taktwerk_net::pubsub::{RunningPublisher, RunningSubscriber};
use taktwerk_pubsub::component::{Changes, Component, Components, StateCounters, Switch};
use taktwerk_pubsub::config::Configuration;
use taktwerk_pubsub::security::SecurityKeys;
use taktwerk_pubsub::state::PubSubState;
use taktwerk_schema::ids::{method_ids, variable_ids};
use taktwerk_server::callback::CallContext;
use taktwerk_server::space::VariableHandle;
use taktwerk_types::{NodeId, StatusCode, Variant};

/// What runs a publisher's engine: the driver, or [`crate::pubsub::Publisher`] around it.
pub trait RunsPublisher: Send + Sync + 'static {
    /// The driver.
    fn publisher(&self) -> &RunningPublisher;
}

impl RunsPublisher for RunningPublisher {
    fn publisher(&self) -> &RunningPublisher {
        self
    }
}

impl RunsPublisher for crate::pubsub::Publisher {
    fn publisher(&self) -> &RunningPublisher {
        self.driver()
    }
}

/// What runs a subscriber's engine: the driver, or [`crate::pubsub::Subscriber`] around it.
pub trait RunsSubscriber: Send + Sync + 'static {
    /// The driver.
    fn subscriber(&self) -> &RunningSubscriber;
}

impl RunsSubscriber for RunningSubscriber {
    fn subscriber(&self) -> &RunningSubscriber {
        self
    }
}

impl RunsSubscriber for crate::pubsub::Subscriber {
    fn subscriber(&self) -> &RunningSubscriber {
        self.driver()
    }
}

/// Weak, because the engines' events lead back here.
#[derive(Default)]
struct Engines {
    publisher: Option<Weak<dyn RunsPublisher>>,
    subscriber: Option<Weak<dyn RunsSubscriber>>,
}

impl Engines {
    fn publisher(&self) -> Option<Arc<dyn RunsPublisher>> {
        self.publisher.as_ref()?.upgrade()
    }

    fn subscriber(&self) -> Option<Arc<dyn RunsSubscriber>> {
        self.subscriber.as_ref()?.upgrade()
    }
}

/// Shared by the model, its methods and the engines' events.
pub(super) struct States {
    components: Mutex<Components>,
    /// The State variables.
    variables: Mutex<BTreeMap<Component, VariableHandle>>,
    engines: Mutex<Engines>,
}

impl core::fmt::Debug for States {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("States").finish_non_exhaustive()
    }
}

impl States {
    pub(super) fn new(configuration: &Configuration) -> Self {
        Self {
            components: Mutex::new(Components::new(configuration)),
            variables: Mutex::default(),
            engines: Mutex::default(),
        }
    }

    pub(super) fn state(&self, component: Component) -> PubSubState {
        lock(&self.components).state(component)
    }

    pub(super) fn counters(&self, component: Component) -> StateCounters {
        lock(&self.components).counters(component)
    }

    /// Shows the state of a component in a Variable from now on.
    pub(super) fn show(&self, component: Component, variable: VariableHandle) {
        // In this order everywhere: a state that changes meanwhile is written after this one.
        let components = lock(&self.components);
        variable.set_at(components.state(component).0, now());
        lock(&self.variables).insert(component, variable);
    }

    pub(super) fn set_enabled(&self, component: Component, enabled: bool) -> Result<(), StatusCode> {
        let mut components = lock(&self.components);
        let changes = components.set_enabled(component, enabled)?;
        self.apply(&changes);
        Ok(())
    }

    pub(super) fn report(&self, component: Component, state: PubSubState) {
        let mut components = lock(&self.components);
        let changes = components.report(component, state);
        self.apply(&changes);
    }

    /// Called with the components locked, so that variables change in the order of the states. Nothing here waits:
    /// commands to engines are queued.
    fn apply(&self, changes: &Changes) {
        let variables = lock(&self.variables);
        for (component, state) in &changes.states {
            if let Some(variable) = variables.get(component) {
                variable.set_at(state.0, now());
            }
        }
        drop(variables);
        let engines = lock(&self.engines);
        for switch in &changes.switches {
            engines.switch(*switch);
        }
    }

    pub(super) fn attach_publisher(&self, publisher: Weak<dyn RunsPublisher>) {
        lock(&self.engines).publisher = Some(publisher);
    }

    pub(super) fn attach_subscriber(&self, subscriber: Weak<dyn RunsSubscriber>) {
        lock(&self.engines).subscriber = Some(subscriber);
    }

    /// Gives pushed keys to the engines.
    pub(super) fn set_security_keys(
        &self,
        security_group_id: &str,
        keys: SecurityKeys,
    ) -> Result<(), StatusCode> {
        let (publisher, subscriber) = {
            let engines = lock(&self.engines);
            (engines.publisher(), engines.subscriber())
        };
        if publisher.is_none() && subscriber.is_none() {
            return Err(StatusCode::BAD_NOT_FOUND);
        }
        let group = security_group_id.to_owned();
        if let Some(publisher) = publisher {
            let (group, keys) = (group.clone(), keys.clone());
            publisher.publisher().run(move |engine, now| {
                // A group that it does not use is none of its business.
                let _ = engine.set_keys(&group, Ok(&keys), now);
            });
        }
        if let Some(subscriber) = subscriber {
            subscriber.subscriber().run(move |engine, now, _| {
                let _ = engine.set_keys(&group, Ok(&keys), now);
            });
        }
        Ok(())
    }

    /// The Enable or Disable Method of a component.
    pub(super) fn method(
        self: &Arc<Self>,
        component: Component,
        enabled: bool,
    ) -> impl Fn(&CallContext, Vec<Variant>) -> Result<Vec<Variant>, StatusCode> + Send + Sync + use<> {
        let states = Arc::clone(self);
        move |caller, _| {
            administers(caller)?;
            states.set_enabled(component, enabled)?;
            Ok(Vec::new())
        }
    }

    /// The state and diagnostics of PublishSubscribe itself.
    pub(super) fn add_root(self: &Arc<Self>, space: &Space) -> Result<(), BuildError> {
        let state = space.variable(&ns0(variable_ids::PUBLISH_SUBSCRIBE_STATUS_STATE))?;
        self.show(Component::Root, state);
        type Counter = fn(&StateCounters) -> u32;
        let counters: [(u32, Counter); 6] = [
            (variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_COUNTERS_STATE_ERROR, |counters| counters.error),
            (variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_COUNTERS_STATE_OPERATIONAL_BY_METHOD, |counters| {
                counters.operational_by_method
            }),
            (variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_COUNTERS_STATE_OPERATIONAL_BY_PARENT, |counters| {
                counters.operational_by_parent
            }),
            (variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_COUNTERS_STATE_OPERATIONAL_FROM_ERROR, |counters| {
                counters.operational_from_error
            }),
            (variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_COUNTERS_STATE_PAUSED_BY_PARENT, |counters| {
                counters.paused_by_parent
            }),
            (variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_COUNTERS_STATE_DISABLED_BY_METHOD, |counters| {
                counters.disabled_by_method
            }),
        ];
        for (id, counter) in counters {
            let states = Arc::clone(self);
            computed(space, id, move || counter(&states.counters(Component::Root)))?;
        }
        let is_writer = |component: Component| matches!(component, Component::DataSetWriter { .. });
        let is_reader = |component: Component| matches!(component, Component::DataSetReader(_));
        type Kind = fn(Component) -> bool;
        let counts: [(u32, Kind, bool); 4] = [
            (
                variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_LIVE_VALUES_CONFIGURED_DATA_SET_WRITERS,
                is_writer,
                false,
            ),
            (
                variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_LIVE_VALUES_CONFIGURED_DATA_SET_READERS,
                is_reader,
                false,
            ),
            (
                variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_LIVE_VALUES_OPERATIONAL_DATA_SET_WRITERS,
                is_writer,
                true,
            ),
            (
                variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_LIVE_VALUES_OPERATIONAL_DATA_SET_READERS,
                is_reader,
                true,
            ),
        ];
        for (id, kind, operational) in counts {
            let states = Arc::clone(self);
            computed(space, id, move || {
                let components = lock(&states.components);
                let counted = components.iter().filter(|(component, state)| {
                    kind(*component) && (!operational || *state == PubSubState::OPERATIONAL)
                });
                u16::try_from(counted.count()).unwrap_or(u16::MAX)
            })?;
        }
        let states = Arc::clone(self);
        let reset = move |caller: &CallContext, _: Vec<Variant>| {
            administers(caller)?;
            lock(&states.components).reset_counters();
            Ok(Vec::new())
        };
        let id: NodeId = ns0(method_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_RESET);
        Ok(space.set_method(&id, Arc::new(reset))?)
    }
}

impl Engines {
    fn switch(&self, switch: Switch) {
        let on = switch.on;
        match switch.component {
            Component::WriterGroup(group) => {
                if let Some(publisher) = self.publisher() {
                    publisher
                        .publisher()
                        .run(move |engine, now| engine.set_enabled(group, on, now.instant, now));
                }
            }
            Component::DataSetReader(reader) => {
                if let Some(subscriber) = self.subscriber() {
                    subscriber
                        .subscriber()
                        .run(move |engine, now, sink| engine.set_enabled(reader, on, now, sink));
                }
            }
            _ => {}
        }
    }
}
