//! Rules of the workspace that no compiler checks.

use crate::Failure;
use std::path::Path;

/// Runs all checks.
pub(crate) fn run(_root: &Path, _wasm: bool) -> Result<(), Failure> {
    Ok(())
}
