//! The Publish requests of a session: how many, with which acknowledgements, and the wait after a fault.

use taktwerk_schema::{PublishRequest, SubscriptionAcknowledgement};
use taktwerk_types::Instant;

/// Faults in a row after which a new subscription does not end the wait.
const FAULTS_FORGIVEN: u32 = 3;

/// The Publish requests of a session.
#[derive(Debug)]
pub(crate) struct Publisher {
    /// Sent again and again; collects the acknowledgements for the next time.
    pub(crate) request: PublishRequest,
    /// Most requests in flight: the configured number, or what the server was found to accept.
    pub(crate) max: usize,
    configured_max: usize,
    /// The connection broke while a subscription was being created: the server may have one that nobody knows.
    pub(crate) orphans: bool,
    /// Faults in a row that came instead of notifications.
    pub(crate) faults: u32,
    /// No request is sent until then: the server has refused the last ones.
    pub(crate) resume_at: Option<Instant>,
}

impl Publisher {
    pub(crate) fn new(configured_max: usize) -> Self {
        Self {
            request: PublishRequest::default(),
            max: configured_max,
            configured_max,
            orphans: false,
            faults: 0,
            resume_at: None,
        }
    }

    /// A new session starts without acknowledgements and with hope.
    pub(crate) fn reset(&mut self) {
        self.request.subscription_acknowledgements.clear();
        self.max = self.configured_max;
        self.orphans = false;
        self.accepted();
    }

    /// The server publishes, or there is nothing to be published.
    pub(crate) fn accepted(&mut self) {
        self.faults = 0;
        self.resume_at = None;
    }

    /// The server has made a subscription. That it refused to publish because it had none is over, and a subscription with
    /// a short lifetime would not outlive the wait. If that has been of no use several times, the wait stays.
    pub(crate) fn created(&mut self) {
        if self.faults <= FAULTS_FORGIVEN {
            self.resume_at = None;
        }
    }

    /// Ends the wait after a fault when its time is over.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.resume_at = self.resume_at.filter(|at| *at > now);
    }

    pub(crate) fn acknowledge(&mut self, subscription_id: u32, sequence_number: u32) {
        let acknowledgement = SubscriptionAcknowledgement { subscription_id, sequence_number };
        self.request.subscription_acknowledgements.push(acknowledgement);
    }
}
