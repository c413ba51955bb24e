//! A trust list as one structure (TrustListDataType, Part 12 §7.8.2.8), its conversion to files, and its validation.

use super::TRUST_LIST_BYTES_MAX;
use crate::space::now;
use taktwerk_crypto::CertificatePurpose;
use taktwerk_crypto::certificate::{
    AwsLcVerifier, Certificate, RevocationList, Step, TrustList, Validation, ValidationOptions,
    ValidationRequest,
};
use taktwerk_pki::{Group, Lists, Store};
use taktwerk_schema::TrustListDataType;
use taktwerk_types::{ByteString, Decode, DecodeLimits, Decoder, Encode, StatusCode};

/// The lists in a structure (TrustListMasks, Part 12 §7.8.2.9).
const TRUSTED_CERTIFICATES: u32 = 1;
const TRUSTED_CRLS: u32 = 2;
const ISSUER_CERTIFICATES: u32 = 4;
const ISSUER_CRLS: u32 = 8;
/// All lists.
pub(super) const ALL: u32 = 15;

/// Most certificates and revocation lists of a trust list written by clients: each is a file, and checked every second.
pub(super) const ENTRIES_MAX: usize = 1_000;

/// The requested lists, encoded.
pub(super) fn encode(lists: &Lists, masks: u32) -> Vec<u8> {
    let has = |mask| masks & mask != 0;
    let ders = |certificates: &[Certificate]| -> Vec<ByteString> {
        certificates.iter().map(|certificate| certificate.der().to_vec().into()).collect()
    };
    let revoked = |lists: &[RevocationList]| -> Vec<ByteString> {
        lists.iter().map(|list| list.der().to_vec().into()).collect()
    };
    let mut list = TrustListDataType { specified_lists: masks, ..TrustListDataType::default() };
    if has(TRUSTED_CERTIFICATES) {
        list.trusted_certificates = ders(&lists.trusted);
    }
    if has(TRUSTED_CRLS) {
        list.trusted_crls = revoked(&lists.trusted_lists);
    }
    if has(ISSUER_CERTIFICATES) {
        list.issuer_certificates = ders(&lists.issuers);
    }
    if has(ISSUER_CRLS) {
        list.issuer_crls = revoked(&lists.issuer_lists);
    }
    list.encode_to_vec()
}

/// Whether lists may replace others. Certificates whose chain was incomplete before are not checked, so that entries of others do
/// not block the change.
///
/// # Errors
/// Bad_RequestTooLarge; Bad_CertificateChainIncomplete if an issuer is missing, Bad_CertificateInvalid if a signature is wrong
/// (Part 12 §7.8.2.5 to §7.8.2.7). Errors that Part 4 allows to suppress are ignored.
pub(super) fn may_replace(after: &Lists, before: &Lists) -> Result<(), StatusCode> {
    if after.bytes() > TRUST_LIST_BYTES_MAX || after.count() > ENTRIES_MAX {
        return Err(StatusCode::BAD_REQUEST_TOO_LARGE);
    }
    let (new, old) = (after.trust_list(), before.trust_list());
    for certificate in after.trusted.iter().chain(&after.issuers) {
        let Some(status) = broken(certificate, &new) else { continue };
        let was_there = before.trusted.contains(certificate) || before.issuers.contains(certificate);
        if !was_there || broken(certificate, &old).is_none() {
            return Err(status);
        }
    }
    Ok(())
}

/// What is wrong with a certificate in a trust list: its chain must end in a root, and the signatures must be valid.
fn broken(certificate: &Certificate, trust: &TrustList) -> Option<StatusCode> {
    let (options, purpose) = (ValidationOptions::default(), CertificatePurpose::Client { address: None });
    let validation = Validation { trust, verifier: &AwsLcVerifier, options, now: now(), exhaustive: false };
    let report = validation.run(certificate.der(), &ValidationRequest::new(&purpose));
    let failure = report.failure()?;
    let is_of_chain = matches!(failure.step, Step::Structure | Step::BuildChain | Step::Signature);
    is_of_chain.then_some(failure.status)
}

/// A parsed trust list of a client. Nothing is changed before all of it is valid.
#[derive(Clone)]
pub(super) struct Replacement {
    masks: u32,
    lists: Lists,
}

impl Replacement {
    /// # Errors
    /// Bad_CertificateInvalid: not a trust list, trailing bytes, or an invalid certificate or revocation list.
    /// Bad_InvalidArgument: SpecifiedLists contains unknown lists.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, StatusCode> {
        let invalid = StatusCode::BAD_CERTIFICATE_INVALID;
        let limits =
            DecodeLimits { byte_string_len_max: TRUST_LIST_BYTES_MAX as u32, ..DecodeLimits::DEFAULT };
        let mut decoder = Decoder::new(bytes, limits);
        let list = TrustListDataType::decode(&mut decoder).map_err(|_| invalid)?;
        // Trailing bytes would be ignored although the client meant something by them.
        if decoder.remaining() > 0 {
            return Err(invalid);
        }
        // Part 12 §7.8.2.8: TrustListMasks defines the allowed values.
        if list.specified_lists & !ALL != 0 {
            return Err(StatusCode::BAD_INVALID_ARGUMENT);
        }
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
        Ok(Self { masks: list.specified_lists, lists })
    }

    /// Size of its certificates and revocation lists, in bytes.
    pub(super) fn len(&self) -> usize {
        self.lists.bytes()
    }

    /// The lists after applying this replacement.
    pub(super) fn over(&self, mut before: Lists) -> Lists {
        self.take(&mut before);
        before
    }

    /// Combines it with a later replacement of the same transaction.
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

    /// Adds missing entries of the specified lists.
    pub(super) fn add(&self, store: &Store, group: Group) -> std::io::Result<()> {
        store.add_lists(group, &self.over(store.lists(group)))
    }

    /// Removes entries that are not in the specified lists. Needs no disk space after [`Self::add`].
    pub(super) fn keep_only(&self, store: &Store, group: Group) -> std::io::Result<()> {
        store.replace_lists(group, &self.over(store.lists(group)))
    }

    /// Reverts [`Self::add`] and [`Self::keep_only`]: the specified lists are as before.
    pub(super) fn take_back(&self, before: &Lists, store: &Store, group: Group) -> std::io::Result<()> {
        let before = Self { masks: self.masks, lists: before.clone() };
        store.restore_lists(group, &before.over(store.lists(group)))
    }
}
