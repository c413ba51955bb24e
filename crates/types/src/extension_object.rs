//! ExtensionObject (Part 6 §5.2.2.15): a structure with the id of its encoding.

use crate::codec::{Decode, DecodeError, DecodeLimits, Decoder, Encode, encode_bytes, encode_sized};
use crate::node_id::NodeId;
use crate::string::{ByteString, XmlElement};

/// Memory of a structure that [`ExtensionObject::decode`] reads.
const MEMORY_MAX: usize = 64 << 20;

/// A structure of the schema, which can be converted to and from an [`ExtensionObject`].
pub trait Structure: Encode + for<'a> Decode<'a> {
    /// The DataType node's id in namespace 0.
    const DATA_TYPE_ID: u32;
    /// The id of its "Default Binary" encoding node in namespace 0, which precedes the body in the encoding.
    const BINARY_ENCODING_ID: u32;
}

/// The body of an [`ExtensionObject`], kept as received: unknown structures survive a round trip.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ExtensionObjectBody {
    /// No body.
    #[default]
    None,
    /// The binary encoding of the structure.
    Binary(ByteString),
    /// The XML encoding of the structure.
    Xml(XmlElement),
}

/// A structure of any type, encoded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ExtensionObject {
    /// The id of the encoding node (not of the DataType).
    pub type_id: NodeId,
    /// The encoded structure.
    pub body: ExtensionObjectBody,
}

impl ExtensionObject {
    /// The ExtensionObject without a type and body.
    pub const NULL: Self = Self { type_id: NodeId::NULL, body: ExtensionObjectBody::None };

    /// Encodes a structure of the schema.
    #[must_use]
    pub fn new<T: Structure>(value: &T) -> Self {
        Self::from_binary(NodeId::numeric(0, T::BINARY_ENCODING_ID), value.encode_to_vec())
    }

    /// From an encoding id and the binary encoding.
    #[must_use]
    pub fn from_binary(type_id: NodeId, body: Vec<u8>) -> Self {
        Self { type_id, body: ExtensionObjectBody::Binary(body.into()) }
    }

    /// Whether there is neither type nor body.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.type_id.is_null() && self.body == ExtensionObjectBody::None
    }

    /// Whether the body is the binary encoding of `T`.
    #[must_use]
    pub fn is<T: Structure>(&self) -> bool {
        self.type_id.ns0() == Some(T::BINARY_ENCODING_ID)
    }

    /// The binary body, if it has one.
    #[must_use]
    pub fn binary(&self) -> Option<&[u8]> {
        match &self.body {
            ExtensionObjectBody::Binary(bytes) => Some(bytes.as_bytes()),
            ExtensionObjectBody::None | ExtensionObjectBody::Xml(_) => None,
        }
    }

    /// Reads the body as `T`, which may take 64 MiB of memory: a body can come from a peer that wants it to take much
    /// more memory than bytes.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] if the type is another one; else what is wrong with the body.
    pub fn decode<T: Structure>(&self) -> Result<T, DecodeError> {
        self.decode_within(DecodeLimits { memory_max: MEMORY_MAX, ..DecodeLimits::DEFAULT })
    }

    /// Reads the body as `T` within limits.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] if the type is another one; else what is wrong with the body.
    pub fn decode_within<T: Structure>(&self, limits: DecodeLimits) -> Result<T, DecodeError> {
        match self.binary() {
            Some(bytes) if self.is::<T>() => T::decode_from(bytes, limits),
            _ => Err(DecodeError::Invalid("ExtensionObject: it contains another type")),
        }
    }
}

/// Appends `value` as an ExtensionObject without building one.
pub fn encode_structure<T: Structure>(value: &T, out: &mut Vec<u8>) {
    NodeId::numeric(0, T::BINARY_ENCODING_ID).encode(out);
    out.push(1);
    encode_sized(out, |out| value.encode(out));
}

impl Encode for ExtensionObject {
    fn encode(&self, out: &mut Vec<u8>) {
        self.type_id.encode(out);
        match &self.body {
            ExtensionObjectBody::None => out.push(0),
            ExtensionObjectBody::Binary(bytes) => {
                out.push(1);
                encode_bytes(bytes.as_deref(), out);
            }
            ExtensionObjectBody::Xml(xml) => {
                out.push(2);
                xml.encode(out);
            }
        }
    }
}

impl<'a> Decode<'a> for ExtensionObject {
    const MIN_LEN: usize = 3;
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let type_id = NodeId::decode(decoder)?;
        let body = match decoder.byte()? {
            0 => ExtensionObjectBody::None,
            1 => ExtensionObjectBody::Binary(ByteString::decode(decoder)?),
            2 => ExtensionObjectBody::Xml(XmlElement::decode(decoder)?),
            _ => return Err(DecodeError::Invalid("ExtensionObject encoding byte")),
        };
        Ok(Self { type_id, body })
    }
}
