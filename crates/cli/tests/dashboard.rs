//! Pages of the dashboard in a real browser.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)] // a test fails by panicking, and says what it skips

mod devtools;

use devtools::Devtools;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome-headless-shell"];

/// A server that dies with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = NAMES.iter().find_map(|name| {
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
    });
    if found.is_none() {
        let required = "TAKTWERK_TEST_BROWSER";
        assert!(std::env::var_os(required).is_none(), "no Chromium here, and {required} is set");
        eprintln!("skipped: no Chromium here");
    }
    found
}

/// A server with an alarm that is active at once, and the address of its dashboard.
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

/// A server, and the address of its dashboard.
fn serve(arguments: &[&str]) -> (Server, String) {
    // Figures are measured with a release build.
    let program = std::env::var_os("TAKTWERK_PROGRAM").unwrap_or_else(|| BINARY.into());
    let mut child = Command::new(program)
        .args(["serve", "--exit-with-stdin"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (told, lines) = std::sync::mpsc::channel();
    let streams: [Box<dyn std::io::Read + Send>; 2] =
        [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
    for stream in streams {
        let told = told.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                // Nobody listens any more when the address is known.
                let _ = told.send(line);
            }
        });
    }
    let server = Server(child);
    let url = loop {
        let line = lines.recv_timeout(Duration::from_secs(60)).unwrap();
        if let Some((_, url)) = line.split_once("dashboard: ") {
            break url.trim().to_owned();
        }
    };
    (server, url)
}

/// The page as the browser has made it, some seconds after it was opened.
fn dump(browser: &Path, folder: &Path, url: &str, width: u32) -> String {
    let picture = folder.join(format!("{width}.png"));
    let written = folder.join("browser.out");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--dump-dom"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", folder.join("browser").display()))
        .arg(format!("--screenshot={}", picture.display()))
        .args(["--virtual-time-budget=8000", url])
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&written).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(120);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser does not end");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    if let Some(kept) = std::env::var_os("TAKTWERK_KEEP_SCREENSHOTS") {
        std::fs::copy(&picture, Path::new(&kept).join(format!("alarms-{width}.png"))).unwrap();
    }
    std::fs::read_to_string(&written).unwrap()
}

#[test]
fn the_page_of_alarms_shows_what_operators_can_do() {
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
    // Each action is a button with a name of its own, for keyboards and screen readers.
    for action in ["Acknowledge", "Comment", "Shelve"] {
        let named = html.split("<button").any(|button| {
            let tag = button.split('>').next().unwrap_or_default();
            tag.contains(&format!("aria-label=\"{action} ")) && tag.contains("Running\"")
        });
        assert!(named, "no button to {action}: {html}");
    }
    assert!(dump(&browser, folder.path(), &page, 500).contains("Running"));
}

/// Bytes that a page may transfer until it shows its values.
const BYTES_MAX: u64 = 300_000;

#[test]
fn a_page_of_a_server_with_five_thousand_live_values_is_small() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    // They change so rarely that a busy browser does not receive many changes before it shows the first values.
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
    // Values have come for so many rows, and the first one shows its value. Rows out of sight are not drawn.
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
        // How long it takes depends on what else the machine does, so it is told and not judged.
        println!("{name}: first paint after {paint:.0} ms, {values} live values with {bytes} bytes");
        assert!(bytes > 10_000, "{name}: {bytes} bytes are not the whole page");
        assert!(bytes <= BYTES_MAX, "{name}: {bytes} bytes until it shows {values} values");
        assert!(paint > 0.0);
        // Nothing is wider than the window, which a phone would have to scroll.
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

/// Adds a user.
fn add_olga(folder: &Path) {
    let (users, password) = (folder.join("users.toml"), folder.join("password"));
    std::fs::write(&password, "a long password\n").unwrap();
    let mut add = Command::new(BINARY);
    add.args(["user", "add", "olga", "--role", "SecurityAdmin", "--role", "Operator", "--file"]).arg(&users);
    assert!(add.arg("--password-file").arg(&password).status().unwrap().success());
}

