//! Slow operations as data: signatures, key agreement and certificate checks.
//!
//! A state machine creates a [`Job`]; the driver calls [`Job::run`] on any thread and returns the result. A job owns
//! everything it needs. This module also implements the layout of asymmetrically secured chunks (Part 6 §6.7.2.5.1), on
//! the primitives of [`Provider`].

use crate::{
    CertificatePurpose, CryptoError, EncryptedSecret, KeyAgreement, MessageSecurityMode, OpenSecret, PeerKey,
    Provider, Role, SealSecret, Secret, SecurityPolicy, SignedData, SymmetricKeys, session_signature,
};
use core::fmt;
use core::ops::Range;
use std::sync::Arc;

/// A slow operation for the driver to run.
#[derive(Debug)]
pub enum Job {
    /// Verify and decrypt a received OpenSecureChannel chunk.
    OpenChunk(OpenChunk),
    /// Agree on keys, then sign and encrypt an outgoing OpenSecureChannel chunk.
    SealChunk(SealChunk),
    /// Sign `data` with our own key (serverSignature, clientSignature).
    Sign {
        /// Determines the algorithm and our certificate.
        policy: SecurityPolicy,
        /// The data to sign.
        data: SignedData,
    },
    /// Verify a signature by the owner of a certificate.
    Verify {
        /// Determines the algorithm.
        policy: SecurityPolicy,
        /// The signer's certificate.
        certificate: Arc<[u8]>,
        /// The alternatives for the signed data; one must match.
        data: Vec<SignedData>,
        /// The signature.
        signature: Vec<u8>,
    },
    /// Encrypt a short secret for the owner of a certificate.
    Encrypt {
        /// Determines the algorithm.
        policy: SecurityPolicy,
        /// The receiver's certificate.
        certificate: Arc<[u8]>,
        /// The secret; shorter than a block minus the padding.
        data: Vec<u8>,
    },
    /// Decrypt a secret that was encrypted for us.
    Decrypt {
        /// Determines the algorithm and our certificate.
        policy: SecurityPolicy,
        /// The encrypted secret.
        data: Vec<u8>,
    },
    /// Encrypt a user's password or token for a server (Part 4 §7.40.2).
    SealSecret(SealSecret),
    /// Decrypt a user's password or token that we received.
    OpenSecret(OpenSecret),
    /// Decide whether a certificate is trusted.
    Validate {
        /// The certificate with its chain.
        certificate: Arc<[u8]>,
        /// The intended use.
        purpose: CertificatePurpose,
    },
}

/// A received OpenSecureChannel chunk to verify.
#[derive(Debug)]
pub struct OpenChunk {
    /// The policy in its security header.
    pub policy: SecurityPolicy,
    /// The whole chunk.
    pub chunk: Vec<u8>,
    /// End of the security header.
    pub headers_len: usize,
    /// Range of the SenderCertificate in the chunk.
    pub sender_certificate: Range<usize>,
    /// The ReceiverCertificateThumbprint.
    pub receiver_thumbprint: [u8; 20],
    /// The sender's role. Its certificate is validated on every renewal (Part 4 §6.1.7).
    pub purpose: CertificatePurpose,
    /// Data that the signature covers besides the chunk (Part 6 §6.7.5): in a response, the request's signature.
    pub binding: Vec<u8>,
}

/// An OpenSecureChannel chunk to secure.
#[derive(Debug)]
pub struct SealChunk {
    /// The channel's policy.
    pub policy: SecurityPolicy,
    /// The channel's mode.
    pub mode: MessageSecurityMode,
    /// Our role.
    pub role: Role,
    /// Headers, sequence header and body; without padding and signature, and zeros in place of our nonce.
    pub chunk: Vec<u8>,
    /// End of the security header.
    pub headers_len: usize,
    /// Offset of our nonce; the zeros have the policy's nonce length.
    pub nonce_at: usize,
    /// The certificate to encrypt the chunk for.
    pub receiver_certificate: Arc<[u8]>,
    /// Our half of the key agreement.
    pub agreement: Agreement,
    /// Data that the signature covers besides the chunk (Part 6 §6.7.5).
    pub binding: Vec<u8>,
}

