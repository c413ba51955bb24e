//! Tracks the sequence numbers of writers.

use crate::publisher_id::{PublisherId, PublisherIdRef};
use crate::sequence::{Sequence, compare16, compare32};
use std::collections::BTreeMap;
use taktwerk_types::Instant;

/// A sequence number: UADP has 16 bits, JSON 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Short(u16),
    #[cfg_attr(not(any(test, feature = "json")), allow(dead_code))] // only JSON has it
    Long(u32),
}

impl Number {
    pub(crate) const fn value(self) -> u32 {
        match self {
            Self::Short(number) => number as u32,
            Self::Long(number) => number,
        }
    }
}

#[derive(Debug)]
struct Last {
    number: Number,
    accepted: Instant,
}

/// Verdict about a message's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// New, with this number of messages missing before it.
    New { missing: u32 },
    /// Duplicate or out of order.
    Old,
    /// Neither.
    Invalid,
}

type Sender = (Option<PublisherId>, Option<u16>, Option<u16>);

/// The last number of each sender of a reader.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    last: BTreeMap<Sender, Last>,
}

impl Tracker {
    /// Records the number of a message. After `reset_nanos` without an accepted message, any number is new. A
    /// keep-alive has the number of the next data message and does not consume it.
    #[allow(clippy::too_many_arguments)] // what identifies a sender, and a message of it
    pub(crate) fn check(
        &mut self,
        publisher_id: Option<PublisherIdRef<'_>>,
        group_id: Option<u16>,
        writer_id: Option<u16>,
        number: Number,
        is_keep_alive: bool,
        now: Instant,
        reset_nanos: u64,
        senders_max: usize,
    ) -> Verdict {
        let number = match (is_keep_alive, number) {
            (true, Number::Short(number)) => Number::Short(number.wrapping_sub(1)),
            (true, Number::Long(number)) => Number::Long(number.wrapping_sub(1)),
            (false, number) => number,
        };
        let sender = (publisher_id.map(|id| id.to_owned()), group_id, writer_id);
        let Some(last) = self.last.get_mut(&sender) else {
            if self.last.len() >= senders_max {
                // Remove the sender that was silent for the longest time.
                let oldest = self.last.iter().min_by_key(|(_, last)| last.accepted);
                if let Some(oldest) = oldest.map(|(sender, _)| sender.clone()) {
                    self.last.remove(&oldest);
                }
            }
            self.last.insert(sender, Last { number, accepted: now });
            return Verdict::New { missing: 0 };
        };
        let silent = now.as_nanos().saturating_sub(last.accepted.as_nanos()) >= reset_nanos;
        let sequence = match (number, last.number) {
            (Number::Short(new), Number::Short(old)) => compare16(new, old),
            (new, old) => compare32(new.value(), old.value()),
        };
        match sequence {
            Sequence::Newer { missing } => {
                *last = Last { number, accepted: now };
                Verdict::New { missing }
            }
            // A keep-alive may repeat the number of the last message: nothing is missing.
            Sequence::Older if is_keep_alive && number == last.number => {
                last.accepted = now;
                Verdict::New { missing: 0 }
            }
            _ if silent => {
                *last = Last { number, accepted: now };
                Verdict::New { missing: 0 }
            }
            Sequence::Older => Verdict::Old,
            Sequence::Invalid => Verdict::Invalid,
        }
    }

    /// Accepts any number next.
    pub(crate) fn reset(&mut self) {
        self.last.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tracker: &mut Tracker, number: u16, is_keep_alive: bool, seconds: u64) -> Verdict {
        let now = Instant::from_nanos(seconds * 1_000_000_000);
        let number = Number::Short(number);
        tracker.check(None, None, Some(1), number, is_keep_alive, now, 10_000_000_000, 2)
    }

    #[test]
    fn gaps_duplicates_and_keep_alives() {
        let mut tracker = Tracker::default();
        assert_eq!(check(&mut tracker, 65_534, false, 0), Verdict::New { missing: 0 });
        assert_eq!(check(&mut tracker, 1, false, 0), Verdict::New { missing: 2 });
        assert_eq!(check(&mut tracker, 1, false, 0), Verdict::Old);
        assert_eq!(check(&mut tracker, 65_535, false, 0), Verdict::Old);
        assert_eq!(check(&mut tracker, 2, true, 0), Verdict::New { missing: 0 });
        assert_eq!(check(&mut tracker, 2, true, 0), Verdict::New { missing: 0 });
        assert_eq!(check(&mut tracker, 2, false, 0), Verdict::New { missing: 0 });
        assert_eq!(check(&mut tracker, 4, true, 0), Verdict::New { missing: 0 }, "3 is the last there was");
        assert_eq!(check(&mut tracker, 3, false, 0), Verdict::Old);
        assert_eq!(check(&mut tracker, 0x8000, false, 0), Verdict::Invalid);
        // After a long silence the publisher may have restarted.
        assert_eq!(check(&mut tracker, 0x8000, false, 11), Verdict::New { missing: 0 });
        tracker.reset();
        assert_eq!(check(&mut tracker, 5, false, 11), Verdict::New { missing: 0 });
    }

    #[test]
    fn senders_are_bounded() {
        let mut tracker = Tracker::default();
        for writer in 0..10 {
            let now = Instant::from_nanos(u64::from(writer));
            tracker.check(None, None, Some(writer), Number::Long(1), false, now, 1, 2);
        }
        assert_eq!(tracker.last.len(), 2);
    }
}
