//! The work of authorities and askers, in the units for which host profiles have prices.

use crate::host::Costs;
use core::time::Duration;
use taktwerk_client::Work as ClientWork;
use taktwerk_server::Work as ServerWork;

/// The work caused by an input or a deadline.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Work {
    /// Messages of an authority.
    pub(crate) server: ServerWork,
    /// Messages of an asker.
    pub(crate) client: ClientWork,
    /// Answers that were signed.
    pub(crate) signed: u32,
    /// Answers whose signature was verified.
    pub(crate) verified: u32,
    /// Processor time in addition to all prices.
    pub(crate) span: Duration,
}

impl Work {
    /// The cost in nanoseconds, without the driver's cost.
    pub(crate) fn cost(&self, costs: &Costs) -> f64 {
        let (sign, verify) = costs.of_signatures();
        costs.of_server(&self.server)
            + costs.of_client(&self.client)
            + f64::from(self.signed) * sign
            + f64::from(self.verified) * verify
            + self.span.as_secs_f64() * 1e9
    }
}
