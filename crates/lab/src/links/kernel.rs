//! An emulated link that uses only the kernel: two namespaces, a pair of virtual Ethernet interfaces, and `tc` on both.
//! Exact and cheap, if the kernel supports the profile.

use super::namespace::Namespace;
use super::tun::{CLIENT, INTERFACE, PREFIX, SERVER, prepare};
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;
use taktwerk_netem::emulator::delay::Jitter;
use taktwerk_netem::emulator::loss::Loss;
use taktwerk_netem::emulator::{Conditions, Counters, nanos};
use taktwerk_netem::profile::Profile;

/// Bytes of the Ethernet header that the kernel counts with each packet, even on links without Ethernet.
const HEADER: usize = 14;

/// A running link. It disappears when its namespaces are dropped.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) client: Namespace,
    pub(super) server: Namespace,
}

impl Kernel {
    pub(super) fn start(profile: &Profile) -> io::Result<Self> {
        let (client, server) = (Namespace::new()?, Namespace::new()?);
        let path = server.path();
        let pair = ["link", "add", INTERFACE, "type", "veth", "peer", "name", INTERFACE, "netns", &path];
        client.tool("ip", &pair)?;
        for (namespace, address, conditions) in
            [(&client, CLIENT, &profile.up), (&server, SERVER, &profile.down)]
        {
            set_up(namespace, address, profile.mtu, conditions)?;
        }
        Ok(Self { client, server })
    }

    /// Packets sent by the interfaces, client first.
    pub(super) fn counters(&self, profile: &Profile) -> [Counters; 2] {
        [(&self.client, &profile.up), (&self.server, &profile.down)].map(|(namespace, conditions)| {
            let text = namespace
                .inside(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default())
                .unwrap_or_default();
            counters(sent(&text), conditions)
        })
    }
}

/// Converts the counters of an interface to those of a direction: without the Ethernet header, and with the overhead of
/// the profile.
fn counters((packets, bytes): (u64, u64), conditions: &Conditions) -> Counters {
    let bytes = bytes.saturating_sub(packets * HEADER as u64);
    Counters {
        packets,
        bytes,
        line_bytes: bytes + packets * conditions.overhead as u64,
        ..Counters::default()
    }
}

/// Transmitted packets and bytes of the interface in `/proc/net/dev`.
fn sent(text: &str) -> (u64, u64) {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(INTERFACE)?.strip_prefix(':'));
    let column = |index: usize| {
        line.and_then(|line| line.split_whitespace().nth(index)).and_then(|it| it.parse().ok()).unwrap_or(0)
    };
    (column(9), column(8))
}

fn set_up(namespace: &Namespace, address: Ipv4Addr, mtu: u16, conditions: &Conditions) -> io::Result<()> {
    let (address, bytes) = (format!("{address}/{PREFIX}"), mtu.to_string());
    // No segmentation offload: the shaper must see packets as the line carries them.
    namespace.tool("ip", &["link", "set", INTERFACE, "mtu", &bytes, "gso_max_segs", "1"])?;
    namespace.tool("ip", &["addr", "add", &address, "dev", INTERFACE])?;
    namespace.tool("ip", &["link", "set", INTERFACE, "up"])?;
    prepare(namespace)?;
    let discipline = discipline(conditions, mtu).ok_or_else(|| {
        io::Error::new(io::ErrorKind::Unsupported, "tc has no such delays, or no queue so short")
    })?;
    if discipline.is_empty() {
        return Ok(());
    }
    let mut arguments = vec!["qdisc", "add", "dev", INTERFACE, "root"];
    arguments.extend(discipline.iter().map(String::as_str));
    namespace.tool("tc", &arguments)?;
    Ok(())
}

/// Why the kernel cannot emulate a profile, or `None`.
pub(super) fn requirement(profile: &Profile) -> Option<&'static str> {
    let both = [discipline(&profile.up, profile.mtu)?, discipline(&profile.down, profile.mtu)?];
    let needs = |name: &str| both.iter().flatten().any(|word| word == name);
    Some(if needs("netem") {
        "netem"
    } else if needs("tbf") {
        "tbf"
    } else {
        "veth"
    })
}

/// Below this rate, the transmission time of a packet matters. A token bucket has none: it passes a packet at once if
/// the bucket is full.
const BUCKET_MIN: f64 = 40e6;

/// Packets that netem holds if there is no rate. None waits for the line; all are in flight.
const UNLIMITED: u64 = 20_000;

