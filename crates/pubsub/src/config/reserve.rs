//! Ids of WriterGroups and DataSetWriters that a server reserves (ReserveIds, Part 14 §9.1.3.7.5).

use super::Configuration;
use std::collections::{BTreeSet, VecDeque};
use taktwerk_types::{NodeId, StatusCode};

/// First id for internal assignment; those below are for configuration tools.
pub const INTERNAL_MIN: u16 = 0x8000;
/// Maximum sessions with reservations; a new one removes those of the oldest.
const SESSIONS_MAX: usize = 64;
/// Maximum reserved ids of each kind per session.
const PER_SESSION_MAX: usize = 4_096;

#[derive(Debug, Default)]
struct Reserved {
    session: NodeId,
    groups: BTreeSet<u16>,
    writers: BTreeSet<u16>,
}

/// The reservations by session.
#[derive(Debug, Default)]
pub struct Reservations {
    sessions: VecDeque<Reserved>,
}

/// The kind of id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A WriterGroupId.
    Group,
    /// A DataSetWriterId.
    Writer,
}

impl Kind {
    fn of(self, reserved: &Reserved) -> &BTreeSet<u16> {
        match self {
            Self::Group => &reserved.groups,
            Self::Writer => &reserved.writers,
        }
    }

    /// The ids in a configuration.
    fn used(self, configuration: &Configuration) -> BTreeSet<u16> {
        let groups = configuration.connections.iter().flat_map(|connection| &connection.writer_groups);
        match self {
            Self::Group => groups.map(|group| group.writer_group_id).collect(),
            Self::Writer => {
                groups.flat_map(|group| &group.writers).map(|writer| writer.data_set_writer_id).collect()
            }
        }
    }
}

impl Reservations {
    /// Reserves ids for a session: WriterGroupIds and DataSetWriterIds.
    ///
    /// # Errors
    /// Bad_ResourceUnavailable if there are not enough; nothing is reserved then.
    pub fn reserve(
        &mut self,
        session: &NodeId,
        configuration: &Configuration,
        groups: u16,
        writers: u16,
    ) -> Result<(Vec<u16>, Vec<u16>), StatusCode> {
        let groups = self.free(Kind::Group, session, configuration, groups)?;
        let writers = self.free(Kind::Writer, session, configuration, writers)?;
        let at = self.sessions.iter().position(|reserved| reserved.session == *session);
        let mut reserved = at.and_then(|at| self.sessions.remove(at)).unwrap_or_default();
        reserved.session = session.clone();
        reserved.groups.extend(&groups);
        reserved.writers.extend(&writers);
        if self.sessions.len() >= SESSIONS_MAX {
            self.sessions.pop_front();
        }
        self.sessions.push_back(reserved);
        Ok((groups, writers))
    }

    fn free(
        &self,
        kind: Kind,
        session: &NodeId,
        configuration: &Configuration,
        count: u16,
    ) -> Result<Vec<u16>, StatusCode> {
        let own = self.sessions.iter().find(|reserved| reserved.session == *session);
        if own.map_or(0, |own| kind.of(own).len()) + usize::from(count) > PER_SESSION_MAX {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        let mut taken = kind.used(configuration);
        self.sessions.iter().for_each(|reserved| taken.extend(kind.of(reserved)));
        let ids: Vec<u16> =
            (INTERNAL_MIN..=u16::MAX).filter(|id| !taken.contains(id)).take(count.into()).collect();
        if ids.len() < usize::from(count) {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        Ok(ids)
    }

    /// Whether another session has reserved an id.
    #[must_use]
    pub fn is_foreign(&self, kind: Kind, session: &NodeId, id: u16) -> bool {
        self.sessions.iter().any(|reserved| reserved.session != *session && kind.of(reserved).contains(&id))
    }

    /// An id that is neither in use nor reserved.
    #[must_use]
    pub fn next(&self, kind: Kind, configuration: &Configuration) -> Option<u16> {
        let used = kind.used(configuration);
        let is_free = |id: &u16| {
            !used.contains(id) && !self.sessions.iter().any(|reserved| kind.of(reserved).contains(id))
        };
        (INTERNAL_MIN..=u16::MAX).find(is_free)
    }

    /// Removes the reservations of a session that has ended.
    pub fn release(&mut self, session: &NodeId) {
        self.sessions.retain(|reserved| reserved.session != *session);
    }

    /// Removes the reservations of ids that a configuration uses.
    pub fn used(&mut self, configuration: &Configuration) {
        let (groups, writers) = (Kind::Group.used(configuration), Kind::Writer.used(configuration));
        for reserved in &mut self.sessions {
            reserved.groups.retain(|id| !groups.contains(id));
            reserved.writers.retain(|id| !writers.contains(id));
        }
        self.sessions.retain(|reserved| !(reserved.groups.is_empty() && reserved.writers.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Connection, DataSetWriter, WriterGroup};
    use super::*;

    fn configuration(group: u16, writer: u16) -> Configuration {
        let mut connection = Connection::default();
        let mut writers = WriterGroup::dynamic("g", group, 10.0);
        writers.writers.push(DataSetWriter::dynamic("w", writer, ""));
        connection.writer_groups.push(writers);
        Configuration { connections: vec![connection], ..Configuration::default() }
    }

    #[test]
    fn ids_are_given_out_once_until_they_are_used() {
        let (one, two) = (NodeId::numeric(1, 1), NodeId::numeric(1, 2));
        let mut reservations = Reservations::default();
        let current = configuration(0x8000, 5);
        let first = reservations.reserve(&one, &current, 2, 1).unwrap();
        assert_eq!(first, (vec![0x8001, 0x8002], vec![0x8000]));
        assert_eq!(reservations.reserve(&two, &current, 1, 0).unwrap(), (vec![0x8003], vec![]));
        assert!(reservations.is_foreign(Kind::Group, &two, 0x8001));
        assert!(!reservations.is_foreign(Kind::Group, &one, 0x8001));
        assert_eq!(reservations.next(Kind::Group, &current), Some(0x8004));
        assert_eq!(reservations.next(Kind::Writer, &current), Some(0x8001));
        reservations.used(&configuration(0x8001, 0x8000));
        assert!(!reservations.is_foreign(Kind::Group, &two, 0x8001), "it is not reserved any more");
        assert!(reservations.is_foreign(Kind::Group, &one, 0x8003));
        reservations.release(&two);
        assert!(!reservations.is_foreign(Kind::Group, &one, 0x8003), "its session has ended");
        let too_many = reservations.reserve(&one, &current, 5_000, 0);
        assert_eq!(too_many, Err(StatusCode::BAD_RESOURCE_UNAVAILABLE));
        for session in 10..10 + SESSIONS_MAX as u32 {
            reservations.reserve(&NodeId::numeric(1, session), &current, 1, 0).unwrap();
        }
        assert!(reservations.sessions.len() <= SESSIONS_MAX);
        let has_some = reservations.sessions.iter().any(|reserved| reserved.session == one);
        assert!(!has_some, "the oldest reservations are gone");
    }
}
