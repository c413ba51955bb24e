//! Two redundant servers: every fault of one switches to the other within two intervals.

use crate::stand::{MS, Stand};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use taktwerk::{RunningServer, Server, Variable};
use taktwerk_schema::ServerState;
use taktwerk_types::StatusCode;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// So long that the time that a busy machine needs for other work matters little.
const INTERVAL: Duration = Duration::from_secs(2);

struct Twin {
    server: RunningServer,
    temperature: Variable<f64>,
}

fn twin(address: &str, temperature: f64) -> Twin {
    limited_twin(address, temperature, u32::MAX)
}

/// A server that monitors at most so many items.
fn limited_twin(address: &str, temperature: f64, items_max: u32) -> Twin {
    let server = Server::builder().bind(address).anonymous();
    let server = server.limits(|limits| {
        let most = &mut limits.subscriptions.monitored_items_max;
        *most = items_max.min(*most);
    });
    let server = server.build().unwrap();
    let plant = server.namespace("urn:example:plant").folder("Plant").unwrap();
    let boiler = plant.object("Boiler").add().unwrap();
    let temperature = boiler.variable("Temperature", temperature).add().unwrap();
    boiler.variable("Setpoint", 60.0).writable().add().unwrap();
    Twin { server: server.spawn().unwrap(), temperature }
}

/// A connection to a server that can be held: both sides stay connected and receive nothing.
struct Line {
    address: SocketAddr,
    is_held: watch::Sender<bool>,
    /// Connections that still carry data.
    open: watch::Receiver<usize>,
}

impl Line {
    async fn to(server: &RunningServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = server.addresses()[0];
        let (is_held, held) = watch::channel(false);
        let (count, open) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (mut held, count) = (held.clone(), count.clone());
                count.send_modify(|open| *open += 1);
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => return count.send_modify(|open| *open -= 1),
                        held = held.wait_for(|is_held| *is_held) => drop(held),
                    }
                    count.send_modify(|open| *open -= 1);
                    // Both streams stay open.
                    core::future::pending::<()>().await;
                });
            }
        });
        Self { address, is_held, open }
    }

    /// Returns when nothing passes any more: what is sent afterwards does not arrive.
    async fn hold(&mut self) {
        self.is_held.send_replace(true);
        self.open.wait_for(|open| *open == 0).await.unwrap();
    }
}

/// A gateway whose pauses after a failure are longer than any test waits: a switch with a pause fails.
async fn stand(first: &str, second: &str) -> Stand {
    let text = format!(
        "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = [\"{first}\", \"{second}\"]\n\
         mirror = \"nsu=urn:example:plant;s=Plant\"\npublishing_interval = \"{} ms\"\nretry = \"10 min\"\n\
         retry_max = \"10 min\"\ndeadline = \"20 s\"\n",
        INTERVAL.as_millis()
    );
    let stand = Stand::new(&text).await;
    stand.value("up/Boiler/Temperature", 1.0).await;
    stand
}

/// Checks that the other server's temperature arrives within two intervals.
async fn switches(stand: &Stand, temperature: f64, begin: Instant) {
    stand.value("up/Boiler/Temperature", temperature).await;
    let took = begin.elapsed();
    assert!(took < 2 * INTERVAL, "{took:?} with an interval of {INTERVAL:?}: {:?}", stand.source("up"));
}

/// Waits until the current server has served so long that its failure counts as the first one again.
async fn steady() {
    sleep(INTERVAL + 100 * MS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_is_replaced() {
    let (first, second) = (twin("127.0.0.1:0", 1.0), twin("127.0.0.1:0", 2.0));
    let stand = stand(&first.server.url(), &second.server.url()).await;
    let tags = stand.source("up").tags;
    let address = first.server.addresses()[0].to_string();
    let begin = Instant::now();
    first.server.stop(Duration::ZERO);
    switches(&stand, 2.0, begin).await;
    stand.write("up/Boiler/Setpoint", 71.0).await.unwrap();
    stand.value("up/Boiler/Setpoint", 71.0).await;
    let counted = stand.source("up").statistics;
    assert_eq!((stand.source("up").tags, counted.connections), (tags, 2));
    steady().await;
    // And back.
    let again = twin(&address, 3.0);
    let begin = Instant::now();
    second.server.stop(Duration::ZERO);
    switches(&stand, 3.0, begin).await;
    again.temperature.set(4.0);
    stand.value("up/Boiler/Temperature", 4.0).await;
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_replaced() {
    let (first, second) = (twin("127.0.0.1:0", 1.0), twin("127.0.0.1:0", 2.0));
    let mut line = Line::to(&first.server).await;
    let stand = stand(&format!("opc.tcp://{}", line.address), &second.server.url()).await;
    let begin = Instant::now();
    line.hold().await;
    switches(&stand, 2.0, begin).await;
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_to_a_server_that_hangs_does_not_delay_the_switch() {
    let (first, second) = (twin("127.0.0.1:0", 1.0), twin("127.0.0.1:0", 2.0));
    let mut line = Line::to(&first.server).await;
    let stand = stand(&format!("opc.tcp://{}", line.address), &second.server.url()).await;
    let begin = Instant::now();
    line.hold().await;
    stand.write("up/Boiler/Setpoint", 71.0).await.unwrap();
    switches(&stand, 2.0, begin).await;
    assert_eq!(stand.source("up").statistics.write_errors, 1, "the write has failed, and is counted");
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_data_or_in_another_state_is_replaced() {
    let (first, second) = (twin("127.0.0.1:0", 1.0), twin("127.0.0.1:0", 2.0));
    let stand = stand(&first.server.url(), &second.server.url()).await;
    // 1: no data (Part 4 §6.6.2.4.2).
    let begin = Instant::now();
    first.server.shared().live().set_service_level(1);
    switches(&stand, 2.0, begin).await;
    first.server.shared().live().set_service_level(200);
    steady().await;
    let begin = Instant::now();
    second.server.shared().live().set_state(ServerState::SUSPENDED);
    switches(&stand, 1.0, begin).await;
    stand.end().await;
}

/// Its value was read once, and nothing would say that it becomes old.
#[tokio::test(flavor = "multi_thread")]
async fn a_variable_that_the_server_does_not_monitor_is_bad() {
    let (first, second) = (limited_twin("127.0.0.1:0", 1.0, 1), twin("127.0.0.1:0", 2.0));
    let stand = stand(&first.server.url(), &second.server.url()).await;
    let too_many = StatusCode::BAD_TOO_MANY_MONITORED_ITEMS;
    stand.until("up/Boiler/Setpoint", |value| value.status() == too_many).await;
    sleep(200 * MS).await;
    let setpoint = stand.read("up/Boiler/Setpoint").await;
    assert_eq!(setpoint.status(), too_many, "{setpoint:?}");
    stand.end().await;
}
