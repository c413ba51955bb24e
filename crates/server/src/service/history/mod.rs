//! HistoryRead and HistoryUpdate (Part 4 §5.11.3, §5.11.5): requests are checked here and become jobs for worker
//! threads.

mod events;
pub(crate) mod read;
pub(crate) mod update;

use crate::account::heap_size;
use crate::audit::{AuditAction, AuditRecord};
use crate::authorization::Decisions;
use crate::effect::HistoryResult;
use crate::history::NodeHistory;
use crate::service::read::unknown;
use crate::space::nodes::Nodes;
use std::sync::Arc;
use taktwerk_schema::PermissionType;
use taktwerk_types::{NodeId, StatusCode};

/// The history of a node, if all of the permissions and access level bits are present.
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
    // Without permission, a client does not learn whether there is history.
    for permission in permissions {
        decisions.check(nodes, ix, *permission)?;
    }
    let history = nodes.history(ix).ok_or(StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED)?;
    let level = nodes.view(ix).and_then(|view| view.access_level()).unwrap_or(0);
    if level & access_level != access_level {
        return Err(StatusCode::BAD_USER_ACCESS_DENIED);
    }
    if let Some(owner) = history.annotates {
        // Annotations are part of the history of their Variable.
        for permission in permissions {
            decisions.check(nodes, owner, *permission)?;
        }
    }
    Ok(Arc::clone(history))
}

/// Results that arrive later.
#[derive(Debug)]
pub(crate) struct PendingHistory {
    /// Number of results.
    count: usize,
    /// Appends a result with only a status.
    failure: fn(StatusCode, &mut Vec<u8>),
    /// Audit records for each operation of a HistoryUpdate.
    notes: Vec<AuditRecord>,
}

heap_size!(PendingHistory { notes; count, failure });

impl PendingHistory {
    /// The job has run.
    pub(crate) fn finish(&mut self, result: HistoryResult, noted: &mut Vec<AuditRecord>, out: &mut Vec<u8>) {
        let old = result.old.into_iter().chain(core::iter::repeat_with(Vec::new));
        for ((mut note, status), old) in self.take_notes().into_iter().zip(&result.statuses).zip(old) {
            note.status = *status;
            if let AuditAction::HistoryUpdate { parameters, .. } = &mut note.action {
                parameters.set_old(&old);
            }
            noted.push(note);
        }
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
