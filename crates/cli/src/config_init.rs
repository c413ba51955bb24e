//! `taktwerk config init`: configuration files to begin with.

use crate::failure::Failure;
use crate::output::Output;
use serde_json::json;
use std::path::{Path, PathBuf};
use taktwerk_config::EXAMPLE;
use taktwerk_config::file;
use taktwerk_config::users::Users;

/// What the server writes, as the files name it.
const WRITTEN: [&str; 9] = [
    "pki",
    "pki-gateway",
    "users.toml",
    "audit.jsonl",
    "pubsub.uabinary",
    "pubsub.replay",
    "history.db",
    "subscriptions.db",
    "alarms.bin",
];

/// Writes the file that explains all settings, and a users file beside it.
pub(crate) fn server(path: &Path, state: Option<&Path>, output: Output) -> Result<(), Failure> {
    let text = moved(EXAMPLE, state)?;
    write(path, &text)?;
    // The users that the example names: none yet, but in a file that only its owner can read.
    let users = state.map_or_else(|| path.with_file_name("users.toml"), |state| state.join("users.toml"));
    if !users.exists() {
        Users::default().save(&users).map_err(|error| Failure::Environment(error.to_string()))?;
    }
    if output.is_json() {
        return output.document(&json!({
            "File": path.display().to_string(),
            "Users": users.display().to_string(),
        }));
    }
    output.text(&format!(
        "wrote {0}; next: taktwerk user add NAME --role Operator --file {1}, then taktwerk serve --config {0}",
        path.display(),
        users.display()
    ))
}

/// Writes a file for the sources that were named; it needs nothing else to run.
#[cfg(feature = "gateway")]
pub(crate) fn gateway(
    path: &Path,
    wishes: &taktwerk_gateway::init::Wishes,
    state: Option<&Path>,
    output: Output,
) -> Result<(), Failure> {
    let text = wishes.file().map_err(Failure::Usage)?;
    write(path, &moved(&text, state)?)?;
    if output.is_json() {
        return output.document(&json!({ "File": path.display().to_string() }));
    }
    output.text(&format!("wrote {0}; next: taktwerk serve --config {0}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if path.exists() {
        return Err(Failure::Usage(format!("{} exists already; name another file", path.display())));
    }
    file::replace(path, text.as_bytes(), file::PUBLIC)
        .map_err(|error| Failure::Environment(format!("{}: {error}", path.display())))
}

/// The text with what the server writes in another folder, which is named from the root: the file's own folder has
/// nothing to do with it.
fn moved(text: &str, state: Option<&Path>) -> Result<String, Failure> {
    let Some(state) = state else { return Ok(text.to_owned()) };
    let state: PathBuf = std::path::absolute(state)
        .map_err(|error| Failure::Usage(format!("--state {}: {error}", state.display())))?;
    let Some(folder) = state.to_str().filter(|name| !name.contains(['"', '\\', '\n'])) else {
        return Err(Failure::Usage(format!(
            "--state {}: the name cannot stand in a configuration file; name another folder",
            state.display()
        )));
    };
    if !state.is_dir() {
        return Err(Failure::Usage(format!(
            "--state {}: there is no such folder; make it first",
            state.display()
        )));
    }
    let mut text = text.to_owned();
    for name in WRITTEN {
        text = text.replace(&format!(" = \"{name}\""), &format!(" = \"{folder}/{name}\""));
    }
    // A gateway's file is silent about the folder with its certificates.
    if !text.contains("\npki = ") {
        text = text.replacen("\n[security]\n", &format!("\n[security]\npki = \"{folder}/pki\"\n"), 1);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_writes_is_in_the_folder_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().to_str().unwrap();
        let text = moved(EXAMPLE, Some(folder.path())).unwrap();
        for name in WRITTEN.iter().filter(|name| **name != "pki-gateway") {
            assert!(text.contains(&format!(" = \"{state}/{name}\"")), "{name}");
        }
        // Settings with a path, in the example or in its comments, that nobody has listed above.
        let endings = [".toml", ".jsonl", ".uabinary", ".replay", ".db", ".bin"];
        for line in text.lines().filter(|line| !line.contains("configuration = ")) {
            let value =
                line.split(" = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
            assert!(value.starts_with('/') || !endings.iter().any(|end| value.ends_with(end)), "{line}");
        }
        assert_eq!(moved(EXAMPLE, None).unwrap(), EXAMPLE);
    }

    #[cfg(feature = "gateway")]
    #[test]
    fn certificates_of_a_gateway_are_there_too() {
        let folder = tempfile::tempdir().unwrap();
        let opcua = vec!["opc.tcp://plc:4840".to_owned()];
        let wishes = taktwerk_gateway::init::Wishes { opcua, ..Default::default() };
        let text = moved(&wishes.file().unwrap(), Some(folder.path())).unwrap();
        let file = taktwerk_config::ConfigFile::parse(Path::new("/etc/g.toml"), &text).unwrap();
        assert_eq!(file.resolve(&file.config().security.pki), folder.path().join("pki"));
        assert!(text.contains(&format!("# pki = \"{}/pki-gateway\"", folder.path().display())));
    }

    #[test]
    fn a_folder_that_is_missing_or_cannot_be_written_down_is_refused() {
        assert!(moved(EXAMPLE, Some(Path::new("/there/is/none"))).is_err());
        let folder = tempfile::tempdir().unwrap();
        let strange = folder.path().join("a\"b");
        std::fs::create_dir(&strange).unwrap();
        assert!(moved(EXAMPLE, Some(&strange)).is_err());
    }
}
