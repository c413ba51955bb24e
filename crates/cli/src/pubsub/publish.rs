//! `taktwerk pubsub publish`.

use super::bridge::{self, Bridge};
use super::common::{CommonArgs, Mode, failure, publisher_id};
use super::demand::{self, Side};
use super::keys::Keys;
use super::send_time;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::node::NodeSpec;
use crate::output::Output;
use crate::overwrite::Overwrite;
use crate::span;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use taktwerk::pubsub::BrokerStatus;
use taktwerk::pubsub::config::build::field;
use taktwerk::pubsub::config::{Configuration, DataSetSource, binary_file, without_credentials};
use taktwerk::pubsub::publisher::Layout;
use taktwerk::pubsub::{
    DataSet, LatenessSnapshot, Prepare, Publisher, PublisherBuilder, PublisherId, RealTime,
};
use taktwerk::schema::{DataSetFieldContentMask, FieldMetaData};
use taktwerk_lab::figures;
use taktwerk_net::pubsub::SentTotals;
use taktwerk_types::{BuiltInType, DataValue, NodeId, Variant};

/// Layout of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LayoutName {
    /// Messages describe their fields.
    Dynamic,
    /// Every field has a fixed position; subscribers need the configuration.
    PeriodicFixed,
}

/// Arguments of `taktwerk pubsub publish`.
#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    #[command(flatten)]
    common: CommonArgs,

    /// PublisherId: 2234, byte:1, uint32:7, string:line-1.
    #[arg(long, value_name = "ID", default_value = "1", value_parser = publisher_id, conflicts_with = "config")]
    publisher_id: PublisherId,

    /// Publishing interval; a plain number means milliseconds. Default: 1 s. With --config and --from: publishing
    /// interval of the subscription.
    #[arg(short = 'I', long, value_name = "MS", value_parser = span::millis)]
    interval: Option<Duration>,

    /// Layout of the messages.
    #[arg(long, value_enum, default_value = "dynamic", conflicts_with = "config")]
    layout: LayoutName,

    /// Number of simulated values, without --from.
    #[arg(long, value_name = "N", default_value_t = 5, conflicts_with_all = ["from", "config"])]
    signals: u32,

    /// Simulate all fields of --config, including those that name a node.
    #[arg(long, requires = "config", conflicts_with = "from")]
    simulate: bool,

    /// Publish the values of this server.
    #[arg(long, value_name = "SERVER")]
    from: Option<Endpoint>,

    /// NodeIds or browse paths (with * and ?) to publish. With --config: the nodes of the configuration.
    #[arg(long, value_name = "NODE", num_args = 1.., requires = "from", conflicts_with = "config")]
    nodes: Vec<NodeSpec>,

    /// Real-time priority (SCHED_FIFO), 1 to 99.
    #[arg(long, value_name = "PRIORITY")]
    fifo: Option<u8>,

    /// The CPU for the timer thread.
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// Lock all memory in RAM.
    #[arg(long)]
    lock_memory: bool,

    /// Let the kernel send at exact times (SO_TXTIME). The interface needs the queueing discipline fq or etf.
    #[arg(long)]
    send_time: bool,

    /// Prepare messages this long before they are due. Default: measured.
    #[arg(long, value_name = "SPAN", value_parser = span::micros)]
    prepare: Option<Duration>,

    /// Stop after this time.
    #[arg(short, long, value_name = "SPAN", value_parser = span::seconds)]
    duration: Option<Duration>,

    /// Write the configuration for subscribers (--config) to this file. It does not contain the user and password of a
    /// broker.
    #[arg(long, value_name = "FILE")]
    write_subscriber: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,
}

/// Sets the fields of a data set.
type Fill = Box<dyn FnMut(&mut [DataValue]) -> bool + Send>;

/// Default interval.
const INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which interruption is checked.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);

