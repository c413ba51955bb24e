//! Errors in NodeSet files, with their line and advice.

use taktwerk_types::NodeId;

/// A problem with a file, at a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct NodeSetError {
    /// The file as named by the caller.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// What is wrong.
    pub problem: Box<Problem>,
}

/// What is wrong. Each text ends with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Not well-formed XML.
    #[error("the XML is malformed: {0}; the file may be truncated")]
    Xml(String),
    /// Elements nested too deeply.
    #[error("elements are nested more than {limit} levels deep; flatten the value or remove it")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// Another kind of XML file.
    #[error("the root element is <{found}>, not <UANodeSet>; give the NodeSet2.xml file of the model")]
    NotANodeSet {
        /// The root element.
        found: String,
    },
    /// A required attribute is missing.
    #[error("<{element}> has no attribute {attribute}; UANodeSet.xsd requires it")]
    MissingAttribute {
        /// The element.
        element: String,
        /// The attribute.
        attribute: &'static str,
    },
    /// An attribute or text does not parse.
    #[error("{what} is {found:?}; write {wanted}")]
    Malformed {
        /// Which attribute or element.
        what: String,
        /// Its text.
        found: String,
        /// What is expected.
        wanted: &'static str,
    },
    /// A name that should be a NodeId or an alias.
    #[error(
        "{found:?} is neither a NodeId nor an alias of this file; add it to <Aliases> or write i=… or ns=…;s=…"
    )]
    UnknownAlias {
        /// The name.
        found: String,
    },
    /// A namespace index beyond the file's table.
    #[error("namespace index {index} is used but <NamespaceUris> lists {listed}; add the missing <Uri>")]
    NamespaceIndex {
        /// The index.
        index: u16,
        /// How many URIs there are (index 0 is not listed).
        listed: usize,
    },
    /// The same NodeId twice.
    #[error("node {node_id} was already defined in line {first_line}; remove one of them")]
    DuplicateNode {
        /// The id.
        node_id: NodeId,
        /// Where it is first defined.
        first_line: u32,
    },
    /// A type that derives from itself.
    #[error("type {node_id} derives from itself by HasSubtype References; remove one of them")]
    CircularTypes {
        /// The type.
        node_id: NodeId,
    },
    /// A type with two supertypes, or a root of all types with one.
    #[error(
        "type {node_id} would derive from {supertype}, but it has another supertype or is a root of all types; remove one of \
         the HasSubtype References"
    )]
    SecondSupertype {
        /// The type.
        node_id: NodeId,
        /// The second supertype.
        supertype: NodeId,
    },
    /// No loaded model defines a structure or data type.
    #[error(
        "data type {node_id} is not defined by any loaded model; load the NodeSet that defines it as well"
    )]
    UnknownDataType {
        /// The DataType or encoding id.
        node_id: NodeId,
    },
    /// A data type that cannot have values, or an inconsistent definition.
    #[error("data type {node_id} {reason}; correct its <Definition>")]
    BadDataType {
        /// The DataType.
        node_id: NodeId,
        /// Why.
        reason: String,
    },
    /// A value does not have the form of its type.
    #[error("the value cannot be read: {0}")]
    Value(String),
    /// A required model is not among the files.
    #[error(
        "model {model} requires model {required}{version}, which is not loaded; give its NodeSet2.xml file as well"
    )]
    MissingModel {
        /// The model that requires it.
        model: String,
        /// The missing one.
        required: String,
        /// ` (version …)`, or empty.
        version: String,
    },
    /// A required model is loaded, but as an older publication.
    #[error("model {model} requires {required} of {wanted} or later, but the loaded one is of {found}")]
    OutdatedModel {
        /// The model that requires it.
        model: String,
        /// The required one.
        required: String,
        /// The publication date it must have.
        wanted: String,
        /// The publication date it has.
        found: String,
    },
    /// Models that require each other.
    #[error("models require each other in a circle: {0}; remove one of the <RequiredModel> elements")]
    CircularModels(String),
    /// Two files define the same model.
    #[error("model {model} is already defined by {other}; give only one of the two files")]
    DuplicateModel {
        /// The model.
        model: String,
        /// The other file.
        other: String,
    },
    /// Omitted fields of values and inherited fields of data types take memory, too.
    #[error(
        "with the omitted fields of values and the inherited fields of data types, values and data types would take more \
         than {limit} bytes; use structures with fewer fields or subtypes"
    )]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// Each of them is compared with all models of the server.
    #[error("there are more than {limit} <Model> or <RequiredModel> elements; split the file into several")]
    TooManyModels {
        /// The limit.
        limit: usize,
    },
    /// Each namespace takes memory of the server until the server ends.
    #[error(
        "there would be more than {limit} namespaces; remove those that no node uses from <NamespaceUris>"
    )]
    TooManyNamespaces {
        /// The limit.
        limit: usize,
    },
    /// A namespace is missing in the map given to [`crate::NodeSet::remap`].
    #[error("namespace {uri:?} has no index in the server; the caller of remap must provide one")]
    Unmapped {
        /// The namespace.
        uri: String,
    },
}
