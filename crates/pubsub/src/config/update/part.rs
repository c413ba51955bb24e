//! The common interface of all elements when an update puts them into their list.

use super::{Context, DUPLICATE, INVALID, Operation, UNKNOWN};
use crate::config::reserve::Kind;
use crate::config::{
    Connection, DataSetReader, DataSetWriter, PublishedDataSet, ReaderGroup, WriterGroup, WriterGroupMessage,
};
use crate::publisher_id::PublisherId;
use std::collections::BTreeSet;
use taktwerk_schema::{
    SecurityGroupDataType, StandaloneSubscribedDataSetDataType, UadpNetworkMessageContentMask,
};
use taktwerk_types::{StatusCode, Variant};

/// An element of a list, identified by its name.
pub(super) trait Part: Clone {
    /// Prefix of names that the server assigns; `None` if it assigns none.
    const PREFIX: Option<&'static str>;

    fn name(&self) -> &str;

    fn set_name(&mut self, name: String);

    /// The element without children that are referenced separately.
    fn childless(&self) -> Self {
        self.clone()
    }

    /// What is kept from a replaced element: unreferenced children, and an id that is not given.
    fn take_over(&mut self, _current: &mut Self) {}

    /// Whether the server has to give it an id.
    fn lacks_identifier(&self) -> bool {
        self.number().is_some_and(|(_, number)| number == 0)
    }

    /// Assigns an id.
    fn identify(&mut self, assigned: &Assigned<'_>) -> Result<(), StatusCode> {
        self.set_number(assigned.next.ok_or(StatusCode::BAD_RESOURCE_UNAVAILABLE)?);
        Ok(())
    }

    /// The id to return to the caller.
    fn identifier(&self) -> Variant {
        self.number().map_or(Variant::Empty, |(_, number)| number.into())
    }

    /// The id, if it is a number that others may have reserved; 0 if it has none yet.
    fn number(&self) -> Option<(Kind, u16)> {
        None
    }

    fn set_number(&mut self, _number: u16) {}

    /// Whether matching is possible (Part 14 §9.1.3.7.2); name and id are not compared.
    fn is_matchable(&self) -> Result<(), StatusCode> {
        Err(INVALID)
    }

    /// Whether it matches another element.
    fn is_like(&self, _wanted: &Self) -> bool {
        false
    }
}

/// Defaults for elements that leave something to the server.
pub(super) struct Assigned<'a> {
    pub(super) context: &'a Context<'a>,
    /// A free id, if there is one.
    pub(super) next: Option<u16>,
}

/// The result of an operation on an element.
pub(super) struct Put {
    pub(super) name: String,
    pub(super) identifier: Variant,
    /// A name or an id was assigned or found, which the caller has to be told.
    pub(super) is_told: bool,
}

impl Put {
    fn of<P: Part>(part: &P, is_told: bool) -> Self {
        Self { name: part.name().to_owned(), identifier: part.identifier(), is_told }
    }
}

/// Adds, finds, replaces or removes an element of a list.
pub(super) fn put<P: Part>(
    list: &mut Vec<P>,
    operation: Operation,
    written: &P,
    assigned: &Assigned<'_>,
) -> Result<Put, StatusCode> {
    if matches!(operation, Operation::Match | Operation::MatchOrAdd) {
        written.is_matchable()?;
        if let Some(found) = list.iter().find(|one| one.is_like(written)) {
            return Ok(Put::of(found, true));
        }
        if operation == Operation::Match {
            return Err(StatusCode::BAD_NO_MATCH);
        }
    }
    let mut own = written.childless();
    let session = assigned.context.session;
    let is_foreign = |(kind, id)| assigned.context.reservations.is_foreign(kind, session, id);
    if operation != Operation::Remove && own.number().is_some_and(is_foreign) {
        return Err(INVALID);
    }
    let is_adding = matches!(operation, Operation::Add | Operation::MatchOrAdd);
    let is_told = is_adding && (own.name().is_empty() || own.lacks_identifier());
    if is_adding {
        if let (true, Some(prefix)) = (own.name().is_empty(), P::PREFIX) {
            let taken = list.iter().map(P::name).collect();
            own.set_name(free_name(prefix, &taken));
        }
        if own.lacks_identifier() {
            own.identify(assigned)?;
        }
    }
    // An element without a name cannot be found.
    if own.name().is_empty() {
        return Err(INVALID);
    }
    let at = list.iter().position(|one| one.name() == own.name());
    let current = at.and_then(|at| list.get_mut(at));
    match (operation, current, at) {
        (Operation::Remove, _, Some(at)) => {
            let gone = list.remove(at);
            return Ok(Put::of(&gone, false));
        }
        (Operation::Modify, Some(current), _) => {
            own.take_over(current);
            let put = Put::of(&own, false);
            *current = own;
            return Ok(put);
        }
        (Operation::Modify | Operation::Remove, ..) => return Err(UNKNOWN),
        (_, Some(_), _) => return Err(DUPLICATE),
        (_, None, _) => {}
    }
    let put = Put::of(&own, is_told);
    list.push(own);
    Ok(put)
}

/// The first of `prefix1`, `prefix2`, … that is free.
#[must_use]
pub fn free_name(prefix: &str, taken: &BTreeSet<&str>) -> String {
    let numbers = 1..=taken.len().saturating_add(1);
    let mut names = numbers.map(|number| format!("{prefix}{number}"));
    // One candidate more than there are names, so one is free.
    names.find(|name| !taken.contains(name.as_str())).unwrap_or_default()
}

impl Part for PublishedDataSet {
    const PREFIX: Option<&'static str> = Some("DataSet");

