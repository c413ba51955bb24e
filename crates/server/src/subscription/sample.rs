//! A value to be sent to the client, and its encoding as a MonitoredItemNotification (Part 4 §7.25.2).

use crate::history::HistoryValue;
use crate::limits::cost;
use taktwerk_slots::Snapshot;
use taktwerk_types::{
    DataValue, Encode, StatusCode, TimestampsToReturn, UtcTime, Variant, variant::data_value,
};

/// The SemanticsChanged bit, with the info type that makes it valid.
pub(crate) const SEMANTICS_BITS: u32 = StatusCode::SEMANTICS_CHANGED | StatusCode::INFO_TYPE_DATA_VALUE;

/// A value to be sent to the client.
#[derive(Debug, Clone)]
pub(crate) enum Sample {
    /// From a slot.
    Slot(Snapshot),
    /// From another attribute, or a constant.
    Value(Box<DataValue>),
}

/// [`cost::QUEUE_ENTRY`] is the accounted size of a queue entry.
const _: () = assert!(size_of::<Sample>() <= cost::QUEUE_ENTRY);

impl Sample {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Slot(snapshot) => snapshot.status,
            Self::Value(value) => value.status(),
        }
    }

    /// The ServerTimestamp.
    pub(crate) fn server(&self) -> UtcTime {
        match self {
            Self::Slot(snapshot) => snapshot.server,
            Self::Value(value) => value.server_timestamp.unwrap_or(UtcTime::NULL),
        }
    }

    /// Marks that values before this one were lost (Part 4 §7.38.1).
    pub(crate) fn set_overflow(&mut self) {
        let status = self.status().with_overflow();
        self.set_status(status);
    }

    /// The value with its source time, or the server time.
    pub(super) fn history_value(&self) -> Option<HistoryValue> {
        let (source, server, value) = match self {
            Self::Slot(snapshot) => (snapshot.source, snapshot.server, snapshot.value()),
            Self::Value(value) => (
                value.source_timestamp.unwrap_or(UtcTime::NULL),
                value.server_timestamp.unwrap_or(UtcTime::NULL),
                value.value.clone().unwrap_or_default(),
            ),
        };
        let source = if source.is_null() { server } else { source };
        (!source.is_null()).then(|| HistoryValue { source, server, status: self.status(), value })
    }

    pub(super) fn set_status(&mut self, status: StatusCode) {
        match self {
            Self::Slot(snapshot) => snapshot.status = status,
            Self::Value(value) => value.status = Some(status),
        }
    }

    /// Keeps only status and times. A snapshot then owns no heap.
    pub(super) fn drop_value(&mut self) {
        match self {
            Self::Slot(snapshot) => {
                snapshot.payload = None;
                (snapshot.kind, snapshot.bits) = (0, 0);
            }
            Self::Value(value) => {
                *self = Self::Slot(Snapshot {
                    kind: 0,
                    bits: 0,
                    payload: None,
                    status: value.status(),
                    source: value.source_timestamp.unwrap_or(UtcTime::NULL),
                    server: value.server_timestamp.unwrap_or(UtcTime::NULL),
                    change: 0,
                    write: 0,
                });
            }
        }
    }
}

impl From<DataValue> for Sample {
    fn from(value: DataValue) -> Self {
        match value {
            DataValue { value: Some(_), .. } => Self::Slot(Snapshot::from_data_value(value)),
            other => Self::Value(Box::new(other)),
        }
    }
}

/// Appends a MonitoredItemNotification (Part 4 §7.25.2) with a slot's value.
#[inline]
pub(crate) fn encode_snapshot(
    out: &mut Vec<u8>,
    client_handle: u32,
    snapshot: &Snapshot,
    status: StatusCode,
    timestamps: TimestampsToReturn,
) {
    let with_source = timestamps.source() && !snapshot.source.is_null();
    let with_server = timestamps.server() && !snapshot.server.is_null();
    let mask = data_value::HAS_VALUE
        | if status.0 != 0 { data_value::HAS_STATUS } else { 0 }
        | if with_source { data_value::HAS_SOURCE_TIMESTAMP } else { 0 }
        | if with_server { data_value::HAS_SERVER_TIMESTAMP } else { 0 };
    // A scalar's notification fits into a small array: one bounds check and one copy.
    let mut line = [0u8; 34];
    line[0..4].copy_from_slice(&client_handle.to_le_bytes());
    line[4] = mask;
    let mut len = 5;
    if let Some(payload) = &snapshot.payload {
        out.extend_from_slice(&line[..len]);
        payload.encode(out);
        len = 0;
    } else {
        line[5] = snapshot.kind;
        line[6..14].copy_from_slice(&snapshot.bits.to_le_bytes());
        len += 1 + Variant::word_len(snapshot.kind);
    }
    if status.0 != 0 {
        line[len..len + 4].copy_from_slice(&status.0.to_le_bytes());
        len += 4;
    }
    if with_source {
        line[len..len + 8].copy_from_slice(&snapshot.source.ticks().to_le_bytes());
        len += 8;
    }
    if with_server {
        line[len..len + 8].copy_from_slice(&snapshot.server.ticks().to_le_bytes());
        len += 8;
    }
    out.extend_from_slice(&line[..len]);
}

/// Appends a MonitoredItemNotification for any sample.
pub(crate) fn encode_sample(
    out: &mut Vec<u8>,
    client_handle: u32,
    timestamps: TimestampsToReturn,
    sample: &Sample,
    status_bits: u32,
) {
    let mut value = match sample {
        Sample::Slot(snapshot) => {
            let status = StatusCode(snapshot.status.0 | status_bits);
            return encode_snapshot(out, client_handle, snapshot, status, timestamps);
        }
        Sample::Value(value) => (**value).clone(),
    };
    if status_bits != 0 {
        value.status = Some(StatusCode(value.status().0 | status_bits));
    }
    if !timestamps.source() {
        value.source_timestamp = None;
    }
    if !timestamps.server() {
        value.server_timestamp = None;
    }
    client_handle.encode(out);
    value.encode(out);
}
