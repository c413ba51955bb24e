//! Records in a topic of Apache Kafka. The tag is the record key, so that values of a tag stay in order in one partition. A
//! header contains the key of the value, so that consumers can detect duplicates.

use super::block::Record as Value;
use super::settings::DestinationSettings;
use super::template::{Template, json_text};
use super::{Batch, Sink, Taken};
use crate::connect::{host_and_port, is_local};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::tls::ClientTls;
use core::time::Duration;
use futures_util::future::{BoxFuture, try_join_all};
use rskafka::BackoffConfig;
use rskafka::chrono::{DateTime, Utc};
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder, Credentials, SaslConfig};
use rskafka::record::Record;
use std::collections::BTreeMap;
use std::path::PathBuf;
use taktwerk_types::UtcTime;

/// Most bytes of records in one request. Brokers accept a megabyte by default.
const REQUEST_MAX: usize = 900_000;
/// Longest name of a topic.
const TOPIC_LEN_MAX: usize = 249;
const PAYLOAD: &str = r#"{"tag":"{tag}","time":"{time}","status":"{status}","value":{value}}"#;

/// The SASL mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mechanism {
    Plain,
    Scram256,
    Scram512,
}

/// A topic that receives values.
pub struct KafkaSink {
    brokers: Vec<String>,
    is_tls: bool,
    tls: ClientTls,
    user: Option<(String, PathBuf, Mechanism)>,
    topic: String,
    /// Partitions and replicas for creating the topic.
    make: Option<(i32, i16)>,
    payload: Template,
    deadline: Duration,
    partitions: Vec<PartitionClient>,
}

