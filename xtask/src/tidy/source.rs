//! Rust source for the checks: without comments, string contents and tests.

/// A file with blanked comments, strings and `#[cfg(test)]` items. Lines keep their numbers.
pub(super) struct Code {
    /// The blanked text.
    pub(super) program: String,
    /// The text with comments and strings blanked, tests included.
    pub(super) all: String,
    /// The original lines, for the comments that allow exceptions.
    lines: Vec<String>,
}

impl Code {
    pub(super) fn new(text: &str) -> Self {
        let all = blank(text);
        let program = without_tests(&all);
        Self { program, all, lines: text.lines().map(str::to_owned).collect() }
    }

    /// Whether a line or the comment above it contains `marker`.
    pub(super) fn is_marked(&self, line: usize, marker: &str) -> bool {
        let line_at = |line: usize| line.checked_sub(1).and_then(|at| self.lines.get(at));
        if line_at(line).is_some_and(|text| text.contains(marker)) {
            return true;
        }
        let above = (1..line)
            .rev()
            .map_while(|line| line_at(line).filter(|text| text.trim_start().starts_with("//")));
        above.into_iter().any(|text| text.contains(marker))
    }
}

/// The line of a byte offset, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Replaces the contents of comments, strings and character literals by spaces.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = text.get(at..).unwrap_or("");
        let end = match byte {
            b'/' if rest.starts_with("//") => at + rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => at + block_comment(rest),
            b'"' => at + string(rest),
            b'r' if starts_raw(rest) && !follows_word(bytes, at) => at + raw_string(rest),
            b'\'' => at + character(rest),
            _ => {
                at += 1;
                continue;
            }
        };
        for slot in out.iter_mut().take(end).skip(at).filter(|byte| **byte != b'\n') {
            *slot = b' ';
        }
        at = end.max(at + 1);
    }
    // Multi-byte characters are blanked as a whole or not at all.
    String::from_utf8_lossy(&out).into_owned()
}

fn follows_word(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| bytes.get(at));
    // `br"…"` is a raw string, too.
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() && *byte != b'b' || *byte == b'_')
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    let bytes = rest.as_bytes();
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth.saturating_sub(1), at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(bytes.len())
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn starts_raw(rest: &str) -> bool {
    rest.strip_prefix('r').is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
}

fn raw_string(rest: &str) -> usize {
    let hashes = rest.bytes().skip(1).take_while(|byte| *byte == b'#').count();
    let close = format!("\"{}", "#".repeat(hashes));
    let start = hashes + 2;
    rest.get(start..).and_then(|body| body.find(&close)).map_or(rest.len(), |end| start + end + close.len())
}

/// The length of a character literal, or 1 for the quote of a lifetime.
fn character(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => rest.get(2..).and_then(|rest| rest.get(1..)?.find('\'')).map_or(1, |end| end + 4),
        Some(_) => match characters.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}

/// Blanks every item after `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    let mut from = 0;
    while let Some(found) = code.get(from..).and_then(|rest| rest.find("#[cfg(test)]")) {
        let start = from + found;
        let end = start + item_len(code.get(start..).unwrap_or(""));
        for slot in out.iter_mut().take(end).skip(start).filter(|byte| **byte != b'\n') {
            *slot = b' ';
        }
        from = end.max(start + 1);
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The length of an item with its attributes: up to its closing brace, or its semicolon if it has no braces.
fn item_len(rest: &str) -> usize {
    let mut depth = 0usize;
    for (at, character) in rest.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_blanked() {
        let text = "a // std::fs\n/* x /* y */ z */ b \"std::\\\"net\" c r#\"q\" std\"# d 'x' '\\'' &'a e";
        let code = Code::new(text);
        assert!(!code.all.contains("std"), "{}", code.all);
        for word in ["a", "b", "c", "d", "e", "& a"] {
            assert!(code.all.contains(word), "{word}: {}", code.all);
        }
        assert_eq!(code.all.len(), text.len());
        assert_eq!(line_of(text, text.find(" b ").unwrap()), 2);
    }

    #[test]
    fn tests_are_blanked() {
        let code = Code::new(
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { {} } }\nfn c() {}\n#[cfg(test)]\nmod t;\nd",
        );
        assert!(
            code.program.contains("fn a") && code.program.contains("fn c") && code.program.ends_with('d')
        );
        assert!(!code.program.contains("fn b") && !code.program.contains("mod t;"));
        assert!(code.all.contains("fn b"));
    }

    #[test]
    fn markers_are_on_the_line_or_above() {
        let code = Code::new("x\n// tidy: because\n// of that\ny\n\nz // tidy: here\nw");
        assert!(code.is_marked(4, "tidy:") && code.is_marked(6, "tidy:"));
        assert!(!code.is_marked(7, "nothing") && !code.is_marked(1, "tidy:"));
    }
}
