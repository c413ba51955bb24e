//! Exit with the supervisor: for programs that start this one.

use crate::failure::Failure;
use std::io::Read;

/// Exits as soon as standard input is closed.
pub(crate) fn end_with_stdin() -> Result<(), Failure> {
    let watch = || {
        let mut sink = [0u8; 256];
        while matches!(std::io::stdin().read(&mut sink), Ok(1..)) {}
        std::process::exit(130);
    };
    let thread = std::thread::Builder::new().name("stdin".to_owned()).stack_size(64 << 10).spawn(watch);
    thread.map(drop).map_err(|error| Failure::Environment(format!("cannot watch standard input: {error}")))
}
