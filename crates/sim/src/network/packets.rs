//! Segments in flight; events refer to them by number.

use taktwerk_netem::tcp::Segment;

#[derive(Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<Segment>,
    spare: Vec<u32>,
}

impl Packets {
    /// Stores a segment.
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

    /// Removes a segment.
    pub(crate) fn take(&mut self, number: u32) -> Segment {
        self.spare.push(number);
        self.slots.get(number as usize).copied().unwrap_or_default()
    }
}
