//! What a connection that broke leaves to the next one.
//!
//! The event loop of `rumqttc` gives all of it to the next connection at once, first what waited for the broken one and then what
//! that one had sent. Messages would be repeated in another order than they were sent in after a second failure. Those that were
//! never sent would get packet identifiers that may still be in use, and the event loop keeps only one such message: the others would be
//! lost although they are to arrive at least once.
//!
//! So what was sent goes first, in its order, and what was not waits here until the connection is free for it.

use std::collections::VecDeque;

/// What a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It was sent and has a packet identifier.
    Sent,
    /// A message that was not sent yet.
    New,
    /// It belongs to the connection that is gone: acknowledgements, pings, and subscriptions, which each connection makes anew.
    Gone,
}

/// What was left over.
#[derive(Debug)]
pub(super) struct Left<R> {
    /// Messages that were not sent yet.
    waiting: VecDeque<R>,
    /// How many requests were pending before the last step of the event loop, and the first of them.
    before: usize,
    first: Option<R>,
}

impl<R: Clone + PartialEq> Left<R> {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), before: 0, first: None }
    }

    /// Before each step of the event loop: gives it the next message, if the connection `is_free` for new ones. While some wait,
    /// the event loop takes none of its own.
    pub(super) fn step(&mut self, pending: &mut VecDeque<R>, is_free: bool) {
        if pending.is_empty() && is_free {
            pending.extend(self.waiting.pop_front());
        }
        (self.before, self.first) = (pending.len(), pending.front().cloned());
    }

    /// The connection is gone, or could not be made. `collided` is a message that waited for its packet identifier.
    pub(super) fn broke(
        &mut self,
        pending: &mut VecDeque<R>,
        collided: Option<R>,
        kind: impl Fn(&R) -> Kind,
    ) {
        // Those from before are still first, but for one that the last step may have taken. It is among what was sent.
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

    /// The event loop of `rumqttc`, whose broker takes what is sent to it.
    struct Client {
        state: MqttState,
        pending: VecDeque<Request>,
        channel: VecDeque<Request>,
        left: Left<Request>,
        /// What the broker has not acknowledged.
        sent: VecDeque<u16>,
        arrived: Vec<u8>,
    }

    impl Client {
        fn is_free(&self) -> bool {
            self.state.inflight() < IN_FLIGHT && self.state.collision.is_none()
        }

        /// Sends what there is to be sent. `is_lost`: the socket does not take it.
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
        fn nothing_is_lost_and_what_comes_first_is_in_order(
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
                    // Mostly in order, as brokers do it.
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
            // The last connection holds.
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
            prop_assert_eq!(&all, &wanted, "nothing is lost");
            prop_assert_eq!(first, wanted, "each comes first behind those that were made before it");
        }
    }
}
