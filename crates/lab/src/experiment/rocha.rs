//! Rocha et al. 2019: OPC UA and MQTT: bytes on the wire, and round trips of a value back to its sender.

use super::beside;
use super::{
    Experiment, Plan, Wish, conditions, is_below, is_less, network_name, percentile, published, stack_name,
    stacks, time, times_as, times_grid, valid_groups,
};
use crate::chart::{Axis, Chart, Point, Quartiles};
use crate::figures;
use crate::latency::Times;
use crate::measurement::{Group, Measurement};
use crate::outcome::{Grid, Outcome, maybe};
use crate::scenario::{BROKERLESS, EMBEDDED, Kind, LoadSpec, Scenario, Sweep, broker, is_uadp};
use crate::statistics::{Repeated, summary_ci95, within};
use taktwerk_load::result::Figure;

pub(super) static ALL: [&dyn Experiment; 4] = [&Overhead, &Payload, &Location, &Clients];

struct Overhead;
struct Payload;
struct Location;
struct Clients;

const NO_BROKER: &str =
    "MQTT: no broker is installed, and none is built in; run `taktwerk lab peers install mosquitto`";
const NO_FAR_PUBSUB: &str = "PubSub over UDP: there is no remote server, so it has no distant location; PubSub over a \
     broker takes the same path as MQTT";
/// The paper's locations with the emulated link used for each.
const PLACES: [(&str, &str); 4] = [
    ("Sao Paulo", "wan-sao-paulo"),
    ("Oregon", "wan-oregon"),
    ("Frankfurt", "wan-frankfurt"),
    ("Tokyo", "wan-tokyo"),
];

/// The paper's protocols shown in the charts, with their labels.
const PUBLISHED: [(&str, &str); 2] = [("opcua", "OPC UA"), ("mqtt-qos0", "MQTT QoS 0")];

/// The largest payload, bytes.
const MEGABYTE: f64 = 1e6;
/// Publishing interval requested for the values of a round trip, in milliseconds.
const CYCLE_MS: f64 = 1.0;

fn echo(name: &str, payloads: &[u32], count: u64) -> Scenario {
    let mut load = LoadSpec::new(Kind::Roundtrip);
    load.payload = Some(Sweep::Many(payloads.to_vec()));
    load.publishing_ms = Some(CYCLE_MS.into());
    load.count = Some(count);
    let mut scenario = Scenario::new(name, load);
    scenario.server.signals = 1;
    scenario.server.update_ms = 0.0;
    scenario.server.interop = true;
    scenario
}

/// The scenarios for OPC UA client/server, for PubSub over UDP, and for MQTT through the first installed broker or the
/// built-in one; with `has_uadp` also for PubSub through that broker.
fn plan(wish: &Wish<'_>, scenarios: Vec<Scenario>, has_uadp: bool) -> Plan {
    let mut skipped = Vec::new();
    let mut plan = conditions(wish, scenarios.clone());
    // PubSub over UDP has no remote server.
    let near: Vec<Scenario> = scenarios.iter().filter(|scenario| scenario.link.is_none()).cloned().collect();
    if wish.stacks.iter().any(|stack| stack == "own") {
        let wish = Wish { quick: wish.quick, stacks: vec![BROKERLESS.to_owned()], place: wish.place };
        plan.extend(conditions(&wish, near));
    }
    match wish.place.brokers().first() {
        Some(broker) => {
            let stacks = through(broker, if wish.quick { 0 } else { 2 }, has_uadp);
            let wish = Wish { quick: wish.quick, stacks, place: wish.place };
            plan.extend(conditions(&wish, scenarios));
        }
        None => skipped.push(NO_BROKER.to_owned()),
    }
    Plan { conditions: plan, skipped }
}

/// The stacks of a broker, up to a QoS level.
fn through(broker: &str, highest: u8, has_uadp: bool) -> Vec<String> {
    let messages: &[&str] = if has_uadp { &["", "-uadp"] } else { &[""] };
    let of = |message: &&str| {
        let name = format!("{broker}{message}");
        (0..=highest).map(move |level| format!("{name}-qos{level}"))
    };
    messages.iter().flat_map(of).collect()
}

