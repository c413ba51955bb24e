//! The files that an installation consists of, as its configuration names them.

use super::ConfigFile;
use std::path::{Path, PathBuf};

/// What a file is, for those who copy it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A file.
    File,
    /// A folder with all that is below it.
    Folder,
    /// A SQLite database, which a running server may be writing to.
    Database,
}

/// A file that a configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// The setting: `identities.users_file`.
    pub setting: &'static str,
    /// The path as it stands in the configuration.
    pub named: PathBuf,
    /// What it is.
    pub kind: FileKind,
}

impl ConfigFile {
    /// Files that are needed to run this server elsewhere, or again. Some need not exist.
    ///
    /// Left out are the audit file, which is a record and not an installation; and keys of PubSub with what was kept of their
    /// use: whoever went back to an earlier state of them would use nonces twice (Part 14 §7.2.4.4.3).
    #[must_use]
    pub fn files(&self) -> Vec<NamedFile> {
        let config = self.config();
        let mut files = Vec::new();
        let mut add = |setting, path: Option<&PathBuf>, kind| {
            files.extend(path.map(|path| NamedFile { setting, named: path.clone(), kind }));
        };
        for nodeset in &config.server.nodesets {
            let is_folder = self.resolve(nodeset).is_dir();
            let kind = if is_folder { FileKind::Folder } else { FileKind::File };
            add("server.nodesets", Some(nodeset), kind);
        }
        add("security.pki", Some(&config.security.pki), FileKind::Folder);
        add("security.pki", Some(&dashboard(&config.security.pki)), FileKind::Folder);
        add("identities.users_file", config.identities.users_file.as_ref(), FileKind::File);
        for key in config.identities.jwt.iter().flat_map(|jwt| &jwt.keys) {
            add("identities.jwt.keys", Some(key), FileKind::File);
        }
        add("headroom.calibration", config.headroom.calibration.as_ref(), FileKind::File);
        add("pubsub.configuration", config.pubsub.configuration.as_ref(), FileKind::File);
        add("pubsub.save_to", config.pubsub.save_to.as_ref(), FileKind::File);
        add("web.certificate", config.web.certificate.as_ref(), FileKind::File);
        add("web.key", config.web.key.as_ref(), FileKind::File);
        add("web.metrics_token_file", config.web.metrics_token_file.as_ref(), FileKind::File);
        add("otlp.headers_file", config.otlp.headers_file.as_ref(), FileKind::File);
        add("otlp.ca_file", config.otlp.ca_file.as_ref(), FileKind::File);
        add("history.file", config.history.file.as_ref(), FileKind::Database);
        add("history.password_file", config.history.password_file.as_ref(), FileKind::File);
        add("history.ca_file", config.history.ca_file.as_ref(), FileKind::File);
        let durable = config.durable_subscriptions.file.as_ref();
        add("durable_subscriptions.file", durable, FileKind::Database);
        add("alarms.file", config.alarms.file.as_ref(), FileKind::File);
        files
    }
}

/// The folder with the dashboard's own certificates, beside the server's.
#[must_use]
pub fn dashboard(pki: &Path) -> PathBuf {
    let mut name = pki.file_name().unwrap_or_default().to_owned();
    name.push("-dashboard");
    pki.with_file_name(name)
}
