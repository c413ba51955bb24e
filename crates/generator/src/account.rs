//! Resources used by the generator, and by the server if it runs on this machine, during a window.

use crate::error::GeneratorError;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use taktwerk_lab::cpu::{Observed, observe};
use taktwerk_load::clock;
use taktwerk_load::cycles::Cycles;
use taktwerk_load::energy::Energy;
use taktwerk_load::machine;
use taktwerk_load::process::{Process, Snapshot, Usage};
use taktwerk_load::result::{Accounts, Generator, Per, Server, Unit};
use taktwerk_load::validity::{self, Invalid};
use taktwerk_load::wire::{self, Carried, Wire};

/// The counters at the beginning of a window.
pub(crate) struct Window {
    start: u64,
    own_cpu: u64,
    machine: Option<u64>,
    own: Snapshot,
    server: Option<(Process, Snapshot)>,
    cycles: Option<Cycles>,
    threads: BTreeMap<String, u64>,
    carried: Option<(u16, Carried)>,
    energy: Option<Energy>,
    started: SystemTime,
}

/// Resources used within a window.
#[derive(Debug)]
pub(crate) struct Account {
    /// Length of the window in nanoseconds.
    pub(crate) span: u64,
    /// CPU time of the generator in nanoseconds.
    pub(crate) own_cpu: u64,
    /// Part of it spent on busy polling without events, in nanoseconds.
    in_vain: u64,
    /// Whether the generator waited by polling without counting that time.
    is_spinning: bool,
    own: Usage,
    /// CPU time of all programs on this machine, in nanoseconds.
    machine: Option<u64>,
    /// Resources used by the server.
    pub(crate) server: Option<Usage>,
    cycles: Option<u64>,
    /// CPU time of the server's threads by name, nanoseconds.
    threads: BTreeMap<String, u64>,
    /// Bytes on the connections, if the kernel provides them.
    pub(crate) wire: Option<Wire>,
    /// The actual CPU conditions of the server.
    pub(crate) conditions: Option<Observed>,
    /// The actual CPU conditions of the generator.
    own_conditions: Option<Observed>,
    /// Energy of the whole processor in joules, by part; empty without counters.
    pub(crate) joules: BTreeMap<String, f64>,
    /// Start of the window.
    started: SystemTime,
}

/// Checks a process before connecting, so that a wrong id fails early.
pub(crate) fn server_process(pid: Option<u32>) -> Result<Option<Process>, GeneratorError> {
    let Some(pid) = pid else { return Ok(None) };
    let process = Process::new(pid);
    process.snapshot().map_err(|error| GeneratorError::Environment(format!("--server-pid: {error}")))?;
    Ok(Some(process))
}

impl Window {
    /// Opens a window for the connections to a server's port.
    pub(crate) fn open(server: Option<Process>, port: u16) -> Result<Self, GeneratorError> {
        let environment =
            |error: taktwerk_load::process::ProcessError| GeneratorError::Environment(error.to_string());
        let server = match server {
            Some(process) => Some((process, process.snapshot().map_err(environment)?)),
            None => None,
        };
        let pid = server.as_ref().map(|(process, _)| process.pid());
        let carried = wire::carried(port, pid).ok().map(|carried| (port, carried));
        let cycles = server.as_ref().and_then(|(process, _)| Cycles::count(*process));
        let threads = server.as_ref().map(|(process, _)| process.by_thread()).unwrap_or_default();
        let own = Process::own().snapshot().map_err(environment)?;
        Ok(Self {
            start: clock::monotonic(),
            own_cpu: clock::own_cpu(),
            machine: machine::busy(),
            own,
            server,
            cycles,
            threads,
            carried,
            energy: Energy::begin().ok(),
            started: SystemTime::now(),
        })
    }

    /// Start of the window on the monotonic clock.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Closes the window.
    pub(crate) fn close(mut self) -> Result<Account, GeneratorError> {
        self.so_far()
    }

