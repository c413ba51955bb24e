//! Message security of PubSub with AWS-LC: AES in counter mode and HMAC-SHA256.

use crate::CryptoError;
use crate::pubsub::{MESSAGE_NONCE_LEN, PubSubKeys, PubSubProvider, PubSubSecurityPolicy, counter_block};
use aws_lc_rs::cipher::{AES_128, AES_256, DecryptingKey, DecryptionContext, UnboundCipherKey};
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use core::fmt;

/// The provider with real message security.
#[derive(Debug, Clone, Copy, Default)]
pub struct AwsPubSubProvider;

impl PubSubProvider for AwsPubSubProvider {
    fn supports(&self, _: PubSubSecurityPolicy) -> bool {
        true
    }

    fn keys(
        &self,
        policy: PubSubSecurityPolicy,
        key_data: &[u8],
    ) -> Result<Box<dyn PubSubKeys>, CryptoError> {
        let parts = policy.split_key_data(key_data)?;
        let algorithm = match policy {
            PubSubSecurityPolicy::Aes128Ctr => &AES_128,
            PubSubSecurityPolicy::Aes256Ctr => &AES_256,
        };
        let key = UnboundCipherKey::new(algorithm, parts.encrypting).map_err(|_| CryptoError::Malformed)?;
        Ok(Box::new(AwsPubSubKeys {
            signing: hmac::Key::new(hmac::HMAC_SHA256, parts.signing),
            cipher: DecryptingKey::ctr(key).map_err(|_| CryptoError::Internal)?,
            key_nonce: parts.key_nonce,
        }))
    }
}

struct AwsPubSubKeys {
    signing: hmac::Key,
    /// In counter mode decryption equals encryption, but only the library's decryption accepts the counter block.
    cipher: DecryptingKey,
    key_nonce: [u8; 4],
}

/// Keys are not printed.
impl fmt::Debug for AwsPubSubKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsPubSubKeys")
    }
}

impl PubSubKeys for AwsPubSubKeys {
    fn signature_len(&self) -> usize {
        32
    }

    fn sign(&self, message: &[u8], signature: &mut [u8]) -> Result<(), CryptoError> {
        let tag = hmac::sign(&self.signing, message);
        if tag.as_ref().len() != signature.len() {
            return Err(CryptoError::Malformed);
        }
        signature.copy_from_slice(tag.as_ref());
        Ok(())
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        hmac::verify(&self.signing, message, signature).map_err(|_| CryptoError::Signature)
    }

    fn apply(&self, nonce: &[u8; MESSAGE_NONCE_LEN], data: &mut [u8]) -> Result<(), CryptoError> {
        let block = FixedLength::from(counter_block(self.key_nonce, nonce));
        let done = self.cipher.decrypt(data, DecryptionContext::Iv128(block));
        done.map(|_| ()).map_err(|_| CryptoError::Internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<char> = text.chars().filter(|character| !character.is_whitespace()).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap())
            .collect()
    }

    /// The vectors of RFC 3686, whose counter block has the same parts: nonce, initialization vector, counter from 1.
    #[test]
    fn counter_mode_of_rfc_3686() {
        let cases = [
            (
                PubSubSecurityPolicy::Aes128Ctr,
                "AE6852F8121067CC4BF7A5765577F39E",
                "00000030",
                "0000000000000000",
                b"Single block msg".to_vec(),
                "E4095D4FB7A7B3792D6175A3261311B8",
            ),
            (
                PubSubSecurityPolicy::Aes128Ctr,
                "7E24067817FAE0D743D6CE1F32539163",
                "006CB6DB",
                "C0543B59DA48D90B",
                (0..32).collect(),
                "5104A106168A72D9790D41EE8EDAD388EB2E1EFC46DA57C8FCE630DF9141BE28",
            ),
            (
                PubSubSecurityPolicy::Aes256Ctr,
                "776BEFF2851DB06F4C8A0542C8696F6C6A81AF1EEC96B4D37FC1D689E6C1C104",
                "00000060",
                "DB5672C97AA8F0B2",
                b"Single block msg".to_vec(),
                "145AD01DBF824EC7560863DC71E3E0C0",
            ),
        ];
        for (policy, key, key_nonce, iv, mut data, expected) in cases {
            let key_data = [vec![0; 32], hex(key), hex(key_nonce)].concat();
            let keys = AwsPubSubProvider.keys(policy, &key_data).unwrap();
            let plain = data.clone();
            let nonce = hex(iv).try_into().unwrap();
            keys.apply(&nonce, &mut data).unwrap();
            assert_eq!(data, hex(expected), "{policy}");
            keys.apply(&nonce, &mut data).unwrap();
            assert_eq!(data, plain);
        }
    }

    #[test]
    fn signatures_are_hmac_sha256() {
        let key_data: Vec<u8> = (0..52).collect();
        let keys = AwsPubSubProvider.keys(PubSubSecurityPolicy::Aes128Ctr, &key_data).unwrap();
        let mut signature = [0; 32];
        keys.sign(b"what is signed", &mut signature).unwrap();
        assert_eq!(
            signature.to_vec(),
            hex("ba8a06f8fb7a5679043a177e7106ab60906972095e6e8a4900c4601a4819708c")
        );
        assert_eq!(keys.verify(b"what is signed", &signature), Ok(()));
        assert_eq!(keys.verify(b"what is singed", &signature), Err(CryptoError::Signature));
        assert!(keys.sign(b"", &mut [0; 20]).is_err());
        assert!(AwsPubSubProvider.keys(PubSubSecurityPolicy::Aes256Ctr, &key_data).is_err());
    }
}
