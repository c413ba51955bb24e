//! Receiving messages: one inlet per address.

use super::address::Address;
use super::ethernet::EthernetReceiver;
use super::interface::Interface;
use super::udp::UdpReceiver;
use super::{PubSubError, link};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use taktwerk_pubsub::config::Connection;

/// The slow rest of closing something.
pub type Closing = Box<dyn FnOnce() + Send>;

/// A source of messages that one thread receives from.
pub trait Inlet {
    /// Readable when messages are waiting.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Passes waiting messages to `take`, a bounded number. True if there may be more.
    ///
    /// # Errors
    /// The inlet failed and will give no more messages.
    fn receive(&mut self, take: &mut dyn FnMut(&mut [u8])) -> io::Result<bool>;

    /// Closes it without blocking. Returns the part that may take time.
    fn close(self: Box<Self>) -> Option<Closing> {
        None
    }
}

impl Inlet for UdpReceiver {
    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    fn receive(&mut self, take: &mut dyn FnMut(&mut [u8])) -> io::Result<bool> {
        let batch = self.batch();
        Ok(UdpReceiver::receive(self, take)? == batch)
    }
}

impl Inlet for EthernetReceiver {
    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    fn receive(&mut self, take: &mut dyn FnMut(&mut [u8])) -> io::Result<bool> {
        EthernetReceiver::receive(self, take)
    }
}

/// Whether two connections receive the same way, so that one inlet serves the other configuration.
#[must_use]
pub fn receives_alike(one: &Connection, other: &Connection) -> bool {
    // Topics depend on settings of groups and readers, too.
    if one.url.starts_with("mqtt") {
        let receiving = |connection: &Connection| {
            let mut receiving = Connection {
                enabled: true,
                writer_groups: Vec::new(),
                properties: Vec::new(),
                ..connection.clone()
            };
            for group in &mut receiving.reader_groups {
                group.enabled = true;
                for reader in &mut group.readers {
                    reader.enabled = true;
                    reader.subscribed_data_set = Default::default();
                }
            }
            receiving
        };
        return receiving(one) == receiving(other);
    }
    let way = |connection: &Connection| {
        (
            connection.url.clone(),
            connection.network_interface.clone(),
            link::discovery_url(connection),
            connection.reader_groups.is_empty(),
        )
    };
    way(one) == way(other)
}

/// Opens the inlet for a connection's data.
pub(crate) fn open(connection: &Connection) -> Result<Box<dyn Inlet>, PubSubError> {
    let interface = Interface::find(&connection.network_interface)?;
    match Address::parse(&connection.url)? {
        Address::Udp(at) => Ok(Box::new(UdpReceiver::new(at, &interface)?)),
        Address::Ethernet { mac, .. } => Ok(Box::new(EthernetReceiver::new(mac, &interface)?)),
        Address::Broker(url) => Err(PubSubError::address(
            &url,
            "a broker connection needs an MQTT client; build with the feature mqtt",
        )),
    }
}

/// Opens the inlet for a connection's discovery messages; `None` if they arrive with the data.
pub(crate) fn open_discovery(connection: &Connection) -> Result<Option<Box<dyn Inlet>>, PubSubError> {
    let Address::Udp(data) = Address::parse(&connection.url)? else { return Ok(None) };
    let url = link::discovery_url(connection);
    let Address::Udp(at) = Address::parse(&url)? else {
        return Err(PubSubError::address(
            &url,
            "the discovery address of a UDP connection is opc.udp:// too",
        ));
    };
    if at == data {
        return Ok(None);
    }
    Ok(Some(Box::new(UdpReceiver::new(at, &Interface::find(&connection.network_interface)?)?)))
}
