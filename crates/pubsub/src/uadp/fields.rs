//! The fields of key frames, delta frames and events (Part 14 §7.2.4.5.5 to §7.2.4.5.7).

use super::data_set_message::{DataSetMessageHeader, DataSetMessageKind, FieldEncoding};
use super::raw::RawLayout;
use taktwerk_schema::DataSetFieldContentMask as Mask;
use taktwerk_types::codec::Decode;
use taktwerk_types::{
    BuiltInType, DataValue, DecodeError, Decoder, Encode, StatusCode, UtcTime, Variant, variant::data_value,
};

/// The field encoding that a DataSetFieldContentMask selects (Part 14 §6.2.4.2).
#[must_use]
pub const fn encoding_of(mask: Mask) -> FieldEncoding {
    if mask.contains(Mask::RAW_DATA) {
        FieldEncoding::RawData
    } else if mask.is_empty() {
        FieldEncoding::Variant
    } else {
        FieldEncoding::DataValue
    }
}

/// Overwrites a number with one of the same size.
pub(crate) fn patch_scalar(value: &Variant, slot: &mut [u8]) -> Option<BuiltInType> {
    macro_rules! number {
        ($value:expr, $kind:ident) => {{
            let bytes = $value.to_le_bytes();
            if slot.len() != bytes.len() {
                return None;
            }
            slot.copy_from_slice(&bytes);
            BuiltInType::$kind
        }};
    }
    Some(match value {
        Variant::Boolean(value) => number!(u8::from(*value), Boolean),
        Variant::SByte(value) => number!(value, SByte),
        Variant::Byte(value) => number!(value, Byte),
        Variant::Int16(value) => number!(value, Int16),
        Variant::UInt16(value) => number!(value, UInt16),
        Variant::Int32(value) => number!(value, Int32),
        Variant::UInt32(value) => number!(value, UInt32),
        Variant::Int64(value) => number!(value, Int64),
        Variant::UInt64(value) => number!(value, UInt64),
        Variant::Float(value) => number!(value, Float),
        Variant::Double(value) => number!(value, Double),
        Variant::DateTime(value) => number!(value.ticks(), DateTime),
        _ => return None,
    })
}

/// Appends a field as a Variant: a Bad value becomes its StatusCode, an Uncertain one a DataValue with its status
/// (Part 14 Table 162).
pub fn encode_variant_field(field: &DataValue, out: &mut Vec<u8>) {
    let status = field.status();
    if status.is_bad() {
        return Variant::StatusCode(status).encode(out);
    }
    let null = Variant::Empty;
    let value = field.value.as_ref().unwrap_or(&null);
    if status.is_uncertain() {
        out.push(BuiltInType::DataValue.number());
        out.push(data_value::HAS_VALUE | data_value::HAS_STATUS);
        value.encode(out);
        return status.encode(out);
    }
    value.encode(out);
}

/// Appends a field as a DataValue with the parts that the mask selects. Without its status, a Bad value is omitted.
pub fn encode_data_value_field(field: &DataValue, mask: Mask, out: &mut Vec<u8>) {
    let status = field.status.filter(|_| mask.contains(Mask::STATUS_CODE));
    let source = field.source_timestamp.filter(|_| mask.contains(Mask::SOURCE_TIMESTAMP));
    let server = field.server_timestamp.filter(|_| mask.contains(Mask::SERVER_TIMESTAMP));
    let source_pico = field.source_picoseconds.filter(|_| mask.contains(Mask::SOURCE_PICO_SECONDS));
    let server_pico = field.server_picoseconds.filter(|_| mask.contains(Mask::SERVER_PICO_SECONDS));
    let value = field.value.as_ref().filter(|_| !field.status().is_bad());
    let bit = |present: bool, bit: u8| if present { bit } else { 0 };
    out.push(
        bit(value.is_some(), data_value::HAS_VALUE)
            | bit(status.is_some(), data_value::HAS_STATUS)
            | bit(source.is_some(), data_value::HAS_SOURCE_TIMESTAMP)
            | bit(server.is_some(), data_value::HAS_SERVER_TIMESTAMP)
            | bit(source_pico.is_some(), data_value::HAS_SOURCE_PICOSECONDS)
            | bit(server_pico.is_some(), data_value::HAS_SERVER_PICOSECONDS),
    );
    if let Some(value) = value {
        value.encode(out);
    }
    if let Some(status) = status {
        status.encode(out);
    }
    encode_time(source, source_pico, out);
    encode_time(server, server_pico, out);
}

fn encode_time(time: Option<UtcTime>, picoseconds: Option<u16>, out: &mut Vec<u8>) {
    if let Some(time) = time {
        time.encode(out);
    }
    if let Some(picoseconds) = picoseconds {
        picoseconds.encode(out);
    }
}

