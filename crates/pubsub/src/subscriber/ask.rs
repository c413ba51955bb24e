//! Probes of a subscriber, with a limited rate (Part 14 §7.2.4.6.12.2).
//!
//! Probes about a secured group are secured, so that others do not learn what we look for. Because many publishers
//! understand only unsecured probes, every second attempt is unsecured.

use super::reader::Reader;
use crate::network_message::{Security, write_message};
use crate::publisher_id::{PublisherId, PublisherIdRef};
use crate::security::KeyStore;
use crate::time::Now;
use crate::transmit::{About, DatagramKind, Transmit};
use crate::uadp::SecurityHeader;
use crate::uadp::announcement::Announcement;
use crate::uadp::header::{NetworkMessageHeader, NetworkMessageType};
use crate::uadp::probe::Probe;
use taktwerk_crypto::Entropy;
use taktwerk_types::{Encode, Instant};

/// Minimum delay of the first probe.
const DELAY_MIN: u64 = 100_000_000;
/// Maximum additional delay.
const DELAY_SPREAD: u64 = 400_000_000;
/// Timeout of the first answer; it doubles with each probe.
const PATIENCE: u64 = 500_000_000;
/// Maximum pause between probes.
const PATIENCE_MAX: u64 = 60_000_000_000;
/// How long a probe waits for keys.
const KEYS_PAUSE: u64 = 100_000_000;
/// Maximum open questions.
const QUESTIONS_MAX: usize = 1_024;

#[derive(Debug)]
struct Question {
    connection: usize,
    publisher_id: Option<PublisherId>,
    probe: Probe,
    due: Instant,
    patience: u64,
    /// Number of probes sent.
    attempts: u32,
}

/// The open questions.
#[derive(Debug, Default)]
pub(crate) struct Asker {
    questions: Vec<Question>,
    /// Spreads the first probes.
    counter: u64,
}

impl Asker {
    /// Opens a question, unless it is already open.
    pub(crate) fn ask(
        &mut self,
        connection: usize,
        publisher_id: Option<PublisherId>,
        probe: Probe,
        now: Instant,
    ) {
        let is_open = |question: &Question| {
            question.connection == connection
                && question.publisher_id == publisher_id
                && question.probe == probe
        };
        if self.questions.len() >= QUESTIONS_MAX || self.questions.iter().any(is_open) {
            return;
        }
        // Subscribers start at different times, so a simple sequence spreads their probes well enough.
        self.counter = self.counter.wrapping_add(1);
        let mixed = (now.as_nanos() ^ self.counter).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let due = now.as_nanos().saturating_add(DELAY_MIN + mixed % DELAY_SPREAD);
        self.questions.push(Question {
            connection,
            publisher_id,
            probe,
            due: Instant::from_nanos(due),
            patience: PATIENCE,
            attempts: 0,
        });
    }

    /// The positions of connections have changed; questions on removed connections are dropped.
    pub(crate) fn moved(&mut self, position: impl Fn(usize) -> Option<usize>) {
        self.questions.retain_mut(|question| match position(question.connection) {
            Some(connection) => {
                question.connection = connection;
                true
            }
            None => false,
        });
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.questions.iter().map(|question| question.due).min()
    }

