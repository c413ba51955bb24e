//! The context of one run: the server, its address and process, and settings of the attack.

use crate::Limits;
use crate::keys::Keys;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use taktwerk_lab::process::Process;

/// One run of an attack.
pub(crate) struct Run<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) connections: usize,
    pub(crate) duration: Duration,
    pub(crate) bytes: u64,
    pub(crate) limits: Limits,
    pub(crate) judges_times: bool,
    pub(crate) keys: &'a Keys,
    pub(crate) memory: &'a AtomicU64,
    pub(crate) pid: u32,
    pub(crate) process: Process,
    pub(crate) interrupt: &'a AtomicBool,
}

impl Run<'_> {
    /// The attacker's address with this number, shared by `per_address` connections. The canary uses another one.
    pub(crate) fn source(&self, number: usize, per_address: usize) -> Option<IpAddr> {
        if !self.address.ip().is_loopback() || !self.address.is_ipv4() {
            return None;
        }
        let number = u32::try_from(number / per_address.max(1)).unwrap_or(u32::MAX) % 60_000;
        Some(IpAddr::V4(Ipv4Addr::from(0x7f01_0001 + number)))
    }

    /// The timeout for something: `span`, or five times as long if times are not judged.
    pub(crate) fn patience(&self, span: Duration) -> Duration {
        if self.judges_times { span } else { 5 * span }
    }

    /// Whether the user has interrupted the run.
    pub(crate) fn is_over(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Number of files that the server has open: one per connection.
    pub(crate) fn files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid)).map_or(0, Iterator::count)
    }

    /// Peak memory of the server so far, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.rss();
        self.memory.load(Ordering::Relaxed)
    }

    /// Current memory of the server, in bytes.
    pub(crate) fn rss(&self) -> u64 {
        let rss = self.process.snapshot().map_or(0, |snapshot| snapshot.rss);
        self.memory.fetch_max(rss, Ordering::Relaxed);
        rss
    }
}
