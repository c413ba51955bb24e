//! Announcements of a responder's Actions, at startup and in answer to probes: ActionMetaData and ActionResponder (Part
//! 14 §7.2.4.6.10, §7.2.4.6.11).
//!
//! No probe is defined for them. A probe for the DataSetMetaData of a DataSetWriter that answers Actions gets the
//! ActionMetaData; a probe for PubSubConnections gets the ActionResponder, because its clause refers to that probe's
//! fields.

use super::wire::Wire;
use crate::config::{Connection, WriterGroup, without_credentials};
use crate::pauses::Pauses;
use crate::security::SecurityError;
use crate::time::Now;
use crate::transmit::{About, DatagramKind, Transmit};
use crate::uadp::announcement::{Announcement, NumberedAnnouncement};
use crate::uadp::probe::Probe;
use taktwerk_schema::{
    ActionMethodDataType, ActionTargetDataType, DataSetMetaDataType, PubSubConnectionDataType,
};
use taktwerk_types::Instant;

/// Minimum nanoseconds between two announcements of the same kind, and between attempts without keys.
const PAUSE: u64 = 500_000_000;

/// Actions with the same fields, and everything that a requestor needs to know about them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActionDescription {
    /// The DataSetWriter of the responses.
    pub data_set_writer_id: u16,
    /// The available targets.
    pub targets: Vec<ActionTargetDataType>,
    /// The fields of a request; its name is that of the Action.
    pub request: DataSetMetaDataType,
    /// The fields of a response, with the same name and version.
    pub response: DataSetMetaDataType,
    /// The Methods of the targets, in the same order; empty if there are none or they are not announced.
    pub methods: Vec<ActionMethodDataType>,
}

impl ActionDescription {
    fn announcement(&self) -> Announcement {
        Announcement::ActionMetaData {
            writer_id: self.data_set_writer_id,
            targets: self.targets.clone(),
            request: Box::new(self.request.clone()),
            response: Box::new(self.response.clone()),
            methods: self.methods.clone(),
        }
    }

    /// From an ActionMetaData announcement; `None` for other announcements.
    #[must_use]
    pub fn from_announcement(announcement: &Announcement) -> Option<Self> {
        let Announcement::ActionMetaData { writer_id, targets, request, response, methods } = announcement
        else {
            return None;
        };
        Some(Self {
            data_set_writer_id: *writer_id,
            targets: targets.clone(),
            request: (**request).clone(),
            response: (**response).clone(),
            methods: methods.clone(),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    MetaData(u16),
    Responder { groups: bool, writers: bool },
}

/// Creates and sends the announcements.
#[derive(Debug, Default)]
pub(super) struct Describer {
    connection: Connection,
    descriptions: Vec<ActionDescription>,
    topics: Pauses<Topic>,
    number: u16,
}

impl Describer {
    /// For a responder's connection with the WriterGroups that answer Actions.
    pub(super) fn new(connection: Connection, descriptions: Vec<ActionDescription>) -> Self {
        Self { connection, descriptions, topics: Pauses::default(), number: 1 }
    }

    /// Whether there are descriptions to announce.
    pub(super) fn is_described(&self) -> bool {
        !self.descriptions.is_empty()
    }

    /// Announces everything without a probe: at startup, and after each connection to a broker.
    pub(super) fn announce(&mut self, now: Now) {
        if self.descriptions.is_empty() {
            return;
        }
        self.topics.want(Topic::Responder { groups: true, writers: true }, now.instant);
        self.meta_data(&[], now);
    }

    fn meta_data(&mut self, ids: &[u16], now: Now) {
        for description in &self.descriptions {
            let id = description.data_set_writer_id;
            if ids.is_empty() || ids.contains(&id) {
                self.topics.want(Topic::MetaData(id), now.instant);
            }
        }
    }

    /// A probe was received for this responder.
    pub(super) fn asked(&mut self, probe: &Probe, now: Now) {
        match probe {
            Probe::DataSetMetaData(ids) => self.meta_data(ids, now),
            Probe::PubSubConnections { include_writer_groups, include_data_set_writers }
                if !self.descriptions.is_empty() =>
            {
                let topic =
                    Topic::Responder { groups: *include_writer_groups, writers: *include_data_set_writers };
                self.topics.want(topic, now.instant);
            }
            _ => {}
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.topics.poll_timeout()
    }

    /// Sends due announcements, secured like the messages they describe.
    pub(super) fn poll(
        &mut self,
        wire: &mut Wire,
        connection: usize,
        room: Option<usize>,
        now: Now,
        out: &mut Transmit,
    ) -> Result<(), SecurityError> {
        let mut result = Ok(());
        while let Some(topic) = self.topics.take(now.instant, PAUSE) {
            let (kind, place, announcement) = match &topic {
                Topic::MetaData(id) => {
                    let description = self.descriptions.iter().find(|one| one.data_set_writer_id == *id);
                    let Some(description) = description else { continue };
                    (DatagramKind::ActionMetaData, self.place(*id), description.announcement())
                }
                Topic::Responder { groups, writers } => {
                    let told = Announcement::ActionResponder(vec![self.responder(*groups, *writers)]);
                    (DatagramKind::ActionResponder, None, told)
                }
            };
            let about = About {
                connection,
                writer_group: place.map(|(group, _)| group),
                writer: place.map(|(_, writer)| writer),
                kind,
                due: now.instant,
                address: None,
            };
            let numbered = NumberedAnnouncement { sequence_number: self.number, announcement };
            let id = self.connection.publisher_id.as_ref();
            match wire.announce(about, id, &numbered, room, now, out) {
                Ok(()) => self.number = self.number.wrapping_add(1),
                // Without keys, it is sent later.
                Err(error) => {
                    let later = now.instant.as_nanos().saturating_add(PAUSE);
                    self.topics.postpone(&topic, Instant::from_nanos(later));
                    result = Err(error);
                }
            }
        }
        result
    }

    /// Positions of group and writer.
    fn place(&self, id: u16) -> Option<(usize, usize)> {
        self.connection.writer_groups.iter().enumerate().find_map(|(group, config)| {
            let writer = config.writers.iter().position(|writer| writer.data_set_writer_id == id)?;
            Some((group, writer))
        })
    }

    fn responder(&self, groups: bool, writers: bool) -> PubSubConnectionDataType {
        let mut told = self.connection.clone();
        told.reader_groups.clear();
        told.properties.clear();
        told.url = without_credentials(&told.url);
        let answers = |id: u16| self.descriptions.iter().any(|one| one.data_set_writer_id == id);
        for group in &mut told.writer_groups {
            group.properties.clear();
            group.writers.retain(|writer| answers(writer.data_set_writer_id));
            group.writers.iter_mut().for_each(|writer| writer.properties.clear());
        }
        told.writer_groups.retain(|group: &WriterGroup| groups && !group.writers.is_empty());
        if !writers {
            told.writer_groups.iter_mut().for_each(|group| group.writers.clear());
        }
        told.to_schema()
    }
}
