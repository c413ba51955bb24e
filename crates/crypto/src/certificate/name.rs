//! Distinguished names as text, for logs and display. Decisions compare the DER bytes, never the text.

use super::reader::{Items, Malformed};
use der::Tag;
use der::asn1::ObjectIdentifier;

/// Maximum number of parts; real names have fewer.
const PARTS_MAX: usize = 64;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");

/// The usual short names of attributes (RFC 4514 §3 and common use).
const SHORT_NAMES: [(ObjectIdentifier, &str); 9] = [
    (COMMON_NAME, "CN"),
    (ObjectIdentifier::new_unwrap("2.5.4.6"), "C"),
    (ObjectIdentifier::new_unwrap("2.5.4.7"), "L"),
    (ObjectIdentifier::new_unwrap("2.5.4.8"), "ST"),
    (ORGANIZATION, "O"),
    (ObjectIdentifier::new_unwrap("2.5.4.11"), "OU"),
    (ObjectIdentifier::new_unwrap("2.5.4.5"), "serialNumber"),
    (ObjectIdentifier::new_unwrap("0.9.2342.19200300.100.1.25"), "DC"),
    (ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.1"), "emailAddress"),
];

/// Calls `each` for every attribute of the name in `bytes` (the content of its SEQUENCE).
fn attributes<'a>(
    bytes: &'a [u8],
    base: usize,
    mut each: impl FnMut(ObjectIdentifier, Tag, &'a [u8]),
) -> Result<(), Malformed> {
    const WHAT: &str = "name";
    let mut sets = Items::new(bytes, base, WHAT)?;
    let mut parts = 0;
    while !sets.is_finished() {
        let set = sets.tagged(Tag::Set, WHAT)?;
        let mut pairs = set.items(WHAT)?;
        while !pairs.is_finished() {
            let mut pair = pairs.tagged(Tag::Sequence, WHAT)?.items(WHAT)?;
            let name = pair.tagged(Tag::ObjectIdentifier, WHAT)?.oid(WHAT)?;
            let value = pair.next(WHAT)?;
            pair.finish(WHAT)?;
            parts += 1;
            if parts > PARTS_MAX || value.tag.is_constructed() {
                return Err(Malformed { what: WHAT, at: set.at });
            }
            each(name, value.tag, value.value);
        }
    }
    Ok(())
}

/// Checks that the content of a SEQUENCE is a name.
pub(super) fn check(bytes: &[u8], base: usize) -> Result<(), Malformed> {
    attributes(bytes, base, |_, _, _| {})
}

/// A name (with its tag) as text: `CN=Boiler, O=Plant`. Characters unsafe for terminals are escaped.
pub(super) fn text(name: &[u8]) -> String {
    let mut out = String::new();
    let Some(bytes) = content(name) else { return out };
    // The name was parsed before, so this cannot fail; a failure would only shorten the text.
    let _ = attributes(bytes, 0, |name, tag, value| {
        if !out.is_empty() {
            out.push_str(", ");
        }
        match SHORT_NAMES.iter().find(|known| known.0 == name) {
            Some((_, short)) => out.push_str(short),
            None => out.push_str(&name.to_string()),
        }
        out.push('=');
        push_escaped(&mut out, &decoded(tag, value));
    });
    out
}

/// The first common name of a name (with its tag), escaped.
pub(super) fn common_name(name: &[u8]) -> Option<String> {
    first(name, COMMON_NAME)
}

/// The first organization of a name (with its tag), escaped.
pub(super) fn organization(name: &[u8]) -> Option<String> {
    first(name, ORGANIZATION)
}

fn first(name: &[u8], wanted: ObjectIdentifier) -> Option<String> {
    let mut found = None;
    let _ = attributes(content(name)?, 0, |attribute, tag, value| {
        if attribute == wanted && found.is_none() {
            let mut out = String::new();
            push_escaped(&mut out, &decoded(tag, value));
            found = Some(out);
        }
    });
    found
}

/// The attributes that Part 18 §4.4.3 compares, in its order.
const CRITERIA: [(ObjectIdentifier, &str); 9] = [
    (COMMON_NAME, "CN"),
    (ORGANIZATION, "O"),
    (ObjectIdentifier::new_unwrap("2.5.4.11"), "OU"),
    (ObjectIdentifier::new_unwrap("0.9.2342.19200300.100.1.25"), "DC"),
    (ObjectIdentifier::new_unwrap("2.5.4.7"), "L"),
    (ObjectIdentifier::new_unwrap("2.5.4.8"), "S"),
    (ObjectIdentifier::new_unwrap("2.5.4.6"), "C"),
    (ObjectIdentifier::new_unwrap("2.5.4.46"), "dnQualifier"),
    (ObjectIdentifier::new_unwrap("2.5.4.5"), "serialNumber"),
];

/// A name (with its tag) in the format of X509Subject criteria: `CN="…"/O="…"` (Part 18 §4.4.3). `None` if a value
/// contains a quotation mark, because the text could equal that of another name.
pub(super) fn criteria(name: &[u8]) -> Option<String> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_plain = true;
    attributes(content(name)?, 0, |name, tag, value| {
        if let Some(place) = CRITERIA.iter().position(|known| known.0 == name) {
            let value = decoded(tag, value);
            is_plain &= !value.contains('"');
            found.push((place, value));
        }
    })
    .ok()?;
    // A stable sort keeps several attributes of a kind in the certificate's order.
    found.sort_by_key(|(place, _)| *place);
    let parts = found.iter().filter_map(|(place, value)| {
        let (_, short) = CRITERIA.get(*place)?;
        Some(format!("{short}=\"{value}\""))
    });
    is_plain.then(|| parts.collect::<Vec<_>>().join("/"))
}

