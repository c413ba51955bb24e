//! The chain builder: from a certificate to a self-signed root (Part 4 §6.1.3, Part 6 §6.2.6).
//!
//! Names are compared byte for byte, every link is verified by its signature while the chain is built, and nothing is
//! fetched. The resulting chain is the one that is checked and trusted. Two builders that disagree, or lenient name
//! comparison, have allowed forged certificates elsewhere (CVE-2022-29865).

use super::reader::Malformed;
use super::reason::Reason;
use super::step::Step;
use super::trust::TrustList;
use super::verify::{CheckFailure, Checks};
use super::x509::Certificate;
use super::{CHAIN_BYTES_MAX, CHAIN_LEN_MAX};

/// Maximum number of links tried. Honest authorities with several certificates of one name need a handful.
const LINKS_MAX: u32 = 64;

/// Why the chain that a peer sent cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// No certificate was sent.
    #[error("no certificate was sent")]
    Empty,
    /// The chain is too long in bytes.
    #[error("the certificate and its chain are longer than {CHAIN_BYTES_MAX} bytes")]
    TooManyBytes,
    /// The chain has too many certificates.
    #[error("more than {CHAIN_LEN_MAX} certificates were sent")]
    TooManyCertificates,
    /// An element is not a certificate.
    #[error("certificate {number} of the chain that was sent: {fault}")]
    Malformed {
        /// Number of the certificate; 1 is the peer's own.
        number: usize,
        /// What is wrong with it.
        fault: Malformed,
    },
}

/// Parses concatenated certificates, the peer's own first (Part 6 §6.2.6).
///
/// # Errors
/// [`ChainError`].
pub fn split_chain(bytes: &[u8]) -> Result<Vec<Certificate>, ChainError> {
    if bytes.is_empty() {
        return Err(ChainError::Empty);
    }
    if bytes.len() > CHAIN_BYTES_MAX {
        return Err(ChainError::TooManyBytes);
    }
    let mut certificates = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let number = certificates.len() + 1;
        if number > CHAIN_LEN_MAX {
            return Err(ChainError::TooManyCertificates);
        }
        let malformed = |fault| ChainError::Malformed { number, fault };
        let len = super::reader::Items::new(rest, 0, "certificate")
            .and_then(|mut items| items.next("certificate"))
            .map_err(malformed)?
            .raw
            .len();
        let fault = Malformed { what: "certificate", at: 0 };
        let (first, behind) = rest.split_at_checked(len).ok_or_else(|| malformed(fault))?;
        certificates.push(Certificate::from_der(first).map_err(malformed)?);
        rest = behind;
    }
    Ok(certificates)
}

/// A chain, possibly incomplete.
pub(super) struct Built {
    /// From the certificate to the root; incomplete if there is a fault.
    pub(super) chain: Vec<Certificate>,
    /// Why the chain is incomplete: the step, the depth, and the reason.
    pub(super) fault: Option<(Step, usize, Reason)>,
}

/// Builds the chain of the first certificate in `sent`. The others and the trust list can complete it.
pub(super) fn build(sent: &[Certificate], trust: &TrustList, checks: &mut Checks<'_>) -> Built {
    let Some(leaf) = sent.first() else {
        return Built {
            chain: Vec::new(),
            fault: Some((Step::Structure, 0, Reason::Chain(ChainError::Empty))),
        };
    };
    let leaf = trust.own_copy(leaf).unwrap_or(leaf).clone();
    let farthest = vec![leaf.clone()];
    let mut search = Search { sent, trust, checks, links: 0, untrusted: None, fault: None, farthest };
    let mut chain = vec![leaf];
    if search.extend(&mut chain) {
        return Built { chain, fault: None };
    }
    match search.untrusted {
        Some(chain) => Built { chain, fault: None },
        None => Built { chain: search.farthest, fault: search.fault },
    }
}

