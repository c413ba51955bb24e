//! Discovery on the publisher's side: announcements, asked for or not (Part 14 §7.2.4.6).

use super::assemble::write_message;
use super::{GroupIndex, PublisherOptions, Turn};
use crate::config::{Configuration, Connection};
use crate::time::Now;
use crate::transmit::{About, DatagramKind};
use crate::uadp::SecurityMode;
use crate::uadp::announcement::{Announcement, NumberedAnnouncement};
use crate::uadp::chunk::{CHUNK_HEADER_LEN, split};
use crate::uadp::header::{NetworkMessageHeader, NetworkMessageType};
use crate::uadp::probe::Probe;
use std::collections::BTreeMap;
use taktwerk_types::codec::Decode;
use taktwerk_types::{DecodeLimits, Decoder, Encode, Instant, StatusCode};

/// What is to be announced; also the key by which announcements are kept apart in time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    Endpoints,
    Application,
    MetaData(u16),
    Writer(u16),
    Group(u16, bool),
    Connections(bool, bool),
}

#[derive(Debug)]
struct Waiting {
    due: Instant,
    wanted: bool,
}

/// Answers probes. Each thing is announced at most once in a pause, however often it is asked for.
#[derive(Debug)]
pub(super) struct Announcer {
    topics: BTreeMap<(usize, Topic), Waiting>,
    /// The sequence number of the next announcement, by connection.
    numbers: Vec<u16>,
}

impl Announcer {
    pub(super) fn new(configuration: &Configuration) -> Self {
        Self { topics: BTreeMap::new(), numbers: vec![1; configuration.connections.len()] }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.topics.values().filter(|waiting| waiting.wanted).map(|waiting| waiting.due).min()
    }

    fn want(&mut self, connection: usize, topic: Topic, now: Now) {
        // Topics come from our own configuration, so there are only so many.
        let waiting =
            self.topics.entry((connection, topic)).or_insert(Waiting { due: now.instant, wanted: false });
        waiting.due = waiting.due.max(now.instant);
        waiting.wanted = true;
    }

    /// Announces metadata and writers of a connection.
    pub(super) fn announce_all(&mut self, configuration: &Configuration, connection: usize, now: Now) {
        let Some(config) = configuration.connections.get(connection) else { return };
        for writer in config.writer_groups.iter().flat_map(|group| &group.writers) {
            if !writer.data_set_name.is_empty() {
                self.want(connection, Topic::MetaData(writer.data_set_writer_id), now);
            }
        }
    }

    /// Looks whether a datagram is a probe for us.
    pub(super) fn receive(
        &mut self,
        configuration: &Configuration,
        options: &PublisherOptions,
        connection: usize,
        datagram: &[u8],
        now: Now,
    ) {
        let Some(config) = configuration.connections.get(connection) else { return };
        let mut decoder = Decoder::new(datagram, DecodeLimits::DEFAULT);
        let Ok(header) = NetworkMessageHeader::decode(&mut decoder) else { return };
        // Probes are not secured unless the connection is; secured ones are not looked at.
        if header.message_type != NetworkMessageType::DiscoveryProbe
            || header.security.is_some_and(is_secured)
        {
            return;
        }
        let Ok(probe) = Probe::decode(&mut decoder) else { return };
        let ours = config.publisher_id.as_ref().zip(header.publisher_id).is_some_and(|(own, id)| *own == id);
        match probe {
            Probe::FindApplications => self.want(connection, Topic::Application, now),
            _ if !ours => {}
            Probe::PublisherEndpoints => {
                if !options.endpoints.is_empty() {
                    self.want(connection, Topic::Endpoints, now);
                }
            }
            Probe::DataSetMetaData(ids) => {
                self.for_writers(config, connection, &ids, Topic::MetaData, now);
            }
            Probe::DataSetWriters(ids) => self.for_writers(config, connection, &ids, Topic::Writer, now),
            Probe::WriterGroup { writer_group_id, include_data_set_writers } => {
                if config.writer_groups.iter().any(|group| group.writer_group_id == writer_group_id) {
                    self.want(connection, Topic::Group(writer_group_id, include_data_set_writers), now);
                }
            }
            Probe::PubSubConnections { include_writer_groups, include_data_set_writers } => {
                let topic = Topic::Connections(include_writer_groups, include_data_set_writers);
                self.want(connection, topic, now);
            }
        }
    }

