use super::super::broker::{Broker, BrokerLimits};
use super::super::figures::BrokerFigures;
use super::*;
use crate::network::{LinkId, Network, Route};
use crate::queue::EventQueue;
use core::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use taktwerk_crypto::SeededEntropy;

/// Clients and a broker between which bytes arrive immediately.
struct Pair {
    broker: Broker,
    figures: Rc<RefCell<BrokerFigures>>,
    sessions: Vec<(Session, Option<LinkId>)>,
    links: VecDeque<LinkId>,
    now: Instant,
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// Connection ids. Normally only a network assigns them.
fn links() -> VecDeque<LinkId> {
    let mut network = Network::new(SeededEntropy::new(1));
    let mut queue = EventQueue::<crate::event::Event>::new(at(0));
    (0..20).map(|_| network.connect(&Route::default(), &mut queue)).collect()
}

impl Pair {
    fn new(limits: BrokerLimits) -> Self {
        let figures = Rc::new(RefCell::new(BrokerFigures::default()));
        let broker = Broker::new(limits, Rc::clone(&figures));
        Self { broker, figures, sessions: Vec::new(), links: links(), now: at(0) }
    }

    fn client(&mut self, name: &str, filters: &[(&str, QoS)], is_clean: bool) -> usize {
        let filters = filters.iter().map(|(filter, qos)| ((*filter).to_owned(), *qos)).collect();
        let keep_alive = Duration::from_secs(10);
        let settings = Settings { name: name.to_owned(), filters, is_clean, keep_alive };
        self.sessions.push((Session::new(settings, self.now), None));
        self.run();
        self.sessions.len() - 1
    }

    fn publish(&mut self, client: usize, topic: &str, qos: QoS, payload: &[u8]) {
        let (session, _) = &mut self.sessions[client];
        session.publish(Publish::new(topic, qos, payload));
        let step = session.pump(self.now);
        assert_eq!(step, Step::Nothing);
        self.run();
    }

    fn received(&mut self, client: usize) -> Vec<Vec<u8>> {
        core::iter::from_fn(|| self.sessions[client].0.poll_received()).map(|bytes| bytes.to_vec()).collect()
    }

    /// Breaks the connection; neither end receives what was in transit.
    fn cut(&mut self, client: usize) {
        let (session, link) = &mut self.sessions[client];
        session.closed(self.now);
        if let Some(link) = link.take() {
            self.broker.closed(link);
        }
    }

    fn wait(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
        self.run();
    }

