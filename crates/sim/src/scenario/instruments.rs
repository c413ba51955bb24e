//! Observers of a run.

use crate::capture::Capture;
use crate::meter::Meter;
use crate::trace::Trace;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_crypto::Provider;

/// Cryptography of both ends, which must trust each other.
#[derive(Debug, Clone)]
pub struct Providers {
    /// For servers.
    pub server: Arc<dyn Provider>,
    /// The URI in the server's certificates.
    pub server_uri: String,
    /// For clients.
    pub client: Arc<dyn Provider>,
}

/// What to observe in addition to the outcome. Observing does not change the outcome.
#[derive(Debug, Default)]
pub struct Instruments {
    /// Turns, messages and faults.
    pub trace: Option<Trace>,
    /// Packets of links, by their numbers in [`Scenario::links`](super::Scenario::links).
    pub captures: Vec<(usize, Capture)>,
    /// If set, all clients disconnect at the end, and after this virtual time the servers must not keep anything of
    /// them.
    pub farewell: Option<Duration>,
    /// Measures the real processor time of the work on this machine.
    pub meter: Option<Box<dyn Meter>>,
    /// Real cryptography for servers and clients instead of the simulated one.
    pub providers: Option<Providers>,
}
