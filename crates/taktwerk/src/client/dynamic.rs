//! Structures whose types only the server defines. Their definitions are read from the server when first needed.

use super::{Client, Error};
use taktwerk_client::TypeReader;
use taktwerk_schema::dynamic::DynamicStructure;
use taktwerk_types::{DecodeLimits, ExtensionObject, Variant};
use tokio::sync::MutexGuard;

impl Client {
    /// The known types, after reading those that `want` asks for. The lock is held while reading, so that
    /// no type is read twice.
    async fn types(&self, want: impl FnOnce(&mut TypeReader)) -> Result<MutexGuard<'_, TypeReader>, Error> {
        let mut types = self.types.lock().await;
        want(&mut types);
        self.inner.learn(&mut types).await?;
        Ok(types)
    }

    /// Decodes a structure of any type, using the server's definition of it.
    ///
    /// # Errors
    /// The server does not define the type, or the content does not match it.
    pub async fn decode(&self, object: &ExtensionObject) -> Result<DynamicStructure, Error> {
        let fail = |source| Error::Dynamic { what: object.type_id.clone(), source };
        let types = self.types(|types| _ = types.want(object)).await?;
        types.registry().decode(object, DecodeLimits::DEFAULT).map_err(fail)
    }

    /// Encodes a structure of a type that the server defines, for writing or as a method argument.
    ///
    /// # Errors
    /// The server does not define the type, or a field does not fit it.
    pub async fn encode(&self, structure: &DynamicStructure) -> Result<ExtensionObject, Error> {
        let fail = |source| Error::Dynamic { what: structure.data_type.clone(), source };
        let types = self.types(|types| _ = types.want_data_type(&structure.data_type)).await?;
        types.registry().encode(structure).map_err(fail)
    }

    /// Formats a value for display: structures with their fields, enumerations as numbers.
    ///
    /// # Errors
    /// There is no answer. Structures that the server does not define are formatted undecoded.
    pub async fn print(&self, value: &Variant) -> Result<String, Error> {
        let types = self.types(|types| types.want_all(value)).await?;
        Ok(types.registry().print(value).to_string())
    }
}
