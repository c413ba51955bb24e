//! Style checks: crate roots, unfinished code, long files, and machine names.

use super::Finding;
use super::source::{Code, line_of};
use std::path::Path;

/// Longer files usually do more than one job.
const LINES_MAX: usize = 800;

/// The start of every generated file.
const GENERATED: &str = "// Written by `cargo xtask codegen`";

/// Macros that mark unfinished code.
pub(super) fn unfinished(path: &str, code: &Code) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in ["todo!", "unimplemented!", "dbg!"] {
        for (at, _) in code.all.match_indices(name) {
            if !code
                .all
                .get(..at)
                .is_some_and(|before| before.ends_with(|it: char| it.is_alphanumeric() || it == '_'))
            {
                let message = format!("{name} must not be committed");
                findings.push(Finding::new(path, line_of(&code.all, at), message));
            }
        }
    }
    findings
}

/// A warning for a long file that is not generated.
pub(super) fn long_file(path: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    let is_long = lines > LINES_MAX && !text.starts_with(GENERATED);
    is_long.then(|| {
        Finding::new(path, 0, format!("{lines} lines; a file has one job (about {LINES_MAX} lines)"))
    })
}

/// A crate root must have documentation, and its manifest must use the workspace lints.
pub(super) fn crate_root(root: &Path, directory: &Path) -> Vec<Finding> {
    let name = directory.strip_prefix(root).unwrap_or(directory).to_string_lossy().replace('\\', "/");
    let mut findings = Vec::new();
    for file in ["src/lib.rs", "src/main.rs"] {
        if let Ok(text) = std::fs::read_to_string(directory.join(file)) {
            findings.extend(starts_with_a_map(&format!("{name}/{file}"), &text));
        }
    }
    let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
    findings.extend(takes_the_lints(&format!("{name}/Cargo.toml"), &manifest));
    let is_core = name.strip_prefix("crates/").is_some_and(|name| super::CORE.contains(&name));
    if is_core && !directory.join("clippy.toml").is_file() {
        let message = "a core crate needs the clippy.toml of crates/types, which bans clocks and sockets";
        findings.push(Finding::new(&format!("{name}/clippy.toml"), 0, message));
    }
    findings
}

fn starts_with_a_map(path: &str, text: &str) -> Option<Finding> {
    (!text.starts_with("//!"))
        .then(|| Finding::new(path, 1, "starts with //!: what the crate is and where to look"))
}

/// Manifests of the crates that may contain unsafe code.
const UNSAFE: [&str; 1] = ["crates/memory/Cargo.toml"];

fn takes_the_lints(path: &str, manifest: &str) -> Option<Finding> {
    if UNSAFE.contains(&path) {
        let denies = manifest.lines().any(|line| line.replace(' ', "") == "unsafe_code=\"deny\"");
        let message = "needs unsafe_code = \"deny\" in [lints.rust]: unsafe lines are allowed one by one";
        return (!denies).then(|| Finding::new(path, 0, message));
    }
    let lints = manifest.split("[lints]").nth(1).unwrap_or("");
    let own = lints.split("\n[").next().unwrap_or("");
    let takes = own.lines().any(|line| line.replace(' ', "") == "workspace=true");
    (!takes).then(|| Finding::new(path, 0, "needs [lints] workspace = true: unsafe code is forbidden there"))
}

/// Directories of a developer's machine and hosts of package registries must not be in published files.
pub(super) fn machine_names(path: &str, text: &str, root: &str) -> Vec<Finding> {
    // Assembled here, so that this file does not contain them.
    let personal =
        [["/ho", "me/"], ["/Us", "ers/"], ["/ro", "ot/"], ["C:\\Us", "ers\\"]].map(|parts| parts.concat());
    let hosts = [["registry.npm", "js.org"], ["index.crates", ".io"], ["files.python", "hosted.org"]]
        .map(|it| it.concat());
    let root = format!("{root}/");
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for name in personal.iter().chain([&root]) {
            if line.match_indices(name.as_str()).any(|(at, _)| stands_alone(line, at)) {
                findings.push(Finding::new(
                    path,
                    number,
                    format!("names a directory of one machine ({name})"),
                ));
            }
        }
        for host in hosts.iter().filter(|host| line.contains(host.as_str())) {
            findings.push(Finding::new(
                path,
                number,
                format!("names the host of a package registry ({host})"),
            ));
        }
    }
    findings
}

/// Whether a path starts here, and not in the middle of an address such as `https://example.org/home/`.
fn stands_alone(line: &str, at: usize) -> bool {
    !line
        .get(..at)
        .unwrap_or("")
        .ends_with(|before: char| before.is_alphanumeric() || matches!(before, '.' | '_' | '-' | '~' | '}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_code_is_found() {
        let found =
            unfinished("a.rs", &Code::new("fn a() {\n    todo!()\n}\n// todo!\nfn b() { my_todo!() }"));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2]);
        assert_eq!(unfinished("a.rs", &Code::new("unimplemented!(\"x\")")).len(), 1);
    }

    #[test]
    fn long_files_are_found_unless_generated() {
        let long = "x\n".repeat(801);
        assert!(long_file("a.rs", &long).is_some());
        assert!(long_file("a.rs", &format!("{GENERATED} …\n{long}")).is_none());
        assert!(long_file("a.rs", "x\n").is_none());
    }

    #[test]
    fn crate_roots_start_with_a_map() {
        assert!(starts_with_a_map("lib.rs", "use a;\n//! late").is_some());
        assert!(starts_with_a_map("lib.rs", "//! A crate.").is_none());
    }

    #[test]
    fn manifests_take_the_lints() {
        assert!(takes_the_lints("Cargo.toml", "[package]\nname = \"a\"\n").is_some());
        assert!(takes_the_lints("Cargo.toml", "[lints]\n\n[dependencies]\nworkspace = true\n").is_some());
        assert!(takes_the_lints("Cargo.toml", "[lints]\nworkspace = true\n").is_none());
        // A crate with unsafe code must list it explicitly.
        assert!(takes_the_lints(UNSAFE[0], "[lints]\nworkspace = true\n").is_some());
        assert!(takes_the_lints(UNSAFE[0], "[lints.rust]\nunsafe_code = \"deny\"\n").is_none());
    }

    #[test]
    fn a_crate_without_anything_is_found() {
        let nowhere = Path::new("nowhere");
        let found = crate_root(nowhere, &nowhere.join("crates/types"));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn names_of_machines_are_found() {
        let home = ["see /ho", "me/ann/x"].concat();
        assert_eq!(
            machine_names("a.md", &format!("fine\n{home}"), "/w").first().map(|finding| finding.line),
            Some(2)
        );
        assert_eq!(machine_names("a.md", "path = \"/w/crates/a\"", "/w").len(), 1);
        assert_eq!(machine_names("a.md", &["https://registry.npm", "js.org/x"].concat(), "/w").len(), 1);
        assert!(machine_names("a.md", &["https://example.org/ho", "me/x"].concat(), "/w").is_empty());
    }
}