/// Logs her on. The button can be used when the page's script has run: before that a form goes nowhere.
fn log_on(page: &mut Devtools) {
    page.wait_for("(button => button?.disabled === false && button.textContent === 'Log on')(document.getElementById('logbutton'))");
    page.evaluate(
        "document.getElementById('login-user').value = 'olga';
         document.getElementById('login-password').value = 'a long password';
         document.getElementById('login-form').requestSubmit()",
    );
    page.wait_for("document.getElementById('logbutton').textContent === 'Log off'");
}

/// Whether a page shows the value of something.
const HAS_VALUES: &str =
    "[...document.querySelectorAll('td.value')].some(value => /[0-9]/.test(value.textContent))";

/// Browsers open so many connections to a server.
const CONNECTIONS: usize = 6;

#[test]
fn users_log_on_after_many_page_loads_and_beside_many_pages_with_live_values() {
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
        // Most are left while their values begin.
        let part = ["", "#plant", "#alarms"][load % 3];
        page.open(&format!("{url}{part}"), 1_280);
        page.wait_for("(document.getElementById('state')?.textContent ?? 'connecting') !== 'connecting'");
    }
    // More pages with values at once than the browser has connections: those without a stream ask now and then.
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

/// A gateway whose visitors may see everything, with an alarm, sources and destinations that work and that do not.
const EVERYTHING: &str = r#"[server]
bind = ["127.0.0.1:0"]
application_name = "Packing line 3"
simulated_plant = true
[security]
none = true
[identities]
anonymous = true
users_file = "users.toml"
[permissions]
unspecified = "open"
[web]
bind = "127.0.0.1:0"
[history]
file = "history.db"
[pubsub]
configuration = "line.toml"
[[source]]
name = "boiler-house"
type = "simulation"
interval = "200 ms"
[[source]]
name = "plc-7"
type = "modbus"
address = "127.0.0.1:9"
[[tag]]
source = "boiler-house"
name = "Temperature"
path = "Line 1/Oven"
signal = "sine"
units = "°C"
range = [0, 200]
historize = true
[[tag]]
source = "boiler-house"
name = "Level of the tank behind the second filling station"
path = "Line 1/Tank"
signal = "walk"
[[tag]]
source = "plc-7"
name = "Pressure"
address = "holding:0"
[[destination]]
name = "day-files"
type = "file"
folder = "out"
[[destination]]
name = "cloud"
type = "mqtt"
url = "mqtt://127.0.0.1:1"
[[alarms.alarm]]
variable = "nsu=urn:taktwerk:demo-plant;s=Plant/Cycles"
name = "Running"
high = 5.0
severity = 950
"#;

/// Values by UDP on this machine: a connection with a group and a writer.
const LINE: &str = r#"[[data-set]]
name = "oven"
fields = [{ name = "temperature", type = "Double", node = "ns=3;s=Line 1/Oven/Temperature" }]
[[connection]]
name = "udp-of-line-3"
publisher-id = { uint16 = 2234 }
url = "opc.udp://127.0.0.1:14841"
[[connection.writer-group]]
name = "fast"
id = 1
interval = 500.0
writers = [{ name = "oven", id = 1, data-set = "oven" }]
"#;

#[test]
#[cfg(feature = "gateway")]
fn every_page_shows_its_data_in_light_and_dark_and_fits_a_phone() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("server.toml");
    std::fs::write(&config, EVERYTHING).unwrap();
    std::fs::write(folder.path().join("line.toml"), LINE).unwrap();
    add_olga(folder.path());
    let (_server, url) = serve(&["--config", config.to_str().unwrap()]);
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
        ("certificates", "certificates", "Certificates"),
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
            // Values of two seconds, for the pictures.
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
