//! The payloads of encrypted secrets (Part 4 §7.40.2.3, Part 6 §6.8.3).

use super::chunk::{Aead, cbc_decrypt, cbc_encrypt};
use crate::{ChunkNonce, CryptoError, PayloadKeys, PolicyInfo};

/// Each key encrypts one payload, so the initialization vector needs no nonce.
const NONCE: ChunkNonce = ChunkNonce { token_id: 0, last_sequence_number: 0 };

pub(super) fn encrypt(
    info: &PolicyInfo,
    keys: PayloadKeys<'_>,
    headers: &[u8],
    payload: &mut Vec<u8>,
) -> Result<(), CryptoError> {
    if !info.is_aead() {
        return cbc_encrypt(keys.encrypting_key, keys.iv, payload);
    }
    let len = payload.len();
    payload.resize(len + info.signature_len, 0);
    let (in_out, tag) = payload.split_at_mut_checked(len).ok_or(CryptoError::Internal)?;
    Aead::keyed(info, keys.encrypting_key, keys.iv)?.seal(NONCE, headers, in_out, tag)
}

pub(super) fn decrypt(
    info: &PolicyInfo,
    keys: PayloadKeys<'_>,
    headers: &[u8],
    payload: &mut Vec<u8>,
) -> Result<(), CryptoError> {
    if !info.is_aead() {
        return cbc_decrypt(keys.encrypting_key, keys.iv, payload);
    }
    let len = payload.len().checked_sub(info.signature_len).ok_or(CryptoError::Decryption)?;
    let (in_out, tag) = payload.split_at_mut_checked(len).ok_or(CryptoError::Decryption)?;
    let aead = Aead::keyed(info, keys.encrypting_key, keys.iv)?;
    aead.open(NONCE, headers, in_out, tag).map_err(|_| CryptoError::Decryption)?;
    payload.truncate(len);
    Ok(())
}
