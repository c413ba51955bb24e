//! Keys that the key service has invalidated (Part 14 §8.4.2, §7.2.4.4.2), in virtual time.

use crate::common::{Got, at, configuration, values};
use std::sync::Arc;
use taktwerk_crypto::{PubSubSecurityPolicy, SeededEntropy};
use taktwerk_crypto_dummy::DummyPubSubProvider;
use taktwerk_pubsub::config::{Configuration, DataSetWriter, WriterGroup};
use taktwerk_pubsub::security::{KeyService, KeyStoreOptions, SecurityError};
use taktwerk_pubsub::subscriber::Drop;
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_pubsub::uadp::header::NetworkMessageHeader;
use taktwerk_pubsub::{
    Publisher, PublisherId, PublisherOptions, Subscriber, SubscriberEvent, SubscriberOptions, Transmit,
};
use taktwerk_schema::SecurityGroupDataType;
use taktwerk_types::Decoder;

/// Lifetime of a key in milliseconds.
const LIFETIME: u64 = 10_000;
/// When the keys are invalidated.
const INVALIDATED: u64 = 3_000;

/// A key service, a publisher, a subscriber, and an attacker who has the initial keys.
struct World {
    service: KeyService,
    entropy: SeededEntropy,
    publisher: Publisher,
    subscriber: Subscriber,
    thief: Publisher,
    got: Got,
    /// Times of the subscriber's key requests.
    asked: Vec<u64>,
    /// Times of the publisher's key requests.
    publisher_asked: Vec<u64>,
    /// Genuine messages sent, and those that announce new keys.
    sent: u64,
    announced: u64,
}

impl World {
    fn new(invalidated_nanos: u64) -> Self {
        let mut group = WriterGroup::dynamic("g", 1, 10.0);
        group.security.mode = SecurityMode::SignAndEncrypt;
        group.security.security_group_id = "group".into();
        let configuration = configuration(group, 1, DataSetWriter::dynamic);
        let mut key_store = KeyStoreOptions::default();
        key_store.invalidated_nanos = invalidated_nanos;
        let sender = |seed, publisher_id| {
            let mut configuration = configuration.clone();
            // With its own id, so that its numbers do not move the window of the genuine one.
            configuration.connections[0].publisher_id = Some(PublisherId::UInt16(publisher_id));
            let mut options = PublisherOptions::default();
            options.key_store = key_store;
            let entropy = Box::new(SeededEntropy::new(seed));
            let mut sender =
                Publisher::new(configuration, options, Arc::new(DummyPubSubProvider), entropy).unwrap();
            sender.start(at(0).instant, at(0));
            sender
        };
        let (publisher, thief) = (sender(1, 2234), sender(2, 7));
        let mut options = SubscriberOptions::default();
        options.key_store = key_store;
        let mut reading = Configuration::subscriber_of(&configuration);
        reading.connections[0].reader_groups[0].readers[0].publisher_id = None;
        let mut subscriber = Subscriber::new(reading, options, Arc::new(DummyPubSubProvider)).unwrap();
        let mut got = Got::default();
        subscriber.start(at(0), &mut got);
        let (mut service, mut entropy) = (KeyService::new(), SeededEntropy::new(3));
        let group = SecurityGroupDataType {
            security_group_id: "group".into(),
            security_policy_uri: PubSubSecurityPolicy::Aes256Ctr.uri().into(),
            key_lifetime: LIFETIME as f64,
            max_future_key_count: 5,
            max_past_key_count: 2,
            ..Default::default()
        };
        service.add_group(&group, &mut entropy, at(0).instant).unwrap();
        let (asked, publisher_asked) = (Vec::new(), Vec::new());
        Self {
            service,
            entropy,
            publisher,
            subscriber,
            thief,
            got,
            asked,
            publisher_asked,
            sent: 0,
            announced: 0,
        }
    }

    /// Runs one millisecond. Returns how many genuine and forged messages were accepted.
    fn turn(&mut self, millis: u64) -> (usize, usize) {
        let now = at(millis);
        let Self { service, entropy, publisher, subscriber, thief, got, .. } = self;
        let mut get = |count| {
            service.get_security_keys("group", 0, count, true, true, &mut *entropy, now.instant).unwrap()
        };
        if let Some(request) = publisher.poll_key_request(now) {
            self.publisher_asked.push(millis);
            publisher.set_keys("group", Ok(&get(request.requested_key_count)), now).unwrap();
        }
        if let Some(request) = subscriber.poll_key_request(now) {
            self.asked.push(millis);
            subscriber.set_keys("group", Ok(&get(request.requested_key_count)), now).unwrap();
        }
        // Only the initial keys.
        if millis == 0 {
            thief.set_keys("group", Ok(&get(5)), now).unwrap();
        }
        let mut out = Transmit::new();
        let mut taken = [0, 0];
        for (who, sender) in [publisher, thief].into_iter().enumerate() {
            // The attacker sends in between.
            let now = at(millis + 5 * who as u64);
            if sender.poll_timeout().is_none_or(|due| due > now.instant) {
                continue;
            }
            out.clear();
            sender.poll(now, &mut values(1), &mut out);
            for datagram in out.iter() {
                let mut bytes = datagram.bytes.to_vec();
                if who == 0 {
                    let mut decoder = Decoder::new(&bytes, Default::default());
                    let security = NetworkMessageHeader::decode(&mut decoder).unwrap().security.unwrap();
                    self.sent += 1;
                    self.announced += u64::from(security.force_key_reset);
                }
                let before = got.messages.len();
                subscriber.receive(0, &mut bytes, at(millis), got);
                taken[who] += got.messages.len() - before;
            }
        }
        (taken[0], taken[1])
    }

