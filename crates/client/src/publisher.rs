//! The Publish requests of a session: number, acknowledgements, and delay after a fault.

use taktwerk_schema::{PublishRequest, SubscriptionAcknowledgement};
use taktwerk_types::Instant;

/// After more faults in a row than this, a new subscription does not end the delay.
const FAULTS_FORGIVEN: u32 = 3;

/// The Publish requests of a session.
#[derive(Debug)]
pub(crate) struct Publisher {
    /// Reused for all requests; collects the acknowledgements for the next one.
    pub(crate) request: PublishRequest,
    /// Maximum requests in flight: as configured, or lower if the server accepts fewer.
    pub(crate) max: usize,
    configured_max: usize,
    /// The connection broke while a subscription was being created, so the server may have one that the client does not
    /// know.
    pub(crate) orphans: bool,
    /// Number of faults in a row.
    pub(crate) faults: u32,
    /// No request is sent before this time, because the server has refused the last ones.
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

    /// Resets for a new session.
    pub(crate) fn reset(&mut self) {
        self.request.subscription_acknowledgements.clear();
        self.max = self.configured_max;
        self.orphans = false;
        self.accepted();
    }

    /// The server publishes, or there is nothing to publish.
    pub(crate) fn accepted(&mut self) {
        self.faults = 0;
        self.resume_at = None;
    }

    /// The server has created a subscription, so a fault for lack of subscriptions is outdated, and a subscription with
    /// a short lifetime could expire during the delay. After several faults in a row, the delay stays.
    pub(crate) fn created(&mut self) {
        if self.faults <= FAULTS_FORGIVEN {
            self.resume_at = None;
        }
    }

    /// Ends the delay when its time has passed.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.resume_at = self.resume_at.filter(|at| *at > now);
    }

    pub(crate) fn acknowledge(&mut self, subscription_id: u32, sequence_number: u32) {
        let acknowledgement = SubscriptionAcknowledgement { subscription_id, sequence_number };
        self.request.subscription_acknowledgements.push(acknowledgement);
    }
}
