//! A store: own certificates with their keys, trust lists of applications and users, rejected certificates.

use crate::content::ContentError;
use crate::encoding;
use crate::file::{self, Secrecy};
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

/// Digits of a thumbprint that name a certificate, at least. Fewer are easily made to fit another one.
pub const THUMBPRINT_DIGITS_MIN: usize = 8;

/// PEM is longer than DER, and files may hold a chain.
pub(crate) const FILE_LEN_MAX: usize = 2 * CHAIN_BYTES_MAX;

/// A store in a folder. Every call looks at the files anew; [`crate::StoreValidator`] keeps what it has read.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// A certificate of ours with its key.
#[derive(Debug)]
pub struct OwnCertificate {
    /// The certificate.
    pub certificate: Certificate,
    /// The certificate in DER with the authorities behind it that stood in the same file: what we send.
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
    /// What stood behind it in the file: the issuers that a peer sent along.
    pub behind: Vec<Certificate>,
}

impl Entry {
    /// The certificate's thumbprint: SHA-1, a name and no protection.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        thumbprint_text(&thumbprint(self.certificate.der()))
    }

    /// The certificate and what stood behind it, as a peer sends them.
    #[must_use]
    pub fn chain(&self) -> Vec<u8> {
        let mut chain = self.certificate.der().to_vec();
        self.behind.iter().for_each(|issuer| chain.extend_from_slice(issuer.der()));
        chain
    }
}

