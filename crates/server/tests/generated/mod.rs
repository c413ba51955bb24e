//! Requests generated from the descriptions of their structures: every request type, and in it every field at its
//! maximum size. Also the surrounding bytes, without security.

use taktwerk_schema::description::{
    FieldDescription, StructureDescription, StructureKind, built_in_type, enumeration, structure, structures,
};
use taktwerk_schema::{MessageSecurityMode, OpenSecureChannelRequest, OpenSecureChannelResponse};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{
    BuiltInType, ByteString, DataValue, Decode, DecodeLimits, Decoder, DiagnosticInfo, Encode,
    ExpandedNodeId, ExtensionObject, ExtensionObjectBody, Guid, Identifier, LocalizedText, NodeId,
    QualifiedName, StatusCode, Structure, UaString, UtcTime, Variant,
};

/// DataType of RequestHeader.
const REQUEST_HEADER: u32 = 389;
/// Maximum nesting depth of generated fields.
const DEPTH_MAX: usize = 4;

/// Maximum sizes of fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) string: usize,
    pub(crate) bytes: usize,
    /// Bytes of an array.
    pub(crate) array: usize,
}

/// Names used in requests.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub(crate) token: NodeId,
    pub(crate) node: NodeId,
    pub(crate) subscription: u32,
}

/// Every request type.
pub(crate) fn requests() -> impl Iterator<Item = &'static StructureDescription> {
    structures().iter().filter(|structure| {
        structure.name.ends_with("Request")
            && structure.binary_encoding_id != 0
            && structure.fields.first().is_some_and(|field| field.type_id == REQUEST_HEADER)
    })
}

/// A field of a request, as the positions of the fields on the path to it.
pub(crate) type Path = Vec<usize>;

/// Every field of a structure, including those of nested structures.
pub(crate) fn paths(structure: &StructureDescription) -> Vec<Path> {
    let mut all = Vec::new();
    collect(structure, &mut Vec::new(), &mut all);
    all
}

fn collect(of: &StructureDescription, prefix: &mut Path, all: &mut Vec<Path>) {
    for (at, field) in of.fields.iter().enumerate() {
        prefix.push(at);
        match structure(field.type_id) {
            Some(inner) if is_inline(field) && prefix.len() < DEPTH_MAX => {
                if field.value_rank >= 0 {
                    all.push(prefix.clone());
                }
                collect(inner, prefix, all);
            }
            _ => all.push(prefix.clone()),
        }
        prefix.pop();
    }
}

/// The name of a field, for messages.
pub(crate) fn name_of(structure: &StructureDescription, path: &[usize]) -> String {
    let mut name = String::from(structure.name);
    let mut here = Some(structure);
    for at in path {
        let Some(field) = here.and_then(|structure| structure.fields.get(*at)) else { break };
        name.push('.');
        name.push_str(field.name);
        here = taktwerk_schema::description::structure(field.type_id);
    }
    name
}

/// An encoded request with the field at `path` at its maximum and all others as usual.
pub(crate) fn encode(request: &StructureDescription, path: &[usize], sizes: Sizes, names: &Names) -> Vec<u8> {
    let mut out = Vec::new();
    NodeId::numeric(0, request.binary_encoding_id).encode(&mut out);
    Encoder { sizes, names }.structure(request, path, &mut out);
    out
}

/// Whether a field contains its structure directly, not in an ExtensionObject.
fn is_inline(field: &FieldDescription) -> bool {
    // BaseDataType and Structure have no description; abstract structures used in requests have no encoding.
    structure(field.type_id).is_some_and(|structure| structure.binary_encoding_id != 0)
}

struct Encoder<'a> {
    sizes: Sizes,
    names: &'a Names,
}

