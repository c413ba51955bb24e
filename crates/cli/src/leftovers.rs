//! What laboratories that were killed have left on this machine.

use taktwerk_lab::{cpu, orphans};

/// Takes away what laboratories that were killed have left: programs, control groups, governors. Says what that was.
pub(crate) fn clean() -> Vec<String> {
    let mut cleaned = orphans::clean();
    cleaned.extend(cpu::clean());
    cleaned
}

/// The same, before something is started.
pub(crate) fn clean_up() {
    for left in clean() {
        tracing::info!("left by a laboratory that was killed: {left}");
    }
}
