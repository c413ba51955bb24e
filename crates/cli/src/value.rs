//! Parsing of values on the command line, according to the node's DataType.
//!
//! Scalars have the printed form: `3.5`, `true`, `2024-02-29T12:00:00Z`, `ns=2;s=x`, `BadTimeout`. ByteStrings are
//! `0x0102ff` or Base64. Arrays are `[1, 2, 3]`, matrices `[[1, 2], [3, 4]]`. Elements with commas, brackets or outer
//! spaces need double quotes, with JSON escapes.

use taktwerk_types::hexadecimal;
use taktwerk_types::node_id::unbase64;
use taktwerk_types::{
    BuiltInType, ByteString, ExpandedNodeId, Guid, LocalizedText, NodeId, QualifiedName, StatusCode, UtcTime,
    Variant, XmlElement,
};

/// The text is not a value of the type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseValueError {
    #[error("{text:?} is no {kind}: {advice}")]
    Scalar { text: String, kind: BuiltInType, advice: &'static str },
    #[error("{0}: write an array as [1, 2, 3] and a matrix as [[1, 2], [3, 4]]")]
    Array(&'static str),
    #[error("the rows of the matrix have different lengths")]
    Ragged,
    #[error("values of type {0} cannot be typed on a command line")]
    Unsupported(BuiltInType),
}

/// Parses `text` as a scalar, array or matrix of `kind`.
///
/// Text that begins with `[` is an array, unless the node accepts scalars only (`scalar_only`), because a string may
/// begin with `[` too.
pub(crate) fn parse(text: &str, kind: BuiltInType, scalar_only: bool) -> Result<Variant, ParseValueError> {
    let trimmed = text.trim();
    if scalar_only || !trimmed.starts_with('[') {
        return scalar(text, kind);
    }
    let mut reader = Reader { rest: trimmed };
    let tree = reader.list()?;
    if !reader.rest.trim().is_empty() {
        return Err(ParseValueError::Array("there is text after the array"));
    }
    let mut leaves = Vec::new();
    let mut shape = Vec::new();
    flatten(&tree, 0, &mut shape, &mut leaves)?;
    let values: Vec<Variant> = leaves.iter().map(|leaf| scalar(leaf, kind)).collect::<Result<_, _>>()?;
    collect(kind, values, shape)
}

/// An array while it is parsed.
enum Tree {
    Leaf(String),
    List(Vec<Tree>),
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn list(&mut self) -> Result<Tree, ParseValueError> {
        self.rest =
            self.rest.trim_start().strip_prefix('[').ok_or(ParseValueError::Array("a [ is missing"))?;
        let mut elements = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if elements.is_empty() && self.take(']') {
                return Ok(Tree::List(elements));
            }
            elements.push(self.element()?);
            self.rest = self.rest.trim_start();
            if self.take(']') {
                return Ok(Tree::List(elements));
            }
            if !self.take(',') {
                return Err(ParseValueError::Array("a , or ] is missing"));
            }
        }
    }

    fn take(&mut self, character: char) -> bool {
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn element(&mut self) -> Result<Tree, ParseValueError> {
        if self.rest.starts_with('[') {
            return self.list();
        }
        if self.rest.starts_with('"') {
            // Parses one JSON string at the front. serde_json reports how many bytes it has.
            let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
            let text = stream
                .next()
                .and_then(Result::ok)
                .ok_or(ParseValueError::Array("a closing \" is missing"))?;
            let taken = stream.byte_offset();
            self.rest = self.rest.get(taken..).unwrap_or("");
            return Ok(Tree::Leaf(text));
        }
        let end = self.rest.find([',', ']']).ok_or(ParseValueError::Array("a ] is missing"))?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        match text.trim() {
            "" => Err(ParseValueError::Array("an element is empty")),
            text => Ok(Tree::Leaf(text.to_owned())),
        }
    }
}

/// Collects the leaves in row-major order and checks that all rows of a dimension have the same length.
fn flatten(
    tree: &Tree,
    depth: usize,
    shape: &mut Vec<u32>,
    leaves: &mut Vec<String>,
) -> Result<(), ParseValueError> {
    match tree {
        Tree::Leaf(text) => {
            if depth != shape.len() {
                return Err(ParseValueError::Ragged);
            }
            leaves.push(text.clone());
        }
        Tree::List(elements) => {
            let length = u32::try_from(elements.len()).unwrap_or(u32::MAX);
            match shape.get(depth) {
                Some(known) if *known != length => return Err(ParseValueError::Ragged),
                Some(_) => {}
                // A new dimension may start only before the first element.
                None if leaves.is_empty() => shape.push(length),
                None => return Err(ParseValueError::Ragged),
            }
            for element in elements {
                flatten(element, depth + 1, shape, leaves)?;
            }
        }
    }
    Ok(())
}

fn collect(kind: BuiltInType, values: Vec<Variant>, shape: Vec<u32>) -> Result<Variant, ParseValueError> {
    macro_rules! typed {
        ($($name:ident($type:ty))*) => {
            match kind {
                $(BuiltInType::$name => {
                    let values: Vec<$type> =
                        values.into_iter().filter_map(|value| <$type>::try_from(value).ok()).collect();
                    if shape.len() > 1 {
                        Variant::matrix(values, shape).map_err(|_| ParseValueError::Ragged)
                    } else {
                        Ok(values.into())
                    }
                })*
                other => Err(ParseValueError::Unsupported(other)),
            }
        };
    }
    typed! {
        Boolean(bool) SByte(i8) Byte(u8) Int16(i16) UInt16(u16) Int32(i32) UInt32(u32) Int64(i64) UInt64(u64)
        Float(f32) Double(f64) String(taktwerk_types::UaString) DateTime(UtcTime) Guid(Guid) ByteString(ByteString)
        XmlElement(XmlElement) NodeId(NodeId) ExpandedNodeId(ExpandedNodeId) StatusCode(StatusCode)
        QualifiedName(QualifiedName) LocalizedText(LocalizedText)
    }
}

/// Parses one scalar.
fn scalar(text: &str, kind: BuiltInType) -> Result<Variant, ParseValueError> {
    let error = |advice| ParseValueError::Scalar { text: text.to_owned(), kind, advice };
    let word = text.trim();
    macro_rules! number {
        ($type:ty) => {
            word.replace('_', "")
                .parse::<$type>()
                .map(Variant::from)
                .map_err(|_| error(concat!("write a whole number that fits ", stringify!($type))))
        };
    }
    match kind {
        BuiltInType::Boolean => match word.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(true.into()),
            "false" | "0" | "off" | "no" => Ok(false.into()),
            _ => Err(error("write true or false")),
        },
        BuiltInType::SByte => number!(i8),
        BuiltInType::Byte => number!(u8),
        BuiltInType::Int16 => number!(i16),
        BuiltInType::UInt16 => number!(u16),
        BuiltInType::Int32 => number!(i32),
        BuiltInType::UInt32 => number!(u32),
        BuiltInType::Int64 => number!(i64),
        BuiltInType::UInt64 => number!(u64),
        BuiltInType::Float => {
            word.parse::<f32>().map(Variant::from).map_err(|_| error("write 3.5, 1e6 or NaN"))
        }
        BuiltInType::Double => {
            word.parse::<f64>().map(Variant::from).map_err(|_| error("write 3.5, 1e6 or NaN"))
        }
        BuiltInType::String => Ok(text.into()),
        BuiltInType::DateTime => {
            UtcTime::parse(word).map(Variant::from).ok_or_else(|| error("write 2024-02-29T12:00:00Z"))
        }
        BuiltInType::Guid => word
            .parse::<Guid>()
            .map(Variant::from)
            .map_err(|_| error("write 72962b91-fa75-4ae6-8d28-b404dc7daf63")),
        BuiltInType::ByteString => bytes(word)
            .map(|bytes| Variant::from(ByteString::from(bytes)))
            .ok_or_else(|| error("write hexadecimal digits after 0x, or Base64")),
        BuiltInType::XmlElement => Ok(Variant::XmlElement(XmlElement::from(text))),
        BuiltInType::NodeId => {
            word.parse::<NodeId>().map(Variant::from).map_err(|_| error("write i=85 or ns=2;s=Name"))
        }
        BuiltInType::ExpandedNodeId => word
            .parse::<ExpandedNodeId>()
            .map(Variant::from)
            .map_err(|_| error("write i=85 or nsu=http://…;s=Name")),
        BuiltInType::StatusCode => {
            status(word).map(Variant::from).ok_or_else(|| error("write BadTimeout or 0x800A0000"))
        }
        BuiltInType::QualifiedName => Ok(QualifiedName::parse(word).into()),
        BuiltInType::LocalizedText => Ok(localized(text).into()),
        BuiltInType::ExtensionObject
        | BuiltInType::DataValue
        | BuiltInType::Variant
        | BuiltInType::DiagnosticInfo => Err(ParseValueError::Unsupported(kind)),
    }
}

