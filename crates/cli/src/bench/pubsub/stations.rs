//! Stations that publish when they have something to say, over UDP without a broker: round trips of a message to its own
//! publisher, and one message that all others answer (Rocha et al. 2019).
//!
//! All of them are in one thread, as the clients of `bench mqtt` and `bench fan` are.

use super::{Pattern, PubSub, failure};
use crate::bench::report::Report;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::Timespec;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use taktwerk::pubsub::config::build::field;
use taktwerk::pubsub::config::{Configuration, Connection, DataSetWriter, PublishedDataSet, WriterGroup};
use taktwerk::pubsub::{PubSubError, PublisherId, UdpOptions};
// tidy: repeatable: a load.
use taktwerk_crypto::SeededEntropy;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_lab::figures;
use taktwerk_lab::latency::Times;
use taktwerk_lab::validity::Invalid;
use taktwerk_load::result::{self, Crew, Datagrams};
use taktwerk_net::clock::{monotonic, process_cpu, wall};
use taktwerk_net::pubsub::interface::Interface;
use taktwerk_net::pubsub::{Address, UdpReceiver, UdpSender};
use taktwerk_pubsub::{
    DataSetMessage, Now, Publisher, PublisherOptions, Subscriber, SubscriberOptions, Transmit,
};
use taktwerk_types::{BuiltInType, ByteString, DataValue, Instant, Variant};

/// A transaction that takes longer than this has lost a message.
const PATIENCE: u64 = 2_000_000_000;
/// Milliseconds of the WriterGroups' cycles. Time that passes for them is made of such cycles: one for each message.
const CYCLE: f64 = 1.0;
/// Events taken at once.
const EVENTS: usize = 256;
/// IPv4 and UDP headers; Ethernet's header and check sequence; its smallest frame.
const UDP_IP: u64 = 28;
const ETHERNET: u64 = 18;
const FRAME_MIN: u64 = 64;

/// What came of it.
#[derive(Default)]
struct Outcome {
    times: Times,
    /// With fan: until the last receiver had the message.
    last: Times,
    missing: u64,
    datagrams: u64,
    uadp_bytes: u64,
    ethernet_bytes: u64,
}

/// A publisher and a subscriber.
struct Station {
    publisher: Publisher,
    sender: UdpSender,
    subscriber: Subscriber,
    receiver: UdpReceiver,
    out: Transmit,
    payload: Vec<u8>,
}

fn configuration(name: &str, id: u16, url: &str, arguments: &PubSub) -> Configuration {
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    let fields = vec![field("value", BuiltInType::ByteString)];
    configuration.data_sets.push(PublishedDataSet::new(name, fields));
    let mut group = WriterGroup::dynamic("group", 1, CYCLE);
    group.writers.push(DataSetWriter::dynamic(name, 1, name));
    let mut connection = Connection::new(name, Some(PublisherId::UInt16(id)), url);
    connection.network_interface.clone_from(&arguments.interface);
    connection.writer_groups.push(group);
    configuration.connections.push(connection);
    configuration
}

