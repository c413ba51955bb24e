//! `cargo xtask test`: all tests and checks in one command (called by README.md and .ci/run).
//!
//! Steps run one after the other, and all of them run even if one fails. Tests mostly wait, so CPU-bound checks run
//! beside them with the lowest priority, in two rows: checks of one row need the lock of cargo's build directory, and
//! use a single processor most of the time. The last line counts passed and failed tests and checks.

use crate::Failure;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A test or check.
struct Step {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// The smallest extent that includes it.
    from: Extent,
    /// Environment variables of the step.
    environment: &'static [(&'static str, &'static str)],
    /// Additional arguments, one set per parallel run. Empty for a single run without additions.
    halves: &'static [&'static [&'static str]],
}

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// During development: no peers, no fuzzing.
    Quick,
    /// Before a merge.
    Full,
    /// Every night: slow steps that rarely find anything.
    Nightly,
}

const fn step(name: &'static str, program: &'static str, arguments: &'static [&'static str]) -> Step {
    Step { name, program, arguments, from: Extent::Quick, environment: &[], halves: &[] }
}

const fn slow(name: &'static str, program: &'static str, arguments: &'static [&'static str]) -> Step {
    Step { from: Extent::Full, ..step(name, program, arguments) }
}

/// This program. `cargo xtask` would wait for the lock of cargo's build directory.
const XTASK: &str = "xtask";

/// Features that are not in default builds but can be tested on any machine.
const FEATURES: &str = "taktwerk-cli/attack,taktwerk-history/postgres,xtask/versus";

/// Features of the gateway whose tests need servers, or libraries in other languages.
const SERVERS: &str = "kafka,nats,parquet,can";

const STEPS: &[Step] = &[
    step("format", "cargo", &["fmt", "--all", "--check"]),
    step("published NodeSets", XTASK, &["nodesets"]),
    step("generated code", XTASK, &["codegen", "--check"]),
    step("documentation", XTASK, &["docs", "--check"]),
    step("tidy", XTASK, &["tidy"]),
    // Most of their tests are in the step "gateway with its servers". Those of InfluxDB and Sparkplug need no feature.
    Step { from: Extent::Nightly, ..step("servers for the gateway", "interop/servers.sh", &[]) },
    step("tests, compiled", "cargo", &["test", "--workspace", "--features", FEATURES, "--no-run"]),
    // The laboratory's tests report a busy machine if something else runs.
    step(
        "tests on their own",
        "cargo",
        &["test", "--workspace", "--features", FEATURES, "--no-fail-fast", "--test", "ca*", "--test", "la*"],
    ),
    // Tests mostly wait, and cargo runs one executable after the other. Both halves take about the same time.
    Step {
        halves: &[
            &["--test", "[abd-ks]*", "--test", "c[!a]*"],
            &["--lib", "--bins", "--test", "[!a-ls]*", "--test", "l[!a]*"],
        ],
        ..step("tests", "cargo", &["test", "--workspace", "--features", FEATURES, "--no-fail-fast"])
    },
    slow("interoperability", "interop/all.sh", &[]),
    // It needs a JDK and Maven.
    Step { from: Extent::Nightly, ..step("Milo as a client", "interop/milo.sh", &[]) },
    // Both C libraries: types of one may not exist, or not be shared by threads, in the other.
    Step { from: Extent::Nightly, ..step("packages as released", XTASK, &["dist", "--machine", "x86_64"]) },
    // They need a build of open62541 with the full namespace 0.
    Step {
        environment: &[("ALARMS_TOO", "1")],
        from: Extent::Nightly,
        ..step("alarms of open62541", "interop/events.sh", &[])
    },
    // The tests replay the committed inputs of every target, and mutations of them.
    Step { from: Extent::Nightly, ..step("fuzzing", "fuzz/run.sh", &["10"]) },
    Step {
        from: Extent::Nightly,
        ..step("default build, tested", "cargo", &["test", "-p", "taktwerk-cli", "--test", "flood"])
    },
    Step {
        from: Extent::Nightly,
        ..step(
            "gateway without features",
            "cargo",
            &["check", "-p", "taktwerk-gateway", "--no-default-features", "--lib"],
        )
    },
    Step {
        from: Extent::Nightly,
        ..step(
            "all features",
            "cargo",
            &[
                "clippy",
                "-p",
                "taktwerk-gateway",
                "-p",
                "taktwerk-history",
                "--all-features",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ],
        )
    },
    // These destinations are in no default build.
    Step {
        from: Extent::Nightly,
        ..step(
            "gateway with its servers",
            "cargo",
            &[
                "test",
                "-p",
                "taktwerk-gateway",
                "--features",
                SERVERS,
                "--no-fail-fast",
                "--lib",
                "--test",
                "destination_[kn]*",
                "--test",
                "destination_parquet",
                "--test",
                "leases_nats",
            ],
        )
    },
    Step {
        from: Extent::Nightly,
        ..step("command without features", "cargo", &["check", "-p", "taktwerk-cli", "--no-default-features"])
    },
    // The step "tests" runs 500 of them.
    Step {
        environment: &[("TAKTWERK_SIM_SEEDS", "20000")],
        from: Extent::Nightly,
        ..step(
            "simulation, 20 000 seeds",
            "cargo",
            &["test", "-p", "taktwerk-sim", "--test", "faults", "--test", "churn"],
        )
    },
];