/// The OPC UA stacks with a server.
fn opc_ua(measurements: &[Measurement]) -> Vec<String> {
    let is_server = |stack: &String| broker(stack).is_none() && stack != BROKERLESS;
    stacks(measurements).into_iter().filter(is_server).collect()
}

/// How often a value crosses the wire on its way back to its sender: twice through a server, otherwise once.
fn ways(stack: &str) -> f64 {
    if stack == BROKERLESS { 1.0 } else { 2.0 }
}

/// The broker's row with QoS 0.
fn mqtt(measurements: &[Measurement]) -> Option<String> {
    let is = |stack: &String| broker(stack).is_some_and(|(_, level)| level == 0) && !is_uadp(stack);
    stacks(measurements).into_iter().find(is)
}

/// The row of PubSub through that broker.
fn uadp_over_mqtt(measurements: &[Measurement]) -> Option<String> {
    let is = |stack: &String| broker(stack).is_some_and(|(_, level)| level == 0) && is_uadp(stack);
    stacks(measurements).into_iter().find(is)
}

/// Whether a broker waits for delayed acknowledgements when many clients answer. rumqttd does, because it does not set
/// TCP_NODELAY.
fn waits(stack: &str) -> bool {
    broker(stack).is_some_and(|(name, _)| matches!(name, EMBEDDED | "rumqttd"))
}

/// Adds a remark if the broker was the built-in one.
fn whose_broker(measurements: &[Measurement], outcome: &mut Outcome) {
    let is_embedded = |stack: &String| broker(stack).is_some_and(|(name, _)| name == EMBEDDED);
    if stacks(measurements).iter().any(is_embedded) {
        outcome.remark(
            "No broker is installed, so MQTT messages go through the built-in one (rumqttd, in its own process), shown \
             as embedded-qos0 and so on. Run `taktwerk lab peers install mosquitto` to install the most widely used \
             one.",
        );
    }
}

impl Experiment for Overhead {
    fn id(&self) -> &'static str {
        "rocha-overhead"
    }
    fn question(&self) -> &'static str {
        "How many bytes on the wire does each byte of payload cost?"
    }
    fn source(&self) -> &'static str {
        "Rocha et al. 2019, Figure 3 (M1: bytes on the wire over payload bytes)"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let (few, many) = if wish.quick { (200, 20) } else { (1_000, 100) };
        let mut small = echo("rocha-overhead", &[10, 100, 1_000], few);
        let mut large = echo("rocha-overhead", &[1_000_000], many);
        for scenario in [&mut small, &mut large] {
            scenario.time = time(0.1, 1.0, if wish.quick { 2 } else { 5 });
        }
        plan(wish, vec![small, large], true)
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut grid = Grid::new(
            "Bytes on Ethernet per value written and returned, both directions",
            1,
            &["stack", "payload B", "message bytes", "headers", "Ethernet", "total", "M1", "M1 per way"],
        );
        let mut lines = Vec::new();
        for stack in &stacks(measurements) {
            let mut points = Vec::new();
            for group in groups.iter().filter(|group| group.condition.stack == *stack) {
                let payload = f64::from(group.condition.payload.unwrap_or(0));
                let Some(count) = group.mean(Figure::ROUNDTRIP_COUNT).filter(|count| *count > 0.0) else {
                    continue;
                };
                let each = |figure: Figure| group.mean(figure).map(|bytes| bytes / count);
                let ua = each(Figure::WIRE_PAYLOAD_IN_BYTES)
                    .zip(each(Figure::WIRE_PAYLOAD_OUT_BYTES))
                    .map(|(a, b)| a + b);
                let total = each(Figure::WIRE_TOTAL_BYTES);
                let ratio = total.map(|total| total / payload);
                grid.row([
                    stack_name(stack).to_owned(),
                    figures::thousands(payload as i64),
                    maybe(ua),
                    maybe(each(Figure::WIRE_TCP_IP_BYTES)),
                    maybe(each(Figure::WIRE_ETHERNET_BYTES)),
                    maybe(total),
                    maybe(ratio),
                    maybe(ratio.map(|ratio| ratio / ways(stack))),
                ]);
                points.extend(ratio.map(|ratio| Point::new(payload, ratio / ways(stack))));
            }
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            if let (Some(first), Some(last)) = (points.first(), points.last().filter(|_| points.len() > 1)) {
                let falls = points.windows(2).all(|pair| matches!(pair, [a, b] if a.y > b.y));
                // If the largest payload was not measured, this is undecided.
                let is_small = (last.x >= MEGABYTE).then_some(last.y < 1.1);
                outcome.finding(
                    "overhead falls with the size of the payload, down to less than 10 % at 1 MB",
                    if falls { is_small } else { Some(false) },
                    format!(
                        "{}: {} at {} B, {} at {} B",
                        stack_name(stack),
                        times_as(first.y),
                        first.x,
                        times_as(last.y),
                        figures::thousands(last.x as i64)
                    ),
                );
            }
            lines.push((stack_name(stack).to_owned(), points));
        }
        outcome.grids.push(grid);
        outcome.charts.extend(Chart::lines_apart(
            "Bytes on the wire over payload bytes, per transfer",
            "1 means no overhead. The further above 1, the larger is the share of headers, identifiers and \
             acknowledgements.",
            (Axis::log("payload, bytes"), Axis::log("M1")),
            lines,
        ));
        compare_overhead(measurements, &groups, outcome);
        outcome.remark(
            "In addition to the value, this counts Write and Publish requests with their responses, and all \
             acknowledgements. The value crosses the wire twice through a server or broker, and once with PubSub over \
             UDP (uadp-udp). NAME-uadp-qos0 is PubSub over MQTT: each message contains a UADP NetworkMessage. \
             Comparable: the shape of M1 against the payload, and that it approaches 1. Not comparable: single \
             figures, because the paper's diagram prints none.",
        );
        whose_broker(measurements, outcome);
    }
}

