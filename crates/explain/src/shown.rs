//! Prepares text from a file for messages. It may be of any length and contain control characters for the terminal.

use std::borrow::Cow;

/// Longest name or value in a message, in characters.
const NAME_MAX: usize = 100;
/// Longest message, in characters: the longest lists of keys fit.
const MESSAGE_MAX: usize = 2_000;

/// A name or value of a file for a message: cut at about 100 characters, control characters escaped.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    limited(text, NAME_MAX)
}

/// A message that may repeat text that [`shown`] has not processed.
pub(crate) fn message(text: String) -> String {
    match limited(&text, MESSAGE_MAX) {
        Cow::Borrowed(_) => text,
        Cow::Owned(limited) => limited,
    }
}

fn limited(text: &str, max: usize) -> Cow<'_, str> {
    let end = text.char_indices().nth(max).map(|(at, _)| at);
    let kept = end.and_then(|end| text.get(..end)).unwrap_or(text);
    if end.is_none() && !kept.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(kept.len() + 4);
    for char in kept.chars() {
        if char.is_control() { shown.extend(char.escape_debug()) } else { shown.push(char) }
    }
    if end.is_some() {
        shown.push('…');
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use crate::Mistake;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        Cut,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)] // read by serde only
    struct Plant {
        name: String,
        kind: Option<Kind>,
        rate: Option<f64>,
        more: Option<std::collections::BTreeMap<String, f64>>,
    }

    fn told(text: &str) -> String {
        let error = toml::from_str::<Plant>(text).map(drop).unwrap_err();
        Mistake::of(&error, Some(text)).within(&"p.toml")
    }

    #[test]
    fn long_keys_and_values_are_cut_in_messages() {
        let long = "ü".repeat(400_000);
        for text in [
            format!("\"{long}\" = 1\n"),
            format!("\"{long} \\u0000\" = 1\n"),
            format!("name = \"a\"\nkind = \"{long}\"\n"),
            format!("name = \"a\"\nrate = \"{long}\"\n"),
            format!("name = \"a\"\n[more]\n\"{long}\" = \"x\"\n"),
            format!("name = \"a\"\n{long}\n"),
            format!("name = \"a\"\nx = {long}\n"),
        ] {
            let told = told(&text);
            let head: String = text.chars().take(40).collect();
            assert!(told.chars().count() < 500, "{head}: {} characters", told.chars().count());
        }
        let said = told(&format!("\"{long}\" = 1\n"));
        let expected = format!("p.toml:1: unknown field `{}…`, expected one of ", "ü".repeat(100));
        assert!(said.starts_with(&expected), "{said}");
    }

    #[test]
    fn control_characters_are_escaped_in_messages() {
        let said = told("\"na\\u0000m\\u001b[2J\" = 1\n");
        assert!(said.starts_with("p.toml:1: unknown field `na\\0m\\u{1b}[2J`"), "{said:?}");
        for text in
            ["name = \"a\"\nkind = \"c\\u0000\"\n", "name = \"a\"\nrate = \"c\\u0007\"\n", "na\0me = 1\n"]
        {
            let said = told(text);
            assert!(!said.contains(char::is_control), "{said:?}");
        }
    }
}
