//! The components of a configuration and their states (Part 14 §6.2.1, §9.1.10): what a server shows of PubSub, and the
//! effect of its Enable and Disable Methods.
//!
//! The engines run WriterGroups and DataSetReaders and report their states. All other components are operational as
//! soon as they and their parents are enabled. [`Components`] determines which engine parts have to be started and
//! stopped when a parent changes.

use crate::config::{Configuration, Element};
use crate::index::{GroupIndex, ReaderIndex};
use crate::state::{PubSubState, Trigger, next};
use taktwerk_types::StatusCode;

mod element;

/// A component: positions in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the fields are positions of what they are named after
pub enum Component {
    /// PublishSubscribe itself.
    Root,
    /// A PubSubConnection.
    Connection { connection: usize },
    /// A WriterGroup.
    WriterGroup(GroupIndex),
    /// A DataSetWriter.
    DataSetWriter { group: GroupIndex, writer: usize },
    /// A ReaderGroup.
    ReaderGroup { connection: usize, group: usize },
    /// A DataSetReader.
    DataSetReader(ReaderIndex),
}

impl Component {
    /// Whether an engine runs it.
    const fn is_run(self) -> bool {
        matches!(self, Self::WriterGroup(_) | Self::DataSetReader(_))
    }

    /// Whether the engine should have it switched on in a state; `None` if there is nothing to switch. A DataSetWriter
    /// follows its group automatically.
    const fn is_on(self, state: PubSubState) -> Option<bool> {
        let is_disabled = state.0 == PubSubState::DISABLED.0;
        match self {
            Self::WriterGroup(_) | Self::DataSetReader(_) => {
                Some(!is_disabled && state.0 != PubSubState::PAUSED.0)
            }
            Self::DataSetWriter { .. } => Some(!is_disabled),
            _ => None,
        }
    }
}

/// How often a component has changed its state, and why (Part 14 §9.1.11.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StateCounters {
    /// It failed.
    pub error: u32,
    /// It became operational because it was enabled.
    pub operational_by_method: u32,
    /// It became operational because its parent did.
    pub operational_by_parent: u32,
    /// It became operational again after an error.
    pub operational_from_error: u32,
    /// It was paused because its parent stopped.
    pub paused_by_parent: u32,
    /// It was disabled.
    pub disabled_by_method: u32,
}

/// An action for an engine: start or stop a WriterGroup, DataSetWriter or DataSetReader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// The component.
    pub component: Component,
    /// On or off.
    pub on: bool,
}

/// The effects of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Components with a new state.
    pub states: Vec<(Component, PubSubState)>,
    /// Actions for the engines.
    pub switches: Vec<Switch>,
}

#[derive(Debug)]
struct Entry {
    component: Component,
    parent: Option<usize>,
    state: PubSubState,
    /// The counter to use when it becomes operational: by method or by parent.
    by_method: bool,
    cannot_run: bool,
    counters: StateCounters,
}

/// The states of all components.
#[derive(Debug)]
pub struct Components {
    /// Parents precede their children.
    entries: Vec<Entry>,
}

impl Components {
    /// The initial states of a configuration: enabled components are operational or wait for their engine.
    #[must_use]
    pub fn new(configuration: &Configuration) -> Self {
        let mut components = Self { entries: Vec::new() };
        let root = components.add(Component::Root, None, configuration.enabled);
        for (index, connection) in configuration.connections.iter().enumerate() {
            let component = Component::Connection { connection: index };
            let parent = components.add(component, Some(root), connection.enabled);
            for (group, writers) in connection.writer_groups.iter().enumerate() {
                let group = GroupIndex { connection: index, group };
                let parent = components.add(Component::WriterGroup(group), Some(parent), writers.enabled);
                for (writer, config) in writers.writers.iter().enumerate() {
                    let component = Component::DataSetWriter { group, writer };
                    components.add(component, Some(parent), config.enabled);
                }
            }
            for (group, readers) in connection.reader_groups.iter().enumerate() {
                let component = Component::ReaderGroup { connection: index, group };
                let parent = components.add(component, Some(parent), readers.enabled);
                for (reader, config) in readers.readers.iter().enumerate() {
                    let index = ReaderIndex { connection: index, group, reader };
                    components.add(Component::DataSetReader(index), Some(parent), config.enabled);
                }
            }
        }
        components.reset_counters();
        components
    }