/// The first step with others beside it. Earlier steps need the whole machine.
const FIRST_WITH_OTHERS: &str = "tests";

/// The rows of steps beside them. No result depends on their duration. All that need the lock of cargo's build directory
/// are in the first row.
const BESIDE: [&[Step]; 2] = [
    &[
        step(
            "lints",
            "cargo",
            &["clippy", "--workspace", "--all-targets", "--features", FEATURES, "--", "-D", "warnings"],
        ),
        // Default builds must compile without the optional features, which all other steps enable.
        slow("default build of the command", "cargo", &["check", "-p", "taktwerk-cli"]),
        step("examples in documentation", "cargo", &["test", "--workspace", "--features", FEATURES, "--doc"]),
        step("wasm32", XTASK, &["tidy", "--wasm"]),
    ],
    &[
        step("campaign, 2 000 seeds", XTASK, &["simulate", "--development", "--seeds", "2000"]),
        slow("models of the slots", XTASK, &["loom"]),
        slow("packages", XTASK, &["dist", "--development"]),
    ],
];

/// Number of tests in a step's output.
#[derive(Default)]
struct Count {
    passed: u64,
    failed: u64,
}

impl Count {
    /// Reads the summary lines of cargo's test runner and of the scripts.
    fn read(&mut self, line: &str) {
        let words: Vec<&str> = line.split([' ', ';', ',']).filter(|word| !word.is_empty()).collect();
        if line.starts_with("test result:") || line.starts_with("count:") {
            for pair in words.windows(2) {
                if let Ok(number) = pair[0].parse::<u64>() {
                    match pair[1] {
                        "passed" => self.passed += number,
                        "failed" => self.failed += number,
                        _ => {}
                    }
                }
            }
        }
    }
}

/// Totals of all steps.
#[derive(Default)]
struct Report {
    total: Count,
    failures: Vec<&'static str>,
}

/// How a step runs, and when its output is printed, so that outputs are not mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Prints lines immediately.
    Alone,
    /// Prints the lines after each test executable.
    Half,
    /// With the lowest priority; prints all lines at the end.
    Beside,
}

/// Runs the steps of this extent.
pub(crate) fn run(root: &Path, extent: Extent) -> Result<(), Failure> {
    let report = Mutex::<Report>::default();
    let of_extent = |steps: &'static [Step]| steps.iter().filter(move |step| step.from <= extent);
    std::thread::scope(|scope| {
        for step in of_extent(STEPS) {
            let (begun, has_begun) = channel();
            if step.name == FIRST_WITH_OTHERS {
                let report = &report;
                scope.spawn(move || {
                    // Until its tests run, cargo keeps others from building.
                    has_begun.iter().take(step.halves.len().max(1)).for_each(drop);
                    for row in BESIDE {
                        scope.spawn(move || {
                            of_extent(row)
                                .for_each(|step| run_and_tell(root, step, Manner::Beside, None, report));
                        });
                    }
                });
            }
            run_and_tell(root, step, Manner::Alone, Some(begun), &report);
        }
    });
    let Report { total, failures } = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failures.is_empty() {
        println!("\nfailed: {}", failures.join(", "));
    }
    println!("\n{} passed, {} failed", total.passed, total.failed);
    if failures.is_empty() && total.failed == 0 { Ok(()) } else { Err("tests or checks failed".to_owned()) }
}