/// Minimum queue in full packets. Below that netem, which counts packets and not bytes, cannot emulate the queue.
const QUEUE_MIN: u64 = 4;

/// Number of packets that netem may hold: those in the queue, one on the line, and those in flight. netem counts
/// packets, so the queue has the requested length for full packets, as in a bulk transfer, and is shorter for small
/// ones. `None` if the queue is too short to be counted in packets.
fn limit(conditions: &Conditions, mtu: u16) -> Option<u64> {
    if conditions.usable_rate().is_none() {
        return Some(UNLIMITED);
    }
    let packet = conditions.line_time(usize::from(mtu)).max(1);
    let waiting = nanos(conditions.queue) / packet;
    let longest = conditions.delay.mean() + 4.0 * conditions.delay.std();
    let on_their_way = (longest * 1e9 / packet as f64).ceil() as u64;
    (waiting >= QUEUE_MIN).then_some(waiting + 1 + on_their_way)
}

/// Size of the token bucket in bytes. Two packets, because a line has no credit for bursts and a smaller bucket would
/// never pass a packet. Plus the bytes that a fast line transmits while a timer is late.
fn bucket(conditions: &Conditions, rate: f64, mtu: u16) -> u64 {
    const LATE_S: f64 = 250e-6;
    let packet = u64::from(mtu) + conditions.overhead.max(HEADER) as u64;
    (2 * packet).max((rate / 8.0 * LATE_S) as u64)
}

