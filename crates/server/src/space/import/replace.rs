//! Replacing imported files while clients are connected: unchanged nodes stay as they are.
//!
//! A node stays if its attributes and its value in the file are the same. It keeps its live value, its monitored items
//! and the application's callbacks. A changed node is deleted and added again. References to it from remaining nodes
//! are restored, except those added by clients. The structure lock is released after some hundred microseconds of work.

use super::namespaces::Indexes;
use super::{Batch, ImportError, Imported, Importer, Triple, references_of, set_defaults};
use crate::authorization::Access;
use crate::space::build::wants_inverse;
use crate::space::error::NodeError;
use crate::space::node::NodeKind;
use crate::space::nodes::Nodes;
use crate::space::spec::NodeSpec;
use crate::space::{AddressSpace, NodeIx, Reference};
use core::hash::{Hash, Hasher};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::DefaultHasher;
use taktwerk_nodeset::{Model, NodeSet, NodeSetError, Problem, TypeDictionary};
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_types::{NodeId, UtcTime};

/// Work per lock: examined references and nodes.
const WORK_PER_LOCK: usize = 8192;
/// Work of adding or deleting a node, in examined references.
const NODE_WORK: usize = 64;

/// Most different permissions of all nodes of an import. Less than the server has in total, so that there is always room
/// for those of its other nodes.
const ACCESS_MAX: usize = 10_000;

/// The nodes and references of an import, for comparison with another one.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) models: Vec<Model>,
    /// Each node with a fingerprint of its attributes.
    pub(super) nodes: BTreeMap<NodeId, Fingerprint>,
    pub(super) references: BTreeSet<Triple>,
}

/// Files that have been parsed and can be imported.
#[derive(Debug)]
pub struct Prepared {
    pub(super) sets: Vec<NodeSet>,
    /// The nodes of all sets in order, with their fingerprints.
    pub(super) specs: Vec<(Fingerprint, NodeSpec)>,
    pub(super) types: TypeDictionary,
    pub(super) imported: Imported,
    pub(super) indexes: Indexes,
    pub(super) instead: Option<Batch>,
    /// The importer's number of changes at that time.
    pub(super) generation: u64,
}

/// Identifies changed nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint {
    all: u64,
    /// Of the attributes that decide for what a node can be used.
    pub(super) shape: u64,
}

impl Fingerprint {
    pub(super) fn of(spec: &NodeSpec) -> Self {
        let hash = |text: String| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            hasher.finish()
        };
        let NodeSpec { kind, browse_name, data_type, .. } = spec;
        let (value_rank, is_abstract) = match kind {
            NodeKind::Variable(variable) => (Some(variable.value_rank.into()), None),
            NodeKind::VariableType(it) => (Some(it.value_rank), Some(it.is_abstract)),
            NodeKind::ObjectType { is_abstract } => (None, Some(*is_abstract)),
            _ => (None, None),
        };
        let shape = format!("{:?}", (kind.class(), browse_name, data_type, value_rank, is_abstract));
        Self { all: hash(format!("{spec:?}")), shape: hash(shape) }
    }
}

/// Checks that no remaining model requires a removed one.
pub(super) fn check_required(staying: &[Model], sets: &[NodeSet]) -> Result<(), ImportError> {
    let known = |uri: &str| {
        let coming = sets.iter().flat_map(|set| &set.models);
        uri == super::NAMESPACE_ZERO || staying.iter().chain(coming).any(|model| model.uri == uri)
    };
    for model in staying {
        if let Some(missing) = model.required.iter().find(|required| !known(&required.uri)) {
            let problem = Problem::MissingModel {
                model: model.uri.clone(),
                required: missing.uri.clone(),
                version: String::new(),
            };
            let (file, problem) = (model.uri.clone(), Box::new(problem));
            return Err(NodeSetError { file, line: model.line, problem }.into());
        }
    }
    Ok(())
}

/// A lock that is released from time to time.
struct Slices<'a> {
    space: &'a AddressSpace,
    left: usize,
}

