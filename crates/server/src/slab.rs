//! A table with small dense keys that detect reuse.

use crate::eviction::Member;

/// A slot in a [`Slab`], protected against reuse by its generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Key {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Key {
    /// Identifies this shard's member at the key, for evictions.
    pub(crate) fn member(self, shard: usize) -> Member {
        Member { shard, index: self.index, generation: self.generation }
    }
}

impl From<Member> for Key {
    fn from(Member { index, generation, .. }: Member) -> Self {
        Self { index, generation }
    }
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// Values at stable keys; slots are reused, keys are not.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Stores the value that `make` builds from its own key.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(Key) -> T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, value: None });
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        let generation = self.places.get(index as usize).map_or(0, |place| place.generation);
        let key = Key { index, generation };
        let value = make(key);
        if let Some(place) = self.places.get_mut(index as usize) {
            place.value = Some(value);
        }
        key
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        self.insert_with(|_| value)
    }

    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let place = self.places.get(key.index as usize)?;
        if place.generation == key.generation { place.value.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation == key.generation { place.value.as_mut() } else { None }
    }

    /// The current key of a slot.
    pub(crate) fn key_at(&self, index: u32) -> Option<Key> {
        let place = self.places.get(index as usize)?;
        place.value.as_ref().map(|_| Key { index, generation: place.generation })
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let place =
            self.places.get_mut(key.index as usize).filter(|place| place.generation == key.generation)?;
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        (0u32..).zip(&self.places).filter_map(|(index, place)| {
            Some((Key { index, generation: place.generation }, place.value.as_ref()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_removed_values_stay_invalid() {
        let mut slab = Slab::default();
        let one = slab.insert(1);
        let two = slab.insert(2);
        assert_eq!(slab.remove(one), Some(1));
        assert_eq!(slab.remove(one), None);
        let three = slab.insert(3);
        assert_eq!(three.index, one.index);
        assert_eq!((slab.get(one), slab.get(two), slab.get(three)), (None, Some(&2), Some(&3)));
        assert_eq!(slab.len(), 2);
        assert_eq!(slab.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [3, 2]);
    }
}
