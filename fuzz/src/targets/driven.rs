//! Drives a client according to its contract, with any server. Shared by the targets with a client.

use super::client::Asked;
use crate::input::Input;
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use taktwerk_client::{
    Client, ClientConfig, ClientError, ConnectionId, Delivery, Effect, Event, EventQueue, RequestHandle,
    SubscriptionEvent, SubscriptionHandle, Target,
};
use taktwerk_crypto::SeededEntropy;
use taktwerk_types::Instant;

/// Maximum timer calls at one instant; more count as an endless loop.
const TURNS_MAX: usize = 1000;
/// Maximum Publish requests in flight.
const PUBLISH_MAX: usize = 4;

/// A client with its clock and an application's counters.
pub(super) struct Driven {
    pub(super) client: Client,
    pub(super) deliveries: EventQueue,
    pub(super) now: Instant,
    /// Outstanding requests of the application.
    waiting: BTreeSet<RequestHandle>,
    pub(super) subscriptions: Vec<SubscriptionHandle>,
    pub(super) connected: bool,
    /// Number of commands of the application.
    pub(super) commands: usize,
    /// Gaps that the client has reported.
    losses: usize,
}

impl Driven {
    /// A client with a command to connect.
    pub(super) fn new(mut config: ClientConfig, target: Target) -> Self {
        config.publish_max = PUBLISH_MAX;
        config.outstanding_max = 20;
        config.gap_messages_max = 8;
        let mut client = Client::new(Arc::new(config), Box::new(SeededEntropy::new(1)));
        let now = Instant::ZERO + Duration::from_secs(1);
        client.connect(target, now).expect("a target that can be connected to");
        Self {
            client,
            deliveries: EventQueue::default(),
            now,
            waiting: BTreeSet::new(),
            subscriptions: Vec::new(),
            connected: true,
            commands: 0,
            losses: 0,
        }
    }

    /// Records a request of the application.
    pub(super) fn asked(&mut self, asked: Result<RequestHandle, ClientError>) {
        if let Ok(handle) = asked {
            assert!(self.waiting.insert(handle), "{handle:?} identifies two requests");
        }
    }

    /// The application reconnects if it is not connected.
    pub(super) fn connect(&mut self, target: impl FnOnce() -> Target) {
        if !self.connected {
            self.connected = self.client.connect(target(), self.now).is_ok();
        }
    }

    /// Passes received bytes to the client. True if it consumed some.
    pub(super) fn receive(&mut self, connection: ConnectionId, bytes: &mut Vec<u8>) -> bool {
        if bytes.is_empty() {
            return false;
        }
        let given = bytes.len();
        let consumed = self.client.received(connection, bytes, self.now, &mut self.deliveries);
        assert!(consumed <= given);
        bytes.drain(..consumed);
        consumed > 0
    }

    /// Reports the end of the connection.
    pub(super) fn closed(&mut self, connection: ConnectionId) {
        self.client.handle_closed(connection, "broken", self.now, &mut self.deliveries);
    }

    fn count(&mut self, delivery: &Delivery) {
        match delivery {
            Delivery::Response(handle, _) => {
                assert!(self.waiting.remove(handle), "{handle:?} is answered twice");
            }
            Delivery::Event(Event::Subscription(handle, event)) => match event {
                SubscriptionEvent::DataLost { .. } => self.losses += 1,
                SubscriptionEvent::Ended(_) | SubscriptionEvent::Deleted => {
                    self.subscriptions.retain(|known| known != handle);
                }
                _ => {}
            },
            Delivery::Event(Event::Disconnected(_)) => {
                assert!(self.waiting.is_empty(), "unanswered: {:?}", self.waiting);
                self.connected = false;
                self.subscriptions.clear();
            }
            _ => {}
        }
    }

    /// Checks that the client makes few requests of its own.
    fn is_modest(&self) {
        let (publishes, others) = self.client.outstanding();
        let bound = 40 + 3 * self.commands + self.losses;
        assert!(publishes <= PUBLISH_MAX && others <= bound, "{publishes}, {others}");
    }
}

/// A client and its server.
pub(super) trait Scene {
    fn driven(&mut self) -> &mut Driven;

    /// Executes an effect of the client.
    fn perform(&mut self, effect: Effect);

    /// Transfers bytes in both directions. True if there were any.
    fn carry(&mut self) -> bool;

    /// Checks a delivery to the application.
    fn delivered(&mut self, delivery: Delivery);

    /// When the server has something to do.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Checks the state when nothing more happens at this instant.
    fn rested(&mut self) {}

    /// Lets time pass, including everything that becomes due.
    fn pass(&mut self, span: Duration) {
        let end = self.driven().now + span;
        for _ in 0..TURNS_MAX {
            let of_server = self.due().unwrap_or(end);
            let driven = self.driven();
            let due = driven.client.poll_timeout().map_or(end, |(at, _)| at.min(end));
            let due = due.min(of_server).max(driven.now);
            driven.now = due;
            self.settle();
            if due >= end {
                return;
            }
        }
    }

    /// Processes everything at the current instant.
    fn settle(&mut self) {
        for turn in 0.. {
            let mut busy = false;
            while let Some(effect) = self.driven().client.poll_effect() {
                self.perform(effect);
                busy = true;
            }
            busy |= self.carry();
            while let Some(delivery) = self.driven().deliveries.pop() {
                self.driven().count(&delivery);
                self.delivered(delivery);
            }
            let driven = self.driven();
            if driven.client.poll_timeout().is_some_and(|(at, _)| at <= driven.now) {
                driven.client.handle_timeout(driven.now, &mut driven.deliveries);
                busy = true;
            }
            if !busy {
                break;
            }
            assert!(turn < TURNS_MAX, "endless loop: {:?}", driven.client.poll_timeout());
        }
        self.driven().is_modest();
        self.rested();
    }

    /// In any state, the client can be ended, and is.
    fn end(&mut self) {
        let driven = self.driven();
        driven.client.disconnect(driven.now);
        self.settle();
        self.pass(Duration::from_secs(60));
        let driven = self.driven();
        assert!(!driven.connected, "{:?}", driven.client);
        assert!(driven.waiting.is_empty());
        assert_eq!(driven.client.poll_timeout(), None);
    }
}

/// Position of the next request to answer: usually the oldest.
pub(super) fn choose(requests: &VecDeque<Asked>, input: &mut Input<'_>) -> usize {
    let at = match input.byte() {
        other @ 0xe0.. => usize::from(other - 0xe0),
        _ => 0,
    };
    at.min(requests.len().saturating_sub(1))
}
