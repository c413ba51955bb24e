//! A list that grows without moving its elements.
//!
//! A `Vec` copies all elements when it grows: 250 000 nodes are 25 MB, which would delay every client. This list
//! consists of segments of fixed size that never move.

/// Elements of one segment: 100 kB of nodes.
const SEGMENT: usize = 1024;

/// Elements with numbers counted from zero.
#[derive(Debug)]
pub(super) struct SegmentedList<T> {
    /// All are full except the last one.
    segments: Vec<Vec<T>>,
}

impl<T> Default for SegmentedList<T> {
    fn default() -> Self {
        Self { segments: Vec::new() }
    }
}

impl<T> SegmentedList<T> {
    /// Number of elements.
    pub(super) fn len(&self) -> usize {
        let Some(last) = self.segments.last() else { return 0 };
        (self.segments.len() - 1) * SEGMENT + last.len()
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.segments.get(at / SEGMENT)?.get(at % SEGMENT)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.segments.get_mut(at / SEGMENT)?.get_mut(at % SEGMENT)
    }

    /// Appends an element.
    pub(super) fn push(&mut self, value: T) {
        match self.segments.last_mut().filter(|last| last.len() < SEGMENT) {
            Some(last) => last.push(value),
            None => {
                // Memory that has not been written is not committed, so a short list does not use a whole segment.
                let mut segment = Vec::with_capacity(SEGMENT);
                segment.push(value);
                self.segments.push(segment);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.segments.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.segments.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_behaves_like_a_list() {
        let mut list = SegmentedList::default();
        assert_eq!((list.len(), list.get(0)), (0, None));
        let count = 2 * SEGMENT + 1;
        for value in 0..count {
            list.push(value);
            assert_eq!(list.len(), value + 1);
        }
        for value in 0..count {
            assert_eq!(list.get(value), Some(&value));
            *list.get_mut(value).unwrap() += 1;
        }
        assert_eq!(list.get(count), None);
        assert_eq!(list.get_mut(count), None);
        for value in list.iter_mut() {
            *value += 1;
        }
        assert!(list.iter().copied().eq(2..count + 2));
    }

    #[test]
    fn elements_never_move() {
        let mut list = SegmentedList::default();
        list.push(0);
        let first: *const usize = list.get(0).unwrap();
        for value in 1..10 * SEGMENT {
            list.push(value);
        }
        assert!(core::ptr::eq(first, list.get(0).unwrap()));
    }
}
