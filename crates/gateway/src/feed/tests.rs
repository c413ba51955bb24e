use super::*;
use crate::fault::Fault;
use crate::fields::Sections;
use core::time::Duration;
use std::path::Path;
use std::thread::sleep;
use taktwerk::Server;
use taktwerk_types::UtcTime;

const MS: Duration = Duration::from_millis(1);

fn feed(source: &str, tag: &str) -> (Server, Feed, Writes, VariableHandle) {
    feed_of(Some(100 * MS), source, tag)
}

fn feed_of(interval: Option<Duration>, source: &str, tag: &str) -> (Server, Feed, Writes, VariableHandle) {
    let text = format!("[[source]]\n{source}\n[[tag]]\nsource = \"s\"\nname = \"t\"\n{tag}\n");
    let mut sections = Sections::parse(Path::new("g.toml"), &text).unwrap();
    let settings = SourceSettings::take(&mut sections.sources[0], "s".to_owned(), interval).unwrap();
    let tag = Tag::take(&mut sections.tags[0]).unwrap();
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = Arc::new(Plant::new(server.namespace("urn:test")));
    let (feed, writes) = Feed::new(settings, plant, Vec::new());
    assert_eq!(feed.add(&tag, Kind::scalar(BuiltInType::Double)).unwrap(), 0);
    let id = taktwerk_types::NodeId::string(2, "s/t");
    let variable = server.space().variable(&id).unwrap();
    (server, feed, writes, variable)
}

