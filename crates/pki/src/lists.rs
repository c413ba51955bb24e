//! A trust list as four lists of entries (Part 12 §7.8.2.8), and its files. An administrator's file may have several entries: a
//! chain, or revocation lists in PEM.

use crate::encoding;
use crate::layout::{Folder, Group, thumbprint_text};
use crate::scan;
use crate::store::{FILE_LEN_MAX, REVOCATION_FILE_LEN_MAX, Store};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use taktwerk_crypto::certificate::{Certificate, RevocationList, TrustList, thumbprint};
use taktwerk_files::PUBLIC;

/// The lists in the order in which entries are added: an issuer and the revocation lists come before the certificates that they
/// complete or revoke. Entries are removed in the reverse order.
const ORDER: [Folder; 4] = [Folder::IssuerLists, Folder::TrustedLists, Folder::Issuers, Folder::Trusted];

/// The content of a trust list.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// Trusted certificates: the first one of each file in `trusted/certs`.
    pub trusted: Vec<Certificate>,
    /// Revocation lists in `trusted/crl`.
    pub trusted_lists: Vec<RevocationList>,
    /// Issuers: the certificates in `issuer/certs`, and those behind trusted certificates.
    pub issuers: Vec<Certificate>,
    /// Revocation lists in `issuer/crl`.
    pub issuer_lists: Vec<RevocationList>,
}

/// An entry: the list that it belongs to, and its DER.
type Entry<'a> = (Folder, &'a [u8]);

impl Lists {
    /// Size of all certificates and revocation lists, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        ORDER.into_iter().flat_map(|folder| self.of(folder)).map(<[u8]>::len).sum()
    }

    /// Number of certificates and revocation lists.
    #[must_use]
    pub fn count(&self) -> usize {
        self.trusted.len() + self.issuers.len() + self.trusted_lists.len() + self.issuer_lists.len()
    }

    /// Whether any of the four lists differs, independent of order.
    #[must_use]
    pub fn differs_from(&self, other: &Self) -> bool {
        self.entries() != other.entries()
    }

    /// The trust list for validations.
    #[must_use]
    pub fn trust_list(&self) -> TrustList {
        let mut list = TrustList::new();
        self.trusted.iter().cloned().for_each(|certificate| list.trust(certificate));
        self.issuers.iter().cloned().for_each(|certificate| list.add_issuer(certificate));
        let lists = self.trusted_lists.iter().chain(&self.issuer_lists);
        lists.cloned().for_each(|revoked| list.add_revocation_list(revoked));
        list
    }

    /// The DER of the entries of one list.
    fn of(&self, folder: Folder) -> Vec<&[u8]> {
        match folder {
            Folder::Trusted => self.trusted.iter().map(Certificate::der).collect(),
            Folder::Issuers => self.issuers.iter().map(Certificate::der).collect(),
            Folder::TrustedLists => self.trusted_lists.iter().map(RevocationList::der).collect(),
            Folder::IssuerLists => self.issuer_lists.iter().map(RevocationList::der).collect(),
            Folder::Rejected => Vec::new(),
        }
    }

    fn entries(&self) -> BTreeSet<Entry<'_>> {
        ORDER
            .into_iter()
            .flat_map(|folder| self.of(folder).into_iter().map(move |der| (folder, der)))
            .collect()
    }
}

/// A certificate or a revocation list.
enum Content {
    Certificate(Certificate),
    RevocationList(RevocationList),
}

impl Content {
    fn der(&self) -> &[u8] {
        match self {
            Self::Certificate(certificate) => certificate.der(),
            Self::RevocationList(list) => list.der(),
        }
    }
}

/// A file of a trust list, with the list that each of its entries belongs to.
struct ListFile {
    path: PathBuf,
    content: Vec<(Folder, Content)>,
}

impl ListFile {
    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.content.iter().map(|(folder, content)| (*folder, content.der()))
    }

    /// Whether the file can stay as it is: all its entries are wanted.
    fn stays(&self, wanted: &BTreeSet<Entry<'_>>) -> bool {
        self.entries().all(|entry| wanted.contains(&entry))
    }
}

impl Store {
    /// The content of a group's trust list, without duplicates. Broken files are ignored.
    #[must_use]
    pub fn lists(&self, group: Group) -> Lists {
        let files = self.list_files(group);
        let mut found = BTreeSet::new();
        let mut lists = Lists::default();
        for (folder, content) in files.iter().flat_map(|file| &file.content) {
            if !found.insert((*folder, content.der())) {
                continue;
            }
            match (folder, content) {
                (Folder::Trusted, Content::Certificate(it)) => lists.trusted.push(it.clone()),
                (_, Content::Certificate(it)) => lists.issuers.push(it.clone()),
                (Folder::TrustedLists, Content::RevocationList(it)) => lists.trusted_lists.push(it.clone()),
                (_, Content::RevocationList(it)) => lists.issuer_lists.push(it.clone()),
            }
        }
        lists
    }