impl Slices<'_> {
    /// Runs a step for each item; `step` returns how much work it was.
    fn each<T>(&mut self, items: impl IntoIterator<Item = T>, mut step: impl FnMut(&mut Nodes, T) -> usize) {
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() {
            let mut nodes = self.space.write();
            self.left = WORK_PER_LOCK;
            while self.left > 0
                && let Some(item) = items.next()
            {
                self.left = self.left.saturating_sub(step(&mut nodes, item).max(1));
            }
            drop(nodes);
            self.space.yield_to_readers();
        }
    }

    /// Deletes nodes after calling `look` for each. Returns their number.
    fn delete(&mut self, gone: &[&NodeId], mut look: impl FnMut(&Nodes, &NodeId, NodeIx)) -> usize {
        let mut count = 0;
        // In groups, so that their folder is searched once for many of them.
        self.each(gone.chunks(WORK_PER_LOCK / NODE_WORK), |space, ids| {
            let mut found = Vec::with_capacity(ids.len());
            let mut everywhere = 0;
            for id in ids {
                let ix = space.resolve(id.as_ref()).filter(|ix| ix.index >= NodeIx::DYNAMIC);
                let Some(ix) = ix else { continue };
                look(space, id, ix);
                if space.view(ix).is_some_and(|view| view.is_type()) {
                    // References to types are found by searching all nodes, once.
                    everywhere = space.len();
                }
                found.push(ix);
            }
            count += found.len();
            NODE_WORK * found.len() + space.delete_all(&found).unwrap_or(0) + everywhere
        });
        count
    }
}

impl Importer {
    /// Parses files that replace those of an earlier import, or that are added. The address space is not changed:
    /// [`Self::replace`] registers their namespaces.
    ///
    /// # Errors
    /// As [`Self::import`]; also if a model of another import requires a removed one, or a node's id is in use.
    pub fn prepare(
        &self,
        space: &AddressSpace,
        files: &[(String, String)],
        instead: Option<Batch>,
    ) -> Result<Prepared, ImportError> {
        let prepared = self.read(space, files, instead)?;
        let none = Loaded::default();
        let old = instead.and_then(|batch| self.loaded.get(batch.0)).unwrap_or(&none);
        let mut seen = BTreeSet::new();
        let mut access = BTreeSet::new();
        let mut nodes = space.read();
        let (sets, mut specs) = (&prepared.sets, prepared.specs.iter());
        for (at, (set, node)) in
            sets.iter().flat_map(|set| set.nodes.iter().map(move |node| (set, node))).enumerate()
        {
            if at % WORK_PER_LOCK == 0 {
                // A waiting writer would block other readers.
                drop(nodes);
                nodes = space.read();
            }
            let refused = |source| ImportError::Node { file: set.file.clone(), line: node.line, source };
            let is_taken =
                !old.nodes.contains_key(&node.node_id) && nodes.resolve(node.node_id.as_ref()).is_some();
            if is_taken || !seen.insert(&node.node_id) {
                return Err(refused(NodeError::IdExists(node.node_id.clone())));
            }
            if seen.len() > old.nodes.len() + nodes.room() {
                return Err(refused(NodeError::Full(nodes.nodes_max())));
            }
            let own = specs.next().map(|(_, spec)| (spec.id.namespace_index, &spec.access));
            if let Some(own) = own.filter(|(_, own)| **own != Access::default())
                && access.insert(own)
                && access.len() > ACCESS_MAX
            {
                return Err(refused(NodeError::Permissions(ACCESS_MAX)));
            }
        }
        // A set of permissions stays until the server ends.
        let new = access.into_iter().filter(|(index, access)| !nodes.access().knows(*index, access));
        let wanted = new.count() + prepared.indexes.new_count();
        if wanted > nodes.access().room() {
            let (file, line) = (sets.first().map_or("", |set| &set.file).to_owned(), 1);
            return Err(ImportError::Node { file, line, source: NodeError::NoPermissionsLeft(wanted) });
        }
        drop(nodes);
        Ok(prepared)
    }

    /// Whether nothing was imported since. Otherwise a removed model may be required, or a new one loaded already.
    #[must_use]
    pub fn is_current(&self, prepared: &Prepared) -> bool {
        prepared.generation == self.generation
    }

