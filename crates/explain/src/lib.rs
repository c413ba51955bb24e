//! Text files that users name: reading them with limits, and what is wrong with them in words: line, key, what is allowed, and the
//! name that was probably meant.
//!
//! - [`Mistake`]: an error of TOML without the words of the library; `words`: what values and types are called;
//! - [`nearest`]: the name that a misspelt one is nearest to;
//! - [`OneOrMany`]: a value or a list of values, whose mistakes name the value;
//! - [`shown`]: a name or value of a file as messages repeat it: cut, and without control characters;
//! - [`read_text`], [`open_regular`]: files that the user names, which may have no end.
//!
//! Files that other crates read have their own types here and there; what they tell of TOML comes from here.

#![cfg_attr(test, allow(clippy::unwrap_used))] // a test fails by panicking

mod names;
mod one_or_many;
mod read;
mod shown;
mod words;

pub use names::{meant, nearest};
pub use one_or_many::OneOrMany;
pub use read::{open_regular, read_text};
pub use shown::shown;
pub use words::instead;

use core::fmt;

/// What is wrong with a text that does not have the wanted form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1; 0 if it is not known.
    pub line: usize,
    /// What is wrong, behind its key.
    pub problem: String,
    /// What would be right; empty if that is plain.
    pub hint: String,
}

impl Mistake {
    /// From the error of a text; `text` is what was read, if it was a file.
    #[must_use]
    pub fn of(error: &toml::de::Error, text: Option<&str>) -> Self {
        let (problem, hint) = words::explain(error);
        let (problem, hint) = (shown::message(problem), shown::message(hint));
        let line = error.span().zip(text).map_or(0, |(span, text)| line_of(text, span.start));
        Self { line, problem, hint }
    }

    /// With the file that it is in: `plant.toml:12: fault.kind: …`.
    #[must_use]
    pub fn within(&self, file: &dyn fmt::Display) -> String {
        match self.line {
            0 => format!("{file}: {self}"),
            line => format!("{file}:{line}: {self}"),
        }
    }
}

/// Without the line.
impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "; {}", self.hint) }
    }
}

/// The line of a byte, from 1.
#[must_use]
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
