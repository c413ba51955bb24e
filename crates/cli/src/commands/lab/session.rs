//! A run of the laboratory: measures, stores the results and shows progress.

use super::live::Live;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::overwrite::{Overwrite, is_device};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use taktwerk_lab::measurement::Measurement;
use taktwerk_lab::orphans::{self, Fate};
use taktwerk_lab::place::Place;
use taktwerk_lab::processes;
use taktwerk_lab::runner::{RunError, Runner, Step, check, missing};
use taktwerk_lab::scenario::{self, Condition};
use taktwerk_lab::store::{Run, Store};

/// Options of all commands that measure.
#[derive(Debug, Clone, Args)]
pub(crate) struct SessionArgs {
    /// Name of the run; a number is appended if the name is taken.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Resume this interrupted run (name or number) and measure only what is missing. With more --repetitions, extend a
    /// complete run.
    #[arg(long, value_name = "RUN", conflicts_with = "name")]
    resume: Option<String>,

    /// With --resume: take over a run that was started in another container and has ended there.
    #[arg(long, requires = "resume")]
    take_over: bool,

    /// Write each measurement to a file at once, one JSON document per line; - for standard output.
    #[arg(long, value_name = "FILE")]
    stream: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) overwrite: Overwrite,

    /// Measure this build of the program instead of the present one.
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,

    /// Show progress, figures and CPUs on the whole terminal during the run.
    #[arg(long)]
    tui: bool,

    #[command(flatten)]
    pub(crate) store: super::StoreArgs,
}

impl SessionArgs {
    /// `--stream` and `--json` must not use the same output.
    pub(crate) fn check(&self, output: Output) -> Result<(), Failure> {
        if output.is_json() && self.stream.as_deref() == Some(Path::new("-")) {
            return Err(Failure::Usage(
                "--stream - and --json both write to standard output: give --stream a file".to_owned(),
            ));
        }
        if let Some(path) = &self.stream {
            self.overwrite.check(path)?;
        }
        Ok(())
    }
}

/// The measurements to make.
pub(crate) struct Task<'a> {
    /// Its name in the store.
    pub(crate) what: &'a str,
    /// Whether this is the short form.
    pub(crate) quick: bool,
    /// Loads, each with the experiment that contains it.
    pub(crate) conditions: &'a [(String, Condition)],
    /// Notes about omitted parts, with the reasons.
    pub(crate) notes: &'a [String],
    /// Omit repetitions that do not fit into this time.
    pub(crate) within: Option<Duration>,
}

/// The result of a run.
pub(crate) struct Finished {
    /// The number of the run.
    pub(crate) run: i64,
    /// Notes about omitted parts, with the reasons.
    pub(crate) notes: Vec<String>,
    /// All measurements.
    pub(crate) measurements: Vec<Measurement>,
    /// The store with the run.
    pub(crate) store: Store,
}

/// Measures all conditions and stores them as one run.
pub(crate) fn measure(
    arguments: &SessionArgs,
    task: &Task<'_>,
    place: &Place,
    interrupt: &Interrupt,
) -> Result<Finished, Failure> {
    let &Task { what, quick, conditions, notes, within } = task;
    check(conditions).map_err(|error| refused(&error, notes))?;
    let mut store = arguments.store.open()?;
    let (name, resumed) = match &arguments.resume {
        None => (arguments.name.clone().unwrap_or_else(|| short_name(what)), None),
        Some(wanted) => {
            let run = store.choose(Some(wanted))?;
            can_resume(&run, what, quick, &place.fingerprint())?;
            (run.name.clone(), Some(run))
        }
    };
    let mut stream = Stream::open(arguments.stream.as_ref())?;
    let mut live = Live::begin(arguments.tui, &name, what, conditions)?;
    let (run, already) = match &resumed {
        None => (store.begin(&name, what, quick, &place.fingerprint())?, Vec::new()),
        Some(run) => {
            store.resume(run, arguments.take_over)?;
            (run.id, store.measurements(run.id)?)
        }
    };
    for measurement in &already {
        live.step(&Step::End(measurement));
        // The file is written from the beginning, so that it contains the whole run.
        stream.line(measurement)?;
    }
    if let Some(warning) = too_short(conditions, within) {
        tracing::warn!("{warning}");
    }
    let asked = interrupt.flag();
    let mut failed_write = None;
    let result =
        Runner { place, store: &mut store, run, asked: &asked, within }.run(conditions, already, |step| {
            live.step(&step);
            match step {
                Step::Begin { condition, done, total, seconds_left, .. } => {
                    tracing::info!(done, total, seconds_left, "{}", condition.label());
                }
                Step::End(measurement) => {
                    for reason in &measurement.invalid {
                        tracing::warn!("{}: {reason}", measurement.condition.label());
                    }
                    if let Err(error) = stream.line(measurement) {
                        failed_write.get_or_insert(error);
                    }
                }
            }
        });
    drop(live);
    let measurements = match result {
        Ok(measurements) => measurements,
        Err(RunError::Interrupted) => {
            // All measurements are in the store. The run stays marked as incomplete.
            tracing::warn!(
                "run {name} is incomplete; its measurements are stored, and --resume {name} continues it"
            );
            return Err(Failure::Interrupted);
        }
        Err(RunError::Store(error)) => return Err(error.into()),
        Err(error @ (RunError::Nothing | RunError::TooMany { .. })) => return Err(refused(&error, notes)),
    };
    if let Some(error) = failed_write {
        return Err(error.into());
    }
    let notes = [notes, &left_out(conditions, &measurements, within)].concat();
    store.finish(run, &notes)?;
    Ok(Finished { run, notes, measurements, store })
}

