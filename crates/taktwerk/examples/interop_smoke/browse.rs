//! Browses the whole address space with continuation points, and reads every attribute of every node.

use crate::nodes::TYPES;
use crate::session::Fault;
use crate::smoke::{Smoke, attribute};
use std::collections::BTreeSet;
use std::time::Instant;
use taktwerk::schema::ids::{object_ids, reference_type_ids};
use taktwerk::schema::{
    BrowseDescription, BrowseDirection, BrowseNextRequest, BrowseRequest, BrowseResult, BrowseResultMask,
    ReadValueId, TimestampsToReturn,
};
use taktwerk::types::{ByteString, NodeId, StatusCode};

/// Most nodes that are visited: peers may have load-test signals.
const NODES_MAX: usize = 200_000;

/// Most nodes whose attributes are read.
const ATTRIBUTE_NODES_MAX: usize = 20_000;

/// Nodes per Read request.
const BATCH: usize = 20;

/// References per answer: few, so that continuation points are always needed.
const REFERENCES_MAX: u32 = 10;

/// What was found on the way.
#[derive(Default)]
struct Walk {
    references: usize,
    continuations: usize,
    errors: Vec<String>,
}

impl Smoke {
    pub(crate) async fn browse_all(&mut self) {
        let begin = Instant::now();
        let root = NodeId::numeric(0, object_ids::ROOT_FOLDER);
        let mut order = vec![root.clone()];
        let mut seen = BTreeSet::from([root]);
        let mut walk = Walk::default();
        let mut at = 0;
        while at < order.len().min(NODES_MAX) {
            let node_id = order[at].clone();
            at += 1;
            for found in self.references(&node_id, REFERENCES_MAX, &mut walk).await {
                if seen.insert(found.clone()) {
                    order.push(found);
                }
            }
        }
        let ok = walk.errors.is_empty() && order.len() > 100;
        let detail = format!(
            "{} nodes, {} references, {} continuations, {} errors {:?}, {:.1} ms",
            order.len(),
            walk.references,
            walk.continuations,
            walk.errors.len(),
            walk.errors.iter().take(3).collect::<Vec<_>>(),
            begin.elapsed().as_secs_f64() * 1e3
        );
        self.check("browse-all", ok, detail);
        order.truncate(ATTRIBUTE_NODES_MAX);
        self.read_all_attributes(&order).await;
    }

    /// Targets of all references of a node that are on the same server.
    async fn references(&self, node_id: &NodeId, max: u32, walk: &mut Walk) -> Vec<NodeId> {
        let mut targets = Vec::new();
        let mut result = self.browse(node_id, max).await;
        loop {
            let found = match result {
                Ok(found) if !found.status_code.is_bad() => found,
                Ok(found) => {
                    walk.errors.push(format!("{node_id}: {}", found.status_code));
                    return targets;
                }
                Err(fault) => {
                    walk.errors.push(format!("{node_id}: {fault}"));
                    return targets;
                }
            };
            walk.references += found.references.len();
            targets
                .extend(found.references.iter().filter_map(|reference| reference.node_id.local().cloned()));
            if found.continuation_point.is_null() {
                return targets;
            }
            walk.continuations += 1;
            result = self.browse_next(found.continuation_point, false).await;
        }
    }

    async fn browse(&self, node_id: &NodeId, max: u32) -> Result<BrowseResult, Fault> {
        let description = BrowseDescription {
            node_id: node_id.clone(),
            browse_direction: BrowseDirection::FORWARD,
            reference_type_id: NodeId::numeric(0, reference_type_ids::REFERENCES),
            include_subtypes: true,
            node_class_mask: 0,
            result_mask: BrowseResultMask::ALL.0 as u32,
        };
        let request = BrowseRequest {
            requested_max_references_per_node: max,
            nodes_to_browse: vec![description],
            ..BrowseRequest::default()
        };
        Ok(self.session.request(request).await?.results.pop().unwrap_or_default())
    }

    async fn browse_next(&self, point: ByteString, release: bool) -> Result<BrowseResult, Fault> {
        let request = BrowseNextRequest {
            release_continuation_points: release,
            continuation_points: vec![point],
            ..BrowseNextRequest::default()
        };
        Ok(self.session.request(request).await?.results.pop().unwrap_or_default())
    }

    /// Counts results that are neither good nor a permitted refusal.
    async fn read_all_attributes(&mut self, nodes: &[NodeId]) {
        const REFUSALS: [StatusCode; 7] = [
            StatusCode::BAD_ATTRIBUTE_ID_INVALID,
            StatusCode::BAD_NOT_READABLE,
            StatusCode::BAD_USER_ACCESS_DENIED,
            StatusCode::BAD_WAITING_FOR_INITIAL_DATA,
            StatusCode::BAD_NOT_SUPPORTED,
            StatusCode::BAD_OUT_OF_SERVICE,
            StatusCode::BAD_SECURITY_MODE_INSUFFICIENT,
        ];
        let begin = Instant::now();
        let (mut good, mut errors) = (0usize, Vec::new());
        for batch in nodes.chunks(BATCH) {
            let items: Vec<ReadValueId> = batch
                .iter()
                .flat_map(|node_id| {
                    (attribute::NODE_ID..=attribute::ACCESS_LEVEL_EX).map(|attribute_id| ReadValueId {
                        node_id: node_id.clone(),
                        attribute_id,
                        ..ReadValueId::default()
                    })
                })
                .collect();
            match self.read_items(items.clone(), TimestampsToReturn::NEITHER, 0.0).await {
                Ok(values) => {
                    for (item, value) in items.iter().zip(&values) {
                        let status = value.status();
                        let may_be_refused = item.attribute_id != attribute::NODE_CLASS;
                        if !status.is_bad() {
                            good += 1;
                        } else if !(may_be_refused && REFUSALS.contains(&status)) {
                            errors
                                .push(format!("{} attribute {}: {status}", item.node_id, item.attribute_id));
                        }
                    }
                }
                Err(fault) => errors.push(format!("{} and following: {fault}", batch[0])),
            }
        }
        let detail = format!(
            "{} nodes, {good} attributes read, {} errors {:?}, {:.1} ms",
            nodes.len(),
            errors.len(),
            errors.iter().take(3).collect::<Vec<_>>(),
            begin.elapsed().as_secs_f64() * 1e3
        );
        self.check("read-all-attributes", errors.is_empty() && good > nodes.len() * 4, detail);
    }

    pub(crate) async fn browse_steps(&mut self) {
        // One more for the folder's type definition.
        let wanted = TYPES + 1;
        let folder = self.id("scalar");
        let first = self.browse(&folder, 3).await.unwrap_or_default();
        let mut walk = Walk::default();
        let total = self.references(&folder, 3, &mut walk).await.len();
        let stepped = first.references.len() == 3 && !first.continuation_point.is_null();
        let detail = format!("{total} of {wanted} references in steps of 3 {:?}", walk.errors);
        self.check("browse-next", stepped && total == wanted && walk.errors.is_empty(), detail);

        let point = first.continuation_point;
        let released = self.browse_next(point.clone(), true).await;
        let status = match self.browse_next(point, false).await {
            Ok(result) => result.status_code,
            Err(fault) => fault.status,
        };
        let ok = released.is_ok() && status == StatusCode::BAD_CONTINUATION_POINT_INVALID;
        self.check("browse-release", ok, format!("BrowseNext after release: {status}"));
    }
}
