//! Gateways that share sources, in processes of their own, of which one is killed. Needs PostgreSQL; without it the test
//! says so and ends.

#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test fails by panicking, and says what it measures

mod database;
mod device;
mod stand;

use database::Database;
use device::Device;
use stand::{MS, Stand};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use taktwerk::Client;
use taktwerk_types::StatusCode;
use tokio::time::sleep;

const INTERVAL: Duration = Duration::from_millis(500);
/// What a child process is told.
const CHILD: &str = "TAKTWERK_TEST_GATEWAY";

/// Not a test of its own: what a child process runs, until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let Ok(text) = std::env::var(CHILD) else { return };
    let stand = Stand::new(&text).await;
    println!("\nREADY {}", stand.server.url());
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    // It ends with the process that has started it.
    let _ = tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut line)).await;
}

struct Gateway {
    process: Child,
    client: Client,
}

impl Gateway {
    async fn start(text: &str) -> Self {
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
    async fn fresh(&self) -> usize {
        let mut count = 0;
        for source in 0..SOURCES {
            let node = format!("nsu=urn:taktwerk:gateway;s=s{source}/V");
            count += usize::from(self.client.read(&*node).await.unwrap().status() == StatusCode::GOOD);
        }
        count
    }

    fn kill(&mut self) {
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

const SOURCES: usize = 6;

fn text(devices: &[Arc<Device>], database: &Database) -> String {
    let mut text = format!("[lease]\ngroup = \"plant\"\nurl = \"{}\"\n", database.url());
    for (number, device) in devices.iter().enumerate() {
        text.push_str(&format!(
            "[[source]]\nname = \"s{number}\"\ntype = \"modbus\"\naddress = \"{}\"\ninterval = \"500 ms\"\n\
             [[tag]]\nsource = \"s{number}\"\nname = \"V\"\naddress = \"holding:0\"\n",
            device.address
        ));
    }
    text
}

/// Waits for something within a minute; says how long it took.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        sleep(10 * MS).await;
    }
    begin.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_gateways_each_asks_half_and_one_takes_over_all() {
    let Some(mut database) = Database::start() else { return };
    drop(database::client(&database).await);
    let devices: Vec<Arc<Device>> = (0..SOURCES).map(|_| Device::start(4)).collect();
    let text = text(&devices, &database);
    let mut one = Gateway::start(&text).await;
    until("the first one asks everything", async || one.fresh().await == SOURCES).await;
    let two = Gateway::start(&text).await;
    until("they share", async || one.fresh().await == 3 && two.fresh().await == 3).await;
    // Each device is asked by one of them: never much more often than its interval has it.
    let asked = || devices.iter().map(|device| device.asked()).collect::<Vec<_>>();
    let before = asked();
    let begin = Instant::now();
    sleep(3000 * MS).await;
    let most = (begin.elapsed().as_secs_f64() / INTERVAL.as_secs_f64()).ceil() as usize + 1;
    for (after, before) in asked().iter().zip(&before) {
        assert!((1..=most).contains(&(after - before)), "{} of {most}", after - before);
    }
    one.kill();
    let took = until("the other one asks everything", async || two.fresh().await == SOURCES).await;
    println!("everything was fresh {took:?} after the kill, with an interval of {INTERVAL:?}");
    // Without the database nothing is asked: nobody knows who else does.
    database.kill();
    let mut last = asked();
    until("nothing is asked", async || {
        sleep(3 * INTERVAL).await;
        let now = asked();
        core::mem::replace(&mut last, now.clone()) == now
    })
    .await;
    database.go_on();
    until("it goes on", async || two.fresh().await == SOURCES).await;
}