/// A run of simulated experiments: nothing is measured, but a report can be written.
pub(crate) fn without_measurements(
    arguments: &SessionArgs,
    task: &Task<'_>,
    place: &Place,
) -> Result<Finished, Failure> {
    if arguments.resume.is_some() {
        return Err(Failure::Usage(
            "simulated experiments are complete in every run: remove --resume".to_owned(),
        ));
    }
    let mut store = arguments.store.open()?;
    let name = arguments.name.clone().unwrap_or_else(|| short_name(task.what));
    let run = store.begin(&name, task.what, task.quick, &place.fingerprint())?;
    store.finish(run, task.notes)?;
    Ok(Finished { run, notes: task.notes.to_vec(), measurements: Vec::new(), store })
}

/// Why no run is started. A run without measurements would count as the last complete one.
fn refused(error: &RunError, notes: &[String]) -> Failure {
    if matches!(error, RunError::Nothing) && !notes.is_empty() {
        return Failure::Environment(format!("there is nothing to measure here: {}", notes.join("; ")));
    }
    Failure::Usage(error.to_string())
}

/// A warning if the time is shorter than one measurement of each load, which is always made.
fn too_short(conditions: &[(String, Condition)], within: Option<Duration>) -> Option<String> {
    let once: Vec<Condition> = conditions
        .iter()
        .map(|(_, condition)| {
            let mut once = condition.clone();
            once.time.repetitions = once.time.repetitions.min(1);
            once
        })
        .collect();
    let (needed, within) = (scenario::seconds(&once), within?.as_secs_f64());
    (needed > within).then(|| {
        format!(
            "to measure every load once takes about {}, longer than the limit of {}: no load is repeated. Name fewer \
             experiments, or pass a shorter --window",
            span(needed),
            span(within)
        )
    })
}

/// Notes about repetitions that did not fit into the time, by experiment.
fn left_out(
    conditions: &[(String, Condition)],
    measured: &[Measurement],
    within: Option<Duration>,
) -> Vec<String> {
    let Some(within) = within else { return Vec::new() };
    let mut counts = BTreeMap::<&str, usize>::new();
    for (at, _) in missing(conditions, measured) {
        if let Some((experiment, _)) = conditions.get(at) {
            *counts.entry(experiment).or_default() += 1;
        }
    }
    let note = |(experiment, count): (&str, usize)| {
        let all: u32 = conditions
            .iter()
            .filter(|(name, _)| name == experiment)
            .map(|(_, condition)| condition.time.repetitions)
            .sum();
        format!(
            "{experiment}: {count} of {all} measurements are left out, all of them repetitions: {} were over; --resume adds \
             them",
            span(within.as_secs_f64())
        )
    };
    counts.into_iter().map(note).collect()
}

/// The default name of a run.
fn short_name(what: &str) -> String {
    what.chars().take(40).map(|c| if c.is_whitespace() { '-' } else { c }).collect()
}

/// Whether new measurements may be added to a run. Results of two machines or versions must not be averaged.
fn can_resume(run: &Run, what: &str, quick: bool, fingerprint: &Value) -> Result<(), Failure> {
    let name = &run.name;
    if run.what != what || run.quick != quick {
        let form = if run.quick { ", the short form" } else { "" };
        return Err(Failure::Usage(format!(
            "the run {name:?} is for another command ({}{form}): repeat the command that started it, with --resume {name}",
            run.what
        )));
    }
    for (part, said) in [
        ("/machine", "on another machine, or with another kernel"),
        ("/version", "by another version"),
        ("/program", "by another build"),
        ("/server_cpu", "on another CPU"),
        ("/load_cpu", "with the load on another CPU"),
    ] {
        if run.fingerprint.pointer(part) != fingerprint.pointer(part) {
            return Err(Failure::Usage(format!(
                "the run {name:?} was measured {said}: start a new one, and compare them with `taktwerk lab compare`"
            )));
        }
    }
    Ok(())
}

