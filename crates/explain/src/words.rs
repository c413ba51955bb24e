//! Explains values of the wrong type, unknown keys and unknown words.

use crate::{nearest, shown};

/// How messages about missing keys begin.
pub(crate) const MISSING: &str = "missing field";

/// Returns the problem and how to correct it; the second is empty if that is obvious.
pub(crate) fn explain(error: &toml::de::Error) -> (String, String) {
    let message = without_long_name(error.message().lines().collect::<Vec<_>>().join(" "));
    let key = shown(&key_of(error)).into_owned();
    let at = |problem: String| match key.is_empty() {
        true => problem,
        false => format!("{key}: {problem}"),
    };
    // A type with several forms describes itself.
    if let Some(wanted) = message.strip_prefix("expected ").filter(|_| !key.is_empty()) {
        return (at("this has another type".to_owned()), format!("write {wanted}"));
    }
    if message.starts_with("data did not match any variant") {
        return (at("this has another type".to_owned()), String::new());
    }
    if message == "wanted string or table" {
        return (
            at("this has another type".to_owned()),
            "write one of its words in quotation marks".to_owned(),
        );
    }
    if let Some((problem, hint)) = misspelt(&message) {
        return (problem, hint);
    }
    if let Some((problem, hint)) = unknown_word(&message) {
        return (at(problem), hint);
    }
    let is_value = message.starts_with("invalid value: ");
    let told = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    let Some((found, wanted)) = told.and_then(|told| told.rsplit_once(", expected ")) else {
        // The message already names the unknown or missing key.
        return match message.starts_with(MISSING) {
            // A table of the file may have a key of the same name.
            true if key.is_empty() => (format!("{message} at the top level of the file"), String::new()),
            true => (at(message), String::new()),
            false => (message, String::new()),
        };
    };
    let found = found.replace('`', "");
    let problem = match found.split_once(' ').unwrap_or((&found, "")) {
        ("string", text) => format!("this is the text {}", text_shown(text)),
        ("integer", number) if is_value => format!("{number} does not fit"),
        ("integer", number) => format!("this is the whole number {number}"),
        ("floating", rest) => format!("this is the number {}", rest.trim_start_matches("point ")),
        ("boolean", flag) => format!("this is {flag}"),
        ("map", _) => "this is a table".to_owned(),
        ("sequence", _) => "this is a list".to_owned(),
        _ => format!("this is {found}"),
    };
    (at(problem), format!("write {}", wanted_as(wanted)))
}

/// For a key or a table that the text has twice. The message does not name it, but its place is known.
pub(crate) fn repeated(error: &toml::de::Error, text: Option<&str>) -> Option<(String, String)> {
    let span = error.span().filter(|_| error.message() == "duplicate key")?;
    let key = shown(text?.get(span)?).into_owned();
    let hint = "write each key and each [table] once: remove one, or merge them".to_owned();
    Some((format!("`{key}` is there a second time"), hint))
}

/// Shortens the key or word at the start of the message; the list of allowed names behind it stays.
fn without_long_name(message: String) -> String {
    for head in ["unknown field `", "unknown variant `", "duplicate field `"] {
        let Some(rest) = message.strip_prefix(head) else { continue };
        // Search from the end: the name itself may contain such a text.
        let end =
            rest.rfind("`, expected ").or_else(|| rest.rfind("`, there are no ")).or_else(|| rest.rfind('`'));
        let Some((name, behind)) = end.and_then(|end| rest.split_at_checked(end)) else { continue };
        return format!("{head}{}{behind}", shown(name));
    }
    message
}

/// A text in quotation marks; both marks stay if it is cut.
fn text_shown(quoted: &str) -> String {
    match quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) => format!("\"{}\"", shown(text)),
        None => shown(quoted).into_owned(),
    }
}

/// For an unknown key: suggests the closest key instead of listing all.
fn misspelt(message: &str) -> Option<(String, String)> {
    let (unknown, expected) = message.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    let near = nearest(unknown, quoted(expected))?;
    Some((format!("unknown field `{unknown}`"), format!("did you mean `{near}`?")))
}

/// For an unknown word: suggests the closest word and lists all.
fn unknown_word(message: &str) -> Option<(String, String)> {
    let (unknown, expected) = message.strip_prefix("unknown variant `")?.split_once("`, expected ")?;
    let all: Vec<&str> = quoted(expected).collect();
    // The name is already escaped.
    Some((format!("there is no \"{unknown}\""), instead(unknown, &all)))
}

/// A hint for an unknown word: the closest word, then all words.
#[must_use]
pub fn instead(unknown: &str, words: &[&str]) -> String {
    let near = nearest(unknown, words.iter().copied()).map(|near| format!("did you mean {near:?}? "));
    format!("{}write {}", near.unwrap_or_default(), either(words))
}

