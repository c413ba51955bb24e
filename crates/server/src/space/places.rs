//! A list that grows without moving what it holds.
//!
//! A `Vec` copies all its elements when it has no more room: 250 000 nodes are 25 MB, for which every client of the server
//! waits. This list consists of pieces of one size that stay where they are.

/// Elements of one piece: 100 kB of nodes.
const PIECE: usize = 1024;

/// Elements with numbers counted from zero.
#[derive(Debug)]
pub(super) struct Places<T> {
    /// All are full but the last one.
    pieces: Vec<Vec<T>>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

impl<T> Places<T> {
    /// How many elements there are.
    pub(super) fn len(&self) -> usize {
        let Some(last) = self.pieces.last() else { return 0 };
        (self.pieces.len() - 1) * PIECE + last.len()
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.pieces.get(at / PIECE)?.get(at % PIECE)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.pieces.get_mut(at / PIECE)?.get_mut(at % PIECE)
    }

    /// Adds an element behind the last one.
    pub(super) fn push(&mut self, value: T) {
        match self.pieces.last_mut().filter(|last| last.len() < PIECE) {
            Some(last) => last.push(value),
            None => {
                // Memory that is not written yet is none: a short list costs no whole piece.
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(value);
                self.pieces.push(piece);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.pieces.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_list() {
        let mut places = Places::default();
        assert_eq!((places.len(), places.get(0)), (0, None));
        let count = 2 * PIECE + 1;
        for value in 0..count {
            places.push(value);
            assert_eq!(places.len(), value + 1);
        }
        for value in 0..count {
            assert_eq!(places.get(value), Some(&value));
            *places.get_mut(value).unwrap() += 1;
        }
        assert_eq!(places.get(count), None);
        assert_eq!(places.get_mut(count), None);
        for value in places.iter_mut() {
            *value += 1;
        }
        assert!(places.iter().copied().eq(2..count + 2));
    }

    #[test]
    fn elements_stay_where_they_are() {
        let mut places = Places::default();
        places.push(0);
        let first: *const usize = places.get(0).unwrap();
        for value in 1..10 * PIECE {
            places.push(value);
        }
        assert!(core::ptr::eq(first, places.get(0).unwrap()));
    }
}
