//! Uses a simulated bus, so that the tests run without SocketCAN.

use super::*;
use crate::configuration::GatewayConfig;
use crate::fields::Sections;
use crate::plant::Plant;
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::tag::Tag;
use std::path::Path;
use std::sync::Arc;
use taktwerk::Server;
use taktwerk_server::space::VariableHandle;
use taktwerk_types::{NodeId, Variant};
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

const DBC: &str = r#"VERSION ""
BU_: A
BO_ 496 Example: 8 A
 SG_ Temperature : 0|12@0- (0.01,250) [229.52|270.47] "degK" A
 SG_ Enable : 7|1@0+ (1,0) [0|0] "" A
 SG_ Gear : 16|4@1+ (1,0) [0|15] "" A
BO_ 2364540158 EEC1: 8 A
 SG_ Speed : 24|16@1+ (0.125,0) [0|8031.875] "rpm" A
BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_ "GenMsgCycleTime" BO_ 2364540158 100;
VAL_ 496 Enable 1 "on" 0 "off" ;
VAL_ 496 Gear 0 "neutral" 1 "first" 15 "error" ;
VAL_ 2364540158 Speed 65535 "not available" ;
"#;

struct Played {
    events: mpsc::UnboundedReceiver<Event>,
    sent: mpsc::UnboundedSender<Frame>,
    cut: Arc<Notify>,
}

impl Bus for Played {
    async fn next(&mut self) -> Result<Event, Fault> {
        let event = tokio::select! {
            event = self.events.recv() => event,
            () = self.cut.notified() => None,
        };
        event.ok_or(Fault::Closed { target: "played".to_owned() })
    }

    async fn send(&mut self, frame: &Frame) -> Result<(), Fault> {
        let _ = self.sent.send(frame.clone());
        Ok(())
    }
}

struct Stand {
    server: Server,
    feed: Feed,
    events: mpsc::UnboundedSender<Event>,
    sent: mpsc::UnboundedReceiver<Frame>,
    cut: Arc<Notify>,
    _folder: tempfile::TempDir,
}

impl Stand {
    fn new(tags: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.dbc"), DBC).unwrap();
        let path = folder.path().join("g.toml");
        let text = format!(
            "[[source]]\ninterface = \"can0\"\ndbc = \"a.dbc\"\nids = \"j1939\"\nlost_after = \"400 ms\"\n{tags}"
        );
        let mut sections = Sections::parse(&path, &text).unwrap();
        let settings = SourceSettings::take(&mut sections.sources[0], "s".to_owned(), None).unwrap();
        let mut can = Can::take(&mut sections.sources[0], &settings).unwrap();
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let plant = Arc::new(Plant::new(server.namespace("urn:test")));
        let (feed, mut writes) = Feed::new(settings, plant, Vec::new());
        for (position, fields) in sections.tags.iter_mut().enumerate() {
            let mut tag = Tag::take(fields).unwrap();
            let Placement::Variable(kind) = can.add_tag(&tag, fields, position).unwrap() else { panic!() };
            can.complete(position, &mut tag);
            feed.add(&tag, kind).unwrap();
        }
        let (events, received) = mpsc::unbounded_channel();
        let (sending, sent) = mpsc::unbounded_channel();
        let cut = Arc::new(Notify::new());
        let mut bus = Played { events: received, sent: sending, cut: Arc::clone(&cut) };
        let at = feed.clone();
        tokio::spawn(async move {
            let mut memory = Memory::default();
            while !bus.events.is_closed() {
                let _ = run(&can, &mut memory, &mut bus, &at, &mut writes).await;
            }
        });
        Self { server, feed, events, sent, cut, _folder: folder }
    }

    fn variable(&self, name: &str) -> VariableHandle {
        self.server.space().variable(&NodeId::string(2, format!("s/{name}").as_str())).unwrap()
    }

    fn receives(&self, id: u32, data: &[u8]) {
        self.events.send(Event::Frame(Frame::new(id, data), None)).unwrap();
    }

    fn write(&self, position: usize, value: Variant) {
        assert_eq!(self.feed.accept(position, value), StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY);
    }

