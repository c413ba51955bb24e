//! The work that an input causes in a process, counted in the same units as the work of servers and clients, because
//! host profiles define costs for these units.

use crate::host::Costs;
use taktwerk_client::Work as ClientWork;
use taktwerk_server::Work as ServerWork;

/// The work caused by an input or a deadline.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Effort {
    /// Work of publishers and brokers.
    pub(crate) server: ServerWork,
    /// Work of subscribers.
    pub(crate) client: ClientWork,
}

impl Effort {
    /// A message was received. If it is secured, its signature has to be checked.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.client.chunks_received += 1;
        self.client.bytes_received += bytes as u64;
    }

    /// The socket of a broker or publisher was read.
    pub(crate) fn took(&mut self, bytes: usize) {
        self.server.bytes_received += bytes as u64;
    }

    /// The cost in nanoseconds, without the driver's cost.
    pub(crate) fn cost(&self, costs: &Costs) -> f64 {
        costs.of_server(&self.server) + costs.of_client(&self.client)
    }
}
