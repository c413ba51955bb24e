//! Measures a destination outage while the gateway is killed repeatedly: lost values, and how fast the backlog is drained.
//!
//! ```sh
//! cargo run --release -p taktwerk-gateway --example destination_load -- --for 600 --kills 20
//! ```
//!
//! This program simulates the field devices (Modbus TCP) and the destination (InfluxDB line protocol over HTTP). The gateway is a
//! separate process. Each answer of a device has the next number in all its registers, so the destination can detect missing and
//! unordered values and when they were read.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)] // a measurement ends with the first thing that is wrong

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Devices, tags per device, and reads: together 20 000 values per second.
const DEVICES: usize = 40;
const TAGS: usize = 50;
const INTERVAL: Duration = Duration::from_millis(100);
const FLUSH: Duration = Duration::from_millis(100);
/// Time that the queue may need to store values in addition to `flush`, on a busy machine.
const SLACK: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--gateway") => gateway(Path::new(&arguments[1])),
        _ => measure(&arguments),
    }
}

/// Runs the gateway until standard input closes.
fn gateway(file: &Path) -> ExitCode {
    let text = std::fs::read_to_string(file).unwrap();
    let config = taktwerk_gateway::GatewayConfig::parse(file, &text).unwrap().unwrap();
    let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let prepared = taktwerk_gateway::PreparedGateway::new(config, &server).unwrap();
    let server = server.spawn().unwrap();
    let gateway = prepared.start().unwrap();
    println!("READY");
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line).is_ok_and(|len| len > 0) {
        let counted = gateway.destinations().views().remove(0).counters;
        println!("{} {} {} {}", counted.accepted, counted.overrun, counted.evicted, counted.queued);
        line.clear();
    }
    drop(gateway);
    server.stop(Duration::from_secs(1));
    ExitCode::SUCCESS
}

/// A device: the time of each answer by number.
#[derive(Default)]
struct Device(Mutex<Vec<Instant>>);

impl Device {
    fn talk(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut request = [0u8; 12];
        loop {
            stream.read_exact(&mut request)?;
            let count = usize::from(u16::from_be_bytes([request[10], request[11]]));
            let number = {
                let mut answers = self.0.lock().unwrap();
                answers.push(Instant::now());
                answers.len() as u32
            };
            let mut answer =
                vec![request[0], request[1], 0, 0, 0, 0, request[6], request[7], (count * 2) as u8];
            for register in 0..count {
                let half = if register % 2 == 0 { number >> 16 } else { number & 0xFFFF };
                answer.extend((half as u16).to_be_bytes());
            }
            let len = (answer.len() - 6) as u16;
            answer[4..6].copy_from_slice(&len.to_be_bytes());
            stream.write_all(&answer)?;
        }
    }
}

/// The values that arrived for a tag.
#[derive(Default, Clone)]
struct Arrived {
    last: u32,
    /// Skipped numbers.
    missing: Vec<(u32, u32)>,
}

#[derive(Default)]
struct Destination {
    is_there: AtomicBool,
    values: AtomicU64,
    repeated: AtomicU64,
    late: AtomicU64,
    tags: Mutex<HashMap<(usize, usize), Arrived>>,
}

