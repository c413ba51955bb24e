//! One entry in the log of a durable subscription: the changes since the previous entry.
//!
//! An entry is a version and any number of sections, each with its kind. Values are encoded as on the wire.

use crate::history::StoredEvent;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_types::codec::{encode_bytes, encode_len};
use taktwerk_types::{DataValue, Decode, DecodeError, DecodeLimits, Decoder, Encode, NodeId, UaString};

/// The version that this code writes. It also reads version 1, whose header does not contain `is_limited`.
const VERSION: u8 = 2;

/// Bytes of an item's section without the client's request.
pub(crate) const ITEM_BYTES: usize = 13;

/// Data of the whole subscription, which seldom changes.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    /// The NamespaceArray for the NodeIds of its items.
    pub(crate) namespaces: Vec<UaString>,
    /// Its owner, in the encoding of sessions.
    pub(crate) owner: Vec<u8>,
    /// The roles and mode of its last authorization.
    pub(crate) roles: Vec<NodeId>,
    pub(crate) mode: MessageSecurityMode,
    /// The user had to change the password first (Part 18 §5.2.8).
    pub(crate) is_limited: bool,
    pub(crate) parameters: SavedParameters,
    pub(crate) publishing_enabled: bool,
    pub(crate) lifetime_hours: u32,
}

/// The parameters of Part 4 §5.14.2, revised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SavedParameters {
    /// In milliseconds.
    pub(crate) publishing_interval: f64,
    pub(crate) lifetime_count: u32,
    pub(crate) max_keep_alive_count: u32,
    pub(crate) max_notifications: u32,
    pub(crate) priority: u8,
}

/// The changes of a queue. Its elements are numbered from its beginning, including removed ones.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueueChange<T> {
    /// The item.
    pub(crate) item: u32,
    /// The number of the first element in the queue.
    pub(crate) first: u64,
    /// The number of the first element of `added`. Earlier data from this number on is invalid.
    pub(crate) from: u64,
    /// Elements were lost before the first one; for events, at any position.
    pub(crate) overflow: bool,
    pub(crate) added: Vec<T>,
}

/// A part of an entry.
#[derive(Debug, Clone)]
pub(crate) enum Section {
    /// The first entry, or a changed header.
    Header(Box<Header>),
    /// An item was created: its TimestampsToReturn and MonitoredItemCreateRequest.
    Created { item: u32, timestamps: i32, request: Vec<u8> },
    /// An item was modified: TimestampsToReturn and MonitoringParameters.
    Modified { item: u32, timestamps: i32, parameters: Vec<u8> },
    /// An item was deleted.
    Deleted { item: u32 },
    /// SetMonitoringMode.
    Mode { item: u32, mode: i32 },
    /// All items that an item triggers.
    Links { item: u32, linked: Vec<u32> },
    /// Changes of an item's values.
    Values(QueueChange<DataValue>),
    /// Changes of an item's events.
    Events(QueueChange<StoredEvent>),
    /// The retained conditions of an item's client: whether the list was cleared, and which were added and removed.
    Retained { item: u32, cleared: bool, added: Vec<u64>, removed: Vec<u64> },
    /// The messages available for Republish, the new ones among them, and the next sequence number.
    Messages { next: u32, available: Vec<u32>, new: Vec<(u32, Vec<u8>)> },
    /// The server was stopped regularly: the log is complete.
    Closed,
}

/// Begins an entry.
pub(crate) fn begin() -> Vec<u8> {
    vec![VERSION]
}

/// Whether an entry has no sections.
pub(crate) fn is_empty(entry: &[u8]) -> bool {
    entry.len() <= 1
}

impl Section {
    const HEADER: u8 = 1;
    const CREATED: u8 = 2;
    const MODIFIED: u8 = 3;
    const DELETED: u8 = 4;
    const MODE: u8 = 5;
    const LINKS: u8 = 6;
    const VALUES: u8 = 7;
    const EVENTS: u8 = 8;
    const MESSAGES: u8 = 9;
    const CLOSED: u8 = 10;
    const RETAINED: u8 = 11;

