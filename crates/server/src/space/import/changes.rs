//! Nodes that applications cannot use as before after a change of files: they are gone, have other attributes, or have
//! become another kind of node by their types or members.

use super::Importer;
use super::replace::{Loaded, Prepared};
use crate::space::nodes::Nodes;
use crate::space::spec::NodeSpec;
use crate::space::{AddressSpace, NodeIx};
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_types::NodeId;

/// Looked up per lock: a waiting writer would block other readers.
const LOOKED_UP_PER_LOCK: usize = 1024;

/// How the first node of a [`Link`] depends on the second one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Relation {
    TypeDefinition,
    Supertype,
    Member,
}

/// Without copies of ids: a node with a long id may have many references.
type Link<'a> = (&'a NodeId, Relation, &'a NodeId);

/// The link that a reference is, if it is one.
fn link<'a>(nodes: &Nodes, kind: NodeIx, from: &'a NodeId, to: &'a NodeId) -> Option<Link<'a>> {
    let is_aggregate = || nodes.is_subtype(kind, NodeIx::ns0(reference_type_ids::AGGREGATES));
    match kind.index {
        reference_type_ids::HAS_TYPE_DEFINITION => Some((from, Relation::TypeDefinition, to)),
        reference_type_ids::HAS_SUBTYPE => Some((to, Relation::Supertype, from)),
        _ => is_aggregate().then_some((from, Relation::Member, to)),
    }
}

/// The ids of nodes with imported references.
fn ids(space: &AddressSpace, old: &Loaded) -> BTreeMap<NodeIx, NodeId> {
    let mut ids = BTreeMap::new();
    let mut triples = old.references.iter().peekable();
    while triples.peek().is_some() {
        let nodes = space.read();
        for (from, _, to) in triples.by_ref().take(LOOKED_UP_PER_LOCK) {
            for ix in [*from, *to].into_iter().filter(|ix| nodes.is_there(*ix)) {
                ids.entry(ix).or_insert_with(|| nodes.id_of(ix));
            }
        }
    }
    ids
}

/// The links of imported nodes.
fn present<'a>(space: &AddressSpace, old: &Loaded, ids: &'a BTreeMap<NodeIx, NodeId>) -> BTreeSet<Link<'a>> {
    let mut links = BTreeSet::new();
    let mut triples = old.references.iter().peekable();
    while triples.peek().is_some() {
        let nodes = space.read();
        let some = triples.by_ref().take(LOOKED_UP_PER_LOCK);
        links.extend(some.filter_map(|(from, kind, to)| link(&nodes, *kind, ids.get(from)?, ids.get(to)?)));
    }
    links
}

/// The links of nodes to be imported.
fn coming<'a>(
    space: &AddressSpace,
    old: &Loaded,
    prepared: &'a Prepared,
    new: &Attributes<'_>,
) -> BTreeSet<Link<'a>> {
    let mut links = BTreeSet::new();
    for part in prepared.sets.iter().flat_map(|set| set.nodes.chunks(LOOKED_UP_PER_LOCK)) {
        let nodes = space.read();
        let will_be = |id: &NodeId| {
            new.contains_key(id) || (!old.nodes.contains_key(id) && nodes.resolve(id.as_ref()).is_some())
        };
        for node in part {
            let targets = node.references.iter().filter(|reference| will_be(&reference.target));
            links.extend(targets.filter_map(|reference| {
                let kind = nodes.resolve(reference.reference_type.as_ref())?;
                let (own, other) = (&node.node_id, &reference.target);
                let (from, to) = if reference.is_forward { (own, other) } else { (other, own) };
                link(&nodes, kind, from, to)
            }));
        }
    }
    links
}

