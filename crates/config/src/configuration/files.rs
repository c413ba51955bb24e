//! The files that a configuration names. Backups use the list.

use super::ConfigFile;
use std::path::PathBuf;

/// The kind of a file, for copying it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A file.
    File,
    /// A file with secrets or a state. Only its owner may read it.
    Private,
    /// A directory with everything below it.
    Folder,
    /// A SQLite database. A running server may be writing to it.
    Database,
    /// A file with recorded values, which may be large. Not copied above [`RECORDING_LEN_MAX`].
    Recording,
    /// A word of the command of a program. Copied if it is a file below the directory of the configuration.
    Program,
    /// The queue of a destination. Never copied: an older state would give the numbers of values that were sent to new
    /// values, and the destination would discard these as repeated.
    Queue,
    /// A directory with files of users, which may be large and must exist. Never copied; a backup names it.
    Share,
    /// A directory with data of a destination, which may be large. Never copied; a backup names it.
    Data,
    /// The audit file. Never copied, because it is a record; a backup names it.
    Record,
    /// Keys of PubSub with their nonces. Never copied: an older state would reuse nonces (Part 14 §7.2.4.4.3).
    Keys,
}

/// The setting of the directory of NodeSets that clients load.
const LOADED: &str = "nodeset_methods.folder";

/// Longest recording in a backup, in bytes.
pub const RECORDING_LEN_MAX: u64 = 256 << 20;

impl FileKind {
    /// Whether an archive can contain such a file.
    #[must_use]
    pub fn is_copied(self) -> bool {
        !matches!(self, Self::Queue | Self::Keys | Self::Share | Self::Data | Self::Record)
    }
}

/// A file that a configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// The setting: `identities.users_file`.
    pub setting: String,
    /// The path as written in the configuration.
    pub named: PathBuf,
    /// Its kind.
    pub kind: FileKind,
}

impl NamedFile {
    /// Whether this is a directory without which a server does not start.
    #[must_use]
    pub fn is_required_folder(&self) -> bool {
        self.kind == FileKind::Share || self.setting == LOADED
    }
}

impl ConfigFile {
    /// Files of this server that are needed to run it again or elsewhere, and data that it has written. Some need not
    /// exist. The files of the gateway are in a list of their own, in the crate of the gateway.
    #[must_use]
    pub fn files(&self) -> Vec<NamedFile> {
        let config = self.config();
        let mut files = Vec::new();
        let mut add = |setting: &str, path: Option<&PathBuf>, kind| {
            let setting = setting.to_owned();
            files.extend(path.map(|path| NamedFile { setting, named: path.clone(), kind }));
        };
        for nodeset in &config.server.nodesets {
            let is_folder = self.resolve(nodeset).is_dir();
            let kind = if is_folder { FileKind::Folder } else { FileKind::File };
            add("server.nodesets", Some(nodeset), kind);
        }
        add(LOADED, config.nodeset_methods.folder.as_ref(), FileKind::Folder);
        add("security.pki", Some(&config.security.pki), FileKind::Folder);
        add("identities.users_file", config.identities.users_file.as_ref(), FileKind::Private);
        for key in config.identities.jwt.iter().flat_map(|jwt| &jwt.keys) {
            add("identities.jwt.keys", Some(key), FileKind::File);
        }
        add("headroom.calibration", config.headroom.calibration.as_ref(), FileKind::File);
        add("pubsub.configuration", config.pubsub.configuration.as_ref(), FileKind::File);
        for keys in &config.pubsub.keys {
            add("pubsub.keys", Some(keys), FileKind::Keys);
        }
        add("pubsub.replay_file", config.pubsub.replay_file.as_ref(), FileKind::Private);
        add("pubsub.save_to", config.pubsub.save_to.as_ref(), FileKind::Private);
        add("web.certificate", config.web.certificate.as_ref(), FileKind::File);
        add("web.key", config.web.key.as_ref(), FileKind::Private);
        add("web.metrics_token_file", config.web.metrics_token_file.as_ref(), FileKind::Private);
        add("otlp.headers_file", config.otlp.headers_file.as_ref(), FileKind::Private);
        add("otlp.ca_file", config.otlp.ca_file.as_ref(), FileKind::File);
        add("history.file", config.history.file.as_ref(), FileKind::Database);
        add("history.password_file", config.history.password_file.as_ref(), FileKind::Private);
        add("history.ca_file", config.history.ca_file.as_ref(), FileKind::File);
        let durable = config.durable_subscriptions.file.as_ref();
        add("durable_subscriptions.file", durable, FileKind::Database);
        add("alarms.file", config.alarms.file.as_ref(), FileKind::Private);
        for sound in config.alarms.alarm.iter().filter_map(|alarm| alarm.sound.as_ref()) {
            add("alarms.alarm.sound", Some(sound), FileKind::File);
        }
        for share in &config.files {
            add("files.folder", Some(&share.folder), FileKind::Share);
        }
        add("audit.file", config.audit.file.as_ref(), FileKind::Record);
        files
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    /// A new setting with a path must not be forgotten: a restored server would lack its file.
    #[test]
    fn every_path_setting_is_listed() {
        let sections = [include_str!("alarms.rs"), include_str!("sections.rs"), include_str!("shares.rs")];
        let mut wanted: BTreeMap<&str, usize> = BTreeMap::new();
        for line in sections.iter().flat_map(|text| text.lines()) {
            let field = line.trim().strip_prefix("pub ").and_then(|field| field.split_once(": "));
            if let Some((name, kind)) = field
                && kind.contains("PathBuf")
            {
                *wanted.entry(name).or_default() += 1;
            }
        }
        assert!(wanted.values().sum::<usize>() >= 22, "{wanted:?}");
        let own = include_str!("files.rs").split_once("#[cfg(test)]").unwrap().0;
        let own = own.split_once("pub fn files").unwrap().1;
        for (name, wanted) in wanted {
            let field = format!(".{name}");
            let after = own.split(&field).skip(1);
            // Not the beginning of another name, and not the end of the name of a setting.
            let is_other =
                |rest: &&str| rest.starts_with(|it: char| it.is_alphanumeric() || "_\"".contains(it));
            let listed = after.filter(|rest| !is_other(rest));
            assert_eq!(listed.count(), wanted, "settings {name} in `files`");
        }
    }
}
