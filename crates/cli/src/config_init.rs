//! `taktwerk config init`: new configuration files.

use crate::failure::Failure;
use crate::output::Output;
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use taktwerk_config::EXAMPLE;
use taktwerk_config::file;
use taktwerk_config::users::Users;

/// Paths that the server writes, as named in the configuration files.
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

/// The setting of the dashboard in new files.
const WEB: &str = "# bind = \"127.0.0.1:8080\"";

/// Where a new file is written, and what it says about its surroundings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The file.
    pub(crate) file: &'a Path,
    /// The directory for data of the server. Default: that of the file.
    pub(crate) state: Option<&'a Path>,
    /// The address of the dashboard. Default: none.
    pub(crate) web: Option<SocketAddr>,
}

impl Place<'_> {
    /// The text with the directory and the address.
    fn complete(&self, text: &str) -> Result<String, Failure> {
        let text = with_state(text, self.state)?;
        let Some(web) = self.web else { return Ok(text) };
        if !web.ip().is_loopback() {
            return Err(Failure::Usage(format!(
                "--web {web}: other machines need HTTPS. Leave --web out, and set bind, certificate and key under [web] \
                 in the file"
            )));
        }
        Ok(text.replacen(WEB, &format!("bind = \"{web}\""), 1))
    }

    /// The last step after the server was started.
    fn next(&self) -> String {
        self.web.map_or_else(String::new, |web| format!(", then open http://{web}/"))
    }
}

/// Writes the commented example, and an empty users file beside it.
pub(crate) fn server(place: &Place<'_>, output: Output) -> Result<(), Failure> {
    let (path, state) = (place.file, place.state);
    let text = place.complete(EXAMPLE)?;
    write(path, &text)?;
    // An empty users file, which only its owner can read.
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
        "wrote {0}; next: taktwerk user add NAME --role Operator --file {1}, then taktwerk serve --config {0}{2}",
        path.display(),
        users.display(),
        place.next()
    ))
}

/// Writes a file for the given sources. It can be used without changes.
#[cfg(feature = "gateway")]
pub(crate) fn gateway(
    place: &Place<'_>,
    wishes: &taktwerk_gateway::init::Wishes,
    output: Output,
) -> Result<(), Failure> {
    let path = place.file;
    let text = wishes.file().map_err(Failure::Usage)?;
    write(path, &place.complete(&text)?)?;
    if output.is_json() {
        return output.document(&json!({ "File": path.display().to_string() }));
    }
    output.text(&format!("wrote {0}; next: taktwerk serve --config {0}{1}", path.display(), place.next()))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if path.exists() {
        return Err(Failure::Usage(format!("{} exists already; name another file", path.display())));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(Failure::Usage(format!(
            "{}: the directory {} does not exist; create it first",
            path.display(),
            folder.display()
        )));
    }
    file::replace(path, text.as_bytes(), file::PUBLIC)
        .map_err(|error| Failure::Environment(format!("{}: {error}", path.display())))
}

/// Moves the paths that the server writes into another directory. The directory is written as an absolute path, because
/// relative ones start from the file's directory.
fn with_state(text: &str, state: Option<&Path>) -> Result<String, Failure> {
    let Some(state) = state else { return Ok(text.to_owned()) };
    let state: PathBuf = std::path::absolute(state)
        .map_err(|error| Failure::Usage(format!("--state {}: {error}", state.display())))?;
    let Some(folder) = state.to_str().filter(|name| !name.contains(['"', '\\', '\n'])) else {
        return Err(Failure::Usage(format!(
            "--state {}: the path cannot be written into a configuration file; name another directory",
            state.display()
        )));
    };
    if !state.is_dir() {
        return Err(Failure::Usage(format!(
            "--state {}: the directory does not exist; create it first",
            state.display()
        )));
    }
    let mut text = text.to_owned();
    for name in WRITTEN {
        text = text.replace(&format!(" = \"{name}\""), &format!(" = \"{folder}/{name}\""));
    }
    // A gateway's file does not contain the setting for the PKI directory.
    if !text.contains("\npki = ") {
        text = text.replacen("\n[security]\n", &format!("\n[security]\npki = \"{folder}/pki\"\n"), 1);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_files_are_in_the_state_directory() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().to_str().unwrap();
        let text = with_state(EXAMPLE, Some(folder.path())).unwrap();
        for name in WRITTEN.iter().filter(|name| **name != "pki-gateway") {
            assert!(text.contains(&format!(" = \"{state}/{name}\"")), "{name}");
        }
        // All path settings of the example, also commented ones, must be in the list above.
        let endings = [".toml", ".jsonl", ".uabinary", ".replay", ".db", ".bin"];
        for line in text.lines().filter(|line| !line.contains("configuration = ")) {
            let value =
                line.split(" = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
            assert!(value.starts_with('/') || !endings.iter().any(|end| value.ends_with(end)), "{line}");
        }
        assert_eq!(with_state(EXAMPLE, None).unwrap(), EXAMPLE);
    }

    #[cfg(feature = "gateway")]
    #[test]
    fn gateway_certificates_are_in_the_state_directory() {
        let folder = tempfile::tempdir().unwrap();
        let opcua = vec!["opc.tcp://plc:4840".to_owned()];
        let wishes = taktwerk_gateway::init::Wishes { opcua, ..Default::default() };
        let text = with_state(&wishes.file().unwrap(), Some(folder.path())).unwrap();
        let file = taktwerk_config::ConfigFile::parse(Path::new("/etc/g.toml"), &text).unwrap();
        assert_eq!(file.resolve(&file.config().security.pki), folder.path().join("pki"));
        assert!(text.contains(&format!("# pki = \"{}/pki-gateway\"", folder.path().display())));
    }

    #[test]
    fn the_dashboard_is_turned_on_in_both_files() {
        let place =
            |web: &str| Place { file: Path::new("s.toml"), state: None, web: Some(web.parse().unwrap()) };
        let mut texts = vec![EXAMPLE.to_owned()];
        #[cfg(feature = "gateway")]
        texts.push(taktwerk_gateway::init::file_of(""));
        for text in texts {
            let written = place("127.0.0.1:8090").complete(&text).unwrap();
            let file = taktwerk_config::ConfigFile::parse(Path::new("s.toml"), &written).unwrap();
            let bind = file.config().web.bind.as_ref().map(|bind| bind.get_ref().as_str());
            assert_eq!(bind, Some("127.0.0.1:8090"));
            // Without the option, it is off.
            let file = taktwerk_config::ConfigFile::parse(Path::new("s.toml"), &text).unwrap();
            assert!(file.config().web.bind.is_none());
        }
        let refused = place("0.0.0.0:8080").complete(EXAMPLE).unwrap_err().to_string();
        assert!(refused.contains("HTTPS"), "{refused}");
        assert_eq!(place("[::1]:8080").next(), ", then open http://[::1]:8080/");
    }

    #[test]
    fn missing_or_unwritable_directories_are_refused() {
        assert!(with_state(EXAMPLE, Some(Path::new("/there/is/none"))).is_err());
        let folder = tempfile::tempdir().unwrap();
        let strange = folder.path().join("a\"b");
        std::fs::create_dir(&strange).unwrap();
        assert!(with_state(EXAMPLE, Some(&strange)).is_err());
    }
}
