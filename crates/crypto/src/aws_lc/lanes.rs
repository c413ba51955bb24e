//! AES-CBC of several chunks in parallel.
//!
//! In CBC each block needs the previous one, so a processor that could encrypt eight blocks at a time handles one. The
//! chunks of a message each begin with the token's initialization vector (Part 6 §6.7.6), so their chains are
//! independent, and four of them take little more time than one. 15 kB: 4 µs in four chunks, 14 µs in one; the
//! signatures take 10 to 11 µs.
//!
//! AWS-LC has no function for this, so this module has its own loop over the rounds of the `aes` crate. It uses the
//! processor's AES instructions; without them there would be no gain, and [`LanesKey`] is not available.

use crate::CryptoError;
use aes::cipher::consts::U16;
use aes::cipher::{
    Block, BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, KeyInit,
};
use aes::{Aes128Enc, Aes256Enc};

/// Number of chunks encrypted in parallel. With eight, encrypting 15 kB takes 1.4 µs less, but signing takes 1.1 µs
/// more.
pub(super) const COUNT: usize = 4;
/// Length of a block of AES.
const BLOCK_LEN: usize = 16;

/// A key, expanded once per token. Dropping it clears it.
pub(super) enum LanesKey {
    Aes128(Box<Aes128Enc>),
    Aes256(Box<Aes256Enc>),
}

impl LanesKey {
    /// `None` if the processor has no AES instructions or the key length is not supported.
    pub(super) fn new(key: &[u8]) -> Option<Self> {
        if !has_instructions() {
            return None;
        }
        match key.len() {
            16 => Aes128Enc::new_from_slice(key).ok().map(|key| Self::Aes128(Box::new(key))),
            32 => Aes256Enc::new_from_slice(key).ok().map(|key| Self::Aes256(Box::new(key))),
            _ => None,
        }
    }

    /// Encrypts each part separately, all with the same `iv`.
    ///
    /// # Errors
    /// The length of a part is not a multiple of the block length.
    pub(super) fn encrypt(
        &self,
        iv: &[u8; BLOCK_LEN],
        parts: [Option<&mut [u8]>; COUNT],
    ) -> Result<(), CryptoError> {
        let mut is_whole = true;
        let parts = parts.map(|part| {
            let (blocks, rest) = part.unwrap_or_default().as_chunks_mut::<BLOCK_LEN>();
            is_whole &= rest.is_empty();
            blocks
        });
        if !is_whole {
            return Err(CryptoError::Malformed);
        }
        let lanes = Lanes { parts, iv };
        match self {
            Self::Aes128(key) => key.encrypt_with_backend(lanes),
            Self::Aes256(key) => key.encrypt_with_backend(lanes),
        }
        Ok(())
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_instructions() -> bool {
    std::arch::is_x86_feature_detected!("aes")
}

#[cfg(target_arch = "aarch64")]
fn has_instructions() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn has_instructions() -> bool {
    false
}

/// The loop over the cipher's rounds. It is inlined into a function compiled for the processor's AES instructions.
struct Lanes<'a> {
    parts: [&'a mut [[u8; BLOCK_LEN]]; COUNT],
    iv: &'a [u8; BLOCK_LEN],
}

impl BlockSizeUser for Lanes<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Lanes<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let Self { mut parts, iv } = self;
        let len = parts.iter().map(|part| part.len()).max().unwrap_or_default();
        let mut chains = [u128::from_ne_bytes(*iv); COUNT];
        for at in 0..len {
            for (part, chain) in parts.iter_mut().zip(&mut chains) {
                // The last chunk of a message may be shorter.
                let Some(bytes) = part.get_mut(at) else { continue };
                let mut block = Block::<Self>::from((u128::from_ne_bytes(*bytes) ^ *chain).to_ne_bytes());
                backend.encrypt_block_inplace(&mut block);
                *bytes = block.into();
                *chain = u128::from_ne_bytes(*bytes);
            }
        }
    }
}
