//! Learning a server's own data types: which to ask for, and what the answers mean (Part 3 §5.8.3, §8.48).
//!
//! A [`TypeReader`] stands beside a [`Client`]: the application tells it the ids it does not know, lets it send requests
//! and shows it the responses. In rounds it finds the DataType of each encoding, reads its definition, and goes on with
//! the types of its fields until a [`TypeRegistry`] knows them all.

use crate::client::Client;
use crate::error::ClientError;
use crate::event::{OwnedReply, RequestHandle};
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_schema::dynamic::TypeRegistry;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{
    BrowseDescription, BrowseDirection, BrowseRequest, BrowseResponse, BrowseResult, BrowseResultMask,
    ReadRequest, ReadResponse, ReadValueId, TimestampsToReturn,
};
use taktwerk_types::{DataValue, ExtensionObject, Instant, NodeId, Variant};

/// AttributeId of BrowseName (Part 6 Annex A).
const BROWSE_NAME: u32 = 3;
/// AttributeId of DataTypeDefinition (Part 6 Annex A).
const DATA_TYPE_DEFINITION: u32 = 23;
/// What the encoding node for this protocol is called (Part 3 §5.8.4).
const DEFAULT_BINARY: &str = "Default Binary";
/// Most types that are asked for: a server's types cannot go on for ever.
const TYPES_MAX: usize = 10_000;

/// Reads the definitions of data types from a server.
#[derive(Debug, Default)]
pub struct TypeReader {
    registry: TypeRegistry,
    /// Encodings whose DataType is not known yet.
    encodings: BTreeSet<NodeId>,
    /// DataTypes to be read.
    data_types: BTreeSet<NodeId>,
    /// Types without a definition, with their supertype: usable once that is known.
    subtypes: BTreeMap<NodeId, NodeId>,
    /// Ids that were asked for, so that none is asked for twice.
    asked: BTreeSet<NodeId>,
    round: Round,
}

/// The requests that are under way.
#[derive(Debug, Default)]
enum Round {
    #[default]
    Idle,
    /// From encodings to DataTypes.
    Encodings { browse: RequestHandle, ids: Vec<NodeId> },
    /// Definitions, names, supertypes and encodings.
    Definitions { read: RequestHandle, browse: RequestHandle, ids: Vec<NodeId>, answers: Answers },
}

#[derive(Debug, Default)]
struct Answers {
    values: Option<Vec<DataValue>>,
    references: Option<Vec<BrowseResult>>,
}

impl TypeReader {
    /// A reader that knows namespace 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What is known so far.
    #[must_use]
    pub fn registry(&self) -> &TypeRegistry {
        &self.registry
    }

    /// Asks for the type of a structure that was received. False if it is known, or was asked for before.
    pub fn want(&mut self, object: &ExtensionObject) -> bool {
        self.want_encoding(&object.type_id)
    }

    /// Asks for the DataType that has this encoding.
    pub fn want_encoding(&mut self, encoding: &NodeId) -> bool {
        let known = encoding.is_null() || self.registry.structure_by_encoding(encoding).is_some();
        let asked = !known && self.note(encoding);
        if asked {
            self.encodings.insert(encoding.clone());
        }
        asked
    }

    /// Asks for a DataType.
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

