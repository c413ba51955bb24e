//! NodeId and ExpandedNodeId (Part 3 §8.2, Part 6 §5.2.2.9, §5.2.2.10), owned and borrowed.

use crate::codec::{Decode, DecodeError, Decoder, Encode, encode_bytes};
use crate::guid::Guid;
use crate::string::{ByteString, UaString};
use core::fmt;
use core::str::FromStr;

/// The part of a [`NodeId`] that is unique within its namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identifier {
    /// A number (`i=`).
    Numeric(u32),
    /// A string (`s=`).
    String(UaString),
    /// A Guid (`g=`).
    Guid(Guid),
    /// Bytes (`b=`).
    Opaque(ByteString),
}

/// Identifies a node of an address space.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    /// Index into the server's NamespaceArray.
    pub namespace_index: u16,
    /// Unique within the namespace.
    pub identifier: Identifier,
}

impl NodeId {
    /// `i=0`: no node.
    pub const NULL: Self = Self::numeric(0, 0);

    /// A numeric id.
    #[must_use]
    pub const fn numeric(namespace_index: u16, value: u32) -> Self {
        Self { namespace_index, identifier: Identifier::Numeric(value) }
    }

    /// A string id.
    pub fn string(namespace_index: u16, value: impl Into<UaString>) -> Self {
        Self { namespace_index, identifier: Identifier::String(value.into()) }
    }

    /// A Guid id.
    #[must_use]
    pub const fn guid(namespace_index: u16, value: Guid) -> Self {
        Self { namespace_index, identifier: Identifier::Guid(value) }
    }

    /// An opaque id.
    pub fn opaque(namespace_index: u16, value: impl Into<ByteString>) -> Self {
        Self { namespace_index, identifier: Identifier::Opaque(value.into()) }
    }

    /// Whether this is the null NodeId: namespace 0 with a zero or empty identifier (Part 3 §8.2.4).
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_ref().is_null()
    }

    /// The numeric id in namespace 0.
    #[must_use]
    pub fn ns0(&self) -> Option<u32> {
        match (&self.identifier, self.namespace_index) {
            (Identifier::Numeric(value), 0) => Some(*value),
            _ => None,
        }
    }

    /// A view that borrows the identifier.
    #[must_use]
    pub fn as_ref(&self) -> NodeIdRef<'_> {
        NodeIdRef { namespace_index: self.namespace_index, identifier: self.identifier.as_ref() }
    }
}

impl Default for NodeId {
    fn default() -> Self {
        Self::NULL
    }
}

impl From<u32> for NodeId {
    /// A numeric id of namespace 0.
    fn from(value: u32) -> Self {
        Self::numeric(0, value)
    }
}

impl Identifier {
    /// A view that borrows.
    #[must_use]
    pub fn as_ref(&self) -> IdentifierRef<'_> {
        match self {
            Self::Numeric(value) => IdentifierRef::Numeric(*value),
            Self::String(value) => IdentifierRef::String(value.as_str()),
            Self::Guid(value) => IdentifierRef::Guid(*value),
            Self::Opaque(value) => IdentifierRef::Opaque(value.as_bytes()),
        }
    }
}

/// The identifier of a [`NodeIdRef`]; null strings and byte strings read as empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdentifierRef<'a> {
    /// A number.
    Numeric(u32),
    /// A string.
    String(&'a str),
    /// A Guid.
    Guid(Guid),
    /// Bytes.
    Opaque(&'a [u8]),
}

/// A NodeId that borrows received bytes, used for lookups on the hot path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeIdRef<'a> {
    /// Index into the server's NamespaceArray.
    pub namespace_index: u16,
    /// Unique within the namespace.
    pub identifier: IdentifierRef<'a>,
}

impl NodeIdRef<'_> {
    /// Whether this is the null NodeId.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.namespace_index == 0
            && match self.identifier {
                IdentifierRef::Numeric(value) => value == 0,
                IdentifierRef::String(value) => value.is_empty(),
                IdentifierRef::Guid(value) => value == Guid::NULL,
                IdentifierRef::Opaque(value) => value.is_empty(),
            }
    }

    /// An owned copy.
    #[must_use]
    pub fn to_owned(&self) -> NodeId {
        let identifier = match self.identifier {
            IdentifierRef::Numeric(value) => Identifier::Numeric(value),
            IdentifierRef::String(value) => Identifier::String(value.into()),
            IdentifierRef::Guid(value) => Identifier::Guid(value),
            IdentifierRef::Opaque(value) => Identifier::Opaque(value.into()),
        };
        NodeId { namespace_index: self.namespace_index, identifier }
    }
}

const HAS_NAMESPACE_URI: u8 = 0x80;
const HAS_SERVER_INDEX: u8 = 0x40;