impl KafkaSink {
    /// Takes the settings of a destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &DestinationSettings) -> Result<Self, Mistake> {
        let brokers = fields.texts("brokers")?.unwrap_or_default();
        let mut addresses = Vec::new();
        let mut is_here = true;
        for broker in &brokers {
            let Some((host, port)) = host_and_port(broker, 9092) else {
                let hint = "write brokers = [\"kafka-1.example.com:9092\", \"kafka-2.example.com:9092\"]";
                return Err(fields.mistake(format!("{broker:?} is no broker"), hint));
            };
            is_here &= is_local(&host);
            addresses.push(crate::connect::target(&host, port));
        }
        if addresses.is_empty() {
            return Err(fields.mistake("brokers is missing", "write brokers = [\"kafka.example.com:9092\"]"));
        }
        let is_tls = fields.flag("tls")?.unwrap_or(!is_here);
        let folder = fields.path().parent().map(PathBuf::from).unwrap_or_default();
        let words = [
            ("plain", Mechanism::Plain),
            ("scram-sha-256", Mechanism::Scram256),
            ("scram-sha-512", Mechanism::Scram512),
        ];
        let mechanism = fields.word("mechanism", &words)?.unwrap_or(Mechanism::Scram512);
        let user = match (fields.text("user")?, fields.text("password_file")?) {
            (Some(user), Some(file)) => Some((user, folder.join(file), mechanism)),
            (None, None) => None,
            _ => {
                let hint = "set user and password_file";
                return Err(fields.mistake("a user needs a name and a password", hint));
            }
        };
        let is_open = fields.flag("allow_plaintext_password")?.unwrap_or(false);
        if let Some((_, _, mechanism)) = &user
            && !is_tls
            && !is_open
        {
            let hint = "set tls = true, or allow_plaintext_password = true on a trusted network";
            if !is_here {
                return Err(fields.mistake("the password would cross the network unencrypted", hint));
            }
            // The client library connects to every address that a broker returns, and sends the password there.
            if *mechanism == Mechanism::Plain {
                let problem = "mechanism = \"plain\" sends the password unencrypted to every address that the brokers \
                               advertise, and not only to this machine";
                let hint = "use scram-sha-512 or scram-sha-256, set tls = true, or allow_plaintext_password = true if \
                            the brokers advertise no other machine";
                return Err(fields.mistake(problem, hint));
            }
        }
        let topic = fields.text_at("topic")?;
        let (line, topic) = topic.unwrap_or_else(|| (fields.line(), "taktwerk".to_owned()));
        let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
        if topic.is_empty() || topic.len() > TOPIC_LEN_MAX || !topic.chars().all(is_plain) {
            let hint = "topics have letters, digits, . _ and -, and at most 249 of them";
            return Err(fields.mistake_in(line, "topic", format!("{topic:?} is no topic"), hint));
        }
        let replicas = fields.integer("replicas", 1, 100)?.unwrap_or(1) as i16;
        let partitions = fields.integer("partitions", 1, 10_000)?;
        Ok(Self {
            brokers: addresses,
            is_tls,
            tls: ClientTls::take(fields, is_tls)?,
            user,
            topic,
            make: partitions.map(|partitions| (partitions as i32, replicas)),
            payload: Template::parse(fields.text("payload")?.as_deref().unwrap_or(PAYLOAD)),
            deadline: settings.deadline,
            partitions: Vec::new(),
        })
    }

    fn target(&self) -> &str {
        self.brokers.first().map(String::as_str).unwrap_or_default()
    }

    fn failed(&self, error: &dyn core::fmt::Display) -> Fault {
        let told = error.to_string();
        Fault::other(self.target(), crate::tls::advice(&told).map_or(told.as_str(), |advice| advice))
    }

    /// Connects, and determines the partitions of the topic.
    async fn connect(&self) -> Result<Vec<PartitionClient>, Fault> {
        // The library retries by itself and counts only its pauses. This leaves time to report why it failed.
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_secs(1),
            base: 2.0,
            deadline: Some(self.deadline / 4),
        };
        let mut builder =
            ClientBuilder::new(self.brokers.clone()).client_id("taktwerk-gateway").backoff_config(backoff);
        if self.is_tls {
            builder = builder.tls_config(self.tls.config()?);
        }
        if let Some((user, file, mechanism)) = &self.user {
            // Read the file each time, because passwords change.
            let password = taktwerk_config::file::read_text(file, 4096);
            let password = password.map_err(|error| Fault::unreadable("password_file", file, &error))?;
            let password = password.trim_end_matches(['\r', '\n']).to_owned();
            let credentials = Credentials::new(user.clone(), password);
            builder = builder.sasl_config(match mechanism {
                Mechanism::Plain => SaslConfig::Plain(credentials),
                Mechanism::Scram256 => SaslConfig::ScramSha256(credentials),
                Mechanism::Scram512 => SaslConfig::ScramSha512(credentials),
            });
        }
        let client = builder.build().await.map_err(|error| self.failed(&error))?;
        let count = self.partition_count(&client).await?;
        let clients = (0..count).map(|partition| {
            client.partition_client(self.topic.as_str(), partition, UnknownTopicHandling::Error)
        });
        try_join_all(clients).await.map_err(|error| self.failed(&error))
    }

    /// The number of the topic's partitions. Creates the topic if configured.
    async fn partition_count(&self, client: &Client) -> Result<i32, Fault> {
        let topics = client.list_topics().await.map_err(|error| self.failed(&error))?;
        if let Some(topic) = topics.iter().find(|topic| topic.name == self.topic) {
            self.check_partitions(topic.partitions.len())?;
            return Ok(topic.partitions.len() as i32);
        }
        let Some((partitions, replicas)) = self.make else {
            let reason = format!("there is no topic {:?}; make it, or set partitions", self.topic);
            return Err(self.failed(&reason));
        };
        let controller = client.controller_client().map_err(|error| self.failed(&error))?;
        let millis = self.deadline.as_millis().min(60_000) as i32;
        match controller.create_topic(self.topic.as_str(), partitions, replicas, millis).await {
            Ok(()) => Ok(partitions),
            // Another gateway may have created it: the next attempt finds it.
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// A topic without partitions accepts nothing: values wait until it has some.
    fn check_partitions(&self, count: usize) -> Result<(), Fault> {
        match count {
            0 => Err(self.failed(&"the topic has no partitions yet")),
            _ => Ok(()),
        }
    }

    fn record(&self, batch: &Batch, value: &Value) -> Timed {
        let record = Record {
            key: Some(value.tag.as_bytes().to_vec()),
            value: Some(self.payload.fill(batch, value, json_text).into_bytes()),
            headers: BTreeMap::from([("key".to_owned(), batch.key(value).into_bytes())]),
            timestamp: date_time(value.time),
        };
        Timed { record, received: date_time(value.received) }
    }

    /// Groups the records of a batch by partition.
    fn spread(&self, batch: &Batch, partitions: usize) -> Result<Vec<Vec<Timed>>, Fault> {
        self.check_partitions(partitions)?;
        let mut parts: Vec<Vec<Timed>> = (0..partitions).map(|_| Vec::new()).collect();
        for value in &batch.records {
            let partition = partition(value.tag.as_bytes(), partitions);
            if let Some(part) = parts.get_mut(partition) {
                part.push(self.record(batch, value));
            }
        }
        Ok(parts)
    }

    async fn send_all(&mut self, batch: &Batch) -> Result<Taken, Fault> {
        let partitions = match core::mem::take(&mut self.partitions) {
            partitions if partitions.is_empty() => self.connect().await?,
            partitions => partitions,
        };
        let parts = self.spread(batch, partitions.len())?;
        let sent = parts.into_iter().zip(&partitions).map(|(part, client)| send_part(client, part));
        let all = try_join_all(sent).await.map_err(|error| self.failed(&error))?;
        let mut taken = Taken::default();
        for part in all {
            taken.refused += part.refused;
            taken.reason = part.reason.or(taken.reason);
        }
        // After a failure or a missed deadline the connection is not used again.
        self.partitions = partitions;
        Ok(taken)
    }
}

/// A record, and when its value was received.
#[derive(Debug, Clone, PartialEq)]
struct Timed {
    record: Record,
    received: DateTime<Utc>,
}

fn date_time(time: UtcTime) -> DateTime<Utc> {
    DateTime::from_timestamp_nanos(i64::try_from(time.unix_nanos()).unwrap_or_default())
}

/// Sends the records of a partition in order.
async fn send_part(client: &PartitionClient, records: Vec<Timed>) -> Result<Taken, Error> {
    let mut parts = Parts::new(records);
    while let Some(part) = parts.waiting.pop() {
        // The library consumes the records, but rejected ones are needed again.
        let records = part.iter().map(|timed| timed.record.clone()).collect();
        match client.produce(records, Compression::NoCompression).await {
            Ok(_) => {}
            Err(Error::ServerError { protocol_error, .. }) if is_of_records(&protocol_error) => {
                parts.refuse(part, &protocol_error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(parts.taken)
}

/// Whether the error concerns the records, so that others might be accepted.
fn is_of_records(error: &ProtocolError) -> bool {
    use ProtocolError::{InvalidRecord, InvalidTimestamp, MessageTooLarge, RecordListTooLarge};
    matches!(error, MessageTooLarge | RecordListTooLarge | InvalidTimestamp | InvalidRecord)
}

/// The requests of a partition. One that the broker rejects because of its records is halved until only the invalid record is
/// omitted.
struct Parts {
    /// A stack: the next request is the last.
    waiting: Vec<Vec<Timed>>,
    taken: Taken,
}

impl Parts {
    fn new(mut records: Vec<Timed>) -> Self {
        let mut waiting: Vec<Vec<Timed>> = Vec::new();
        while !records.is_empty() {
            let mut size = 0;
            let fits = records.iter().take_while(|timed| {
                size += timed.record.approximate_size();
                size <= REQUEST_MAX
            });
            let count = fits.count().max(1);
            let rest = records.split_off(count);
            waiting.push(core::mem::replace(&mut records, rest));
        }
        waiting.reverse();
        Self { waiting, taken: Taken::default() }
    }

    fn refuse(&mut self, part: Vec<Timed>, error: &ProtocolError) {
        let mut left = part;
        if left.len() > 1 {
            let right = left.split_off(left.len() / 2);
            self.waiting.extend([right, left]);
            return;
        }
        // Clocks of devices may be years off. The payload still contains the value's own time.
        let mut timed = left.first_mut().filter(|_| matches!(error, ProtocolError::InvalidTimestamp));
        if let Some(timed) = timed.take_if(|timed| timed.record.timestamp != timed.received) {
            timed.record.timestamp = timed.received;
            self.waiting.push(left);
            return;
        }
        self.taken.refused += left.len();
        let what = match error {
            ProtocolError::InvalidTimestamp => "the time of a value is wrong for the broker",
            ProtocolError::InvalidRecord => "the broker rejects a value",
            _ => "a value is too large for the broker",
        };
        self.taken.reason = Some(format!("{what}: {error}"));
    }
}

/// The partition of a key, as chosen by Kafka's own producers: murmur2 without sign.
fn partition(key: &[u8], count: usize) -> usize {
    (murmur2(key) & 0x7FFF_FFFF) as usize % count.max(1)
}

/// `org.apache.kafka.common.utils.Utils.murmur2`
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5BD1_E995;
    let mut hash = 0x9747_B28C_u32 ^ data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    for (at, byte) in rest.iter().enumerate() {
        hash ^= u32::from(*byte) << (8 * at);
    }
    if !rest.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

impl Sink for KafkaSink {
    fn describe(&self) -> String {
        format!("Kafka {}, topic {}", self.brokers.join(", "), self.topic)
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        Box::pin(self.send_all(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;
    use taktwerk_types::StatusCode;

    fn sink(text: &str) -> Result<KafkaSink, String> {
        let text = format!("[[destination]]\n{text}\n");
        let mut fields = Sections::parse(Path::new("g.toml"), &text).unwrap().destinations.remove(0);
        let settings = DestinationSettings::take(&mut fields, "d".to_owned()).unwrap();
        KafkaSink::take(&mut fields, &settings).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_map_to_the_partitions_of_other_producers() {
        // From the tests of Kafka itself (UtilsTest.testMurmur2).
        for (key, hash) in [
            ("21", -973_932_308_i32),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
        assert!((0..100).all(|key: u32| partition(&key.to_le_bytes(), 3) < 3));
    }

    #[test]
    fn settings_are_checked() {
        let fine = sink("brokers = [\"a:9093\", \"b\"]\ntopic = \"plant\"\npartitions = 3").unwrap();
        assert_eq!((fine.describe(), fine.is_tls), ("Kafka a:9093, b:9092, topic plant".to_owned(), true));
        assert!(!sink("brokers = \"localhost\"").unwrap().is_tls);
        for (text, said) in [
            ("topic = \"a\"", "g.toml:1: brokers is missing"),
            ("brokers = [\"a:b:c\"]", "g.toml:1: \"a:b:c\" is no broker"),
            ("brokers = \"a\"\ntopic = \"a/b\"", "g.toml:3: topic: \"a/b\" is no topic"),
            ("brokers = \"a\"\nuser = \"u\"", "g.toml:1: a user needs a name and a password"),
            (
                "brokers = \"a\"\nuser = \"u\"\npassword_file = \"p\"\ntls = false",
                "g.toml:1: the password would cross the network unencrypted",
            ),
            (
                "brokers = \"localhost\"\nuser = \"u\"\npassword_file = \"p\"\nmechanism = \"plain\"",
                "g.toml:1: mechanism = \"plain\" sends the password unencrypted to every address",
            ),
        ] {
            let error = sink(text).err().unwrap();
            assert!(error.starts_with(said), "{error}");
        }
        let local = "brokers = \"localhost\"\nuser = \"u\"\npassword_file = \"p\"\n";
        for more in [
            "",
            "mechanism = \"plain\"\ntls = true",
            "mechanism = \"plain\"\nallow_plaintext_password = true",
        ] {
            assert!(sink(&format!("{local}{more}")).is_ok(), "{more}");
        }
    }

    fn batch(count: u64) -> Batch {
        let record = |number| Value {
            number,
            tag: format!("T{number}").into(),
            value: 1.into(),
            status: StatusCode::GOOD,
            time: UtcTime::from_unix(Duration::from_secs(number)),
            received: UtcTime::from_unix(Duration::from_secs(1_700_000_000)),
        };
        Batch {
            queue: "q".to_owned(),
            records: (1..=count).map(record).collect(),
            is_last: true,
            next: count + 1,
            is_parked: false,
        }
    }

    #[test]
    fn a_topic_without_partitions_accepts_nothing() {
        let sink = sink("brokers = \"a\"").unwrap();
        let error = sink.spread(&batch(20), 0).err().unwrap().to_string();
        assert!(error.contains("the topic has no partitions yet"), "{error}");
        let parts = sink.spread(&batch(20), 3).unwrap();
        assert_eq!((parts.len(), parts.iter().map(Vec::len).sum::<usize>()), (3, 20));
    }

    /// The records accepted by a broker that rejects some: numbers and times in seconds, and the result.
    fn sent(refuses: impl Fn(u64, i64) -> Option<ProtocolError>) -> (Vec<(u64, i64)>, Taken) {
        let sink = sink("brokers = \"a\"").unwrap();
        let mut parts = Parts::new(sink.spread(&batch(9), 1).unwrap().remove(0));
        let mut took = Vec::new();
        while let Some(part) = parts.waiting.pop() {
            let seen = part.iter().map(|timed| {
                let tag = String::from_utf8(timed.record.key.clone().unwrap()).unwrap();
                (tag[1..].parse().unwrap(), timed.record.timestamp.timestamp())
            });
            let seen: Vec<(u64, i64)> = seen.collect();
            match seen.iter().find_map(|(number, time)| refuses(*number, *time)) {
                Some(error) => {
                    assert!(is_of_records(&error));
                    parts.refuse(part, &error);
                }
                None => took.extend(seen),
            }
        }
        (took, parts.taken)
    }

    #[test]
    fn an_invalid_record_does_not_stop_the_others() {
        for (error, said) in [
            (ProtocolError::InvalidRecord, "the broker rejects a value"),
            (ProtocolError::MessageTooLarge, "a value is too large"),
            (ProtocolError::InvalidTimestamp, "the time of a value is wrong"),
        ] {
            let (took, taken) = sent(|number, _| (number == 4).then_some(error));
            assert_eq!(took.iter().map(|it| it.0).collect::<Vec<_>>(), [1, 2, 3, 5, 6, 7, 8, 9]);
            assert!(taken.refused == 1 && taken.reason.as_ref().unwrap().starts_with(said), "{taken:?}");
        }
        // A time that the broker rejects is replaced by the time of receipt; the order is kept.
        let (took, taken) = sent(|_, time| (time == 4).then_some(ProtocolError::InvalidTimestamp));
        assert_eq!(took.iter().map(|it| it.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!((took[3].1, took[4].1, taken), (1_700_000_000, 5, Taken::default()));
        assert!(!is_of_records(&ProtocolError::NotLeaderOrFollower));
    }
}
