//! A preformatted DataSetMessage: laid out once, then patched through a table of offsets.
//!
//! As long as every field keeps its size, a cycle writes values, sequence number, time and status into the existing
//! bytes and allocates nothing. If the size of a field changes, the message is laid out again.

use super::in_place::{FieldWriter, Message};
use crate::time::Now;
use crate::uadp::data_set_message::{DataSetMessageHeader, DataSetMessageOffsets, status_bits};
use crate::uadp::fields::{encode_data_value_field, encode_variant_field};
use crate::uadp::raw::RawLayout;
use crate::uadp::{DataSetMessageKind, FieldEncoding};
use taktwerk_schema::{
    ConfigurationVersionDataType, DataSetFieldContentMask, UadpDataSetMessageContentMask as Mask,
};
use taktwerk_types::{DataValue, Encode, StatusCode, Variant};

/// Settings of a writer's DataSetMessages.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) content: Mask,
    pub(super) fields: DataSetFieldContentMask,
    pub(super) encoding: FieldEncoding,
    pub(super) version: ConfigurationVersionDataType,
    pub(super) raw: Option<RawLayout>,
    /// Size of every DataSetMessage in bytes; 0: variable.
    pub(super) configured_size: usize,
}

impl Spec {
    fn header(&self, kind: DataSetMessageKind, sequence_number: u16, now: Now) -> DataSetMessageHeader {
        let has = |bit| self.content.contains(bit);
        DataSetMessageHeader {
            is_valid: true,
            // Events are always Variants; a keep-alive has no fields.
            encoding: match kind {
                DataSetMessageKind::KeyFrame | DataSetMessageKind::DeltaFrame => self.encoding,
                _ => FieldEncoding::Variant,
            },
            kind,
            sequence_number: has(Mask::SEQUENCE_NUMBER).then_some(sequence_number),
            timestamp: has(Mask::TIMESTAMP).then_some(now.utc),
            picoseconds: has(Mask::PICO_SECONDS).then_some(0),
            status: has(Mask::STATUS).then_some(StatusCode::GOOD),
            major_version: has(Mask::MAJOR_VERSION).then_some(self.version.major_version),
            minor_version: has(Mask::MINOR_VERSION).then_some(self.version.minor_version),
            always_flags2: false,
        }
    }

    /// Appends a keep-alive with the number of the next data message.
    pub(super) fn keep_alive(&self, next_number: u16, now: Now, out: &mut Vec<u8>) -> Result<(), usize> {
        let start = out.len();
        self.header(DataSetMessageKind::KeepAlive, next_number, now).encode(out);
        self.pad(start, out)
    }

    /// Appends an event.
    pub(super) fn event(
        &self,
        fields: &[Variant],
        number: u16,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<(), usize> {
        let start = out.len();
        self.header(DataSetMessageKind::Event, number, now).encode(out);
        u16::try_from(fields.len()).unwrap_or(u16::MAX).encode(out);
        fields.iter().take(usize::from(u16::MAX)).for_each(|field| field.encode(out));
        self.pad(start, out)
    }

    /// Appends the fields at `changed` as a delta frame.
    pub(super) fn delta(
        &self,
        values: &[DataValue],
        changed: &[u16],
        number: u16,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<(), usize> {
        let start = out.len();
        self.header(DataSetMessageKind::DeltaFrame, number, now).encode(out);
        u16::try_from(changed.len()).unwrap_or(u16::MAX).encode(out);
        for index in changed {
            let Some(value) = values.get(usize::from(*index)) else { continue };
            index.encode(out);
            self.field(value, out);
        }
        self.pad(start, out)
    }

    fn field(&self, value: &DataValue, out: &mut Vec<u8>) {
        match self.encoding {
            FieldEncoding::DataValue => encode_data_value_field(value, self.fields, out),
            _ => encode_variant_field(value, out),
        }
    }

    /// Pads to the ConfiguredSize. A longer message is replaced by one that is marked as not valid (Part 14
    /// §6.3.1.3.3), and its length is returned.
    fn pad(&self, start: usize, out: &mut Vec<u8>) -> Result<(), usize> {
        let len = out.len() - start;
        if self.configured_size == 0 {
            return Ok(());
        }
        if len > self.configured_size {
            out.truncate(start);
            out.resize(start + self.configured_size, 0);
            return Err(len);
        }
        out.resize(start + self.configured_size, 0);
        Ok(())
    }
}

/// The key frame of a writer.
#[derive(Debug, Default)]
pub(super) struct Frame {
    bytes: Vec<u8>,
    offsets: DataSetMessageOffsets,
    /// End of each field; the first field starts at `first`.
    ends: Vec<usize>,
    first: usize,
    is_laid_out: bool,
    scratch: Vec<u8>,
    field: Vec<u8>,
}

/// Result of writing a key frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// The values were patched.
    Patched,
    /// The message was laid out again.
    LaidOut,
}

impl Frame {
    /// The message.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the values.
    ///
    /// # Errors
    /// The length, if it exceeds the ConfiguredSize; the message is then marked as not valid.
    pub(super) fn write(
        &mut self,
        spec: &Spec,
        values: &[DataValue],
        number: u16,
        now: Now,
    ) -> Result<Made, usize> {
        let patched = self.patch(spec, values);
        let bad = match patched {
            Some(bad) => bad,
            None => self.lay_out(spec, values, number, now)?,
        };
        self.stamp(bad, number, now);
        Ok(if patched.is_some() { Made::Patched } else { Made::LaidOut })
    }

