//! The records of a simulation that the command line asks for.

use super::SimArgs;
use crate::failure::Failure;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use taktwerk_sim::Trace;
use taktwerk_sim::scenario::Instruments;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 18;

/// Opens the files.
pub(super) fn instruments(arguments: &SimArgs) -> Result<Instruments, Failure> {
    let trace = arguments.trace.as_deref().map(create).transpose()?.map(Trace::new);
    Ok(Instruments { trace })
}

fn create(path: &Path) -> Result<Box<dyn Write + Send>, Failure> {
    let file = File::create(path)
        .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", path.display())))?;
    Ok(Box::new(BufWriter::with_capacity(BUFFER, file)))
}
