//! Cleans up after killed laboratories on this machine.

use crate::{cpu, orphans};

/// Removes programs, control groups and governor settings of killed laboratories. Describes what was removed.
pub fn clean() -> Vec<String> {
    let mut cleaned = orphans::clean();
    cleaned.extend(cpu::clean());
    cleaned
}

/// Cleans up and logs it, before something is started.
pub fn clean_up() {
    for left in clean() {
        tracing::info!("cleaned up after a killed laboratory: {left}");
    }
}