/// Our half of the key agreement while a chunk is sealed.
pub enum Agreement {
    /// We send the request: keep our half until the response arrives.
    Start,
    /// We send the response: derive the keys at once.
    Answer {
        /// The peer's half.
        peer_nonce: Vec<u8>,
        /// The secret that the keys are chained to (see [`SymmetricKeys::chain_secret`]).
        previous: Option<Vec<u8>>,
    },
}

impl fmt::Debug for Agreement {
    /// Nonces that were sent encrypted are key material, so they are not printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "Start",
            Self::Answer { .. } => "Answer",
        })
    }
}

/// The result of the key agreement.
#[derive(Debug)]
pub enum Agreed {
    /// Our half, to be completed with the response.
    Half(Box<dyn KeyAgreement>),
    /// The keys.
    Keys(Box<dyn SymmetricKeys>),
}

/// The result of a [`Job`].
pub enum JobOutput {
    /// Of [`Job::OpenChunk`].
    Opened {
        /// The decrypted chunk with unchanged headers.
        chunk: Vec<u8>,
        /// End of the body.
        body_end: usize,
        /// The chunk's signature.
        signature: Vec<u8>,
    },
    /// Of [`Job::SealChunk`].
    Sealed {
        /// The chunk to send.
        chunk: Vec<u8>,
        /// The chunk's signature.
        signature: Vec<u8>,
        /// The result of the key agreement.
        agreed: Agreed,
    },
    /// Of [`Job::Sign`], [`Job::Encrypt`] and [`Job::Decrypt`].
    Bytes(Vec<u8>),
    /// Of [`Job::SealSecret`].
    SealedSecret(EncryptedSecret),
    /// Of [`Job::OpenSecret`].
    Secret(Secret),
    /// Of [`Job::Verify`] and [`Job::Validate`].
    Accepted,
}

impl fmt::Debug for JobOutput {
    /// Decrypted data is not printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opened { .. } => "Opened",
            Self::Sealed { .. } => "Sealed",
            Self::Bytes(_) => "Bytes",
            Self::SealedSecret(_) => "SealedSecret",
            Self::Secret(_) => "Secret",
            Self::Accepted => "Accepted",
        })
    }
}

impl Job {
    /// Runs the job. Blocks as long as necessary.
    ///
    /// # Errors
    /// The provider refused the operation or failed.
    pub fn run(self, provider: &dyn Provider) -> Result<JobOutput, CryptoError> {
        match self {
            Self::OpenChunk(job) => open_chunk(job, provider),
            Self::SealChunk(job) => seal_chunk(job, provider),
            Self::Sign { policy, data } => {
                let mut out = Vec::new();
                provider.sign(policy, &[&data.bytes(policy, provider)?], &mut out)?;
                Ok(JobOutput::Bytes(out))
            }
            Self::Verify { policy, certificate, data, signature } => {
                let key = provider.peer_key(policy, &certificate)?;
                session_signature::verify_any(key.as_ref(), policy, &data, &signature, provider)?;
                Ok(JobOutput::Accepted)
            }
            Self::Encrypt { policy, certificate, data } => {
                let mut out = Vec::new();
                provider.peer_key(policy, &certificate)?.encrypt(&data, &mut out)?;
                Ok(JobOutput::Bytes(out))
            }
            Self::Decrypt { policy, data } => {
                let mut out = Vec::new();
                provider.decrypt(policy, &data, &mut out)?;
                Ok(JobOutput::Bytes(out))
            }
            Self::SealSecret(job) => Ok(JobOutput::SealedSecret(job.run(provider)?)),
            Self::OpenSecret(job) => Ok(JobOutput::Secret(job.run(provider)?)),
            Self::Validate { certificate, purpose } => {
                provider.validate(&certificate, &purpose)?;
                Ok(JobOutput::Accepted)
            }
        }
    }
}

/// Cipher blocks longer than this need the ExtraPaddingSize byte, because the padding can exceed 255 (Part 6
/// §6.7.2.5.1).
const CIPHER_BLOCK_WITHOUT_EXTRA: usize = 256;

/// Maximum number of blocks decrypted per message. Valid messages need two to five; more would let an attacker time our
/// key or keep it busy.
const CIPHER_BLOCKS_MAX: usize = 16;

