//! The signed data of CreateSession and ActivateSession (Part 4 §6.1.8).
//!
//! Policies without SecureChannelEnhancements sign a certificate and a nonce. The others bind the signature to the
//! channel: to its thumbprint, both nonces, and hashes of the certificates with which the channel was opened.

use crate::der::leaf;
use crate::{CryptoError, PeerKey, Provider, SecurityPolicy};
use std::sync::Arc;

/// Signed data: parts to concatenate. Hashes are computed when the data is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedData(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Bytes(Vec<u8>),
    /// The hash of a certificate.
    HashOf(Arc<[u8]>),
}

impl From<Vec<u8>> for SignedData {
    fn from(bytes: Vec<u8>) -> Self {
        Self(vec![Part::Bytes(bytes)])
    }
}

impl SignedData {
    /// Heap memory that it uses, in bytes.
    #[must_use]
    pub fn memory_len(&self) -> usize {
        let len = |part: &Part| match part {
            Part::Bytes(bytes) => bytes.capacity(),
            Part::HashOf(certificate) => certificate.len(),
        };
        self.0.capacity() * size_of::<Part>() + self.0.iter().map(len).sum::<usize>()
    }

    /// The bytes to sign.
    ///
    /// # Errors
    /// The provider cannot hash for the policy.
    pub fn bytes(&self, policy: SecurityPolicy, provider: &dyn Provider) -> Result<Vec<u8>, CryptoError> {
        let mut out = Vec::with_capacity(512);
        for part in &self.0 {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(bytes),
                Part::HashOf(certificate) => {
                    out.extend_from_slice(&provider.digest(policy, &[&**certificate])?);
                }
            }
        }
        Ok(out)
    }
}

/// The inputs of a session's signatures. Certificates may include their chains: only the leaf is used.
///
/// Over `opc.tcp`, channel and application have the same certificates (Part 4 §5.7.2.2). Both sides check that before
/// they sign.
#[derive(Debug, Clone)]
pub struct SessionBinding {
    /// The ChannelThumbprint (Part 6 §6.7.5): the signature of the first OpenSecureChannel response.
    pub channel_thumbprint: Arc<[u8]>,
    /// The server's certificate.
    pub server_certificate: Arc<[u8]>,
    /// The client's certificate.
    pub client_certificate: Arc<[u8]>,
    /// The last server nonce of the session.
    pub server_nonce: Vec<u8>,
    /// The client nonce of the CreateSession request.
    pub client_nonce: Vec<u8>,
}

impl SessionBinding {
    /// The data that the server signs in the CreateSession response.
    #[must_use]
    pub fn server_signature(&self, policy: SecurityPolicy) -> SignedData {
        let client = leaf(&self.client_certificate);
        if !policy.info().enhancements {
            return [client, &self.client_nonce].concat().into();
        }
        let (server, client) = self.hashes();
        SignedData(vec![
            Part::Bytes([&*self.channel_thumbprint, &self.client_nonce].concat()),
            server,
            client,
            Part::Bytes(self.server_nonce.clone()),
        ])
    }

    /// The data that the client signs in ActivateSession.
    #[must_use]
    pub fn client_signature(&self, policy: SecurityPolicy) -> SignedData {
        if !policy.info().enhancements {
            return [leaf(&self.server_certificate), &self.server_nonce].concat().into();
        }
        let (server, client) = self.hashes();
        SignedData(vec![
            Part::Bytes([&*self.channel_thumbprint, &self.server_nonce].concat()),
            // The application's certificate, then the channel's.
            server.clone(),
            server,
            client,
            Part::Bytes(self.client_nonce.clone()),
        ])
    }

    /// The data that the owner of a user certificate signs in ActivateSession. `policy` is that of the token, which may
    /// differ from the channel's.
    #[must_use]
    pub fn user_signature(&self, policy: SecurityPolicy) -> SignedData {
        if !policy.info().enhancements {
            return [leaf(&self.server_certificate), &self.server_nonce].concat().into();
        }
        let (server, client) = self.hashes();
        SignedData(vec![
            Part::Bytes([&*self.channel_thumbprint, &self.server_nonce].concat()),
            server.clone(),
            server,
            client.clone(),
            client,
            Part::Bytes(self.client_nonce.clone()),
        ])
    }

