//! Messages over many keys and a bad link: publishers restart, the key service is sometimes unavailable, a subscriber
//! must accept every message once, and an attacker forges and replays (security acceptance 34).
//!
//! The test beside it runs a few rotations; `examples/key_rotation.rs` runs any number.
#![allow(unreachable_pub, clippy::unwrap_used)] // a test may

use core::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use taktwerk_crypto::{Entropy, PubSubProvider, PubSubSecurityPolicy, SeededEntropy};
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetWriter, DataSetWriterMessage, PublishedDataSet, WriterGroup,
};
use taktwerk_pubsub::security::{KeyRequest, KeyService, SecurityKeys};
use taktwerk_pubsub::uadp::{NetworkMessageHeader, SecurityMode};
use taktwerk_pubsub::{
    DataSetMessage, Now, Publisher, PublisherId, PublisherOptions, Sink, Subscriber, SubscriberOptions,
    Transmit,
};
use taktwerk_schema::{SecurityGroupDataType, UadpDataSetMessageContentMask};
use taktwerk_types::{BuiltInType, DataValue, Decoder, Instant, StatusCode, UtcTime, Variant};

/// Publishers that share the SecurityGroup; each sends a message every millisecond.
const PUBLISHERS: usize = 2;
/// Maximum delay of the link in milliseconds, well within the window of 128 messages.
const DELAY_MAX: u64 = 60;
/// Number of messages kept for replays.
const REMEMBERED: usize = 4_096;

/// Parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Messages to send.
    pub messages: u64,
    /// Messages of all publishers under one key.
    pub messages_per_key: u64,
    /// The same seed repeats the same run.
    pub seed: u64,
}

/// Results of a run.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub sent: u64,
    /// Dropped by the link.
    pub dropped: u64,
    /// Accepted by the readers.
    pub delivered: u64,
    /// Sent and not dropped, but not accepted.
    pub lost: u64,
    /// Accepted twice, or with forged content.
    pub wrong: u64,
    /// Duplicates by the link, and replayed old messages.
    pub replays_offered: u64,
    pub forged_offered: u64,
    pub nonces: u64,
    pub nonces_repeated: u64,
    /// Keys that messages were secured with.
    pub keys: u64,
    pub restarts: u64,
    /// Calls of GetSecurityKeys, and how many failed.
    pub key_requests: u64,
    pub key_requests_failed: u64,
    /// Counters of the subscriber.
    pub replays_refused: u64,
    pub refused_by_security: u64,
}

impl Report {
    /// Whether all guarantees were kept.
    pub fn holds(&self) -> bool {
        let none = self.lost + self.wrong + self.nonces_repeated == 0;
        // And that the run was a meaningful test.
        none && self.delivered + self.dropped == self.sent && self.dropped > 0 && self.replays_refused > 0
    }
}

/// A set of received numbers, as bits.
#[derive(Default)]
struct Seen {
    bits: Vec<u64>,
}

impl Seen {
    /// False if it was already present.
    fn insert(&mut self, number: u64) -> bool {
        let (at, bit) = ((number / 64) as usize, 1 << (number % 64));
        if self.bits.len() <= at {
            self.bits.resize(at + 1, 0);
        }
        let is_new = self.bits[at] & bit == 0;
        self.bits[at] |= bit;
        is_new
    }

