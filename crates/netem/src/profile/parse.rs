//! Parses links: a name, a name with changes, or only properties.

use super::{NAMES, Profile, Vpn, named};
use crate::emulator::Conditions;
use crate::emulator::delay::Jitter;
use crate::emulator::loss::Loss;
use std::time::Duration;

/// The text is not a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseProfileError {
    /// Unknown name.
    #[error("there is no link {name:?}; there are {}, and rate=…,delay=…,jitter=…,loss=…", NAMES.join(", "))]
    Name {
        /// The name.
        name: String,
    },
    /// Unknown property.
    #[error(
        "unknown property {key:?}: a link has rate, delay, jitter, distribution, loss, burst, reorder, duplicate, \
         queue, busy, overhead, mtu and vpn, and rate, delay, jitter and loss also with up- or down- in front"
    )]
    Key {
        /// The property.
        key: String,
    },
    /// Invalid value.
    #[error("{key}={value}: {expected}")]
    Value {
        /// The property.
        key: String,
        /// The value.
        value: String,
        /// The valid values.
        expected: &'static str,
    },
}

const RATE: &str = "write a rate such as 10mbit, 384kbit or 1gbit";
const SPAN: &str = "write a time such as 20ms, 1.5s or 300us";
const SHARE: &str = "write a share such as 0.5% (less than 100%)";
const COUNT: &str = "write a whole number";

/// Parses `NAME[+vpn][,key=value…]` or `key=value[,…]`.
pub(super) fn profile(text: &str) -> Result<Profile, ParseProfileError> {
    let mut parts = text.split(',').map(str::trim).peekable();
    let mut profile = Profile {
        name: String::new(),
        about: "described on the command line".to_owned(),
        source: "the command line".to_owned(),
        up: Conditions::default(),
        down: Conditions::default(),
        mtu: 1500,
        vpn: None,
    };
    let mut vpn = None;
    if let Some(first) = parts.next_if(|part| !part.contains('=')) {
        let (name, suffix) = match first.strip_suffix("-vpn") {
            Some(name) => (name, Some("vpn")),
            None => first.split_once('+').map_or((first, None), |(name, rest)| (name, Some(rest))),
        };
        profile = named(name).ok_or_else(|| ParseProfileError::Name { name: name.to_owned() })?;
        vpn = suffix.map(|suffix| tunnel("vpn", suffix)).transpose()?.flatten();
    }
    profile.name = text.to_owned();
    let mut jitter = None;
    let mut distribution = None;
    let mut burst = None;
    for part in parts {
        let (key, value) = part.split_once('=').map_or((part, ""), |(key, value)| (key.trim(), value.trim()));
        match key {
            "jitter" => jitter = Some(span(key, value)?),
            "distribution" => distribution = Some(value.to_owned()),
            "burst" => burst = Some(number(key, value, COUNT)?),
            "mtu" => profile.mtu = mtu(key, value)?,
            "vpn" => vpn = tunnel(key, value)?,
            _ => direction(&mut profile, key, value)?,
        }
    }
    apply_jitter(&mut profile, jitter, distribution)?;
    if let Some(packets) = burst {
        for conditions in [&mut profile.up, &mut profile.down] {
            conditions.loss = Loss::bursts(conditions.loss.share(), packets);
        }
    }
    for conditions in [&profile.up, &profile.down] {
        if conditions.usable_rate().is_some_and(|rate| rate < RATE_LEAST) {
            let busy = format!("{:.6}%", conditions.busy * 100.0);
            return Err(error("busy", &busy, "it must leave 1 kbit/s of the rate"));
        }
    }
    Ok(match vpn {
        Some(vpn) => profile.with_vpn(vpn),
        None => profile,
    })
}

/// Sets a property of one direction, or of both.
fn direction(profile: &mut Profile, key: &str, value: &str) -> Result<(), ParseProfileError> {
    let (targets, bare): (Vec<&mut Conditions>, &str) = if let Some(bare) = key.strip_prefix("up-") {
        (vec![&mut profile.up], bare)
    } else if let Some(bare) = key.strip_prefix("down-") {
        (vec![&mut profile.down], bare)
    } else {
        (vec![&mut profile.up, &mut profile.down], key)
    };
    for conditions in targets {
        match bare {
            "rate" => conditions.rate = Some(rate(key, value)?),
            "delay" => conditions.delay.base = span(key, value)?,
            "jitter" => conditions.delay.jitter = Jitter::Normal { std: span(key, value)? },
            "loss" => conditions.loss = Loss::Independent { probability: share(key, value)? },
            "reorder" => conditions.reorder = share(key, value)?,
            "duplicate" => conditions.duplicate = share(key, value)?,
            "busy" => conditions.busy = share(key, value)?,
            "queue" => conditions.queue = span(key, value)?,
            "overhead" => conditions.overhead = number(key, value, COUNT)? as usize,
            _ => return Err(ParseProfileError::Key { key: key.to_owned() }),
        }
    }
    Ok(())
}