/// Compares overhead. An OPC UA client writes and is notified, an MQTT client publishes and receives: both transfer the
/// value there and back.
fn compare_overhead(measurements: &[Measurement], groups: &[Group<'_>], outcome: &mut Outcome) {
    let Some(mqtt) = mqtt(measurements) else { return };
    let each = |stack: &str, payload: u32| {
        let of = groups
            .iter()
            .find(|group| group.condition.stack == stack && group.condition.payload == Some(payload))?;
        let count = of.mean(Figure::ROUNDTRIP_COUNT).filter(|count| *count > 0.0)?;
        Some(of.mean(Figure::WIRE_TOTAL_BYTES)? / count)
    };
    for payload in [100, 1_000, 1_000_000] {
        let (Some(ours), Some(theirs)) = (each(BROKERLESS, payload), each(&mqtt, payload)) else { continue };
        let (ours, theirs) = (ours / ways(BROKERLESS), theirs / ways(&mqtt));
        outcome.finding(
            "UADP over UDP takes no more bytes per transfer than MQTT QoS 0",
            Some(ours <= theirs),
            format!(
                "{} B payload: {} B; {mqtt} {} B: {}",
                figures::thousands(i64::from(payload)),
                figures::number(ours),
                figures::number(theirs),
                times_as(ours / theirs)
            ),
        );
    }
    if let Some(uadp) = uadp_over_mqtt(measurements) {
        for payload in [10, 1_000, 1_000_000] {
            let (Some(with), Some(bare)) = (each(&uadp, payload), each(&mqtt, payload)) else { continue };
            outcome.finding(
                "PubSub over MQTT adds at most a 64 B header per transfer to plain MQTT",
                // One message that is in flight when the window begins is a twentieth of the 20 MB in the window.
                Some(match payload {
                    1_000_000 => (with / bare - 1.0).abs() < 0.1,
                    _ => with > bare && with - bare <= 64.0 * ways(&uadp),
                }),
                format!(
                    "{} B payload: {uadp} takes {} B, {mqtt} {} B",
                    figures::thousands(i64::from(payload)),
                    figures::number(with),
                    figures::number(bare)
                ),
            );
        }
    }
    for stack in opc_ua(measurements) {
        for payload in [10, 1_000, 1_000_000] {
            let (Some(ours), Some(theirs)) = (each(&stack, payload), each(&mqtt, payload)) else { continue };
            outcome.finding(
                "MQTT QoS 0 takes fewer bytes than Write and Publish, and the difference vanishes with size",
                // With 1 MB, acknowledgements dominate the difference: a few per cent either way.
                Some(match payload {
                    1_000_000 => (ours / theirs - 1.0).abs() < 0.05,
                    _ => ours > theirs,
                }),
                format!(
                    "{} B payload: {} takes {} B, {mqtt} {} B",
                    figures::thousands(i64::from(payload)),
                    stack_name(&stack),
                    figures::number(ours),
                    figures::number(theirs)
                ),
            );
        }
    }
}

impl Experiment for Payload {
    fn id(&self) -> &'static str {
        "rocha-payload"
    }
    fn question(&self) -> &'static str {
        "How long does a value take to the server and back to its sender, by payload size?"
    }
    fn source(&self) -> &'static str {
        "Rocha et al. 2019, Table 1, Figures 4 to 6, Python on both ends"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let mut scenario =
            echo("rocha-payload", &[100, 10_000, 100_000], if wish.quick { 300 } else { 10_000 });
        scenario.time = time(0.2, 1.0, if wish.quick { 3 } else { 5 });
        plan(wish, vec![scenario], true)
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut rows = Vec::new();
        let mut curves: Vec<(String, Times)> = Vec::new();
        let mut boxes = Vec::new();
        for group in &groups {
            let stack = stack_name(&group.condition.stack);
            let payload = figures::bytes(f64::from(group.condition.payload.unwrap_or(0)));
            let times = group.times("roundtrip");
            boxes.push(Quartiles::of(&format!("{stack}, {payload}"), &times));
            curves.push((format!("{stack}, {payload}"), times.clone()));
            rows.push((vec![stack.to_owned(), payload], times));
        }
        outcome.grids.push(times_grid(
            "From a Write to its own notification (MQTT and PubSub: from publishing to own receipt), measured",
            &["stack", "payload"],
            &rows,
            true,
        ));
        outcome.grids.push(paper_grid(
            "Published, milliseconds",
            "payload",
            &["100 B", "10 kB", "100 kB"],
            published::rocha_payload,
        ));
        outcome.charts.extend(Chart::apart(
            Chart::density,
            "Distribution density of the round trip",
            &curves,
        ));
        for (payload, ours) in [("100 B", "100 B"), ("10 kB", "10.0 kB"), ("100 kB", "100 kB")] {
            for (protocol, name) in PUBLISHED {
                boxes.extend(
                    published::rocha_payload(payload, protocol)
                        .map(|figures| Quartiles::published(name, figures))
                        .map(|one| Quartiles { label: format!("{}, {ours}", one.label), ..one }),
                );
            }
        }
        outcome.charts.extend(Chart::boxes_apart("Round trip by payload", boxes));
        for stack in opc_ua(measurements) {
            let mut medians: Vec<(u32, f64)> = groups
                .iter()
                .filter(|group| group.condition.stack == stack)
                .map(|group| {
                    (
                        group.condition.payload.unwrap_or(0),
                        group.times("roundtrip").percentile(50.0) as f64 / 1e6,
                    )
                })
                .collect();
            medians.sort_unstable_by_key(|(payload, _)| *payload);
            if let [small, .., large] = &medians[..] {
                let p50 = |payload: u32| {
                    let of = |group: &&Group<'_>| {
                        group.condition.stack == stack && group.condition.payload == Some(payload)
                    };
                    groups.iter().find(of).and_then(|group| group.metric(Figure::ROUNDTRIP_P50_US))
                };
                // The wait for the next cycle depends on when the write begins, and so on the duration of the previous
                // one.
                let is_within_a_cycle = (large.1 - small.1).abs() < CYCLE_MS;
                let is_longer = is_below(p50(small.0).as_ref(), p50(large.0).as_ref());
                outcome.finding(
                    "larger values take longer",
                    is_longer.filter(|longer| *longer || !is_within_a_cycle),
                    format!(
                        "{}: p50 {} ms at {}, {} ms at {}{}",
                        stack_name(&stack),
                        figures::number(small.1),
                        figures::bytes(f64::from(small.0)),
                        figures::number(large.1),
                        figures::bytes(f64::from(large.0)),
                        if is_within_a_cycle { "; the publishing cycle is 1 ms" } else { "" }
                    ),
                );
            }
        }
        outcome.remark(
            "In the paper, 100 B take longer than 10 kB except with MQTT QoS 0. The cause is TCP's delayed \
             acknowledgement with Nagle's algorithm, which no stack here uses. The requested publishing interval is 1 \
             ms. Writes begin at all phases of it, so it adds 0 to 1 ms to a round trip, 0.5 ms on average. \
             Comparable: order and shape. Not comparable: absolute times of Python over a network.",
        );
        whose_broker(measurements, outcome);
    }
}

