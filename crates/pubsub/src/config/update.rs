//! The CloseAndUpdate Method (Part 14 §9.1.3.7): references say which elements of a written configuration are added,
//! matched, modified and removed.
//!
//! Removals come first; then data sets and security groups, connections, groups, writers and readers, so that every
//! element finds what it needs, whatever the order of the references. An element that would add a new problem to the
//! configuration is refused.

mod part;

pub use part::free_name;

use super::element::Element;
use super::reserve::{Kind, Reservations};
use super::validate::NO_DATA_SET;
use super::{Configuration, Connection, Problem, PublishedDataSet, validate};
use crate::publisher_id::PublisherId;
use part::{Assigned, Part, Put, put};
use std::collections::BTreeMap;
use taktwerk_schema::{
    PubSubConfigurationRefDataType as Reference, PubSubConfigurationRefMask as Mask,
    PubSubConfigurationValueDataType,
};
use taktwerk_types::{NodeId, StatusCode, Variant};

/// Maximum references per update.
pub const REFERENCES_MAX: usize = 4_096;

/// The caller of an update, and defaults for elements that leave something to the server.
pub struct Context<'a> {
    /// The session, whose reserved ids may be used.
    pub session: &'a NodeId,
    /// Reserved ids.
    pub reservations: &'a Reservations,
    /// The PublisherId of a connection without one, by transport profile.
    pub default_publisher_id: &'a dyn Fn(&str) -> PublisherId,
    /// Whether the caller may change SecurityGroups.
    pub permits_security: bool,
}

impl core::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Context").field("session", self.session).finish_non_exhaustive()
    }
}

/// The result of an update.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// The new configuration; versions are not updated.
    pub configuration: Configuration,
    /// Whether anything was applied.
    pub is_changed: bool,
    /// One per reference.
    pub results: Vec<StatusCode>,
    /// Names and ids that were assigned or found.
    pub values: Vec<PubSubConfigurationValueDataType>,
    /// The elements that were added, matched or modified, one per reference.
    pub elements: Vec<Option<Element>>,
}

/// The operation on an element.
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

/// Applies the referenced elements of `written` to `current`. With `complete`, all are applied or none.
#[must_use]
pub fn update(
    current: &Configuration,
    written: &Configuration,
    references: &[Reference],
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
        // A removed data set may be added again by a later reference.
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
    // If a removed data set could not be added again, its writers are left without data.
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

/// The result of an operation.
struct Done {
    element: Element,
    identifier: Variant,
    /// A name or an id was assigned or found, which the caller has to be told.
    is_told: bool,
}

impl Done {
    fn new(put: Put, element: impl FnOnce(String) -> Element) -> Self {
        Self { element: element(put.name), identifier: put.identifier, is_told: put.is_told }
    }
}

/// Names in the current configuration of the written configuration's parents.
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
    /// Problems that existed before.
    known: Vec<Problem>,
    names: Names,
    added_again: &'a dyn Fn(&str) -> bool,
}

const UNKNOWN: StatusCode = StatusCode::BAD_NOT_FOUND;
const INVALID: StatusCode = StatusCode::BAD_INVALID_ARGUMENT;
const DUPLICATE: StatusCode = StatusCode::BAD_BROWSE_NAME_DUPLICATED;

