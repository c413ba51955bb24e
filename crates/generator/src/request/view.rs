//! Checks answers without building them: allocating for every value would make the generator the bottleneck.

use taktwerk_client::Reply;
use taktwerk_types::{
    DataValue, Decode, DecodeError, DecodeLimits, Decoder, DiagnosticInfo, ExtensionObject, StatusCode,
    UaString, UtcTime,
};

/// Result of checking an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Operations with a Bad status.
    pub(crate) bad: u64,
    /// The first Bad status.
    pub(crate) first: Option<StatusCode>,
}

impl Checked {
    fn count(&mut self, status: StatusCode) {
        if status.is_bad() {
            self.bad += 1;
            self.first.get_or_insert(status);
        }
    }
}

/// The number of results, and a decoder positioned at the first one.
fn results<'a>(reply: &Reply<'a>, min_len: usize) -> Result<(usize, Decoder<'a>), DecodeError> {
    let (_, body) = reply.wire().ok_or(DecodeError::Invalid("an answer that was joined"))?;
    let mut decoder = Decoder::new(body, DecodeLimits { array_len_max: u32::MAX, ..DecodeLimits::DEFAULT });
    UtcTime::decode(&mut decoder)?;
    u32::decode(&mut decoder)?;
    StatusCode::decode(&mut decoder)?;
    DiagnosticInfo::decode(&mut decoder)?;
    Vec::<UaString>::decode(&mut decoder)?;
    <ExtensionObject as Decode>::decode(&mut decoder)?;
    let count = decoder.array_len(min_len)?.unwrap_or(0);
    Ok((count, decoder))
}

fn look(
    reply: &Reply<'_>,
    min_len: usize,
    mut each: impl FnMut(&mut Decoder<'_>) -> Result<StatusCode, DecodeError>,
) -> Checked {
    let mut checked = Checked::default();
    let mut all = || -> Result<(), DecodeError> {
        let (count, mut decoder) = results(reply, min_len)?;
        for _ in 0..count {
            checked.count(each(&mut decoder)?);
        }
        Ok(())
    };
    if all().is_err() {
        checked.count(StatusCode::BAD_DECODING_ERROR);
    }
    checked
}

/// Checks a ReadResponse. Numbers are decoded without heap allocations.
pub(crate) fn read(reply: &Reply<'_>) -> Checked {
    look(reply, DataValue::MIN_LEN, |decoder| DataValue::decode(decoder).map(|value| value.status()))
}

/// Checks a WriteResponse.
pub(crate) fn write(reply: &Reply<'_>) -> Checked {
    look(reply, StatusCode::MIN_LEN, |decoder| u32::decode(decoder).map(StatusCode))
}

/// Checks a BrowseResponse.
pub(crate) fn browse(reply: &Reply<'_>) -> Checked {
    use taktwerk_schema::BrowseResult;
    look(reply, BrowseResult::MIN_LEN, |decoder| {
        BrowseResult::decode(decoder).map(|result| result.status_code)
    })
}
