//! Security of the datagrams of both engines.

use super::form::Form;
use super::message::{self, ActionMessage, KnownForm};
use super::responder::ActionTarget;
use crate::config::GroupSecurity;
use crate::network_message::{Security, write_announcement, write_message};
use crate::publisher_id::{PublisherId, PublisherIdRef};
use crate::security::{
    KeyRequest, KeyStore, KeyStoreOptions, Nonce, ReplayFloor, SecurityError, SecurityKeys, decrypt,
    nonce_number, verify,
};
use crate::time::Now;
use crate::transmit::{About, DatagramKind, Transmit};
use crate::uadp::SecurityMode;
use crate::uadp::action::{ActionBody, ActionHeader};
use crate::uadp::announcement::{Announcement, NumberedAnnouncement};
use crate::uadp::chunk::{Chunk, Reassembler, ReassemblyLimits};
use crate::uadp::header::{NetworkMessageHeader, NetworkMessageType};
use crate::uadp::probe::Probe;
use core::ops::Range;
use std::sync::Arc;
use taktwerk_crypto::{Entropy, PubSubProvider};
use taktwerk_schema::ActionState;
use taktwerk_types::codec::Decode;
use taktwerk_types::{DecodeError, DecodeLimits, Decoder, Instant, StatusCode, Variant};

/// Limits for untrusted input.
const LIMITS: DecodeLimits = DecodeLimits::DEFAULT;

/// Why a message was not sent or not accepted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ActionError {
    /// The engine has no message security and was not explicitly allowed to work without.
    #[error("Actions without message security: configure a security group, or allow it explicitly")]
    Unsecured,
    /// It is malformed.
    #[error("malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// The message is not secured as required, forged, or replayed.
    #[error("security: {0}")]
    Security(#[from] SecurityError),
    /// JSON has no message security.
    #[error(
        "JSON messages cannot be secured: protect the transport (mqtts+json://…) and allow it explicitly, or use UADP"
    )]
    JsonSecured,
    /// It is not a valid JSON NetworkMessage.
    #[error("JSON: {0}")]
    Json(String),
    /// A DataSetWriter's DataSetFieldContentMask asks for DataValues.
    #[error(
        "DataSetWriter {0}: fields of Actions are Variants (DataSetFieldContentMask 0) or RawData, not DataValues \
         (Part 14 §7.2.4.5.9)"
    )]
    DataValues(u16),
    /// The fields cannot be RawData.
    #[error("DataSetWriter {writer_id}: fields cannot be RawData: {reason}")]
    NoRawData {
        /// The DataSetWriter.
        writer_id: u16,
        /// The field and the reason.
        reason: String,
    },
    /// The maximum number of requests is waiting for responses.
    #[error("{0} requests are waiting for their responses: try again later")]
    TooManyRequests(usize),
}

/// Message mapping (Part 14 §7.2.4.4.2, §7.2.5.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ActionMapping {
    /// Binary.
    #[default]
    Uadp,
    /// Text, over brokers, without message security.
    #[cfg(feature = "json")]
    Json,
}

/// The common interface of requestor and responder for a driver.
pub trait ActionEngine {
    /// The keys of its security group.
    #[doc(hidden)]
    fn key_store(&mut self) -> &mut KeyStore;

    /// When [`Self::poll`] has something to do.
    #[must_use]
    fn poll_timeout(&self) -> Option<Instant>;

    /// Sends and repeats what is due, and ends what has timed out.
    ///
    /// # Errors
    /// The first message that could not be secured; it is tried again in the next interval.
    fn poll(&mut self, now: Now, out: &mut Transmit) -> Result<(), SecurityError>;

    /// Sends announcements without a probe: at startup, and after each connection to a broker.
    fn announce(&mut self, now: Now) {
        let _ = now;
    }

    /// A call of GetSecurityKeys to make now.
    fn poll_key_request(&mut self, now: Now) -> Option<KeyRequest> {
        self.key_store().poll_request(now.instant)
    }

    /// When [`Self::poll_key_request`] has something.
    fn key_timeout(&mut self) -> Option<Instant> {
        self.key_store().poll_timeout()
    }

    /// Takes the result of such a call, or keys that were pushed.
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

    /// Continues from the messages received before a restart; ignored for groups that already have state. Call it
    /// before there are keys.
    fn not_below(&mut self, floor: ReplayFloor) {
        if self.key_store().replay_floor().is_empty() {
            self.key_store().restore(floor);
        }
    }

    /// The received messages, for [`Self::not_below`] after a restart.
    fn replay_floor(&mut self) -> ReplayFloor {
        self.key_store().replay_floor()
    }

    /// The keys of a group have changed: fetch them at once.
    fn refresh_keys(&mut self, security_group_id: &str, now: Now) {
        self.key_store().refresh(security_group_id, now.instant);
    }
}

