//! The shared-memory primitives of the slots: `core::sync`, or the model checker's replacement with `--cfg loom`.

#[cfg(not(loom))]
mod system {
    use core::sync::atomic::{AtomicUsize, Ordering};
    use crossbeam_queue::{ArrayQueue, SegQueue};

    pub(crate) use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, fence};

    /// A value on the heap that readers copy without locking.
    pub(crate) type PayloadCell = arc_swap::ArcSwapOption<taktwerk_types::Variant>;
    /// A bounded queue for any number of threads.
    pub(crate) enum Ring<T> {
        /// Allocated from the start.
        Fixed(ArrayQueue<T>),
        /// Its memory follows its contents: for a long queue that is nearly always empty.
        Growing { queue: SegQueue<T>, len: AtomicUsize, capacity: usize },
    }

    impl<T> Ring<T> {
        pub(crate) fn new(capacity: usize) -> Self {
            Self::Fixed(ArrayQueue::new(capacity))
        }

        pub(crate) const fn growing(capacity: usize) -> Self {
            Self::Growing { queue: SegQueue::new(), len: AtomicUsize::new(0), capacity }
        }

        pub(crate) fn push(&self, value: T) -> Result<(), T> {
            match self {
                Self::Fixed(queue) => queue.push(value),
                Self::Growing { queue, len, capacity } => {
                    // Counted before it is added and until after it is removed, so the length never exceeds the
                    // capacity.
                    if len.fetch_add(1, Ordering::AcqRel) >= *capacity {
                        len.fetch_sub(1, Ordering::AcqRel);
                        return Err(value);
                    }
                    queue.push(value);
                    Ok(())
                }
            }
        }

        pub(crate) fn pop(&self) -> Option<T> {
            match self {
                Self::Fixed(queue) => queue.pop(),
                Self::Growing { queue, len, .. } => {
                    let value = queue.pop()?;
                    len.fetch_sub(1, Ordering::AcqRel);
                    Some(value)
                }
            }
        }

        pub(crate) fn len(&self) -> usize {
            match self {
                Self::Fixed(queue) => queue.len(),
                Self::Growing { queue, .. } => queue.len(),
            }
        }

        pub(crate) fn capacity(&self) -> usize {
            match self {
                Self::Fixed(queue) => queue.capacity(),
                Self::Growing { capacity, .. } => *capacity,
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::Ring;
        use std::sync::Arc;

        #[test]
        fn both_kinds_of_queues_hold_exactly_their_capacity() {
            for ring in [Ring::new(100), Ring::growing(100)] {
                for round in 0..3 {
                    assert!((0..100).all(|value| ring.push(value + round).is_ok()));
                    assert_eq!((ring.push(7), ring.len(), ring.capacity()), (Err(7), 100, 100));
                    assert!((0..100).all(|value| ring.pop() == Some(value + round)));
                    assert_eq!((ring.pop(), ring.len()), (None, 0));
                }
            }
        }

        #[test]
        #[allow(clippy::disallowed_methods)] // threads are what it is for
        fn many_threads_lose_no_values_and_keep_the_capacity() {
            let ring = Arc::new(Ring::growing(64));
            let writers: Vec<_> = (0..4_u64)
                .map(|writer| {
                    let ring = Arc::clone(&ring);
                    std::thread::spawn(move || {
                        for number in 0..5_000 {
                            let mut value = writer << 32 | number;
                            while let Err(refused) = ring.push(value) {
                                value = refused;
                                std::thread::yield_now();
                            }
                        }
                    })
                })
                .collect();
            let mut next = [0; 4];
            while next.iter().sum::<u64>() < 20_000 {
                assert!(ring.len() <= 64);
                match ring.pop() {
                    Some(value) => {
                        let writer = (value >> 32) as usize;
                        assert_eq!(value & 0xffff_ffff, next[writer], "out of order");
                        next[writer] += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
            for writer in writers {
                writer.join().unwrap();
            }
        }
    }
}

#[cfg(loom)]
mod model {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use taktwerk_types::Variant;

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, fence};

    /// `arc_swap` is trusted: the model only assumes that it is atomic.
    #[derive(Debug)]
    pub(crate) struct PayloadCell(loom::sync::Mutex<Option<Arc<Variant>>>);

    impl PayloadCell {
        pub(crate) fn empty() -> Self {
            Self(loom::sync::Mutex::new(None))
        }

        pub(crate) fn load_full(&self) -> Option<Arc<Variant>> {
            self.0.lock().unwrap().clone()
        }

        pub(crate) fn swap(&self, new: Option<Arc<Variant>>) -> Option<Arc<Variant>> {
            core::mem::replace(&mut *self.0.lock().unwrap(), new)
        }
    }

    /// `crossbeam` is trusted as well.
    #[derive(Debug)]
    pub(crate) struct Ring<T>(loom::sync::Mutex<VecDeque<T>>, usize);

    impl<T> Ring<T> {
        pub(crate) fn new(capacity: usize) -> Self {
            Self(loom::sync::Mutex::new(VecDeque::new()), capacity)
        }

        pub(crate) fn growing(capacity: usize) -> Self {
            Self::new(capacity)
        }

        pub(crate) fn push(&self, value: T) -> Result<(), T> {
            let mut queue = self.0.lock().unwrap();
            if queue.len() >= self.1 {
                return Err(value);
            }
            queue.push_back(value);
            Ok(())
        }

        pub(crate) fn pop(&self) -> Option<T> {
            self.0.lock().unwrap().pop_front()
        }

        pub(crate) fn len(&self) -> usize {
            self.0.lock().unwrap().len()
        }

        pub(crate) fn capacity(&self) -> usize {
            self.1
        }
    }
}

#[cfg(loom)]
pub(crate) use model::*;
#[cfg(not(loom))]
pub(crate) use system::*;