fn open_chunk(job: OpenChunk, provider: &dyn Provider) -> Result<JobOutput, CryptoError> {
    let OpenChunk { policy, chunk, headers_len, sender_certificate, receiver_thumbprint, purpose, binding } =
        job;
    // Part 6 §6.7.7 fixes the order: check the receiver, then the sender's trust, and only then run expensive
    // operations.
    let own = provider.own_certificate(policy).ok_or(CryptoError::NoOwnCertificate)?;
    if provider.thumbprint(own) != receiver_thumbprint {
        return Err(CryptoError::ThumbprintMismatch);
    }
    let certificate = chunk.get(sender_certificate).ok_or(CryptoError::Malformed)?;
    provider.validate(certificate, &purpose)?;
    let sender = provider.peer_key(policy, certificate)?;
    let cipher_block = provider.cipher_block_len(policy)?;
    let extra = cipher_block > CIPHER_BLOCK_WITHOUT_EXTRA;
    let (chunk, decrypted) = match cipher_block {
        0 => (chunk, true),
        _ => decrypt_chunk(policy, &chunk, headers_len, cipher_block, sender.as_ref(), provider)?,
    };
    let signed_len = chunk.len().checked_sub(sender.signature_len()).ok_or(CryptoError::Malformed)?;
    let (signed, signature) = chunk.split_at_checked(signed_len).ok_or(CryptoError::Malformed)?;
    let secured = signed.get(headers_len..).ok_or(CryptoError::Malformed)?;
    // Do all the work before deciding, so that timing does not reveal why a message is refused.
    let verified = sender.verify(&[signed, &binding], signature);
    let body_len = if cipher_block > 0 { padding_start(secured, extra) } else { Some(secured.len()) };
    if !decrypted {
        return Err(CryptoError::Decryption);
    }
    verified?;
    let body_end = body_len.ok_or(CryptoError::Decryption)? + headers_len;
    let signature = signature.to_vec();
    Ok(JobOutput::Opened { chunk, body_end, signature })
}

/// Decrypts the bytes after the headers and returns whether that succeeded. If it failed, or the result is shorter than
/// a signature, substitutes bytes of the usual length, whose signature takes the same work to verify.
///
/// # Errors
/// Only faults visible without the key: the message has no whole blocks, or too many.
fn decrypt_chunk(
    policy: SecurityPolicy,
    chunk: &[u8],
    headers_len: usize,
    cipher_block: usize,
    sender: &dyn PeerKey,
    provider: &dyn Provider,
) -> Result<(Vec<u8>, bool), CryptoError> {
    let (headers, secured) = chunk.split_at_checked(headers_len).ok_or(CryptoError::Malformed)?;
    let blocks = secured.len() / cipher_block;
    if !(1..=CIPHER_BLOCKS_MAX).contains(&blocks) || !secured.len().is_multiple_of(cipher_block) {
        return Err(CryptoError::Decryption);
    }
    // The encryption overhead per block depends only on the policy.
    let added = sender.cipher_block_len().saturating_sub(sender.plain_block_len());
    let signature_len = sender.signature_len();
    let usual_len = (blocks * cipher_block.saturating_sub(added)).max(signature_len);
    let mut plain = Vec::with_capacity(chunk.len() + signature_len);
    plain.extend_from_slice(headers);
    let mut decrypted = provider.decrypt(policy, secured, &mut plain).is_ok();
    decrypted &= plain.len() >= headers_len + signature_len;
    if !decrypted {
        plain.truncate(headers_len);
        // Not zeros, which the library refuses at once as a signature. The value is below every modulus.
        plain.resize(headers_len + usual_len, 1);
    }
    Ok((plain, decrypted))
}

/// Start of the padding at the end of `secured`; `None` if the padding is invalid. Checks every padding byte before it
/// decides.
#[must_use]
pub fn padding_start(secured: &[u8], extra: bool) -> Option<usize> {
    let (&last, rest) = secured.split_last()?;
    let (len, rest) = if extra {
        let (&low, rest) = rest.split_last()?;
        // The byte before ExtraPaddingSize is padding (or PaddingSize itself) and so repeats the low byte.
        (usize::from(low) | usize::from(last) << 8, rest)
    } else {
        (usize::from(last), rest)
    };
    let start = rest.len().checked_sub(len)?;
    let low = (len & 0xff) as u8;
    let wrong = rest[start..].iter().fold(0, |wrong, byte| wrong | (byte ^ low));
    (wrong == 0).then_some(start)
}

