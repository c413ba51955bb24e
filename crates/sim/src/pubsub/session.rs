//! An MQTT client without a socket: the inputs are bytes and time, the outputs are bytes and deadlines.
//!
//! Acknowledgements, packet identifiers, repetition and packets are those of `rumqttc`, which is used in production
//! (`taktwerk-net`, feature `mqtt`). The event loop of `rumqttc` needs an operating system, so this module does what
//! that loop and the surrounding threads do: the queue of messages that wait for the broker, the order of requests,
//! pings, timeouts, pauses between connection attempts, and the handling of messages of a broken connection.

use bytes::{Bytes, BytesMut};
use core::time::Duration;
use rumqttc::{
    Connect, ConnectReturnCode, Event, MqttState, Packet, PingReq, Publish, QoS, Request, Subscribe,
};
use std::collections::VecDeque;
use taktwerk_types::Instant;

/// Maximum packet size.
pub(super) const PACKET_MAX: usize = 16 << 20;
/// Maximum number of messages that the broker has not acknowledged: the default of `rumqttc`.
const IN_FLIGHT: u16 = 100;
/// Maximum number of requests between the threads of `taktwerk-net` and the event loop.
const IN_HAND: usize = 16;
/// Maximum number of messages that wait for the broker, as in `taktwerk-net`.
const OUTBOX: usize = 1_000;
/// Pause between connection attempts: initial and maximum value.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Maximum time for connecting, and maximum time without progress when sending.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Settings of a client.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) name: String,
    /// Its subscriptions.
    pub(crate) filters: Vec<(String, QoS)>,
    /// The broker deletes the session when the connection ends.
    pub(crate) is_clean: bool,
    pub(crate) keep_alive: Duration,
}

/// What the driver has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    Connect,
    Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Down {
        retry_at: Instant,
    },
    /// The broker has not accepted the connection yet.
    Opening {
        until: Instant,
    },
    Up,
}

/// A client.
#[derive(Debug)]
pub(crate) struct Session {
    settings: Settings,
    state: MqttState,
    phase: Phase,
    /// Requests of a broken connection.
    pending: VecDeque<Request>,
    in_hand: VecDeque<Request>,
    outbox: VecDeque<Publish>,
    input: BytesMut,
    packets: BytesMut,
    output: Vec<u8>,
    pause: Duration,
    ping_at: Option<Instant>,
    /// Deadline until which the socket must accept what is in `output`.
    flush_by: Option<Instant>,
    received: VecDeque<Bytes>,
    /// Connections that the broker has accepted.
    pub(crate) connections: u64,
    /// Messages dropped because too many were waiting.
    pub(crate) dropped: u64,
    /// Messages lost with a connection or with the broker's session.
    pub(crate) forgotten: u64,
    /// Packets received, for the cost calculation.
    pub(crate) packets_received: u64,
}

impl Session {
    pub(crate) fn new(settings: Settings, now: Instant) -> Self {
        Self {
            settings,
            state: MqttState::new(IN_FLIGHT, false),
            phase: Phase::Down { retry_at: now },
            pending: VecDeque::new(),
            in_hand: VecDeque::new(),
            outbox: VecDeque::new(),
            input: BytesMut::new(),
            packets: BytesMut::new(),
            output: Vec::new(),
            pause: PAUSE,
            ping_at: None,
            flush_by: None,
            received: VecDeque::new(),
            connections: 0,
            dropped: 0,
            forgotten: 0,
            packets_received: 0,
        }
    }

