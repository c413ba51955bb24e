//! Parsing of ranges of hosts, ports and units.

use std::net::Ipv4Addr;

/// Maximum number of hosts and ports per scan.
const TARGETS_MAX: usize = 1024;

/// Parses `HOST[:PORT[-PORT]]` or `A.B.C.D-E[:PORT[-PORT]]` to hosts with ports.
pub(super) fn targets(text: &str, default_port: u16) -> Result<Vec<(String, u16)>, String> {
    let wrong =
        |why: &str| format!("{text:?}: {why}; write HOST, HOST:PORT, HOST:PORT-PORT or 10.0.0.1-20:PORT");
    let (hosts, ports) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(|| wrong("a closing bracket is missing"))?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.rsplit_once(':') {
            Some((hosts, ports)) => (hosts, Some(ports)),
            None => (text, None),
        },
    };
    let (first, last) = match ports {
        None => (default_port, default_port),
        Some(ports) => range(ports).ok_or_else(|| wrong("the ports are invalid"))?,
    };
    if first == 0 {
        return Err(wrong("port 0 is invalid"));
    }
    let hosts = hosts_of(hosts).ok_or_else(|| wrong("the host is invalid"))?;
    let count = hosts.len().saturating_mul(usize::from(last - first) + 1);
    if count > TARGETS_MAX {
        return Err(format!("{text:?} names {count} hosts and ports; scan at most {TARGETS_MAX} at a time"));
    }
    Ok(hosts.iter().flat_map(|host| (first..=last).map(move |port| (host.clone(), port))).collect())
}

/// Parses `7` or `1-10`.
fn range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (first.trim().parse().ok()?, last.trim().parse().ok()?),
        None => {
            let one = text.trim().parse().ok()?;
            (one, one)
        }
    };
    (first <= last).then_some((first, last))
}

fn hosts_of(text: &str) -> Option<Vec<String>> {
    if let Some((first, last)) = text.split_once('-')
        && let Ok(first) = first.parse::<Ipv4Addr>()
    {
        let last = match last.parse::<Ipv4Addr>() {
            Ok(last) => last,
            Err(_) => {
                let [a, b, c, _] = first.octets();
                Ipv4Addr::new(a, b, c, last.parse().ok()?)
            }
        };
        let (first, last) = (u32::from(first), u32::from(last));
        let count = last.checked_sub(first)? as usize;
        if count > TARGETS_MAX {
            return None;
        }
        return Some((first..=last).map(|ip| Ipv4Addr::from(ip).to_string()).collect());
    }
    let is_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_' | ':');
    (!text.is_empty() && text.chars().all(is_name)).then(|| vec![text.to_owned()])
}

/// Parses unit numbers such as `1-10,17`.
pub(super) fn units(text: &str) -> Result<Box<[u8]>, String> {
    let wrong = || format!("{text:?}: write unit numbers from 0 to 255, such as 1-10,17");
    let mut units = std::collections::BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = range(part).ok_or_else(wrong)?;
        let last = u8::try_from(last).map_err(|_| wrong())?;
        units.extend((first as u8)..=last);
    }
    Ok(units.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed() {
        let all = |text: &str| {
            let targets = targets(text, 502).unwrap();
            targets.iter().map(|(host, port)| format!("{host}:{port}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(all("plc-7"), "plc-7:502");
        assert_eq!(all("plc:1502-1503"), "plc:1502 plc:1503");
        assert_eq!(all("10.0.0.9-11"), "10.0.0.9:502 10.0.0.10:502 10.0.0.11:502");
        assert_eq!(all("10.0.0.255-10.0.1.0:5020"), "10.0.0.255:5020 10.0.1.0:5020");
        assert_eq!(all("[::1]:5020"), "::1:5020");
        for wrong in [
            "",
            ":502",
            "plc:0",
            "plc:9-8",
            "plc:x",
            "10.0.0.9-3",
            "10.0.0.1-300",
            "10.0.0.1-20.0.0.1",
            "plc:1-2000",
        ] {
            assert!(targets(wrong, 502).is_err(), "{wrong}");
        }
        assert_eq!(*units("1-3,17").unwrap(), [1, 2, 3, 17]);
        assert!(units("0-256").is_err() && units("").is_err() && units("3-1").is_err());
    }
}