/// A field of a received DataSetMessage.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReceivedField {
    /// The field's position in the DataSetMetaData.
    pub index: u16,
    /// Value, status and timestamps, as far as they were sent.
    pub value: DataValue,
}

/// Metadata that a decoder needs.
#[derive(Debug, Clone, Copy, Default)]
pub struct FieldTypes<'a> {
    /// The built-in type of each field, in the order of the DataSetMetaData; empty if unknown.
    pub built_in_types: &'a [Option<BuiltInType>],
    /// The layout of raw data, without which RawData cannot be decoded.
    pub raw: Option<&'a RawLayout>,
}

/// Why the fields of a DataSetMessage cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldsError {
    /// The bytes are invalid.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// RawData without the required metadata.
    #[error("the fields are RawData and their DataSetMetaData is not known: configure it or request it")]
    NoMetaData,
    /// An encoding that is not allowed for this kind of message.
    #[error("{0:?} fields cannot be in a {1:?} message")]
    WrongEncoding(FieldEncoding, DataSetMessageKind),
}

/// Decodes the fields of a DataSetMessage into `fields`, replacing its content. `decoder` must be after the header;
/// padding is not consumed.
///
/// # Errors
/// See [`FieldsError`]; `fields` is then undefined.
pub fn decode_fields(
    header: &DataSetMessageHeader,
    decoder: &mut Decoder<'_>,
    types: FieldTypes<'_>,
    fields: &mut Vec<ReceivedField>,
) -> Result<(), FieldsError> {
    fields.clear();
    match header.kind {
        DataSetMessageKind::KeepAlive => Ok(()),
        DataSetMessageKind::KeyFrame if header.encoding == FieldEncoding::RawData => {
            types.raw.ok_or(FieldsError::NoMetaData)?.decode(decoder, fields).map_err(Into::into)
        }
        // Only key frames have no count (Part 14 Tables 163, 166, 167). Some stacks also omit it here, because
        // §7.2.4.5.11 mentions raw fields in key frames only. A body of exactly the fields' length has no count; one
        // with a count is longer.
        DataSetMessageKind::ActionRequest | DataSetMessageKind::ActionResponse
            if header.encoding == FieldEncoding::RawData =>
        {
            let is_empty = decoder.rest() == [0, 0];
            if let Some(layout) = types.raw
                && !is_empty
                && layout.fixed_len() == Some(decoder.remaining())
            {
                return layout.decode(decoder, fields).map_err(Into::into);
            }
            let count = usize::from(u16::decode(decoder)?);
            match types.raw {
                _ if count == 0 => Ok(()),
                None => Err(FieldsError::NoMetaData),
                Some(layout) if layout.len() != count => {
                    Err(DecodeError::Invalid("Action with another number of raw fields than its metadata")
                        .into())
                }
                Some(layout) => layout.decode(decoder, fields).map_err(Into::into),
            }
        }
        DataSetMessageKind::ActionRequest | DataSetMessageKind::ActionResponse
            if header.encoding == FieldEncoding::DataValue =>
        {
            Err(FieldsError::WrongEncoding(header.encoding, header.kind))
        }
        // Raw data has no indexes, and events are Variants.
        DataSetMessageKind::DeltaFrame if header.encoding == FieldEncoding::RawData => {
            Err(FieldsError::WrongEncoding(header.encoding, header.kind))
        }
        DataSetMessageKind::Event if header.encoding != FieldEncoding::Variant => {
            Err(FieldsError::WrongEncoding(header.encoding, header.kind))
        }
        kind => {
            let is_delta = kind == DataSetMessageKind::DeltaFrame;
            let count = u16::decode(decoder)?;
            let least = if is_delta { 3 } else { 1 };
            let needed = usize::from(count) * least;
            if needed > decoder.remaining() {
                return Err(DecodeError::Truncated { needed: needed - decoder.remaining() }.into());
            }
            for position in 0..count {
                let index = if is_delta { u16::decode(decoder)? } else { position };
                let kind = types.built_in_types.get(usize::from(index)).copied().flatten();
                let value = match header.encoding {
                    FieldEncoding::DataValue => DataValue::decode(decoder)?,
                    _ => from_variant(Variant::decode(decoder)?, kind),
                };
                fields.push(ReceivedField { index, value });
            }
            Ok(())
        }
    }
}

/// Reverses [`encode_variant_field`]. `kind` is the field's type, if known: fields of StatusCodes or DataValues keep
/// them.
fn from_variant(value: Variant, kind: Option<BuiltInType>) -> DataValue {
    match value {
        Variant::StatusCode(status)
            if kind != Some(BuiltInType::StatusCode) && status != StatusCode::GOOD =>
        {
            DataValue::from_status(status)
        }
        Variant::DataValue(value) if kind != Some(BuiltInType::DataValue) => *value,
        value => DataValue { value: Some(value), ..DataValue::default() },
    }
}
