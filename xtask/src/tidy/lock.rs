//! The lock file of the fuzz targets, which are a workspace of their own: a dependency that a crate gets must be in it too,
//! or fuzzing stops there when the file may not be changed.

use super::Finding;
use serde_json::Value;
use std::collections::BTreeMap;

const LOCK: &str = "fuzz/Cargo.lock";

/// What of the manifests that `cargo metadata` describes is missing in the lock file. Optional dependencies may be: which
/// features the targets use is not looked up here.
pub(super) fn check(lock: &str, metadata: &Value) -> Vec<Finding> {
    let locked = packages(lock);
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(has) = locked.get(name) else { continue };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let on = dependency["name"].as_str().unwrap_or_default();
            let always = dependency["kind"] != "dev" && dependency["optional"] != true;
            if always && !has.contains(&on) {
                let message = format!(
                    "{name} does not depend on {on} here: run `cargo metadata --manifest-path fuzz/Cargo.toml`"
                );
                findings.push(Finding::new(LOCK, 0, message));
            }
        }
    }
    findings
}

/// The dependencies of each package of a lock file.
fn packages(lock: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut packages = BTreeMap::new();
    for block in lock.split("[[package]]").skip(1) {
        let name = block.lines().find_map(|line| line.strip_prefix("name = ")).unwrap_or_default();
        let dependencies = block.lines().filter(|line| line.starts_with(" \""));
        // A version follows where there are several.
        let names = dependencies.filter_map(|line| line.trim().trim_matches(['"', ',']).split(' ').next());
        packages.insert(name.trim_matches('"'), names.collect());
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &str = "\
[[package]]
name = \"taktwerk-server\"
version = \"0.1.0\"
dependencies = [
 \"bytes\",
 \"rand 0.10.3\",
]

[[package]]
name = \"bytes\"
version = \"1.12.1\"
";

    fn missing(dependencies: &str) -> usize {
        let metadata =
            format!(r#"{{"packages": [{{"name": "taktwerk-server", "dependencies": [{dependencies}]}}]}}"#);
        check(SOME, &serde_json::from_str(&metadata).unwrap()).len()
    }

    #[test]
    fn what_the_lock_file_lacks_is_found() {
        assert_eq!(missing(r#"{"name": "bytes", "kind": null}, {"name": "rand", "kind": null}"#), 0);
        assert_eq!(missing(r#"{"name": "tokio", "kind": null}, {"name": "cc", "kind": "build"}"#), 2);
    }

    #[test]
    fn what_only_tests_or_features_need_may_be_missing() {
        let free =
            r#"{"name": "proptest", "kind": "dev"}, {"name": "postgres", "kind": null, "optional": true}"#;
        assert_eq!(missing(free), 0);
    }

    #[test]
    fn crates_without_fuzz_targets_are_not_asked_for() {
        let metadata =
            r#"{"packages": [{"name": "taktwerk-cli", "dependencies": [{"name": "clap", "kind": null}]}]}"#;
        assert!(check(SOME, &serde_json::from_str(metadata).unwrap()).is_empty());
    }
}
