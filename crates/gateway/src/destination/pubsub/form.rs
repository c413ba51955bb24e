//! The two encodings of NetworkMessages, with the parts common to all messages of a destination.

use super::super::block::Record;
use super::data_set::{DataSet, Field, Last};
use taktwerk::pubsub::PublisherId;
use taktwerk_pubsub::uadp::announcement::{Announcement, NumberedAnnouncement};
use taktwerk_pubsub::uadp::fields::encode_data_value_field;
use taktwerk_pubsub::uadp::{
    DataSetMessageHeader, DataSetMessageKind, FieldEncoding, GroupHeader, NetworkMessageHeader,
    NetworkMessageType, SecurityHeader, WriterIds,
};
use taktwerk_schema::{ConfigurationVersionDataType, DataSetFieldContentMask, DataSetMetaDataType};
use taktwerk_types::json::write::{Members, plain, string};
use taktwerk_types::json::{JsonContext, JsonEncode, encode_value};
use taktwerk_types::{DataValue, Encode, StatusCode, UtcTime, Variant};

/// Longest key of a value, in bytes.
const KEY_LEN: usize = 64;
/// Largest DataSetMessage among several in a NetworkMessage: sizes have 16 bits.
const SIZED_MAX: usize = u16::MAX as usize;
/// Most DataSetMessages in a NetworkMessage: the count has 8 bits.
const COUNT_MAX: usize = u8::MAX as usize;

/// The encoding of messages (Part 14 §7.2.4, §7.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Uadp,
}

/// Names and ids of a destination.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) encoding: Encoding,
    pub(super) publisher_id: String,
    pub(super) group: String,
    pub(super) group_id: u16,
    pub(super) writer: String,
    pub(super) writer_id: u16,
}

/// A value, borrowed.
struct Value<'a> {
    value: &'a Variant,
    status: StatusCode,
    time: UtcTime,
}

impl Form {
    /// Most bytes of a NetworkMessage without DataSetMessages.
    pub(super) fn message_len(&self) -> usize {
        let mut out = Vec::new();
        match self.encoding {
            Encoding::Json => self.json_message(&"x".repeat(KEY_LEN), &[], &mut out),
            Encoding::Uadp => {
                let security = SecurityHeader { nonce: &[0; 8], ..SecurityHeader::default() };
                self.header(&[], Some(security)).encode(&mut out);
                // The signature.
                out.resize(out.len() + 32, 0);
            }
        }
        out.len()
    }

    /// Bytes of a DataSetMessage in a NetworkMessage without its fields.
    pub(super) fn frame_len(&self) -> usize {
        let version = ConfigurationVersionDataType { major_version: 1, minor_version: 1 };
        // A comma, or id and size.
        self.frame(&[], DataSetMessageKind::DeltaFrame, &version).len() + 4
    }

    /// Whether another DataSetMessage fits into a NetworkMessage.
    pub(super) fn has_room(&self, frames: &[Vec<u8>], next: &[u8]) -> bool {
        let is_sized = |frame: &[u8]| frame.len() <= SIZED_MAX;
        match (self.encoding, frames) {
            (Encoding::Json, _) | (_, []) => true,
            (Encoding::Uadp, [first, ..]) => frames.len() < COUNT_MAX && is_sized(first) && is_sized(next),
        }
    }

    /// Most bytes of a DataSetMessage with several fields, so that others fit next to it.
    pub(super) fn frame_max(&self, payload_max: usize) -> usize {
        let room = payload_max.saturating_sub(self.message_len() + 4);
        match self.encoding {
            Encoding::Json => room,
            Encoding::Uadp => room.min(SIZED_MAX),
        }
    }

    /// A field of a delta frame.
    pub(super) fn delta_field(&self, index: u16, record: &Record) -> Vec<u8> {
        let value = Value { value: &record.value, status: record.status, time: record.time };
        let mut out = Vec::new();
        match self.encoding {
            Encoding::Json => json_field(&record.tag, &value, &mut out),
            Encoding::Uadp => {
                index.encode(&mut out);
                uadp_field(&value, &mut out);
            }
        }
        out
    }

    /// The fields of a key frame: all fields with their last values.
    pub(super) fn key_fields(&self, data_set: &DataSet) -> Vec<Vec<u8>> {
        let field = |field: &Field| {
            let value = match &field.last {
                Some(Last { value, status, time }) => Value { value, status: *status, time: *time },
                // Its first value is later in the batch.
                None => Value {
                    value: &Variant::Empty,
                    status: StatusCode::BAD_WAITING_FOR_INITIAL_DATA,
                    time: UtcTime::default(),
                },
            };
            let mut out = Vec::new();
            match self.encoding {
                Encoding::Json => json_field(&field.tag, &value, &mut out),
                Encoding::Uadp => uadp_field(&value, &mut out),
            }
            out
        };
        data_set.fields.iter().map(field).collect()
    }

