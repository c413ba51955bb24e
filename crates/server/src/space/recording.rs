//! Subtrees of which all Variables are recorded, also those that clients, NodeSets and the application add later.
//!
//! The nodes of such a subtree are known by index. A new reference of one of them makes its target a candidate, and so
//! does adding a root again. Candidates are examined after the change, in steps between which services continue.
//!
//! `changing`: other subtrees and rules, as from a configuration that is read again.

mod changing;

pub use changing::{RecordedSubtree, RecordingChanges};

use super::error::NodeError;
use super::history::KeptHistory;
use super::nodes::Nodes;
use super::{AddressSpace, NodeIx};
use crate::event::filter::Types;
use crate::history::Rule;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_types::{NodeId, UtcTime};

/// Nodes per lock.
const NODES_PER_LOCK: usize = 64;
/// Nodes examined at once by the operation that added them. The recorder's driver examines the others.
pub(super) const AT_ONCE: usize = 64;

/// The recorded subtrees.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    rules: Vec<(bool, Rule)>,
    /// The rule of each root.
    roots: BTreeMap<NodeId, u32>,
    /// The rule of each node in the subtrees.
    inside: BTreeMap<NodeIx, u32>,
    /// Nodes to be examined, each with the rule of its subtree.
    candidates: Vec<(NodeIx, u32)>,
    /// The Variables that are recorded by the rules, with the histories that they had before.
    ruled: BTreeMap<NodeIx, Option<KeptHistory>>,
    /// Incremented by changes that may concern the subtrees.
    version: u64,
    /// Incremented when other subtrees are set. Rules are renumbered then.
    generation: u64,
}

impl Recorded {
    /// A node was added.
    pub(super) fn note_added(&mut self, id: &NodeId, ix: NodeIx) {
        self.version = self.version.wrapping_add(1);
        if !self.roots.is_empty()
            && let Some(rule) = self.roots.get(id)
        {
            self.candidates.push((ix, *rule));
        }
    }

    /// A node was deleted.
    pub(super) fn forget(&mut self, ix: NodeIx) {
        self.version = self.version.wrapping_add(1);
        if !self.inside.is_empty() {
            self.inside.remove(&ix);
            self.ruled.remove(&ix);
        }
    }
}

/// Whether a reference leads to a part of a subtree. Properties describe a node and are not recorded.
fn leads_down(nodes: &Nodes, kind: NodeIx) -> bool {
    nodes.is_subtype(kind, NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES))
        && !nodes.is_subtype(kind, NodeIx::ns0(reference_type_ids::HAS_PROPERTY))
}

/// Whether a node is a condition. Events report its state.
fn is_condition(nodes: &Nodes, ix: NodeIx) -> bool {
    let kind = nodes.forward_target(ix, reference_type_ids::HAS_TYPE_DEFINITION);
    kind.is_some_and(|kind| nodes.is_condition(kind))
}

/// Whether a node is a Variable with its own value.
fn is_variable(nodes: &Nodes, ix: NodeIx) -> bool {
    nodes.dynamic(ix).is_some() && nodes.view(ix).is_some_and(|view| view.class() == NodeClass::VARIABLE)
}

/// Appends the nodes directly below a node.
fn below(nodes: &Nodes, ix: NodeIx, each: &mut impl FnMut(NodeIx)) {
    nodes.references(ix, |reference| {
        if reference.is_forward && leads_down(nodes, reference.reference_type) {
            each(reference.target);
        }
        true
    });
}

/// A node with everything below it, except conditions.
fn subtree(nodes: &Nodes, root: NodeIx) -> BTreeSet<NodeIx> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![root]);
    while let Some(ix) = open.pop() {
        if !is_condition(nodes, ix) && seen.insert(ix) {
            below(nodes, ix, &mut |target| open.push(target));
        }
    }
    seen
}

impl AddressSpace {
    /// Records all Variables below a node that have their own values, except Properties and the Variables of
    /// conditions. Returns their number. Variables that are added below the node later are recorded too, unless they
    /// have a history already. If a Variable is below the nodes of several calls, the last call counts.
    ///
    /// # Errors
    /// The node does not exist, or there is no store.
    pub fn historize_below(
        &self,
        root: &NodeId,
        writable: bool,
        rule: Rule,
        now: UtcTime,
    ) -> Result<usize, NodeError> {
        if self.history_store().is_none() {
            return Err(NodeError::NoHistoryStore);
        }
        let found = {
            let mut nodes = self.write();
            let all = subtree(&nodes, nodes.find(root)?);
            let recorded = &mut nodes.recorded;
            let next = u32::try_from(recorded.rules.len()).unwrap_or(u32::MAX);
            let number = *recorded.roots.entry(root.clone()).or_insert(next);
            match recorded.rules.get_mut(number as usize) {
                Some(known) => *known = (writable, rule),
                None => recorded.rules.push((writable, rule)),
            }
            recorded.inside.extend(all.iter().map(|ix| (*ix, number)));
            variables(&nodes, all)
        };
        for id in &found {
            self.record_by_rule(id, writable, rule, now)?;
        }
        Ok(found.len())
    }

    /// Records a Variable by the rule of a subtree.
    fn record_by_rule(&self, id: &NodeId, writable: bool, rule: Rule, now: UtcTime) -> Result<(), NodeError> {
        {
            let mut nodes = self.write();
            let ix = nodes.find(id)?;
            let own = nodes.kept_history(ix);
            nodes.recorded.ruled.entry(ix).or_insert(own);
        }
        self.historize_by_rule(id, writable, rule, now)
    }

