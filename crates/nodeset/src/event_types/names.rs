//! Rust names for names of the specification.

use super::EventTypesError;
use super::fields::Field;

/// Keywords that can be written as `r#type`.
const KEYWORDS: [&str; 45] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait",
    "true", "try", "type", "typeof", "unsafe", "use", "where", "while",
];
/// Names that fields cannot have: keywords that cannot be raw, and the field that every struct has.
const TAKEN: [&str; 6] = ["self", "super", "crate", "base", "virtual", "yield"];

/// Splits `InputArguments` into `input` and `arguments`. Digits belong to the word before them.
pub(super) fn words(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, &character) in characters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| characters.get(before)).copied().unwrap_or(' ');
        let next = characters.get(at + 1).copied().unwrap_or(' ');
        let starts = character.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || before.is_ascii_uppercase() && next.is_ascii_lowercase());
        if starts || !character.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character.is_ascii_alphanumeric()) {
            word.push(character.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A field name from its words.
pub(super) fn field(name: &str) -> String {
    match name {
        "" => "field".to_owned(),
        name if KEYWORDS.contains(&name) => format!("r#{name}"),
        name if TAKEN.contains(&name) => format!("{name}_"),
        name if name.starts_with(|first: char| first.is_ascii_digit()) => format!("_{name}"),
        name => name.to_owned(),
    }
}

/// `PumpStoppedEventType` as `PumpStoppedEvent`.
pub(super) fn of_type(name: &str) -> String {
    let name = name.strip_suffix("Type").filter(|name| !name.is_empty()).unwrap_or(name);
    let mut name: String =
        name.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '_' }).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name.insert(0, 'T');
    }
    let (first, rest) = name.split_at(1);
    format!("{}{rest}", first.to_ascii_uppercase())
}

/// Checks that all fields have different names.
pub(super) fn check_fields(fields: &[Field]) -> Result<(), EventTypesError> {
    for (at, one) in fields.iter().enumerate() {
        if let Some(other) = fields.iter().skip(at + 1).find(|other| other.name == one.name) {
            let path = |field: &Field| {
                field.path.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join("/")
            };
            let (name, one, other) = (one.name.clone(), path(one), path(other));
            return Err(EventTypesError::SameName { name, one, other });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_rust_names() {
        assert_eq!(words("InputArguments").join("_"), "input_arguments");
        assert_eq!(words("URLOfServer2nd").join("_"), "url_of_server2nd");
        assert_eq!(words("<Pump> no. 7").join("_"), "pump_no_7");
        assert_eq!(
            ["type", "self", "2nd", "", "base", "value"].map(field),
            ["r#type", "self_", "_2nd", "field", "base_", "value"]
        );
        assert_eq!(
            ["PumpEventType", "Type", "pump stopped", "2nd"].map(of_type),
            ["PumpEvent", "Type", "Pump_stopped", "T2nd"]
        );
    }
}
