//! One request or response, as bytes.

use crate::publisher_id::PublisherIdRef;
use crate::uadp::action::{ActionBody, ActionHeader};
use crate::uadp::data_set_message::{DataSetMessageHeader, DataSetMessageKind};
use crate::uadp::fields::{FieldTypes, decode_fields};
use crate::uadp::header::{NetworkMessageHeader, WriterIds};
use crate::uadp::payload::DataSetPayload;
use taktwerk_types::{DecodeError, DecodeLimits, Decoder, Encode, StatusCode, Variant};

/// What an Action's NetworkMessage says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ActionMessage<'a> {
    /// The responder, in requests and responses.
    pub(super) responder: PublisherIdRef<'a>,
    pub(super) header: ActionHeader<'a>,
    /// One for each request or response.
    pub(super) parts: Vec<Part>,
}

/// One request or response.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub(super) writer_id: u16,
    pub(super) body: ActionBody,
    pub(super) status: StatusCode,
    pub(super) fields: Vec<Variant>,
}

impl<'a> ActionMessage<'a> {
    /// The header of a message with one part.
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

    /// Appends the payload of a message with one part.
    pub(super) fn encode_payload(header: &ActionHeader<'_>, part: &Part, out: &mut Vec<u8>) {
        header.encode(out);
        let kind = if header.is_request {
            DataSetMessageKind::ActionRequest
        } else {
            DataSetMessageKind::ActionResponse
        };
        let status = (part.status != StatusCode::GOOD).then_some(part.status);
        DataSetMessageHeader { is_valid: true, kind, status, ..DataSetMessageHeader::default() }.encode(out);
        part.body.encode(out);
        u16::try_from(part.fields.len()).unwrap_or(u16::MAX).encode(out);
        part.fields.iter().take(usize::from(u16::MAX)).for_each(|field| field.encode(out));
    }

    /// Reads a message whose security was checked.
    pub(super) fn decode(
        header: &NetworkMessageHeader<'a>,
        payload: &'a [u8],
        limits: DecodeLimits,
    ) -> Result<Self, DecodeError> {
        let responder = header.publisher_id.ok_or(DecodeError::Invalid("Action without PublisherId"))?;
        let mut decoder = Decoder::new(payload, limits);
        let action = ActionHeader::decode(&mut decoder)?;
        let wanted = if action.is_request {
            DataSetMessageKind::ActionRequest
        } else {
            DataSetMessageKind::ActionResponse
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
            let mut fields = Vec::new();
            decode_fields(&header, &mut decoder, FieldTypes::default(), &mut fields)
                .map_err(|_| DecodeError::Invalid("fields of an Action: only Variants are read"))?;
            let fields = fields.into_iter().map(|field| match field.value.value {
                Some(value) => value,
                // A field that is a StatusCode: without metadata nobody can tell it from a Bad one.
                None => field.value.status.map_or(Variant::Empty, Variant::StatusCode),
            });
            let status = header.status.unwrap_or_default();
            parts.push(Part { writer_id, body, status, fields: fields.collect() });
        }
        Ok(Self { responder, header: action, parts })
    }
}
