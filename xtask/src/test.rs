//! `cargo xtask test`: everything that has to be green, in one command (README.md and .ci/run call it).
//!
//! Steps run one after the other, but for those that compile while the tests wait; all of them run even if one fails, so that
//! one run shows everything. The last line counts passed and failed tests and checks.

use crate::Failure;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
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
    /// Whether it goes on with the lowest priority while the step with halves waits. It must not use the same target directory.
    is_beside: bool,
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
    Step { name, program, arguments, from: Extent::Quick, environment: &[], halves: &[], is_beside: false }
}

const fn slow(name: &'static str, program: &'static str, arguments: &'static [&'static str]) -> Step {
    Step { name, program, arguments, from: Extent::Full, ..step(name, program, arguments) }
}

/// What default builds leave out and can be tried on any machine.
const FEATURES: &str = "taktwerk-cli/attack,taktwerk-cli/can,taktwerk-history/postgres";

const STEPS: &[Step] = &[
    step("format", "cargo", &["fmt", "--all", "--check"]),
    step("published NodeSets", "cargo", &["xtask", "nodesets"]),
    step("generated code", "cargo", &["xtask", "codegen", "--check"]),
    step("documentation", "cargo", &["xtask", "docs", "--check"]),
    step("tidy and wasm32", "cargo", &["xtask", "tidy", "--wasm"]),
    step(
        "lints",
        "cargo",
        &["clippy", "--workspace", "--all-targets", "--features", FEATURES, "--", "-D", "warnings"],
    ),
    step("tests, compiled", "cargo", &["test", "--workspace", "--features", FEATURES, "--no-run"]),
    // Tests wait for most of their time and cargo runs one executable after the other. Both halves take about as long.
    Step {
        halves: &[
            &["--test", "[abd-k]*", "--test", "c[!a]*"],
            &["--lib", "--bins", "--test", "[!a-l]*", "--test", "l[!a]*"],
        ],
        ..step("tests", "cargo", &["test", "--workspace", "--features", FEATURES, "--no-fail-fast"])
    },
    // The laboratory's say that the machine is busy if something else runs.
    step(
        "tests on their own",
        "cargo",
        &["test", "--workspace", "--features", FEATURES, "--no-fail-fast", "--test", "ca*", "--test", "la*"],
    ),
    step("examples in documentation", "cargo", &["test", "--workspace", "--features", FEATURES, "--doc"]),
    step("campaign, 2 000 seeds", "cargo", &["xtask", "simulate", "--development", "--seeds", "2000"]),
    // The steps above build the command with the attacks, which its default build does not have.
    slow("default build of the command", "cargo", &["test", "-p", "taktwerk-cli", "--test", "flood"]),
    // What is built only with a feature must not be missed without it; of the steps above, all have all defaults.
    slow(
        "gateway without features",
        "cargo",
        &["check", "-p", "taktwerk-gateway", "--no-default-features", "--lib"],
    ),
    slow("packages", "cargo", &["xtask", "dist", "--development"]),
    slow("interoperability", "interop/all.sh", &[]),
    // Both mostly compile, each into a directory of its own.
    Step { is_beside: true, ..slow("models of the slots", "cargo", &["xtask", "loom"]) },
    Step { is_beside: true, ..slow("fuzzing", "fuzz/run.sh", &["2"]) },
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

    /// Takes over what came of a step, and says it.
    fn add(&mut self, step: &Step, ran: Ran, failures: &mut Vec<&'static str>) {
        let Ran { outcome, mut count, seconds } = ran;
        // A step without tests of its own counts as one check.
        if count.passed + count.failed == 0 {
            match outcome {
                Ok(()) => count.passed = 1,
                Err(_) => count.failed = 1,
            }
        }
        if let Err(reason) = outcome {
            println!("==> {} failed after {seconds} s: {reason}", step.name);
            failures.push(step.name);
            count.failed = count.failed.max(1);
        } else {
            println!("==> {} passed after {seconds} s", step.name);
        }
        self.passed += count.passed;
        self.failed += count.failed;
    }
}

/// What came of a step.
struct Ran {
    outcome: Result<(), Failure>,
    count: Count,
    seconds: u64,
}

/// Runs the steps of this extent.
pub(crate) fn run(root: &Path, extent: Extent) -> Result<(), Failure> {
    let mut total = Count::default();
    let mut failures = Vec::new();
    std::thread::scope(|scope| {
        let mut beside = VecDeque::new();
        for step in STEPS.iter().filter(|step| step.from <= extent) {
            if !step.halves.is_empty() {
                let steps = STEPS.iter().filter(|step| step.is_beside && step.from <= extent);
                // One after the other: together they would take more than what is left over.
                let turn = Arc::new(Mutex::new(()));
                beside.extend(steps.map(|step| {
                    let turn = Arc::clone(&turn);
                    scope.spawn(move || {
                        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
                        let mut output = String::new();
                        (run_step(root, step, &mut |lines| output.push_str(lines)), output)
                    })
                }));
            }
            println!("\n==> {}: {} {}", step.name, step.program, step.arguments.join(" "));
            let ran = match if step.is_beside { beside.pop_front() } else { None } {
                Some(running) => {
                    let (ran, output) = running.join().unwrap_or_else(|_| (panicked(), String::new()));
                    print!("{output}");
                    ran
                }
                None => run_step(root, step, &mut |lines| print!("{lines}")),
            };
            total.add(step, ran, &mut failures);
        }
    });
    if !failures.is_empty() {
        println!("\nfailed: {}", failures.join(", "));
    }
    println!("\n{} passed, {} failed", total.passed, total.failed);
    if failures.is_empty() && total.failed == 0 { Ok(()) } else { Err("not everything is green".to_owned()) }
}

