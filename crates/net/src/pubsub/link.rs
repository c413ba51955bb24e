//! Sending messages: one link per connection of the configuration.

use super::address::{Address, DISCOVERY_URL};
use super::ethernet::EthernetSender;
use super::interface::Interface;
use super::udp::{Sent, UdpOptions, UdpSender};
use super::{PubSubError, ethernet};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use taktwerk_pubsub::config::{Connection, ConnectionTransport, WriterGroup, WriterGroupTransport};
use taktwerk_pubsub::{Datagram, DatagramKind, Transmit};
use taktwerk_schema::NetworkAddressUrlDataType;
use taktwerk_types::ExtensionObject;

/// Maximum datagrams with the same target that are sent together.
const TOGETHER: usize = 32;
/// Maximum number of remembered addresses of Action requestors.
const OTHERS_MAX: usize = 64;

/// Sends the messages of one connection.
pub trait Link: Send {
    /// Sends the connection's messages in `out`, in order. `at` is the send time on the monotonic clock in nanoseconds,
    /// for links that can delay sending by themselves.
    fn send(&mut self, connection: usize, out: &Transmit, at: Option<u64>) -> Sent;

    /// Messages of the last call that were not sent, by the position of their WriterGroup. Read only after failures.
    fn failures(&self) -> &[(usize, u64)] {
        &[]
    }

    /// Whether metadata has to be announced now without a request: once after each connection to a broker.
    fn wants_announcement(&mut self) -> bool {
        false
    }

    /// Whether [`Self::wants_announcement`] may ever return true. Then it is called every 20 ms, for which the timer
    /// thread wakes.
    fn may_announce(&self) -> bool {
        true
    }
}

/// Counts messages of a WriterGroup that were not sent. Discovery messages belong to no group and are not counted.
pub(crate) fn count_failed(failures: &mut Vec<(usize, u64)>, group: Option<usize>, messages: usize) {
    let Some(group) = group.filter(|_| messages > 0) else { return };
    match failures.iter_mut().find(|(of, _)| *of == group) {
        Some((_, count)) => *count += messages as u64,
        None => failures.push((group, messages as u64)),
    }
}

/// The URL in a NetworkAddressUrlDataType.
pub(crate) fn address_url(object: &ExtensionObject) -> Option<NetworkAddressUrlDataType> {
    let address = object.decode::<NetworkAddressUrlDataType>().ok()?;
    (!address.url.is_empty()).then_some(address)
}

/// The discovery address of a connection.
pub(crate) fn discovery_url(connection: &Connection) -> String {
    let address = match &connection.transport {
        ConnectionTransport::Datagram(transport) => address_url(&transport.discovery_address),
        ConnectionTransport::Datagram2(transport) => address_url(&transport.discovery_address),
        _ => None,
    };
    address.map_or_else(|| DISCOVERY_URL.to_owned(), |address| address.url.as_str().to_owned())
}

/// Whether two connections send the same way, so that one link serves the other configuration.
#[must_use]
pub fn sends_alike(one: &Connection, other: &Connection) -> bool {
    // Topics depend on names, ids and settings of groups and writers, too.
    if one.url.starts_with("mqtt") {
        let sending = |connection: &Connection| {
            let mut sending = Connection {
                enabled: true,
                reader_groups: Vec::new(),
                properties: Vec::new(),
                ..connection.clone()
            };
            for group in &mut sending.writer_groups {
                group.enabled = true;
                group.writers.iter_mut().for_each(|writer| writer.enabled = true);
            }
            sending
        };
        return sending(one) == sending(other);
    }
    let way = |connection: &Connection| {
        let groups = connection.writer_groups.iter().map(|group| group.transport.clone());
        (
            connection.url.clone(),
            connection.network_interface.clone(),
            discovery_url(connection),
            groups.collect::<Vec<_>>(),
            connection.writer_groups.is_empty(),
        )
    };
    way(one) == way(other)
}

/// Opens the link of a connection without a broker.
pub(crate) fn open(connection: &Connection, options: &UdpOptions) -> Result<Box<dyn Link>, PubSubError> {
    let interface = Interface::find(&connection.network_interface)?;
    match Address::parse(&connection.url)? {
        Address::Udp(address) => {
            Ok(Box::new(UdpLink::open(connection, UdpSender::new(address, &interface, options)?, options)?))
        }
        Address::Ethernet { mac, vlan } => {
            let sender = EthernetSender::new(mac, vlan, &interface)?;
            Ok(Box::new(ethernet::EthernetLink::new(sender)))
        }
        Address::Broker(url) => Err(PubSubError::address(
            &url,
            "a broker connection needs an MQTT client; build with the feature mqtt",
        )),
    }
}

