//! Browse and BrowseNext (Part 4 §5.9.2, §5.9.3).

use super::Outcome;
use super::context::Context;
use super::gate::Caller;
use super::read::unknown;
use super::reply::{Reply, no_diagnostics};
use super::request::Request;
use crate::authorization::Decisions;
use crate::error::Fault;
use crate::limits::Limits;
use crate::session::continuation::{Continuation, Continuations};
use crate::space::nodes::Nodes;
use crate::space::view::NodeView;
use crate::space::{NodeIx, Reference};
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{BrowseNextResponse, BrowseResponse, NodeClass, PermissionType};
use taktwerk_types::codec::{encode_bytes, encode_len};
use taktwerk_types::{Decode, DecodeError, Decoder, Encode, NodeIdRef, StatusCode, UtcTime};

/// Fewest bytes of an encoded BrowseDescription.
pub(crate) const DESCRIPTION_LEN_MIN: usize = 2 + 4 + 2 + 1 + 4 + 4;

/// Bits of the ResultMask (Part 4 §5.9.2.2).
mod mask {
    pub(super) const REFERENCE_TYPE: u32 = 1;
    pub(super) const IS_FORWARD: u32 = 2;
    pub(super) const NODE_CLASS: u32 = 4;
    pub(super) const BROWSE_NAME: u32 = 8;
    pub(super) const DISPLAY_NAME: u32 = 16;
    pub(super) const TYPE_DEFINITION: u32 = 32;
}

/// A borrowed BrowseDescription.
struct Description<'a> {
    node_id: NodeIdRef<'a>,
    direction: i32,
    reference_type: NodeIdRef<'a>,
    include_subtypes: bool,
    class_mask: u32,
    result_mask: u32,
}

impl<'a> Description<'a> {
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            node_id: NodeIdRef::decode(decoder)?,
            direction: i32::decode(decoder)?,
            reference_type: NodeIdRef::decode(decoder)?,
            include_subtypes: bool::decode(decoder)?,
            class_mask: u32::decode(decoder)?,
            result_mask: u32::decode(decoder)?,
        })
    }

    fn start(
        &self,
        nodes: &Nodes,
        decisions: &Decisions,
        count_max: usize,
    ) -> Result<Continuation, StatusCode> {
        let node = nodes.resolve(self.node_id).ok_or_else(|| unknown(self.node_id))?;
        decisions.check(nodes, node, PermissionType::BROWSE)?;
        let reference_type = reference_type(nodes, self.reference_type)?;
        let (forward, inverse) = match self.direction {
            0 => (true, false),
            1 => (false, true),
            2 => (true, true),
            _ => return Err(StatusCode::BAD_BROWSE_DIRECTION_INVALID),
        };
        Ok(Continuation {
            node,
            reference_type,
            include_subtypes: self.include_subtypes,
            forward,
            inverse,
            class_mask: self.class_mask,
            result_mask: self.result_mask,
            count_max,
            position: 0,
        })
    }
}

/// How far one response may go.
#[derive(Clone, Copy)]
struct Bounds {
    /// Bytes after which the rest waits behind continuation points.
    len_max: usize,
    /// Continuation points of a session.
    points_max: usize,
}

impl Bounds {
    fn new(limits: &Limits, response_len_max: usize) -> Self {
        // A reference and the results of the operations that follow come on top.
        let len_max = limits.browse_response_len_max.min(response_len_max / 2);
        Self { len_max, points_max: usize::from(limits.browse_continuation_points_max) }
    }
}

/// A ReferenceType by id; `None` for the null id, which means all.
pub(crate) fn reference_type(nodes: &Nodes, id: NodeIdRef<'_>) -> Result<Option<NodeIx>, StatusCode> {
    if id.is_null() {
        return Ok(None);
    }
    let invalid = StatusCode::BAD_REFERENCE_TYPE_ID_INVALID;
    let ix = nodes.resolve(id).ok_or(invalid)?;
    let is_type = nodes.view(ix).is_some_and(|view| view.class() == NodeClass::REFERENCE_TYPE);
    if is_type { Ok(Some(ix)) } else { Err(invalid) }
}

