//! Writes the source.

use super::fields::{self, Field};
use super::model::{Entry, Id, Model};
use super::{EventTypesError, names, text_of};
use core::fmt::Write as _;

/// Maximum length of a comment line.
const LINE_MAX: usize = 110;

/// The declarations of types, ordered by name.
pub(super) fn source(model: &Model, ids: &[Id]) -> Result<String, EventTypesError> {
    let mut types = Vec::new();
    for id in ids {
        let entry = model.get(id, "an event type")?;
        let name = names::of_type(entry.symbolic_name.as_deref().unwrap_or(&entry.name.1));
        types.push((name, id, entry));
    }
    types.sort_by(|one, other| one.0.cmp(&other.0));
    for pair in types.windows(2) {
        if let [(name, _, one), (other_name, _, other)] = pair
            && name == other_name
        {
            let (one, other) = (one.name.1.clone(), other.name.1.clone());
            return Err(EventTypesError::SameName { name: name.clone(), one, other });
        }
    }
    let mut text = String::new();
    for (name, id, entry) in types {
        declaration(&mut text, &name, id, entry, &fields::of(model, id)?);
    }
    Ok(text)
}

fn declaration(text: &mut String, name: &str, id: &Id, entry: &Entry, fields: &[Field]) {
    let (uri, id) = (&id.uri, text_of(&id.identifier));
    // Writing to a String cannot fail.
    let _ = writeln!(text, "taktwerk::event_type! {{");
    let _ = writeln!(text, "    /// Events of the type `{}`.", entry.name.1.replace('`', "'"));
    comment(text, entry.description.as_deref(), "    ", true);
    let _ = writeln!(text, "    pub struct {name} is ({uri:?}, {id:?}) {{");
    for field in fields {
        let names: Vec<&str> = field.path.iter().map(|(_, name)| name.as_str()).collect();
        match &field.description {
            Some(_) => comment(text, field.description.as_deref(), "        ", false),
            None => comment(text, Some(&format!("`{}`.", names.join("/"))), "        ", false),
        }
        let path: Vec<String> = field.path.iter().map(|part| format!("{part:?}")).collect();
        let _ = writeln!(text, "        pub {}: {} = [{}],", field.name, field.value, path.join(", "));
    }
    text.push_str("    }\n}\n\n");
}

/// A description as a comment. The text is untrusted: brackets are escaped, so that there are no links and no code.
fn comment(text: &mut String, description: Option<&str>, indent: &str, is_more: bool) {
    let Some(description) = description else { return };
    if is_more {
        let _ = writeln!(text, "{indent}///");
    }
    let mut line = String::new();
    let escape = |word: &str| word.replace('[', "\\[").replace(']', "\\]").replace('<', "\\<");
    for word in description.split_whitespace().map(escape) {
        if !line.is_empty() && indent.len() + line.chars().count() + word.chars().count() > LINE_MAX {
            let _ = writeln!(text, "{indent}/// {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    let _ = writeln!(text, "{indent}/// {line}");
}
