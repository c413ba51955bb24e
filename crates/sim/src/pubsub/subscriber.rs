//! A subscriber: the engine with its transport, and an application that receives the values.

use super::application::Application;
use super::engine_now;
use super::keys::Keys;
use super::output::Effort;
use super::session::{Session, Step};
use core::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use taktwerk_pubsub::state::PubSubState;
use taktwerk_pubsub::subscriber::SubscriberCounters;
use taktwerk_pubsub::uadp::DataSetMessageKind;
use taktwerk_pubsub::uadp::fields::ReceivedField;
use taktwerk_pubsub::{DataSetMessage, Sink, Subscriber, SubscriberEvent, Transmit};
use taktwerk_server::Now;
use taktwerk_types::Instant;

/// What the engine has decoded and the application has not received yet.
#[derive(Debug)]
enum Got {
    Message { at: (usize, usize), kind: DataSetMessageKind, missing: u32, fields: Vec<ReceivedField> },
    State { at: (usize, usize), is_error: bool },
}

#[derive(Debug, Default)]
struct Catch {
    got: VecDeque<Got>,
    fields: u64,
    /// Readers that are in the state Error.
    errors: BTreeSet<(usize, usize)>,
}

impl Sink for Catch {
    fn message(&mut self, message: &DataSetMessage<'_>) {
        self.fields += message.fields.len() as u64;
        self.got.push_back(Got::Message {
            at: (message.reader.group, message.reader.reader),
            kind: message.kind,
            missing: message.missing,
            fields: message.fields.to_vec(),
        });
    }

    fn event(&mut self, event: SubscriberEvent) {
        let SubscriberEvent::State { reader, state } = event else { return };
        let at = (reader.group, reader.reader);
        let is_error = state == PubSubState::ERROR;
        if is_error && self.errors.insert(at) || !is_error && self.errors.remove(&at) {
            self.got.push_back(Got::State { at, is_error });
        }
    }
}

/// A subscriber.
#[derive(Debug)]
pub(crate) struct SubscriberNode {
    engine: Subscriber,
    sink: Catch,
    keys: Rc<RefCell<Keys>>,
    is_secured: bool,
    /// The session if a broker is used; `None` for datagrams.
    session: Option<Box<Session>>,
    application: Rc<RefCell<Application>>,
    probes: Transmit,
    /// The counters of engine and session that were already reported to the application.
    told: SubscriberCounters,
    connections: u64,
    effort: Effort,
}

impl SubscriberNode {
    /// A process that starts now.
    pub(crate) fn new(
        mut engine: Subscriber,
        is_secured: bool,
        keys: Rc<RefCell<Keys>>,
        session: Option<Session>,
        application: Rc<RefCell<Application>>,
        now: Now,
    ) -> Self {
        application.borrow_mut().begin();
        let mut sink = Catch::default();
        engine.start(engine_now(now), &mut sink);
        Self {
            engine,
            sink,
            keys,
            is_secured,
            session: session.map(Box::new),
            application,
            probes: Transmit::new(),
            told: SubscriberCounters::default(),
            connections: 0,
            effort: Effort::default(),
        }
    }

    pub(crate) fn take_effort(&mut self) -> Effort {
        let fields = core::mem::take(&mut self.sink.fields);
        self.effort.client.notifications += fields;
        core::mem::take(&mut self.effort)
    }

    pub(crate) fn session(&mut self) -> Option<&mut Session> {
        self.session.as_deref_mut()
    }

    /// Handles a NetworkMessage.
    pub(crate) fn message(&mut self, bytes: &[u8], now: Now) {
        self.effort.received(bytes.len());
        self.effort.client.signatures += u64::from(self.is_secured);
        let mut bytes = bytes.to_vec();
        self.engine.receive(0, &mut bytes, engine_now(now), &mut self.sink);
        self.look_for_keys(now);
    }

    /// Handles bytes from the broker.
    pub(crate) fn receive(&mut self, bytes: &[u8], now: Now) -> Step {
        let Some(session) = &mut self.session else { return Step::Nothing };
        let step = session.receive(bytes, now.instant);
        while let Some(payload) = self.session.as_mut().and_then(|session| session.poll_received()) {
            self.message(&payload, now);
        }
        step
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let keys = self.engine.key_timeout().filter(|_| self.is_secured);
        let session = self.session.as_ref().and_then(|session| session.poll_timeout());
        self.engine.poll_timeout().into_iter().chain(keys).chain(session).min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Now) -> Step {
        self.look_for_keys(now);
        // Requests to publishers are discarded: all metadata is known.
        self.probes.clear();
        self.engine.poll(engine_now(now), &mut self.sink, &mut self.probes);
        match &mut self.session {
            Some(session) => session.handle_timeout(now.instant),
            None => Step::Nothing,
        }
    }

    fn look_for_keys(&mut self, now: Now) {
        if !self.is_secured {
            return;
        }
        while let Some(request) = self.engine.poll_key_request(engine_now(now)) {
            let answer = self.keys.borrow_mut().answer(&request, now.instant);
            let answer = answer.as_ref().map_err(|status| *status);
            // Problems are visible in the counters of security errors.
            let _ = self.engine.set_keys(&request.security_group_id, answer, engine_now(now));
        }
    }

    /// Passes decoded messages to the application.
    pub(crate) fn deliver(&mut self, now: Instant) {
        let counters = self.engine.counters();
        if self.sink.got.is_empty() && counters == self.told {
            return;
        }
        let mut application = self.application.borrow_mut();
        let (told, figures) = (self.told, &mut application.figures);
        figures.old += counters.duplicates - told.duplicates;
        figures.out_of_sequence += counters.out_of_sequence - told.out_of_sequence;
        figures.security_errors += counters.security_errors - told.security_errors;
        figures.malformed += counters.malformed - told.malformed;
        self.told = counters;
        while let Some(got) = self.sink.got.pop_front() {
            match got {
                Got::Message { at, kind, missing, fields } => {
                    application.message(at, kind, missing, &fields, now);
                }
                Got::State { at: (group, reader), is_error: true } => application.timed_out(group, reader),
                Got::State { .. } => application.figures.recoveries += 1,
            }
        }
        if let Some(session) = &self.session {
            application.figures.connections += session.connections - self.connections;
            self.connections = session.connections;
        }
    }

    pub(crate) fn is_delivering(&self) -> bool {
        !self.sink.got.is_empty()
    }
}