pub(crate) fn browse(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let shared = cx.shared;
    let bounds = Bounds::new(&shared.config().limits, cx.peer.response_len_max);
    let decisions = &*caller.decisions;
    let Some(session) = cx.sessions.get_mut(caller.session) else {
        return Err(Fault::local(StatusCode::BAD_SESSION_ID_INVALID, "the session was there"));
    };
    let mut body = request.body.clone();
    let view_id = NodeIdRef::decode(&mut body)?;
    let _view_timestamp = UtcTime::decode(&mut body)?;
    let _view_version = u32::decode(&mut body)?;
    let max_references = u32::decode(&mut body)?;
    let limits = &shared.config().limits;
    if !view_id.is_null() {
        // The whole address space is the only view there is.
        return Err(Fault::peer(StatusCode::BAD_VIEW_ID_UNKNOWN, "Part 4 §5.9.2.3"));
    }
    let (count, mut body) = (caller.count, caller.operations.clone());
    let count_max = match max_references as usize {
        0 => limits.references_per_browse_max,
        wanted => wanted.min(limits.references_per_browse_max),
    };
    session.continuations.begin_request();
    let nodes = shared.space().read();
    reply.begin::<BrowseResponse>();
    encode_len(count, reply.out());
    for _ in 0..count {
        let description = Description::decode(&mut body)?;
        let start = description.start(&nodes, decisions, count_max);
        result(&nodes, decisions, start, &mut session.continuations, bounds, reply);
    }
    no_diagnostics(reply.out());
    Ok(Outcome::Answered)
}

pub(crate) fn browse_next(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let shared = cx.shared;
    let bounds = Bounds::new(&shared.config().limits, cx.peer.response_len_max);
    let decisions = &*caller.decisions;
    let Some(session) = cx.sessions.get_mut(caller.session) else {
        return Err(Fault::local(StatusCode::BAD_SESSION_ID_INVALID, "the session was there"));
    };
    let mut body = request.body.clone();
    let release = bool::decode(&mut body)?;
    let (count, mut body) = (caller.count, caller.operations.clone());
    session.continuations.begin_request();
    reply.begin::<BrowseNextResponse>();
    if release {
        // Part 4 §5.9.3.2: a release has no results.
        for _ in 0..count {
            let _ = session.continuations.take(body.bytes()?.unwrap_or_default());
        }
        encode_len(0, reply.out());
    } else {
        let nodes = shared.space().read();
        encode_len(count, reply.out());
        for _ in 0..count {
            let point = session.continuations.take(body.bytes()?.unwrap_or_default());
            // What was allowed when it began may no longer be.
            let point = point.and_then(|point| {
                decisions.check(&nodes, point.node, PermissionType::BROWSE)?;
                Ok(point)
            });
            result(&nodes, decisions, point, &mut session.continuations, bounds, reply);
        }
    }
    no_diagnostics(reply.out());
    Ok(Outcome::Answered)
}

/// Appends a BrowseResult (Part 4 §7.6).
fn result(
    nodes: &Nodes,
    decisions: &Decisions,
    start: Result<Continuation, StatusCode>,
    continuations: &mut Continuations,
    limits: Bounds,
    reply: &mut Reply<'_>,
) {
    let result = start.and_then(|mut point| {
        let start = reply.out().len();
        StatusCode::GOOD.encode(reply.out());
        // Almost all results end without a continuation point: it is put in afterwards.
        encode_bytes(None, reply.out());
        if references(nodes, decisions, &mut point, limits, reply) {
            return Ok(());
        }
        let id = continuations.keep(point, limits.points_max).inspect_err(|_| {
            reply.out().truncate(start);
        })?;
        let out = reply.out();
        if let Some(gap) = out.get_mut(start + 4..start + 8) {
            gap.copy_from_slice(&(id.len() as u32).to_le_bytes());
        }
        out.splice(start + 8..start + 8, id);
        Ok(())
    });
    if let Err(status) = result {
        let out = reply.out();
        status.encode(out);
        encode_bytes(None, out);
        encode_len(0, out);
    }
}

