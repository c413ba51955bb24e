//! The receiver of audit records.

use core::fmt;
use std::fmt::Write;
use taktwerk_server::audit::{AuditField, AuditRecord};

/// Receives audit records. It is called on the threads that serve clients, so it must not block. A sink that writes to
/// a disk or a network passes the record to a thread of its own.
pub trait AuditSink: Send + Sync {
    /// Called for each audit event.
    fn record(&self, record: &AuditRecord);
}

impl fmt::Debug for dyn AuditSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditSink")
    }
}

/// Logs audit records with the target `taktwerk::audit`: failures at level WARN, the rest at INFO.
#[derive(Debug, Clone, Copy, Default)]
pub struct AuditTracing;

impl AuditSink for AuditTracing {
    fn record(&self, record: &AuditRecord) {
        // Formatting costs time, so check the level first.
        let enabled = if record.status.is_bad() {
            tracing::enabled!(target: "taktwerk::audit", tracing::Level::WARN)
        } else {
            tracing::enabled!(target: "taktwerk::audit", tracing::Level::INFO)
        };
        if !enabled {
            return;
        }
        let line = line(record);
        if record.status.is_bad() {
            tracing::warn!(target: "taktwerk::audit", "{line}");
        } else {
            tracing::info!(target: "taktwerk::audit", "{line}");
        }
    }
}

/// An audit record as one line: `SourceName Field=value …`. Text from clients is escaped: it cannot start a new line or
/// imitate another field.
#[must_use]
pub fn line(record: &AuditRecord) -> String {
    let mut line = record.source_name().to_owned();
    for (name, field) in record.fields() {
        if matches!(name, "SourceName" | "ActionTimeStamp") {
            continue;
        }
        // Writing to a String cannot fail.
        let _ = match field {
            AuditField::Text(text) => write!(line, " {name}={text:?}"),
            AuditField::Number(number) => write!(line, " {name}={number}"),
            AuditField::Boolean(yes) => write!(line, " {name}={yes}"),
            AuditField::List(list) => write!(line, " {name}={list:?}"),
        };
    }
    line
}