/// Runs a step; `begun` gets a message with the first line of each run.
fn run_and_tell(
    root: &Path,
    step: &'static Step,
    manner: Manner,
    begun: Option<Sender<()>>,
    report: &Mutex<Report>,
) {
    let beside = if manner == Manner::Beside { " (beside)" } else { "" };
    println!("\n==> {}{beside}: {} {}", step.name, step.program, step.arguments.join(" "));
    let started = Instant::now();
    let mut count = Count::default();
    let outcome = run_step(root, step, manner, begun, &mut count);
    let seconds = started.elapsed().as_secs();
    // A step without tests counts as one check.
    if count.passed + count.failed == 0 {
        match outcome {
            Ok(()) => count.passed = 1,
            Err(_) => count.failed = 1,
        }
    }
    let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(reason) = outcome {
        println!("==> {} failed after {seconds} s: {reason}", step.name);
        report.failures.push(step.name);
        count.failed = count.failed.max(1);
    } else {
        println!("==> {} passed after {seconds} s", step.name);
    }
    report.total.passed += count.passed;
    report.total.failed += count.failed;
}

fn run_step(
    root: &Path,
    step: &Step,
    manner: Manner,
    begun: Option<Sender<()>>,
    count: &mut Count,
) -> Result<(), Failure> {
    if step.halves.is_empty() {
        return run_once(root, step, &[], manner, begun, count);
    }
    std::thread::scope(|scope| {
        let halves: Vec<_> = step
            .halves
            .iter()
            .map(|added| {
                let begun = begun.clone();
                scope.spawn(move || {
                    let mut count = Count::default();
                    let outcome = run_once(root, step, added, Manner::Half, begun, &mut count);
                    (outcome, count)
                })
            })
            .collect();
        let mut outcome = Ok(());
        for half in halves {
            let (of_half, counted) = half
                .join()
                .unwrap_or_else(|_| (Err("a run ended with a panic".to_owned()), Count::default()));
            count.passed += counted.passed;
            count.failed += counted.failed;
            outcome = outcome.and(of_half);
        }
        outcome
    })
}

