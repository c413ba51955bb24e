//! Diffie-Hellman in the group ffdhe3072 (RFC 7919, Appendix A.2), which AWS-LC's Rust interface does not offer.
//!
//! Uses `crypto-bigint`, whose exponentiation in Montgomery form takes constant time.

use super::fill_random;
use crate::CryptoError;
use crypto_bigint::modular::{ConstMontyForm, ConstMontyParams as _};
use crypto_bigint::{Encoding as _, U512, U3072, Uint, impl_modulus};
use zeroize::{Zeroize as _, Zeroizing};

impl_modulus!(
    Prime,
    U3072,
    concat!(
        "FFFFFFFFFFFFFFFFADF85458A2BB4A9AAFDC5620273D3CF1D8B9C583CE2D3695A9E13641146433FBCC939DCE249B3EF9",
        "7D2FE363630C75D8F681B202AEC4617AD3DF1ED5D5FD65612433F51F5F066ED0856365553DED1AF3B557135E7F57C935",
        "984F0C70E0E68B77E2A689DAF3EFE8721DF158A136ADE73530ACCA4F483A797ABC0AB182B324FB61D108A94BB2C8E3FB",
        "B96ADAB760D7F4681D4F42A3DE394DF4AE56EDE76372BB190B07A7C8EE0A6D709E02FCE1CDF7E2ECC03404CD28342F61",
        "9172FE9CE98583FF8E4F1232EEF28183C3FE3B1B4C6FAD733BB5FCBC2EC22005C58EF1837D1683B2C6F34A26C1B2EFFA",
        "886B4238611FCFDCDE355B3B6519035BBC34F4DEF99C023861B46FC9D6E6C9077AD91D2691F7F7EE598CB0FAC186D91C",
        "AEFE130985139270B4130C93BC437944F4FD4452E2D74DD364F2E21E71F54BFF5CAE82AB9C9DF69EE86D2BC522363A0D",
        "ABC521979B0DEADA1DBF9A42D5C4484E0ABCD06BFA53DDEF3C1B20EE3FD59D7C25E41D2B66C62E37FFFFFFFFFFFFFFFF",
    )
);

type Element = ConstMontyForm<Prime, { U3072::LIMBS }>;

/// Length of a group element in bytes.
const LEN: usize = 384;
/// Length of an exponent in bytes: RFC 7919 §5.2 requires at least 275 bits for this group.
const EXPONENT_LEN: usize = 64;

/// An ephemeral exponent.
pub(super) struct PrivateKey(U512);

impl Drop for PrivateKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl PrivateKey {
    pub(super) fn generate() -> Result<Self, CryptoError> {
        let mut bytes = Zeroizing::new([0; EXPONENT_LEN]);
        fill_random(bytes.as_mut())?;
        Ok(Self(U512::from_be_bytes(*bytes)))
    }

    /// 2 to the power of the exponent.
    pub(super) fn public_key(&self) -> Vec<u8> {
        encode(&Element::new(&Uint::from_u8(2)).pow(&self.0).retrieve())
    }

    /// The peer's element to the power of the exponent, with its leading zeros.
    ///
    /// The prime is a safe one, so besides 0, 1 and -1 there is no element of small order (RFC 7919 §5.1).
    pub(super) fn shared(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        let peer: [u8; LEN] = peer.try_into().map_err(|_| CryptoError::KeyAgreement)?;
        let peer = U3072::from_be_bytes(peer);
        let minus_one = Prime::MODULUS.wrapping_sub(&U3072::ONE);
        if peer <= U3072::ONE || peer >= minus_one {
            return Err(CryptoError::KeyAgreement);
        }
        let mut shared = Element::new(&peer).pow(&self.0).retrieve();
        let encoded = Zeroizing::new(encode(&shared));
        let degenerate = shared == U3072::ONE;
        shared.zeroize();
        if degenerate { Err(CryptoError::KeyAgreement) } else { Ok(encoded) }
    }
}

fn encode(number: &U3072) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_agree_and_small_subgroups_are_refused() {
        let (one, other) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let shared = one.shared(&other.public_key()).unwrap();
        assert_eq!(shared, other.shared(&one.public_key()).unwrap());
        assert_eq!(shared.len(), LEN);
        let minus_one = Prime::MODULUS.wrapping_sub(&U3072::ONE);
        for bad in [U3072::ZERO, U3072::ONE, minus_one, *Prime::MODULUS, U3072::MAX] {
            assert_eq!(one.shared(&encode(&bad)), Err(CryptoError::KeyAgreement));
        }
        assert!(one.shared(&[1; LEN - 1]).is_err());
    }

    #[test]
    fn exponentiation_reduces() {
        let two_to = |exponent: u32| {
            encode(&Element::new(&Uint::from_u8(2)).pow(&U512::from_u32(exponent)).retrieve())
        };
        assert_eq!(two_to(10)[LEN - 2..], [4, 0]);
        let reduced = U3072::ZERO.wrapping_sub(Prime::MODULUS.as_ref());
        assert_eq!(two_to(3072), encode(&reduced));
    }
}
