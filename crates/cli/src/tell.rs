//! Macros that print messages to standard error.
//!
//! `eprintln!` panics if standard error is a closed pipe, which would end a server. These macros ignore the error.

/// Writes a line to standard error, and ignores errors.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "{}", crate::output::harmless(&format!($($text)*)));
    }};
}

/// Writes to standard error without a line break, and ignores errors.
macro_rules! tell_part {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), "{}", crate::output::harmless(&format!($($text)*)));
    }};
}

/// Prints the messages of generators and connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StandardError;

impl taktwerk_generator::client::Tell for StandardError {
    fn tell(&self, line: &str) {
        tell!("{line}");
    }
}