    /// Appends the section to an entry.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Header(header) => {
                out.push(Self::HEADER);
                header.namespaces.encode(out);
                encode_bytes(Some(&header.owner), out);
                header.roles.encode(out);
                (header.mode as i32).encode(out);
                header.is_limited.encode(out);
                let parameters = &header.parameters;
                parameters.publishing_interval.encode(out);
                parameters.lifetime_count.encode(out);
                parameters.max_keep_alive_count.encode(out);
                parameters.max_notifications.encode(out);
                parameters.priority.encode(out);
                header.publishing_enabled.encode(out);
                header.lifetime_hours.encode(out);
            }
            Self::Created { item, timestamps, request } => {
                created(*item, *timestamps, request, out);
            }
            Self::Modified { item, timestamps, parameters } => {
                modified(*item, *timestamps, parameters, out);
            }
            Self::Deleted { item } => {
                out.push(Self::DELETED);
                item.encode(out);
            }
            Self::Mode { item, mode } => {
                out.push(Self::MODE);
                item.encode(out);
                mode.encode(out);
            }
            Self::Links { item, linked } => {
                out.push(Self::LINKS);
                item.encode(out);
                linked.encode(out);
            }
            Self::Values(change) => {
                out.push(Self::VALUES);
                change.encode(out, |value, out| value.encode(out));
            }
            Self::Events(change) => {
                out.push(Self::EVENTS);
                change.encode(out, StoredEvent::encode);
            }
            Self::Messages { next, available, new } => {
                messages(
                    *next,
                    available,
                    new.iter().map(|(number, bytes)| (*number, bytes.as_slice())),
                    out,
                );
            }
            Self::Retained { item, cleared, added, removed } => {
                out.push(Self::RETAINED);
                item.encode(out);
                cleared.encode(out);
                added.encode(out);
                removed.encode(out);
            }
            Self::Closed => out.push(Self::CLOSED),
        }
    }

    fn decode(decoder: &mut Decoder<'_>, version: u8) -> Result<Self, DecodeError> {
        Ok(match decoder.byte()? {
            Self::HEADER => Self::Header(Box::new(Header {
                namespaces: decoder.array()?,
                owner: bytes(decoder)?,
                roles: decoder.array()?,
                mode: mode(i32::decode(decoder)?)?,
                is_limited: version > 1 && bool::decode(decoder)?,
                parameters: SavedParameters {
                    publishing_interval: f64::decode(decoder)?,
                    lifetime_count: u32::decode(decoder)?,
                    max_keep_alive_count: u32::decode(decoder)?,
                    max_notifications: u32::decode(decoder)?,
                    priority: u8::decode(decoder)?,
                },
                publishing_enabled: bool::decode(decoder)?,
                lifetime_hours: u32::decode(decoder)?,
            })),
            Self::CREATED => Self::Created {
                item: u32::decode(decoder)?,
                timestamps: i32::decode(decoder)?,
                request: bytes(decoder)?,
            },
            Self::MODIFIED => Self::Modified {
                item: u32::decode(decoder)?,
                timestamps: i32::decode(decoder)?,
                parameters: bytes(decoder)?,
            },
            Self::DELETED => Self::Deleted { item: u32::decode(decoder)? },
            Self::MODE => Self::Mode { item: u32::decode(decoder)?, mode: i32::decode(decoder)? },
            Self::LINKS => Self::Links { item: u32::decode(decoder)?, linked: decoder.array()? },
            Self::VALUES => Self::Values(QueueChange::decode(decoder, 1, DataValue::decode)?),
            Self::EVENTS => Self::Events(QueueChange::decode(decoder, 5, StoredEvent::decode)?),
            Self::MESSAGES => {
                let (next, available) = (u32::decode(decoder)?, decoder.array()?);
                let count = decoder.array_len(8)?.unwrap_or(0);
                let new = (0..count).map(|_| Ok((u32::decode(decoder)?, bytes(decoder)?)));
                Self::Messages { next, available, new: new.collect::<Result<_, _>>()? }
            }
            Self::RETAINED => Self::Retained {
                item: u32::decode(decoder)?,
                cleared: bool::decode(decoder)?,
                added: decoder.array()?,
                removed: decoder.array()?,
            },
            Self::CLOSED => Self::Closed,
            _ => return Err(DecodeError::Invalid("section of a durable subscription")),
        })
    }
}

/// Appends the section for a created item, without copying the request.
pub(crate) fn created(item: u32, timestamps: i32, request: &[u8], out: &mut Vec<u8>) {
    out.push(Section::CREATED);
    item.encode(out);
    timestamps.encode(out);
    encode_bytes(Some(request), out);
}

/// Appends the section for a modified item, without copying the parameters.
pub(crate) fn modified(item: u32, timestamps: i32, parameters: &[u8], out: &mut Vec<u8>) {
    out.push(Section::MODIFIED);
    item.encode(out);
    timestamps.encode(out);
    encode_bytes(Some(parameters), out);
}

