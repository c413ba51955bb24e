//! The dependency table of design §2.

use super::Finding;
use crate::Failure;
use serde_json::Value;
use std::collections::BTreeSet;

/// What each crate may depend on. What those may depend on is allowed too: a server that uses a channel also names the
/// types of its messages. Development dependencies are free: a test of the server may use the client.
const TABLE: [(&str, &[&str]); 19] = [
    ("types", &[]),
    ("schema", &["types"]),
    ("nodeset", &["types", "schema"]),
    ("crypto", &["types"]),
    ("channel", &["schema", "crypto"]),
    ("server", &["channel", "nodeset"]),
    ("client", &["channel"]),
    ("pubsub", &["schema", "crypto"]),
    ("pki", &["crypto"]),
    ("net", &["server", "client", "pubsub"]),
    ("taktwerk", &["net", "pki"]),
    ("gateway", &["taktwerk"]),
    ("sim", &["server", "client", "pubsub"]),
    ("lab", &["taktwerk", "sim"]),
    ("attack", &["gateway", "lab"]),
    ("memory", &[]),
    ("cli", &["gateway", "lab", "attack", "pki", "memory"]),
    // The generator must build when the schema does not: so it uses the nodeset crate without its schema feature.
    ("xtask", &["nodeset", "lab"]),
    ("bench", &["lab"]),
];

/// The name in the table of a package of the workspace.
fn short(package: &str) -> &str {
    match package {
        "taktwerk" => "taktwerk",
        _ => package.strip_prefix("taktwerk-").unwrap_or(package),
    }
}

/// All that a crate may depend on; `None` if the table does not have it.
fn allowed(name: &str) -> Option<BTreeSet<&'static str>> {
    let direct = |name: &str| TABLE.iter().find(|entry| entry.0 == name).map(|entry| entry.1);
    let mut open: Vec<&str> = direct(name)?.to_vec();
    let mut all = BTreeSet::new();
    while let Some(next) = open.pop() {
        if all.insert(next) {
            open.extend(direct(next).unwrap_or_default());
        }
    }
    Some(all)
}

/// Checks the manifests that `cargo metadata` describes.
pub(super) fn check(metadata: &Value) -> Result<Vec<Finding>, Failure> {
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    let packages = list(metadata, "packages");
    let names: BTreeSet<String> = packages.iter().map(|package| text(package, "name")).collect();
    if names.is_empty() {
        return Err("cargo metadata lists no packages".to_owned());
    }
    let mut findings = Vec::new();
    for package in &packages {
        let name = text(package, "name");
        let manifest = format!("{}/Cargo.toml", directory(&name));
        let Some(allowed) = allowed(short(&name)) else {
            let message = format!("{name} is not in the dependency table (xtask/src/tidy/dependencies.rs)");
            findings.push(Finding::new(&manifest, 0, message));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let on = text(&dependency, "name");
            let is_development = text(&dependency, "kind") == "dev";
            if names.contains(&on) && !is_development && !allowed.contains(short(&on)) {
                let message = format!("{name} must not depend on {on}; the table allows {allowed:?}");
                findings.push(Finding::new(&manifest, 0, message));
            }
        }
    }
    Ok(findings)
}

fn directory(package: &str) -> String {
    if package == "xtask" { package.to_owned() } else { format!("crates/{}", short(package)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(json: &str) -> Vec<String> {
        check(&serde_json::from_str(json).unwrap()).unwrap().iter().map(Finding::to_string).collect()
    }

    #[test]
    fn arrows_point_downward() {
        let upward = r#"{"packages": [
            {"name": "taktwerk-types", "dependencies": [{"name": "taktwerk-schema", "kind": null}, {"name": "thiserror"}]},
            {"name": "taktwerk-schema", "dependencies": [{"name": "taktwerk-types", "kind": null}]}
        ]}"#;
        let found = findings(upward);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0]
                .starts_with("crates/types/Cargo.toml: taktwerk-types must not depend on taktwerk-schema")
        );
    }

    #[test]
    fn transitive_and_development_dependencies_are_free() {
        let fine = r#"{"packages": [
            {"name": "taktwerk-server", "dependencies": [{"name": "taktwerk-types", "kind": null},
                {"name": "taktwerk-client", "kind": "dev"}]},
            {"name": "taktwerk-types", "dependencies": []}, {"name": "taktwerk-client", "dependencies": []}
        ]}"#;
        assert_eq!(findings(fine), Vec::<String>::new());
    }

    #[test]
    fn simulation_never_touches_sockets() {
        let wrong = r#"{"packages": [{"name": "taktwerk-sim", "dependencies": [{"name": "taktwerk-net", "kind": null}]},
            {"name": "taktwerk-net", "dependencies": []}]}"#;
        assert_eq!(findings(wrong).len(), 1);
    }

    #[test]
    fn unknown_crates_are_named() {
        let unknown = r#"{"packages": [{"name": "taktwerk-more", "dependencies": []}]}"#;
        assert!(findings(unknown)[0].contains("not in the dependency table"));
        assert!(check(&serde_json::json!({})).is_err());
    }

    #[test]
    fn the_table_has_no_circle_and_no_stranger() {
        for (name, direct) in TABLE {
            assert!(!allowed(name).unwrap().contains(name), "{name} depends on itself");
            assert!(direct.iter().all(|on| allowed(on).is_some()), "{name}: {direct:?}");
        }
    }
}
