//! Reads a server's own data types: which requests to send, and how to interpret the responses (Part 3 §5.8.3, §8.48).
//!
//! A [`TypeReader`] gets the ids that the application does not know. In rounds of requests, which any client can send,
//! it finds the DataType of each encoding, reads its definition, and continues with the types of its fields until a
//! [`TypeRegistry`] has all of them.

use crate::error::ClientError;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_schema::dynamic::TypeRegistry;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{
    BrowseDescription, BrowseDirection, BrowseRequest, BrowseResponse, BrowseResult, BrowseResultMask,
    ReadRequest, ReadResponse, ReadValueId, TimestampsToReturn,
};
use taktwerk_types::{ArrayValues, DataValue, ExtensionObject, NodeId, Variant};

/// AttributeId of BrowseName (Part 6 Annex A).
const BROWSE_NAME: u32 = 3;
/// AttributeId of DataTypeDefinition (Part 6 Annex A).
const DATA_TYPE_DEFINITION: u32 = 23;
/// Name of the encoding node for the binary protocol (Part 3 §5.8.4).
const DEFAULT_BINARY: &str = "Default Binary";
/// Maximum number of types, to bound the work that a hostile server can cause.
const TYPES_MAX: usize = 10_000;

/// Reads the definitions of data types from a server.
#[derive(Debug, Default)]
pub struct TypeReader {
    registry: TypeRegistry,
    /// Encodings whose DataType is unknown.
    encodings: BTreeSet<NodeId>,
    /// DataTypes to read.
    data_types: BTreeSet<NodeId>,
    /// Types that are usable once their supertype is known.
    waiting: BTreeMap<NodeId, Waiting>,
    /// Ids already requested, to avoid repetition.
    asked: BTreeSet<NodeId>,
    round: Round,
}

/// The next request of a [`TypeReader`].
#[derive(Debug)]
pub enum TypeQuestion {
    /// Pass the response to [`TypeReader::browsed`].
    Browse(BrowseRequest),
    /// Pass the response to [`TypeReader::read`].
    Read(ReadRequest),
}

/// A type whose supertype is unknown.
#[derive(Debug)]
struct Waiting {
    base: NodeId,
    /// Name and definition, if it has its own: option sets have the length of their supertype.
    definition: Option<(String, ExtensionObject)>,
}

/// The request in progress.
#[derive(Debug, Default)]
enum Round {
    #[default]
    Idle,
    /// DataTypes of encodings.
    Encodings(Vec<NodeId>),
    /// Definitions and names.
    Definitions(Vec<NodeId>),
    /// Supertypes and encodings, with the definitions and names.
    References(Vec<NodeId>, Vec<DataValue>),
}

impl TypeReader {
    /// A reader that initially knows namespace 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The types found so far.
    #[must_use]
    pub fn registry(&self) -> &TypeRegistry {
        &self.registry
    }

    /// Requests the type of a received structure. False if it is known or was requested before.
    pub fn want(&mut self, object: &ExtensionObject) -> bool {
        self.want_encoding(&object.type_id)
    }

    /// Requests the types of all structures in a value.
    pub fn want_all(&mut self, value: &Variant) {
        match value {
            Variant::ExtensionObject(object) => _ = self.want(object),
            Variant::Array(array) => {
                if let ArrayValues::ExtensionObject(objects) = &array.values {
                    objects.iter().for_each(|object| _ = self.want(object));
                }
            }
            _ => {}
        }
    }

    /// Requests the DataType that has this encoding.
    pub fn want_encoding(&mut self, encoding: &NodeId) -> bool {
        let known = encoding.is_null() || self.registry.structure_by_encoding(encoding).is_some();
        let asked = !known && self.note(encoding);
        if asked {
            self.encodings.insert(encoding.clone());
        }
        asked
    }

    /// Requests a DataType.
    pub fn want_data_type(&mut self, data_type: &NodeId) -> bool {
        let known = data_type.is_null() || self.registry.knows(data_type);
        let asked = !known && self.note(data_type);
        if asked {
            self.data_types.insert(data_type.clone());
        }
        asked
    }

    fn note(&mut self, id: &NodeId) -> bool {
        self.asked.len() < TYPES_MAX && self.asked.insert(id.clone())
    }

