//! Counters of ReaderGroups.

use super::Subscriber;
use super::open::LIMITS;
use super::reader::Reader;
use crate::config::Configuration;
use crate::uadp::header::NetworkMessageHeader;
use taktwerk_types::Decoder;

/// Counters of a ReaderGroup (Part 14 §9.1.11.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReaderGroupCounters {
    /// NetworkMessages with data for a reader of the group.
    pub network_messages: u64,
    /// Malformed NetworkMessages that may have been for the group.
    pub malformed: u64,
    /// NetworkMessages for the group that were dropped because of their security.
    pub security_errors: u64,
}

/// A ReaderGroup, by its positions in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderGroupIndex {
    /// Of the connection.
    pub connection: usize,
    /// Of the group in it.
    pub group: usize,
}

/// A group's counters, and the last counted message: one for several readers counts once.
#[derive(Debug)]
pub(crate) struct GroupCount {
    pub(crate) index: ReaderGroupIndex,
    pub(crate) counters: ReaderGroupCounters,
    last: u64,
}

impl GroupCount {
    /// One counter per group of a configuration, in order.
    pub(super) fn all(configuration: &Configuration) -> Vec<Self> {
        let connections = configuration.connections.iter().enumerate();
        connections
            .flat_map(|(connection, of)| {
                (0..of.reader_groups.len()).map(move |group| Self {
                    index: ReaderGroupIndex { connection, group },
                    counters: ReaderGroupCounters::default(),
                    last: 0,
                })
            })
            .collect()
    }

    /// Data of a message was delivered to a reader of the group.
    pub(crate) fn received(&mut self, message: u64) {
        if self.last != message {
            self.last = message;
            self.counters.network_messages += 1;
        }
    }
}

/// Position of the counter of a reader's group; past the end if there is none.
pub(super) fn slot(groups: &[GroupCount], reader: &Reader) -> usize {
    let index = ReaderGroupIndex { connection: reader.index.connection, group: reader.index.group };
    groups.binary_search_by_key(&index, |group| group.index).unwrap_or(usize::MAX)
}

impl Subscriber {
    /// The counters of all ReaderGroups.
    pub fn group_counters(&self) -> impl Iterator<Item = (ReaderGroupIndex, ReaderGroupCounters)> {
        self.groups.iter().map(|group| (group.index, group.counters))
    }

    /// Counts a dropped message for all readers it may have been for, by its unverified sender.
    pub(super) fn count_dropped(&mut self, connection: usize, datagram: &[u8], is_security: bool) {
        let header = NetworkMessageHeader::decode(&mut Decoder::new(datagram, LIMITS)).ok();
        let mut counted = usize::MAX;
        for reader in &mut self.readers {
            let is_wanted = reader.index.connection == connection
                && (!is_security || reader.security.is_some())
                && header.as_ref().is_none_or(|header| {
                    reader.wants_sender(header.publisher_id, header.group, header.data_set_class_id)
                });
            if !is_wanted {
                continue;
            }
            reader.counters.security_errors += u64::from(is_security);
            // Readers of a group are adjacent.
            if reader.group != counted
                && let Some(group) = self.groups.get_mut(reader.group)
            {
                counted = reader.group;
                let counter = if is_security {
                    &mut group.counters.security_errors
                } else {
                    &mut group.counters.malformed
                };
                *counter += 1;
            }
        }
    }
}
