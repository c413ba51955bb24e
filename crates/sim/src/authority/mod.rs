//! Certificate authorities as processes of a world, and the processes that ask them.
//!
//! Before a server or client accepts a certificate, its asker sends a request to each authority of the chain, one after
//! the other: first the issuer of the certificate, last the root. Requests and answers are HTTP messages on TCP
//! connections over the links of the world: OCSP (RFC 6960 Appendix A) or revocation lists (RFC 5280 §4.2.1.13). They
//! have the length of real ones; their content does not matter. An authority handles one request at a time, on its
//! machine if it has one, so requests of several servers wait for each other.
//!
//! Without an answer, the status of the certificate is unknown. The certificate is then refused or accepted, as Part 4
//! §6.1.3 allows for this check.
//!
//! - `responder`: the authority; `asker`: sends the requests for one server or one group of clients;
//! - `http`: the messages; `work`: what they cost.
//!
//! The sockets are in [`node`](crate::node); [`World::add_authority`](crate::World::add_authority) and
//! [`World::add_asker`](crate::World::add_asker) create the processes.

pub(crate) mod asker;
mod http;
pub(crate) mod responder;
mod work;

pub(crate) use asker::Asker;
pub(crate) use responder::Responder;
pub(crate) use work::Work;

use crate::histogram::Histogram;
use crate::ids::NodeId;
use crate::network::Route;
use core::time::Duration;
use taktwerk_crypto::CryptoError;
use taktwerk_types::StatusCode;

/// How an authority reports revoked certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OCSP: each answer is signed for its request, and not kept.
    Ocsp,
    /// A revocation list, which was signed beforehand. Askers keep it for this long.
    Crl(Duration),
}

/// A certificate authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Name of the host in its URL.
    pub name: String,
    /// What it answers.
    pub protocol: Protocol,
    /// Bytes of an answer without HTTP headers.
    pub response_len: usize,
    /// Processor time for each answer, in addition to the prices of the host profile.
    pub processing: Duration,
}

/// One authority of a chain, as seen by an asker.
#[derive(Debug, Clone)]
pub struct Query {
    /// Its process.
    pub node: NodeId,
    /// Its description.
    pub authority: Authority,
    /// The path to it.
    pub route: Route,
    /// Maximum time for connection and answer.
    pub timeout: Duration,
    /// What happens without an answer.
    pub unknown: Unknown,
    /// Numbers of asker and authority, for captures.
    pub numbers: (u32, u32),
}

/// What happens to a certificate if an authority does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unknown {
    /// The certificate is refused: Bad_CertificateRevocationUnknown, or Bad_CertificateIssuerRevocationUnknown if an
    /// authority above the issuer does not answer.
    #[default]
    Refuse,
    /// The next authority is asked, and the certificate is accepted.
    Accept,
}

/// The result of a check. The error is the place of the authority that did not answer; 0 is the issuer.
pub(crate) type Verdict = Result<(), usize>;

/// The error of a refused certificate (Part 4 §6.1.3).
pub(crate) fn refusal(place: usize) -> CryptoError {
    let status = match place {
        0 => StatusCode::BAD_CERTIFICATE_REVOCATION_UNKNOWN,
        _ => StatusCode::BAD_CERTIFICATE_ISSUER_REVOCATION_UNKNOWN,
    };
    CryptoError::certificate(status, "a certificate authority does not answer")
}

/// Counters of an authority, over all runs of its process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthorityFigures {
    /// Requests received.
    pub requests: u64,
    /// Answers sent.
    pub answers: u64,
    /// Largest number of connections at one time.
    pub connections_max: u64,
    /// Times in nanoseconds from the start of a connection until the asker has the answer.
    pub times: Histogram,
    /// Requests without an answer.
    pub unanswered: u64,
}