/// A duration as text.
pub(super) fn span(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    if seconds >= 3_600 {
        format!("{} h {:02} min", seconds / 3_600, seconds / 60 % 60)
    } else if seconds >= 60 {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    } else {
        format!("{seconds} s")
    }
}

/// Measurements as lines of JSON.
enum Stream {
    None,
    Standard,
    File(File),
}

impl Stream {
    fn open(path: Option<&PathBuf>) -> Result<Self, Failure> {
        match path {
            None => Ok(Self::None),
            Some(path) if path.as_os_str() == "-" => Ok(Self::Standard),
            Some(path) => {
                let failed =
                    |error| Failure::Environment(format!("cannot write {}: {error}", path.display()));
                Ok(Self::File(File::create(path).map_err(failed)?))
            }
        }
    }

    fn line(&mut self, measurement: &Measurement) -> std::io::Result<()> {
        let line = json!({
            "experiment": measurement.experiment,
            "repetition": measurement.repetition,
            "factors": measurement.condition.factors(),
            "valid": measurement.is_valid(),
            "invalid": measurement.invalid,
            "metrics": measurement.metrics,
            // Values over time, which are not metrics.
            "profile": processes::profile(measurement),
        });
        match self {
            Self::None => Ok(()),
            Self::Standard => writeln!(std::io::stdout().lock(), "{line}"),
            Self::File(file) => writeln!(file, "{line}"),
        }
    }
}

/// Checks before the measurement that a file can be written.
pub(crate) fn can_write(path: &Path, overwrite: Overwrite) -> Result<(), Failure> {
    overwrite.check(path)?;
    let failed = |why: String| Failure::Usage(format!("cannot write {}: {why}", path.display()));
    if path.is_dir() {
        return Err(failed("it is a directory; name a file".to_owned()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(failed(format!("the directory {} does not exist", folder.display())));
    }
    if is_device(path) {
        // Opening a pipe could wait for a reader.
        return Ok(());
    }
    let mut trial = path.as_os_str().to_owned();
    trial.push(format!(".{}.part", orphans::mark()));
    std::fs::write(&trial, "").map_err(|error| failed(error.to_string()))?;
    // If this fails, the next command removes the file.
    let _ = std::fs::remove_file(&trial);
    Ok(())
}

/// Writes a file atomically, with a temporary file and a rename. Devices and pipes are written to.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::Environment(format!("cannot write {}: {error}", path.display()));
    if is_device(path) {
        let mut device = File::options().write(true).open(path).map_err(failed)?;
        return device.write_all(text.as_bytes()).map_err(failed);
    }
    // Replaces the target of a symbolic link, not the link.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    remove_parts(path);
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", orphans::mark()));
    let beside = PathBuf::from(beside);
    std::fs::write(&beside, text).map_err(failed)?;
    std::fs::rename(&beside, path).map_err(failed)
}

/// Removes temporary files of killed writers. Processes of another container cannot be checked, so their files are
/// reported instead.
fn remove_parts(path: &Path) {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return;
    };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let fate = found.to_str().and_then(|found| {
            found.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".part").and_then(orphans::fate)
        });
        match fate {
            Some(Fate::Gone) => {
                // Another process may have removed it.
                let _ = std::fs::remove_file(entry.path());
            }
            Some(Fate::Unknown) => tracing::warn!(
                "{} belongs to another container, whose processes cannot be seen from here: remove it if no \
                 program there writes {name} any more",
                entry.path().display()
            ),
            Some(Fate::Runs) | None => {}
        }
    }
}

