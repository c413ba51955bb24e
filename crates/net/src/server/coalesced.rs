//! Connections whose wake-ups are coalesced.
//!
//! After a publishing cycle, many clients take their notifications one after the other, and each sends a Publish
//! request for the next ones. Waking up for each of these requests costs more than handling it. So the first request
//! wakes the shard, and the shard looks for the others [`MOMENT`] later, as long as requests from several clients are
//! expected. All other connections are registered with the shard's own epoll instance and wake it at once.

use super::connection::Connection;
use crate::poll::{Poller, Ready};
use core::time::Duration;
use std::io;
use taktwerk_types::Instant;

/// Maximum time that a request waits, in addition to the duration of the turn that finds it.
pub(super) const MOMENT: Duration = Duration::from_millis(2);
/// If fewer clients are expected to send a request, the next request wakes the shard.
const EXPECTED_MIN: usize = 4;
/// If at least this many clients are expected when a client sends a request, the client is coalesced from then on.
const CROWD_MIN: usize = 8;
/// If a client sends this many requests in succession while hardly any other client is expected, it wakes the shard
/// from then on.
const ALONE_MAX: u8 = 8;

/// The epoll instance with which a connection is registered, and what is expected of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Registration {
    /// Registered with the coalesced instance, not with the shard's own.
    is_here: bool,
    /// The client's next request may wait.
    may_wait: bool,
    /// The server has sent something and the client has not sent anything since.
    is_expected: bool,
    /// Number of successive requests at which hardly any other client was expected.
    alone: u8,
}

/// The epoll instance of the connections that may wait, and when to poll it.
pub(super) struct Coalesced {
    poller: Poller,
    /// The key of this instance in the shard's own instance.
    key: u64,
    /// When to poll it. `None`: its next event wakes the shard.
    look_at: Option<Instant>,
    /// Number of connections that may wait and are expected to send something, whichever instance they are registered
    /// with.
    expected: usize,
}

impl Coalesced {
    /// An instance that wakes the shard with `key`.
    pub(super) fn new(main: &Poller, key: u64) -> io::Result<Self> {
        let poller = Poller::new()?;
        main.add_once(poller.fd(), key)?;
        Ok(Self { poller, key, look_at: None, expected: 0 })
    }

    /// The instance that a connection is registered with.
    pub(super) fn poller<'a>(&'a self, main: &'a Poller, registration: Registration) -> &'a Poller {
        if registration.is_here { &self.poller } else { main }
    }

    /// When to poll this instance.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// It has woken the shard, and will not do so again until it was polled.
    pub(super) fn has_woken(&mut self, now: Instant) {
        self.look_at = Some(now);
    }

    /// Polls for connections that have sent something. If hardly any more are expected, the next event wakes the shard.
    pub(super) fn look(&mut self, main: &Poller, now: Instant) -> io::Result<()> {
        self.poller.wait(Some(Duration::ZERO))?;
        self.look_at = Some(now + MOMENT);
        if self.poller.len() == 0 {
            self.wake_by_next(main)?;
        }
        Ok(())
    }

    /// The events found were handled.
    pub(super) fn looked(&mut self, main: &Poller) -> io::Result<()> {
        if self.look_at.is_some() && self.expected < EXPECTED_MIN {
            self.wake_by_next(main)?;
        }
        Ok(())
    }

    fn wake_by_next(&mut self, main: &Poller) -> io::Result<()> {
        self.look_at = None;
        main.rearm_once(self.poller.fd(), self.key)
    }

    /// Number of events.
    pub(super) fn len(&self) -> usize {
        self.poller.len()
    }

    /// An event.
    pub(super) fn get(&self, at: usize) -> Option<Ready> {
        self.poller.get(at)
    }

    /// Called after something was sent to a connection.
    pub(super) fn sent(&mut self, registration: &mut Registration) {
        if registration.may_wait && !registration.is_expected {
            registration.is_expected = true;
            self.expected += 1;
        }
    }

    /// Called when a connection has sent something or was closed.
    pub(super) fn heard(&mut self, registration: &mut Registration) {
        if core::mem::take(&mut registration.is_expected) {
            self.expected = self.expected.saturating_sub(1);
        }
        let is_alone = self.expected < EXPECTED_MIN;
        registration.alone = if is_alone { registration.alone.saturating_add(1) } else { 0 };
    }

    /// Registers a connection with the right instance. `may_wait` says whether the client's next request may wait.
    pub(super) fn register<I>(
        &mut self,
        connection: &mut Connection<I>,
        key: u64,
        may_wait: bool,
        main: &Poller,
    ) -> io::Result<()> {
        let mut next = connection.registration;
        if !may_wait {
            self.heard(&mut next);
        }
        next.may_wait = may_wait;
        next.is_here =
            may_wait && if next.is_here { next.alone < ALONE_MAX } else { self.expected >= CROWD_MIN };
        let last = core::mem::replace(&mut connection.registration, next);
        if next.is_here != last.is_here {
            // The other instance reports input that has already arrived.
            self.poller(main, last).remove(&connection.fd)?;
            self.poller(main, next).add(&connection.fd, key, connection.interest())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One connection for each registration.
    fn crowd(coalesced: &mut Coalesced, registrations: &mut [Registration]) {
        registrations.iter_mut().for_each(|registration| coalesced.sent(registration));
    }

    #[test]
    fn clients_wait_only_while_others_are_expected() {
        let main = Poller::new().unwrap();
        let mut coalesced = Coalesced::new(&main, 7).unwrap();
        let mut registrations = [Registration { may_wait: true, ..Registration::default() }; CROWD_MIN + 1];
        crowd(&mut coalesced, &mut registrations);
        crowd(&mut coalesced, &mut registrations);
        assert_eq!(coalesced.expected, CROWD_MIN + 1, "each connection counts once");
        let (first, others) = registrations.split_first_mut().unwrap();
        coalesced.heard(first);
        assert_eq!((coalesced.expected, first.alone), (CROWD_MIN, 0));
        others.iter_mut().for_each(|registration| coalesced.heard(registration));
        assert_eq!(coalesced.expected, 0);
        for count in 1..=ALONE_MAX {
            coalesced.sent(first);
            coalesced.heard(first);
            assert_eq!(first.alone, count);
        }
        let mut reader = Registration::default();
        coalesced.sent(&mut reader);
        assert_eq!(coalesced.expected, 0, "a connection that may not wait is not expected");
    }
}
