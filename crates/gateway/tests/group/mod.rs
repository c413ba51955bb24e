//! Gateways that share sources, in processes of their own.

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

pub(crate) const INTERVAL: Duration = Duration::from_millis(500);
/// What a child process is told.
const CHILD: &str = "TAKTWERK_TEST_GATEWAY";

/// What a child process runs, until it is killed. A test of this name calls it.
pub(crate) async fn child() {
    let Ok(text) = std::env::var(CHILD) else { return };
    let stand = Stand::new(&text).await;
    println!("\nREADY {}", stand.server.url());
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    // It ends with the process that has started it.
    let _ = tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut line)).await;
}

/// A gateway in a process of its own.
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

    /// How many of the sources it asks.
    pub(crate) async fn fresh(&self) -> usize {
        let mut count = 0;
        for source in 0..SOURCES {
            count += usize::from(self.is_fresh(source).await);
        }
        count
    }

    /// Whether it asks a source.
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
            "[[source]]\nname = \"s{number}\"\ntype = \"modbus\"\naddress = \"{}\"\ninterval = \"500 ms\"\n\
             [[tag]]\nsource = \"s{number}\"\nname = \"V\"\naddress = \"holding:0\"\naccess = \"read-write\"\n",
            device.address
        ));
    }
    text
}

/// Waits for something within a minute; says how long it took.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        sleep(10 * MS).await;
    }
    begin.elapsed()
}

/// Each device is asked by one gateway: never much more often than its interval has it, and never longer without.
pub(crate) async fn each_is_asked_by_one(devices: &[Arc<Device>], time: Duration) {
    let asked = || devices.iter().map(|device| device.asked()).collect::<Vec<_>>();
    let before = asked();
    let begin = Instant::now();
    sleep(time).await;
    let most = (begin.elapsed().as_secs_f64() / INTERVAL.as_secs_f64()).ceil() as usize + 1;
    for (after, before) in asked().iter().zip(&before) {
        assert!((1..=most).contains(&(after - before)), "{} of {most}", after - before);
    }
}
