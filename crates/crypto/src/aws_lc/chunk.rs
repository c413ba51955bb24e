//! Sealing and opening chunks in place, with contexts that are keyed once per security token. This is the hot path.

use super::hmac_algorithm;
use super::lanes::{self, LanesKey};
use crate::policy::SymmetricAlgorithms;
use crate::{
    ChunkLayout, ChunkNonce, CryptoError, DisclosedKeys, MessageSecurityMode, PolicyInfo, SymmetricKeys,
};
use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use aws_lc_rs::cipher::{
    AES_128, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use core::fmt;
use zeroize::Zeroizing;

/// Length of an authenticated cipher's nonce.
const NONCE_LEN: usize = 12;
/// Length of a block of AES.
const BLOCK_LEN: usize = 16;

/// The key material of one direction, split as in Part 6 §6.7.6 and §6.8.1.
#[derive(Clone, Copy)]
pub(super) struct Material<'a> {
    signing_key: &'a [u8],
    encrypting_key: &'a [u8],
    iv: &'a [u8],
}

impl<'a> Material<'a> {
    /// Length of a policy's key material per direction.
    pub(super) const fn len(info: &PolicyInfo) -> usize {
        info.signing_key_len + info.encrypting_key_len + info.iv_len
    }

    pub(super) fn disclose(&self) -> DisclosedKeys {
        let keep = |bytes: &[u8]| Zeroizing::new(bytes.to_vec());
        DisclosedKeys {
            signing_key: keep(self.signing_key),
            encrypting_key: keep(self.encrypting_key),
            iv: keep(self.iv),
        }
    }

    /// Length of the key material from an agreement with ephemeral keys. In mode Sign without an authenticated cipher
    /// it is only a signing key (Part 6 §6.8.1, step 1: the length is part of the salt).
    pub(super) const fn agreed_len(info: &PolicyInfo, mode: MessageSecurityMode) -> usize {
        match mode {
            MessageSecurityMode::Sign if !info.is_aead() => info.signing_key_len,
            _ => Self::len(info),
        }
    }

    pub(super) fn cut(bytes: &'a [u8], info: &PolicyInfo) -> Result<Self, CryptoError> {
        let cut = || {
            let (signing_key, rest) = bytes.split_at_checked(info.signing_key_len)?;
            if rest.is_empty() {
                return Some(Self { signing_key, encrypting_key: &[], iv: &[] });
            }
            let (encrypting_key, iv) = rest.split_at_checked(info.encrypting_key_len)?;
            (iv.len() == info.iv_len).then_some(Self { signing_key, encrypting_key, iv })
        };
        cut().ok_or(CryptoError::Internal)
    }
}

/// Creates a token's contexts. `own` seals, `peer` opens; the keys of the next token are chained to `chain`.
pub(super) fn keys(
    info: &'static PolicyInfo,
    mode: MessageSecurityMode,
    own: Material<'_>,
    peer: Material<'_>,
    chain: Option<Zeroizing<Vec<u8>>>,
) -> Result<Box<dyn SymmetricKeys>, CryptoError> {
    let layout = ChunkLayout::of(info.policy, mode);
    let encrypts = match mode {
        MessageSecurityMode::Sign => false,
        MessageSecurityMode::SignAndEncrypt => true,
        MessageSecurityMode::None => return Err(CryptoError::PolicyUnsupported),
    };
    Ok(match info.symmetric {
        SymmetricAlgorithms::AesGcm | SymmetricAlgorithms::ChaCha20Poly1305 => Box::new(AeadKeys {
            layout,
            encrypts,
            own: Aead::new(info, encrypts, own)?,
            peer: Aead::new(info, encrypts, peer)?,
            chain,
        }),
        _ => {
            let algorithm = hmac_algorithm(info.symmetric).ok_or(CryptoError::PolicyUnsupported)?;
            let cbc = if encrypts { Some((CbcSeal::new(own)?, CbcOpen::new(peer)?)) } else { None };
            Box::new(CbcKeys {
                layout,
                own: hmac::Key::new(algorithm, own.signing_key),
                peer: hmac::Key::new(algorithm, peer.signing_key),
                cbc,
            })
        }
    })
}

/// Contexts together with their key bytes.
#[derive(Debug)]
pub(super) struct Disclosing {
    pub(super) keys: Box<dyn SymmetricKeys>,
    pub(super) client: DisclosedKeys,
    pub(super) server: DisclosedKeys,
}

