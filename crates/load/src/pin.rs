//! CPU affinity.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fmt;
use std::str::FromStr;

/// A list of CPU numbers in Linux notation: `0`, `0,2`, `1-3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(Vec<usize>);

/// The text is not a list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a list of CPUs: {text:?}; write 0 or 0,2 or 1-3")]
pub struct ParseCpuListError {
    text: String,
}

/// The kernel refused the affinity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot run on CPU {cpus}: {reason}; this process may use CPU {allowed}")]
pub struct PinError {
    cpus: CpuList,
    reason: rustix::io::Errno,
    allowed: CpuList,
}

impl CpuList {
    /// One CPU.
    #[must_use]
    pub fn single(cpu: usize) -> Self {
        Self(vec![cpu])
    }

    /// The numbers, ascending.
    #[must_use]
    pub fn cpus(&self) -> &[usize] {
        &self.0
    }

    /// The CPUs that the calling thread may use.
    #[must_use]
    pub fn allowed() -> Self {
        let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        Self((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
    }

    /// Restricts the calling thread to these CPUs, and all threads and programs that it starts from now on.
    ///
    /// # Errors
    /// If the machine does not have these CPUs, or this process may not use them.
    pub fn pin(&self) -> Result<(), PinError> {
        let mut set = CpuSet::new();
        self.0.iter().for_each(|cpu| set.set(*cpu));
        sched_setaffinity(None, &set).map_err(|reason| PinError {
            cpus: self.clone(),
            reason,
            allowed: Self::allowed(),
        })
    }
}

impl FromStr for CpuList {
    type Err = ParseCpuListError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseCpuListError { text: text.to_owned() };
        let number = |digits: &str| -> Result<usize, ParseCpuListError> {
            digits.trim().parse().ok().filter(|cpu| *cpu < CpuSet::MAX_CPU).ok_or_else(error)
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if first > last {
                        return Err(error());
                    }
                    cpus.extend(first..=last);
                }
                None => cpus.push(number(part)?),
            }
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut first_group = true;
        while let Some(start) = rest.first() {
            let length = rest.iter().zip(*start..).take_while(|(cpu, expected)| **cpu == *expected).count();
            let (group, tail) = rest.split_at(length);
            rest = tail;
            if !first_group {
                f.write_str(",")?;
            }
            first_group = false;
            match group {
                [single] => write!(f, "{single}")?,
                [first, .., last] => write!(f, "{first}-{last}")?,
                [] => break,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar() {
        for (text, printed) in [("0", "0"), ("3,1,2", "1-3"), ("0,2", "0,2"), ("4-6,5,9", "4-6,9")] {
            assert_eq!(text.parse::<CpuList>().unwrap().to_string(), printed);
        }
        for bad in ["", "a", "1-", "3-1", "-1", "0,,1", "99999999"] {
            assert!(bad.parse::<CpuList>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pinned_thread_stays_there() {
        let before = CpuList::allowed();
        std::thread::spawn(|| {
            let first = CpuList::single(CpuList::allowed().cpus()[0]);
            first.pin().unwrap();
            assert_eq!(CpuList::allowed(), first);
            assert!(CpuList::single(1000).pin().unwrap_err().to_string().contains("CPU 1000"));
        })
        .join()
        .unwrap();
        assert_eq!(CpuList::allowed(), before);
    }
}