impl Store {
    /// The store in a folder, which need not exist yet.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Its folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the folder exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.root.is_dir()
    }

    /// A folder of the store.
    #[must_use]
    pub fn folder(&self, group: Group, folder: Folder) -> PathBuf {
        layout::folder(&self.root, group, folder)
    }

    /// Makes all folders; the one with the private keys for us alone. Does nothing where they exist.
    ///
    /// # Errors
    /// If a folder cannot be made.
    pub fn create(&self) -> io::Result<()> {
        for group in [Group::Applications, Group::Users] {
            for folder in Folder::DECIDING.into_iter().chain([Folder::Rejected]) {
                std::fs::create_dir_all(self.folder(group, folder))?;
            }
        }
        std::fs::create_dir_all(layout::own_certificates(&self.root))?;
        let keys = layout::own_keys(&self.root);
        if !keys.is_dir() {
            std::fs::create_dir_all(&keys)?;
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o700))?;
            }
        }
        Ok(())
    }

    /// Looks at who can read our keys, and who can change what is trusted.
    ///
    /// # Errors
    /// The first file or folder that others can read or change though they must not, and the command that mends it.
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

    /// Our certificates with their keys, the one that is valid longest first. Certificates without a key, and keys
    /// without a certificate, are not returned, nor are keys that others can read; these and broken files are reported.
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

    /// Keeps a certificate of ours and its key. Returns the files.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn keep_own(&self, chain: &[Certificate], key: &PrivateKey) -> io::Result<(PathBuf, PathBuf)> {
        let certificate = chain.first().ok_or(io::ErrorKind::InvalidInput)?;
        self.create()?;
        let name = name(certificate);
        let key_path = layout::own_keys(&self.root).join(format!("{name}.pem"));
        let path = layout::own_certificates(&self.root).join(format!("{name}.der"));
        let is_new = !key_path.exists();
        // The key first: a certificate without its key would be a problem, a key without one is not.
        file::write(&key_path, key.pem().as_bytes(), Secrecy::Private)?;
        let bytes: Vec<u8> = chain.iter().flat_map(|one| one.der()).copied().collect();
        if let Err(error) = file::write(&path, &bytes, Secrecy::Public) {
            if is_new {
                // Nobody would ever ask for this key. The first error is the one to tell.
                let _ = file::remove(&key_path);
            }
            return Err(error);
        }
        Ok((path, key_path))
    }

    /// Puts a certificate of ours and its key aside, into `own/previous`. Returns the certificate's new place.
    ///
    /// # Errors
    /// If they cannot be moved.
    pub fn retire(&self, own: &OwnCertificate) -> io::Result<PathBuf> {
        let folder = self.root.join("own/previous");
        std::fs::create_dir_all(&folder)?;
        let name = name(&own.certificate);
        let path = folder.join(format!("{name}.der"));
        std::fs::rename(&own.path, &path)?;
        std::fs::rename(&own.key_path, folder.join(format!("{name}.pem")))?;
        Ok(path)
    }

    /// Removes what [`Self::keep_own`] has written.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn forget_own(&self, (path, key_path): &(PathBuf, PathBuf)) -> io::Result<()> {
        file::remove(path)?;
        file::remove(key_path)
    }

    /// Keeps a key whose certificate is still being asked for. Returns the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_key(&self, key: &PrivateKey, request: &[u8]) -> io::Result<PathBuf> {
        self.create()?;
        let name = thumbprint_text(&thumbprint(request));
        let path = layout::own_keys(&self.root).join(format!("{name}.pem"));
        file::write(&path, key.pem().as_bytes(), Secrecy::Private)?;
        Ok(path)
    }

    /// A key in `own/private` that belongs to a certificate.
    pub fn key_of(&self, certificate: &Certificate) -> Option<PrivateKey> {
        let folder = layout::own_keys(&self.root);
        scan::each(&folder, FILE_LEN_MAX, &mut Vec::new(), PrivateKey::read)
            .into_iter()
            .map(|(_, key)| key)
            .find(|key| key.belongs_to(certificate))
    }

    /// The trust list of a group. Broken files are reported and do not count.
    ///
    /// Of a file in `trusted/certs` only the first certificate is trusted; what stands behind it completes chains.
    /// So a file may be moved there from `rejected/certs` by hand.
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

    /// The certificates in a folder, in the order of their file names.
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

    /// The revocation lists in a folder, in the order of their file names.
    pub fn revocation_lists(
        &self,
        group: Group,
        folder: Folder,
        problems: &mut Vec<Problem>,
    ) -> Vec<(PathBuf, RevocationList)> {
        let folder = self.folder(group, folder);
        scan::each(&folder, REVOCATION_LIST_LEN_MAX, problems, encoding::revocation_lists)
            .into_iter()
            .flat_map(|(path, lists)| lists.into_iter().map(move |list| (path.clone(), list)))
            .collect()
    }

    /// Where the peers were that have shown rejected certificates last, by thumbprint, as far as that is known.
    #[must_use]
    pub fn rejected_addresses(&self, group: Group) -> BTreeMap<String, IpAddr> {
        rejected::addresses(&self.folder(group, Folder::Rejected))
    }

    /// The rejected certificates, the last one first.
    pub fn rejected(&self, group: Group, problems: &mut Vec<Problem>) -> Vec<Entry> {
        let mut entries = self.entries(group, Folder::Rejected, problems);
        let modified =
            |entry: &Entry| std::fs::metadata(&entry.path).and_then(|metadata| metadata.modified()).ok();
        entries.sort_by_key(|entry| core::cmp::Reverse(modified(entry)));
        entries
    }

    /// Trusts a certificate, and no longer lists it as rejected. Returns its file.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn trust(&self, group: Group, certificate: &Certificate) -> io::Result<PathBuf> {
        let path = self.keep(group, Folder::Trusted, certificate)?;
        self.remove(group, Folder::Rejected, certificate)?;
        Ok(path)
    }

    /// Keeps an authority that completes chains but is not trusted. Returns its file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_issuer(&self, group: Group, certificate: &Certificate) -> io::Result<PathBuf> {
        self.keep(group, Folder::Issuers, certificate)
    }

    /// No longer trusts a certificate, and lists it as rejected. Returns whether it was trusted.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn reject(&self, group: Group, certificate: &Certificate) -> io::Result<bool> {
        self.keep(group, Folder::Rejected, certificate)?;
        self.remove(group, Folder::Trusted, certificate)
    }

    /// Keeps a revocation list, in the place of an older one by the same key. Returns its file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_revocation_list(&self, group: Group, list: &RevocationList) -> io::Result<PathBuf> {
        let trusted = self.trust_list(group, &mut Vec::new());
        let of_trusted = trusted.trusted().any(|certificate| certificate.subject() == list.issuer());
        let folder = if of_trusted { Folder::TrustedLists } else { Folder::IssuerLists };
        let name = format!("{}.crl", thumbprint_text(&thumbprint(list.der())));
        let path = self.folder(group, folder).join(name);
        std::fs::create_dir_all(self.folder(group, folder))?;
        file::write(&path, list.der(), Secrecy::Public)?;
        Ok(path)
    }

    pub(crate) fn keep(
        &self,
        group: Group,
        folder: Folder,
        certificate: &Certificate,
    ) -> io::Result<PathBuf> {
        let folder = self.folder(group, folder);
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.der", name(certificate)));
        file::write(&path, certificate.der(), Secrecy::Public)?;
        Ok(path)
    }

    /// Removes every file of a folder whose first certificate is this one.
    fn remove(&self, group: Group, folder: Folder, certificate: &Certificate) -> io::Result<bool> {
        let mut found = false;
        for entry in self.entries(group, folder, &mut Vec::new()) {
            if entry.certificate == *certificate {
                file::remove(&entry.path)?;
                found = true;
            }
        }
        Ok(found)
    }

    /// Certificates of a group by the beginning of their thumbprints ([`THUMBPRINT_DIGITS_MIN`] at least), in trusted,
    /// issuers and rejected ones. One that lies in several folders is found once.
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

    /// Reads the certificates in a file anywhere.
    ///
    /// # Errors
    /// What is wrong with the file, for people.
    pub fn read_certificates(path: &Path) -> Result<Vec<Certificate>, String> {
        Self::read_file(path, FILE_LEN_MAX, encoding::certificates)
    }

    pub(crate) fn read_file<T>(
        path: &Path,
        len_max: usize,
        read: impl Fn(&[u8]) -> Result<T, ContentError>,
    ) -> Result<T, String> {
        let failed = |what: String| format!("{}: {what}", path.display());
        let bytes = file::read(path, len_max)
            .map_err(|error| failed(error.to_string()))?
            .ok_or_else(|| failed(format!("longer than {len_max} bytes")))?;
        read(&bytes).map_err(|error| failed(error.to_string()))
    }

    /// A number that changes when the trust list of a group changes.
    #[must_use]
    pub fn fingerprint(&self, group: Group) -> u64 {
        scan::fingerprint(Folder::DECIDING.map(|folder| self.folder(group, folder)))
    }

    /// When the trust list of a group was changed last, by its files; `None` if there are none.
    #[must_use]
    pub fn last_update(&self, group: Group) -> Option<SystemTime> {
        scan::last_modified(Folder::DECIDING.map(|folder| self.folder(group, folder)))
    }

    /// A number that changes when one of our certificates or keys changes.
    #[must_use]
    pub fn own_fingerprint(&self) -> u64 {
        scan::fingerprint([layout::own_certificates(&self.root), layout::own_keys(&self.root)])
    }
}

fn name(certificate: &Certificate) -> String {
    thumbprint_text(&thumbprint(certificate.der()))
}
