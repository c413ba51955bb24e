//! `taktwerk pubsub listen`.

use super::common::{CommonArgs, Mode, failure, publisher_id};
use super::demand::{self, Side};
use super::keys::Keys;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::span;
use clap::Args;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use taktwerk::pubsub::{DataSetMessage, DataSetMessageKind, PublisherId, Subscriber, SubscriberEvent, named};
use taktwerk_pubsub::PublisherIdRef;
use taktwerk_pubsub::subscriber::SubscriberCounters;
use taktwerk_pubsub::uadp::announcement::Announcement;
use taktwerk_pubsub::uadp::probe::Probe;
use taktwerk_schema::{DataSetMetaDataType, PubSubState};
use taktwerk_types::{DataValue, StatusCode, UtcTime};

/// Arguments of `taktwerk pubsub listen`.
#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    #[command(flatten)]
    common: CommonArgs,

    /// Print only messages of this publisher: 2234, byte:1, uint32:7, string:line-1.
    #[arg(long, value_name = "ID", value_parser = publisher_id, conflicts_with = "config")]
    publisher_id: Option<PublisherId>,

    /// Print only messages of this WriterGroup. Messages without a WriterGroupId are not printed.
    #[arg(long, value_name = "ID", conflicts_with = "config")]
    group: Option<u16>,

    /// Print only messages of this DataSetWriter.
    #[arg(long, value_name = "ID", conflicts_with = "config")]
    writer: Option<u16>,

    /// Drop secured messages without a timestamp or with one further from now, as replays have. Clocks must agree.
    #[arg(long, value_name = "SPAN", value_parser = span::seconds)]
    max_age: Option<Duration>,

    /// Save the sequence numbers of secured messages in this file, so that replayed messages are rejected after a
    /// restart.
    #[arg(long, value_name = "FILE")]
    replay_file: Option<PathBuf>,

    /// Stop after this many DataSetMessages.
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u64>,

    /// Stop after this time.
    #[arg(short, long, value_name = "SPAN", value_parser = span::seconds)]
    duration: Option<Duration>,
}

/// Interval at which interruption is checked.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of messages waiting to be printed. More are dropped and counted.
const WAITING: usize = 10_000;

/// A message for display.
struct Received {
    connection: usize,
    id: Option<PublisherId>,
    has_names: bool,
    indexes: Vec<u16>,
    time: Option<UtcTime>,
    publisher: String,
    group: Option<u16>,
    writer: Option<u16>,
    number: Option<u32>,
    missing: u32,
    kind: DataSetMessageKind,
    status: StatusCode,
    fields: Vec<(String, DataValue)>,
}

enum Heard {
    Message(Box<Received>),
    Event(Box<SubscriberEvent>),
}

/// Field names of publishers without a configuration.
#[derive(Default)]
struct Directory {
    asked: BTreeSet<(PublisherId, u16)>,
    known: BTreeMap<(PublisherId, u16), DataSetMetaDataType>,
}

/// Maximum number of remembered writers. Any sender can invent publishers.
const REMEMBERED: usize = 10_000;

/// Maximum number of unrequested descriptions among them.
const UNASKED: usize = 1_000;

impl Directory {
    /// Adds the names of fields. If they are unknown and were not requested yet, returns whom to ask.
    fn name(&mut self, message: &mut Received) -> Option<(PublisherId, u16)> {
        let key = (message.id.clone()?, message.writer?);
        if message.has_names || self.asked.len() >= REMEMBERED {
            return None;
        }
        let Some(meta_data) = self.known.get(&key) else {
            return self.asked.insert(key.clone()).then_some(key);
        };
        for ((name, _), index) in message.fields.iter_mut().zip(&message.indexes) {
            if let Some(field) = meta_data.fields.get(usize::from(*index)) {
                *name = field.name.as_str().to_owned();
            }
        }
        None
    }