    /// A writer that patches the fields in place; `None` if nothing is laid out yet.
    pub(super) fn fields<'a>(&'a mut self, spec: &'a Spec) -> Option<FieldWriter<'a>> {
        let message = Message {
            spec,
            bytes: &mut self.bytes,
            ends: &self.ends,
            start: self.first,
            bad: 0,
            scratch: &mut self.scratch,
            field: &mut self.field,
        };
        self.is_laid_out.then(|| FieldWriter::message(message))
    }

    /// Number of bad fields; `None` if the size of a field has changed.
    fn patch(&mut self, spec: &Spec, values: &[DataValue]) -> Option<usize> {
        let mut fields = self.fields(spec)?;
        values.iter().for_each(|value| fields.value(value));
        fields.finish()
    }

    /// Updates the header with the number of bad fields, the sequence number and the time.
    pub(super) fn stamp(&mut self, bad: usize, number: u16, now: Now) {
        let status = match bad {
            0 => StatusCode::GOOD,
            count if count == self.ends.len() => StatusCode::BAD,
            _ => StatusCode::UNCERTAIN,
        };
        let offsets = self.offsets;
        put(&mut self.bytes, offsets.sequence_number, &number.to_le_bytes());
        put(&mut self.bytes, offsets.timestamp, &now.utc.ticks().to_le_bytes());
        put(&mut self.bytes, offsets.status, &status_bits(status).to_le_bytes());
    }

