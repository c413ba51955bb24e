//! Verifies and decrypts datagrams.

use super::{Drop, Required, Sink, Subscriber, SubscriberEvent};
use crate::security::nonce_number;
use crate::security::{SecurityError, decrypt, verify};
use crate::time::Now;
use crate::uadp::SecurityMode;
use crate::uadp::header::{NetworkMessageHeader, NetworkMessageType};
use core::ops::Range;
use taktwerk_types::{DecodeLimits, Decoder, UtcTime};

/// Limits for untrusted input: a message is not larger than brokers accept.
pub(super) const LIMITS: DecodeLimits = DecodeLimits::DEFAULT;

/// A datagram whose security was verified.
#[derive(Debug)]
pub(super) struct Opened {
    /// Range of the decrypted payload.
    pub(super) payload: Range<usize>,
    /// Security of the message.
    pub(super) security: Option<Required>,
}

/// Checks that a timestamp is close enough to now.
pub(super) fn fresh(timestamp: UtcTime, now: Now, max_nanos: u64) -> Result<(), SecurityError> {
    let off_ticks = now.utc.ticks().saturating_sub(timestamp.ticks());
    // Ticks of 100 ns.
    if off_ticks.unsigned_abs() > max_nanos / 100 {
        return Err(SecurityError::Stale { off_millis: off_ticks / 10_000 });
    }
    Ok(())
}

impl Subscriber {
    /// Verifies a UADP message. `None` if no reader needs it.
    pub(super) fn open(
        &mut self,
        connection: usize,
        datagram: &mut [u8],
        now: Now,
    ) -> Result<Option<Opened>, Drop> {
        let mut decoder = Decoder::new(datagram, LIMITS);
        let header = NetworkMessageHeader::decode(&mut decoder)?;
        let payload = datagram.len() - decoder.remaining();
        let security = header.security.filter(|security| security.mode != SecurityMode::None);
        let wanting = self.readers.iter().filter(|reader| {
            reader.index.connection == connection
                && reader.wants_sender(header.publisher_id, header.group, header.data_set_class_id)
        });
        // The strongest requirement of all possible readers, and the groups whose keys could open it.
        let mut groups: Vec<&Required> = Vec::new();
        let (mut unsecured_wanted, mut any) = (false, false);
        for reader in wanting {
            any = true;
            match &reader.security {
                None => unsecured_wanted = true,
                Some(required) if groups.contains(&required) => {}
                Some(required) => groups.push(required),
            }
        }
        let is_data = header.message_type == NetworkMessageType::DataSetMessages;
        let Some(security) = security else {
            // Discovery messages are unsecured unless their sender secures them.
            if !is_data || unsecured_wanted || !any {
                return Ok(
                    (any || !is_data).then_some(Opened { payload: payload..datagram.len(), security: None })
                );
            }
            let wanted = groups.iter().map(|required| required.mode).max().unwrap_or_default();
            return Err(SecurityError::ModeInsufficient { actual: SecurityMode::None, wanted }.into());
        };
        let mut failure = None;
        let mut opened = None;
        for required in groups {
            if security.mode < required.mode {
                let error = SecurityError::ModeInsufficient { actual: security.mode, wanted: required.mode };
                failure.get_or_insert(error);
                continue;
            }
            let Some((ring, replay)) = self.keys.receiving(&required.group_id) else { continue };
            let unknown = SecurityError::UnknownToken(security.token_id);
            let accepted = match ring {
                Some(ring) => ring.accepted(security.token_id, now.instant),
                None => Err(unknown.clone()),
            };
            let keys = match accepted {
                Ok(keys) => keys,
                Err(error) => {
                    if error == unknown {
                        self.keys.unknown_token(&required.group_id, now.instant);
                    }
                    failure.get_or_insert(error);
                    continue;
                }
            };
            let range = match verify(keys, &security, datagram, payload) {
                Ok(range) => range,
                Err(error) => {
                    failure = Some(error);
                    continue;
                }
            };
            if let (Some(max), Some(timestamp), true) =
                (self.options.message_age_max_nanos, header.timestamp, is_data)
            {
                fresh(timestamp, now, max)?;
            }
            // Only now: an unverified message must not move the window.
            let nonce = security.nonce.try_into().map_err(|_| SecurityError::TooShort)?;
            // A probe names the publisher, but was sent by another subscriber, so its nonce is not in the publisher's
            // sequence. A replayed probe only delays ours.
            if header.message_type != NetworkMessageType::DiscoveryProbe {
                let group_id = header.group.and_then(|group| group.writer_group_id);
                let publisher_id = header.publisher_id.map(|id| id.to_owned());
                replay.accept(publisher_id, group_id, security.token_id, nonce_number(&nonce))?;
            }
            let encrypted = security.mode == SecurityMode::SignAndEncrypt;
            let by = Required { group_id: required.group_id.clone(), mode: security.mode };
            opened = Some((range, nonce, security.token_id, encrypted, by));
            break;
        }
        let Some((range, nonce, token_id, encrypted, by)) = opened else {
            return match failure {
                Some(error) => Err(error.into()),
                // No keys are configured for it.
                None => {
                    self.counters.unwanted_secured += u64::from(unsecured_wanted);
                    Ok(None)
                }
            };
        };
        if security.force_key_reset {
            self.keys.key_reset(&by.group_id, token_id, now.instant);
        }
        if encrypted {
            let ring = self.keys.ring(&by.group_id).ok_or(SecurityError::NoKeys)?;
            let keys = ring.accepted(token_id, now.instant)?;
            decrypt(keys, &nonce, datagram.get_mut(range.clone()).ok_or(SecurityError::TooShort)?)?;
        }
        Ok(Some(Opened { payload: range, security: Some(by) }))
    }

    pub(super) fn dropped(&mut self, connection: usize, datagram: &[u8], reason: Drop, sink: &mut dyn Sink) {
        // Undecodable fields are counted at their reader.
        if !matches!(reason, Drop::Fields(_)) {
            self.count_dropped(connection, datagram, matches!(reason, Drop::Security(_)));
        }
        match &reason {
            Drop::Security(error) => {
                self.counters.security_errors += 1;
                self.counters.replays += u64::from(*error == SecurityError::Replayed);
            }
            _ => self.counters.malformed += 1,
        }
        sink.event(SubscriberEvent::Dropped { connection, reason });
    }
}
