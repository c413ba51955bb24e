//! Escaping of text from servers and files. Escape sequences could clear the screen, set the title or hide a line;
//! bidirectional marks could reverse a name.

use std::borrow::Cow;
use std::fmt::Write;

/// The colours of this program.
const OWN: [&str; 3] = ["\u{1b}[31m", "\u{1b}[2m", "\u{1b}[0m"];

/// Whether a terminal interprets the character instead of displaying it. Line breaks and tabs are allowed, because
/// tables need them.
fn is_control(char: char) -> bool {
    let is_direction = matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_direction || (char.is_control() && !matches!(char, '\n' | '\t'))
}

/// Text for display, with control characters escaped. This program's own colours are kept.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    escaped(text, &OWN, |shown, char| shown.extend(char.escape_unicode()))
}

/// An equivalent JSON document, with control characters as JSON escapes.
pub(super) fn json(document: &str) -> Cow<'_, str> {
    escaped(document, &[], |shown, char| {
        // All of them have four digits. Writing to a `String` does not fail.
        let _ = write!(shown, "\\u{:04x}", u32::from(char));
    })
}

/// A name or value within a line. Line breaks are escaped, because they would look like another row.
pub(crate) fn in_line(text: &str) -> Cow<'_, str> {
    if !text.contains(|char: char| char.is_control()) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        if char.is_control() { shown.extend(char.escape_debug()) } else { shown.push(char) }
    }
    Cow::Owned(shown)
}

fn escaped<'a>(text: &'a str, own: &[&str], escape: impl Fn(&mut String, char)) -> Cow<'a, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len() + 16), text);
    while let Some(at) = rest.find(is_control) {
        let (before, after) = rest.split_at(at);
        shown.push_str(before);
        if let Some((own, behind)) = own.iter().find_map(|own| Some((own, after.strip_prefix(own)?))) {
            shown.push_str(own);
            rest = behind;
            continue;
        }
        let mut chars = after.chars();
        if let Some(char) = chars.next() {
            escape(&mut shown, char);
        }
        rest = chars.as_str();
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}]0;pwned\u{7}\u{1b}[2J\u{9b}2J\u{202e}drow\r\0\u{7f}";

    #[test]
    fn server_text_cannot_control_the_terminal() {
        let shown = text(HOSTILE);
        assert!(!shown.contains(is_control), "{shown:?}");
        assert_eq!(text("b\u{1b}[2Jc"), "b\\u{1b}[2Jc");
        assert!(matches!(text("Überdruck\tµ\n三\n"), Cow::Borrowed(_)));
        // Only complete sequences of this program's colours are kept.
        assert_eq!(text("\u{1b}[2mfaint\u{1b}[0m"), "\u{1b}[2mfaint\u{1b}[0m");
        assert_eq!(text("\u{1b}[8mhidden\u{1b}[0m"), "\\u{1b}[8mhidden\u{1b}[0m");
        assert_eq!(text("\u{1b}"), "\\u{1b}");
    }

    #[test]
    fn escaped_documents_are_equivalent() {
        let document = serde_json::json!({ "name": HOSTILE, "text": "Überdruck\n" });
        let shown = format!("{document:#}");
        let shown = json(&shown);
        assert!(!shown.contains(is_control), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), document);
    }

    #[test]
    fn names_stay_in_one_line() {
        assert_eq!(in_line("a\r\n  └ Admin\tb"), "a\\r\\n  └ Admin\\tb");
        assert!(matches!(in_line("Füllstand"), Cow::Borrowed(_)));
    }
}
