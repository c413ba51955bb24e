//! `[[files]]`: directories that clients read and write.

use super::{ConfigError, ConfigFile};
use serde::Deserialize;
use std::path::PathBuf;
use taktwerk::files::FolderOptions;
use taktwerk_types::NodeId;
use toml::Spanned;

/// Default maximum size of a directory, in megabytes.
const MEGABYTES: u64 = 1024;

/// A shared directory.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesSection {
    /// The name of its object below the Objects folder.
    pub name: Spanned<String>,
    /// The folder on disk.
    pub folder: PathBuf,
    /// Roles that may read. Default: all that may call methods.
    #[serde(default)]
    pub read: Vec<Spanned<String>>,
    /// Roles that may read and write. Default: none.
    #[serde(default)]
    pub write: Vec<Spanned<String>>,
    /// Maximum size of all files, in megabytes.
    #[serde(default = "megabytes")]
    pub megabytes: u64,
}

fn megabytes() -> u64 {
    MEGABYTES
}

impl ConfigFile {
    /// The shared directories with their names, paths and permissions.
    ///
    /// # Errors
    /// An invalid or duplicate name, an unknown role, or an invalid size.
    pub fn shares(&self) -> Result<Vec<(String, PathBuf, FolderOptions)>, ConfigError> {
        let authorization = self.authorization()?;
        let known: Vec<(&str, NodeId)> =
            authorization.roles.iter().map(|role| (role.name.as_str(), role.id.clone())).collect();
        let mut shares: Vec<(String, PathBuf, FolderOptions)> = Vec::new();
        for section in &self.config().files {
            let (name, at) = (section.name.get_ref(), section.name.span().start);
            if name.is_empty() || name.chars().any(|char| char == '/' || char.is_control()) {
                return Err(self.mistake(
                    at,
                    "a folder needs a name without '/'",
                    "write name = \"Recipes\"",
                ));
            }
            if shares.iter().any(|(other, ..)| other == name) {
                return Err(self.mistake(
                    at,
                    format!("{name:?} is used twice"),
                    "give each folder its own name",
                ));
            }
            if section.megabytes == 0 || section.megabytes > 1 << 30 {
                let problem = "megabytes is a number from 1 to 1073741824";
                return Err(self.mistake(at, problem, "leave it out for 1024"));
            }
            let roles = |names: &[Spanned<String>]| {
                names.iter().map(|name| self.named(name, "role", &known)).collect::<Result<Vec<_>, _>>()
            };
            let options = FolderOptions::default()
                .read(roles(&section.read)?)
                .write(roles(&section.write)?)
                .bytes_max(section.megabytes << 20);
            shares.push((name.clone(), self.resolve(&section.folder), options));
        }
        Ok(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn shares(text: &str) -> Result<Vec<(String, PathBuf, FolderOptions)>, String> {
        let text = format!("[identities]\nanonymous = true\n{text}");
        let file =
            ConfigFile::parse(Path::new("/etc/server.toml"), &text).map_err(|error| error.to_string())?;
        file.shares().map_err(|error| error.to_string())
    }

    #[test]
    fn shared_directories_have_roles_and_limits() {
        let text = "[[role]]\nname = \"Cook\"\n[[files]]\nname = \"Recipes\"\nfolder = \"recipes\"\nwrite = [\"Cook\"]\n\
                    [[files]]\nname = \"Logs\"\nfolder = \"/var/log/plant\"\nread = [\"Observer\"]\nmegabytes = 1\n";
        let [recipes, logs]: [_; 2] = shares(text).unwrap().try_into().unwrap();
        assert_eq!((recipes.0.as_str(), recipes.1.as_path()), ("Recipes", Path::new("/etc/recipes")));
        assert_eq!((recipes.2.write, recipes.2.read), (vec![NodeId::string(1, "Roles/Cook")], vec![]));
        assert_eq!(
            (logs.1.as_path(), logs.2.bytes_max, logs.2.file_bytes_max),
            (Path::new("/var/log/plant"), 1 << 20, 1 << 20)
        );
    }

    #[test]
    fn mistakes_are_named() {
        let one = "[[files]]\nname = \"A\"\nfolder = \"a\"\n";
        for (text, problem) in [
            (format!("{one}{one}"), "twice"),
            ("[[files]]\nname = \"a/b\"\nfolder = \"a\"\n".to_owned(), "without '/'"),
            (format!("{one}write = [\"Operater\"]\n"), "Operater"),
            (format!("{one}megabytes = 0\n"), "megabytes"),
            ("[[files]]\nname = \"A\"\n".to_owned(), "folder"),
        ] {
            let error = shares(&text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
