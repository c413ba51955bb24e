//! Certificates of clients in the server's own process. They are trusted without being in the trust lists.

use std::net::IpAddr;
use taktwerk_crypto::certificate::Certificate;
use taktwerk_crypto::{CertificatePurpose, der};

/// The certificates of a client in this process. A [`StoreValidator`](crate::StoreValidator) trusts them as long as this value
/// lives: see [`trust_in_process`](crate::StoreValidator::trust_in_process).
///
/// They are not in the trust list, so administrators can neither see nor remove them. They are trusted only as certificates of
/// client applications, and only for connections from this machine. Keep their keys in memory, so that no other program can use
/// them.
#[derive(Debug)]
pub struct InProcess {
    certificates: Vec<Certificate>,
    address: IpAddr,
}

impl InProcess {
    /// Certificates of a client that connects to the server at `address`. Its connections come from that address or from
    /// loopback.
    #[must_use]
    pub fn new(certificates: Vec<Certificate>, address: IpAddr) -> Self {
        Self { certificates, address: address.to_canonical() }
    }

    /// Whether the chain of a peer is one of these certificates, with the right purpose and from the right address.
    pub(crate) fn includes(&self, chain: &[u8], purpose: &CertificatePurpose) -> bool {
        let CertificatePurpose::Client { address: Some(address) } = purpose else { return false };
        let address = address.to_canonical();
        let leaf = der::leaf(chain);
        (address.is_loopback() || address == self.address)
            && self.certificates.iter().any(|certificate| certificate.der() == leaf)
    }
}