fn apply_jitter(
    profile: &mut Profile,
    jitter: Option<Duration>,
    distribution: Option<String>,
) -> Result<(), ParseProfileError> {
    let Some(size) = jitter else {
        return match distribution {
            Some(value) => Err(ParseProfileError::Value {
                key: "distribution".to_owned(),
                value,
                expected: "set its size with jitter=…",
            }),
            None => Ok(()),
        };
    };
    let jitter = match distribution.as_deref() {
        None | Some("normal") => Jitter::Normal { std: size },
        Some("uniform") => Jitter::Uniform { max: size },
        Some("pareto") => Jitter::Pareto { std: size },
        Some("exponential") => Jitter::Exponential { mean: size },
        Some("lognormal") => Jitter::LogNormal { mean: size, std: size },
        Some(other) => {
            return Err(ParseProfileError::Value {
                key: "distribution".to_owned(),
                value: other.to_owned(),
                expected: "there are normal, uniform, exponential, lognormal and pareto",
            });
        }
    };
    profile.up.delay.jitter = jitter;
    profile.down.delay.jitter = jitter;
    Ok(())
}

fn tunnel(key: &str, value: &str) -> Result<Option<Vpn>, ParseProfileError> {
    match value {
        "vpn" | "wireguard" => Ok(Some(Vpn::WIREGUARD)),
        "none" => Ok(None),
        _ => Err(error(key, value, "there are wireguard and none")),
    }
}

fn error(key: &str, value: &str, expected: &'static str) -> ParseProfileError {
    ParseProfileError::Value { key: key.to_owned(), value: value.to_owned(), expected }
}

fn number(key: &str, value: &str, expected: &'static str) -> Result<f64, ParseProfileError> {
    let number: f64 = value.trim().parse().map_err(|_| error(key, value, expected))?;
    if (0.0..1e13).contains(&number) { Ok(number) } else { Err(error(key, value, expected)) }
}

fn with_unit(
    key: &str,
    value: &str,
    units: &[(&str, f64)],
    expected: &'static str,
) -> Result<f64, ParseProfileError> {
    let digits = value.trim_end_matches(|it: char| it.is_alphabetic() || it == '%' || it == 'µ');
    let unit = value.get(digits.len()..).unwrap_or("");
    let factor = units.iter().find(|(name, _)| *name == unit).ok_or_else(|| error(key, value, expected))?.1;
    Ok(number(key, digits, expected).map_err(|_| error(key, value, expected))? * factor)
}

