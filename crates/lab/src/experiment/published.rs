//! Figures printed in the papers. They are only compared with measurements, never used in computations.

/// The rows of a table in which the given columns have the given values, as cells.
fn rows<'a>(csv: &'a str, wanted: &[(&str, &str)]) -> Vec<Vec<&'a str>> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| header.iter().position(|title| *title == name);
    lines
        .map(|line| line.split(',').collect::<Vec<&str>>())
        .filter(|cells| {
            wanted.iter().all(|(name, value)| column(name).and_then(|at| cells.get(at)) == Some(value))
        })
        .collect()
}

/// One figure of a table; `None` if it is missing.
fn figure(csv: &str, wanted: &[(&str, &str)], name: &str) -> Option<f64> {
    let at = csv.lines().next()?.split(',').position(|title| title == name)?;
    rows(csv, wanted).first()?.get(at)?.parse().ok()
}

const MORATO_CPU: &str = include_str!("../../published/morato2021_cpu.csv");
const MORATO_READ: &str = include_str!("../../published/morato2021_read_rtt.csv");
const MORATO_DELIVERY: &str = include_str!("../../published/morato2021_delivery.csv");
const MORATO_POWER: &str = include_str!("../../published/morato2021_power.csv");
const CAVALIERI_VALIDATION: &str = include_str!("../../published/cavalieri2013_validation.csv");
const CAVALIERI_SESSION: &str = include_str!("../../published/cavalieri2013_session.csv");
const CAVALIERI_RTT: &str = include_str!("../../published/cavalieri2013_rtt.csv");
const CGW_RTD: &str = include_str!("../../published/cgw_rtd.csv");
const CGW_CORRELATION: &str = include_str!("../../published/cgw_correlation.csv");
const ROCHA_PAYLOAD: &str = include_str!("../../published/rocha2019_payload.csv");
const ROCHA_LOCATION: &str = include_str!("../../published/rocha2019_location.csv");
const ROCHA_FANIN: &str = include_str!("../../published/rocha2019_fanin.csv");
const BURGER: &str = include_str!("../../published/burger2019_findings.csv");

/// Cavalieri, Table 1: lowest and highest round trip of a block, milliseconds.
pub(super) fn cavalieri_validation(study: &str, block: &str) -> Option<(f64, f64)> {
    let wanted = [("study", study), ("block", block)];
    let of = |name| figure(CAVALIERI_VALIDATION, &wanted, name);
    Some((of("low_ms")?, of("high_ms")?))
}

/// Cavalieri, Table 2: seconds until a session is activated.
pub(super) fn cavalieri_session(scenario: u32, is_soap: bool) -> Option<f64> {
    let scenario = scenario.to_string();
    figure(CAVALIERI_SESSION, &[("scenario", &scenario)], if is_soap { "soap_s" } else { "ua_tcp_s" })
}

/// Cavalieri, Table 3: seconds to read this number of bytes over UA TCP without security.
pub(super) fn cavalieri_rtt(bytes: u32) -> Option<f64> {
    let bytes = bytes.to_string();
    figure(CAVALIERI_RTT, &[("bytes", &bytes)], "rtt_s")
}

/// Burger: a figure that the text states.
pub(super) fn burger(finding: &str) -> Option<f64> {
    figure(BURGER, &[("finding", finding)], "value")
}

/// Rocha, Figure 12: statements in the text about this number of clients.
pub(super) fn rocha_fanin(clients: u32, is_mqtt: bool) -> Vec<String> {
    let clients = clients.to_string();
    let protocol = if is_mqtt { "mqtt" } else { "opcua" };
    let of = |cells: &Vec<&'static str>| {
        cells.get(1) == Some(&clients.as_str()) && cells.get(2).is_some_and(|said| said.contains(protocol))
    };
    let said = |cells: Vec<&'static str>| {
        let (whom, what) = (cells.get(2)?, cells.get(3)?);
        // A statement about both protocols does not give the time of either one.
        Some(if whom.contains("and") { format!("MQTT and OPC UA {what}") } else { (*what).to_owned() })
    };
    rows(ROCHA_FANIN, &[]).into_iter().filter(of).filter_map(said).collect()
}

/// Morato, Table X: mean current in amperes, completion time in seconds, and the current of the idle machine.
pub(super) fn morato_power(governor: &str) -> Option<(f64, f64, f64)> {
    let of = |name| figure(MORATO_POWER, &[("governor", governor)], name);
    Some((of("current_mean_a")?, of("session_completion_ms")? / 1e3, of("current_idle_a")?))
}

/// Morato, Tables II and III.
pub(super) fn morato_cpu(implementation: &str, metric: &str) -> Option<f64> {
    figure(MORATO_CPU, &[("implementation", implementation), ("metric", metric)], "value")
}

