//! The files that the gateway's sections name. Backups use the list.

use crate::fields::{Fields, Mistake, Sections, Setting};
use crate::opcua::PKI;
use std::path::{Path, PathBuf};
use taktwerk_config::{FileKind, NamedFile};

/// The end of the names of all settings for files with secrets and certificates: `password_file`, `ca_file` …
const SECRET: &str = "_file";
/// The ends of those that everybody may read.
const PUBLIC: [&str; 2] = ["ca_file", "certificate_file"];

/// Settings of sources that name files. The type is empty if all types have the setting.
const OF_SOURCES: &[(&str, &str, FileKind)] = &[
    ("", "tags", FileKind::File),
    ("can", "dbc", FileKind::File),
    ("opcua", "pki", FileKind::Folder),
    ("program", "command", FileKind::Program),
    ("replay", "file", FileKind::Recording),
];

/// Settings of destinations that name files.
const OF_DESTINATIONS: &[(&str, &str, FileKind)] = &[
    ("", "folder", FileKind::Data),
    ("", "queue", FileKind::Queue),
    ("opcua", "pki", FileKind::Folder),
    ("pubsub", "keys", FileKind::Keys),
    ("pubsub", "key_service_pki", FileKind::Folder),
];

/// The files that the gateway's sections name and that are needed to run it again or elsewhere, and the folders that
/// destinations write. Some need not exist. Tables of tags are not read.
///
/// Not included are the files of other programs that sources read.
///
/// # Errors
/// The text is not TOML.
pub fn named(path: &Path, text: &str) -> Result<Vec<NamedFile>, Mistake> {
    let sections = Sections::parse(path, text)?;
    let mut files = Vec::new();
    for fields in &sections.sources {
        add(&mut files, "source", fields, OF_SOURCES);
    }
    for fields in &sections.destinations {
        add(&mut files, "destination", fields, OF_DESTINATIONS);
    }
    if let Some(fields) = &sections.lease {
        add(&mut files, "lease", fields, &[]);
    }
    Ok(files)
}

/// Warnings for files with secrets and certificates that do not exist. The gateway reads them when it connects, so they
/// may be added later.
///
/// # Errors
/// The text is not TOML.
pub fn missing(path: &Path, text: &str) -> Result<Vec<Mistake>, Mistake> {
    let sections = Sections::parse(path, text)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let all = sections.sources.iter().chain(&sections.destinations).chain(&sections.lease);
    let mut warnings = Vec::new();
    for fields in all {
        for key in fields.keys().filter(|key| key.ends_with(SECRET)) {
            let Some(Setting::Text(file)) = fields.get(key) else { continue };
            if !file.is_empty() && !folder.join(file).exists() {
                warnings.push(Mistake {
                    path: path.to_owned(),
                    line: fields.line_of(key),
                    key: key.to_owned(),
                    problem: format!("there is no file {file} now"),
                    hint: "create it; relative paths start from the folder of this configuration".to_owned(),
                });
            }
        }
    }
    Ok(warnings)
}

