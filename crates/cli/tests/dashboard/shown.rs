//! Pages of the dashboard in a real browser.

use crate::devtools::Devtools;
use crate::headless::{self, browser};
use crate::pages;
use crate::pages::{Server, add_olga, log_on, serve};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// A server with an active alarm, and the address of its dashboard.
fn start(folder: &Path) -> (Server, String) {
    let config = folder.join("server.toml");
    let text = "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\n[security]\nnone = true\n\
                [identities]\nanonymous = true\n[permissions]\nunspecified = \"open\"\n\
                [web]\nbind = \"127.0.0.1:0\"\n\
                [[alarms.alarm]]\nvariable = \"nsu=urn:taktwerk:demo-plant;s=Plant/Cycles\"\nname = \"Running\"\n\
                high = 5.0\nseverity = 950\n";
    std::fs::write(&config, text).unwrap();
    serve(&["--config", config.to_str().unwrap()])
}

/// The document of the page some seconds after it was opened.
fn dump(browser: &Path, folder: &Path, url: &str, width: u32) -> String {
    let picture = folder.join(format!("{width}.png"));
    let taken = format!("--screenshot={}", picture.display());
    let arguments = ["--dump-dom", &taken, "--virtual-time-budget=8000"];
    let document = headless::run(browser, &arguments, (width, 900), url, folder);
    if let Some(kept) = std::env::var_os("TAKTWERK_KEEP_SCREENSHOTS") {
        std::fs::copy(&picture, Path::new(&kept).join(format!("alarms-{width}.png"))).unwrap();
    }
    document
}

#[test]
fn the_alarm_page_shows_the_operations() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = start(folder.path());
    let page = format!("{url}#alarms");
    let end = Instant::now() + Duration::from_secs(120);
    let html = loop {
        let html = dump(&browser, folder.path(), &page, 1_200);
        if html.contains("Running") {
            break html;
        }
        assert!(Instant::now() < end, "the alarm is not shown: {html}");
    };
    for text in ["<h1>Alarms</h1>", "not acknowledged", "Plant/Cycles", ">950<", "Active"] {
        assert!(html.contains(text), "{text} is missing: {html}");
    }
    // Each action is a button with its own name, for keyboards and screen readers.
    for action in ["Acknowledge", "Comment", "Shelve"] {
        let named = html.split("<button").any(|button| {
            let tag = button.split('>').next().unwrap_or_default();
            tag.contains(&format!("aria-label=\"{action} ")) && tag.contains("Running\"")
        });
        assert!(named, "no button to {action}: {html}");
    }
    assert!(dump(&browser, folder.path(), &page, 500).contains("Running"));
}

/// Maximum number of bytes that a page transfers until it shows its values.
const BYTES_MAX: u64 = 300_000;

#[test]
fn a_page_of_a_server_with_five_thousand_live_values_is_small() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    // Values change so rarely that a busy browser receives few changes before it shows the first values.
    let (_server, url) = serve(&[
        "--port",
        "0",
        "--no-plant",
        "--signals",
        "5000",
        "--update",
        "10000",
        "--web",
        "127.0.0.1:0",
    ]);
    let mut page = Devtools::start(&browser, folder.path());
    // Values for all visible rows have arrived. Invisible rows are not drawn.
    let shown = |count: usize| {
        format!(
            "(rows => rows.length >= {count} && /[0-9]/.test(rows[0].querySelector('td.value').textContent))\
             ([...document.querySelectorAll('tbody tr')].filter(row => row.row?.trace.points.length))"
        )
    };
    for (name, part, width, values) in [
        ("overview", "", 1_280, 30),
        ("overview-phone", "", 390, 30),
        ("plant", "#plant/ns%3D1%3Bi%3D99999", 1_280, 5_000),
    ] {
        page.open(&format!("{url}{part}"), width);
        page.wait_for(&shown(values));
        let (bytes, paint) = (page.received(), page.first_paint());
        page.wait_for("document.getElementById('state').textContent === 'Running'");
        // The duration depends on the load of the machine, so it is printed and not checked.
        println!("{name}: first paint after {paint:.0} ms, {values} live values with {bytes} bytes");
        assert!(bytes > 10_000, "{name}: {bytes} bytes are not the whole page");
        assert!(bytes <= BYTES_MAX, "{name}: {bytes} bytes until it shows {values} values");
        assert!(paint > 0.0);
        // Nothing is wider than the window.
        assert_eq!(
            page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
            json!(true),
            "{name}"
        );
        page.keep(&format!("{name}.png"));
        let dark = json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]});
        page.call("Emulation.setEmulatedMedia", dark);
        page.open(&format!("{url}{part}"), width);
        page.wait_for(&shown(values));
        page.keep(&format!("{name}-dark.png"));
        page.call("Emulation.setEmulatedMedia", json!({"features": []}));
    }
}

