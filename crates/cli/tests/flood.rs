//! `taktwerk lab flood`, with the feature `attack` and without it.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::process::Output;
use std::time::Duration;
use taktwerk_lab::program::Program;

fn flood(arguments: &[&str]) -> Output {
    let program = Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(["lab", "flood"]).args(arguments);
    program.run(Duration::from_secs(120)).unwrap()
}

#[cfg(feature = "attack")]
#[test]
fn an_attack_runs_and_is_judged() {
    let output = flood(&["sessions", "-c", "200", "--settle", "0", "--no-times", "--json"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["attack"], &report["limits"]), (&"sessions".into(), &"strangers".into()));
    let claims = report["claims"].as_array().unwrap();
    assert!(claims.iter().any(|claim| claim["claim"] == "the server is alive"), "{report}");
    assert!(claims.iter().all(|claim| claim["holds"] == true), "{report}");
    assert!(report["canary"]["reads"].as_u64().unwrap() > 0, "{report}");
}

#[cfg(feature = "attack")]
#[test]
fn an_unknown_attack_is_a_usage_error_that_lists_the_others() {
    let output = flood(&["everything"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("zero-window"), "{told}");
}

#[cfg(not(feature = "attack"))]
#[test]
fn a_build_without_attacks_says_how_to_build_them() {
    for arguments in [&["sessions", "-c", "200"][..], &[]] {
        let output = flood(arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(6), "{told}");
        assert!(told.contains("--features attack"), "{told}");
    }
}
