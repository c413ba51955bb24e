//! Finds the positions of keys in a text.

use core::ops::Range;
use toml::de::{DeTable, DeValue};

/// The position of a key, or of the nearest table around it that the text has. Keys of a list of tables have the number of
/// the entry: `client.0.name`. `None` if the text has none of them.
///
/// ```
/// let text = "name = \"a\"\n[link]\nrate = 5\n";
/// assert_eq!(taktwerk_explain::key_span(text, "link.rate"), Some(18..22));
/// assert_eq!(taktwerk_explain::key_span(text, "link.delay"), Some(12..16));
/// assert_eq!(taktwerk_explain::key_span(text, "fault.0.kind"), None);
/// ```
#[must_use]
pub fn key_span(text: &str, key: &str) -> Option<Range<usize>> {
    let root = DeTable::parse(text).ok()?;
    let mut path: Vec<&str> = key.split('.').collect();
    while !path.is_empty() {
        if let Some(span) = exact(root.get_ref(), &path) {
            return Some(span);
        }
        path.pop();
    }
    None
}

fn exact(root: &DeTable<'_>, path: &[&str]) -> Option<Range<usize>> {
    let (last, parents) = path.split_last()?;
    let mut table = root;
    let mut parents = parents.iter();
    while let Some(name) = parents.next() {
        table = match table.get(*name)?.get_ref() {
            DeValue::Table(table) => table,
            DeValue::Array(array) => {
                let index: usize = parents.next().copied().unwrap_or(last).parse().ok()?;
                let entry = array.get(index)?;
                match entry.get_ref() {
                    DeValue::Table(table) => table,
                    _ => return Some(entry.span()),
                }
            }
            _ => return None,
        };
    }
    let (key, _) = table.get_key_value(*last)?;
    Some(key.span())
}
