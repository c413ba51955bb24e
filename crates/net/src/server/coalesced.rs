//! Connections that wake the shard together: what their clients say next may wait a moment.
//!
//! Behind a publishing cycle, many clients take their notifications one after the other, and each sends a Publish request
//! for the next ones. To be woken by each of these requests costs more than to handle it. So the first one wakes the shard,
//! and the others are looked for [`MOMENT`] later, as long as several clients are expected to ask. All other connections
//! have the shard's own epoll instance and wake it at once.

use super::connection::Connection;
use crate::poll::{Poller, Ready};
use core::time::Duration;
use std::io;
use taktwerk_types::Instant;

/// How long a request waits at most, besides what the turn takes that finds it.
pub(super) const MOMENT: Duration = Duration::from_millis(2);
/// If fewer clients are expected to ask, the next one wakes the shard.
const EXPECTED_MIN: usize = 4;
/// If so many are expected when a client asks, it waits with them the next time.
const CROWD_MIN: usize = 8;
/// If a client asks so often in succession when hardly any other is expected, it wakes the shard from then on.
const ALONE_MAX: u8 = 8;

/// Where a connection is registered, and what is expected of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    /// Here, and not with the shard's own instance.
    is_here: bool,
    /// What its client says next may wait.
    may_wait: bool,
    /// It was sent something and has not said anything since.
    is_expected: bool,
    /// How often in succession hardly any other was expected when it said something.
    alone: u8,
}

/// The epoll instance of connections that may wait, and when it is looked at.
pub(super) struct Coalesced {
    poller: Poller,
    /// The key of this instance in the shard's own.
    key: u64,
    /// When to look at it. `None`: it wakes the shard.
    look_at: Option<Instant>,
    /// How many connections that may wait are expected to say something, wherever they are registered.
    expected: usize,
}

impl Coalesced {
    /// An instance that wakes the shard by `key`.
    pub(super) fn new(main: &Poller, key: u64) -> io::Result<Self> {
        let poller = Poller::new()?;
        main.add_once(poller.fd(), key)?;
        Ok(Self { poller, key, look_at: None, expected: 0 })
    }

    /// The instance that a connection is registered with.
    pub(super) fn poller<'a>(&'a self, main: &'a Poller, place: Place) -> &'a Poller {
        if place.is_here { &self.poller } else { main }
    }

    /// When it is to be looked at.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// It has woken the shard, and will not do so again until it was looked at.
    pub(super) fn has_woken(&mut self, now: Instant) {
        self.look_at = Some(now);
    }

    /// Looks for connections that have said something. If nothing more is expected soon, the next one wakes the shard.
    pub(super) fn look(&mut self, main: &Poller, now: Instant) -> io::Result<()> {
        self.poller.wait(Some(Duration::ZERO))?;
        self.look_at = Some(now + MOMENT);
        if self.poller.len() == 0 {
            self.wake_by_next(main)?;
        }
        Ok(())
    }

    /// What was found has been handled.
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

    /// How many connections have said something.
    pub(super) fn len(&self) -> usize {
        self.poller.len()
    }

    /// One of them.
    pub(super) fn get(&self, at: usize) -> Option<Ready> {
        self.poller.get(at)
    }

    /// A connection was sent something.
    pub(super) fn sent(&mut self, place: &mut Place) {
        if place.may_wait && !place.is_expected {
            place.is_expected = true;
            self.expected += 1;
        }
    }

    /// A connection has said something, or is gone.
    pub(super) fn heard(&mut self, place: &mut Place) {
        if core::mem::take(&mut place.is_expected) {
            self.expected = self.expected.saturating_sub(1);
        }
        let is_alone = self.expected < EXPECTED_MIN;
        place.alone = if is_alone { place.alone.saturating_add(1) } else { 0 };
    }

    /// Registers a connection where it belongs: `may_wait` says that what its client says next may wait.
    pub(super) fn place<I>(
        &mut self,
        connection: &mut Connection<I>,
        key: u64,
        may_wait: bool,
        main: &Poller,
    ) -> io::Result<()> {
        let mut next = connection.place;
        if !may_wait {
            self.heard(&mut next);
        }
        next.may_wait = may_wait;
        next.is_here =
            may_wait && if next.is_here { next.alone < ALONE_MAX } else { self.expected >= CROWD_MIN };
        let last = core::mem::replace(&mut connection.place, next);
        if next.is_here != last.is_here {
            // What has come meanwhile is told by the other instance.
            self.poller(main, last).remove(&connection.fd)?;
            self.poller(main, next).add(&connection.fd, key, connection.interest())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many connections as their places.
    fn crowd(coalesced: &mut Coalesced, places: &mut [Place]) {
        places.iter_mut().for_each(|place| coalesced.sent(place));
    }

    #[test]
    fn those_that_come_together_wait_and_those_that_come_alone_do_not() {
        let main = Poller::new().unwrap();
        let mut coalesced = Coalesced::new(&main, 7).unwrap();
        let mut places = [Place { may_wait: true, ..Place::default() }; CROWD_MIN + 1];
        crowd(&mut coalesced, &mut places);
        crowd(&mut coalesced, &mut places);
        assert_eq!(coalesced.expected, CROWD_MIN + 1, "each counts once");
        let (first, others) = places.split_first_mut().unwrap();
        coalesced.heard(first);
        assert_eq!((coalesced.expected, first.alone), (CROWD_MIN, 0));
        others.iter_mut().for_each(|place| coalesced.heard(place));
        assert_eq!(coalesced.expected, 0);
        for count in 1..=ALONE_MAX {
            coalesced.sent(first);
            coalesced.heard(first);
            assert_eq!(first.alone, count);
        }
        let mut reader = Place::default();
        coalesced.sent(&mut reader);
        assert_eq!(coalesced.expected, 0, "what may not wait is not expected");
    }
}