impl<'a> Work<'a> {
    /// Fails if there are new problems. With `may_come`, missing data sets are ignored.
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
        reference: &Reference,
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
            // This server does not push keys.
            Subject::Push => Err(StatusCode::BAD_NOT_SUPPORTED),
        }
    }

    /// Puts an element into the list that `list` returns; `next` is a free id.
    fn put<P: Part>(
        &mut self,
        operation: Operation,
        written: &P,
        next: Option<u16>,
        list: impl FnOnce(&mut Self) -> Result<&mut Vec<P>, StatusCode>,
    ) -> Result<Put, StatusCode> {
        let assigned = Assigned { context: self.context, next };
        put(list(self)?, operation, written, &assigned)
    }

    fn next(&self, kind: Kind) -> Option<u16> {
        self.context.reservations.next(kind, &self.configuration)
    }

    fn data_set(&mut self, operation: Operation, reference: &Reference) -> Result<Done, StatusCode> {
        let written = self.written.data_sets.get(usize::from(reference.element_index)).ok_or(INVALID)?;
        let put = self.put(operation, written, None, |work| Ok(&mut work.configuration.data_sets))?;
        if operation == Operation::Remove && !(self.added_again)(&put.name) {
            remove_writers_of(&mut self.configuration, &put.name);
        }
        Ok(Done::new(put, |name| Element::DataSet { name }))
    }

    fn subscribed_data_set(
        &mut self,
        operation: Operation,
        reference: &Reference,
    ) -> Result<Done, StatusCode> {
        let at = usize::from(reference.element_index);
        let written = self.written.subscribed_data_sets.get(at).ok_or(INVALID)?;
        let put =
            self.put(operation, written, None, |work| Ok(&mut work.configuration.subscribed_data_sets))?;
        Ok(Done::new(put, |name| Element::SubscribedDataSet { name }))
    }

    fn security_group(&mut self, operation: Operation, reference: &Reference) -> Result<Done, StatusCode> {
        if !self.context.permits_security {
            return Err(StatusCode::BAD_USER_ACCESS_DENIED);
        }
        let at = usize::from(reference.element_index);
        let mut group = self.written.security_groups.get(at).ok_or(INVALID)?.clone();
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
        let put = self.put(operation, &group, None, |work| Ok(&mut work.configuration.security_groups))?;
        Ok(Done::new(put, |name| Element::SecurityGroup { name }))
    }

    fn connection(&mut self, operation: Operation, reference: &Reference) -> Result<Done, StatusCode> {
        let written = self.written_connection(reference)?;
        let put = self.put(operation, written, None, |work| Ok(&mut work.configuration.connections))?;
        self.names.connections.insert(reference.connection_index, put.name.clone());
        Ok(Done::new(put, |name| Element::Connection { name }))
    }

    /// The written connection that a reference names.
    fn written_connection(&self, reference: &Reference) -> Result<&'a Connection, StatusCode> {
        self.written.connections.get(usize::from(reference.connection_index)).ok_or(INVALID)
    }

    /// The current connection that a reference leads to.
    fn parent(&mut self, reference: &Reference) -> Result<&mut Connection, StatusCode> {
        let written = self.written_connection(reference)?;
        let name = self.names.connections.get(&reference.connection_index).unwrap_or(&written.name);
        self.configuration.connections.iter_mut().find(|one| one.name == *name).ok_or(UNKNOWN)
    }

    fn writer_group(&mut self, operation: Operation, reference: &Reference) -> Result<Done, StatusCode> {
        let at = (reference.connection_index, reference.group_index);
        let written =
            self.written_connection(reference)?.writer_groups.get(usize::from(at.1)).ok_or(INVALID)?;
        let (connection, next) = (self.parent(reference)?.name.clone(), self.next(Kind::Group));
        let put =
            self.put(operation, written, next, |work| Ok(&mut work.parent(reference)?.writer_groups))?;
        self.names.writer_groups.insert(at, put.name.clone());
        Ok(Done::new(put, |name| Element::WriterGroup { connection, name }))
    }

    fn reader_group(&mut self, operation: Operation, reference: &Reference) -> Result<Done, StatusCode> {
        let at = (reference.connection_index, reference.group_index);
        let written =
            self.written_connection(reference)?.reader_groups.get(usize::from(at.1)).ok_or(INVALID)?;
        let connection = self.parent(reference)?.name.clone();
        let put =
            self.put(operation, written, None, |work| Ok(&mut work.parent(reference)?.reader_groups))?;
        self.names.reader_groups.insert(at, put.name.clone());
        Ok(Done::new(put, |name| Element::ReaderGroup { connection, name }))
    }

    fn writer(&mut self, operation: Operation, reference: &Reference) -> Result<Done, StatusCode> {
        let at = (reference.connection_index, reference.group_index);
        let of = self.written_connection(reference)?.writer_groups.get(usize::from(at.1)).ok_or(INVALID)?;
        let written = of.writers.get(usize::from(reference.element_index)).ok_or(INVALID)?;
        let group = self.names.writer_groups.get(&at).unwrap_or(&of.name).clone();
        let (connection, next) = (self.parent(reference)?.name.clone(), self.next(Kind::Writer));
        let put = self.put(operation, written, next, |work| {
            Ok(&mut work.parent(reference)?.writer_group_mut(&group).ok_or(UNKNOWN)?.writers)
        })?;
        Ok(Done::new(put, |name| Element::Writer { connection, group, name }))
    }

    fn reader(&mut self, operation: Operation, reference: &Reference) -> Result<Done, StatusCode> {
        let at = (reference.connection_index, reference.group_index);
        let of = self.written_connection(reference)?.reader_groups.get(usize::from(at.1)).ok_or(INVALID)?;
        let written = of.readers.get(usize::from(reference.element_index)).ok_or(INVALID)?;
        let group = self.names.reader_groups.get(&at).unwrap_or(&of.name).clone();
        let connection = self.parent(reference)?.name.clone();
        let put = self.put(operation, written, None, |work| {
            Ok(&mut work.parent(reference)?.reader_group_mut(&group).ok_or(UNKNOWN)?.readers)
        })?;
        Ok(Done::new(put, |name| Element::Reader { connection, group, name }))
    }
}

/// Removes the DataSetWriters of a removed data set (Part 14 §9.1.4.5.6).
pub fn remove_writers_of(configuration: &mut Configuration, data_set: &str) {
    for connection in &mut configuration.connections {
        for group in &mut connection.writer_groups {
            group.writers.retain(|writer| writer.data_set_name != data_set);
        }
    }
}

/// The data sets whose fields or sources have changed.
#[must_use]
pub fn changed_data_sets<'a>(old: &Configuration, new: &'a Configuration) -> Vec<&'a PublishedDataSet> {
    new.data_sets.iter().filter(|set| old.data_set(&set.name) != Some(set)).collect()
}

#[cfg(test)]
#[path = "update/tests.rs"]
mod tests;
