//! Reads NodeSet2 XML files (Part 6 Annex F, `UANodeSet.xsd`) into a plain model, and writes them.
//!
//! The crate does no I/O: it is given the text of a file and the name to print in messages. It serves the generator
//! of the schema (namespace 0) and the import of companion specifications when a server starts. The order of calls:
//!
//! 1. [`NodeSet::parse`] each file; ids in it use the file's own namespace indexes.
//! 2. [`order_by_dependencies`]; it names the models that are missing.
//! 3. [`NodeSet::remap`] each file from its own namespace indexes to the server's.
//! 4. [`TypeDictionary::add`] each file, in that order.
//! 5. [`NodeSet::value`] and [`TypeDictionary::definition_attribute`] for the nodes that have one.
//!
//! [`event_types`] writes Rust source for event types.
//!
//! Where to look: [`model`] is what a file says; `parse` reads it; [`dictionary`] knows data types across files;
//! `export` writes files; `value` turns XML values into the binary encoding; [`error`] says what is wrong, in which line, and what to do.

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

pub use definition::{Definition, Field};
pub use dictionary::{DataTypeKind, StructureLayout, TypeDictionary};
pub use error::{NodeSetError, Problem};
pub use model::{Model, Node, NodeClass, NodeSet, Reference, RequiredModel, RolePermission};
pub use order::{order_by_dependencies, outdated_models};
pub use xml::Element;
