//! Messages that an engine wants to send.

use core::ops::Range;
use taktwerk_types::Instant;

/// The kind of a datagram, which determines its topic on brokers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DatagramKind {
    /// DataSetMessages.
    Data,
    /// DataSetMetaData of one DataSetWriter; brokers retain it.
    MetaData,
    /// Other announcements.
    Announcement,
    /// A discovery probe.
    Probe,
    /// Action requests.
    ActionRequest,
    /// Action responses.
    ActionResponse,
    /// The fields of Action requests and responses; brokers retain it.
    ActionMetaData,
    /// The connections of an Action responder; brokers retain it.
    ActionResponder,
}

/// A message to be sent: one UDP datagram, Ethernet frame payload or broker message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Position of the connection in the configuration.
    pub connection: usize,
    /// Position of the WriterGroup in the connection; `None` for discovery.
    pub writer_group: Option<usize>,
    /// Position of the DataSetWriter in the group, if the message is about one writer only.
    pub writer: Option<usize>,
    /// Its kind.
    pub kind: DatagramKind,
    /// Scheduled send time, from which lateness is measured.
    pub due: Instant,
    /// The address, if not that of the connection or group: the ResponseAddress of an Action.
    pub address: Option<&'a str>,
    /// The NetworkMessage.
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone)]
struct Item {
    connection: usize,
    writer_group: Option<usize>,
    writer: Option<usize>,
    kind: DatagramKind,
    due: Instant,
    address: Option<Range<usize>>,
    bytes: Range<usize>,
}

/// Metadata of a datagram, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct About<'a> {
    pub(crate) connection: usize,
    pub(crate) writer_group: Option<usize>,
    pub(crate) writer: Option<usize>,
    pub(crate) kind: DatagramKind,
    pub(crate) due: Instant,
    pub(crate) address: Option<&'a str>,
}

/// A list of datagrams in one buffer, which is reused after [`Transmit::clear`].
#[derive(Debug, Default)]
pub struct Transmit {
    bytes: Vec<u8>,
    items: Vec<Item>,
}

impl Transmit {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes the datagrams and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
    }

    /// Number of datagrams.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The datagrams in send order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Datagram<'_>> {
        self.items.iter().map(|item| Datagram {
            connection: item.connection,
            writer_group: item.writer_group,
            writer: item.writer,
            kind: item.kind,
            due: item.due,
            address: item.address.clone().and_then(|range| core::str::from_utf8(self.bytes.get(range)?).ok()),
            bytes: self.bytes.get(item.bytes.clone()).unwrap_or_default(),
        })
    }

    /// Appends a datagram that `write` writes after the existing bytes; if it fails, nothing is appended.
    pub(crate) fn push<E>(
        &mut self,
        about: About<'_>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        let address = about.address.map(|address| {
            self.bytes.extend_from_slice(address.as_bytes());
            start..self.bytes.len()
        });
        let first = self.bytes.len();
        if let Err(error) = write(&mut self.bytes) {
            self.bytes.truncate(start);
            return Err(error);
        }
        self.items.push(Item {
            connection: about.connection,
            writer_group: about.writer_group,
            writer: about.writer,
            kind: about.kind,
            due: about.due,
            address,
            bytes: first..self.bytes.len(),
        });
        Ok(())
    }
}
