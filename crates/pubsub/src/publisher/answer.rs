//! Announcements of a publisher, with and without a probe (Part 14 §7.2.4.6).

use super::{GroupIndex, PublisherOptions, Turn};
use crate::config::{
    Configuration, Connection, ConnectionTransport, DataSetWriterTransport, WriterGroup, WriterGroupTransport,
};
use crate::network_message::{Security, write_announcement};
use crate::pauses::Pauses;
use crate::security::{KeyStore, SecurityError, decrypt, nonce_number, verify};
use crate::state::PubSubState;
use crate::time::{Now, nanos};
use crate::transmit::{About, DatagramKind};
use crate::uadp::announcement::{Announcement, NumberedAnnouncement};
use crate::uadp::header::{NetworkMessageHeader, NetworkMessageType};
use crate::uadp::probe::Probe;
use crate::uadp::{SecurityHeader, SecurityMode};
use taktwerk_crypto::pubsub::MESSAGE_NONCE_LEN;
use taktwerk_types::codec::Decode;
use taktwerk_types::{DecodeLimits, Decoder, Instant, StatusCode};

/// The subject of an announcement; also the key for limiting its rate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    Endpoints,
    Application,
    MetaData(u16),
    Writer(u16),
    Group(u16, bool),
    Connections(bool, bool),
    /// The status of the publisher, and the nanoseconds until the next one.
    Status(u64),
}

/// A cyclic announcement without a probe (DiscoveryAnnounceRate, Part 14 §6.4.1.2.3 and §6.4.1.3.7; MetaDataUpdateTime,
/// §6.4.2.5.6).
#[derive(Debug)]
struct Cyclic {
    connection: usize,
    /// Position of the WriterGroup; `None` for the connection.
    group: Option<usize>,
    /// Position of the DataSetWriter in it, for its metadata only.
    writer: Option<usize>,
    interval_nanos: u64,
    /// `None` before the start.
    due: Option<Instant>,
}

fn cyclic(configuration: &Configuration) -> Vec<Cyclic> {
    let mut all = Vec::new();
    for (at, connection) in configuration.connections.iter().enumerate() {
        if connection.writer_groups.is_empty() {
            continue;
        }
        let mut add = |group: Option<usize>, seconds: u32| {
            if seconds > 0 {
                let interval_nanos = u64::from(seconds) * 1_000_000_000;
                all.push(Cyclic { connection: at, group, writer: None, interval_nanos, due: None });
            }
        };
        if let ConnectionTransport::Datagram2(transport) = &connection.transport {
            add(None, transport.discovery_announce_rate);
        }
        for (position, group) in connection.writer_groups.iter().enumerate() {
            if let WriterGroupTransport::Datagram2(transport) = &group.transport {
                add(Some(position), transport.discovery_announce_rate);
            }
        }
        for (group, of) in connection.writer_groups.iter().enumerate() {
            for (writer, of) in of.writers.iter().enumerate() {
                let DataSetWriterTransport::Broker(transport) = &of.transport else { continue };
                // Zero and negative values mean no repetition (§6.4.2.5.6).
                let interval_nanos = nanos(transport.meta_data_update_time);
                if interval_nanos > 0 && !of.data_set_name.is_empty() {
                    let (group, writer) = (Some(group), Some(writer));
                    all.push(Cyclic { connection: at, group, writer, interval_nanos, due: None });
                }
            }
        }
    }
    all
}

/// Answers probes. Each announcement is sent at most once per pause, however often it is requested.
#[derive(Debug)]
pub(super) struct Announcer {
    topics: Pauses<(usize, Topic)>,
    cyclic: Vec<Cyclic>,
    runs: bool,
    /// Sequence number of the next announcement, by connection.
    numbers: Vec<u16>,
}

