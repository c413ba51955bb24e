//! The status codes: constants and a table sorted by code.

use super::names::constant;
use crate::Failure;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Writes the constants and the table from the published list.
pub(crate) fn generate(published: &str) -> Result<String, Failure> {
    let codes = parse(published)?;
    let mut text = String::from("use super::StatusCode;\n\nimpl StatusCode {\n");
    for (code, (name, description)) in &codes {
        let _ = writeln!(text, "/// {description}");
        let _ = writeln!(text, "pub const {}: Self = Self({});", constant(name), hex(*code));
    }
    text.push_str("}\n\n/// Code, name and description, sorted by code.\n");
    text.push_str("pub(super) static TABLE: &[(u32, &str, &str)] = &[\n");
    for (code, (name, description)) in &codes {
        let _ = writeln!(text, "({}, {name:?}, {description:?}),", hex(*code));
    }
    text.push_str("];\n");
    Ok(text)
}

fn hex(code: u32) -> String {
    format!("0x{:04X}_{:04X}", code >> 16, code & 0xffff)
}

/// Parses entries such as `name: "Good", value: 0x0, description: "…"`.
fn parse(published: &str) -> Result<BTreeMap<u32, (String, String)>, Failure> {
    let mut codes = BTreeMap::new();
    for entry in published.split("new ConstantStatusCode(").skip(1) {
        let (Some(name), Some(value), Some(description)) =
            (quoted(entry, "name:"), number(entry), quoted(entry, "description:"))
        else {
            let start: String = entry.chars().take(80).collect();
            return Err(format!("status code list: cannot read {start:?}; its format has changed"));
        };
        if let Some((other, _)) = codes.insert(value, (name.clone(), description)) {
            return Err(format!("status code list: {name} and {other} have the same code"));
        }
    }
    if codes.len() < 200 {
        return Err(format!("status code list: only {} codes found; its format has changed", codes.len()));
    }
    Ok(codes)
}

fn quoted(entry: &str, key: &str) -> Option<String> {
    let (_, rest) = entry.split_once(key)?;
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let mut text = String::new();
    let mut characters = rest.chars().skip(1);
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            _ if character == quote => return Some(text),
            _ => text.push(character),
        }
    }
    None
}

fn number(entry: &str) -> Option<u32> {
    let (_, rest) = entry.split_once("value:")?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_alphanumeric).collect();
    match digits.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read() {
        let entry = r#"{ name: "BadX", value: 0x80010000, description: "A \"bad\" thing." });"#;
        assert_eq!(quoted(entry, "name:").as_deref(), Some("BadX"));
        assert_eq!(number(entry), Some(0x8001_0000));
        assert_eq!(quoted(entry, "description:").as_deref(), Some("A \"bad\" thing."));
        assert!(parse("nothing here").is_err());
    }
}
