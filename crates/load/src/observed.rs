//! The actual CPU conditions of a program, stored with a result. The laboratory observes them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// CPU conditions stored with a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// The CPUs that the program may use.
    pub cpus: String,
    /// Number of other programs that may use one of them, without kernel threads. 0 means an isolated core.
    pub others: usize,
    /// Scheduling class and priority.
    pub class: String,
    /// Governor of the first of these CPUs; none on most virtual machines.
    pub governor: Option<String>,
    /// Whether one of these CPUs shares its core with another one (hyper-threading).
    pub shares_core: bool,
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = match self.others {
            0 => "nothing else".to_owned(),
            1 => "1 other program".to_owned(),
            others => format!("{others} other programs"),
        };
        let governor = self.governor.as_deref().unwrap_or("none");
        let core = if self.shares_core { ", core shared by hyper-threading" } else { "" };
        write!(f, "CPU {} with {others}, class {}, governor {governor}{core}", self.cpus, self.class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences() {
        let seen = Observed {
            cpus: "1".to_owned(),
            others: 0,
            class: "fifo:50".to_owned(),
            governor: None,
            shares_core: true,
        };
        assert_eq!(
            seen.to_string(),
            "CPU 1 with nothing else, class fifo:50, governor none, core shared by hyper-threading"
        );
    }
}
