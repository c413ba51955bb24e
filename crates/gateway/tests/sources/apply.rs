//! Applies another configuration while sources run and a client is subscribed.

use crate::device::Device;
use crate::stand::{MS, Stand};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use taktwerk::Server;
use taktwerk::client::Subscription;
use taktwerk_gateway::{Applied, GatewayConfig, GatewayError, PreparedGateway};
use taktwerk_types::{DataValue, NodeId, StatusCode, Variant};
use tokio::time::{sleep, timeout};

fn source(device: &Device, name: &str, more: &str) -> String {
    format!(
        "[[source]]\nname = \"{name}\"\ntype = \"modbus\"\naddress = \"{}\"\ninterval = \"30 ms\"\nstale_after = \"5 s\"\n\
         retry = \"50 ms\"\n{more}\n",
        device.address
    )
}

fn tag(source: &str, name: &str, address: &str, more: &str) -> String {
    format!("[[tag]]\nsource = \"{source}\"\nname = \"{name}\"\naddress = \"{address}\"\n{more}\n")
}

fn apply(stand: &mut Stand, text: &str) -> Result<Applied, GatewayError> {
    let config = GatewayConfig::parse(Path::new("g.toml"), text).unwrap();
    let config = config.unwrap_or_else(GatewayConfig::empty);
    tokio::task::block_in_place(|| stand.gateway.apply(config))
}

/// The nodes that were added before the name that is taken must not be in the way of the next configuration.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_first_configuration_leaves_no_nodes() {
    let (one, two) = (Device::start(20), Device::start(20));
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let namespace = server.namespace("urn:taktwerk:gateway");
    let taken = NodeId::string(namespace.index(), "b/line/Taken");
    namespace.objects().variable("Taken", 1.0).node_id(taken).add().unwrap();
    let server = server.spawn().unwrap();
    let text = |name: &str| {
        let tags = [
            tag("a", "First", "holding:0", "path = \"a/line\""),
            tag("a", "Second", "holding:1", ""),
            tag("b", name, "holding:0", "path = \"b/line\""),
        ];
        [source(&one, "a", ""), source(&two, "b", ""), tags.concat()].concat()
    };
    let config = |text: &str| GatewayConfig::parse(Path::new("g.toml"), text).unwrap().unwrap();
    let names = ["a", "a/line", "a/line/First", "a/Second", "b", "b/line"];
    let is_there = |name: &&str| namespace.node(NodeId::string(namespace.index(), *name)).is_ok();
    let refused = text("Taken");
    for _ in 0..2 {
        let checked = PreparedGateway::check(&config(&refused), namespace.clone());
        assert!(matches!(checked, Err(GatewayError::Node { ref tag, .. }) if tag == "Taken"), "{checked:?}");
        let error = PreparedGateway::within(config(&refused), namespace.clone()).unwrap_err();
        assert!(matches!(error, GatewayError::Node { ref tag, .. } if tag == "Taken"), "{error}");
        let left: Vec<_> = names.iter().filter(|name| is_there(name)).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    let mended = text("Free");
    PreparedGateway::check(&config(&mended), namespace.clone()).unwrap();
    let gateway = PreparedGateway::within(config(&mended), namespace.clone()).unwrap().start().unwrap();
    assert!(names.iter().all(is_there));
    tokio::task::block_in_place(|| drop(gateway));
    server.stop(Duration::ZERO);
}

/// The changes that a client receives for each node.
struct Watch {
    subscription: Subscription,
    items: BTreeMap<u32, &'static str>,
}

