//! Slow operations described as data: signatures, key agreement and certificate checks.
//!
//! A state machine hands out a [`Job`]; the driver calls [`Job::run`] wherever it likes and gives the result back.
//! A job owns everything it needs, so it can cross threads. The layout of asymmetrically secured chunks
//! (Part 6 §6.7.2.5.1) is done here once, over the primitives of [`Provider`].

use crate::{
    CertificatePurpose, CryptoError, EncryptedSecret, KeyAgreement, MessageSecurityMode, OpenSecret, PeerKey,
    Provider, Role, SealSecret, Secret, SecurityPolicy, SignedData, SymmetricKeys, session_signature,
};
use core::fmt;
use core::ops::Range;
use std::sync::Arc;

/// A slow operation that somebody has to run.
#[derive(Debug)]
pub enum Job {
    /// Check a received OpenSecureChannel chunk and decrypt it.
    OpenChunk(OpenChunk),
    /// Agree on keys, then sign and encrypt an OpenSecureChannel chunk to be sent.
    SealChunk(SealChunk),
    /// Sign `data` with our own key (serverSignature, clientSignature).
    Sign {
        /// Names the algorithm and our certificate.
        policy: SecurityPolicy,
        /// What is signed.
        data: SignedData,
    },
    /// Check a signature over `data` by the owner of a certificate.
    Verify {
        /// Names the algorithm.
        policy: SecurityPolicy,
        /// The signer's certificate.
        certificate: Arc<[u8]>,
        /// What may have been signed: one of these.
        data: Vec<SignedData>,
        /// The signature.
        signature: Vec<u8>,
    },
    /// Encrypt a short secret for the owner of a certificate.
    Encrypt {
        /// Names the algorithm.
        policy: SecurityPolicy,
        /// The receiver's certificate.
        certificate: Arc<[u8]>,
        /// The secret; shorter than a block after the provider's padding.
        data: Vec<u8>,
    },
    /// Decrypt a secret that was encrypted for us.
    Decrypt {
        /// Names the algorithm and our certificate.
        policy: SecurityPolicy,
        /// The encrypted secret.
        data: Vec<u8>,
    },
    /// Encrypt a user's password or token for a server (Part 4 §7.40.2).
    SealSecret(SealSecret),
    /// Decrypt a user's password or token that came to us.
    OpenSecret(OpenSecret),
    /// Decide whether a certificate is trusted.
    Validate {
        /// The certificate with its chain.
        certificate: Arc<[u8]>,
        /// What it shall be used for.
        purpose: CertificatePurpose,
    },
}

/// A received OpenSecureChannel chunk that has to be checked.
#[derive(Debug)]
pub struct OpenChunk {
    /// The policy named in its security header.
    pub policy: SecurityPolicy,
    /// The whole chunk.
    pub chunk: Vec<u8>,
    /// Where the security header ends.
    pub headers_len: usize,
    /// Where the SenderCertificate stands in the chunk.
    pub sender_certificate: Range<usize>,
    /// The ReceiverCertificateThumbprint.
    pub receiver_thumbprint: [u8; 20],
    /// What the sender wants to be. Its certificate is checked on every renewal (Part 4 §6.1.7).
    pub purpose: CertificatePurpose,
    /// What the signature covers besides the chunk (Part 6 §6.7.5): the request's signature, in a response.
    pub binding: Vec<u8>,
}

/// An OpenSecureChannel chunk that has to be secured.
#[derive(Debug)]
pub struct SealChunk {
    /// The channel's policy.
    pub policy: SecurityPolicy,
    /// The channel's mode.
    pub mode: MessageSecurityMode,
    /// Our end of the channel.
    pub role: Role,
    /// Headers, sequence header and body; no padding, no signature, and zeros where our nonce goes.
    pub chunk: Vec<u8>,
    /// Where the security header ends.
    pub headers_len: usize,
    /// Where our nonce goes; the gap has the policy's nonce length.
    pub nonce_at: usize,
    /// The certificate that the chunk is encrypted for.
    pub receiver_certificate: Arc<[u8]>,
    /// How our half of the key agreement goes on.
    pub agreement: Agreement,
    /// What the signature covers besides the chunk (Part 6 §6.7.5).
    pub binding: Vec<u8>,
}