#[test]
fn a_value_that_does_not_come_is_uncertain_then_bad_and_counted() {
    let (_server, feed, _writes, variable) = feed("lost_after = \"600 ms\"", "");
    assert_eq!(variable.get().status(), StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
    feed.watch();
    assert_eq!(variable.get().status(), StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
    feed.deliver([(0, Reading::good(1.5))]);
    assert_eq!(variable.get().status(), StatusCode::GOOD);
    feed.watch();
    assert_eq!(variable.get().status(), StatusCode::GOOD);
    sleep(250 * MS);
    feed.watch();
    let stale = variable.get();
    assert_eq!((stale.status(), stale.value), (StatusCode::UNCERTAIN_LAST_USABLE_VALUE, Some(1.5.into())));
    let counted = feed.statistics().snapshot();
    assert_eq!((counted.missed, counted.uncertain, counted.lost), (1, 1, 0));
    sleep(450 * MS);
    feed.watch();
    assert_eq!(variable.get().status(), StatusCode::BAD_NO_COMMUNICATION);
    assert_eq!(feed.statistics().snapshot().lost, 1);
    feed.deliver([(0, Reading::good(2.0))]);
    assert_eq!(variable.get().status(), StatusCode::GOOD);
    feed.watch();
    assert_eq!(feed.statistics().snapshot().lost, 0);
}

#[test]
fn values_of_a_device_that_connects_again_and_again_without_an_answer_are_lost() {
    let (_server, feed, _writes, variable) = feed_of(None, "lost_after = \"300 ms\"", "");
    let fault = Fault::Closed { target: "device".to_owned() };
    feed.connected();
    feed.deliver([(0, Reading::good(1.5))]);
    feed.disconnected(&fault);
    assert_eq!(variable.get().status(), StatusCode::UNCERTAIN_LAST_USABLE_VALUE);
    for _ in 0..8 {
        feed.connected();
        feed.watch();
        sleep(50 * MS);
        feed.disconnected(&fault);
    }
    assert_eq!(variable.get().status(), StatusCode::BAD_NO_COMMUNICATION);
    // An answer ends it, and the next time without a connection counts from its own beginning.
    feed.connected();
    feed.deliver([(0, Reading::good(2.5))]);
    feed.disconnected(&fault);
    assert_eq!(variable.get().status(), StatusCode::UNCERTAIN_LAST_USABLE_VALUE);
}

#[test]
fn a_gateway_that_stands_by_gives_destinations_nothing() {
    let (server, _, _, _) = feed("", "");
    let counters = Arc::new(crate::destination::counters::Counters::default());
    let tap = Arc::new(Tap::new(Vec::new(), Vec::new(), false, counters));
    let text = "[[source]]\nlost_after = \"600 ms\"\n[[tag]]\nsource = \"s\"\nname = \"t\"\ndeadband = 1.0\n";
    let mut sections = Sections::parse(Path::new("g.toml"), text).unwrap();
    let settings = SourceSettings::take(&mut sections.sources[0], "s".to_owned(), Some(100 * MS)).unwrap();
    let tag = Tag::take(&mut sections.tags[0]).unwrap();
    let plant = Arc::new(Plant::new(server.namespace("urn:other")));
    let (feed, _writes) = Feed::new(settings, plant, vec![Arc::clone(&tap)]);
    feed.add(&tag, Kind::scalar(BuiltInType::Double)).unwrap();
    let told = || -> Vec<(Variant, StatusCode)> {
        let blocks = tap.take();
        let records =
            blocks.iter().flat_map(|block| crate::destination::block::decode(&block.body, 0).unwrap());
        records.map(|record| (record.value, record.status)).collect()
    };
    let good = |number: f64| (Variant::from(number), StatusCode::GOOD);
    feed.deliver([(0, Reading::good(1.0))]);
    assert_eq!(told(), [good(1.0)]);
    // Neither Uncertain nor Bad: another gateway gives them values.
    feed.stand_by();
    for _ in 0..4 {
        sleep(300 * MS);
        feed.watch();
    }
    assert_eq!(feed.statistics().snapshot().lost, 1, "clients of this gateway see it");
    assert_eq!(told(), []);
    // The first value counts, also if it is the same as before.
    feed.take_over();
    feed.watch();
    assert_eq!(told(), [], "there is time for it to come");
    feed.deliver([(0, Reading::good(1.0))]);
    feed.deliver([(0, Reading::good(1.0))]);
    assert_eq!(told(), [good(1.0)]);
    feed.stand_by();
    feed.take_over();
    feed.deliver([(0, Reading::good(1.5))]);
    assert_eq!(told(), [good(1.5)], "whatever the deadband");
    // If none comes they are told so, once.
    feed.stand_by();
    sleep(900 * MS);
    feed.watch();
    feed.take_over();
    for _ in 0..3 {
        sleep(300 * MS);
        feed.watch();
    }
    assert_eq!(told(), [(Variant::Empty, StatusCode::BAD_NO_COMMUNICATION)]);
}

#[test]
fn a_flood_is_cut_and_counted_and_what_does_not_fit_is_bad() {
    let (_server, feed, _writes, variable) = feed("values_per_second_max = 10", "");
    for number in 0..100 {
        feed.deliver([(0, Reading::good(f64::from(number)))]);
    }
    let counted = feed.statistics().snapshot();
    assert!((10..30).contains(&counted.values), "{counted:?}");
    // The newest one waits, and is stored when it may be.
    assert_eq!((counted.values + counted.replaced, counted.dropped), (99, 0));
    sleep(200 * MS);
    assert!(!feed.store_waiting());
    assert_eq!(variable.get().value, Some(99.0.into()));
    assert_eq!(feed.statistics().snapshot().values, counted.values + 1);
    sleep(200 * MS);
    feed.deliver([(0, Reading::good("no number"))]);
    assert_eq!(variable.get().status(), StatusCode::BAD_TYPE_MISMATCH);
    assert_eq!(feed.statistics().snapshot().invalid, 1);
    // Positions that there are not cost nothing.
    feed.deliver([(7, Reading::good(1.0))]);
}

#[test]
fn the_newest_value_of_each_tag_survives_a_flood_of_another_one() {
    let text = "[[source]]\nvalues_per_second_max = 20\n[[tag]]\nsource = \"s\"\nname = \"a\"\n\
                [[tag]]\nsource = \"s\"\nname = \"b\"\n";
    let mut sections = Sections::parse(Path::new("g.toml"), text).unwrap();
    let settings = SourceSettings::take(&mut sections.sources[0], "s".to_owned(), None).unwrap();
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = Arc::new(Plant::new(server.namespace("urn:test")));
    let (feed, _writes) = Feed::new(settings, plant, Vec::new());
    for tag in &mut sections.tags {
        feed.add(&Tag::take(tag).unwrap(), Kind::scalar(BuiltInType::Double)).unwrap();
    }
    let variable = |name: &str| {
        let id = taktwerk_types::NodeId::string(2, format!("s/{name}"));
        server.space().variable(&id).unwrap()
    };
    let (flooded, quiet) = (variable("a"), variable("b"));
    let sent = UtcTime::from_unix(Duration::from_secs(1_700_000_000));
    feed.connected();
    feed.deliver((0..1000).map(|number| (0, Reading::good(f64::from(number)))));
    feed.deliver([(1, Reading::good(7.0).at(Some(sent)))]);
    // The flood goes on, and the other tag's only value is not starved by it.
    let end = Instant::now() + Duration::from_secs(20);
    while quiet.get().value != Some(7.0.into()) {
        assert!(Instant::now() < end);
        feed.deliver((0..50).map(|number| (0, Reading::good(f64::from(number)))));
        sleep(5 * MS);
    }
    assert_eq!(quiet.get().source_timestamp, Some(sent));
    // What waits when the connection ends is the last usable value.
    feed.deliver((0..50).map(|number| (0, Reading::good(f64::from(number)))));
    feed.deliver([(0, Reading::good(5000.0))]);
    feed.disconnected(&Fault::Closed { target: "device".to_owned() });
    let last = flooded.get();
    assert_eq!(
        (last.value, last.status),
        (Some(5000.0.into()), Some(StatusCode::UNCERTAIN_LAST_USABLE_VALUE))
    );
    assert!(!feed.store_waiting());
    let counted = feed.statistics().snapshot();
    assert!(counted.values < 1000 && counted.replaced > 900, "{counted:?}");
}

#[test]
fn small_changes_are_left_out_and_do_not_add_up() {
    let (_server, feed, _writes, variable) = feed("", "deadband = 1.0");
    let value = |number: f64| {
        feed.deliver([(0, Reading::good(number))]);
        variable.get().value.and_then(|value| value.as_f64())
    };
    assert_eq!(value(10.0), Some(10.0));
    assert_eq!(value(10.9), Some(10.0));
    assert_eq!(value(11.0), Some(11.0));
    assert_eq!(value(10.1), Some(11.0));
    assert_eq!(value(9.9), Some(9.9));
}

#[test]
fn writes_are_scaled_back_bounded_and_refused_without_a_connection() {
    let (_server, feed, mut writes, _variable) =
        feed("", "scale = 0.5\nclamp = [0, 10]\naccess = \"read-write\"");
    assert_eq!(feed.accept(0, 1.0.into()), StatusCode::BAD_NO_COMMUNICATION);
    feed.connected();
    assert_eq!(feed.accept(0, 1.0.into()), StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY);
    assert_eq!(writes.try_next(), Some(Write { position: 0, value: 2.0.into() }));
    assert_eq!(feed.accept(0, 11.0.into()), StatusCode::BAD_OUT_OF_RANGE);
    for _ in 0..WRITES_MAX {
        assert_eq!(feed.accept(0, 1.0.into()), StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY);
    }
    assert_eq!(feed.accept(0, 1.0.into()), StatusCode::BAD_RESOURCE_UNAVAILABLE);
    writes.discard(&feed);
    assert_eq!(feed.statistics().snapshot().write_errors, WRITES_MAX as u64);
}