    /// A DataSetMessage.
    pub(super) fn frame(
        &self,
        fields: &[Vec<u8>],
        kind: DataSetMessageKind,
        version: &ConfigurationVersionDataType,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(fields.iter().map(|field| field.len() + 1).sum::<usize>() + 128);
        match self.encoding {
            Encoding::Json => {
                let mut message = Members::open(&mut out);
                message.name("DataSetWriterId", &mut out);
                plain(self.writer_id, &mut out);
                message.name("DataSetWriterName", &mut out);
                string(&self.writer, &mut out);
                message.name("MessageType", &mut out);
                let is_key_frame = kind == DataSetMessageKind::KeyFrame;
                string(if is_key_frame { "ua-keyframe" } else { "ua-deltaframe" }, &mut out);
                message.name("Payload", &mut out);
                joined((b'{', b'}'), fields, &mut out);
                message.close(&mut out);
            }
            Encoding::Uadp => {
                let header = DataSetMessageHeader {
                    is_valid: true,
                    encoding: FieldEncoding::DataValue,
                    kind,
                    major_version: Some(version.major_version),
                    minor_version: Some(version.minor_version),
                    ..DataSetMessageHeader::default()
                };
                header.encode(&mut out);
                // The number of fields is limited by their index.
                u16::try_from(fields.len()).unwrap_or(u16::MAX).encode(&mut out);
                fields.iter().for_each(|field| out.extend_from_slice(field));
            }
        }
        out
    }

    /// Appends a NetworkMessage. Returns the start of its payload.
    pub(super) fn message(
        &self,
        key: &str,
        frames: &[Vec<u8>],
        security: Option<SecurityHeader<'_>>,
        out: &mut Vec<u8>,
    ) -> usize {
        match self.encoding {
            Encoding::Json => {
                self.json_message(key, frames, out);
                0
            }
            Encoding::Uadp => {
                let ids = vec![self.writer_id; frames.len()];
                let offsets = self.header(&ids, security).encode(out);
                if frames.len() > 1 {
                    // Has been limited to this size.
                    let size = |frame: &Vec<u8>| u16::try_from(frame.len()).unwrap_or(u16::MAX);
                    frames.iter().for_each(|frame| size(frame).encode(out));
                }
                frames.iter().for_each(|frame| out.extend_from_slice(frame));
                offsets.payload
            }
        }
    }

    /// Appends an announcement of metadata (UADP). Returns the start of its payload.
    pub(super) fn announcement(
        &self,
        sequence_number: u16,
        meta_data: DataSetMetaDataType,
        security: Option<SecurityHeader<'_>>,
        out: &mut Vec<u8>,
    ) -> usize {
        let announcement = Announcement::DataSetMetaData {
            writer_id: self.writer_id,
            meta_data: Box::new(meta_data),
            status: StatusCode::GOOD,
        };
        let id = PublisherId::String(self.publisher_id.as_str().into());
        let header = NetworkMessageHeader {
            publisher_id: Some(id.as_ref()),
            message_type: NetworkMessageType::DiscoveryAnnouncement,
            // The header is always present (Part 14 §7.2.4.6.3).
            security: Some(security.unwrap_or_default()),
            ..NetworkMessageHeader::default()
        };
        let offsets = header.encode(out);
        NumberedAnnouncement { sequence_number, announcement }.encode(out);
        offsets.payload
    }

    fn header<'a>(
        &'a self,
        ids: &'a [u16],
        security: Option<SecurityHeader<'a>>,
    ) -> NetworkMessageHeader<'a> {
        let group = GroupHeader { writer_group_id: Some(self.group_id), ..GroupHeader::default() };
        NetworkMessageHeader {
            publisher_id: Some(taktwerk_pubsub::PublisherIdRef::String(&self.publisher_id)),
            group: Some(group),
            writer_ids: Some(WriterIds::List(ids)),
            security,
            ..NetworkMessageHeader::default()
        }
    }

    fn json_message(&self, key: &str, frames: &[Vec<u8>], out: &mut Vec<u8>) {
        let mut members = Members::open(out);
        for (name, text) in [
            ("MessageId", key),
            ("MessageType", "ua-data"),
            ("PublisherId", &self.publisher_id),
            ("WriterGroupName", &self.group),
        ] {
            members.name(name, out);
            string(text, out);
        }
        members.name("Messages", out);
        joined((b'[', b']'), frames, out);
        members.close(out);
    }
}

/// Appends pieces of JSON in brackets, separated by commas.
fn joined((open, close): (u8, u8), pieces: &[Vec<u8>], out: &mut Vec<u8>) {
    out.push(open);
    for (at, piece) in pieces.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(piece);
    }
    out.push(close);
}

/// The tag's name, and a DataValue with its type.
fn json_field(tag: &str, field: &Value<'_>, out: &mut Vec<u8>) {
    let context = JsonContext { verbose: false, namespaces: &[], structures: None };
    string(tag, out);
    out.push(b':');
    let mut members = Members::open(out);
    if *field.value != Variant::Empty && !field.status.is_bad() {
        members.name("UaType", out);
        plain(field.value.built_in_type().map_or(0, |kind| kind.number()), out);
        members.name("Value", out);
        encode_value(field.value, &context, out);
    }
    if field.status != StatusCode::GOOD {
        members.name("Status", out);
        field.status.encode_json(&context, out);
    }
    members.name("SourceTimestamp", out);
    field.time.encode_json(&context, out);
    members.close(out);
}

/// A DataValue.
fn uadp_field(field: &Value<'_>, out: &mut Vec<u8>) {
    let mask = DataSetFieldContentMask::STATUS_CODE | DataSetFieldContentMask::SOURCE_TIMESTAMP;
    let value = DataValue {
        value: (*field.value != Variant::Empty).then(|| field.value.clone()),
        status: (field.status != StatusCode::GOOD).then_some(field.status),
        source_timestamp: Some(field.time),
        ..DataValue::default()
    };
    encode_data_value_field(&value, mask, out);
}
