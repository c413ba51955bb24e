//! The standard binary file of a configuration (Part 14 §9.1.3.7, UABinaryFileDataType of Part 5).

use super::{Configuration, ConversionError};
use taktwerk_schema::{PubSubConfiguration2DataType, PubSubConfigurationDataType, UABinaryFileDataType};
use taktwerk_types::codec::Decode;
use taktwerk_types::{DecodeError, DecodeLimits, Encode, ExtensionObject, Variant};

/// Why a file contains no configuration.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BinaryFileError {
    /// The bytes are not a UABinaryFileDataType.
    #[error("not a UABinaryFile: {0}")]
    Decode(#[from] DecodeError),
    /// The file has another content.
    #[error("the UABinaryFile contains {0}, not a PubSubConfiguration2DataType")]
    OtherContent(String),
    /// The configuration is invalid.
    #[error("{0}")]
    Conversion(#[from] ConversionError),
}

/// Reads a file: an ExtensionObject with a UABinaryFileDataType, or the structure alone as some tools write it.
///
/// # Errors
/// See [`BinaryFileError`].
pub fn read(bytes: &[u8]) -> Result<Configuration, BinaryFileError> {
    let limits = DecodeLimits::DEFAULT;
    let file: UABinaryFileDataType = match ExtensionObject::decode_from(bytes, limits) {
        Ok(object) if object.is::<UABinaryFileDataType>() => object.decode()?,
        _ => UABinaryFileDataType::decode_from(bytes, limits)?,
    };
    let object = match &file.body {
        Variant::ExtensionObject(object) => object,
        other => return Err(BinaryFileError::OtherContent(other.type_name())),
    };
    if object.is::<PubSubConfigurationDataType>() {
        // The structure before 1.05, whose fields the new one contains.
        let old: PubSubConfigurationDataType = object.decode()?;
        let new = PubSubConfiguration2DataType {
            published_data_sets: old.published_data_sets,
            connections: old.connections,
            enabled: old.enabled,
            ..PubSubConfiguration2DataType::default()
        };
        return Ok(Configuration::from_schema(&new)?);
    }
    if !object.is::<PubSubConfiguration2DataType>() {
        return Err(BinaryFileError::OtherContent(format!("a structure of type {}", object.type_id)));
    }
    Ok(Configuration::from_schema(&object.decode()?)?)
}

/// Writes a file.
#[must_use]
pub fn write(configuration: &Configuration) -> Vec<u8> {
    let file = UABinaryFileDataType {
        body: Variant::from_structure(&configuration.to_schema()),
        ..UABinaryFileDataType::default()
    };
    ExtensionObject::new(&file).encode_to_vec()
}
