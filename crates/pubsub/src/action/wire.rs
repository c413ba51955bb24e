//! What both engines do with datagrams: security in both directions.

use super::message::{ActionMessage, Part};
use crate::config::GroupSecurity;
use crate::publisher::write_message;
use crate::publisher_id::PublisherIdRef;
use crate::security::{KeyStore, KeyStoreOptions, Nonce, SecurityError, decrypt, nonce_number, verify};
use crate::time::Now;
use crate::transmit::{About, Transmit};
use crate::uadp::SecurityMode;
use crate::uadp::action::ActionHeader;
use crate::uadp::header::{NetworkMessageHeader, NetworkMessageType};
use core::ops::Range;
use std::sync::Arc;
use taktwerk_crypto::{Entropy, PubSubProvider};
use taktwerk_types::{DecodeError, DecodeLimits, Decoder};

/// Limits for what comes from anybody.
const LIMITS: DecodeLimits = DecodeLimits { depth_max: 32, ..DecodeLimits::DEFAULT };

/// Why something was not sent or not accepted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ActionError {
    /// The engine has no message security and was not told that this is on purpose.
    #[error("Actions without message security: configure a security group, or allow it explicitly")]
    Unsecured,
    /// It is malformed.
    #[error("malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// It is not secured as it must be, forged, or a replay.
    #[error("security: {0}")]
    Security(#[from] SecurityError),
    /// As many requests wait for their responses as may.
    #[error("{0} requests wait for their responses already: try again later")]
    TooManyRequests(usize),
}

/// Keys, randomness, and what a message must have.
pub(super) struct Wire {
    security: GroupSecurity,
    keys: KeyStore,
    entropy: Box<dyn Entropy>,
}

impl core::fmt::Debug for Wire {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Wire").field("mode", &self.security.mode).finish_non_exhaustive()
    }
}

impl Wire {
    pub(super) fn new(
        security: GroupSecurity,
        allow_unsecured: bool,
        provider: Arc<dyn PubSubProvider>,
        entropy: Box<dyn Entropy>,
    ) -> Result<Self, ActionError> {
        let mut keys = KeyStore::new(provider, KeyStoreOptions::default());
        match security.mode {
            SecurityMode::None if !allow_unsecured => return Err(ActionError::Unsecured),
            SecurityMode::None => {}
            _ => keys.add_group(&security.security_group_id, &security.security_key_services),
        }
        Ok(Self { security, keys, entropy })
    }

    pub(super) fn keys(&mut self) -> &mut KeyStore {
        &mut self.keys
    }

    pub(super) fn entropy(&mut self) -> &mut dyn Entropy {
        &mut *self.entropy
    }

    /// Sends one request or response.
    pub(super) fn send(
        &mut self,
        about: About<'_>,
        responder: PublisherIdRef<'_>,
        header: &ActionHeader<'_>,
        part: &Part,
        now: Now,
        out: &mut Transmit,
    ) -> Result<(), SecurityError> {
        let writer_id = [part.writer_id];
        let network = ActionMessage::network_header(responder, &writer_id);
        let security = match self.security.mode {
            SecurityMode::None => None,
            mode => Some((self.security.security_group_id.as_str(), mode)),
        };
        write_message(&mut self.keys, &mut *self.entropy, now, out, about, network, security, |(out, _)| {
            ActionMessage::encode_payload(header, part, out)
        })
    }

    /// Checks and reads a datagram. `None`: it is no Action.
    pub(super) fn open<'a>(
        &mut self,
        datagram: &'a mut [u8],
        now: Now,
    ) -> Result<Option<ActionMessage<'a>>, ActionError> {
        let mut decoder = Decoder::new(datagram, LIMITS);
        let header = NetworkMessageHeader::decode(&mut decoder)?;
        let is_action =
            header.has_action_header && header.message_type == NetworkMessageType::DataSetMessages;
        if !is_action || header.is_chunk {
            return Ok(None);
        }
        let payload = datagram.len() - decoder.remaining();
        let range = self.check(datagram, payload, now)?;
        let datagram: &'a [u8] = datagram;
        let header = NetworkMessageHeader::decode(&mut Decoder::new(datagram, LIMITS))?;
        let payload = datagram.get(range).unwrap_or_default();
        Ok(Some(ActionMessage::decode(&header, payload, LIMITS)?))
    }

    /// Verifies, looks for replays, and only then decrypts.
    fn check(
        &mut self,
        datagram: &mut [u8],
        payload: usize,
        now: Now,
    ) -> Result<Range<usize>, SecurityError> {
        let header = NetworkMessageHeader::decode(&mut Decoder::new(datagram, LIMITS));
        let security = header.as_ref().ok().and_then(|header| header.security).unwrap_or_default();
        let wanted = self.security.mode;
        if security.mode < wanted {
            return Err(SecurityError::ModeInsufficient { actual: security.mode, wanted });
        }
        if wanted == SecurityMode::None {
            // Whatever it is secured with, there are no keys here.
            return match security.mode {
                SecurityMode::None => Ok(payload..datagram.len()),
                _ => Err(SecurityError::NoKeys),
            };
        }
        let group_id = self.security.security_group_id.as_str();
        let (token_id, mode) = (security.token_id, security.mode);
        let (ring, replay) = self.keys.receiving(group_id).ok_or(SecurityError::NoKeys)?;
        let Some(keys) = ring.and_then(|ring| ring.get(token_id)) else {
            self.keys.unknown_token(group_id, now.instant);
            return Err(SecurityError::UnknownToken(token_id));
        };
        let range = verify(keys, &security, datagram, payload)?;
        let nonce: Nonce = security.nonce.try_into().map_err(|_| SecurityError::TooShort)?;
        let sender = header.ok();
        let publisher_id = sender.and_then(|header| header.publisher_id).map(|id| id.to_owned());
        // Requests and responses carry the same PublisherId but come from different senders, and requests from many:
        // the random half of the nonce tells them apart.
        let [a, b, ..] = nonce;
        replay.accept(publisher_id, Some(u16::from_le_bytes([a, b])), token_id, nonce_number(&nonce))?;
        if mode == SecurityMode::SignAndEncrypt {
            decrypt(keys, &nonce, datagram.get_mut(range.clone()).ok_or(SecurityError::TooShort)?)?;
        }
        Ok(range)
    }
}
