//! The JSON message mapping (Part 14 §7.2.5): DataSetMessages, metadata and Actions as JSON NetworkMessages.

use crate::config::{Connection, DataSetWriter, DataSetWriterMessage, WriterGroup, WriterGroupMessage};
use crate::time::Now;
use taktwerk_schema::{
    DataSetFieldContentMask, DataSetMetaDataType, JsonDataSetMessageContentMask as MessageMask,
    JsonNetworkMessageContentMask as NetworkMask,
};
use taktwerk_types::json::write::{Members, plain, string};
use taktwerk_types::json::{JsonContext, JsonEncode, encode_value};
use taktwerk_types::{DataValue, StatusCode, Variant};

pub mod metadata;
pub mod status;
pub mod structure;
pub(crate) mod value;

/// The encoding of fields (Part 14 Table 112).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JsonFieldEncoding {
    /// Values without types if the metadata has them; default values are written.
    Verbose,
    /// Values with types; default values are omitted.
    Compact,
    /// Of 1.04, deprecated: `Type` and `Body`.
    Reversible,
    /// Of 1.04, deprecated: values only.
    NonReversible,
}

impl JsonFieldEncoding {
    /// The encoding that a mask selects.
    #[must_use]
    pub const fn of(mask: MessageMask) -> Self {
        match (mask.contains(MessageMask::FIELD_ENCODING1), mask.contains(MessageMask::FIELD_ENCODING2)) {
            (false, true) => Self::Verbose,
            (true, true) => Self::Compact,
            (true, false) => Self::Reversible,
            (false, false) => Self::NonReversible,
        }
    }
}

