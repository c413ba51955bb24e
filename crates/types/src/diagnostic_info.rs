//! DiagnosticInfo (Part 4 §7.12, Part 6 §5.2.2.12).

use crate::StatusCode;
use crate::codec::{Decode, DecodeError, Decoder, Encode};
use crate::string::UaString;

/// Vendor detail about a result; strings are indexes into the response header's string table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DiagnosticInfo {
    /// Index of the symbolic id's string.
    pub symbolic_id: Option<i32>,
    /// Index of the namespace URI's string.
    pub namespace_uri: Option<i32>,
    /// Index of the locale's string.
    pub locale: Option<i32>,
    /// Index of the text's string.
    pub localized_text: Option<i32>,
    /// More detail as text.
    pub additional_info: Option<UaString>,
    /// The status of an underlying operation.
    pub inner_status_code: Option<StatusCode>,
    /// The diagnostics of that operation.
    pub inner_diagnostic_info: Option<Box<DiagnosticInfo>>,
}

impl Encode for DiagnosticInfo {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(
            u8::from(self.symbolic_id.is_some())
                | u8::from(self.namespace_uri.is_some()) << 1
                | u8::from(self.localized_text.is_some()) << 2
                | u8::from(self.locale.is_some()) << 3
                | u8::from(self.additional_info.is_some()) << 4
                | u8::from(self.inner_status_code.is_some()) << 5
                | u8::from(self.inner_diagnostic_info.is_some()) << 6,
        );
        for index in
            [self.symbolic_id, self.namespace_uri, self.locale, self.localized_text].into_iter().flatten()
        {
            index.encode(out);
        }
        if let Some(text) = &self.additional_info {
            text.encode(out);
        }
        if let Some(status) = &self.inner_status_code {
            status.encode(out);
        }
        if let Some(inner) = &self.inner_diagnostic_info {
            inner.encode(out);
        }
    }
}

impl<'a> Decode<'a> for DiagnosticInfo {
    const MIN_LEN: usize = 1;
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let mask = decoder.byte()?;
        let mut index = |bit: u8| if mask & bit != 0 { i32::decode(decoder).map(Some) } else { Ok(None) };
        let symbolic_id = index(1)?;
        let namespace_uri = index(2)?;
        let locale = index(8)?;
        let localized_text = index(4)?;
        let additional_info = if mask & 16 != 0 { Some(UaString::decode(decoder)?) } else { None };
        let inner_status_code = if mask & 32 != 0 { Some(StatusCode::decode(decoder)?) } else { None };
        let inner_diagnostic_info = if mask & 64 != 0 { Some(decoder.nested(Box::decode)?) } else { None };
        Ok(Self {
            symbolic_id,
            namespace_uri,
            locale,
            localized_text,
            additional_info,
            inner_status_code,
            inner_diagnostic_info,
        })
    }
}