    /// The first half of [`Self::replace_lists`]: after it, each wanted entry is in a file that has only wanted entries. Nothing is
    /// removed.
    ///
    /// # Errors
    /// The files cannot be written. Some may have been written.
    pub fn add_lists(&self, group: Group, wanted: &Lists) -> io::Result<()> {
        let files = self.list_files(group);
        let entries = wanted.entries();
        // An entry in a file that will be removed needs a file of its own.
        let mut kept: BTreeSet<Entry<'_>> =
            files.iter().filter(|file| file.stays(&entries)).flat_map(ListFile::entries).collect();
        for folder in ORDER {
            for der in wanted.of(folder) {
                if kept.insert((folder, der)) {
                    self.write_entry(group, folder, der)?;
                }
            }
        }
        Ok(())
    }

    /// Replaces the content of a group's trust list. Files that have only wanted entries are not rewritten. After a failure in
    /// between, the directories have more entries than before, never fewer of the wanted ones. After [`Self::add_lists`] it needs
    /// no disk space.
    ///
    /// # Errors
    /// The files cannot be written or removed.
    pub fn replace_lists(&self, group: Group, wanted: &Lists) -> io::Result<()> {
        self.add_lists(group, wanted)?;
        self.remove_others(group, wanted)
    }

    /// Reverts changes of a group's trust list as far as possible: what was added is removed even if not everything that was removed
    /// can be added again.
    ///
    /// # Errors
    /// The files cannot be written or removed.
    pub fn restore_lists(&self, group: Group, before: &Lists) -> io::Result<()> {
        let added = self.add_lists(group, before);
        self.remove_others(group, before).and(added)
    }

    /// Removes the files with entries that are not wanted.
    fn remove_others(&self, group: Group, wanted: &Lists) -> io::Result<()> {
        let entries = wanted.entries();
        let files = self.list_files(group);
        let mut others = files.iter().rev().filter(|file| !file.stays(&entries));
        others.try_for_each(|file| taktwerk_files::remove(&file.path))
    }

    /// The files of a group's trust list, in the order in which entries are added. Broken files are left out.
    fn list_files(&self, group: Group) -> Vec<ListFile> {
        let files = |folder: Folder| -> Vec<ListFile> {
            if folder.holds_lists() {
                let at = self.folder(group, folder);
                let read =
                    scan::each(&at, REVOCATION_FILE_LEN_MAX, &mut Vec::new(), encoding::revocation_lists);
                let content = |lists: Vec<RevocationList>| {
                    lists.into_iter().map(|it| (folder, Content::RevocationList(it)))
                };
                return read
                    .into_iter()
                    .map(|(path, lists)| ListFile { path, content: content(lists).collect() })
                    .collect();
            }
            let content = |entry: crate::store::Entry| {
                let first = (folder, Content::Certificate(entry.certificate));
                let behind = entry.behind.into_iter().map(|it| (Folder::Issuers, Content::Certificate(it)));
                ListFile { path: entry.path, content: core::iter::once(first).chain(behind).collect() }
            };
            self.entries(group, folder, &mut Vec::new()).into_iter().map(content).collect()
        };
        ORDER.into_iter().flat_map(files).collect()
    }

    /// Writes a certificate or a revocation list to a file of its own, named by its thumbprint. A file with other entries is not
    /// overwritten. Returns the file.
    pub(crate) fn write_entry(&self, group: Group, folder: Folder, der: &[u8]) -> io::Result<PathBuf> {
        let at = self.folder(group, folder);
        std::fs::create_dir_all(&at)?;
        let name = thumbprint_text(&thumbprint(der));
        let kind = if folder.holds_lists() { "crl" } else { "der" };
        let mut path = at.join(format!("{name}.{kind}"));
        let mut number = 2u32;
        while has_others(&path, folder, der) {
            path = at.join(format!("{name}-{number}.{kind}"));
            number += 1;
        }
        taktwerk_files::replace(&path, der, PUBLIC)?;
        Ok(path)
    }
}

/// Whether a file has more than the given entry. A broken file has nothing.
fn has_others(path: &Path, folder: Folder, der: &[u8]) -> bool {
    // The file of a rejected certificate is its only one.
    if folder == Folder::Rejected {
        return false;
    }
    if folder.holds_lists() {
        let lists = Store::read_file(path, REVOCATION_FILE_LEN_MAX, encoding::revocation_lists);
        lists.is_ok_and(|lists| lists.len() > 1 || lists.iter().any(|list| list.der() != der))
    } else {
        let chain = Store::read_file(path, FILE_LEN_MAX, encoding::certificates);
        chain.is_ok_and(|chain| chain.len() > 1 || chain.iter().any(|it| it.der() != der))
    }
}
