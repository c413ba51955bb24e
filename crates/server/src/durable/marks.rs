//! How much of a queue has been written to the log.

/// Positions in a queue. Elements are numbered from its beginning, including removed ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks {
    /// The oldest element in the queue.
    first: u64,
    /// The first element that is not written. Between `first` and the end of the queue.
    unwritten: u64,
    has_changed: bool,
}

impl Marks {
    /// For a queue with `len` elements that are all written, the first of which has the given number.
    pub(crate) fn restored(first: u64, len: usize) -> Self {
        Self { first, unwritten: first + len as u64, has_changed: false }
    }

    /// An element was added, or the oldest one has changed.
    #[inline]
    pub(crate) fn pushed(&mut self) {
        self.has_changed = true;
    }

    /// `count` elements were removed from the front.
    #[inline]
    pub(crate) fn popped_front(&mut self, count: usize) {
        self.first += count as u64;
        self.unwritten = self.unwritten.max(self.first);
        self.has_changed = true;
    }

    /// Elements from position `len` on were removed or replaced.
    #[inline]
    pub(crate) fn popped_back(&mut self, len: usize) {
        self.unwritten = self.unwritten.min(self.first + len as u64);
        self.has_changed = true;
    }

    /// All elements may have been replaced.
    pub(crate) fn replaced(&mut self) {
        self.unwritten = self.first;
        self.has_changed = true;
    }

    /// The numbers of the oldest element and of the first one to write; `None` without changes.
    pub(crate) fn take_change(&mut self) -> Option<(u64, u64)> {
        core::mem::take(&mut self.has_changed).then_some((self.first, self.unwritten))
    }

    /// `count` elements were written; `is_left` if more remain.
    pub(crate) fn written(&mut self, count: u64, is_left: bool) {
        self.unwritten += count;
        self.has_changed = is_left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_elements_are_written() {
        let mut marks = Marks::default();
        assert_eq!(marks.take_change(), None);
        marks.pushed();
        marks.pushed();
        assert_eq!(marks.take_change(), Some((0, 0)));
        marks.written(2, false);
        assert_eq!(marks.take_change(), None);
        // The newest of two is replaced.
        marks.popped_back(1);
        marks.pushed();
        assert_eq!(marks.take_change(), Some((0, 1)));
        marks.written(1, false);
        // Both are removed, together with a third that was never written.
        marks.pushed();
        marks.popped_front(3);
        assert_eq!(marks.take_change(), Some((3, 3)));
        marks.written(0, true);
        assert_eq!(marks.take_change(), Some((3, 3)));
        marks.written(0, false);
        marks.replaced();
        assert_eq!(marks.take_change(), Some((3, 3)));
        let mut restored = Marks::restored(10, 5);
        restored.pushed();
        assert_eq!(restored.take_change(), Some((10, 15)));
    }
}
