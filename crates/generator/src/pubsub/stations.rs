//! Stations that publish on demand over UDP without a broker: round trips of a message back to its publisher, and one
//! message that all others answer (Rocha et al. 2019).
//!
//! All stations share one thread, like the clients of `bench mqtt` and `bench fan`.

use super::{Pattern, PubSub, failure};
use crate::common::pin;
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use crate::report::{Finished, Report};
use crate::station::{Place, Station, now, number, set_number};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::Timespec;
use std::net::SocketAddr;
use taktwerk::pubsub::{PubSubError, UdpOptions};
use taktwerk_load::latency::Times;
use taktwerk_load::result::{self, Crew, Datagrams};
use taktwerk_load::validity::Invalid;
use taktwerk_model::figures;
use taktwerk_net::clock::{monotonic, process_cpu};
use taktwerk_net::pubsub::interface::Interface;
use taktwerk_net::pubsub::{Address, UdpReceiver, UdpSender};

/// Timeout of a transaction; after this, a message counts as lost.
const PATIENCE: u64 = 2_000_000_000;
/// Maximum number of events per wait.
const EVENTS: usize = 256;
/// IPv4 and UDP headers; Ethernet's header and check sequence; its smallest frame.
const UDP_IP: u64 = 28;
const ETHERNET: u64 = 18;
const FRAME_MIN: u64 = 64;

/// Results.
#[derive(Default)]
struct Outcome {
    times: Times,
    /// With fan: time until the last receiver had the message.
    last: Times,
    missing: u64,
    datagrams: u64,
    uadp_bytes: u64,
    ethernet_bytes: u64,
}

/// A station with its sockets.
struct Placed {
    station: Station,
    sender: UdpSender,
    receiver: UdpReceiver,
    payload: Vec<u8>,
}

impl Placed {
    /// A station that publishes to one address and listens on another.
    fn new(number: u32, to: SocketAddr, at: SocketAddr, arguments: &PubSub) -> Result<Self, GeneratorError> {
        let interface = Interface::find(&arguments.interface).map_err(failure)?;
        let url = |address: SocketAddr| format!("opc.udp://{address}");
        let place =
            Place { to: &url(to), at: &url(at), interface: &arguments.interface, message_size_max: None };
        Ok(Self {
            station: Station::new(number, &place)?,
            sender: UdpSender::new(to, &interface, &UdpOptions::default()).map_err(failure)?,
            receiver: UdpReceiver::new(at, &interface).map_err(failure)?,
            payload: vec![0x55; arguments.payload as usize],
        })
    }

    /// Publishes a number, followed by the payload.
    fn publish(&mut self, number: u64, outcome: &mut Outcome) {
        set_number(&mut self.payload, number);
        let messages = self.station.publish(&self.payload);
        let datagrams: Vec<&[u8]> = messages.iter().map(|datagram| datagram.bytes).collect();
        self.sender.send(&datagrams, None);
        for datagram in datagrams {
            let len = datagram.len() as u64;
            outcome.datagrams += 1;
            outcome.uadp_bytes += len;
            outcome.ethernet_bytes += (len + UDP_IP + ETHERNET).max(FRAME_MIN);
        }
    }

    /// Receives messages. Returns how many had this number.
    fn receive(&mut self, wanted: u64) -> Result<usize, GeneratorError> {
        let Self { station, receiver, payload, .. } = self;
        let (mut count, now) = (0, now());
        loop {
            let taken = receiver.receive(|datagram| {
                station.receive(datagram, now, |value| {
                    count += usize::from(value.len() == payload.len() && number(value) == wanted);
                });
            });
            let taken =
                taken.map_err(|error| GeneratorError::Environment(format!("cannot receive: {error}")))?;
            if taken < receiver.batch() {
                return Ok(count);
            }
        }
    }
}

/// All stations, with polling for readable sockets.
struct Stations {
    all: Vec<Placed>,
    epoll: OwnedFd,
    events: Vec<Event>,
    next: u64,
}