    fn len(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn contains(&self, number: u64) -> bool {
        self.bits.get((number / 64) as usize).is_some_and(|word| word & 1 << (number % 64) != 0)
    }
}

/// Receives the subscriber's deliveries.
#[derive(Default)]
struct Taken {
    seen: [Seen; PUBLISHERS],
    /// The expected delivery; anything else is forged.
    genuine: Option<(usize, u64)>,
    wrong: u64,
}

impl Sink for Taken {
    fn message(&mut self, message: &DataSetMessage<'_>) {
        let sender = message.reader.connection;
        let number = match message.fields.first().and_then(|field| field.value.value.as_ref()) {
            Some(Variant::UInt64(number)) => *number,
            other => panic!("{other:?}"),
        };
        let is_expected = self.genuine == Some((sender, number));
        if !is_expected || !self.seen[sender].insert(number) {
            self.wrong += 1;
        }
    }
}

#[derive(Clone)]
struct Message {
    sender: usize,
    number: u64,
    bytes: Vec<u8>,
}

fn at(millis: u64) -> Now {
    let ticks = 133_000_000_000_000_000 + i64::try_from(millis).unwrap() * 10_000;
    Now { instant: Instant::from_nanos(millis * 1_000_000), utc: UtcTime::from_ticks(ticks) }
}

/// One connection with one group and one writer per publisher. DataSetMessages have no sequence number, because readers
/// would drop late messages, which would count as lost.
fn configuration(sender: usize) -> Configuration {
    let mut group = WriterGroup::dynamic("g", 1, 1.0);
    group.security.mode = SecurityMode::SignAndEncrypt;
    group.security.security_group_id = "group".into();
    let mut writer = DataSetWriter::dynamic("w", 1, "d");
    if let DataSetWriterMessage::Uadp(uadp) = &mut writer.message {
        uadp.data_set_message_content_mask = UadpDataSetMessageContentMask::STATUS;
    }
    group.writers.push(writer);
    let id = PublisherId::UInt16(1 + sender as u16);
    let mut connection = Connection::new(&format!("c{sender}"), Some(id), "opc.udp://239.0.0.1:4840");
    connection.writer_groups.push(group);
    Configuration {
        enabled: true,
        data_sets: vec![PublishedDataSet::new("d", vec![field("n", BuiltInType::UInt64)])],
        connections: vec![connection],
        ..Configuration::default()
    }
}

struct World {
    provider: Arc<dyn PubSubProvider>,
    service: KeyService,
    random: SeededEntropy,
    key_millis: u64,
    report: Report,
    taken: Taken,
    /// Accepted messages, oldest first.
    remembered: VecDeque<Message>,
    /// All nonces by token. Those of old keys are removed, because the keys never return.
    nonces: BTreeMap<u32, BTreeSet<[u8; 8]>>,
}

impl World {
    fn publisher(&mut self, sender: usize, millis: u64) -> Publisher {
        let entropy = Box::new(SeededEntropy::new(self.random.next_u64()));
        let options = PublisherOptions::default();
        let mut publisher =
            Publisher::new(configuration(sender), options, self.provider.clone(), entropy).unwrap();
        publisher.start(at(millis).instant, at(millis));
        while let Some(request) = publisher.poll_key_request(at(millis)) {
            let keys = self.ask(&request, millis, false);
            publisher.set_keys("group", keys.as_ref().map_err(|status| *status), at(millis)).unwrap();
        }
        publisher
    }

    /// GetSecurityKeys; in one of ten calls the service is unavailable for the lifetime of a key.
    fn ask(
        &mut self,
        request: &KeyRequest,
        millis: u64,
        can_be_away: bool,
    ) -> Result<SecurityKeys, StatusCode> {
        self.report.key_requests += 1;
        if can_be_away && (millis / self.key_millis) % 10 == 7 {
            self.report.key_requests_failed += 1;
            return Err(StatusCode::BAD_SERVER_NOT_CONNECTED);
        }
        let (count, now) = (request.requested_key_count, at(millis).instant);
        self.service.get_security_keys("group", 0, count, true, true, &mut self.random, now)
    }

    /// No nonce is used twice with a key.
    fn check_nonce(&mut self, datagram: &[u8]) {
        let header = NetworkMessageHeader::decode(&mut Decoder::new(datagram, Default::default())).unwrap();
        let security = header.security.unwrap();
        assert_eq!(security.mode, SecurityMode::SignAndEncrypt);
        if !self.nonces.contains_key(&security.token_id) {
            self.report.keys += 1;
            while self.nonces.len() > 3 {
                self.nonces.pop_first();
            }
        }
        let of_key = self.nonces.entry(security.token_id).or_default();
        self.report.nonces += 1;
        self.report.nonces_repeated += u64::from(!of_key.insert(security.nonce.try_into().unwrap()));
    }

    /// Passes a message to the subscriber. It may be accepted only if it is unmodified and was not accepted before.
    fn give(&mut self, receiving: &mut Subscriber, message: &Message, now: Now) {
        let is_new = !self.taken.seen[message.sender].contains(message.number);
        self.taken.genuine = is_new.then_some((message.sender, message.number));
        receiving.receive(message.sender, &mut message.bytes.clone(), now, &mut self.taken);
        self.taken.genuine = None;
        if is_new {
            if self.remembered.len() >= REMEMBERED {
                // Keep some very old ones, to replay them after their keys are gone.
                let at = self.random.below(REMEMBERED as u64 / 2) as usize;
                self.remembered.swap_remove_back(at);
            }
            self.remembered.push_back(message.clone());
        } else {
            self.report.replays_offered += 1;
        }
    }

