//! What CloseAndUpdate does to a configuration (Part 14 §9.1.3.7): elements of a written configuration are added,
//! matched, modified and removed as references say.
//!
//! Removals come first; then data sets and security groups, connections, groups, writers and readers, so that what an
//! element needs is there whatever the order of the references. An element that would leave the configuration with a
//! problem it did not have is not taken.

use super::element::Element;
use super::reserve::{Kind, Reservations};
use super::validate::NO_DATA_SET;
use super::{
    Configuration, Connection, DataSetReader, DataSetWriter, Problem, PublishedDataSet, ReaderGroup,
    WriterGroup, WriterGroupMessage, validate,
};
use crate::publisher_id::PublisherId;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_schema::{
    PubSubConfigurationRefDataType, PubSubConfigurationRefMask as Mask, PubSubConfigurationValueDataType,
    UadpNetworkMessageContentMask,
};
use taktwerk_types::{NodeId, StatusCode, Variant};

/// References of one update.
pub const REFERENCES_MAX: usize = 4_096;

/// Who updates, and what elements get that leave something to the server.
pub struct Context<'a> {
    /// The session, whose reserved ids may be used.
    pub session: &'a NodeId,
    /// Ids that are reserved.
    pub reservations: &'a Reservations,
    /// The PublisherId of a connection that names none, by its transport profile.
    pub default_publisher_id: &'a dyn Fn(&str) -> PublisherId,
    /// Whether the caller may change SecurityGroups.
    pub permits_security: bool,
}

impl core::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Context").field("session", self.session).finish_non_exhaustive()
    }
}

/// What came of an update.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// The new configuration; without new versions.
    pub configuration: Configuration,
    /// Whether anything was applied.
    pub is_changed: bool,
    /// One for each reference.
    pub results: Vec<StatusCode>,
    /// Names and ids that were assigned or found.
    pub values: Vec<PubSubConfigurationValueDataType>,
    /// The elements that were added, matched or modified, one for each reference.
    pub elements: Vec<Option<Element>>,
}

/// What is done with an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Match,
    MatchOrAdd,
    Modify,
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    DataSet,
    SubscribedDataSet,
    SecurityGroup,
    Connection,
    WriterGroup,
    ReaderGroup,
    Writer,
    Reader,
    Push,
}

fn parse(mask: Mask) -> Result<(Operation, Subject), StatusCode> {
    let has = |bit| mask.contains(bit);
    let operation = match (
        has(Mask::ELEMENT_ADD),
        has(Mask::ELEMENT_MATCH),
        has(Mask::ELEMENT_MODIFY),
        has(Mask::ELEMENT_REMOVE),
    ) {
        (true, false, false, false) => Operation::Add,
        (false, true, false, false) => Operation::Match,
        (true, true, false, false) => Operation::MatchOrAdd,
        (false, false, true, false) => Operation::Modify,
        (false, false, false, true) => Operation::Remove,
        _ => return Err(StatusCode::BAD_INVALID_ARGUMENT),
    };
    let targets = [
        (Mask::REFERENCE_PUB_DATASET, Subject::DataSet),
        (Mask::REFERENCE_SUB_DATASET, Subject::SubscribedDataSet),
        (Mask::REFERENCE_SECURITY_GROUP, Subject::SecurityGroup),
        (Mask::REFERENCE_CONNECTION, Subject::Connection),
        (Mask::REFERENCE_WRITER_GROUP, Subject::WriterGroup),
        (Mask::REFERENCE_READER_GROUP, Subject::ReaderGroup),
        (Mask::REFERENCE_WRITER, Subject::Writer),
        (Mask::REFERENCE_READER, Subject::Reader),
        (Mask::REFERENCE_PUSH_TARGET, Subject::Push),
    ];
    let mut named = targets.iter().filter(|(bit, _)| has(*bit)).map(|(_, target)| *target);
    match (named.next(), named.next()) {
        (Some(target), None) => Ok((operation, target)),
        _ => Err(StatusCode::BAD_INVALID_ARGUMENT),
    }
}

