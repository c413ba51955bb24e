//! The memory that hashes work in: megabytes, used again.
//!
//! Allocating it for every check made the C library's allocator keep some hundred megabytes after as many guesses: blocks
//! of 19 MiB came and went on several threads, and what lay between them kept the heaps from shrinking.

use argon2::Block;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many pieces are kept: as many as checks run side by side on most servers.
const SPARE_MAX: usize = 4;
/// How long what nobody uses is kept.
const UNUSED_MAX: Duration = Duration::from_secs(30);

/// Pieces that nobody uses now, and since when.
static SPARE: Mutex<Vec<(Instant, Vec<Block>)>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<(Instant, Vec<Block>)>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives `work` so many blocks. What is in them is of no importance: Argon2 writes each before it reads it.
pub(super) fn with<T>(count: usize, work: impl FnOnce(&mut [Block]) -> T) -> T {
    let (_, mut blocks) = spare().pop().unwrap_or_else(|| (Instant::now(), Vec::new()));
    if blocks.len() < count {
        // Nothing in it is needed, so nothing is to be copied.
        blocks = vec![Block::default(); count];
    }
    let result = work(blocks.get_mut(..count).unwrap_or_default());
    let mut spare = spare();
    if spare.len() < SPARE_MAX {
        spare.push((Instant::now(), blocks));
    }
    result
}

/// Gives back what nobody has used for a while.
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
    fn pieces_are_as_long_as_asked_for() {
        // Other tests use the same pieces: what is asked for counts, not what is there.
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
        assert!(spare().len() <= SPARE_MAX, "what was used just now is not too old");
    }
}
