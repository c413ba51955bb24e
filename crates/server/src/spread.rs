//! A hash table that grows in small steps.
//!
//! A common hash table moves all its entries when it grows: for 250 000 nodes this takes 20 ms and delays every client.
//! This one consists of tables of bounded size (extendible hashing). A full table is split in two; a directory selects
//! the table by some bits of the hash. Up to half of [`PART_MAX`] entries are in one table.

use hashbrown::HashTable;

/// Entries of one table.
const PART_MAX: usize = 448;
/// Maximum number of entries of a part: varies from half of [`PART_MAX`] upwards. Hashes of successive numbers are
/// spread so evenly that otherwise all parts would be split within a few insertions.
fn part_max(number: u32) -> usize {
    let spread = number.wrapping_mul(0x9E37_79B9) >> 16;
    PART_MAX / 2 + ((spread as usize * (PART_MAX / 2)) >> 16)
}

/// Maximum number of hash bits for the directory. Parts larger than [`PART_MAX`] occur only above 15 million entries,
/// or with a poor hash.
const DEPTH_MAX: u32 = 16;

/// Entries positioned by a hash.
#[derive(Debug)]
pub(crate) struct Spread<T> {
    /// The part for each combination of these hash bits; the length is a power of two.
    directory: Vec<u32>,
    parts: Vec<Part<T>>,
    len: usize,
    /// Allocated bytes of the parts' tables.
    tables: usize,
}

#[derive(Debug)]
struct Part<T> {
    /// Number of hash bits that all entries of this part have in common.
    depth: u32,
    table: HashTable<Entry<T>>,
}

/// Contains the needed bits of its hash, so that moving it needs no lookup.
#[derive(Debug)]
struct Entry<T> {
    bits: u32,
    value: T,
}

/// The stored bits of a hash. The lowest ones select the directory entry.
#[inline]
fn kept(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The directory index for stored hash bits.
#[inline]
fn place(bits: u32, directory_len: usize) -> usize {
    bits as usize & (directory_len - 1)
}

/// The hash within a part. It must not use the bits that all entries of the part have in common.
#[inline]
fn within(bits: u32) -> u64 {
    u64::from(bits).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32)
}

impl<T> Default for Spread<T> {
    fn default() -> Self {
        Self {
            directory: vec![0],
            parts: vec![Part { depth: 0, table: HashTable::new() }],
            len: 0,
            tables: 0,
        }
    }
}

impl<T> Spread<T> {
    #[inline]
    fn part(&self, bits: u32) -> Option<&Part<T>> {
        let at = *self.directory.get(place(bits, self.directory.len()))?;
        self.parts.get(at as usize)
    }

    #[inline]
    fn part_mut(&mut self, bits: u32) -> Option<&mut Part<T>> {
        let at = *self.directory.get(place(bits, self.directory.len()))?;
        self.parts.get_mut(at as usize)
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Allocated bytes, free places included.
    pub(crate) fn allocated(&self) -> usize {
        let lists =
            self.directory.capacity() * size_of::<u32>() + self.parts.capacity() * size_of::<Part<T>>();
        self.tables + lists
    }

    /// The entry with this hash for which `is_it` holds.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        let bits = kept(hash);
        let found =
            self.part(bits)?.table.find(within(bits), |entry| entry.bits == bits && is_it(&entry.value));
        found.map(|entry| &entry.value)
    }

    /// Adds an entry that does not exist yet.
    pub(crate) fn insert_unique(&mut self, hash: u64, value: T) {
        let bits = kept(hash);
        while self.is_full(bits) {
            self.divide(bits);
        }
        if let Some(part) = self.part_mut(bits) {
            let before = part.table.allocation_size();
            part.table.insert_unique(within(bits), Entry { bits, value }, |entry| within(entry.bits));
            let added = part.table.allocation_size() - before;
            self.len += 1;
            self.tables += added;
        }
    }

    /// Whether the part for these bits must be split before another entry is added.
    fn is_full(&self, bits: u32) -> bool {
        let Some(number) = self.directory.get(place(bits, self.directory.len())) else { return false };
        let part = self.parts.get(*number as usize);
        part.is_some_and(|part| part.table.len() >= part_max(*number) && part.depth < DEPTH_MAX)
    }

