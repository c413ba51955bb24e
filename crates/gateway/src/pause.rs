//! Pauses between attempts.

use core::time::Duration;

/// Up to a quarter of a pause, so that those that failed together do not try again together.
pub(crate) fn jitter(pause: Duration) -> Duration {
    let nanos = taktwerk_net::clock::monotonic().as_nanos();
    pause.mul_f64((nanos % 1009) as f64 / 1009.0 / 4.0)
}
