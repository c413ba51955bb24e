//! Queries: nodes by type, attributes and relations (Part 4 Annex B.2).
//!
//! A Query is compiled once. Its candidates, the instances of the named types, are then examined one by one.
//! [`QueryPoint::next`] is one step, so that other requests get their turn in between. A Query with more results than
//! fit into a response continues where it stopped.
//!
//! - [`plan`]: compiles a Query from the wire;
//! - [`subject`]: a candidate in the filter; [`data`]: the returned data of a candidate;
//! - [`around`]: nodes around events, for EventFilters.

pub(crate) mod around;
pub(crate) mod data;
pub(crate) mod plan;
pub(crate) mod subject;

use crate::account::{Charge, HeapSize};
use crate::authorization::Decisions;
use crate::now::Now;
use crate::space::NodeIx;
use crate::space::nodes::Nodes;
use core::cell::Cell;
use plan::{Plan, TypePlan};
use taktwerk_schema::PermissionType;
use taktwerk_types::codec::encode_len;
use taktwerk_types::{Encode, StatusCode, Variant};

/// Maximum number of references followed for one candidate; beyond: Bad_QueryTooComplex. Takes some hundred
/// microseconds.
const FOLLOWED_MAX: i64 = 20_000;

/// Bytes of values that can be copied in the time of one reference. So one candidate has at most 20 MB of values.
const COPIED_PER_REFERENCE: usize = 1024;

/// Characters of a pattern that can be compared in the time of one reference.
const COMPARED_PER_REFERENCE: usize = 16;

/// References that can be followed in the time of comparing this many characters.
fn references(compared: usize) -> i64 {
    i64::try_from(compared.div_ceil(COMPARED_PER_REFERENCE)).unwrap_or(i64::MAX)
}

/// The state of a Query: running, or waiting for its continuation.
#[derive(Debug)]
pub(crate) struct QueryPoint {
    pub(crate) plan: Plan,
    /// Its charge, once it is stored for a client.
    pub(crate) charge: Option<Charge>,
    /// The current NodeTypeDescription.
    entry: usize,
    /// The current type in it.
    kind: usize,
    /// The last instance examined.
    last: Option<NodeIx>,
}

/// The result of a step.
pub(crate) enum Step {
    /// A QueryDataSet was written.
    Found,
    /// The candidate does not match.
    Passed,
    /// There are no more candidates.
    End,
}

/// The context for evaluating a node.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) nodes: &'a Nodes,
    pub(crate) decisions: &'a Decisions,
    pub(crate) now: Now,
    /// Number of references followed for the candidate.
    followed: &'a Cell<i64>,
    /// Maximum number of references.
    followed_max: i64,
}

impl<'a> Access<'a> {
    /// A context that may follow a number of references, counted in `followed`.
    pub(crate) fn new(
        nodes: &'a Nodes,
        decisions: &'a Decisions,
        now: Now,
        followed: &'a Cell<i64>,
        followed_max: i64,
    ) -> Self {
        Self { nodes, decisions, now, followed, followed_max }
    }

    /// Counts followed references.
    fn follow(&self, count: i64) {
        self.followed.set(self.followed.get().saturating_add(count));
    }

    /// Counts a copied value: a filter and a path may name a large value many times.
    fn copy(&self, value: &Variant) {
        self.follow(i64::try_from(value.heap_size() / COPIED_PER_REFERENCE).unwrap_or(i64::MAX));
    }

    /// Number of characters that can be compared until the limit is exceeded.
    fn left(&self) -> usize {
        let left = self.followed_max.saturating_sub(self.followed.get()).saturating_add(1);
        usize::try_from(left).unwrap_or(0).saturating_mul(COMPARED_PER_REFERENCE)
    }

    /// Whether the limit of followed references is exceeded.
    fn is_exhausted(&self) -> bool {
        self.followed.get() > self.followed_max
    }
}

impl QueryPoint {
    /// Starts a Query.
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, charge: None, entry: 0, kind: 0, last: None }
    }

    /// Examines the next candidate. Subtracts its cost from `units`.
    ///
    /// # Errors
    /// Bad_QueryTooComplex if one candidate exceeds the limit.
    pub(crate) fn next(
        &mut self,
        nodes: &Nodes,
        decisions: &Decisions,
        now: Now,
        units: &mut i64,
        out: &mut Vec<u8>,
    ) -> Result<Step, StatusCode> {
        let Some(entry) = self.plan.types.get(self.entry) else { return Ok(Step::End) };
        let Some(kind) = entry.kinds.get(self.kind).copied() else {
            (self.entry, self.kind, self.last) = (self.entry + 1, 0, None);
            return Ok(Step::Passed);
        };
        let Some(candidate) = nodes.instance_after(kind, self.last) else {
            (self.kind, self.last) = (self.kind + 1, None);
            return Ok(Step::Passed);
        };
        self.last = Some(candidate);
        let followed = Cell::new(0);
        let access = Access::new(nodes, decisions, now, &followed, FOLLOWED_MAX);
        let found = self.plan.look_at(access, entry, candidate, kind, out);
        *units -= followed.get() * crate::work::unit::REFERENCE;
        Ok(if found? { Step::Found } else { Step::Passed })
    }
}

impl Plan {
    /// Whether a candidate matches; if so, writes its QueryDataSet.
    fn look_at(
        &self,
        access: Access<'_>,
        entry: &TypePlan,
        candidate: NodeIx,
        kind: NodeIx,
        out: &mut Vec<u8>,
    ) -> Result<bool, StatusCode> {
        let Access { nodes, decisions, .. } = access;
        let Some(view) = nodes.view(candidate) else { return Ok(false) };
        if !decisions.allows(nodes, candidate, PermissionType::BROWSE) {
            return Ok(false);
        }
        if let Some(scope) = self.view {
            let (is_in_view, followed) = nodes.is_in_view(scope, candidate);
            access.follow(followed);
            if !is_in_view {
                return Ok(false);
            }
        }
        if !subject::passes(self, access, candidate, kind)? {
            return Ok(false);
        }
        // ExpandedNodeIds without URI and server index are encoded like their NodeIds.
        view.encode_id(out);
        match nodes.view(kind).filter(|_| decisions.allows(nodes, kind, PermissionType::BROWSE)) {
            Some(kind) => kind.encode_id(out),
            None => out.extend_from_slice(&[0, 0]),
        }
        encode_len(entry.data.len(), out);
        for data in &entry.data {
            data::value(access, candidate, data, self.references_max)?.encode(out);
        }
        Ok(true)
    }
}
