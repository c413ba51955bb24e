//! Services with a list of operations. Such a request can be postponed, between two operations or within a long one,
//! and resumed after other connections have had their turn.

use super::browse::{Browse, BrowseNext};
use super::call::Call;
use super::context::Context;
use super::gate::Caller;
use super::monitored_item::{Ids, Items};
use super::node_management::{self, DeleteNodes};
use super::query::Query;
use super::read::Read;
use super::reply::{Reply, no_diagnostics};
use super::request::Request;
use super::translate::Translate;
use super::write::Write;
use super::{Outcome, register};
use crate::error::Fault;
use crate::work::unit;
use taktwerk_schema::{CallResponse, ReadResponse, WriteResponse};
use taktwerk_types::{Decoder, StatusCode, Structure};

/// The remaining operations of a request.
pub(crate) struct List<'a> {
    /// Positioned at the next operation.
    pub(crate) body: Decoder<'a>,
    /// Number of remaining operations.
    pub(crate) left: usize,
    /// Work units left before other connections get their turn.
    pub(crate) units: i64,
    /// Number of references followed.
    pub(crate) references: u64,
    /// Longest response, in bytes.
    pub(crate) len_max: usize,
}

impl List<'_> {
    /// Whether to execute another operation now.
    ///
    /// # Errors
    /// Bad_ResponseTooLarge: the response already exceeds the client's limit.
    #[inline]
    pub(crate) fn goes_on(&self, reply: &Reply<'_>) -> Result<bool, Fault> {
        if reply.len() > self.len_max {
            return Err(Fault::limit(StatusCode::BAD_RESPONSE_TOO_LARGE, "response_len_max"));
        }
        Ok(self.left > 0 && self.units > 0)
    }

    /// Records a completed operation: its cost in addition to the bytes that it added to the response.
    #[inline]
    pub(crate) fn done(&mut self, units: i64, bytes: usize) {
        self.left -= 1;
        self.units -= units + unit::bytes(bytes);
    }
}

/// The progress of a service, besides the remaining operations.
#[derive(Debug)]
pub(crate) enum Cursor {
    Read(Read),
    Write(Write),
    Call(Call),
    Browse(Browse),
    BrowseNext(BrowseNext),
    Translate(Translate),
    Register,
    Unregister,
    AddNodes,
    AddReferences,
    DeleteNodes(DeleteNodes),
    DeleteReferences,
    Query(Box<Query>),
    Items(Items),
    Ids(Ids),
}

impl Cursor {
    /// Maximum work units of a turn. Adding and deleting nodes is never urgent, and reads that arrive meanwhile wait for it:
    /// about 40 µs.
    fn units_max(&self) -> i64 {
        match self {
            Self::AddNodes | Self::AddReferences | Self::DeleteNodes(_) | Self::DeleteReferences => 1_600,
            _ => i64::MAX,
        }
    }

    /// Executes operations until none is left or other connections get their turn. Remaining operations stay in `list`.
    fn work(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        request: &Request<'_>,
        list: &mut List<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        match self {
            Self::Read(read) => read.work(cx, caller, list, reply),
            Self::Write(write) => write.work(cx, caller, request, list, reply),
            Self::Call(call) => call.work(cx, caller, request, list, reply),
            Self::Browse(browse) => browse.work(cx, caller, list, reply),
            Self::BrowseNext(browse) => browse.work(cx, caller, list, reply),
            Self::Translate(translate) => translate.work(cx, caller, list, reply),
            Self::Register => register::work(cx, list, reply),
            Self::Unregister => register::pass(list),
            Self::AddNodes => node_management::work_add_nodes(cx, caller, request, list, reply),
            Self::AddReferences => node_management::work_add_references(cx, caller, request, list, reply),
            Self::DeleteNodes(delete) => delete.work(cx, caller, request, list, reply),
            Self::DeleteReferences => {
                node_management::work_delete_references(cx, caller, request, list, reply)
            }
            Self::Query(query) => query.work(cx, caller, list, reply),
            Self::Items(items) => items.work(cx, caller, list, reply),
            Self::Ids(ids) => ids.work(cx, caller, list, reply),
        }
    }

    /// Completes the response after the last operation.
    fn finish(
        self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        request: &Request<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<Outcome, Fault> {
        let (encoding_id, gaps) = match self {
            // UnregisterNodesResponse and RegisterNodesResponse have no DiagnosticInfos, and a Query writes its own.
            Self::Register | Self::Unregister | Self::Query(_) => return Ok(Outcome::Answered),
            Self::Read(Read { gaps, .. }) => (ReadResponse::BINARY_ENCODING_ID, gaps),
            Self::Write(Write { gaps }) => (WriteResponse::BINARY_ENCODING_ID, gaps),
            Self::Call(Call { gaps }) => (CallResponse::BINARY_ENCODING_ID, gaps),
            _ => {
                no_diagnostics(reply.out());
                return Ok(Outcome::Answered);
            }
        };
        no_diagnostics(reply.out());
        if gaps.is_empty() {
            return Ok(Outcome::Answered);
        }
        cx.gather(request, caller.session, encoding_id, gaps, reply)
    }
}

/// A postponed request.
#[derive(Debug)]
pub(crate) struct Paused {
    cursor: Cursor,
    /// Number of remaining operations.
    left: usize,
    /// Size of the remaining operations in the request, in bytes.
    rest: usize,
}

/// Starts a request.
pub(crate) fn start(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    cursor: Cursor,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    go_on(cx, caller, request, cursor, caller.operations.clone(), caller.count, reply)
}

impl Paused {
    /// Continues a postponed request. `body` is the whole request.
    pub(crate) fn resume(
        self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        request: &Request<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<Outcome, Fault> {
        let mut rest = request.body.clone();
        rest.take(rest.remaining().saturating_sub(self.rest))?;
        go_on(cx, caller, request, self.cursor, rest, self.left, reply)
    }
}

fn go_on(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    mut cursor: Cursor,
    body: Decoder<'_>,
    left: usize,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let units = cx.units.min(cursor.units_max());
    let mut list = List { body, left, units, references: 0, len_max: cx.peer.response_len_max };
    let result = cursor.work(cx, caller, request, &mut list, reply);
    cx.units -= units - list.units;
    cx.work.operations += (left - list.left) as u64;
    cx.work.references += list.references;
    result?;
    if list.left > 0 {
        let paused = Paused { cursor, left: list.left, rest: list.body.remaining() };
        return Ok(Outcome::Suspended(caller.session, Box::new(paused)));
    }
    cursor.finish(cx, caller, request, reply)
}
