//! Segments on their way, so that an event names one by a number instead of carrying it.

use taktwerk_netem::tcp::Segment;

#[derive(Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<Segment>,
    spare: Vec<u32>,
}

impl Packets {
    /// Keeps a segment until it is taken.
    pub(crate) fn put(&mut self, segment: Segment) -> u32 {
        if let Some(number) = self.spare.pop()
            && let Some(slot) = self.slots.get_mut(number as usize)
        {
            *slot = segment;
            return number;
        }
        self.slots.push(segment);
        u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
    }

    /// Takes a segment out, once.
    pub(crate) fn take(&mut self, number: u32) -> Segment {
        self.spare.push(number);
        self.slots.get(number as usize).copied().unwrap_or_default()
    }
}