impl NodeIdRef<'_> {
    fn encode_with_flags(&self, flags: u8, out: &mut Vec<u8>) {
        match self.identifier {
            IdentifierRef::Numeric(value) => {
                if let (0, Ok(short)) = (self.namespace_index, u8::try_from(value)) {
                    out.extend_from_slice(&[flags, short]);
                } else if let (Ok(index), Ok(short)) =
                    (u8::try_from(self.namespace_index), u16::try_from(value))
                {
                    let [low, high] = short.to_le_bytes();
                    out.extend_from_slice(&[flags | 1, index, low, high]);
                } else {
                    out.push(flags | 2);
                    self.namespace_index.encode(out);
                    value.encode(out);
                }
            }
            IdentifierRef::String(value) => {
                out.push(flags | 3);
                self.namespace_index.encode(out);
                encode_bytes(Some(value.as_bytes()), out);
            }
            IdentifierRef::Guid(value) => {
                out.push(flags | 4);
                self.namespace_index.encode(out);
                value.encode(out);
            }
            IdentifierRef::Opaque(value) => {
                out.push(flags | 5);
                self.namespace_index.encode(out);
                encode_bytes(Some(value), out);
            }
        }
    }
}

impl Encode for NodeIdRef<'_> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.encode_with_flags(0, out);
    }
}

impl Encode for NodeId {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_ref().encode_with_flags(0, out);
    }
}

#[inline]
fn decode_with_flags<'a>(decoder: &mut Decoder<'a>) -> Result<(NodeIdRef<'a>, u8), DecodeError> {
    let first = decoder.byte()?;
    let flags = first & (HAS_NAMESPACE_URI | HAS_SERVER_INDEX);
    let (namespace_index, identifier) = match first & 0x3f {
        0 => (0, IdentifierRef::Numeric(u32::from(decoder.byte()?))),
        1 => {
            let [index, low, high] = decoder.take_array()?;
            (u16::from(index), IdentifierRef::Numeric(u32::from(u16::from_le_bytes([low, high]))))
        }
        2 => (u16::decode(decoder)?, IdentifierRef::Numeric(u32::decode(decoder)?)),
        3 => (u16::decode(decoder)?, IdentifierRef::String(decoder.str()?.unwrap_or(""))),
        4 => (u16::decode(decoder)?, IdentifierRef::Guid(Guid::decode(decoder)?)),
        5 => (u16::decode(decoder)?, IdentifierRef::Opaque(decoder.bytes()?.unwrap_or(&[]))),
        _ => return Err(DecodeError::Invalid("NodeId encoding byte")),
    };
    Ok((NodeIdRef { namespace_index, identifier }, flags))
}

impl<'a> Decode<'a> for NodeIdRef<'a> {
    const MIN_LEN: usize = 2;
    #[inline]
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        match decode_with_flags(decoder)? {
            (id, 0) => Ok(id),
            _ => Err(DecodeError::Invalid("NodeId encoding byte")),
        }
    }
}

impl<'a> Decode<'a> for NodeId {
    const MIN_LEN: usize = 2;
    #[inline]
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        NodeIdRef::decode(decoder).map(|id| id.to_owned())
    }
}

/// A NodeId that can name its namespace by URI and point to another server (Part 4 §7.16).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ExpandedNodeId {
    /// The id; its namespace index is unused when [`Self::namespace_uri`] is not null.
    pub node_id: NodeId,
    /// The namespace by name, or null.
    pub namespace_uri: UaString,
    /// Index into the ServerArray; 0 is the local server.
    pub server_index: u32,
}

impl ExpandedNodeId {
    /// Whether the id is null and local.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.node_id.is_null() && self.namespace_uri.is_empty() && self.server_index == 0
    }

    /// The NodeId, if it has no namespace URI and is local.
    #[must_use]
    pub fn local(&self) -> Option<&NodeId> {
        (self.namespace_uri.is_empty() && self.server_index == 0).then_some(&self.node_id)
    }
}

impl From<NodeId> for ExpandedNodeId {
    fn from(node_id: NodeId) -> Self {
        Self { node_id, namespace_uri: UaString::NULL, server_index: 0 }
    }
}

impl Encode for ExpandedNodeId {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut flags = 0;
        if !self.namespace_uri.is_null() {
            flags |= HAS_NAMESPACE_URI;
        }
        if self.server_index != 0 {
            flags |= HAS_SERVER_INDEX;
        }
        self.node_id.as_ref().encode_with_flags(flags, out);
        if flags & HAS_NAMESPACE_URI != 0 {
            self.namespace_uri.encode(out);
        }
        if flags & HAS_SERVER_INDEX != 0 {
            self.server_index.encode(out);
        }
    }
}

impl<'a> Decode<'a> for ExpandedNodeId {
    const MIN_LEN: usize = 2;
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let (id, flags) = decode_with_flags(decoder)?;
        let namespace_uri =
            if flags & HAS_NAMESPACE_URI != 0 { UaString::decode(decoder)? } else { UaString::NULL };
        let server_index = if flags & HAS_SERVER_INDEX != 0 { u32::decode(decoder)? } else { 0 };
        Ok(Self { node_id: id.to_owned(), namespace_uri, server_index })
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace_index != 0 {
            write!(f, "ns={};", self.namespace_index)?;
        }
        match &self.identifier {
            Identifier::Numeric(value) => write!(f, "i={value}"),
            Identifier::String(value) => write!(f, "s={value}"),
            Identifier::Guid(value) => write!(f, "g={value}"),
            Identifier::Opaque(value) => write!(f, "b={}", base64(value.as_bytes())),
        }
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ExpandedNodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.server_index != 0 {
            write!(f, "svr={};", self.server_index)?;
        }
        if let Some(uri) = self.namespace_uri.as_deref() {
            write!(f, "nsu={};", uri.replace('%', "%25").replace(';', "%3B"))?;
            let bare = NodeId { namespace_index: 0, identifier: self.node_id.identifier.clone() };
            return write!(f, "{bare}");
        }
        write!(f, "{}", self.node_id)
    }
}

