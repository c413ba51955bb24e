//! What both engines do with datagrams: security in both directions.

use super::message::{ActionMessage, Part};
use super::responder::ActionTarget;
use crate::config::GroupSecurity;
use crate::publisher::write_message;
use crate::publisher_id::PublisherIdRef;
use crate::security::{
    KeyRequest, KeyStore, KeyStoreOptions, Nonce, SecurityError, SecurityKeys, decrypt, nonce_number, verify,
};
use crate::time::Now;
use crate::transmit::{About, DatagramKind, Transmit};
use crate::uadp::SecurityMode;
use crate::uadp::action::{ActionBody, ActionHeader};
use crate::uadp::header::{NetworkMessageHeader, NetworkMessageType};
use core::ops::Range;
use std::sync::Arc;
use taktwerk_crypto::{Entropy, PubSubProvider};
use taktwerk_schema::ActionState;
use taktwerk_types::{DecodeError, DecodeLimits, Decoder, Instant, StatusCode, Variant};

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

/// What a driver does with a requestor and a responder alike.
pub trait ActionEngine {
    /// The keys of its security group.
    #[doc(hidden)]
    fn key_store(&mut self) -> &mut KeyStore;

    /// When [`Self::poll`] has something to do.
    #[must_use]
    fn poll_timeout(&self) -> Option<Instant>;

    /// Sends and repeats what is due, and gives up what took too long.
    ///
    /// # Errors
    /// The first message that could not be secured; it is tried again in the next interval.
    fn poll(&mut self, now: Now, out: &mut Transmit) -> Result<(), SecurityError>;

    /// A call of GetSecurityKeys to make now.
    fn poll_key_request(&mut self, now: Now) -> Option<KeyRequest> {
        self.key_store().poll_request(now.instant)
    }

    /// When [`Self::poll_key_request`] has something.
    fn key_timeout(&mut self) -> Option<Instant> {
        self.key_store().poll_timeout()
    }

    /// The outcome of such a call, or keys that were pushed.
    ///
    /// # Errors
    /// The group is not known, or the keys cannot be used.
    fn set_keys(
        &mut self,
        security_group_id: &str,
        outcome: Result<&SecurityKeys, StatusCode>,
        now: Now,
    ) -> Result<(), SecurityError> {
        self.key_store().answer(security_group_id, outcome, now.instant)
    }
}

/// A message about one request: a repeated one, or a response.
pub(super) struct Sending<'a> {
    pub(super) connection: usize,
    pub(super) kind: DatagramKind,
    /// Where to, if not to the responder's own address.
    pub(super) address: Option<&'a str>,
    pub(super) responder: PublisherIdRef<'a>,
    pub(super) header: ActionHeader<'a>,
    pub(super) target: ActionTarget,
    pub(super) request_id: u16,
    pub(super) state: ActionState,
    pub(super) status: StatusCode,
    pub(super) fields: Vec<Variant>,
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
        sending: Sending<'_>,
        now: Now,
        out: &mut Transmit,
    ) -> Result<(), SecurityError> {
        let about = About {
            connection: sending.connection,
            writer_group: None,
            writer: None,
            kind: sending.kind,
            due: now.instant,
            address: sending.address,
        };
        let ActionTarget { data_set_writer_id: writer_id, action_target_id: target_id } = sending.target;
        let body = ActionBody { target_id, request_id: sending.request_id, state: sending.state };
        let part = Part { writer_id, body, status: sending.status, fields: sending.fields };
        let writer_ids = [writer_id];
        let network = ActionMessage::network_header(sending.responder, &writer_ids);
        let security = match self.security.mode {
            SecurityMode::None => None,
            mode => Some((self.security.security_group_id.as_str(), mode)),
        };
        write_message(&mut self.keys, &mut *self.entropy, now, out, about, network, security, |(out, _)| {
            ActionMessage::encode_payload(&sending.header, &part, out)
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
