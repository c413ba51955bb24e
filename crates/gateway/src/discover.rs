//! Explores sources without a server: lists what they offer, and scans for Modbus units. Connects only to hosts that the caller
//! names.

use crate::adapter::modbus::link::Way;
use crate::adapter::modbus::scan::{Unit, units};
use crate::configuration::{GatewayConfig, SourceConfig};
use crate::fault::Fault;
use crate::fields::Mistake;
use crate::offer::{Offer, Question, quoted};
use core::ops::Range;
use core::time::Duration;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Hosts that are scanned concurrently.
const AT_ONCE: usize = 16;

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// The section of a source with a URL: `opc.tcp://…`, `mqtt://…`, `mqtts://…`, `http://…`, `https://…` or
/// `modbus://host[:port]` or, for a serial line, `modbus:///dev/ttyUSB0`.
///
/// # Errors
/// What is wrong with the URL.
pub fn section_of_url(url: &str) -> Result<String, String> {
    let (kind, key, value) = match url.split_once("://") {
        Some(("opc.tcp", _)) => ("opcua", "url", url),
        Some(("mqtt" | "mqtts", _)) => ("mqtt", "url", url),
        Some(("http" | "https", _)) => ("http", "url", url),
        Some(("modbus", rest)) if rest.starts_with('/') => ("modbus", "device", rest),
        Some(("modbus", rest)) => ("modbus", "address", rest.trim_end_matches('/')),
        _ => {
            let known = "opc.tcp://, mqtt://, mqtts://, http://, https:// or modbus://";
            return Err(format!("{url:?} is not the URL of a source; begin it with {known}"));
        }
    };
    let value = quoted(value);
    Ok(format!("[[source]]\nname = \"source\"\ntype = \"{kind}\"\n{key} = {value}\n"))
}

/// Creates a source from a URL, as [`section_of_url`] describes it.
///
/// # Errors
/// What is wrong with the URL.
pub fn source_of_url(url: &str) -> Result<SourceConfig, String> {
    let (config, mistakes) = GatewayConfig::examine(Path::new(""), &section_of_url(url)?);
    if let Some(mistake) = mistakes.into_iter().next() {
        return Err(format!("{url}: {}; {}", mistake.problem, mistake.hint));
    }
    let source = config.and_then(|config| config.sources.into_iter().next());
    source.ok_or_else(|| format!("{url}: this is not a source"))
}

/// Splits sections of tags into those that a configuration accepts at the end of its text, and what is wrong with the others.
#[must_use]
pub fn accepted(path: &Path, text: &str, mut sections: Vec<String>) -> (Vec<String>, Vec<Mistake>) {
    let base = format!("{text}\n");
    let mut refused: Vec<Mistake> = Vec::new();
    loop {
        let mut all = base.clone();
        let mut next = base.lines().count() + 1;
        let mut lines = Vec::with_capacity(sections.len());
        for section in &sections {
            all.push_str(section);
            lines.push(next..next + section.lines().count());
            next += section.lines().count();
        }
        let (_, mistakes) = GatewayConfig::examine(path, &all);
        let is_wrong = |lines: &Range<usize>| mistakes.iter().any(|mistake| lines.contains(&mistake.line));
        let wrong: Vec<bool> = lines.iter().map(is_wrong).collect();
        if !wrong.contains(&true) {
            return (sections, refused);
        }
        let mut is_wrong = wrong.into_iter();
        sections.retain(|_| !is_wrong.next().unwrap_or_default());
        let begin = base.lines().count();
        refused.extend(mistakes.into_iter().filter(|mistake| mistake.line > begin));
    }
}

/// Lists what a source offers. Blocks the calling thread.
///
/// # Errors
/// The source does not answer, or its kind cannot be explored.
pub fn offers(source: &mut SourceConfig, question: &Question) -> Result<Vec<Offer>, Fault> {
    let runtime = runtime().map_err(|error| Fault::connect(source.adapter.describe(), &error))?;
    let offers = runtime.block_on(source.adapter.offers(question));
    // Do not wait for a thread that may still resolve a name.
    runtime.shutdown_background();
    offers
}

/// The result for one host or serial line.
#[derive(Debug)]
pub struct Scanned {
    /// The host or the line.
    pub way: Way,
    /// The units that answered, or why the connection failed.
    pub units: Result<Vec<Unit>, Fault>,
}

/// Scans these hosts and serial lines for Modbus units. Blocks the calling thread.
///
/// # Errors
/// The asynchronous runtime cannot be started.
pub fn scan_modbus(
    ways: Vec<Way>,
    numbers: &[u8],
    deadline: Duration,
    stop: &Arc<AtomicBool>,
    mut progress: impl FnMut(usize),
) -> io::Result<Vec<Scanned>> {
    let runtime = runtime()?;
    let mut found = runtime.block_on(async {
        let mut tasks = JoinSet::new();
        let mut waiting = ways.into_iter().enumerate();
        let mut found = Vec::new();
        loop {
            while tasks.len() < AT_ONCE && !stop.load(Ordering::Relaxed) {
                let Some((index, way)) = waiting.next() else { break };
                let (numbers, stop) = (numbers.to_vec(), Arc::clone(stop));
                tasks.spawn(async move {
                    let units = units(&way, &numbers, deadline, &stop).await;
                    (index, way, units)
                });
            }
            let Some(done) = tasks.join_next().await else { break };
            // A task that panicked has no result.
            if let Ok((index, way, units)) = done {
                found.push((index, Scanned { way, units }));
            }
            progress(found.len());
        }
        found
    });
    runtime.shutdown_background();
    found.sort_by_key(|(index, _)| *index);
    Ok(found.into_iter().map(|(_, scanned)| scanned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_that_a_configuration_refuses_are_left_out() {
        let base =
            "[[source]]\nname = \"s\"\ntype = \"simulation\"\n[[tag]]\nsource = \"s\"\nname = \"known\"";
        let tag = |name: &str, more: &str| format!("[[tag]]\nsource = \"s\"\nname = \"{name}\"\n{more}");
        let sections = vec![
            tag("a", ""),
            tag("b", "type = \"Guid\"\n"),
            tag("known", ""),
            tag("a", ""),
            tag("a", "path = \"x\"\ntype = \"Double\"\n"),
            tag(&"x".repeat(300), ""),
        ];
        let (kept, refused) = accepted(Path::new("g.toml"), base, sections.clone());
        assert_eq!(kept, [sections[0].clone(), sections[4].clone()]);
        assert_eq!(refused.len(), 4, "{refused:?}");
        let all = format!("{base}\n{}", kept.concat());
        assert_eq!(GatewayConfig::parse(Path::new("g.toml"), &all).unwrap().unwrap().tag_count(), 3);
    }

    #[test]
    fn urls_become_sources() {
        for (url, said) in [
            ("opc.tcp://plc:4840", "OPC UA opc.tcp://plc:4840"),
            ("mqtt://broker", "MQTT 3.1.1 broker:1883"),
            ("modbus://plc", "Modbus TCP plc:502"),
            ("modbus:///dev/ttyUSB0", "Modbus RTU /dev/ttyUSB0"),
            ("modbus://plc:1502/", "Modbus TCP plc:1502"),
        ] {
            assert_eq!(source_of_url(url).unwrap().adapter.describe(), said);
        }
        for (url, said) in [
            ("plc", "is not the URL of a source"),
            ("ftp://plc", "is not the URL of a source"),
            ("mqtt://user@plc", "this is no URL of a broker"),
            ("modbus://a b", "is no address"),
        ] {
            let error = source_of_url(url).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
