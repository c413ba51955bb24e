//! What a process has to do for an input, counted in the work of servers and clients: host profiles have prices for it.

use crate::host::Costs;
use taktwerk_client::Work as ClientWork;
use taktwerk_server::Work as ServerWork;

/// What an input or a deadline has cost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Effort {
    /// Of publishers and brokers.
    pub(crate) server: ServerWork,
    /// Of subscribers.
    pub(crate) client: ClientWork,
}

impl Effort {
    /// A message was received whose signature has to be checked if it is secured.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.client.chunks_received += 1;
        self.client.bytes_received += bytes as u64;
    }

    /// A broker's or publisher's socket was read.
    pub(crate) fn took(&mut self, bytes: usize) {
        self.server.bytes_received += bytes as u64;
    }

    /// In nanoseconds, without the driver's.
    pub(crate) fn cost(&self, costs: &Costs) -> f64 {
        costs.of_server(&self.server) + costs.of_client(&self.client)
    }
}
