//! Mutexes whose holders may have panicked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks also after a panic of a holder: what it guards is whole after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
