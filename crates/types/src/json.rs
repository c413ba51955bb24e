//! The JSON encoding (Part 6 §5.4 of 1.05): all built-in types, compact and verbose.
//!
//! - [`parse`]: text to a tree, with limits;
//! - [`JsonEncode`]: values to text; [`JsonDecode`]: trees to values.
//!
//! Structures are not known here: an ExtensionObject is written with its binary body unless the context has a
//! [`StructureJson`] for it.

use crate::extension_object::ExtensionObject;
use crate::{DecodeError, StatusCode};

mod decode;
mod encode;
pub mod parse;
pub mod write;

pub use decode::{JsonDecode, array_from_json, variant_from_json};
pub use encode::{JsonEncode, encode_value};
pub use parse::{Json, JsonLimits};

/// Converts structures to and from JSON objects with their fields.
pub trait StructureJson {
    /// Appends `"Field":value` members, separated by commas, and returns the DataType. If the structure is not known,
    /// returns `None` and appends nothing.
    fn encode_fields(
        &self,
        object: &ExtensionObject,
        context: &JsonContext<'_>,
        out: &mut Vec<u8>,
    ) -> Option<crate::NodeId>;

    /// Creates a structure of a DataType from the members of an object; `None` if it is not known.
    fn decode_fields(
        &self,
        data_type: &crate::NodeId,
        json: &Json<'_>,
        context: &JsonContext<'_>,
    ) -> Option<Result<ExtensionObject, JsonError>>;
}

/// Options of the encoding, and the context for names.
#[derive(Clone, Copy, Default)]
pub struct JsonContext<'a> {
    /// VerboseEncoding: writes default values and symbols. Otherwise CompactEncoding.
    pub verbose: bool,
    /// Namespace URIs by index, from 0; indexes without a URI are written as numbers.
    pub namespaces: &'a [&'a str],
    /// Converts structures.
    pub structures: Option<&'a dyn StructureJson>,
}

impl core::fmt::Debug for JsonContext<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("JsonContext").field("verbose", &self.verbose).finish_non_exhaustive()
    }
}

/// Why text or a tree is not the JSON of a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The text is not valid JSON.
    #[error("not JSON at byte {at}: {reason}")]
    Syntax {
        /// Position.
        at: usize,
        /// Reason.
        reason: &'static str,
    },
    /// A limit was exceeded.
    #[error("the JSON exceeds the limit of {limit} for its {what}")]
    Limit {
        /// The limit's name.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A value of another type was expected.
    #[error("{0} expected")]
    Expected(&'static str),
    /// The body of a structure is malformed.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// A structure cannot be decoded.
    #[error("{0}")]
    Structure(String),
}

impl JsonError {
    /// The status of a service fault for this error.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Limit { .. } => StatusCode::BAD_ENCODING_LIMITS_EXCEEDED,
            _ => StatusCode::BAD_DECODING_ERROR,
        }
    }
}

#[cfg(test)]
mod tests;
