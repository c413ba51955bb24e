//! The unwritten changes of a durable subscription (Part 4 §6.8): sections of the next log entry, items whose queues
//! have changed, and responses that wait until their message is written.

use super::publish::Ticket;
use super::subscription::Parameters;
use crate::account::{Account, Category, Charge, Exhausted, Level};
use crate::durable::record::{Header, SavedParameters, Section};
use crate::durable::{Change, lifetime_count, record};
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_types::UaString;

/// Maximum bytes that wait for a failed store, per subscription. More can wait while the store works, because it is
/// written several times a second.
const WAITING_MAX: usize = 1 << 20;
/// Growth of a log from which compaction pays off, in bytes.
const SHORTEN_MIN: usize = 1 << 20;

/// The constant part of a subscription's header.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) namespaces: Vec<UaString>,
    /// The encoded owner.
    pub(crate) owner: Vec<u8>,
}

/// A response that waits.
#[derive(Debug)]
pub(super) enum Answer {
    /// A PublishResponse with this message.
    Publish(u32),
    /// A RepublishResponse with this message.
    Republish(u32),
    /// The complete response of a service that has changed the subscription.
    Changed(Vec<u8>),
}

/// A response that waits until what it reports is written.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) ticket: Ticket,
    pub(super) answer: Answer,
    /// The entry being written contains what it reports.
    pub(super) is_covered: bool,
}

/// The journal of a durable subscription.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(super) identity: Identity,
    pub(super) lifetime_hours: u32,
    /// Unwritten sections.
    pub(super) pending: Vec<u8>,
    charge: Charge,
    /// Changes that another engine could not write. They precede everything else.
    pub(super) unwritten: Vec<Change>,
    /// Charge for the entry that is being written or waits for a failed store.
    entry_charge: Charge,
    pub(super) header_changed: bool,
    /// Items whose queues have changed.
    pub(super) noted: Vec<u32>,
    /// The available messages and the next sequence number, as in the log.
    pub(super) available: Vec<u32>,
    pub(super) next: u32,
    /// The number of the first message that is not written yet.
    unwritten_from: u32,
    pub(super) held: VecDeque<Held>,
    /// Whether an entry is being written.
    pub(super) in_flight: bool,
    /// There is no log yet. An existing log with that number belongs to another subscription.
    pub(super) is_new: bool,
    /// Size of the log in bytes, and its size after the last compaction.
    log_len: usize,
    log_len_short: usize,
}

/// Whether a sequence number is before another one. They start again at 1 after the largest (Part 4 §7.9).
fn before(number: u32, other: u32) -> bool {
    number != other && other.wrapping_sub(number) < 1 << 31
}

impl Journal {
    /// For a subscription without a log. Its next message has the number `next`.
    pub(super) fn new(identity: Identity, lifetime_hours: u32, next: u32, account: &Arc<Account>) -> Self {
        Self {
            identity,
            lifetime_hours,
            pending: Vec::new(),
            charge: account.nothing(Category::Requests),
            unwritten: Vec::new(),
            entry_charge: account.nothing(Category::Requests),
            header_changed: true,
            noted: Vec::new(),
            available: Vec::new(),
            next: 0,
            unwritten_from: next,
            held: VecDeque::new(),
            in_flight: false,
            is_new: true,
            log_len: 0,
            log_len_short: 0,
        }
    }

    /// Lets `write` append a section.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.pending);
        self.charge.resize_anyway(self.pending.capacity());
    }

    /// Reserves bytes.
    pub(super) fn reserve(&mut self, bytes: usize, is_failing: bool) -> Result<(), Exhausted> {
        let len = self.pending.len() + bytes;
        if is_failing && len > WAITING_MAX {
            return Err(Exhausted { level: Level::Subscription, category: Category::Requests });
        }
        if len > self.pending.capacity() {
            self.charge.resize(len)?;
            self.pending.reserve_exact(len.max(2 * self.pending.capacity()) - self.pending.len());
            self.charge.resize_anyway(self.pending.capacity());
        }
        Ok(())
    }

    /// An entry of `bytes` is kept until it is written.
    pub(super) fn collected(&mut self, bytes: usize) {
        self.entry_charge.resize_anyway(bytes);
    }

    /// Appends the waiting sections.
    pub(super) fn take_pending(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.pending);
        self.pending = Vec::new();
        self.charge.resize_anyway(0);
    }

    /// Adds the size of an entry. Returns whether the log should be compacted.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        self.log_len += bytes;
        self.log_len > 2 * self.log_len_short + SHORTEN_MIN
    }

    /// There is a log from an earlier run.
    pub(super) fn restored(&mut self, bytes: usize) {
        (self.is_new, self.log_len) = (false, bytes);
    }

    /// The log was compacted.
    pub(super) fn shortened(&mut self, bytes: usize) {
        (self.log_len, self.log_len_short) = (bytes, bytes);
    }

    /// The entry in progress is written.
    pub(super) fn wrote(&mut self) {
        self.unwritten_from = self.next;
    }

    /// The store fails: the client receives messages before `next` although they are not written.
    pub(super) fn give_up_before(&mut self, next: u32) {
        self.unwritten_from = next;
    }

    /// Whether a message survives a crash. Before that, no client may receive it or hear of it: a restarted server would
    /// use its number for another message, which the client would take for a repetition.
    pub(super) fn has_written(&self, sequence_number: u32) -> bool {
        before(sequence_number, self.unwritten_from)
    }

    /// The number of the first message that is not written yet.
    pub(super) fn unwritten_from(&self) -> u32 {
        self.unwritten_from
    }

    /// Whether changes of settings and items are not written yet.
    pub(super) fn has_unwritten_changes(&self) -> bool {
        self.in_flight || self.has_uncollected_changes()
    }

    /// Whether no entry contains all of these changes.
    pub(super) fn has_uncollected_changes(&self) -> bool {
        self.header_changed || !self.pending.is_empty()
    }

    /// Whether responses wait or an entry is being written.
    pub(super) fn is_busy(&self) -> bool {
        self.in_flight || !self.held.is_empty()
    }
}

/// The header of a log.
pub(super) fn header(
    journal: &Journal,
    parameters: Parameters,
    publishing_enabled: bool,
    grant: crate::authorization::Grant,
) -> Section {
    Section::Header(Box::new(Header {
        namespaces: journal.identity.namespaces.clone(),
        owner: journal.identity.owner.clone(),
        roles: grant.roles.to_vec(),
        mode: grant.mode,
        is_limited: grant.is_limited,
        parameters: SavedParameters {
            publishing_interval: parameters.publishing_interval,
            lifetime_count: parameters.lifetime_count,
            max_keep_alive_count: parameters.max_keep_alive_count,
            max_notifications: parameters.max_notifications,
            priority: parameters.priority,
        },
        publishing_enabled,
        lifetime_hours: journal.lifetime_hours,
    }))
}

impl From<&SavedParameters> for Parameters {
    fn from(saved: &SavedParameters) -> Self {
        Self {
            publishing_interval: saved.publishing_interval,
            lifetime_count: saved.lifetime_count,
            max_keep_alive_count: saved.max_keep_alive_count,
            max_notifications: saved.max_notifications,
            priority: saved.priority,
        }
    }
}

impl Parameters {
    /// The same with the lifetime of a durable subscription.
    pub(crate) fn durable(self, hours: u32) -> Self {
        Self { lifetime_count: lifetime_count(hours, self.publishing_interval), ..self }
    }
}

/// Begins an entry.
pub(super) fn entry() -> Vec<u8> {
    record::begin()
}