/// A UDP connection: senders for its own address, those of its groups, the discovery address, and those of Action
/// requestors.
struct UdpLink {
    data: UdpSender,
    groups: Vec<Option<UdpSender>>,
    discovery: Option<UdpSender>,
    others: BTreeMap<String, Option<UdpSender>>,
    options: UdpOptions,
    failures: Vec<(usize, u64)>,
}

impl UdpLink {
    fn open(connection: &Connection, data: UdpSender, options: &UdpOptions) -> Result<Self, PubSubError> {
        let groups = connection.writer_groups.iter().map(|group| group_sender(connection, group, options));
        let groups = groups.collect::<Result<Vec<_>, _>>()?;
        // Without discovery, data is still sent.
        let discovery = match sender(&discovery_url(connection), &connection.network_interface, options) {
            Ok(sender) => Some(sender),
            Err(error) => {
                tracing::warn!(connection = connection.name, %error, "cannot open the discovery address: discovery messages are sent with the data");
                None
            }
        };
        Ok(Self {
            data,
            groups,
            discovery,
            others: BTreeMap::new(),
            options: options.clone(),
            failures: Vec::new(),
        })
    }

    fn target(&mut self, datagram: &Datagram<'_>) -> Option<&UdpSender> {
        if let Some(url) = datagram.address {
            if self.others.len() >= OTHERS_MAX && !self.others.contains_key(url) {
                self.others.clear();
            }
            let options = &self.options;
            let other = self.others.entry(url.to_owned()).or_insert_with(|| sender(url, "", options).ok());
            return other.as_ref();
        }
        match datagram.kind {
            DatagramKind::MetaData
            | DatagramKind::Announcement
            | DatagramKind::Probe
            | DatagramKind::ActionMetaData
            | DatagramKind::ActionResponder => Some(self.discovery.as_ref().unwrap_or(&self.data)),
            _ => {
                let group = datagram.writer_group.and_then(|group| self.groups.get(group)?.as_ref());
                Some(group.unwrap_or(&self.data))
            }
        }
    }
}

fn group_sender(
    connection: &Connection,
    group: &WriterGroup,
    options: &UdpOptions,
) -> Result<Option<UdpSender>, PubSubError> {
    let WriterGroupTransport::Datagram2(transport) = &group.transport else { return Ok(None) };
    let Some(address) = address_url(&transport.address) else { return Ok(None) };
    let interface = match address.network_interface.as_str() {
        "" => connection.network_interface.as_str(),
        own => own,
    };
    sender(address.url.as_str(), interface, options).map(Some)
}

fn sender(url: &str, interface: &str, options: &UdpOptions) -> Result<UdpSender, PubSubError> {
    match Address::parse(url)? {
        Address::Udp(address) => UdpSender::new(address, &Interface::find(interface)?, options),
        _ => Err(PubSubError::address(url, "a UDP connection sends to opc.udp:// only")),
    }
}

impl Link for UdpLink {
    fn may_announce(&self) -> bool {
        false
    }

    fn send(&mut self, connection: usize, out: &Transmit, at: Option<u64>) -> Sent {
        let mut sent = Sent::default();
        self.failures.clear();
        let mut datagrams = out.iter().filter(|datagram| datagram.connection == connection).peekable();
        while let Some(first) = datagrams.next() {
            let mut together: SmallVec<[&[u8]; TOGETHER]> = SmallVec::new();
            together.push(first.bytes);
            while together.len() < TOGETHER
                && let Some(next) = datagrams.next_if(|next| {
                    (next.kind, next.writer_group, next.address)
                        == (first.kind, first.writer_group, first.address)
                })
            {
                together.push(next.bytes);
            }
            let these = match self.target(&first) {
                Some(sender) => sender.send(&together, at),
                None => Sent { failed: together.len(), ..Sent::default() },
            };
            count_failed(&mut self.failures, first.writer_group, these.failed);
            sent.add(these);
        }
        sent
    }

    fn failures(&self) -> &[(usize, u64)] {
        &self.failures
    }
}
