//! Servers that send invalid data: no panic, no endless work, and the client recovers.

use crate::common::*;
use core::time::Duration;
use proptest::prelude::*;
use taktwerk_client::{ClientError, Event};
use taktwerk_crypto::{Entropy, SeededEntropy};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Bytes of all responses are changed, truncated and repeated at random.
    #[test]
    fn tampered_answers_never_panic(seed: u64, rate in 1u64..12) {
        let mut world = retrying().world();
        let mut entropy = SeededEntropy::new(seed);
        world.tamper = Some(Box::new(move |bytes: &mut Vec<u8>| {
            if entropy.below(rate) != 0 {
                return;
            }
            for _ in 0..=entropy.below(3) {
                let at = entropy.below(bytes.len() as u64) as usize;
                match entropy.below(5) {
                    // After the chunk header, so that the change reaches the decoders.
                    0..=2 => {
                        let at = (at.max(24)).min(bytes.len() - 1);
                        bytes[at] = bytes[at].wrapping_add(entropy.next_u64() as u8);
                    }
                    3 => bytes.truncate(at.max(1)),
                    _ => bytes[at] ^= entropy.next_u64() as u8,
                }
            }
        }));
        let now = world.now;
        let handle = world.client.create_subscription(params(), now);
        world.client.add_items(handle, (0..20).map(item), now).unwrap();
        world.client.connect(target(), now).unwrap();
        for round in 0..30u32 {
            world.run(Duration::from_millis(300));
            if world.client.is_up() {
                let _ = world.client.request(&mut read(0..5), None, world.now);
                let _ = world.client.operate(read(0..50), world.now);
                let ids: Vec<u32> = world.server.subscriptions.keys().copied().collect();
                for id in ids {
                    world.server.change(id, round % 20, f64::from(round));
                }
            }
            // Endpoints that the change made unacceptable are not retried.
            if world.take_events().iter().any(|event| matches!(event, Event::Disconnected(Some(ClientError::Security(_))))) {
                return Ok(());
            }
            world.values.clear();
            world.responses.clear();
        }
        // Without tampering, it recovers.
        world.tamper = None;
        world.seconds(120);
        let events = world.take_events();
        prop_assert!(world.client.is_up(), "{:?} {events:?}", world.client);
    }

    /// Random bytes instead of a response.
    #[test]
    fn random_bytes_never_panic(after in 0u32..8, bytes in prop::collection::vec(any::<u8>(), 1..400)) {
        let mut world = Setup::default().world();
        let mut left = after;
        world.tamper = Some(Box::new(move |wire: &mut Vec<u8>| {
            if left == 0 {
                wire.clone_from(&bytes);
            }
            left = left.saturating_sub(1);
        }));
        world.client.connect(target(), world.now).unwrap();
        world.seconds(3);
    }
}
