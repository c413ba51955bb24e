//! Other recorded subtrees and rules while the server runs.

use super::super::AddressSpace;
use super::super::error::NodeError;
use super::super::history::KeptHistory;
use super::super::nodes::Nodes;
use super::{is_variable, subtree};
use crate::history::Rule;
use crate::node_ix::NodeIx;
use std::collections::BTreeMap;
use taktwerk_types::{NodeId, UtcTime};

/// Variables changed before waiting readers proceed.
const VARIABLES_PER_STEP: usize = 16;

/// Whether clients may change a history, and which writes are recorded.
type Settings = (bool, Rule);

/// A subtree of which all Variables are recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedSubtree {
    /// The node with the Variables below it. It may be a Variable itself.
    pub root: NodeId,
    /// Whether clients may change the history.
    pub writable: bool,
    /// Which writes are recorded.
    pub rule: Rule,
}

/// How many Variables a change of the recorded subtrees concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RecordingChanges {
    /// Recorded from now on.
    pub started: usize,
    /// Recorded by another rule.
    pub changed: usize,
    /// No longer recorded, or by the application's own rule again.
    pub stopped: usize,
}

/// The rule of each subtree, and the number of the rule of each node.
#[derive(Default)]
struct Assignment {
    rules: Vec<Settings>,
    roots: BTreeMap<NodeId, u32>,
    inside: BTreeMap<NodeIx, u32>,
}

impl Assignment {
    fn rule_of(&self, ix: NodeIx) -> Option<Settings> {
        self.rules.get(*self.inside.get(&ix)? as usize).copied()
    }
}

impl AddressSpace {
    /// Replaces the recorded subtrees `before` by `after`; other subtrees stay. If a Variable is in several subtrees,
    /// the last one counts. Variables with the same rule before and after are not touched, so their histories have no
    /// gap. Variables that are in no subtree any more [stop being recorded](Self::stop_recording), or continue with the
    /// history that the application had given them.
    ///
    /// # Errors
    /// The node of a new subtree does not exist, or there is no store. Nothing has changed then.
    pub fn change_recorded(
        &self,
        before: &[NodeId],
        after: &[RecordedSubtree],
        now: UtcTime,
    ) -> Result<RecordingChanges, NodeError> {
        if self.history_store().is_none() {
            return Err(NodeError::NoHistoryStore);
        }
        // Most of the work is done while others can read.
        let (version, assignment) = {
            let nodes = self.read();
            for subtree in after {
                // The node of a known subtree may come back.
                if !nodes.recorded.roots.contains_key(&subtree.root) {
                    nodes.find(&subtree.root)?;
                }
            }
            (nodes.recorded.version, nodes.assign(before, after))
        };
        let (old, new) = {
            let mut nodes = self.write();
            let is_current = nodes.recorded.version == version;
            let assignment = if is_current { assignment } else { nodes.assign(before, after) };
            nodes.set_assignment(assignment)
        };
        let mut changes = RecordingChanges::default();
        let mut nodes: Vec<NodeIx> = old.inside.keys().chain(new.keys()).copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        for step in nodes.chunks(VARIABLES_PER_STEP) {
            for ix in step {
                let rules = [old.rule_of(*ix), new.get(ix).copied()];
                self.change_rule(*ix, rules, &mut changes, now);
            }
            self.yield_to_readers();
        }
        Ok(changes)
    }

    /// Applies the change of one Variable's rule.
    fn change_rule(
        &self,
        ix: NodeIx,
        rules: [Option<Settings>; 2],
        changes: &mut RecordingChanges,
        now: UtcTime,
    ) {
        if rules[0] == rules[1] {
            return;
        }
        let (id, is_ruled) = {
            let nodes = self.read();
            // It may have been deleted meanwhile.
            if !nodes.is_there(ix) || !is_variable(&nodes, ix) {
                return;
            }
            (nodes.id_of(ix), nodes.is_ruled(ix))
        };
        // The only possible error of the operations is that the node was deleted in the meantime.
        match rules {
            // A later Variable with a history of its own keeps it.
            [Some(_), _] if !is_ruled => {}
            [before, Some((writable, rule))] => {
                if self.record_by_rule(&id, writable, rule, now).is_ok() {
                    *(if before.is_some() { &mut changes.changed } else { &mut changes.started }) += 1;
                }
            }
            [_, None] => {
                self.end_rule(&id, ix, now);
                changes.stopped += 1;
            }
        }
    }

    /// Stops recording a Variable by the rule of a subtree. It gets the history back that it had before.
    pub(super) fn end_rule(&self, id: &NodeId, ix: NodeIx, now: UtcTime) {
        // Another thread may have ended it.
        let Some(own) = self.write().recorded.ruled.remove(&ix) else { return };
        if !own.as_ref().is_some_and(KeptHistory::is_recorded) {
            // The only possible error is that the node was deleted in the meantime.
            let _ = self.stop_recording(id);
        }
        if let Some(own) = own {
            self.set_kept_history(id, own, now);
        }
    }
}

impl Nodes {
    /// The subtrees without `before` and with `after`.
    fn assign(&self, before: &[NodeId], after: &[RecordedSubtree]) -> Assignment {
        let mut kept: Vec<(u32, RecordedSubtree)> = Vec::new();
        for (root, number) in &self.recorded.roots {
            if let Some((writable, rule)) = self.recorded.rules.get(*number as usize).copied()
                && !before.contains(root)
            {
                kept.push((*number, RecordedSubtree { root: root.clone(), writable, rule }));
            }
        }
        kept.sort_unstable_by_key(|(number, _)| *number);
        let kept = kept.iter().map(|(_, subtree)| subtree);
        let mut assignment = Assignment::default();
        for RecordedSubtree { root, writable, rule } in kept.chain(after) {
            let next = u32::try_from(assignment.rules.len()).unwrap_or(u32::MAX);
            assignment.rules.push((*writable, *rule));
            assignment.roots.insert(root.clone(), next);
            if let Some(root) = self.resolve(root.as_ref()) {
                assignment.inside.extend(subtree(self, root).into_iter().map(|ix| (ix, next)));
            }
        }
        assignment
    }

    /// Sets the subtrees. Returns the former ones, and the rules of all nodes in the new ones.
    fn set_assignment(&mut self, new: Assignment) -> (Assignment, BTreeMap<NodeIx, Settings>) {
        let rules = new.inside.keys().filter_map(|ix| Some((*ix, new.rule_of(*ix)?))).collect();
        let recorded = &mut self.recorded;
        let old = Assignment {
            rules: core::mem::replace(&mut recorded.rules, new.rules),
            roots: core::mem::replace(&mut recorded.roots, new.roots),
            inside: core::mem::replace(&mut recorded.inside, new.inside),
        };
        recorded.generation = recorded.generation.wrapping_add(1);
        // Nodes that wait for an examination are in the new subtrees already, if they belong there.
        recorded.candidates.clear();
        (old, rules)
    }
}
