//! Security tokens and their overlap (Part 4 §5.6.2.1).

use crate::error::PeerFault;
use core::time::Duration;
use taktwerk_crypto::{Role, SymmetricKeys};
use taktwerk_types::Instant;

/// Most chunks that a token secures in one direction. SequenceNumbers must not repeat under one token (Part 6
/// §6.7.2.4): legacy numbers repeat after 2^32 − 2047 chunks at the earliest. With an authenticated cipher a repeated
/// number would reveal the plain text.
const CHUNKS_MAX: u32 = u32::MAX - 2048;
/// Chunks in one direction after which a client requests the next token, whatever the lifetime.
const CHUNKS_TO_RENEW: u32 = CHUNKS_MAX / 2;

/// A security token with its keys. Without keys, chunks are not secured.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) id: u32,
    created: Instant,
    pub(crate) lifetime_ms: u32,
    /// Messages secured with this token are accepted until then.
    accepted_until: Instant,
    /// When a client requests the next token.
    renew_at: Instant,
    /// Number of chunks sent and received with this token.
    sent: u32,
    received: u32,
    pub(crate) keys: Option<Box<dyn SymmetricKeys>>,
}

impl Token {
    pub(crate) fn new(
        id: u32,
        created: Instant,
        lifetime_ms: u32,
        keys: Option<Box<dyn SymmetricKeys>>,
    ) -> Self {
        // Allow 25 % more for clock differences and transmission delay (Part 4 §5.6.2.1).
        let accepted_until = after_permille(created, lifetime_ms, 1250);
        let renew_at = after_permille(created, lifetime_ms, 750);
        Self { id, created, lifetime_ms, accepted_until, renew_at, sent: 0, received: 0, keys }
    }

    /// Client: uses the token no longer than requested, even if the server grants more; 0 means no preference.
    pub(crate) fn asked_for(mut self, lifetime_ms: u32) -> Self {
        if lifetime_ms > 0 {
            self.renew_at = self.renew_at.min(after_permille(self.created, lifetime_ms, 750));
        }
        self
    }

    /// When a client requests the next token: at 75 % of the lifetime (Part 4 §5.6.2.1), or after [`CHUNKS_TO_RENEW`].
    pub(crate) fn renew_at(&self) -> Instant {
        if self.sent.max(self.received) >= CHUNKS_TO_RENEW { self.created } else { self.renew_at }
    }

    /// Counts chunks that are about to be secured.
    ///
    /// # Errors
    /// The token has secured [`CHUNKS_MAX`] chunks.
    pub(crate) fn count_sent(&mut self, chunks: usize) -> Result<(), PeerFault> {
        let sum = u32::try_from(chunks).ok().and_then(|chunks| self.sent.checked_add(chunks));
        self.sent = sum.filter(|sum| *sum <= CHUNKS_MAX).ok_or(PeerFault::TokenExhausted)?;
        Ok(())
    }

    /// Counts a secured chunk that was received.
    ///
    /// # Errors
    /// The token has secured [`CHUNKS_MAX`] chunks.
    #[inline]
    pub(crate) fn count_received(&mut self) -> Result<(), PeerFault> {
        if self.received >= CHUNKS_MAX {
            return Err(PeerFault::TokenExhausted);
        }
        self.received += 1;
        Ok(())
    }

    /// Test helper: leaves only `left` chunks in both directions.
    #[cfg(test)]
    pub(crate) fn use_up_to(&mut self, left: u32) {
        (self.sent, self.received) = (CHUNKS_MAX - left, CHUNKS_MAX - left);
    }

    /// When the token expires.
    pub(crate) fn expires_at(&self) -> Instant {
        after_permille(self.created, self.lifetime_ms, 1000)
    }

    /// Messages secured with this token are accepted until then.
    pub(crate) fn accepted_until(&self) -> Instant {
        self.accepted_until
    }
}

fn after_permille(created: Instant, lifetime_ms: u32, permille: u64) -> Instant {
    created + Duration::from_micros(u64::from(lifetime_ms) * permille)
}

/// At most two tokens: the one for sending, and its predecessor or successor.
#[derive(Debug)]
pub(crate) struct Tokens {
    role: Role,
    /// The token for outgoing chunks.
    current: Token,
    /// On a server: the *next* token, until the client uses it. On a client: the *previous* one.
    other: Option<Token>,
}

impl Tokens {
    pub(crate) const fn new(role: Role, first: Token) -> Self {
        Self { role, current: first, other: None }
    }

    /// The token for outgoing chunks.
    #[inline]
    pub(crate) fn sending(&mut self) -> &mut Token {
        &mut self.current
    }

    #[inline]
    pub(crate) fn sending_ref(&self) -> &Token {
        &self.current
    }

    /// The token issued last.
    pub(crate) fn newest(&self) -> &Token {
        match (self.role, &self.other) {
            (Role::Server, Some(next)) => next,
            _ => &self.current,
        }
    }

    /// Adds a renewed token.
    pub(crate) fn renew(&mut self, token: Token) {
        match self.role {
            Role::Server => self.other = Some(token),
            Role::Client => self.other = Some(core::mem::replace(&mut self.current, token)),
        }
    }

