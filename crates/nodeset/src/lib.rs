//! Reads NodeSet2 XML files (Part 6 Annex F, `UANodeSet.xsd`) into a plain model, and writes them.
//!
//! The crate does no I/O: it takes the text of a file and the name to print in messages. The schema generator uses it
//! for namespace 0, and servers import companion specifications with it at startup. The order of calls:
//!
//! 1. [`NodeSet::parse`] each file; ids in it use the file's own namespace indexes.
//! 2. [`order_by_dependencies`]; it names the models that are missing.
//! 3. [`NodeSet::remap`] each file from its own namespace indexes to the server's.
//! 4. [`TypeDictionary::add`] each file, in that order.
//! 5. [`NodeSet::value`] and [`TypeDictionary::definition_attribute`] for the nodes that have one.
//!
//! A [`Budget`] limits what they take, if others provide the files.
//!
//! [`event_types`] writes Rust source for event types.
//!
//! Modules: [`model`]: the content of a file; `parse`: reads it; [`dictionary`]: data types across files; `export`:
//! writes files; `value`: converts XML values to the binary encoding; [`error`]: errors with line and advice.

mod budget;
mod circle;
pub mod definition;
pub mod dictionary;
pub mod error;
pub mod event_types;
#[cfg(feature = "schema")]
pub mod export;
pub mod model;
#[cfg(feature = "schema")]
mod namespace_zero;
mod order;
mod parse;
mod remap;
mod scalar;
mod value;
mod xml;

pub use budget::Budget;
pub use definition::{Definition, Field};
pub use dictionary::{DataTypeKind, StructureLayout, TypeDictionary};
pub use error::{NodeSetError, Problem};
pub use model::{Model, Node, NodeClass, NodeSet, Reference, RequiredModel, RolePermission};
pub use order::{order_by_dependencies, outdated_models};
pub use xml::Element;
