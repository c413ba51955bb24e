//! The format of Part 4 §7.40.2.2: length, secret and ServerNonce, encrypted block by block with RSA.

use super::{EncryptedSecret, OpenSecret, SealSecret, Secret};
use crate::{CryptoError, Provider};
use subtle::{ConditionallySelectable, ConstantTimeEq, ConstantTimeLess};
use zeroize::Zeroizing;

/// The UInt32 before secret and nonce.
const LENGTH_LEN: usize = 4;

pub(super) fn seal(job: &SealSecret, provider: &dyn Provider) -> Result<EncryptedSecret, CryptoError> {
    let (secret, nonce) = (job.secret.expose(), job.server_nonce.as_slice());
    let len = u32::try_from(secret.len() + nonce.len()).map_err(|_| CryptoError::Malformed)?;
    let mut plain = Zeroizing::new(Vec::with_capacity(LENGTH_LEN + secret.len() + nonce.len()));
    plain.extend_from_slice(&len.to_le_bytes());
    plain.extend_from_slice(secret);
    plain.extend_from_slice(nonce);
    let mut bytes = Vec::new();
    provider.peer_key(job.policy, &job.receiver_certificate)?.encrypt(&plain, &mut bytes)?;
    Ok(EncryptedSecret { algorithm: job.policy.info().asymmetric_encryption.uri(), bytes })
}

pub(super) fn open(job: &OpenSecret, provider: &dyn Provider) -> Result<Secret, CryptoError> {
    let block = provider.cipher_block_len(job.policy)?;
    let plain_max = LENGTH_LEN + job.secret_len_max + job.server_nonce.len();
    // For every allowed key, the encryption overhead is less than half a block.
    let blocks_max = (plain_max * 2).div_ceil(block.max(1));
    if block == 0
        || job.data.is_empty()
        || !job.data.len().is_multiple_of(block)
        || job.data.len() / block > blocks_max
    {
        return Err(CryptoError::Decryption);
    }
    let mut plain = Zeroizing::new(Vec::with_capacity(job.data.len()));
    let decrypted = provider.decrypt(job.policy, &job.data, &mut plain).is_ok();
    if !decrypted {
        // Run the same comparisons on zeros, so that the time does not reveal the reason of a refusal.
        plain.clear();
        plain.resize(plain_max, 0);
    }
    let nonce_len = job.server_nonce.len();
    let mut right = u8::from(decrypted).ct_eq(&1);
    let (length, content) = plain.split_at_checked(LENGTH_LEN).unwrap_or_default();
    let claimed = length.first_chunk::<LENGTH_LEN>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let number = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
    right &= !claimed.ct_lt(&number(nonce_len)) & !number(content.len()).ct_lt(&claimed);
    right &= !number(plain_max - LENGTH_LEN).ct_lt(&claimed);
    // For an impossible length, check all bytes instead.
    let len =
        usize::try_from(claimed).unwrap_or(usize::MAX).clamp(nonce_len.min(content.len()), content.len());
    let (content, padding) = content.split_at_checked(len).unwrap_or_default();
    // A client should not pad; if it does, then with zeros (§7.40.2.2).
    right &= padding.iter().fold(0, |wrong, byte| wrong | byte).ct_eq(&0);
    let nonce_at = len.saturating_sub(nonce_len);
    right &= content.get(nonce_at..).unwrap_or_default().ct_eq(&job.server_nonce);
    let mut accepted = 0u8;
    accepted.conditional_assign(&1, right);
    if accepted != 1 {
        return Err(CryptoError::Decryption);
    }
    Ok(Secret::new(content.get(..nonce_at).unwrap_or_default().to_vec()))
}
