//! Messages between shards, and a shard's outgoing messages and pending transfer requests.

use crate::eviction::{Kind, Member};
use crate::session::owner::Owner;
use crate::slab::Key;
use crate::subscription::moving::MovedSubscription;
use std::collections::VecDeque;
use taktwerk_types::StatusCode;

/// A message between shards. The driver delivers it with [`Shard::message`](crate::Shard::message), in the order of
/// output.
#[derive(Debug)]
pub struct ShardMessage(pub(crate) Content);

#[derive(Debug)]
pub(crate) enum Content {
    /// A request to the shard that may have the subscription.
    Ask(Ask),
    /// There is no such subscription, or the user may not have it.
    Refused(Waiting, StatusCode),
    /// The subscription.
    Given(Box<Given>),
    /// Another shard needs capacity and has chosen this member for eviction.
    Evict(Kind, Key),
}

/// The operation of a request that waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) request: Key,
    pub(crate) part: usize,
}

/// A request to transfer a subscription to a session.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) id: u32,
    /// The owner of the session.
    pub(crate) owner: Owner,
    /// The requesting shard.
    pub(crate) shard: usize,
    pub(crate) waiting: Waiting,
    /// How often it was forwarded to the shard to which the subscription has moved.
    pub(crate) hops: u8,
    /// The shard that has the subscription first takes events up to this one out of its ring.
    pub(crate) behind_event: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) ask: Ask,
    pub(crate) moved: MovedSubscription,
}

/// A shard's transfer requests.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    pub(crate) messages: VecDeque<(usize, ShardMessage)>,
    /// Requests for subscriptions that are in transit to this shard, that are being written, or that still have events
    /// in the ring.
    pub(crate) postponed: Vec<Ask>,
}

impl Transfers {
    /// Requests a subscription from the shard that has it.
    pub(crate) fn ask(&mut self, to: usize, ask: Ask) {
        self.messages.push_back((to, ShardMessage(Content::Ask(ask))));
    }

    /// Notifies a shard of an eviction.
    pub(crate) fn evict(&mut self, victim: Member, kind: Kind) {
        self.messages.push_back((victim.shard, ShardMessage(Content::Evict(kind, victim.into()))));
    }

    /// The requests that wait for events.
    pub(crate) fn take_behind_events(&mut self) -> Vec<Ask> {
        if self.postponed.is_empty() {
            return Vec::new();
        }
        self.postponed.extract_if(.., |ask| ask.behind_event.is_some()).collect()
    }

    pub(crate) fn refuse(&mut self, ask: &Ask, status: StatusCode) {
        self.messages.push_back((ask.shard, ShardMessage(Content::Refused(ask.waiting, status))));
    }
}
