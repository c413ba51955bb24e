//! Writes complete NetworkMessages: probes, announcements, Actions, and the last step of data messages.

use crate::publisher_id::PublisherId;
use crate::security::{KeyStore, SecurityError, seal};
use crate::time::Now;
use crate::transmit::{About, Transmit};
use crate::uadp::announcement::NumberedAnnouncement;
use crate::uadp::chunk::{CHUNK_HEADER_LEN, split};
use crate::uadp::header::{HeaderOffsets, NetworkMessageHeader, NetworkMessageType};
use crate::uadp::{SecurityHeader, SecurityMode};
use taktwerk_crypto::Entropy;
use taktwerk_crypto::pubsub::MESSAGE_NONCE_LEN;
use taktwerk_types::Encode;

/// Bytes of a SecurityHeader with a nonce.
const SECURITY_HEADER_LEN: usize = 6 + MESSAGE_NONCE_LEN;
/// Bytes of a signature.
const SIGNATURE_LEN: usize = 32;
/// Overhead of security per message, in bytes.
pub(crate) const SECURED_LEN: usize = SECURITY_HEADER_LEN + SIGNATURE_LEN;

/// The SecurityGroup and mode of an announcement.
pub(crate) type Security<'a> = Option<(&'a str, SecurityMode)>;

/// Appends a NetworkMessage to the list of messages to send, secured according to `security`.
///
/// `payload` gets the buffer and the start of the message in it.
#[allow(clippy::too_many_arguments)] // what a message is made of
pub(crate) fn write_message(
    keys: &mut KeyStore,
    entropy: &mut dyn Entropy,
    now: Now,
    out: &mut Transmit,
    about: About<'_>,
    header: NetworkMessageHeader<'_>,
    security: Security<'_>,
    payload: impl FnOnce((&mut Vec<u8>, usize)),
) -> Result<(), SecurityError> {
    let Some((group_id, mode)) = security else {
        return out.push(about, |bytes| {
            let start = bytes.len();
            header.encode(bytes);
            payload((bytes, start));
            Ok(())
        });
    };
    let ring = keys.ring_mut(group_id).ok_or(SecurityError::NoKeys)?;
    let force_key_reset = ring.forces_key_reset(now.instant);
    let (token_id, keys, nonce) = ring.next_nonce(entropy, now.instant)?;
    let security =
        SecurityHeader { mode, force_key_reset, token_id, nonce: &nonce, ..SecurityHeader::default() };
    let header = NetworkMessageHeader { security: Some(security), ..header };
    out.push(about, |bytes| {
        let start = bytes.len();
        let HeaderOffsets { payload: at, .. } = header.encode(bytes);
        payload((bytes, start));
        bytes.resize(bytes.len() + keys.signature_len(), 0);
        let message = bytes.get_mut(start..).ok_or(SecurityError::TooShort)?;
        seal(keys, mode, &nonce, message, at - start)
    })
}

/// Appends an announcement to the list of messages to send, in chunks if it is longer than `room`.
#[allow(clippy::too_many_arguments)] // what an announcement is made of
pub(crate) fn write_announcement(
    keys: &mut KeyStore,
    entropy: &mut dyn Entropy,
    now: Now,
    out: &mut Transmit,
    about: About<'_>,
    publisher_id: Option<&PublisherId>,
    announcement: &NumberedAnnouncement,
    security: Security<'_>,
    room: Option<usize>,
) -> Result<(), SecurityError> {
    let payload = announcement.encode_to_vec();
    let header = NetworkMessageHeader {
        publisher_id: publisher_id.map(PublisherId::as_ref),
        message_type: NetworkMessageType::DiscoveryAnnouncement,
        // The security header is always present (Part 14 §7.2.4.6.3).
        security: Some(SecurityHeader::default()),
        ..NetworkMessageHeader::default()
    };
    let mut header_len = Vec::new();
    header.encode(&mut header_len);
    let secured_len = if security.is_some() { SECURED_LEN } else { 0 };
    let room = room.map(|room| room.saturating_sub(header_len.len() + secured_len));
    let mut write = |is_chunk: bool, write: &mut dyn FnMut(&mut Vec<u8>)| {
        let header = NetworkMessageHeader { is_chunk, ..header };
        write_message(keys, entropy, now, out, about, header, security, |(out, _)| write(out))
    };
    let Some(room) = room.filter(|room| payload.len() > *room) else {
        return write(false, &mut |out| out.extend_from_slice(&payload));
    };
    let number = announcement.sequence_number;
    for chunk in split(&payload, number, room.saturating_sub(CHUNK_HEADER_LEN).max(64)) {
        write(true, &mut |out| chunk.encode(out))?;
    }
    Ok(())
}
