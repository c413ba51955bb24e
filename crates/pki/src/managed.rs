//! What push management changes in a store (Part 12 §7.10): whole lists, and keys whose certificates are being asked for.

use crate::file::{self, Secrecy};
use crate::key::PrivateKey;
use crate::layout::{self, Folder, Group, thumbprint_text};
use crate::store::{FILE_LEN_MAX, Store};
use std::io;
use std::path::PathBuf;
use taktwerk_crypto::certificate::{Certificate, RevocationList, thumbprint};

impl Store {
    /// Makes the certificates of a folder those of a list. Files whose first certificate is in the list stay as they are. If
    /// this fails in between, the folder has more certificates than before, and not fewer.
    ///
    /// # Errors
    /// If the files cannot be written or removed.
    pub fn replace_certificates(
        &self,
        group: Group,
        folder: Folder,
        certificates: &[Certificate],
    ) -> io::Result<()> {
        self.add_certificates(group, folder, certificates)?;
        self.keep_only_certificates(group, folder, certificates)
    }

    /// The first half of [`Self::replace_certificates`]: adds those that are missing.
    ///
    /// # Errors
    /// If the files cannot be written. Some may have been.
    pub fn add_certificates(
        &self,
        group: Group,
        folder: Folder,
        certificates: &[Certificate],
    ) -> io::Result<()> {
        let known = self.entries(group, folder, &mut Vec::new());
        for certificate in certificates {
            if !known.iter().any(|entry| entry.certificate == *certificate) {
                self.keep(group, folder, certificate)?;
            }
        }
        Ok(())
    }

    /// The second half of [`Self::replace_certificates`]: removes the others. It needs no space on the disk.
    ///
    /// # Errors
    /// If the files cannot be removed.
    pub fn keep_only_certificates(
        &self,
        group: Group,
        folder: Folder,
        certificates: &[Certificate],
    ) -> io::Result<()> {
        for entry in self.entries(group, folder, &mut Vec::new()) {
            if !certificates.contains(&entry.certificate) {
                file::remove(&entry.path)?;
            }
        }
        Ok(())
    }

    /// Makes the revocation lists of a folder those of a list. If this fails in between, the folder has more lists than
    /// before, and not fewer.
    ///
    /// # Errors
    /// If the files cannot be written or removed.
    pub fn replace_revocation_lists(
        &self,
        group: Group,
        folder: Folder,
        lists: &[RevocationList],
    ) -> io::Result<()> {
        self.add_revocation_lists(group, folder, lists)?;
        self.keep_only_revocation_lists(group, folder, lists)
    }

    /// The first half of [`Self::replace_revocation_lists`]: adds those that are missing.
    ///
    /// # Errors
    /// If the files cannot be written. Some may have been.
    pub fn add_revocation_lists(
        &self,
        group: Group,
        folder: Folder,
        lists: &[RevocationList],
    ) -> io::Result<()> {
        let known = self.revocation_lists(group, folder, &mut Vec::new());
        let at = self.folder(group, folder);
        std::fs::create_dir_all(&at)?;
        for list in lists {
            if !known.iter().any(|(_, other)| other.der() == list.der()) {
                let path = at.join(format!("{}.crl", thumbprint_text(&thumbprint(list.der()))));
                file::write(&path, list.der(), Secrecy::Public)?;
            }
        }
        Ok(())
    }

    /// The second half of [`Self::replace_revocation_lists`]: removes the others. It needs no space on the disk.
    ///
    /// # Errors
    /// If the files cannot be removed.
    pub fn keep_only_revocation_lists(
        &self,
        group: Group,
        folder: Folder,
        lists: &[RevocationList],
    ) -> io::Result<()> {
        for (path, list) in self.revocation_lists(group, folder, &mut Vec::new()) {
            if !lists.iter().any(|kept| kept.der() == list.der()) {
                file::remove(&path)?;
            }
        }
        Ok(())
    }

    /// Keeps a new key whose certificate is being asked for. It replaces an earlier one of that purpose, so that requests
    /// without an answer do not fill the folder. `purpose` becomes part of the file's name.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_requested_key(&self, purpose: u32, key: &PrivateKey) -> io::Result<()> {
        self.create()?;
        file::write(&self.requested_key(purpose), key.pem().as_bytes(), Secrecy::Private)
    }

    /// Removes the key of [`Self::keep_requested_key`] if it belongs to a certificate, which is kept with its key elsewhere.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove_requested_key(&self, purpose: u32, certificate: &Certificate) -> io::Result<()> {
        let path = self.requested_key(purpose);
        match Self::read_file(&path, FILE_LEN_MAX, PrivateKey::read) {
            Ok(key) if key.belongs_to(certificate) => file::remove(&path),
            _ => Ok(()),
        }
    }

    fn requested_key(&self, purpose: u32) -> PathBuf {
        layout::own_keys(self.root()).join(format!("requested-{purpose}.pem"))
    }
}
