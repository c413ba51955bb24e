//! Malicious devices, and devices at a pseudo terminal.

use super::*;
use crate::extract::LOOKS_AT_ONCE;
use crate::fields::Sections;
use crate::plant::Plant;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use taktwerk::Server;
use taktwerk_types::{NodeId, StatusCode, Variant};
use tokio::io::duplex;
use tokio::task::yield_now;
use tokio::time::sleep;

struct Stand {
    server: Server,
    line: Line,
    feed: Feed,
    writes: Writes,
}

impl Stand {
    fn new(source: &str, tags: &str) -> Self {
        let text = format!("[[source]]\n{source}\n{tags}");
        let mut sections = Sections::parse(Path::new("g.toml"), &text).unwrap();
        let settings = SourceSettings::take(&mut sections.sources[0], "s".to_owned(), None).unwrap();
        let mut line = Line::take(&mut sections.sources[0], &settings).unwrap();
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let plant = Arc::new(Plant::new(server.namespace("urn:test")));
        let (feed, writes) = Feed::new(settings, plant, Vec::new());
        for (position, fields) in sections.tags.iter_mut().enumerate() {
            let tag = Tag::take(fields).unwrap();
            let Placement::Variable(kind) = line.add_tag(&tag, fields, position).unwrap() else { panic!() };
            feed.add(&tag, kind).unwrap();
        }
        Self { server, line, feed, writes }
    }

    fn value(&self, name: &str) -> (Option<Variant>, StatusCode) {
        let id = NodeId::string(2, format!("s/{name}").as_str());
        let value = self.server.space().variable(&id).unwrap().get();
        (value.value.clone().filter(|value| !value.is_empty()), value.status())
    }
}

/// A pseudo terminal: the device's end, and the name of the other one.
fn terminal() -> (std::fs::File, String) {
    let device = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&device).unwrap();
    unlockpt(&device).unwrap();
    let name = ptsname(&device, Vec::new()).unwrap().into_string().unwrap();
    (std::fs::File::from(device), name)
}

const TAG: &str = "[[tag]]\nsource = \"s\"\nname = \"T\"\n";

#[tokio::test]
async fn a_flood_of_frames_does_not_starve_other_sources() {
    let tags: String = (0..50)
        .map(|at| format!("[[tag]]\nsource = \"s\"\nname = \"T{at}\"\npattern = 'T{at}=(\\d+)'\n"))
        .collect();
    let mut stand = Stand::new("address = \"a\"", &tags);
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            yield_now().await;
        }
    });
    let (near, mut far) = duplex(1 << 20);
    far.write_all(&b"T7=1\n".repeat(20_000)).await.unwrap();
    drop(far);
    let before = turns.load(Ordering::Relaxed);
    let end = stand.line.talk(near, &stand.feed, &mut stand.writes).await;
    assert_eq!(end, Err(Fault::Closed { target: "a:4001".to_owned() }));
    let had = turns.load(Ordering::Relaxed) - before;
    assert!(had >= 20_000 * 50 / LOOKS_AT_ONCE / 2, "{had} turns");
    assert_eq!(stand.value("T7"), (Some(1.0.into()), StatusCode::GOOD));
    other.abort();
}

#[tokio::test]
async fn a_device_that_sends_incomplete_frames_times_out() {
    for settings in ["silence_max = \"100 ms\"", "poll = \"P\"\ndeadline = \"100 ms\""] {
        let mut stand = Stand::new(&format!("address = \"a\"\n{settings}"), TAG);
        let (near, mut far) = duplex(64);
        let drip = tokio::spawn(async move {
            while far.write_all(b"1").await.is_ok() {
                sleep(Duration::from_millis(5)).await;
            }
        });
        let talk = stand.line.talk(near, &stand.feed, &mut stand.writes);
        let end = timeout(Duration::from_secs(20), talk).await.expect("it must not wait for ever");
        assert!(matches!(end, Err(Fault::NoAnswer { .. })), "{end:?}");
        drip.abort();
    }
}

