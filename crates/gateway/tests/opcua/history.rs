//! History of mirrored servers: reads wait for each other, and the gateway's own history does not wait for them.

use crate::stand::{MS, Stand};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use taktwerk::client::{HistoryQuery, HistoryRange};
use taktwerk::history::{
    HistoryStore, HistoryValue, MemoryStore, NodeHistory, NodeKey, Order, ReadLimit, Span, StoreError,
};
use taktwerk::{RunningServer, Server};
use taktwerk_types::{NodeId, StatusCode, UtcTime, Variant};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// A store whose reads wait until it is opened.
#[derive(Debug)]
struct Gated {
    store: MemoryStore,
    /// The number of waiting reads, and whether the store is open.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gated {
    fn waiting(&self) -> usize {
        self.state.lock().unwrap().0
    }

    fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

impl HistoryStore for Gated {
    fn append(&self, values: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
        self.store.append(values)
    }

    fn read(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        limit: ReadLimit,
        out: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError> {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        let (mut state, _) =
            self.changed.wait_timeout_while(state, Duration::from_secs(60), |(_, open)| !*open).unwrap();
        state.0 -= 1;
        drop(state);
        self.store.read(node, span, order, limit, out)
    }
}

fn time(second: u8) -> UtcTime {
    UtcTime::parse(&format!("2026-03-04T12:00:0{second}Z")).unwrap()
}

fn past(key: &NodeKey) -> Vec<(NodeKey, HistoryValue)> {
    let value = |at: u8| {
        let (source, server, status) = (time(at), time(at), StatusCode::GOOD);
        (key.clone(), HistoryValue { source, server, status, value: Variant::from(10.0 + f64::from(at)) })
    };
    (0..5).map(value).collect()
}

/// A server whose history waits.
fn other() -> (RunningServer, Arc<Gated>) {
    let store = Arc::new(Gated {
        store: MemoryStore::new(1000),
        state: Mutex::new((0, false)),
        changed: Condvar::new(),
    });
    let builder = Server::builder().bind("127.0.0.1:0").anonymous().history(Arc::clone(&store) as _);
    let server = builder.build().unwrap();
    let plant = server.namespace("urn:example:plant").folder("Plant").unwrap();
    let level = plant.variable("Level", 1.0).historize().add().unwrap();
    store.append(&past(&server.space().node_key(level.id()))).unwrap();
    (server.spawn().unwrap(), store)
}

async fn stand(other: &RunningServer, deadline: &str) -> Stand {
    let text = format!(
        "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"{}\"\nmirror = \"nsu=urn:example:plant;s=Plant\"\n\
         publishing_interval = \"50 ms\"\nretry = \"50 ms\"\ndeadline = \"{deadline}\"\n",
        other.url()
    );
    let stand = Stand::new(&text).await;
    stand.value("up/Level", 1.0).await;
    stand
}

/// The number of values between the second and the fourth one.
fn read(stand: &Stand, node: NodeId) -> JoinHandle<Result<usize, StatusCode>> {
    let client = stand.client.clone();
    tokio::spawn(async move {
        let query = HistoryQuery::raw(HistoryRange::between(time(1), time(4)));
        let page = client.history(node, query).await;
        page.map(|page| page.values.len()).map_err(|error| error.status())
    })
}

async fn until_waiting(store: &Gated, count: usize) {
    let end = Instant::now() + Duration::from_secs(20);
    while store.waiting() < count {
        assert!(Instant::now() < end, "{} reads arrived at the other server", store.waiting());
        sleep(10 * MS).await;
    }
}

fn level() -> NodeId {
    NodeId::string(2, "up/Level")
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_of_several_clients_wait_for_each_other() {
    let (other, store) = other();
    let stand = stand(&other, "30 s").await;
    let own = stand.server.namespace("urn:own").folder("Own").unwrap().variable("Level", 1.0).add().unwrap();
    let own_store = Arc::new(MemoryStore::new(1000));
    own_store.append(&past(&"own".into())).unwrap();
    let history = NodeHistory::new(own_store, "own".into());
    stand.server.space().set_history(own.id(), history, false, false, time(5)).unwrap();
    // More than threads read them.
    let reads: Vec<_> = (0..6).map(|_| read(&stand, level())).collect();
    until_waiting(&store, 2).await;
    assert_eq!(read(&stand, own.id().clone()).await.unwrap(), Ok(3), "it does not wait");
    assert!(store.waiting() >= 2 && reads.iter().all(|read| !read.is_finished()));
    store.open();
    for read in reads {
        assert_eq!(read.await.unwrap(), Ok(3));
    }
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_costs_one_timeout_for_all_waiting_reads() {
    let (other, store) = other();
    let stand = stand(&other, "1 s").await;
    let begin = Instant::now();
    let reads: Vec<_> = (0..20).map(|_| read(&stand, level())).collect();
    for read in reads {
        assert_eq!(read.await.unwrap(), Err(StatusCode::BAD_TIMEOUT));
    }
    let took = begin.elapsed();
    assert!(
        took < Duration::from_secs(5),
        "{took:?}, ten seconds if each of two threads waits for ten reads"
    );
    // It answers again.
    store.open();
    let end = Instant::now() + Duration::from_secs(20);
    while read(&stand, level()).await.unwrap() != Ok(3) {
        assert!(Instant::now() < end);
        sleep(50 * MS).await;
    }
    stand.end().await;
}