struct Search<'a, 'b> {
    sent: &'a [Certificate],
    trust: &'a TrustList,
    checks: &'a mut Checks<'b>,
    links: u32,
    /// The first complete chain without a trusted certificate.
    untrusted: Option<Vec<Certificate>>,
    /// The fault of the longest attempt.
    fault: Option<(Step, usize, Reason)>,
    farthest: Vec<Certificate>,
}

impl Search<'_, '_> {
    /// Extends a chain to a root, with a trusted certificate in it. Depth and attempts are bounded by the maximum chain
    /// length and number of signature checks.
    fn extend(&mut self, chain: &mut Vec<Certificate>) -> bool {
        let depth = chain.len() - 1;
        let Some(last) = chain.last().cloned() else { return false };
        if last.is_self_issued() {
            match self.checks.certificate(&last, &last) {
                Ok(()) => {
                    if chain.iter().any(|certificate| self.trust.is_trusted(certificate)) {
                        return true;
                    }
                    self.untrusted.get_or_insert_with(|| chain.clone());
                    return false;
                }
                // A new authority certificate signed with its old key contains the same name twice.
                Err(failure) => self.note(chain, failed(failure, &last)),
            }
        }
        let candidates = self.candidates(&last);
        if candidates.is_empty() && !last.is_self_issued() {
            self.note(chain, (Step::BuildChain, depth, Reason::IssuerNotFound(last.issuer_text())));
        }
        for issuer in candidates {
            if chain.contains(&issuer) {
                if issuer != last {
                    self.note(chain, (Step::BuildChain, depth, Reason::ChainLoops));
                }
                continue;
            }
            self.links += 1;
            if self.links > LINKS_MAX {
                self.note(chain, failed(CheckFailure::Spent, &last));
                return false;
            }
            match self.checks.certificate(&last, &issuer) {
                Ok(()) if chain.len() == CHAIN_LEN_MAX => {
                    self.note(chain, (Step::BuildChain, depth, Reason::ChainTooLong));
                }
                Ok(()) => {
                    chain.push(issuer);
                    if self.extend(chain) {
                        return true;
                    }
                    chain.pop();
                }
                Err(failure) => self.note(chain, failed(failure, &last)),
            }
        }
        false
    }

    /// Possible issuers of a certificate: ours first, and those the peer sent only if they are not among ours.
    fn candidates(&self, of: &Certificate) -> Vec<Certificate> {
        let mut all: Vec<Certificate> = self.trust.with_subject(of.issuer()).cloned().collect();
        for sent in self.sent.iter().skip(1).filter(|sent| sent.subject() == of.issuer()) {
            if !all.contains(sent) {
                all.push(sent.clone());
            }
        }
        all.retain(|issuer| of.names_issuer(issuer));
        // Authorities first, because the number of attempts is limited. The sort is stable.
        all.sort_by_key(|issuer| !issuer.is_authority());
        all
    }

    /// Keeps the fault of the longest attempt; for equal lengths, the most specific one.
    fn note(&mut self, chain: &[Certificate], (step, _, reason): (Step, usize, Reason)) {
        let depth = chain.len() - 1;
        let weight = |step: Step| match step {
            Step::SecurityPolicy => 3,
            Step::Signature => 2,
            _ => 1,
        };
        let better = self
            .fault
            .as_ref()
            .is_none_or(|(known, at, _)| depth > *at || depth == *at && weight(step) > weight(*known));
        if better {
            self.fault = Some((step, depth, reason));
            self.farthest = chain.to_vec();
        }
    }
}

fn failed(failure: CheckFailure, certificate: &Certificate) -> (Step, usize, Reason) {
    match failure {
        CheckFailure::Wrong => (Step::Signature, 0, Reason::SignatureWrong(certificate.issuer_text())),
        CheckFailure::Unsupported => {
            (Step::SecurityPolicy, 0, Reason::AlgorithmUnsupported(certificate.signature_algorithm()))
        }
        CheckFailure::Spent => (Step::BuildChain, 0, Reason::TooManyAttempts),
    }
}
