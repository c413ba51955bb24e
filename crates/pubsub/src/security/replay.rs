//! Replay detection.

use super::SecurityError;
use crate::publisher_id::PublisherId;
use crate::sequence::{Sequence, compare32};
use std::collections::BTreeMap;

/// A window over the nonce sequence numbers of one sender and key: numbers in it are accepted in any order, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    newest: u32,
    /// Bit `n`: the number `newest - n` was received.
    seen: u128,
}

/// How far behind the newest number a message may be.
const WINDOW: u32 = 128;

impl Replay {
    /// A window that has accepted one number.
    #[must_use]
    pub const fn new(first: u32) -> Self {
        Self { newest: first, seen: 1 }
    }

    /// The newest number, and a bitmap of accepted earlier ones.
    pub(super) const fn parts(self) -> (u32, u128) {
        (self.newest, self.seen)
    }

    /// From the result of [`Self::parts`].
    pub(super) const fn from_parts(newest: u32, seen: u128) -> Self {
        // The newest number itself was accepted.
        Self { newest, seen: seen | 1 }
    }

    /// Accepts a number. False if it was accepted before, is too old, or is too far ahead.
    pub fn accept(&mut self, number: u32) -> bool {
        match compare32(number, self.newest) {
            Sequence::Newer { missing } => {
                let shift = missing + 1;
                self.seen = if shift >= WINDOW { 0 } else { self.seen << shift };
                self.seen |= 1;
                self.newest = number;
                true
            }
            Sequence::Older => {
                let back = self.newest.wrapping_sub(number);
                let bit = if back < WINDOW { 1u128 << back } else { return false };
                let is_new = self.seen & bit == 0;
                self.seen |= bit;
                is_new
            }
            Sequence::Invalid => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Sender {
    token_id: u32,
    publisher_id: Option<PublisherId>,
    writer_group_id: Option<u16>,
}

/// The windows of all senders of a SecurityGroup, by publisher, WriterGroup and key.
///
/// Only for verified messages. A window is never removed to make space for another sender.
#[derive(Debug, Default)]
pub struct ReplayGuard {
    windows: BTreeMap<Sender, Replay>,
}

/// Maximum windows per SecurityGroup.
const SENDERS_MAX: usize = 16_384;

impl ReplayGuard {
    /// Records a verified message.
    ///
    /// # Errors
    /// [`SecurityError::Replayed`] or [`SecurityError::TooManySenders`].
    pub fn accept(
        &mut self,
        publisher_id: Option<PublisherId>,
        writer_group_id: Option<u16>,
        token_id: u32,
        number: u32,
    ) -> Result<(), SecurityError> {
        let sender = Sender { token_id, publisher_id, writer_group_id };
        if let Some(window) = self.windows.get_mut(&sender) {
            return if window.accept(number) { Ok(()) } else { Err(SecurityError::Replayed) };
        }
        if self.windows.len() >= SENDERS_MAX {
            return Err(SecurityError::TooManySenders);
        }
        self.windows.insert(sender, Replay::new(number));
        Ok(())
    }

    /// Restores a saved window; an existing window keeps its state.
    pub(super) fn restore(
        &mut self,
        publisher_id: Option<PublisherId>,
        writer_group_id: Option<u16>,
        token_id: u32,
        window: Replay,
    ) {
        let sender = Sender { token_id, publisher_id, writer_group_id };
        if self.windows.len() < SENDERS_MAX {
            self.windows.entry(sender).or_insert(window);
        }
    }

    /// All windows: sender, key, and state.
    pub(super) fn windows(&self) -> impl Iterator<Item = (Option<&PublisherId>, Option<u16>, u32, Replay)> {
        self.windows.iter().map(|(sender, window)| {
            (sender.publisher_id.as_ref(), sender.writer_group_id, sender.token_id, *window)
        })
    }

    /// Removes the windows of keys for which `is_known` is false: their messages are no longer accepted anyway.
    pub fn forget(&mut self, is_known: impl Fn(u32) -> bool) {
        self.windows.retain(|sender, _| is_known(sender.token_id));
    }

    /// Number of windows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// Whether there are no windows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// No number is accepted twice, and every number at most 127 behind the newest is accepted once.
        #[test]
        fn against_a_set(start in any::<u32>(), steps in proptest::collection::vec(-200i64..300, 1..300)) {
            let mut window = Replay::new(start);
            let mut seen = BTreeSet::from([i64::from(start)]);
            let mut newest = i64::from(start);
            for step in steps {
                let number = newest + step;
                let wire = (number.rem_euclid(1 << 32)) as u32;
                let expected = !seen.contains(&number) && number > newest - 128;
                prop_assert_eq!(window.accept(wire), expected, "{} after {}", number, newest);
                if expected {
                    seen.insert(number);
                    newest = newest.max(number);
                }
            }
        }
    }

    #[test]
    fn senders_do_not_disturb_each_other() {
        let mut guard = ReplayGuard::default();
        let (one, two) = (Some(PublisherId::Byte(1)), Some(PublisherId::UInt16(1)));
        assert!(guard.accept(one.clone(), Some(1), 7, 5).is_ok());
        assert!(guard.accept(two, Some(1), 7, 5).is_ok());
        assert!(guard.accept(one.clone(), Some(2), 7, 5).is_ok());
        assert!(guard.accept(one.clone(), Some(1), 8, 5).is_ok());
        assert_eq!(guard.accept(one, Some(1), 7, 5), Err(SecurityError::Replayed));
        guard.forget(|token| token == 8);
        assert_eq!(guard.len(), 1);
    }
}