    /// Stores descriptions that were requested, and those that arrive before the first message: a broker sends its
    /// retained ones only once.
    fn learn(&mut self, event: &SubscriberEvent) {
        if let SubscriberEvent::Announcement { publisher_id: Some(id), announcement, .. } = event
            && let Announcement::DataSetMetaData { writer_id, meta_data, status } = &announcement.announcement
            && !status.is_bad()
        {
            let key = (id.clone(), *writer_id);
            if self.known.len() < UNASKED || self.known.contains_key(&key) || self.asked.contains(&key) {
                self.known.insert(key, (**meta_data).clone());
            }
        }
    }
}

/// Prints messages until the count is reached or the user interrupts.
pub(super) fn run(arguments: &ListenArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let keys = arguments.common.key_source(false)?;
    arguments.common.start_broker()?;
    let mut builder = match arguments.common.configuration()? {
        Some(configuration) => Subscriber::of(configuration),
        None => {
            let mut builder = Subscriber::builder(&arguments.common.address()?);
            if let Some(interface) = &arguments.common.interface {
                builder = builder.interface(interface);
            }
            if let Some(id) = &arguments.publisher_id {
                builder = builder.publisher(id.clone());
            }
            if let Some(id) = arguments.group {
                builder = builder.writer_group(id);
            }
            if let Some(id) = arguments.writer {
                builder = builder.writer(id);
            }
            builder
        }
    };
    let progress = keys.as_ref().map(Keys::progress);
    let secured = arguments.common.security != Mode::None;
    let mut demanded = builder.configuration().clone();
    if let Some(keys) = keys.as_ref().filter(|_| secured) {
        demanded.strengthen_readers(arguments.common.security.mode(), keys.group());
    }
    demand::check(&demanded, Side::Readers, keys.as_ref())?;
    builder = match keys {
        Some(keys) if secured => {
            let group = keys.group().to_owned();
            builder.security(arguments.common.security.mode(), &group, keys)
        }
        Some(keys) => builder.keys(keys),
        None => builder,
    };
    if let Some(span) = arguments.max_age {
        builder = builder.message_age_max(span);
    }
    if let Some(path) = &arguments.replay_file {
        builder = builder.replay_floor(path);
    }
    let mut mqtt = arguments.common.mqtt();
    mqtt.receive_status = true;
    let (tell, heard) = mpsc::sync_channel(WAITING);
    let tell_event = tell.clone();
    let subscriber = builder
        .mqtt(mqtt)
        .on_message(move |message| {
            let _ = tell.try_send(Heard::Message(Box::new(received(message))));
        })
        .on_event(move |event| {
            let _ = tell_event.try_send(Heard::Event(Box::new(event)));
        })
        .start()
        .map_err(failure)?;
    let mut directory = Directory::default();
    let (mut drops, mut ungrouped) = (Drops::default(), 0);
    let end = arguments.duration.map(|span| Instant::now() + span);
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 && !interrupt.asked() {
        let now = Instant::now();
        if end.is_some_and(|end| now >= end) {
            break;
        }
        match heard.recv_timeout(end.map_or(INTERRUPT_INTERVAL, |end| INTERRUPT_INTERVAL.min(end - now))) {
            // The message has another WriterGroup, or none.
            Ok(Heard::Message(message)) if arguments.group.is_some() && message.group.is_none() => {
                ungrouped += 1
            }
            Ok(Heard::Message(mut message)) => {
                if let Some((id, writer)) = directory.name(&mut message) {
                    let (connection, probe) = (message.connection, Probe::DataSetMetaData(vec![writer]));
                    subscriber
                        .driver()
                        .run(move |engine, now, _| engine.probe(connection, Some(id), probe, now));
                }
                print(&message, output)?;
                left -= 1;
            }
            Ok(Heard::Event(event)) => {
                directory.learn(&event);
                print_status(&event, output)?;
                if !output.is_json()
                    && let SubscriberEvent::Dropped { reason, .. } = &*event
                {
                    if let Some(said) = drops.said(&reason.to_string()) {
                        tell!("{}", output.bad(&said));
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let (counters, brokers) = (subscriber.counters(), subscriber.brokers());
    subscriber.stop();
    if output.is_json() {
        output.line(&json!({
            "Event": "End",
            "NetworkMessages": counters.network_messages,
            "DataSetMessages": counters.data_set_messages,
            "Missing": counters.missing,
            "Duplicates": counters.duplicates,
            "Malformed": counters.malformed,
            "SecurityErrors": counters.security_errors,
            "Unwanted": counters.unwanted,
            "UnwantedSecured": counters.unwanted_secured,
            "WithoutGroup": ungrouped,
        }))?;
    } else {
        tell!(
            "{} network messages, {} data set messages; missing {}, twice {}, malformed {}, security {}",
            counters.network_messages,
            counters.data_set_messages,
            counters.missing,
            counters.duplicates,
            counters.malformed,
            counters.security_errors
        );
        for hint in drops.counted().into_iter().chain(hints(&counters, ungrouped)) {
            tell!("{hint}");
        }
    }
    if let Some(broker) = brokers.iter().find(|broker| broker.connections() == 0) {
        let why = broker.error();
        let why = if why.is_empty() { "it has not responded".to_owned() } else { why };
        return Err(Failure::Connect(format!("nothing was received: no connection to a broker: {why}")));
    }
    demand::check_received(progress.as_ref())?;
    let is_bounded = arguments.count.is_some() || arguments.duration.is_some();
    if interrupt.asked() && is_bounded { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Reasons for dropped messages. Each reason is printed once and then counted: with MessageRepeatCount, every message
/// has replays.
#[derive(Default)]
struct Drops(BTreeMap<String, u64>);

/// Maximum number of reasons. Any sender can cause new ones.
const REASONS: usize = 50;

impl Drops {
    /// The message to print for a reason, if any.
    fn said(&mut self, reason: &str) -> Option<String> {
        let is_new = !self.0.contains_key(reason);
        let reason = if is_new && self.0.len() >= REASONS { "other reasons" } else { reason };
        let count = self.0.entry(reason.to_owned()).or_default();
        *count += 1;
        (*count == 1).then(|| format!("dropped: {reason}; further ones are only counted"))
    }

    /// Reasons that occurred more than once.
    fn counted(&self) -> Vec<String> {
        let often = self.0.iter().filter(|(_, count)| **count > 1);
        often.map(|(reason, count)| format!("dropped {count} times: {reason}")).collect()
    }
}

/// Likely causes, derived from the counters.
fn hints(counters: &SubscriberCounters, ungrouped: u64) -> Vec<String> {
    let count = |number: u64| {
        if number == 1 { "1 message was".to_owned() } else { format!("{number} messages were") }
    };
    let mut all = Vec::new();
    let secured = counters.unwanted_secured;
    if secured > 0 {
        all.push(format!(
            "{} ignored: secured, but no keys are given; pass --security with --keys or --key-service",
            count(secured)
        ));
    }
    let others = counters.unwanted.saturating_sub(secured);
    if others > 0 {
        all.push(format!(
            "{} ignored: from other publishers, groups or writers than selected",
            count(others)
        ));
    }
    if ungrouped > 0 {
        all.push(format!("{} not shown: without a WriterGroupId, which --group needs", count(ungrouped)));
    }
    // If two publishers share an id, half of the messages look old, because each publisher counts for itself.
    let old = counters.duplicates + counters.out_of_sequence;
    if old >= 10 && old * 4 > counters.data_set_messages {
        all.push(format!(
            "{} twice, late or out of sequence: do two publishers have one PublisherId, or is one started twice?",
            count(old)
        ));
    }
    all
}

/// Prints the status of a publisher, as announced by it or its broker.
fn print_status(event: &SubscriberEvent, output: Output) -> Result<(), Failure> {
    let SubscriberEvent::Announcement { publisher_id, announcement, .. } = event else { return Ok(()) };
    let Announcement::Status { state, cyclic } = &announcement.announcement else { return Ok(()) };
    let publisher = publisher_id.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
    let name = match *state {
        PubSubState::DISABLED => "Disabled",
        PubSubState::PAUSED => "Paused",
        PubSubState::OPERATIONAL => "Operational",
        PubSubState::ERROR => "Error",
        PubSubState::PRE_OPERATIONAL => "PreOperational",
        _ => "Unknown",
    };
    if output.is_json() {
        return output.line(&json!({
            "Event": "Status",
            "PublisherId": publisher,
            "State": name,
            "Timestamp": cyclic.map(|(_, timestamp)| timestamp.to_string()),
            "NextReportTime": cyclic.map(|(next_report, _)| next_report.to_string()),
        }));
    }
    let shown = if *state == PubSubState::ERROR { output.bad(name) } else { name.to_owned() };
    let again =
        cyclic.map(|(next_report, _)| format!("; next report at {}", output::short(Some(next_report))));
    output.text(&format!("publisher {publisher} is {shown}{}", again.unwrap_or_default()))
}

fn received(message: &DataSetMessage<'_>) -> Received {
    Received {
        connection: message.reader.connection,
        id: message.publisher_id.map(owned),
        has_names: !message.meta_data.fields.is_empty() || !message.names.is_empty(),
        indexes: message.fields.iter().map(|field| field.index).collect(),
        time: message.timestamp,
        publisher: message.publisher_id.map_or_else(|| "?".to_owned(), |id| id.to_string()),
        group: message.writer_group_id,
        writer: message.data_set_writer_id,
        number: message.sequence_number,
        missing: message.missing,
        kind: message.kind,
        status: message.status,
        fields: named(message).map(|(name, value)| (name.into_owned(), value.clone())).collect(),
    }
}

fn owned(id: PublisherIdRef<'_>) -> PublisherId {
    match id {
        PublisherIdRef::Byte(id) => PublisherId::Byte(id),
        PublisherIdRef::UInt16(id) => PublisherId::UInt16(id),
        PublisherIdRef::UInt32(id) => PublisherId::UInt32(id),
        PublisherIdRef::UInt64(id) => PublisherId::UInt64(id),
        PublisherIdRef::String(id) => PublisherId::String(id.into()),
    }
}

fn kind_name(kind: DataSetMessageKind) -> &'static str {
    match kind {
        DataSetMessageKind::KeyFrame => "KeyFrame",
        DataSetMessageKind::DeltaFrame => "DeltaFrame",
        DataSetMessageKind::Event => "Event",
        DataSetMessageKind::KeepAlive => "KeepAlive",
        _ => "Other",
    }
}

fn print(message: &Received, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        let fields: Map<String, Value> =
            message.fields.iter().map(|(name, value)| (name.clone(), output::data_value(value))).collect();
        return output.line(&json!({
            "Timestamp": message.time.map(|time| time.to_string()),
            "PublisherId": message.publisher,
            "WriterGroupId": message.group,
            "DataSetWriterId": message.writer,
            "SequenceNumber": message.number,
            "Missing": message.missing,
            "MessageType": kind_name(message.kind),
            "Status": message.status.to_string(),
            "Fields": fields,
        }));
    }
    let id = |id: Option<u16>| id.map_or_else(|| "-".to_owned(), |id| id.to_string());
    let mut line = format!(
        "{}  {}/{}/{}",
        output.faint(&output::short(message.time)),
        message.publisher,
        id(message.group),
        id(message.writer)
    );
    if let Some(number) = message.number {
        line.push_str(&format!(" #{number}"));
    }
    if message.kind != DataSetMessageKind::KeyFrame {
        line.push_str(&format!(" {}", kind_name(message.kind)));
    }
    for (name, value) in &message.fields {
        let shown = value.value.as_ref().map_or_else(|| "–".to_owned(), ToString::to_string);
        let status = value.status();
        let quality =
            if status.is_good() { String::new() } else { format!(" {}", output.bad(&status.to_string())) };
        line.push_str(&format!("  {name}={shown}{quality}"));
    }
    if !message.status.is_good() {
        line.push_str(&format!("  {}", output.bad(&message.status.to_string())));
    }
    if message.missing > 0 {
        line.push_str(&format!("  {}", output.bad(&format!("{} missing before", message.missing))));
    }
    output.text(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk::pubsub::config::build::field;
    use taktwerk_pubsub::uadp::announcement::NumberedAnnouncement;
    use taktwerk_types::{BuiltInType, Variant};

    fn message() -> Received {
        Received {
            connection: 0,
            id: Some(PublisherId::UInt16(7)),
            has_names: false,
            indexes: vec![0, 1],
            time: None,
            publisher: "7".to_owned(),
            group: Some(1),
            writer: Some(3),
            number: Some(1),
            missing: 0,
            kind: DataSetMessageKind::KeyFrame,
            status: StatusCode::GOOD,
            fields: ["0", "1"].map(|name| (name.to_owned(), DataValue::new(Variant::from(1u8)))).to_vec(),
        }
    }

    fn description(writer_id: u16, status: StatusCode) -> SubscriberEvent {
        let fields = ["temperature", "state"].map(|name| field(name, BuiltInType::Byte)).to_vec();
        let meta_data = Box::new(DataSetMetaDataType { fields, ..DataSetMetaDataType::default() });
        let announcement = Announcement::DataSetMetaData { writer_id, meta_data, status };
        SubscriberEvent::Announcement {
            connection: 0,
            publisher_id: Some(PublisherId::UInt16(7)),
            announcement: Box::new(NumberedAnnouncement { sequence_number: 0, announcement }),
        }
    }

    fn names(message: &Received) -> Vec<&str> {
        message.fields.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn drops_are_printed_once_and_counted() {
        let mut drops = Drops::default();
        assert!(drops.said("forged").is_some_and(|said| said.contains("forged")));
        assert_eq!((drops.said("forged"), drops.said("forged")), (None, None));
        assert!(drops.said("replayed").is_some());
        assert_eq!(drops.counted(), ["dropped 3 times: forged"]);
        for number in 0..2 * REASONS {
            drops.said(&format!("invented {number}"));
        }
        assert!(drops.0.len() <= REASONS + 1);
    }

    #[test]
    fn likely_causes_are_printed() {
        assert_eq!(hints(&SubscriberCounters::default(), 0), Vec::<String>::new());
        let mut counters = SubscriberCounters::default();
        (counters.unwanted, counters.unwanted_secured) = (5, 4);
        (counters.data_set_messages, counters.duplicates, counters.out_of_sequence) = (20, 6, 6);
        let said = hints(&counters, 1);
        for (said, expected) in said.iter().zip([
            "--key-service",
            "1 message was ignored: from other",
            "--group",
            "two publishers",
        ]) {
            assert!(said.contains(expected), "{said}");
        }
        assert_eq!(said.len(), 4);
    }

    /// A broker sends retained messages once, before the first data message.
    #[test]
    fn descriptions_before_the_first_message_are_kept() {
        let mut directory = Directory::default();
        directory.learn(&description(3, StatusCode::GOOD));
        let mut first = message();
        assert_eq!(directory.name(&mut first), None);
        assert_eq!(names(&first), ["temperature", "state"]);
    }

    #[test]
    fn unknown_writers_are_asked_once() {
        let mut directory = Directory::default();
        directory.learn(&description(3, StatusCode::BAD_NOT_FOUND));
        directory.learn(&description(4, StatusCode::GOOD));
        let mut first = message();
        assert_eq!(directory.name(&mut first), Some((PublisherId::UInt16(7), 3)));
        assert_eq!(directory.name(&mut first), None);
        assert_eq!(names(&first), ["0", "1"]);
        directory.learn(&description(3, StatusCode::GOOD));
        assert_eq!(directory.name(&mut first), None);
        assert_eq!(names(&first), ["temperature", "state"]);
    }
}
