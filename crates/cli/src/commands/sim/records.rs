//! Traces and packet captures of a simulation.

use super::SimArgs;
use crate::commands::lab::can_write;
use crate::failure::Failure;
use crate::overwrite::is_device;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use taktwerk_lab::simulate::Study;
use taktwerk_sim::Trace;
use taktwerk_sim::capture::Capture;
use taktwerk_sim::scenario::{Instruments, Link};

/// Buffer size of a file, in bytes.
const BUFFER: usize = 1 << 18;

/// A link and the file for its packets.
#[derive(Debug, Clone)]
pub(super) struct CaptureOf {
    link: String,
    pub(super) file: PathBuf,
}

/// Parses `LINK=FILE`.
pub(super) fn parse_capture(text: &str) -> Result<CaptureOf, String> {
    match text.split_once('=') {
        Some((link, file)) if !link.is_empty() && !file.is_empty() => {
            Ok(CaptureOf { link: link.to_owned(), file: file.into() })
        }
        _ => Err("write the name of a link, = and a file, such as \"leased line=line.pcap\"".to_owned()),
    }
}

/// The links of the first case, which is the one that is recorded.
fn links(study: &Study) -> &[Link] {
    study.cases.first().map(|case| case.scenario.links.as_slice()).unwrap_or_default()
}

/// Checks before the simulation that all files can be written, and that no two outputs go to the same file.
pub(super) fn check(arguments: &SimArgs, study: &Study) -> Result<(), Failure> {
    let links = links(study);
    let mut chosen = BTreeSet::new();
    for CaptureOf { link, .. } in &arguments.pcap {
        let Some(at) = links.iter().position(|known| known.name == *link) else {
            let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
            let problem = format!("--pcap: there is no link {link:?}; there are {}", names.join(", "));
            return Err(Failure::Usage(problem));
        };
        if !chosen.insert(at) {
            return Err(Failure::Usage(format!("--pcap: link {link:?} is given twice")));
        }
    }
    let captures = arguments.pcap.iter().map(|of| ("--pcap", &of.file));
    let report = arguments.report.iter().map(|path| ("--report", path));
    let trace = arguments.trace.iter().map(|path| ("--trace", path));
    let mut known: Vec<(&str, PathBuf)> = Vec::new();
    known.extend(arguments.file.canonicalize().map(|plant| ("the plant", plant)));
    for (option, path) in report.chain(trace).chain(captures) {
        can_write(path, arguments.overwrite)?;
        if is_device(path) {
            continue;
        }
        // Two paths can name the same file. The folder exists.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let whole = path.canonicalize().unwrap_or_else(|_| folder.join(path.file_name().unwrap_or_default()));
        if let Some((other, _)) = known.iter().find(|(_, known)| *known == whole) {
            let both = format!("{other} and {option} are both {}: name two files", path.display());
            return Err(Failure::Usage(both));
        }
        known.push((option, whole));
    }
    Ok(())
}

/// Creates the files.
pub(super) fn instruments(arguments: &SimArgs, study: &Study) -> Result<Instruments, Failure> {
    let links = links(study);
    // Created last: a misspelt name must not empty a file.
    let create_capture = |(link, of): (usize, &CaptureOf)| Ok((link, Capture::new(create(&of.file)?)));
    let position = |of: &CaptureOf| links.iter().position(|link| link.name == of.link);
    let captures = arguments.pcap.iter().filter_map(|of| Some((position(of)?, of)));
    Ok(Instruments {
        trace: arguments.trace.as_deref().map(create).transpose()?.map(Trace::new),
        captures: captures.map(create_capture).collect::<Result<_, Failure>>()?,
        ..Instruments::default()
    })
}

fn create(path: &Path) -> Result<Box<dyn Write + Send>, Failure> {
    let file = File::create(path)
        .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", path.display())))?;
    Ok(Box::new(BufWriter::with_capacity(BUFFER, file)))
}