    async fn until(&self, name: &str, expected: (Option<Variant>, StatusCode)) {
        let variable = self.variable(name);
        for _ in 0..2000 {
            self.feed.watch();
            let value = variable.get();
            if (value.value.clone().filter(|value| !value.is_empty()), value.status()) == expected {
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
        panic!("{name}: {:?} instead of {expected:?}", variable.get());
    }
}

fn good(value: impl Into<Variant>) -> (Option<Variant>, StatusCode) {
    (Some(value.into()), StatusCode::GOOD)
}

const TAGS: &str = "[[tag]]\nsource = \"s\"\nname = \"Speed\"\nmessage = \"EEC1\"\n\
    [[tag]]\nsource = \"s\"\nname = \"Enable\"\nmessage = \"Example\"\ntype = \"String\"\naccess = \"read-write\"\nsend_every = \"20 ms\"\n\
    [[tag]]\nsource = \"s\"\nname = \"T\"\nmessage = \"Example\"\nsignal = \"Temperature\"\naccess = \"read-write\"\n";

#[tokio::test]
async fn frames_become_values_and_overdue_ones_uncertain_then_bad() {
    let stand = Stand::new(TAGS);
    let speed = [0xFF, 0xFF, 0xFF, 0x68, 0x13, 0xFF, 0xFF, 0xFF];
    // Priority and sender differ from the file.
    stand.receives(0x98F0_0417, &speed);
    stand.until("Speed", good(621.0)).await;
    stand.receives(496, &[0xC0, 0x06, 0xE0, 0, 0, 0, 0, 0]);
    stand.until("T", good(250.55)).await;
    stand.until("Enable", good("on")).await;
    // The file sets a cycle time of 100 ms.
    stand.until("Speed", (Some(621.0.into()), StatusCode::UNCERTAIN_LAST_USABLE_VALUE)).await;
    stand.until("Speed", (None, StatusCode::BAD_NO_COMMUNICATION)).await;
    stand.until("T", good(250.55)).await;
    stand.receives(0x8CF0_0417, &speed);
    stand.until("Speed", good(621.0)).await;
    stand.receives(0x8CF0_0417, &[0; 4]);
    stand.until("Speed", (None, StatusCode::BAD_NO_DATA)).await;
    stand.receives(7, &[0; 8]);
    while stand.feed.statistics().snapshot().dropped < 1 {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn bus_off_makes_values_uncertain_until_recovery() {
    let stand = Stand::new(TAGS);
    stand.receives(496, &[0xC0, 0x06, 0xE0, 0, 0, 0, 0, 0]);
    stand.until("T", good(250.55)).await;
    stand.events.send(Event::Error("no other device acknowledges frames")).unwrap();
    stand.events.send(Event::BusOff).unwrap();
    stand.until("T", (Some(250.55.into()), StatusCode::UNCERTAIN_LAST_USABLE_VALUE)).await;
    let seen = stand.feed.statistics().snapshot();
    assert!(!seen.is_connected && seen.errors == 2, "{seen:?}");
    assert!(seen.last_error.unwrap().contains("off the bus"));
    stand.until("T", (None, StatusCode::BAD_NO_COMMUNICATION)).await;
    stand.events.send(Event::Restarted).unwrap();
    stand.receives(496, &[0xC0, 0x06, 0xE0, 0, 0, 0, 0, 0]);
    stand.until("T", good(250.55)).await;
    assert!(stand.feed.statistics().is_connected());
}

#[tokio::test]
async fn a_write_changes_one_signal_of_the_last_frame_and_is_sent_cyclically() {
    let mut stand = Stand::new(TAGS);
    stand.receives(496, &[0x40, 0x06, 0xE0, 1, 2, 3, 4, 5]);
    stand.until("Enable", good("off")).await;
    stand.write(1, "on".into());
    let frame = stand.sent.recv().await.unwrap();
    assert_eq!((frame.id, frame.data()), (496, &[0xC0, 0x06, 0xE0, 1, 2, 3, 4, 5][..]));
    stand.until("Enable", good("on")).await;
    stand.write(2, 255.92.into());
    let next = loop {
        let next = stand.sent.recv().await.unwrap();
        if next != frame {
            break next;
        }
    };
    assert_eq!(next.data(), [0xC0, 0x4A, 0x00, 1, 2, 3, 4, 5]);
    assert_eq!(stand.sent.recv().await.unwrap(), next, "with what was written meanwhile");
    stand.cut.notify_one();
    stand.receives(7, &[0; 8]);
    while stand.feed.statistics().snapshot().dropped < 1 {
        sleep(Duration::from_millis(5)).await;
    }
    while stand.sent.try_recv().is_ok() {}
    assert_eq!(stand.sent.recv().await.unwrap(), next, "also on the next connection");
    stand.write(2, 300.0.into());
    while stand.feed.statistics().snapshot().write_errors < 1 {
        sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn mistakes_suggest_a_correction() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.dbc"), DBC).unwrap();
    let check = |settings: &str| {
        let text = format!("[[source]]\nname = \"s\"\ntype = \"can\"\n{settings}");
        GatewayConfig::parse(&folder.path().join("g.toml"), &text).map(|_| ()).unwrap_err().to_string()
    };
    let tag = |settings: &str| {
        check(&format!(
            "interface = \"can0\"\ndbc = \"a.dbc\"\n[[tag]]\nsource = \"s\"\nname = \"Speed\"\n{settings}"
        ))
    };
    for (error, said) in [
        (check("dbc = \"a.dbc\"\n"), "interface is missing"),
        (check("interface = \"no can\"\ndbc = \"a.dbc\"\n"), "is no interface"),
        (check("interface = \"can0\"\ndbc = \"b.dbc\"\n"), "no such file"),
        (tag("message = \"EEC2\"\n"), "did you mean \"EEC1\"?"),
        (tag("message = \"EEC1\"\nsignal = \"Sped\"\n"), "did you mean \"Speed\"?"),
        (tag("message = \"EEC1\"\nsend_every = \"1 s\"\n"), "is for tags that clients write"),
    ] {
        assert!(error.contains(said), "{error}");
    }
    let path = Path::new("g.toml");
    assert!(GatewayConfig::parse(path, "").unwrap().is_none());
}

#[tokio::test]
#[allow(clippy::print_stderr)] // reports why it is skipped
async fn a_bus_of_the_kernel_is_read_and_written() {
    let name = "twvcan0";
    let made = std::process::Command::new("ip").args(["link", "add", "dev", name, "type", "vcan"]).output();
    let up = std::process::Command::new("ip").args(["link", "set", name, "up"]).output();
    let is_up = |it: &std::io::Result<std::process::Output>| it.as_ref().is_ok_and(|it| it.status.success());
    if !is_up(&up) {
        let said = made
            .map_or_else(|error| error.to_string(), |it| String::from_utf8_lossy(&it.stderr).into_owned());
        eprintln!("skipped: this machine has no vcan interface: {}", said.trim());
        return;
    }
    let mut here = crate::adapter::can::Interface::open(name).unwrap();
    let mut there = crate::adapter::can::Interface::open(name).unwrap();
    for frame in [Frame::new(496, &[1, 2, 3]), Frame::new(0x8CF0_0417, &[7; 8])] {
        here.send(&frame).await.unwrap();
        let Event::Frame(found, Some(_)) = there.next().await.unwrap() else { panic!("no frame") };
        assert_eq!(found, frame);
    }
    if is_up(&made) {
        let _ = std::process::Command::new("ip").args(["link", "del", name]).status();
    }
}

#[tokio::test]
async fn value_tables_become_names_of_states() {
    let tags = "[[tag]]\nsource = \"s\"\nname = \"Gear\"\nmessage = \"Example\"\n\
        [[tag]]\nsource = \"s\"\nname = \"Enable\"\nmessage = \"Example\"\n\
        [[tag]]\nsource = \"s\"\nname = \"Speed\"\nmessage = \"EEC1\"\n";
    let stand = Stand::new(tags);
    stand.receives(496, &[0x80, 0, 1, 0, 0, 0, 0, 0]);
    stand.until("Gear", good(1u8)).await;
    let property = |name: &str| stand.variable(name).get().value.unwrap();
    // Clients read the name of the value from it.
    assert!(stand.server.space().variable(&NodeId::string(2, "s/Gear/ValueAsText")).is_ok());
    assert_eq!(property("Gear/EnumValues").as_array().unwrap().values.len(), 3);
    assert_eq!(property("Enable/TrueState"), taktwerk_types::LocalizedText::from("on").into());
    // A number with a unit and a single named error value stays a number.
    assert!(stand.server.space().variable(&NodeId::string(2, "s/Speed/EnumValues")).is_err());
    assert!(stand.server.space().variable(&NodeId::string(2, "s/Speed/EURange")).is_ok());
}
