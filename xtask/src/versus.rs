//! `cargo xtask versus open62541`: builds this checkout, the peer and the baselines, and lets the laboratory compare
//! them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use taktwerk_lab::versus::{self, Event, Options, Programs, Watch, table};

const USAGE: &str =
    "usage: cargo xtask versus open62541 [--json] [--quick] [--rows ID,…] [--repetitions N] [--out FILE]
       [--programs DIR]

  --json            print the JSON document instead of the table (it is always written to --out)
  --quick           2 repetitions and short windows: does it work, not how good is it
  --rows ID,…       only these rows; `pubsub` stands for all that begin so, which are measured only when they are asked for
  --repetitions N   default 5
  --out FILE        default target/versus.json; written again after each row
  --programs DIR    build nothing of ours: taktwerk and the benchmarks (floor, allocations, minimal) lie there

exit codes: 0 all rows hold, 99 a row fails, 5 a row is open or not measured, 6 something is missing, 2 usage";

/// Exit code: a row fails.
const THRESHOLD_FAILED: u8 = 99;
/// Exit code: a row is inconclusive or could not be measured.
const INVALID: u8 = 5;

/// The command line options.
#[derive(Debug)]
struct Arguments {
    json: bool,
    options: Options,
    out: Option<String>,
    programs: Option<PathBuf>,
}

/// Runs the comparison. Reports every failure.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let arguments = match parse(arguments) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("error: {problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    compare(root, &arguments).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(6)
    })
}

fn parse(arguments: &[&str]) -> Result<Arguments, String> {
    let options = Options { quick: false, rows: Vec::new(), repetitions: 0 };
    let mut parsed = Arguments { json: false, options, out: None, programs: None };
    let mut rest = arguments.iter();
    if rest.next() != Some(&"open62541") {
        return Err("the peer is missing: only open62541 is supported".into());
    }
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or(format!("{argument} needs a value"));
        match *argument {
            "--json" => parsed.json = true,
            "--quick" => parsed.options.quick = true,
            "--rows" => parsed.options.rows = value()?.split(',').map(str::to_owned).collect(),
            "--repetitions" => {
                let text = value()?;
                parsed.options.repetitions = text
                    .parse()
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or(format!("{text:?} is not a number of repetitions"))?;
            }
            "--out" => parsed.out = Some((*value()?).to_owned()),
            "--programs" => parsed.programs = Some(value()?.into()),
            other => return Err(format!("unknown argument {other:?}")),
        }
    }
    let options = &mut parsed.options;
    if options.repetitions == 0 {
        options.repetitions = if options.quick { 2 } else { 5 };
    }
    options.check()?;
    Ok(parsed)
}

fn compare(root: &Path, arguments: &Arguments) -> Result<ExitCode, String> {
    let peers = root.join("target/peers/open62541");
    let programs = match &arguments.programs {
        None => build(root, &peers, arguments.options.wants_pubsub())?,
        Some(folder) => Programs {
            taktwerk: folder.join("taktwerk"),
            peer: peers.join("bin"),
            library: Some(folder.join("minimal")),
            allocations: Some(folder.join("allocations")),
            cipher: Some(folder.join("floor")),
        },
    };
    let load = versus::load_average();
    if load > versus::BUSY {
        eprintln!("warning: the load average is {load:.1}: other programs distort the measurement");
    }
    let out = arguments.out.clone().map_or_else(|| root.join("target/versus.json"), PathBuf::from);
    let file = out.clone();
    let watch = Watch { tell: Arc::new(move |event| tell(&event, &file)), stop: None };
    let comparison =
        versus::compare(programs, &arguments.options, watch).map_err(|error| error.to_string())?;
    write(&out, &comparison.document)?;
    if arguments.json {
        println!("{:#}", comparison.document);
    } else {
        println!("{}", table(&comparison.rows));
    }
    eprintln!("written to {}", out.display());
    let rows = &comparison.rows;
    Ok(if rows.iter().any(|row| row.holds() == Some(false)) {
        ExitCode::from(THRESHOLD_FAILED)
    } else if rows.iter().any(|row| !row.problems().is_empty() || row.is_open()) {
        ExitCode::from(INVALID)
    } else {
        ExitCode::SUCCESS
    })
}

