//! Writes whose handlers may block: they run on worker threads, and their results fill gaps in the response.

use super::Note;
use crate::account::{Category, Exhausted, HeapSize};
use crate::audit::AuditRecord;
use crate::effect::{JobResult, Task};
use crate::job_kind::JobKind;
use crate::service::context::Context;
use crate::service::deferred::{Fill, Gap};
use crate::service::reply::Reply;
use crate::service::request::Request;
use crate::session::SessionKey;
use taktwerk_types::{Encode, StatusCode};

/// A write that runs on a worker thread.
#[derive(Debug)]
pub(crate) struct PendingWrite {
    /// The audit record to complete with the result.
    note: Option<Box<AuditRecord>>,
}

impl HeapSize for PendingWrite {
    fn heap_size(&self) -> usize {
        self.note.heap_size()
    }
}

impl PendingWrite {
    /// Appends the result to the response. Returns the audit record.
    pub(in crate::service) fn finish(
        &mut self,
        status: StatusCode,
        out: &mut Vec<u8>,
    ) -> Option<AuditRecord> {
        status.encode(out);
        self.note.take().map(|note| AuditRecord { status, ..*note })
    }

    pub(in crate::service) fn take_note(&mut self) -> Option<Box<AuditRecord>> {
        self.note.take()
    }
}

/// The blocking work of a handler.
type Run = Box<dyn FnOnce() -> Result<(), StatusCode> + Send>;

/// Starts the work of a handler, whose value takes `size` bytes. The result has a gap in the response and owns the
/// note.
///
/// # Errors
/// Bad_ServerTooBusy, or a limit of the session's account.
pub(super) fn begin(
    cx: &Context<'_>,
    (key, request): (SessionKey, &Request<'_>),
    (run, size): (Run, usize),
    note: &mut Option<Note>,
    gaps: &mut Vec<(Gap, Task)>,
    reply: &Reply<'_>,
) -> Result<(), StatusCode> {
    if !cx.has_capacity_for(gaps.len() + 1) {
        return Err(StatusCode::BAD_SERVER_TOO_BUSY);
    }
    // The work owns the value until it is done, even if the request is abandoned.
    let charge = cx.account(Some(key)).charge(Category::Requests, size).map_err(Exhausted::status)?;
    let record = |Note(action)| Box::new(cx.audit_record(Some(key), request, StatusCode::GOOD, action));
    let fill = Fill::Write(PendingWrite { note: note.take().map(record) });
    let work = move || JobResult::Written(run().err().unwrap_or(StatusCode::GOOD));
    let task = Task::blocking(JobKind::WriteValue, work).charged(charge);
    gaps.push((Gap::new(reply.body_len(), fill), task));
    Ok(())
}