/// Applies the elements of `written` that are referenced to `current`. With `complete` all are applied or none.
#[must_use]
pub fn update(
    current: &Configuration,
    written: &Configuration,
    references: &[PubSubConfigurationRefDataType],
    complete: bool,
    context: &Context<'_>,
) -> Update {
    let mut results = vec![StatusCode::GOOD; references.len()];
    let mut elements = vec![None; references.len()];
    let mut values = Vec::new();
    let mut order = Vec::new();
    for (position, (reference, result)) in references.iter().zip(&mut results).enumerate() {
        match parse(reference.configuration_mask) {
            Ok((operation, target)) => {
                order.push((operation != Operation::Remove, target, position, operation))
            }
            Err(status) => *result = status,
        }
    }
    order.sort_by_key(|(is_later, target, position, _)| (*is_later, *target, *position));
    let added_again = |name: &str| {
        references.iter().any(|reference| {
            parse(reference.configuration_mask) == Ok((Operation::Add, Subject::DataSet))
                && written
                    .data_sets
                    .get(usize::from(reference.element_index))
                    .is_some_and(|set| set.name == name)
        })
    };
    let mut work = Work {
        configuration: current.clone(),
        written,
        context,
        known: validate(current),
        names: Names::default(),
        added_again: &added_again,
    };
    for (_, target, position, operation) in order {
        let Some(reference) = references.get(position) else { continue };
        let (backup, names) = (work.configuration.clone(), work.names.clone());
        // A data set that was removed may come again, after others.
        let may_come = operation == Operation::Remove || target == Subject::DataSet;
        let outcome =
            work.apply(operation, target, reference).and_then(|done| work.check(may_come).map(|()| done));
        match outcome {
            Ok(done) => {
                if done.is_told {
                    let value = PubSubConfigurationValueDataType {
                        configuration_element: reference.clone(),
                        name: done.element.name().into(),
                        identifier: done.identifier,
                    };
                    values.push((position, value));
                }
                if let (true, Some(slot)) = (operation != Operation::Remove, elements.get_mut(position)) {
                    *slot = Some(done.element);
                }
            }
            Err(status) => {
                (work.configuration, work.names) = (backup, names);
                if let Some(result) = results.get_mut(position) {
                    *result = status;
                }
            }
        }
    }
    if !written.default_security_key_services.is_empty() {
        work.configuration.default_security_key_services = written.default_security_key_services.clone();
    }
    // A data set that was removed and could not be added again leaves writers without anything to write.
    let left_over = work.check(false).is_err();
    let is_refused = complete && results.iter().any(|status| status.is_bad());
    if is_refused || left_over {
        let results = if left_over && !is_refused {
            results.into_iter().map(|_| StatusCode::BAD_INVALID_ARGUMENT).collect()
        } else {
            results
        };
        return Update {
            configuration: current.clone(),
            is_changed: false,
            elements: vec![None; results.len()],
            results,
            values: Vec::new(),
        };
    }
    values.sort_by_key(|(position, _)| *position);
    Update {
        is_changed: work.configuration != *current || results.iter().any(|status| !status.is_bad()),
        configuration: work.configuration,
        results,
        values: values.into_iter().map(|(_, value)| value).collect(),
        elements,
    }
}

/// What an operation has done.
struct Done {
    element: Element,
    identifier: Variant,
    /// A name or an id was assigned or found, which the caller wants to know.
    is_told: bool,
}

impl Done {
    fn silent(element: Element) -> Self {
        Self { element, identifier: Variant::Empty, is_told: false }
    }
}

/// Under which names parents of the written configuration stand in the current one.
#[derive(Debug, Clone, Default)]
struct Names {
    connections: BTreeMap<u16, String>,
    writer_groups: BTreeMap<(u16, u16), String>,
    reader_groups: BTreeMap<(u16, u16), String>,
}

struct Work<'a> {
    configuration: Configuration,
    written: &'a Configuration,
    context: &'a Context<'a>,
    /// Problems that were there before.
    known: Vec<Problem>,
    names: Names,
    added_again: &'a dyn Fn(&str) -> bool,
}

const UNKNOWN: StatusCode = StatusCode::BAD_NOT_FOUND;
const INVALID: StatusCode = StatusCode::BAD_INVALID_ARGUMENT;
const DUPLICATE: StatusCode = StatusCode::BAD_BROWSE_NAME_DUPLICATED;

