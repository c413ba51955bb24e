//! What shards tell each other, and the messages and questions of one shard that are still to be carried.

use crate::eviction::{Kind, Member};
use crate::session::owner::Owner;
use crate::slab::Key;
use crate::subscription::moving::MovedSubscription;
use std::collections::VecDeque;
use taktwerk_types::StatusCode;

/// What one shard tells another. The driver takes it there with [`Shard::message`](crate::Shard::message), in the order in which it came out.
#[derive(Debug)]
pub struct ShardMessage(pub(crate) Content);

#[derive(Debug)]
pub(crate) enum Content {
    /// To the shard that may have the subscription.
    Ask(Ask),
    /// There is no such subscription, or the user may not have it.
    Refused(Waiting, StatusCode),
    /// Here it is.
    Given(Box<Given>),
    /// A shard that needs room has chosen this one to be evicted.
    Evict(Kind, Key),
}

/// Which operation of which request waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) request: Key,
    pub(crate) part: usize,
}

/// A session wants a subscription.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) id: u32,
    /// Whom it works for.
    pub(crate) owner: Owner,
    /// The shard that asks.
    pub(crate) shard: usize,
    pub(crate) waiting: Waiting,
    /// How often it was passed on to where the subscription went.
    pub(crate) hops: u8,
    /// Up to which event the shard that has it takes those out of its ring before it gives it away.
    pub(crate) behind_event: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) ask: Ask,
    pub(crate) moved: MovedSubscription,
}

/// A shard's questions.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    pub(crate) messages: VecDeque<(usize, ShardMessage)>,
    /// Questions for subscriptions that are on their way here, that are being written, or for which events are still in the
    /// ring.
    pub(crate) postponed: Vec<Ask>,
}

impl Transfers {
    /// Asks the shard that has a subscription.
    pub(crate) fn ask(&mut self, to: usize, ask: Ask) {
        self.messages.push_back((to, ShardMessage(Content::Ask(ask))));
    }

    /// Tells a shard that something of it is to be evicted.
    pub(crate) fn evict(&mut self, victim: Member, kind: Kind) {
        self.messages.push_back((victim.shard, ShardMessage(Content::Evict(kind, victim.into()))));
    }

    /// The questions that wait for events.
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
