//! What the Subscription and MonitoredItem services work on.

use crate::authorization::Decisions;
use crate::error::Fault;
use crate::now::Now;
use crate::space::AddressSpace;
use crate::subscription::publish::Responder;
use crate::subscription::{Engine, SessionKey, SubscriptionLimits};
use std::sync::Arc;
use taktwerk_types::{Decode, Decoder, StatusCode};

/// One request's surroundings.
pub(crate) struct SubscriptionContext<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) session: SessionKey,
    pub(crate) decisions: Arc<Decisions>,
    pub(crate) now: Now,
    pub(crate) space: &'a AddressSpace,
    pub(crate) limits: &'a SubscriptionLimits,
    /// Most operations of one request (MaxMonitoredItemsPerCall); 0 for no limit.
    pub(crate) operations_max: u32,
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

    /// Reads the length of a list of operations.
    pub(crate) fn operation_count(&self, decoder: &mut Decoder<'_>, len_min: usize) -> Result<usize, Fault> {
        match decoder.array_len(len_min)?.unwrap_or(0) {
            0 => Err(Fault::peer(StatusCode::BAD_NOTHING_TO_DO, "Part 4 §7.38.2")),
            count if self.operations_max > 0 && count > self.operations_max as usize => {
                Err(Fault::limit(StatusCode::BAD_TOO_MANY_OPERATIONS, "monitored_items_per_call_max"))
            }
            count => Ok(count),
        }
    }
}
