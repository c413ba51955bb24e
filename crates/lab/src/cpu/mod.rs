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
//! with its process id in it, and [`clean`] takes it away.

pub mod class;
pub mod governor;
pub mod isolation;
pub mod observe;
pub mod wanted;

pub use class::Class;
pub use governor::Governor;
pub use isolation::Isolation;
pub use observe::{Observed, observe};
pub use wanted::{Set, Wanted};

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

/// Whether the process is gone whose id stands in `name` behind `prefix`.
fn owner_is_gone(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .map(|rest| rest.split('-').next().unwrap_or(rest))
        .and_then(|digits| digits.parse::<u32>().ok())
        .is_some_and(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners() {
        assert!(!owner_is_gone(&format!("x-{}-rest", std::process::id()), "x-"));
        assert!(owner_is_gone("x-4194999-rest", "x-"));
        assert!(!owner_is_gone("y-4194999", "x-") && !owner_is_gone("x-", "x-"));
    }
}
