//! A publisher and a subscriber over plain UDP sockets, for comparison with other stacks (`interop/pubsub.sh`). Flags,
//! data set and output are the same as those of `o6-pubsub`:
//!
//! ```text
//! udp_peer publish|subscribe --url opc.udp://HOST:PORT [--layout dynamic|fixed|full] [--mode none|sign|encrypt]
//!          [--policy aes128|aes256] [--interval MS] [--count N] [--seconds S] [--hex]
//! ```
//!
//! With `--hex` the subscriber prints every received datagram instead of its values. Applications use the crate
//! `taktwerk`; this shows how a custom driver calls the engines.
#![allow(clippy::print_stdout, clippy::print_stderr)] // that is what it is for
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // it is a driver
#![allow(clippy::unwrap_used)] // it ends when something is not there

#[path = "../tests/messages/peers/mod.rs"]
mod peers;

use std::net::UdpSocket;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_crypto::{PubSubSecurityPolicy, SeededEntropy};
use taktwerk_pubsub::config::Configuration;
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_pubsub::{
    DataSetMessage, Now, Publisher, PublisherOptions, Sink, Subscriber, SubscriberEvent, SubscriberOptions,
    Transmit,
};
use taktwerk_types::{DataValue, Instant, UtcTime, Variant};

struct Options {
    publishes: bool,
    url: String,
    layout: String,
    mode: SecurityMode,
    policy: PubSubSecurityPolicy,
    interval: f64,
    count: u32,
    seconds: f64,
    hex: bool,
}

fn options() -> Option<Options> {
    let mut arguments = std::env::args().skip(1);
    let publishes = match arguments.next()?.as_str() {
        "publish" => true,
        "subscribe" => false,
        _ => return None,
    };
    let mut options = Options {
        publishes,
        url: String::new(),
        layout: "dynamic".into(),
        mode: SecurityMode::None,
        policy: PubSubSecurityPolicy::Aes256Ctr,
        interval: 10.0,
        count: 100,
        seconds: 10.0,
        hex: false,
    };
    while let Some(name) = arguments.next() {
        if name == "--hex" {
            options.hex = true;
            continue;
        }
        let value = arguments.next()?;
        match (name.as_str(), value.as_str()) {
            ("--url", _) => options.url = value,
            ("--layout", "dynamic" | "fixed" | "full") => options.layout = value,
            ("--mode", "none") => options.mode = SecurityMode::None,
            ("--mode", "sign") => options.mode = SecurityMode::Sign,
            ("--mode", "encrypt") => options.mode = SecurityMode::SignAndEncrypt,
            ("--policy", "aes128") => options.policy = PubSubSecurityPolicy::Aes128Ctr,
            ("--policy", "aes256") => options.policy = PubSubSecurityPolicy::Aes256Ctr,
            ("--interval", _) => options.interval = value.parse().ok()?,
            ("--count", _) => options.count = value.parse().ok()?,
            ("--seconds", _) => options.seconds = value.parse().ok()?,
            _ => return None,
        }
    }
    (!options.url.is_empty()).then_some(options)
}

struct Clock {
    start: std::time::Instant,
}

impl Clock {
    fn now(&self) -> Now {
        let nanos = u64::try_from(self.start.elapsed().as_nanos()).unwrap();
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let ticks = 116_444_736_000_000_000 + i64::try_from(since_1970.as_nanos() / 100).unwrap();
        Now { instant: Instant::from_nanos(nanos), utc: UtcTime::from_ticks(ticks) }
    }
}

fn publish(options: &Options, clock: &Clock) {
    let address = options.url.trim_start_matches("opc.udp://").trim_end_matches('/');
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let seed = clock.now().utc.ticks().unsigned_abs();
    let mut publisher = Publisher::new(
        peers::configuration(&options.url, &options.layout, options.mode, options.interval),
        PublisherOptions::default(),
        Arc::new(AwsPubSubProvider),
        Box::new(SeededEntropy::new(seed)),
    )
    .unwrap();
    let now = clock.now();
    publisher.start(now.instant, now);
    if options.mode != SecurityMode::None {
        publisher.set_keys("group", Ok(&peers::keys(options.policy)), now).unwrap();
    }
    let mut out = Transmit::new();
    let mut count = 0;
    while count < options.count {
        let now = clock.now();
        let due = publisher.poll_timeout().unwrap();
        std::thread::sleep(Duration::from_nanos(due.as_nanos().saturating_sub(now.instant.as_nanos())));
        let now = clock.now();
        let mut values = |_: usize, fields: &mut [DataValue]| {
            count += 1;
            let values: [Variant; 4] = [
                count.into(),
                (f64::from(count) + 0.5).into(),
                (count % 2 == 1).into(),
                format!("t{count}").into(),
            ];
            for (field, value) in fields.iter_mut().zip(values) {
                *field = DataValue { source_timestamp: Some(now.utc), ..DataValue::new(value) };
            }
        };
        out.clear();
        publisher.poll(now, &mut values, &mut out);
        for datagram in out.iter() {
            socket.send_to(datagram.bytes, address).unwrap();
        }
    }
    println!("PUBLISHED {count}");
}

/// Prints received values.
struct Printer {
    last: u32,
}

impl Sink for Printer {
    fn message(&mut self, message: &DataSetMessage<'_>) {
        let mut values = message.fields.iter().map(|field| field.value.value.as_ref());
        let mut next = || values.next().flatten();
        if let (
            Some(Variant::UInt32(count)),
            Some(Variant::Double(x)),
            Some(Variant::Boolean(flag)),
            Some(Variant::String(text)),
        ) = (next(), next(), next(), next())
        {
            println!("{count} {x:.1} {flag} {}", text.as_str());
            self.last = *count;
        } else {
            println!("UNEXPECTED {:?} {:?}", message.kind, message.fields);
        }
    }

    fn event(&mut self, event: SubscriberEvent) {
        if let SubscriberEvent::Dropped { reason, .. } = event {
            println!("DROPPED {reason}");
        }
    }
}

fn subscribe(options: &Options, clock: &Clock) {
    let address = options.url.trim_start_matches("opc.udp://").trim_end_matches('/');
    let socket = UdpSocket::bind(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let configuration = Configuration::subscriber_of(&peers::configuration(
        &options.url,
        &options.layout,
        options.mode,
        options.interval,
    ));
    let mut subscriber =
        Subscriber::new(configuration, SubscriberOptions::default(), Arc::new(AwsPubSubProvider)).unwrap();
    let mut printer = Printer { last: 0 };
    subscriber.start(clock.now(), &mut printer);
    if options.mode != SecurityMode::None {
        subscriber.set_keys("group", Ok(&peers::keys(options.policy)), clock.now()).unwrap();
    }
    println!("READY {}", options.url);
    let mut buffer = vec![0; 65_536];
    while clock.start.elapsed().as_secs_f64() < options.seconds && printer.last < options.count {
        let Ok(len) = socket.recv(&mut buffer) else { continue };
        if options.hex {
            println!("{}", buffer[..len].iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        } else {
            subscriber.receive(0, &mut buffer[..len], clock.now(), &mut printer);
        }
    }
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!(
            "udp_peer publish|subscribe --url opc.udp://HOST:PORT [--layout dynamic|fixed|full]\n         \
             [--mode none|sign|encrypt] [--policy aes128|aes256] [--interval MS] [--count N] [--seconds S] [--hex]"
        );
        return ExitCode::from(2);
    };
    let clock = Clock { start: std::time::Instant::now() };
    if options.publishes {
        publish(&options, &clock);
    } else {
        subscribe(&options, &clock);
    }
    ExitCode::SUCCESS
}