    /// A variant of [`Self::server_signature`] over the whole chain, which applications of the early editions sign.
    /// `None` if there is no difference or the policy is newer than that mistake. Only for verifying, not for signing.
    #[must_use]
    pub fn server_signature_over_chain(&self, policy: SecurityPolicy) -> Option<SignedData> {
        over_chain(policy, &self.client_certificate, &self.client_nonce)
    }

    /// The same variant of [`Self::client_signature`] and [`Self::user_signature`].
    #[must_use]
    pub fn client_signature_over_chain(&self, policy: SecurityPolicy) -> Option<SignedData> {
        over_chain(policy, &self.server_certificate, &self.server_nonce)
    }

    fn hashes(&self) -> (Part, Part) {
        let hash = |chain: &[u8]| Part::HashOf(leaf(chain).into());
        (hash(&self.server_certificate), hash(&self.client_certificate))
    }
}

fn over_chain(policy: SecurityPolicy, chain: &[u8], nonce: &[u8]) -> Option<SignedData> {
    let differs = !policy.info().enhancements && leaf(chain).len() != chain.len();
    differs.then(|| [chain, nonce].concat().into())
}

/// Verifies a signature over one of several alternatives.
///
/// # Errors
/// [`CryptoError::Signature`] if none matches.
pub(crate) fn verify_any(
    key: &dyn PeerKey,
    policy: SecurityPolicy,
    readings: &[SignedData],
    signature: &[u8],
    provider: &dyn Provider,
) -> Result<(), CryptoError> {
    let mut result = Err(CryptoError::Signature);
    for reading in readings {
        result = key.verify(&[&reading.bytes(policy, provider)?], signature);
        if result.is_ok() {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding() -> SessionBinding {
        SessionBinding {
            channel_thumbprint: b"thumb".as_slice().into(),
            server_certificate: [0x30, 1, b'S', 0x30, 1, b'A'].as_slice().into(),
            client_certificate: [0x30, 1, b'C', 0x30, 1, b'B'].as_slice().into(),
            server_nonce: b"server nonce".to_vec(),
            client_nonce: b"client nonce".to_vec(),
        }
    }

    #[test]
    fn the_old_signatures_cover_a_leaf_and_a_nonce() {
        let (binding, policy) = (binding(), SecurityPolicy::Basic256Sha256);
        let bytes = |bytes: &[u8]| SignedData::from(bytes.to_vec());
        assert_eq!(binding.server_signature(policy), bytes(b"\x30\x01Cclient nonce"));
        assert_eq!(binding.client_signature(policy), bytes(b"\x30\x01Sserver nonce"));
        assert_eq!(binding.user_signature(policy), bytes(b"\x30\x01Sserver nonce"));
        let over_chain = binding.client_signature_over_chain(policy);
        assert_eq!(over_chain, Some(bytes(b"\x30\x01S\x30\x01Aserver nonce")));
        let alone = SessionBinding { server_certificate: [0x30, 1, 7].as_slice().into(), ..binding };
        assert_eq!(alone.client_signature_over_chain(policy), None);
    }

    #[test]
    fn the_new_signatures_are_bound_to_the_channel() {
        let (binding, policy) = (binding(), SecurityPolicy::ECC_nistP256_AesGcm);
        let bytes = |bytes: &[u8]| Part::Bytes(bytes.to_vec());
        let server = || Part::HashOf([0x30, 1, b'S'].as_slice().into());
        let client = || Part::HashOf([0x30, 1, b'C'].as_slice().into());
        let expected = vec![bytes(b"thumbclient nonce"), server(), client(), bytes(b"server nonce")];
        assert_eq!(binding.server_signature(policy), SignedData(expected));
        let (start, end) = (bytes(b"thumbserver nonce"), bytes(b"client nonce"));
        let expected = vec![start.clone(), server(), server(), client(), end.clone()];
        assert_eq!(binding.client_signature(policy), SignedData(expected));
        let expected = vec![start, server(), server(), client(), client(), end];
        assert_eq!(binding.user_signature(policy), SignedData(expected));
        assert_eq!(binding.server_signature_over_chain(policy), None);
    }
}
