//! A publisher: the engine with its values and its transport.

use super::application::Complaints;
use super::engine_now;
use super::figures::PublisherFigures;
use super::keys::Keys;
use super::nonces::Nonces;
use super::output::Effort;
use super::session::{Session, Step};
use crate::signals::{Rhythm, value};
use core::cell::{Cell, RefCell};
use rumqttc::{Publish, QoS};
use std::collections::VecDeque;
use std::rc::Rc;
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_pubsub::{DatagramKind, Publisher, PublisherEvent, Transmit, Values};
use taktwerk_server::Now;
use taktwerk_types::{DataValue, Instant};

/// The values of a publisher's sensors, by data set.
#[derive(Debug, Clone)]
pub(crate) struct Sensors {
    pub(crate) data_sets: Rc<[Rhythm]>,
    /// The sensors deliver no new values after this time.
    pub(crate) until: Rc<Cell<Instant>>,
    /// Number of sampled fields, for the cost calculation.
    sampled: u64,
}

impl Sensors {
    pub(crate) fn new(data_sets: Rc<[Rhythm]>, until: Rc<Cell<Instant>>) -> Self {
        Self { data_sets, until, sampled: 0 }
    }
}

impl Values for Sensors {
    fn sample(&mut self, data_set: usize, fields: &mut [DataValue], now: taktwerk_pubsub::Now) -> bool {
        self.sampled += fields.len() as u64;
        let Some(rhythm) = self.data_sets.get(data_set) else { return false };
        let number = rhythm.newest(now.instant.min(self.until.get()));
        let value = DataValue::new(value(rhythm.value_len, number));
        fields.iter_mut().for_each(|field| *field = value.clone());
        true
    }
}

/// What an MQTT publisher publishes to which topic.
#[derive(Debug, Clone)]
pub(crate) struct Topics {
    pub(crate) qos: QoS,
    pub(crate) data: String,
    /// By DataSetWriter.
    pub(crate) meta_data: Vec<String>,
}

/// What stays the same over all runs of a publisher's process.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) mode: SecurityMode,
    pub(crate) keys: Rc<RefCell<Keys>>,
    pub(crate) nonces: Rc<RefCell<Nonces>>,
    pub(crate) figures: Rc<RefCell<PublisherFigures>>,
    pub(crate) complaints: Complaints,
    pub(crate) topics: Option<Rc<Topics>>,
}

/// A publisher.
pub(crate) struct PublisherNode {
    engine: Publisher,
    sensors: Sensors,
    shared: Shared,
    session: Option<Box<Session>>,
    datagrams: VecDeque<Vec<u8>>,
    out: Transmit,
    /// Number of connections for which metadata was announced.
    announced: u64,
    /// The session's counters that were already reported.
    told: (u64, u64, u64),
    effort: Effort,
}

