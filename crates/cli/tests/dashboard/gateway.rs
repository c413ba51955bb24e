//! What the dashboard and the metrics show of a gateway, and the keys of its trends.

#![cfg(feature = "gateway")]

use crate::devtools::Devtools;
use crate::headless::browser;
use crate::pages;
use crate::pages::log_on;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn the_grafana_dashboard_uses_existing_metrics_of_sources_and_destinations() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = pages::everything(folder.path());
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut metrics = String::new();
    stream.read_to_string(&mut metrics).unwrap();
    let dashboard = include_str!("../../../../docs/grafana/taktwerk.json");
    let words = dashboard.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let mut found = [0, 0];
    for name in words {
        let kinds = [("source", "plc-7"), ("destination", "cloud")];
        for (number, (kind, one)) in kinds.into_iter().enumerate() {
            if name.starts_with(&format!("taktwerk_{kind}_")) {
                let series = format!("\n{name}{{{kind}=\"{one}\"}} ");
                assert!(metrics.contains(&series), "there is no {series}: {metrics}");
                found[number] += 1;
            }
        }
    }
    assert!(found[0] >= 10 && found[1] >= 10, "{found:?}");
}

/// A script that returns the text of a visible cell, by the first text of its row and the name of its column.
fn cell(row: &str, column: &str) -> String {
    format!(
        "(() => {{
            const row = [...document.querySelectorAll('tbody tr')].find((row) => row.firstChild?.firstChild?.textContent === '{row}');
            const cell = row && [...row.children].find((cell) => cell.dataset.name === '{column}');
            return cell && cell.getClientRects().length > 0 ? cell.textContent : null;
        }})()"
    )
}

#[test]
fn errors_and_rates_of_sources_and_destinations_are_shown_on_all_screens() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = pages::everything(folder.path());
    let mut page = Devtools::start(&browser, folder.path());
    page.open(&url, 1_280);
    log_on(&mut page);
    for (kind, width) in [("", 1_280), ("-phone", 390)] {
        page.open(&format!("{url}#sources"), width);
        let matches = |row: &str, column: &str, pattern: &str| {
            format!("/^{pattern}$/.test({} ?? 'hidden')", cell(row, column))
        };
        for column in ["Dropped", "Invalid", "Write errors"] {
            page.wait_for(&matches("plc-7", column, "0"));
        }
        // Nothing listens on its port.
        for (column, pattern) in [("Errors", "[1-9][0-9,]*"), ("Last error", ".+"), ("Late", "[0-9,]+")] {
            page.wait_for(&matches("plc-7", column, pattern));
        }
        page.wait_for(&matches("boiler-house", "Values per second", "[0-9.,]*[1-9][0-9.,]*"));
        page.wait_for(&matches("day-files", "Values per second", "[0-9.,]*[1-9][0-9.,]*"));
        page.wait_for(&matches("cloud", "Values per second", "0"));
        for (column, pattern) in [
            ("Values waiting", "[1-9][0-9,]*"),
            ("Queue full", "(< 0[.]1|[0-9.]*[1-9][0-9.]*) %"),
            ("Parked", "0"),
            ("Refused", "0"),
            ("Errors", "[1-9][0-9,]*"),
            ("Last error", ".+"),
        ] {
            page.wait_for(&matches("cloud", column, pattern));
        }
        // Phones have no row of headings: each cell shows the name of its column.
        let named =
            "getComputedStyle(document.querySelector('td[data-name=\"Refused\"]'), '::before').content";
        assert_eq!(page.evaluate(named), json!(if width < 600 { "\"Refused: \"" } else { "none" }));
        page.keep(&format!("gateway{kind}.png"));
        let fits = "[document.documentElement, ...document.querySelectorAll('.wide')]
                    .every((it) => it.scrollWidth <= it.clientWidth)";
        assert_eq!(page.evaluate(fits), json!(true), "{kind}: a column is outside the window");
    }
}

/// Presses and releases a key.
fn press(page: &mut Devtools, key: &str, code: u32, text: &str) {
    for kind in [if text.is_empty() { "rawKeyDown" } else { "keyDown" }, "keyUp"] {
        page.call(
            "Input.dispatchKeyEvent",
            json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text}),
        );
    }
}

/// Presses Tab until the element for which `script` is true has the focus.
fn tab_to(page: &mut Devtools, script: &str) {
    for _ in 0..100 {
        if page.evaluate(&format!("(focus => {script})(document.activeElement)")) == json!(true) {
            return;
        }
        press(page, "Tab", 9, "");
    }
    panic!("no key leads to {script}");
}

/// Waits until the trend shows a time span of this length and start, in seconds. Returns its start.
fn until_shown(page: &mut Devtools, length: f64, start: Option<f64>) -> f64 {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let times = page.evaluate("[...document.querySelectorAll('p[role=status] time')].map((it) => Date.parse(it.dateTime) / 1000)");
        let times: Vec<f64> = times.as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
        if let [from, to] = times[..]
            && (to - from - length).abs() < 1.0
            && start.is_none_or(|start| (from - start).abs() < 1.0)
        {
            return from;
        }
        assert!(Instant::now() < end, "{times:?} instead of {length} from {start:?}");
    }
}

#[test]
fn trends_are_zoomed_and_moved_by_keys() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = pages::everything(folder.path());
    let mut page = Devtools::start(&browser, folder.path());
    page.open(&url, 1_280);
    log_on(&mut page);
    page.open(&format!("{url}#plant/ns%3D3%3Bs%3DLine%201%2FOven%2FTemperature"), 1_280);
    page.wait_for("document.querySelector('.figure svg.chart') !== null");
    let begin = until_shown(&mut page, 3600.0, None);
    let labels = "document.querySelector('.figure svg.chart').textContent";
    let before = page.evaluate(labels);
    for (name, length, start) in [
        ("Zoom in", 1800.0, begin + 900.0),
        ("Zoom out", 3600.0, begin),
        ("Earlier", 3600.0, begin - 900.0),
        ("Later", 3600.0, begin),
    ] {
        tab_to(&mut page, &format!("focus.textContent === '{name}'"));
        press(&mut page, "Enter", 13, "\r");
        until_shown(&mut page, length, Some(start));
        if name == "Zoom in" {
            assert_ne!(page.evaluate(labels), before, "the chart has other times");
        }
    }
    // The same with keys in the chart, which keeps the focus.
    tab_to(&mut page, "focus.className === 'figure'");
    page.keep("trend.png");
    for (key, code, text, length, start) in [
        ("+", 187, "+", 1800.0, begin + 900.0),
        ("ArrowLeft", 37, "", 1800.0, begin + 450.0),
        ("ArrowRight", 39, "", 1800.0, begin + 900.0),
        ("-", 189, "-", 3600.0, begin),
    ] {
        press(&mut page, key, code, text);
        until_shown(&mut page, length, Some(start));
    }
    assert_eq!(page.evaluate("document.activeElement.className"), json!("figure"));
    // At most down to a second.
    for _ in 0..20 {
        press(&mut page, "+", 187, "+");
    }
    until_shown(&mut page, 1.0, None);
    assert_eq!(page.evaluate("document.getElementById('message').textContent"), json!(""));
}
