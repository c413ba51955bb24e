//! State shared by the hosts of a world: event queue, network, and observer of the wire.

use crate::authority::Verdict;
use crate::event::{Event, Flight};
use crate::host::{Machine, MachineId};
use crate::ids::{ClientId, HostId, NodeId, ServerId};
use crate::meter::{Meter, Piece};
use crate::network::{Datagram, End, LineId, LinkId, Network, Route, Service, Side, Station};
use crate::queue::EventQueue;
use crate::trace::{Trace, Track};
use crate::violation::{Broken, Violation};
use crate::wire_check::WireCheck;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use taktwerk_crypto::SeededEntropy;
use taktwerk_server::Now;
use taktwerk_types::{Instant, UtcTime};

/// The routes of a publisher's datagrams.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ways {
    /// Its number in captures.
    pub(crate) number: u32,
    /// Its own line; `None` takes no time.
    pub(crate) line: Option<LineId>,
    /// Multicast group to which each datagram is sent once; `None` for unicast, once per leg.
    pub(crate) multicast: Option<u32>,
    /// The legs from the core of the network.
    pub(crate) legs: Vec<Leg>,
}

/// A leg from the core of the network to some subscribers.
#[derive(Debug, Clone)]
pub(crate) struct Leg {
    /// Its line; `None` takes no time.
    pub(crate) line: Option<LineId>,
    /// Subscribers, with their numbers in captures.
    pub(crate) to: Vec<(NodeId, u32)>,
}

#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) queue: EventQueue<Event>,
    pub(crate) network: Network,
    pub(crate) checks: BTreeMap<LinkId, WireCheck>,
    pub(crate) machines: Vec<Machine>,
    /// The hosts of the ends of a connection.
    pub(crate) links: BTreeMap<LinkId, [HostId; 2]>,
    /// Routes of the datagrams of publishers.
    pub(crate) ways: BTreeMap<NodeId, Ways>,
    /// Partitioned publishers and subscribers.
    pub(crate) partitioned: BTreeSet<NodeId>,
    /// Who waits for the checks of certificates that have begun.
    tickets: BTreeMap<u64, HostId>,
    next_ticket: u64,
    /// Checks that have not begun, with their askers.
    pub(crate) checks_due: VecDeque<(NodeId, u64)>,
    /// Checks that have ended.
    pub(crate) verdicts: VecDeque<(u64, Verdict)>,
    /// Wall-clock time at [`Instant::ZERO`].
    pub(crate) utc_origin: UtcTime,
    /// The first broken promise.
    pub(crate) violation: Option<Violation>,
    /// Measures the cost of work on this machine.
    pub(crate) meter: Option<Box<dyn Meter>>,
    /// Records events.
    pub(crate) trace: Option<Box<Trace>>,
}

impl Fabric {
    pub(crate) fn new(start: Instant, utc_origin: UtcTime, entropy: SeededEntropy) -> Self {
        Self {
            queue: EventQueue::new(start),
            network: Network::new(entropy),
            checks: BTreeMap::new(),
            machines: Vec::new(),
            links: BTreeMap::new(),
            ways: BTreeMap::new(),
            partitioned: BTreeSet::new(),
            tickets: BTreeMap::new(),
            next_ticket: 0,
            checks_due: VecDeque::new(),
            verdicts: VecDeque::new(),
            utc_origin,
            violation: None,
            meter: None,
            trace: None,
        }
    }

    pub(crate) fn now(&self) -> Now {
        let instant = self.queue.now();
        Now { instant, utc: self.utc_origin.plus(instant.since(Instant::ZERO)) }
    }

    /// The time on a clock that is ahead by these nanoseconds.
    pub(crate) fn now_off_by(&self, nanos: i64) -> Now {
        let Now { instant, utc } = self.now();
        Now { instant, utc: UtcTime::from_ticks(utc.ticks().saturating_add(nanos / 100)) }
    }

    pub(crate) fn machine(&mut self, id: MachineId) -> Option<&mut Machine> {
        self.machines.get_mut(id.0 as usize)
    }

    pub(crate) fn machine_and_queue(
        &mut self,
        id: MachineId,
    ) -> Option<(&mut Machine, &mut EventQueue<Event>)> {
        Some((self.machines.get_mut(id.0 as usize)?, &mut self.queue))
    }

    pub(crate) fn broken(&mut self, what: Broken) {
        let at = self.queue.now();
        self.violation.get_or_insert(Violation { at, what });
    }

    pub(crate) fn connect(&mut self, client: ClientId, server: ServerId, route: &Route) -> LinkId {
        let link = self.network.connect_hosts((client.0, server.0), route, &mut self.queue);
        self.checks.insert(link, WireCheck::default());
        self.links.insert(link, [HostId::Client(client), HostId::Server(server)]);
        link
    }

    // ---- checks of certificates

    /// Lets an asker check a certificate for a host. The verdict is reported with this ticket.
    pub(crate) fn check(&mut self, asker: NodeId, host: HostId) -> u64 {
        self.next_ticket += 1;
        self.tickets.insert(self.next_ticket, host);
        self.checks_due.push_back((asker, self.next_ticket));
        self.next_ticket
    }

    /// The host that waits for a check.
    pub(crate) fn take_ticket(&mut self, ticket: u64) -> Option<HostId> {
        self.tickets.remove(&ticket)
    }

    /// Connects a publisher or subscriber to a broker, or an asker to an authority.
    pub(crate) fn connect_node(
        &mut self,
        (service, numbers): (Service, (u32, u32)),
        [node, broker]: [NodeId; 2],
        route: &Route,
    ) -> LinkId {
        let link = self.network.connect_to(service, numbers, route, &mut self.queue);
        self.links.insert(link, [HostId::Node(node), HostId::Node(broker)]);
        if let Some(trace) = self.trace.as_mut().filter(|_| service == Service::Authority) {
            trace.set_http(link);
        }
        link
    }

