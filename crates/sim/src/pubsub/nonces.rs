//! An independent observer of publishers: a nonce is never used twice with one key (Part 14 §7.2.4.4.3.2), not even by
//! a restarted process, and nonce numbers increase, because receivers treat others as replays.

use std::collections::BTreeMap;
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_pubsub::uadp::header::NetworkMessageHeader;
use taktwerk_types::{DecodeLimits, Decoder};

/// Number of keys remembered. A publisher moves on to the next key and never returns to an old one.
const TOKENS_MAX: usize = 16;

/// What one publisher has sent, over all runs of its process.
#[derive(Debug, Default)]
pub(crate) struct Nonces {
    /// The last nonce number, by key id.
    last: BTreeMap<u32, u32>,
}

impl Nonces {
    /// Checks a NetworkMessage that leaves the publisher; `mode` is the mode of its group.
    pub(crate) fn sent(&mut self, bytes: &[u8], mode: SecurityMode) -> Result<(), String> {
        let header = NetworkMessageHeader::decode(&mut Decoder::new(bytes, DecodeLimits::DEFAULT));
        let header = header.map_err(|error| format!("a NetworkMessage cannot be read: {error}"))?;
        let security = header.security.filter(|security| security.mode != SecurityMode::None);
        let Some(security) = security else {
            return match mode {
                SecurityMode::None => Ok(()),
                mode => Err(format!("a NetworkMessage is not secured, but its group requires {mode:?}")),
            };
        };
        if security.mode < mode {
            return Err(format!("a NetworkMessage is {:?}, but its group requires {mode:?}", security.mode));
        }
        let number = security.nonce.get(4..8).and_then(|bytes| bytes.first_chunk());
        let Some(number) = number.map(|bytes| u32::from_le_bytes(*bytes)) else {
            return Err(format!("a nonce has {} bytes", security.nonce.len()));
        };
        let token = security.token_id;
        if let Some(last) = self.last.get(&token).filter(|last| number <= **last) {
            return Err(format!("nonce {number} of key {token} follows {last}"));
        }
        self.last.insert(token, number);
        while self.last.len() > TOKENS_MAX {
            self.last.pop_first();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with a SecurityHeader (Part 14 Table 154), as bytes: version 1 with extended flags, signed.
    fn message(token: u32, number: u32) -> Vec<u8> {
        let mut bytes = vec![0x81, 0x10, 0x03];
        bytes.extend(token.to_le_bytes());
        bytes.push(8);
        bytes.extend([9; 4]);
        bytes.extend(number.to_le_bytes());
        bytes
    }

    #[test]
    fn numbers_increase_for_each_key() {
        let mut nonces = Nonces::default();
        let mut sent = |token, number| nonces.sent(&message(token, number), SecurityMode::Sign);
        assert_eq!(sent(1, 5), Ok(()));
        assert_eq!(sent(1, 6), Ok(()));
        assert_eq!(sent(2, 1), Ok(()));
        assert_eq!(sent(1, 6).unwrap_err(), "nonce 6 of key 1 follows 6");
        assert!(sent(2, 1).is_err() && sent(1, 9).is_ok());
    }

    #[test]
    fn unsecured_messages_of_secured_groups_are_reported() {
        let mut nonces = Nonces::default();
        assert!(nonces.sent(&[0x01], SecurityMode::None).is_ok());
        assert!(nonces.sent(&[0x01], SecurityMode::Sign).unwrap_err().contains("not secured"));
        let signed = nonces.sent(&[0x81, 0x10, 0x01, 1, 0, 0, 0, 0], SecurityMode::SignAndEncrypt);
        assert!(signed.unwrap_err().contains("is Sign"));
    }
}