    /// The Variables below a node by hierarchical references, except Properties and the Variables of conditions, sorted
    /// by id.
    ///
    /// # Errors
    /// The node does not exist.
    pub fn variables_below(&self, root: &NodeId) -> Result<Vec<NodeId>, NodeError> {
        let nodes = self.read();
        let all = subtree(&nodes, nodes.find(root)?);
        Ok(variables(&nodes, all))
    }

    /// Records the Variables that were added to recorded subtrees. Examines at most `max` nodes; the recorder's driver
    /// is woken for the others.
    pub(crate) fn record_added(&self, now: UtcTime, max: usize) {
        let mut left = max;
        while left > 0 {
            if !self.read().has_unrecorded() {
                return;
            }
            let Some(taken) = self.write().take_candidates(NODES_PER_LOCK.min(left)) else { return };
            left = left.saturating_sub(taken.nodes.len().max(1));
            self.examine(taken, now);
            self.yield_to_readers();
        }
        if let Some(recorder) = self.slots().recorder() {
            self.slots().wake(recorder);
        }
    }
}

/// Nodes to be examined, each with the number of its rule in a generation of subtrees.
struct Taken {
    nodes: Vec<(NodeIx, u32)>,
    generation: u64,
}

impl AddressSpace {
    /// Records the Variables among nodes, and lets the nodes below be examined.
    fn examine(&self, taken: Taken, now: UtcTime) {
        let (mut next, mut found) = (Vec::new(), Vec::new());
        {
            let nodes = self.read();
            for (ix, rule) in taken.nodes {
                below(&nodes, ix, &mut |target| next.push((target, rule)));
                if is_variable(&nodes, ix) && nodes.history(ix).is_none() {
                    found.push(ix);
                }
            }
        }
        if !next.is_empty() {
            let recorded = &mut self.write().recorded;
            // Other subtrees were set with the nodes below those that remain.
            if recorded.generation == taken.generation {
                recorded.candidates.append(&mut next);
            }
        }
        for ix in found {
            self.record_inside(ix, now);
        }
    }

    /// Records a Variable by the rule of the subtree that it is in, also if other subtrees are set meanwhile.
    fn record_inside(&self, ix: NodeIx, now: UtcTime) {
        loop {
            let (id, settings, generation, is_ruled) = {
                let nodes = self.read();
                if !nodes.is_there(ix) {
                    return;
                }
                let recorded = &nodes.recorded;
                let rule = recorded.inside.get(&ix).and_then(|rule| recorded.rules.get(*rule as usize));
                (nodes.id_of(ix), rule.copied(), recorded.generation, nodes.is_ruled(ix))
            };
            match settings {
                Some((writable, rule)) => {
                    // The only possible error is that the node was deleted in the meantime.
                    let _ = self.record_by_rule(&id, writable, rule, now);
                }
                None if is_ruled => self.end_rule(&id, ix, now),
                None => {}
            }
            if self.read().recorded.generation == generation {
                return;
            }
        }
    }
}

/// The ids of the Variables among nodes, sorted.
fn variables(nodes: &Nodes, all: BTreeSet<NodeIx>) -> Vec<NodeId> {
    let found = all.into_iter().filter(|ix| is_variable(nodes, *ix));
    let mut ids: Vec<NodeId> = found.map(|ix| nodes.id_of(ix)).collect();
    ids.sort();
    ids
}

impl Nodes {
    /// A node got a forward reference.
    pub(super) fn note_below_recorded(&mut self, at: NodeIx, reference_type: u32, target: NodeIx) {
        self.recorded.version = self.recorded.version.wrapping_add(1);
        if self.recorded.inside.is_empty() {
            return;
        }
        let Some(rule) = self.recorded.inside.get(&at).copied() else { return };
        let is_new = !self.recorded.inside.contains_key(&target);
        if is_new && self.ix(reference_type).is_some_and(|kind| leads_down(self, kind)) {
            self.recorded.candidates.push((target, rule));
        }
    }

    /// The application records a Variable by a rule of its own.
    pub(super) fn no_longer_ruled(&mut self, id: &NodeId) {
        if !self.recorded.ruled.is_empty()
            && let Some(ix) = self.resolve(id.as_ref())
        {
            self.recorded.ruled.remove(&ix);
        }
    }

    /// Whether the rule of a subtree records a Variable.
    pub(super) fn is_ruled(&self, ix: NodeIx) -> bool {
        self.recorded.ruled.contains_key(&ix)
    }

    /// A Variable with such a rule was deleted and added again.
    pub(super) fn ruled_again(&mut self, id: &NodeId) {
        if let Some(ix) = self.resolve(id.as_ref()) {
            self.recorded.ruled.insert(ix, None);
        }
    }

    /// Whether nodes must be examined.
    pub(crate) fn has_unrecorded(&self) -> bool {
        !self.recorded.candidates.is_empty()
    }

    /// Takes nodes to be examined; `None` if there are no more. They count as part of their subtree from now on, so
    /// that no reference that is added meanwhile is missed.
    fn take_candidates(&mut self, max: usize) -> Option<Taken> {
        if self.recorded.candidates.is_empty() {
            return None;
        }
        let mut taken = Vec::new();
        for _ in 0..max {
            let Some((ix, rule)) = self.recorded.candidates.pop() else { break };
            if self.is_there(ix) && !is_condition(self, ix) && !self.recorded.inside.contains_key(&ix) {
                self.recorded.inside.insert(ix, rule);
                taken.push((ix, rule));
            }
        }
        Some(Taken { nodes: taken, generation: self.recorded.generation })
    }
}

#[cfg(test)]
mod tests;
