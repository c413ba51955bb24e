//! A hash table that grows in small steps.
//!
//! A common hash table takes all its entries along when it grows: 250 000 nodes are 20 ms, for which every client of the
//! server waits. This one consists of tables of a bounded size. One that is full is divided into two, and a directory says by
//! a few bits of the hash which one to look into (extendible hashing). Up to [`PART_MAX`] entries are one table.

use hashbrown::HashTable;

/// Entries of one table. Dividing one takes about 0.2 ms.
const PART_MAX: usize = 7168;
/// Bits of the hash that the directory has at most: parts larger than [`PART_MAX`] come only after 400 million entries, or with a
/// hash that does not spread.
const DEPTH_MAX: u32 = 16;

/// Entries with their place given by a hash.
#[derive(Debug)]
pub(super) struct Spread<T> {
    /// Which part has the entries whose hashes have these bits; its length is a power of two.
    directory: Vec<u32>,
    parts: Vec<Part<T>>,
    len: usize,
}

#[derive(Debug)]
struct Part<T> {
    /// How many bits of the hash all entries of this part have in common.
    depth: u32,
    table: HashTable<T>,
}

/// The bits that the directory is asked for: others than those a part uses, the lowest and the highest.
#[inline]
fn bits(hash: u64) -> usize {
    (hash >> 32) as usize & ((1 << DEPTH_MAX) - 1)
}

impl<T> Default for Spread<T> {
    fn default() -> Self {
        Self { directory: vec![0], parts: vec![Part { depth: 0, table: HashTable::new() }], len: 0 }
    }
}

impl<T> Spread<T> {
    #[inline]
    fn part(&self, hash: u64) -> Option<&Part<T>> {
        let at = *self.directory.get(bits(hash) & (self.directory.len() - 1))?;
        self.parts.get(at as usize)
    }

    #[inline]
    fn part_mut(&mut self, hash: u64) -> Option<&mut Part<T>> {
        let at = *self.directory.get(bits(hash) & (self.directory.len() - 1))?;
        self.parts.get_mut(at as usize)
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The entry with this hash for which `is_it` holds.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        self.part(hash)?.table.find(hash, is_it)
    }

    /// Adds an entry, which must not be there yet. `rehash` gives the hash of entries that are there.
    pub(super) fn insert_unique(&mut self, hash: u64, value: T, rehash: impl Fn(&T) -> u64) {
        while self.part(hash).is_some_and(|part| part.table.len() >= PART_MAX && part.depth < DEPTH_MAX) {
            self.divide(hash, &rehash);
        }
        if let Some(part) = self.part_mut(hash) {
            part.table.insert_unique(hash, value, rehash);
            self.len += 1;
        }
    }

    /// Takes out the entry with this hash for which `is_it` holds.
    pub(super) fn remove(&mut self, hash: u64, is_it: impl FnMut(&T) -> bool) -> Option<T> {
        let entry = self.part_mut(hash)?.table.find_entry(hash, is_it).ok()?;
        let (value, _) = entry.remove();
        self.len -= 1;
        Some(value)
    }

    /// Divides the part of a hash into two, by one bit more.
    fn divide(&mut self, hash: u64, rehash: &impl Fn(&T) -> u64) {
        let new = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        let Some(part) = self.part_mut(hash) else { return };
        let depth = part.depth;
        part.depth += 1;
        // Both get their final size at once: nothing is moved a second time.
        let mut halves = [0, 1].map(|_| HashTable::with_capacity(PART_MAX));
        for value in part.table.drain() {
            let hash = rehash(&value);
            let [low, high] = &mut halves;
            let half = if bits(hash) >> depth & 1 == 0 { low } else { high };
            half.insert_unique(hash, value, rehash);
        }
        let [low, high] = halves;
        part.table = low;
        self.parts.push(Part { depth: depth + 1, table: high });
        if self.directory.len() == 1 << depth {
            self.directory.extend_from_within(..);
        }
        // The places in the directory that lead to the upper half.
        let first = bits(hash) & ((1 << depth) - 1) | 1 << depth;
        for place in self.directory.iter_mut().skip(first).step_by(2 << depth) {
            *place = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use core::hash::BuildHasher;
    use hashbrown::DefaultHashBuilder;
    use std::collections::BTreeSet;

    fn has(spread: &Spread<u32>, hasher: &DefaultHashBuilder, value: u32) -> bool {
        spread.find(hasher.hash_one(value), |found| *found == value).is_some()
    }

    #[test]
    fn everything_added_is_found_until_it_is_taken_out() {
        let hasher = DefaultHashBuilder::default();
        let mut spread = Spread::default();
        let mut expected = BTreeSet::new();
        for value in 0..100_000u32 {
            spread.insert_unique(hasher.hash_one(value), value, |value| hasher.hash_one(*value));
            expected.insert(value);
            if value % 3 == 0 {
                let gone = value / 2;
                let was_there = expected.remove(&gone);
                assert_eq!(spread.remove(hasher.hash_one(gone), |found| *found == gone).is_some(), was_there);
            }
        }
        assert_eq!(spread.len(), expected.len());
        for value in 0..100_001 {
            assert_eq!(has(&spread, &hasher, value), expected.contains(&value), "{value}");
        }
        assert!(spread.parts.iter().all(|part| part.table.len() <= PART_MAX));
    }

    #[test]
    fn one_insertion_moves_few_entries() {
        let hasher = DefaultHashBuilder::default();
        let mut spread = Spread::default();
        let moved = Cell::new(0);
        for value in 0..300_000u32 {
            moved.set(0);
            spread.insert_unique(hasher.hash_one(value), value, |value| {
                moved.set(moved.get() + 1);
                hasher.hash_one(*value)
            });
            assert!(moved.get() <= 2 * PART_MAX, "{} entries for {value}", moved.get());
        }
    }

    #[test]
    fn hashes_that_are_all_the_same_cost_time_only() {
        let mut spread = Spread::default();
        let count = u32::try_from(PART_MAX).unwrap() + 10;
        for value in 0..count {
            spread.insert_unique(7, value, |_| 7);
        }
        assert_eq!(spread.len(), count as usize);
        assert_eq!(spread.find(7, |found| *found == count - 1), Some(&(count - 1)));
    }
}
