//! Rates: how often something may happen.

/// So many per second on average, and so many at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// On average.
    pub per_second: f64,
    /// At once, after a while of silence; at least 1.
    pub burst: u32,
}

impl Rate {
    /// A rate.
    #[must_use]
    pub const fn new(per_second: f64, burst: u32) -> Self {
        Self { per_second, burst }
    }

    /// Time that one takes, ns. A rate that is no positive number lets nothing pass but the burst.
    pub(crate) fn cost(self) -> u64 {
        let nanos = 1e9 / self.per_second;
        if nanos.is_finite() && nanos >= 0.0 { nanos as u64 } else { u64::MAX / 4 }
    }
}

/// Addresses, and networks, that are remembered at most besides those that are connected.
pub(crate) const ENTRIES_MAX: usize = 64 << 10;
/// Addresses from which somebody has logged on that are remembered at most.
pub(crate) const FAMILIAR_MAX: usize = 4 << 10;
