//! What laboratories that were killed have left on this machine.

use crate::{cpu, orphans};

/// Removes what laboratories that were killed have left: programs, control groups, governors. Says what that was.
pub fn clean() -> Vec<String> {
    let mut cleaned = orphans::clean();
    cleaned.extend(cpu::clean());
    cleaned
}

/// The same, before something is started.
pub fn clean_up() {
    for left in clean() {
        tracing::info!("left by a laboratory that was killed: {left}");
    }
}