impl Work<'_> {
    /// Whether there are problems that were not there before; of data sets that are missing only if they cannot come.
    fn check(&self, may_come: bool) -> Result<(), StatusCode> {
        let is_missing = |problem: &Problem| may_come && problem.message.starts_with(NO_DATA_SET);
        let problems = validate(&self.configuration);
        let mut new = problems.iter().filter(|problem| !self.known.contains(problem) && !is_missing(problem));
        new.next().map_or(Ok(()), |_| Err(INVALID))
    }

    fn apply(
        &mut self,
        operation: Operation,
        target: Subject,
        reference: &PubSubConfigurationRefDataType,
    ) -> Result<Done, StatusCode> {
        match target {
            Subject::DataSet => self.data_set(operation, reference),
            Subject::SubscribedDataSet => self.subscribed_data_set(operation, reference),
            Subject::SecurityGroup => self.security_group(operation, reference),
            Subject::Connection => self.connection(operation, reference),
            Subject::WriterGroup => self.writer_group(operation, reference),
            Subject::ReaderGroup => self.reader_group(operation, reference),
            Subject::Writer => self.writer(operation, reference),
            Subject::Reader => self.reader(operation, reference),
            // This server pushes keys to nobody.
            Subject::Push => Err(StatusCode::BAD_NOT_SUPPORTED),
        }
    }

    fn data_set(
        &mut self,
        operation: Operation,
        reference: &PubSubConfigurationRefDataType,
    ) -> Result<Done, StatusCode> {
        let data_set = self.written.data_sets.get(usize::from(reference.element_index)).ok_or(INVALID)?;
        let mut data_set = data_set.clone();
        let sets = &mut self.configuration.data_sets;
        let mut is_told = false;
        if operation == Operation::Add && data_set.name.is_empty() {
            let taken: BTreeSet<&str> = sets.iter().map(|set| set.name.as_str()).collect();
            data_set.name = free_name("DataSet", &taken);
            is_told = true;
        }
        let name = data_set.name.clone();
        let is_known = sets.iter().any(|set| set.name == name);
        put(sets, operation, data_set, |set| set.name.as_str())?;
        if operation == Operation::Remove && is_known && !(self.added_again)(&name) {
            remove_writers_of(&mut self.configuration, &name);
        }
        Ok(Done { element: Element::DataSet { name }, identifier: Variant::Empty, is_told })
    }

    fn subscribed_data_set(
        &mut self,
        operation: Operation,
        reference: &PubSubConfigurationRefDataType,
    ) -> Result<Done, StatusCode> {
        let at = usize::from(reference.element_index);
        let set = self.written.subscribed_data_sets.get(at).ok_or(INVALID)?.clone();
        let name = set.name.as_str().to_owned();
        put(&mut self.configuration.subscribed_data_sets, operation, set, |set| set.name.as_str())?;
        Ok(Done::silent(Element::SubscribedDataSet { name }))
    }

    fn security_group(
        &mut self,
        operation: Operation,
        reference: &PubSubConfigurationRefDataType,
    ) -> Result<Done, StatusCode> {
        if !self.context.permits_security {
            return Err(StatusCode::BAD_USER_ACCESS_DENIED);
        }
        let at = usize::from(reference.element_index);
        let mut group = self.written.security_groups.get(at).ok_or(INVALID)?.clone();
        let name = group.name.as_str().to_owned();
        if group.security_group_id.is_empty() {
            group.security_group_id = group.name.clone();
        }
        if operation != Operation::Remove {
            let policy = taktwerk_crypto::PubSubSecurityPolicy::from_uri(group.security_policy_uri.as_str());
            policy.ok_or(StatusCode::BAD_SECURITY_POLICY_REJECTED)?;
            if group.key_lifetime.is_nan() || group.key_lifetime < crate::security::LIFETIME_MIN {
                return Err(INVALID);
            }
        }
        put(&mut self.configuration.security_groups, operation, group, |group| group.name.as_str())?;
        Ok(Done::silent(Element::SecurityGroup { name }))
    }

    fn connection(
        &mut self,
        operation: Operation,
        reference: &PubSubConfigurationRefDataType,
    ) -> Result<Done, StatusCode> {
        let index = reference.connection_index;
        let written = self.written.connections.get(usize::from(index)).ok_or(INVALID)?;
        let connections = &mut self.configuration.connections;
        if matches!(operation, Operation::Match | Operation::MatchOrAdd) {
            if !written.name.is_empty() || written.publisher_id.is_some() {
                return Err(INVALID);
            }
            let found = connections.iter().find(|one| matches_connection(one, written));
            if let Some(found) = found {
                let name = found.name.clone();
                self.names.connections.insert(index, name.clone());
                let identifier = found.publisher_id.as_ref().map(PublisherId::to_variant).unwrap_or_default();
                return Ok(Done { element: Element::Connection { name }, identifier, is_told: true });
            }
            if operation == Operation::Match {
                return Err(StatusCode::BAD_NO_MATCH);
            }
        }
        let mut own = Connection { writer_groups: Vec::new(), reader_groups: Vec::new(), ..written.clone() };
        let is_adding = matches!(operation, Operation::Add | Operation::MatchOrAdd);
        let is_told = is_adding && (own.name.is_empty() || own.publisher_id.is_none());
        if is_adding {
            if own.name.is_empty() {
                let taken: BTreeSet<&str> = connections.iter().map(|one| one.name.as_str()).collect();
                own.name = free_name("Connection", &taken);
            }
            if own.publisher_id.is_none() {
                own.publisher_id = Some((self.context.default_publisher_id)(&own.transport_profile_uri));
            }
        } else if operation == Operation::Modify
            && let Some(current) = connections.iter_mut().find(|one| one.name == own.name)
        {
            // Children that are not referenced stay as they are.
            own.writer_groups = core::mem::take(&mut current.writer_groups);
            own.reader_groups = core::mem::take(&mut current.reader_groups);
            own.publisher_id = own.publisher_id.or_else(|| current.publisher_id.clone());
        }
        let name = own.name.clone();
        let identifier = own.publisher_id.as_ref().map(PublisherId::to_variant).unwrap_or_default();
        let operation = if is_adding { Operation::Add } else { operation };
        put(connections, operation, own, |one| one.name.as_str())?;
        self.names.connections.insert(index, name.clone());
        Ok(Done { element: Element::Connection { name }, identifier, is_told })
    }

    /// The connection that a reference leads to.
    fn parent(&mut self, index: u16) -> Result<&mut Connection, StatusCode> {
        let written = self.written.connections.get(usize::from(index)).ok_or(INVALID)?;
        let name = self.names.connections.get(&index).unwrap_or(&written.name);
        self.configuration.connections.iter_mut().find(|one| one.name == *name).ok_or(UNKNOWN)
    }

    fn writer_group(
        &mut self,
        operation: Operation,
        reference: &PubSubConfigurationRefDataType,
    ) -> Result<Done, StatusCode> {
        let (index, position) = (reference.connection_index, reference.group_index);
        let written = self.written.connections.get(usize::from(index)).ok_or(INVALID)?;
        let written = written.writer_groups.get(usize::from(position)).ok_or(INVALID)?;
        let is_adding = matches!(operation, Operation::Add | Operation::MatchOrAdd);
        let next = self.context.reservations.next(Kind::Group, &self.configuration);
        let (session, reservations) = (self.context.session, self.context.reservations);
        let parent = self.parent(index)?;
        let connection = parent.name.clone();
        let groups = &mut parent.writer_groups;
        if matches!(operation, Operation::Match | Operation::MatchOrAdd) {
            if !written.name.is_empty() || written.writer_group_id != 0 {
                return Err(INVALID);
            }
            if has_group_header(written) {
                return Err(StatusCode::BAD_INVALID_STATE);
            }
            if let Some(found) = groups.iter().find(|one| matches_writer_group(one, written)) {
                let name = found.name.clone();
                let identifier = found.writer_group_id.into();
                self.names.writer_groups.insert((index, position), name.clone());
                return Ok(Done {
                    element: Element::WriterGroup { connection, name },
                    identifier,
                    is_told: true,
                });
            }
            if operation == Operation::Match {
                return Err(StatusCode::BAD_NO_MATCH);
            }
        }
        let mut own = WriterGroup { writers: Vec::new(), ..written.clone() };
        let is_told = is_adding && (own.name.is_empty() || own.writer_group_id == 0);
        if operation != Operation::Remove
            && reservations.is_foreign(Kind::Group, session, own.writer_group_id)
        {
            return Err(INVALID);
        }
        if is_adding {
            if own.name.is_empty() {
                let taken: BTreeSet<&str> = groups.iter().map(|one| one.name.as_str()).collect();
                own.name = free_name("WriterGroup", &taken);
            }
            if own.writer_group_id == 0 {
                own.writer_group_id = next.ok_or(StatusCode::BAD_RESOURCE_UNAVAILABLE)?;
            }
        } else if operation == Operation::Modify
            && let Some(current) = groups.iter_mut().find(|one| one.name == own.name)
        {
            own.writers = core::mem::take(&mut current.writers);
            if own.writer_group_id == 0 {
                own.writer_group_id = current.writer_group_id;
            }
        }
        let (name, identifier) = (own.name.clone(), own.writer_group_id.into());
        put(groups, if is_adding { Operation::Add } else { operation }, own, |one| one.name.as_str())?;
        self.names.writer_groups.insert((index, position), name.clone());
        Ok(Done { element: Element::WriterGroup { connection, name }, identifier, is_told })
    }

    fn reader_group(
        &mut self,
        operation: Operation,
        reference: &PubSubConfigurationRefDataType,
    ) -> Result<Done, StatusCode> {
        let (index, position) = (reference.connection_index, reference.group_index);
        let written = self.written.connections.get(usize::from(index)).ok_or(INVALID)?;
        let written = written.reader_groups.get(usize::from(position)).ok_or(INVALID)?;
        let is_adding = matches!(operation, Operation::Add | Operation::MatchOrAdd);
        let parent = self.parent(index)?;
        let connection = parent.name.clone();
        let groups = &mut parent.reader_groups;
        if matches!(operation, Operation::Match | Operation::MatchOrAdd) {
            if !written.name.is_empty() {
                return Err(INVALID);
            }
            if let Some(found) = groups.iter().find(|one| matches_reader_group(one, written)) {
                let name = found.name.clone();
                self.names.reader_groups.insert((index, position), name.clone());
                let element = Element::ReaderGroup { connection, name };
                return Ok(Done { element, identifier: Variant::Empty, is_told: true });
            }
            if operation == Operation::Match {
                return Err(StatusCode::BAD_NO_MATCH);
            }
        }
        let mut own = ReaderGroup { readers: Vec::new(), ..written.clone() };
        let is_told = is_adding && own.name.is_empty();
        if is_told {
            let taken: BTreeSet<&str> = groups.iter().map(|one| one.name.as_str()).collect();
            own.name = free_name("ReaderGroup", &taken);
        } else if operation == Operation::Modify
            && let Some(current) = groups.iter_mut().find(|one| one.name == own.name)
        {
            own.readers = core::mem::take(&mut current.readers);
        }
        let name = own.name.clone();
        put(groups, if is_adding { Operation::Add } else { operation }, own, |one| one.name.as_str())?;
        self.names.reader_groups.insert((index, position), name.clone());
        Ok(Done { element: Element::ReaderGroup { connection, name }, identifier: Variant::Empty, is_told })
    }

    fn writer(
        &mut self,
        operation: Operation,
        reference: &PubSubConfigurationRefDataType,
    ) -> Result<Done, StatusCode> {
        let (index, position) = (reference.connection_index, reference.group_index);
        let written = self.written.connections.get(usize::from(index)).ok_or(INVALID)?;
        let written_group = written.writer_groups.get(usize::from(position)).ok_or(INVALID)?;
        let written = written_group.writers.get(usize::from(reference.element_index)).ok_or(INVALID)?;
        let next = self.context.reservations.next(Kind::Writer, &self.configuration);
        let (session, reservations) = (self.context.session, self.context.reservations);
        let assigned = self.names.writer_groups.get(&(index, position)).cloned();
        let group = assigned.unwrap_or_else(|| written_group.name.clone());
        let parent = self.parent(index)?;
        let connection = parent.name.clone();
        let writers = &mut parent.writer_group_mut(&group).ok_or(UNKNOWN)?.writers;
        let mut own: DataSetWriter = written.clone();
        let is_told = operation == Operation::Add && (own.name.is_empty() || own.data_set_writer_id == 0);
        if operation != Operation::Remove
            && reservations.is_foreign(Kind::Writer, session, own.data_set_writer_id)
        {
            return Err(INVALID);
        }
        if operation == Operation::Add {
            if own.name.is_empty() {
                let taken: BTreeSet<&str> = writers.iter().map(|one| one.name.as_str()).collect();
                own.name = free_name("DataSetWriter", &taken);
            }
            if own.data_set_writer_id == 0 {
                own.data_set_writer_id = next.ok_or(StatusCode::BAD_RESOURCE_UNAVAILABLE)?;
            }
        } else if own.data_set_writer_id == 0
            && let Some(current) = writers.iter().find(|one| one.name == own.name)
        {
            own.data_set_writer_id = current.data_set_writer_id;
        }
        let (name, identifier) = (own.name.clone(), own.data_set_writer_id.into());
        put(writers, operation, own, |one| one.name.as_str())?;
        Ok(Done { element: Element::Writer { connection, group, name }, identifier, is_told })
    }

    fn reader(
        &mut self,
        operation: Operation,
        reference: &PubSubConfigurationRefDataType,
    ) -> Result<Done, StatusCode> {
        let (index, position) = (reference.connection_index, reference.group_index);
        let written = self.written.connections.get(usize::from(index)).ok_or(INVALID)?;
        let written_group = written.reader_groups.get(usize::from(position)).ok_or(INVALID)?;
        let written = written_group.readers.get(usize::from(reference.element_index)).ok_or(INVALID)?;
        let assigned = self.names.reader_groups.get(&(index, position)).cloned();
        let group = assigned.unwrap_or_else(|| written_group.name.clone());
        let parent = self.parent(index)?;
        let connection = parent.name.clone();
        let readers = &mut parent.reader_group_mut(&group).ok_or(UNKNOWN)?.readers;
        let mut own: DataSetReader = written.clone();
        let is_told = operation == Operation::Add && own.name.is_empty();
        if is_told {
            let taken: BTreeSet<&str> = readers.iter().map(|one| one.name.as_str()).collect();
            own.name = free_name("DataSetReader", &taken);
        }
        let name = own.name.clone();
        put(readers, operation, own, |one| one.name.as_str())?;
        let element = Element::Reader { connection, group, name };
        Ok(Done { element, identifier: Variant::Empty, is_told })
    }
}

