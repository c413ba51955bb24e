//! Structures that only the server knows: their definitions are read from it when they are met first.

use super::{Attribute, BrowseOptions, Client, Error};
use std::sync::{MutexGuard, PoisonError};
use taktwerk_schema::BrowseDirection;
use taktwerk_schema::dynamic::{DynamicError, DynamicStructure, TypeRegistry};
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_types::{DecodeLimits, ExtensionObject, NodeId, Variant};

/// Types refer to types that refer to types; no model goes deeper.
const ROUNDS_MAX: usize = 64;

impl Client {
    fn types(&self) -> MutexGuard<'_, TypeRegistry> {
        self.types.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a structure of any type apart, with the definition that the server gives of it.
    ///
    /// # Errors
    /// The server does not define the type, or the structure is no encoding of it.
    pub async fn decode(&self, object: &ExtensionObject) -> Result<DynamicStructure, Error> {
        let fail = |source| Error::Dynamic { what: object.type_id.clone(), source };
        if self.types().structure_by_encoding(&object.type_id).is_none() {
            let data_type = self.data_type_of(&object.type_id).await?;
            self.learn(data_type.clone()).await?;
            self.types().add_encoding(object.type_id.clone(), data_type);
        }
        self.types().decode(object, DecodeLimits::DEFAULT).map_err(fail)
    }

    /// Encodes a structure of a type that the server defines, to be written or given to a method.
    ///
    /// # Errors
    /// The server does not define the type, or a field does not fit it.
    pub async fn encode(&self, structure: &DynamicStructure) -> Result<ExtensionObject, Error> {
        let fail = |source| Error::Dynamic { what: structure.data_type.clone(), source };
        if self.types().structure(&structure.data_type).is_none() {
            self.learn(structure.data_type.clone()).await?;
        }
        self.types().encode(structure).map_err(fail)
    }

    /// A value for people: structures are taken apart, enumerations are not named.
    ///
    /// # Errors
    /// There is no answer. Structures that the server does not define are printed as they are.
    pub async fn print(&self, value: &Variant) -> Result<String, Error> {
        let encodings: Vec<NodeId> = match value {
            Variant::ExtensionObject(object) => vec![object.type_id.clone()],
            Variant::Array(array) => match &array.values {
                taktwerk_types::ArrayValues::ExtensionObject(objects) => {
                    objects.iter().map(|object| object.type_id.clone()).collect()
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        for encoding in encodings {
            let is_known = self.types().structure_by_encoding(&encoding).is_some();
            if !is_known && let Ok(data_type) = self.data_type_of(&encoding).await {
                match self.learn(data_type.clone()).await {
                    Ok(()) => self.types().add_encoding(encoding, data_type),
                    Err(Error::Client(error)) => return Err(error.into()),
                    Err(error) => tracing::debug!(%error, "a structure is printed as it is"),
                }
            }
        }
        Ok(self.types().print(value).to_string())
    }

    /// The DataType that an encoding belongs to.
    async fn data_type_of(&self, encoding: &NodeId) -> Result<NodeId, Error> {
        let options = BrowseOptions {
            direction: BrowseDirection::INVERSE,
            reference_type: NodeId::numeric(0, reference_type_ids::HAS_ENCODING),
            ..BrowseOptions::default()
        };
        let unknown =
            || Error::Dynamic { what: encoding.clone(), source: DynamicError::UnknownType(encoding.clone()) };
        let references = self.browse_with(encoding, &options).await?;
        match references.into_iter().next() {
            Some(reference) => self.resolve(reference.node_id),
            None => Err(unknown()),
        }
    }

    /// Reads the definition of a DataType, and of all that its fields need.
    async fn learn(&self, data_type: NodeId) -> Result<(), Error> {
        let mut wanted = vec![data_type];
        for _ in 0..ROUNDS_MAX {
            let Some(next) = wanted.pop() else { break };
            self.learn_one(&next).await?;
            let types = self.types();
            wanted.extend(types.missing().into_iter().filter(|id| !types.knows(id)));
            drop(types);
            wanted.dedup();
        }
        Ok(())
    }

    async fn learn_one(&self, data_type: &NodeId) -> Result<(), Error> {
        let fail = |source| Error::Dynamic { what: data_type.clone(), source };
        if self.types().knows(data_type) {
            return Ok(());
        }
        let base = self.base_of(data_type).await?;
        let name = self.attribute_value(data_type, Attribute::BrowseName).await?;
        let name = match &name {
            Variant::QualifiedName(name) => name.name.as_str().to_owned(),
            _ => data_type.to_string(),
        };
        match self.attribute_value(data_type, Attribute::DataTypeDefinition).await {
            Ok(Variant::ExtensionObject(definition)) => {
                self.types().add(data_type.clone(), &name, &base, &definition).map_err(fail)
            }
            // A subtype without a definition of its own is encoded like its supertype.
            _ => {
                if !self.types().knows(&base) {
                    Box::pin(self.learn_one(&base)).await?;
                }
                self.types().add_subtype(data_type.clone(), &base).map_err(fail)
            }
        }
    }

    async fn base_of(&self, data_type: &NodeId) -> Result<NodeId, Error> {
        let options = BrowseOptions {
            direction: BrowseDirection::INVERSE,
            reference_type: NodeId::numeric(0, reference_type_ids::HAS_SUBTYPE),
            ..BrowseOptions::default()
        };
        match self.browse_with(data_type, &options).await?.into_iter().next() {
            Some(reference) => self.resolve(reference.node_id),
            None => Ok(NodeId::NULL),
        }
    }
}