    /// Does everything that is due at this time.
    fn run(&mut self) {
        let now = self.now;
        self.broker.handle_timeout(now);
        let mut moves_on = true;
        while core::mem::take(&mut moves_on) {
            for (session, link) in &mut self.sessions {
                if session.poll_timeout().is_some_and(|at| at <= now) {
                    moves_on = true;
                    match session.handle_timeout(now) {
                        Step::Connect => {
                            let new = self.links.pop_front().unwrap();
                            *link = Some(new);
                            self.broker.accepted(new, now);
                            session.connected(now);
                        }
                        Step::Close => self.broker.closed(link.take().unwrap()),
                        Step::Nothing => {}
                    }
                }
                let Some(open) = *link else { continue };
                let sent = core::mem::take(session.transmit());
                if !sent.is_empty() {
                    moves_on = true;
                    self.broker.receive(open, &sent, now);
                    session.transmitted(now);
                }
                let answer = self.broker.transmit(open).map(core::mem::take).unwrap_or_default();
                if !answer.is_empty() {
                    moves_on = true;
                    self.broker.transmitted(open);
                    if session.receive(&answer, now) == Step::Close {
                        self.broker.closed(open);
                        *link = None;
                    }
                }
            }
            while let Some(closed) = self.broker.poll_close() {
                moves_on = true;
                for (session, link) in self.sessions.iter_mut().filter(|(_, link)| *link == Some(closed)) {
                    *link = None;
                    session.closed(now);
                }
            }
        }
    }
}

const ONE: QoS = QoS::AtLeastOnce;
const ZERO: QoS = QoS::AtMostOnce;

#[test]
fn messages_go_to_all_whose_filters_match() {
    let mut pair = Pair::new(BrokerLimits::default());
    let all = pair.client("all", &[("a/#", ONE)], false);
    let one = pair.client("one", &[("a/+/x", ZERO), ("a/1/x", ZERO)], true);
    let publisher = pair.client("publisher", &[], false);
    assert!(pair.sessions.iter().all(|(session, _)| session.is_up()));
    pair.publish(publisher, "a/1/x", ONE, b"1");
    pair.publish(publisher, "a/1/y", ONE, b"2");
    pair.publish(publisher, "b", ONE, b"3");
    assert_eq!(pair.received(all), [b"1".to_vec(), b"2".to_vec()]);
    // Only once, although two of its filters match.
    assert_eq!(pair.received(one), [b"1".to_vec()]);
    let figures = pair.figures.borrow();
    assert_eq!((figures.received, figures.sent, figures.dropped), (3, 3, 0));
}

#[test]
fn retained_messages_come_with_the_subscription() {
    let mut pair = Pair::new(BrokerLimits::default());
    let publisher = pair.client("publisher", &[], false);
    for payload in [&b"old"[..], b"new"] {
        let (session, _) = &mut pair.sessions[publisher];
        session.publish(Publish { retain: true, ..Publish::new("m/1", ONE, payload) });
        session.pump(pair.now);
        pair.run();
    }
    let late = pair.client("late", &[("m/#", ONE)], false);
    assert_eq!(pair.received(late), [b"new".to_vec()]);
}

#[test]
fn a_session_keeps_messages_published_while_disconnected() {
    let mut pair = Pair::new(BrokerLimits { queue: 3, in_flight: 20 });
    let reader = pair.client("reader", &[("t", ONE)], false);
    let passer = pair.client("passer", &[("t", ONE)], true);
    let publisher = pair.client("publisher", &[], false);
    pair.cut(reader);
    pair.cut(passer);
    for payload in 0..5u8 {
        pair.publish(publisher, "t", ONE, &[payload]);
    }
    // Messages without acknowledgement are not kept.
    pair.publish(publisher, "t", ZERO, b"lost");
    assert_eq!(pair.figures.borrow().dropped_of.get("reader"), Some(&2));
    pair.wait(100);
    assert_eq!(pair.received(reader), [[0], [1], [2]]);
    assert!(pair.received(passer).is_empty());
    assert_eq!(pair.figures.borrow().queue_max, 3);
    pair.publish(publisher, "t", ONE, b"9");
    assert_eq!((pair.received(reader), pair.received(passer)), (vec![b"9".to_vec()], vec![b"9".to_vec()]));
}

#[test]
fn unacknowledged_messages_are_repeated_in_order() {
    let mut pair = Pair::new(BrokerLimits { queue: 100, in_flight: 2 });
    let publisher = pair.client("publisher", &[], false);
    let reader = pair.client("reader", &[("t", ONE)], false);
    let link = pair.sessions[reader].1.unwrap();
    // The broker sends two messages and waits for their acknowledgements, which never arrive.
    for payload in 0..4u8 {
        let (session, open) = &mut pair.sessions[publisher];
        session.publish(Publish::new("t", ONE, [payload]));
        session.pump(pair.now);
        let sent = core::mem::take(session.transmit());
        pair.broker.receive(open.unwrap(), &sent, pair.now);
    }
    let lost = core::mem::take(pair.broker.transmit(link).unwrap());
    assert!(lost.len() < 4 * 6 && !lost.is_empty());
    pair.cut(reader);
    pair.wait(100);
    assert_eq!(pair.received(reader), [[0], [1], [2], [3]]);
    assert_eq!((pair.figures.borrow().repeated, pair.figures.borrow().dropped), (2, 0));
}

#[test]
fn a_publisher_repeats_messages_that_the_broker_has_not_acknowledged() {
    let mut pair = Pair::new(BrokerLimits::default());
    let reader = pair.client("reader", &[("t", ONE)], false);
    let publisher = pair.client("publisher", &[], false);
    // The message is sent but never arrives.
    let (session, _) = &mut pair.sessions[publisher];
    session.publish(Publish::new("t", ONE, *b"1"));
    session.pump(pair.now);
    session.transmit().clear();
    pair.cut(publisher);
    pair.publish(publisher, "t", ONE, b"2");
    assert!(pair.received(reader).is_empty());
    pair.wait(100);
    assert_eq!(pair.received(reader), [b"1", b"2"]);
    assert_eq!((pair.sessions[publisher].0.connections, pair.sessions[publisher].0.forgotten), (2, 0));
    // The broker has lost the session: pending messages are lost with it, and counted.
    let (session, _) = &mut pair.sessions[publisher];
    session.publish(Publish::new("t", ONE, *b"3"));
    session.pump(pair.now);
    session.transmit().clear();
    pair.cut(publisher);
    pair.broker = Broker::new(BrokerLimits::default(), Rc::clone(&pair.figures));
    pair.cut(reader);
    pair.wait(5_000);
    assert_eq!((pair.received(reader).len(), pair.sessions[publisher].0.forgotten), (0, 1));
}

#[test]
fn a_silent_peer_is_detected() {
    let mut pair = Pair::new(BrokerLimits::default());
    let client = pair.client("client", &[("t", ONE)], false);
    // Pings are answered.
    for _ in 0..10 {
        pair.wait(10_000);
        assert!(pair.sessions[client].0.is_up());
    }
    // From now on nothing gets through: the broker disconnects after one and a half intervals, the client at its second
    // ping.
    pair.sessions[client].0.transmit().clear();
    pair.now = pair.now + Duration::from_millis(15_001);
    pair.broker.handle_timeout(pair.now);
    assert!(pair.broker.poll_close().is_some());
    assert_eq!((pair.figures.borrow().silent, pair.broker.connections()), (1, 0));
    let (session, _) = &mut pair.sessions[client];
    assert_eq!(session.handle_timeout(pair.now), Step::Nothing);
    session.transmitted(pair.now);
    session.transmit().clear();
    session.transmitted(pair.now);
    let later = pair.now + Duration::from_secs(10);
    assert_eq!(session.handle_timeout(later), Step::Close);
    assert_eq!(session.poll_timeout(), Some(later + PAUSE));
}

#[test]
fn a_blocked_socket_ends_the_connection() {
    let mut pair = Pair::new(BrokerLimits::default());
    let client = pair.client("client", &[], true);
    let (session, _) = &mut pair.sessions[client];
    session.publish(Publish::new("t", ZERO, [7; 100]));
    session.pump(pair.now);
    assert_eq!(session.poll_timeout(), Some(pair.now + TIMEOUT));
    assert_eq!(session.handle_timeout(pair.now + TIMEOUT), Step::Close);
    assert!(!session.is_up());
}

#[test]
fn messages_dropped_from_a_full_queue_are_counted() {
    let settings = Settings {
        name: "p".to_owned(),
        filters: vec![],
        is_clean: true,
        keep_alive: Duration::from_secs(1),
    };
    let mut session = Session::new(settings, at(0));
    for _ in 0..OUTBOX + IN_HAND + 7 {
        session.publish(Publish::new("t", ZERO, *b"x"));
    }
    assert_eq!((session.dropped, session.outbox.len(), session.in_hand.len()), (7, OUTBOX, IN_HAND));
    // Of retained messages, only the newest one waits.
    for _ in 0..3 {
        session.publish(Publish { retain: true, ..Publish::new("m", ZERO, *b"m") });
    }
    assert_eq!((session.dropped, session.outbox.len()), (8, OUTBOX));
}
