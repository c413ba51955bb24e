//! Changing the configuration of a running subscriber: unchanged readers continue without interruption.

use super::group::{GroupCount, slot};
use super::reader::Reader;
use super::{ReaderGroupIndex, ReaderIndex, Sink, Subscriber, SubscriberEvent};
use crate::config::{self, Configuration, DataSetReader, GroupSecurity, Problem, SubscribedDataSet};
use crate::state::PubSubState;
use crate::time::Now;
use crate::uadp::SecurityMode;
use std::sync::Arc;

/// A reader without settings that are switched at run time or used elsewhere.
fn settings(reader: &DataSetReader) -> DataSetReader {
    DataSetReader {
        enabled: true,
        subscribed_data_set: SubscribedDataSet::None,
        properties: Vec::new(),
        security: None,
        ..reader.clone()
    }
}

fn security<'a>(group: &'a config::ReaderGroup, reader: &'a DataSetReader) -> &'a GroupSecurity {
    reader.security.as_ref().unwrap_or(&group.security)
}

/// Whether readers of two configurations read the same.
pub(crate) fn same_reader(
    old: &Configuration,
    before: ReaderIndex,
    new: &Configuration,
    after: ReaderIndex,
) -> bool {
    let find = |configuration: &Configuration, index: ReaderIndex| {
        let connection = configuration.connections.get(index.connection)?;
        let group = connection.reader_groups.get(index.group)?;
        let reader = group.readers.get(index.reader)?;
        let address = (
            connection.url.clone(),
            connection.network_interface.clone(),
            connection.transport_profile_uri.clone(),
        );
        Some((address, settings(reader), security(group, reader).clone()))
    };
    let (before, after) = (find(old, before), find(new, after));
    before.is_some() && before == after
}

impl Subscriber {
    /// Applies another configuration. Unchanged readers continue; others wait for their first message. Enabled parts
    /// are started, disabled ones are stopped. Events report the states of all readers again.
    ///
    /// # Errors
    /// All problems of the new configuration; nothing has changed then.
    pub fn reconfigure(
        &mut self,
        configuration: Configuration,
        now: Now,
        sink: &mut dyn Sink,
    ) -> Result<(), Vec<Problem>> {
        let problems = config::validate(&configuration);
        if !problems.is_empty() {
            return Err(problems);
        }
        let new = Arc::new(configuration);
        let old = core::mem::replace(&mut self.configuration, Arc::clone(&new));
        let mut readers = Vec::new();
        let mut secured = Vec::new();
        for (connection, of) in new.connections.iter().enumerate() {
            for (group, of_group) in of.reader_groups.iter().enumerate() {
                for (reader, config) in of_group.readers.iter().enumerate() {
                    let index = ReaderIndex { connection, group, reader };
                    let security = security(of_group, config);
                    if security.mode != SecurityMode::None {
                        secured.push(security);
                    }
                    let enabled = new.enabled && of.enabled && of_group.enabled && config.enabled;
                    let before = position(&old, &of.name, &of_group.name, &config.name);
                    let kept = before.filter(|before| same_reader(&old, *before, &new, index));
                    let at = self.readers.iter().position(|reader| Some(reader.index) == kept);
                    let mut reader = match at.map(|at| self.readers.swap_remove(at)) {
                        Some(mut reader) => {
                            reader.index = index;
                            reader
                        }
                        None => Reader::new(index, config, security, enabled, &self.options),
                    };
                    reader.enabled = enabled;
                    readers.push(reader);
                }
            }
        }
        let counted = core::mem::replace(&mut self.groups, GroupCount::all(&new));
        for group in &mut self.groups {
            let before = counted.iter().find(|before| {
                let name = name_of(&new, group.index);
                name.is_some() && name_of(&old, before.index) == name
            });
            if let Some(before) = before {
                group.counters = before.counters;
            }
        }
        readers.iter_mut().for_each(|reader| reader.group = slot(&self.groups, reader));
        self.readers = readers;
        sink.event(SubscriberEvent::Reconfigured(Arc::clone(&new)));
        self.keys.retain(|id| secured.iter().any(|one| one.security_group_id == id));
        for security in secured {
            let services = match security.security_key_services.as_slice() {
                [] => new.default_security_key_services.as_slice(),
                own => own,
            };
            self.keys.add_group(&security.security_group_id, services);
        }
        self.asker.moved(|connection| {
            let name = &old.connections.get(connection)?.name;
            new.connections.iter().position(|connection| connection.name == *name)
        });
        for reader in &mut self.readers {
            let is_off = reader.state == PubSubState::DISABLED;
            match (reader.enabled, is_off) {
                (true, true) => reader.enable(now.instant, sink),
                (false, false) => reader.disable(sink),
                _ => sink.event(SubscriberEvent::State { reader: reader.index, state: reader.state }),
            }
        }
        self.ask_where_unknown(now);
        Ok(())
    }
}

/// The names of a ReaderGroup and its connection.
fn name_of(configuration: &Configuration, index: ReaderGroupIndex) -> Option<(&str, &str)> {
    let connection = configuration.connections.get(index.connection)?;
    Some((connection.name.as_str(), connection.reader_groups.get(index.group)?.name.as_str()))
}

/// The old position of a reader.
fn position(old: &Configuration, connection: &str, group: &str, name: &str) -> Option<ReaderIndex> {
    let at = old.connections.iter().position(|one| one.name == connection)?;
    let groups = &old.connections.get(at)?.reader_groups;
    let group = groups.iter().position(|one| one.name == group)?;
    let reader = groups.get(group)?.readers.iter().position(|one| one.name == name)?;
    Some(ReaderIndex { connection: at, group, reader })
}
