//! The types copied from other servers, as nodes in their original namespaces.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use taktwerk_nodeset::TypeDictionary;
use taktwerk_server::space::AddressSpace;
use taktwerk_server::space::import::{ImportError, Importer};
use taktwerk_types::{NodeId, QualifiedName};

/// Most type nodes from all other servers together.
pub const NODES_MAX: usize = 100_000;

/// How values of a DataType are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Values of a built-in type: numbers, texts, enumerations.
    Plain,
    /// Structures. Their encoding has the same meaning on every server unless they have fields with NodeIds or QualifiedNames, or
    /// fields of any type.
    Structure {
        /// Whether the encoding has the same meaning on every server.
        is_portable: bool,
    },
}

impl Form {
    /// Whether values have the same meaning on every server.
    #[must_use]
    pub fn is_portable(self) -> bool {
        !matches!(self, Self::Structure { is_portable: false })
    }
}

/// Types that were read, with the namespace indexes of this server.
#[derive(Debug, Default)]
pub struct Learnt {
    /// The nodes that were read, with the nodes that they need.
    pub nodes: HashMap<NodeId, Vec<NodeId>>,
    /// The DataTypes among them.
    pub forms: HashMap<NodeId, Form>,
    /// The encodings of portable structures.
    pub encodings: HashSet<NodeId>,
    /// The paths of the variables that ObjectTypes declare.
    pub members: HashMap<NodeId, Vec<Vec<QualifiedName>>>,
}

impl Learnt {
    /// All known nodes that are reachable from `next`.
    fn reached(&self, mut next: Vec<NodeId>) -> HashSet<NodeId> {
        let mut reached: HashSet<NodeId> = HashSet::new();
        while let Some(node) = next.pop() {
            if let Some(needs) = self.nodes.get(&node)
                && !reached.contains(&node)
            {
                next.extend(needs.iter().filter(|need| !reached.contains(need)).cloned());
                reached.insert(node);
            }
        }
        reached
    }
}

/// The types of other servers. Several sources may share them. They stay as long as a source or a node of the gateway uses them.
#[derive(Debug)]
pub struct Catalogue {
    state: Mutex<State>,
    /// Held while missing types are determined and added, or unused types removed.
    turn: Mutex<Importer>,
}

#[derive(Debug, Default)]
struct State {
    learnt: Learnt,
    /// The types used by each source, by source name.
    used: HashMap<String, HashSet<NodeId>>,
    /// Sources that are determining which types they use.
    learning: usize,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self { state: Mutex::default(), turn: Mutex::new(Importer::new(TypeDictionary::namespace_zero())) }
    }
}

/// While this value exists, no types are removed: a source is determining which ones it uses.
#[derive(Debug)]
pub struct Learning<'a>(&'a Catalogue);

impl Drop for Learning<'_> {
    fn drop(&mut self) {
        self.0.lock().learning -= 1;
    }
}

/// The exclusive right to add types.
#[derive(Debug)]
pub struct Turn<'a>(MutexGuard<'a, Importer>);