/// Prints an event, and saves the measurements so far.
fn tell(event: &Event<'_>, out: &Path) {
    match event {
        Event::Repetition { id, side, at, of } => eprintln!("{id}: repetition {at} of {of}, {side}"),
        Event::Note(text) => eprintln!("  {text}"),
        Event::Skipped(id, why) => eprintln!("{id}: skipped: {why}"),
        Event::Measured { rows, took, document } => {
            eprintln!("{}\n{:.0} s", table(rows), took.as_secs_f64());
            if let Err(problem) = write(out, document) {
                eprintln!("warning: {problem}");
            }
        }
    }
}

fn write(out: &Path, document: &Value) -> Result<(), String> {
    std::fs::write(out, format!("{document:#}\n"))
        .map_err(|error| format!("cannot write {}: {error}", out.display()))
}

/// Builds the peer, the baselines and this project in release mode. With `pubsub`, also the peer's publisher, which
/// needs another build of its library.
fn build(root: &Path, peers: &Path, pubsub: bool) -> Result<Programs, String> {
    let mut peer = Command::new(root.join("interop/open62541/build.sh"));
    if pubsub {
        peer.env("PUBSUB_TOO", "1");
    }
    run_visibly("building the peer", peer.arg(peers))?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let release = |arguments: &[&str]| {
        let mut command = Command::new(&cargo);
        command.current_dir(root).args(arguments);
        command
    };
    run_visibly("building taktwerk", &mut release(&["build", "--release", "-p", "taktwerk-cli", "--bins"]))?;
    run_visibly(
        "building a program with the library",
        &mut release(&["build", "--release", "-p", "taktwerk", "--example", "minimal"]),
    )?;
    let bench = |arguments: &[&str], name: &str| {
        let output = release(arguments)
            .args(["--bench", name, "--no-run", "--message-format", "json-render-diagnostics"])
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cannot start cargo: {error}"))?;
        executable(&output.stdout, name)
            .ok_or(format!("building the benchmark {name} failed ({})", output.status))
    };
    let target: PathBuf =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    Ok(Programs {
        taktwerk: target.join("release/taktwerk"),
        peer: peers.join("bin"),
        library: Some(target.join("release/examples/minimal")),
        allocations: Some(bench(&["bench", "-p", "taktwerk-cli"], "allocations")?),
        cipher: Some(bench(&["bench", "-p", "taktwerk-crypto", "--features", "aws-lc"], "floor")?),
    })
}

fn run_visibly(what: &str, command: &mut Command) -> Result<(), String> {
    // Results go to standard output, so builds must print to standard error.
    let status = command.stdout(std::io::stderr()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what} failed ({status}); its output is above")),
        Err(error) => Err(format!("{what}: cannot start {}: {error}", command.get_program().display())),
    }
}

/// The program of a target, from cargo's messages.
fn executable(messages: &[u8], target: &str) -> Option<PathBuf> {
    messages
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(|message| message.pointer("/target/name").and_then(Value::as_str) == Some(target))
        .filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line() {
        let parsed = parse(&["open62541", "--quick", "--rows", "read-rtt,idle-rss"]).unwrap();
        assert_eq!((parsed.options.repetitions, parsed.options.rows.len(), parsed.json), (2, 2, false));
        assert_eq!(parse(&["open62541"]).unwrap().options.repetitions, 5);
        assert!(parse(&["milo"]).is_err() && parse(&[]).is_err());
        assert!(parse(&["open62541", "--rows", "nothing"]).unwrap_err().contains("read-rtt"));
        assert!(parse(&["open62541", "--repetitions", "0"]).is_err());
        let programs = parse(&["open62541", "--programs", "somewhere"]).unwrap().programs;
        assert_eq!(programs, Some("somewhere".into()));
    }

    #[test]
    fn finds_the_executable_in_cargos_messages() {
        let messages = br#"{"reason":"x","target":{"name":"wanted"},"executable":null}
{"target":{"name":"wanted"},"executable":"/t/a"}
no json
{"target":{"name":"other"},"executable":"/t/b"}
"#;
        assert_eq!(executable(messages, "wanted"), Some(PathBuf::from("/t/a")));
        assert_eq!(executable(b"", "wanted"), None);
    }
}
