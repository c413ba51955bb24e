//! Explains in words what is wrong with a text file that a user wrote: line, key, allowed values, and the name that was probably
//! meant.
//!
//! - [`Mistake`]: an error of the TOML library in plain words; `words`: the names of values and types;
//! - [`key_span`]: the position of a key;
//! - [`nearest`]: finds the known name closest to a misspelt one;
//! - [`OneOrMany`]: a value or a list of values that keeps precise error messages;
//! - [`shown`]: prepares a name or value from a file for a message: shortened, control characters escaped.
//!
//! Other crates define their own error types for their files; they take the explanation of TOML errors from this crate.

#![cfg_attr(test, allow(clippy::unwrap_used))] // a test fails by panicking

mod keys;
mod names;
mod one_or_many;
mod shown;
mod words;

pub use keys::key_span;
pub use names::{meant, nearest};
pub use one_or_many::OneOrMany;
pub use shown::shown;
pub use words::instead;

use core::fmt;

/// What is wrong with a text that does not have the wanted form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1; 0 if it is not known.
    pub line: usize,
    /// What is wrong, prefixed with its key.
    pub problem: String,
    /// How to correct it; empty if that is obvious.
    pub hint: String,
}

impl Mistake {
    /// Explains a TOML error. `text` is the file's content; without it the line is not known.
    #[must_use]
    pub fn of(error: &toml::de::Error, text: Option<&str>) -> Self {
        let (problem, hint) = words::repeated(error, text).unwrap_or_else(|| words::explain(error));
        let (problem, hint) = (shown::message(problem), shown::message(hint));
        // What the file itself lacks is on no line of it.
        let span = error.span().filter(|_| !problem.starts_with(words::MISSING));
        let line = span.zip(text).map_or(0, |(span, text)| line_of(text, span.start));
        Self { line, problem, hint }
    }

    /// The message prefixed with file and line: `plant.toml:12: fault.kind: …`.
    #[must_use]
    pub fn within(&self, file: &dyn fmt::Display) -> String {
        match self.line {
            0 => format!("{file}: {self}"),
            line => format!("{file}:{line}: {self}"),
        }
    }
}

/// The message without the line.
impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "; {}", self.hint) }
    }
}

/// The line of a byte offset, counted from 1.
#[must_use]
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[allow(dead_code)]
    struct Plant {
        name: String,
        node: Vec<Node>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[allow(dead_code)]
    struct Node {
        name: String,
    }

    #[test]
    fn a_missing_key_is_told_with_its_place() {
        let told = |text: &str| {
            let error = toml::from_str::<Plant>(text).unwrap_err();
            Mistake::of(&error, Some(text)).within(&"plant.toml")
        };
        // The first line is that of a table which has this key.
        assert_eq!(
            told("[[node]]\nname = \"n\"\n"),
            "plant.toml: missing field `name` at the top level of the file"
        );
        assert_eq!(told("name = \"p\"\n\n[[node]]\n"), "plant.toml:3: node: missing field `name`");
    }
}
