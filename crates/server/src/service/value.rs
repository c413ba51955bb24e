//! Encoding values directly from their slots.

use taktwerk_slots::{Scalar, Snapshot};
use taktwerk_types::variant::data_value;
use taktwerk_types::{DataValue, Encode, NumericRange, StatusCode, TimestampsToReturn, UtcTime, Variant};

/// Longest encoding of a DataValue with an inline scalar: mask, type, value, status, two times.
const LINE_LEN: usize = 1 + 1 + 8 + 4 + 8 + 8;

/// Appends a slot's value as a DataValue with the requested timestamps; `server` is the ServerTimestamp.
#[inline]
pub(crate) fn encode_snapshot(
    snapshot: &Snapshot,
    timestamps: TimestampsToReturn,
    server: UtcTime,
    out: &mut Vec<u8>,
) {
    let vouched = server;
    let source = if timestamps.source() && !snapshot.source.is_null() { Some(snapshot.source) } else { None };
    let server = if timestamps.server() { Some(server) } else { None };
    if let Some(payload) = &snapshot.payload {
        let status = Some(snapshot.status).filter(|status| *status != StatusCode::GOOD);
        return encode_parts(Some(payload), status, source, server, out);
    }
    let Snapshot { kind, bits, status, source, .. } = *snapshot;
    encode_scalar(Scalar { kind, bits, status, source }, timestamps, vouched, out);
}

/// Appends an inline value like [`encode_snapshot`]. The fields are written directly in place: they have odd sizes and
/// must not be read back before they are sent.
#[inline]
pub(crate) fn encode_scalar(
    scalar: Scalar,
    timestamps: TimestampsToReturn,
    server: UtcTime,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(&[0; LINE_LEN]);
    let Some(line) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut::<LINE_LEN>) else { return };
    let mut mask = 0;
    let mut at = 1;
    if scalar.kind != 0 {
        mask = data_value::HAS_VALUE;
        line[1] = scalar.kind;
        // The word's low bytes are the value; the following fields overwrite the rest.
        line[2..10].copy_from_slice(&scalar.bits.to_le_bytes());
        at = 2 + Variant::word_len(scalar.kind);
    }
    if scalar.status != StatusCode::GOOD {
        mask |= data_value::HAS_STATUS;
        line[at..at + 4].copy_from_slice(&scalar.status.0.to_le_bytes());
        at += 4;
    }
    let source = if timestamps.source() && !scalar.source.is_null() { Some(scalar.source) } else { None };
    let server = if timestamps.server() { Some(server) } else { None };
    if let Some(source) = source {
        mask |= data_value::HAS_SOURCE_TIMESTAMP;
        line[at..at + 8].copy_from_slice(&source.ticks().to_le_bytes());
        at += 8;
    }
    if let Some(server) = server {
        mask |= data_value::HAS_SERVER_TIMESTAMP;
        line[at..at + 8].copy_from_slice(&server.ticks().to_le_bytes());
        at += 8;
    }
    line[0] = mask;
    out.truncate(start + at);
}

/// Appends a DataValue from its parts without building one.
pub(crate) fn encode_parts(
    value: Option<&Variant>,
    status: Option<StatusCode>,
    source: Option<UtcTime>,
    server: Option<UtcTime>,
    out: &mut Vec<u8>,
) {
    out.push(mask(value.is_some(), status.is_some(), source.is_some(), server.is_some()));
    if let Some(value) = value {
        value.encode(out);
    }
    encode_tail(status, source, server, out);
}

/// Appends a DataValue whose value is already encoded.
pub(crate) fn encode_raw(value: &[u8], source: Option<UtcTime>, server: Option<UtcTime>, out: &mut Vec<u8>) {
    out.push(mask(true, false, source.is_some(), server.is_some()));
    out.extend_from_slice(value);
    encode_tail(None, source, server, out);
}

/// Appends the DataValue of a failed operation.
pub(crate) fn encode_failure(status: StatusCode, server: Option<UtcTime>, out: &mut Vec<u8>) {
    encode_parts(None, Some(status), None, server, out);
}

fn mask(value: bool, status: bool, source: bool, server: bool) -> u8 {
    let bit = |present: bool, bit: u8| if present { bit } else { 0 };
    bit(value, data_value::HAS_VALUE)
        | bit(status, data_value::HAS_STATUS)
        | bit(source, data_value::HAS_SOURCE_TIMESTAMP)
        | bit(server, data_value::HAS_SERVER_TIMESTAMP)
}

fn encode_tail(
    status: Option<StatusCode>,
    source: Option<UtcTime>,
    server: Option<UtcTime>,
    out: &mut Vec<u8>,
) {
    if let Some(status) = status {
        status.encode(out);
    }
    if let Some(source) = source {
        source.encode(out);
    }
    if let Some(server) = server {
        server.encode(out);
    }
}

/// The part of a value selected by an IndexRange, with status and timestamps.
pub(crate) fn select(mut value: DataValue, range: &NumericRange) -> DataValue {
    let Some(whole) = &value.value else { return value };
    match range.read(whole) {
        Ok(part) => value.value = Some(part),
        Err(status) => {
            value.value = None;
            value.status = Some(status);
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use taktwerk_slots::SlotStore;
    use taktwerk_types::{Decode, DecodeLimits};

    #[test]
    fn snapshots_encode_as_their_data_values() {
        let store = Arc::new(SlotStore::new(1, 1));
        let slot = store.handle(&store.allocate());
        let (source, server) = (UtcTime::from_ticks(11), UtcTime::from_ticks(22));
        for value in [
            Variant::Boolean(true),
            Variant::SByte(-1),
            Variant::Int16(-2),
            Variant::UInt32(3),
            Variant::Double(4.5),
            Variant::from("text"),
            Variant::from(vec![1i32, 2]),
            Variant::Empty,
        ] {
            for status in [StatusCode::GOOD, StatusCode::UNCERTAIN] {
                slot.set(value.clone(), status, source, server);
                for wire in 0..4 {
                    let timestamps = TimestampsToReturn::from_wire(wire).unwrap();
                    let mut out = Vec::new();
                    encode_snapshot(&slot.read(), timestamps, server, &mut out);
                    let decoded = DataValue::decode_from(&out, DecodeLimits::DEFAULT).unwrap();
                    assert_eq!(decoded.value, Some(value.clone()).filter(|value| !value.is_empty()));
                    assert_eq!(decoded.status(), status);
                    assert_eq!(decoded.source_timestamp, timestamps.source().then_some(source));
                    assert_eq!(decoded.server_timestamp, timestamps.server().then_some(server));
                }
            }
        }
    }
}
