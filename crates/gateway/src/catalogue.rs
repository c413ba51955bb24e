//! The types of other servers that the gateway has taken over: nodes in the namespaces where they are at home.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use taktwerk_nodeset::TypeDictionary;
use taktwerk_server::space::AddressSpace;
use taktwerk_server::space::import::{ImportError, Importer};
use taktwerk_types::NodeId;

/// Nodes of types of all other servers together.
pub const NODES_MAX: usize = 100_000;

/// What values of a DataType are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Values of a built-in type: numbers, texts, enumerations.
    Plain,
    /// Structures. Their encoding means the same on every server unless they have fields with ids or names of nodes, or
    /// fields of any type.
    Structure {
        /// Whether it means the same on every server.
        is_portable: bool,
    },
}

impl Form {
    /// Whether values mean the same on every server.
    #[must_use]
    pub fn is_portable(self) -> bool {
        !matches!(self, Self::Structure { is_portable: false })
    }
}

/// What was learnt of types, with the namespace indexes of this server.
#[derive(Debug, Default)]
pub struct Learnt {
    /// The nodes that were looked at.
    pub nodes: HashSet<NodeId>,
    /// The DataTypes among them.
    pub forms: HashMap<NodeId, Form>,
    /// The encodings of structures that mean the same on every server.
    pub encodings: HashSet<NodeId>,
}

/// The types of other servers. They stay as long as the gateway runs: several sources may have them.
#[derive(Debug)]
pub struct Catalogue {
    state: Mutex<State>,
    /// Held by the one that finds out what is missing and adds it.
    turn: Mutex<()>,
}

#[derive(Debug)]
struct State {
    importer: Importer,
    learnt: Learnt,
}

impl Default for Catalogue {
    fn default() -> Self {
        let importer = Importer::new(TypeDictionary::namespace_zero());
        Self { state: Mutex::new(State { importer, learnt: Learnt::default() }), turn: Mutex::default() }
    }
}

impl Catalogue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be held from looking which nodes are missing until they are added: two sources may bring the same ones at once. It
    /// blocks while another source adds its types.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a node has been looked at.
    #[must_use]
    pub fn has(&self, node: &NodeId) -> bool {
        self.lock().learnt.nodes.contains(node)
    }

    /// How many nodes can still be taken over. They stay as long as the gateway runs, also those of a server that has other
    /// namespaces after each restart.
    #[must_use]
    pub fn room(&self) -> usize {
        NODES_MAX.saturating_sub(self.lock().learnt.nodes.len())
    }

    /// What values of a DataType are like, if it is known.
    #[must_use]
    pub fn form(&self, data_type: &NodeId) -> Option<Form> {
        self.lock().learnt.forms.get(data_type).copied()
    }

    /// The encodings of structures that mean the same on every server.
    #[must_use]
    pub fn encodings(&self) -> HashSet<NodeId> {
        self.lock().learnt.encodings.clone()
    }

    /// Adds the nodes of a NodeSet, and what was learnt of them. It blocks for as long as that takes.
    ///
    /// # Errors
    /// A node does not fit the address space. Nothing is added then.
    pub fn add(
        &self,
        space: &AddressSpace,
        name: &str,
        text: Option<String>,
        learnt: Learnt,
    ) -> Result<(), ImportError> {
        let mut state = self.lock();
        if let Some(text) = text {
            let imported =
                state.importer.import(space, &[(name.to_owned(), text)], taktwerk_net::clock::wall())?;
            for warning in imported.warnings {
                tracing::debug!(warning, "a type of another server");
            }
        }
        state.learnt.nodes.extend(learnt.nodes);
        state.learnt.forms.extend(learnt.forms);
        state.learnt.encodings.extend(learnt.encodings);
        Ok(())
    }
}