impl SymmetricKeys for Disclosing {
    fn layout(&self) -> ChunkLayout {
        self.keys.layout()
    }

    fn seal(&mut self, chunk: &mut [u8], headers_len: usize, nonce: ChunkNonce) -> Result<(), CryptoError> {
        self.keys.seal(chunk, headers_len, nonce)
    }

    fn lanes(&self) -> usize {
        self.keys.lanes()
    }

    fn seal_message(
        &mut self,
        message: &mut [u8],
        chunk_len: usize,
        headers_len: usize,
        nonces: &mut dyn Iterator<Item = ChunkNonce>,
    ) -> Result<(), CryptoError> {
        self.keys.seal_message(message, chunk_len, headers_len, nonces)
    }

    fn open(
        &mut self,
        chunk: &mut [u8],
        headers_len: usize,
        nonce: ChunkNonce,
    ) -> Result<usize, CryptoError> {
        self.keys.open(chunk, headers_len, nonce)
    }

    fn chain_secret(&self) -> Option<Vec<u8>> {
        self.keys.chain_secret()
    }

    fn disclosed(&self) -> Option<(&DisclosedKeys, &DisclosedKeys)> {
        Some((&self.client, &self.server))
    }
}

/// AES-CBC for one direction. The initialization vector belongs to the token (Part 6 §6.7.6).
struct CbcSeal {
    key: EncryptingKey,
    /// The same key for several chunks in parallel, if the processor benefits.
    lanes: Option<LanesKey>,
    iv: [u8; BLOCK_LEN],
}

struct CbcOpen {
    key: DecryptingKey,
    iv: [u8; BLOCK_LEN],
}

fn aes(key: &[u8]) -> Result<UnboundCipherKey, CryptoError> {
    let algorithm = match key.len() {
        16 => &AES_128,
        32 => &AES_256,
        _ => return Err(CryptoError::Internal),
    };
    UnboundCipherKey::new(algorithm, key).map_err(|_| CryptoError::Internal)
}

impl CbcSeal {
    fn new(material: Material<'_>) -> Result<Self, CryptoError> {
        let key = EncryptingKey::cbc(aes(material.encrypting_key)?).map_err(|_| CryptoError::Internal)?;
        let iv = material.iv.try_into().map_err(|_| CryptoError::Internal)?;
        Ok(Self { key, lanes: LanesKey::new(material.encrypting_key), iv })
    }
}

impl CbcOpen {
    fn new(material: Material<'_>) -> Result<Self, CryptoError> {
        let key = DecryptingKey::cbc(aes(material.encrypting_key)?).map_err(|_| CryptoError::Internal)?;
        Ok(Self { key, iv: material.iv.try_into().map_err(|_| CryptoError::Internal)? })
    }
}

/// Encrypts one payload with AES-CBC.
pub(super) fn cbc_encrypt(key: &[u8], iv: &[u8], payload: &mut [u8]) -> Result<(), CryptoError> {
    let key = EncryptingKey::cbc(aes(key)?).map_err(|_| CryptoError::Internal)?;
    let iv = iv.try_into().map_err(|_| CryptoError::Internal)?;
    CbcSeal { key, lanes: None, iv }.encrypt(payload)
}

/// Decrypts one payload with AES-CBC.
pub(super) fn cbc_decrypt(key: &[u8], iv: &[u8], payload: &mut [u8]) -> Result<(), CryptoError> {
    let open = CbcOpen::new(Material { signing_key: &[], encrypting_key: key, iv })?;
    open.decrypt(payload)
}

impl CbcSeal {
    #[inline]
    fn encrypt(&self, blocks: &mut [u8]) -> Result<(), CryptoError> {
        let context = EncryptionContext::Iv128(FixedLength::from(self.iv));
        self.key.less_safe_encrypt(blocks, context).map(|_| ()).map_err(|_| CryptoError::Malformed)
    }
}

impl CbcOpen {
    #[inline]
    fn decrypt(&self, blocks: &mut [u8]) -> Result<(), CryptoError> {
        if blocks.is_empty() || !blocks.len().is_multiple_of(BLOCK_LEN) {
            return Err(CryptoError::Decryption);
        }
        let context = DecryptionContext::Iv128(FixedLength::from(self.iv));
        self.key.decrypt(blocks, context).map(|_| ()).map_err(|_| CryptoError::Decryption)
    }
}

