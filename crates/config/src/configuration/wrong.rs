//! What is told of a value of the wrong type: its key, what it is, and what would be right.

/// What is wrong with a text that is no configuration, and what would be right; the second is empty if that is plain.
pub(super) fn explain(error: &toml::de::Error) -> (String, String) {
    let message = error.message().lines().collect::<Vec<_>>().join(" ");
    let key = key_of(error);
    let at = |problem: String| match key.is_empty() {
        true => problem,
        false => format!("{key}: {problem}"),
    };
    if message.starts_with("data did not match any variant") {
        let hint = "write a text in quotation marks, a number, or true or false".to_owned();
        return (at("this has another type".to_owned()), hint);
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
    let is_value = message.starts_with("invalid value: ");
    let told = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    let Some((found, wanted)) = told.and_then(|told| told.rsplit_once(", expected ")) else {
        // Of a key that is not known or missing, the message says the name.
        return match message.starts_with("missing field") || message.starts_with("unknown variant") {
            true => (at(message), String::new()),
            false => (message, String::new()),
        };
    };
    let found = found.replace('`', "");
    let problem = match found.split_once(' ').unwrap_or((&found, "")) {
        ("string", text) => format!("this is the text {text}"),
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

/// Of a key that is not known: the key that is probably meant, instead of all that there are.
fn misspelt(message: &str) -> Option<(String, String)> {
    let (unknown, expected) = message.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    let near = super::meaning::nearest(unknown, expected.split('`').skip(1).step_by(2))?;
    Some((format!("unknown field `{unknown}`"), format!("did you mean `{near}`?")))
}

/// Where a value stands: `limits.sessions`.
fn key_of(error: &toml::de::Error) -> String {
    let mut error = error.clone();
    // Without the text it says the key instead of the line.
    error.set_input(None);
    let told = error.to_string();
    let key = told.lines().rev().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    key.unwrap_or_default().to_owned()
}

/// What a program calls a type, in words.
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
        other => other.to_owned(),
    }
}
