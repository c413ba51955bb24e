//! EccEncryptedSecret (Part 4 §7.40.2.5, Part 6 §6.8.3): keys agreed with ephemeral keys, signed by the sender.
//! Policies with finite-field Diffie-Hellman use it, too.

use super::header::{ECC_ENCRYPTED_SECRET, Header};
use super::{EncryptedSecret, OpenSecret, SealSecret, Secret, header, payload};
use crate::{CertificatePurpose, CryptoError, EphemeralKey, PayloadKeys, PolicyInfo, Provider, der};
use subtle::ConstantTimeEq;
use taktwerk_types::codec::encode_bytes;
use zeroize::Zeroizing;

/// Derives key and initialization vector. The salt contains the length and both public keys (Part 6 §6.8.3).
fn derive(
    info: &PolicyInfo,
    own: &dyn EphemeralKey,
    peer_public_key: &[u8],
    sender: &[u8],
    receiver: &[u8],
) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
    let len = info.encrypting_key_len + info.iv_len;
    let len_field = u16::try_from(len).map_err(|_| CryptoError::Internal)?.to_le_bytes();
    let salt = [&len_field, b"opcua-secret".as_slice(), sender, receiver].concat();
    let keys = own.derive(peer_public_key, &salt, len)?;
    if keys.len() == len { Ok(keys) } else { Err(CryptoError::Internal) }
}

fn payload_keys<'a>(info: &PolicyInfo, keys: &'a [u8]) -> PayloadKeys<'a> {
    let (encrypting_key, iv) = keys.split_at_checked(info.encrypting_key_len).unwrap_or_default();
    PayloadKeys { encrypting_key, iv }
}

pub(super) fn seal(job: &SealSecret, provider: &dyn Provider) -> Result<EncryptedSecret, CryptoError> {
    let info = job.policy.info();
    let receiver_key = job.receiver_key.as_deref().ok_or(CryptoError::KeyAgreement)?;
    let own = provider.ephemeral_key(job.policy)?;
    let keys = derive(info, own.as_ref(), receiver_key, own.public_key(), receiver_key)?;
    let mut key_data = Vec::new();
    encode_bytes(Some(own.public_key()), &mut key_data);
    encode_bytes(Some(receiver_key), &mut key_data);
    let mut payload = payload::write(info, &job.server_nonce, job.secret.expose());
    let tag_len = if info.is_aead() { info.signature_len } else { 0 };
    let signature_len = provider.signature_len(job.policy)?;
    let mut bytes = Header::write(
        ECC_ENCRYPTED_SECRET,
        job.policy,
        provider.own_certificate(job.policy),
        job.signing_time,
        &key_data,
        payload.len() + tag_len + signature_len,
    )?;
    provider.encrypt_payload(job.policy, payload_keys(info, &keys), &bytes, &mut payload)?;
    bytes.extend_from_slice(&payload);
    let mut signature = Vec::with_capacity(signature_len);
    provider.sign(job.policy, &[&bytes], &mut signature)?;
    bytes.extend_from_slice(&signature);
    Ok(EncryptedSecret { algorithm: "", bytes })
}

pub(super) fn open(job: &OpenSecret, provider: &dyn Provider) -> Result<Secret, CryptoError> {
    // A single error for everything that depends on the received data.
    try_open(job, provider).map_err(|error| match error {
        CryptoError::NoOwnCertificate | CryptoError::PolicyUnsupported => error,
        _ => CryptoError::Decryption,
    })
}

fn try_open(job: &OpenSecret, provider: &dyn Provider) -> Result<Secret, CryptoError> {
    let info = job.policy.info();
    let key = job.key.as_ref().ok_or(CryptoError::Decryption)?;
    let header =
        Header::parse(&job.data, ECC_ENCRYPTED_SECRET, job.policy).map_err(|_| CryptoError::Decryption)?;
    let mut decoder = header::decoder(header.key_data);
    let mut public_key = || decoder.bytes().ok().flatten().filter(|key| key.len() == info.nonce_len);
    let (sender_key, receiver_key) = (public_key(), public_key());
    let (sender_key, receiver_key) = sender_key.zip(receiver_key).ok_or(CryptoError::Decryption)?;
    if decoder.remaining() != 0
        || !bool::from(receiver_key.ct_eq(key.public_key()))
        || !header.is_timely(job.now)
    {
        return Err(CryptoError::Decryption);
    }
    // Verify the signature first, so that only the client's data is processed with the key.
    let sender = sender_certificate(job, header.certificate, provider)?;
    let sender = provider.peer_key(job.policy, sender)?;
    let signature_at = job.data.len().checked_sub(sender.signature_len()).ok_or(CryptoError::Decryption)?;
    if signature_at < header.payload_at {
        return Err(CryptoError::Decryption);
    }
    let (signed, signature) = job.data.split_at_checked(signature_at).ok_or(CryptoError::Decryption)?;
    sender.verify(&[signed], signature)?;
    let keys = derive(info, key.as_ref(), sender_key, sender_key, receiver_key)?;
    let (headers, sealed) = signed.split_at_checked(header.payload_at).ok_or(CryptoError::Decryption)?;
    let mut plain = Zeroizing::new(sealed.to_vec());
    provider.decrypt_payload(job.policy, payload_keys(info, &keys), headers, &mut plain)?;
    payload::read(&plain, &job.server_nonce, job.secret_len_max).ok_or(CryptoError::Decryption)
}

/// The certificate to verify the signature with: the one of the channel's client. Another certificate is accepted only
/// if it has the same ApplicationUri and is trusted, because an application has one per kind of key.
fn sender_certificate<'a>(
    job: &'a OpenSecret,
    sent: &'a [u8],
    provider: &dyn Provider,
) -> Result<&'a [u8], CryptoError> {
    let known = job.sender_certificate.as_deref();
    if sent.is_empty() {
        return known.ok_or(CryptoError::Decryption);
    }
    if known.is_none_or(|known| der::leaf(known) != der::leaf(sent)) {
        if let Some(known) = known {
            let application = provider.application_uri(known);
            if application.is_none() || provider.application_uri(sent) != application {
                return Err(CryptoError::Decryption);
            }
        }
        provider.validate(sent, &CertificatePurpose::Client { address: None })?;
    }
    Ok(sent)
}
