//! Toy message security for PubSub with the right sizes. It protects nothing.

use taktwerk_crypto::CryptoError;
use taktwerk_crypto::pubsub::{
    MESSAGE_NONCE_LEN, PubSubKeys, PubSubProvider, PubSubSecurityPolicy, counter_block,
};

/// A provider whose signatures are checksums and whose cipher is a keyed exclusive-or.
#[derive(Debug, Clone, Copy, Default)]
pub struct DummyPubSubProvider;

impl PubSubProvider for DummyPubSubProvider {
    fn supports(&self, _: PubSubSecurityPolicy) -> bool {
        true
    }

    fn keys(
        &self,
        policy: PubSubSecurityPolicy,
        key_data: &[u8],
    ) -> Result<Box<dyn PubSubKeys>, CryptoError> {
        let parts = policy.split_key_data(key_data)?;
        Ok(Box::new(DummyPubSubKeys {
            signing: mix(0, parts.signing),
            encrypting: mix(0, parts.encrypting),
            key_nonce: parts.key_nonce,
        }))
    }
}

#[derive(Debug)]
struct DummyPubSubKeys {
    signing: u64,
    encrypting: u64,
    key_nonce: [u8; 4],
}

/// A small multiplicative hash over eight bytes at a time: fast, and every bit affects the result.
fn mix(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15 ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^= state >> 29;
    }
    state
}

impl DummyPubSubKeys {
    fn signature(&self, message: &[u8]) -> [u8; 32] {
        let sum = mix(self.signing, message);
        let mut signature = [0; 32];
        for (index, part) in signature.chunks_mut(8).enumerate() {
            part.copy_from_slice(&mix(index as u64, &sum.to_le_bytes()).to_le_bytes());
        }
        signature
    }
}

impl PubSubKeys for DummyPubSubKeys {
    fn signature_len(&self) -> usize {
        32
    }

    fn sign(&self, message: &[u8], signature: &mut [u8]) -> Result<(), CryptoError> {
        if signature.len() != 32 {
            return Err(CryptoError::Malformed);
        }
        signature.copy_from_slice(&self.signature(message));
        Ok(())
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        if self.signature(message) == signature { Ok(()) } else { Err(CryptoError::Signature) }
    }

    fn apply(&self, nonce: &[u8; MESSAGE_NONCE_LEN], data: &mut [u8]) -> Result<(), CryptoError> {
        let stream = mix(self.encrypting, &counter_block(self.key_nonce, nonce));
        for (index, chunk) in data.chunks_mut(8).enumerate() {
            let word = stream.wrapping_add(index as u64).wrapping_mul(0x94d0_49bb_1331_11eb).to_le_bytes();
            chunk.iter_mut().zip(word).for_each(|(byte, key)| *byte ^= key);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applying_twice_restores_the_data() {
        let key: Vec<u8> = (0..52).collect();
        let keys = DummyPubSubProvider.keys(PubSubSecurityPolicy::Aes128Ctr, &key).unwrap();
        let mut data = b"some twenty odd bytes".to_vec();
        keys.apply(&[1; 8], &mut data).unwrap();
        assert_ne!(data, b"some twenty odd bytes");
        let mut other = data.clone();
        keys.apply(&[2; 8], &mut other).unwrap();
        keys.apply(&[1; 8], &mut data).unwrap();
        assert_eq!(data, b"some twenty odd bytes");
        assert_ne!(other, data);
        let mut signature = [0; 32];
        keys.sign(&data, &mut signature).unwrap();
        assert_eq!(keys.verify(&data, &signature), Ok(()));
        data[3] ^= 1;
        assert_eq!(keys.verify(&data, &signature), Err(CryptoError::Signature));
    }
}