/// Adds, replaces or removes an element of a list by its name.
fn put<T>(
    list: &mut Vec<T>,
    operation: Operation,
    one: T,
    name: impl Fn(&T) -> &str,
) -> Result<(), StatusCode> {
    let at = list.iter().position(|other| name(other) == name(&one));
    match (operation, at) {
        // What has no name, matches nothing in lists of this kind.
        _ if name(&one).is_empty() => return Err(INVALID),
        (Operation::Match | Operation::MatchOrAdd, _) => return Err(INVALID),
        (Operation::Add, None) => list.push(one),
        (Operation::Add, Some(_)) => return Err(DUPLICATE),
        (Operation::Modify | Operation::Remove, None) => return Err(UNKNOWN),
        (Operation::Modify, Some(at)) => {
            if let Some(slot) = list.get_mut(at) {
                *slot = one;
            }
        }
        (Operation::Remove, Some(at)) => {
            list.remove(at);
        }
    }
    Ok(())
}

/// Removes the DataSetWriters of a data set that is gone (Part 14 §9.1.4.5.6).
pub fn remove_writers_of(configuration: &mut Configuration, data_set: &str) {
    for connection in &mut configuration.connections {
        for group in &mut connection.writer_groups {
            group.writers.retain(|writer| writer.data_set_name != data_set);
        }
    }
}