impl fmt::Debug for ExpandedNodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a NodeId.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a NodeId: {text:?}; write i=85, ns=2;s=Name, nsu=http://…;s=Name, g=<guid> or b=<base64>")]
pub struct ParseNodeIdError {
    text: String,
}

impl FromStr for NodeId {
    type Err = ParseNodeIdError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseNodeIdError { text: text.to_owned() };
        let (namespace_index, rest) = match text.trim().strip_prefix("ns=") {
            Some(rest) => {
                let (index, rest) = rest.split_once(';').ok_or_else(error)?;
                (index.parse().map_err(|_| error())?, rest)
            }
            None => (0, text.trim()),
        };
        let (kind, value) = rest.split_once('=').ok_or_else(error)?;
        let identifier = match kind {
            "i" => Identifier::Numeric(value.parse().map_err(|_| error())?),
            "s" => Identifier::String(value.into()),
            "g" => Identifier::Guid(value.parse().map_err(|_| error())?),
            "b" => Identifier::Opaque(unbase64(value).ok_or_else(error)?.into()),
            _ => return Err(error()),
        };
        Ok(Self { namespace_index, identifier })
    }
}

impl FromStr for ExpandedNodeId {
    type Err = ParseNodeIdError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseNodeIdError { text: text.to_owned() };
        let mut rest = text.trim();
        let mut server_index = 0;
        if let Some(after) = rest.strip_prefix("svr=") {
            let (index, after) = after.split_once(';').ok_or_else(error)?;
            server_index = index.parse().map_err(|_| error())?;
            rest = after;
        }
        let mut namespace_uri = UaString::NULL;
        if let Some(after) = rest.strip_prefix("nsu=") {
            let (uri, after) = after.split_once(';').ok_or_else(error)?;
            namespace_uri = uri.replace("%3B", ";").replace("%25", "%").into();
            rest = after;
        }
        let node_id: NodeId = rest.parse().map_err(|_| error())?;
        // The namespace is given by URI or index; with both, printing would lose one.
        if node_id.namespace_index != 0 && namespace_uri != UaString::NULL {
            return Err(error());
        }
        Ok(Self { node_id, namespace_uri, server_index })
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 with padding (RFC 4648 §4), as in printed NodeIds and in XML.
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut block = [0u8; 3];
        block.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        let bits = u32::from_be_bytes([0, block[0], block[1], block[2]]);
        for position in 0..4 {
            if position <= chunk.len() {
                text.push(BASE64[(bits >> (18 - 6 * position) & 63) as usize] as char);
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// Decodes [`base64`], ignoring white space; `None` if it is malformed.
#[must_use]
pub fn unbase64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0u32);
    for character in text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=') {
        let value = BASE64.iter().position(|candidate| *candidate == character)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    (count < 6).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_of_part_6() {
        assert_eq!(NodeId::numeric(0, 72).encode_to_vec(), [0x00, 0x48]);
        assert_eq!(NodeId::numeric(5, 1025).encode_to_vec(), [0x01, 0x05, 0x01, 0x04]);
        let mut expected = vec![0x03, 0x01, 0x00, 0x06, 0x00, 0x00, 0x00];
        expected.extend_from_slice("Hot水".as_bytes());
        assert_eq!(NodeId::string(1, "Hot水").encode_to_vec(), expected);
        for text in [
            "i=85",
            "ns=2;s=Foo;bar=1",
            "ns=3;g=72962b91-fa75-4ae6-8d28-b404dc7daf63",
            "b=AQID",
            "ns=9;i=70000",
        ] {
            let id: NodeId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
            assert_eq!(NodeId::decode_from(&id.encode_to_vec(), Default::default()), Ok(id));
        }
        assert!("x=1".parse::<NodeId>().is_err());
        assert!(NodeId::decode_from(&[0x80, 1], Default::default()).is_err());
    }

    #[test]
    fn expanded_round_trip() {
        let id: ExpandedNodeId = "svr=4;nsu=http://a;i=7".parse().unwrap();
        assert_eq!(id.to_string(), "svr=4;nsu=http://a;i=7");
        assert!("nsu=http://a;ns=1;i=7".parse::<ExpandedNodeId>().is_err());
        assert_eq!(ExpandedNodeId::decode_from(&id.encode_to_vec(), Default::default()), Ok(id));
    }

    #[test]
    fn base64_known_answers() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
            assert_eq!(unbase64(coded).as_deref(), Some(plain.as_bytes()));
        }
        assert_eq!(unbase64("Z"), None);
    }
}
