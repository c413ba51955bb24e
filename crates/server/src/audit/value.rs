//! How an audit record shows a value.

use core::fmt;
use taktwerk_types::{Array, Variant};

/// A value in a form that may be logged. Numbers, times, identifiers and status codes are shown as they are. Of
/// everything else only type and length are shown, because texts and bytes may be secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct AuditValue(Box<str>);

impl AuditValue {
    /// The loggable form of a value.
    #[must_use]
    pub fn of(value: &Variant) -> Self {
        use Variant as V;
        let kind = value.built_in_type().map_or_else(|| "Null".to_owned(), |kind| kind.to_string());
        let hidden = |len: usize| format!("{kind} ({len} bytes)");
        Self(
            match value {
                V::Empty => "null".to_owned(),
                V::Boolean(value) => value.to_string(),
                V::SByte(value) => value.to_string(),
                V::Byte(value) => value.to_string(),
                V::Int16(value) => value.to_string(),
                V::UInt16(value) => value.to_string(),
                V::Int32(value) => value.to_string(),
                V::UInt32(value) => value.to_string(),
                V::Int64(value) => value.to_string(),
                V::UInt64(value) => value.to_string(),
                V::Float(value) => value.to_string(),
                V::Double(value) => value.to_string(),
                V::DateTime(value) => value.to_string(),
                V::StatusCode(value) => value.to_string(),
                V::String(text) => hidden(text.as_str().len()),
                V::ByteString(bytes) => hidden(bytes.as_bytes().len()),
                V::Array(array) => {
                    let lengths: Vec<String> = Array::shape(array).iter().map(ToString::to_string).collect();
                    format!("{kind}[{}]", lengths.join(", "))
                }
                _ => kind,
            }
            .into(),
        )
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AuditValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::{ByteString, LocalizedText};

    #[test]
    fn numbers_are_shown_and_possible_secrets_are_not() {
        let shown = |value: Variant| AuditValue::of(&value).as_str().to_owned();
        assert_eq!(shown(1.5f64.into()), "1.5");
        assert_eq!(shown(true.into()), "true");
        assert_eq!(shown(Variant::Empty), "null");
        assert_eq!(shown("canary".into()), "String (6 bytes)");
        assert_eq!(shown(ByteString::from(b"canary".as_slice()).into()), "ByteString (6 bytes)");
        assert_eq!(
            shown(
                vec!["canary".to_owned()]
                    .into_iter()
                    .map(taktwerk_types::UaString::from)
                    .collect::<Vec<_>>()
                    .into()
            ),
            "String[1]"
        );
        assert_eq!(shown(vec![1.0f32, 2.0].into()), "Float[2]");
        assert_eq!(shown(LocalizedText::from_text("canary").into()), "LocalizedText");
    }
}