/// Appends the array of references from where `point` stands; false if some are left.
fn references(
    nodes: &Nodes,
    decisions: &Decisions,
    point: &mut Continuation,
    limits: Bounds,
    reply: &mut Reply<'_>,
) -> bool {
    let count_at = reply.out().len();
    encode_len(0, reply.out());
    // A response that is long already gives each further operation one reference, so that clients get on.
    let len_max = limits.len_max;
    let (mut count, mut at, mut finished) = (0u32, 0usize, true);
    nodes.references(point.node, |reference| {
        let here = at;
        at += 1;
        if here < point.position || !matches(nodes, point, reference) {
            return true;
        }
        // Part 3 §8.55, Browse: references are seen by those who may see both of their ends.
        if !decisions.allows(nodes, reference.target, PermissionType::BROWSE) {
            return true;
        }
        let Some(view) = nodes.view(reference.target) else { return true };
        if point.class_mask != 0 && point.class_mask & view.class().0 as u32 == 0 {
            return true;
        }
        let full = count as usize >= point.count_max || (count > 0 && reply.len() >= len_max);
        if full {
            point.position = here;
            finished = false;
            return false;
        }
        encode_reference(nodes, decisions, point.result_mask, reference, &view, reply.out());
        count += 1;
        true
    });
    if let Some(gap) = reply.out().get_mut(count_at..count_at + 4) {
        gap.copy_from_slice(&count.to_le_bytes());
    }
    finished
}

fn matches(nodes: &Nodes, point: &Continuation, reference: Reference) -> bool {
    let wanted = if reference.is_forward { point.forward } else { point.inverse };
    wanted
        && match point.reference_type {
            None => true,
            Some(kind) if point.include_subtypes => nodes.is_subtype(reference.reference_type, kind),
            Some(kind) => reference.reference_type == kind,
        }
}

/// Appends a ReferenceDescription (Part 4 §7.30); fields that were not asked for are null.
fn encode_reference(
    nodes: &Nodes,
    decisions: &Decisions,
    result_mask: u32,
    reference: Reference,
    view: &NodeView<'_>,
    out: &mut Vec<u8>,
) {
    let wants = |bit: u32| result_mask & bit != 0;
    let null_id = |out: &mut Vec<u8>| out.extend_from_slice(&[0, 0]);
    match nodes.view(reference.reference_type).filter(|_| wants(mask::REFERENCE_TYPE)) {
        Some(kind) => kind.encode_id(out),
        None => null_id(out),
    }
    out.push(u8::from(wants(mask::IS_FORWARD) && reference.is_forward));
    // An ExpandedNodeId without URI and server index is encoded as its NodeId.
    view.encode_id(out);
    if wants(mask::BROWSE_NAME) {
        view.encode_browse_name(out);
    } else {
        0u16.encode(out);
        encode_bytes(None, out);
    }
    if wants(mask::DISPLAY_NAME) {
        view.encode_display_name(out);
    } else {
        out.push(0);
    }
    let class = if wants(mask::NODE_CLASS) { view.class().0 } else { 0 };
    class.encode(out);
    let has_definition = matches!(view.class(), NodeClass::OBJECT | NodeClass::VARIABLE);
    let definition = if wants(mask::TYPE_DEFINITION) && has_definition {
        nodes.forward_target(reference.target, reference_type_ids::HAS_TYPE_DEFINITION)
    } else {
        None
    };
    let definition =
        definition.filter(|definition| decisions.allows(nodes, *definition, PermissionType::BROWSE));
    match definition.and_then(|definition| nodes.view(definition)) {
        Some(definition) => definition.encode_id(out),
        None => null_id(out),
    }
}