/// Whether a node has this type or supertype in the address space.
fn is_already(space: &AddressSpace, (id, relation, on): &Link<'_>) -> bool {
    let nodes = space.read();
    let (Some(id), Some(on)) = (nodes.resolve(id.as_ref()), nodes.resolve(on.as_ref())) else { return false };
    match relation {
        Relation::TypeDefinition => {
            nodes.forward_target(id, reference_type_ids::HAS_TYPE_DEFINITION) == Some(on)
        }
        Relation::Supertype => nodes.supertype(id) == Some(on),
        Relation::Member => false,
    }
}

/// The nodes to be imported, and the fingerprints of what they are used for.
type Attributes<'a> = BTreeMap<&'a NodeId, (&'a NodeSpec, u64)>;

/// The nodes that have changed, and from there those that depend on them.
struct Spread<'a, 'n> {
    old: &'a Loaded,
    new: &'n Attributes<'n>,
    changed: BTreeSet<&'a NodeId>,
    /// Nodes whose members have changed. This only counts for types.
    touched: BTreeSet<&'a NodeId>,
    waiting: Vec<&'a NodeId>,
}

impl Spread<'_, '_> {
    fn change(&mut self, id: &NodeId) {
        if let Some((id, _)) = self.old.nodes.get_key_value(id)
            && self.changed.insert(id)
        {
            self.waiting.push(id);
        }
    }

    /// A member has changed.
    fn touch(&mut self, id: &NodeId) {
        let class = self.new.get(id).map(|(spec, _)| spec.kind.class());
        if matches!(class, Some(NodeClass::OBJECT_TYPE | NodeClass::VARIABLE_TYPE)) {
            self.change(id);
        } else if let Some((id, _)) = self.old.nodes.get_key_value(id)
            && self.touched.insert(id)
        {
            self.waiting.push(id);
        }
    }
}

impl Importer {
    /// The imported nodes that will not be as before. [`Self::replace`] deletes them, or they get another NodeClass,
    /// BrowseName, DataType or ValueRank, another type definition or supertype; types also lose members. This includes
    /// the subtypes, instances and Variables of such types.
    pub fn removed<'a>(&'a self, space: &AddressSpace, prepared: &'a Prepared) -> Vec<&'a NodeId> {
        let Some(old) = prepared.instead.and_then(|batch| self.loaded.get(batch.0)) else {
            return Vec::new();
        };
        let new: Attributes<'_> =
            prepared.specs.iter().map(|(print, spec)| (&spec.id, (spec, print.shape))).collect();
        let ids = ids(space, old);
        let (before, after) = (present(space, old, &ids), coming(space, old, prepared, &new));

        let mut dependent: BTreeMap<&NodeId, Vec<(&NodeId, Relation)>> = BTreeMap::new();
        for (id, relation, on) in &after {
            dependent.entry(on).or_default().push((id, *relation));
        }
        for (id, (spec, _)) in &new {
            dependent.entry(&spec.data_type).or_default().push((id, Relation::TypeDefinition));
        }

        let (changed, touched) = Default::default();
        let mut spread = Spread { old, new: &new, changed, touched, waiting: Vec::new() };
        for (id, print) in &old.nodes {
            if new.get(id).is_none_or(|(_, shape)| *shape != print.shape) {
                spread.change(id);
            }
        }
        for link in before.symmetric_difference(&after) {
            match link {
                // The node that it depends on has been replaced since this import: its reference is not known.
                _ if after.contains(link) && is_already(space, link) => {}
                (id, Relation::TypeDefinition | Relation::Supertype, _) => spread.change(id),
                // Another member is not a problem.
                (id, Relation::Member, _) if before.contains(link) => spread.touch(id),
                (_, Relation::Member, _) => {}
            }
        }
        while let Some(id) = spread.waiting.pop() {
            let is_changed = spread.changed.contains(id);
            for (id, relation) in dependent.get(id).into_iter().flatten() {
                match relation {
                    Relation::TypeDefinition | Relation::Supertype if is_changed => spread.change(id),
                    Relation::TypeDefinition | Relation::Supertype => {}
                    Relation::Member => spread.touch(id),
                }
            }
        }
        spread.changed.into_iter().collect()
    }
}
