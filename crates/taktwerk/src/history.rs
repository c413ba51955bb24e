//! History: stores, and what is recorded of variables.
//!
//! ```
//! use std::sync::Arc;
//! use taktwerk::Server;
//! use taktwerk::history::{MemoryStore, Rule};
//!
//! let server = Server::builder()
//!     .bind("127.0.0.1:0")
//!     .anonymous()
//!     .history(Arc::new(MemoryStore::new(100_000)))
//!     .build()?;
//! let boiler = server.namespace("urn:example:boilers").object("Boiler 1").add()?;
//! let temperature = boiler.variable("Temperature", 21.5).historize().add()?;
//! let pressure = boiler
//!     .variable("Pressure", 1.0)
//!     .historize_with(Rule { deadband: 0.1, ..Rule::default() })
//!     .add()?;
//! # let _ = (temperature, pressure);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate `taktwerk-history` has stores in files and databases.

pub use taktwerk_server::history::aggregate::{self, Aggregate};
pub use taktwerk_server::history::{
    EventCursor, HistoryStore, HistoryValue, MemoryStore, Modification, ModifiedValue, NodeHistory, NodeKey,
    Order, Perform, ReadLimit, Rule, Span, StoreCapabilities, StoreError, StoredEvent,
};

mod counters;
mod opener;
mod priority;
mod queue;
mod recorder;
mod waiting;
mod worker;

pub use counters::RecorderCounters;
pub use opener::HistoryOpener;
pub(crate) use recorder::{QUEUE_LEN, RecorderThread, Recording};
pub(crate) use waiting::WaitingStore;
