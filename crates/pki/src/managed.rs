//! Changes of own certificates and keys (Part 12 §7.10): keys whose certificates are requested, and certificates that are replaced.

use crate::key::PrivateKey;
use crate::layout;
use crate::store::{FILE_LEN_MAX, OwnCertificate, Store, name};
use std::io;
use std::path::PathBuf;
use taktwerk_crypto::certificate::Certificate;
use taktwerk_files::PRIVATE;

/// The directory of replaced own certificates and their keys.
const PREVIOUS: &str = "own/previous";

impl Store {
    /// Moves an own certificate and its key into `own/previous`. Returns the new path of the certificate.
    ///
    /// # Errors
    /// The files cannot be moved. Then [`Self::take_back`] moves them back.
    pub fn retire(&self, own: &OwnCertificate) -> io::Result<PathBuf> {
        let [path, key_path] = self.previous(own);
        std::fs::create_dir_all(self.root().join(PREVIOUS))?;
        std::fs::rename(&own.path, &path)?;
        std::fs::rename(&own.key_path, key_path)?;
        Ok(path)
    }

    /// Reverts [`Self::retire`], also if only a part of it was done.
    ///
    /// # Errors
    /// The files cannot be moved.
    pub fn take_back(&self, own: &OwnCertificate) -> io::Result<()> {
        let [path, key_path] = self.previous(own);
        // The key first: a certificate without key is a problem, a key without certificate is not.
        for (from, to) in [(key_path, &own.key_path), (path, &own.path)] {
            if !to.exists() {
                std::fs::rename(from, to)?;
            }
        }
        Ok(())
    }

    /// The files of an own certificate and its key after [`Self::retire`].
    fn previous(&self, own: &OwnCertificate) -> [PathBuf; 2] {
        let name = name(&own.certificate);
        ["der", "pem"].map(|kind| self.root().join(PREVIOUS).join(format!("{name}.{kind}")))
    }

    /// Removes the files written by [`Self::keep_own`].
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn forget_own(&self, (path, key_path): &(PathBuf, PathBuf)) -> io::Result<()> {
        taktwerk_files::remove(path)?;
        taktwerk_files::remove(key_path)
    }

    /// Stores a new key whose certificate is requested. It replaces an earlier key with the same purpose, so that unanswered
    /// requests do not fill the directory. `purpose` becomes part of the file name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_requested_key(&self, purpose: u32, key: &PrivateKey) -> io::Result<()> {
        self.create()?;
        taktwerk_files::replace(&self.requested_key(purpose), key.pem().as_bytes(), PRIVATE)
    }

    /// Removes the key of [`Self::keep_requested_key`] if it belongs to `certificate`, because it is now stored with its
    /// certificate.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove_requested_key(&self, purpose: u32, certificate: &Certificate) -> io::Result<()> {
        let path = self.requested_key(purpose);
        match Self::read_file(&path, FILE_LEN_MAX, PrivateKey::read) {
            Ok(key) if key.belongs_to(certificate) => taktwerk_files::remove(&path),
            _ => Ok(()),
        }
    }

    fn requested_key(&self, purpose: u32) -> PathBuf {
        layout::own_keys(self.root()).join(format!("requested-{purpose}.pem"))
    }
}
