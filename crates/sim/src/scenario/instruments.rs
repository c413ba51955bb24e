//! What looks at a run while it goes on.

use crate::capture::Capture;
use crate::meter::Meter;
use crate::trace::Trace;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_crypto::Provider;

/// Cryptography of both ends. They must trust each other.
#[derive(Debug, Clone)]
pub struct Providers {
    /// Of servers.
    pub server: Arc<dyn Provider>,
    /// The URI in the server's certificates.
    pub server_uri: String,
    /// Of clients.
    pub client: Arc<dyn Provider>,
}

/// What is looked at beside the outcome, which it does not change.
#[derive(Debug, Default)]
pub struct Instruments {
    /// Turns, messages and faults.
    pub trace: Option<Trace>,
    /// Packets of links, by their numbers in [`Scenario::links`](super::Scenario::links).
    pub captures: Vec<(usize, Capture)>,
    /// At the end all clients leave. After so much virtual time their servers must have forgotten them.
    pub farewell: Option<Duration>,
    /// Measures what work takes on this machine.
    pub meter: Option<Box<dyn Meter>>,
    /// Real cryptography instead of the stand-in, of servers and clients.
    pub providers: Option<Providers>,
}