    fn invalidate(&mut self, millis: u64) {
        self.service.invalidate_keys("group", &mut self.entropy, at(millis).instant).unwrap();
    }
}

/// The publisher learns of it at once (local key service, or pushed keys): the subscriber learns of it from the next
/// message, and accepts nothing secured with the old keys from then on.
#[test]
fn messages_with_invalidated_keys_are_refused_once_known() {
    let mut world = World::new(0);
    let (mut honest, mut forged_after, mut lost) = (0, 0, 0);
    let mut forged_before = 0;
    for millis in 0..INVALIDATED {
        let (one, other) = world.turn(millis);
        honest += one;
        forged_before += other;
    }
    assert_eq!(honest as u64, world.sent, "nothing is lost");
    assert!(forged_before > 0, "with the keys, messages can be forged");
    world.invalidate(INVALIDATED);
    world.publisher.refresh_keys("group", at(INVALIDATED));
    let sent_before = world.sent;
    for millis in INVALIDATED..INVALIDATED + 2_000 {
        let before = world.sent;
        let (one, other) = world.turn(millis);
        lost += (world.sent - before) as usize - one;
        forged_after += other;
    }
    // The first message has an unknown id: the subscriber requests keys and has them in the next millisecond.
    assert_eq!((lost, forged_after), (1, 0));
    assert_eq!(world.sent - sent_before, 200);
    assert_eq!(world.publisher_asked, [0, INVALIDATED]);
    assert_eq!(world.asked, [0, INVALIDATED + 1], "messages with the old keys are no reason to ask");
    let refused =
        SubscriberEvent::Dropped { connection: 0, reason: Drop::Security(SecurityError::KeyInvalidated(1)) };
    assert!(world.got.events.contains(&refused), "{:?}", world.got.events);
    assert_eq!(world.announced, 0);
}

/// The exposure without notification: half of a key's lifetime.
#[test]
fn without_notification_keys_are_refreshed_at_half_the_lifetime() {
    let mut world = World::new(0);
    let mut last_forged = 0;
    for millis in 0..LIFETIME {
        if millis == INVALIDATED {
            world.invalidate(millis);
        }
        if world.turn(millis).1 > 0 {
            last_forged = millis;
        }
    }
    assert!((LIFETIME / 2 - 20..LIFETIME / 2).contains(&last_forged), "{last_forged}");
    assert_eq!(world.publisher_asked.get(1), Some(&(LIFETIME / 2)));
}

/// The subscriber knows before the publisher: the publisher's messages are refused, without key requests.
#[test]
fn invalidated_keys_cause_no_repeated_requests() {
    let mut world = World::new(0);
    for millis in 0..LIFETIME / 2 {
        if millis == INVALIDATED {
            world.invalidate(millis);
            world.subscriber.refresh_keys("group", at(millis));
        }
        let (honest, forged) = world.turn(millis);
        if millis > INVALIDATED {
            assert_eq!((honest, forged), (0, 0), "at {millis}");
        }
    }
    assert_eq!(world.asked, [0, INVALIDATED]);
    let (honest, _) = (LIFETIME / 2..LIFETIME / 2 + 20)
        .map(|millis| world.turn(millis))
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(honest, 2, "then messages are accepted again");
}

/// With a grace period, the publisher announces the change with ForceKeyReset, and no message is lost.
#[test]
fn announced_key_resets_lose_nothing() {
    let mut world = World::new(500_000_000);
    let (mut honest, mut last_forged) = (0, 0);
    for millis in 0..INVALIDATED + 2_000 {
        if millis == INVALIDATED {
            world.invalidate(millis);
            world.publisher.refresh_keys("group", at(millis));
        }
        let (one, other) = world.turn(millis);
        honest += one;
        if other > 0 {
            last_forged = millis;
        }
    }
    assert_eq!(honest as u64, world.sent);
    assert_eq!(world.announced, 50, "500 ms, a message each 10 ms");
    // The first of them caused the subscriber's request.
    assert_eq!(world.asked, [0, INVALIDATED + 1]);
    assert!((INVALIDATED + 490..=INVALIDATED + 501).contains(&last_forged), "{last_forged}");
}
