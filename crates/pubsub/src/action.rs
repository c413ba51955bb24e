//! Actions (Part 14 §5.4.3, §6.2.11.2): a [`Requestor`] asks a [`Responder`] to execute something and gets the results,
//! over transports that lose, repeat and reorder messages.
//!
//! Both send their state in every publishing interval until the other side agrees:
//!
//! ```text
//! requestor   Executing ──────────────► Idle ───► (forgotten)
//!                 │  ▲                    │  ▲
//!                 ▼  │                    ▼  │
//! responder   Executing ──► Done ─────► Idle
//! ```
//!
//! An execution is identified by its requestor, the requestor's correlation data and the RequestId. A repeated request
//! is not executed again, also not for some time after the execution has ended. Both engines are driven like the
//! others: datagrams in, [`Transmit`](crate::Transmit) out.
//!
//! A responder with descriptions ([`Responder::describe`]) announces them and answers probes; a requestor requests them
//! with [`Requestor::discover`].
//!
//! Over a transport with its own retransmission (brokers: `reliable`), each message is sent once, and the responder
//! sends only the state Done.
//!
//! Messages are UADP or, over brokers, JSON ([`ActionMapping`]). Fields are Variants or RawData, according to the
//! DataSetFieldContentMask of the responder's DataSetWriter. JSON and RawData need names or types, so such requests
//! wait for the responder's ActionMetaData.
//!
//! Actions change the real world, so security is the default: an engine without message security must be explicitly
//! allowed. JSON has no message security.

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
