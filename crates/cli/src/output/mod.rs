//! Output of commands: tables and trees, or one JSON document.

mod harmless;
mod json;
mod time;

pub(crate) use harmless::{in_line, text as harmless};
pub(crate) use json::{data_value, status, variant};
pub(crate) use time::short;

use crate::failure::Failure;
use std::io::{self, IsTerminal, Write};

/// The output format.
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
    /// Whether colours are used, if the output is a terminal or not.
    pub(crate) fn is_on(self, is_terminal: bool) -> bool {
        match self {
            Self::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// A number with a noun: `1 tag`, `2 tags`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl Output {
    /// With `json`, only JSON documents without colours.
    pub(crate) fn new(json: bool, color: ColorChoice) -> Self {
        Self { json, color: !json && color.is_on(io::stdout().is_terminal()) }
    }

    /// The same output as JSON.
    pub(crate) fn as_json(self) -> Self {
        Self { json: true, color: false }
    }

    /// Whether the output is JSON.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Prints text. Control characters from servers and files are escaped.
    pub(crate) fn text(self, text: &str) -> Result<(), Failure> {
        print(&harmless::text(text))
    }

    /// Clears the screen and prints text.
    pub(crate) fn screen(self, text: &str) -> Result<(), Failure> {
        print(&format!("\u{1b}[H\u{1b}[2J{}", harmless::text(text)))
    }

    /// Prints data for another program unchanged. Control characters are escaped on a terminal.
    pub(crate) fn data(self, text: &str) -> Result<(), Failure> {
        if io::stdout().is_terminal() { self.text(text) } else { print(text) }
    }

    /// Prints a document.
    pub(crate) fn document(self, document: &serde_json::Value) -> Result<(), Failure> {
        print(&harmless::json(&format!("{document:#}")))
    }

    /// Prints a document on one line (NDJSON), for streams.
    pub(crate) fn line(self, document: &serde_json::Value) -> Result<(), Failure> {
        print(&harmless::json(&document.to_string()))
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

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}
