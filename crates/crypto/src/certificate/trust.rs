//! A TrustList: trusted certificates, other issuers, and revocation lists (Part 4 §6.1.3, Part 12 §7.8.2).

use super::crl::RevocationList;
use super::x509::Certificate;
use std::collections::BTreeMap;

/// Trusted certificates, issuers that only complete chains, and revocation lists.
#[derive(Debug, Clone, Default)]
pub struct TrustList {
    by_subject: BTreeMap<Box<[u8]>, Vec<Known>>,
    lists: BTreeMap<Box<[u8]>, Vec<RevocationList>>,
    trusted_len: usize,
    issuers_len: usize,
}

#[derive(Debug, Clone)]
struct Known {
    certificate: Certificate,
    trusted: bool,
}

impl TrustList {
    /// An empty list, which trusts no certificate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a trusted certificate: an application's own, or an authority's, which makes all certificates issued by it
    /// trusted.
    pub fn trust(&mut self, certificate: Certificate) {
        self.add(certificate, true);
    }

    /// Adds an authority that completes chains without making certificates trusted.
    pub fn add_issuer(&mut self, certificate: Certificate) {
        self.add(certificate, false);
    }

    fn add(&mut self, certificate: Certificate, trusted: bool) {
        let known = self.by_subject.entry(certificate.subject().into()).or_default();
        match known.iter_mut().find(|known| known.certificate == certificate) {
            Some(known) if known.trusted || !trusted => {}
            Some(known) => {
                known.trusted = true;
                self.issuers_len -= 1;
                self.trusted_len += 1;
            }
            None => {
                known.push(Known { certificate, trusted });
                *(if trusted { &mut self.trusted_len } else { &mut self.issuers_len }) += 1;
            }
        }
    }

    /// Adds a revocation list.
    pub fn add_revocation_list(&mut self, list: RevocationList) {
        let lists = self.lists.entry(list.issuer().into()).or_default();
        if !lists.contains(&list) {
            lists.push(list);
        }
    }

    /// Whether exactly this certificate is trusted.
    #[must_use]
    pub fn is_trusted(&self, certificate: &Certificate) -> bool {
        self.named(certificate.subject()).any(|known| known.trusted && known.certificate == *certificate)
    }

    /// Our copy of exactly this certificate, trusted or not. It caches verified signatures.
    pub(super) fn own_copy(&self, certificate: &Certificate) -> Option<&Certificate> {
        self.named(certificate.subject()).map(|known| &known.certificate).find(|known| *known == certificate)
    }

    fn named(&self, subject: &[u8]) -> impl Iterator<Item = &Known> {
        self.by_subject.get(subject).into_iter().flatten()
    }

    /// Certificates with this subject, trusted ones first.
    pub(super) fn with_subject<'a>(&'a self, subject: &'a [u8]) -> impl Iterator<Item = &'a Certificate> {
        let trusted = self.named(subject).filter(|known| known.trusted);
        let others = self.named(subject).filter(|known| !known.trusted);
        trusted.chain(others).map(|known| &known.certificate)
    }

    /// The revocation lists of this issuer.
    pub(super) fn lists_of(&self, issuer: &[u8]) -> &[RevocationList] {
        self.lists.get(issuer).map_or(&[], Vec::as_slice)
    }

    /// The trusted certificates, in the order of their subjects.
    pub fn trusted(&self) -> impl Iterator<Item = &Certificate> {
        self.all().filter(|known| known.trusted).map(|known| &known.certificate)
    }

    /// The issuers that are not trusted, in the order of their subjects.
    pub fn issuers(&self) -> impl Iterator<Item = &Certificate> {
        self.all().filter(|known| !known.trusted).map(|known| &known.certificate)
    }

    /// The revocation lists, in the order of their issuers.
    pub fn revocation_lists(&self) -> impl Iterator<Item = &RevocationList> {
        self.lists.values().flatten()
    }

    fn all(&self) -> impl Iterator<Item = &Known> {
        self.by_subject.values().flatten()
    }

    /// Number of trusted certificates.
    #[must_use]
    pub fn trusted_len(&self) -> usize {
        self.trusted_len
    }

    /// Number of other issuers.
    #[must_use]
    pub fn issuers_len(&self) -> usize {
        self.issuers_len
    }
}