fn paper_grid(title: &str, first: &str, rows: &[&str], of: fn(&str, &str) -> Option<[f64; 5]>) -> Grid {
    let mut grid =
        Grid::new(title, 2, &[first, "protocol", "mean ms", "median ms", "std ms", "max ms", "min ms"]);
    for row in rows {
        for protocol in ["mqtt-qos0", "mqtt-qos1", "mqtt-qos2", "opcua"] {
            let Some(figures) = of(row, protocol) else { continue };
            let mut cells = vec![(*row).to_owned(), protocol.to_owned()];
            for (at, value) in figures.iter().enumerate() {
                // The printed extremes of this row are misprints of the source.
                let is_misprint = *row == "LAN" && protocol == "opcua" && at >= 3;
                cells.push(if is_misprint { "misprint".to_owned() } else { figures::number(*value) });
            }
            grid.rows.push(cells);
        }
    }
    grid
}

impl Experiment for Location {
    fn id(&self) -> &'static str {
        "rocha-location"
    }
    fn question(&self) -> &'static str {
        "How long does a value of 16 bytes take to a remote server and back?"
    }
    fn source(&self) -> &'static str {
        "Rocha et al. 2019, Table 2, Figures 7 to 11, servers in São Paulo, Oregon, Frankfurt and Tokyo"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let mut near = echo("rocha-location", &[16], if wish.quick { 200 } else { 10_000 });
        near.time = time(0.2, 1.0, if wish.quick { 2 } else { 5 });
        let mut plan = plan(wish, vec![near.clone()], !wish.quick);
        plan.skipped.push(NO_FAR_PUBSUB.to_owned());
        for (name, link) in PLACES {
            match wish.place.know_link(link) {
                Ok(()) => {
                    let mut far = near.clone();
                    far.link = Some(link.to_owned());
                    // Distance dominates the time, and the link is the same in each repetition.
                    far.load.count = Some(if wish.quick { 10 } else { 1_000 });
                    far.time.repetitions = if wish.quick { 1 } else { 5 };
                    plan.conditions.extend(self::plan(wish, vec![far], !wish.quick).conditions);
                }
                Err(error) => plan.skipped.push(format!("{name}: {error}")),
            }
        }
        plan
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut rows = Vec::new();
        let mut boxes = Vec::new();
        let mut curves: Vec<(String, Times)> = Vec::new();
        for group in &groups {
            let stack = stack_name(&group.condition.stack);
            let place = group.condition.link.clone().unwrap_or_else(|| "this machine".to_owned());
            let times = group.times("roundtrip");
            let name = match group.condition.link.as_deref() {
                None => format!("{stack}, this machine"),
                link => format!("{stack}, {}", network_name(link)),
            };
            boxes.push(Quartiles::of(&name, &times));
            curves.push((name, times.clone()));
            rows.push((vec![stack.to_owned(), place], times));
        }
        outcome.grids.push(times_grid(
            "From a 16 B Write to its own notification (MQTT and PubSub: from publishing to own receipt), measured",
            &["stack", "server"],
            &rows,
            true,
        ));
        outcome.grids.push(paper_grid(
            "Published, milliseconds",
            "server",
            &["LAN", "Sao Paulo", "Oregon", "Frankfurt", "Tokyo"],
            published::rocha_location,
        ));
        outcome.charts.extend(Chart::apart(
            Chart::density,
            "Distribution density of the round trip",
            &curves,
        ));
        for (place, link) in PLACES {
            for (protocol, name) in PUBLISHED {
                let link = network_name(Some(link));
                boxes.extend(
                    published::rocha_location(place, protocol)
                        .map(|figures| Quartiles::published(name, figures))
                        .map(|one| Quartiles { label: format!("{}, {link}", one.label), ..one }),
                );
            }
        }
        outcome.charts.extend(Chart::boxes_apart("Round trip by location", boxes));
        for stack in opc_ua(measurements) {
            for (name, link) in PLACES {
                let group = groups.iter().find(|group| {
                    group.condition.stack == stack && group.condition.link.as_deref() == Some(link)
                });
                let (Some(group), Some([mqtt, ..]), Some([opcua, ..])) = (
                    group,
                    published::rocha_location(name, "mqtt-qos0"),
                    published::rocha_location(name, "opcua"),
                ) else {
                    continue;
                };
                let times = group.times("roundtrip");
                let summary = times.summary();
                let interval = summary_ci95(summary.mean_us / 1e3, summary.std_us / 1e3, summary.count);
                // The limit is halfway between one round trip and two.
                outcome.finding(
                    "a value needs one round trip of the link",
                    interval.and_then(|interval| within(interval, mqtt * 1.5)),
                    format!(
                        "{} to {name}: {} ms on a link with a round trip of {} ms (published OPC UA: {} ms)",
                        stack_name(&stack),
                        figures::number(summary.mean_us / 1e3),
                        figures::number(mqtt),
                        figures::number(opcua)
                    ),
                );
            }
        }
        outcome.remark(
            "The links are derived from the paper's MQTT QoS 0 rows. Comparable: the OPC UA rows with those of the \
             paper, and the cost of each further round trip of a protocol. Not comparable: the row of this machine \
             with the paper's LAN, and extremes, which depended on the Internet at that time.",
        );
        whose_broker(measurements, outcome);
    }
}

