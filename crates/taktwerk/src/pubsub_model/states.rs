//! The configuration with the states of all components, their variables, and the engines that run it.

use super::engines::Engines;
use super::{computed, lock};
use crate::error::BuildError;
use crate::space::{Space, now, ns0};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use taktwerk_pubsub::GroupIndex;
use taktwerk_pubsub::component::{Changes, Component, Components, StateCounters, Switch};
use taktwerk_pubsub::config::{Configuration, DataSetSource, Element};
use taktwerk_pubsub::security::SecurityKeys;
use taktwerk_pubsub::state::PubSubState;
use taktwerk_schema::ids::variable_ids;
use taktwerk_server::space::VariableHandle;
use taktwerk_types::StatusCode;

/// Configuration and states: positions in one are positions in the other.
struct Current {
    configuration: Arc<Configuration>,
    components: Components,
}

impl Current {
    fn component(&self, element: Option<&Element>) -> Option<Component> {
        match element {
            None => Some(Component::Root),
            Some(element) => element.component(&self.configuration),
        }
    }
}

/// Shared by the model, its Methods and the engines' events.
pub(super) struct States {
    current: Mutex<Current>,
    /// The State variables; `None` is PublishSubscribe itself.
    variables: Mutex<BTreeMap<Option<Element>, VariableHandle>>,
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
            current: Mutex::new(Current {
                configuration: Arc::new(configuration.clone()),
                components: Components::new(configuration),
            }),
            variables: Mutex::default(),
            engines: Mutex::default(),
        }
    }

    /// The current configuration.
    pub(super) fn configuration(&self) -> Arc<Configuration> {
        Arc::clone(&lock(&self.current).configuration)
    }

    pub(super) fn state(&self, component: Component) -> PubSubState {
        lock(&self.current).components.state(component)
    }

    pub(super) fn counters(&self, component: Component) -> StateCounters {
        lock(&self.current).components.counters(component)
    }

    /// The counters of an element; `None` is PublishSubscribe itself.
    pub(super) fn counters_of(&self, element: Option<&Element>) -> StateCounters {
        let current = lock(&self.current);
        current.component(element).map(|component| current.components.counters(component)).unwrap_or_default()
    }

    /// The number of components of some kind, or of operational ones.
    pub(super) fn count(&self, is_counted: impl Fn(Component) -> bool, operational: bool) -> u16 {
        let current = lock(&self.current);
        let counted = current.components.iter().filter(|(component, state)| {
            is_counted(*component) && (!operational || *state == PubSubState::OPERATIONAL)
        });
        u16::try_from(counted.count()).unwrap_or(u16::MAX)
    }

    /// The number of components of some kind below an element, or of operational ones.
    pub(super) fn count_below(
        &self,
        element: &Element,
        is_counted: impl Fn(Component) -> bool,
        operational: bool,
    ) -> u16 {
        let above = lock(&self.current).component(Some(element));
        let is_below = |component| above.is_some_and(|above| is_below(above, component));
        self.count(|component| is_counted(component) && is_below(component), operational)
    }

    /// Whether any component below an element has counted errors.
    pub(super) fn has_errors(&self, element: Option<&Element>) -> bool {
        let current = lock(&self.current);
        let above = current.component(element);
        let has = |component: Component| current.components.counters(component).error > 0;
        let mut components = current.components.iter().map(|(component, _)| component);
        components.any(|component| above.is_some_and(|above| is_below(above, component)) && has(component))
    }

    /// Resets the counters of one element, or of all with `None`.
    pub(super) fn reset(&self, element: Option<&Element>) {
        let mut current = lock(&self.current);
        match element {
            None => current.components.reset_counters(),
            Some(_) => {
                if let Some(component) = current.component(element) {
                    current.components.reset_counters_of(component);
                }
            }
        }
    }

    /// Shows the state of an element in a Variable from now on.
    pub(super) fn show(&self, element: Option<Element>, variable: VariableHandle) {
        // Use the same lock order everywhere: a concurrent state change is then written after this one.
        let current = lock(&self.current);
        let state = current.component(element.as_ref()).map(|component| current.components.state(component));
        variable.set_at(state.unwrap_or(PubSubState::DISABLED).0, now());
        lock(&self.variables).insert(element, variable);
    }

    /// Forgets the variable of an element.
    pub(super) fn hide(&self, element: &Element) {
        lock(&self.variables).remove(&Some(element.clone()));
    }

    /// Enables or disables a component, in the configuration too.
    pub(super) fn set_enabled(&self, component: Component, enabled: bool) -> Result<(), StatusCode> {
        let mut current = lock(&self.current);
        let changes = current.components.set_enabled(component, enabled)?;
        set_flag(Arc::make_mut(&mut current.configuration), component, enabled);
        self.apply(&current.configuration, &changes);
        Ok(())
    }

    /// Finds the component of an element, which Methods identify by name.
    pub(super) fn component(&self, element: &Element) -> Result<Component, StatusCode> {
        lock(&self.current).component(Some(element)).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)
    }

    pub(super) fn report(&self, component: Component, state: PubSubState) {
        let mut current = lock(&self.current);
        let changes = current.components.report(component, state);
        self.apply(&current.configuration, &changes);
    }

    /// Sets a component to Error until the next configuration.
    pub(super) fn cannot_run(&self, component: Component) {
        let mut current = lock(&self.current);
        let changes = current.components.cannot_run(component);
        self.apply(&current.configuration, &changes);
    }

    /// Sets DataSetWriters of Actions to operational, unless `why_not` returns why the responder of their connection and
    /// WriterGroup could not start. Returns those in Error.
    pub(super) fn answered(
        &self,
        configuration: &Configuration,
        why_not: impl Fn(&str, &str) -> Option<StatusCode>,
    ) -> Vec<Unanswered> {
        let mut unanswered = Vec::new();
        let mut current = lock(&self.current);
        for (connection, of) in configuration.connections.iter().enumerate() {
            for (group, of_group) in of.writer_groups.iter().enumerate() {
                for (writer, of_writer) in of_group.writers.iter().enumerate() {
                    let set = configuration.data_set(&of_writer.data_set_name);
                    if !set.is_some_and(|set| matches!(set.source, DataSetSource::ActionMethods(_))) {
                        continue;
                    }
                    let group = GroupIndex { connection, group };
                    let component = Component::DataSetWriter { group, writer };
                    // A disabled writer has not failed.
                    let changes = match why_not(&of.name, &of_group.name).filter(|_| of_writer.enabled) {
                        Some(status) => {
                            unanswered.push(Unanswered { component, status });
                            current.components.cannot_run(component)
                        }
                        None => current.components.can_run_again(component),
                    };
                    self.apply(&current.configuration, &changes);
                }
            }
        }
        unanswered
    }

    /// Reports a state from an engine that runs `configuration`.
    pub(super) fn report_from(
        &self,
        configuration: &Configuration,
        component: Component,
        state: PubSubState,
    ) {
        let element = Element::of(component, configuration);
        let mut current = lock(&self.current);
        let Some(component) = current.component(element.as_ref()).filter(|_| element.is_some()) else {
            return;
        };
        let changes = current.components.report(component, state);
        self.apply(&current.configuration, &changes);
    }

    /// Switches to another configuration. The engines decide themselves what to start and stop.
    pub(super) fn reconfigure(&self, configuration: Arc<Configuration>) {
        let mut current = lock(&self.current);
        let old = core::mem::replace(&mut current.configuration, configuration);
        let new = Arc::clone(&current.configuration);
        let changes = current.components.reconfigure(&old, &new);
        self.apply(&new, &changes);
    }

    /// Applies state changes. The caller holds the lock of the current state, so that variables change in the order of the
    /// states. It never blocks: commands to engines are queued.
    fn apply(&self, configuration: &Configuration, changes: &Changes) {
        let variables = lock(&self.variables);
        for (component, state) in &changes.states {
            let element = Element::of(*component, configuration);
            if element.is_none() && *component != Component::Root {
                continue;
            }
            if let Some(variable) = variables.get(&element) {
                variable.set_at(state.0, now());
            }
        }
        drop(variables);
        let engines = lock(&self.engines);
        for switch in &changes.switches {
            switch_engine(&engines, *switch);
        }
    }

    pub(super) fn attach_publisher(&self, publisher: Weak<dyn super::RunsPublisher>) {
        lock(&self.engines).publisher = Some(publisher);
    }

    pub(super) fn attach_subscriber(&self, subscriber: Weak<dyn super::RunsSubscriber>) {
        lock(&self.engines).subscriber = Some(subscriber);
    }

    pub(super) fn attach_responders(&self, responders: Weak<dyn super::RunsResponders>) {
        lock(&self.engines).responders = Some(responders);
    }

    pub(super) fn responders(&self) -> Option<Arc<dyn super::RunsResponders>> {
        lock(&self.engines).responders()
    }

    pub(super) fn publisher(&self) -> Option<Arc<dyn super::RunsPublisher>> {
        lock(&self.engines).publisher()
    }

    pub(super) fn subscriber(&self) -> Option<Arc<dyn super::RunsSubscriber>> {
        lock(&self.engines).subscriber()
    }

    /// The key service of this server has new keys for a group: the engines request them immediately.
    pub(super) fn refresh_keys(&self, security_group_id: &str) {
        let group = security_group_id.to_owned();
        if let Some(publisher) = self.publisher() {
            let group = group.clone();
            publisher.publisher().run(move |engine, now| engine.refresh_keys(&group, now));
        }
        if let Some(subscriber) = self.subscriber() {
            subscriber.subscriber().run(move |engine, now, _| engine.refresh_keys(&group, now));
        }
        if let Some(responders) = self.responders() {
            responders.refresh_keys(security_group_id);
        }
    }

    /// Passes pushed keys to the engines.
    pub(super) fn set_security_keys(
        &self,
        security_group_id: &str,
        keys: SecurityKeys,
    ) -> Result<(), StatusCode> {
        let (publisher, subscriber, responders) = (self.publisher(), self.subscriber(), self.responders());
        if publisher.is_none() && subscriber.is_none() && responders.is_none() {
            return Err(StatusCode::BAD_NOT_FOUND);
        }
        if let Some(responders) = responders {
            responders.set_keys(security_group_id, &keys);
        }
        let group = security_group_id.to_owned();
        if let Some(publisher) = publisher {
            let (group, keys) = (group.clone(), keys.clone());
            publisher.publisher().run(move |engine, now| {
                // Ignore groups that the engine does not use.
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

    /// Shows the state of PublishSubscribe itself.
    pub(super) fn add_root(self: &Arc<Self>, space: &Space) -> Result<(), BuildError> {
        let state = space.variable(&ns0(variable_ids::PUBLISH_SUBSCRIBE_STATUS_STATE))?;
        self.show(None, state);
        type Kind = fn(Component) -> bool;
        let is_writer: Kind = |component| matches!(component, Component::DataSetWriter { .. });
        let is_reader: Kind = |component| matches!(component, Component::DataSetReader(_));
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
            computed(space, id, move || states.count(kind, operational))?;
        }
        Ok(())
    }
}

/// A DataSetWriter whose Actions are not answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unanswered {
    component: Component,
    /// Why.
    pub(super) status: StatusCode,
}

impl Unanswered {
    /// Whether it is the component, or belongs to it.
    pub(super) fn is_of(self, component: Component) -> bool {
        self.component == component || is_below(component, self.component)
    }
}

/// Whether `component` belongs to `above`.
fn is_below(above: Component, component: Component) -> bool {
    match above {
        Component::Root => component != Component::Root,
        Component::Connection { connection } => match component {
            Component::WriterGroup(group) | Component::DataSetWriter { group, .. } => {
                group.connection == connection
            }
            Component::ReaderGroup { connection: of, .. } => of == connection,
            Component::DataSetReader(index) => index.connection == connection,
            _ => false,
        },
        Component::WriterGroup(index) => {
            matches!(component, Component::DataSetWriter { group, .. } if group == index)
        }
        Component::ReaderGroup { connection, group } => {
            matches!(component, Component::DataSetReader(index) if (index.connection, index.group) == (connection, group))
        }
        _ => false,
    }
}

/// Stores in the configuration that a component was enabled or disabled.
fn set_flag(configuration: &mut Configuration, component: Component, enabled: bool) {
    let connections = &mut configuration.connections;
    let flag = match component {
        Component::Root => Some(&mut configuration.enabled),
        Component::Connection { connection } => connections.get_mut(connection).map(|one| &mut one.enabled),
        Component::WriterGroup(index) => connections
            .get_mut(index.connection)
            .and_then(|one| one.writer_groups.get_mut(index.group))
            .map(|group| &mut group.enabled),
        Component::DataSetWriter { group: index, writer } => connections
            .get_mut(index.connection)
            .and_then(|one| one.writer_groups.get_mut(index.group)?.writers.get_mut(writer))
            .map(|writer| &mut writer.enabled),
        Component::ReaderGroup { connection, group } => connections
            .get_mut(connection)
            .and_then(|one| one.reader_groups.get_mut(group))
            .map(|group| &mut group.enabled),
        Component::DataSetReader(index) => connections
            .get_mut(index.connection)
            .and_then(|one| one.reader_groups.get_mut(index.group)?.readers.get_mut(index.reader))
            .map(|reader| &mut reader.enabled),
    };
    if let Some(flag) = flag {
        *flag = enabled;
    }
}

fn switch_engine(engines: &Engines, switch: Switch) {
    let on = switch.on;
    match switch.component {
        Component::WriterGroup(group) => {
            if let Some(publisher) = engines.publisher() {
                publisher.publisher().run(move |engine, now| engine.set_enabled(group, on, now.instant, now));
            }
        }
        Component::DataSetWriter { group, writer } => {
            if let Some(publisher) = engines.publisher() {
                publisher.publisher().run(move |engine, _| engine.set_writer_enabled(group, writer, on));
            }
        }
        Component::DataSetReader(reader) => {
            if let Some(subscriber) = engines.subscriber() {
                subscriber
                    .subscriber()
                    .run(move |engine, now, sink| engine.set_enabled(reader, on, now, sink));
            }
        }
        _ => {}
    }
}