impl Stations {
    fn new(arguments: &PubSub, context: &Context<'_>) -> Result<Self, GeneratorError> {
        let Address::Udp(out) = Address::parse(&arguments.url).map_err(failure)? else {
            return Err(failure(PubSubError::Address {
                url: arguments.url.clone(),
                reason: "stations support only opc.udp://".to_owned(),
            }));
        };
        // Answers use the next port.
        let back = SocketAddr::new(out.ip(), out.port().wrapping_add(1));
        let environment =
            |error: Errno| GeneratorError::Environment(format!("cannot wait for messages: {error}"));
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(environment)?;
        let mut all = Vec::new();
        let is_fan = arguments.pattern == Pattern::Fan;
        let mut progress = context.step("opening", u64::from(arguments.clients));
        for number in 0..arguments.clients {
            let (to, at) = match (is_fan, number) {
                (false, _) => (out, out),
                (true, 0) => (out, back),
                (true, _) => (back, out),
            };
            let station = Placed::new(number, to, at, arguments)?;
            let key = EventData::new_u64(number.into());
            epoll::add(&epoll, &station.receiver, key, EventFlags::IN).map_err(environment)?;
            all.push(station);
            progress.at(number.into());
        }
        Ok(Self { all, epoll, events: Vec::with_capacity(EVENTS), next: 1 })
    }

    /// One round trip or transaction; `None` if it was interrupted or a message was lost.
    fn one(&mut self, outcome: &mut Outcome, context: &Context<'_>) -> Result<Option<u64>, GeneratorError> {
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
            if left == 0 || context.is_ended() {
                outcome.missing += (wanted - answered) as u64;
                return Ok(None);
            }
            let patience = Timespec { tv_sec: 0, tv_nsec: i64::try_from(left.min(100_000_000)).unwrap_or(0) };
            self.events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&patience))
            {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(GeneratorError::Environment(format!("cannot wait: {error}"))),
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
pub(super) fn run(arguments: &PubSub, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    let is_fan = arguments.pattern == Pattern::Fan;
    if is_fan && arguments.clients < 2 {
        return Err(GeneratorError::Usage("fan needs at least two stations: pass -c 2 or more".to_owned()));
    }
    if !is_fan && arguments.clients > 1 {
        return Err(GeneratorError::Usage("round-trip uses one station: remove -c".to_owned()));
    }
    pin(arguments.cpu.as_ref())?;
    let mut stations = Stations::new(arguments, context)?;
    let mut warming = Outcome::default();
    let warm = monotonic().as_nanos() + nanos(arguments.warmup);
    while monotonic().as_nanos() < warm && !context.is_ended() {
        stations.one(&mut warming, context)?;
    }
    let mut outcome = Outcome::default();
    let (start, cpu) = (monotonic().as_nanos(), process_cpu());
    let what = if is_fan { "transactions" } else { "round trips" };
    let mut measuring = context.measuring(what, arguments.count, start, arguments.duration);
    let mut asked = 0;
    while asked < measuring.count && monotonic().as_nanos() < measuring.end && !context.is_ended() {
        asked += 1;
        if let Some(time) = stations.one(&mut outcome, context)? {
            outcome.times.record(time);
        }
        measuring.at(asked);
    }
    let span = monotonic().as_nanos() - start;
    let cpu = nanos(process_cpu() - cpu);
    Ok(report(arguments, &outcome, asked, span, cpu).finish(context, None))
}

fn report(arguments: &PubSub, outcome: &Outcome, asked: u64, span: u64, cpu: u64) -> Report {
    let is_fan = arguments.pattern == Pattern::Fan;
    let unit = if is_fan { "transaction" } else { "message" };
    let total = outcome.ethernet_bytes;
    let headers = outcome.datagrams * UDP_IP;
    let mut report = Report::new("pubsub", &arguments.url);
    report.part(&result::Stations {
        requested: result::StationsRequested {
            pattern: Some(arguments.pattern),
            clients: arguments.clients,
            payload_bytes: arguments.payload,
            count: arguments.count,
            duration_s: arguments.duration.as_secs_f64(),
            warmup_s: arguments.warmup.as_secs_f64(),
        },
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
        report.times("fan-out: to the last receiver", &outcome.last);
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
        report.fact("missing", format!("{} messages did not arrive", outcome.missing));
        // Figures are invalid if UDP loses messages.
        report.invalid([Invalid::MessagesLost { lost: outcome.missing }]);
    }
    if outcome.times.count() == 0 {
        report.invalid([Invalid::NoSamples]);
    }
    report
}
