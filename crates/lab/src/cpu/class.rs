//! Scheduling classes.

use super::NotPermitted;
use serde::Serialize;
use std::fmt;
use std::process::{Command, Stdio};
use std::str::FromStr;

/// How the kernel schedules a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Fair shares for all threads (`SCHED_OTHER`).
    #[default]
    Other,
    /// Real-time: runs until it blocks (`SCHED_FIFO`), priority 1 to 99.
    Fifo(u8),
    /// Real-time: round-robin among threads of the same priority (`SCHED_RR`), priority 1 to 99.
    RoundRobin(u8),
}

impl Class {
    /// Sets the class of all threads of a process; threads that it starts later inherit it.
    ///
    /// # Errors
    /// If this process lacks the right, or `chrt` is missing.
    pub fn apply(self, pid: u32) -> Result<(), NotPermitted> {
        let (flag, priority) = match self {
            Self::Other => ("--other", 0),
            Self::Fifo(priority) => ("--fifo", priority),
            Self::RoundRobin(priority) => ("--rr", priority),
        };
        let output = Command::new("chrt")
            .args(["--all-tasks", flag, "--pid", &priority.to_string(), &pid.to_string()])
            .stdin(Stdio::null())
            .output()
            .map_err(|_| NotPermitted(
                    "chrt is missing (Debian: apt-get install util-linux); install it, or measure without a class".to_owned(),
                ))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(NotPermitted(format!(
            "the scheduling class {self} is not permitted ({}): run as root, or give yourself the limit rtprio \
             (/etc/security/limits.conf), or measure without a class",
            said.lines().next().unwrap_or("no reason given").trim()
        )))
    }

    /// Class and priority of a process, from fields 40 and 41 of its `stat`.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }
}

fn parse(stat: &str) -> Option<Class> {
    // The name of the program is in parentheses and may contain anything.
    let rest = stat.get(stat.rfind(')')? + 1..)?;
    let field = |number: usize| rest.split_whitespace().nth(number - 3)?.parse::<u32>().ok();
    let priority = u8::try_from(field(40)?).ok()?;
    Some(match field(41)? {
        1 => Class::Fifo(priority),
        2 => Class::RoundRobin(priority),
        _ => Class::Other,
    })
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("other"),
            Self::Fifo(priority) => write!(f, "fifo:{priority}"),
            Self::RoundRobin(priority) => write!(f, "rr:{priority}"),
        }
    }
}

impl FromStr for Class {
    type Err = NotPermitted;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let priority = |digits: &str| digits.parse::<u8>().ok().filter(|it| (1..=99).contains(it));
        let class = match text.split_once(':') {
            None if text == "other" => Some(Self::Other),
            Some(("fifo", digits)) => priority(digits).map(Self::Fifo),
            Some(("rr", digits)) => priority(digits).map(Self::RoundRobin),
            _ => None,
        };
        class.ok_or_else(|| {
            NotPermitted(format!(
                "{text:?} is not a scheduling class: write other, fifo:PRIORITY or rr:PRIORITY (1 to 99)"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;
    use std::time::Duration;

    #[test]
    fn grammar() {
        for text in ["other", "fifo:1", "rr:99"] {
            assert_eq!(text.parse::<Class>().unwrap().to_string(), text);
        }
        for text in ["", "fifo", "fifo:0", "rr:100", "idle:1"] {
            assert!(text.parse::<Class>().unwrap_err().to_string().contains("PRIORITY"), "{text}");
        }
    }

    #[test]
    fn classes_are_set_or_refused_with_a_reason() {
        let sleeper = Program::new("/bin/sh").args(["-c", "echo READY here; exec sleep 60"]);
        let running = sleeper.serve(Duration::from_secs(10)).unwrap();
        assert_eq!(Class::of(running.pid()), Some(Class::Other));
        match Class::RoundRobin(3).apply(running.pid()) {
            Ok(()) => assert_eq!(Class::of(running.pid()), Some(Class::RoundRobin(3))),
            Err(refused) => {
                assert!(refused.to_string().contains("root") || refused.to_string().contains("chrt"))
            }
        }
        assert_eq!(Class::of(0), None);
    }
}
