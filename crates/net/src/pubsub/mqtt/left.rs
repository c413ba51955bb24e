//! Pending requests of a broken connection, kept for the next one.
//!
//! The event loop of `rumqttc` passes all of them to the next connection at once: first the ones that were waiting,
//! then the ones that were already sent. After a second failure, messages would be repeated in a different order than
//! they were sent. New messages would get packet identifiers that may still be in use, and the event loop keeps only
//! one such message: the others would be lost despite at-least-once delivery.
//!
//! So the sent messages are passed first, in their order. New messages wait here until the connection is free for them.

use std::collections::VecDeque;

/// State of a pending request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It was sent and has a packet identifier.
    Sent,
    /// A message that was not sent yet.
    New,
    /// It belongs to the broken connection: acknowledgements, pings, and subscriptions, which each connection makes
    /// anew.
    Gone,
}

/// The requests kept for the next connection.
#[derive(Debug)]
pub(super) struct Left<R> {
    /// Messages that were not sent yet.
    waiting: VecDeque<R>,
    /// Number of pending requests before the last step of the event loop, and the first of them.
    before: usize,
    first: Option<R>,
}

impl<R: Clone + PartialEq> Left<R> {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), before: 0, first: None }
    }

    /// Call before each step of the event loop. Passes the next message if the connection `is_free` for new ones. While
    /// messages wait here, the event loop takes no new ones.
    pub(super) fn step(&mut self, pending: &mut VecDeque<R>, is_free: bool) {
        if pending.is_empty() && is_free {
            pending.extend(self.waiting.pop_front());
        }
        (self.before, self.first) = (pending.len(), pending.front().cloned());
    }

    /// Call when the connection is broken or could not be made. `collided` is a message that waited for its packet
    /// identifier.
    pub(super) fn broke(
        &mut self,
        pending: &mut VecDeque<R>,
        collided: Option<R>,
        kind: impl Fn(&R) -> Kind,
    ) {
        // Requests from before are still first, except one that the last step may have taken. That one is among the
        // sent ones.
        let was_taken = self.first.is_some() && pending.front() != self.first.as_ref();
        let before = self.before.saturating_sub(usize::from(was_taken));
        let since = pending.split_off(before.min(pending.len()));
        let mut new: VecDeque<R> = collided.into_iter().collect();
        let mut behind = VecDeque::new();
        for request in pending.drain(..) {
            match kind(&request) {
                Kind::Sent => behind.push_back(request),
                Kind::New => new.push_back(request),
                Kind::Gone => {}
            }
        }
        new.append(&mut self.waiting);
        for request in since {
            match kind(&request) {
                Kind::Sent => pending.push_back(request),
                Kind::New => new.push_back(request),
                Kind::Gone => {}
            }
        }
        pending.append(&mut behind);
        self.waiting = new;
        (self.before, self.first) = (pending.len(), pending.front().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rumqttc::{MqttState, Packet, PubAck, Publish, QoS, Request};

    fn kind(request: &Request) -> Kind {
        match request {
            Request::Publish(publish) if publish.pkid == 0 => Kind::New,
            Request::Publish(_) => Kind::Sent,
            _ => Kind::Gone,
        }
    }

    const IN_FLIGHT: u16 = 6;

    /// Simulates the event loop of `rumqttc` with a broker that receives everything.
    struct Client {
        state: MqttState,
        pending: VecDeque<Request>,
        channel: VecDeque<Request>,
        left: Left<Request>,
        /// Packet identifiers that the broker has not acknowledged.
        sent: VecDeque<u16>,
        arrived: Vec<u8>,
    }

    impl Client {
        fn is_free(&self) -> bool {
            self.state.inflight() < IN_FLIGHT && self.state.collision.is_none()
        }

        /// Sends all pending requests. `is_lost`: the socket does not accept them.
        fn send(&mut self, is_lost: bool) {
            let is_free = self.is_free();
            self.left.step(&mut self.pending, is_free);
            let next = match self.pending.pop_front() {
                None if is_free => self.channel.pop_front(),
                pending => pending,
            };
            let Some(request) = next else { return };
            if let Ok(Some(Packet::Publish(publish))) = self.state.handle_outgoing_packet(request)
                && !is_lost
            {
                self.arrive(&publish);
            }
        }

        fn arrive(&mut self, publish: &Publish) {
            self.arrived.push(publish.payload[0]);
            self.sent.push_back(publish.pkid);
        }

        fn acknowledge(&mut self, at: usize) {
            let Some(id) = self.sent.remove(at % self.sent.len().max(1)) else { return };
            self.left.step(&mut self.pending, false);
            let more = self.state.handle_incoming_packet(Packet::PubAck(PubAck::new(id)));
            if let Ok(Some(Packet::Publish(publish))) = more {
                self.arrive(&publish);
            }
        }

        fn fail(&mut self) {
            self.pending.extend(self.state.clean());
            self.pending.append(&mut self.channel);
            let collided =
                self.state.collision.take().map(|publish| Request::Publish(Publish { pkid: 0, ..publish }));
            self.left.broke(&mut self.pending, collided, kind);
            self.sent.clear();
        }
    }

    proptest! {
        #[test]
        fn no_message_is_lost_and_first_deliveries_are_in_order(
            steps in proptest::collection::vec((0u8..6, 0usize..4), 1..200),
        ) {
            let (state, left) = (MqttState::new(IN_FLIGHT, false), Left::new());
            let (pending, channel, sent) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
            let mut client = Client { state, pending, channel, left, sent, arrived: Vec::new() };
            let mut made = 0u8;
            for (what, at) in steps {
                match what {
                    0 | 1 => {
                        let publish = Publish::new("a", QoS::AtLeastOnce, vec![made]);
                        client.channel.push_back(Request::Publish(publish));
                        made += 1;
                    }
                    2 | 3 => client.send(false),
                    // Mostly in order, as brokers do.
                    4 => client.acknowledge(if at == 3 { 1 } else { 0 }),
                    _ => {
                        if at == 1 {
                            client.send(true);
                        } else {
                            client.left.step(&mut client.pending, false);
                        }
                        client.fail();
                    }
                }
            }
            // The last connection does not break.
            for _ in 0..600 {
                client.send(false);
                client.acknowledge(0);
            }
            let mut first = Vec::new();
            for number in &client.arrived {
                if !first.contains(number) {
                    first.push(*number);
                }
            }
            let wanted: Vec<u8> = (0..made).collect();
            let mut all = first.clone();
            all.sort_unstable();
            prop_assert_eq!(&all, &wanted, "no message is lost");
            prop_assert_eq!(first, wanted, "first deliveries are in order");
        }
    }
}
