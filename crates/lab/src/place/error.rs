//! Why a place cannot measure.

use crate::cpu::NotPermitted;
use crate::pin::ParseCpuListError;
use crate::program::ProgramError;
use std::io;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A program failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A list of CPUs is invalid.
    #[error(transparent)]
    Cpus(#[from] ParseCpuListError),
    /// The competing program cannot run on the server's CPU.
    #[error("cpu.condition = \"shared\": no program can compete for the server's CPU: {0}")]
    Competitor(#[from] io::Error),
    /// A peer is not installed.
    #[error("the peer {name:?} is not installed: {how}")]
    NoPeer {
        /// The peer.
        name: String,
        /// What to do.
        how: String,
    },
    /// A stack has no publisher.
    #[error("no publisher of {name:?} is available here: {how}")]
    NoPublisher {
        /// The stack.
        name: String,
        /// What to do.
        how: String,
    },
    /// An installed peer does not run.
    #[error("the peer {name:?} did not start: {source}")]
    Peer {
        /// The peer.
        name: &'static str,
        /// The reason.
        source: ProgramError,
    },
    /// The server's address accepts no connections.
    #[error("no server listens at {url}: {why}")]
    NoServer {
        /// The address.
        url: String,
        /// The reason.
        why: String,
    },
    /// CPUs that do not exist or that this process may not use.
    #[error("CPUs {asked} are not all available: this process may use CPUs {allowed}")]
    NoCpus {
        /// The requested CPUs.
        asked: String,
        /// The available CPUs.
        allowed: String,
    },
    /// The CPUs contradict the condition.
    #[error(
        "cpu.condition = {condition:?} conflicts with the server on CPU {server} and the load on {load}: change \
         cpu.server or cpu.load"
    )]
    Contradiction {
        /// The condition.
        condition: &'static str,
        /// CPUs of the server.
        server: String,
        /// CPUs of the load.
        load: String,
    },
    /// A link is not available.
    #[error("the link {name:?} cannot be emulated here: {why}")]
    NoLink {
        /// The link.
        name: String,
        /// The reason.
        why: String,
    },
    /// The CPU conditions are not available.
    #[error(transparent)]
    Conditions(#[from] NotPermitted),
    /// Creating a certificate for a measurement failed.
    #[error("{line} did not create a certificate")]
    Certificate {
        /// The command line.
        line: String,
    },
    /// A load specification cannot be serialized.
    #[error("the specification of a load cannot be written: {0}")]
    Specification(String),
    /// The load failed.
    #[error("{line} ended with {status}: {stderr}")]
    Load {
        /// The command line.
        line: String,
        /// Its exit status.
        status: String,
        /// Its exit code; `None` if it was ended by a signal.
        code: Option<i32>,
        /// Its error output.
        stderr: String,
    },
}

impl PlaceError {
    /// Whether a server was not ready before its timeout.
    pub(crate) fn is_slow_start(&self) -> bool {
        matches!(self, Self::Peer { source: ProgramError::TimedOut { .. }, .. })
    }
}
