//! Many messages over many keys: no nonce twice, nothing valid lost, nothing forged or replayed accepted
//! (security acceptance 34). 10^7 messages with optimization, fewer without.
#![allow(clippy::unwrap_used)] // a test may

use std::collections::BTreeSet;
use std::sync::Arc;
use taktwerk_crypto::pubsub_dummy::DummyPubSubProvider;
use taktwerk_crypto::{Entropy, PubSubSecurityPolicy, SeededEntropy};
use taktwerk_pubsub::security::{KeyRing, KeyService, KeyStore, KeyStoreOptions, Replay, seal, verify};
use taktwerk_pubsub::uadp::{SecurityHeader, SecurityMode};
use taktwerk_schema::SecurityGroupDataType;
use taktwerk_types::Instant;

const MESSAGES: u64 = if cfg!(debug_assertions) { 200_000 } else { 10_000_000 };
const KEYS: u64 = 100;

/// Sender, token, number, message and nonce.
type Sent = (usize, u32, u32, Vec<u8>, [u8; 8]);

#[test]
fn nonces_and_rotations() {
    // One message in a millisecond; the keys of the service last a hundredth of the test.
    let lifetime = MESSAGES / KEYS;
    let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
    let mut entropy = SeededEntropy::new(5);
    let mut service = KeyService::new();
    let group = SecurityGroupDataType {
        security_group_id: "g".into(),
        security_policy_uri: PubSubSecurityPolicy::Aes256Ctr.uri().into(),
        key_lifetime: lifetime as f64,
        max_future_key_count: 4,
        max_past_key_count: 2,
        ..SecurityGroupDataType::default()
    };
    service.add_group(&group, &mut entropy, at(0)).unwrap();
    let store = || KeyStore::new(Arc::new(DummyPubSubProvider), KeyStoreOptions::default());
    // Two publishers with several groups and one subscriber, each with its own copy of the keys.
    let mut stores = [store(), store(), store()];
    stores.iter_mut().for_each(|store| store.add_group("g", &[]));
    let mut entropies: [Box<dyn Entropy>; 2] =
        [Box::new(SeededEntropy::new(1)), Box::new(SeededEntropy::new(2))];
    let mut last = [None::<(u32, u32)>; 2];
    let mut prefixes = BTreeSet::new();
    let mut windows: [Option<(u32, Replay)>; 2] = [None, None];
    let mut delayed: Option<Sent> = None;
    let (mut lost, mut rotations) = (0u64, 0u64);
    for millis in 0..MESSAGES {
        let now = at(millis);
        for store in &mut stores {
            // The key service is away for a while now and then.
            let is_away = (millis / lifetime) % 10 == 7;
            while let Some(request) = store.poll_request(now) {
                if is_away {
                    let bad = taktwerk_types::StatusCode::BAD_SERVER_NOT_CONNECTED;
                    store.answer("g", Err(bad), now).unwrap();
                } else {
                    let count = request.requested_key_count;
                    let keys = service.get_security_keys("g", 0, count, true, true, &mut entropy, now);
                    store.answer("g", Ok(&keys.unwrap()), now).unwrap();
                }
            }
        }
        let sender = (millis % 2) as usize;
        let ring: &mut KeyRing = stores[sender].ring_mut("g").unwrap();
        let (token, keys, nonce) = ring.next_nonce(&mut *entropies[sender], now).unwrap();
        let number = u32::from_le_bytes([nonce[4], nonce[5], nonce[6], nonce[7]]);
        let prefix = [nonce[0], nonce[1], nonce[2], nonce[3]];
        // Within a key the numbers of a sender only grow, and its prefix is its own: so no nonce comes twice.
        match last[sender] {
            Some((before, previous)) if before == token => assert_eq!(number, previous + 1),
            Some(_) => {
                rotations += 1;
                assert_eq!(number, 1);
                assert!(prefixes.insert((token, prefix)), "two senders share a prefix");
            }
            None => assert!(prefixes.insert((token, prefix))),
        }
        last[sender] = Some((token, number));
        let mut message = vec![0x5a; 12 + 20 + 32];
        seal(keys, SecurityMode::SignAndEncrypt, &nonce, &mut message, 12).unwrap();
        // One message in a thousand comes late, over the change of keys too.
        let arriving = if millis % 1000 == 999 {
            delayed.replace((sender, token, number, message, nonce))
        } else {
            Some((sender, token, number, message, nonce))
        };
        let Some((sender, token, number, message, nonce)) = arriving else { continue };
        let ring = stores[2].ring_mut("g").unwrap();
        let _ = ring.advance(now);
        let Some(keys) = ring.get(token) else {
            lost += 1;
            continue;
        };
        let header = SecurityHeader {
            mode: SecurityMode::SignAndEncrypt,
            token_id: token,
            nonce: &nonce,
            ..SecurityHeader::default()
        };
        if millis % 97 == 0 {
            let mut forged = message.clone();
            forged[(millis % 64) as usize] ^= 1;
            assert!(verify(keys, &header, &forged, 12).is_err());
        }
        assert_eq!(verify(keys, &header, &message, 12), Ok(12..32));
        match &mut windows[sender] {
            Some((of, window)) if *of == token => {
                let accepted = window.accept(number);
                // Late by more than the window: refused, which is no loss of a message that came in time.
                assert!(accepted || millis % 1000 == 999, "{number} of {token}");
                assert!(!window.accept(number), "a replay");
            }
            Some((of, _)) if *of > token => {}
            window => *window = Some((token, Replay::new(number))),
        }
    }
    assert_eq!(lost, 0);
    assert!(rotations >= 2 * (KEYS - 2), "{rotations}");
}
