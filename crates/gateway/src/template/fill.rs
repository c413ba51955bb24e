//! Replaces placeholders in the texts of a template.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The parameters of an instance, by name.
pub(super) type Values<'a> = BTreeMap<&'a str, &'a str>;

/// The text with its placeholders replaced.
pub(super) fn fill(text: &str, values: &Values<'_>) -> String {
    let mut filled = String::with_capacity(text.len());
    pieces(text, values, &mut |piece| {
        filled.push_str(piece);
        true
    });
    filled
}

/// The length of the expanded text; `None` if it exceeds `max`.
pub(super) fn filled_len(text: &str, values: &Values<'_>, max: usize) -> Option<usize> {
    let mut len = 0usize;
    pieces(text, values, &mut |piece| {
        len = len.saturating_add(piece.len());
        len <= max
    });
    (len <= max).then_some(len)
}

/// Passes the pieces of the expanded text to `take` until it returns false. Each character is examined at most twice, because a
/// text may consist of braces.
fn pieces(text: &str, values: &Values<'_>, take: &mut dyn FnMut(&str) -> bool) {
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        if !take(before) {
            return;
        }
        // Names of parameters contain no braces.
        let end = behind.find(['{', '}']).and_then(|end| behind.split_at_checked(end));
        let placeholder = end.and_then(|(inner, after)| Some((inner, after.strip_prefix('}')?)));
        let (piece, after) = match placeholder.and_then(|(inner, after)| Some((value(inner, values)?, after)))
        {
            Some(found) => found,
            None => (Cow::Borrowed("{"), behind),
        };
        if !take(&piece) {
            return;
        }
        rest = after;
    }
    take(rest);
}

/// The value of `base`, `base + 3` or `base - 1`; `None` if it is not a parameter.
fn value<'a>(inner: &str, values: &Values<'a>) -> Option<Cow<'a, str>> {
    if let Some(value) = values.get(inner.trim()) {
        return Some(Cow::Borrowed(value));
    }
    let at = inner.find(['+', '-'])?;
    let (name, distance) = inner.split_at(at);
    let (sign, distance) = distance.split_at(1);
    let distance: i64 = distance.trim().parse().ok()?;
    let base: i64 = values.get(name.trim())?.trim().parse().ok()?;
    let sum = if sign == "+" { base.checked_add(distance)? } else { base.checked_sub(distance)? };
    Some(Cow::Owned(sum.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        let values = Values::from([("base", "100"), ("unit", "m")]);
        for (text, filled) in [
            ("holding:{base}", "holding:100"),
            ("{base + 3}{base - 1}{ unit }", "10399m"),
            ("{other} {base", "{other} {base"),
            ("{{base}}", "{100}"),
            ("{a{base}", "{a100"),
            ("}{base}{", "}100{"),
            ("{unit + 1}", "{unit + 1}"),
        ] {
            assert_eq!(fill(text, &values), filled, "{text}");
            assert_eq!(filled_len(text, &values, filled.len()), Some(filled.len()), "{text}");
            assert_eq!(filled_len(text, &values, filled.len() - 1), None, "{text}");
        }
    }
}
