//! Security tokens and their overlap (Part 4 §5.6.2.1).

use crate::error::PeerFault;
use core::time::Duration;
use taktwerk_crypto::{Role, SymmetricKeys};
use taktwerk_types::Instant;

/// A security token with its keys. Without keys, chunks are not secured.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) id: u32,
    created: Instant,
    pub(crate) lifetime_ms: u32,
    /// Until when messages secured with it are accepted.
    accepted_until: Instant,
    pub(crate) keys: Option<Box<dyn SymmetricKeys>>,
}

impl Token {
    pub(crate) fn new(
        id: u32,
        created: Instant,
        lifetime_ms: u32,
        keys: Option<Box<dyn SymmetricKeys>>,
    ) -> Self {
        // Clocks differ and messages travel: 25 % more are allowed (Part 4 §5.6.2.1).
        let accepted_until = after_permille(created, lifetime_ms, 1250);
        Self { id, created, lifetime_ms, accepted_until, keys }
    }

    /// When a client asks for the next one: at 75 % of the lifetime.
    pub(crate) fn renew_at(&self) -> Instant {
        after_permille(self.created, self.lifetime_ms, 750)
    }

    /// When the token expires.
    pub(crate) fn expires_at(&self) -> Instant {
        after_permille(self.created, self.lifetime_ms, 1000)
    }

    /// Until when messages secured with it are accepted.
    pub(crate) fn accepted_until(&self) -> Instant {
        self.accepted_until
    }
}

fn after_permille(created: Instant, lifetime_ms: u32, permille: u64) -> Instant {
    created + Duration::from_micros(u64::from(lifetime_ms) * permille)
}

/// At most two tokens: the one we send with, and the one before or after it.
#[derive(Debug)]
pub(crate) struct Tokens {
    role: Role,
    /// What we secure outgoing chunks with.
    current: Token,
    /// On a server the *next* token, until the client uses it; on a client the *previous* one.
    other: Option<Token>,
}

impl Tokens {
    pub(crate) const fn new(role: Role, first: Token) -> Self {
        Self { role, current: first, other: None }
    }

    /// The token that outgoing chunks are secured with.
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

    /// Notes that a chunk secured with token `id` was *verified*. Chunks arrive in order, so whoever has used the
    /// newer token never goes back: the server sends with it from now on, and the older one is gone.
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

    /// When something is due on a server, and what.
    pub(crate) fn server_due(&self) -> (Instant, &'static str) {
        match &self.other {
            Some(_) => (self.current.expires_at(), "send with the renewed token"),
            None => (self.current.accepted_until, "security token expires"),
        }
    }

    /// Lets time pass on a server: sends with the renewed token once the old one has expired. False if there is no
    /// valid token left.
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
    fn ends_of_life() {
        let token = token(1, 0);
        assert_eq!(
            (token.renew_at(), token.expires_at(), token.accepted_until()),
            (at(750), at(1000), at(1250))
        );
    }
}
