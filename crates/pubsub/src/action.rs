//! Actions (Part 14 §5.4.3, §6.2.11.2): a [`Requestor`] asks a [`Responder`] to do something and gets its results, over
//! transports that lose, repeat and reorder.
//!
//! Both say in every publishing interval where they are, until the other one agrees:
//!
//! ```text
//! requestor   Executing ──────────────► Idle ───► (forgotten)
//!                 │  ▲                    │  ▲
//!                 ▼  │                    ▼  │
//! responder   Executing ──► Done ─────► Idle
//! ```
//!
//! An execution is known by its requestor, the requestor's correlation data and the RequestId; a request that comes twice
//! does not execute twice, also not for a while after it was done. Both engines are driven like the others: datagrams in,
//! [`Transmit`](crate::Transmit) out.
//!
//! A responder that has descriptions ([`Responder::describe`]) announces them and answers probes; a requestor asks with
//! [`Requestor::discover`].
//!
//! Over a transport that repeats by itself until a message has arrived (brokers: `reliable`), each says what it has to say
//! once, and the responder only that it is done.
//!
//! Messages are UADP or, over brokers, JSON ([`ActionMapping`]); fields are Variants or RawData, as the
//! DataSetFieldContentMask of the responder's DataSetWriter has it. What needs names or types, JSON and RawData, is asked for
//! once the responder's ActionMetaData is there.
//!
//! Actions do something in the world, so they are secured: an engine without message security has to be asked for. JSON
//! has none at all.

mod describe;
mod form;
#[cfg(feature = "json")]
mod json;
mod message;
mod requestor;
mod responder;
mod wire;

pub use describe::ActionDescription;
pub use requestor::{Outcome, Request, RequestId, Requestor, RequestorOptions};
pub use responder::{ActionTarget, Execution, ExecutionId, Responder, ResponderMemory, ResponderOptions};
pub use wire::{ActionEngine, ActionError, ActionMapping};

#[cfg(test)]
mod tests;