    /// Imports the files parsed by [`Self::prepare`]. Services continue in the meantime. A node whose id was used by
    /// another node in the meantime is skipped with a warning.
    pub fn replace(&mut self, space: &AddressSpace, mut prepared: Prepared, now: UtcTime) -> Imported {
        self.register(space, &mut prepared);
        let Prepared { sets, specs, mut imported, instead, .. } = prepared;
        self.generation += 1;
        let batch = instead.filter(|batch| batch.0 < self.loaded.len()).unwrap_or(Batch(self.loaded.len()));
        let old = self.loaded.get_mut(batch.0).map(core::mem::take).unwrap_or_default();
        let mut nodes: BTreeMap<NodeId, Fingerprint> =
            specs.iter().map(|(fingerprint, spec)| (spec.id.clone(), *fingerprint)).collect();
        let mut slices = Slices { space, left: 0 };

        let gone = old.nodes.iter().filter(|(id, fingerprint)| nodes.get(*id) != Some(*fingerprint));
        let gone: Vec<&NodeId> = gone.map(|(id, _)| id).collect();
        let (mut restore, mut histories) = (Vec::new(), Vec::new());
        imported.deleted_count += slices.delete(&gone, |space, id, ix| {
            if nodes.contains_key(id) {
                restore.extend(foreign(space, ix, &old.references));
                histories.extend(space.kept_history(ix).map(|kept| (id.clone(), kept)));
            }
        });

        let mut added = Vec::new();
        slices.each(specs, |space, (_, spec)| {
            // Nodes that still exist are unchanged.
            let is_there = space.resolve(spec.id.as_ref()).is_some();
            if is_there && old.nodes.contains_key(&spec.id) {
                return 1;
            }
            let id = spec.id.clone();
            match space.add(spec, now) {
                Ok(ix) => added.push(ix),
                Err(error) => {
                    imported.warn(|| format!("{id}: {error}; the node is skipped"));
                    // The node with this id is not one of this import.
                    nodes.remove(&id);
                }
            }
            NODE_WORK
        });

        let mut wanted = BTreeMap::new();
        for (at, set) in sets.iter().enumerate() {
            // A waiting writer blocks readers, so the lock is not held for all nodes.
            for part in set.nodes.chunks(WORK_PER_LOCK / NODE_WORK) {
                let nodes = space.read();
                for node in part {
                    references_of(&nodes, (at, set), node, &mut wanted, &mut imported);
                }
            }
        }
        let dropped = old.references.iter().filter(|triple| !wanted.contains_key(*triple));
        slices.each(dropped, |space, (from, kind, to)| {
            // References of deleted nodes are already gone, so searching the other end is unnecessary.
            if !space.is_there(*from) || !space.is_there(*to) {
                return 1;
            }
            let looked_at = space.reference_count(*from) + space.reference_count(*to);
            space.delete_reference(*from, *kind, true, *to, true);
            NODE_WORK + looked_at
        });
        let missing = wanted.iter().filter(|(triple, _)| !old.references.contains(*triple));
        slices.each(missing, |space, (triple, (at, line))| {
            if !is_reference_type(space, triple.1) {
                let file = sets.get(*at).map_or("", |set| &set.file);
                let error = NodeError::ReferenceType(space.id_of(triple.1));
                imported.warn(|| format!("{file}:{line}: {error}; the reference is skipped"));
                return 1;
            }
            connect(space, *triple)
        });
        slices.each(restore, |space, ids| match ids.map(|id| space.resolve(id.as_ref())) {
            [Some(from), Some(kind), Some(to)] => connect(space, (from, kind, to)),
            _ => 1,
        });
        slices.each(&added, |space, ix| {
            space.note_added(*ix);
            1
        });
        set_defaults(&mut space.write(), &sets, &old.models);
        space.record_added(now, usize::MAX);
        for (id, kept) in histories {
            space.restore_history(&id, kept, now);
        }
        if imported.deleted_count + added.len() > 0 {
            space.rebind_instances(now);
        }
        space.raise_model_changes(now);

        imported.node_count = added.len();
        imported.batch = batch;
        // Not those that were prepared: another import may have added types since.
        self.types.remove(|id| old.nodes.contains_key(id));
        sets.iter().for_each(|set| self.types.add(set));
        let models = sets.into_iter().flat_map(|set| set.models).collect();
        let loaded = Loaded { models, nodes, references: wanted.into_keys().collect() };
        match self.loaded.get_mut(batch.0) {
            Some(place) => *place = loaded,
            None => self.loaded.push(loaded),
        }
        imported
    }

