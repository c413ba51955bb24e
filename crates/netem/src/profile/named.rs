//! The named links. Their figures are from the published experiments where available.

use super::Profile;
use crate::emulator::Conditions;
use crate::emulator::delay::{Delay, Jitter, Repeats};
use std::time::Duration;

/// All names.
pub const NAMES: [&str; 10] = [
    "ethernet-100m",
    "wifi-802.11g",
    "3g",
    "wan-sao-paulo",
    "wan-oregon",
    "wan-frankfurt",
    "wan-tokyo",
    "ppp-2m",
    "ppp-5m",
    "ppp-10m",
];

/// Bytes of an Ethernet frame around an IP packet: preamble 8, header 14, check sequence 4, gap 12.
const ETHERNET: usize = 38;
/// Bytes of a PPP frame around an IP packet (RFC 1662): flag, address, control, protocol 2, check sequence 2, flag.
const PPP: usize = 8;

/// The link of this name; `ethernet-100` and `wifi-g` are aliases.
#[must_use]
pub fn named(name: &str) -> Option<Profile> {
    let name = match name {
        "ethernet-100" => "ethernet-100m",
        "wifi-g" => "wifi-802.11g",
        name => name,
    };
    Some(match name {
        "ethernet-100m" => same(
            name,
            "Fast Ethernet through one switch",
            "100 Mbit/s as in morato-read; 30 µs for the switch and two network cards is an assumption",
            Conditions {
                rate: Some(100_000_000),
                overhead: ETHERNET,
                delay: Delay::constant(Duration::from_micros(30)),
                ..Conditions::default()
            },
        ),
        "wifi-802.11g" => same(
            name,
            "Wi-Fi, 54 Mbit/s on the air",
            "round trip 1.7 ms ± 0.5 ms over Ethernet's (morato-read, Table IV), 3.6 % repeated on the air (same, §IV); \
             22 Mbit/s is what 802.11g leaves for IP",
            Conditions {
                rate: Some(22_000_000),
                delay: Delay {
                    base: Duration::from_micros(400),
                    jitter: Jitter::LogNormal {
                        mean: Duration::from_micros(425),
                        std: Duration::from_micros(300),
                    },
                    repeats: Some(Repeats { probability: 0.036, each: Duration::from_millis(1) }),
                },
                ..Conditions::default()
            },
        ),
        "3g" => mobile(name),
        "wan-sao-paulo" => wan(name, "São Paulo", [33.80, 1.82, 25.89]),
        "wan-oregon" => wan(name, "Oregon", [175.39, 3.44, 152.44]),
        "wan-frankfurt" => wan(name, "Frankfurt", [243.27, 2.88, 218.94]),
        "wan-tokyo" => wan(name, "Tokyo", [327.79, 7.79, 295.48]),
        "ppp-2m" => ppp(name, 2),
        "ppp-5m" => ppp(name, 5),
        "ppp-10m" => ppp(name, 10),
        _ => return None,
    })
}

fn same(name: &str, about: &str, source: &str, conditions: Conditions) -> Profile {
    Profile {
        name: name.to_owned(),
        about: about.to_owned(),
        source: source.to_owned(),
        up: conditions.clone(),
        down: conditions,
        mtu: 1500,
        vpn: None,
    }
}

/// Round trips with 262 ms mean, 135 ms standard deviation, 144 ms minimum: `cgw-rtd`, row 3G-VPN A.
fn mobile(name: &str) -> Profile {
    let delay = Delay {
        base: Duration::from_millis(71),
        jitter: Jitter::LogNormal { mean: Duration::from_millis(57), std: Duration::from_millis(95) },
        repeats: None,
    };
    // Mobile networks retransmit below IP and have large buffers: delay instead of loss.
    let conditions = Conditions { delay, queue: Duration::from_secs(2), ..Conditions::default() };
    Profile {
        up: Conditions { rate: Some(384_000), ..conditions.clone() },
        down: Conditions { rate: Some(3_600_000), ..conditions },
        ..same(
            name,
            "third-generation mobile network (3G)",
            "delays from cgw-rtd, Table II, row 3G-VPN A; 384 kbit/s up and 3.6 Mbit/s down are usual for HSDPA",
            Conditions::default(),
        )
    }
}

/// A remote server: mean, standard deviation and minimum of the round trip in milliseconds.
fn wan(name: &str, place: &str, [mean, std, min]: [f64; 3]) -> Profile {
    let one_way = |milliseconds: f64| Duration::from_secs_f64(milliseconds / 2e3);
    let delay = Delay {
        base: one_way(min),
        jitter: Jitter::LogNormal {
            mean: one_way(mean - min),
            // The variances of two independent directions add up.
            std: Duration::from_secs_f64(std / 1e3 / 2f64.sqrt()),
        },
        repeats: None,
    };
    same(
        name,
        &format!("wide area network to {place}"),
        "round trip and jitter from rocha-location, Table 2, row MQTT QoS 0; 50 Mbit/s is an assumption",
        Conditions { rate: Some(50_000_000), delay, ..Conditions::default() },
    )
}

fn ppp(name: &str, megabits: u64) -> Profile {
    same(
        name,
        &format!("point-to-point line of {megabits} Mbit/s"),
        "cavalieri-*: rate and framing; add busy=30% for its other traffic",
        Conditions { rate: Some(megabits * 1_000_000), overhead: PPP, ..Conditions::default() },
    )
}
