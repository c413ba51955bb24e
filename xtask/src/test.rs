//! `cargo xtask test`: everything that has to be green, in one command (README.md and .ci/run call it).
//!
//! Steps run one after the other; all of them run even if one fails, so that one run shows everything. Tests wait for most of
//! their time, so what only computes runs beside them with the lowest priority. The last line counts passed and failed tests and
//! checks.

use crate::Failure;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// One thing that has to be green.
struct Step {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// In which runs it is.
    from: Extent,
    /// Set for the step.
    environment: &'static [(&'static str, &'static str)],
    /// What is added to the arguments, in runs that go on at the same time. Empty for one run without additions.
    halves: &'static [&'static [&'static str]],
    /// A folder of its own in the target directory: cargo lets one build after the other into a folder.
    folder: Option<&'static str>,
}

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// While one works: no peers, no fuzzing.
    Quick,
    /// Before something is merged.
    Full,
    /// Every night: what takes long and seldom finds anything.
    Nightly,
}

const fn step(name: &'static str, program: &'static str, arguments: &'static [&'static str]) -> Step {
    Step { name, program, arguments, from: Extent::Quick, environment: &[], halves: &[], folder: None }
}

const fn slow(name: &'static str, program: &'static str, arguments: &'static [&'static str]) -> Step {
    Step { from: Extent::Full, ..step(name, program, arguments) }
}

/// What default builds leave out and can be tried on any machine.
const FEATURES: &str = "taktwerk-cli/attack,taktwerk-cli/can,taktwerk-history/postgres";

