//! One secured NetworkMessage.

use crate::uadp::{SecurityHeader, SecurityMode};
use core::ops::Range;
use taktwerk_crypto::pubsub::MESSAGE_NONCE_LEN;
use taktwerk_crypto::{CryptoError, PubSubKeys};
use taktwerk_types::StatusCode;

/// Why a message was not sent or not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecurityError {
    /// The message has less security than the group requires, or none.
    #[error("the message is secured with {actual:?}, but the group requires {wanted:?}")]
    ModeInsufficient {
        /// Security of the message.
        actual: SecurityMode,
        /// Required security.
        wanted: SecurityMode,
    },
    /// No key with this id is known.
    #[error("no key with SecurityTokenId {0} is known: the key service has newer ones, or it is forged")]
    UnknownToken(u32),
    /// The key service has invalidated the key (InvalidateKeys, Part 14 §8.4.2).
    #[error(
        "the key with SecurityTokenId {0} was invalidated: the publisher has not fetched the new ones yet, or it is forged"
    )]
    KeyInvalidated(u32),
    /// The key was replaced by the next one more than a KeyLifetime ago (Part 14 §6.2.12.2).
    #[error(
        "the key with SecurityTokenId {0} is too old: the publisher does not change its keys, or it is a replay"
    )]
    KeyTooOld(u32),
    /// The group has no keys.
    #[error("there are no keys for the SecurityGroup: ask its key service")]
    NoKeys,
    /// The last key has expired.
    #[error("the last key has expired: the key service has not answered in time")]
    KeysExpired,
    /// All nonces of the key are used.
    #[error("the key has secured 2^32 messages: shorten the KeyLifetime")]
    NonceExhausted,
    /// The reserved nonce numbers are used up, and no others were reserved.
    #[error(
        "no sequence numbers are reserved for the key: they could not be written to a file, so none is used"
    )]
    NoncesNotReserved,
    /// The message was received before.
    #[error("the message was received before")]
    Replayed,
    /// Its timestamp differs too much from the current time.
    #[error(
        "the message is dated {off_millis} ms from now: it is a replay, or the clocks of publisher and subscriber differ"
    )]
    Stale {
        /// Milliseconds from its timestamp to now; negative if it is in the future.
        off_millis: i64,
    },
    /// It has no timestamp, so its age is unknown.
    #[error(
        "the message has no timestamp, so its age is unknown: let the publisher send one (Timestamp in the \
         NetworkMessageContentMask or the DataSetMessageContentMask), or allow any age"
    )]
    Undated,
    /// Too many publishers use the group.
    #[error("too many senders for the replay guard")]
    TooManySenders,
    /// The message is shorter than its header requires.
    #[error("the message is too short for its security header")]
    TooShort,
    /// The library refused: usually a wrong signature.
    #[error("{0}")]
    Crypto(#[from] CryptoError),
}

impl SecurityError {
    /// The status for diagnostics.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::ModeInsufficient { .. } => StatusCode::BAD_SECURITY_MODE_INSUFFICIENT,
            Self::UnknownToken(_) | Self::KeyInvalidated(_) | Self::KeyTooOld(_) => {
                StatusCode::BAD_SECURE_CHANNEL_TOKEN_UNKNOWN
            }
            _ => StatusCode::BAD_SECURITY_CHECKS_FAILED,
        }
    }
}

/// Encrypts (depending on the mode) and signs a message in place. `message` ends with space for the signature;
/// encryption starts at `payload`, after the header.
///
/// # Errors
/// The message is too short, or the library fails.
pub fn seal(
    keys: &dyn PubSubKeys,
    mode: SecurityMode,
    nonce: &[u8; MESSAGE_NONCE_LEN],
    message: &mut [u8],
    payload: usize,
) -> Result<(), SecurityError> {
    let end = message.len().checked_sub(keys.signature_len()).ok_or(SecurityError::TooShort)?;
    if mode == SecurityMode::SignAndEncrypt {
        keys.apply(nonce, message.get_mut(payload..end).ok_or(SecurityError::TooShort)?)?;
    }
    let (signed, signature) = message.split_at_mut_checked(end).ok_or(SecurityError::TooShort)?;
    Ok(keys.sign(signed, signature)?)
}

/// Verifies the signature of a received message and returns the range of its payload. Nothing may be done with the
/// message before: no replay state, no parsing of the payload.
///
/// # Errors
/// The signature is wrong, or the message is too short.
pub fn verify(
    keys: &dyn PubSubKeys,
    header: &SecurityHeader<'_>,
    message: &[u8],
    payload: usize,
) -> Result<Range<usize>, SecurityError> {
    let signed = message.len().checked_sub(keys.signature_len()).ok_or(SecurityError::TooShort)?;
    let footer = usize::from(header.footer_len.unwrap_or(0));
    let end = signed.checked_sub(footer).filter(|end| *end >= payload).ok_or(SecurityError::TooShort)?;
    if header.nonce.len() != MESSAGE_NONCE_LEN {
        return Err(SecurityError::Crypto(CryptoError::Nonce));
    }
    let (text, signature) = message.split_at_checked(signed).ok_or(SecurityError::TooShort)?;
    keys.verify(text, signature)?;
    Ok(payload..end)
}

/// Decrypts the payload of a verified message in place.
///
/// # Errors
/// Only if the library fails.
pub fn decrypt(
    keys: &dyn PubSubKeys,
    nonce: &[u8; MESSAGE_NONCE_LEN],
    payload: &mut [u8],
) -> Result<(), SecurityError> {
    Ok(keys.apply(nonce, payload)?)
}
