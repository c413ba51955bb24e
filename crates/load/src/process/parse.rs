//! Parses the text files of `/proc` (see proc(5)).

use std::str::FromStr;

/// A file of `/proc` differs from its description in proc(5).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is missing or not a number")]
pub struct ParseProcError(pub(super) &'static str);

/// `/proc/<pid>/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) user_ticks: u64,
    pub(super) system_ticks: u64,
}

impl FromStr for Stat {
    type Err = ParseProcError;
    fn from_str(text: &str) -> Result<Self, ParseProcError> {
        // The second field is the program's name in parentheses. It may contain any characters, including parentheses.
        let (_, rest) = text.rsplit_once(')').ok_or(ParseProcError("the name"))?;
        let mut fields = rest.split_ascii_whitespace();
        let mut number = |skip: usize, what: &'static str| {
            fields.nth(skip).and_then(|field| field.parse().ok()).ok_or(ParseProcError(what))
        };
        // Fields 14 and 15; the first field after the name is field 3.
        Ok(Self { user_ticks: number(11, "utime")?, system_ticks: number(0, "stime")? })
    }
}

/// `/proc/<pid>/task/<tid>/schedstat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SchedStat {
    /// Nanoseconds on a CPU.
    pub(super) on_cpu: u64,
    /// Nanoseconds ready to run.
    pub(super) waiting: u64,
    pub(super) timeslices: u64,
}

impl FromStr for SchedStat {
    type Err = ParseProcError;
    fn from_str(text: &str) -> Result<Self, ParseProcError> {
        let mut fields = text.split_ascii_whitespace();
        let mut number =
            |what| fields.next().and_then(|field| field.parse().ok()).ok_or(ParseProcError(what));
        Ok(Self {
            on_cpu: number("time on CPU")?,
            waiting: number("time waiting")?,
            timeslices: number("timeslices")?,
        })
    }
}

/// `/proc/<pid>/task/<tid>/sched`, which is missing in kernels without scheduler debugging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sched {
    pub(super) migrations: u64,
}

impl FromStr for Sched {
    type Err = ParseProcError;
    fn from_str(text: &str) -> Result<Self, ParseProcError> {
        let line = text.lines().find(|line| line.trim_start().starts_with("se.nr_migrations"));
        let number = line.and_then(|line| line.rsplit(':').next()?.trim().parse().ok());
        Ok(Self { migrations: number.ok_or(ParseProcError("se.nr_migrations"))? })
    }
}

/// `/proc/<pid>/status`, of a process or a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// Bytes.
    pub(super) rss: u64,
    pub(super) rss_anonymous: u64,
    pub(super) rss_peak: u64,
    pub(super) threads: u64,
    pub(super) voluntary_switches: u64,
    pub(super) involuntary_switches: u64,
}

impl FromStr for Status {
    type Err = ParseProcError;
    fn from_str(text: &str) -> Result<Self, ParseProcError> {
        let mut status = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let (target, what, unit) = match name {
                "VmRSS" => (&mut status.rss, "VmRSS", 1024),
                "RssAnon" => (&mut status.rss_anonymous, "RssAnon", 1024),
                "VmHWM" => (&mut status.rss_peak, "VmHWM", 1024),
                "Threads" => (&mut status.threads, "Threads", 1),
                "voluntary_ctxt_switches" => (&mut status.voluntary_switches, "voluntary_ctxt_switches", 1),
                "nonvoluntary_ctxt_switches" => {
                    (&mut status.involuntary_switches, "nonvoluntary_ctxt_switches", 1)
                }
                _ => continue,
            };
            let number = value.split_ascii_whitespace().next().and_then(|digits| digits.parse::<u64>().ok());
            *target = number.ok_or(ParseProcError(what))? * unit;
        }
        Ok(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_a_hostile_name() {
        let text = "4242 (a) b (c) S 1 2 3 0 -1 4194304 123 0 0 0 17 5 0 0 20 0 1 0 319083 3133440 416 1";
        assert_eq!(text.parse(), Ok(Stat { user_ticks: 17, system_ticks: 5 }));
        assert!("4242 (a) S 1 2".parse::<Stat>().is_err());
        assert!("".parse::<Stat>().is_err());
    }

    #[test]
    fn schedstat() {
        let parsed: SchedStat = "123456789 42 7\n".parse().unwrap();
        assert_eq!((parsed.on_cpu, parsed.waiting, parsed.timeslices), (123_456_789, 42, 7));
        assert_eq!("1 2".parse::<SchedStat>(), Err(ParseProcError("timeslices")));
    }

    #[test]
    fn status() {
        let text = "Name:\tx: y\nVmHWM:\t    2048 kB\nVmRSS:\t    1728 kB\nRssAnon:\t     112 kB\nThreads:\t3\n\
                    voluntary_ctxt_switches:\t11\nnonvoluntary_ctxt_switches:\t2\n";
        let parsed: Status = text.parse().unwrap();
        assert_eq!(
            (parsed.rss, parsed.rss_anonymous, parsed.rss_peak),
            (1728 * 1024, 112 * 1024, 2048 * 1024)
        );
        assert_eq!((parsed.threads, parsed.voluntary_switches, parsed.involuntary_switches), (3, 11, 2));
        assert!("VmRSS: lots kB".parse::<Status>().is_err());
        assert_eq!("".parse(), Ok(Status::default()));
    }
}