/// Appends the section for messages, without copying them.
pub(crate) fn messages<'a>(
    next: u32,
    available: &[u32],
    new: impl ExactSizeIterator<Item = (u32, &'a [u8])>,
    out: &mut Vec<u8>,
) {
    out.push(Section::MESSAGES);
    next.encode(out);
    available.encode(out);
    encode_len(new.len(), out);
    for (number, bytes) in new {
        number.encode(out);
        encode_bytes(Some(bytes), out);
    }
}

/// Begins the section for a queue's values or events. Append the elements, then call [`end_queue`].
pub(crate) fn begin_queue(
    is_events: bool,
    item: u32,
    (first, from, overflow): (u64, u64, bool),
    out: &mut Vec<u8>,
) -> usize {
    out.push(if is_events { Section::EVENTS } else { Section::VALUES });
    item.encode(out);
    first.encode(out);
    from.encode(out);
    overflow.encode(out);
    encode_len(0, out);
    out.len() - 4
}

/// Ends the section: writes the number of elements.
pub(crate) fn end_queue(at: usize, count: u32, out: &mut [u8]) {
    if let Some(gap) = out.get_mut(at..at + 4) {
        gap.copy_from_slice(&count.to_le_bytes());
    }
}

impl<T> QueueChange<T> {
    fn encode(&self, out: &mut Vec<u8>, one: impl Fn(&T, &mut Vec<u8>)) {
        self.item.encode(out);
        self.first.encode(out);
        self.from.encode(out);
        self.overflow.encode(out);
        encode_len(self.added.len(), out);
        self.added.iter().for_each(|element| one(element, out));
    }

    fn decode<'a>(
        decoder: &mut Decoder<'a>,
        len_min: usize,
        one: impl Fn(&mut Decoder<'a>) -> Result<T, DecodeError>,
    ) -> Result<Self, DecodeError> {
        let (item, first, from) = (u32::decode(decoder)?, u64::decode(decoder)?, u64::decode(decoder)?);
        let overflow = bool::decode(decoder)?;
        let count = decoder.array_len(len_min)?.unwrap_or(0);
        decoder.allocate(count.saturating_mul(size_of::<T>()))?;
        let added = (0..count).map(|_| one(decoder)).collect::<Result<_, _>>()?;
        Ok(Self { item, first, from, overflow, added })
    }
}

/// A decoder without limits of size. Entries are as large as the server wrote them: compaction joins all of a subscription into one.
/// The store has checked their integrity.
fn decoder(entry: &[u8]) -> Decoder<'_> {
    let limits = DecodeLimits {
        string_len_max: u32::MAX,
        byte_string_len_max: u32::MAX,
        array_len_max: u32::MAX,
        memory_max: usize::MAX,
        ..DecodeLimits::DEFAULT
    };
    Decoder::new(entry, limits)
}

/// Reads an entry.
///
/// # Errors
/// It is not an entry, or has a later version.
pub(crate) fn read(entry: &[u8]) -> Result<Vec<Section>, DecodeError> {
    let mut decoder = decoder(entry);
    let version = decoder.byte()?;
    if !(1..=VERSION).contains(&version) {
        return Err(DecodeError::Invalid("version of a durable subscription"));
    }
    let mut sections = Vec::new();
    while decoder.remaining() > 0 {
        sections.push(Section::decode(&mut decoder, version)?);
    }
    Ok(sections)
}

fn bytes(decoder: &mut Decoder<'_>) -> Result<Vec<u8>, DecodeError> {
    let bytes = decoder.bytes()?.unwrap_or_default();
    decoder.allocate(bytes.len())?;
    Ok(bytes.to_vec())
}

fn mode(number: i32) -> Result<MessageSecurityMode, DecodeError> {
    [MessageSecurityMode::None, MessageSecurityMode::Sign, MessageSecurityMode::SignAndEncrypt]
        .into_iter()
        .find(|mode| *mode as i32 == number)
        .ok_or(DecodeError::Invalid("security mode of a durable subscription"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits of messages do not hold here: an entry that was written must be readable.
    #[test]
    fn an_entry_is_read_whatever_its_size() {
        let long = DataValue::new("x".repeat(17 << 20));
        let change = QueueChange { item: 1, first: 0, from: 0, overflow: false, added: vec![long] };
        let mut entry = begin();
        Section::Values(change.clone()).encode(&mut entry);
        let sections = read(&entry).unwrap();
        assert!(matches!(sections.as_slice(), [Section::Values(found)] if *found == change));
        // The values of a full durable subscription take gigabytes.
        assert_eq!(decoder(&entry).allocate(100 << 30), Ok(()));
    }
}