    /// Whether all requested types are known or unavailable.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.round, Round::Idle) && self.encodings.is_empty() && self.data_types.is_empty()
    }

    /// The next request to the server; the same until its response was passed. `None` when nothing is left.
    pub fn question(&mut self) -> Option<TypeQuestion> {
        if matches!(self.round, Round::Idle) {
            self.round = if !self.encodings.is_empty() {
                Round::Encodings(core::mem::take(&mut self.encodings).into_iter().collect())
            } else if !self.data_types.is_empty() {
                Round::Definitions(core::mem::take(&mut self.data_types).into_iter().collect())
            } else {
                return None;
            };
        }
        Some(match &self.round {
            Round::Idle => return None,
            Round::Encodings(ids) => {
                let inverse = |id| reference(id, reference_type_ids::HAS_ENCODING, BrowseDirection::INVERSE);
                browse(ids.iter().map(inverse).collect())
            }
            Round::Definitions(ids) => {
                let attributes = ids
                    .iter()
                    .flat_map(|id| [DATA_TYPE_DEFINITION, BROWSE_NAME].map(|attribute| (id, attribute)));
                let nodes_to_read = attributes.map(|(id, attribute_id)| ReadValueId {
                    node_id: id.clone(),
                    attribute_id,
                    ..ReadValueId::default()
                });
                TypeQuestion::Read(ReadRequest {
                    nodes_to_read: nodes_to_read.collect(),
                    timestamps_to_return: TimestampsToReturn::NEITHER,
                    ..ReadRequest::default()
                })
            }
            Round::References(ids, _) => {
                let references = ids.iter().flat_map(|id| {
                    [
                        reference(id, reference_type_ids::HAS_SUBTYPE, BrowseDirection::INVERSE),
                        reference(id, reference_type_ids::HAS_ENCODING, BrowseDirection::FORWARD),
                    ]
                });
                browse(references.collect())
            }
        })
    }

    /// Takes the response to [`TypeQuestion::Browse`].
    ///
    /// # Errors
    /// There was no response, and the request is still open. If the server refuses, its types stay unknown.
    pub fn browsed(&mut self, response: Result<BrowseResponse, ClientError>) -> Result<(), ClientError> {
        let results = answer(response)?.map(|response| response.results).unwrap_or_default();
        match core::mem::take(&mut self.round) {
            Round::Encodings(ids) => self.take_encodings(&ids, &results),
            Round::References(ids, values) => self.take_definitions(ids, &values, &results),
            other => self.round = other,
        }
        Ok(())
    }

    /// Takes the response to [`TypeQuestion::Read`].
    ///
    /// # Errors
    /// As [`TypeReader::browsed`].
    pub fn read(&mut self, response: Result<ReadResponse, ClientError>) -> Result<(), ClientError> {
        let results = answer(response)?.map(|response| response.results).unwrap_or_default();
        self.round = match core::mem::take(&mut self.round) {
            Round::Definitions(ids) => Round::References(ids, results),
            other => other,
        };
        Ok(())
    }

    fn take_encodings(&mut self, ids: &[NodeId], results: &[BrowseResult]) {
        for (at, encoding) in ids.iter().enumerate() {
            match results.get(at).and_then(first_target) {
                Some(data_type) => {
                    self.registry.add_encoding(encoding.clone(), data_type.clone());
                    self.want_data_type(&data_type);
                }
                // Some servers write the DataType's own id before a structure.
                None => {
                    self.data_types.insert(encoding.clone());
                }
            }
        }
    }

    fn take_definitions(&mut self, ids: Vec<NodeId>, values: &[DataValue], references: &[BrowseResult]) {
        for (at, data_type) in ids.into_iter().enumerate() {
            let base = references.get(2 * at).and_then(first_target).unwrap_or_default();
            for encoding in references.get(2 * at + 1).iter().flat_map(|result| &result.references) {
                if let (DEFAULT_BINARY, Some(id)) =
                    (encoding.browse_name.name.as_str(), encoding.node_id.local())
                {
                    self.registry.add_encoding(id.clone(), data_type.clone());
                }
            }
            let name = match values.get(2 * at + 1).and_then(|value| value.value.as_ref()) {
                Some(Variant::QualifiedName(name)) => name.name.as_str().to_owned(),
                _ => data_type.to_string(),
            };
            let definition = match values.get(2 * at).and_then(|value| value.value.as_ref()) {
                Some(Variant::ExtensionObject(definition)) => Some((**definition).clone()),
                _ => None,
            };
            let added = definition.as_ref().is_some_and(|definition| {
                self.registry.add(data_type.clone(), &name, &base, definition).is_ok()
            });
            if !added && !base.is_null() {
                self.want_data_type(&base);
                let definition = definition.map(|definition| (name, definition));
                self.waiting.insert(data_type, Waiting { base, definition });
            }
        }
        self.resolve_waiting();
        for missing in self.registry.missing() {
            if !self.waiting.contains_key(&missing) {
                self.want_data_type(&missing);
            }
        }
    }

    /// Adds the types whose supertype has become known, repeatedly. A subtype of a simple type has no definition: it is
    /// encoded like its supertype.
    fn resolve_waiting(&mut self) {
        let registry = &mut self.registry;
        let mut add = |data_type: &NodeId, waiting: &Waiting| {
            let defined = waiting.definition.as_ref().is_some_and(|(name, definition)| {
                registry.add(data_type.clone(), name, &waiting.base, definition).is_ok()
            });
            defined || registry.add_subtype(data_type.clone(), &waiting.base).is_ok()
        };
        loop {
            let before = self.waiting.len();
            self.waiting.retain(|data_type, waiting| !add(data_type, waiting));
            if self.waiting.len() == before {
                return;
            }
        }
    }
}

/// `None` if the server has answered, but not as required: repeating the request would not help.
fn answer<T>(response: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match response {
        Ok(response) => Ok(Some(response)),
        Err(ClientError::Service { .. } | ClientError::Decode(_) | ClientError::UnexpectedResponse(_)) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn reference(node_id: &NodeId, reference_type: u32, browse_direction: BrowseDirection) -> BrowseDescription {
    BrowseDescription {
        node_id: node_id.clone(),
        browse_direction,
        reference_type_id: NodeId::numeric(0, reference_type),
        include_subtypes: true,
        result_mask: u32::try_from(BrowseResultMask::BROWSE_NAME.0).unwrap_or(0),
        ..BrowseDescription::default()
    }
}

fn browse(nodes_to_browse: Vec<BrowseDescription>) -> TypeQuestion {
    TypeQuestion::Browse(BrowseRequest { nodes_to_browse, ..BrowseRequest::default() })
}

fn first_target(result: &BrowseResult) -> Option<NodeId> {
    result.references.first().and_then(|reference| reference.node_id.local()).cloned()
}