fn add(files: &mut Vec<NamedFile>, section: &str, fields: &Fields, settings: &[(&str, &str, FileKind)]) {
    let text = |key: &str| match fields.get(key) {
        Some(Setting::Text(text)) => text.as_str(),
        _ => "",
    };
    let mut add = |key: &str, path: &str, kind| {
        let named = NamedFile { setting: format!("{section}.{key}"), named: PathBuf::from(path), kind };
        if !path.is_empty() && !files.contains(&named) {
            files.push(named);
        }
    };
    for key in fields.keys().filter(|key| key.ends_with(SECRET)) {
        let is_public = PUBLIC.iter().any(|end| key.ends_with(end));
        add(key, text(key), if is_public { FileKind::File } else { FileKind::Private });
    }
    for (only, key, kind) in settings.iter().filter(|(only, ..)| only.is_empty() || *only == text("type")) {
        match fields.get(key) {
            Some(Setting::Text(path)) => add(key, path, *kind),
            Some(Setting::List(words)) if *kind == FileKind::Program => {
                for (_, word) in words {
                    if let Setting::Text(word) = word {
                        add(key, word, *kind);
                    }
                }
            }
            None if *only == "opcua" => add(key, PKI, *kind),
            None if *key == "key_service_pki" && fields.has("key_service") => add(key, PKI, *kind),
            None if *kind == FileKind::Queue => add(key, &format!("{}.queue.db", text("name")), *kind),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const CONFIG: &str = r#"
[[source]]
name = "plc"
type = "modbus"
tags = "tags.csv"
[[source]]
name = "server"
type = "opcua"
password_file = "server.password"
[[source]]
name = "again"
type = "opcua"
password_file = "server.password"
pki = "other-pki"
[[source]]
name = "script"
type = "program"
command = ["python3", "adapters/oven.py"]
[[source]]
name = "old"
type = "replay"
file = "old.csv"
[[source]]
name = "state"
type = "file"
file = "/run/state"
[[source]]
name = "bus"
type = "can"
dbc = "bus.dbc"
[[destination]]
name = "broker"
type = "mqtt"
tags = ["plc/*"]
ca_file = "ca.pem"
certificate_file = "own.pem"
key_file = "own.key"
[[destination]]
name = "messages"
type = "pubsub"
keys = "group.keys"
queue = "messages.db"
[[destination]]
name = "keyed"
type = "pubsub"
key_service = "opc.tcp://host"
[[destination]]
name = "values"
type = "file"
folder = "values"
[lease]
credentials_file = "nats.creds"
"#;

    #[test]
    fn the_files_of_all_sections_are_found_once() {
        let files = named(Path::new("g.toml"), CONFIG).unwrap();
        let found: Vec<(String, FileKind)> = files
            .iter()
            .map(|file| (format!("{} {}", file.setting, file.named.display()), file.kind))
            .collect();
        let expected = [
            ("source.tags tags.csv", FileKind::File),
            ("source.password_file server.password", FileKind::Private),
            ("source.pki pki-gateway", FileKind::Folder),
            ("source.pki other-pki", FileKind::Folder),
            ("source.command python3", FileKind::Program),
            ("source.command adapters/oven.py", FileKind::Program),
            ("source.file old.csv", FileKind::Recording),
            ("source.dbc bus.dbc", FileKind::File),
            ("destination.ca_file ca.pem", FileKind::File),
            ("destination.certificate_file own.pem", FileKind::File),
            ("destination.key_file own.key", FileKind::Private),
            ("destination.queue broker.queue.db", FileKind::Queue),
            ("destination.queue messages.db", FileKind::Queue),
            ("destination.keys group.keys", FileKind::Keys),
            ("destination.queue keyed.queue.db", FileKind::Queue),
            ("destination.key_service_pki pki-gateway", FileKind::Folder),
            ("destination.folder values", FileKind::Data),
            ("destination.queue values.queue.db", FileKind::Queue),
            ("lease.credentials_file nats.creds", FileKind::Private),
        ];
        assert_eq!(found, expected.map(|(text, kind)| (text.to_owned(), kind)));
        assert!(named(Path::new("g.toml"), "").unwrap().is_empty());
    }

    #[test]
    fn missing_secrets_are_found_with_line_and_key() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), "").unwrap();
        let found = missing(&folder.path().join("g.toml"), CONFIG).unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.line, one.key.as_str())).collect();
        let line = |text: &str| 1 + CONFIG.lines().position(|line| line == text).unwrap();
        let first = line("password_file = \"server.password\"");
        let expected = [
            (first, "password_file"),
            (first + 4, "password_file"),
            (line("certificate_file = \"own.pem\""), "certificate_file"),
            (line("key_file = \"own.key\""), "key_file"),
            (line("credentials_file = \"nats.creds\""), "credentials_file"),
        ];
        assert_eq!(found, expected);
    }

    /// Finds settings that are added without a line in this module.
    #[test]
    fn every_setting_that_is_joined_with_the_folder_is_known() {
        let mut found = BTreeSet::new();
        let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                for taken in code.split("fields.").skip(1) {
                    let Some((call, rest)) = taken.split_once("(\"") else { continue };
                    let key = rest.split('"').next().unwrap_or_default();
                    let is_text = ["text", "text_at", "texts", "required"].contains(&call);
                    let words = ["file", "folder", "pki", "dbc", "queue", "keys", "command"];
                    if is_text && words.iter().any(|word| key.split('_').any(|part| part == *word)) {
                        found.insert(key.to_owned());
                    }
                }
            }
        }
        let known = |key: &str| {
            key.ends_with(SECRET)
                || OF_SOURCES.iter().chain(OF_DESTINATIONS).any(|(_, known, _)| *known == key)
        };
        let unknown: Vec<&String> = found.iter().filter(|key| !known(key)).collect();
        assert!(unknown.is_empty(), "no backup has them: {unknown:?}");
        for key in ["tags", "file", "dbc", "pki", "folder", "queue", "keys", "key_service_pki", "command"] {
            assert!(found.contains(key) || key == "tags", "{key} is no setting: {found:?}");
        }
    }
}
