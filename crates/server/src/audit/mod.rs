//! Audit records: who did what, or tried to (Part 4 §6.5, Part 3 §9, Part 5 §6.4).
//!
//! A shard notes what happens as typed records, which the driver takes with [`Shard::poll_audit`](crate::Shard) and
//! writes wherever the installation wants them. The same records are what AuditEvents are made of.
//!
//! Two things hold for every record. It contains no secret: there is no place for a password, a token, a key or a nonce,
//! and of values that are written or passed to methods only numbers, times and identifiers are shown, because a text or
//! a byte string may be a password. And attacks do not fill disks: beyond so many records a second they are counted, and
//! the count is a record. Who can cause a record decides which quota it is counted in ([`AuditClass`]), so that a flood of
//! strangers suppresses nothing of what users, trusted applications and the server itself do.
//!
//! - [`record`]: what a record says; [`value`]: what is shown of a value;
//! - `log`: the shard's queue; `event`: records as AuditEvents.

mod event;
mod log;
pub mod record;
pub mod value;

pub(crate) use log::AuditLog;
pub use record::{AuditAction, AuditClass, AuditField, AuditRecord};
pub use value::AuditValue;

/// What is noted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditConfig {
    /// Channels, certificates and sessions. Default: off.
    pub sessions: bool,
    /// Writes and method calls. Default: off.
    pub updates: bool,
    /// Records per second, shard and [`AuditClass`]; what is beyond is counted. Default: 1000.
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
