//! Gateways that share sources, in separate processes.

#![allow(dead_code)] // each test uses some of it

use crate::device::Device;
use crate::stand::{MS, Stand};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use taktwerk::Client;
use taktwerk_types::StatusCode;
use tokio::time::sleep;

/// So long that the time that a busy machine needs for other work matters little. The simulation of leases has shorter ones.
pub(crate) const INTERVAL: Duration = Duration::from_secs(2);
/// The environment variable with the child's settings.
const CHILD: &str = "TAKTWERK_TEST_GATEWAY";

/// The child process. It runs until it is killed. A test with this name calls it.
pub(crate) async fn child() {
    let Ok(text) = std::env::var(CHILD) else { return };
    let stand = Stand::new(&text).await;
    println!("\nREADY {}", stand.server.url());
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    // Exit with the parent process.
    let _ = tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut line)).await;
}

/// A gateway in a separate process.
pub(crate) struct Gateway {
    process: Child,
    pub(crate) client: Client,
}

impl Gateway {
    pub(crate) async fn start(text: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child", "--nocapture"]).env(CHILD, text);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = loop {
            let line = lines.next().expect("it has ended").unwrap();
            if let Some(url) = line.strip_prefix("READY ") {
                break url.to_owned();
            }
        };
        Self { process, client: Client::connect(&url).await.unwrap() }
    }

    /// The number of sources that it polls.
    pub(crate) async fn fresh(&self) -> usize {
        let mut count = 0;
        for source in 0..SOURCES {
            count += usize::from(self.is_fresh(source).await);
        }
        count
    }

    /// Whether it polls a source.
    pub(crate) async fn is_fresh(&self, source: usize) -> bool {
        self.client.read(&*node(source)).await.unwrap().status() == StatusCode::GOOD
    }

    /// Sends a signal, such as STOP.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) const SOURCES: usize = 6;

/// The node of a source's tag.
pub(crate) fn node(source: usize) -> String {
    format!("nsu=urn:taktwerk:gateway;s=s{source}/V")
}

/// A configuration with a source for each device, and a section `[lease]`.
pub(crate) fn text(devices: &[Arc<Device>], lease: &str) -> String {
    let mut text = format!("[lease]\ngroup = \"plant\"\n{lease}");
    for (number, device) in devices.iter().enumerate() {
        text.push_str(&format!(
            "[[source]]\nname = \"s{number}\"\ntype = \"modbus\"\naddress = \"{}\"\ninterval = \"{} ms\"\n\
             [[tag]]\nsource = \"s{number}\"\nname = \"V\"\naddress = \"holding:0\"\naccess = \"read-write\"\n",
            device.address,
            INTERVAL.as_millis()
        ));
    }
    text
}

/// Waits up to a minute for a condition. Returns the waiting time.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        sleep(10 * MS).await;
    }
    begin.elapsed()
}

/// Checks that a takeover took less than two intervals.
pub(crate) fn within_two_intervals(took: Duration) {
    println!("everything was fresh after {took:?}, with an interval of {INTERVAL:?}");
    assert!(took < 2 * INTERVAL, "{took:?}");
}

/// Checks that each device is polled by one gateway: never much more often than its interval, and without long gaps.
pub(crate) async fn each_is_polled_by_one(devices: &[Arc<Device>], time: Duration) {
    let asked = || devices.iter().map(|device| device.asked()).collect::<Vec<_>>();
    let before = asked();
    let begin = Instant::now();
    sleep(time).await;
    let most = (begin.elapsed().as_secs_f64() / INTERVAL.as_secs_f64()).ceil() as usize + 1;
    for (after, before) in asked().iter().zip(&before) {
        assert!((1..=most).contains(&(after - before)), "{} of {most}", after - before);
    }
}