    /// Lays out the message; returns the number of bad fields.
    fn lay_out(&mut self, spec: &Spec, values: &[DataValue], number: u16, now: Now) -> Result<usize, usize> {
        let mut bad = 0;
        self.is_laid_out = false;
        self.bytes.clear();
        self.ends.clear();
        self.offsets = spec.header(DataSetMessageKind::KeyFrame, number, now).encode(&mut self.bytes);
        if spec.encoding != FieldEncoding::RawData {
            u16::try_from(values.len()).unwrap_or(u16::MAX).encode(&mut self.bytes);
        }
        self.first = self.bytes.len();
        for (index, value) in values.iter().enumerate() {
            match (&spec.raw, spec.encoding) {
                (Some(raw), FieldEncoding::RawData) => {
                    let outcome = raw.encode_field(index, value, &mut self.scratch, &mut self.bytes);
                    bad += usize::from(outcome.is_err());
                }
                _ => spec.field(value, &mut self.bytes),
            }
            self.ends.push(self.bytes.len());
        }
        let padded = spec.pad(0, &mut self.bytes);
        if padded.is_err() {
            self.offsets = DataSetMessageOffsets::default();
        }
        self.is_laid_out = padded.is_ok();
        padded.map(|()| bad)
    }
}

fn put(bytes: &mut [u8], at: Option<usize>, value: &[u8]) {
    if let Some(place) = at.and_then(|at| bytes.get_mut(at..at + value.len())) {
        place.copy_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::build::field;
    use crate::uadp::fields::{FieldTypes, decode_fields};
    use proptest::prelude::*;
    use taktwerk_schema::DataSetMetaDataType;
    use taktwerk_types::{BuiltInType, Decoder, UtcTime};

    const NOW: Now = Now { instant: taktwerk_types::Instant::ZERO, utc: UtcTime::from_ticks(77) };

    fn spec(encoding: FieldEncoding, raw: Option<RawLayout>, configured_size: usize) -> Spec {
        Spec {
            content: Mask::SEQUENCE_NUMBER | Mask::STATUS | Mask::TIMESTAMP | Mask::MINOR_VERSION,
            fields: DataSetFieldContentMask::STATUS_CODE | DataSetFieldContentMask::SOURCE_TIMESTAMP,
            encoding,
            version: ConfigurationVersionDataType { major_version: 3, minor_version: 4 },
            raw,
            configured_size,
        }
    }

    fn value() -> impl Strategy<Value = DataValue> {
        let plain = prop_oneof![
            any::<f32>().prop_map(Variant::from),
            any::<i64>().prop_map(Variant::from),
            any::<bool>().prop_map(Variant::from),
            "[a-z]{0,4}".prop_map(Variant::from),
            proptest::collection::vec(any::<u16>(), 0..4).prop_map(Variant::from),
        ];
        (
            plain,
            proptest::option::of(prop_oneof![
                Just(StatusCode::GOOD),
                Just(StatusCode::UNCERTAIN),
                Just(StatusCode::BAD_NOT_CONNECTED)
            ]),
        )
            .prop_map(|(value, status)| DataValue { status, ..DataValue::new(value) })
    }

    proptest! {
        /// A patched frame has the same bytes as one that is laid out for the first time.
        #[test]
        fn patching_equals_laying_out(
            cycles in proptest::collection::vec(proptest::collection::vec(value(), 3), 1..8),
            data_value in any::<bool>(),
        ) {
            let encoding = if data_value { FieldEncoding::DataValue } else { FieldEncoding::Variant };
            let spec = spec(encoding, None, 0);
            let mut frame = Frame::default();
            for (number, values) in cycles.iter().enumerate() {
                let number = number as u16;
                frame.write(&spec, values, number, NOW).unwrap();
                let mut fresh = Frame::default();
                fresh.write(&spec, values, number, NOW).unwrap();
                prop_assert_eq!(frame.bytes(), fresh.bytes());
                let mut decoder = Decoder::new(frame.bytes(), Default::default());
                let header = DataSetMessageHeader::decode(&mut decoder).unwrap();
                prop_assert_eq!(header.sequence_number, Some(number));
                let mut fields = Vec::new();
                decode_fields(&header, &mut decoder, FieldTypes::default(), &mut fields).unwrap();
                prop_assert_eq!(decoder.remaining(), 0);
                for (field, value) in fields.iter().zip(values) {
                    prop_assert_eq!(field.value.status().is_bad(), value.status().is_bad());
                    if !value.status().is_bad() {
                        let sent = value.value.as_ref().unwrap();
                        prop_assert!(field.value.value.as_ref().unwrap().same_as(sent));
                    }
                }
            }
        }

        #[test]
        fn raw_frames_have_fixed_offsets(cycles in proptest::collection::vec(
            (proptest::option::of(any::<f32>()), "[a-z]{0,6}", any::<u16>()), 1..8)
        ) {
            let text = taktwerk_schema::FieldMetaData { max_string_length: 4, ..field("s", BuiltInType::String) };
            let meta_data = DataSetMetaDataType {
                fields: vec![field("f", BuiltInType::Float), text, field("u", BuiltInType::UInt16)],
                ..Default::default()
            };
            let spec = spec(FieldEncoding::RawData, Some(RawLayout::new(&meta_data).unwrap()), 40);
            let mut frame = Frame::default();
            for (index, (float, text, word)) in cycles.into_iter().enumerate() {
                let float = float.map_or(DataValue::from_status(StatusCode::BAD), DataValue::new);
                let values = [float, DataValue::new(text.clone()), DataValue::new(word)];
                let made = frame.write(&spec, &values, 0, NOW).unwrap();
                prop_assert_eq!(made == Made::LaidOut, index == 0);
                prop_assert_eq!(frame.bytes().len(), 40);
                let mut decoder = Decoder::new(frame.bytes(), Default::default());
                let header = DataSetMessageHeader::decode(&mut decoder).unwrap();
                let bad = usize::from(values[0].status().is_bad()) + usize::from(text.len() > 4);
                let expected = if bad == 0 { StatusCode::GOOD } else { StatusCode::UNCERTAIN };
                prop_assert_eq!(header.status, Some(expected));
                let at = 40 - decoder.remaining();
                prop_assert_eq!(&frame.bytes()[at + 12..at + 14], &word.to_le_bytes());
            }
        }
    }

    #[test]
    fn oversized_messages_are_marked_not_valid() {
        let spec = spec(FieldEncoding::Variant, None, 20);
        let mut frame = Frame::default();
        let short = [DataValue::new(1u8)];
        assert_eq!(frame.write(&spec, &short, 0, NOW), Err(22));
        assert_eq!(frame.bytes(), [0; 20]);
        let mut decoder = Decoder::new(frame.bytes(), Default::default());
        assert!(!DataSetMessageHeader::decode(&mut decoder).unwrap().is_valid);
    }
}