/// AES-CBC with HMAC: signed, then encrypted.
struct CbcKeys {
    layout: ChunkLayout,
    own: hmac::Key,
    peer: hmac::Key,
    cbc: Option<(CbcSeal, CbcOpen)>,
}

impl fmt::Debug for CbcKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CbcKeys").field("layout", &self.layout).finish_non_exhaustive()
    }
}

impl CbcKeys {
    /// Writes the signature into its reserved bytes.
    #[inline]
    fn sign(&self, chunk: &mut [u8]) -> Result<(), CryptoError> {
        let signed_len = chunk.len().checked_sub(self.layout.signature_len).ok_or(CryptoError::Malformed)?;
        let (signed, gap) = chunk.split_at_mut_checked(signed_len).ok_or(CryptoError::Malformed)?;
        let tag = hmac::sign(&self.own, signed);
        gap.copy_from_slice(tag.as_ref().get(..gap.len()).ok_or(CryptoError::Internal)?);
        Ok(())
    }
}

impl SymmetricKeys for CbcKeys {
    fn layout(&self) -> ChunkLayout {
        self.layout
    }

    fn seal(&mut self, chunk: &mut [u8], headers_len: usize, _: ChunkNonce) -> Result<(), CryptoError> {
        self.sign(chunk)?;
        match &self.cbc {
            Some((seal, _)) => seal.encrypt(chunk.get_mut(headers_len..).ok_or(CryptoError::Malformed)?),
            None => Ok(()),
        }
    }

    fn lanes(&self) -> usize {
        let has_lanes = self.cbc.as_ref().is_some_and(|(seal, _)| seal.lanes.is_some());
        if has_lanes { lanes::COUNT } else { 1 }
    }