#[tokio::test]
async fn split_characters_endless_frames_and_huge_numbers_are_harmless() {
    let tags = format!(
        "{TAG}pattern = 'T=(\\S+)'\n[[tag]]\nsource = \"s\"\nname = \"N\"\npattern = 'N=(\\S+)'\ntype = \"Int32\"\n\
        [[tag]]\nsource = \"s\"\nname = \"S\"\npattern = 'S=(\\S+)'\ntype = \"String\"\n"
    );
    let mut stand = Stand::new("address = \"a\"\nframe_max = 100", &tags);
    let (near, mut far) = duplex(64);
    let device = async move {
        far.write_all(b"S=20\xC2").await.unwrap();
        far.write_all(b"\xB0C\n").await.unwrap();
        far.write_all(&[b'x'; 5000]).await.unwrap();
        far.write_all(b"\nT=1e999\nN=99999999999999999999999999\n\xFF\xFE\n").await.unwrap();
    };
    let talk = stand.line.talk(near, &stand.feed, &mut stand.writes);
    let (_, end) = tokio::join!(device, talk);
    assert!(matches!(end, Err(Fault::Closed { .. })), "{end:?}");
    assert_eq!(stand.value("S"), (Some("20°C".into()), StatusCode::GOOD));
    let wrong = (None, StatusCode::BAD_TYPE_MISMATCH);
    assert_eq!((stand.value("T"), stand.value("N")), (wrong.clone(), wrong));
    assert_eq!(stand.feed.statistics().snapshot().dropped, 2, "a long one, and one of nobody");
}