    /// Deletes imported nodes in batches between which services continue. Other nodes are skipped. Returns how many
    /// were deleted.
    pub fn remove(&mut self, space: &AddressSpace, ids: &BTreeSet<NodeId>, now: UtcTime) -> usize {
        self.generation += 1;
        let mut gone = BTreeSet::new();
        for loaded in &mut self.loaded {
            loaded.nodes.retain(|id, _| {
                let goes = ids.contains(id);
                if goes {
                    gone.insert(id.clone());
                }
                !goes
            });
        }
        let gone_ids: Vec<&NodeId> = gone.iter().collect();
        let count = Slices { space, left: 0 }.delete(&gone_ids, |_, _, _| {});
        for loaded in self.loaded.iter_mut().filter(|_| count > 0) {
            if loaded.nodes.is_empty() {
                *loaded = Loaded::default();
            }
            // An index with its generation identifies one node only.
            let nodes = space.read();
            loaded
                .references
                .retain(|(from, kind, to)| [from, kind, to].iter().all(|ix| nodes.is_there(**ix)));
        }
        self.types.remove(|id| gone.contains(id));
        space.raise_model_changes(now);
        count
    }

    /// An import without remaining nodes, whose slot [`Self::prepare`] can reuse.
    #[must_use]
    pub fn vacant(&self) -> Option<Batch> {
        self.loaded.iter().position(|loaded| loaded.nodes.is_empty()).map(Batch)
    }
}

/// References of a node that come neither from its files nor from clients: source, ReferenceType and target.
fn foreign(nodes: &Nodes, ix: NodeIx, known: &BTreeSet<Triple>) -> Vec<[NodeId; 3]> {
    let mut found = Vec::new();
    let mut keep = |from: NodeIx, kind: NodeIx, to: NodeIx| {
        if !known.contains(&(from, kind, to)) {
            // By id, because the other end may be deleted and added again too.
            found.push([from, kind, to].map(|ix| nodes.id_of(ix)));
        }
    };
    nodes.references(ix, |Reference { reference_type, is_forward, target }| {
        // A client's node stays.
        let is_clients =
            nodes.is_added_reference(ix, reference_type, is_forward, target) && !nodes.is_added(target);
        if !is_clients {
            let (from, to) = if is_forward { (ix, target) } else { (target, ix) };
            keep(from, reference_type, to);
        }
        true
    });
    for instance in nodes.instances_of(ix) {
        keep(instance, NodeIx::ns0(reference_type_ids::HAS_TYPE_DEFINITION), ix);
    }
    found
}

fn is_reference_type(nodes: &Nodes, ix: NodeIx) -> bool {
    nodes.view(ix).is_some_and(|view| view.class() == NodeClass::REFERENCE_TYPE)
}

/// Adds a missing reference. Missing nodes are not an error.
fn connect(nodes: &mut Nodes, (from, kind, to): Triple) -> usize {
    let has_inverse = wants_inverse(kind);
    // A parent may have many children, but a child has few parents.
    let (at, other) = if has_inverse { (to, from) } else { (from, to) };
    let (mut looked_at, mut exists) = (0, false);
    nodes.references(at, |reference| {
        looked_at += 1;
        exists = reference.is_forward != has_inverse
            && reference.reference_type == kind
            && reference.target == other;
        !exists
    });
    if !exists && is_reference_type(nodes, kind) {
        // The only other possible error is a missing node.
        let _ = nodes.add_reference(from, kind, to, has_inverse);
    }
    NODE_WORK + looked_at
}

#[cfg(test)]
mod tests;
