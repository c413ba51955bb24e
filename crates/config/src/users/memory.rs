//! A pool of working memory for Argon2, 19 MiB for each check by default.
//!
//! Allocating it for every check fragments the heaps of the worker threads, and the allocator keeps hundreds of
//! megabytes.

use argon2::Block;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of pooled buffers: the number of concurrent checks on most servers.
const SPARE_MAX: usize = 4;
/// How long an unused buffer is kept.
const UNUSED_MAX: Duration = Duration::from_secs(30);

/// Unused buffers, and since when each is unused.
static SPARE: Mutex<Vec<(Instant, Vec<Block>)>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<(Instant, Vec<Block>)>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `work` with `count` blocks. Their content is unspecified: Argon2 writes each block before it reads it.
pub(super) fn with<T>(count: usize, work: impl FnOnce(&mut [Block]) -> T) -> T {
    let (_, mut blocks) = spare().pop().unwrap_or_else(|| (Instant::now(), Vec::new()));
    if blocks.len() < count {
        // The old content is not needed, so a new allocation avoids the copy.
        blocks = vec![Block::default(); count];
    }
    let result = work(blocks.get_mut(..count).unwrap_or_default());
    let mut spare = spare();
    if spare.len() < SPARE_MAX {
        spare.push((Instant::now(), blocks));
    }
    result
}

/// Frees the buffers that have been unused for [`UNUSED_MAX`].
pub(super) fn tidy() {
    let unused = |(since, _): &(Instant, Vec<Block>)| since.elapsed() >= UNUSED_MAX;
    let mut spare = spare();
    if spare.iter().any(unused) {
        spare.retain(|piece| !unused(piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_have_the_requested_length() {
        // Other tests share the pool, so only the length is checked.
        for count in [8, 64, 8] {
            assert_eq!(with(count, |blocks| blocks.len()), count);
        }
        std::thread::scope(|scope| {
            for _ in 0..2 * SPARE_MAX {
                scope.spawn(|| with(16, |blocks| assert_eq!(blocks.len(), 16)));
            }
        });
        assert!(spare().len() <= SPARE_MAX);
        tidy();
        assert!(spare().len() <= SPARE_MAX, "recently used buffers are kept");
    }
}