/// The queueing discipline: a token bucket for a high rate without other properties, otherwise netem. `None` if neither
/// can do it.
fn discipline(conditions: &Conditions, mtu: u16) -> Option<Vec<String>> {
    let us = |span: Duration| format!("{}us", span.as_micros());
    let percent = |share: f64| format!("{}%", share * 100.0);
    let rate = conditions.usable_rate().map(|rate| format!("{}bit", rate as u64));
    // In addition to the header that the kernel counts. Negative for lines with a smaller overhead.
    let extra = conditions.overhead as i64 - HEADER as i64;
    if !conditions.per_packet.is_zero() || conditions.delay.repeats.is_some() {
        return None;
    }
    let is_plain = conditions.delay.is_none()
        && conditions.loss.share() == 0.0
        && conditions.reorder == 0.0
        && conditions.duplicate == 0.0
        && conditions.usable_rate().is_none_or(|rate| rate >= BUCKET_MIN);
    let mut words: Vec<String> = Vec::new();
    let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    if is_plain {
        if let (Some(rate), Some(bits)) = (&rate, conditions.usable_rate()) {
            // The token bucket can only add bytes; a size table can also subtract them.
            let extra = extra.to_string();
            if extra.starts_with('-') {
                add(&["stab", "overhead", &extra]);
            }
            let bucket = bucket(conditions, bits, mtu).to_string();
            add(&["tbf", "rate", rate, "burst", &bucket, "latency", &us(conditions.queue)]);
            if !extra.starts_with('-') {
                add(&["overhead", &extra]);
            }
        }
        return Some(words);
    }
    let jitter = match conditions.delay.jitter {
        Jitter::None => None,
        Jitter::Normal { std } => Some((Duration::ZERO, std, "normal")),
        Jitter::Uniform { max } => Some((max / 2, max / 2, "uniform")),
        Jitter::Exponential { .. } | Jitter::LogNormal { .. } | Jitter::Pareto { .. } => return None,
    };
    if jitter.is_some() && rate.is_none() {
        // Without a rate, netem reorders packets whose delays differ, which no such link does.
        return None;
    }
    add(&["netem", "limit", &limit(conditions, mtu)?.to_string(), "delay"]);
    match jitter {
        None => add(&[&us(conditions.delay.base)]),
        Some((offset, size, "uniform")) => add(&[&us(conditions.delay.base + offset), &us(size)]),
        Some((_, size, name)) => add(&[&us(conditions.delay.base), &us(size), "distribution", name]),
    }
    match conditions.loss {
        Loss::None => {}
        Loss::Independent { probability } => add(&["loss", &percent(probability)]),
        Loss::Bursts { begin, end, lost } => {
            add(&["loss", "gemodel", &percent(begin), &percent(end), &percent(lost), "0%"]);
        }
    }
    if conditions.reorder > 0.0 {
        add(&["reorder", &percent(conditions.reorder)]);
    }
    if conditions.duplicate > 0.0 {
        add(&["duplicate", &percent(conditions.duplicate)]);
    }
    if let Some(rate) = &rate {
        add(&["rate", rate, &extra.to_string()]);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Option<String> {
        let profile: Profile = text.parse().unwrap();
        discipline(&profile.up, profile.mtu).map(|words| words.join(" "))
    }

    #[test]
    fn disciplines() {
        assert_eq!(words("mtu=1500").unwrap(), "");
        assert_eq!(
            words("rate=100mbit,busy=30%,overhead=38").unwrap(),
            "tbf rate 70000000bit burst 3076 latency 200000us overhead 24"
        );
        assert_eq!(
            words("rate=100mbit,mtu=9000,overhead=38").unwrap(),
            "tbf rate 100000000bit burst 18076 latency 200000us overhead 24"
        );
        assert!(words("rate=1gbit").unwrap().contains("burst 31250 "));
        // Overhead below the 14 bytes that the kernel counts: PPP has 8 bytes, a bare rate none.
        assert_eq!(words("ppp-2m").unwrap(), "netem limit 34 delay 0us rate 2000000bit -6");
        assert_eq!(
            words("rate=50mbit").unwrap(),
            "stab overhead -14 tbf rate 50000000bit burst 3028 latency 200000us"
        );
        assert!(words("rate=50mbit,overhead=14").unwrap().ends_with(" latency 200000us overhead 0"));
        assert_eq!(
            words("rate=10mbit,delay=20ms,jitter=2ms,loss=1%").unwrap(),
            "netem limit 191 delay 20000us 2000us distribution normal loss 1% rate 10000000bit -14"
        );
        assert_eq!(
            words("rate=10mbit,jitter=4ms,distribution=uniform").unwrap(),
            "netem limit 173 delay 2000us 2000us rate 10000000bit -14"
        );
        assert_eq!(words("delay=3ms").unwrap(), "netem limit 20000 delay 3000us");
        assert!(words("loss=2%,burst=4").unwrap().contains("loss gemodel 0.51"));
        assert_eq!(words("jitter=4ms"), None, "netem would reorder");
        assert_eq!(words("3g"), None);
        assert_eq!(words("ethernet-100m+vpn"), None);
        assert_eq!(requirement(&"rate=50mbit".parse().unwrap()), Some("tbf"));
        assert_eq!(requirement(&"delay=1ms".parse().unwrap()), Some("netem"));
        assert_eq!(requirement(&"wifi-802.11g".parse().unwrap()), None);
        assert_eq!(requirement(&"ppp-2m,queue=10ms".parse().unwrap()), None);
    }

    #[test]
    fn the_queue_has_the_requested_length_at_any_rate() {
        let seconds = |text: &str| {
            let profile: Profile = text.parse().unwrap();
            let on_their_way = profile.up.delay.mean();
            let packet = profile.up.line_time(usize::from(profile.mtu)) as f64 / 1e9;
            limit(&profile.up, profile.mtu).map(|packets| packets as f64 * packet - on_their_way)
        };
        for (text, queue) in [
            ("ppp-2m", 0.2),
            ("ppp-10m", 0.2),
            ("ppp-2m,queue=2s", 2.0),
            ("rate=20mbit,delay=50ms,queue=30ms", 0.03),
            ("rate=384kbit,mtu=576,queue=1s,busy=50%", 1.0),
        ] {
            let profile: Profile = text.parse().unwrap();
            let packet = profile.up.line_time(usize::from(profile.mtu)) as f64 / 1e9;
            let held = seconds(text).unwrap();
            // In addition to the queue, one packet is on the line, and packets in flight are whole.
            assert!(held > queue && held <= queue + 2.001 * packet, "{text}: {held} s");
        }
        assert_eq!(seconds("ppp-2m,queue=20ms"), None, "three packets");
        assert!(seconds("ppp-2m,queue=25ms").is_some());
    }

    #[test]
    fn columns_of_an_interface() {
        let text =
            "Inter-|   Receive\n    lo:  1 2 3 4 5 6 7 8 9 10 11\n link0: 100 2 0 0 0 0 0 0 300 4 0 0\n";
        assert_eq!(sent(text), (4, 300));
        assert_eq!(sent(""), (0, 0));
        // Same counting as the emulator: IP packets with the overhead of the line.
        let of = |text: &str| {
            let profile: Profile = text.parse().unwrap();
            let counters = counters((4, 300), &profile.up);
            (counters.packets, counters.bytes, counters.line_bytes)
        };
        assert_eq!((of("ppp-2m"), of("rate=1mbit")), ((4, 244, 276), (4, 244, 244)));
    }
}