    /// The account if the window was closed now.
    pub(crate) fn so_far(&mut self) -> Result<Account, GeneratorError> {
        let end = clock::monotonic();
        let joules = self.energy.as_ref().map(Energy::joules).unwrap_or_default();
        let own_cpu = clock::own_cpu().saturating_sub(self.own_cpu);
        let machine = machine::busy().zip(self.machine).map(|(after, before)| after.saturating_sub(before));
        let environment =
            |error: taktwerk_load::process::ProcessError| GeneratorError::Environment(error.to_string());
        let server_process = self.server.as_ref().map(|(process, _)| *process);
        let server = match &self.server {
            Some((process, before)) => {
                Some(Usage::between(before, &process.snapshot().map_err(environment)?))
            }
            None => None,
        };
        let own = Usage::between(&self.own, &Process::own().snapshot().map_err(environment)?);
        let mut threads = server_process.map(|process| process.by_thread()).unwrap_or_default();
        for (name, before) in &self.threads {
            threads.entry(name.clone()).and_modify(|after| *after = after.saturating_sub(*before));
        }
        let cycles = self.cycles.as_mut().and_then(Cycles::read);
        let pid = server_process.map(|process| process.pid());
        let wire = self
            .carried
            .as_ref()
            .and_then(|(port, before)| Some(Wire::between(before, &wire::carried(*port, pid).ok()?)));
        // Last, because reading all processes takes CPU time itself.
        let conditions = server_process.and_then(|process| observe(process.pid()));
        let own_conditions = observe(std::process::id());
        Ok(Account {
            span: end.saturating_sub(self.start),
            own_cpu,
            in_vain: 0,
            is_spinning: false,
            own,
            machine,
            server,
            cycles,
            threads,
            wire,
            conditions,
            own_conditions,
            joules,
            started: self.started,
        })
    }
}

impl Account {
    /// Length of the window in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.span as f64 / 1e9
    }

    /// Start of the window in milliseconds since 1970, for comparison with other records.
    fn started_unix_ms(&self) -> u64 {
        let since = self.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// CPU use of the generator in percent of one core.
    pub(crate) fn own_percent(&self) -> f64 {
        self.own_cpu as f64 / self.span.max(1) as f64 * 100.0
    }

    /// Records the time spent on polling without events, which was available for work.
    pub(crate) fn polling(mut self, in_vain: Duration) -> Self {
        self.in_vain = u64::try_from(in_vain.as_nanos()).unwrap_or(u64::MAX);
        self
    }

    /// Records whether the generator polled without sleeping and without counting it. Its CPU time is then meaningless.
    pub(crate) fn spinning(mut self, is_spinning: bool) -> Self {
        self.is_spinning = is_spinning;
        self
    }

    /// Whether the generator had CPU to spare; it runs on one thread.
    pub(crate) fn check(&self) -> Option<Invalid> {
        if self.is_spinning {
            return None;
        }
        validity::check_cpu(self.own_cpu.saturating_sub(self.in_vain), self.span, 1)
    }

    /// The part of the document, with the server's CPU time per unit of work.
    pub(crate) fn document(&self, unit: Unit, units: u64) -> Accounts {
        let percent = |nanos: u64| nanos as f64 / self.span.max(1) as f64 * 100.0;
        Accounts {
            window_s: self.seconds(),
            started_unix_ms: Some(self.started_unix_ms()),
            energy_j: self.joules.clone(),
            wire: self.wire,
            generator: Generator {
                cpu_s: self.own_cpu as f64 / 1e9,
                cpu_percent: self.own_percent(),
                polling_s: (!self.is_spinning).then(|| self.in_vain as f64 / 1e9),
                user_s: self.own.user_s,
                system_s: self.own.system_s,
                voluntary_switches: self.own.voluntary_switches,
                involuntary_switches: self.own.involuntary_switches,
                runqueue_wait_s: self.own.runqueue_wait_s,
                machine_percent: self.machine.map(percent),
                rss_bytes: self.own.rss_bytes,
                conditions: self.own_conditions.clone(),
            },
            server: self.server.map(|usage| Server {
                usage,
                per: Per::of(unit, usage.cpu_us_per(units)),
                cycles: self.cycles,
                conditions: self.conditions.clone(),
                threads_percent: self
                    .threads
                    .iter()
                    .map(|(name, used)| (name.clone(), percent(*used)))
                    .collect(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_does_not_count_as_work() {
        let account = |in_vain| {
            let account =
                Window::open(None, 1).unwrap().close().unwrap().polling(Duration::from_nanos(in_vain));
            Account { span: 1_000, own_cpu: 1_000, ..account }
        };
        assert!(matches!(account(0).check(), Some(Invalid::GeneratorSaturated { .. })));
        assert!(account(10).check().is_some(), "what is left is as much as there is");
        assert_eq!((account(100).check(), account(2_000).check()), (None, None));
        assert_eq!(
            (account(0).spinning(true).check(), account(0).spinning(false).check().is_some()),
            (None, true)
        );
        assert_eq!(account(0).spinning(true).document(Unit::Request, 1).generator.polling_s, None);
    }
}
