//! CPU conditions of a measurement: where a program runs, what else runs there, in which class, at which frequency.
//!
//! - [`crate::pin`]: on which CPUs;
//! - [`isolation`]: a core with nothing else on it;
//! - [`class`]: ordinary or real-time;
//! - [`governor`]: who sets the frequency;
//! - [`wanted`]: all of these for one measurement;
//! - [`mod@observe`]: what it really is, which stands beside every result.
//!
//! Everything that is changed is changed back when its guard is dropped. What a killed process leaves behind has a name
//! with its process id and start time in it, and [`clean`] takes it away.

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

/// Takes away what processes that were killed have left behind, and says what that was.
#[must_use]
pub fn clean() -> Vec<String> {
    let mut cleaned = isolation::clean();
    cleaned.extend(governor::clean());
    cleaned
}

/// What stands behind `prefix` in the names of files and control groups of this process.
fn owned(prefix: &str) -> Result<String, NotPermitted> {
    let owner = Owner::this().ok_or_else(|| {
        NotPermitted(
            "this process cannot be told from others, as there is no /proc here: mount it".to_owned(),
        )
    })?;
    Ok(format!("{prefix}{}", owner.short()))
}

/// Whether the process is gone that has made what is called `name`: [`owned`], a hyphen, and anything.
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
        // A process that has the same id later is another one.
        let [pid, _, namespace] = ours.strip_prefix("x-").unwrap().split('-').collect::<Vec<_>>()[..] else {
            panic!("{ours}")
        };
        assert!(owner_is_gone(&format!("x-{pid}-1-{namespace}-rest"), "x-"));
        // One of a container cannot be seen from here.
        assert!(!owner_is_gone(&format!("x-{pid}-1-1-rest"), "x-"));
        for name in ["y-4194999-1-1", "x-", "x-4194999-rest", "x-4194999-77-rest"] {
            assert!(!owner_is_gone(name, "x-"), "{name}");
        }
    }
}