/// Writes the fields of a DataSetMessage into its Payload.
type Payload<'a> = &'a mut dyn FnMut(&mut Members, &JsonContext<'_>, &mut Vec<u8>);

/// Settings of a writer's DataSetMessages.
#[derive(Debug)]
pub(crate) struct WriterSpec {
    mask: MessageMask,
    /// Whether there is a header.
    has_header: bool,
    encoding: JsonFieldEncoding,
    fields: DataSetFieldContentMask,
    names: Vec<String>,
    writer_id: u16,
    writer_name: String,
    group_name: String,
    major_version: u32,
    minor_version: u32,
    namespaces: Vec<String>,
}

impl WriterSpec {
    pub(crate) fn new(group: &WriterGroup, writer: &DataSetWriter, meta_data: &DataSetMetaDataType) -> Self {
        let mask = match &writer.message {
            DataSetWriterMessage::Json(json) => json.data_set_message_content_mask,
            _ => MessageMask::EMPTY,
        };
        let has_header = match &group.message {
            WriterGroupMessage::Json(json) => {
                json.network_message_content_mask.contains(NetworkMask::DATA_SET_MESSAGE_HEADER)
            }
            _ => false,
        };
        Self {
            mask,
            has_header,
            encoding: JsonFieldEncoding::of(mask),
            fields: writer.field_content_mask,
            names: meta_data.fields.iter().map(|field| field.name.as_str().to_owned()).collect(),
            writer_id: writer.data_set_writer_id,
            writer_name: writer.name.clone(),
            group_name: group.name.clone(),
            major_version: meta_data.configuration_version.major_version,
            minor_version: meta_data.configuration_version.minor_version,
            namespaces: meta_data.namespaces.iter().map(|uri| uri.as_str().to_owned()).collect(),
        }
    }

    /// Appends a DataSetMessage with the payload that `payload` writes.
    fn message(&self, kind: &str, number: u32, now: Now, out: &mut Vec<u8>, payload: Option<Payload<'_>>) {
        let namespaces: Vec<&str> = core::iter::once("http://opcfoundation.org/UA/")
            .chain(self.namespaces.iter().map(String::as_str))
            .collect();
        let context = JsonContext {
            verbose: self.encoding == JsonFieldEncoding::Verbose,
            namespaces: &namespaces,
            structures: Some(&structure::Standard),
        };
        let write_payload = |out: &mut Vec<u8>, payload: Payload<'_>| {
            let mut fields = Members::open(out);
            payload(&mut fields, &context, out);
            fields.close(out);
        };
        if !self.has_header {
            match payload {
                Some(payload) => write_payload(out, payload),
                // A keep-alive without header is an empty object.
                None => out.extend_from_slice(b"{}"),
            }
            return;
        }
        let has = |bit| self.mask.contains(bit);
        let mut members = Members::open(out);
        if has(MessageMask::DATA_SET_WRITER_ID) {
            members.name("DataSetWriterId", out);
            plain(self.writer_id, out);
        }
        if has(MessageMask::DATA_SET_WRITER_NAME) {
            members.name("DataSetWriterName", out);
            string(&self.writer_name, out);
        }
        if has(MessageMask::WRITER_GROUP_NAME) {
            members.name("WriterGroupName", out);
            string(&self.group_name, out);
        }
        if has(MessageMask::SEQUENCE_NUMBER) {
            members.name("SequenceNumber", out);
            plain(number, out);
        }
        if has(MessageMask::META_DATA_VERSION) {
            members.name("MetaDataVersion", out);
            let mut version = Members::open(out);
            version.name("MajorVersion", out);
            plain(self.major_version, out);
            version.name("MinorVersion", out);
            plain(self.minor_version, out);
            version.close(out);
        } else if has(MessageMask::MINOR_VERSION) {
            members.name("MinorVersion", out);
            plain(self.minor_version, out);
        }
        if has(MessageMask::TIMESTAMP) {
            members.name("Timestamp", out);
            now.utc.encode_json(&context, out);
        }
        if has(MessageMask::MESSAGE_TYPE) {
            members.name("MessageType", out);
            string(kind, out);
        }
        if let Some(payload) = payload {
            members.name("Payload", out);
            write_payload(out, payload);
        }
        members.close(out);
    }

    fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("", String::as_str)
    }

    pub(crate) fn key_frame(&self, values: &[DataValue], number: u32, now: Now, out: &mut Vec<u8>) {
        let mut payload = |members: &mut Members, context: &JsonContext<'_>, out: &mut Vec<u8>| {
            for (index, value) in values.iter().enumerate() {
                members.name(self.name(index), out);
                self.field(value, context, out);
            }
        };
        self.message("ua-keyframe", number, now, out, Some(&mut payload));
    }

    pub(crate) fn delta(
        &self,
        values: &[DataValue],
        changed: &[u16],
        number: u32,
        now: Now,
        out: &mut Vec<u8>,
    ) {
        let mut payload = |members: &mut Members, context: &JsonContext<'_>, out: &mut Vec<u8>| {
            for index in changed {
                let index = usize::from(*index);
                if let Some(value) = values.get(index) {
                    members.name(self.name(index), out);
                    self.field(value, context, out);
                }
            }
        };
        self.message("ua-deltaframe", number, now, out, Some(&mut payload));
    }

    pub(crate) fn event(&self, fields: &[Variant], number: u32, now: Now, out: &mut Vec<u8>) {
        let mut payload = |members: &mut Members, context: &JsonContext<'_>, out: &mut Vec<u8>| {
            for (index, value) in fields.iter().enumerate() {
                members.name(self.name(index), out);
                self.variant(value, context, out);
            }
        };
        self.message("ua-event", number, now, out, Some(&mut payload));
    }

    pub(crate) fn keep_alive(&self, number: u32, now: Now, out: &mut Vec<u8>) {
        self.message("ua-keepalive", number, now, out, None);
    }

    fn field(&self, field: &DataValue, context: &JsonContext<'_>, out: &mut Vec<u8>) {
        let status = field.status();
        let with_more = !self.fields.difference(DataSetFieldContentMask::RAW_DATA).is_empty();
        if with_more {
            return self.data_value(field, context, out);
        }
        // A status instead of or beside a value is written with its type, so that it is not mistaken for a value.
        if status.is_bad() {
            return Variant::from(status).encode_json(context, out);
        }
        if status.is_uncertain() {
            let value =
                DataValue { status: Some(status), value: field.value.clone(), ..DataValue::default() };
            return value.encode_json(context, out);
        }
        self.variant(field.value.as_ref().unwrap_or(&Variant::Empty), context, out);
    }

    fn variant(&self, value: &Variant, context: &JsonContext<'_>, out: &mut Vec<u8>) {
        match self.encoding {
            JsonFieldEncoding::Verbose | JsonFieldEncoding::NonReversible => {
                encode_value(value, context, out)
            }
            JsonFieldEncoding::Compact => value.encode_json(context, out),
            JsonFieldEncoding::Reversible => {
                let mut members = Members::open(out);
                if let Some(kind) = value.built_in_type() {
                    members.name("Type", out);
                    plain(kind.number(), out);
                    members.name("Body", out);
                    encode_value(value, context, out);
                }
                members.close(out);
            }
        }
    }

    fn data_value(&self, field: &DataValue, context: &JsonContext<'_>, out: &mut Vec<u8>) {
        let has = |bit| self.fields.contains(bit);
        let mut members = Members::open(out);
        let value = field.value.as_ref().filter(|_| !field.status().is_bad());
        if let Some(value) = value {
            match self.encoding {
                JsonFieldEncoding::Compact => {
                    members.name("UaType", out);
                    plain(value.built_in_type().map_or(0, |kind| kind.number()), out);
                    members.name("Value", out);
                    encode_value(value, context, out);
                }
                _ => {
                    members.name("Value", out);
                    self.variant(value, context, out);
                }
            }
        }
        if has(DataSetFieldContentMask::STATUS_CODE) && field.status() != StatusCode::GOOD {
            members.name("Status", out);
            field.status().encode_json(context, out);
        }
        if let Some(time) = field.source_timestamp.filter(|_| has(DataSetFieldContentMask::SOURCE_TIMESTAMP))
        {
            members.name("SourceTimestamp", out);
            time.encode_json(context, out);
        }
        if let Some(time) = field.server_timestamp.filter(|_| has(DataSetFieldContentMask::SERVER_TIMESTAMP))
        {
            members.name("ServerTimestamp", out);
            time.encode_json(context, out);
        }
        members.close(out);
    }
}