impl Encoder<'_> {
    fn structure(&self, of: &StructureDescription, path: &[usize], out: &mut Vec<u8>) {
        match of.kind {
            StructureKind::Plain | StructureKind::WithSubtypedValues => {}
            // No field, or the selected one.
            StructureKind::WithOptionalFields => {
                let mask: u32 = path.first().map_or(0, |at| 1 << at);
                mask.encode(out);
            }
            StructureKind::Union | StructureKind::UnionWithSubtypedValues => {
                let switch = path.first().map_or(0, |at| *at as u32 + 1);
                switch.encode(out);
            }
        }
        let is_partial = !matches!(of.kind, StructureKind::Plain | StructureKind::WithSubtypedValues);
        for (at, field) in of.fields.iter().enumerate() {
            let inner = path.split_first().filter(|(first, _)| **first == at).map(|(_, rest)| rest);
            if is_partial && inner.is_none() {
                continue;
            }
            self.field(field, inner, out);
        }
    }

    /// `path` is `None` for a usual field, empty for the field at its maximum, otherwise leads into it.
    fn field(&self, field: &FieldDescription, path: Option<&[usize]>, out: &mut Vec<u8>) {
        let is_largest = path.is_some_and(<[usize]>::is_empty);
        if field.value_rank < 0 {
            return self.value(field, path, out);
        }
        if !is_largest {
            let count = usize::from(path.is_some() || structure(field.type_id).is_some() || is_named(field));
            encode_len(count, out);
            (0..count).for_each(|_| self.value(field, path, out));
            return;
        }
        let mut element = Vec::new();
        self.value(field, None, &mut element);
        let count = self.sizes.array / element.len().max(1);
        encode_len(count, out);
        (0..count).for_each(|_| out.extend_from_slice(&element));
    }

    fn value(&self, field: &FieldDescription, path: Option<&[usize]>, out: &mut Vec<u8>) {
        let is_largest = path.is_some_and(<[usize]>::is_empty);
        if let Some(inner) = structure(field.type_id).filter(|_| is_inline(field)) {
            return self.structure(inner, path.unwrap_or_default(), out);
        }
        if enumeration(field.type_id).is_some() && built_in_type(field.type_id) == Some(BuiltInType::Int32) {
            let usual = if field.name == "MonitoringMode" { 2 } else { 0 };
            return (if is_largest { i32::MAX } else { usual }).encode(out);
        }
        let text = || {
            // A valid IndexRange with as many dimensions as possible.
            let text = if is_largest { "0,".repeat(self.sizes.string / 2 - 1) + "0" } else { String::new() };
            if text.is_empty() { UaString::NULL } else { UaString::from(text) }
        };
        let bytes =
            || if is_largest { ByteString::from(vec![7; self.sizes.bytes]) } else { ByteString::NULL };
        match built_in_type(field.type_id).unwrap_or(BuiltInType::ExtensionObject) {
            BuiltInType::Boolean => true.encode(out),
            BuiltInType::SByte => i8::MAX.encode(out),
            BuiltInType::Byte => (if is_largest { u8::MAX } else { 1 }).encode(out),
            BuiltInType::Int16 => i16::MAX.encode(out),
            BuiltInType::UInt16 => (if is_largest { u16::MAX } else { 0 }).encode(out),
            BuiltInType::Int32 => (if is_largest { i32::MAX } else { 1 }).encode(out),
            BuiltInType::UInt32 => {
                let usual = match field.name {
                    "SubscriptionId" | "SubscriptionIds" => self.names.subscription,
                    "AttributeId" => 13,
                    "TimeoutHint" => 0,
                    "RequestedLifetimeCount" => 1_000,
                    _ => 1,
                };
                (if is_largest { u32::MAX } else { usual }).encode(out);
            }
            BuiltInType::Int64 => i64::MAX.encode(out),
            BuiltInType::UInt64 => u64::MAX.encode(out),
            BuiltInType::Float => f32::MAX.encode(out),
            BuiltInType::Double => {
                let usual = if field.name == "SamplingInterval" { 0.0 } else { 60_000.0 };
                (if is_largest { f64::MAX } else { usual }).encode(out);
            }
            BuiltInType::String => text().encode(out),
            BuiltInType::DateTime => UtcTime::NULL.encode(out),
            BuiltInType::Guid => Guid::default().encode(out),
            BuiltInType::ByteString => bytes().encode(out),
            BuiltInType::XmlElement => text().encode(out),
            BuiltInType::NodeId => self.node_id(field, is_largest).encode(out),
            BuiltInType::ExpandedNodeId => ExpandedNodeId {
                node_id: self.node_id(field, is_largest),
                namespace_uri: UaString::NULL,
                server_index: 0,
            }
            .encode(out),
            BuiltInType::StatusCode => StatusCode::GOOD.encode(out),
            BuiltInType::QualifiedName => QualifiedName { namespace_index: 0, name: text() }.encode(out),
            BuiltInType::LocalizedText => LocalizedText { locale: UaString::NULL, text: text() }.encode(out),
            BuiltInType::ExtensionObject => self.object(field, is_largest).encode(out),
            BuiltInType::DataValue => DataValue::new(self.variant(is_largest)).encode(out),
            BuiltInType::Variant => self.variant(is_largest).encode(out),
            BuiltInType::DiagnosticInfo => DiagnosticInfo::default().encode(out),
        }
    }

    fn variant(&self, is_largest: bool) -> Variant {
        if is_largest { ByteString::from(vec![7; self.sizes.bytes]).into() } else { Variant::from(1.0) }
    }

    fn node_id(&self, field: &FieldDescription, is_largest: bool) -> NodeId {
        match field.name {
            _ if is_largest => NodeId {
                namespace_index: 1,
                identifier: Identifier::Opaque(vec![7; self.sizes.bytes].into()),
            },
            "AuthenticationToken" => self.names.token.clone(),
            "ReferenceTypeId" | "DataEncoding" => NodeId::NULL,
            _ => self.names.node.clone(),
        }
    }

    fn object(&self, field: &FieldDescription, is_largest: bool) -> ExtensionObject {
        if !is_largest {
            return ExtensionObject::NULL;
        }
        // A DataChangeFilter or an anonymous user, followed by more data.
        let (type_id, mut body) = match field.name {
            "Filter" => (724, vec![0; 16]),
            "UserIdentityToken" => (321, vec![0xff; 4]),
            _ => (1, Vec::new()),
        };
        body.resize(self.sizes.bytes, 0);
        let body = ExtensionObjectBody::Binary(body.into());
        ExtensionObject { type_id: NodeId::numeric(0, type_id), body }
    }
}

