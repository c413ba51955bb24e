//! The licences of everything compiled into the program, which have to be distributed with it.

use super::{Place, build, captured};
use crate::Failure;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// A crate that is linked into the program.
struct Linked {
    name: String,
    version: String,
    licence: String,
    /// The texts in its folder.
    texts: Vec<String>,
}

/// Prefixes of licence file names.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// Names, licences and licence texts of all crates. Identical texts of several crates are included once.
pub(super) fn text(place: &Place) -> Result<String, Failure> {
    let crates = linked(place)?;
    let mut text = String::from(
        "The program taktwerk contains the following crates. Their licence texts are below; where a crate has none in\n\
         its folder, its licence applies by name.\n\n",
    );
    let mut users: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for one in &crates {
        text.push_str(&format!("{} {}: {}\n", one.name, one.version, one.licence));
        for licence in &one.texts {
            users.entry(licence).or_default().push(one.name.clone());
        }
    }
    for (licence, names) in users {
        text.push_str(&format!("\n{}\n{}\n\n{licence}\n", "=".repeat(100), names.join(", ")));
    }
    Ok(text)
}

/// The copyright file that Debian requires in every package.
pub(super) fn copyright(place: &Place) -> Result<String, Failure> {
    let notice = place.root.join("NOTICE");
    let notice =
        std::fs::read_to_string(&notice).map_err(|error| format!("{}: {error}", notice.display()))?;
    let mut text = String::from(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: taktwerk\n\
         Source: https://github.com/taktwerk/taktwerk\n\
         Comment: Licences of the crates that the program contains: /usr/share/doc/taktwerk/THIRD-PARTY\n\n\
         Files: *\n\
         Copyright: 2026 the Taktwerk authors\n\
         License: MIT or Apache-2.0\n\
         \x20On Debian systems, the text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0,\n\
         \x20that of the MIT licence in /usr/share/doc/taktwerk/LICENSE-MIT.\n\
         Comment:\n",
    );
    for line in notice.lines() {
        text.push_str(&if line.trim().is_empty() { " .\n".to_owned() } else { format!(" {line}\n") });
    }
    Ok(text)
}

/// The crates that the command needs at run time, without those of the workspace.
fn linked(place: &Place) -> Result<Vec<Linked>, Failure> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--locked", "--format-version", "1", "--filter-platform"]);
    let features = build::FEATURES.split(',').map(|feature| format!("taktwerk-cli/{feature}"));
    cargo.args(["x86_64-unknown-linux-gnu", "--features", &features.collect::<Vec<_>>().join(",")]);
    cargo.current_dir(&place.root);
    let metadata: Value = serde_json::from_str(&captured(&mut cargo)?)
        .map_err(|error| format!("cargo metadata wrote something that is no JSON: {error}"))?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (word(&package["id"]), package)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|node| (word(&node["id"]), node)).collect();
    let command = packages.iter().find(|(_, package)| package["name"] == "taktwerk-cli");
    let mut waiting =
        vec![command.map(|(id, _)| id.clone()).ok_or("the workspace has no package taktwerk-cli")?];
    let mut known = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        let Some(node) = nodes.get(&id).filter(|_| known.insert(id.clone())) else { continue };
        for dependency in list(&node["deps"]) {
            // Without a kind, it is a dependency of the program itself, not of its build or tests.
            if list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()) {
                waiting.push(word(&dependency["pkg"]));
            }
        }
    }
    let mut crates = Vec::new();
    for id in known {
        let Some(package) = packages.get(&id) else { continue };
        if package["source"].is_null() {
            continue;
        }
        let name = word(&package["name"]);
        let manifest = word(&package["manifest_path"]);
        let folder = Path::new(&manifest).parent().unwrap_or(Path::new("."));
        let licence = package["license"].as_str().map_or_else(
            || format!("see {}", package["license_file"].as_str().unwrap_or("its repository")),
            str::to_owned,
        );
        crates.push(Linked { texts: texts(folder)?, version: word(&package["version"]), name, licence });
    }
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(crates)
}

fn texts(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut texts = Vec::new();
    for path in super::files(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if NAMES.iter().any(|start| name.starts_with(start)) {
            let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let text = String::from_utf8_lossy(&bytes).replace('\r', "");
            texts.push(text.trim_matches('\n').to_owned());
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_licences_of_linked_crates_are_included() {
        let place = Place::new(&crate::workspace_root()).unwrap();
        let crates = linked(&place).unwrap();
        let has = |name: &str| crates.iter().any(|one| one.name == name && !one.licence.is_empty());
        assert!(has("tokio") && has("aws-lc-rs") && has("rusqlite"));
        assert!(has("rskafka") && has("async-nats") && has("parquet"), "features of the packages");
        assert!(!has("proptest") && !has("taktwerk-server"));
        assert!(crates.iter().find(|one| one.name == "tokio").is_some_and(|one| !one.texts.is_empty()));
        let text = text(&place).unwrap();
        assert!(text.contains("Permission is hereby granted") && text.contains("Apache License"));
    }
}