    /// Whether everything that was asked for is known, or cannot be known.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.round, Round::Idle) && self.encodings.is_empty() && self.data_types.is_empty()
    }

    /// Sends the next requests, unless some are under way.
    ///
    /// # Errors
    /// As [`Client::operate`]; what is wanted stays wanted.
    pub fn advance(&mut self, client: &mut Client, now: Instant) -> Result<(), ClientError> {
        if !matches!(self.round, Round::Idle) {
            return Ok(());
        }
        if !self.encodings.is_empty() {
            let ids: Vec<NodeId> = self.encodings.iter().cloned().collect();
            let inverse = |id| reference(id, reference_type_ids::HAS_ENCODING, BrowseDirection::INVERSE);
            let browse = client.operate(browse(ids.iter().map(inverse).collect()), now)?;
            self.encodings.clear();
            self.round = Round::Encodings { browse, ids };
        } else if !self.data_types.is_empty() {
            let ids: Vec<NodeId> = self.data_types.iter().cloned().collect();
            let attributes = ids
                .iter()
                .flat_map(|id| [DATA_TYPE_DEFINITION, BROWSE_NAME].map(|attribute| (id, attribute)));
            let nodes_to_read = attributes.map(|(id, attribute_id)| ReadValueId {
                node_id: id.clone(),
                attribute_id,
                ..ReadValueId::default()
            });
            let request = ReadRequest {
                nodes_to_read: nodes_to_read.collect(),
                timestamps_to_return: TimestampsToReturn::NEITHER,
                ..ReadRequest::default()
            };
            let references = ids.iter().flat_map(|id| {
                [
                    reference(id, reference_type_ids::HAS_SUBTYPE, BrowseDirection::INVERSE),
                    reference(id, reference_type_ids::HAS_ENCODING, BrowseDirection::FORWARD),
                ]
            });
            let read = client.operate(request, now)?;
            let browse = client.operate(browse(references.collect()), now)?;
            self.data_types.clear();
            self.round = Round::Definitions { read, browse, ids, answers: Answers::default() };
        }
        Ok(())
    }

    /// Looks at a response. Gives it back if it is not the answer to a request of this reader. Call
    /// [`TypeReader::advance`] afterwards. What a lost connection interrupted is asked for again.
    ///
    /// # Errors
    /// The response, untouched, for its owner.
    #[allow(clippy::type_complexity)] // the response as the sink had it
    pub fn response(
        &mut self,
        handle: RequestHandle,
        result: Result<OwnedReply, ClientError>,
    ) -> Result<(), Result<OwnedReply, ClientError>> {
        match &mut self.round {
            Round::Encodings { browse, ids } if *browse == handle => {
                let ids = core::mem::take(ids);
                self.round = Round::Idle;
                if result.as_ref().is_err_and(ClientError::is_connection) {
                    self.encodings.extend(ids);
                    return Ok(());
                }
                let results = result.and_then(OwnedReply::decode::<BrowseResponse>);
                self.take_encodings(&ids, &results.map(|response| response.results).unwrap_or_default());
            }
            // The other request of the round fails as well and is then nobody's.
            Round::Definitions { read, browse, ids, .. }
                if (*read == handle || *browse == handle)
                    && result.as_ref().is_err_and(ClientError::is_connection) =>
            {
                let ids = core::mem::take(ids);
                self.round = Round::Idle;
                self.data_types.extend(ids);
            }
            Round::Definitions { read, answers, .. } if *read == handle => {
                let response = result.and_then(OwnedReply::decode::<ReadResponse>);
                answers.values = Some(response.map(|response| response.results).unwrap_or_default());
                self.take_definitions();
            }
            Round::Definitions { browse, answers, .. } if *browse == handle => {
                let response = result.and_then(OwnedReply::decode::<BrowseResponse>);
                answers.references = Some(response.map(|response| response.results).unwrap_or_default());
                self.take_definitions();
            }
            _ => return Err(result),
        }
        Ok(())
    }

    fn take_encodings(&mut self, ids: &[NodeId], results: &[BrowseResult]) {
        for (at, encoding) in ids.iter().enumerate() {
            match results.get(at).and_then(first_target) {
                Some(data_type) => {
                    self.registry.add_encoding(encoding.clone(), data_type.clone());
                    self.want_data_type(&data_type);
                }
                // Some servers write the DataType's own id in front of a structure.
                None => {
                    self.data_types.insert(encoding.clone());
                }
            }
        }
    }

    fn take_definitions(&mut self) {
        let Round::Definitions {
            ids,
            answers: Answers { values: Some(values), references: Some(references) },
            ..
        } = &mut self.round
        else {
            return;
        };
        let (ids, values, references) =
            (core::mem::take(ids), core::mem::take(values), core::mem::take(references));
        self.round = Round::Idle;
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
                Some(Variant::ExtensionObject(definition)) => Some(definition),
                _ => None,
            };
            let added = definition.is_some_and(|definition| {
                self.registry.add(data_type.clone(), &name, &base, definition).is_ok()
            });
            if !added && !base.is_null() {
                // A subtype of a simple type has no definition: it is encoded like its supertype.
                self.want_data_type(&base);
                self.subtypes.insert(data_type, base);
            }
        }
        self.resolve_subtypes();
        for missing in self.registry.missing() {
            if !self.subtypes.contains_key(&missing) {
                self.want_data_type(&missing);
            }
        }
    }

    /// Adds the types without a definition whose supertype has become known; each may make the next one known.
    fn resolve_subtypes(&mut self) {
        let registry = &mut self.registry;
        loop {
            let before = self.subtypes.len();
            self.subtypes.retain(|data_type, base| registry.add_subtype(data_type.clone(), base).is_err());
            if self.subtypes.len() == before {
                return;
            }
        }
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

fn browse(nodes_to_browse: Vec<BrowseDescription>) -> BrowseRequest {
    BrowseRequest { nodes_to_browse, ..BrowseRequest::default() }
}

fn first_target(result: &BrowseResult) -> Option<NodeId> {
    result.references.first().and_then(|reference| reference.node_id.local()).cloned()
}
