//! Queries: nodes by their type, what they have and what they are related to (Part 4 Annex B.2).
//!
//! A Query is compiled once. Then its candidates, the instances of the types that it names, are looked at one after the other:
//! [`QueryPoint::next`] is one step, so that others can have their turn in between, and a Query that has more to give than fits
//! a response goes on where it was.
//!
//! - [`plan`]: from the wire to what is done for each node;
//! - [`subject`]: a node as the filter sees it; [`data`]: what is returned of it;
//! - [`around`]: what filters of events ask about nodes.

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

/// References that are followed for one candidate; beyond: Bad_QueryTooComplex. Some hundred microseconds.
const FOLLOWED_MAX: i64 = 20_000;

/// Bytes of values that are copied in the time of one reference. So one candidate has at most 20 MB of values.
const COPIED_PER_REFERENCE: usize = 1024;

/// A Query under way, or where one goes on.
#[derive(Debug)]
pub(crate) struct QueryPoint {
    pub(crate) plan: Plan,
    /// What it takes, once it is kept for a client.
    pub(crate) charge: Option<Charge>,
    /// The NodeTypeDescription under way.
    entry: usize,
    /// Its type under way.
    kind: usize,
    /// The instance that was looked at last.
    last: Option<NodeIx>,
}

/// What a step came to.
pub(crate) enum Step {
    /// A QueryDataSet was written.
    Found,
    /// The candidate is none.
    Passed,
    /// There are no more candidates.
    End,
}

/// What evaluating a node needs.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) nodes: &'a Nodes,
    pub(crate) decisions: &'a Decisions,
    pub(crate) now: Now,
    /// References followed for the candidate.
    followed: &'a Cell<i64>,
    /// How many may be followed.
    followed_max: i64,
}

impl<'a> Access<'a> {
    /// For something that may follow so many references. They are counted in `followed`.
    pub(crate) fn new(
        nodes: &'a Nodes,
        decisions: &'a Decisions,
        now: Now,
        followed: &'a Cell<i64>,
        followed_max: i64,
    ) -> Self {
        Self { nodes, decisions, now, followed, followed_max }
    }

    /// Notes that references are followed.
    fn follow(&self, count: i64) {
        self.followed.set(self.followed.get().saturating_add(count));
    }

    /// Notes that a value is copied: a filter and a path may name a large one very often.
    fn copy(&self, value: &Variant) {
        self.follow(i64::try_from(value.heap_size() / COPIED_PER_REFERENCE).unwrap_or(i64::MAX));
    }

    /// Whether too much was followed.
    fn is_exhausted(&self) -> bool {
        self.followed.get() > self.followed_max
    }
}

impl QueryPoint {
    /// The beginning of a Query.
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, charge: None, entry: 0, kind: 0, last: None }
    }

    /// Looks at the next candidate. What it took is taken from `units`.
    ///
    /// # Errors
    /// Bad_QueryTooComplex if too much has to be looked at for one candidate.
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
    /// Whether a candidate is one; then its QueryDataSet is written.
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
        // ExpandedNodeIds without URI and server index are encoded as their NodeIds.
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
