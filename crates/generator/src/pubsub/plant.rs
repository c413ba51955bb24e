//! The configuration with a number of signals, in messages that fit into a frame.

use super::{Layout, MessageSecurity, Options, PubSub};
use crate::error::GeneratorError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use taktwerk::pubsub::config::build::field;
use taktwerk::pubsub::config::{
    Configuration, Connection, DataSetWriter, DataSetWriterMessage, PublishedDataSet, WriterGroup,
};
use taktwerk::pubsub::{PublisherId, RealTime, SecurityKeys, StaticKeys};
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
// tidy: repeatable: a load.
use taktwerk_crypto::{PubSubSecurityPolicy, SeededEntropy};
use taktwerk_net::clock::monotonic;
use taktwerk_net::pubsub::sleep_until;
use taktwerk_pubsub::{FieldWriter, InPlace, Now, Publisher, PublisherOptions, Transmit, Values};
use taktwerk_types::{BuiltInType, DataValue, Instant};

/// The security group.
const GROUP: &str = "bench";
/// Number of fields for which a message fits into a frame with all headers and a signature.
const RAW: usize = 330;
const VARIANTS: usize = 255;

/// The published data.
pub(super) struct Plant {
    /// Configuration of the publisher.
    pub(super) configuration: Configuration,
    /// The messages of one cycle, as the bare loop sends them.
    pub(super) datagrams: Vec<Vec<u8>>,
}

/// Pseudo-random numbers.
struct Floats(u64);

impl Iterator for Floats {
    type Item = f32;

    #[inline]
    fn next(&mut self) -> Option<f32> {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Some((self.0 >> 40) as f32)
    }
}

/// Values that change in every cycle. The first data set contains the time of its change, the time of publishing, and
/// the number of the cycle.
pub(super) struct Signals {
    floats: Floats,
    cycle: u32,
    plant: Option<Arc<AtomicU64>>,
}

impl Signals {
    /// With a [`Source`], the first data set's value changes when the source says so; otherwise, when it is sampled.
    pub(super) fn new(plant: Option<Arc<AtomicU64>>) -> Self {
        Self { floats: Floats(0x9e37_79b9_7f4a_7c15), cycle: 0, plant }
    }
}

impl Values for Signals {
    fn sample(&mut self, data_set: usize, fields: &mut [DataValue], now: Now) -> bool {
        if let (0, [changed, published, number]) = (data_set, &mut *fields) {
            self.cycle = self.cycle.wrapping_add(1);
            *changed = DataValue::new(match &self.plant {
                Some(plant) => plant.load(Ordering::Relaxed),
                None => monotonic().as_nanos(),
            });
            // The time of the cycle corresponds to the PublishTime of a subscription's message.
            *published = DataValue::new(now.instant.as_nanos());
            *number = DataValue::new(self.cycle);
            return true;
        }
        let count = fields.len();
        FieldWriter::values(fields).numbers(self.floats.by_ref().take(count));
        true
    }

    fn write(&mut self, data_set: usize, fields: &mut FieldWriter<'_>, _: Now) -> InPlace {
        // Encoding in place does not pay off for three fields of two types.
        if data_set == 0 {
            return InPlace::NotOffered;
        }
        let count = fields.remaining();
        fields.numbers(self.floats.by_ref().take(count));
        InPlace::Written
    }
}