impl Watch {
    async fn new(stand: &Stand, names: &[&'static str]) -> Self {
        let subscription = stand.client.subscribe(20 * MS).await.unwrap();
        let mut items = BTreeMap::new();
        for name in names {
            let item = subscription.monitor(&*format!("nsu=urn:taktwerk:gateway;s={name}")).await.unwrap();
            items.insert(item, *name);
        }
        Self { subscription, items }
    }

    /// Reads changes until one matches. Returns all previous statuses of the node.
    async fn until(&mut self, name: &str, what: impl Fn(&DataValue) -> bool) -> Vec<StatusCode> {
        let mut statuses = Vec::new();
        loop {
            let change = timeout(20_000 * MS, self.subscription.next_change()).await;
            let change = change.unwrap_or_else(|_| panic!("{name}: {statuses:?}")).unwrap();
            if self.items[&change.item] == name {
                statuses.push(change.value.status());
                if what(&change.value) {
                    return statuses;
                }
            }
        }
    }
}

fn is(number: impl Into<Variant>) -> impl Fn(&DataValue) -> bool {
    let number = Some(number.into());
    move |value| value.value == number && value.status() == StatusCode::GOOD
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_sources_and_tags_continue_and_others_are_replaced() {
    let (one, two) = (Device::start(20), Device::start(20));
    let set = |device: &Device, at: usize, word: u16| device.holding.lock().unwrap()[at] = word;
    for (device, at, word) in [(&one, 0, 10), (&one, 1, 20), (&two, 0, 30)] {
        set(device, at, word);
    }
    let start = [
        source(&one, "a", ""),
        source(&two, "b", ""),
        tag("a", "Same", "holding:0", "access = \"read-write\""),
        tag("a", "Scaled", "holding:1", "type = \"Double\"\nscale = 2"),
        tag("a", "Ranged", "holding:1", ""),
        tag("a", "Going", "holding:2", "path = \"a/sub\""),
        tag("b", "Other", "holding:0", ""),
    ]
    .concat();
    let mut stand = Stand::new(&start).await;
    let mut watch = Watch::new(&stand, &["a/Same", "a/Scaled", "a/Ranged", "a/sub/Going", "b/Other"]).await;
    watch.until("a/Same", is(10u16)).await;
    watch.until("a/Scaled", is(40.0)).await;
    stand.value("b/Other", 30u16).await;
    // The same settings on other lines.
    let same = apply(&mut stand, &format!("# a remark\n\n{start}")).unwrap();
    assert_eq!(same, Applied::default());
    let before = stand.source("b").statistics;
    let next = [
        source(&one, "a", "unit = 1"),
        source(&two, "b", ""),
        tag("b", "Other", "holding:0", ""),
        tag("a", "New", "holding:3", "units = \"°C\"\nrange = [0, 10]"),
        tag("a", "Same", "holding:0", "access = \"read-write\""),
        tag("a", "Scaled", "holding:1", "type = \"Double\"\nscale = 3"),
        tag("a", "Ranged", "holding:1", "range = [0, 50]"),
    ]
    .concat();
    set(&one, 3, 7);
    let applied = apply(&mut stand, &next).unwrap();
    assert_eq!(
        (&applied.changed[..], applied.added.len(), applied.removed.len()),
        (&["a".to_owned()][..], 0, 0)
    );
    // A tag of the same shape continues, also for subscribers, even if its scaling changed.
    let statuses = watch.until("a/Scaled", is(60.0)).await;
    assert!(statuses.iter().all(|status| *status == StatusCode::GOOD), "{statuses:?}");
    set(&one, 0, 11);
    let statuses = watch.until("a/Same", is(11u16)).await;
    assert!(statuses.iter().all(|status| *status == StatusCode::GOOD), "{statuses:?}");
    stand.value("a/New", 7u16).await;
    stand.value("a/Ranged", 20u16).await;
    let range = stand.client.find("nsu=urn:taktwerk:gateway;s=a/Ranged", "EURange").await.unwrap();
    assert!(stand.client.read(range).await.unwrap().value.is_some());
    assert_eq!(stand.read("a/sub/Going").await.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    assert_eq!(stand.read("a/sub").await.status(), StatusCode::BAD_NODE_ID_UNKNOWN, "an empty folder goes");
    // Writes reach the device through the new source.
    stand.write("a/Same", 12u16).await.unwrap();
    stand.value("a/Same", 12u16).await;
    assert_eq!(one.holding.lock().unwrap()[0], 12);
    // The other source is unaffected: one connection, continuous counters.
    let after = stand.source("b").statistics;
    assert_eq!((after.connections, after.errors), (1, 0));
    assert!(after.requests >= before.requests && before.requests > 0);
    set(&two, 0, 31);
    watch.until("b/Other", is(31u16)).await;
    // All sources are removed, with the nodes of their tags.
    let gone = apply(&mut stand, "").unwrap();
    assert_eq!(gone.removed.len(), 2);
    for name in ["a/Same", "a/New", "b/Other", "a", "b"] {
        assert_eq!(stand.read(name).await.status(), StatusCode::BAD_NODE_ID_UNKNOWN, "{name}");
    }
    assert!(stand.gateway.sources().views().is_empty());
    // They are added again.
    assert_eq!(apply(&mut stand, &start).unwrap().added, ["a", "b"]);
    stand.value("b/Other", 31u16).await;
    stand.value("a/Scaled", 40.0).await;
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inapplicable_configuration_changes_nothing() {
    let device = Device::start(20);
    device.holding.lock().unwrap()[0] = 5;
    let start = [source(&device, "a", ""), tag("a", "T", "holding:0", "")].concat();
    let mut stand = Stand::new(&start).await;
    stand.value("a/T", 5u16).await;
    // A node that does not belong to the gateway.
    let namespace = stand.server.namespace("urn:taktwerk:gateway");
    namespace.folder("Mine").unwrap().variable("V", 1.0).add().unwrap();
    let connections = stand.source("a").statistics.connections;
    let wrong = [&start, &tag("a", "V", "holding:1", "path = \"Mine\""), &tag("a", "W", "holding:2", "")];
    let wrong = wrong.map(String::as_str).concat();
    let error = apply(&mut stand, &wrong).unwrap_err().to_string();
    assert!(error.contains("tag V") && error.contains("Mine/V"), "{error}");
    assert_eq!(stand.read("a/W").await.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    device.holding.lock().unwrap()[0] = 6;
    stand.value("a/T", 6u16).await;
    assert_eq!(stand.source("a").statistics.connections, connections);
    // Settings that require a restart are reported.
    let elsewhere = format!("[gateway]\nthreads = 2\n{start}");
    assert_eq!(apply(&mut stand, &elsewhere).unwrap().waiting, ["gateway"]);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_be_added_stops_no_source() {
    let device = Device::start(20);
    let start =
        [source(&device, "a", ""), tag("a", "T", "holding:0", ""), tag("a", "U", "holding:1", "")].concat();
    let mut stand = Stand::new(&start).await;
    stand.value("a/T", 0u16).await;
    let namespace = stand.server.namespace("urn:taktwerk:gateway");
    let elsewhere = namespace.folder("Mine").unwrap();
    // The conflicting node is not a tag, so the conflict is detected only when the tag is added.
    for (number, id) in ["a/New/EURange", "a/T/EURange"].into_iter().enumerate() {
        let id = NodeId::string(namespace.index(), id);
        elsewhere.variable(&format!("v{number}"), 1.0).node_id(id).add().unwrap();
    }
    let connections = stand.source("a").statistics.connections;
    let more = [
        &tag("a", "First", "holding:2", "path = \"a/below\"")[..],
        &tag("a", "New", "holding:3", "range = [0, 10]"),
    ];
    let error = apply(&mut stand, &(start.clone() + &more.concat())).unwrap_err().to_string();
    assert!(error.contains("tag New") && error.contains("a/New/EURange"), "{error}");
    for gone in ["a/below/First", "a/below", "a/New"] {
        assert_eq!(stand.read(gone).await.status(), StatusCode::BAD_NODE_ID_UNKNOWN, "{gone}");
    }
    device.holding.lock().unwrap()[0] = 6;
    stand.value("a/T", 6u16).await;
    assert_eq!(stand.source("a").statistics.connections, connections, "the source was not stopped");
    // A tag whose shape changed is deleted and added again. A failure affects only this tag.
    let ranged = [
        source(&device, "a", ""),
        tag("a", "T", "holding:0", "range = [0, 10]"),
        tag("a", "U", "holding:1", "description = \"other\""),
        tag("a", "V", "holding:2", ""),
    ]
    .concat();
    let applied = apply(&mut stand, &ranged).unwrap();
    assert_eq!(applied.failed.len(), 1, "{applied:?}");
    assert!(applied.failed[0].contains("source a, tag T"), "{applied:?}");
    device.holding.lock().unwrap()[1] = 7;
    device.holding.lock().unwrap()[2] = 8;
    stand.value("a/U", 7u16).await;
    stand.value("a/V", 8u16).await;
    assert_eq!(stand.read("a/T").await.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    // Folders deleted by clients are added again.
    let folder = namespace.node(NodeId::string(namespace.index(), "a")).unwrap();
    folder.delete().unwrap();
    assert_eq!(apply(&mut stand, &start).unwrap().failed, Vec::<String>::new());
    stand.value("a/T", 6u16).await;
    let found = stand.client.find("nsu=urn:taktwerk:gateway;s=a", "2:T").await;
    assert!(found.is_ok(), "{found:?}");
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discovered_nodes_are_found_again_or_deleted() {
    let other = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = other.namespace("urn:example:plant").folder("Plant").unwrap();
    let line = plant.object("Line").add().unwrap();
    let speed = line.variable("Speed", 1.5).add().unwrap();
    plant.object("Store").add().unwrap().variable("Level", 3.5).add().unwrap();
    let other = other.spawn().unwrap();
    let mirror = |root: &str, more: &str| {
        format!(
            "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"{}\"\npublishing_interval = \"30 ms\"\nretry = \"50 ms\"\n\
             lost_after = \"500 ms\"\ndeadline = \"2 s\"\nmirror = \"nsu=urn:example:plant;s={root}\"\n{more}\n",
            other.url()
        )
    };
    let mut stand = Stand::new(&mirror("Plant", "")).await;
    stand.until_there("up/Line/Speed").await;
    stand.value("up/Store/Level", 3.5).await;
    let mut watch = Watch::new(&stand, &["up/Line/Speed"]).await;
    watch.until("up/Line/Speed", is(1.5)).await;
    assert_eq!(apply(&mut stand, &mirror("Plant", "sampling_interval = \"10 ms\"")).unwrap().changed, ["up"]);
    speed.set(2.5);
    let statuses = watch.until("up/Line/Speed", is(2.5)).await;
    assert!(statuses.iter().all(|status| !status.is_bad()), "{statuses:?}");
    // With a smaller mirror, the other nodes are deleted after a while.
    apply(&mut stand, &mirror("Plant", "depth_max = 1")).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while stand.read("up/Store/Level").await.status() != StatusCode::BAD_NODE_ID_UNKNOWN {
        assert!(Instant::now() < end);
        sleep(20 * MS).await;
    }
    stand.end().await;
    other.stop(Duration::ZERO);
}

/// Prints the duration; asserts that other sources are not affected.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_changed_tags_do_not_affect_other_sources() {
    let text = |scale: u32| {
        let mut text = "[[source]]\nname = \"calm\"\ntype = \"simulation\"\ninterval = \"20 ms\"\nstale_after = \"1 min\"\n\
                        [[tag]]\nsource = \"calm\"\nname = \"V\"\nsignal = \"noise\"\n\
                        [[source]]\nname = \"many\"\ntype = \"simulation\"\ninterval = \"1 s\"\nstale_after = \"1 min\"\n"
            .to_owned();
        for number in 0..10_000 {
            text.push_str(&format!(
                "[[tag]]\nsource = \"many\"\nname = \"t{number}\"\nsignal = \"constant\"\nvalue = 1\nscale = {scale}\n\
                 range = [0, {scale}]\n"
            ));
        }
        text
    };
    let mut stand = Stand::new(&text(2)).await;
    stand.value("many/t9999", 2.0).await;
    let mut watch = Watch::new(&stand, &["calm/V"]).await;
    let (out, mut told) = tokio::sync::mpsc::unbounded_channel();
    let seen = tokio::spawn(async move {
        while let Some(change) = watch.subscription.next_change().await {
            assert!(!change.value.status().is_bad(), "{:?}", change.value);
            if out.send(Instant::now()).is_err() {
                return;
            }
        }
    });
    let mut gaps = async |span: Duration| {
        let end = Instant::now() + span;
        let mut last = told.recv().await.unwrap();
        let mut gaps = Vec::new();
        while last < end {
            let next = timeout(20_000 * MS, told.recv()).await.unwrap().unwrap();
            gaps.push(next - last);
            last = next;
        }
        gaps.sort();
        gaps
    };
    let calm = gaps(1000 * MS).await;
    let before = stand.source("calm").statistics;
    let begin = Instant::now();
    let applied = apply(&mut stand, &text(3)).unwrap();
    let took = begin.elapsed();
    assert_eq!(applied.changed, ["many"]);
    let loaded = gaps(took.max(200 * MS)).await;
    let p99 = |gaps: &[Duration]| gaps[gaps.len() * 99 / 100];
    println!("applied in {took:?}; p99 between values: {:?} calm, {:?} meanwhile", p99(&calm), p99(&loaded));
    stand.value("many/t9999", 3.0).await;
    let after = stand.source("calm").statistics;
    assert_eq!((after.connections, after.missed), (before.connections, 0));
    assert_eq!(stand.source("many").tags, 10_000);
    stand.end().await;
    seen.abort();
}