/// One run of a step.
fn run_once(
    root: &Path,
    step: &Step,
    added: &[&str],
    manner: Manner,
    mut begun: Option<Sender<()>>,
    count: &mut Count,
) -> Result<(), Failure> {
    let program = match step.program {
        XTASK => std::env::current_exe().map_err(|error| format!("this program is not found: {error}"))?,
        program if program.contains('/') => root.join(program),
        program => Path::new(program).to_owned(),
    };
    // The scripts use the programs built for tests: a release build takes as long as all tests.
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let mut command = Command::new(if manner == Manner::Beside { Path::new("nice") } else { &program });
    if manner == Manner::Beside {
        command.args(["-n", "19"]).arg(&program);
    }
    let mut child = command
        .env("PROGRAMS", target.join("debug"))
        .envs(step.environment.iter().copied())
        .args(step.arguments)
        .args(added)
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} does not start: {error}", program.display()))?;
    let mut group = String::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.map_err(|error| format!("its output cannot be read: {error}"))?;
            if let Some(begun) = begun.take() {
                // Nobody may be waiting for it.
                let _ = begun.send(());
            }
            let line = String::from_utf8_lossy(&line);
            count.read(&line);
            group.push_str(&line);
            group.push('\n');
            if manner == Manner::Alone || manner == Manner::Half && line.starts_with("test result:") {
                print!("{group}");
                group.clear();
            }
        }
    }
    print!("{group}");
    let status = child.wait().map_err(|error| format!("it cannot be waited for: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn closing_lines_are_counted() {
        let mut count = Count::default();
        count.read(
            "test result: ok. 42 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.45s",
        );
        count.read("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out");
        count.read("count: 182 passed, 3 failed");
        count.read("test something ... ok");
        assert_eq!((count.passed, count.failed), (225, 5));
    }

    /// Whether a name matches a pattern of letters, classes and a trailing `*`, as used with cargo here.
    fn matches(pattern: &str, name: &str) -> bool {
        if pattern == "*" {
            return true;
        }
        let Some(letter) = name.chars().next() else { return pattern.is_empty() };
        let rest = &name[letter.len_utf8()..];
        let Some(class) = pattern.strip_prefix('[') else {
            return pattern.strip_prefix(letter).is_some_and(|pattern| matches(pattern, rest));
        };
        let (class, pattern) = class.split_once(']').unwrap();
        let (is_not, class) = class.strip_prefix('!').map_or((false, class), |class| (true, class));
        let class: Vec<char> = class.chars().collect();
        let range = class.windows(3).any(|range| range[1] == '-' && (range[0]..=range[2]).contains(&letter));
        ((range || class.contains(&letter)) != is_not) && matches(pattern, rest)
    }

    /// The folders of all crates.
    fn crates() -> Vec<PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        std::fs::read_dir(root.join("crates")).unwrap().map(|folder| folder.unwrap().path()).collect()
    }

    /// The test executables of a crate: files of its folder `tests`, and folders with a `main.rs` there.
    fn executables(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder.join("tests")).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|it| it == "rs") || path.join("main.rs").is_file())
            .collect()
    }

    #[test]
    fn every_test_runs_once() {
        let names: Vec<String> = crates()
            .iter()
            .flat_map(|folder| executables(folder))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        assert!(names.len() > 40, "{}", names.len());
        let all =
            STEPS.iter().filter(|step| step.from == Extent::Quick && step.arguments.contains(&"--workspace"));
        let arguments = all.flat_map(|step| step.halves.iter().copied().chain([step.arguments]));
        let patterns: Vec<&str> = arguments
            .flat_map(|arguments| arguments.windows(2).filter(|pair| pair[0] == "--test").map(|pair| pair[1]))
            .collect();
        for name in names {
            let runs: Vec<_> = patterns.iter().filter(|pattern| matches(pattern, &name)).collect();
            assert_eq!(runs.len(), 1, "{name}: {runs:?}");
        }
    }

    /// A test of a feature that no step enables is compiled to nothing, and passes.
    #[test]
    fn every_feature_that_a_test_needs_is_enabled_by_a_step() {
        let folders = crates();
        let manifests =
            folders.iter().map(|folder| std::fs::read_to_string(folder.join("Cargo.toml")).unwrap());
        let manifests = manifests.collect::<String>();
        let mut found = 0;
        for folder in folders {
            let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            let default = manifest.lines().find(|line| line.starts_with("default = [")).unwrap_or_default();
            let package = format!("taktwerk-{}", folder.file_name().unwrap().to_str().unwrap());
            let sources = executables(&folder).into_iter().flat_map(|path| {
                let modules = std::fs::read_dir(&path).into_iter().flatten();
                let modules: Vec<_> = modules.map(|file| file.unwrap().path()).collect();
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                modules.into_iter().chain([path]).map(move |path| (name.clone(), path))
            });
            for (name, path) in sources {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let Some((_, rest)) = text.split_once("#![cfg(feature = \"") else { continue };
                let feature = rest.split('"').next().unwrap();
                let enables = |step: &Step| {
                    let arguments = step.arguments;
                    let of_package = format!("{package}/{feature}");
                    let lists =
                        arguments.windows(2).filter(|pair| pair[0] == "--features").map(|pair| pair[1]);
                    let is_listed =
                        lists.flat_map(|list| list.split(',')).any(|it| it == feature || it == of_package);
                    let tests = arguments.windows(2).filter(|pair| pair[0] == "--test").map(|pair| pair[1]);
                    let is_run =
                        arguments.contains(&package.as_str()) && tests.clone().any(|it| matches(it, &name));
                    is_listed && (is_run || arguments.contains(&"--workspace"))
                };
                // Builds of the workspace enable the features that other crates need.
                let needed = manifests.lines().filter(|line| line.starts_with(&format!("{package} =")));
                let mut default = needed.chain([default]);
                let is_default = default.any(|line| line.contains(&format!("\"{feature}\"")));
                assert!(
                    is_default || STEPS.iter().any(enables),
                    "no step runs {} with {feature}",
                    path.display()
                );
                found += 1;
            }
        }
        assert!(found > 5, "{found}");
    }

    #[test]
    fn every_step_names_a_program() {
        let mut steps = STEPS.iter().chain(BESIDE.into_iter().flatten());
        assert!(steps.all(|step| !step.program.is_empty() && !step.name.is_empty()));
        assert!(STEPS.iter().any(|step| step.name == FIRST_WITH_OTHERS && step.from == Extent::Quick));
    }

    #[test]
    fn a_larger_extent_has_all_steps_of_the_smaller() {
        let steps = |extent| STEPS.iter().filter(move |step| step.from <= extent).count();
        assert!(steps(Extent::Quick) < steps(Extent::Full));
        assert!(steps(Extent::Full) < steps(Extent::Nightly));
        assert_eq!(steps(Extent::Nightly), STEPS.len());
    }
}
