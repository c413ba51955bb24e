//! HistoryRead and HistoryUpdate (Part 4 §5.11.3, §5.11.5): requests are checked here and become jobs of worker threads.

mod events;
pub(crate) mod read;
pub(crate) mod update;

use crate::account::heap_size;
use crate::audit::AuditRecord;
use crate::authorization::Decisions;
use crate::effect::HistoryResult;
use crate::history::NodeHistory;
use crate::service::read::unknown;
use crate::space::nodes::Nodes;
use std::sync::Arc;
use taktwerk_schema::PermissionType;
use taktwerk_types::{NodeId, StatusCode};

/// The history of a node, if all of the permissions and access level bits are there.
///
/// # Errors
/// Bad_NodeIdUnknown, Bad_UserAccessDenied and the like; Bad_HistoryOperationUnsupported for nodes without history.
fn find(
    nodes: &Nodes,
    decisions: &Decisions,
    id: &NodeId,
    permissions: &[PermissionType],
    access_level: u8,
) -> Result<Arc<NodeHistory>, StatusCode> {
    let ix = nodes.resolve(id.as_ref()).ok_or_else(|| unknown(id.as_ref()))?;
    // Whether there is history is not for everybody to know.
    for permission in permissions {
        decisions.check(nodes, ix, *permission)?;
    }
    let history = nodes.history(ix).ok_or(StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED)?;
    let level = nodes.view(ix).and_then(|view| view.access_level()).unwrap_or(0);
    if level & access_level != access_level {
        return Err(StatusCode::BAD_USER_ACCESS_DENIED);
    }
    Ok(Arc::clone(history))
}

/// Results that come later.
#[derive(Debug)]
pub(crate) struct PendingHistory {
    /// How many.
    count: usize,
    /// Appends a result that says no more than a status.
    failure: fn(StatusCode, &mut Vec<u8>),
    /// What the audit is told of each operation of a HistoryUpdate.
    notes: Vec<AuditRecord>,
}

heap_size!(PendingHistory { notes; count, failure });

impl PendingHistory {
    /// The job has run.
    pub(crate) fn finish(&mut self, result: HistoryResult, noted: &mut Vec<AuditRecord>, out: &mut Vec<u8>) {
        let notes = self.take_notes().into_iter().zip(&result.statuses);
        noted.extend(notes.map(|(note, status)| AuditRecord { status: *status, ..note }));
        *out = result.encoded;
    }

    /// The job has not run, or has failed.
    pub(crate) fn refuse(&mut self, status: StatusCode, noted: &mut Vec<AuditRecord>, out: &mut Vec<u8>) {
        self.finish(HistoryResult::failed(self.count, status, self.failure), noted, out);
    }

    pub(crate) fn take_notes(&mut self) -> Vec<AuditRecord> {
        core::mem::take(&mut self.notes)
    }
}