    fn name(&self) -> &str {
        &self.name
    }

    fn set_name(&mut self, name: String) {
        self.name = name;
    }
}

impl Part for StandaloneSubscribedDataSetDataType {
    const PREFIX: Option<&'static str> = None;

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn set_name(&mut self, name: String) {
        self.name = name.into();
    }
}

impl Part for SecurityGroupDataType {
    const PREFIX: Option<&'static str> = None;

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn set_name(&mut self, name: String) {
        self.name = name.into();
    }
}

impl Part for Connection {
    const PREFIX: Option<&'static str> = Some("Connection");

    fn name(&self) -> &str {
        &self.name
    }

    fn set_name(&mut self, name: String) {
        self.name = name;
    }

    fn childless(&self) -> Self {
        Self { writer_groups: Vec::new(), reader_groups: Vec::new(), ..self.clone() }
    }

    fn take_over(&mut self, current: &mut Self) {
        self.writer_groups = core::mem::take(&mut current.writer_groups);
        self.reader_groups = core::mem::take(&mut current.reader_groups);
        if self.publisher_id.is_none() {
            self.publisher_id = current.publisher_id.take();
        }
    }

    fn lacks_identifier(&self) -> bool {
        self.publisher_id.is_none()
    }

    fn identify(&mut self, assigned: &Assigned<'_>) -> Result<(), StatusCode> {
        self.publisher_id = Some((assigned.context.default_publisher_id)(&self.transport_profile_uri));
        Ok(())
    }

    fn identifier(&self) -> Variant {
        self.publisher_id.as_ref().map(PublisherId::to_variant).unwrap_or_default()
    }

    fn is_matchable(&self) -> Result<(), StatusCode> {
        if self.name.is_empty() && self.publisher_id.is_none() { Ok(()) } else { Err(INVALID) }
    }

    fn is_like(&self, wanted: &Self) -> bool {
        (&self.transport_profile_uri, &self.url, &self.network_interface, &self.transport)
            == (&wanted.transport_profile_uri, &wanted.url, &wanted.network_interface, &wanted.transport)
    }
}

impl Part for WriterGroup {
    const PREFIX: Option<&'static str> = Some("WriterGroup");

    fn name(&self) -> &str {
        &self.name
    }

    fn set_name(&mut self, name: String) {
        self.name = name;
    }

    fn childless(&self) -> Self {
        Self { writers: Vec::new(), ..self.clone() }
    }

    fn take_over(&mut self, current: &mut Self) {
        self.writers = core::mem::take(&mut current.writers);
        if self.writer_group_id == 0 {
            self.writer_group_id = current.writer_group_id;
        }
    }

    fn number(&self) -> Option<(Kind, u16)> {
        Some((Kind::Group, self.writer_group_id))
    }

    fn set_number(&mut self, number: u16) {
        self.writer_group_id = number;
    }

    fn is_matchable(&self) -> Result<(), StatusCode> {
        if !self.name.is_empty() || self.writer_group_id != 0 {
            return Err(INVALID);
        }
        let has_header = match &self.message {
            WriterGroupMessage::Uadp(uadp) => {
                uadp.network_message_content_mask.contains(UadpNetworkMessageContentMask::GROUP_HEADER)
            }
            _ => false,
        };
        // Subscribers identify groups with a GroupHeader by id, so they cannot be shared.
        if has_header { Err(StatusCode::BAD_INVALID_STATE) } else { Ok(()) }
    }

    /// Without ids, names, locales and properties.
    fn is_like(&self, wanted: &Self) -> bool {
        let settings = |group: &Self| {
            (
                group.max_network_message_size,
                group.publishing_interval,
                group.keep_alive_time,
                group.priority,
                group.header_layout_uri.clone(),
            )
        };
        self.security == wanted.security
            && settings(self) == settings(wanted)
            && self.transport == wanted.transport
            && self.message == wanted.message
    }
}

impl Part for ReaderGroup {
    const PREFIX: Option<&'static str> = Some("ReaderGroup");

    fn name(&self) -> &str {
        &self.name
    }

    fn set_name(&mut self, name: String) {
        self.name = name;
    }

    fn childless(&self) -> Self {
        Self { readers: Vec::new(), ..self.clone() }
    }

    fn take_over(&mut self, current: &mut Self) {
        self.readers = core::mem::take(&mut current.readers);
    }

    fn is_matchable(&self) -> Result<(), StatusCode> {
        if self.name.is_empty() { Ok(()) } else { Err(INVALID) }
    }

    fn is_like(&self, wanted: &Self) -> bool {
        self.security == wanted.security
            && self.max_network_message_size == wanted.max_network_message_size
            && self.transport == wanted.transport
            && self.message == wanted.message
    }
}

impl Part for DataSetWriter {
    const PREFIX: Option<&'static str> = Some("DataSetWriter");

    fn name(&self) -> &str {
        &self.name
    }

    fn set_name(&mut self, name: String) {
        self.name = name;
    }

    fn take_over(&mut self, current: &mut Self) {
        if self.data_set_writer_id == 0 {
            self.data_set_writer_id = current.data_set_writer_id;
        }
    }

    fn number(&self) -> Option<(Kind, u16)> {
        Some((Kind::Writer, self.data_set_writer_id))
    }

    fn set_number(&mut self, number: u16) {
        self.data_set_writer_id = number;
    }
}

impl Part for DataSetReader {
    const PREFIX: Option<&'static str> = Some("DataSetReader");

    fn name(&self) -> &str {
        &self.name
    }

    fn set_name(&mut self, name: String) {
        self.name = name;
    }
}