impl Catalogue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires the right to add types. Hold it from checking which nodes are missing until they are added, because two sources
    /// may add the same ones. Blocks while another source adds its types.
    pub fn turn(&self) -> Turn<'_> {
        Turn(self.turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Prevents removal of types. Hold it while a source determines the types it needs, until [`Self::use_types`].
    pub fn learning(&self) -> Learning<'_> {
        self.lock().learning += 1;
        Learning(self)
    }

    /// Sets the types that a source uses, replacing the previous set.
    pub fn use_types(&self, source: &str, types: HashSet<NodeId>) {
        self.lock().used.insert(source.to_owned(), types);
    }

    /// Forgets a source that was removed.
    pub fn forget(&self, source: &str) {
        self.lock().used.remove(source);
    }

    /// Whether a node has been read.
    #[must_use]
    pub fn has(&self, node: &NodeId) -> bool {
        self.lock().learnt.nodes.contains_key(node)
    }

    /// How many more nodes can be added.
    #[must_use]
    pub fn room(&self) -> usize {
        NODES_MAX.saturating_sub(self.lock().learnt.nodes.len())
    }

    /// The form of a DataType's values, if known.
    #[must_use]
    pub fn form(&self, data_type: &NodeId) -> Option<Form> {
        self.lock().learnt.forms.get(data_type).copied()
    }

    /// The encodings of portable structures.
    #[must_use]
    pub fn encodings(&self) -> HashSet<NodeId> {
        self.lock().learnt.encodings.clone()
    }

    /// Adds types that a source uses.
    pub fn use_more_types(&self, source: &str, types: impl IntoIterator<Item = NodeId>) {
        self.lock().used.entry(source.to_owned()).or_default().extend(types);
    }

    /// The paths of the variables declared by the ObjectTypes that a source uses, in order of the types.
    #[must_use]
    pub fn members(&self, source: &str) -> Vec<(NodeId, Vec<QualifiedName>)> {
        let state = self.lock();
        let used = state.used.get(source).into_iter().flatten().cloned().collect();
        let reached: BTreeSet<NodeId> = state.learnt.reached(used).into_iter().collect();
        let names = reached.into_iter().filter_map(|node| Some((state.learnt.members.get(&node)?, node)));
        names.flat_map(|(names, node)| names.iter().map(move |name| (node.clone(), name.clone()))).collect()
    }

    /// Adds the nodes of a NodeSet in portions, and what was learnt of them. Blocks until done.
    ///
    /// # Errors
    /// The NodeSet has a mistake. Nothing is added then.
    pub fn add(
        &self,
        turn: &mut Turn<'_>,
        space: &AddressSpace,
        name: &str,
        text: Option<String>,
        learnt: Learnt,
    ) -> Result<(), ImportError> {
        if let Some(text) = text {
            let importer = &mut *turn.0;
            let prepared = importer.prepare(space, &[(name.to_owned(), text)], importer.vacant())?;
            let imported = importer.replace(space, prepared, taktwerk_net::clock::wall());
            for warning in imported.warnings {
                tracing::debug!(warning, "a type of another server");
            }
        }
        let mut state = self.lock();
        state.learnt.nodes.extend(learnt.nodes);
        state.learnt.forms.extend(learnt.forms);
        state.learnt.encodings.extend(learnt.encodings);
        state.learnt.members.extend(learnt.members);
        Ok(())
    }

    /// Removes the types that no source and none of the nodes from `used` needs. Returns the number of deleted nodes. Does
    /// nothing while a source is adding types; the source calls this afterwards. Blocks until done.
    pub fn sweep(&self, space: &AddressSpace, used: impl FnOnce() -> HashSet<NodeId>) -> usize {
        let mut importer = match self.turn.try_lock() {
            Ok(importer) => importer,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return 0,
        };
        if self.lock().learnt.nodes.is_empty() {
            return 0;
        }
        // Read the types of sources after this: a source that added nodes in between has registered them.
        let mut next: Vec<NodeId> = used().into_iter().collect();
        let mut state = self.lock();
        if state.learning > 0 {
            return 0;
        }
        next.extend(state.used.values().flatten().cloned());
        let reached = state.learnt.reached(next);
        let gone: BTreeSet<NodeId> =
            state.learnt.nodes.keys().filter(|node| !reached.contains(*node)).cloned().collect();
        let learnt = &mut state.learnt;
        learnt.nodes.retain(|node, _| reached.contains(node));
        learnt.forms.retain(|node, _| reached.contains(node));
        learnt.encodings.retain(|node| reached.contains(node));
        learnt.members.retain(|node, _| reached.contains(node));
        drop(state);
        if gone.is_empty() { 0 } else { importer.remove(space, &gone, taktwerk_net::clock::wall()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_stay_as_long_as_they_are_used() {
        let space = AddressSpace::new(1, 16, "urn:test");
        let catalogue = Catalogue::default();
        let node = |number| NodeId::numeric(3, number);
        let nodes = HashMap::from([
            (node(1), vec![node(2)]),
            // A cycle.
            (node(2), vec![node(3)]),
            (node(3), vec![node(2)]),
            (node(4), vec![node(3)]),
            (node(5), Vec::new()),
        ]);
        catalogue
            .add(&mut catalogue.turn(), &space, "a", None, Learnt { nodes, ..Learnt::default() })
            .unwrap();
        let known = || (1..=5).filter(|number| catalogue.has(&node(*number))).collect::<Vec<_>>();
        let sweep = |used: &[u32]| {
            catalogue.sweep(&space, || used.iter().copied().map(node).collect());
            known()
        };
        catalogue.use_types("a", HashSet::from([node(1)]));
        catalogue.use_types("b", HashSet::from([node(4)]));
        let learning = catalogue.learning();
        assert_eq!(sweep(&[]), [1, 2, 3, 4, 5], "a source is finding out what it uses");
        drop(learning);
        let turn = catalogue.turn();
        assert_eq!(sweep(&[]), [1, 2, 3, 4, 5], "types are being added");
        drop(turn);
        assert_eq!(sweep(&[5]), [1, 2, 3, 4, 5], "a node of the gateway has one");
        assert_eq!(sweep(&[]), [1, 2, 3, 4]);
        catalogue.forget("a");
        assert_eq!(sweep(&[]), [2, 3, 4]);
        catalogue.use_types("b", HashSet::new());
        assert_eq!(sweep(&[]), [0; 0]);
    }
}