    /// Sends what is due. With `entropy`, `security` determines how to secure the probe for a connection and publisher.
    pub(crate) fn poll<'a>(
        &mut self,
        now: Now,
        out: &mut Transmit,
        keys: &mut KeyStore,
        mut entropy: Option<&mut dyn Entropy>,
        security: impl Fn(usize, Option<&PublisherId>, &Probe) -> Security<'a>,
    ) {
        for question in &mut self.questions {
            if question.due > now.instant {
                continue;
            }
            let about = About {
                connection: question.connection,
                writer_group: None,
                writer: None,
                kind: DatagramKind::Probe,
                due: now.instant,
                address: None,
            };
            let header = NetworkMessageHeader {
                publisher_id: question.publisher_id.as_ref().map(PublisherId::as_ref),
                message_type: NetworkMessageType::DiscoveryProbe,
                // The security header is always present (Part 14 §7.2.4.6.12.1).
                security: Some(SecurityHeader::default()),
                ..NetworkMessageHeader::default()
            };
            let probe = &question.probe;
            let wanted = security(question.connection, question.publisher_id.as_ref(), probe);
            let wanted = wanted.filter(|_| question.attempts.is_multiple_of(2));
            let sent = match (wanted, entropy.as_deref_mut()) {
                (Some(_), Some(entropy)) => {
                    write_message(keys, entropy, now, out, about, header, wanted, |(bytes, _)| {
                        probe.encode(bytes);
                    })
                }
                _ => out.push(about, |bytes| {
                    header.encode(bytes);
                    probe.encode(bytes);
                    Ok(())
                }),
            };
            if sent.is_err() {
                // Without keys the answer could not be read either.
                question.due = Instant::from_nanos(now.instant.as_nanos().saturating_add(KEYS_PAUSE));
                continue;
            }
            question.attempts += 1;
            question.due = Instant::from_nanos(now.instant.as_nanos().saturating_add(question.patience));
            question.patience = (question.patience * 2).min(PATIENCE_MAX);
        }
        // A probe to any publisher is sent once; answers can come at any time.
        self.questions
            .retain(|question| !(question.probe == Probe::FindApplications && question.patience > PATIENCE));
    }

    /// Another subscriber has sent the same probe: its answer is sufficient.
    pub(crate) fn overheard(
        &mut self,
        connection: usize,
        publisher_id: Option<PublisherIdRef<'_>>,
        probe: &Probe,
        now: Instant,
    ) {
        for question in &mut self.questions {
            let same = question.connection == connection
                && question.probe == *probe
                && question.publisher_id.as_ref().map(PublisherId::as_ref) == publisher_id;
            if same {
                let later = Instant::from_nanos(now.as_nanos().saturating_add(question.patience));
                question.due = question.due.max(later);
            }
        }
    }

    /// An answer was received.
    pub(crate) fn answered(
        &mut self,
        connection: usize,
        publisher_id: Option<PublisherIdRef<'_>>,
        announcement: &Announcement,
    ) {
        self.questions.retain_mut(|question| {
            let same = question.connection == connection
                && question.publisher_id.as_ref().map(PublisherId::as_ref) == publisher_id;
            !(same && settles(&mut question.probe, announcement))
        });
    }
}

/// The security of the data that a probe is about.
pub(super) fn security<'a>(
    connection: usize,
    publisher_id: Option<&PublisherId>,
    probe: &Probe,
    readers: &'a [Reader],
) -> Security<'a> {
    let ids = match probe {
        Probe::DataSetMetaData(ids) | Probe::DataSetWriters(ids) => ids.as_slice(),
        // The existence of applications and their endpoints are public.
        Probe::FindApplications | Probe::PublisherEndpoints => return None,
        _ => &[],
    };
    let group = match probe {
        Probe::WriterGroup { writer_group_id, .. } => Some(*writer_group_id),
        _ => None,
    };
    let mut about = readers.iter().filter(|reader| {
        reader.index.connection == connection
            && reader.publisher_id.as_ref() == publisher_id
            && (ids.is_empty() || ids.contains(&reader.data_set_writer_id))
            && group.is_none_or(|group| reader.writer_group_id == 0 || reader.writer_group_id == group)
    });
    let required = about.find_map(|reader| reader.security.as_ref())?;
    Some((required.group_id.as_str(), required.mode))
}

/// Whether the announcement answers the whole question.
fn settles(probe: &mut Probe, announcement: &Announcement) -> bool {
    match (probe, announcement) {
        (Probe::DataSetMetaData(ids), Announcement::DataSetMetaData { writer_id, .. }) => {
            ids.retain(|id| id != writer_id);
            ids.is_empty()
        }
        (Probe::DataSetMetaData(ids), Announcement::ActionMetaData { writer_id, .. }) => {
            ids.retain(|id| id != writer_id);
            ids.is_empty()
        }
        (Probe::DataSetWriters(ids), Announcement::DataSetWriters { writer_ids, .. }) => {
            ids.retain(|id| !writer_ids.contains(id));
            ids.is_empty()
        }
        (Probe::WriterGroup { writer_group_id, .. }, Announcement::DataSetWriters { group, .. }) => {
            group.writer_group_id == *writer_group_id
        }
        (Probe::PublisherEndpoints, Announcement::PublisherEndpoints { .. })
        | (
            Probe::PubSubConnections { .. },
            Announcement::PubSubConnections(_) | Announcement::ActionResponder(_),
        ) => true,
        _ => false,
    }
}