fn panicked() -> Ran {
    Ran { outcome: Err("a run ended with a panic".to_owned()), count: Count::default(), seconds: 0 }
}

fn run_step(root: &Path, step: &Step, show: &mut dyn FnMut(&str)) -> Ran {
    let started = Instant::now();
    let mut ran =
        if step.halves.is_empty() { run_once(root, step, &[], show) } else { run_halves(root, step) };
    ran.seconds = started.elapsed().as_secs();
    ran
}

fn run_halves(root: &Path, step: &Step) -> Ran {
    std::thread::scope(|scope| {
        let run = |added: &'static &[&str]| {
            scope.spawn(move || {
                // Lines are kept until the tests of one executable have ended, so that those of the other half do not come
                // between them.
                let mut group = String::new();
                let ran = run_once(root, step, added, &mut |line| {
                    group.push_str(line);
                    if line.starts_with("test result:") {
                        print!("{group}");
                        group.clear();
                    }
                });
                print!("{group}");
                ran
            })
        };
        let halves: Vec<_> = step.halves.iter().map(run).collect();
        let mut all = Ran { outcome: Ok(()), count: Count::default(), seconds: 0 };
        for half in halves {
            let ran = half.join().unwrap_or_else(|_| panicked());
            all.count.passed += ran.count.passed;
            all.count.failed += ran.count.failed;
            all.outcome = all.outcome.and(ran.outcome);
        }
        all
    })
}

/// One run of a step, whose lines are shown as they come.
fn run_once(root: &Path, step: &Step, added: &[&str], show: &mut dyn FnMut(&str)) -> Ran {
    let mut count = Count::default();
    let outcome = spawn(root, step, added).and_then(|mut child| {
        for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(|lines| lines.split(b'\n')) {
            let line = line.map_err(|error| format!("its output cannot be read: {error}"))?;
            let line = String::from_utf8_lossy(&line);
            count.read(&line);
            show(&(line + "\n"));
        }
        let status = child.wait().map_err(|error| format!("it cannot be waited for: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("{status}")) }
    });
    Ran { outcome, count, seconds: 0 }
}

fn spawn(root: &Path, step: &Step, added: &[&str]) -> Result<Child, Failure> {
    let program =
        if step.program.contains('/') { root.join(step.program) } else { Path::new(step.program).to_owned() };
    // The scripts take the programs that the tests have built: a release build of everything takes as long as all tests.
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let mut command = if step.is_beside { Command::new("nice") } else { Command::new(&program) };
    if step.is_beside {
        command.args(["-n", "19"]).arg(&program);
    }
    command
        .env("PROGRAMS", target.join("debug"))
        .envs(step.environment.iter().copied())
        .args(step.arguments)
        .args(added)
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} does not start: {error}", program.display()))
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
    fn steps_beside_the_tests_are_told_after_them() {
        let halves = STEPS.iter().position(|step| !step.halves.is_empty()).unwrap();
        assert_eq!(STEPS.iter().filter(|step| !step.halves.is_empty()).count(), 1);
        for (at, step) in STEPS.iter().enumerate().filter(|(_, step)| step.is_beside) {
            assert!(at > halves && step.halves.is_empty(), "{}", step.name);
        }
    }

    #[test]
    fn a_step_is_shown_and_counted() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut shown = String::new();
        let echo = Step { is_beside: true, ..slow("echo", "echo", &["count: 2 passed, 1 failed"]) };
        let ran = run_step(root, &echo, &mut |line| shown.push_str(line));
        assert_eq!((ran.outcome.is_ok(), ran.count.passed, ran.count.failed), (true, 2, 1));
        assert_eq!(shown, "count: 2 passed, 1 failed\n");
        assert!(run_step(root, &slow("false", "false", &[]), &mut |_| {}).outcome.is_err());
        assert!(
            run_step(root, &slow("nothing", "there-is-no-such-program", &[]), &mut |_| {}).outcome.is_err()
        );
    }

    #[test]
    fn every_step_names_a_program() {
        assert!(STEPS.iter().all(|step| !step.program.is_empty() && !step.name.is_empty()));
    }

    #[test]
    fn a_larger_extent_has_all_steps_of_the_smaller() {
        let steps = |extent| STEPS.iter().filter(move |step| step.from <= extent).count();
        assert!(steps(Extent::Quick) < steps(Extent::Full));
        assert!(steps(Extent::Full) < steps(Extent::Nightly));
        assert_eq!(steps(Extent::Nightly), STEPS.len());
    }
}