/// Morato, Tables IV to VI: mean and standard deviation in microseconds, with the generic kernel or the real-time one.
pub(super) fn morato_read(
    implementation: &str,
    network: &str,
    is_isolated: bool,
    is_real_time: bool,
) -> Option<(f64, f64)> {
    let wanted = [
        ("isolated_cpu", if is_isolated { "yes" } else { "no" }),
        ("os", if is_real_time { "rt" } else { "generic" }),
        ("network", network),
        ("implementation", implementation),
    ];
    Some((figure(MORATO_READ, &wanted, "mean_us")?, figure(MORATO_READ, &wanted, "std_us")?))
}

/// Morato, Tables VII and VIII.
pub(super) fn morato_delivery(implementation: &str, is_isolated: bool) -> Option<(f64, f64)> {
    let wanted = [
        ("service", "subscription"),
        ("implementation", implementation),
        ("isolated_cpu", if is_isolated { "yes" } else { "no" }),
    ];
    Some((figure(MORATO_DELIVERY, &wanted, "mean_us")?, figure(MORATO_DELIVERY, &wanted, "std_us")?))
}

/// Morato, Table IX: the same over PubSub.
pub(super) fn morato_pubsub(implementation: &str, is_isolated: bool) -> Option<(f64, f64)> {
    let wanted = [
        ("service", "pubsub-uadp-udp"),
        ("implementation", implementation),
        ("isolated_cpu", if is_isolated { "yes" } else { "no" }),
    ];
    Some((figure(MORATO_DELIVERY, &wanted, "mean_us")?, figure(MORATO_DELIVERY, &wanted, "std_us")?))
}

/// C-GW, Table II: mean, standard deviation, minimum, maximum in milliseconds, throughput in kbit/s.
pub(super) fn cgw_rtd(environment: &str, scenario: &str) -> Option<[f64; 5]> {
    let wanted = [("environment", environment), ("scenario", scenario)];
    let get = |name| figure(CGW_RTD, &wanted, name);
    Some([get("mean_ms")?, get("std_ms")?, get("min_ms")?, get("max_ms")?, get("throughput_kbps")?])
}

/// C-GW, Table III: Pearson and Kulczynski II.
pub(super) fn cgw_correlation(gain: u32, threshold: u32) -> Option<(f64, f64)> {
    let (gain, threshold) = (gain.to_string(), threshold.to_string());
    let wanted = [("rtd_peak_gain_n", gain.as_str()), ("cpu_threshold_pct", threshold.as_str())];
    Some((figure(CGW_CORRELATION, &wanted, "pearson")?, figure(CGW_CORRELATION, &wanted, "kulczynski2")?))
}

/// Rocha, Table 1: mean, median, standard deviation, maximum, minimum in milliseconds.
pub(super) fn rocha_payload(payload: &str, protocol: &str) -> Option<[f64; 5]> {
    let wanted = [("payload", payload), ("protocol", protocol)];
    let get = |name| figure(ROCHA_PAYLOAD, &wanted, name);
    Some([get("mean_ms")?, get("median_ms")?, get("std_ms")?, get("max_ms")?, get("min_ms")?])
}

/// Rocha, Table 2, the same.
pub(super) fn rocha_location(location: &str, protocol: &str) -> Option<[f64; 5]> {
    let wanted = [("location", location), ("protocol", protocol)];
    let get = |name| figure(ROCHA_LOCATION, &wanted, name);
    Some([get("mean_ms")?, get("median_ms")?, get("std_ms")?, get("max_ms")?, get("min_ms")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found() {
        assert_eq!(morato_cpu("open62541", "cpu_mean"), Some(17.2));
        assert_eq!(morato_read("open62541", "ethernet", true, false), Some((306.67, 12.76)));
        assert_eq!(morato_read("open62541", "ethernet", false, true), Some((382.48, 24.44)));
        assert_eq!(morato_delivery("open62541", false), Some((267.77, 24.55)));
        assert_eq!(cgw_rtd("Ethernet", "A"), Some([3.0, 0.7, 2.4, 12.0, 42.0]));
        assert_eq!(cavalieri_validation("opcua-model", "2.5 MB"), Some((225.0, 420.0)));
        assert_eq!(cavalieri_session(4, true), Some(15.9));
        assert_eq!(cavalieri_rtt(32_768), Some(0.39));
        assert_eq!(cgw_correlation(10, 50), Some((0.81, 0.83)));
        assert_eq!(rocha_payload("10 kB", "opcua").unwrap()[0], 42.23);
        assert_eq!(rocha_location("Tokyo", "mqtt-qos0").unwrap()[0], 327.79);
        assert_eq!(burger("cpu at 10000 signals/s with 30 clients"), Some(80.0));
        assert_eq!(rocha_fanin(1_000, false), ["up to 1200 ms"]);
        assert_eq!(rocha_fanin(1_000, true), ["worst case below 500 ms"]);
        assert_eq!(rocha_fanin(10, true), ["MQTT and OPC UA practically the same"]);
        assert_eq!(morato_cpu("nobody", "cpu_mean"), None);
    }
}