/// Publishes until the time is over or the user interrupts.
pub(super) fn run(arguments: &PublishArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let keys = arguments.common.key_source(true)?;
    let configuration = arguments.common.configuration()?;
    if configuration.is_some() && arguments.from.is_none() && arguments.interval.is_some() {
        return Err(Failure::Usage(
            "--interval: with --config, the interval is that of each writer group".to_owned(),
        ));
    }
    if let Some(configuration) = configuration.as_ref().filter(|_| arguments.from.is_none()) {
        check_simulated(configuration, arguments.simulate)?;
    }
    arguments.common.start_broker()?;
    let mut bridge = open_bridge(arguments, configuration.as_ref(), interrupt)?;
    let mut builder = match configuration {
        Some(configuration) => from_configuration(configuration, bridge.as_ref())?,
        None => short_form(arguments, bridge.as_ref())?,
    };
    let progress = keys.as_ref().map(Keys::progress);
    let secured = arguments.common.security != Mode::None;
    let mut demanded = builder.configuration();
    if let Some(keys) = keys.as_ref().filter(|_| secured) {
        demanded.strengthen_writers(arguments.common.security.mode(), keys.group());
    }
    demand::check(&demanded, Side::Writers, keys.as_ref())?;
    builder = match keys {
        Some(keys) if secured => {
            let group = keys.group().to_owned();
            builder.security(arguments.common.security.mode(), &group, keys)
        }
        Some(keys) => builder.keys(keys),
        None => builder,
    };
    let mut real_time = RealTime::default();
    (real_time.fifo, real_time.cpu, real_time.lock_memory) =
        (arguments.fifo, arguments.cpu, arguments.lock_memory);
    let mut udp = taktwerk::pubsub::UdpOptions::default();
    udp.send_time = arguments.send_time;
    if arguments.send_time {
        send_time::warn(arguments.common.interface.as_deref());
    }
    builder = builder.real_time(real_time).udp(udp).mqtt(arguments.common.mqtt());
    if let Some(span) = arguments.prepare {
        builder = builder.prepare(Prepare::Early(span));
    }
    let configuration = builder.configuration();
    if let Some(path) = &arguments.write_subscriber {
        arguments.overwrite.check(path)?;
        write_subscriber(&configuration, path)?;
    }
    let publisher = builder.start().map_err(failure)?;
    announce(&configuration, output);
    let end = arguments.duration.map(|span| Instant::now() + span);
    while !interrupt.asked() && end.is_none_or(|end| Instant::now() < end) {
        match &mut bridge {
            Some(server) => {
                if let Err(error) = server.turn(INTERRUPT_INTERVAL) {
                    bridge::lost(&server.values);
                    publisher.stop();
                    return Err(error);
                }
            }
            None => std::thread::sleep(
                INTERRUPT_INTERVAL.min(end.map_or(INTERRUPT_INTERVAL, |end| end - Instant::now().min(end))),
            ),
        }
    }
    let mut end = End::of(&publisher);
    let brokers = publisher.brokers();
    publisher.stop();
    if let Some(bridge) = bridge {
        bridge.close();
    }
    // Messages that have not reached the broker by now are lost.
    end.lost = end.failed() + brokers.iter().map(BrokerStatus::undelivered).sum::<u64>();
    summary(&end, output)?;
    unreached(&configuration, &brokers, end.lost)?;
    demand::check_received(progress.as_ref())?;
    unsent(&configuration, end.sent.messages, end.failed())?;
    // Without --duration, Ctrl-C is the normal end.
    if interrupt.asked() && arguments.duration.is_some() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Refuses to simulate fields that name a node, unless --simulate is given. Reports which values are simulated.
fn check_simulated(configuration: &Configuration, simulate: bool) -> Result<(), Failure> {
    let sources = configuration.data_sets.iter();
    let with_nodes = sources.clone().find(|set| matches!(set.source, DataSetSource::Items(_)));
    if let Some(set) = with_nodes.filter(|_| !simulate) {
        return Err(Failure::Usage(format!(
            "the fields of the data set {:?} have the values of nodes: name the server with --from SERVER, or simulate \
             them with --simulate",
            set.name
        )));
    }
    let is_made_up =
        |source: &DataSetSource| matches!(source, DataSetSource::Items(_) | DataSetSource::Custom { .. });
    let names: Vec<_> =
        sources.filter(|set| is_made_up(&set.source)).map(|set| format!("{:?}", set.name)).collect();
    if !names.is_empty() {
        tell!("simulated values: {}", names.join(", "));
    }
    Ok(())
}

fn open_bridge(
    arguments: &PublishArgs,
    configuration: Option<&Configuration>,
    interrupt: &Interrupt,
) -> Result<Option<Bridge>, Failure> {
    let Some(endpoint) = &arguments.from else { return Ok(None) };
    let mut specs = arguments.nodes.clone();
    if let Some(configuration) = configuration {
        // In the order of the fields.
        specs.clear();
        for data_set in &configuration.data_sets {
            if let DataSetSource::Items(items) = &data_set.source {
                for item in items {
                    let text = item.published_variable.to_string();
                    specs.push(text.parse().map_err(|error| Failure::Usage(format!("{text}: {error}")))?);
                }
            }
        }
    }
    if specs.is_empty() {
        return Err(Failure::Usage(
            "no nodes are given: pass --nodes, or set node = … for the fields of --config".to_owned(),
        ));
    }
    let interval = arguments.interval.unwrap_or(INTERVAL).min(Duration::from_millis(100));
    Bridge::open(endpoint, &arguments.common.server, &specs, interval, interrupt).map(Some)
}

/// Data sets of a configuration, with values from the server or simulated ones.
fn from_configuration(
    configuration: Configuration,
    bridge: Option<&Bridge>,
) -> Result<PublisherBuilder, Failure> {
    let mut fills: Vec<(String, Fill)> = Vec::new();
    let mut first = 0;
    for data_set in &configuration.data_sets {
        let name = data_set.name.clone();
        match (&data_set.source, bridge) {
            (DataSetSource::Items(items), Some(bridge)) => {
                let (values, start) = (Arc::clone(&bridge.values), first);
                first += items.len();
                let fill = move |fields: &mut [DataValue]| {
                    bridge::copy(&values, start, fields);
                    true
                };
                fills.push((name, Box::new(fill)));
            }
            (DataSetSource::Items(_) | DataSetSource::Custom { .. }, _) => {
                let mut wave = Wave::new(&data_set.meta_data.fields);
                fills.push((name, Box::new(move |fields: &mut [DataValue]| wave.fill(fields))));
            }
            _ => {}
        }
    }
    let builder = Publisher::of(configuration);
    Ok(fills.into_iter().fold(builder, |builder, (name, fill)| builder.values(&name, fill)))
}

fn short_form(arguments: &PublishArgs, bridge: Option<&Bridge>) -> Result<PublisherBuilder, Failure> {
    let data_set = match bridge {
        Some(bridge) => {
            let kinds: Vec<(NodeId, BuiltInType)> = {
                let held = bridge.values.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let kind = |value: &DataValue| value.value.as_ref().and_then(Variant::built_in_type);
                let kinds = held.values.iter().map(|value| kind(value).unwrap_or(BuiltInType::Variant));
                bridge.nodes.iter().cloned().zip(kinds).collect()
            };
            let fields = kinds.into_iter().map(|(node, kind)| field(&node.to_string(), kind));
            let values = Arc::clone(&bridge.values);
            DataSet::from_fn("server", fields, move |fields| bridge::copy(&values, 0, fields))
        }
        None => {
            let fields: Vec<_> = (1..=arguments.signals)
                .map(|number| field(&format!("s{number}"), BuiltInType::Float))
                .collect();
            let mut wave = Wave::new(&fields);
            DataSet::from_fn("waves", fields, move |fields| {
                wave.fill(fields);
            })
        }
    };
    let mut builder = Publisher::builder(&arguments.common.address()?)
        .publisher(arguments.publisher_id.clone())
        .interval(arguments.interval.unwrap_or(INTERVAL))
        .data_set(data_set);
    if arguments.layout == LayoutName::PeriodicFixed {
        builder = builder.layout(Layout::PeriodicFixed);
    }
    if bridge.is_some() {
        // Subscribers need status and time to recognize the last value of an unreachable server.
        let mask = DataSetFieldContentMask::STATUS_CODE | DataSetFieldContentMask::SOURCE_TIMESTAMP;
        builder = builder.field_content(mask);
    }
    Ok(match &arguments.common.interface {
        Some(interface) => builder.interface(interface),
        None => builder,
    })
}

/// Sine waves of different periods for floating-point fields, counters for others.
struct Wave {
    kinds: Vec<BuiltInType>,
    cycle: u64,
}

impl Wave {
    fn new(fields: &[FieldMetaData]) -> Self {
        let kind = |field: &FieldMetaData| BuiltInType::from_number(field.built_in_type);
        Self {
            kinds: fields.iter().map(|field| kind(field).unwrap_or(BuiltInType::Float)).collect(),
            cycle: 0,
        }
    }

    fn fill(&mut self, fields: &mut [DataValue]) -> bool {
        self.cycle += 1;
        for (number, (field, kind)) in fields.iter_mut().zip(&self.kinds).enumerate() {
            let phase = self.cycle as f64 * 0.05 * (1.0 + number as f64 / 10.0);
            *field = DataValue::new(invented(*kind, phase.sin() * 50.0 + 50.0, self.cycle));
        }
        true
    }
}

fn invented(kind: BuiltInType, wave: f64, cycle: u64) -> Variant {
    match kind {
        BuiltInType::Boolean => cycle.is_multiple_of(2).into(),
        BuiltInType::SByte => (wave as i8).into(),
        BuiltInType::Byte => (wave as u8).into(),
        BuiltInType::Int16 => (wave as i16).into(),
        BuiltInType::UInt16 => (wave as u16).into(),
        BuiltInType::Int32 => ((cycle & 0x7fff_ffff) as i32).into(),
        BuiltInType::UInt32 => ((cycle & 0xffff_ffff) as u32).into(),
        BuiltInType::Int64 => ((cycle & 0x7fff_ffff_ffff_ffff) as i64).into(),
        BuiltInType::UInt64 => cycle.into(),
        BuiltInType::Double => wave.into(),
        BuiltInType::String => format!("{cycle}").into(),
        BuiltInType::DateTime => taktwerk_net::clock::wall().into(),
        BuiltInType::Float => (wave as f32).into(),
        _ => Variant::Empty,
    }
}

/// Comment at the beginning of a subscriber's configuration.
const NO_PASSWORD: &str = "\
# The publisher's user and password are not in this file. A broker that wants some is told the subscriber's own:
# url = \"mqtts://user@host\" and password-file = \"broker.password\", a file with the password in its first line (chmod 600).
";

fn write_subscriber(configuration: &Configuration, path: &PathBuf) -> Result<(), Failure> {
    let mut theirs = Configuration::subscriber_of(configuration);
    // Subscribers use their own broker users.
    let mut note = "";
    for connection in &mut theirs.connections {
        let public = without_credentials(&connection.url);
        if public != connection.url {
            connection.url = public;
            note = NO_PASSWORD;
        }
    }
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    let bytes = if is_toml {
        let text = taktwerk::pubsub::config::toml::to_toml(&theirs);
        let text = text.map_err(|error| Failure::Usage(error.to_string()))?;
        format!("{note}{text}").into_bytes()
    } else {
        binary_file::write(&theirs)
    };
    std::fs::write(path, bytes)
        .map_err(|error| Failure::Environment(format!("cannot write {}: {error}", path.display())))
}

fn announce(configuration: &Configuration, output: Output) {
    if output.is_json() {
        return;
    }
    for connection in &configuration.connections {
        for group in &connection.writer_groups {
            let id = connection.publisher_id.as_ref().map_or_else(String::new, |id| format!("{id}"));
            tell!(
                "publisher {id}, group {} with {} data set{}, every {} ms, to {}",
                group.writer_group_id,
                group.writers.len(),
                if group.writers.len() == 1 { "" } else { "s" },
                group.publishing_interval,
                without_credentials(&connection.url)
            );
        }
    }
}

/// The final statistics.
struct End {
    sent: SentTotals,
    lateness: LatenessSnapshot,
    missed: u64,
    /// Messages that were not sent, or did not reach their broker.
    lost: u64,
}

impl End {
    fn of(publisher: &Publisher) -> Self {
        let missed = publisher.groups().iter().map(|(_, _, counters)| counters.missed).sum();
        Self { sent: publisher.sent(), lateness: publisher.lateness(), missed, lost: 0 }
    }

    fn failed(&self) -> u64 {
        self.sent.failed
    }
}

/// Fails if a broker was never reached.
fn unreached(configuration: &Configuration, brokers: &[BrokerStatus], lost: u64) -> Result<(), Failure> {
    let is_unreached = |broker: &&BrokerStatus| broker.delivered() == 0 && broker.undelivered() > 0;
    let Some(broker) = brokers.iter().find(is_unreached) else {
        return Ok(());
    };
    let mut urls = configuration.connections.iter().map(|one| one.url.as_str());
    let url = without_credentials(urls.find(|url| url.starts_with("mqtt")).unwrap_or_default());
    let why = broker.error();
    let why = match (broker.connections(), why.as_str()) {
        (0, "") => "it has not responded".to_owned(),
        (_, "") => "it has accepted no message".to_owned(),
        (_, why) => why.to_owned(),
    };
    Err(Failure::Connect(format!(
        "nothing has arrived at the broker {url}: {why}; {lost} message{} lost",
        if lost == 1 { " is" } else { "s are" }
    )))
}

/// Fails if the network accepted no message.
fn unsent(configuration: &Configuration, sent: u64, lost: u64) -> Result<(), Failure> {
    if sent > 0 || lost == 0 {
        return Ok(());
    }
    let mut urls = configuration.connections.iter().map(|one| one.url.as_str());
    let url = urls.find(|url| url.starts_with("opc.")).unwrap_or_default();
    Err(Failure::Connect(format!(
        "nothing was sent to {url}: the network accepted none of {lost} message{}. Check the route (ip route get), and that \
         --interface is correct and up",
        if lost == 1 { "" } else { "s" }
    )))
}

/// Prints what was sent, and the delays.
fn summary(end: &End, output: Output) -> Result<(), Failure> {
    let End { sent, lateness, missed, lost } = end;
    let micros = |nanos: u64| nanos as f64 / 1e3;
    if output.is_json() {
        return output.document(&json!({
            "cycles": sent.turns,
            "missed": missed,
            "messages": sent.messages,
            "bytes": sent.bytes,
            "failed": lost,
            "cpu_s": sent.cpu_nanos as f64 / 1e9,
            "lateness_us": {
                "p50": micros(lateness.total.quantile(0.5)),
                "p99": micros(lateness.total.quantile(0.99)),
                "max": micros(lateness.total.max),
            },
            "late": {
                "timer": lateness.late_timer,
                "encode": lateness.late_encode,
                "send": lateness.late_send,
            },
        }));
    }
    let late = lateness.late_timer + lateness.late_encode + lateness.late_send;
    output.text(&format!(
        "{} cycles, {missed} missed; {} messages with {}, {lost} lost",
        sent.turns,
        sent.messages,
        figures::bytes(sent.bytes as f64),
    ))?;
    output.text(&format!(
        "late: p50 {}, p99 {}, at most {}; {late} cycles by more than 1 ms (timer {}, encode {}, send {})",
        figures::micros(micros(lateness.total.quantile(0.5))),
        figures::micros(micros(lateness.total.quantile(0.99))),
        figures::micros(micros(lateness.total.max)),
        lateness.late_timer,
        lateness.late_encode,
        lateness.late_send
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk::pubsub::config::Connection;

    #[test]
    fn a_network_that_accepts_nothing_is_a_failure() {
        let connections = vec![Connection::new("udp", None, "opc.udp://192.0.2.1:4840")];
        let configuration = Configuration { connections, ..Configuration::default() };
        let error = unsent(&configuration, 0, 16).unwrap_err();
        assert!(matches!(error, Failure::Connect(_)));
        let said = error.to_string();
        assert!(said.contains("opc.udp://192.0.2.1:4840") && said.contains("16 messages"), "{said}");
        assert!(unsent(&configuration, 1, 16).is_ok() && unsent(&configuration, 0, 0).is_ok());
    }
}
