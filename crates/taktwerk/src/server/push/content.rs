//! A trust list as one structure (TrustListDataType, Part 12 §7.8.2.8), what of it becomes files, and whether it is valid.

use super::TRUST_LIST_BYTES_MAX;
use crate::space::now;
use taktwerk_crypto::CertificatePurpose;
use taktwerk_crypto::certificate::{
    AwsLcVerifier, Certificate, RevocationList, Step, TrustList, Validation, ValidationOptions,
    ValidationRequest,
};
use taktwerk_pki::{Folder, Group, Store};
use taktwerk_schema::TrustListDataType;
use taktwerk_types::{ByteString, Decode, DecodeLimits, Encode, StatusCode};

/// The lists that a structure has (TrustListMasks, Part 12 §7.8.2.9).
const TRUSTED_CERTIFICATES: u32 = 1;
const TRUSTED_CRLS: u32 = 2;
const ISSUER_CERTIFICATES: u32 = 4;
const ISSUER_CRLS: u32 = 8;
/// All of them.
pub(super) const ALL: u32 = 15;

/// Certificates and revocation lists of a trust list that clients change: each is a file, and looked at every second.
pub(super) const ENTRIES_MAX: usize = 1_000;

/// The four lists of a trust list.
#[derive(Clone, Default)]
pub(super) struct Lists {
    pub(super) trusted: Vec<Certificate>,
    pub(super) trusted_lists: Vec<RevocationList>,
    pub(super) issuers: Vec<Certificate>,
    pub(super) issuer_lists: Vec<RevocationList>,
}

impl Lists {
    /// As the files have them.
    pub(super) fn read(store: &Store, group: Group) -> Self {
        let entries = |folder| store.entries(group, folder, &mut Vec::new());
        let lists = |folder| {
            let lists = store.revocation_lists(group, folder, &mut Vec::new());
            lists.into_iter().map(|(_, list)| list).collect()
        };
        let trusted = entries(Folder::Trusted);
        let mut issuers: Vec<Certificate> = Vec::new();
        let behind = trusted.iter().flat_map(|entry| entry.behind.iter().cloned());
        let all = entries(Folder::Issuers)
            .into_iter()
            .flat_map(|entry| core::iter::once(entry.certificate).chain(entry.behind));
        for issuer in all.chain(behind) {
            if !issuers.contains(&issuer) {
                issuers.push(issuer);
            }
        }
        Self {
            trusted_lists: lists(Folder::TrustedLists),
            issuer_lists: lists(Folder::IssuerLists),
            trusted: trusted.into_iter().map(|entry| entry.certificate).collect(),
            issuers,
        }
    }

    /// Those that are asked for, encoded.
    pub(super) fn encode(&self, masks: u32) -> Vec<u8> {
        let has = |mask| masks & mask != 0;
        let ders = |certificates: &[Certificate]| -> Vec<ByteString> {
            certificates.iter().map(|certificate| certificate.der().to_vec().into()).collect()
        };
        let lists = |lists: &[RevocationList]| -> Vec<ByteString> {
            lists.iter().map(|list| list.der().to_vec().into()).collect()
        };
        let mut list = TrustListDataType { specified_lists: masks, ..TrustListDataType::default() };
        if has(TRUSTED_CERTIFICATES) {
            list.trusted_certificates = ders(&self.trusted);
        }
        if has(TRUSTED_CRLS) {
            list.trusted_crls = lists(&self.trusted_lists);
        }
        if has(ISSUER_CERTIFICATES) {
            list.issuer_certificates = ders(&self.issuers);
        }
        if has(ISSUER_CRLS) {
            list.issuer_crls = lists(&self.issuer_lists);
        }
        list.encode_to_vec()
    }

    /// Bytes of all certificates and revocation lists.
    fn len(&self) -> usize {
        let certificates = self.trusted.iter().chain(&self.issuers).map(|it| it.der().len());
        let lists = self.trusted_lists.iter().chain(&self.issuer_lists).map(|it| it.der().len());
        certificates.chain(lists).sum()
    }

    fn count(&self) -> usize {
        self.trusted.len() + self.issuers.len() + self.trusted_lists.len() + self.issuer_lists.len()
    }

    /// For validations.
    pub(super) fn trust_list(&self) -> TrustList {
        let mut list = TrustList::new();
        self.trusted.iter().cloned().for_each(|certificate| list.trust(certificate));
        self.issuers.iter().cloned().for_each(|certificate| list.add_issuer(certificate));
        let lists = self.trusted_lists.iter().chain(&self.issuer_lists);
        lists.cloned().for_each(|revoked| list.add_revocation_list(revoked));
        list
    }

    /// Whether these lists may take the place of others. Certificates that had no complete chain before do not count, so that
    /// what others have put there does not stand in the way.
    ///
    /// # Errors
    /// Bad_RequestTooLarge; Bad_CertificateChainIncomplete if an issuer is missing, Bad_CertificateInvalid if a signature is wrong
    /// (Part 12 §7.8.2.5 to §7.8.2.7). What the validation of Part 4 may suppress is ignored.
    pub(super) fn may_replace(&self, before: &Self) -> Result<(), StatusCode> {
        if self.len() > TRUST_LIST_BYTES_MAX || self.count() > ENTRIES_MAX {
            return Err(StatusCode::BAD_REQUEST_TOO_LARGE);
        }
        let certificates = || self.trusted.iter().chain(&self.issuers);
        let (new, old) = (self.trust_list(), before.trust_list());
        for certificate in certificates() {
            let Some(status) = broken(certificate, &new) else { continue };
            let was_there = before.trusted.contains(certificate) || before.issuers.contains(certificate);
            if !was_there || broken(certificate, &old).is_none() {
                return Err(status);
            }
        }
        Ok(())
    }
}