/// The names between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// `"a", "b" or "c"`.
fn either(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// The path of the value: `limits.sessions`.
fn key_of(error: &toml::de::Error) -> String {
    let mut error = error.clone();
    // Without its input the error displays the key instead of the line.
    error.set_input(None);
    let told = error.to_string();
    let key = told.lines().rev().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    key.unwrap_or_default().to_owned()
}

/// The name of a Rust type in plain words.
fn wanted_as(wanted: &str) -> String {
    let most = match wanted {
        "u8" => Some(u64::from(u8::MAX)),
        "u16" => Some(u64::from(u16::MAX)),
        "u32" => Some(u64::from(u32::MAX)),
        _ => None,
    };
    if let Some(most) = most {
        return format!("a whole number from 0 to {most}");
    }
    match wanted {
        "u64" | "usize" | "nonzero u32" | "a nonzero usize" => "a whole number from 0 on".to_owned(),
        "i8" | "i16" | "i32" | "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list in brackets".to_owned(),
        "a string" | "path string" | "a borrowed string" | "a character" => {
            "a text in quotation marks".to_owned()
        }
        "a map" => "a table".to_owned(),
        _ if wanted.starts_with("struct ") => "a table".to_owned(),
        // An enumeration of words.
        _ if wanted.starts_with("enum ") => "one of its words in quotation marks".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Mistake, OneOrMany};
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        Cut,
        SlowReader,
        Storm,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)] // read by serde only
    struct Fault {
        at: String,
        kind: OneOrMany<Kind>,
        #[serde(default)]
        rate: Option<OneOrMany<f64>>,
        #[serde(default)]
        count: Option<OneOrMany<u32>>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Plant {
        fault: Vec<Fault>,
    }

    fn told(text: &str) -> String {
        let error = toml::from_str::<Plant>(text).map(drop).unwrap_err();
        Mistake::of(&error, Some(text)).within(&"p.toml")
    }

    #[test]
    fn an_unknown_word_is_reported_with_its_key_and_the_allowed_words() {
        let all = "write \"cut\", \"slow-reader\" or \"storm\"";
        let base = "[[fault]]\nat = \"1s\"\n";
        assert_eq!(
            told(&format!("{base}kind = \"cutt\"\n")),
            format!("p.toml:3: fault.kind: there is no \"cutt\"; did you mean \"cut\"? {all}")
        );
        assert_eq!(
            told(&format!("{base}kind = \"meteorite\"\n")),
            format!("p.toml:3: fault.kind: there is no \"meteorite\"; {all}")
        );
        let in_list = told(&format!("{base}kind = [\"cut\", \"slow_reader\"]\n"));
        assert!(
            in_list.starts_with("p.toml:3: ") && in_list.contains("did you mean \"slow-reader\"?"),
            "{in_list}"
        );
        let number = told(&format!("{base}kind = 3\n"));
        assert!(number.starts_with("p.toml:3: ") && number.contains("kind: this is"), "{number}");
    }

    #[test]
    fn a_repeated_key_is_reported_with_its_name_and_line() {
        let base = "[[fault]]\nat = \"1s\"\nkind = \"cut\"\n";
        for (text, line, key) in [
            ("kind = \"cut\"\n", 4, "kind"),
            ("\"kind\" = 1\n", 4, "\"kind\""),
            ("[x]\na = 1\n\n[x]\nb = 1\n", 7, "x"),
            ("[x.y]\n[x.y]\n", 5, "y"),
            ("x = { a = 1, a = 2 }\n", 4, "a"),
        ] {
            let told = told(&format!("{base}{text}"));
            assert!(told.starts_with(&format!("p.toml:{line}: `{key}` is there a second time; ")), "{told}");
        }
    }

    #[test]
    fn values_and_lists_of_the_wrong_type_are_reported() {
        let base = "[[fault]]\nat = \"1s\"\nkind = \"cut\"\n";
        for (text, expected) in [
            ("rate = \"5\"", "p.toml:4: fault.rate: this is the text \"5\"; write a number"),
            (
                "count = -1",
                "p.toml:4: fault.count: -1 does not fit; write a whole number from 0 to 4294967295",
            ),
            ("count = 1.5", "p.toml:4: fault.count: this is the number 1.5; write a whole number"),
            ("knid = 1", "p.toml:4: unknown field `knid`; did you mean `kind`?"),
        ] {
            let told = told(&format!("{base}{text}\n"));
            assert!(told.starts_with(expected), "{told}");
        }
        let fine: Plant = toml::from_str(&format!("{base}rate = [1, 2.5]\ncount = 3\n")).unwrap();
        assert_eq!(fine.fault[0].rate, Some(OneOrMany::Many(vec![1.0, 2.5])));
        assert_eq!(fine.fault[0].count, Some(OneOrMany::One(3)));
    }
}