/// A value that changes at its own rate, independently of the publisher. It stops when dropped.
pub(super) struct Source {
    changed: Arc<AtomicU64>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Source {
    /// Starts it on the publisher's CPU, where a server's own simulation would run.
    pub(super) fn start(every: Duration, cpu: Option<usize>) -> Result<Self, GeneratorError> {
        let every = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX).max(1);
        let changed = Arc::new(AtomicU64::new(monotonic().as_nanos()));
        let end = Arc::new(AtomicBool::new(false));
        let (theirs, ended) = (Arc::clone(&changed), Arc::clone(&end));
        let mut real_time = RealTime::default();
        real_time.cpu = cpu;
        let change = move || {
            if real_time.apply().is_err() {
                return;
            }
            let mut due = monotonic().as_nanos();
            while !ended.load(Ordering::Relaxed) {
                due += every;
                sleep_until(Instant::from_nanos(due));
                theirs.store(monotonic().as_nanos(), Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new().name("plant".to_owned()).spawn(change);
        let thread = thread.map_err(GeneratorError::environment)?;
        Ok(Self { changed, end, thread: Some(thread) })
    }

    /// When the value last changed, on the monotonic clock.
    pub(super) fn changed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.changed)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Plant {
    pub(super) fn new(arguments: &PubSub) -> Self {
        let interval = arguments.interval.as_secs_f64() * 1e3;
        let is_fixed = arguments.layout == Layout::PeriodicFixed;
        let mut group = if is_fixed {
            WriterGroup::periodic_fixed("group", 1, interval)
        } else {
            WriterGroup::dynamic("group", 1, interval)
        };
        if arguments.security != MessageSecurity::None {
            group.security.mode = arguments.mode();
            group.security.security_group_id = GROUP.to_owned();
        }
        let mut configuration = Configuration { enabled: true, ..Configuration::default() };
        let mut writer = |name: String, number: u16| {
            let id = u16::try_from(configuration_len(&group) + 1).unwrap_or(u16::MAX);
            let mut writer = if is_fixed {
                DataSetWriter::periodic_fixed(&name, id, &name)
            } else {
                DataSetWriter::dynamic(&name, id, &name)
            };
            if let (true, DataSetWriterMessage::Uadp(message)) = (is_fixed, &mut writer.message) {
                message.network_message_number = number;
            }
            group.writers.push(writer);
        };
        let stamp = vec![
            field("changed", BuiltInType::UInt64),
            field("published", BuiltInType::UInt64),
            field("cycle", BuiltInType::UInt32),
        ];
        configuration.data_sets.push(PublishedDataSet::new("stamp", stamp));
        writer("stamp".to_owned(), 1);
        let per_message = if is_fixed { RAW } else { VARIANTS };
        let signals = arguments.signals as usize;
        for (position, first) in (0..signals).step_by(per_message).enumerate() {
            let name = format!("set{position}");
            let fields = (first..signals.min(first + per_message))
                .map(|number| field(&format!("s{number}"), BuiltInType::Float))
                .collect();
            configuration.data_sets.push(PublishedDataSet::new(&name, fields));
            writer(name, u16::try_from(position + 1).unwrap_or(u16::MAX));
        }
        let mut connection = Connection::new("bench", Some(PublisherId::UInt16(1)), &arguments.url);
        connection.network_interface.clone_from(&arguments.interface);
        connection.writer_groups.push(group);
        configuration.connections.push(connection);
        let datagrams = datagrams(&configuration);
        Self { configuration, datagrams }
    }

    /// Keys for security.
    pub(super) fn keys() -> StaticKeys {
        StaticKeys::new().with(GROUP, keys())
    }

    /// Configuration of a subscriber to the first data set, which contains its time of sampling.
    pub(super) fn subscriber(&self) -> Configuration {
        let mut theirs = Configuration::subscriber_of(&self.configuration);
        for connection in &mut theirs.connections {
            for group in &mut connection.reader_groups {
                group.readers.truncate(1);
            }
        }
        theirs
    }
}

fn configuration_len(group: &WriterGroup) -> usize {
    group.writers.len()
}

fn keys() -> SecurityKeys {
    let policy = PubSubSecurityPolicy::Aes256Ctr;
    SecurityKeys {
        security_policy_uri: policy.uri().to_owned(),
        first_token_id: 1,
        keys: vec![vec![7; policy.key_data_len()]],
        time_to_next_key: 1e9,
        key_lifetime: 1e9,
        current_token_id: None,
        nonces: None,
    }
}

/// The datagrams of one cycle.
fn datagrams(configuration: &Configuration) -> Vec<Vec<u8>> {
    // tidy: repeatable: the load is the same every time, and nothing that it sends is worth protecting.
    let (provider, entropy) = (Arc::new(AwsPubSubProvider), Box::new(SeededEntropy::new(1)));
    let options = PublisherOptions::default();
    let Ok(mut publisher) = Publisher::new(configuration.clone(), options, provider, entropy) else {
        return Vec::new();
    };
    let now = Now::default();
    publisher.start(now.instant, now);
    while let Some(request) = publisher.poll_key_request(now) {
        let _ = publisher.set_keys(&request.security_group_id, Ok(&keys()), now);
    }
    let mut out = Transmit::new();
    publisher.poll(now, &mut Signals::new(None), &mut out);
    out.iter().map(|datagram| datagram.bytes.to_vec()).collect()
}
