//! A store: own certificates with their keys, trust lists of applications and users, rejected certificates.

use crate::content::ContentError;
use crate::encoding;
use crate::key::PrivateKey;
use crate::layout::{self, Folder, Group, thumbprint_text};
use crate::permissions::{self, Protection};
use crate::rejected;
use crate::scan::{self, Problem};
use core::net::IpAddr;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use taktwerk_crypto::certificate::{
    CHAIN_BYTES_MAX, Certificate, REVOCATION_LIST_LEN_MAX, RevocationList, TrustList, thumbprint,
};
use taktwerk_files::{PRIVATE, PUBLIC};

/// Shortest prefix of a thumbprint that identifies a certificate. It is easy to create another certificate with a shorter one.
pub const THUMBPRINT_DIGITS_MIN: usize = 8;

/// Allows for PEM, which is longer than DER, and for chains.
pub(crate) const FILE_LEN_MAX: u64 = 2 * CHAIN_BYTES_MAX as u64;
/// The same for files with a revocation list.
pub(crate) const REVOCATION_FILE_LEN_MAX: u64 = REVOCATION_LIST_LEN_MAX as u64;

/// A store in a directory. Every call reads the files again; [`crate::StoreValidator`] caches them.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// A certificate of this application with its key.
#[derive(Debug)]
pub struct OwnCertificate {
    /// The certificate.
    pub certificate: Certificate,
    /// The certificate in DER, followed by the authorities from the same file: the chain that is sent to peers.
    pub chain: Vec<u8>,
    /// Its key.
    pub key: PrivateKey,
    /// The certificate's file.
    pub path: PathBuf,
    /// The key's file.
    pub key_path: PathBuf,
}

/// A certificate in a folder of the store.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its file.
    pub path: PathBuf,
    /// The certificate.
    pub certificate: Certificate,
    /// The certificates after the first one in the file: the issuers sent by the peer.
    pub behind: Vec<Certificate>,
}

impl Entry {
    /// The certificate's thumbprint: its SHA-1, used as a name and not for security.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        thumbprint_text(&thumbprint(self.certificate.der()))
    }

    /// The certificate and its issuers, encoded as peers send them.
    #[must_use]
    pub fn chain(&self) -> Vec<u8> {
        let mut chain = self.certificate.der().to_vec();
        self.behind.iter().for_each(|issuer| chain.extend_from_slice(issuer.der()));
        chain
    }
}