    // ---- datagrams

    /// Sends a publisher's datagram to all of its subscribers.
    pub(crate) fn send_datagram(&mut self, from: NodeId, bytes: &[u8]) {
        let now = self.queue.now();
        if let Some(trace) = &mut self.trace {
            trace.datagram_sent(from, bytes.len(), now);
        }
        let Some(ways) = self.ways.get(&from) else { return };
        let legs: Vec<Option<usize>> = match ways.multicast {
            Some(_) => vec![None],
            None => (0..ways.legs.len()).map(Some).collect(),
        };
        let bytes: Rc<[u8]> = bytes.into();
        let line = ways.line;
        for leg in legs {
            let flight = Flight { from, sent: now, bytes: Rc::clone(&bytes), leg, is_down: false };
            self.put(line, Side::Client, flight);
        }
    }

    /// Forwards a datagram from the core of the network to its subscribers.
    pub(crate) fn forward(&mut self, flight: &Flight) {
        if self.partitioned.contains(&flight.from) {
            return;
        }
        let Some(ways) = self.ways.get(&flight.from) else { return };
        let own = ways.line;
        let legs: Vec<(usize, Option<LineId>)> = (0..)
            .zip(&ways.legs)
            .filter(|(at, _)| flight.leg.is_none_or(|leg| leg == *at))
            .map(|(at, leg)| (at, leg.line))
            .collect();
        for (at, line) in legs {
            // On a shared medium, subscribers have already received it.
            let is_heard = line.is_some_and(|line| Some(line) == own && self.network.is_half_duplex(line));
            let flight = Flight { leg: Some(at), is_down: true, ..flight.clone() };
            self.put(line.filter(|_| !is_heard), Side::Server, flight);
        }
    }

    fn put(&mut self, line: Option<LineId>, side: Side, flight: Flight) {
        let at = self.queue.now();
        let Some(line) = line else { return self.queue.schedule(at, Event::Datagram(flight)) };
        let Some(ways) = self.ways.get(&flight.from) else { return };
        let leg = flight.leg.and_then(|leg| ways.legs.get(leg));
        let to = match (ways.multicast, leg.and_then(|leg| leg.to.first())) {
            (None, Some((_, number))) => Station::Subscriber(*number),
            (group, _) => Station::Multicast(group.unwrap_or_default()),
        };
        let from = Station::Publisher(ways.number);
        let datagram = Datagram { at, line, from, to, payload: &flight.bytes };
        if let Some((at, is_doubled)) = self.network.send_datagram(side, &datagram) {
            if is_doubled {
                self.queue.schedule(at, Event::Datagram(flight.clone()));
            }
            self.queue.schedule(at, Event::Datagram(flight));
        }
    }

    pub(crate) fn write(&mut self, end: End, bytes: &[u8]) -> usize {
        let taken = self.network.write(end, bytes, &mut self.queue);
        let sent = bytes.get(..taken).unwrap_or_default();
        if let Some(check) = self.checks.get_mut(&end.link)
            && let Err(fault) = check.sent(end.side, sent, self.queue.now())
        {
            self.broken(Broken::Wire { link: end.link, side: end.side, fault });
        }
        if let Some(trace) = self.trace.as_mut().filter(|_| taken > 0)
            && let Some(hosts) = self.links.get(&end.link)
        {
            trace.sent(end, *hosts, bytes.get(..taken).unwrap_or_default(), self.queue.now());
        }
        taken
    }

    pub(crate) fn read(&mut self, end: End, into: &mut Vec<u8>) {
        let before = into.len();
        self.network.read(end, usize::MAX, into, &mut self.queue);
        let len = into.len().saturating_sub(before);
        if let Some(trace) = self.trace.as_mut().filter(|_| len > 0)
            && let Some(hosts) = self.links.get(&end.link)
        {
            trace.received(end, *hosts, len, self.queue.now());
        }
    }

    pub(crate) fn close(&mut self, end: End) {
        self.network.close(end, &mut self.queue);
        self.checks.remove(&end.link);
        self.forget_dead(end.link);
    }

    pub(crate) fn reset(&mut self, end: End) {
        self.network.reset(end, &mut self.queue);
        self.checks.remove(&end.link);
        self.forget_dead(end.link);
    }

    /// Removes a connection without sockets.
    pub(crate) fn forget_dead(&mut self, link: LinkId) {
        if !self.network.is_alive(link) {
            self.links.remove(&link);
            if let Some(trace) = &mut self.trace {
                trace.forget(link);
            }
        }
    }

    // ---- the meter, if there is one

    pub(crate) fn meter_begin(&mut self) {
        if let Some(meter) = &mut self.meter {
            meter.begin();
        }
    }

    pub(crate) fn meter_end(&mut self, piece: Piece<'_>) {
        if let Some(meter) = &mut self.meter {
            meter.end(piece);
        }
    }

    // ---- the trace, if there is one

    pub(crate) fn trace_begin(&mut self, track: Track, name: &str) {
        if let Some(trace) = &mut self.trace {
            trace.begin(track, name, self.queue.now());
        }
    }

    pub(crate) fn trace_end(&mut self, track: Track) {
        if let Some(trace) = &mut self.trace {
            trace.end(track, self.queue.now());
        }
    }

    pub(crate) fn trace_end_all(&mut self, track: Track) {
        if let Some(trace) = &mut self.trace {
            trace.end_all(track, self.queue.now());
        }
    }
}
