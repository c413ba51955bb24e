//! A durable subscription restored from its log.

use super::record::{self, Header, QueueChange, Section};
use crate::history::StoredEvent;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use taktwerk_types::{DataValue, DecodeError};

/// A queue restored from the log.
#[derive(Debug, Clone)]
pub(crate) struct SavedQueue<T> {
    /// The number of the first element.
    pub(crate) first: u64,
    pub(crate) elements: VecDeque<T>,
    /// Elements were lost before the first one; for events, at any position.
    pub(crate) overflow: bool,
}

impl<T> Default for SavedQueue<T> {
    fn default() -> Self {
        Self { first: 0, elements: VecDeque::new(), overflow: false }
    }
}

impl<T> SavedQueue<T> {
    fn apply(&mut self, change: QueueChange<T>) {
        // Elements removed before they were written are missing. They are not needed.
        let known = change.from.saturating_sub(self.first);
        self.elements.truncate(usize::try_from(known).unwrap_or(usize::MAX));
        let gone = usize::try_from(change.first.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.elements.drain(..gone.min(self.elements.len()));
        self.elements.extend(change.added);
        self.first = change.first;
        self.overflow = change.overflow;
    }

    fn to_change(&self, item: u32) -> QueueChange<T>
    where
        T: Clone,
    {
        let (first, overflow) = (self.first, self.overflow);
        QueueChange { item, first, from: first, overflow, added: self.elements.iter().cloned().collect() }
    }
}

/// An item.
#[derive(Debug, Clone, Default)]
pub(crate) struct SavedItem {
    pub(crate) timestamps: i32,
    /// The MonitoredItemCreateRequest.
    pub(crate) request: Vec<u8>,
    /// TimestampsToReturn and MonitoringParameters of the last ModifyMonitoredItems.
    pub(crate) modified: Option<(i32, Vec<u8>)>,
    /// The mode of the last SetMonitoringMode.
    pub(crate) mode: Option<i32>,
    /// The items that it triggers.
    pub(crate) linked: Vec<u32>,
    pub(crate) values: SavedQueue<DataValue>,
    pub(crate) events: SavedQueue<StoredEvent>,
    /// The retained conditions of its client.
    pub(crate) retained: BTreeSet<u64>,
}

/// A subscription.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub(crate) id: u32,
    pub(crate) header: Header,
    pub(crate) items: BTreeMap<u32, SavedItem>,
    /// The next sequence number.
    pub(crate) next_sequence_number: u32,
    /// Messages available for Republish.
    pub(crate) messages: Vec<(u32, Vec<u8>)>,
    /// The server was stopped regularly: nothing is missing.
    pub(crate) is_complete: bool,
    /// Size of all entries, in bytes.
    pub(crate) log_len: usize,
}

impl Saved {
    /// Restores a subscription from its entries.
    ///
    /// # Errors
    /// An entry is damaged, or the first one has no header.
    pub(crate) fn from_entries(id: u32, entries: &[Vec<u8>]) -> Result<Self, DecodeError> {
        let mut saved: Option<Self> = None;
        for entry in entries {
            let sections = record::read(entry)?;
            if let Some(saved) = &mut saved {
                saved.is_complete = false;
            }
            for section in sections {
                match (&mut saved, section) {
                    (None, Section::Header(header)) => {
                        saved = Some(Self {
                            id,
                            header: *header,
                            items: BTreeMap::new(),
                            next_sequence_number: 1,
                            messages: Vec::new(),
                            is_complete: false,
                            log_len: entries.iter().map(Vec::len).sum(),
                        });
                    }
                    (None, _) => return Err(DecodeError::Invalid("beginning of a durable subscription")),
                    (Some(saved), section) => saved.apply(section),
                }
            }
        }
        saved.ok_or(DecodeError::Invalid("beginning of a durable subscription"))
    }

    fn apply(&mut self, section: Section) {
        match section {
            Section::Header(header) => self.header = *header,
            Section::Created { item, timestamps, request } => {
                self.items.insert(item, SavedItem { timestamps, request, ..SavedItem::default() });
            }
            Section::Deleted { item } => {
                self.items.remove(&item);
                self.items.values_mut().for_each(|other| other.linked.retain(|linked| *linked != item));
            }
            Section::Modified { item, timestamps, parameters } => {
                self.with(item, |item| item.modified = Some((timestamps, parameters)));
            }
            Section::Mode { item, mode } => self.with(item, |item| item.mode = Some(mode)),
            Section::Links { item, linked } => self.with(item, |item| item.linked = linked),
            Section::Values(change) => self.with(change.item, |item| item.values.apply(change)),
            Section::Events(change) => self.with(change.item, |item| item.events.apply(change)),
            Section::Retained { item, cleared, added, removed } => self.with(item, |item| {
                if cleared {
                    item.retained.clear();
                }
                item.retained.extend(added);
                removed.iter().for_each(|key| {
                    item.retained.remove(key);
                });
            }),
            Section::Messages { next, available, new } => {
                self.next_sequence_number = next;
                self.messages.extend(new);
                self.messages.retain(|(number, _)| available.contains(number));
            }
            Section::Closed => self.is_complete = true,
        }
    }

    /// Changes an item, if it still exists.
    fn with(&mut self, item: u32, change: impl FnOnce(&mut SavedItem)) {
        if let Some(item) = self.items.get_mut(&item) {
            change(item);
        }
    }

    /// A single entry that replaces all the others.
    pub(crate) fn to_entry(&self) -> Vec<u8> {
        let mut out = record::begin();
        Section::Header(Box::new(self.header.clone())).encode(&mut out);
        for (id, saved) in &self.items {
            let item = *id;
            record::created(item, saved.timestamps, &saved.request, &mut out);
            if let Some((timestamps, parameters)) = &saved.modified {
                record::modified(item, *timestamps, parameters, &mut out);
            }
            if let Some(mode) = saved.mode {
                Section::Mode { item, mode }.encode(&mut out);
            }
            if saved.values.first > 0 || !saved.values.elements.is_empty() {
                Section::Values(saved.values.to_change(item)).encode(&mut out);
            }
            if !saved.retained.is_empty() {
                let added = saved.retained.iter().copied().collect();
                Section::Retained { item, cleared: true, added, removed: Vec::new() }.encode(&mut out);
            }
            let events = &saved.events;
            if events.first > 0 || events.overflow || !events.elements.is_empty() {
                Section::Events(events.to_change(item)).encode(&mut out);
            }
        }
        for (id, saved) in self.items.iter().filter(|(_, item)| !item.linked.is_empty()) {
            Section::Links { item: *id, linked: saved.linked.clone() }.encode(&mut out);
        }
        let available: Vec<u32> = self.messages.iter().map(|(number, _)| *number).collect();
        let new = self.messages.iter().map(|(number, bytes)| (*number, bytes.as_slice()));
        record::messages(self.next_sequence_number, &available, new, &mut out);
        if self.is_complete {
            Section::Closed.encode(&mut out);
        }
        out
    }
}

#[cfg(test)]
mod tests;