fn content(name: &[u8]) -> Option<&[u8]> {
    super::reader::Item::only(name, "name").ok().map(|item| item.value)
}

fn decoded(tag: Tag, value: &[u8]) -> String {
    match tag {
        Tag::BmpString => {
            let units = value.chunks_exact(2).map(|pair| match pair {
                [high, low] => u16::from_be_bytes([*high, *low]),
                _ => 0,
            });
            char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        Tag::TeletexString => value.iter().map(|byte| char::from(*byte)).collect(),
        _ => String::from_utf8_lossy(value).into_owned(),
    }
}

/// Appends untrusted text: escapes line breaks and direction changes, and limits the length.
pub(super) fn push_escaped(out: &mut String, text: &str) {
    const CHARS_MAX: usize = 200;
    for (count, c) in text.chars().enumerate() {
        if count == CHARS_MAX {
            out.push('…');
            break;
        }
        let reorders =
            matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match c {
            ',' | '=' | '\\' | '"' => out.extend(['\\', c]),
            c if c.is_control() || reorders => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::der::Encode;
    use ::der::asn1::Utf8StringRef;

    /// A name of one attribute per set.
    fn name(parts: &[(&str, &str)]) -> Vec<u8> {
        let item = |tag: u8, content: &[u8]| {
            let length = u8::try_from(content.len()).unwrap();
            let mut out = if length < 0x80 { vec![tag, length] } else { vec![tag, 0x81, length] };
            out.extend_from_slice(content);
            out
        };
        let mut sets = Vec::new();
        for (oid, value) in parts {
            let mut pair = ObjectIdentifier::new_unwrap(oid).to_der().unwrap();
            pair.extend(Utf8StringRef::new(value).unwrap().to_der().unwrap());
            sets.extend(item(0x31, &item(0x30, &pair)));
        }
        item(0x30, &sets)
    }

    #[test]
    fn criteria_have_the_order_of_the_specification() {
        let mixed = [
            ("2.5.4.6", "DE"),
            ("2.5.4.11", "Shift 1"),
            ("2.5.4.10", "Example"),
            ("1.2.840.113549.1.9.1", "olaf@example.com"),
            ("2.5.4.11", "Shift 2"),
            ("2.5.4.3", "Olaf, the \\ \u{201c}one\u{201d}"),
        ];
        let expected =
            "CN=\"Olaf, the \\ \u{201c}one\u{201d}\"/O=\"Example\"/OU=\"Shift 1\"/OU=\"Shift 2\"/C=\"DE\"";
        assert_eq!(criteria(&name(&mixed)).as_deref(), Some(expected));
        assert_eq!(criteria(&name(&[])).as_deref(), Some(""));
    }

    #[test]
    fn values_with_quotation_marks_have_no_criteria() {
        assert_eq!(criteria(&name(&[("2.5.4.3", "olaf\"/O=\"Example")])), None);
        assert_eq!(criteria(&[0x30, 0x05, 0x31]), None);
    }
}