    /// Whether the broker has accepted the connection.
    #[cfg(test)]
    pub(crate) fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    /// Bytes for the socket. Call [`Self::transmitted`] after taking some.
    pub(crate) fn transmit(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// The next received payload.
    pub(crate) fn poll_received(&mut self) -> Option<Bytes> {
        self.received.pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Down { retry_at } => Some(retry_at),
            Phase::Opening { until } => Some(until),
            Phase::Up => self.ping_at.into_iter().chain(self.flush_by).min(),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Step {
        match self.phase {
            Phase::Down { retry_at } if retry_at <= now => {
                self.phase = Phase::Opening { until: now + TIMEOUT };
                Step::Connect
            }
            Phase::Opening { until } if until <= now => self.fail(now),
            Phase::Up if self.flush_by.is_some_and(|at| at <= now) => self.fail(now),
            Phase::Up if self.ping_at.is_some_and(|at| at <= now) => {
                self.ping_at = Some(now + self.settings.keep_alive);
                // It fails if the previous ping was not answered.
                if self.request(Request::PingReq(PingReq)) { Step::Nothing } else { self.fail(now) }
            }
            _ => Step::Nothing,
        }
    }

    /// The socket is connected.
    pub(crate) fn connected(&mut self, now: Instant) {
        let mut connect = Connect::new(self.settings.name.clone());
        connect.keep_alive = u16::try_from(self.settings.keep_alive.as_secs()).unwrap_or(u16::MAX);
        connect.clean_session = self.settings.is_clean;
        self.write(&Packet::Connect(connect));
        self.phase = Phase::Opening { until: now + TIMEOUT };
    }

    /// The connection is gone, or could not be opened.
    pub(crate) fn closed(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::Down { .. }) {
            self.fail(now);
        }
    }

    /// Handles bytes from the broker.
    pub(crate) fn receive(&mut self, bytes: &[u8], now: Instant) -> Step {
        if matches!(self.phase, Phase::Down { .. }) {
            return Step::Nothing;
        }
        self.input.extend_from_slice(bytes);
        loop {
            match Packet::read(&mut self.input, PACKET_MAX) {
                Ok(packet) => {
                    self.packets_received += 1;
                    if !self.take(packet, now) {
                        return self.fail(now);
                    }
                }
                Err(rumqttc::Error::InsufficientBytes(_)) => break,
                Err(_) => return self.fail(now),
            }
        }
        self.pump(now)
    }

    fn take(&mut self, packet: Packet, now: Instant) -> bool {
        if let Phase::Opening { .. } = self.phase {
            let Packet::ConnAck(answer) = packet else { return false };
            if answer.code != ConnectReturnCode::Success {
                return false;
            }
            return self.up(answer.session_present, now);
        }
        match self.state.handle_incoming_packet(packet) {
            Ok(answer) => {
                if let Some(answer) = answer {
                    self.write(&answer);
                }
                self.drain();
                true
            }
            Err(_) => false,
        }
    }

    /// What the state machine reports.
    fn drain(&mut self) {
        while let Some(event) = self.state.events.pop_front() {
            if let Event::Incoming(Packet::Publish(publish)) = event {
                self.received.push_back(publish.payload);
            }
        }
    }

    fn up(&mut self, session_present: bool, now: Instant) -> bool {
        if !session_present {
            // As in the event loop of `rumqttc`: the broker knows nothing about these.
            let lost = self.pending.drain(..).filter(|request| matches!(request, Request::Publish(_)));
            self.forgotten += lost.count() as u64;
        }
        self.phase = Phase::Up;
        self.pause = PAUSE;
        self.ping_at = Some(now + self.settings.keep_alive);
        self.connections += 1;
        for (filter, qos) in self.settings.filters.clone() {
            self.in_hand.push_back(Request::Subscribe(Subscribe::new(filter, qos)));
        }
        true
    }

    /// Queues a message. If too many are waiting, the oldest one that is not retained is dropped.
    pub(crate) fn publish(&mut self, publish: Publish) {
        let known = self
            .outbox
            .iter_mut()
            .find(|waiting| publish.retain && waiting.retain && waiting.topic == publish.topic);
        if let Some(known) = known {
            *known = publish;
            return;
        }
        if self.outbox.len() >= OUTBOX {
            let at = self.outbox.iter().position(|waiting| !waiting.retain).unwrap_or(0);
            self.outbox.remove(at);
            self.dropped += 1;
        }
        self.outbox.push_back(publish);
        self.refill();
    }

    fn refill(&mut self) {
        while self.in_hand.len() < IN_HAND
            && let Some(publish) = self.outbox.pop_front()
        {
            self.in_hand.push_back(Request::Publish(publish));
        }
    }

    /// Sends requests as long as the socket accepts them.
    pub(crate) fn pump(&mut self, now: Instant) -> Step {
        while self.phase == Phase::Up && self.output.is_empty() {
            self.refill();
            let is_free = self.state.inflight() < IN_FLIGHT && self.state.collision.is_none();
            let next = match self.pending.pop_front() {
                None if is_free => self.in_hand.pop_front(),
                pending => pending,
            };
            let Some(request) = next else { break };
            if !self.request(request) {
                return self.fail(now);
            }
        }
        self.set_flush(now);
        Step::Nothing
    }

    /// The socket has taken bytes from [`Self::transmit`].
    pub(crate) fn transmitted(&mut self, now: Instant) -> Step {
        self.flush_by = None;
        self.pump(now)
    }

    fn set_flush(&mut self, now: Instant) {
        self.flush_by = match self.flush_by {
            _ if self.output.is_empty() => None,
            Some(known) => Some(known),
            None => Some(now + TIMEOUT),
        };
    }

    fn request(&mut self, request: Request) -> bool {
        let Ok(packet) = self.state.handle_outgoing_packet(request) else { return false };
        if let Some(packet) = packet {
            self.write(&packet);
        }
        self.drain();
        true
    }

    fn write(&mut self, packet: &Packet) {
        self.packets.clear();
        if packet.write(&mut self.packets, PACKET_MAX).is_ok() {
            self.output.extend_from_slice(&self.packets);
        }
    }

    /// The connection cannot be used any more.
    fn fail(&mut self, now: Instant) -> Step {
        self.phase = Phase::Down { retry_at: now + self.pause };
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        (self.ping_at, self.flush_by) = (None, None);
        self.input.clear();
        self.output.clear();
        self.drain();
        // As in `taktwerk-net`: messages that were sent before go first, in their order; the others wait until the
        // connection is free for them. Acknowledgements and subscriptions of the old connection are not repeated.
        let mut pending = VecDeque::from(self.state.clean());
        pending.append(&mut self.pending);
        self.pending = pending;
        self.in_hand.retain(|request| matches!(request, Request::Publish(_)));
        if let Some(collided) = self.state.collision.take() {
            self.in_hand.push_front(Request::Publish(Publish { pkid: 0, ..collided }));
        }
        Step::Close
    }
}

#[cfg(test)]
mod tests;