/// The first of `prefix1`, `prefix2`, … that is free.
#[must_use]
pub fn free_name(prefix: &str, taken: &BTreeSet<&str>) -> String {
    let numbers = 1..=taken.len().saturating_add(1);
    let mut names = numbers.map(|number| format!("{prefix}{number}"));
    // One more than there are names, so one is free.
    names.find(|name| !taken.contains(name.as_str())).unwrap_or_default()
}

fn matches_connection(one: &Connection, wanted: &Connection) -> bool {
    (&one.transport_profile_uri, &one.url, &one.network_interface, &one.transport)
        == (&wanted.transport_profile_uri, &wanted.url, &wanted.network_interface, &wanted.transport)
}

fn has_group_header(group: &WriterGroup) -> bool {
    match &group.message {
        WriterGroupMessage::Uadp(uadp) => {
            uadp.network_message_content_mask.contains(UadpNetworkMessageContentMask::GROUP_HEADER)
        }
        _ => false,
    }
}

/// What Part 14 §9.1.3.7.2 compares: no ids, names, locales and properties.
fn matches_writer_group(one: &WriterGroup, wanted: &WriterGroup) -> bool {
    let settings = |group: &WriterGroup| {
        (
            group.max_network_message_size,
            group.publishing_interval,
            group.keep_alive_time,
            group.priority,
            group.header_layout_uri.clone(),
        )
    };
    one.security == wanted.security
        && settings(one) == settings(wanted)
        && one.transport == wanted.transport
        && one.message == wanted.message
}

fn matches_reader_group(one: &ReaderGroup, wanted: &ReaderGroup) -> bool {
    one.security == wanted.security
        && one.max_network_message_size == wanted.max_network_message_size
        && one.transport == wanted.transport
        && one.message == wanted.message
}

/// The data sets of a configuration whose fields or sources a change has touched.
#[must_use]
pub fn changed_data_sets<'a>(old: &Configuration, new: &'a Configuration) -> Vec<&'a PublishedDataSet> {
    new.data_sets.iter().filter(|set| old.data_set(&set.name) != Some(set)).collect()
}

#[cfg(test)]
#[path = "update/tests.rs"]
mod tests;
