//! Server diagnostics (Part 5 §6.3.3 ff.): counters, sessions and subscriptions of all shards, and the nodes that show
//! them.
//!
//! - `counters`: server-wide counts; `session`: one session's description and counts;
//! - `live`: the registry of sessions and subscriptions, and the values computed from it;
//! - `nodes`: the diagnostics objects of sessions, which are computed on access.

pub(crate) mod counters;
pub(crate) mod live;
pub(crate) mod nodes;
pub(crate) mod session;

pub use counters::ServerCounters;
pub use live::Live;
pub use session::SessionRights;
