//! The common header of RsaEncryptedSecret and EccEncryptedSecret (Part 4 §7.40.2.3, Table 183).

use crate::{CryptoError, SecurityPolicy};
use taktwerk_types::codec::encode_bytes;
use taktwerk_types::{Decode, DecodeLimits, Decoder, Encode, NodeId, NodeIdRef, UtcTime};

/// NodeId of the RsaEncryptedSecret DataType in namespace 0.
pub(super) const RSA_ENCRYPTED_SECRET: u32 = 17545;
/// NodeId of the EccEncryptedSecret DataType in namespace 0.
pub(super) const ECC_ENCRYPTED_SECRET: u32 = 17546;
/// The EncodingMask: the body is a ByteString.
const BINARY: u8 = 1;
/// TypeId in its four-byte form, EncodingMask and Length.
const PREFIX_LEN: usize = 4 + 1 + 4;
/// The longest field is a certificate with its chain.
const LIMITS: DecodeLimits = DecodeLimits {
    string_len_max: 255,
    byte_string_len_max: 65_536,
    array_len_max: 0,
    depth_max: 1,
    memory_max: 1 << 20,
};

/// A decoder with the limits of these structures.
pub(super) fn decoder(bytes: &[u8]) -> Decoder<'_> {
    Decoder::new(bytes, LIMITS)
}

/// The common header; KeyData follows.
#[derive(Debug)]
pub(super) struct Header<'a> {
    pub(super) certificate: &'a [u8],
    pub(super) signing_time: UtcTime,
    pub(super) key_data: &'a [u8],
    /// Offset of the payload in the structure.
    pub(super) payload_at: usize,
}

/// Whether bytes have the prefix and the length of such a structure. RSA blocks have them with a probability of 2⁻⁶⁴
/// only, and then decryption fails.
pub(super) fn is_structured(bytes: &[u8]) -> bool {
    prefix(bytes, RSA_ENCRYPTED_SECRET).is_ok() || prefix(bytes, ECC_ENCRYPTED_SECRET).is_ok()
}

/// Reads TypeId, EncodingMask and Length; returns a decoder for the rest.
fn prefix(bytes: &[u8], type_id: u32) -> Result<Decoder<'_>, CryptoError> {
    let malformed = |_| CryptoError::Malformed;
    let mut decoder = decoder(bytes);
    let found = NodeIdRef::decode(&mut decoder).map_err(malformed)?.to_owned().ns0();
    let mask = decoder.byte().map_err(malformed)?;
    let len = u32::decode(&mut decoder).map_err(malformed)?;
    let fits = usize::try_from(len) == Ok(decoder.remaining());
    if found == Some(type_id) && mask == BINARY && fits { Ok(decoder) } else { Err(CryptoError::Malformed) }
}

impl<'a> Header<'a> {
    /// Writes the header up to KeyDataLength. `rest_len` is the length of the parts after it.
    pub(super) fn write(
        type_id: u32,
        policy: SecurityPolicy,
        certificate: Option<&[u8]>,
        signing_time: UtcTime,
        key_data: &[u8],
        rest_len: usize,
    ) -> Result<Vec<u8>, CryptoError> {
        let mut out = Vec::new();
        NodeId::numeric(0, type_id).encode(&mut out);
        out.push(BINARY);
        out.extend_from_slice(&[0; 4]);
        debug_assert_eq!(out.len(), PREFIX_LEN);
        encode_bytes(Some(policy.uri().as_bytes()), &mut out);
        encode_bytes(certificate, &mut out);
        signing_time.encode(&mut out);
        u16::try_from(key_data.len()).map_err(|_| CryptoError::Malformed)?.encode(&mut out);
        out.extend_from_slice(key_data);
        let len = u32::try_from(out.len() - PREFIX_LEN + rest_len).map_err(|_| CryptoError::Malformed)?;
        if let Some(gap) = out.get_mut(PREFIX_LEN - 4..PREFIX_LEN) {
            gap.copy_from_slice(&len.to_le_bytes());
        }
        Ok(out)
    }

    /// Parses the header of a structure made with the same policy.
    pub(super) fn parse(bytes: &'a [u8], type_id: u32, policy: SecurityPolicy) -> Result<Self, CryptoError> {
        let malformed = |_| CryptoError::Malformed;
        let mut decoder = prefix(bytes, type_id)?;
        let uri = decoder.str().map_err(malformed)?;
        if uri != Some(policy.uri()) {
            return Err(CryptoError::PolicyUnsupported);
        }
        let certificate = decoder.bytes().map_err(malformed)?.unwrap_or_default();
        let signing_time = UtcTime::decode(&mut decoder).map_err(malformed)?;
        let key_data_len = u16::decode(&mut decoder).map_err(malformed)?;
        let key_data = decoder.take(usize::from(key_data_len)).map_err(malformed)?;
        let payload_at = bytes.len() - decoder.remaining();
        Ok(Self { certificate, signing_time, key_data, payload_at })
    }

    /// Whether the secret was signed close enough to `now`.
    pub(super) fn is_timely(&self, now: UtcTime) -> bool {
        let window = core::time::Duration::from_secs(super::SIGNING_TIME_WINDOW_S);
        self.signing_time <= now.plus(window) && now <= self.signing_time.plus(window)
    }
}
