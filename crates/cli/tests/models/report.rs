//! Every kind of plot in a report, drawn by a real browser. The measurements are synthetic: the test checks the page,
//! not the values.

use crate::browser;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use taktwerk_lab::experiment::{self, Wish};
use taktwerk_lab::latency::Times;
use taktwerk_lab::measurement::Measurement;
use taktwerk_lab::place::Place;
use taktwerk_lab::scenario::{Condition, Kind};
use taktwerk_lab::store::Store;
use taktwerk_load::result::{Document, OfProcess, Profile, Profiled, Series};

/// The plots of a report: their names, and the classes of their elements.
const PLOTS: [(&str, &str, &[&str]); 8] = [
    ("EPDF", "Distribution density of the round trip", &["line"]),
    ("ECDF", "Delivery time", &["line"]),
    ("percentile curve", "Tail of the round trip", &["line"]),
    (
        "CPU against signals/s with fit and interval",
        "Measured and fitted: taktwerk",
        &["line", "dot", "band"],
    ),
    ("cycle time against rate", "Client cycle against signals per second: taktwerk", &["line", "bar"]),
    ("box plots", "Round trip by payload", &["box"]),
    ("stacked profile", "Server CPU by thread", &["part"]),
    ("stacked profile over time", "CPU by process of the gateway over time", &["band", "line"]),
];

/// Times around a median, with one of fifty late.
fn times(middle: f64) -> Times {
    let mut times = Times::new();
    for at in 0..400u32 {
        let late = if at % 50 == 49 { 4.0 } else { 0.0 };
        times.record((middle * (0.8 + f64::from(at * 37 % 100) / 250.0 + late) * 1e3) as u64);
    }
    times
}

/// A server with this CPU and two adapters, over time.
fn profile(cpu: f64) -> Profile {
    let of = |cpu: f64| {
        let values =
            |value: f64| (0..8u32).map(|at| value * (1.0 + 0.1 * f64::from(at % 3))).collect::<Vec<_>>();
        OfProcess {
            starts: 1,
            cpu_percent: cpu,
            over_time: Series {
                cpu_percent: values(cpu),
                rss_bytes: values(1e7),
                voluntary_per_s: values(100.0),
                involuntary_per_s: values(5.0),
            },
            ..OfProcess::default()
        }
    };
    let adapters = ["adapter-1", "adapter-2"].map(|name| (name.to_owned(), of(cpu / 4.0)));
    Profile {
        window_s: 8.0,
        at_s: (1..=8u32).map(f64::from).collect(),
        processes: adapters.into_iter().chain([("server".to_owned(), of(cpu))]).collect(),
        total: of(cpu * 1.5),
        network_percent: Some(1.0),
        network_percents: vec![1.0; 8],
    }
}

/// A possible measurement of a load, with every figure that experiments use.
fn made_up(experiment: &str, condition: &Condition, repetition: u32) -> Measurement {
    let (clients, items) = (f64::from(condition.clients), f64::from(condition.items.unwrap_or(1_000)));
    let interval = condition.publishing_ms.unwrap_or(100.0).max(1.0);
    let rate = items * 1e3 / interval;
    let weight = if condition.stack == "own" { 1.0 } else { 3.0 };
    let weight = weight * if condition.security.is_none() { 1.0 } else { 1.4 };
    // Repetitions differ slightly and reproducibly.
    let wobble = 1.0 + 0.01 * f64::from((repetition * 7 + condition.items.unwrap_or(3)) % 5);
    let cpu = (1.0 + rate * 5e-5 + clients * 0.1) * weight * wobble;
    let payload = f64::from(condition.payload.unwrap_or(16));
    let far = condition.link.as_ref().map_or(0.0, |link| link.len() as f64 * 2e3);
    let middle = (120.0 + payload / 100.0 + clients * 3.0 + far) * weight * wobble;
    let sample = |at: u32| {
        let waited = if at % 10 == 9 { middle * 9.0 } else { 0.0 };
        json!({"at_s": f64::from(at) / 100.0, "rtt_us": middle + waited, "context": {
            "timer_late_us": 0.0, "server_wait_us": waited, "server_run_us": middle / 2.0, "client_wait_us": 0.0,
            "retransmitted": 0, "load_percent": if waited > 0.0 { 90.0 } else { 10.0 }, "server_known": true,
        }})
    };
    let samples: Vec<Value> =
        if condition.kind == Kind::Probe { (0..60).map(sample).collect() } else { Vec::new() };
    let sent = 300.0 * (payload + 120.0);
    let document = json!({
        "window_s": 1.0, "per_second": rate * wobble, "notifications": rate, "samples": samples,
        "server": {
            "cpu_percent": cpu, "cpu_s": cpu / 100.0, "user_s": cpu / 140.0, "system_s": cpu / 350.0,
            "cpu_us_per_signal": cpu * 1e4 / rate, "cpu_us_per_request": cpu, "rss_bytes": 2e7 + items * 100.0,
            "rss_growth_bytes": 1e5, "voluntary_switches": 900.0, "involuntary_switches": 40.0, "migrations": 2.0,
            "threads_percent": {"network": cpu * 0.7, "signals": cpu * 0.3},
        },
        "generator": {"cpu_percent": 3.0},
        "progress": {"items": items, "worst_item_ratio": 1.0, "cycle_p50_ms": interval, "cycle_p99_ms": interval * 1.1},
        "message_interval": {"mean_us": interval * 1e3 * wobble},
        "latency": {"uncorrected": {"count": 1_000, "p50_us": middle}},
        "roundtrip": {"count": 300, "p50_us": middle},
        "wire": {
            "payload_in_bytes": sent, "payload_out_bytes": sent, "tcp_ip_bytes": sent * 0.2,
            "ethernet_bytes": sent * 0.1, "total_bytes": sent * 2.3,
        },
        "signals_per_s": rate, "publisher_cpu_percent": cpu / 4.0, "publisher_cpu_ns_per_signal": 20.0,
        "cycles": 100, "cycles_missed": 0,
    });
    let mut document = Document::from(document);
    if condition.server.adapters.is_some() {
        document.add(&Profiled { profile: Some(profile(cpu)) });
    }
    let mut one = Measurement::from_document(experiment, condition.clone(), repetition, document);
    for name in ["latency", "roundtrip", "transaction", "run_span", "delivery", "transfer", "lateness"] {
        one.histograms.insert(name.to_owned(), times(middle));
    }
    for name in ["message_interval", "period_at_subscriber"] {
        one.histograms.insert(name.to_owned(), times(interval * 1e3));
    }
    one
}