    /// The configuration has changed. Components with the same name keep their state and counters if they are still
    /// enabled. If other settings of a part that an engine runs have changed, it waits for the engine's report again.
    /// Returns the components with a new state.
    pub fn reconfigure(&mut self, old: &Configuration, new: &Configuration) -> Changes {
        let mut next = Self::new(new);
        let mut changes = Changes::default();
        for at in 0..next.entries.len() {
            let Some((component, parent)) = next.entries.get(at).map(|entry| (entry.component, entry.parent))
            else {
                break;
            };
            let element = Element::of(component, new);
            let before = match &element {
                Some(element) => element.component(old),
                None => Some(Component::Root),
            };
            let before =
                before.and_then(|before| self.entries.iter().find(|entry| entry.component == before));
            let parent_runs = next.is_operational(parent);
            let is_same = before.is_some_and(|before| same_settings(before.component, old, component, new));
            let Some(entry) = next.entries.get_mut(at) else { break };
            let Some(before) = before else {
                changes.states.push((component, entry.state));
                continue;
            };
            entry.counters = before.counters;
            entry.by_method = before.by_method;
            let is_enabled = entry.state != PubSubState::DISABLED;
            let was = before.state;
            entry.state = match was {
                _ if !is_enabled => PubSubState::DISABLED,
                _ if !parent_runs => PubSubState::PAUSED,
                // A component that could not run can run now; otherwise the configuration would be invalid.
                PubSubState::ERROR if !component.is_run() => PubSubState::OPERATIONAL,
                PubSubState::OPERATIONAL | PubSubState::ERROR | PubSubState::PRE_OPERATIONAL
                    if is_same || !component.is_run() =>
                {
                    was
                }
                _ if component.is_run() => PubSubState::PRE_OPERATIONAL,
                _ => PubSubState::OPERATIONAL,
            };
            if entry.state != was || component != before.component {
                changes.states.push((component, entry.state));
            }
        }
        *self = next;
        changes
    }

    fn add(&mut self, component: Component, parent: Option<usize>, enabled: bool) -> usize {
        let parent_runs = self.is_operational(parent);
        let at = self.entries.len();
        let counters = StateCounters::default();
        let state = PubSubState::DISABLED;
        self.entries.push(Entry { component, parent, state, by_method: false, cannot_run: false, counters });
        if enabled {
            let mut changes = Changes::default();
            self.trigger(at, Trigger::Enable, parent_runs, &mut changes);
        }
        at
    }

    fn is_operational(&self, at: Option<usize>) -> bool {
        at.is_none_or(|at| self.entries.get(at).is_some_and(|entry| entry.state == PubSubState::OPERATIONAL))
    }

    fn position(&self, component: Component) -> Option<usize> {
        self.entries.iter().position(|entry| entry.component == component)
    }

    /// All components with their states; parents precede their children.
    pub fn iter(&self) -> impl Iterator<Item = (Component, PubSubState)> {
        self.entries.iter().map(|entry| (entry.component, entry.state))
    }

    /// The state of a component; Disabled if it does not exist.
    #[must_use]
    pub fn state(&self, component: Component) -> PubSubState {
        self.entries
            .iter()
            .find(|entry| entry.component == component)
            .map_or(PubSubState::DISABLED, |entry| entry.state)
    }

    /// The counters of a component.
    #[must_use]
    pub fn counters(&self, component: Component) -> StateCounters {
        self.entries
            .iter()
            .find(|entry| entry.component == component)
            .map(|entry| entry.counters)
            .unwrap_or_default()
    }

