//! The shared memory of the slots: `core::sync`, or the model checker's stand-in when it is built with `--cfg loom`.

#[cfg(not(loom))]
mod system {
    pub(crate) use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, fence};

    /// A value on the heap that readers copy without a lock.
    pub(crate) type PayloadCell = arc_swap::ArcSwapOption<taktwerk_types::Variant>;
    /// A bounded queue from any number of threads.
    pub(crate) type Ring<T> = crossbeam_queue::ArrayQueue<T>;
}

#[cfg(loom)]
mod model {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use taktwerk_types::Variant;

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, fence};

    /// `arc_swap` is trusted: the model only knows that it is atomic.
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

    /// `crossbeam` is trusted too.
    #[derive(Debug)]
    pub(crate) struct Ring<T>(loom::sync::Mutex<VecDeque<T>>, usize);

    impl<T> Ring<T> {
        pub(crate) fn new(capacity: usize) -> Self {
            Self(loom::sync::Mutex::new(VecDeque::new()), capacity)
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