/// Prints where a report was written, unless the output is JSON.
pub(crate) fn wrote(output: Output, path: &Path) -> Result<(), Failure> {
    if output.is_json() { Ok(()) } else { output.text(&format!("\nreport: {}", path.display())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_lab::scenario::{Kind, LoadSpec, Scenario};

    #[test]
    fn a_limit_that_one_measurement_of_each_load_exceeds_is_told() {
        let mut scenario = Scenario::new("x", LoadSpec::new(Kind::Read));
        (scenario.time.duration_s, scenario.time.repetitions) = (10.0, 100);
        let conditions: Vec<_> =
            scenario.conditions().into_iter().map(|condition| ("x".to_owned(), condition)).collect();
        let told = |seconds| too_short(&conditions, Some(Duration::from_secs(seconds)));
        assert!(
            told(5).is_some_and(|told| told.contains("the limit of 5 s: no load is repeated")),
            "{:?}",
            told(5)
        );
        assert_eq!((told(60), too_short(&conditions, None)), (None, None));
    }

    #[test]
    fn files_are_written_atomically_and_stale_parts_removed() {
        let directory = std::env::temp_dir().join(format!("taktwerk-whole-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let page = directory.join("page.html");
        let alive = directory.join("page.html.1.part");
        let others = directory.join("other.html.4194999.part");
        // The same process id in another container, a process that has ended here, and both with the naming of earlier
        // versions.
        let ours = orphans::mark();
        let (before, namespace) = ours.rsplit_once('-').unwrap();
        let unseen = directory.join(format!("page.html.{before}-1.part"));
        let gone = format!("page.html.4194999-77-{namespace}.part");
        for left in
            [&alive, &others, &unseen, &directory.join(gone), &directory.join("page.html.4194999.part")]
        {
            std::fs::write(left, "half").unwrap();
        }
        write_whole(&page, "all of it").unwrap();
        assert_eq!(std::fs::read_to_string(&page).unwrap(), "all of it");
        let mut names: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|it| it.unwrap().path()).collect();
        names.sort();
        let mut kept = [others, page, alive, unseen];
        kept.sort();
        assert_eq!(names, kept);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn pipes_devices_and_links_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read_to_string(pipe).unwrap()
        });
        can_write(&pipe, Overwrite::default()).unwrap();
        write_whole(&pipe, "all of it").unwrap();
        assert_eq!(reader.join().unwrap(), "all of it");
        assert!(is_device(&pipe), "it is still a pipe");
        let full = Path::new("/dev/full");
        assert!(matches!(write_whole(full, "x"), Err(Failure::Environment(_))));
        assert!(is_device(full));
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, "new").unwrap();
        assert!(link.is_symlink() && !file.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn a_plan_without_loads_is_refused_with_its_reason() {
        let said = |notes: &[String]| refused(&check(&[]).unwrap_err(), notes);
        assert!(matches!(said(&[]), Failure::Usage(why) if why.contains("at least one value")));
        let notes = ["burger-igmp: no bridge".to_owned()];
        assert!(matches!(said(&notes), Failure::Environment(why) if why.ends_with("no bridge")));
    }

    #[test]
    fn omitted_repetitions_are_noted_by_experiment() {
        let mut scenario = Scenario::new("x", LoadSpec::new(Kind::Read));
        scenario.time.repetitions = 3;
        let condition = scenario.conditions().remove(0);
        let conditions = [("a".to_owned(), condition.clone()), ("b".to_owned(), condition.clone())];
        let of = |experiment: &str, repetition| {
            Measurement::failed(experiment, condition.clone(), repetition, "it counts".into())
        };
        let measured: Vec<_> = (0..3).map(|at| of("a", at)).chain([of("b", 0)]).collect();
        let notes = left_out(&conditions, &measured, Some(Duration::from_secs(570)));
        let [note] = &notes[..] else { panic!("{notes:?}") };
        assert!(note.starts_with("b: 2 of 3 ") && note.contains("9 min 30 s"), "{note}");
        assert!(left_out(&conditions, &measured, None).is_empty());
    }

    #[test]
    fn runs_of_different_builds_cannot_be_resumed() {
        let run = Run {
            id: 1,
            name: "x".into(),
            what: "reproduce burger".into(),
            quick: true,
            started_unix_ms: 0,
            finished_unix_ms: None,
            state: taktwerk_lab::store::State::Incomplete,
            fingerprint: json!({"version": "1", "program": "a", "peers": {}}),
            notes: Vec::new(),
            measurements: 3,
            invalid: 0,
        };
        let same = json!({"version": "1", "program": "a", "peers": {"milo": "2"}});
        assert!(can_resume(&run, "reproduce burger", true, &same).is_ok());
        assert!(can_resume(&run, "reproduce burger", false, &same).is_err());
        assert!(can_resume(&run, "calibrate", true, &same).is_err());
        let other = json!({"version": "1", "program": "b"});
        let refused = can_resume(&run, "reproduce burger", true, &other).unwrap_err();
        assert!(refused.to_string().contains("build"), "{refused}");
    }
}