#[test]
fn conflicting_settings_are_rejected() {
    let mistake = |text: &str| {
        let mut sections = Sections::parse(Path::new("g.toml"), &format!("[[source]]\n{text}\n")).unwrap();
        let settings = SourceSettings::take(&mut sections.sources[0], "s".to_owned(), None).unwrap();
        Line::take(&mut sections.sources[0], &settings).unwrap_err().to_string()
    };
    for (text, said) in [
        ("", "needs an address or a device"),
        ("address = \"a\"\ndevice = \"/dev/ttyS0\"", "an address or a device, not both"),
        ("address = \"a\"\nframing = \"fixed\"", "frame_bytes is missing"),
        ("address = \"a\"\nend_byte = 13", "are for frames between two bytes"),
        ("address = \"a\"\nlength_bytes = 2", "are for frames behind their length"),
        ("device = \"/dev/ttyS0\"\ndata_bits = 9", "data_bits"),
    ] {
        assert!(mistake(text).contains(said), "{}", mistake(text));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_serial_line_is_polled_read_and_written() {
    use std::io::{BufRead, BufReader, Write};
    let (mut device, name) = terminal();
    let tags = format!(
        "{TAG}pattern = 'T=(\\S+)'\n[[tag]]\nsource = \"s\"\nname = \"SP\"\npattern = 'SP=(\\S+)'\naccess = \"read-write\"\nwrite = \"SP {{value}}\\n\"\n"
    );
    let mut stand = Stand::new(&format!("device = {name:?}\npoll = \"P\\n\"\npoll_every = \"20 ms\""), &tags);
    let feed = stand.feed.clone();
    let talk = async { stand.line.session(&feed, &mut stand.writes).await };
    // A thermostat with a set point.
    let thread = std::thread::spawn(move || {
        let lines = BufReader::new(device.try_clone().unwrap()).lines();
        let mut setpoint = "7".to_owned();
        for line in lines.map_while(Result::ok) {
            match line.strip_prefix("SP ") {
                Some(wanted) => wanted.clone_into(&mut setpoint),
                None => device.write_all(format!("T=21.5\r\nSP={setpoint}\r\n").as_bytes()).unwrap(),
            }
            if setpoint.starts_with('9') {
                device.write_all(b"SP=9\r\n").unwrap();
                return device;
            }
        }
        panic!("the set point was not written");
    });
    let value = |name: &str| {
        let id = NodeId::string(2, format!("s/{name}").as_str());
        stand.server.space().variable(&id).unwrap().get().value
    };
    let test = async {
        while value("SP") != Some(7.0.into()) {
            sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(value("T"), Some(21.5.into()));
        assert_eq!(feed.accept(1, 9.0.into()), StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY);
        while value("SP") != Some(9.0.into()) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        end = talk => panic!("{end:?}"),
        done = timeout(Duration::from_secs(20), test) => done.expect("values come"),
    }
    drop(thread.join().unwrap());
}

/// A byte too many must not move all later texts of a serial line.
#[tokio::test(flavor = "multi_thread")]
async fn texts_of_fixed_length_begin_after_a_pause() {
    use std::io::Write;
    let (mut device, name) = terminal();
    let source = format!("device = {name:?}\nframing = \"fixed\"\nframe_bytes = 6");
    let mut stand = Stand::new(&source, &format!("{TAG}pattern = 'X=(\\d+)'\n"));
    let scale = std::thread::spawn(move || {
        // The first is discarded with what was under way when the line was opened.
        for text in ["X=0001", "X=0002", "zX=0003", "X=1004"] {
            std::thread::sleep(Duration::from_millis(300));
            device.write_all(text.as_bytes()).unwrap();
        }
        device
    });
    let (feed, space) = (stand.feed.clone(), stand.server.space().clone());
    let look = async {
        let value = || space.variable(&NodeId::string(2, "s/T")).unwrap().get().value;
        while value() != Some(1004.0.into()) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        end = stand.line.session(&feed, &mut stand.writes) => panic!("{end:?}"),
        done = timeout(Duration::from_secs(20), look) => done.expect("the texts are found again"),
    }
    assert!(feed.statistics().snapshot().dropped >= 1);
    drop(scale.join().unwrap());
}

#[tokio::test]
async fn texts_that_are_no_values_are_counted() {
    let mut stand = Stand::new("address = \"a\"", &format!("{TAG}type = \"Int16\"\npattern = 'X=(.*)'\n"));
    let (near, mut far) = duplex(1 << 10);
    far.write_all(b"X=1\nX=1,5\nX=70000\nX=7\n").await.unwrap();
    drop(far);
    stand.line.talk(near, &stand.feed, &mut stand.writes).await.unwrap_err();
    assert_eq!(stand.value("T"), (Some(7i16.into()), StatusCode::GOOD));
    assert_eq!(stand.feed.statistics().snapshot().invalid, 2);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    for (source, tag, said) in [
        ("address = \"a\"\ndevice = \"/dev/ttyS9\"", "", "an address or a device, not both"),
        ("device = \"\"", "", "the device is empty"),
        ("address = \"a\"\nframing = \"stx-etx\"\nend_byte = 2", "", "start_byte and end_byte are both 2"),
        ("address = \"a\"\npoll = \"\"", "", "poll is empty"),
        ("address = \"a\"", "access = \"read-write\"\nwrite = \"SP {val}\"\n", "has no {value}"),
    ] {
        let text = format!("[[source]]\n{source}\n{TAG}pattern = '(.*)'\n{tag}");
        let mut sections = Sections::parse(Path::new("g.toml"), &text).unwrap();
        let settings = SourceSettings::take(&mut sections.sources[0], "s".to_owned(), None).unwrap();
        let refused = Line::take(&mut sections.sources[0], &settings).and_then(|mut line| {
            let tag = Tag::take(&mut sections.tags[0])?;
            line.add_tag(&tag, &mut sections.tags[0], 0)
        });
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(said), "{source} {tag}: {refused}");
    }
}

/// A scale that sends byte by byte: the rest of a text that was under way when the line was opened is no value.
#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_text_is_no_value() {
    use std::io::Write;
    use std::sync::atomic::AtomicBool;
    const TEXT: &[u8] = b"123456.5 kg\r\n";
    for start in [1, 3, 6] {
        let (mut device, name) = terminal();
        let tags = format!("{TAG}pattern = '([-0-9.]+) kg'\n");
        let mut stand = Stand::new(&format!("device = {name:?}"), &tags);
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let scale = std::thread::spawn(move || {
            for at in (start..).take_while(|_| !ended.load(Ordering::Relaxed)) {
                device.write_all(&TEXT[at % TEXT.len()..][..1]).unwrap();
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let space = stand.server.space().clone();
        let feed = stand.feed.clone();
        let look = async {
            let until = Instant::now() + Duration::from_millis(600);
            let mut last = None;
            while Instant::now() < until {
                last = space.variable(&NodeId::string(2, "s/T")).unwrap().get().value;
                let is_known = last.as_ref().is_some_and(|value| !value.is_empty());
                assert!(!is_known || last == Some(123_456.5.into()), "{last:?} from {start}");
                sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(last, Some(123_456.5.into()), "{start}");
        };
        tokio::select! {
            end = stand.line.session(&feed, &mut stand.writes) => panic!("{end:?}"),
            () = look => {}
        }
        is_over.store(true, Ordering::Relaxed);
        scale.join().unwrap();
    }
}
