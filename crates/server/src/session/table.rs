//! The sessions of one shard.

use super::owner::Owner;
use super::{SECRET_LEN, Session, SessionKey};
use crate::account::{Account, Category, Charged};
use crate::eviction::{Evictable, Holder, Kind, Member};
use crate::slab::{Key, Slab};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use taktwerk_types::{Identifier, IdentifierRef, Instant, NodeId, NodeIdRef};

/// Length of a token in bytes: the shard (UInt16), the slot (UInt32), and the secret.
const TOKEN_LEN: usize = 2 + 4 + SECRET_LEN;

/// The sessions of one shard, found by their authentication tokens.
///
/// A token contains the session's position: finding it is an index and a comparison, and another shard can redirect the
/// client. The secret makes a token unguessable.
#[derive(Debug)]
pub(crate) struct Sessions {
    shard: u16,
    slab: Slab<Session>,
    /// When to check which session. Checking again later is cheaper than moving the entry with every request.
    deadlines: BTreeSet<(Instant, Key)>,
    /// Owners of subscriptions without a session.
    orphan_owners: BTreeMap<u32, Charged<Owner>>,
    /// Registers the sessions that were never activated.
    evictable: Arc<Evictable>,
}

/// The location of a token's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenOwner {
    /// A session of this shard.
    Here(SessionKey),
    /// Another shard, if it exists.
    Shard(usize),
    /// There is no such session.
    Nobody,
}

impl Sessions {
    pub(crate) fn new(shard: usize, evictable: Arc<Evictable>) -> Self {
        Self {
            shard: u16::try_from(shard).unwrap_or(u16::MAX),
            slab: Slab::default(),
            deadlines: BTreeSet::new(),
            orphan_owners: BTreeMap::new(),
            evictable,
        }
    }

    /// The number of the shard.
    pub(crate) fn shard(&self) -> usize {
        usize::from(self.shard)
    }

    #[inline]
    pub(crate) fn get(&self, key: SessionKey) -> Option<&Session> {
        self.slab.get(key)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: SessionKey) -> Option<&mut Session> {
        self.slab.get_mut(key)
    }

    /// The session for an engine's session key.
    pub(crate) fn at(&self, key: crate::subscription::SessionKey) -> Option<&Session> {
        self.slab.get(self.slab.key_at(key.0)?)
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionKey, &Session)> {
        self.slab.iter()
    }

    /// Adds a session of `holder` that must be activated until `deadline`.
    pub(crate) fn insert(&mut self, mut session: Session, holder: Holder, deadline: Instant) -> SessionKey {
        session.looked_at = deadline;
        let key = self.slab.insert(session);
        self.evictable.add(Kind::Session, self.member(key), holder);
        self.deadlines.insert((deadline, key));
        key
    }

    /// Makes sure that a session is checked at `deadline` or earlier.
    pub(crate) fn watch(&mut self, key: SessionKey, deadline: Instant) {
        let Some(session) = self.slab.get_mut(key) else { return };
        if deadline < session.looked_at {
            self.deadlines.remove(&(session.looked_at, key));
            self.deadlines.insert((deadline, key));
            session.looked_at = deadline;
        }
    }

    pub(crate) fn remove(&mut self, key: SessionKey) -> Option<Session> {
        let session = self.slab.remove(key)?;
        self.deadlines.remove(&(session.looked_at, key));
        if !session.is_activated() {
            self.evictable.remove(Kind::Session, self.member(key));
        }
        Some(session)
    }

    /// A session has been activated for the first time.
    pub(crate) fn activated(&self, key: SessionKey) {
        self.evictable.remove(Kind::Session, self.member(key));
    }

    fn member(&self, key: SessionKey) -> Member {
        key.member(self.shard())
    }

    /// The authentication token of a session.
    pub(crate) fn token(&self, key: SessionKey) -> NodeId {
        let Some(session) = self.slab.get(key) else { return NodeId::NULL };
        let mut token = Vec::with_capacity(TOKEN_LEN);
        token.extend_from_slice(&self.shard.to_le_bytes());
        token.extend_from_slice(&key.index.to_le_bytes());
        token.extend_from_slice(&session.secret);
        NodeId { namespace_index: 0, identifier: Identifier::Opaque(token.into()) }
    }

    /// The location of a token's session.
    #[inline]
    pub(crate) fn owner(&self, token: NodeIdRef<'_>) -> TokenOwner {
        let IdentifierRef::Opaque(bytes) = token.identifier else { return TokenOwner::Nobody };
        let Ok(&[s0, s1, i0, i1, i2, i3, ref secret @ ..]) = <&[u8; TOKEN_LEN]>::try_from(bytes) else {
            return TokenOwner::Nobody;
        };
        let shard = u16::from_le_bytes([s0, s1]);
        if shard != self.shard {
            return TokenOwner::Shard(usize::from(shard));
        }
        let Some(key) = self.slab.key_at(u32::from_le_bytes([i0, i1, i2, i3])) else {
            return TokenOwner::Nobody;
        };
        match self.slab.get(key) {
            Some(session) if same_secret(&session.secret, secret) => TokenOwner::Here(key),
            _ => TokenOwner::Nobody,
        }
    }

    /// When [`Self::expired`] must be called next.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The next expired session.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<SessionKey> {
        while let Some((at, key)) = self.deadlines.first().copied() {
            if at > now {
                return None;
            }
            self.deadlines.pop_first();
            let Some(session) = self.slab.get_mut(key) else { continue };
            // If the session continues, it is watched again.
            session.looked_at = Instant::FAR;
            if !session.is_activated() {
                return Some(key);
            }
            let deadline = session.deadline();
            if deadline <= now {
                return Some(key);
            }
            self.watch(key, deadline);
        }
        None
    }

    /// Records the owner of subscriptions that outlive their session. There are at most as many as there are
    /// subscriptions.
    pub(crate) fn keep_owner(
        &mut self,
        subscriptions: impl Iterator<Item = u32>,
        owner: &Owner,
        account: &Arc<Account>,
    ) {
        for id in subscriptions {
            let owner = Charged::anyway(account, Category::Sessions, owner.clone());
            self.orphan_owners.insert(id, owner);
        }
    }

    /// Removes the owner of a subscription that moved to another shard.
    pub(crate) fn hand_over(&mut self, id: u32) {
        self.orphan_owners.remove(&id);
    }

    /// Removes the owners of deleted subscriptions.
    pub(crate) fn tidy(&mut self, exists: impl Fn(u32) -> bool) {
        if !self.orphan_owners.is_empty() {
            self.orphan_owners.retain(|id, _| exists(*id));
        }
    }

    /// Whether a session may take over a subscription of a session, or of one that has ended (Part 4 §5.14.7.1).
    pub(crate) fn may_take(
        &self,
        who: &Owner,
        from: Option<crate::subscription::SessionKey>,
        id: u32,
    ) -> bool {
        match from {
            Some(from) => {
                let from = self.slab.key_at(from.0).and_then(|key| self.get(key));
                from.and_then(Session::owner).is_some_and(|owner| owner.is_same_as(who))
            }
            None => self.orphan_owners.get(&id).is_some_and(|owner| owner.is_same_as(who)),
        }
    }
}

/// Compares in constant time, so that timing does not reveal how much of a guess is right.
fn same_secret(one: &[u8; SECRET_LEN], two: &[u8; SECRET_LEN]) -> bool {
    one.iter().zip(two).fold(0, |different, (one, two)| different | (one ^ two)) == 0
}
