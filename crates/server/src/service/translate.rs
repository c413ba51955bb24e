//! TranslateBrowsePathsToNodeIds (Part 4 §5.9.4).

use super::Outcome;
use super::browse::reference_type;
use super::context::Context;
use super::gate::Caller;
use super::list::{self, Cursor, List};
use super::read::unknown;
use super::reply::Reply;
use super::request::Request;
use crate::authorization::Decisions;
use crate::error::Fault;
use crate::limits::Limits;
use crate::space::NodeIx;
use crate::space::nodes::Nodes;
use crate::work::unit;
use std::collections::BTreeSet;
use taktwerk_schema::{
    PermissionType, RelativePath, RelativePathElement, TranslateBrowsePathsToNodeIdsResponse,
};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{Decode, Encode, NodeId, StatusCode};

/// Maximum number of nodes visited for one path; beyond: Bad_QueryTooComplex.
const VISITED_MAX: usize = 100_000;
/// RemainingPathIndex of a target of the whole path.
const WHOLE_PATH: u32 = u32::MAX;

/// A TranslateBrowsePathsToNodeIds in progress.
#[derive(Debug)]
pub(crate) struct Translate {
    walk: Option<Box<Walk>>,
}

pub(crate) fn translate(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    encode_len(caller.count, reply.begin::<TranslateBrowsePathsToNodeIdsResponse>());
    list::start(cx, caller, request, Cursor::Translate(Translate { walk: None }), reply)
}

impl Translate {
    pub(super) fn work(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        list: &mut List<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        let limits = &cx.shared.config().limits;
        let (nodes, decisions) = (cx.shared.space().read(), &*caller.decisions);
        while list.goes_on(reply)? {
            let before = reply.len();
            let walk = match self.walk.take() {
                Some(walk) => Ok(walk),
                None => {
                    let start = NodeId::decode(&mut list.body)?;
                    let path = RelativePath::decode(&mut list.body)?;
                    Walk::begin(&nodes, decisions, &start, path.elements, limits)
                }
            };
            let result = walk.and_then(|mut walk| {
                let is_done = walk.follow(&nodes, decisions, limits, list)?;
                Ok((walk, is_done))
            });
            match result {
                Ok((walk, false)) => {
                    self.walk = Some(walk);
                    return Ok(());
                }
                Ok((walk, true)) => {
                    let out = reply.out();
                    StatusCode::GOOD.encode(out);
                    encode_len(walk.level.len(), out);
                    for target in walk.level {
                        nodes.id_of(target).encode(out);
                        WHOLE_PATH.encode(out);
                    }
                }
                Err(status) => {
                    status.encode(reply.out());
                    encode_len(0, reply.out());
                }
            }
            list.done(unit::OPERATION, reply.len() - before);
        }
        Ok(())
    }
}

/// A path that is being followed, level by level.
#[derive(Debug)]
struct Walk {
    elements: Vec<RelativePathElement>,
    /// The current element.
    element: usize,
    /// Nodes reached by the previous elements.
    level: Vec<NodeIx>,
    /// The current node of the level, and the number of its reference.
    node: usize,
    position: usize,
    /// Nodes for the next level, in the order in which they were found.
    next: Vec<NodeIx>,
    seen: BTreeSet<NodeIx>,
    /// Number of references followed.
    visited: usize,
}

impl Walk {
    fn begin(
        nodes: &Nodes,
        decisions: &Decisions,
        start: &NodeId,
        elements: Vec<RelativePathElement>,
        limits: &Limits,
    ) -> Result<Box<Self>, StatusCode> {
        let start = nodes.resolve(start.as_ref()).ok_or_else(|| unknown(start.as_ref()))?;
        decisions.check(nodes, start, PermissionType::BROWSE)?;
        match elements.first() {
            None => return Err(StatusCode::BAD_NOTHING_TO_DO),
            // Also inside the path: only Queries may omit a name (Part 4 §5.9.4).
            Some(_) if elements.iter().any(|element| element.target_name.name.is_empty()) => {
                return Err(StatusCode::BAD_BROWSE_NAME_INVALID);
            }
            Some(_) if elements.len() > limits.browse_path_elements_max => {
                return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
            }
            Some(_) => {}
        }
        Ok(Box::new(Self {
            elements,
            element: 0,
            level: vec![start],
            node: 0,
            position: 0,
            next: Vec::new(),
            seen: BTreeSet::new(),
            visited: 0,
        }))
    }

    /// Follows the path. True if `level` contains the targets, false if other connections get their turn first.
    fn follow(
        &mut self,
        nodes: &Nodes,
        decisions: &Decisions,
        limits: &Limits,
        list: &mut List<'_>,
    ) -> Result<bool, StatusCode> {
        while let Some(element) = self.elements.get(self.element) {
            let kind = reference_type(nodes, element.reference_type_id.as_ref())?;
            let Self { level, node, position, next, seen, visited, .. } = self;
            while let Some(source) = level.get(*node) {
                let mut is_paused = false;
                nodes.references_from(*source, *position, |here, reference| {
                    *position = here;
                    if list.units <= 0 {
                        is_paused = true;
                        return false;
                    }
                    list.units -= unit::REFERENCE;
                    list.references += 1;
                    *visited += 1;
                    let right_type = match kind {
                        None => true,
                        Some(kind) if element.include_subtypes => {
                            nodes.is_subtype(reference.reference_type, kind)
                        }
                        Some(kind) => reference.reference_type == kind,
                    };
                    let fits = right_type
                        && reference.is_forward != element.is_inverse
                        && decisions.allows(nodes, reference.target, PermissionType::BROWSE)
                        && nodes
                            .view(reference.target)
                            .is_some_and(|view| view.has_browse_name(&element.target_name));
                    if fits && seen.insert(reference.target) {
                        next.push(reference.target);
                    }
                    *visited < VISITED_MAX
                });
                if is_paused {
                    return Ok(false);
                }
                if *visited >= VISITED_MAX {
                    return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
                }
                *node += 1;
                *position = 0;
            }
            if next.is_empty() {
                return Err(StatusCode::BAD_NO_MATCH);
            }
            *level = core::mem::take(next);
            seen.clear();
            *node = 0;
            self.element += 1;
        }
        if self.level.len() > limits.browse_path_targets_max {
            return Err(StatusCode::BAD_TOO_MANY_MATCHES);
        }
        Ok(true)
    }
}