/// A message about one request: a request or a response.
pub(super) struct Sending<'a> {
    pub(super) connection: usize,
    pub(super) kind: DatagramKind,
    /// The address, if not the responder's own.
    pub(super) address: Option<&'a str>,
    pub(super) responder: PublisherIdRef<'a>,
    pub(super) header: ActionHeader<'a>,
    pub(super) target: ActionTarget,
    pub(super) request_id: u16,
    pub(super) state: ActionState,
    pub(super) status: StatusCode,
    pub(super) fields: &'a [Variant],
    /// The form of the fields, if known.
    pub(super) form: Option<&'a Form>,
}

/// A datagram whose security was verified.
pub(super) enum Opened {
    Action(ActionMessage),
    /// A probe for a publisher's data.
    Probe(Option<PublisherId>, Probe),
    /// An announcement of a publisher.
    Announcement(PublisherId, Box<Announcement>),
}

/// Keys, randomness, and the required security.
pub(super) struct Wire {
    mapping: ActionMapping,
    /// JSON messages sent so far.
    #[cfg(feature = "json")]
    sent: u64,
    security: GroupSecurity,
    reassembler: Reassembler,
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
        mapping: ActionMapping,
        security: GroupSecurity,
        allow_unsecured: bool,
        provider: Arc<dyn PubSubProvider>,
        entropy: Box<dyn Entropy>,
    ) -> Result<Self, ActionError> {
        let mut keys = KeyStore::new(provider, KeyStoreOptions::default());
        match security.mode {
            #[cfg(feature = "json")]
            _ if mapping == ActionMapping::Json
                && (security.mode != SecurityMode::None || !allow_unsecured) =>
            {
                return Err(ActionError::JsonSecured);
            }
            SecurityMode::None if !allow_unsecured => return Err(ActionError::Unsecured),
            SecurityMode::None => {}
            _ => keys.add_group(&security.security_group_id, &security.security_key_services),
        }
        Ok(Self {
            mapping,
            #[cfg(feature = "json")]
            sent: 0,
            security,
            reassembler: Reassembler::new(ReassemblyLimits::default()),
            keys,
            entropy,
        })
    }

    /// A PublisherId in comparable form: JSON does not carry its type.
    pub(super) fn known(&self, id: &PublisherId) -> PublisherId {
        match (self.mapping, id) {
            #[cfg(feature = "json")]
            (ActionMapping::Json, id) => PublisherId::String(id.to_string().into()),
            (_, id) => id.clone(),
        }
    }

    /// A unique MessageId.
    #[cfg(feature = "json")]
    fn message_id(&mut self) -> String {
        self.sent = self.sent.wrapping_add(1);
        format!("{:016x}-{:x}", self.entropy.next_u64(), self.sent)
    }

    pub(super) fn keys(&mut self) -> &mut KeyStore {
        &mut self.keys
    }

    /// The parts needed to send a message: keys, randomness and security.
    pub(super) fn sending(&mut self) -> (&mut KeyStore, &mut dyn Entropy, Security<'_>) {
        (&mut self.keys, &mut *self.entropy, security_of(&self.security))
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
        #[cfg(feature = "json")]
        if self.mapping == ActionMapping::Json {
            let id = self.message_id();
            let message = super::json::Outgoing {
                message_id: &id,
                responder: sending.responder,
                header: &sending.header,
                target: sending.target,
                request_id: sending.request_id,
                state: sending.state,
                status: sending.status,
                fields: sending.fields,
                form: sending.form,
            };
            return out.push(about, |out| {
                message.encode(now, out);
                Ok(())
            });
        }
        let ActionTarget { data_set_writer_id: writer_id, action_target_id: target_id } = sending.target;
        let body = ActionBody { target_id, request_id: sending.request_id, state: sending.state };
        let writer_ids = [writer_id];
        let network = message::network_header(sending.responder, &writer_ids);
        let security = security_of(&self.security);
        write_message(&mut self.keys, &mut *self.entropy, now, out, about, network, security, |(out, _)| {
            message::encode_payload(&sending.header, &body, sending.status, sending.fields, sending.form, out)
        })
    }

    /// Sends an announcement, in chunks if it is longer than `room`.
    pub(super) fn announce(
        &mut self,
        about: About<'_>,
        publisher_id: Option<&PublisherId>,
        announcement: &NumberedAnnouncement,
        room: Option<usize>,
        now: Now,
        out: &mut Transmit,
    ) -> Result<(), SecurityError> {
        #[cfg(feature = "json")]
        if self.mapping == ActionMapping::Json {
            let id = self.message_id();
            let publisher_id = publisher_id.map(ToString::to_string).unwrap_or_default();
            return out.push(about, |out| {
                super::json::announce(&id, &publisher_id, &announcement.announcement, now, out);
                Ok(())
            });
        }
        let (keys, entropy) = (&mut self.keys, &mut *self.entropy);
        let security = security_of(&self.security);
        write_announcement(keys, entropy, now, out, about, publisher_id, announcement, security, room)
    }

    /// Verifies and parses a datagram. `None` if it is not related to Actions or is incomplete.
    pub(super) fn open(
        &mut self,
        datagram: &mut [u8],
        now: Now,
        form: KnownForm<'_>,
    ) -> Result<Option<Opened>, ActionError> {
        #[cfg(feature = "json")]
        if self.mapping == ActionMapping::Json {
            use super::json::{Received, receive};
            let received = receive(datagram, form).map_err(|error| ActionError::Json(error.to_string()))?;
            return Ok(received.map(|received| match received {
                Received::Action(message) => Opened::Action(message),
                Received::Announcement(id, announcement) => Opened::Announcement(id, announcement),
            }));
        }
        let mut decoder = Decoder::new(datagram, LIMITS);
        let header = NetworkMessageHeader::decode(&mut decoder)?;
        let payload = datagram.len() - decoder.remaining();
        let (kind, is_chunk) = (header.message_type, header.is_chunk);
        let mode = header.security.map(|security| security.mode).unwrap_or_default();
        match kind {
            NetworkMessageType::DataSetMessages if !header.has_action_header || is_chunk => return Ok(None),
            NetworkMessageType::DataSetMessages => {}
            NetworkMessageType::DiscoveryProbe if is_chunk => return Ok(None),
            // An unsecured probe is accepted: the answer is secured.
            NetworkMessageType::DiscoveryProbe if mode == SecurityMode::None => {
                let probe = Probe::decode(&mut decoder)?;
                return Ok(Some(Opened::Probe(header.publisher_id.map(|id| id.to_owned()), probe)));
            }
            NetworkMessageType::DiscoveryProbe => {}
            // Announcements with less security are not from our responders.
            NetworkMessageType::DiscoveryAnnouncement if mode < self.security.mode => return Ok(None),
            NetworkMessageType::DiscoveryAnnouncement => {}
        }
        let range = self.check(datagram, payload, now)?;
        let header = NetworkMessageHeader::decode(&mut Decoder::new(datagram, LIMITS))?;
        let payload = datagram.get(range).unwrap_or_default();
        let mut decoder = Decoder::new(payload, LIMITS);
        if kind == NetworkMessageType::DataSetMessages {
            return Ok(Some(Opened::Action(message::decode(&header, payload, LIMITS, form)?)));
        }
        if kind == NetworkMessageType::DiscoveryProbe {
            let publisher_id = header.publisher_id.map(|id| id.to_owned());
            return Ok(Some(Opened::Probe(publisher_id, Probe::decode(&mut decoder)?)));
        }
        let Some(publisher_id) = header.publisher_id else { return Ok(None) };
        let announcement = if is_chunk {
            self.reassembler.expire(now.instant);
            let chunk = Chunk::decode(&mut decoder)?;
            let whole = self.reassembler.push(publisher_id, None, None, &chunk, now.instant);
            let Some(whole) = whole else { return Ok(None) };
            NumberedAnnouncement::decode(&mut Decoder::new(&whole, LIMITS))?
        } else {
            NumberedAnnouncement::decode(&mut decoder)?
        };
        Ok(Some(Opened::Announcement(publisher_id.to_owned(), Box::new(announcement.announcement))))
    }

    /// Verifies, checks for replays, and only then decrypts.
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
            // There are no keys for this security.
            return match security.mode {
                SecurityMode::None => Ok(payload..datagram.len()),
                _ => Err(SecurityError::NoKeys),
            };
        }
        let group_id = self.security.security_group_id.as_str();
        let (token_id, mode, resets) = (security.token_id, security.mode, security.force_key_reset);
        let (ring, replay) = self.keys.receiving(group_id).ok_or(SecurityError::NoKeys)?;
        let unknown = SecurityError::UnknownToken(token_id);
        let accepted = ring.map_or(Err(unknown.clone()), |ring| ring.accepted(token_id, now.instant));
        let keys = match accepted {
            Ok(keys) => keys,
            Err(error) => {
                if error == unknown {
                    self.keys.unknown_token(group_id, now.instant);
                }
                return Err(error);
            }
        };
        let range = verify(keys, &security, datagram, payload)?;
        let nonce: Nonce = security.nonce.try_into().map_err(|_| SecurityError::TooShort)?;
        let sender = header.ok();
        let publisher_id = sender.and_then(|header| header.publisher_id).map(|id| id.to_owned());
        // Requests, responses, probes and announcements carry the same PublisherId but have different senders, and
        // requests come from many: the random half of the nonce distinguishes them.
        let [a, b, ..] = nonce;
        replay.accept(publisher_id, Some(u16::from_le_bytes([a, b])), token_id, nonce_number(&nonce))?;
        if mode == SecurityMode::SignAndEncrypt {
            decrypt(keys, &nonce, datagram.get_mut(range.clone()).ok_or(SecurityError::TooShort)?)?;
        }
        if resets {
            self.keys.key_reset(group_id, token_id, now.instant);
        }
        Ok(range)
    }
}

fn security_of(security: &GroupSecurity) -> Security<'_> {
    match security.mode {
        SecurityMode::None => None,
        mode => Some((security.security_group_id.as_str(), mode)),
    }
}
