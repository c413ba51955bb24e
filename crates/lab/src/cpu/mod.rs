//! CPU conditions of a measurement: CPU assignment, isolation, scheduling class and frequency.
//!
//! - [`crate::pin`]: CPU affinity;
//! - [`isolation`]: keeps other programs off a CPU;
//! - [`class`]: ordinary or real-time scheduling;
//! - [`governor`]: frequency governors;
//! - [`wanted`]: all of these for one measurement;
//! - [`mod@observe`]: the actual conditions, which are part of every result.
//!
//! Changes are undone when their guard is dropped. Changes of killed processes are marked with the process id and start
//! time, and [`clean`] undoes them.

pub mod class;
pub mod governor;
pub mod isolation;
pub mod observe;
pub mod wanted;

pub use class::Class;
pub use governor::Governor;
pub use isolation::Isolation;
pub use observe::observe;
pub use taktwerk_load::observed::Observed;
pub use wanted::{Set, Wanted};

use crate::orphans::Owner;

/// A condition cannot be set. The message says what is missing and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotPermitted(pub(crate) String);

/// Undoes the changes of killed processes and describes them.
#[must_use]
pub fn clean() -> Vec<String> {
    let mut cleaned = isolation::clean();
    cleaned.extend(governor::clean());
    cleaned
}

/// Name with `prefix` and the mark of this process, for files and control groups.
fn owned(prefix: &str) -> Result<String, NotPermitted> {
    let owner = Owner::this().ok_or_else(|| {
        NotPermitted("cannot identify this process because /proc is missing: mount it".to_owned())
    })?;
    Ok(format!("{prefix}{}", owner.short()))
}

/// Whether the process that created `name` has ended. `name` is [`owned`], a hyphen, and any text.
fn owner_is_gone(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).and_then(Owner::from_short).is_some_and(|owner| owner.is_gone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orphans::tests::nobody;

    #[test]
    fn owners() {
        let ours = owned("x-").unwrap();
        assert!(!owner_is_gone(&format!("{ours}-rest"), "x-"));
        assert!(owner_is_gone(&format!("x-{}-rest", nobody().short()), "x-"));
        // A later process with the same id is a different process.
        let [pid, _, namespace] = ours.strip_prefix("x-").unwrap().split('-').collect::<Vec<_>>()[..] else {
            panic!("{ours}")
        };
        assert!(owner_is_gone(&format!("x-{pid}-1-{namespace}-rest"), "x-"));
        // Processes of another container are not visible here.
        assert!(!owner_is_gone(&format!("x-{pid}-1-1-rest"), "x-"));
        for name in ["y-4194999-1-1", "x-", "x-4194999-rest", "x-4194999-77-rest"] {
            assert!(!owner_is_gone(name, "x-"), "{name}");
        }
    }
}
