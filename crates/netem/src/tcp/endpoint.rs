//! One endpoint of a connection: handshake, both directions, closing.

use super::Segment;
use super::config::Config;
use super::receiver::Receiver;
use super::sender::Sender;
use crate::emulator::nanos;
use std::collections::VecDeque;

/// Events for the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// Bytes have arrived in order.
    Readable,
    /// A writer whose data did not fit can write again.
    Writable,
    /// The peer has reset the connection, or refused it.
    Reset,
    /// The peer has not answered for too long.
    TimedOut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    SynSent,
    SynReceived,
    Established,
    Over,
}

/// Number of SYN retransmissions; each doubles the timeout.
#[derive(Debug, Clone, Copy)]
struct Handshake {
    first_sent: u64,
    sent_at: u64,
    times: u32,
    /// A SYN, or a SYN with an acknowledgement, must be sent.
    is_due: bool,
}

/// One endpoint of a connection.
#[derive(Debug, Clone)]
pub struct Endpoint {
    config: Config,
    state: State,
    handshake: Handshake,
    sender: Sender,
    receiver: Receiver,
    events: VecDeque<Event>,
    resets: bool,
}

impl Endpoint {
    /// Opens a connection.
    #[must_use]
    pub fn connect(config: Config, now: u64) -> Self {
        Self::new(config, State::SynSent, now)
    }

    /// Accepts a connection that a peer opens with `syn`.
    #[must_use]
    pub fn accept(config: Config, syn: &Segment, now: u64) -> Self {
        let mut endpoint = Self::new(config, State::SynReceived, now);
        endpoint.sender.set_window_end(syn.window_end);
        endpoint
    }

    fn new(config: Config, state: State, now: u64) -> Self {
        Self {
            config,
            state,
            handshake: Handshake { first_sent: now, sent_at: now, times: 0, is_due: true },
            sender: Sender::new(&config),
            receiver: Receiver::new(&config),
            events: VecDeque::new(),
            resets: false,
        }
    }

    // ---- the application

    /// Writes. Returns the number of bytes that fit into the send buffer; [`Event::Writable`] follows if some did not.
    pub fn write(&mut self, bytes: usize) -> usize {
        if self.state == State::Over { 0 } else { self.sender.write(bytes, &self.config) }
    }

    /// Number of readable bytes.
    #[must_use]
    pub fn readable(&self) -> usize {
        self.receiver.readable()
    }

    /// Reads bytes that have arrived.
    pub fn read(&mut self, bytes: usize) {
        self.receiver.read(bytes, &self.config);
    }

