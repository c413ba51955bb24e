//! What a durable subscription has to write down (Part 4 §6.8): sections of the next entry of its log, items whose queues
//! have changed, and answers that wait until their message is written.

use super::publish::Ticket;
use super::subscription::Parameters;
use crate::account::{Account, Category, Charge, Exhausted, Level};
use crate::durable::record::{Header, SavedParameters, Section};
use crate::durable::{Change, lifetime_count, record};
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_types::UaString;

/// Most bytes that wait for a store that has failed, for each subscription. More can wait while it works: it is written
/// several times a second then.
const WAITING_MAX: usize = 1 << 20;
/// Growth of a log that makes it worth to write it anew, in bytes.
const SHORTEN_MIN: usize = 1 << 20;

/// What of a subscription's header does not change.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) namespaces: Vec<UaString>,
    /// Whose it is, encoded.
    pub(crate) owner: Vec<u8>,
}

/// An answer that waits until its message is written.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) ticket: Ticket,
    pub(super) sequence_number: u32,
    /// The entry under way has the message.
    pub(super) is_covered: bool,
}

/// The journal of a durable subscription.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(super) identity: Identity,
    pub(super) lifetime_hours: u32,
    /// Sections that are not written yet.
    pub(super) pending: Vec<u8>,
    charge: Charge,
    /// Changes that another engine could not write. They come before everything else.
    pub(super) unwritten: Vec<Change>,
    /// The entry that is being written or waits for a store that has failed.
    entry_charge: Charge,
    pub(super) header_changed: bool,
    /// Items whose queues have changed.
    pub(super) noted: Vec<u32>,
    /// The messages and the number of the next one, as the log has them.
    pub(super) available: Vec<u32>,
    pub(super) next: u32,
    pub(super) held: VecDeque<Held>,
    /// An entry is being written.
    pub(super) in_flight: bool,
    /// There is no log of it yet; if there is one of that number, it is another subscription's.
    pub(super) is_new: bool,
    /// Bytes of the log, and what they were when it was written anew.
    log_len: usize,
    log_len_short: usize,
}

impl Journal {
    /// Of a subscription that has no log yet.
    pub(super) fn new(identity: Identity, lifetime_hours: u32, account: &Arc<Account>) -> Self {
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

    /// Makes room for so many bytes.
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

    /// An entry of so many bytes is kept until it is written.
    pub(super) fn collected(&mut self, bytes: usize) {
        self.entry_charge.resize_anyway(bytes);
    }

    /// Appends the sections that wait.
    pub(super) fn take_pending(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.pending);
        self.pending = Vec::new();
        self.charge.resize_anyway(0);
    }

    /// The entry grows by so much. Says whether it should be written anew.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        self.log_len += bytes;
        self.log_len > 2 * self.log_len_short + SHORTEN_MIN
    }

    /// There is a log of an earlier run.
    pub(super) fn restored(&mut self, bytes: usize) {
        (self.is_new, self.log_len) = (false, bytes);
    }

    /// The log was written anew.
    pub(super) fn shortened(&mut self, bytes: usize) {
        (self.log_len, self.log_len_short) = (bytes, bytes);
    }

    /// Answers wait, or an entry is being written.
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

/// A first entry, or one behind others.
pub(super) fn entry() -> Vec<u8> {
    record::begin()
}