fn rate(key: &str, value: &str) -> Result<u64, ParseProfileError> {
    let units = [("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];
    let rate = with_unit(key, &value.to_ascii_lowercase(), &units, RATE)?;
    if (RATE_LEAST..=1e12).contains(&rate) {
        Ok(rate as u64)
    } else {
        Err(error(key, value, "between 1kbit and 1000gbit"))
    }
}

fn span(key: &str, value: &str) -> Result<Duration, ParseProfileError> {
    let seconds = with_unit(key, value, &[("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)], SPAN)?;
    if seconds <= 60.0 { Ok(Duration::from_secs_f64(seconds)) } else { Err(error(key, value, "at most 60s")) }
}

/// The least rate, in bits per second, also beside other traffic. With less, a packet takes minutes.
const RATE_LEAST: f64 = 1_000.0;

fn share(key: &str, value: &str) -> Result<f64, ParseProfileError> {
    let share = with_unit(key, value, &[("%", 0.01), ("", 1.0)], SHARE)?;
    if share < 1.0 { Ok(share) } else { Err(error(key, value, SHARE)) }
}

fn mtu(key: &str, value: &str) -> Result<u16, ParseProfileError> {
    const EXPECTED: &str = "between 576 and 9000 bytes";
    let bytes: u16 = value.parse().map_err(|_| error(key, value, EXPECTED))?;
    if (576..=9000).contains(&bytes) { Ok(bytes) } else { Err(error(key, value, EXPECTED)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Profile {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn names_are_links_with_the_published_round_trips() {
        for name in NAMES {
            let profile = parsed(name);
            assert_eq!(profile.name, name);
            assert!(!profile.about.is_empty() && !profile.source.is_empty());
        }
        // rocha-location, row MQTT QoS 0, in ms; the transmission time of 16 bytes at 50 Mbit/s is negligible.
        for (name, mean, std) in [("wan-sao-paulo", 33.80, 1.82), ("wan-tokyo", 327.79, 7.79)] {
            let profile = parsed(name);
            assert!((profile.round_trip(16) * 1e3 - mean).abs() < 0.05, "{name}");
            assert!((profile.round_trip_std() * 1e3 - std).abs() < 0.01, "{name}");
        }
        let mobile = parsed("3g");
        assert!((mobile.round_trip(100) * 1e3 - 262.0).abs() < 6.0);
        assert!((mobile.round_trip_std() * 1e3 - 135.0).abs() < 2.0);
    }

    #[test]
    fn properties() {
        let profile = parsed("rate=10mbit,delay=20ms,jitter=2ms,loss=0.5%,queue=50ms,mtu=1400");
        assert_eq!(profile.up, profile.down);
        assert_eq!(profile.up.rate, Some(10_000_000));
        assert_eq!(profile.up.delay.base, Duration::from_millis(20));
        assert_eq!(profile.up.delay.jitter, Jitter::Normal { std: Duration::from_millis(2) });
        assert_eq!(profile.up.loss, Loss::Independent { probability: 0.005 });
        assert_eq!((profile.mtu, profile.up.queue), (1400, Duration::from_millis(50)));
        assert_eq!(profile.up.to_string(), "10 Mbit/s, 20 ± 2 ms, 0.5 % lost");
        let other =
            parsed("up-rate=1mbit,down-rate=0.5gbit,up-delay=300us,jitter=1ms,distribution=exponential");
        assert_eq!((other.up.rate, other.down.rate), (Some(1_000_000), Some(500_000_000)));
        assert_eq!(other.down.delay.base, Duration::ZERO);
        let heavy = parsed("delay=5ms,jitter=1ms,distribution=pareto");
        assert_eq!(heavy.up.delay.jitter, Jitter::Pareto { std: Duration::from_millis(1) });
        assert_eq!(other.down.delay.jitter, Jitter::Exponential { mean: Duration::from_millis(1) });
        let bursts = parsed("loss=2%,burst=4");
        assert!(
            (bursts.up.loss.share() - 0.02).abs() < 1e-9 && matches!(bursts.up.loss, Loss::Bursts { .. })
        );
    }

    #[test]
    fn names_with_changes() {
        let full = "ppp-2m,busy=99.999%".parse::<Profile>().unwrap_err().to_string();
        assert!(full.contains("busy") && full.contains("it must leave 1 kbit/s"), "{full}");
        assert_eq!(parsed("ppp-2m,busy=99.9%").down.usable_rate().map(f64::round), Some(2_000.0));
        let busy = parsed("ppp-2m,busy=30%");
        assert_eq!(busy.up.usable_rate(), Some(1_400_000.0));
        let tunnelled = parsed("wifi-802.11g+vpn");
        assert_eq!((tunnelled.mtu, tunnelled.vpn), (1420, Some(Vpn::WIREGUARD)));
        assert_eq!(
            tunnelled,
            Profile { name: "wifi-802.11g+vpn".into(), ..parsed("wifi-802.11g,vpn=wireguard") }
        );
        assert!(parsed("rate=100mbit").is_rate_only() && !parsed("3g").is_rate_only());
    }

    #[test]
    fn mistakes_are_reported() {
        for (text, hint) in [
            ("4g", "wan-tokyo"),
            ("", "there is no link"),
            ("speed=3", "unknown property"),
            ("3g,loss", "such as"),
            ("rate=fast", "10mbit"),
            ("rate=-1mbit", "10mbit"),
            ("rate=1bit", "1kbit"),
            ("delay=20", "20ms"),
            ("delay=120s", "60s"),
            ("loss=100%", "less than"),
            ("loss=nan%", "less than"),
            ("mtu=100", "576"),
            ("vpn=pptp", "wireguard"),
            ("distribution=normal", "jitter"),
            ("jitter=1ms,distribution=cauchy", "lognormal"),
        ] {
            let message = text.parse::<Profile>().unwrap_err().to_string();
            assert!(message.contains(hint), "{text}: {message}");
        }
    }
}
