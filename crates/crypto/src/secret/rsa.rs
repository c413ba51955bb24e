//! RsaEncryptedSecret (Part 4 §7.40.2.4): fresh symmetric keys, encrypted with the receiver's key.

use super::header::{Header, RSA_ENCRYPTED_SECRET};
use super::{EncryptedSecret, OpenSecret, SealSecret, Secret, header, payload};
use crate::{CryptoError, PayloadKeys, PolicyInfo, Provider};
use subtle::ConstantTimeEq;
use taktwerk_types::codec::encode_bytes;
use zeroize::Zeroizing;

/// SigningKey, EncryptingKey and InitializationVector.
struct Keys<'a> {
    signing_key: &'a [u8],
    encrypting_key: &'a [u8],
    iv: &'a [u8],
}

impl<'a> Keys<'a> {
    /// Splits bytes of exactly their total length.
    fn split(bytes: &'a [u8], info: &PolicyInfo) -> Option<Self> {
        let (signing_key, rest) = bytes.split_at_checked(info.signing_key_len)?;
        let (encrypting_key, iv) = rest.split_at_checked(info.encrypting_key_len)?;
        (iv.len() == info.iv_len).then_some(Self { signing_key, encrypting_key, iv })
    }

    /// Reads the three as ByteStrings; some stacks omit the lengths.
    fn parse(bytes: &'a [u8], info: &PolicyInfo) -> Option<Self> {
        if let Some(keys) = Self::split(bytes, info) {
            return Some(keys);
        }
        let mut decoder = header::decoder(bytes);
        let mut next = |len: usize| decoder.bytes().ok().flatten().filter(|key| key.len() == len);
        let keys = Self {
            signing_key: next(info.signing_key_len)?,
            encrypting_key: next(info.encrypting_key_len)?,
            iv: next(info.iv_len)?,
        };
        (decoder.remaining() == 0).then_some(keys)
    }

    const fn payload(&self) -> PayloadKeys<'a> {
        PayloadKeys { encrypting_key: self.encrypting_key, iv: self.iv }
    }
}

fn keys_len(info: &PolicyInfo) -> usize {
    info.signing_key_len + info.encrypting_key_len + info.iv_len
}

pub(super) fn seal(job: &SealSecret, provider: &dyn Provider) -> Result<EncryptedSecret, CryptoError> {
    let info = job.policy.info();
    let mut random = Zeroizing::new(vec![0; keys_len(info)]);
    provider.random(&mut random)?;
    let keys = Keys::split(&random, info).ok_or(CryptoError::Internal)?;
    let mut key_data = Zeroizing::new(Vec::with_capacity(random.len() + 12));
    for key in [keys.signing_key, keys.encrypting_key, keys.iv] {
        encode_bytes(Some(key), &mut key_data);
    }
    let receiver = provider.peer_key(job.policy, &job.receiver_certificate)?;
    let mut sealed_keys = Vec::new();
    receiver.encrypt(&key_data, &mut sealed_keys)?;
    let mut payload = payload::write(info, &job.server_nonce, job.secret.expose());
    let thumbprint = provider.thumbprint(&job.receiver_certificate);
    let mut bytes = Header::write(
        RSA_ENCRYPTED_SECRET,
        job.policy,
        Some(&thumbprint),
        job.signing_time,
        &sealed_keys,
        payload.len() + info.signature_len,
    )?;
    provider.encrypt_payload(job.policy, keys.payload(), &bytes, &mut payload)?;
    bytes.extend_from_slice(&payload);
    let mut signature = Vec::with_capacity(info.signature_len);
    provider.mac(job.policy, keys.signing_key, &bytes, &mut signature)?;
    bytes.extend_from_slice(&signature);
    Ok(EncryptedSecret { algorithm: info.asymmetric_encryption.uri(), bytes })
}

pub(super) fn open(job: &OpenSecret, provider: &dyn Provider) -> Result<Secret, CryptoError> {
    let info = job.policy.info();
    // Everything up to here is readable by anyone, so refusing early reveals nothing.
    let header =
        Header::parse(&job.data, RSA_ENCRYPTED_SECRET, job.policy).map_err(|_| CryptoError::Decryption)?;
    let own = provider.own_certificate(job.policy).ok_or(CryptoError::NoOwnCertificate)?;
    let signature_at = job.data.len().checked_sub(info.signature_len).ok_or(CryptoError::Decryption)?;
    let block = provider.cipher_block_len(job.policy)?;
    if *header.certificate != provider.thumbprint(own)
        || !header.is_timely(job.now)
        || header.key_data.len() != block
        || signature_at < header.payload_at
        || signature_at - header.payload_at > job.secret_len_max + job.server_nonce.len() + 64
    {
        return Err(CryptoError::Decryption);
    }
    // From here on, a failure takes the same path as a success, with random keys.
    let mut random = Zeroizing::new(vec![0; keys_len(info)]);
    provider.random(&mut random)?;
    let fallback = Keys::split(&random, info).ok_or(CryptoError::Internal)?;
    let mut key_data = Zeroizing::new(Vec::with_capacity(block));
    let decrypted = provider.decrypt(job.policy, header.key_data, &mut key_data).is_ok();
    let parsed = Keys::parse(&key_data, info).filter(|_| decrypted);
    let right_keys = u8::from(parsed.is_some()).ct_eq(&1);
    let keys = parsed.unwrap_or(fallback);
    let (signed, signature) = job.data.split_at_checked(signature_at).ok_or(CryptoError::Decryption)?;
    let mut expected = Vec::with_capacity(info.signature_len);
    provider.mac(job.policy, keys.signing_key, signed, &mut expected)?;
    let right = right_keys & expected.ct_eq(signature);
    if !bool::from(right) {
        return Err(CryptoError::Decryption);
    }
    let (headers, sealed) = signed.split_at_checked(header.payload_at).ok_or(CryptoError::Decryption)?;
    let mut plain = Zeroizing::new(sealed.to_vec());
    provider.decrypt_payload(job.policy, keys.payload(), headers, &mut plain)?;
    payload::read(&plain, &job.server_nonce, job.secret_len_max).ok_or(CryptoError::Decryption)
}
