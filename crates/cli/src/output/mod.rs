//! What commands print: a table or a tree for people, one JSON document for programs.

mod json;
mod time;

pub(crate) use json::{data_value, status, variant};
pub(crate) use time::short;

use crate::failure::Failure;
use std::io::{self, IsTerminal, Write};

/// How to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    color: bool,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set (no-color.org).
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ColorChoice {
    /// Whether to use colours on an output that is a terminal or not.
    pub(crate) fn is_on(self, is_terminal: bool) -> bool {
        match self {
            Self::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// A number with what is counted: `1 tag`, `2 tags`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl Output {
    /// With `json`, only documents, which have no colours.
    pub(crate) fn new(json: bool, color: ColorChoice) -> Self {
        Self { json, color: !json && color.is_on(io::stdout().is_terminal()) }
    }

    /// The same for a program that reads it.
    pub(crate) fn as_json(self) -> Self {
        Self { json: true, color: false }
    }

    /// Whether a program reads this.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Prints text for people.
    pub(crate) fn text(self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()?;
        Ok(())
    }

    /// Prints a document.
    pub(crate) fn document(self, document: &serde_json::Value) -> Result<(), Failure> {
        self.text(&format!("{document:#}"))
    }

    /// Prints a document on one line (NDJSON), for streams.
    pub(crate) fn line(self, document: &serde_json::Value) -> Result<(), Failure> {
        self.text(&document.to_string())
    }

    /// `text` in red, if colours are on.
    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// `text` dimmed, if colours are on.
    pub(crate) fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
