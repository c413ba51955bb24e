//! The provider without cryptography: policy None only.

use crate::{
    CertificatePurpose, CryptoError, EphemeralKey, KeyAgreement, MessageSecurityMode, PayloadKeys, PeerKey,
    Provider, Role, SecurityPolicy,
};
use std::sync::Arc;

/// Supports policy None and refuses everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NullProvider;

impl Provider for NullProvider {
    fn supports(&self, policy: SecurityPolicy) -> bool {
        policy == SecurityPolicy::None
    }

    fn own_certificate(&self, _: SecurityPolicy) -> Option<&[u8]> {
        None
    }

    fn thumbprint(&self, _: &[u8]) -> [u8; 20] {
        [0; 20]
    }

    fn application_uri(&self, _: &[u8]) -> Option<String> {
        None
    }

    fn validate(&self, _: &[u8], _: &CertificatePurpose) -> Result<(), CryptoError> {
        Err(CryptoError::PolicyUnsupported)
    }

    fn peer_key(&self, _: SecurityPolicy, _: &[u8]) -> Result<Box<dyn PeerKey>, CryptoError> {
        Err(CryptoError::PolicyUnsupported)
    }

    fn signature_len(&self, _: SecurityPolicy) -> Result<usize, CryptoError> {
        Err(CryptoError::NoOwnCertificate)
    }

    fn sign(&self, _: SecurityPolicy, _: &[&[u8]], _: &mut Vec<u8>) -> Result<(), CryptoError> {
        Err(CryptoError::NoOwnCertificate)
    }

    fn cipher_block_len(&self, _: SecurityPolicy) -> Result<usize, CryptoError> {
        Err(CryptoError::NoOwnCertificate)
    }

    fn decrypt(&self, _: SecurityPolicy, _: &[u8], _: &mut Vec<u8>) -> Result<(), CryptoError> {
        Err(CryptoError::NoOwnCertificate)
    }

    fn agree(
        &self,
        _: SecurityPolicy,
        _: MessageSecurityMode,
        _: Role,
    ) -> Result<Box<dyn KeyAgreement>, CryptoError> {
        Err(CryptoError::PolicyUnsupported)
    }

    fn digest(&self, _: SecurityPolicy, _: &[&[u8]]) -> Result<Vec<u8>, CryptoError> {
        Err(CryptoError::PolicyUnsupported)
    }

    fn random(&self, _: &mut [u8]) -> Result<(), CryptoError> {
        Err(CryptoError::PolicyUnsupported)
    }

    fn ephemeral_key(&self, _: SecurityPolicy) -> Result<Arc<dyn EphemeralKey>, CryptoError> {
        Err(CryptoError::PolicyUnsupported)
    }

    fn encrypt_payload(
        &self,
        _: SecurityPolicy,
        _: PayloadKeys<'_>,
        _: &[u8],
        _: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        Err(CryptoError::PolicyUnsupported)
    }

    fn decrypt_payload(
        &self,
        _: SecurityPolicy,
        _: PayloadKeys<'_>,
        _: &[u8],
        _: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        Err(CryptoError::PolicyUnsupported)
    }

    fn mac(&self, _: SecurityPolicy, _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<(), CryptoError> {
        Err(CryptoError::PolicyUnsupported)
    }
}