    fn for_writers(
        &mut self,
        config: &Connection,
        connection: usize,
        ids: &[u16],
        topic: fn(u16) -> Topic,
        now: Now,
    ) {
        for writer in config.writer_groups.iter().flat_map(|group| &group.writers) {
            if ids.is_empty() || ids.contains(&writer.data_set_writer_id) {
                self.want(connection, topic(writer.data_set_writer_id), now);
            }
        }
    }

    /// Sends what is due.
    pub(super) fn poll(&mut self, turn: &mut Turn<'_>, configuration: &Configuration) {
        let pause = turn.options.announcement_pause_nanos;
        loop {
            let due =
                self.topics.iter_mut().find(|(_, waiting)| waiting.wanted && waiting.due <= turn.now.instant);
            let Some(((connection, topic), waiting)) = due else { return };
            waiting.wanted = false;
            waiting.due = Instant::from_nanos(turn.now.instant.as_nanos().saturating_add(pause));
            let (connection, topic) = (*connection, topic.clone());
            if let Some(announcement) = content(configuration, turn.options, connection, &topic) {
                self.send(turn, configuration, connection, &topic, announcement);
            }
        }
    }

    fn send(
        &mut self,
        turn: &mut Turn<'_>,
        configuration: &Configuration,
        connection: usize,
        topic: &Topic,
        announcement: Announcement,
    ) {
        let Some(config) = configuration.connections.get(connection) else { return };
        let Some(number) = self.numbers.get_mut(connection) else { return };
        let sequence_number = *number;
        *number = number.wrapping_add(1);
        let writer = match topic {
            Topic::MetaData(id) => position(config, *id),
            _ => None,
        };
        let about = About {
            connection,
            writer_group: writer.map(|index| index.0.group),
            writer: writer.map(|index| index.1),
            kind: if writer.is_some() { DatagramKind::MetaData } else { DatagramKind::Announcement },
            due: turn.now.instant,
            address: None,
        };
        #[cfg(feature = "json")]
        if let (Some((index, position)), Announcement::DataSetMetaData { writer_id, meta_data, .. }) =
            (writer, &announcement)
            && let Some(group) = config.writer_groups.get(index.group)
            && super::is_json(&group.message)
        {
            let id = format!("{:016x}", turn.entropy.next_u64());
            let publisher_id = config.publisher_id.as_ref().map(ToString::to_string).unwrap_or_default();
            let name = group.writers.get(position).map_or("", |writer| writer.name.as_str());
            let written: Result<(), core::convert::Infallible> = turn.out.push(about, |out| {
                let now = turn.now;
                crate::json::metadata::encode(&id, &publisher_id, *writer_id, name, meta_data, now, out);
                Ok(())
            });
            let _ = written;
            return;
        }
        let payload = NumberedAnnouncement { sequence_number, announcement }.encode_to_vec();
        let header = NetworkMessageHeader {
            publisher_id: config.publisher_id.as_ref().map(|id| id.as_ref()),
            message_type: NetworkMessageType::DiscoveryAnnouncement,
            ..NetworkMessageHeader::default()
        };
        let mut header_len = Vec::new();
        header.encode(&mut header_len);
        let is_broker = config.url.starts_with("mqtt");
        let room = turn.options.message_len_max.saturating_sub(header_len.len());
        let mut write = |is_chunk: bool, write: &mut dyn FnMut(&mut Vec<u8>)| {
            let header = NetworkMessageHeader { is_chunk, ..header };
            // Unsecured messages cannot fail.
            let _ = write_message(
                turn.keys,
                turn.entropy,
                turn.now,
                turn.out,
                about,
                header,
                None,
                |(out, _)| write(out),
            );
        };
        if is_broker || payload.len() <= room {
            return write(false, &mut |out| out.extend_from_slice(&payload));
        }
        for chunk in split(&payload, sequence_number, room.saturating_sub(CHUNK_HEADER_LEN).max(64)) {
            write(true, &mut |out| chunk.encode(out));
        }
    }
}

