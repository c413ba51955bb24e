//! The results of checks: as text while running, and as one JSON document at the end.

use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};

/// Longest detail in the document, in characters.
const DETAIL_MAX: usize = 400;

#[derive(Debug)]
struct Check {
    name: String,
    ok: bool,
    detail: String,
}

/// The checks of a run, in order.
#[derive(Debug, Default)]
pub(crate) struct Report {
    checks: Vec<Check>,
}

impl Report {
    /// Records the result of a check. A failure is printed on stderr immediately.
    pub(crate) fn check(&mut self, name: impl Into<String>, ok: bool, detail: impl Display) -> bool {
        let name = name.into();
        let detail: String = detail.to_string().chars().take(DETAIL_MAX).collect();
        if !ok {
            let _ = writeln!(io::stderr(), "FAILED {name}: {detail}");
        }
        self.checks.push(Check { name, ok, detail });
        ok
    }

    pub(crate) fn passed(&self) -> usize {
        self.checks.iter().filter(|check| check.ok).count()
    }

    pub(crate) fn failed(&self) -> usize {
        self.checks.len() - self.passed()
    }

    /// The document in the common format of the smoke clients.
    pub(crate) fn to_json(&self, url: &str) -> String {
        let mut out = String::from("{\"tool\":\"taktwerk-client\",\"library\":");
        quote(&mut out, concat!("taktwerk ", env!("CARGO_PKG_VERSION")));
        out.push_str(",\"command\":\"smoke\",\"url\":");
        quote(&mut out, url);
        let (passed, failed) = (self.passed(), self.failed());
        let _ = write!(out, ",\"ok\":{},\"passed\":{passed},\"failed\":{failed},\"checks\":[", failed == 0);
        for (at, check) in self.checks.iter().enumerate() {
            out.push_str(if at == 0 { "\n  {\"name\":" } else { ",\n  {\"name\":" });
            quote(&mut out, &check.name);
            let _ = write!(out, ",\"ok\":{},\"detail\":", check.ok);
            quote(&mut out, &check.detail);
            out.push('}');
        }
        out.push_str("\n]}");
        out
    }
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
