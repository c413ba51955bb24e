//! The payload of RsaEncryptedSecret and EccEncryptedSecret: nonce, secret and padding (Part 4 §7.40.2.3, Part 6 §6.8.3).

use super::header;
use crate::{PolicyInfo, Secret};
use subtle::ConstantTimeEq;
use taktwerk_types::codec::encode_bytes;
use zeroize::Zeroizing;

/// PayloadPaddingSize, a UInt16.
const SIZE_LEN: usize = 2;

/// The padding unit of the payload in bytes. Authenticated ciphers need none, but padding hides the secret's length.
fn block_len(info: &PolicyInfo) -> usize {
    if info.is_aead() { 16 } else { info.iv_len.max(1) }
}

/// Nonce, secret and padding, ready for encryption. The vector has capacity for an authentication tag.
pub(super) fn write(info: &PolicyInfo, nonce: &[u8], secret: &[u8]) -> Zeroizing<Vec<u8>> {
    let block = block_len(info);
    let unpadded = 4 + nonce.len() + 4 + secret.len() + SIZE_LEN;
    let mut padding = unpadded.next_multiple_of(block) - unpadded;
    if padding + secret.len() < block {
        padding += block;
    }
    let mut out = Zeroizing::new(Vec::with_capacity(unpadded + padding + info.signature_len));
    encode_bytes(Some(nonce), &mut out);
    encode_bytes(Some(secret), &mut out);
    let [low, high, ..] = padding.to_le_bytes();
    let padded_len = out.len() + padding;
    out.resize(padded_len, low);
    out.extend_from_slice(&[low, high]);
    out
}

/// The secret of a decrypted payload, if nonce and padding are valid. Only for bytes with a verified signature: so the
/// padding is no oracle, but the nonce is still compared in constant time.
pub(super) fn read(payload: &[u8], nonce: &[u8], secret_len_max: usize) -> Option<Secret> {
    let (rest, size) = payload.split_last_chunk::<SIZE_LEN>()?;
    let padding = usize::from(u16::from_le_bytes(*size));
    let (body, padding) = rest.split_at_checked(rest.len().checked_sub(padding)?)?;
    let padded = padding.iter().fold(0, |wrong, byte| wrong | (byte ^ size[0])) == 0;
    let mut decoder = header::decoder(body);
    let found = decoder.bytes().ok()?.unwrap_or_default();
    let secret = decoder.bytes().ok()?.unwrap_or_default();
    let right = found.ct_eq(nonce);
    let fits = padded && decoder.remaining() == 0 && secret.len() <= secret_len_max;
    (bool::from(right) && fits).then(|| Secret::new(secret.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SecurityPolicy;

    #[test]
    fn payloads_are_whole_blocks_and_hide_short_secrets() {
        for policy in [SecurityPolicy::Basic256Sha256, SecurityPolicy::ECC_nistP256_AesGcm] {
            let mut lengths = Vec::new();
            for len in 0..100 {
                let secret = vec![7; len];
                let payload = write(policy.info(), &[1; 32], &secret);
                assert!(payload.len().is_multiple_of(16));
                lengths.push(payload.len());
                assert_eq!(read(&payload, &[1; 32], 99).unwrap().expose(), secret);
                assert_eq!(read(&payload, &[2; 32], 99), None);
                assert_eq!(read(&payload, &[1; 31], 99), None);
                assert!(len == 0 || read(&payload, &[1; 32], len - 1).is_none());
                for cut in 0..payload.len() {
                    assert_eq!(read(&payload[..cut], &[1; 32], 99), None, "{len} {cut}");
                }
            }
            assert_eq!(lengths[0], lengths[12]);
        }
    }
}