const STEPS: &[Step] = &[
    step("format", "cargo", &["fmt", "--all", "--check"]),
    step("published NodeSets", "cargo", &["xtask", "nodesets"]),
    step("generated code", "cargo", &["xtask", "codegen", "--check"]),
    step("documentation", "cargo", &["xtask", "docs", "--check"]),
    step("tidy and wasm32", "cargo", &["xtask", "tidy", "--wasm"]),
    step("tests, compiled", "cargo", &["test", "--workspace", "--features", FEATURES, "--no-run"]),
    // The laboratory's say that the machine is busy if something else runs.
    step(
        "tests on their own",
        "cargo",
        &["test", "--workspace", "--features", FEATURES, "--no-fail-fast", "--test", "ca*", "--test", "la*"],
    ),
    // Tests wait for most of their time and cargo runs one executable after the other. Both halves take about as long.
    Step {
        halves: &[
            &["--test", "[abd-k]*", "--test", "c[!a]*"],
            &["--lib", "--bins", "--test", "[!a-l]*", "--test", "l[!a]*"],
        ],
        ..step("tests", "cargo", &["test", "--workspace", "--features", FEATURES, "--no-fail-fast"])
    },
    step("examples in documentation", "cargo", &["test", "--workspace", "--features", FEATURES, "--doc"]),
    slow("interoperability", "interop/all.sh", &[]),
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
                "--",
                "-D",
                "warnings",
            ],
        )
    },
    // A crate under the MPL-2.0 comes with it, so no build has it by itself.
    Step {
        from: Extent::Nightly,
        ..step(
            "serial lines",
            "cargo",
            &["test", "-p", "taktwerk-gateway", "--features", "serial", "--lib", "line::"],
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

/// The first step that others run beside. Those before it need the machine, or all of its processors.
const FIRST_WITH_OTHERS: &str = "tests";

/// What runs beside them, one after the other. No result depends on how long it takes.
const BESIDE: &[Step] = &[
    Step {
        folder: Some("lints"),
        ..step(
            "lints",
            "cargo",
            &["clippy", "--workspace", "--all-targets", "--features", FEATURES, "--", "-D", "warnings"],
        )
    },
    // What is built only with a feature must not be missed without it; all other steps have all defaults, and the attacks
    // besides.
    Step {
        folder: Some("lints"),
        ..slow("default build of the command", "cargo", &["check", "-p", "taktwerk-cli"])
    },
    step("campaign, 2 000 seeds", "cargo", &["xtask", "simulate", "--development", "--seeds", "2000"]),
    slow("models of the slots", "cargo", &["xtask", "loom"]),
    slow("packages", "cargo", &["xtask", "dist", "--development"]),
];

/// Tests that a step's output counted.
#[derive(Default)]
struct Count {
    passed: u64,
    failed: u64,
}

impl Count {
    /// Takes over the closing lines of cargo's test runner and of the scripts.
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

/// What all steps came to.
#[derive(Default)]
struct Report {
    total: Count,
    failures: Vec<&'static str>,
}

/// How a program runs, and when its lines are shown, so that those of others do not come between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Lines are shown as they come.
    Alone,
    /// Lines are shown when the tests of an executable have ended.
    Half,
    /// With the lowest priority; lines are shown at the end.
    Beside,
}

/// Runs the steps of this extent.
pub(crate) fn run(root: &Path, extent: Extent) -> Result<(), Failure> {
    let report = Mutex::<Report>::default();
    let of_extent = |steps: &'static [Step]| steps.iter().filter(move |step| step.from <= extent);
    std::thread::scope(|scope| {
        for step in of_extent(STEPS) {
            if step.name == FIRST_WITH_OTHERS {
                scope.spawn(|| {
                    of_extent(BESIDE).for_each(|step| run_and_tell(root, step, Manner::Beside, &report))
                });
            }
            run_and_tell(root, step, Manner::Alone, &report);
        }
    });
    let Report { total, failures } = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failures.is_empty() {
        println!("\nfailed: {}", failures.join(", "));
    }
    println!("\n{} passed, {} failed", total.passed, total.failed);
    if failures.is_empty() && total.failed == 0 { Ok(()) } else { Err("not everything is green".to_owned()) }
}

fn run_and_tell(root: &Path, step: &'static Step, manner: Manner, report: &Mutex<Report>) {
    let beside = if manner == Manner::Beside { " (beside)" } else { "" };
    println!("\n==> {}{beside}: {} {}", step.name, step.program, step.arguments.join(" "));
    let started = Instant::now();
    let mut count = Count::default();
    let outcome = run_step(root, step, manner, &mut count);
    let seconds = started.elapsed().as_secs();
    // A step without tests of its own counts as one check.
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

fn run_step(root: &Path, step: &Step, manner: Manner, count: &mut Count) -> Result<(), Failure> {
    if step.halves.is_empty() {
        return run_once(root, step, &[], manner, count);
    }
    std::thread::scope(|scope| {
        let halves: Vec<_> = step
            .halves
            .iter()
            .map(|added| {
                scope.spawn(move || {
                    let mut count = Count::default();
                    let outcome = run_once(root, step, added, Manner::Half, &mut count);
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
    count: &mut Count,
) -> Result<(), Failure> {
    let program =
        if step.program.contains('/') { root.join(step.program) } else { Path::new(step.program).to_owned() };
    // The scripts take the programs that the tests have built: a release build of everything takes as long as all tests.
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let mut command = Command::new(if manner == Manner::Beside { Path::new("nice") } else { &program });
    if manner == Manner::Beside {
        command.args(["-n", "19"]).arg(&program);
    }
    if let Some(folder) = step.folder {
        command.env("CARGO_TARGET_DIR", target.join(folder));
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

    /// Whether a name matches letters, classes of them and `*` at the end, which is what the steps use of cargo's patterns.
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

    #[test]
    fn every_test_runs_once() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let tests = std::fs::read_dir(root.join("crates")).unwrap();
        let tests =
            tests.flat_map(|one| std::fs::read_dir(one.unwrap().path().join("tests")).into_iter().flatten());
        let names: Vec<String> = tests
            .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        assert!(names.len() > 100, "{}", names.len());
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

    #[test]
    fn every_step_names_a_program() {
        let mut steps = STEPS.iter().chain(BESIDE);
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