fn is_secured(security: crate::uadp::SecurityHeader<'_>) -> bool {
    security.mode != SecurityMode::None
}

/// Where the writer with an id is.
fn position(config: &Connection, id: u16) -> Option<(GroupIndex, usize)> {
    for (group, writers) in config.writer_groups.iter().enumerate() {
        if let Some(writer) = writers.writers.iter().position(|writer| writer.data_set_writer_id == id) {
            return Some((GroupIndex { connection: 0, group }, writer));
        }
    }
    None
}

/// What there is to say.
fn content(
    configuration: &Configuration,
    options: &PublisherOptions,
    connection: usize,
    topic: &Topic,
) -> Option<Announcement> {
    let config = configuration.connections.get(connection)?;
    let writers = || config.writer_groups.iter().flat_map(|group| &group.writers);
    Some(match topic {
        Topic::Endpoints => Announcement::PublisherEndpoints {
            endpoints: options.endpoints.clone(),
            status: StatusCode::GOOD,
        },
        Topic::Application => Announcement::Application {
            description: Box::new(options.application.clone()),
            capabilities: options.capabilities.clone(),
        },
        Topic::MetaData(id) => {
            let writer = writers().find(|writer| writer.data_set_writer_id == *id)?;
            let data_set = configuration.data_set(&writer.data_set_name);
            Announcement::DataSetMetaData {
                writer_id: *id,
                meta_data: Box::new(data_set.map(|set| set.meta_data.clone()).unwrap_or_default()),
                status: if data_set.is_some() { StatusCode::GOOD } else { StatusCode::BAD_NOT_FOUND },
            }
        }
        Topic::Writer(id) => {
            let group = config
                .writer_groups
                .iter()
                .find(|group| group.writers.iter().any(|writer| writer.data_set_writer_id == *id))?;
            let mut schema = public(group.to_schema(), true);
            schema.data_set_writers.retain(|writer| writer.data_set_writer_id == *id);
            Announcement::DataSetWriters {
                writer_ids: vec![*id],
                group: Box::new(schema),
                statuses: vec![StatusCode::GOOD],
            }
        }
        Topic::Group(id, with_writers) => {
            let group = config.writer_groups.iter().find(|group| group.writer_group_id == *id)?;
            let writer_ids: Vec<u16> = group.writers.iter().map(|writer| writer.data_set_writer_id).collect();
            Announcement::DataSetWriters {
                statuses: vec![StatusCode::GOOD; writer_ids.len()],
                writer_ids,
                group: Box::new(public(group.to_schema(), *with_writers)),
            }
        }
        Topic::Connections(with_groups, with_writers) => {
            let mut schema = config.to_schema();
            schema.reader_groups.clear();
            schema.connection_properties.clear();
            let groups = core::mem::take(&mut schema.writer_groups);
            if *with_groups {
                schema.writer_groups = groups.into_iter().map(|group| public(group, *with_writers)).collect();
            }
            Announcement::PubSubConnections(vec![schema])
        }
    })
}

/// Without properties, which are nobody else's business (Part 14 §7.2.4.6.8).
fn public(
    mut group: taktwerk_schema::WriterGroupDataType,
    with_writers: bool,
) -> taktwerk_schema::WriterGroupDataType {
    group.group_properties.clear();
    if !with_writers {
        group.data_set_writers.clear();
    }
    group.data_set_writers.iter_mut().for_each(|writer| writer.data_set_writer_properties.clear());
    group
}
