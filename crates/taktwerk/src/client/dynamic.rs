//! Structures that only the server knows: their definitions are read from it when they are met first.

use super::{Client, Error};
use taktwerk_client::TypeReader;
use taktwerk_schema::dynamic::DynamicStructure;
use taktwerk_types::{DecodeLimits, ExtensionObject, Variant};
use tokio::sync::MutexGuard;

impl Client {
    /// The types, once what `want` asks for is known or cannot be known. Somebody else may be learning the same ones, so
    /// that the reader is held meanwhile.
    async fn types(&self, want: impl FnOnce(&mut TypeReader)) -> Result<MutexGuard<'_, TypeReader>, Error> {
        let mut types = self.types.lock().await;
        want(&mut types);
        self.inner.learn(&mut types).await?;
        Ok(types)
    }

    /// Takes a structure of any type apart, with the definition that the server gives of it.
    ///
    /// # Errors
    /// The server does not define the type, or the structure is no encoding of it.
    pub async fn decode(&self, object: &ExtensionObject) -> Result<DynamicStructure, Error> {
        let fail = |source| Error::Dynamic { what: object.type_id.clone(), source };
        let types = self.types(|types| _ = types.want(object)).await?;
        types.registry().decode(object, DecodeLimits::DEFAULT).map_err(fail)
    }

    /// Encodes a structure of a type that the server defines, to be written or given to a method.
    ///
    /// # Errors
    /// The server does not define the type, or a field does not fit it.
    pub async fn encode(&self, structure: &DynamicStructure) -> Result<ExtensionObject, Error> {
        let fail = |source| Error::Dynamic { what: structure.data_type.clone(), source };
        let types = self.types(|types| _ = types.want_data_type(&structure.data_type)).await?;
        types.registry().encode(structure).map_err(fail)
    }

    /// A value for people: structures are taken apart, enumerations are not named.
    ///
    /// # Errors
    /// There is no answer. Structures that the server does not define are printed as they are.
    pub async fn print(&self, value: &Variant) -> Result<String, Error> {
        let types = self.types(|types| types.want_all(value)).await?;
        Ok(types.registry().print(value).to_string())
    }
}