impl Destination {
    fn listen(self: &Arc<Self>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let destination = Arc::clone(self);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if destination.is_there.load(Ordering::Relaxed) {
                    let destination = Arc::clone(&destination);
                    thread::spawn(move || drop(destination.talk(&stream)));
                }
            }
        });
        port
    }

    /// Answers requests until the destination goes down.
    fn talk(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::with_capacity(1 << 20, stream);
        let mut writer = stream;
        let (mut line, mut body) = (String::new(), Vec::new());
        while self.is_there.load(Ordering::Relaxed) {
            let mut len = 0;
            loop {
                line.clear();
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                if line.trim().is_empty() {
                    break;
                }
                if let Some(found) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    len = found.trim().parse().unwrap();
                }
            }
            body.resize(len, 0);
            reader.read_exact(&mut body)?;
            self.take(std::str::from_utf8(&body).unwrap());
            writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
        }
        Ok(())
    }

    /// Lines such as `v,tag=d1/2 status=0i,value=3 1700000000000000000`.
    fn take(&self, body: &str) {
        let mut tags = self.tags.lock().unwrap();
        let mut count = 0;
        for line in body.lines() {
            let (head, rest) = line.split_once(' ').unwrap();
            let (device, tag) = head.split_once("tag=d").unwrap().1.split_once('/').unwrap();
            let Some((_, value)) = rest.split_once("value=") else { continue };
            let number: u32 = value.split_once(' ').unwrap().0.parse().unwrap();
            count += 1;
            let arrived = tags.entry((device.parse().unwrap(), tag.parse().unwrap())).or_default();
            if number > arrived.last {
                if number > arrived.last + 1 {
                    arrived.missing.push((arrived.last + 1, number - 1));
                }
                arrived.last = number;
            } else if arrived.missing.iter().any(|(from, to)| (*from..=*to).contains(&number)) {
                self.late.fetch_add(1, Ordering::Relaxed);
            } else {
                self.repeated.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.values.fetch_add(count, Ordering::Relaxed);
    }

    fn values(&self) -> u64 {
        self.values.load(Ordering::Relaxed)
    }
}

/// The gateway process. It exits with this one.
struct Gateway(Child);

impl Gateway {
    fn start(file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("--gateway")
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.as_mut().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "READY");
        Self(child)
    }

    /// Used CPU time in seconds.
    fn cpu(&self) -> f64 {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let fields: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
        // User and system time in ticks of 10 ms (proc(5)).
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
    }

    /// Used memory in MiB.
    fn memory(&self) -> f64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    }

    /// Counters of accepted, overrun, evicted and queued values.
    fn counters(&mut self) -> Vec<u64> {
        self.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line.split_whitespace().map(|number| number.parse().unwrap()).collect()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn configuration(devices: &[u16], destination: u16, folder: &Path) -> String {
    let mut text = format!(
        "[gateway]\nthreads = 1\n[[destination]]\nname = \"load\"\ntype = \"influx\"\nurl = \"http://127.0.0.1:{destination}/write\"\n\
         measurement = \"v\"\nqueue = {:?}\nflush = \"{} ms\"\nqueue_mb_max = 8192\nretry = \"100 ms\"\nretry_max = \"1 s\"\n",
        folder.join("q.db"),
        FLUSH.as_millis()
    );
    for (device, port) in devices.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[[source]]\nname = \"d{device}\"\ntype = \"modbus\"\naddress = \"127.0.0.1:{port}\"\nunit = 1\n\
             interval = \"{} ms\"\nretry = \"50 ms\"\n",
            INTERVAL.as_millis()
        );
        for tag in 0..TAGS {
            let _ = write!(
                text,
                "[[tag]]\nsource = \"d{device}\"\nname = \"{tag}\"\naddress = \"holding:{}\"\nformat = \"uint32\"\n",
                2 * tag
            );
        }
    }
    text
}

fn argument(arguments: &[String], name: &str) -> Option<u64> {
    let at = arguments.iter().position(|argument| argument == name)?;
    Some(arguments.get(at + 1)?.parse().unwrap())
}