    /// Removes the entry with this hash for which `is_it` holds.
    pub(crate) fn remove(&mut self, hash: u64, mut is_it: impl FnMut(&T) -> bool) -> Option<T> {
        let bits = kept(hash);
        let table = &mut self.part_mut(bits)?.table;
        let entry = table.find_entry(within(bits), |entry| entry.bits == bits && is_it(&entry.value)).ok()?;
        let (entry, _) = entry.remove();
        self.len -= 1;
        Some(entry.value)
    }

    /// Splits the part for these bits by one more bit.
    fn divide(&mut self, bits: u32) {
        let new = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        let Some(part) = self.part_mut(bits) else { return };
        let depth = part.depth;
        part.depth += 1;
        let before = part.table.allocation_size();
        // Both get their final size at once, so that nothing is moved twice.
        let mut halves = [0, 1].map(|_| HashTable::with_capacity(PART_MAX));
        for entry in part.table.drain() {
            let [low, high] = &mut halves;
            let half = if entry.bits >> depth & 1 == 0 { low } else { high };
            half.insert_unique(within(entry.bits), entry, |entry| within(entry.bits));
        }
        let [low, high] = halves;
        let after = low.allocation_size() + high.allocation_size();
        part.table = low;
        self.tables = self.tables + after - before;
        self.parts.push(Part { depth: depth + 1, table: high });
        if self.directory.len() == 1 << depth {
            self.directory.extend_from_within(..);
        }
        // The directory entries of the upper half.
        let first = place(bits, 1 << depth) | 1 << depth;
        for place in self.directory.iter_mut().skip(first).step_by(2 << depth) {
            *place = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::hash::BuildHasher;
    use hashbrown::DefaultHashBuilder;
    use std::collections::BTreeSet;

    fn has(spread: &Spread<u32>, hasher: &DefaultHashBuilder, value: u32) -> bool {
        spread.find(hasher.hash_one(value), |found| *found == value).is_some()
    }

    #[test]
    fn added_entries_are_found_until_they_are_removed() {
        let hasher = DefaultHashBuilder::default();
        let mut spread = Spread::default();
        let mut expected = BTreeSet::new();
        for value in 0..100_000u32 {
            spread.insert_unique(hasher.hash_one(value), value);
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
        assert_eq!(spread.tables, spread.parts.iter().map(|part| part.table.allocation_size()).sum());
        assert!(spread.allocated() > spread.tables && spread.tables > spread.len() * size_of::<Entry<u32>>());
    }

    #[test]
    fn entries_with_the_same_bits_are_distinguished() {
        let mut spread = Spread::default();
        for value in 0..3 {
            spread.insert_unique(7 << 32, value);
        }
        assert_eq!(spread.find(7 << 32, |found| *found == 1), Some(&1));
        assert_eq!(spread.remove(7 << 32, |found| *found == 1), Some(1));
        assert_eq!(spread.find(7 << 32, |found| *found == 1), None);
        assert_eq!(spread.find(8 << 32, |found| *found == 2), None);
        assert_eq!((spread.find(7 << 32, |found| *found == 2), spread.len()), (Some(&2), 2));
    }

    /// Insertions of one AddNodes request must not move many entries in total.
    #[test]
    fn some_insertions_move_few_entries() {
        let hasher = DefaultHashBuilder::default();
        let mut spread = Spread::default();
        for request in 0..3000u32 {
            let before: usize = spread.parts.len();
            for value in request * 100..(request + 1) * 100 {
                spread.insert_unique(hasher.hash_one(value), value);
            }
            let divided = spread.parts.len() - before;
            assert!(divided <= 8, "{divided} parts for request {request}");
        }
    }

    /// The bits that entries of a part have in common must not cause collisions in its table.
    #[test]
    fn entries_of_one_part_do_not_collide() {
        let mut lows = BTreeSet::new();
        let mut tags = BTreeSet::new();
        for number in 0..PART_MAX as u32 {
            let hash = within(number << DEPTH_MAX | 0x1234);
            lows.insert(hash & 511);
            tags.insert(hash >> 57);
        }
        assert!(lows.len() > 512 / 2 && tags.len() > 128 / 2, "{} places, {} tags", lows.len(), tags.len());
    }

    #[test]
    fn equal_hashes_only_cost_time() {
        let mut spread = Spread::default();
        let count = u32::try_from(PART_MAX).unwrap() + 10;
        for value in 0..count {
            spread.insert_unique(7, value);
        }
        assert_eq!(spread.len(), count as usize);
        assert_eq!(spread.find(7, |found| *found == count - 1), Some(&(count - 1)));
    }
}
