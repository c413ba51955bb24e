//! How messages come in: one inlet per address that is listened at.

use super::address::Address;
use super::ethernet::EthernetReceiver;
use super::interface::Interface;
use super::udp::UdpReceiver;
use super::{PubSubError, link};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use taktwerk_pubsub::config::Connection;

/// What is left to be done when something is closed, and may take its time.
pub type Closing = Box<dyn FnOnce() + Send>;

/// Something that messages are received from, in one thread.
pub trait Inlet {
    /// Readable when messages wait.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Hands over messages that wait, a bounded number. True: there may be more.
    ///
    /// # Errors
    /// It is broken and will give nothing any more.
    fn receive(&mut self, take: &mut dyn FnMut(&mut [u8])) -> io::Result<bool>;

    /// Closes it while its thread has other things to do. Gives what cannot be done at once.
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

/// Whether what one connection needs to receive will do for another.
#[must_use]
pub fn receives_alike(one: &Connection, other: &Connection) -> bool {
    // Topics are made of settings of all that is below.
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

/// Opens what a connection's data is received from.
pub(crate) fn open(connection: &Connection) -> Result<Box<dyn Inlet>, PubSubError> {
    let interface = Interface::find(&connection.network_interface)?;
    match Address::parse(&connection.url)? {
        Address::Udp(at) => Ok(Box::new(UdpReceiver::new(at, &interface)?)),
        Address::Ethernet { mac, .. } => Ok(Box::new(EthernetReceiver::new(mac, &interface)?)),
        Address::Broker(url) => Err(PubSubError::address(
            &url,
            "a broker's connection needs its client; build with the feature mqtt",
        )),
    }
}

/// Opens what discovery messages of a connection are received from; `None` if they come where the data comes.
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
