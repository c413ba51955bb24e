//! Discovery on the subscriber's side: probes that do not flood (Part 14 §7.2.4.6.12.2).
//!
//! What is asked about a secured group is asked with its security, so that nobody else learns what we look for. As many
//! publishers understand only probes without, every second attempt is one.

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

/// The first probe waits at least this long…
const DELAY_MIN: u64 = 100_000_000;
/// …and so much longer at most.
const DELAY_SPREAD: u64 = 400_000_000;
/// An answer is waited for so long; doubles with each probe.
const PATIENCE: u64 = 500_000_000;
/// Longest pause between probes.
const PATIENCE_MAX: u64 = 60_000_000_000;
/// How long a probe waits for keys.
const KEYS_PAUSE: u64 = 100_000_000;
/// Most questions that wait for an answer.
const QUESTIONS_MAX: usize = 1_024;

#[derive(Debug)]
struct Question {
    connection: usize,
    publisher_id: Option<PublisherId>,
    probe: Probe,
    due: Instant,
    patience: u64,
    /// Probes sent so far.
    attempts: u32,
}

/// The questions that are open.
#[derive(Debug, Default)]
pub(crate) struct Asker {
    questions: Vec<Question>,
    /// Spreads the first probes.
    counter: u64,
}

impl Asker {
    /// Opens a question, unless it is open.
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
        // Subscribers start at different times: a simple sequence spreads their probes well enough.
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

    /// Connections have other positions; questions on those that are gone are dropped.
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

    /// Sends what is due; with `entropy`, secured as `security` says of a connection, a publisher and a probe.
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
                // Its header is there in any case (Part 14 §7.2.4.6.12.1).
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
        // Who looks for anybody asks once; answers come when they come.
        self.questions
            .retain(|question| !(question.probe == Probe::FindApplications && question.patience > PATIENCE));
    }

    /// Somebody else asks the same: his answer will do.
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

    /// An answer has come.
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
        // Who there is, and how to reach him as a server, everybody may know.
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

/// Whether nothing of the question is left.
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
