//! Audit records: which client did or tried what (Part 4 §6.5, Part 3 §9, Part 5 §6.4).
//!
//! A shard creates typed records. The driver takes them with [`Shard::poll_audit`](crate::Shard) and writes them where
//! the installation wants them. AuditEvents are made from the same records.
//!
//! Records contain no secrets: they have no field for passwords, tokens, keys or nonces. Of written values and method
//! arguments they show only numbers, times and identifiers, because a text or a byte string may be a password. The
//! exceptions are comments on conditions and EventIds, which the specification requires.
//!
//! Attacks do not fill disks: records above a rate per second are only counted, and the count becomes a record. The
//! quota depends on who can cause a record ([`AuditClass`]), so that a flood from unknown clients does not suppress
//! records of users, trusted applications and the server itself.
//!
//! - [`record`]: the fields of a record; [`value`]: how values are shown; `method`: calls and the changes they made;
//! - `condition`, `history`, `node_item`: the parameters of calls of conditions, HistoryUpdate and NodeManagement;
//! - `log`: the shard's queue; `event`: records as AuditEvents.

mod condition;
mod event;
mod history;
mod log;
mod method;
mod node_item;
pub mod record;
pub mod value;

pub use condition::AuditCondition;
pub use history::AuditHistory;
pub(crate) use log::AuditLog;
pub use method::AuditChange;
pub(crate) use method::private_key_argument;
pub use node_item::AuditItem;
pub use record::{AuditAction, AuditClass, AuditField, AuditRecord};
pub use value::AuditValue;

/// What is audited.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditConfig {
    /// Channels, certificates and sessions. Default: off.
    pub sessions: bool,
    /// Writes and method calls. Default: off.
    pub updates: bool,
    /// Maximum records per second, shard and [`AuditClass`]; further ones are counted. Default: 1000.
    pub records_per_second_max: u32,
}

impl AuditConfig {
    /// Everything.
    #[must_use]
    pub fn all() -> Self {
        Self { sessions: true, updates: true, ..Self::default() }
    }
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { sessions: false, updates: false, records_per_second_max: 1000 }
    }
}