/// The common properties of a group's NetworkMessages.
#[derive(Debug)]
pub(crate) struct GroupSpec {
    mask: NetworkMask,
    publisher_id: String,
    group_name: String,
    /// Makes MessageIds unique, together with a random number.
    count: u64,
}

impl GroupSpec {
    pub(crate) fn new(connection: &Connection, group: &WriterGroup) -> Self {
        Self {
            mask: match &group.message {
                WriterGroupMessage::Json(json) => json.network_message_content_mask,
                _ => NetworkMask::EMPTY,
            },
            publisher_id: connection.publisher_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            group_name: group.name.clone(),
            count: 0,
        }
    }

    /// Appends a NetworkMessage with DataSetMessages.
    pub(crate) fn wrap<'a>(
        &mut self,
        random: u64,
        messages: impl Iterator<Item = &'a [u8]>,
        out: &mut Vec<u8>,
    ) {
        self.count += 1;
        let has = |bit| self.mask.contains(bit);
        let is_single = has(NetworkMask::SINGLE_DATA_SET_MESSAGE);
        let mut members = None;
        if has(NetworkMask::NETWORK_MESSAGE_HEADER) {
            let mut header = Members::open(out);
            header.name("MessageId", out);
            string(&format!("{random:016x}-{:x}", self.count), out);
            header.name("MessageType", out);
            string("ua-data", out);
            if has(NetworkMask::PUBLISHER_ID) {
                header.name("PublisherId", out);
                string(&self.publisher_id, out);
            }
            if has(NetworkMask::WRITER_GROUP_NAME) {
                header.name("WriterGroupName", out);
                string(&self.group_name, out);
            }
            header.name("Messages", out);
            members = Some(header);
        }
        if is_single {
            messages.for_each(|message| out.extend_from_slice(message));
        } else {
            taktwerk_types::json::write::array(messages, out, |message, out| out.extend_from_slice(message));
        }
        if let Some(members) = members {
            members.close(out);
        }
    }
}
