//! A gateway with Modbus devices, seen by an OPC UA client.

use crate::device::{Device, Mood};
use crate::stand::{MS, Stand};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;
use taktwerk_gateway::adapter::modbus::link::Way;
use taktwerk_gateway::discover;
use taktwerk_gateway::offer::Question;
use taktwerk_types::StatusCode;
use tokio::time::sleep;

fn source(device: &Device, name: &str, more: &str) -> String {
    let retry = if more.contains("retry") { "" } else { "retry = \"50 ms\"\n" };
    format!(
        "[[source]]\nname = \"{name}\"\ntype = \"modbus\"\naddress = \"{}\"\ninterval = \"50 ms\"\n{retry}\
         deadline = \"300 ms\"\n{more}\n",
        device.address
    )
}

fn tag(source: &str, name: &str, address: &str, more: &str) -> String {
    format!("[[tag]]\nsource = \"{source}\"\nname = \"{name}\"\naddress = \"{address}\"\n{more}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_become_values_and_writes_reach_the_device() {
    let device = Device::start(200);
    {
        let mut holding = device.holding.lock().unwrap();
        holding[0] = 215;
        holding[1] = 0b1000;
        holding[10..12].copy_from_slice(&[0x42F6, 0xE979]);
        holding[20..23].copy_from_slice(&[0x5075, 0x6D70, 0x2031]);
    }
    let stand = Stand::new(
        &[
            source(&device, "plc", ""),
            tag("plc", "T", "holding:0", "scale = 0.1\nunits = \"°C\"\nrange = [0.0, 100.0]\naccess = \"read-write\"\nclamp = [0.0, 100.0]"),
            tag("plc", "Bit", "holding:1.3", "access = \"read-write\""),
            tag("plc", "F", "holding:10", "format = \"float32\"\naccess = \"read-write\""),
            tag("plc", "S", "holding:20", "format = \"string\"\nlength = 6"),
            tag("plc", "L", "holding:30", "count = 3\nformat = \"int16\""),
            tag("plc", "C", "coil:5", "access = \"read-write\""),
        ]
        .concat(),
    )
    .await;
    stand.value("plc/T", 21.5).await;
    stand.value("plc/Bit", true).await;
    stand.value("plc/F", 123.456f32).await;
    stand.value("plc/S", "Pump 1").await;
    stand.value("plc/L", vec![0i16, 0, 0]).await;
    stand.value("plc/C", false).await;
    stand.write("plc/T", 30.0).await.unwrap();
    stand.write("plc/F", 1.5f32).await.unwrap();
    stand.write("plc/C", true).await.unwrap();
    stand.write("plc/Bit", false).await.unwrap();
    stand.value("plc/T", 30.0).await;
    stand.value("plc/F", 1.5f32).await;
    stand.value("plc/C", true).await;
    stand.value("plc/Bit", false).await;
    {
        let holding = device.holding.lock().unwrap();
        assert_eq!((holding[0], holding[1], &holding[10..12]), (300, 0, &[0x3FC0, 0][..]));
        assert!(device.coils.lock().unwrap()[5]);
    }
    assert_eq!(stand.write("plc/T", 101.0).await, Err(StatusCode::BAD_OUT_OF_RANGE));
    assert_eq!(stand.write("plc/S", "x").await, Err(StatusCode::BAD_NOT_WRITABLE));
    // Holding registers 0 to 32 in one request, the coil in another.
    let (before, polls) = (device.asked(), stand.source("plc").statistics.requests);
    sleep(500 * MS).await;
    let (asked, polled) = (device.asked() - before, stand.source("plc").statistics.requests - polls);
    assert!(polled >= 8 && asked.abs_diff(polled as usize) <= 2, "{asked} {polled}");
    assert_eq!(stand.source("plc").statistics.writes, 4);
    assert_eq!(stand.source("plc").statistics.errors, 0);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_registers_are_read_if_a_device_lacks_some() {
    let device = Device::start(20);
    device.holding.lock().unwrap()[19] = 7;
    let tags: String =
        (15..25).map(|at| tag("plc", &format!("r{at}"), &format!("holding:{at}"), "")).collect();
    let stand = Stand::new(&(source(&device, "plc", "") + &tags)).await;
    stand.value("plc/r19", 7u16).await;
    stand.until("plc/r20", |value| value.status() == StatusCode::BAD_CONFIGURATION_ERROR).await;
    let error = stand.source("plc").statistics.last_error.unwrap();
    assert!(error.contains("holding:2") && error.contains("Illegal data address"), "{error}");
    // Other exceptions are reported as they are.
    device.set(Mood::Refuses(4));
    stand.until("plc/r19", |value| value.status() == StatusCode::BAD_DEVICE_FAILURE).await;
    device.set(Mood::Answers);
    stand.value("plc/r19", 7u16).await;
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_hangs_affects_only_itself() {
    let (good, bad) = (Device::start(10), Device::start(10));
    let stand = Stand::new(
        &[
            source(&good, "good", "stale_after = \"1 s\""),
            tag("good", "v", "holding:0", ""),
            source(&bad, "bad", "lost_after = \"1 s\""),
            tag("bad", "v", "holding:0", "access = \"read-write\""),
        ]
        .concat(),
    )
    .await;
    stand.value("bad/v", 0u16).await;
    stand.value("good/v", 0u16).await;
    bad.set(Mood::Hangs);
    let hung = Instant::now();
    let stale = stand.until("bad/v", |value| value.status() != StatusCode::GOOD).await;
    assert_eq!(stale.status(), StatusCode::UNCERTAIN_LAST_USABLE_VALUE);
    assert_eq!(stale.value, Some(0u16.into()));
    let before = stand.source("good").statistics;
    stand.until("bad/v", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    let elapsed = hung.elapsed();
    assert!((900 * MS..3000 * MS).contains(&elapsed), "{elapsed:?}");
    let after = stand.source("good").statistics;
    assert_eq!((after.errors, after.missed, after.uncertain), (0, 0, 0), "{after:?}");
    assert!(after.answers - before.answers >= 10, "{before:?} {after:?}");
    let said = stand.source("bad").statistics;
    assert!(said.last_error.as_ref().unwrap().ends_with("did not answer within 300ms"), "{said:?}");
    assert_eq!((said.missed, said.lost), (1, 1));
    stand.until("bad/v", |_| !stand.source("bad").statistics.is_connected).await;
    assert_eq!(stand.write("bad/v", 1u16).await, Err(StatusCode::BAD_NO_COMMUNICATION));
    bad.holding.lock().unwrap()[0] = 5;
    bad.set(Mood::Answers);
    stand.value("bad/v", 5u16).await;
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faulty_devices_give_no_wrong_values() {
    let device = Device::start(10);
    device.holding.lock().unwrap()[0] = 3;
    let stand =
        Stand::new(&(source(&device, "plc", "lost_after = \"500 ms\"") + &tag("plc", "v", "holding:0", "")))
            .await;
    stand.value("plc/v", 3u16).await;
    for (mood, said) in [
        (Mood::HangsUp, "closed the connection"),
        (Mood::Lies, "belongs to another request"),
        (Mood::Short, ""),
        (Mood::Fewer, "answered 0 registers or bits instead of 1"),
        (Mood::More, "answered 2 registers or bits instead of 1"),
        (Mood::Refuses(0x7F), ""),
    ] {
        device.set(mood);
        let bad = stand.until("plc/v", |value| value.status() != StatusCode::GOOD).await;
        assert!(bad.value.is_none() || bad.value == Some(3u16.into()), "{mood:?}: {bad:?}");
        stand.until("plc/v", |value| value.status().is_bad()).await;
        let error = stand.source("plc").statistics.last_error.unwrap();
        assert!(error.contains(said) && !error.contains("os error"), "{mood:?}: {error}");
        device.set(Mood::Answers);
        stand.value("plc/v", 3u16).await;
    }
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_the_device_answers_with_another_value_is_an_error() {
    let device = Device::start(30);
    let stand = Stand::new(
        &[
            source(&device, "plc", ""),
            tag("plc", "register", "holding:0", "access = \"read-write\""),
            tag("plc", "float", "holding:10", "format = \"float32\"\naccess = \"read-write\""),
            tag("plc", "bit", "holding:20.3", "access = \"read-write\""),
        ]
        .concat(),
    )
    .await;
    let writes = async |mood: Mood| {
        device.set(mood);
        for (at, node) in ["plc/register", "plc/float", "plc/bit"].into_iter().enumerate() {
            stand.until(node, |value| value.status() == StatusCode::GOOD).await;
            let before = stand.source("plc").statistics;
            match at {
                0 => stand.write(node, 7u16).await.unwrap(),
                1 => stand.write(node, 1.5f32).await.unwrap(),
                _ => stand.write(node, true).await.unwrap(),
            }
            let count = |it: &taktwerk_gateway::statistics::Snapshot| (it.writes, it.write_errors);
            stand.until(node, |_| count(&stand.source("plc").statistics) != count(&before)).await;
            let (good, bad) = count(&stand.source("plc").statistics);
            let is_good = mood == Mood::Answers;
            assert_eq!(
                (good - before.writes, bad - before.write_errors),
                (u64::from(is_good), u64::from(!is_good))
            );
        }
    };
    writes(Mood::Miswrites).await;
    let error = stand.source("plc").statistics.last_error.unwrap();
    assert!(error.contains("names another address or value"), "{error}");
    writes(Mood::Answers).await;
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_unit_does_not_delay_others_on_its_line() {
    let device = Device::start(10);
    *device.units.lock().unwrap() = vec![1];
    let stand = Stand::new(
        &[
            source(&device, "line", "lost_after = \"5 s\"\nretry = \"1 s\""),
            tag("line", "one", "holding:0", "unit = 1"),
            tag("line", "two", "holding:0", "unit = 2\naccess = \"read-write\""),
        ]
        .concat(),
    )
    .await;
    stand.value("line/one", 0u16).await;
    sleep(500 * MS).await;
    let before = stand.source("line").statistics;
    // A client that writes to the silent unit must not keep the others waiting, and is told.
    for _ in 0..20 {
        let refused = stand.write("line/two", 7u16).await.unwrap_err();
        assert_eq!(refused, StatusCode::BAD_NO_COMMUNICATION);
        sleep(100 * MS).await;
    }
    let after = stand.source("line").statistics;
    assert_eq!(after.write_errors, before.write_errors, "nothing was accepted");
    // Each retry of the silent unit takes a timeout of 300 ms; the pauses in between double.
    assert!(after.answers - before.answers >= 15, "{before:?} {after:?}");
    // A busy unit (exception 6) has no values, but it answers.
    device.set(Mood::Refuses(6));
    device.units.lock().unwrap().push(2);
    let end = Instant::now() + 20_000 * MS;
    while stand.write("line/two", 5u16).await.is_err() {
        assert!(Instant::now() < end, "writes stay refused");
        sleep(50 * MS).await;
    }
    device.set(Mood::Answers);
    stand.write("line/two", 7u16).await.unwrap();
    stand.value("line/two", 7u16).await;
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_units_leave_the_line_to_those_that_answer() {
    let device = Device::start(10);
    *device.units.lock().unwrap() = vec![4];
    let mut parts =
        vec![source(&device, "line", "stale_after = \"900 ms\"\nlost_after = \"60 s\"\nretry = \"100 ms\"")];
    parts
        .extend((1..=8).map(|unit| tag("line", &format!("U{unit}"), "holding:0", &format!("unit = {unit}"))));
    let stand = Stand::new(&parts.concat()).await;
    stand.value("line/U4", 0u16).await;
    let before = stand.source("line").statistics;
    let until = Instant::now() + 4_000 * MS;
    // One after the other, the seven dead units would take 2.1 s.
    while Instant::now() < until {
        let value = stand.read("line/U4").await;
        assert_eq!(value.status(), StatusCode::GOOD, "{value:?}");
        sleep(20 * MS).await;
    }
    // Later, a fifth of the time is theirs; at the beginning more.
    let after = stand.source("line").statistics;
    assert!(after.answers - before.answers >= 25, "{before:?} {after:?}");
    device.units.lock().unwrap().extend([1, 2, 3, 5, 6, 7, 8]);
    for unit in 1..=8 {
        stand.value(&format!("line/U{unit}"), 0u16).await;
    }
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writes_leave_time_for_reads() {
    let device = Device::start_rtu(10);
    device.set(Mood::Late(20 * MS));
    let stand = Stand::new(
        &[
            source(&device, "line", "framing = \"rtu\"\nstale_after = \"600 ms\"\nlost_after = \"60 s\""),
            tag("line", "Set", "holding:0", "access = \"read-write\""),
            tag("line", "Other", "holding:5", "unit = 2"),
        ]
        .concat(),
    )
    .await;
    stand.value("line/Other", 0u16).await;
    // They take two seconds.
    for number in 0..100u16 {
        stand.write("line/Set", number).await.unwrap();
    }
    let until = Instant::now() + 3_000 * MS;
    while Instant::now() < until {
        assert_eq!(stand.read("line/Other").await.status(), StatusCode::GOOD);
        sleep(20 * MS).await;
    }
    stand.value("line/Set", 99u16).await;
    assert_eq!(stand.source("line").statistics.writes, 100);
    stand.end().await;
}

/// A serial line to a device: a pseudo terminal at one end of its connection.
struct Cable {
    connection: TcpStream,
    threads: Vec<JoinHandle<()>>,
}

impl Cable {
    /// Plugs in a cable whose device file is `link`.
    fn new(device: &Device, link: &Path) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        symlink(ptsname(&terminal, Vec::new()).unwrap().to_str().unwrap(), link).unwrap();
        let connection = TcpStream::connect(device.address).unwrap();
        let (mut from_line, mut to_line) = (File::from(terminal.try_clone().unwrap()), File::from(terminal));
        let (mut to_device, mut from_device) =
            (connection.try_clone().unwrap(), connection.try_clone().unwrap());
        let requests = std::thread::spawn(move || {
            let mut bytes = [0; 256];
            loop {
                match from_line.read(&mut bytes) {
                    Ok(length) if to_device.write_all(&bytes[..length]).is_ok() => {}
                    Ok(_) => return,
                    // Nobody has opened the other end.
                    Err(_) if to_device.peer_addr().is_ok() => std::thread::sleep(5 * MS),
                    Err(_) => return,
                }
            }
        });
        let answers = std::thread::spawn(move || drop(std::io::copy(&mut from_device, &mut to_line)));
        Self { connection, threads: vec![requests, answers] }
    }

    /// The device file disappears, and all who have it open are told.
    fn unplug(self, link: &Path) {
        std::fs::remove_file(link).unwrap();
        self.connection.shutdown(Shutdown::Both).unwrap();
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// A source on a serial line.
fn serial_source(link: &Path, more: &str) -> String {
    format!("[[source]]\nname = \"line\"\ntype = \"modbus\"\ndevice = {link:?}\nparity = \"none\"\n{more}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_serial_line_may_be_unplugged() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("ttyUSB0");
    let device = Device::start_rtu(10);
    device.holding.lock().unwrap()[0] = 215;
    let cable = Cable::new(&device, &link);
    let lines = serial_source(
        &link,
        "interval = \"50 ms\"\nretry = \"50 ms\"\ndeadline = \"300 ms\"\nstale_after = \"400 ms\"\nlost_after = \"1 s\"",
    );
    let stand = Stand::new(&[lines, tag("line", "T", "holding:0", "access = \"read-write\"")].concat()).await;
    stand.value("line/T", 215u16).await;
    stand.write("line/T", 300u16).await.unwrap();
    stand.value("line/T", 300u16).await;
    assert_eq!(device.holding.lock().unwrap()[0], 300);
    tokio::task::block_in_place(|| cable.unplug(&link));
    stand.until("line/T", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    let cable = Cable::new(&device, &link);
    stand.value("line/T", 300u16).await;
    stand.end().await;
    drop(cable);
}

/// Answers of a serial line do not say which request they answer: late and stray ones must not become other values.
#[tokio::test(flavor = "multi_thread")]
async fn late_and_stray_answers_of_a_serial_line_are_for_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("ttyUSB0");
    let device = Device::start_rtu(500);
    for (address, register) in (0u16..).zip(device.holding.lock().unwrap().iter_mut()) {
        *register = 1_000 + address;
    }
    let cable = Cable::new(&device, &link);
    let mut parts = vec![serial_source(
        &link,
        "interval = \"200 ms\"\nretry = \"50 ms\"\nretry_max = \"100 ms\"\ndeadline = \"300 ms\"\nstale_after = \"30 s\"\nlost_after = \"60 s\"",
    )];
    let registers = [0u16, 100, 200, 300, 400];
    parts.extend(registers.map(|at| tag("line", &format!("R{at}"), &format!("holding:{at}"), "")));
    let stand = Stand::new(&parts.concat()).await;
    for at in registers {
        stand.value(&format!("line/R{at}"), 1_000 + at).await;
    }
    // Between two requests; and later than the deadline.
    for mood in [Mood::Stray, Mood::Late(450 * MS)] {
        device.set(mood);
        sleep(700 * MS).await;
        device.set(Mood::Answers);
        let until = Instant::now() + 3_000 * MS;
        while Instant::now() < until {
            for at in registers {
                let value = stand.read(&format!("line/R{at}")).await;
                assert_eq!(value.value, Some((1_000 + at).into()), "R{at} after {mood:?}");
            }
            sleep(10 * MS).await;
        }
    }
    stand.end().await;
    drop(cable);
}

/// A line that is never silent for long, because of interference, recovers from a missed answer.
#[tokio::test(flavor = "multi_thread")]
async fn single_stray_bytes_do_not_stop_a_serial_line() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("ttyUSB0");
    let device = Device::start_rtu(10);
    let cable = Cable::new(&device, &link);
    let line = serial_source(
        &link,
        "interval = \"50 ms\"\nretry = \"50 ms\"\nretry_max = \"100 ms\"\ndeadline = \"300 ms\"\nstale_after = \"500 ms\"\nlost_after = \"60 s\"",
    );
    let stand = Stand::new(&[line, tag("line", "T", "holding:0", "")].concat()).await;
    stand.value("line/T", 0u16).await;
    device.is_noisy.store(true, Ordering::Relaxed);
    for round in 1..=3u16 {
        device.set(Mood::Hangs);
        stand.until("line/T", |value| value.status() == StatusCode::UNCERTAIN_LAST_USABLE_VALUE).await;
        device.holding.lock().unwrap()[0] = round;
        device.set(Mood::Answers);
        stand.value("line/T", round).await;
    }
    stand.end().await;
    drop(cable);
}

/// Modbus over Serial Line §2.5.1.1: frames are 3.5 characters apart, 128 ms with 300 baud.
#[tokio::test(flavor = "multi_thread")]
async fn frames_of_a_serial_line_are_apart() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("ttyUSB0");
    let device = Device::start_rtu(500);
    let cable = Cable::new(&device, &link);
    let line = serial_source(&link, "baud = 300\ninterval = \"10 ms\"");
    let tags = [0, 400].map(|at| tag("line", &format!("R{at}"), &format!("holding:{at}"), ""));
    let stand = Stand::new(&(line + &tags.concat())).await;
    stand.value("line/R400", 0u16).await;
    let (before, begun) = (device.asked(), Instant::now());
    sleep(1_500 * MS).await;
    let most = begun.elapsed().as_millis() / 128 + 1;
    let asked = device.asked() - before;
    assert!(asked >= 3 && asked as u128 <= most, "{asked} of at most {most}");
    stand.end().await;
    drop(cable);
}

#[tokio::test(flavor = "multi_thread")]
async fn serial_frames_work_over_tcp() {
    let device = Device::start_rtu(200);
    *device.units.lock().unwrap() = vec![1, 2];
    {
        let mut holding = device.holding.lock().unwrap();
        holding[0] = 215;
        holding[10..12].copy_from_slice(&[0x42F6, 0xE979]);
    }
    let stand = Stand::new(
        &[
            source(&device, "line", "framing = \"rtu\"\nstale_after = \"400 ms\"\nlost_after = \"1500 ms\""),
            tag("line", "T", "holding:0", "access = \"read-write\""),
            tag("line", "F", "holding:10", "format = \"float32\"\nunit = 2"),
            tag("line", "C", "coil:3", "access = \"read-write\""),
            tag("line", "Bit", "holding:20.5", "access = \"read-write\""),
            tag("line", "Nobody", "holding:0", "unit = 9"),
        ]
        .concat(),
    )
    .await;
    stand.value("line/T", 215u16).await;
    stand.value("line/F", 123.456f32).await;
    stand.write("line/T", 300u16).await.unwrap();
    stand.value("line/T", 300u16).await;
    stand.write("line/C", true).await.unwrap();
    stand.value("line/C", true).await;
    stand.write("line/Bit", true).await.unwrap();
    stand.value("line/Bit", true).await;
    assert_eq!(device.holding.lock().unwrap()[20], 1 << 5);
    stand.until("line/Nobody", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    // Frames with a wrong checksum or length are rejected.
    for mood in [Mood::Lies, Mood::Short, Mood::Hangs, Mood::HangsUp] {
        device.set(mood);
        device.holding.lock().unwrap()[0] = 7;
        stand.until("line/T", |value| value.status() == StatusCode::UNCERTAIN_LAST_USABLE_VALUE).await;
        let last = stand.read("line/T").await;
        assert_ne!(last.value, Some(7u16.into()), "{mood:?}");
        stand.until("line/T", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
        device.holding.lock().unwrap()[0] = 300;
        device.set(Mood::Answers);
        stand.value("line/T", 300u16).await;
    }
    device.set(Mood::Refuses(2));
    stand.until("line/T", |value| value.status() == StatusCode::BAD_CONFIGURATION_ERROR).await;
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_device_the_error_says_where_and_why() {
    // Nothing listens on this port any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!(
        "[[source]]\nname = \"plc\"\ntype = \"modbus\"\naddress = \"{port}\"\nretry = \"50 ms\"\nlost_after = \"300 ms\"\n\
         interval = \"50 ms\"\n"
    );
    let stand = Stand::new(&(text + &tag("plc", "v", "holding:0", ""))).await;
    assert_eq!(stand.read("plc/v").await.status(), StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
    stand.until("plc/v", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    let error = stand.source("plc").statistics.last_error.unwrap();
    assert_eq!(error, format!("cannot connect to {port}: connection refused"));
    stand.end().await;
}

#[test]
fn a_scan_finds_the_units_that_answer_and_what_they_are() {
    let device = Device::start(10);
    *device.units.lock().unwrap() = vec![1, 5];
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let tcp = |address: std::net::SocketAddr| Way::Tcp("127.0.0.1".to_owned(), address.port());
    let mut seen = 0;
    let ways = vec![tcp(device.address), tcp(nobody)];
    let found =
        discover::scan_modbus(ways, &[0, 1, 5, 6], 200 * MS, &Arc::default(), |done| seen = done).unwrap();
    assert_eq!((found.len(), seen), (2, 2));
    let units = found[0].units.as_ref().unwrap();
    assert_eq!(units.iter().map(|unit| unit.number).collect::<Vec<_>>(), [1, 5]);
    assert_eq!(units[0].identity, [(0, "Example".to_owned()), (1, "Oven 7".to_owned())]);
    assert_eq!(units[0].exception, None);
    assert!(found[1].units.as_ref().unwrap_err().to_string().contains("refused"));
    // A Modbus gateway reports a missing unit; a device that rejects the register exists.
    device.set(Mood::Refuses(11));
    let ask =
        || discover::scan_modbus(vec![tcp(device.address)], &[1], 200 * MS, &Arc::default(), |_| {}).unwrap();
    assert_eq!(ask()[0].units.as_ref().unwrap().len(), 0);
    device.set(Mood::Refuses(2));
    let units = ask().remove(0).units.unwrap();
    assert!(units[0].exception.as_ref().unwrap().contains("Illegal data address"), "{units:?}");
    device.set(Mood::HangsUp);
    assert_eq!(ask()[0].units.as_ref().unwrap().len(), 0);
    let line = Device::start_rtu(10);
    *line.units.lock().unwrap() = vec![3];
    let way = |device: &Device| Way::RtuOverTcp("127.0.0.1".to_owned(), device.address.port());
    let found = discover::scan_modbus(vec![way(&line)], &[2, 3], 200 * MS, &Arc::default(), |_| {}).unwrap();
    let units = found[0].units.as_ref().unwrap();
    assert_eq!(units.iter().map(|unit| unit.number).collect::<Vec<_>>(), [3]);
    let before = device.asked();
    let stop = Arc::new(AtomicBool::new(true));
    let stopped = discover::scan_modbus(vec![tcp(device.address)], &[1], 200 * MS, &stop, |_| {}).unwrap();
    assert_eq!((stopped.len(), device.asked()), (0, before));
}

#[test]
fn a_source_lists_its_units() {
    let device = Device::start(10);
    *device.units.lock().unwrap() = vec![1];
    let mut source = discover::source_of_url(&format!("modbus://{}", device.address)).unwrap();
    source.settings.deadline = 500 * MS;
    let question = Question {
        settings: source.settings.clone(),
        within: MS,
        below: None,
        most: 10,
        stop: Arc::default(),
    };
    let offers = discover::offers(&mut source, &question).unwrap();
    let told: Vec<(&str, &str)> = offers.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect();
    assert_eq!(told, [("VendorName", "Example"), ("ProductCode", "Oven 7")]);
    assert_eq!(offers[0].tag("plc"), None, "an identity is no tag");
}