    /// Resets all counters (the Reset Method).
    pub fn reset_counters(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.counters = StateCounters::default());
    }

    /// Resets the counters of one component.
    pub fn reset_counters_of(&mut self, component: Component) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.component == component) {
            entry.counters = StateCounters::default();
        }
    }

    /// The Enable and Disable Methods (Part 14 §9.1.10.2, §9.1.10.3).
    ///
    /// # Errors
    /// Bad_InvalidState if it is already enabled or disabled, Bad_NodeIdUnknown if it does not exist.
    pub fn set_enabled(&mut self, component: Component, enabled: bool) -> Result<Changes, StatusCode> {
        let at = self.position(component).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let entry = self.entries.get_mut(at).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        if (entry.state == PubSubState::DISABLED) != enabled {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        entry.by_method = enabled;
        let parent = self.entries.get(at).and_then(|entry| entry.parent);
        let mut changes = Changes::default();
        let trigger = if enabled { Trigger::Enable } else { Trigger::Disable };
        self.trigger(at, trigger, self.is_operational(parent), &mut changes);
        Ok(changes)
    }

    /// A component cannot run until the configuration changes: it is in error instead of operational.
    pub fn cannot_run(&mut self, component: Component) -> Changes {
        let mut changes = Changes::default();
        let Some(at) = self.position(component) else { return changes };
        if let Some(entry) = self.entries.get_mut(at) {
            entry.cannot_run = true;
        }
        self.trigger(at, Trigger::Fault, true, &mut changes);
        changes
    }

    /// The component can run again.
    pub fn can_run_again(&mut self, component: Component) -> Changes {
        let mut changes = Changes::default();
        let Some(at) = self.position(component) else { return changes };
        let Some(entry) = self.entries.get_mut(at).filter(|entry| entry.cannot_run) else { return changes };
        entry.cannot_run = false;
        // Parts that an engine runs report this themselves.
        if !component.is_run() {
            self.trigger(at, Trigger::Ready, true, &mut changes);
        }
        changes
    }

    /// Takes an engine's report about a WriterGroup or DataSetReader.
    pub fn report(&mut self, component: Component, state: PubSubState) -> Changes {
        let mut changes = Changes::default();
        let Some(at) = self.position(component).filter(|_| component.is_run()) else { return changes };
        let trigger = match state {
            PubSubState::OPERATIONAL => Trigger::Ready,
            PubSubState::ERROR => Trigger::Fault,
            // Disabled and paused are the states that we have set.
            _ => return changes,
        };
        self.trigger(at, trigger, true, &mut changes);
        changes
    }

    fn trigger(&mut self, at: usize, trigger: Trigger, parent_runs: bool, changes: &mut Changes) {
        let Some(entry) = self.entries.get_mut(at) else { return };
        let before = entry.state;
        let mut state = next(before, trigger, parent_runs);
        if state == PubSubState::PRE_OPERATIONAL && !entry.component.is_run() {
            // There is nothing to wait for.
            state = PubSubState::OPERATIONAL;
        }
        if entry.cannot_run && state == PubSubState::OPERATIONAL {
            state = PubSubState::ERROR;
        }
        if state == before {
            return;
        }
        entry.state = state;
        let counters = &mut entry.counters;
        let counter = match state {
            PubSubState::OPERATIONAL if before == PubSubState::ERROR => &mut counters.operational_from_error,
            PubSubState::OPERATIONAL if entry.by_method => &mut counters.operational_by_method,
            PubSubState::OPERATIONAL => &mut counters.operational_by_parent,
            PubSubState::ERROR => &mut counters.error,
            PubSubState::PAUSED => &mut counters.paused_by_parent,
            PubSubState::DISABLED => &mut counters.disabled_by_method,
            _ => &mut 0,
        };
        *counter = counter.saturating_add(1);
        if matches!(state, PubSubState::OPERATIONAL) {
            entry.by_method = false;
        }
        let component = entry.component;
        changes.states.push((component, state));
        if let Some(on) = component.is_on(state)
            && component.is_on(before) != Some(on)
        {
            changes.switches.push(Switch { component, on });
        }
        let trigger = match (before, state) {
            (_, PubSubState::OPERATIONAL) => Trigger::ParentOperational,
            (PubSubState::OPERATIONAL, _) => Trigger::ParentStopped,
            _ => return,
        };
        for child in at + 1..self.entries.len() {
            if self.entries.get(child).is_some_and(|entry| entry.parent == Some(at)) {
                self.trigger(child, trigger, true, changes);
            }
        }
    }
}