impl Store {
    /// The store in a directory, which need not exist yet.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the directory exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.root.is_dir()
    }

    /// A directory of the store.
    #[must_use]
    pub fn folder(&self, group: Group, folder: Folder) -> PathBuf {
        layout::folder(&self.root, group, folder)
    }

    /// Creates all directories; only the owner may read the one with the private keys. Existing directories are not changed, except
    /// that temporary files of killed processes are removed.
    ///
    /// # Errors
    /// A directory cannot be created.
    pub fn create(&self) -> io::Result<()> {
        let mut folders = vec![layout::own_certificates(&self.root)];
        for group in [Group::Applications, Group::Users] {
            let of_group = Folder::DECIDING.into_iter().chain([Folder::Rejected]);
            folders.extend(of_group.map(|folder| self.folder(group, folder)));
        }
        folders.iter().try_for_each(std::fs::create_dir_all)?;
        let keys = layout::own_keys(&self.root);
        if !keys.is_dir() {
            std::fs::create_dir_all(&keys)?;
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o700))?;
            }
        }
        folders.push(keys);
        folders.iter().for_each(|folder| taktwerk_files::remove_leftovers(folder));
        Ok(())
    }

    /// Checks who can read the private keys, and who can change the trust lists.
    ///
    /// # Errors
    /// The first file or directory with wrong permissions, and the command that corrects it.
    pub fn check_permissions(&self) -> Result<(), Problem> {
        let keys = layout::own_keys(&self.root);
        for path in scan::files(&keys, &mut Vec::new()) {
            permissions::check(&path, Protection::ReadAndWrite)
                .map_err(|error| Problem::new(&path, error))?;
        }
        for group in [Group::Applications, Group::Users] {
            for folder in Folder::DECIDING {
                let folder = self.folder(group, folder);
                if folder.is_dir() {
                    permissions::check(&folder, Protection::Write)
                        .map_err(|error| Problem::new(&folder, error))?;
                }
            }
        }
        Ok(())
    }

    /// The own certificates with their keys, the one that is valid longest first. Skipped and reported are certificates without a
    /// key, keys that others can read, and broken files. Keys without a certificate are skipped silently.
    pub fn own(&self, problems: &mut Vec<Problem>) -> Vec<OwnCertificate> {
        let mut keys = Vec::new();
        for (path, key) in scan::each(&layout::own_keys(&self.root), FILE_LEN_MAX, problems, PrivateKey::read)
        {
            match permissions::check(&path, Protection::ReadAndWrite) {
                Ok(()) => keys.push((path, key)),
                Err(error) => problems.push(Problem::new(&path, error)),
            }
        }
        let mut own = Vec::new();
        let certificates = layout::own_certificates(&self.root);
        for (path, chain) in scan::each(&certificates, FILE_LEN_MAX, problems, encoding::certificates) {
            let Some(certificate) = chain.first() else { continue };
            match keys.iter().position(|(_, key)| key.belongs_to(certificate)) {
                Some(at) => {
                    let (key_path, key) = keys.swap_remove(at);
                    let bytes = chain.iter().flat_map(|one| one.der()).copied().collect();
                    own.push(OwnCertificate {
                        certificate: certificate.clone(),
                        chain: bytes,
                        key,
                        path,
                        key_path,
                    });
                }
                None => {
                    problems.push(Problem::new(
                        &path,
                        "there is no private key for this certificate in own/private",
                    ));
                }
            }
        }
        own.sort_by_key(|own| core::cmp::Reverse(own.certificate.not_after()));
        own
    }

    /// Stores an own certificate and its key. Returns the files.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn keep_own(&self, chain: &[Certificate], key: &PrivateKey) -> io::Result<(PathBuf, PathBuf)> {
        let certificate = chain.first().ok_or(io::ErrorKind::InvalidInput)?;
        self.create()?;
        let name = name(certificate);
        let key_path = layout::own_keys(&self.root).join(format!("{name}.pem"));
        let path = layout::own_certificates(&self.root).join(format!("{name}.der"));
        let is_new = !key_path.exists();
        // Write the key first: a certificate without key is a problem, a key without certificate is not.
        taktwerk_files::replace(&key_path, key.pem().as_bytes(), PRIVATE)?;
        let bytes: Vec<u8> = chain.iter().flat_map(|one| one.der()).copied().collect();
        if let Err(error) = taktwerk_files::replace(&path, &bytes, PUBLIC) {
            if is_new {
                // The key is useless without its certificate. Report the first error.
                let _ = taktwerk_files::remove(&key_path);
            }
            return Err(error);
        }
        Ok((path, key_path))
    }

    /// Stores a key whose certificate is requested. Returns the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_key(&self, key: &PrivateKey, request: &[u8]) -> io::Result<PathBuf> {
        self.create()?;
        let name = thumbprint_text(&thumbprint(request));
        let path = layout::own_keys(&self.root).join(format!("{name}.pem"));
        taktwerk_files::replace(&path, key.pem().as_bytes(), PRIVATE)?;
        Ok(path)
    }

    /// The key in `own/private` that belongs to a certificate.
    pub fn key_of(&self, certificate: &Certificate) -> Option<PrivateKey> {
        let folder = layout::own_keys(&self.root);
        scan::each(&folder, FILE_LEN_MAX, &mut Vec::new(), PrivateKey::read)
            .into_iter()
            .map(|(_, key)| key)
            .find(|key| key.belongs_to(certificate))
    }

    /// The trust list of a group. Broken files are reported and ignored.
    ///
    /// Only the first certificate of a file in `trusted/certs` is trusted; the others complete chains. So a file may be moved
    /// there from `rejected/certs` by hand.
    pub fn trust_list(&self, group: Group, problems: &mut Vec<Problem>) -> TrustList {
        let mut list = TrustList::new();
        for entry in self.entries(group, Folder::Trusted, problems) {
            list.trust(entry.certificate);
            entry.behind.into_iter().for_each(|issuer| list.add_issuer(issuer));
        }
        for entry in self.entries(group, Folder::Issuers, problems) {
            list.add_issuer(entry.certificate);
            entry.behind.into_iter().for_each(|issuer| list.add_issuer(issuer));
        }
        for folder in [Folder::TrustedLists, Folder::IssuerLists] {
            for (_, found) in self.revocation_lists(group, folder, problems) {
                list.add_revocation_list(found);
            }
        }
        list
    }

    /// The certificates in a directory, sorted by file name.
    pub fn entries(&self, group: Group, folder: Folder, problems: &mut Vec<Problem>) -> Vec<Entry> {
        let folder = self.folder(group, folder);
        scan::each(&folder, FILE_LEN_MAX, problems, encoding::certificates)
            .into_iter()
            .filter_map(|(path, chain)| {
                let mut chain = chain.into_iter();
                let certificate = chain.next()?;
                Some(Entry { path, certificate, behind: chain.collect() })
            })
            .collect()
    }

    /// The revocation lists in a directory, sorted by file name.
    pub fn revocation_lists(
        &self,
        group: Group,
        folder: Folder,
        problems: &mut Vec<Problem>,
    ) -> Vec<(PathBuf, RevocationList)> {
        let folder = self.folder(group, folder);
        scan::each(&folder, REVOCATION_FILE_LEN_MAX, problems, encoding::revocation_lists)
            .into_iter()
            .flat_map(|(path, lists)| lists.into_iter().map(move |list| (path.clone(), list)))
            .collect()
    }

    /// The last known addresses of peers with rejected certificates, by thumbprint.
    #[must_use]
    pub fn rejected_addresses(&self, group: Group) -> BTreeMap<String, IpAddr> {
        rejected::addresses(&self.folder(group, Folder::Rejected))
    }

    /// The rejected certificates, the latest first.
    pub fn rejected(&self, group: Group, problems: &mut Vec<Problem>) -> Vec<Entry> {
        let mut entries = self.entries(group, Folder::Rejected, problems);
        let modified =
            |entry: &Entry| std::fs::metadata(&entry.path).and_then(|metadata| metadata.modified()).ok();
        entries.sort_by_key(|entry| core::cmp::Reverse(modified(entry)));
        entries
    }

    /// Trusts a certificate, and removes it from the rejected ones. Returns its file.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn trust(&self, group: Group, certificate: &Certificate) -> io::Result<PathBuf> {
        let path = self.keep(group, Folder::Trusted, certificate)?;
        self.forget_rejected(group, certificate)?;
        Ok(path)
    }

    /// Stores an authority that completes chains but is not trusted. Returns its file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_issuer(&self, group: Group, certificate: &Certificate) -> io::Result<PathBuf> {
        self.keep(group, Folder::Issuers, certificate)
    }

    /// Stops trusting a certificate, and lists it as rejected. Issuers that completed its chain stay. Returns whether it was trusted.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn reject(&self, group: Group, certificate: &Certificate) -> io::Result<bool> {
        self.keep(group, Folder::Rejected, certificate)?;
        let mut lists = self.lists(group);
        let is_trusted = lists.trusted.contains(certificate);
        if is_trusted {
            lists.trusted.retain(|other| other != certificate);
            self.replace_lists(group, &lists)?;
        }
        Ok(is_trusted)
    }

    /// Stores a revocation list. It replaces an older one signed by the same key. Returns its file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_revocation_list(&self, group: Group, list: &RevocationList) -> io::Result<PathBuf> {
        let trusted = self.trust_list(group, &mut Vec::new());
        let of_trusted = trusted.trusted().any(|certificate| certificate.subject() == list.issuer());
        let folder = if of_trusted { Folder::TrustedLists } else { Folder::IssuerLists };
        self.write_entry(group, folder, list.der())
    }

    pub(crate) fn keep(
        &self,
        group: Group,
        folder: Folder,
        certificate: &Certificate,
    ) -> io::Result<PathBuf> {
        self.write_entry(group, folder, certificate.der())
    }

    /// Removes every file of a rejected certificate.
    fn forget_rejected(&self, group: Group, certificate: &Certificate) -> io::Result<()> {
        for entry in self.entries(group, Folder::Rejected, &mut Vec::new()) {
            if entry.certificate == *certificate {
                taktwerk_files::remove(&entry.path)?;
            }
        }
        Ok(())
    }

    /// Certificates of a group whose thumbprint begins with a prefix of at least [`THUMBPRINT_DIGITS_MIN`] digits, among trusted,
    /// issuer and rejected ones. A certificate in several directories is returned once.
    pub fn find(&self, group: Group, thumbprint: &str) -> Vec<(Folder, Entry)> {
        let wanted: String =
            thumbprint.chars().filter(|c| !matches!(c, ':' | ' ')).flat_map(char::to_lowercase).collect();
        if wanted.len() < THUMBPRINT_DIGITS_MIN {
            return Vec::new();
        }
        let mut found: Vec<(Folder, Entry)> = Vec::new();
        for folder in [Folder::Trusted, Folder::Issuers, Folder::Rejected] {
            for entry in self.entries(group, folder, &mut Vec::new()) {
                let is_found = found.iter().any(|(_, known)| known.certificate == entry.certificate);
                if !is_found && entry.thumbprint().starts_with(&wanted) {
                    found.push((folder, entry));
                }
            }
        }
        found
    }

    /// Reads the certificates in any file.
    ///
    /// # Errors
    /// A message that says what is wrong with the file.
    pub fn read_certificates(path: &Path) -> Result<Vec<Certificate>, String> {
        Self::read_file(path, FILE_LEN_MAX, encoding::certificates)
    }

    pub(crate) fn read_file<T>(
        path: &Path,
        len_max: u64,
        read: impl Fn(&[u8]) -> Result<T, ContentError>,
    ) -> Result<T, String> {
        let failed = |what: String| format!("{}: {what}", path.display());
        let bytes = taktwerk_files::read_bytes(path, len_max).map_err(|error| failed(error.to_string()))?;
        read(&bytes).map_err(|error| failed(error.to_string()))
    }

    /// A number that changes when the trust list of a group changes.
    #[must_use]
    pub fn fingerprint(&self, group: Group) -> u64 {
        scan::fingerprint(Folder::DECIDING.map(|folder| self.folder(group, folder)))
    }

    /// When the trust list of a group last changed, from the times of its files; `None` if there are none.
    #[must_use]
    pub fn last_update(&self, group: Group) -> Option<SystemTime> {
        scan::last_modified(Folder::DECIDING.map(|folder| self.folder(group, folder)))
    }

    /// A number that changes when an own certificate or key changes.
    #[must_use]
    pub fn own_fingerprint(&self) -> u64 {
        scan::fingerprint([layout::own_certificates(&self.root), layout::own_keys(&self.root)])
    }
}

pub(crate) fn name(certificate: &Certificate) -> String {
    thumbprint_text(&thumbprint(certificate.der()))
}