    fn seal_message(
        &mut self,
        message: &mut [u8],
        chunk_len: usize,
        headers_len: usize,
        _: &mut dyn Iterator<Item = ChunkNonce>,
    ) -> Result<(), CryptoError> {
        let chunk_len = chunk_len.max(1);
        for group in message.chunks_mut(chunk_len.saturating_mul(lanes::COUNT)) {
            for chunk in group.chunks_mut(chunk_len) {
                self.sign(chunk)?;
            }
            let Some((seal, _)) = &self.cbc else { continue };
            match &seal.lanes {
                Some(key) if group.len() > chunk_len => {
                    let mut chunks = group.chunks_mut(chunk_len);
                    let plain: [Option<&mut [u8]>; lanes::COUNT] =
                        core::array::from_fn(|_| chunks.next()?.get_mut(headers_len..));
                    key.encrypt(&seal.iv, plain)?;
                }
                _ => {
                    for chunk in group.chunks_mut(chunk_len) {
                        seal.encrypt(chunk.get_mut(headers_len..).ok_or(CryptoError::Malformed)?)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, chunk: &mut [u8], headers_len: usize, _: ChunkNonce) -> Result<usize, CryptoError> {
        if let Some((_, open)) = &self.cbc {
            open.decrypt(chunk.get_mut(headers_len..).ok_or(CryptoError::Malformed)?)?;
        }
        let signed_len = chunk.len().checked_sub(self.layout.signature_len).ok_or(CryptoError::Malformed)?;
        if signed_len < headers_len {
            return Err(CryptoError::Malformed);
        }
        let (signed, signature) = chunk.split_at_checked(signed_len).ok_or(CryptoError::Malformed)?;
        hmac::verify(&self.peer, signed, signature).map_err(|_| CryptoError::Signature)?;
        Ok(signed_len)
    }
}

/// An authenticated cipher for one direction.
pub(super) struct Aead {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
}

impl Aead {
    fn new(info: &PolicyInfo, encrypts: bool, material: Material<'_>) -> Result<Self, CryptoError> {
        // Policies that derive a signing key use it in mode Sign.
        let signs_apart = !encrypts && !material.signing_key.is_empty();
        let key = if signs_apart { material.signing_key } else { material.encrypting_key };
        Self::keyed(info, key, material.iv)
    }

    pub(super) fn keyed(info: &PolicyInfo, key: &[u8], iv: &[u8]) -> Result<Self, CryptoError> {
        let algorithm: &'static Algorithm = match (info.symmetric, key.len()) {
            (SymmetricAlgorithms::AesGcm, 16) => &AES_128_GCM,
            (SymmetricAlgorithms::AesGcm, 32) => &AES_256_GCM,
            (SymmetricAlgorithms::ChaCha20Poly1305, 32) => &CHACHA20_POLY1305,
            _ => return Err(CryptoError::PolicyUnsupported),
        };
        let key = UnboundKey::new(algorithm, key).map_err(|_| CryptoError::Internal)?;
        Ok(Self { key: LessSafeKey::new(key), iv: iv.try_into().map_err(|_| CryptoError::Internal)? })
    }

    /// The initialization vector combined with TokenId and LastSequenceNumber (Part 6 §6.8.1, Table 69). It is unique
    /// per key, because sequence numbers do not repeat within a token.
    #[inline]
    fn nonce(&self, nonce: ChunkNonce) -> Nonce {
        let mask = u64::from(nonce.token_id) | u64::from(nonce.last_sequence_number) << 32;
        let mut iv = self.iv;
        iv.iter_mut().zip(mask.to_le_bytes()).for_each(|(byte, mask)| *byte ^= mask);
        Nonce::assume_unique_for_key(iv)
    }

    /// Encrypts `in_out` and writes the tag, which also covers `headers`.
    #[inline]
    pub(super) fn seal(
        &self,
        nonce: ChunkNonce,
        headers: &[u8],
        in_out: &mut [u8],
        tag_gap: &mut [u8],
    ) -> Result<(), CryptoError> {
        let failed = |_| CryptoError::Internal;
        let nonce = self.nonce(nonce);
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(headers), in_out).map_err(failed)?;
        if tag.as_ref().len() != tag_gap.len() {
            return Err(CryptoError::Malformed);
        }
        tag_gap.copy_from_slice(tag.as_ref());
        Ok(())
    }

    /// Decrypts `in_out` if the tag is valid.
    #[inline]
    pub(super) fn open(
        &self,
        nonce: ChunkNonce,
        headers: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), CryptoError> {
        let nonce = self.nonce(nonce);
        let opened = self.key.open_in_place_separate_tag(nonce, Aad::from(headers), tag, in_out);
        opened.map(|_| ()).map_err(|_| CryptoError::Signature)
    }
}

/// An authenticated cipher. In mode Sign everything is authenticated and nothing is encrypted.
struct AeadKeys {
    layout: ChunkLayout,
    encrypts: bool,
    own: Aead,
    peer: Aead,
    chain: Option<Zeroizing<Vec<u8>>>,
}

impl fmt::Debug for AeadKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AeadKeys").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// The readable part, the encrypted part, and the tag of a chunk.
struct Parts<'a> {
    headers: &'a mut [u8],
    in_out: &'a mut [u8],
    tag: &'a mut [u8],
}

impl AeadKeys {
    #[inline]
    fn cut<'a>(&self, chunk: &'a mut [u8], headers_len: usize) -> Result<Parts<'a>, CryptoError> {
        let body_end = chunk.len().checked_sub(self.layout.signature_len).ok_or(CryptoError::Malformed)?;
        if body_end < headers_len {
            return Err(CryptoError::Malformed);
        }
        let readable = if self.encrypts { headers_len } else { body_end };
        let (rest, tag) = chunk.split_at_mut_checked(body_end).ok_or(CryptoError::Malformed)?;
        let (headers, in_out) = rest.split_at_mut_checked(readable).ok_or(CryptoError::Malformed)?;
        Ok(Parts { headers, in_out, tag })
    }
}

impl SymmetricKeys for AeadKeys {
    fn layout(&self) -> ChunkLayout {
        self.layout
    }

    fn seal(&mut self, chunk: &mut [u8], headers_len: usize, nonce: ChunkNonce) -> Result<(), CryptoError> {
        let Parts { headers, in_out, tag } = self.cut(chunk, headers_len)?;
        self.own.seal(nonce, headers, in_out, tag)
    }

    fn open(
        &mut self,
        chunk: &mut [u8],
        headers_len: usize,
        nonce: ChunkNonce,
    ) -> Result<usize, CryptoError> {
        let Parts { headers, in_out, tag } = self.cut(chunk, headers_len)?;
        let body_end = headers.len() + in_out.len();
        self.peer.open(nonce, headers, in_out, tag)?;
        Ok(body_end)
    }

    fn chain_secret(&self) -> Option<Vec<u8>> {
        self.chain.as_ref().map(|chain| chain.to_vec())
    }
}
