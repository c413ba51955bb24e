//! The context of the Subscription and MonitoredItem services.

use crate::account::Account;
use crate::authorization::Decisions;
use crate::error::Fault;
use crate::limits::Limits;
use crate::now::Now;
use crate::space::AddressSpace;
use crate::subscription::publish::Responder;
use crate::subscription::{Engine, SessionKey};
use std::sync::Arc;
use taktwerk_types::{Decode, Decoder};

/// The context of one request.
pub(crate) struct SubscriptionContext<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) session: SessionKey,
    pub(crate) decisions: Arc<Decisions>,
    pub(crate) now: Now,
    pub(crate) space: &'a AddressSpace,
    pub(crate) limits: &'a Limits,
    /// The session's account.
    pub(crate) account: &'a Arc<Account>,
    pub(crate) responder: &'a mut dyn Responder,
}

impl SubscriptionContext<'_> {
    /// Parses a SubscriptionId and finds the session's subscription.
    pub(crate) fn subscription(&mut self, decoder: &mut Decoder<'_>) -> Result<u32, Fault> {
        let id = u32::decode(decoder)?;
        self.begin(id)
    }

    /// Finds the session's subscription for a request and records that its client is alive.
    pub(crate) fn begin(&mut self, id: u32) -> Result<u32, Fault> {
        let place = self.find(id)?;
        self.engine.touch(place);
        Ok(place)
    }

    /// Finds a subscription of the session.
    pub(crate) fn find(&self, id: u32) -> Result<u32, Fault> {
        self.engine.find(self.session, id).map_err(|status| Fault::peer(status, "Part 4 §5.14"))
    }
}
