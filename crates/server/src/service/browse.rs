//! Browse and BrowseNext (Part 4 §5.9.2, §5.9.3).

use super::Outcome;
use super::context::Context;
use super::gate::Caller;
use super::list::{self, Cursor, List};
use super::read::unknown;
use super::reply::Reply;
use super::request::Request;
use crate::authorization::Decisions;
use crate::error::Fault;
use crate::limits::Limits;
use crate::session::continuation::{BrowsePoint, Point, PointKind, Points};
use crate::space::nodes::Nodes;
use crate::space::view::NodeView;
use crate::space::views::Scope;
use crate::space::{NodeIx, Reference};
use crate::work::unit;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{BrowseNextResponse, BrowseResponse, NodeClass, PermissionType};
use taktwerk_types::codec::{encode_bytes, encode_len};
use taktwerk_types::{Decode, DecodeError, Decoder, Encode, NodeIdRef, StatusCode};

/// Smallest encoded BrowseDescription, in bytes.
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
        view: Option<NodeIx>,
        units: &mut i64,
    ) -> Result<BrowsePoint, StatusCode> {
        let node = nodes.resolve(self.node_id).ok_or_else(|| unknown(self.node_id))?;
        decisions.check(nodes, node, PermissionType::BROWSE)?;
        if let Some(view) = view {
            let (is_in_view, followed) = nodes.is_in_view(view, node);
            *units -= followed * unit::REFERENCE;
            if !is_in_view {
                return Err(StatusCode::BAD_NODE_NOT_IN_VIEW);
            }
        }
        let reference_type = reference_type(nodes, self.reference_type)?;
        let (forward, inverse) = match self.direction {
            0 => (true, false),
            1 => (false, true),
            2 => (true, true),
            _ => return Err(StatusCode::BAD_BROWSE_DIRECTION_INVALID),
        };
        Ok(BrowsePoint {
            node,
            view,
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

/// Limits of one response.
#[derive(Clone, Copy)]
struct Bounds {
    /// Bytes after which the rest is left to continuation points.
    len_max: usize,
    /// Continuation points of a session.
    points_max: usize,
}

impl Bounds {
    fn new(limits: &Limits, response_len_max: usize) -> Self {
        // A further reference and the results of the remaining operations are added to it.
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

/// A Browse in progress.
#[derive(Debug)]
pub(crate) struct Browse {
    /// Maximum number of references per result.
    count_max: usize,
    /// The View being browsed.
    view: Option<NodeIx>,
    walk: Option<Walk>,
}

/// A BrowseNext in progress.
#[derive(Debug)]
pub(crate) struct BrowseNext {
    /// Only release the continuation points.
    release: bool,
    walk: Option<Walk>,
}

/// The current operation. Its BrowseResult (Part 4 §7.6) is written while references are followed.
#[derive(Debug)]
struct Walk {
    point: BrowsePoint,
    /// Start of the BrowseResult in the response.
    start: usize,
    /// Number of references in it.
    count: u32,
}

/// Why a walk stopped.
enum Stop {
    /// There are no more references.
    Finished,
    /// The rest is left to BrowseNext.
    Full,
    /// Other connections get their turn.
    Paused,
}

pub(crate) fn browse(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let mut body = request.body.clone();
    let scope = Scope::decode(&mut body)?;
    let max_references = u32::decode(&mut body)?;
    let view = scope
        .find(&cx.shared.space().read(), &caller.decisions)
        .map_err(|status| Fault::peer(status, "Part 4 §5.9.2.3"))?;
    let limit = cx.shared.config().limits.references_per_browse_max;
    let count_max = match max_references as usize {
        0 => limit,
        wanted => wanted.min(limit),
    };
    if let Some(session) = cx.sessions.get_mut(caller.session) {
        session.points.begin_request();
    }
    encode_len(caller.count, reply.begin::<BrowseResponse>());
    list::start(cx, caller, request, Cursor::Browse(Browse { count_max, view, walk: None }), reply)
}

pub(crate) fn browse_next(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let release = bool::decode(&mut request.body.clone())?;
    if let Some(session) = cx.sessions.get_mut(caller.session) {
        session.points.begin_request();
    }
    // Part 4 §5.9.3.2: a release has no results.
    encode_len(if release { 0 } else { caller.count }, reply.begin::<BrowseNextResponse>());
    list::start(cx, caller, request, Cursor::BrowseNext(BrowseNext { release, walk: None }), reply)
}

impl Browse {
    pub(super) fn work(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        list: &mut List<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        let Self { count_max, view, walk } = self;
        let decisions = &*caller.decisions;
        follow(cx, caller, walk, list, reply, |nodes, _, list| {
            let description = Description::decode(&mut list.body)?;
            Ok(description.start(nodes, decisions, *count_max, *view, &mut list.units))
        })
    }
}

impl BrowseNext {
    pub(super) fn work(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        list: &mut List<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        let Self { release, walk } = self;
        if *release {
            let Some(session) = cx.sessions.get_mut(caller.session) else { return Ok(()) };
            while list.goes_on(reply)? {
                let _ = session.points.take(list.body.bytes()?.unwrap_or_default(), PointKind::Browse);
                list.done(1, 0);
            }
            return Ok(());
        }
        follow(cx, caller, walk, list, reply, |nodes, points, list| {
            let point = match points.take(list.body.bytes()?.unwrap_or_default(), PointKind::Browse) {
                Ok(Point::Browse(point)) => point,
                Ok(Point::Query(_)) => return Ok(Err(StatusCode::BAD_CONTINUATION_POINT_INVALID)),
                Err(status) => return Ok(Err(status)),
            };
            // Permissions may have changed since it began.
            let mut allowed = caller.decisions.check(nodes, point.node, PermissionType::BROWSE);
            if point.view.is_some_and(|view| nodes.view(view).is_none()) {
                allowed = Err(StatusCode::BAD_VIEW_ID_UNKNOWN);
            }
            Ok(allowed.map(|()| point))
        })
    }
}

/// Executes operations; `start` parses the next one and returns where it begins.
fn follow<'a>(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    walk: &mut Option<Walk>,
    list: &mut List<'a>,
    reply: &mut Reply<'_>,
    start: impl Fn(&Nodes, &mut Points, &mut List<'a>) -> Result<Result<BrowsePoint, StatusCode>, DecodeError>,
) -> Result<(), Fault> {
    let shared = cx.shared;
    let bounds = Bounds::new(&shared.config().limits, cx.peer.response_len_max);
    let Some(session) = cx.sessions.get_mut(caller.session) else {
        return Err(Fault::local(StatusCode::BAD_SESSION_ID_INVALID, "the session was there"));
    };
    let (nodes, decisions) = (shared.space().read(), &*caller.decisions);
    while list.goes_on(reply)? {
        let point = match walk.take() {
            None => match start(&nodes, &mut session.points, list)? {
                Ok(point) => Ok(Walk::begin(point, reply)),
                Err(status) => Err((reply.len(), status)),
            },
            // The request was postponed: permissions may have changed since.
            Some(walk) => match decisions.check(&nodes, walk.point.node, PermissionType::BROWSE) {
                Ok(()) => Ok(walk),
                Err(status) => Err((walk.start, status)),
            },
        };
        let before = reply.len();
        let result = point.and_then(|mut current| {
            match current.references(&nodes, decisions, bounds, list, reply) {
                Stop::Finished => {}
                Stop::Paused => *walk = Some(current),
                Stop::Full => {
                    let start = current.start;
                    let id = session.points.keep(Point::Browse(current.point), bounds.points_max);
                    reply.put_bytes(start + 4, &id.map_err(|status| (start, status))?);
                }
            }
            Ok(())
        });
        if let Err((start, status)) = result {
            reply.truncate(start);
            let out = reply.out();
            status.encode(out);
            encode_bytes(None, out);
            encode_len(0, out);
        }
        let bytes = reply.len().saturating_sub(before);
        if walk.is_some() {
            list.units -= unit::bytes(bytes);
            return Ok(());
        }
        list.done(unit::OPERATION, bytes);
    }
    Ok(())
}

impl Walk {
    /// Begins a BrowseResult.
    fn begin(point: BrowsePoint, reply: &mut Reply<'_>) -> Self {
        let start = reply.len();
        let out = reply.out();
        StatusCode::GOOD.encode(out);
        // Almost all results have no continuation point, so it is inserted afterwards.
        encode_bytes(None, out);
        encode_len(0, out);
        Self { point, start, count: 0 }
    }

    /// Appends references, starting from the position of `point`.
    fn references(
        &mut self,
        nodes: &Nodes,
        decisions: &Decisions,
        limits: Bounds,
        list: &mut List<'_>,
        reply: &mut Reply<'_>,
    ) -> Stop {
        let Self { point, start, count } = self;
        // In a response that is already long, each further operation returns one reference, so that clients make
        // progress.
        let len_max = limits.len_max;
        let (mut stop, mut position) = (Stop::Finished, point.position);
        nodes.references_from(point.node, point.position, |here, reference| {
            position = here;
            if list.units <= 0 {
                stop = Stop::Paused;
                return false;
            }
            list.units -= unit::REFERENCE;
            list.references += 1;
            if !matches(nodes, point, reference) {
                return true;
            }
            // Part 3 §8.55, Browse: a reference is visible if both of its nodes are.
            if !decisions.allows(nodes, reference.target, PermissionType::BROWSE) {
                return true;
            }
            if !is_in_view(nodes, point, reference, &mut list.units) {
                return true;
            }
            let Some(view) = nodes.view(reference.target) else { return true };
            if point.class_mask != 0 && point.class_mask & view.class().0 as u32 == 0 {
                return true;
            }
            if *count as usize >= point.count_max || (*count > 0 && reply.len() >= len_max) {
                stop = Stop::Full;
                return false;
            }
            encode_reference(nodes, decisions, point.result_mask, reference, &view, reply.out());
            *count += 1;
            true
        });
        point.position = position;
        reply.put_u32(*start + 8, *count);
        stop
    }
}

/// Whether a reference stays within the browsed View. The targets of hierarchical references from a node of a View are
/// in the View too.
fn is_in_view(nodes: &Nodes, point: &BrowsePoint, reference: Reference, units: &mut i64) -> bool {
    let Some(view) = point.view else { return true };
    let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
    if reference.is_forward && nodes.is_subtype(reference.reference_type, hierarchical) {
        return true;
    }
    let (is_in_view, followed) = nodes.is_in_view(view, reference.target);
    *units -= followed * unit::REFERENCE;
    is_in_view
}

fn matches(nodes: &Nodes, point: &BrowsePoint, reference: Reference) -> bool {
    let wanted = if reference.is_forward { point.forward } else { point.inverse };
    wanted
        && match point.reference_type {
            None => true,
            Some(kind) if point.include_subtypes => nodes.is_subtype(reference.reference_type, kind),
            Some(kind) => reference.reference_type == kind,
        }
}

/// Appends a ReferenceDescription (Part 4 §7.30); fields that were not requested are null.
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
    // An ExpandedNodeId without URI and server index is encoded like its NodeId.
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