fn measure(arguments: &[String]) -> ExitCode {
    let gone = Duration::from_secs(argument(arguments, "--for").unwrap_or(30));
    let kills = argument(arguments, "--kills").unwrap_or((gone.as_secs() / 30).max(1)) as u32;
    let folder = tempfile::tempdir().unwrap();
    let devices: Vec<Arc<Device>> = (0..DEVICES).map(|_| Arc::default()).collect();
    let mut ports = Vec::new();
    for device in &devices {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        ports.push(listener.local_addr().unwrap().port());
        let device = Arc::clone(device);
        thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(device.talk(stream))));
    }
    let destination = Arc::new(Destination::default());
    let file: PathBuf = folder.path().join("gateway.toml");
    std::fs::write(&file, configuration(&ports, destination.listen(), folder.path())).unwrap();

    println!(
        "{} tags, {} values/s; destination down for {gone:?}, {kills} × kill -9",
        DEVICES * TAGS,
        rate_wanted()
    );
    destination.is_there.store(true, Ordering::Relaxed);
    let mut gateway = Gateway::start(&file);
    thread::sleep(Duration::from_secs(3));
    let (before, cpu) = (destination.values(), gateway.cpu());
    thread::sleep(Duration::from_secs(5));
    let calm = (destination.values() - before) as f64 / 5.0;
    println!("normal operation: {calm:.0} values/s arrive, {:.1} % of a core", (gateway.cpu() - cpu) * 20.0);

    destination.is_there.store(false, Ordering::Relaxed);
    let mut killed = Vec::new();
    let start = Instant::now();
    for kill in 1..=kills {
        let at = start + gone / (kills + 1) * kill;
        thread::sleep(at.saturating_duration_since(Instant::now()));
        gateway.0.kill().unwrap();
        gateway.0.wait().unwrap();
        killed.push(Instant::now());
        gateway = Gateway::start(&file);
    }
    thread::sleep((start + gone).saturating_duration_since(Instant::now()));
    let counters = gateway.counters();
    let queued = counters[3];
    let size = std::fs::metadata(folder.path().join("q.db")).unwrap().len();
    println!(
        "destination down: {queued} values queued in {:.0} MB, memory {:.0} MB",
        size as f64 / 1e6,
        gateway.memory()
    );

    let back = Instant::now();
    let (before, cpu) = (destination.values(), gateway.cpu());
    destination.is_there.store(true, Ordering::Relaxed);
    let limit = back + gone.max(Duration::from_secs(60)) * 2;
    while gateway.counters()[3] > (2.0 * FLUSH.as_secs_f64() * calm) as u64 {
        assert!(Instant::now() < limit, "the backlog is not drained");
        thread::sleep(Duration::from_millis(20));
    }
    let span = back.elapsed().as_secs_f64();
    let (arrived, cpu) = (destination.values() - before, gateway.cpu() - cpu);
    let drained = arrived as f64 / span;
    println!(
        "destination back: {arrived} values in {span:.1} s, {drained:.0} values/s, {:.2} µs of CPU per value; {:.1} × as fast as they came",
        cpu / arrived as f64 * 1e6,
        drained / calm
    );
    thread::sleep(Duration::from_secs(2));
    let counters = gateway.counters();
    drop(gateway);
    judge(&devices, &destination, &killed, &counters, drained / calm)
}

fn rate_wanted() -> u64 {
    (DEVICES * TAGS) as u64 * 1000 / INTERVAL.as_millis() as u64
}

/// Missing values are those that were not yet in the queue when the gateway was killed.
fn judge(
    devices: &[Arc<Device>],
    destination: &Destination,
    killed: &[Instant],
    counters: &[u64],
    speed: f64,
) -> ExitCode {
    let (mut unsaved, mut lost, mut oldest) = (0u64, 0u64, Duration::ZERO);
    let tags = destination.tags.lock().unwrap();
    for ((device, _), arrived) in &*tags {
        let answers = devices[*device].0.lock().unwrap();
        for number in arrived.missing.iter().flat_map(|(from, to)| *from..=*to) {
            let read = answers[number as usize - 1];
            let next = killed.iter().find(|kill| **kill >= read);
            match next.map(|kill| kill.duration_since(read)) {
                Some(age) if age <= FLUSH + SLACK => {
                    unsaved += 1;
                    oldest = oldest.max(age);
                }
                _ => lost += 1,
            }
        }
    }
    let late = destination.late.load(Ordering::Relaxed);
    println!(
        "kills: {unsaved} values were not in the queue yet, read at most {:.0} ms before a kill",
        oldest.as_secs_f64() * 1e3
    );
    println!(
        "lost: {lost}; out of order: {late}; sent again: {}; overrun: {}; evicted: {}",
        destination.repeated.load(Ordering::Relaxed),
        counters[1],
        counters[2]
    );
    if lost == 0
        && late == 0
        && counters[1] + counters[2] == 0
        && tags.len() == DEVICES * TAGS
        && speed >= 10.0
    {
        println!("passed");
        ExitCode::SUCCESS
    } else {
        println!("FAILED");
        ExitCode::FAILURE
    }
}