    /// The token that an incoming chunk names.
    #[inline]
    pub(crate) fn receiving(&mut self, id: u32, now: Instant) -> Result<&mut Token, PeerFault> {
        if self.current.id != id {
            return self.receiving_other(id, now);
        }
        if now > self.current.accepted_until {
            return Err(PeerFault::TokenUnknown);
        }
        Ok(&mut self.current)
    }

    fn receiving_other(&mut self, id: u32, now: Instant) -> Result<&mut Token, PeerFault> {
        self.other
            .as_mut()
            .filter(|other| other.id == id && now <= other.accepted_until)
            .ok_or(PeerFault::TokenUnknown)
    }

    /// Records that a chunk secured with token `id` was *verified*. Chunks arrive in order, so a peer that has used the
    /// newer token never returns to the older one: the server now sends with the newer token and drops the older.
    #[inline]
    pub(crate) fn verified(&mut self, id: u32) {
        if self.other.is_some() {
            match self.role {
                Role::Server if id != self.current.id => self.promote(),
                Role::Client if id == self.current.id => self.other = None,
                _ => {}
            }
        }
    }

    fn promote(&mut self) {
        if let Some(next) = self.other.take() {
            self.current = next;
        }
    }

    /// When something is due on a server, and its name.
    pub(crate) fn server_due(&self) -> (Instant, &'static str) {
        match &self.other {
            Some(_) => (self.current.expires_at(), "send with the renewed token"),
            None => (self.current.accepted_until, "security token expires"),
        }
    }

    /// Advances time on a server: switches to the renewed token when the old one has expired. Returns false if no valid
    /// token is left.
    pub(crate) fn server_tick(&mut self, now: Instant) -> bool {
        if now >= self.current.expires_at() {
            self.promote();
        }
        now < self.current.accepted_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: u32, created_s: u64) -> Token {
        Token::new(id, Instant::from_nanos(created_s * 1_000_000_000), 1000, None)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn server_sends_with_the_old_token_until_the_new_one_is_used() {
        let mut tokens = Tokens::new(Role::Server, token(1, 0));
        tokens.renew(token(2, 1));
        assert_eq!((tokens.sending().id, tokens.newest().id), (1, 2));
        assert!(tokens.receiving(1, at(1100)).is_ok());
        tokens.verified(1);
        assert_eq!(tokens.sending().id, 1);
        tokens.verified(2);
        assert_eq!(tokens.sending().id, 2);
        assert!(tokens.receiving(1, at(1100)).is_err());
    }

    #[test]
    fn server_moves_on_when_the_old_token_expires() {
        let mut tokens = Tokens::new(Role::Server, token(1, 0));
        tokens.renew(token(2, 1));
        assert_eq!(tokens.server_due().0, at(1000));
        assert!(tokens.server_tick(at(1000)));
        assert_eq!(tokens.sending().id, 2);
        assert!(!tokens.server_tick(at(2250)));
    }

    #[test]
    fn client_accepts_the_previous_token_until_the_new_one_arrives() {
        let mut tokens = Tokens::new(Role::Client, token(1, 0));
        tokens.renew(token(2, 1));
        assert_eq!(tokens.sending().id, 2);
        assert!(tokens.receiving(1, at(1250)).is_ok());
        assert!(tokens.receiving(1, at(1251)).is_err());
        tokens.verified(2);
        assert!(tokens.receiving(1, at(1100)).is_err());
        assert!(tokens.receiving(3, at(1100)).is_err());
    }

    #[test]
    fn a_client_uses_a_token_no_longer_than_it_asked_for() {
        assert_eq!(token(1, 0).asked_for(100).renew_at(), at(75));
        assert_eq!(token(1, 0).asked_for(5000).renew_at(), at(750));
        assert_eq!(token(1, 0).asked_for(0).renew_at(), at(750));
        // The client still accepts the server's messages for the lifetime that the server granted.
        assert_eq!(token(1, 0).asked_for(100).accepted_until(), at(1250));
    }

    #[test]
    fn a_token_secures_fewer_chunks_than_there_are_numbers() {
        let mut used = token(1, 1);
        assert!(used.count_sent(CHUNKS_TO_RENEW as usize - 1).is_ok());
        assert_eq!(used.renew_at(), at(1750));
        assert!(used.count_sent(1).is_ok());
        assert_eq!(used.renew_at(), at(1000), "at once");
        used.use_up_to(2);
        assert_eq!(used.count_sent(3), Err(PeerFault::TokenExhausted));
        assert!(used.count_sent(2).is_ok());
        assert_eq!(used.count_sent(1), Err(PeerFault::TokenExhausted));
        assert!(used.count_received().is_ok() && used.count_received().is_ok());
        assert_eq!(used.count_received(), Err(PeerFault::TokenExhausted));
        assert_eq!(used.count_sent(usize::MAX), Err(PeerFault::TokenExhausted));
    }

    #[test]
    fn ends_of_life() {
        let token = token(1, 0);
        assert_eq!(
            (token.renew_at(), token.expires_at(), token.accepted_until()),
            (at(750), at(1000), at(1250))
        );
    }
}