fn seal_chunk(job: SealChunk, provider: &dyn Provider) -> Result<JobOutput, CryptoError> {
    let SealChunk {
        policy,
        mode,
        role,
        mut chunk,
        headers_len,
        nonce_at,
        receiver_certificate,
        agreement,
        binding,
    } = job;
    let half = provider.agree(policy, mode, role)?;
    let nonce = half.nonce();
    let gap = chunk.get_mut(nonce_at..nonce_at + nonce.len()).ok_or(CryptoError::Malformed)?;
    gap.copy_from_slice(nonce);
    let agreed = match agreement {
        Agreement::Start => Agreed::Half(half),
        Agreement::Answer { peer_nonce, previous } => {
            Agreed::Keys(half.derive(&peer_nonce, previous.as_deref())?)
        }
    };
    let receiver = provider.peer_key(policy, &receiver_certificate)?;
    let signature_len = provider.signature_len(policy)?;
    let total = pad(&mut chunk, headers_len, receiver.as_ref(), signature_len)?;
    let size = u32::try_from(total).map_err(|_| CryptoError::Malformed)?;
    chunk.get_mut(4..8).ok_or(CryptoError::Malformed)?.copy_from_slice(&size.to_le_bytes());
    let mut signature = Vec::with_capacity(signature_len);
    provider.sign(policy, &[&chunk, &binding], &mut signature)?;
    chunk.extend_from_slice(&signature);
    if receiver.plain_block_len() > 0 {
        let mut sealed = Vec::with_capacity(total);
        sealed.extend_from_slice(chunk.get(..headers_len).ok_or(CryptoError::Malformed)?);
        receiver.encrypt(&chunk[headers_len..], &mut sealed)?;
        chunk = sealed;
    }
    debug_assert_eq!(chunk.len(), total);
    Ok(JobOutput::Sealed { chunk, signature, agreed })
}

/// Appends the padding and returns the final length of the chunk.
fn pad(
    chunk: &mut Vec<u8>,
    headers_len: usize,
    receiver: &dyn PeerKey,
    signature_len: usize,
) -> Result<usize, CryptoError> {
    let plain_block = receiver.plain_block_len();
    if plain_block == 0 {
        return Ok(chunk.len() + signature_len);
    }
    let extra = receiver.cipher_block_len() > CIPHER_BLOCK_WITHOUT_EXTRA;
    let sized = 1 + usize::from(extra);
    let unpadded =
        chunk.len().checked_sub(headers_len).ok_or(CryptoError::Malformed)? + sized + signature_len;
    let blocks = unpadded.div_ceil(plain_block);
    let padding = blocks * plain_block - unpadded;
    let [low, high, ..] = padding.to_le_bytes();
    chunk.resize(chunk.len() + 1 + padding, low);
    if extra {
        chunk.push(high);
    }
    Ok(headers_len + blocks * receiver.cipher_block_len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decrypted_data_is_not_printed() {
        let secret = || vec![171; 9];
        let outputs = [
            JobOutput::Opened { chunk: secret(), body_end: 7, signature: secret() },
            JobOutput::Bytes(secret()),
            JobOutput::Secret(Secret::new(secret())),
        ];
        let agreement = Agreement::Answer { peer_nonce: secret(), previous: Some(secret()) };
        let printed = format!("{outputs:?} {agreement:?}");
        assert!(printed.contains("Opened") && printed.contains("Answer"), "{printed}");
        assert!(!printed.contains("171"), "{printed}");
    }

    #[test]
    fn padding_is_found_and_checked() {
        assert_eq!(padding_start(&[9, 9, 2, 2, 2], false), Some(2));
        assert_eq!(padding_start(&[9, 9, 0], false), Some(2));
        assert_eq!(padding_start(&[9, 9, 2, 1, 2], false), None);
        assert_eq!(padding_start(&[2, 2], false), None);
        assert_eq!(padding_start(&[], false), None);
        assert_eq!(padding_start(&[9, 9, 2, 2, 2, 0], true), Some(2));
        assert_eq!(padding_start(&[9, 9, 0, 0], true), Some(2));
        let mut long = vec![9; 10];
        long.extend_from_slice(&[0x2c; 0x12c + 1]);
        long.push(1);
        assert_eq!(padding_start(&long, true), Some(10));
    }
}