fn usage(problems: &[impl std::fmt::Display]) -> Failure {
    Failure::Usage(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

impl Station {
    /// A station that publishes to one address and listens at another.
    fn new(id: u16, to: SocketAddr, at: SocketAddr, arguments: &PubSub) -> Result<Self, Failure> {
        let interface = Interface::find(&arguments.interface).map_err(failure)?;
        let url = |address: SocketAddr| format!("opc.udp://{address}");
        let provider = || Arc::new(AwsPubSubProvider);
        // tidy: repeatable: the load is the same every time, and nothing that it sends is worth protecting.
        let entropy = Box::new(SeededEntropy::new(id.into()));
        let publishing = configuration("station", id, &url(to), arguments);
        // Whoever publishes at the address that is listened at: it is the same message of everybody.
        let mut theirs = Configuration::subscriber_of(&configuration("station", id, &url(at), arguments));
        for group in theirs.connections.iter_mut().flat_map(|connection| &mut connection.reader_groups) {
            group.readers.iter_mut().for_each(|reader| reader.publisher_id = None);
        }
        // The first station hears all others.
        let mut options = SubscriberOptions::default();
        options.senders_max = 10_000;
        let mut station = Self {
            publisher: Publisher::new(publishing, PublisherOptions::default(), provider(), entropy)
                .map_err(|problems| usage(&problems))?,
            sender: UdpSender::new(to, &interface, &UdpOptions::default()).map_err(failure)?,
            subscriber: Subscriber::new(theirs, options, provider()).map_err(|problems| usage(&problems))?,
            receiver: UdpReceiver::new(at, &interface).map_err(failure)?,
            out: Transmit::new(),
            payload: vec![0x55; arguments.payload as usize],
        };
        let now = now();
        station.publisher.start(now.instant, now);
        station.subscriber.start(now, &mut |_: &DataSetMessage<'_>| {});
        Ok(station)
    }

    /// Publishes a number with the payload behind it.
    fn publish(&mut self, number: u64, outcome: &mut Outcome) {
        if let Some(place) = self.payload.first_chunk_mut::<8>() {
            *place = number.to_be_bytes();
        }
        let value = Variant::ByteString(ByteString::from(self.payload.clone()));
        let mut values = |_: usize, fields: &mut [DataValue]| {
            if let Some(field) = fields.first_mut() {
                *field = DataValue::new(value.clone());
            }
        };
        // The cycle begins when there is something to say.
        let due = self.publisher.poll_timeout().unwrap_or(Instant::ZERO);
        self.out.clear();
        self.publisher.poll(Now { instant: due, utc: wall() }, &mut values, &mut self.out);
        let datagrams: Vec<&[u8]> = self.out.iter().map(|datagram| datagram.bytes).collect();
        self.sender.send(&datagrams, None);
        for datagram in datagrams {
            let len = datagram.len() as u64;
            outcome.datagrams += 1;
            outcome.uadp_bytes += len;
            outcome.ethernet_bytes += (len + UDP_IP + ETHERNET).max(FRAME_MIN);
        }
    }

    /// Takes what has come: how many messages of this number there were.
    fn receive(&mut self, number: u64) -> Result<usize, Failure> {
        let Self { subscriber, receiver, payload, .. } = self;
        let (mut count, now) = (0, now());
        loop {
            let taken = receiver.receive(|datagram| {
                subscriber.receive(0, datagram, now, &mut |message: &DataSetMessage<'_>| {
                    let value = message.fields.first().and_then(|field| field.value.value.as_ref());
                    if let Some(Variant::ByteString(bytes)) = value
                        && bytes.as_bytes().len() == payload.len()
                        && bytes.as_bytes().first_chunk::<8>().map(|first| u64::from_be_bytes(*first))
                            == Some(number)
                    {
                        count += 1;
                    }
                });
            });
            let taken = taken.map_err(|error| Failure::Environment(format!("cannot receive: {error}")))?;
            if taken < receiver.batch() {
                return Ok(count);
            }
        }
    }
}

fn now() -> Now {
    Now { instant: monotonic(), utc: wall() }
}

/// All stations, and who of them has something to read.
struct Stations {
    all: Vec<Station>,
    epoll: OwnedFd,
    events: Vec<Event>,
    next: u64,
}

impl Stations {
    fn new(arguments: &PubSub) -> Result<Self, Failure> {
        let Address::Udp(out) = Address::parse(&arguments.url).map_err(failure)? else {
            return Err(failure(PubSubError::Address {
                url: arguments.url.clone(),
                reason: "stations talk over opc.udp:// only".to_owned(),
            }));
        };
        // Answers go to the next port.
        let back = SocketAddr::new(out.ip(), out.port().wrapping_add(1));
        let environment = |error: Errno| Failure::Environment(format!("cannot wait for messages: {error}"));
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(environment)?;
        let mut all = Vec::new();
        let is_fan = arguments.pattern == Pattern::Fan;
        let mut progress = Progress::new("opening", u64::from(arguments.clients));
        for number in 0..arguments.clients {
            let (to, at) = match (is_fan, number) {
                (false, _) => (out, out),
                (true, 0) => (out, back),
                (true, _) => (back, out),
            };
            let id = u16::try_from(number + 1).unwrap_or(u16::MAX);
            let station = Station::new(id, to, at, arguments)?;
            let key = EventData::new_u64(number.into());
            epoll::add(&epoll, &station.receiver, key, EventFlags::IN).map_err(environment)?;
            all.push(station);
            progress.at(number.into());
        }
        Ok(Self { all, epoll, events: Vec::with_capacity(EVENTS), next: 1 })
    }

    /// One round trip or transaction; `None` if it was interrupted or a message got lost.
    fn one(&mut self, outcome: &mut Outcome, interrupt: &Interrupt) -> Result<Option<u64>, Failure> {
        let this = self.next;
        self.next += 1;
        let begin = monotonic().as_nanos();
        let stations = self.all.len();
        let Some(first) = self.all.first_mut() else { return Ok(None) };
        first.publish(this, outcome);
        let is_fan = stations > 1;
        let wanted = if is_fan { stations - 1 } else { 1 };
        let (mut had, mut answered) = (0, 0);
        while answered < wanted {
            let left = (begin + PATIENCE).saturating_sub(monotonic().as_nanos());
            if left == 0 || interrupt.asked() {
                outcome.missing += (wanted - answered) as u64;
                return Ok(None);
            }
            let patience = Timespec { tv_sec: 0, tv_nsec: i64::try_from(left.min(100_000_000)).unwrap_or(0) };
            self.events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&patience))
            {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Failure::Environment(format!("cannot wait: {error}"))),
            }
            for event in &self.events {
                let number = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                let Some(station) = self.all.get_mut(number) else { continue };
                let came = station.receive(this)?;
                if number == 0 {
                    answered += came;
                } else if came > 0 {
                    had += 1;
                    if had == wanted {
                        outcome.last.record(monotonic().as_nanos() - begin);
                    }
                    station.publish(this, outcome);
                }
            }
        }
        Ok(Some(monotonic().as_nanos() - begin))
    }
}

