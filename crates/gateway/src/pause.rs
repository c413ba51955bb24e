//! Pauses between attempts.

use core::cell::Cell;
use core::time::Duration;

thread_local! {
    static STATE: Cell<u64> = Cell::new(taktwerk_net::clock::monotonic().as_nanos() as u64 | 1);
}

/// Up to a quarter of a pause, so that clients that failed together do not retry at the same time.
pub(crate) fn jitter(pause: Duration) -> Duration {
    let mut state = STATE.get();
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    STATE.set(state);
    pause.mul_f64((state >> 11) as f64 / (1_u64 << 53) as f64 / 4.0)
}

/// Makes the pauses of this thread reproducible.
#[cfg(test)]
pub(crate) fn seed(seed: u64) {
    STATE.set(seed | 1);
}
