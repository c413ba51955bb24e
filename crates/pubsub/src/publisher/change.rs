//! Changing the configuration of a running publisher: unchanged parts continue without interruption.

use super::group::Group;
use super::{GroupIndex, Publisher, PublisherEvent};
use crate::config::{self, Configuration, Problem, WriterGroup};
use crate::state::PubSubState;
use crate::time::Now;
use crate::uadp::SecurityMode;
use std::sync::Arc;

/// A group without the settings that are switched at run time.
fn settings(group: &WriterGroup) -> WriterGroup {
    let mut group = WriterGroup { enabled: true, properties: Vec::new(), ..group.clone() };
    for writer in &mut group.writers {
        writer.enabled = true;
        writer.properties.clear();
    }
    group
}

/// Whether groups of two configurations send the same.
pub(crate) fn same_group(
    old: &Configuration,
    before: GroupIndex,
    new: &Configuration,
    after: GroupIndex,
) -> bool {
    let find = |configuration: &Configuration, index: GroupIndex| {
        let connection = configuration.connections.get(index.connection)?;
        let group = connection.writer_groups.get(index.group)?;
        let data_sets =
            group.writers.iter().map(|writer| configuration.data_set(&writer.data_set_name).cloned());
        Some((
            connection.publisher_id.clone(),
            connection.url.clone(),
            settings(group),
            data_sets.collect::<Vec<_>>(),
        ))
    };
    let (before, after) = (find(old, before), find(new, after));
    before.is_some() && before == after
}

impl Publisher {
    /// Sets the maximum NetworkMessage in bytes for groups that are created from now on without their own limit.
    pub fn set_message_len_max(&mut self, len: usize) {
        self.options.message_len_max = len;
    }

    /// Applies another configuration. Unchanged groups continue; groups with the same connection and name keep their
    /// sequence numbers. Enabled parts are started, disabled ones are stopped. Events report the states of all groups
    /// again.
    ///
    /// # Errors
    /// All problems of the new configuration; nothing has changed then.
    pub fn reconfigure(&mut self, configuration: Configuration, now: Now) -> Result<(), Vec<Problem>> {
        let problems = config::validate(&configuration);
        if !problems.is_empty() {
            return Err(problems);
        }
        let new = Arc::new(configuration);
        let old = Arc::clone(&self.configuration);
        // First everything that can fail.
        let mut planned = Vec::new();
        for (connection, config) in new.connections.iter().enumerate() {
            for (group, config) in config.writer_groups.iter().enumerate() {
                let index = GroupIndex { connection, group };
                let before = position(&old, &new, connection, &config.name);
                let is_same = before.is_some_and(|before| same_group(&old, before, &new, index));
                let built = if is_same { None } else { Some(Group::new(&new, index, &self.options)?) };
                planned.push((index, before, built));
            }
        }
        let mut groups = Vec::with_capacity(planned.len());
        for (index, before, built) in planned {
            let at = self.groups.iter().position(|group| Some(group.index) == before);
            let old = at.map(|at| self.groups.swap_remove(at));
            let group = match (old, built) {
                (Some(mut group), None) => {
                    group.rebind(&new, index);
                    group
                }
                (old, Some(mut group)) => {
                    if let Some(old) = old {
                        group.take_over(&old, now.instant);
                    }
                    group
                }
                (None, None) => continue,
            };
            groups.push(group);
        }
        self.groups = groups;
        self.configuration = Arc::clone(&new);
        self.exchange_keys(&new);
        self.announcer.reconfigured(&old, &new, now);
        // All states are reported below; none of these events may displace others.
        let mut events = core::mem::take(&mut self.events);
        for position in 0..self.groups.len() {
            let Some(group) = self.groups.get(position) else { break };
            let (index, is_off) = (group.index, group.state == PubSubState::DISABLED);
            let wanted = new.enabled && group.is_enabled(&new);
            if wanted == is_off {
                self.set_enabled(index, wanted, now.instant, now);
            }
        }
        self.look_for_keys(now);
        events.push_back(PublisherEvent::Reconfigured(Arc::clone(&new)));
        let states = self.groups.iter().map(|group| (group.index, group.state));
        events.extend(states.map(|(group, state)| PublisherEvent::GroupState { group, state, reason: None }));
        self.events = events;
        Ok(())
    }

    /// Adds and removes SecurityGroups to match a configuration.
    fn exchange_keys(&mut self, configuration: &Configuration) {
        let groups = configuration.connections.iter().flat_map(|connection| &connection.writer_groups);
        let secured: Vec<_> =
            groups.map(|group| &group.security).filter(|one| one.mode != SecurityMode::None).collect();
        self.keys.retain(|id| secured.iter().any(|one| one.security_group_id == id));
        for security in secured {
            let services = match security.security_key_services.as_slice() {
                [] => configuration.default_security_key_services.as_slice(),
                own => own,
            };
            self.keys.add_group(&security.security_group_id, services);
        }
    }
}

/// The old position of a group of the new configuration.
fn position(old: &Configuration, new: &Configuration, connection: usize, name: &str) -> Option<GroupIndex> {
    let of = &new.connections.get(connection)?.name;
    let connection = old.connections.iter().position(|connection| connection.name == *of)?;
    let group = old.connections.get(connection)?.writer_groups.iter().position(|group| group.name == name)?;
    Some(GroupIndex { connection, group })
}