    /// Number of bytes of the peer's stream that have arrived in order.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.receiver.arrived()
    }

    /// Number of bytes of the own stream that the peer has acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.sender.una
    }

    /// Whether the peer has closed its stream and all of it was read.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Whether the peer has acknowledged all written data, and the end of the stream if it was closed.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        self.sender.is_done()
    }

    /// Whether the connection has ended; nothing is sent any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Closes the own stream after the written data.
    pub fn close(&mut self) {
        self.sender.finish();
    }

    /// Aborts the connection; one segment informs the peer.
    pub fn abort(&mut self) {
        if self.state != State::Over {
            self.state = State::Over;
            self.resets = true;
        }
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    // ---- figures

    /// Number of retransmitted segments, including the handshake.
    #[must_use]
    pub fn repetitions(&self) -> u64 {
        self.sender.repetitions + u64::from(self.handshake.times.saturating_sub(1))
    }

    /// The congestion window in segments.
    #[must_use]
    pub fn congestion_window(&self) -> u32 {
        self.sender.window()
    }

    /// The smoothed round trip in nanoseconds.
    #[must_use]
    pub fn round_trip(&self) -> Option<u64> {
        self.sender.round_trip.smoothed()
    }

    // ---- the network

    /// Processes a received segment.
    pub fn receive(&mut self, segment: &Segment, now: u64) {
        if self.state == State::Over {
            return;
        }
        if segment.rst {
            self.state = State::Over;
            self.events.push_back(Event::Reset);
            return;
        }
        match self.state {
            State::SynSent if segment.syn && segment.ack => self.establish(segment, now, true),
            State::SynSent => return,
            State::SynReceived if segment.syn => {
                self.handshake.is_due = true;
                return;
            }
            State::SynReceived if segment.ack => self.establish(segment, now, false),
            // The acknowledgement of the handshake was lost.
            State::Established if segment.syn => {
                self.receiver.ack_now = true;
                return;
            }
            _ => {}
        }
        if segment.ack && self.sender.acknowledge(segment, &self.config, now) {
            self.events.push_back(Event::Writable);
        }
        let before = self.receiver.arrived();
        // A window probe.
        self.receiver.ack_now |= segment.is_pure_ack() && segment.push;
        self.receiver.receive(segment, &self.config, now);
        if self.receiver.arrived() > before {
            self.events.push_back(Event::Readable);
        }
    }

    fn establish(&mut self, segment: &Segment, now: u64, is_client: bool) {
        self.state = State::Established;
        self.sender.set_window_end(segment.window_end);
        if self.handshake.times <= 1 {
            self.sender.round_trip.sample(now - self.handshake.sent_at);
        }
        if is_client {
            self.receiver.ack_now = true;
            self.events.push_back(Event::Connected);
        }
    }

    /// The next segment to send.
    pub fn poll_transmit(&mut self, now: u64) -> Option<Segment> {
        if core::mem::take(&mut self.resets) {
            return Some(Segment { rst: true, ack: true, sequence: self.sender.next, ..Segment::default() });
        }
        match self.state {
            State::Over => None,
            State::SynSent | State::SynReceived => self.transmit_handshake(now),
            State::Established => {
                let sent = self.sender.transmit(&self.config, now);
                if sent.is_none() && !self.receiver.ack_now {
                    return None;
                }
                let mut segment =
                    sent.unwrap_or(Segment { sequence: self.sender.next, ..Segment::default() });
                if segment.len > 0 {
                    self.receiver.sends(&self.config, now);
                }
                self.receiver.say(&self.config, &mut segment);
                Some(segment)
            }
        }
    }

    fn transmit_handshake(&mut self, now: u64) -> Option<Segment> {
        if !core::mem::take(&mut self.handshake.is_due) {
            return None;
        }
        self.handshake.sent_at = now;
        self.handshake.times += 1;
        let mut segment = Segment { syn: true, ..Segment::default() };
        self.receiver.say(&self.config, &mut segment);
        segment.ack = self.state == State::SynReceived;
        Some(segment)
    }

    /// The time at which to call [`Endpoint::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        match self.state {
            State::Over => None,
            State::SynSent | State::SynReceived => {
                let wait = nanos(self.config.rto_initial) << self.handshake.times.saturating_sub(1).min(16);
                let repeat = self.handshake.sent_at.saturating_add(wait.min(nanos(self.config.rto_max)));
                Some(repeat.min(self.handshake.first_sent.saturating_add(nanos(self.config.give_up))))
            }
            State::Established => {
                [self.sender.deadline(&self.config), self.receiver.ack_at].into_iter().flatten().min()
            }
        }
    }

    /// Handles an expired deadline. Segments may have to be sent afterwards.
    pub fn handle_timeout(&mut self, now: u64) {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        match self.state {
            State::Over => {}
            State::SynSent | State::SynReceived => {
                if now >= self.handshake.first_sent.saturating_add(nanos(self.config.give_up)) {
                    self.give_up();
                } else {
                    self.handshake.is_due = true;
                }
            }
            State::Established => {
                if self.receiver.ack_at.is_some_and(|at| at <= now) {
                    self.receiver.ack_at = None;
                    self.receiver.ack_now = true;
                }
                if self.sender.handle_timeout(&self.config, now) {
                    self.give_up();
                }
            }
        }
    }

    fn give_up(&mut self) {
        self.state = State::Over;
        self.events.push_back(Event::TimedOut);
    }
}