/// Whether the engine need not restart a WriterGroup or DataSetReader.
fn same_settings(before: Component, old: &Configuration, after: Component, new: &Configuration) -> bool {
    match (before, after) {
        (Component::WriterGroup(before), Component::WriterGroup(after)) => {
            crate::publisher::same_group(old, before, new, after)
        }
        (Component::DataSetReader(before), Component::DataSetReader(after)) => {
            crate::subscriber::same_reader(old, before, new, after)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Connection, DataSetReader, DataSetWriter, ReaderGroup, WriterGroup};
    use crate::publisher_id::PublisherId;

    const GROUP: GroupIndex = GroupIndex { connection: 0, group: 0 };
    const WRITER: Component = Component::DataSetWriter { group: GROUP, writer: 0 };
    const READER: Component = Component::DataSetReader(ReaderIndex { connection: 0, group: 0, reader: 0 });
    const CONNECTION: Component = Component::Connection { connection: 0 };

    fn configuration() -> Configuration {
        let mut connection = Connection::new("c", Some(PublisherId::Byte(1)), "opc.udp://239.0.0.1:4840");
        let mut group = WriterGroup::dynamic("g", 1, 10.0);
        group.writers.push(DataSetWriter::dynamic("w", 1, ""));
        connection.writer_groups.push(group);
        let reader = DataSetReader { name: "r".into(), enabled: true, ..DataSetReader::default() };
        connection.reader_groups.push(ReaderGroup::new("rg", vec![reader]));
        Configuration { enabled: true, connections: vec![connection], ..Configuration::default() }
    }

    fn components() -> Components {
        Components::new(&configuration())
    }

    #[test]
    fn parts_that_an_engine_runs_wait_for_it() {
        let mut components = components();
        assert_eq!(components.state(Component::WriterGroup(GROUP)), PubSubState::PRE_OPERATIONAL);
        assert_eq!(components.state(WRITER), PubSubState::PAUSED);
        assert_eq!(components.state(READER), PubSubState::PRE_OPERATIONAL);
        let changes = components.report(Component::WriterGroup(GROUP), PubSubState::OPERATIONAL);
        let expected =
            [(Component::WriterGroup(GROUP), PubSubState::OPERATIONAL), (WRITER, PubSubState::OPERATIONAL)];
        assert_eq!((changes.states.as_slice(), changes.switches.len()), (expected.as_slice(), 0));
        components.report(Component::WriterGroup(GROUP), PubSubState::ERROR);
        assert_eq!(components.state(WRITER), PubSubState::PAUSED);
        components.report(Component::WriterGroup(GROUP), PubSubState::OPERATIONAL);
        let counters = components.counters(Component::WriterGroup(GROUP));
        assert_eq!((counters.error, counters.operational_from_error), (1, 1));
        assert_eq!(components.counters(WRITER).paused_by_parent, 1);
        components.reset_counters();
        assert_eq!(components.counters(WRITER), StateCounters::default());
    }

    #[test]
    fn components_that_cannot_run_are_in_error_until_reconfigured() {
        let mut components = components();
        components.cannot_run(WRITER);
        components.cannot_run(READER);
        assert_eq!(components.state(WRITER), PubSubState::PAUSED, "its group does not run yet");
        assert_eq!(components.state(READER), PubSubState::ERROR);
        for _ in 0..2 {
            components.report(Component::WriterGroup(GROUP), PubSubState::OPERATIONAL);
            components.report(READER, PubSubState::OPERATIONAL);
            assert_eq!(
                (components.state(WRITER), components.state(READER)),
                (PubSubState::ERROR, PubSubState::ERROR)
            );
            components.report(Component::WriterGroup(GROUP), PubSubState::ERROR);
            assert_eq!(components.state(WRITER), PubSubState::PAUSED);
        }
        components.report(Component::WriterGroup(GROUP), PubSubState::OPERATIONAL);
        let again = components.can_run_again(WRITER);
        assert_eq!(again.states, [(WRITER, PubSubState::OPERATIONAL)]);
        assert_eq!(components.can_run_again(WRITER), Changes::default());
        components.cannot_run(WRITER);
        assert_eq!(components.state(WRITER), PubSubState::ERROR);
        components.set_enabled(WRITER, false).unwrap();
        components.can_run_again(WRITER);
        assert_eq!(components.state(WRITER), PubSubState::DISABLED);
        components.set_enabled(WRITER, true).unwrap();
        assert_eq!(components.state(WRITER), PubSubState::OPERATIONAL);
        components.cannot_run(WRITER);
        components.reconfigure(&configuration(), &configuration());
        assert_eq!(
            components.state(WRITER),
            PubSubState::OPERATIONAL,
            "another configuration runs, or is refused"
        );
        components.report(READER, PubSubState::OPERATIONAL);
        assert_eq!(components.state(READER), PubSubState::OPERATIONAL);
    }

    #[test]
    fn disabling_pauses_all_children_and_stops_the_engines() {
        let mut components = components();
        components.report(Component::WriterGroup(GROUP), PubSubState::OPERATIONAL);
        components.report(READER, PubSubState::OPERATIONAL);
        let changes = components.set_enabled(CONNECTION, false).unwrap();
        let off = |component| Switch { component, on: false };
        assert_eq!(changes.switches, [off(Component::WriterGroup(GROUP)), off(READER)]);
        assert_eq!(components.state(CONNECTION), PubSubState::DISABLED);
        for component in [WRITER, READER, Component::WriterGroup(GROUP)] {
            assert_eq!(components.state(component), PubSubState::PAUSED, "{component:?}");
        }
        assert_eq!(components.set_enabled(CONNECTION, false), Err(StatusCode::BAD_INVALID_STATE));
        // A disabled child stays disabled.
        components.set_enabled(READER, false).unwrap();
        let changes = components.set_enabled(CONNECTION, true).unwrap();
        let on = Switch { component: Component::WriterGroup(GROUP), on: true };
        assert_eq!(changes.switches, [on]);
        assert_eq!(components.state(READER), PubSubState::DISABLED);
        assert_eq!(components.state(Component::WriterGroup(GROUP)), PubSubState::PRE_OPERATIONAL);
        assert_eq!(components.counters(CONNECTION).operational_by_method, 1);
        // A late report does not enable what was disabled.
        assert_eq!(components.report(READER, PubSubState::OPERATIONAL), Changes::default());
        assert_eq!(components.set_enabled(READER, true).unwrap().switches.len(), 1);
        let unknown = Component::Connection { connection: 9 };
        assert_eq!(components.set_enabled(unknown, true), Err(StatusCode::BAD_NODE_ID_UNKNOWN));
    }

    #[test]
    fn a_writer_is_switched_by_itself_and_follows_its_group() {
        let mut components = components();
        components.report(Component::WriterGroup(GROUP), PubSubState::OPERATIONAL);
        let switch = |component, on| Switch { component, on };
        let changes = components.set_enabled(WRITER, false).unwrap();
        assert_eq!(
            (changes.switches.as_slice(), components.state(WRITER)),
            ([switch(WRITER, false)].as_slice(), PubSubState::DISABLED)
        );
        let changes = components.set_enabled(Component::WriterGroup(GROUP), false).unwrap();
        assert_eq!(changes.switches, [switch(Component::WriterGroup(GROUP), false)]);
        let changes = components.set_enabled(WRITER, true).unwrap();
        assert_eq!(
            (changes.switches.as_slice(), components.state(WRITER)),
            ([switch(WRITER, true)].as_slice(), PubSubState::PAUSED)
        );
    }

    #[test]
    fn reconfiguration_keeps_components_with_the_same_name() {
        let mut components = components();
        let old = configuration();
        components.report(Component::WriterGroup(GROUP), PubSubState::OPERATIONAL);
        components.report(READER, PubSubState::OPERATIONAL);
        // Another connection before it, another timeout for the reader, and a disabled writer.
        let mut new = old.clone();
        new.connections.insert(0, Connection::new("first", None, "opc.udp://239.0.0.1:4841"));
        new.connections[1].reader_groups[0].readers[0].message_receive_timeout = 77.0;
        new.connections[1].writer_groups[0].writers[0].enabled = false;
        let changes = components.reconfigure(&old, &new);
        assert!(changes.switches.is_empty(), "the engines detect the change themselves");
        let group = GroupIndex { connection: 1, group: 0 };
        let reader = ReaderIndex { connection: 1, group: 0, reader: 0 };
        for (component, expected) in [
            (CONNECTION, PubSubState::OPERATIONAL),
            (Component::WriterGroup(group), PubSubState::OPERATIONAL),
            (Component::DataSetWriter { group, writer: 0 }, PubSubState::DISABLED),
            (Component::DataSetReader(reader), PubSubState::PRE_OPERATIONAL),
            (Component::WriterGroup(GROUP), PubSubState::DISABLED),
        ] {
            assert_eq!(components.state(component), expected, "{component:?}");
        }
        assert_eq!(components.counters(Component::WriterGroup(group)).operational_by_parent, 1);
        components.report(Component::DataSetReader(reader), PubSubState::OPERATIONAL);
        // And back again, everything disabled.
        let off = Configuration { enabled: false, ..old.clone() };
        components.reconfigure(&new, &off);
        assert_eq!(components.state(Component::Root), PubSubState::DISABLED);
        assert_eq!(components.state(READER), PubSubState::PAUSED);
    }
}