/// Whether a page shows a value.
const HAS_VALUES: &str =
    "[...document.querySelectorAll('td.value')].some(value => /[0-9]/.test(value.textContent))";

/// Maximum number of connections of a browser to a server.
const CONNECTIONS: usize = 6;

#[test]
fn logins_work_after_many_page_loads_and_with_many_live_pages() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    add_olga(folder.path());
    let config = folder.path().join("server.toml");
    let text = "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\n[security]\nnone = true\n\
                [identities]\nanonymous = true\nusers_file = \"users.toml\"\n[permissions]\nunspecified = \"open\"\n\
                [web]\nbind = \"127.0.0.1:0\"\n";
    std::fs::write(&config, text).unwrap();
    let (_server, url) = serve(&["--config", config.to_str().unwrap()]);
    let mut page = Devtools::start(&browser, folder.path());
    for load in 0..20 {
        // Most pages are left while their first values arrive.
        let part = ["", "#plant", "#alarms"][load % 3];
        page.open(&format!("{url}{part}"), 1_280);
        page.wait_for("(document.getElementById('state')?.textContent ?? 'connecting') !== 'connecting'");
    }
    // More live pages than connections: pages without a stream poll.
    for _ in 0..CONNECTIONS + 2 {
        page.another_page();
        page.open(&url, 1_280);
        page.wait_for(HAS_VALUES);
    }
    page.another_page();
    let begin = Instant::now();
    page.open(&url, 1_280);
    log_on(&mut page);
    assert!(begin.elapsed() < Duration::from_secs(30), "it took {:?}", begin.elapsed());
    page.wait_for(HAS_VALUES);
}

#[test]
#[cfg(feature = "gateway")]
fn every_page_shows_its_data_in_light_and_dark_and_fits_a_phone() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = pages::everything(folder.path());
    let mut page = Devtools::start(&browser, folder.path());
    page.open(&url, 1_280);
    log_on(&mut page);
    let temperature = "plant/ns%3D3%3Bs%3DLine%201%2FOven%2FTemperature";
    for (name, part, shown) in [
        ("overview", "overview", "Temperature"),
        ("plant", "plant", "Line 1"),
        ("variable", temperature, "°C"),
        ("alarms", "alarms", "Running"),
        ("sources", "sources", "plc-7"),
        ("clients", "clients", "Values per second"),
        (
            "pubsub",
            "pubsub",
            "udp-of-line-3ConnectionOperationalfastWriter groupOperationalovenDataSet writerOperational",
        ),
        ("certificates", "certificates", "Rejected certificates"),
        ("log", "log", "plc-7"),
    ] {
        for (kind, width, scheme) in [
            ("", 1_280, "light"),
            ("-dark", 1_280, "dark"),
            ("-phone", 390, "light"),
            ("-phone-dark", 390, "dark"),
        ] {
            let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            page.call("Emulation.setEmulatedMedia", features);
            page.open(&format!("{url}#{part}"), width);
            page.wait_for(&format!(
                "document.getElementById('main')?.textContent.includes({}) === true",
                json!(shown)
            ));
            page.wait_for("document.getElementById('state').textContent === 'Running'");
            // Wait for values of two seconds, for the screenshots.
            std::thread::sleep(Duration::from_secs(
                u64::from(std::env::var_os("TAKTWERK_KEEP_SCREENSHOTS").is_some()) * 2,
            ));
            let fits = page.evaluate("document.documentElement.scrollWidth <= innerWidth");
            assert_eq!(fits, json!(true), "{name}{kind} is wider than the window");
            let problem = page.evaluate("document.getElementById('message').textContent");
            assert_eq!(problem, json!(""), "{name}{kind}");
            page.keep(&format!("page-{name}{kind}.png"));
        }
    }
}