impl core::fmt::Debug for PublisherNode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PublisherNode").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl PublisherNode {
    /// A process that starts now and has its first cycle at `start`.
    pub(crate) fn new(
        mut engine: Publisher,
        sensors: Sensors,
        shared: Shared,
        session: Option<Session>,
        start: Instant,
        now: Now,
    ) -> Self {
        shared.figures.borrow_mut().lives += 1;
        engine.start(start, engine_now(now));
        let mut node = Self {
            engine,
            sensors,
            shared,
            session: session.map(Box::new),
            datagrams: VecDeque::new(),
            out: Transmit::new(),
            announced: 0,
            told: (0, 0, 0),
            effort: Effort::default(),
        };
        node.look_for_keys(now);
        node
    }

    pub(crate) fn take_effort(&mut self) -> Effort {
        self.effort.server.items_walked += core::mem::take(&mut self.sensors.sampled);
        core::mem::take(&mut self.effort)
    }

    pub(crate) fn session(&mut self) -> Option<&mut Session> {
        self.session.as_deref_mut()
    }

    /// The next datagram to be sent.
    pub(crate) fn poll_datagram(&mut self) -> Option<Vec<u8>> {
        self.datagrams.pop_front()
    }

    /// Handles bytes from the broker: acknowledgements.
    pub(crate) fn receive(&mut self, bytes: &[u8], now: Now) -> Step {
        self.effort.took(bytes.len());
        let Some(session) = &mut self.session else { return Step::Nothing };
        let before = session.packets_received;
        let step = session.receive(bytes, now.instant);
        self.effort.server.chunks_received += session.packets_received - before;
        // After a new connection, retained metadata may be lost.
        if core::mem::replace(&mut self.announced, session.connections) != session.connections {
            self.engine.announce(0, engine_now(now));
        }
        self.count();
        step
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let keys = self.engine.key_timeout().filter(|_| self.shared.mode != SecurityMode::None);
        let session = self.session.as_ref().and_then(|session| session.poll_timeout());
        self.engine.poll_timeout().into_iter().chain(keys).chain(session).min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Now) -> Step {
        self.look_for_keys(now);
        self.out.clear();
        self.engine.poll(engine_now(now), &mut self.sensors, &mut self.out);
        self.send();
        while let Some(event) = self.engine.poll_event() {
            let mut figures = self.shared.figures.borrow_mut();
            match event {
                PublisherEvent::Missed { cycles, .. } => figures.missed_cycles += cycles,
                PublisherEvent::TooLarge { .. } => figures.too_large += 1,
                _ => {}
            }
        }
        let Some(session) = &mut self.session else { return Step::Nothing };
        let step = match session.handle_timeout(now.instant) {
            Step::Nothing => session.pump(now.instant),
            step => step,
        };
        self.count();
        step
    }

    /// Passes what the engine has created to the transport.
    fn send(&mut self) {
        let is_uadp = self.shared.topics.is_none() || self.session.is_none();
        for datagram in self.out.iter() {
            let mut figures = self.shared.figures.borrow_mut();
            figures.messages += 1;
            figures.bytes += datagram.bytes.len() as u64;
            self.effort.server.chunks_sent += 1;
            self.effort.server.bytes_sent += datagram.bytes.len() as u64;
            let is_secured = self.shared.mode != SecurityMode::None;
            self.effort.server.signatures += u64::from(is_secured);
            if (is_uadp || is_secured)
                && let Err(problem) = self.shared.nonces.borrow_mut().sent(datagram.bytes, self.shared.mode)
            {
                let text = format!("{}: {problem}", self.shared.name);
                self.shared.complaints.borrow_mut().get_or_insert(text);
            }
            let (Some(session), Some(topics)) = (&mut self.session, &self.shared.topics) else {
                self.datagrams.push_back(datagram.bytes.to_vec());
                continue;
            };
            let meta_data = || topics.meta_data.get(datagram.writer?).map(String::as_str);
            let (topic, retain) = match datagram.kind {
                DatagramKind::Data => (Some(topics.data.as_str()), false),
                DatagramKind::MetaData => (meta_data(), true),
                _ => (None, false),
            };
            let Some(topic) = topic else { continue };
            let mut publish = Publish::new(topic, topics.qos, datagram.bytes);
            publish.retain = retain;
            session.publish(publish);
        }
    }

    /// Counts what the session has lost since the last call.
    fn count(&mut self) {
        let Some(session) = &self.session else { return };
        let mut figures = self.shared.figures.borrow_mut();
        figures.dropped += session.dropped - self.told.0;
        figures.forgotten += session.forgotten - self.told.1;
        figures.connections += session.connections - self.told.2;
        self.told = (session.dropped, session.forgotten, session.connections);
    }

    fn look_for_keys(&mut self, now: Now) {
        if self.shared.mode == SecurityMode::None {
            return;
        }
        while let Some(request) = self.engine.poll_key_request(engine_now(now)) {
            let answer = self.shared.keys.borrow_mut().answer(&request, now.instant);
            let answer = answer.as_ref().map_err(|status| *status);
            // Without keys the group does not run, which is visible because nothing arrives.
            let _ = self.engine.set_keys(&request.security_group_id, answer, engine_now(now));
        }
    }
}
