//! Rust source for the event types of NodeSets: declarations with `taktwerk::event_type!`, for a `build.rs`.
//!
//! ```no_run
//! use taktwerk_nodeset::NodeSet;
//! use taktwerk_nodeset::event_types::EventTypes;
//!
//! // build.rs
//! let file = "nodesets/Plant.NodeSet2.xml";
//! println!("cargo::rerun-if-changed={file}");
//! let text = std::fs::read_to_string(file)?;
//! let mut types = EventTypes::new();
//! # #[cfg(feature = "schema")]
//! types.add_namespace_zero();
//! types.add(&NodeSet::parse(file, &text)?);
//! let source = types.generate("urn:example:plant")?;
//! std::fs::write(std::env::var("OUT_DIR")? + "/plant_events.rs", source)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - `model`: nodes of all files by namespace URI; `fields`: the fields of a type; `values`: their Rust types; `names`:
//!   Rust names; `write`: writes the source.

mod fields;
mod model;
mod names;
mod values;
mod write;

use crate::model::NodeSet;
use model::{Id, Model};
use taktwerk_types::Identifier;

/// BaseEventType and ConditionType.
const BASE_EVENT_TYPE: u32 = 2041;
const CONDITION_TYPE: u32 = 2782;

/// Why no source can be generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventTypesError {
    /// None of the NodeSets has event types in the namespace.
    #[error(
        "no event types in the namespace {uri:?}: add the NodeSet that defines them, and the types they derive from"
    )]
    None {
        /// The namespace.
        uri: String,
    },
    /// A required node is not in any NodeSet.
    #[error("{of} needs the node {id} of {uri:?}: add the NodeSet that defines it too")]
    Missing {
        /// What requires it.
        of: String,
        /// The id, without a namespace.
        id: String,
        /// The namespace.
        uri: String,
    },
    /// Two event types, or two fields of one, would have the same name in Rust.
    #[error("{one} and {other} would both be {name} in Rust: give one of them another SymbolicName")]
    SameName {
        /// The name.
        name: String,
        /// One.
        one: String,
        /// The other.
        other: String,
    },
}

/// The event types of NodeSets.
#[derive(Debug, Clone, Default)]
pub struct EventTypes {
    model: Model,
}

impl EventTypes {
    /// An empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the types of a file, in any order.
    pub fn add(&mut self, set: &NodeSet) {
        self.model.add(set);
    }

    /// Adds the types of namespace 0.
    #[cfg(feature = "schema")]
    pub fn add_namespace_zero(&mut self) {
        self.model.add_namespace_zero();
    }

    /// The Rust source for the event types of a namespace, ordered by name.
    ///
    /// # Errors
    /// There are no event types, a node is missing, or names collide.
    pub fn generate(&self, uri: &str) -> Result<String, EventTypesError> {
        self.generate_some(uri, |_| true)
    }

    /// Like [`Self::generate`], for selected BrowseNames.
    ///
    /// # Errors
    /// As [`Self::generate`].
    pub fn generate_some(
        &self,
        uri: &str,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<String, EventTypesError> {
        write::source(&self.model, &self.of(uri, &is_wanted)?)
    }

    /// The event types of a namespace, without BaseEventType, which the library has.
    fn of(&self, uri: &str, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Id>, EventTypesError> {
        let base = Id::ns0(BASE_EVENT_TYPE);
        let mut found = Vec::new();
        for id in self.model.object_types(uri) {
            let name = &self.model.get(id, "an event type")?.name.1;
            if *id != base && is_wanted(name) && self.model.ancestors(id)?.contains(&base) {
                found.push(id.clone());
            }
        }
        if found.is_empty() {
            return Err(EventTypesError::None { uri: uri.to_owned() });
        }
        Ok(found)
    }
}

/// An id as text, without its namespace.
fn text_of(identifier: &Identifier) -> String {
    taktwerk_types::NodeId { namespace_index: 0, identifier: identifier.clone() }.to_string()
}
