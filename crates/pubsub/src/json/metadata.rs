//! JSON NetworkMessages with metadata (Part 14 §7.2.5.5.2).

use super::structure;
use crate::time::Now;
use taktwerk_schema::DataSetMetaDataType;
use taktwerk_types::json::write::{Members, plain, string};
use taktwerk_types::json::{Json, JsonContext, JsonEncode, JsonError};

/// A received metadata message.
#[derive(Debug, Clone, PartialEq)]
pub struct MetaDataMessage {
    /// The sender.
    pub publisher_id: String,
    /// The DataSetWriter.
    pub data_set_writer_id: u16,
    /// The metadata.
    pub meta_data: DataSetMetaDataType,
}

/// Appends a metadata message.
pub fn encode(
    message_id: &str,
    publisher_id: &str,
    data_set_writer_id: u16,
    writer_name: &str,
    meta_data: &DataSetMetaDataType,
    now: Now,
    out: &mut Vec<u8>,
) {
    let context =
        JsonContext { verbose: false, structures: Some(&structure::Standard), ..JsonContext::default() };
    let mut members = Members::open(out);
    members.name("MessageId", out);
    string(message_id, out);
    members.name("MessageType", out);
    string("ua-metadata", out);
    members.name("PublisherId", out);
    string(publisher_id, out);
    members.name("DataSetWriterId", out);
    plain(data_set_writer_id, out);
    members.name("DataSetWriterName", out);
    string(writer_name, out);
    members.name("Timestamp", out);
    now.utc.encode_json(&context, out);
    members.name("MetaData", out);
    structure::encode(meta_data, &context, out);
    members.close(out);
}

/// Parses a metadata message.
///
/// # Errors
/// It is not a metadata message.
pub fn decode(json: &Json<'_>) -> Result<MetaDataMessage, JsonError> {
    use taktwerk_types::json::JsonDecode;
    let context =
        JsonContext { verbose: false, structures: Some(&structure::Standard), ..JsonContext::default() };
    if json.get("MessageType").and_then(Json::as_str) != Some("ua-metadata") {
        return Err(JsonError::Expected("MessageType ua-metadata"));
    }
    let meta_data = json.get("MetaData").ok_or(JsonError::Expected("MetaData"))?;
    Ok(MetaDataMessage {
        publisher_id: json.get("PublisherId").and_then(Json::as_str).unwrap_or("").to_owned(),
        data_set_writer_id: u16::decode_json(json.get("DataSetWriterId").unwrap_or(&Json::Null), &context)?,
        meta_data: structure::decode(meta_data, &context)?,
    })
}
