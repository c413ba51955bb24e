//! Sequence numbers (Part 6 §6.7.2.4).

use crate::error::PeerFault;

/// With legacy numbers, our own numbers wrap once they exceed this value. A peer's numbers may wrap after this value,
/// which is still valid.
const LEGACY_WRAP_AFTER: u32 = u32::MAX - 1024;
/// With legacy numbers, the first number after a wrap is below this.
const LEGACY_WRAP_BELOW: u32 = 1024;

/// The numbers of the chunks we send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    legacy: bool,
    next: u32,
    /// How many numbers were used, modulo 2^32.
    count: u32,
}

impl Sent {
    pub(crate) const fn new(legacy: bool) -> Self {
        Self { legacy, next: if legacy { 1 } else { 0 }, count: 0 }
    }

    #[cfg(test)]
    pub(crate) const fn starting_at(legacy: bool, next: u32) -> Self {
        Self { legacy, next, count: 0 }
    }

    /// How many numbers were used, modulo 2^32.
    pub(crate) const fn count(self) -> u32 {
        self.count
    }

    /// Switches to the numbering rule of another policy.
    pub(crate) const fn switched(self, legacy: bool) -> Self {
        Self { count: self.count, ..Self::new(legacy) }
    }

    #[inline]
    pub(crate) fn take(&mut self) -> u32 {
        let number = self.next;
        self.count = self.count.wrapping_add(1);
        self.next = if self.legacy && number > LEGACY_WRAP_AFTER { 1 } else { number.wrapping_add(1) };
        number
    }
}

/// The numbers of the chunks we receive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received {
    legacy: bool,
    last: Option<u32>,
}

impl Received {
    pub(crate) const fn new(legacy: bool) -> Self {
        Self { legacy, last: None }
    }

    #[cfg(test)]
    pub(crate) const fn after(legacy: bool, last: u32) -> Self {
        Self { legacy, last: Some(last) }
    }

    /// The last number; 0 before the first (Part 6 §6.8.1, LastSequenceNumber).
    #[inline]
    pub(crate) fn last(&self) -> u32 {
        self.last.unwrap_or(0)
    }

    /// Checks the number of the next chunk. The first chunk of a channel may have any number: nothing can be missing
    /// before it, and some peers start with a wrong one.
    #[inline]
    pub(crate) fn accept(&mut self, number: u32) -> Result<(), PeerFault> {
        if let Some(last) = self.last {
            let follows = if self.legacy {
                last.checked_add(1) == Some(number) || last >= LEGACY_WRAP_AFTER && number < LEGACY_WRAP_BELOW
            } else {
                last.wrapping_add(1) == number
            };
            if !follows {
                return Err(PeerFault::SequenceInvalid);
            }
        }
        self.last = Some(number);
        Ok(())
    }

    /// Reserves the number of a chunk that is still encrypted and cannot be read yet.
    pub(crate) fn skip(&mut self) -> Self {
        let before = *self;
        self.last = self.last.map(|last| last.wrapping_add(1));
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_numbers_wrap_above_the_bound() {
        let mut sent = Sent::starting_at(true, LEGACY_WRAP_AFTER - 1);
        let mut received = Received::after(true, LEGACY_WRAP_AFTER - 2);
        let numbers: Vec<u32> = (0..5).map(|_| sent.take()).collect();
        assert_eq!(numbers, [4_294_966_270, 4_294_966_271, 4_294_966_272, 1, 2]);
        assert!(numbers.iter().all(|number| received.accept(*number).is_ok()));
    }

    #[test]
    fn modern_numbers_start_at_zero_and_use_all_32_bits() {
        assert_eq!(Sent::new(false).take(), 0);
        let mut sent = Sent::starting_at(false, u32::MAX);
        let mut received = Received::after(false, u32::MAX - 1);
        assert_eq!((sent.take(), sent.take()), (u32::MAX, 0));
        assert!(received.accept(u32::MAX).is_ok() && received.accept(0).is_ok());
        assert!(Received::after(false, 4_294_966_290).accept(3).is_err());
    }

    #[test]
    fn gaps_repeats_and_early_wraps_are_refused() {
        for legacy in [true, false] {
            for (last, next) in [(5, 5), (5, 7), (5, 4), (5, 0), (u32::MAX - 2000, 1)] {
                assert_eq!(Received::after(legacy, last).accept(next), Err(PeerFault::SequenceInvalid));
            }
        }
        assert!(Received::after(true, u32::MAX).accept(0).is_ok());
        assert!(Received::after(true, LEGACY_WRAP_AFTER).accept(1).is_ok());
        assert!(Received::after(true, LEGACY_WRAP_AFTER - 1).accept(1).is_err());
        assert!(Received::after(true, u32::MAX).accept(1024).is_err());
        assert!(Received::new(true).accept(77).is_ok());
    }
}
