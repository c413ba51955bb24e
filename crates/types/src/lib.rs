//! The OPC UA built-in types (Part 6 §5.1.2) and their binary encoding (Part 6 §5.2).
//!
//! This is the lowest crate of the workspace: all others depend on it. It does no I/O, reads no clock and never panics
//! on input. Modules:
//!
//! - [`codec`]: [`Encode`] and [`Decode`] over slices, with limits on depth, lengths and allocation;
//! - [`variant`]: [`Variant`], its arrays and matrices, and [`DataValue`], which can contain each other; [`range`]:
//!   IndexRanges;
//! - [`node_id`], [`text`], [`string`], [`guid`], [`time`], [`status_code`],
//!   [`diagnostic_info`], [`extension_object`]: the other built-in types;
//! - [`hexadecimal`]: bytes as digits;
//! - `json` (feature `json`): the JSON encoding.
//!
//! Messages and structures built from these types are generated into `taktwerk-schema`.

pub mod codec;
pub mod diagnostic_info;
pub mod extension_object;
pub mod guid;
pub mod hexadecimal;
#[cfg(feature = "json")]
pub mod json;
pub mod node_id;
pub mod range;
pub mod status_code;
pub mod string;
pub mod text;
pub mod time;
pub mod variant;

pub use codec::{Decode, DecodeError, DecodeLimits, Decoder, Encode};
pub use diagnostic_info::DiagnosticInfo;
pub use extension_object::{ExtensionObject, ExtensionObjectBody, Structure};
pub use guid::Guid;
pub use node_id::{ExpandedNodeId, Identifier, IdentifierRef, NodeId, NodeIdRef, ParseNodeIdError};
pub use range::NumericRange;
pub use status_code::StatusCode;
pub use string::{ByteString, UaString, XmlElement};
pub use text::{LocalizedText, QualifiedName};
pub use time::{Duration, Instant, UtcTime};
pub use variant::{
    Array, ArrayValues, BuiltInType, DataValue, TimestampsToReturn, Variant, VariantTypeError,
};
