//! TranslateBrowsePathsToNodeIds (Part 4 §5.9.4).

use super::Outcome;
use super::browse::reference_type;
use super::context::Context;
use super::gate::Caller;
use super::read::unknown;
use super::reply::{Reply, no_diagnostics};
use super::request::Request;
use crate::authorization::Decisions;
use crate::error::Fault;
use crate::limits::Limits;
use crate::space::NodeIx;
use crate::space::nodes::Nodes;
use std::collections::BTreeSet;
use taktwerk_schema::{
    PermissionType, RelativePath, RelativePathElement, TranslateBrowsePathsToNodeIdsResponse,
};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{Decode, Encode, NodeId, StatusCode};

/// Nodes that one path may touch on its way; beyond: Bad_QueryTooComplex.
const VISITED_MAX: usize = 100_000;
/// RemainingPathIndex of a target that the whole path leads to.
const WHOLE_PATH: u32 = u32::MAX;

pub(crate) fn translate(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    _request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let (count, mut body) = (caller.count, caller.operations.clone());
    let limits = &cx.shared.config().limits;
    let nodes = cx.shared.space().read();
    let out = reply.begin::<TranslateBrowsePathsToNodeIdsResponse>();
    encode_len(count, out);
    for _ in 0..count {
        let start = NodeId::decode(&mut body)?;
        let path = RelativePath::decode(&mut body)?;
        match follow(&nodes, &caller.decisions, &start, &path.elements, limits) {
            Ok(targets) => {
                StatusCode::GOOD.encode(out);
                encode_len(targets.len(), out);
                for target in targets {
                    nodes.id_of(target).encode(out);
                    WHOLE_PATH.encode(out);
                }
            }
            Err(status) => {
                status.encode(out);
                encode_len(0, out);
            }
        }
    }
    no_diagnostics(out);
    Ok(Outcome::Answered)
}

/// The nodes at the end of a path, in the order in which they were found.
fn follow(
    nodes: &Nodes,
    decisions: &Decisions,
    start: &NodeId,
    elements: &[RelativePathElement],
    limits: &Limits,
) -> Result<Vec<NodeIx>, StatusCode> {
    let start = nodes.resolve(start.as_ref()).ok_or_else(|| unknown(start.as_ref()))?;
    decisions.check(nodes, start, PermissionType::BROWSE)?;
    let mut level = vec![start];
    match elements.first() {
        None => return Err(StatusCode::BAD_NOTHING_TO_DO),
        // Inside of the path as well: only Queries leave a name out (Part 4 §5.9.4).
        Some(_) if elements.iter().any(|element| element.target_name.name.is_empty()) => {
            return Err(StatusCode::BAD_BROWSE_NAME_INVALID);
        }
        Some(_) if elements.len() > limits.browse_path_elements_max => {
            return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
        }
        Some(_) => {}
    }
    let mut visited = 0;
    for element in elements {
        let kind = reference_type(nodes, element.reference_type_id.as_ref())?;
        let mut next = Vec::new();
        let mut seen = BTreeSet::new();
        for node in level {
            nodes.references(node, |reference| {
                visited += 1;
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
                visited < VISITED_MAX
            });
        }
        if visited >= VISITED_MAX {
            return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
        }
        if next.is_empty() {
            return Err(StatusCode::BAD_NO_MATCH);
        }
        level = next;
    }
    if level.len() > limits.browse_path_targets_max {
        return Err(StatusCode::BAD_TOO_MANY_MATCHES);
    }
    Ok(level)
}
