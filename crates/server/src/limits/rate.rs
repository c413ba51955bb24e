//! Rates: limits on frequency.

/// An average rate with a burst.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// On average.
    pub per_second: f64,
    /// At once, after a period without use; at least 1.
    pub burst: u32,
}

impl Rate {
    /// A rate.
    #[must_use]
    pub const fn new(per_second: f64, burst: u32) -> Self {
        Self { per_second, burst }
    }

    /// Time per unit, in ns. If the rate is not a positive number, only the burst is allowed.
    pub(crate) fn cost(self) -> u64 {
        let nanos = 1e9 / self.per_second;
        if nanos.is_finite() && nanos >= 0.0 { nanos as u64 } else { u64::MAX / 4 }
    }
}

/// Maximum number of remembered addresses, and of networks, besides those with connections.
pub(crate) const ENTRIES_MAX: usize = 64 << 10;
/// Maximum number of remembered addresses with an earlier login.
pub(crate) const FAMILIAR_MAX: usize = 4 << 10;
