//! The file in which a PubSub configuration is saved.

use std::io;
use std::path::Path;
use taktwerk_files::{FileLock, PRIVATE, Staged};
use taktwerk_pubsub::config::{Configuration, binary_file};

/// Longest configuration file in bytes.
const FILE_LEN_MAX: u64 = 64 << 20;

/// The file in which a PubSub configuration is saved, locked for this process: two servers with the same file would overwrite each
/// other's changes. The lock ends on drop.
#[derive(Debug)]
pub struct SavedConfiguration(FileLock);

impl SavedConfiguration {
    /// Locks a file, which need not exist yet.
    ///
    /// # Errors
    /// Another process uses the file, or it cannot be locked. The message names the process if it is known.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let lock = FileLock::of(path)?;
        if let Some(warning) = lock.warning(path) {
            tracing::warn!("{warning}");
        }
        Ok(Self(lock))
    }

    /// The saved configuration; `None` if there is no file yet.
    ///
    /// # Errors
    /// As [`load`].
    pub fn load(&self) -> io::Result<Option<Configuration>> {
        load(self.path())
    }

    /// The file, even if a link to it is changed later.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a configuration beside the file, which it replaces when it is committed. It contains passwords of brokers.
    pub(super) fn stage(&self, configuration: &Configuration) -> io::Result<Staged> {
        Staged::write(self.path(), &binary_file::write(configuration), PRIVATE)
    }
}

/// Loads a configuration that [`PubSubModel::save_to`](super::PubSubModel::save_to) saved; `None` if the file does not exist yet.
/// It does not lock the file: to save to it as well, use [`SavedConfiguration`].
///
/// # Errors
/// The file cannot be read, or has other content.
pub fn load(path: impl AsRef<Path>) -> io::Result<Option<Configuration>> {
    let bytes = match taktwerk_files::read_bytes(path.as_ref(), FILE_LEN_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let configuration = binary_file::read(&bytes);
    configuration.map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