/// Measures and reports.
pub(super) fn run(arguments: &PubSub, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let is_fan = arguments.pattern == Pattern::Fan;
    if is_fan && arguments.clients < 2 {
        return Err(Failure::Usage("fan needs at least two stations: -c 10".to_owned()));
    }
    if !is_fan && arguments.clients > 1 {
        return Err(Failure::Usage("round-trip is of one station: leave -c out".to_owned()));
    }
    if let Some(cpus) = &arguments.cpu {
        cpus.pin().map_err(|error| Failure::Environment(error.to_string()))?;
    }
    let mut stations = Stations::new(arguments)?;
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let mut warming = Outcome::default();
    let warm = monotonic().as_nanos() + nanos(arguments.warmup);
    while monotonic().as_nanos() < warm && !interrupt.asked() {
        stations.one(&mut warming, interrupt)?;
    }
    let mut outcome = Outcome::default();
    let (start, cpu) = (monotonic().as_nanos(), process_cpu());
    let count = arguments.count.unwrap_or(u64::MAX);
    let end = if arguments.count.is_some() { u64::MAX } else { start + nanos(arguments.duration) };
    let mut progress = match arguments.count {
        Some(count) => Progress::new(if is_fan { "transactions" } else { "round trips" }, count),
        None => Progress::of_time("measuring", arguments.duration),
    };
    let mut asked = 0;
    while asked < count && monotonic().as_nanos() < end && !interrupt.asked() {
        asked += 1;
        if let Some(time) = stations.one(&mut outcome, interrupt)? {
            outcome.times.record(time);
        }
        let seconds = (monotonic().as_nanos() - start) / 1_000_000_000;
        progress.at(if arguments.count.is_some() { asked } else { seconds });
    }
    let span = monotonic().as_nanos() - start;
    let cpu = nanos(process_cpu() - cpu);
    report(arguments, &outcome, asked, span, cpu).print(output, interrupt)
}

fn report(arguments: &PubSub, outcome: &Outcome, asked: u64, span: u64, cpu: u64) -> Report {
    let is_fan = arguments.pattern == Pattern::Fan;
    let unit = if is_fan { "transaction" } else { "message" };
    let total = outcome.ethernet_bytes;
    let headers = outcome.datagrams * UDP_IP;
    let mut report = Report::new("pubsub", &arguments.url);
    report.part(&result::Stations {
        requested: json!({
            "pattern": if is_fan { "fan" } else { "round-trip" },
            "clients": arguments.clients,
            "payload_bytes": arguments.payload,
            "count": arguments.count,
            "duration_s": arguments.duration.as_secs_f64(),
            "warmup_s": arguments.warmup.as_secs_f64(),
        }),
        window_s: span as f64 / 1e9,
        asked,
        missing: outcome.missing,
        wire: Datagrams {
            payload_out_bytes: outcome.uadp_bytes,
            payload_in_bytes: 0,
            frames: outcome.datagrams,
            tcp_ip_bytes: headers,
            ethernet_bytes: total.saturating_sub(headers + outcome.uadp_bytes),
            total_bytes: total,
        },
        generator: Crew { cpu_s: cpu as f64 / 1e9 },
    });
    report.returned(is_fan, &outcome.times);
    report.times(if is_fan { "publish to last answer" } else { "published → received" }, &outcome.times);
    if is_fan {
        report.times("fan-out: the last has it", &outcome.last);
    }
    let per = |bytes: u64| figures::bytes(bytes as f64 / asked.max(1) as f64);
    report.fact(
        "on the wire (as Ethernet)",
        format!(
            "{} per {unit}: {} of UADP in {} frames",
            per(total),
            per(outcome.uadp_bytes),
            figures::number(outcome.datagrams as f64 / asked.max(1) as f64)
        ),
    );
    report.fact(
        "CPU of all stations",
        format!("{} per {unit}", figures::micros(cpu as f64 / 1e3 / asked.max(1) as f64)),
    );
    if outcome.missing > 0 {
        report.fact("missing", format!("{} messages did not come", outcome.missing));
        // UDP may lose messages; figures of a load that it loses them of are worth nothing.
        report.invalid([Invalid::MessagesLost { lost: outcome.missing }]);
    }
    if outcome.times.count() == 0 {
        report.invalid([Invalid::NoSamples]);
    }
    report
}
