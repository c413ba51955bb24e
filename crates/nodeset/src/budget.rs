//! Limits what small files can become: fields that values omit get their defaults, and data types inherit fields.

use crate::error::Problem;
use crate::model::NodeSet;
use core::cell::Cell;

/// Bytes that any file may use.
const BASE: usize = 1 << 20;
/// Bytes for each byte of the text. The published companion specifications need less.
const FACTOR: usize = 8;

/// How many bytes the values and data types of files may still use.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    left: Cell<usize>,
}

impl Budget {
    /// For all values and data types of some files.
    #[must_use]
    pub fn of(sets: &[NodeSet]) -> Self {
        let len: usize = sets.iter().map(|set| set.source.len()).sum();
        let limit = len.saturating_mul(FACTOR).saturating_add(BASE);
        Self { limit, left: Cell::new(limit) }
    }

    /// Uses bytes.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn charge(&self, bytes: usize) -> Result<(), Problem> {
        let left = self.left.get().checked_sub(bytes).ok_or(Problem::TooLarge { limit: self.limit })?;
        self.left.set(left);
        Ok(())
    }
}