/// What is wrong with a certificate in a trust list: its chain has to end in a root, and the signatures have to be right.
fn broken(certificate: &Certificate, trust: &TrustList) -> Option<StatusCode> {
    let (options, purpose) = (ValidationOptions::default(), CertificatePurpose::Client { address: None });
    let validation = Validation { trust, verifier: &AwsLcVerifier, options, now: now(), exhaustive: false };
    let report = validation.run(certificate.der(), &ValidationRequest::new(&purpose));
    let failure = report.failure()?;
    let is_of_chain = matches!(failure.step, Step::Structure | Step::BuildChain | Step::Signature);
    is_of_chain.then_some(failure.status)
}

/// What a client has written, read: nothing is changed before all of it is valid.
#[derive(Clone)]
pub(super) struct Replacement {
    masks: u32,
    lists: Lists,
}

impl Replacement {
    /// # Errors
    /// Bad_CertificateInvalid: it is no trust list, or something in it is no certificate or revocation list.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, StatusCode> {
        let invalid = StatusCode::BAD_CERTIFICATE_INVALID;
        let limits =
            DecodeLimits { byte_string_len_max: TRUST_LIST_BYTES_MAX as u32, ..DecodeLimits::DEFAULT };
        let list = TrustListDataType::decode_from(bytes, limits).map_err(|_| invalid)?;
        let all =
            [&list.trusted_certificates, &list.trusted_crls, &list.issuer_certificates, &list.issuer_crls];
        if all.iter().map(|list| list.len()).sum::<usize>() > ENTRIES_MAX {
            return Err(StatusCode::BAD_REQUEST_TOO_LARGE);
        }
        let certificates = |list: &[ByteString]| -> Result<Vec<Certificate>, StatusCode> {
            list.iter().map(|der| Certificate::from_der(der.as_bytes()).map_err(|_| invalid)).collect()
        };
        let revoked = |list: &[ByteString]| -> Result<Vec<RevocationList>, StatusCode> {
            list.iter().map(|der| RevocationList::from_der(der.as_bytes()).map_err(|_| invalid)).collect()
        };
        let lists = Lists {
            trusted: certificates(&list.trusted_certificates)?,
            trusted_lists: revoked(&list.trusted_crls)?,
            issuers: certificates(&list.issuer_certificates)?,
            issuer_lists: revoked(&list.issuer_crls)?,
        };
        Ok(Self { masks: list.specified_lists & ALL, lists })
    }

    /// Bytes of its certificates and revocation lists.
    pub(super) fn len(&self) -> usize {
        self.lists.len()
    }

    /// The lists as they are with it.
    pub(super) fn over(&self, mut before: Lists) -> Lists {
        self.take(&mut before);
        before
    }

    /// A later one of the same transaction comes on top.
    pub(super) fn then(mut self, later: Self) -> Self {
        later.take(&mut self.lists);
        self.masks |= later.masks;
        self
    }

    fn take(&self, lists: &mut Lists) {
        let Self { masks, lists: new } = self;
        let has = |mask| masks & mask != 0;
        if has(TRUSTED_CERTIFICATES) {
            lists.trusted.clone_from(&new.trusted);
        }
        if has(TRUSTED_CRLS) {
            lists.trusted_lists.clone_from(&new.trusted_lists);
        }
        if has(ISSUER_CERTIFICATES) {
            lists.issuers.clone_from(&new.issuers);
        }
        if has(ISSUER_CRLS) {
            lists.issuer_lists.clone_from(&new.issuer_lists);
        }
    }

    /// Adds what is missing of the lists that it has. What completes and what revokes comes before what is trusted.
    pub(super) fn add(&self, store: &Store, group: Group) -> std::io::Result<()> {
        let lists = &self.lists;
        self.each(|mask| match mask {
            ISSUER_CERTIFICATES => store.add_certificates(group, Folder::Issuers, &lists.issuers),
            ISSUER_CRLS => store.add_revocation_lists(group, Folder::IssuerLists, &lists.issuer_lists),
            TRUSTED_CRLS => store.add_revocation_lists(group, Folder::TrustedLists, &lists.trusted_lists),
            _ => store.add_certificates(group, Folder::Trusted, &lists.trusted),
        })
    }

    /// Removes what is not in the lists that it has. This needs no space on the disk.
    pub(super) fn keep_only(&self, store: &Store, group: Group) -> std::io::Result<()> {
        self.keep_only_of(&self.lists, store, group)
    }

    /// Takes back what [`Self::add`] has added to the lists that were there before.
    pub(super) fn take_back(&self, before: &Lists, store: &Store, group: Group) -> std::io::Result<()> {
        self.keep_only_of(before, store, group)
    }

    fn keep_only_of(&self, lists: &Lists, store: &Store, group: Group) -> std::io::Result<()> {
        self.each(|mask| match mask {
            ISSUER_CERTIFICATES => store.keep_only_certificates(group, Folder::Issuers, &lists.issuers),
            ISSUER_CRLS => store.keep_only_revocation_lists(group, Folder::IssuerLists, &lists.issuer_lists),
            TRUSTED_CRLS => {
                store.keep_only_revocation_lists(group, Folder::TrustedLists, &lists.trusted_lists)
            }
            _ => store.keep_only_certificates(group, Folder::Trusted, &lists.trusted),
        })
    }

    fn each(&self, run: impl Fn(u32) -> std::io::Result<()>) -> std::io::Result<()> {
        let all = [ISSUER_CERTIFICATES, ISSUER_CRLS, TRUSTED_CRLS, TRUSTED_CERTIFICATES];
        all.into_iter().filter(|mask| self.masks & mask != 0).try_for_each(run)
    }
}
