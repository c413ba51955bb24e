//! Action requests and responses, and their UADP encoding.

use super::form::Form;
use crate::publisher_id::{PublisherId, PublisherIdRef};
use crate::uadp::FieldEncoding;
use crate::uadp::action::{ActionBody, ActionHeader};
use crate::uadp::data_set_message::{DataSetMessageHeader, DataSetMessageKind};
use crate::uadp::fields::{FieldsError, decode_fields};
use crate::uadp::header::{NetworkMessageHeader, WriterIds};
use crate::uadp::payload::DataSetPayload;
use taktwerk_types::{DataValue, DecodeError, DecodeLimits, Decoder, Encode, StatusCode, Variant};

/// The content of an Action's NetworkMessage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ActionMessage {
    /// The responder, both in requests and responses.
    pub(crate) responder: PublisherId,
    pub(crate) is_request: bool,
    pub(crate) response_address: Option<String>,
    pub(crate) correlation_data: Option<Vec<u8>>,
    pub(crate) requestor_id: Option<Variant>,
    /// In milliseconds.
    pub(crate) timeout_hint: Option<f64>,
    /// One per request or response.
    pub(crate) parts: Vec<Part>,
}

/// One request or response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) writer_id: u16,
    pub(crate) body: ActionBody,
    pub(crate) status: StatusCode,
    /// The fields, or why they cannot be decoded: [`UNKNOWN`] if they were not described yet.
    pub(crate) fields: Result<Vec<Variant>, StatusCode>,
}

/// Raw data without metadata.
pub(crate) const UNKNOWN: StatusCode = StatusCode::BAD_WAITING_FOR_INITIAL_DATA;

/// Finds the form of a responder's DataSetWriter.
pub(crate) type KnownForm<'a> = &'a dyn Fn(&PublisherId, u16) -> Option<&'a Form>;

/// The NetworkMessage header of a message with one part.
pub(super) fn network_header<'b>(
    responder: PublisherIdRef<'b>,
    writer_id: &'b [u16; 1],
) -> NetworkMessageHeader<'b> {
    NetworkMessageHeader {
        publisher_id: Some(responder),
        writer_ids: Some(WriterIds::List(writer_id)),
        has_action_header: true,
        ..NetworkMessageHeader::default()
    }
}

/// Appends the payload of a message with one part. `fields` were checked against the form.
pub(super) fn encode_payload(
    header: &ActionHeader<'_>,
    body: &ActionBody,
    status: StatusCode,
    fields: &[Variant],
    form: Option<&Form>,
    out: &mut Vec<u8>,
) {
    header.encode(out);
    let set = form.and_then(|form| form.fields(header.is_request));
    // The first and the last messages have no fields, so they contain no raw data.
    let raw = form.filter(|form| form.is_raw && !fields.is_empty()).and(set).and_then(|set| set.raw());
    let kind = match header.is_request {
        true => DataSetMessageKind::ActionRequest,
        false => DataSetMessageKind::ActionResponse,
    };
    let message = DataSetMessageHeader {
        is_valid: true,
        kind,
        encoding: if raw.is_some() { FieldEncoding::RawData } else { FieldEncoding::Variant },
        status: (status != StatusCode::GOOD).then_some(status),
        // Raw data is only valid with the right metadata version.
        major_version: set.filter(|_| raw.is_some()).map(|set| set.major_version),
        ..DataSetMessageHeader::default()
    };
    message.encode(out);
    body.encode(out);
    u16::try_from(fields.len()).unwrap_or(u16::MAX).encode(out);
    let Some(layout) = raw else {
        return fields.iter().take(usize::from(u16::MAX)).for_each(|field| field.encode(out));
    };
    let mut scratch = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        // The fields were checked before; one that does not fit would become zeros.
        let _ = layout.encode_field(index, &DataValue::new(field.clone()), &mut scratch, out);
    }
}

/// Decodes a message whose security was verified.
pub(super) fn decode(
    header: &NetworkMessageHeader<'_>,
    payload: &[u8],
    limits: DecodeLimits,
    form: KnownForm<'_>,
) -> Result<ActionMessage, DecodeError> {
    let responder = header.publisher_id.ok_or(DecodeError::Invalid("Action without PublisherId"))?.to_owned();
    let mut decoder = Decoder::new(payload, limits);
    let action = ActionHeader::decode(&mut decoder)?;
    let wanted = match action.is_request {
        true => DataSetMessageKind::ActionRequest,
        false => DataSetMessageKind::ActionResponse,
    };
    let mut parts = Vec::new();
    for (writer_id, bytes) in DataSetPayload::new(header.writer_ids, decoder.rest())? {
        let writer_id = writer_id.ok_or(DecodeError::Invalid("Action without DataSetWriterId"))?;
        let mut decoder = Decoder::new(bytes, limits);
        let header = DataSetMessageHeader::decode(&mut decoder)?;
        if !header.is_valid || header.kind != wanted {
            return Err(DecodeError::Invalid("Action with a DataSetMessage of another type"));
        }
        let body = ActionBody::decode(&mut decoder)?;
        let set = form(&responder, writer_id).and_then(|form| form.fields(action.is_request));
        let is_other =
            set.is_some_and(|set| header.major_version.is_some_and(|major| major != set.major_version));
        let fields = if is_other {
            Err(StatusCode::BAD_CONFIGURATION_ERROR)
        } else {
            let mut fields = Vec::new();
            let types = set.map(|set| set.types()).unwrap_or_default();
            match decode_fields(&header, &mut decoder, types, &mut fields) {
                Ok(()) => Ok(fields.into_iter().map(|field| plain(field.value)).collect()),
                Err(FieldsError::NoMetaData) => Err(UNKNOWN),
                Err(FieldsError::WrongEncoding(..)) => Err(StatusCode::BAD_DATA_ENCODING_UNSUPPORTED),
                Err(FieldsError::Decode(error)) => return Err(error),
            }
        };
        parts.push(Part { writer_id, body, status: header.status.unwrap_or_default(), fields });
    }
    Ok(ActionMessage {
        responder,
        is_request: action.is_request,
        response_address: action.response_address.map(str::to_owned),
        correlation_data: action.correlation_data.map(<[u8]>::to_vec),
        requestor_id: action.requestor_id,
        timeout_hint: action.timeout_hint,
        parts,
    })
}

/// The value of a field. For a status, the StatusCode itself: without metadata it cannot be distinguished from a Bad
/// value.
pub(crate) fn plain(field: DataValue) -> Variant {
    field.value.unwrap_or_else(|| field.status.map_or(Variant::Empty, Variant::StatusCode))
}