    fn forge(&mut self, receiving: &mut Subscriber, message: &Message, now: Now) {
        let mut bytes = message.bytes.clone();
        let place = self.random.below(bytes.len() as u64) as usize;
        bytes[place] ^= 1 << self.random.below(8);
        self.report.forged_offered += 1;
        receiving.receive(message.sender, &mut bytes, now, &mut self.taken);
    }
}

/// Runs the test. `progress` gets the number of sent messages.
pub fn run(plan: Plan, provider: Arc<dyn PubSubProvider>, mut progress: impl FnMut(u64)) -> Report {
    let key_millis = plan.messages_per_key / PUBLISHERS as u64;
    let mut random = SeededEntropy::new(plan.seed);
    let mut service = KeyService::new();
    let group = SecurityGroupDataType {
        security_group_id: "group".into(),
        security_policy_uri: PubSubSecurityPolicy::Aes256Ctr.uri().into(),
        key_lifetime: key_millis as f64,
        max_future_key_count: 5,
        max_past_key_count: 2,
        ..SecurityGroupDataType::default()
    };
    service.add_group(&group, &mut random, at(0).instant).unwrap();
    let mut world = World {
        provider: provider.clone(),
        service,
        random,
        key_millis,
        report: Report::default(),
        taken: Taken::default(),
        remembered: VecDeque::new(),
        nonces: BTreeMap::new(),
    };
    let mut listening = Configuration { enabled: true, ..Configuration::default() };
    for sender in 0..PUBLISHERS {
        listening.connections.extend(Configuration::subscriber_of(&configuration(sender)).connections);
    }
    let mut receiving = Subscriber::new(listening, SubscriberOptions::default(), provider).unwrap();
    receiving.start(at(1), &mut world.taken);
    let mut sending: Vec<Publisher> = (0..PUBLISHERS).map(|sender| world.publisher(sender, 1)).collect();
    let mut next_number = [0u64; PUBLISHERS];
    // When a restarting publisher runs again; in the past if it runs.
    let mut back_at = [0; PUBLISHERS];
    // Messages in transit, by arrival time.
    let mut wire: BTreeMap<u64, Vec<Message>> = BTreeMap::new();
    let mut out = Transmit::new();
    let mut millis = 1;
    while world.report.sent < plan.messages || !wire.is_empty() {
        let now = at(millis);
        while let Some(request) = receiving.poll_key_request(now) {
            let keys = world.ask(&request, millis, true);
            receiving.set_keys("group", keys.as_ref().map_err(|status| *status), now).unwrap();
        }
        for sender in 0..PUBLISHERS {
            if world.report.sent >= plan.messages {
                break;
            }
            // Sometimes a publisher is restarted in the middle of a key's lifetime, with the same name. That takes
            // longer than the maximum delay: the new numbers are far ahead, so that late messages of the old one would
            // be too old.
            if world.random.below(key_millis * 4) == 0 {
                world.report.restarts += 1;
                back_at[sender] = millis + DELAY_MAX;
            }
            match back_at[sender].cmp(&millis) {
                Ordering::Greater => continue,
                Ordering::Equal => sending[sender] = world.publisher(sender, millis),
                Ordering::Less => {}
            }
            while let Some(request) = sending[sender].poll_key_request(now) {
                let keys = world.ask(&request, millis, true);
                sending[sender].set_keys("group", keys.as_ref().map_err(|status| *status), now).unwrap();
            }
            out.clear();
            let number = next_number[sender];
            let mut values = |_: usize, fields: &mut [DataValue]| fields[0] = DataValue::new(number);
            sending[sender].poll(now, &mut values, &mut out);
            assert_eq!(out.len(), 1, "a cycle was not sent at {millis} ms");
            for datagram in out.iter() {
                world.check_nonce(datagram.bytes);
                world.report.sent += 1;
                next_number[sender] += 1;
                let message = Message { sender, number, bytes: datagram.bytes.to_vec() };
                let (copies, is_dropped) = match world.random.below(1000) {
                    0 => (0, true),
                    1..6 => (2, false),
                    _ => (1, false),
                };
                world.report.dropped += u64::from(is_dropped);
                for _ in 0..copies {
                    let is_late = world.random.below(50) == 0;
                    let delay = if is_late { world.random.below(DELAY_MAX) } else { 0 };
                    wire.entry(millis + delay).or_default().push(message.clone());
                }
            }
        }
        progress(world.report.sent);
        let later = wire.split_off(&(millis + 1));
        for message in core::mem::replace(&mut wire, later).into_values().flatten() {
            if world.random.below(100) == 0 {
                world.forge(&mut receiving, &message, now);
            }
            world.give(&mut receiving, &message, now);
            if world.random.below(100) == 0 && !world.remembered.is_empty() {
                let at = world.random.below(world.remembered.len() as u64) as usize;
                let old = world.remembered[at].clone();
                world.give(&mut receiving, &old, now);
            }
        }
        millis += 1;
    }
    let counters = receiving.counters();
    let delivered = world.taken.seen.iter().map(Seen::len).sum();
    let mut report = world.report;
    report.delivered = delivered;
    report.wrong = world.taken.wrong;
    report.lost = report.sent.saturating_sub(report.dropped + delivered);
    report.replays_refused = counters.replays;
    report.refused_by_security = counters.security_errors;
    report
}
