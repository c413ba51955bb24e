//! The dependency table of ARCHITECTURE.md ("The map").

use super::Finding;
use crate::Failure;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The allowed dependencies of each crate, including transitive ones: a server that uses a channel also names the types
/// of its messages. Development dependencies are not restricted.
#[derive(Debug)]
pub(super) struct Table(BTreeMap<String, Vec<String>>);

impl Table {
    /// Parses the rows that begin with a crate in backquotes and end with its dependencies: `nothing`, `all`, or names.
    pub(super) fn parse(architecture: &str) -> Result<Self, Failure> {
        let mut table = BTreeMap::new();
        for line in architecture.lines() {
            let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
            let name = cells.first().and_then(|name| name.strip_prefix('`')?.strip_suffix('`'));
            let (Some(name), [_, _, on]) = (name, cells.as_slice()) else { continue };
            let on = match *on {
                "nothing" => Vec::new(),
                names => names.split(", ").map(str::to_owned).collect(),
            };
            table.insert(name.to_owned(), on);
        }
        let all: Vec<String> = table.keys().cloned().collect();
        for (name, on) in &mut table {
            if on.as_slice() == ["all"] {
                *on = all
                    .iter()
                    .filter(|other| *other != name && !TOOLS.contains(&other.as_str()))
                    .cloned()
                    .collect();
            }
        }
        let table = Self(table);
        for (name, on) in &table.0 {
            if let Some(stranger) = on.iter().find(|on| !table.0.contains_key(*on)) {
                return Err(format!(
                    "ARCHITECTURE.md: `{name}` may depend on {stranger}, which has no row in the map"
                ));
            }
            if table.allowed(name).is_some_and(|all| all.contains(name.as_str())) {
                return Err(format!("ARCHITECTURE.md: `{name}` would depend on itself"));
            }
        }
        if table.0.is_empty() {
            return Err("ARCHITECTURE.md: the map has no rows".to_owned());
        }
        Ok(table)
    }

    /// All allowed dependencies of a crate; `None` if it is not in the table.
    fn allowed(&self, name: &str) -> Option<BTreeSet<&str>> {
        let mut open: Vec<&str> = self.0.get(name)?.iter().map(String::as_str).collect();
        let mut all = BTreeSet::new();
        while let Some(next) = open.pop() {
            if all.insert(next) {
                open.extend(self.0.get(next).into_iter().flatten().map(String::as_str));
            }
        }
        Some(all)
    }
}

/// Programs that nothing depends on.
const TOOLS: [&str; 3] = ["cli", "fuzz", "xtask"];

/// The name of a workspace package in the table.
fn short(package: &str) -> &str {
    match package {
        "taktwerk" => "taktwerk",
        _ => package.strip_prefix("taktwerk-").unwrap_or(package),
    }
}

/// Checks the manifests from `cargo metadata`.
pub(super) fn check(table: &Table, metadata: &Value) -> Result<Vec<Finding>, Failure> {
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
        let Some(allowed) = table.allowed(short(&name)) else {
            let message = format!("{name} has no row in the map of ARCHITECTURE.md");
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

    const MAP: &str = "\
| crate | what it is | may depend on |
| --- | --- | --- |
| `types` | built-in types | nothing |
| `schema` | structures | types |
| `channel` | channels | schema |
| `server` | services | channel |
| `client` | sessions | channel |
| `net` | drivers | server, client |
| `sim` | virtual time | server, client |
| `cli` | the command | all |
";

    fn findings(json: &str) -> Vec<String> {
        let table = Table::parse(MAP).unwrap();
        check(&table, &serde_json::from_str(json).unwrap()).unwrap().iter().map(Finding::to_string).collect()
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
        assert!(findings(unknown)[0].contains("no row in the map"));
        assert!(check(&Table::parse(MAP).unwrap(), &serde_json::json!({})).is_err());
    }

    #[test]
    fn all_means_everything_but_the_tools() {
        let table = Table::parse(MAP).unwrap();
        assert_eq!(table.allowed("cli").unwrap().len(), 7);
        assert!(table.allowed("types").unwrap().is_empty() && table.allowed("xtask").is_none());
    }

    #[test]
    fn circles_and_strangers_in_the_map_are_refused() {
        let circle = "| `a` | x | b |\n| `b` | y | a |";
        assert!(Table::parse(circle).unwrap_err().contains("itself"));
        assert!(Table::parse("| `a` | x | nobody |").unwrap_err().contains("nobody"));
        assert!(Table::parse("no table").is_err());
    }
}