impl Announcer {
    pub(super) fn new(configuration: &Configuration) -> Self {
        Self {
            topics: Pauses::default(),
            cyclic: cyclic(configuration),
            runs: false,
            numbers: vec![1; configuration.connections.len()],
        }
    }

    /// The publisher has started: cyclic announcements are due now.
    pub(super) fn start(&mut self, now: Now) {
        self.runs = true;
        self.cyclic.iter_mut().for_each(|cyclic| cyclic.due = Some(now.instant));
    }

    /// The publisher has stopped. Over datagrams, the missing status reports that (Part 14 §7.2.4.6.7).
    pub(super) fn stop(&mut self) {
        self.runs = false;
        self.cyclic.iter_mut().for_each(|cyclic| cyclic.due = None);
    }

    /// The positions of connections have changed. New and changed parts are announced without a probe.
    pub(super) fn reconfigured(&mut self, old: &Configuration, new: &Configuration, now: Now) {
        let position = |name: &str| new.connections.iter().position(|connection| connection.name == name);
        let mut numbers = vec![1; new.connections.len()];
        for (number, connection) in self.numbers.iter().zip(&old.connections) {
            if let Some(slot) = position(&connection.name).and_then(|at| numbers.get_mut(at)) {
                *slot = *number;
            }
        }
        self.numbers = numbers;
        self.cyclic = cyclic(new);
        if self.runs {
            self.start(now);
        }
        self.topics.rename(|(connection, topic)| {
            let before = old.connections.get(connection)?;
            Some((position(&before.name)?, topic))
        });
        for (at, connection) in new.connections.iter().enumerate() {
            let before = old.connection(&connection.name);
            let known = before.into_iter().flat_map(|before| &before.writer_groups);
            let known: Vec<_> = known.flat_map(|group| &group.writers).collect();
            for writer in connection.writer_groups.iter().flat_map(|group| &group.writers) {
                let id = writer.data_set_writer_id;
                let was = known.iter().find(|before| before.data_set_writer_id == id);
                let was = was.and_then(|before| old.data_set(&before.data_set_name));
                let is = new.data_set(&writer.data_set_name);
                let meta_data =
                    |set: Option<&crate::config::PublishedDataSet>| set.map(|set| set.meta_data.clone());
                if is.is_some() && meta_data(was) != meta_data(is) {
                    self.want(at, Topic::MetaData(id), now);
                }
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let wanted = self.topics.poll_timeout().into_iter();
        wanted.chain(self.cyclic.iter().filter_map(|cyclic| cyclic.due)).min()
    }

    /// Requests the cyclic announcements that are due.
    fn poll_cyclic(&mut self, configuration: &Configuration, now: Now) {
        for position in 0..self.cyclic.len() {
            let Some(cyclic) = self.cyclic.get_mut(position) else { return };
            let Some(due) = cyclic.due.filter(|due| *due <= now.instant) else { continue };
            let next = due.as_nanos().saturating_add(cyclic.interval_nanos);
            cyclic.due = Some(Instant::from_nanos(next).max(now.instant));
            let (connection, group, interval) = (cyclic.connection, cyclic.group, cyclic.interval_nanos);
            let writer = cyclic.writer;
            let Some(config) = configuration.connections.get(connection) else { continue };
            if !configuration.enabled || !config.enabled {
                continue;
            }
            match group.map(|group| config.writer_groups.get(group)) {
                None => {
                    self.want(connection, Topic::Status(interval), now);
                    self.want(connection, Topic::Connections(true, true), now);
                }
                Some(Some(group)) if group.enabled && writer.is_some() => {
                    let of = writer.and_then(|writer| group.writers.get(writer)).filter(|one| one.enabled);
                    if let Some(writer) = of {
                        self.want(connection, Topic::MetaData(writer.data_set_writer_id), now);
                    }
                }
                Some(Some(group)) if group.enabled => {
                    self.want(connection, Topic::Group(group.writer_group_id, true), now);
                    for writer in group.writers.iter().filter(|writer| !writer.data_set_name.is_empty()) {
                        self.want(connection, Topic::MetaData(writer.data_set_writer_id), now);
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn want(&mut self, connection: usize, topic: Topic, now: Now) {
        self.topics.want((connection, topic), now.instant);
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

    /// Checks whether a datagram is a probe for us.
    pub(super) fn receive(
        &mut self,
        configuration: &Configuration,
        options: &PublisherOptions,
        keys: &mut KeyStore,
        connection: usize,
        datagram: &[u8],
        now: Now,
    ) {
        let Some(config) = configuration.connections.get(connection) else { return };
        let mut decoder = Decoder::new(datagram, DecodeLimits::DEFAULT);
        let Ok(header) = NetworkMessageHeader::decode(&mut decoder) else { return };
        if header.message_type != NetworkMessageType::DiscoveryProbe {
            return;
        }
        // An unsecured probe is accepted, because announcements about secured groups are secured. A secured probe must
        // use the right keys.
        let probe = match header.security.filter(|security| is_secured(*security)) {
            None => Probe::decode(&mut decoder),
            Some(security) => {
                let payload = datagram.len() - decoder.remaining();
                let Some(opened) = open_probe(config, keys, &header, &security, datagram, payload, now)
                else {
                    return;
                };
                Probe::decode(&mut Decoder::new(&opened, DecodeLimits::DEFAULT))
            }
        };
        let Ok(probe) = probe else { return };
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
        self.poll_cyclic(configuration, turn.now);
        while let Some((connection, topic)) = self.topics.take(turn.now.instant, pause) {
            let mut sent = true;
            for security in securities(configuration, connection, &topic) {
                let announcement =
                    content(configuration, turn.options, connection, &topic, security, turn.now);
                if let Some(announcement) = announcement {
                    sent &=
                        self.send(turn, configuration, connection, &topic, announcement, security).is_ok();
                }
            }
            // Without keys, it is sent later.
            if !sent {
                let later = turn.now.instant.as_nanos().saturating_add(pause.max(RETRY_NANOS));
                self.topics.postpone(&(connection, topic), Instant::from_nanos(later));
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
        security: Security<'_>,
    ) -> Result<(), SecurityError> {
        let Some(config) = configuration.connections.get(connection) else { return Ok(()) };
        if let Some((group, _)) = security
            && turn.keys.ring(group).is_none()
        {
            return Err(SecurityError::NoKeys);
        }
        let Some(number) = self.numbers.get_mut(connection) else { return Ok(()) };
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
            return Ok(());
        }
        let is_broker = config.url.starts_with("mqtt");
        let wanted = crate::config::unused::discovery_message_len_max(config);
        let room = (!is_broker).then_some(turn.options.message_len_max);
        let room = room.map(|room| wanted.map_or(room, |wanted| room.min(wanted)));
        let numbered = NumberedAnnouncement { sequence_number, announcement };
        let publisher_id = config.publisher_id.as_ref();
        write_announcement(
            turn.keys,
            turn.entropy,
            turn.now,
            turn.out,
            about,
            publisher_id,
            &numbered,
            security,
            room,
        )
    }
}

/// Nanoseconds between attempts to send an announcement without keys.
const RETRY_NANOS: u64 = 100_000_000;

fn security_of(group: &WriterGroup) -> Security<'_> {
    match group.security.mode {
        SecurityMode::None => None,
        // JSON cannot be secured.
        _ if super::is_json(&group.message) => None,
        mode => Some((group.security.security_group_id.as_str(), mode)),
    }
}

/// The security of an announcement: that of the group's data. An announcement about several groups is sent once per
/// kind of security.
fn securities<'a>(configuration: &'a Configuration, connection: usize, topic: &Topic) -> Vec<Security<'a>> {
    let Some(config) = configuration.connections.get(connection) else { return Vec::new() };
    let groups = config.writer_groups.iter();
    let has_writer =
        |group: &&WriterGroup, id: u16| group.writers.iter().any(|writer| writer.data_set_writer_id == id);
    match topic {
        Topic::MetaData(id) | Topic::Writer(id) => {
            groups.filter(|group| has_writer(group, *id)).take(1).map(security_of).collect()
        }
        Topic::Group(id, _) => {
            groups.filter(|group| group.writer_group_id == *id).take(1).map(security_of).collect()
        }
        Topic::Connections(true, _) => {
            let mut all = vec![None];
            for security in groups.map(security_of) {
                if !all.contains(&security) {
                    all.push(security);
                }
            }
            all
        }
        Topic::Endpoints | Topic::Application | Topic::Connections(false, _) | Topic::Status(_) => vec![None],
    }
}

/// Verifies and decrypts a secured probe with the keys of the connection's groups.
fn open_probe(
    config: &Connection,
    keys: &mut KeyStore,
    header: &NetworkMessageHeader<'_>,
    security: &SecurityHeader<'_>,
    datagram: &[u8],
    payload: usize,
    now: Now,
) -> Option<Vec<u8>> {
    let nonce: [u8; MESSAGE_NONCE_LEN] = security.nonce.try_into().ok()?;
    for (group, mode) in config.writer_groups.iter().filter_map(security_of) {
        if security.mode < mode {
            continue;
        }
        let Some((Some(ring), replay)) = keys.receiving(group) else { continue };
        let Ok(of_token) = ring.accepted(security.token_id, now.instant) else { continue };
        let Ok(range) = verify(of_token, security, datagram, payload) else { continue };
        // All probes name the same publisher: the random half of the nonce distinguishes their senders.
        let [a, b, ..] = nonce;
        let (of, from) = (header.publisher_id.map(|id| id.to_owned()), Some(u16::from_le_bytes([a, b])));
        replay.accept(of, from, security.token_id, nonce_number(&nonce)).ok()?;
        let mut opened = datagram.get(range)?.to_vec();
        if security.mode == SecurityMode::SignAndEncrypt {
            let of_token = keys.ring(group)?.accepted(security.token_id, now.instant).ok()?;
            decrypt(of_token, &nonce, &mut opened).ok()?;
        }
        return Some(opened);
    }
    None
}

fn is_secured(security: crate::uadp::SecurityHeader<'_>) -> bool {
    security.mode != SecurityMode::None
}

/// The position of the writer with an id.
fn position(config: &Connection, id: u16) -> Option<(GroupIndex, usize)> {
    for (group, writers) in config.writer_groups.iter().enumerate() {
        if let Some(writer) = writers.writers.iter().position(|writer| writer.data_set_writer_id == id) {
            return Some((GroupIndex { connection: 0, group }, writer));
        }
    }
    None
}

/// The content of an announcement.
fn content(
    configuration: &Configuration,
    options: &PublisherOptions,
    connection: usize,
    topic: &Topic,
    security: Security<'_>,
    now: Now,
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
        Topic::Status(interval) => {
            let next = now.utc.plus(core::time::Duration::from_nanos(*interval));
            Announcement::Status { state: PubSubState::OPERATIONAL, cyclic: Some((next, now.utc)) }
        }
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
            let public_url = crate::config::without_credentials(&config.url);
            let mut schema = Connection { url: public_url, ..config.clone() }.to_schema();
            schema.reader_groups.clear();
            schema.connection_properties.clear();
            schema.writer_groups.clear();
            if *with_groups {
                // Only groups with this announcement's security; the others are in other announcements.
                let groups = config.writer_groups.iter().filter(|group| security_of(group) == security);
                schema.writer_groups = groups.map(|group| public(group.to_schema(), *with_writers)).collect();
            }
            Announcement::PubSubConnections(vec![schema])
        }
    })
}

/// Without properties, which are private (Part 14 §7.2.4.6.8).
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