/// Stores a run with everything that the short form of two stacks needs.
fn keep(path: &Path) {
    let mut store = Store::open(path).unwrap();
    let run = store.begin("plots", "reproduce all", true, &json!({"machine": {"cpu": "none"}})).unwrap();
    let place = Place::new("/bin/true".into(), "/none".into());
    let wish = Wish { quick: true, stacks: vec!["own".into(), "asyncua".into()], place: &place };
    let measured =
        experiment::all().into_iter().filter(|one| one.data() == one.id() && one.missing().is_none());
    for experiment in measured {
        for condition in experiment.plan(&wish).conditions {
            for repetition in 0..2 {
                store.add(run, &made_up(experiment.id(), &condition, repetition)).unwrap();
            }
        }
    }
    store.finish(run, &[]).unwrap();
}

/// The checks find faults: otherwise a page without faults would prove nothing.
#[test]
fn overflowing_pages_and_empty_charts_are_detected() {
    let Some(browser) = browser::browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = |chart: &str, wide: u32| {
        format!(
            "<!doctype html><html><body style=\"margin:0\"><figure style=\"margin:0\"><h3>one</h3>\
             <svg viewBox=\"0 0 600 340\" style=\"width:100%\"><text x=\"50\" y=\"50\">axis</text>{chart}</svg></figure>\
             <p style=\"width:{wide}px\">wide</p></body></html>"
        )
    };
    let line = "<path class=\"line s0\" d=\"M0 0L600 340\" stroke=\"#0072b2\" stroke-width=\"3\"/>";
    let problems = |html: &str| browser::lay_out(&browser, html, folder.path(), 390).problems;
    assert_eq!(problems(&page(line, 300)), Vec::<String>::new());
    let found = problems(&page(line, 500)).join("; ");
    assert!(
        found.contains("500 pixels wide") && found.contains("sticks out") && found.contains("P wide"),
        "{found}"
    );
    let found = problems(&page("", 300)).join("; ");
    assert!(found.contains("one has 0 coloured pixels"), "{found}");
    assert_eq!(problems("<!doctype html><html><body></body></html>"), ["390: only 1 colours can be seen"]);
}

#[test]
fn every_kind_of_plot_is_drawn_and_fits_a_phone() {
    let Some(browser) = browser::browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (results, report) = (folder.path().join("results.sqlite"), folder.path().join("report.html"));
    keep(&results);
    let mut lab = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
    let written =
        lab.args(["lab", "report", "-o"]).arg(&report).arg("--results").arg(&results).output().unwrap();
    assert!(written.status.success(), "{written:?}");
    let html = fs::read_to_string(&report).unwrap();
    // Simulated experiments have no section for measurements.
    for experiment in experiment::all().into_iter().filter(|one| !one.is_simulated()) {
        assert!(html.contains(&format!("<section id=\"{}\">", experiment.id())), "{}", experiment.id());
    }
    // Everything fits, and the first plots are visible.
    let figures = browser::look_at(&browser, &html, folder.path());
    // One of each kind, close enough to the top to be on the screenshot.
    let (head, body) = html.split_once("<header>").unwrap();
    let mut page = format!("{head}<header><h1>plots</h1></header><div class=\"charts\">");
    for (kind, title, marks) in PLOTS {
        let found = figures.iter().find(|one| one.title.starts_with(title));
        let found = found.unwrap_or_else(|| panic!("{kind}: there is no {title:?}"));
        for mark in marks {
            assert!(found.marks(mark) > 0, "{kind}: nothing is drawn as {mark}: {found:?}");
        }
        let (_, rest) = body.split_once(&format!("<figure><h3>{title}")).unwrap();
        let (rest, _) = rest.split_once("</figure>").unwrap();
        page.push_str(&format!("<figure><h3>{title}{rest}</figure>"));
    }
    page.push_str("</div></body></html>");
    assert_eq!(browser::look_at(&browser, &page, folder.path()).len(), PLOTS.len());
}
