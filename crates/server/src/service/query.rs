//! QueryFirst and QueryNext (Part 4 Annex B.2.3, B.2.4).

use super::Outcome;
use super::context::Context;
use super::gate::Caller;
use super::list::{self, Cursor, List};
use super::reply::{Reply, no_diagnostics};
use super::request::Request;
use crate::account::{Category, HeapSize, allocation};
use crate::error::Fault;
use crate::query::plan::{Plan, Refusal, Wanted};
use crate::query::{QueryPoint, Step};
use crate::session::continuation::{Point, PointKind};
use crate::space::views::Scope;
use crate::work::unit;
use taktwerk_schema::{ContentFilter, NodeTypeDescription, QueryFirstResponse, QueryNextResponse};
use taktwerk_types::codec::{encode_bytes, encode_len};
use taktwerk_types::{Decode, Decoder, StatusCode};

/// Smallest encoded NodeTypeDescription, in bytes.
pub(crate) const TYPE_LEN_MIN: usize = 2 + 1 + 4;
/// Nodes added to the index of instances per turn. Takes some fifty microseconds, during which the structure is locked.
const INDEXED_AT_ONCE: usize = 256;

/// A Query in progress.
#[derive(Debug)]
pub(crate) struct Query {
    point: QueryPoint,
    /// Start of the list of QueryDataSets in the response.
    start: usize,
    count: u32,
    /// Whether it is a QueryFirst, whose response has more fields.
    is_first: bool,
}

pub(crate) fn query_first(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let mut body = request.body.clone();
    let scope = Scope::decode(&mut body)?;
    let types: Vec<NodeTypeDescription> = body.array()?;
    let filter = ContentFilter::decode(&mut body)?;
    let (data_sets_max, references_max) = (u32::decode(&mut body)?, u32::decode(&mut body)?);
    let plan = {
        let nodes = cx.shared.space().read();
        let view = scope
            .find(&nodes, &caller.decisions)
            .map_err(|status| Fault::peer(status, "Part 4 Annex B.2.3"))?;
        let wanted = Wanted { view, types: &types, filter: &filter, data_sets_max, references_max };
        Plan::new(&nodes, &cx.shared.config().limits, &wanted)
    };
    match plan {
        Ok(plan) => start(cx, caller, request, QueryPoint::new(plan), true, reply),
        Err(Refusal { status, parsing, filter })
            if parsing.is_empty() && filter.element_results.is_empty() =>
        {
            Err(Fault::peer(status, "Part 4 Annex B.2.3"))
        }
        // The errors by type and filter element do not fit into a fault.
        Err(Refusal { status, parsing, filter }) => {
            reply.send(|mut header| {
                header.service_result = status;
                QueryFirstResponse {
                    response_header: header,
                    parsing_results: parsing,
                    filter_result: filter,
                    ..QueryFirstResponse::default()
                }
            });
            Ok(Outcome::Answered)
        }
    }
}

pub(crate) fn query_next(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let mut body = request.body.clone();
    let release = bool::decode(&mut body)?;
    let id = body.bytes()?.unwrap_or_default();
    let session = cx
        .sessions
        .get_mut(caller.session)
        .ok_or_else(|| Fault::local(StatusCode::BAD_SESSION_ID_INVALID, "the session was there"))?;
    let point = session.points.take(id, PointKind::Query);
    match point.map_err(|status| Fault::peer(status, "Part 4 Annex B.2.4"))? {
        Point::Query(_) if release => {
            let out = reply.begin::<QueryNextResponse>();
            encode_len(0, out);
            encode_bytes(None, out);
            Ok(Outcome::Answered)
        }
        Point::Query(point) => start(cx, caller, request, *point, false, reply),
        Point::Browse(_) => Err(Fault::peer(StatusCode::BAD_CONTINUATION_POINT_INVALID, "Part 4 §7.9")),
    }
}

fn start(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    point: QueryPoint,
    is_first: bool,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    if let Some(session) = cx.sessions.get_mut(caller.session) {
        session.points.begin_request();
    }
    let out = if is_first { reply.begin::<QueryFirstResponse>() } else { reply.begin::<QueryNextResponse>() };
    encode_len(0, out);
    let query = Query { point, start: reply.len() - 4, count: 0, is_first };
    // For the list machinery it is one operation without further input.
    let caller = Caller {
        session: caller.session,
        decisions: std::sync::Arc::clone(&caller.decisions),
        count: 1,
        operations: Decoder::new(&[], taktwerk_types::DecodeLimits::DEFAULT),
    };
    list::start(cx, &caller, request, Cursor::Query(Box::new(query)), reply)
}

impl Query {
    pub(super) fn work(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        list: &mut List<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        let space = cx.shared.space();
        let limits = &cx.shared.config().limits;
        let len_max = limits.browse_response_len_max.min(cx.peer.response_len_max / 2);
        while list.goes_on(reply)? && !space.read().has_instances() {
            space.write().index_instances(INDEXED_AT_ONCE);
            list.units -= INDEXED_AT_ONCE as i64 * unit::REFERENCE;
        }
        let nodes = space.read();
        let mut is_full = false;
        loop {
            if !list.goes_on(reply)? {
                return Ok(());
            }
            is_full |= self.count as usize >= self.point.plan.data_sets_max
                || (self.count > 0 && reply.len() >= len_max);
            if is_full {
                break;
            }
            let before = reply.len();
            let (decisions, now) = (&*caller.decisions, cx.now);
            let step = self.point.next(&nodes, decisions, now, &mut list.units, reply.out());
            list.units -= unit::OPERATION + unit::bytes(reply.len() - before);
            match step.map_err(|status| Fault::limit(status, "query"))? {
                Step::Found => self.count += 1,
                Step::Passed => {}
                Step::End => break,
            }
        }
        drop(nodes);
        self.finish(cx, caller, is_full, reply)?;
        list.done(0, 0);
        Ok(())
    }

    /// Writes the fields after the QueryDataSets, and stores where the Query continues.
    fn finish(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        is_full: bool,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        reply.put_u32(self.start, self.count);
        let id = if is_full { Some(self.keep(cx, caller)?) } else { None };
        let out = reply.out();
        encode_bytes(id.as_ref().map(<[u8; 8]>::as_slice), out);
        if self.is_first {
            // No errors: empty ParsingResults, DiagnosticInfos and filter result.
            encode_len(0, out);
            no_diagnostics(out);
            encode_len(0, out);
            no_diagnostics(out);
        }
        Ok(())
    }

    fn keep(&mut self, cx: &mut Context<'_>, caller: &Caller<'_>) -> Result<[u8; 8], Fault> {
        let none = |status| Fault::limit(status, "browse_continuation_points_max");
        let max = usize::from(cx.shared.config().limits.browse_continuation_points_max);
        let session = cx
            .sessions
            .get_mut(caller.session)
            .ok_or_else(|| Fault::local(StatusCode::BAD_SESSION_ID_INVALID, "the session was there"))?;
        let mut point = QueryPoint::new(Plan::nothing());
        core::mem::swap(&mut point, &mut self.point);
        if point.charge.is_none() {
            let bytes = allocation(size_of::<QueryPoint>()) + point.plan.heap_size();
            let charge = session.account.charge(Category::Sessions, bytes);
            point.charge = Some(charge.map_err(|_| none(StatusCode::BAD_NO_CONTINUATION_POINTS))?);
        }
        session.points.keep(Point::Query(Box::new(point)), max).map_err(none)
    }
}
