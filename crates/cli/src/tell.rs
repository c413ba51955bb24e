//! What is said beside results, on standard error.
//!
//! `eprintln!` panics when standard error is a pipe whose reader has gone, and a panic ends the program: a server would die
//! of the first warning about a stranger after whoever started it stopped listening. These macros say nothing then.

/// Writes a line to standard error, if anybody reads it.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// Writes to standard error without ending the line, if anybody reads it.
macro_rules! tell_part {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}

/// Tells what the generators and their connections have to say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StandardError;

impl taktwerk_generator::client::Tell for StandardError {
    fn tell(&self, line: &str) {
        tell!("{line}");
    }
}