/// Whether an array must have an element for the request to be useful.
fn is_named(field: &FieldDescription) -> bool {
    matches!(built_in_type(field.type_id), Some(BuiltInType::NodeId))
        || field.name.ends_with("Ids") && built_in_type(field.type_id) == Some(BuiltInType::UInt32)
}

/// A client that encodes its chunks itself, without security.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawClient {
    channel: u32,
    token: u32,
    sequence: u32,
    request: u32,
}

/// Bytes before the body of a message's chunk.
const HEAD: usize = 24;
/// Largest chunk that a server accepts, in bytes.
const CHUNK_MAX: usize = 60_000;

impl RawClient {
    /// The Hello.
    pub(crate) fn hello(url: &str) -> Vec<u8> {
        let mut body = Vec::new();
        for number in [0u32, 65_536, 65_536, 0, 0] {
            number.encode(&mut body);
        }
        UaString::from(url).encode(&mut body);
        let mut out = b"HELF".to_vec();
        (8 + body.len() as u32).encode(&mut out);
        out.extend_from_slice(&body);
        out
    }

    /// The OpenSecureChannel request.
    pub(crate) fn open(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        0u32.encode(&mut body);
        UaString::from("http://opcfoundation.org/UA/SecurityPolicy#None").encode(&mut body);
        ByteString::NULL.encode(&mut body);
        ByteString::NULL.encode(&mut body);
        self.sequence += 1;
        self.request += 1;
        self.sequence.encode(&mut body);
        self.request.encode(&mut body);
        NodeId::numeric(0, OpenSecureChannelRequest::BINARY_ENCODING_ID).encode(&mut body);
        let request = OpenSecureChannelRequest {
            security_mode: MessageSecurityMode::NONE,
            requested_lifetime: 3_600_000,
            ..Default::default()
        };
        request.encode(&mut body);
        let mut out = b"OPNF".to_vec();
        (8 + body.len() as u32).encode(&mut out);
        out.extend_from_slice(&body);
        out
    }

    /// Processes the OpenSecureChannel response in the server's output.
    pub(crate) fn opened(&mut self, received: &[u8]) {
        let at = received.windows(4).position(|window| window == b"OPNF").expect("the channel is opened");
        let mut decoder = Decoder::new(&received[at + 12..], DecodeLimits::DEFAULT);
        UaString::decode(&mut decoder).unwrap();
        ByteString::decode(&mut decoder).unwrap();
        ByteString::decode(&mut decoder).unwrap();
        decoder.take(8).unwrap();
        NodeId::decode(&mut decoder).unwrap();
        let response = OpenSecureChannelResponse::decode(&mut decoder).unwrap();
        self.channel = response.security_token.channel_id;
        self.token = response.security_token.token_id;
    }

    /// The chunks of a message. If it is not `finished`, the next message continues it.
    pub(crate) fn message(&mut self, body: &[u8], finished: bool) -> Vec<u8> {
        self.request += 1;
        let count = body.len().div_ceil(CHUNK_MAX).max(1);
        let mut out = Vec::with_capacity(body.len() + count * HEAD);
        for number in 0..count {
            let part = &body[number * CHUNK_MAX..body.len().min((number + 1) * CHUNK_MAX)];
            let is_last = finished && number + 1 == count;
            out.extend_from_slice(if is_last { b"MSGF" } else { b"MSGC" });
            self.sequence += 1;
            for field in [(HEAD + part.len()) as u32, self.channel, self.token, self.sequence, self.request] {
                field.encode(&mut out);
            }
            out.extend_from_slice(part);
        }
        out
    }

    /// The chunks of a request.
    pub(crate) fn request(&mut self, request: &impl Structure) -> Vec<u8> {
        let mut body = Vec::new();
        let name = core::any::type_name_of_val(request);
        assert!(name.ends_with("Request"), "{name}");
        encode_message(request, &mut body);
        self.message(&body, true)
    }
}

fn encode_message<T: Structure>(message: &T, out: &mut Vec<u8>) {
    NodeId::numeric(0, T::BINARY_ENCODING_ID).encode(out);
    message.encode(out);
}

/// The single-chunk responses of a type in the server's output.
pub(crate) fn responses<T: Structure + for<'a> Decode<'a>>(received: &[u8]) -> Vec<T> {
    let mut rest = received;
    let mut found = Vec::new();
    while let Some(head) = rest.get(..8) {
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let Some(chunk) = rest.get(..size) else { break };
        if head.starts_with(b"MSGF") {
            let mut decoder = Decoder::new(&chunk[HEAD..], DecodeLimits::DEFAULT);
            if NodeId::decode(&mut decoder).unwrap().ns0() == Some(T::BINARY_ENCODING_ID) {
                found.push(T::decode(&mut decoder).unwrap());
            }
        }
        rest = &rest[size..];
    }
    found
}
