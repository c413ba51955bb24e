//! What the Subscription and MonitoredItem services work on.

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

/// One request's surroundings.
pub(crate) struct SubscriptionContext<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) session: SessionKey,
    pub(crate) decisions: Arc<Decisions>,
    pub(crate) now: Now,
    pub(crate) space: &'a AddressSpace,
    pub(crate) limits: &'a Limits,
    /// The session's.
    pub(crate) account: &'a Arc<Account>,
    /// Operations of the request, as checked on its way in.
    pub(crate) count: usize,
    pub(crate) responder: &'a mut dyn Responder,
}

impl SubscriptionContext<'_> {
    /// Reads a SubscriptionId and finds the session's subscription.
    pub(crate) fn subscription(&mut self, decoder: &mut Decoder<'_>) -> Result<u32, Fault> {
        let id = u32::decode(decoder)?;
        let place =
            self.engine.find(self.session, id).map_err(|status| Fault::peer(status, "Part 4 §5.14"))?;
        self.engine.touch(place);
        Ok(place)
    }

    /// Moves behind the length of the list of operations and gives it.
    pub(crate) fn operations(&self, decoder: &mut Decoder<'_>) -> Result<usize, Fault> {
        decoder.take(4)?;
        Ok(self.count)
    }
}