impl Experiment for Clients {
    fn id(&self) -> &'static str {
        "rocha-clients"
    }
    fn question(&self) -> &'static str {
        "How long does it take until one client has the answers of all others to its write?"
    }
    fn source(&self) -> &'static str {
        "Rocha et al. 2019, Figure 12: OPC UA up to 1 200 ms with 1 000 clients, MQTT below 500 ms"
    }
    fn plan(&self, wish: &Wish<'_>) -> Plan {
        let make = |clients: &[u32], count: u64| {
            let mut load = LoadSpec::new(Kind::Fan);
            load.clients = Some(Sweep::Many(clients.to_vec()));
            load.publishing_ms = Some(1.0.into());
            load.count = Some(count);
            let mut scenario = Scenario::new("rocha-clients", load);
            scenario.server.update_ms = 0.0;
            scenario.time = time(0.2, 1.0, if wish.quick { 2 } else { 5 });
            scenario
        };
        let scenarios = if wish.quick {
            vec![make(&[10, 100], 50), make(&[1_000], 20)]
        } else {
            vec![make(&[10, 100, 1_000], 1_000)]
        };
        plan(wish, scenarios, !wish.quick)
    }
    fn evaluate(&self, measurements: &[Measurement], outcome: &mut Outcome) {
        let groups = valid_groups(measurements);
        let mut rows = Vec::new();
        let mut boxes = Vec::new();
        for group in &groups {
            let stack = stack_name(&group.condition.stack);
            let times = group.times("transaction");
            boxes.push(Quartiles::of(&format!("{stack}, {}", group.condition.clients), &times));
            rows.push((vec![stack.to_owned(), group.condition.clients.to_string()], times));
        }
        outcome.grids.push(times_grid(
            "From the write or publish to the last answer, measured",
            &["stack", "clients"],
            &rows,
            true,
        ));
        outcome.grids.extend(beside::clients(&groups));
        outcome.charts.extend(Chart::boxes_apart("Transactions by number of clients", boxes));
        for stack in opc_ua(measurements).into_iter().chain([BROKERLESS.to_owned()]) {
            let median = |stack: &str, clients: u32| -> Option<Repeated> {
                let of =
                    |group: &&Group<'_>| group.condition.stack == stack && group.condition.clients == clients;
                percentile(groups.iter().find(of)?, "transaction", 50.0)
            };
            let ms = |figure: &Repeated| figures::number(figure.median / 1e3);
            if let Some((name, theirs)) =
                mqtt(measurements).and_then(|mqtt| median(&mqtt, 1_000).map(|time| (mqtt, time)))
                && let Some(ours) = median(&stack, 1_000)
            {
                outcome.finding(
                    "with 1 000 clients OPC UA is not slower than MQTT QoS 0 (published: at least three times slower)",
                    // Being faster than a broker that waits for acknowledgements proves nothing about MQTT.
                    is_less(&ours, &theirs).filter(|is_quicker| !is_quicker || !waits(&name)),
                    format!(
                        "{}: p50 {} ms, {name}: {} ms{}",
                        stack_name(&stack),
                        ms(&ours),
                        ms(&theirs),
                        if waits(&name) { "; this broker waits for delayed acknowledgements, mosquitto does not" } else { "" }
                    ),
                );
            }
        }
        outcome.remark(
            "Each client answers on its own variable, and the first client monitors all of them. With a single \
             variable, a subscription would show only the last answer of each interval. Values are Doubles with a \
             timestamp, 16 bytes. All clients share one core, so the figures include the cost of the load generator \
             and are an upper bound. With PubSub (uadp-udp), all stations share that core, because there is no server.",
        );
        outcome.remark(
            "Comparable: how the time grows with the number of clients, and the order of the protocols. Not \
             comparable: milliseconds. The paper's clients ran on several computers and were written in Python, so the \
             clients themselves take time.",
        );
        whose_broker(measurements, outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Content;
    use crate::place::Place;
    use serde_json::json;

    fn place() -> Place {
        Place::new("/bin/true".into(), "/none".into()).with_embedded_broker(true)
    }

    fn measured(experiment: &dyn Experiment, of: impl Fn(&str, u32) -> f64) -> Vec<Measurement> {
        let place = place();
        let wish = Wish { quick: true, stacks: vec!["own".into()], place: &place };
        let one = |condition: crate::scenario::Condition| {
            let payload = condition.payload.unwrap_or(16);
            let total = of(&condition.stack, payload);
            let document =
                json!({"roundtrip": {"count": 10, "mean_us": 250.0}, "wire": {"total_bytes": total * 10.0}});
            let mut one = Measurement::from_document(experiment.id(), condition, 0, document);
            let mut times = Times::new();
            (1..=20).for_each(|at| times.record(at * 100_000));
            one.histograms.insert("roundtrip".to_owned(), times);
            one
        };
        experiment.plan(&wish).conditions.into_iter().map(one).collect()
    }

    #[test]
    fn every_experiment_has_mqtt_rows_with_the_built_in_broker() {
        let place = place();
        assert_eq!(place.brokers().last(), Some(&EMBEDDED));
        // An installed mosquitto has priority.
        let broker = place.brokers()[0];
        let wish = Wish { quick: true, stacks: vec!["own".into()], place: &place };
        for experiment in ALL {
            let plan = experiment.plan(&wish);
            let has =
                |level: u8| plan.conditions.iter().any(|one| one.stack == format!("{broker}-qos{level}"));
            assert!(has(0) && !has(1), "{}", experiment.id());
            assert!(!plan.skipped.contains(&NO_BROKER.to_owned()), "{}", experiment.id());
            assert!(plan.conditions.iter().all(|condition| place.check(condition).is_ok()));
        }
        let plan = Overhead.plan(&Wish { quick: false, ..wish });
        for stack in through(broker, 2, true) {
            assert!(plan.conditions.iter().any(|one| one.stack == stack), "{stack}");
        }
        assert_eq!(through("x", 0, true), ["x-qos0", "x-uadp-qos0"]);
        assert_eq!(through("x", 2, false), ["x-qos0", "x-qos1", "x-qos2"]);
    }

    #[test]
    fn pubsub_over_mqtt_is_compared_with_mqtt() {
        let judge = |header: f64| {
            let all = measured(&Overhead, |stack, payload| {
                2.0 * f64::from(payload) + 300.0 + if is_uadp(stack) { 2.0 * header } else { 0.0 }
            });
            let mut outcome = Outcome::default();
            Overhead.evaluate(&all, &mut outcome);
            assert!(outcome.grids[0].rows.iter().any(|row| row[0].ends_with("-uadp-qos0")));
            let those = outcome.findings.iter().filter(|one| one.claim.contains("PubSub over MQTT"));
            those.map(|one| one.holds).collect::<Vec<_>>()
        };
        assert_eq!(judge(30.0), [Some(true); 3]);
        assert_eq!(judge(90.0), [Some(false), Some(false), Some(true)]);
    }

    #[test]
    fn missing_measurements_leave_findings_undecided() {
        let claims = |keep: fn(u32) -> bool| {
            let verdicts = |experiment: &dyn Experiment, claim: &str| {
                let mut all = measured(experiment, |_, payload| 2.0 * f64::from(payload) + 300.0);
                all.retain(|one| one.condition.stack == "own" && keep(one.condition.payload.unwrap_or(0)));
                let mut outcome = Outcome::default();
                experiment.evaluate(&all, &mut outcome);
                let those = outcome.findings.into_iter().filter(|one| one.claim.contains(claim));
                those.map(|one| (one.holds, one.evidence)).collect::<Vec<_>>()
            };
            (verdicts(&Overhead, "overhead falls"), verdicts(&Payload, "larger values"))
        };
        let (falls, longer) = claims(|_| true);
        assert_eq!(falls[0].0, Some(true), "{falls:?}");
        assert!(longer[0].1.contains("100 B") && longer[0].1.contains("100 kB"), "{longer:?}");
        // A stack that cannot send 1 MB has not been shown to have more overhead.
        assert_eq!(claims(|payload| payload < 1_000_000).0[0].0, None);
        let (falls, longer) = claims(|payload| payload == 100);
        assert!(falls.is_empty() && longer.is_empty(), "{falls:?} {longer:?}");
    }

    #[test]
    fn use_of_the_built_in_broker_is_remarked() {
        let told = |name: &str| {
            let mut all = measured(&Payload, |_, _| 400.0);
            for one in all.iter_mut().filter(|one| broker(&one.condition.stack).is_some()) {
                one.condition.stack = format!("{name}-qos0");
            }
            let mut outcome = Outcome::default();
            Payload.evaluate(&all, &mut outcome);
            outcome.remarks.iter().any(|remark| remark.contains("No broker is installed"))
        };
        assert!(told(EMBEDDED) && !told("mosquitto"));
    }

    #[test]
    fn a_waiting_broker_does_not_decide_about_mqtt() {
        let judge = |name: &str, theirs_ms: u64| {
            let place = place();
            let wish = Wish { quick: true, stacks: vec!["own".into()], place: &place };
            let one = |mut condition: crate::scenario::Condition| {
                let is_mqtt = broker(&condition.stack).is_some();
                if is_mqtt {
                    condition.stack = format!("{name}-qos0");
                }
                let mut one = Measurement::from_document("rocha-clients", condition, 0, json!({}));
                let mut times = Times::new();
                times.record(if is_mqtt { theirs_ms } else { 20 } * 1_000_000);
                one.histograms.insert("transaction".to_owned(), times);
                one
            };
            let all: Vec<Measurement> = Clients.plan(&wish).conditions.into_iter().map(one).collect();
            let mut outcome = Outcome::default();
            Clients.evaluate(&all, &mut outcome);
            outcome.findings.iter().find(|one| one.claim.contains("not slower than MQTT")).unwrap().holds
        };
        assert_eq!((judge("mosquitto", 80), judge("mosquitto", 5)), (Some(true), Some(false)));
        assert_eq!((judge(EMBEDDED, 80), judge(EMBEDDED, 5)), (None, Some(false)));
    }

    #[test]
    fn locations_have_density_charts() {
        let mut outcome = Outcome::default();
        Location.evaluate(&measured(&Location, |_, _| 400.0), &mut outcome);
        let densities = outcome.charts.iter().filter(|chart| chart.title.starts_with("Distribution density"));
        let curves = densities.map(|chart| match &chart.content {
            Content::Plane { series, .. } => series.len(),
            _ => 0,
        });
        // OPC UA and MQTT at five locations each, PubSub over UDP at one.
        assert_eq!(curves.sum::<usize>(), 11);
    }
}