/// Our half of the key agreement while a chunk is sealed.
pub enum Agreement {
    /// We ask: keep our half until the answer comes.
    Start,
    /// We answer: derive the keys at once.
    Answer {
        /// The other half.
        peer_nonce: Vec<u8>,
        /// What the keys are chained to (see [`SymmetricKeys::chain_secret`]).
        previous: Option<Vec<u8>>,
    },
}

impl fmt::Debug for Agreement {
    /// Nonces that were encrypted are half of the keys: they are not printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "Start",
            Self::Answer { .. } => "Answer",
        })
    }
}

/// What became of the key agreement.
#[derive(Debug)]
pub enum Agreed {
    /// Our half, to be completed by the answer.
    Half(Box<dyn KeyAgreement>),
    /// The keys.
    Keys(Box<dyn SymmetricKeys>),
}

/// The result of a [`Job`].
pub enum JobOutput {
    /// Of [`Job::OpenChunk`].
    Opened {
        /// The chunk, decrypted; its headers are untouched.
        chunk: Vec<u8>,
        /// Where the body ends.
        body_end: usize,
        /// The chunk's signature.
        signature: Vec<u8>,
    },
    /// Of [`Job::SealChunk`].
    Sealed {
        /// The chunk as it goes on the wire.
        chunk: Vec<u8>,
        /// The chunk's signature.
        signature: Vec<u8>,
        /// What became of the key agreement.
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
    /// What was decrypted is not printed.
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
    /// Does the work. Blocks for as long as it takes.
    ///
    /// # Errors
    /// What the provider refused, or failed at.
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

/// A cipher block longer than this needs the ExtraPaddingSize byte: the padding can pass 255 (Part 6 §6.7.2.5.1).
const CIPHER_BLOCK_WITHOUT_EXTRA: usize = 256;

/// Most blocks that are decrypted of one message. What belongs into it needs two to five; whoever sends more wants to
/// measure our key, or to keep it busy.
const CIPHER_BLOCKS_MAX: usize = 16;

fn open_chunk(job: OpenChunk, provider: &dyn Provider) -> Result<JobOutput, CryptoError> {
    let OpenChunk { policy, chunk, headers_len, sender_certificate, receiver_thumbprint, purpose, binding } =
        job;
    // Part 6 §6.7.7 fixes the order: is it for us, is the sender trusted, only then the expensive operations.
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
    // All of it is done before anything is decided: why a message is refused is not to be read off the clock.
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

/// Decrypts what stands behind the headers, and says whether it could be decrypted. If it could not, or if there is less
/// in it than a signature, something else of the usual length stands there, whose signature costs as much to check.
///
/// # Errors
/// What everybody can see who sees the message: it has no whole blocks, or too many.
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
    // What encryption adds to a block is a matter of the policy, whoever's key it is.
    let added = sender.cipher_block_len().saturating_sub(sender.plain_block_len());
    let signature_len = sender.signature_len();
    let usual_len = (blocks * cipher_block.saturating_sub(added)).max(signature_len);
    let mut plain = Vec::with_capacity(chunk.len() + signature_len);
    plain.extend_from_slice(headers);
    let mut decrypted = provider.decrypt(policy, secured, &mut plain).is_ok();
    decrypted &= plain.len() >= headers_len + signature_len;
    if !decrypted {
        plain.truncate(headers_len);
        // Not zeros: of a zero the library sees at once that it is no signature. And small enough for every modulus.
        plain.resize(headers_len + usual_len, 1);
    }
    Ok((plain, decrypted))
}

/// Where the padding at the end of `secured` starts; `None` if it is not padded as it must be.
/// Looks at every padding byte before it decides.
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

/// Appends the padding and says how long the whole chunk will be on the wire.
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
    fn what_was_decrypted_is_not_printed() {
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