fn bytes(word: &str) -> Option<Vec<u8>> {
    word.strip_prefix("0x").map_or_else(|| unbase64(word), hexadecimal::bytes)
}

fn status(word: &str) -> Option<StatusCode> {
    let number = match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    number.map(StatusCode).or_else(|| StatusCode::from_name(word))
}

/// Plain text, or `{"Locale": "en", "Text": "…"}` as in JSON output.
fn localized(text: &str) -> LocalizedText {
    let fields: Option<serde_json::Map<String, serde_json::Value>> =
        text.trim_start().starts_with('{').then(|| serde_json::from_str(text).ok()).flatten();
    let Some(fields) = fields else { return LocalizedText::from_text(text) };
    let field = |name| fields.get(name).and_then(serde_json::Value::as_str);
    LocalizedText { locale: field("Locale").into(), text: field("Text").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str, kind: BuiltInType) -> Variant {
        parse(text, kind, false).unwrap()
    }

    #[test]
    fn scalars_by_type() {
        assert_eq!(ok("1_000", BuiltInType::UInt16), Variant::from(1000u16));
        assert_eq!(ok(" -5 ", BuiltInType::SByte), Variant::from(-5i8));
        assert_eq!(ok("on", BuiltInType::Boolean), Variant::from(true));
        assert_eq!(ok("1e3", BuiltInType::Float), Variant::from(1000f32));
        assert_eq!(ok(" x ", BuiltInType::String), Variant::from(" x "));
        assert_eq!(ok("0x01ff", BuiltInType::ByteString), Variant::from(ByteString::from(vec![1u8, 255])));
        assert_eq!(ok("AQID", BuiltInType::ByteString), Variant::from(ByteString::from(vec![1u8, 2, 3])));
        assert_eq!(ok("Bad_Timeout", BuiltInType::StatusCode), Variant::from(StatusCode::BAD_TIMEOUT));
        assert_eq!(ok("0x40920000", BuiltInType::StatusCode), Variant::from(StatusCode(0x4092_0000)));
        assert_eq!(ok("2:a", BuiltInType::QualifiedName), Variant::from(QualifiedName::new(2, "a")));
        assert_eq!(
            ok(r#"{"Locale":"de","Text":"warm"}"#, BuiltInType::LocalizedText),
            Variant::from(LocalizedText::new("de", "warm"))
        );
        let error = parse("300", BuiltInType::Byte, false).unwrap_err().to_string();
        assert!(error.contains("\"300\" is no Byte") && error.contains("u8"), "{error}");
        assert!(parse("x", BuiltInType::Variant, false).is_err());
    }

    #[test]
    fn arrays_and_matrices() {
        assert_eq!(ok("[1, 2,3]", BuiltInType::Int32), Variant::from(vec![1i32, 2, 3]));
        assert_eq!(ok("[]", BuiltInType::Double), Variant::from(Vec::<f64>::new()));
        assert_eq!(
            ok(r#"[a b, "c, d]", "\"e\""]"#, BuiltInType::String),
            Variant::from(vec!["a b".into(), "c, d]".into(), taktwerk_types::UaString::from("\"e\"")])
        );
        assert_eq!(
            ok("[[1, 2, 3], [4, 5, 6]]", BuiltInType::Double),
            Variant::matrix(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], vec![2, 3]).unwrap()
        );
        for bad in ["[1", "[1,,2]", "[1] 2", "[[1], [2, 3]]", "[1, [2]]", "[[1], 2]", "[\"a]", "[1 2]"] {
            assert!(parse(bad, BuiltInType::Int32, false).is_err(), "{bad}");
        }
        assert_eq!(parse("[x]", BuiltInType::String, true), Ok(Variant::from("[x]")));
    }
}
