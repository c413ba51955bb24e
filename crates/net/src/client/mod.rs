//! Drivers of the client core.
//!
//! - [`asynchronous`]: one client as a tokio task, for applications;
//! - [`blocking`]: one client on the calling thread, for the shortest round trips;
//! - [`fleet`]: thousands of clients on the calling thread, for load;
//! - `resolve`: host names to addresses; `steps`: log messages about connections.

pub mod asynchronous;
pub mod blocking;
pub mod fleet;
mod resolve;
mod steps;

pub use asynchronous::{AsyncClient, ClientEvents, SubscriptionMessage, SubscriptionMessages};
pub use blocking::BlockingClient;
pub use fleet::{Fleet, FleetOptions, FleetSink, FleetStats, MemberId};
