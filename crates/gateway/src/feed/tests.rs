use super::*;
use crate::fault::Fault;
use crate::fields::Sections;
use core::time::Duration;
use std::path::Path;
use std::thread::sleep;
use taktwerk::Server;
use taktwerk_types::{BuiltInType, UtcTime};

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
fn an_overdue_value_becomes_uncertain_then_bad_and_is_counted() {
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

#[tokio::test(start_paused = true)]
async fn a_tag_has_its_own_times() {
    let (server, feed, _writes, quick) = feed(
        "stale_after = \"1 min\"\nlost_after = \"10 min\"",
        "stale_after = \"100 ms\"\nlost_after = \"1 s\"",
    );
    let cells = [("source", "s"), ("name", "of table"), ("stale_after", "2 s"), ("lost_after", "4 s")];
    let cells = cells.map(|(key, cell)| (key.to_owned(), cell.to_owned()));
    let head = Arc::new(crate::fields::Head { line: 1, columns: Default::default() });
    let mut row = crate::fields::Fields::of_cells(Path::new("t.csv"), (&head, 2), cells);
    let of_table = Tag::take(&mut row).unwrap();
    let plain = Tag { name: "plain".to_owned(), stale_after: None, lost_after: None, ..of_table.clone() };
    let mut variables = vec![quick];
    for tag in [&of_table, &plain] {
        feed.add(tag, Kind::scalar(BuiltInType::Double)).unwrap();
        let id = taktwerk_types::NodeId::string(2, format!("s/{}", tag.name));
        variables.push(server.space().variable(&id).unwrap());
    }
    assert_eq!(feed.watch_interval(), 50 * MS, "a quarter of the shortest time, within bounds");
    feed.deliver((0..3).map(|position| (position, Reading::good(1.0))));
    let (good, stale) = (StatusCode::GOOD, StatusCode::UNCERTAIN_LAST_USABLE_VALUE);
    let lost = StatusCode::BAD_NO_COMMUNICATION;
    for (after, expected) in [
        (50, [good, good, good]),
        (450, [stale, good, good]),
        (1000, [lost, good, good]),
        (1000, [lost, stale, good]),
        (2000, [lost, lost, good]),
        (60_000, [lost, lost, stale]),
        (600_000, [lost, lost, lost]),
    ] {
        tokio::time::advance(after * MS).await;
        feed.watch();
        let found: Vec<_> = variables.iter().map(|variable| variable.get().status()).collect();
        assert_eq!(found, expected, "{after} ms later");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tag_without_interval_has_its_own_time_after_the_loss_of_the_connection() {
    let (_server, feed, _writes, variable) = feed_of(None, "lost_after = \"10 min\"", "lost_after = \"2 s\"");
    feed.connected();
    feed.deliver([(0, Reading::good(1.5))]);
    tokio::time::advance(3000 * MS).await;
    feed.watch();
    assert_eq!(variable.get().status(), StatusCode::GOOD);
    feed.disconnected(&Fault::Closed { target: "device".to_owned() });
    assert_eq!(variable.get().status(), StatusCode::UNCERTAIN_LAST_USABLE_VALUE);
    tokio::time::advance(3000 * MS).await;
    feed.watch();
    assert_eq!(variable.get().status(), StatusCode::BAD_NO_COMMUNICATION);
}

#[test]
fn values_of_a_device_that_reconnects_without_answering_become_bad() {
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
    // An answer ends the outage; the next outage is counted from its own start.
    feed.connected();
    feed.deliver([(0, Reading::good(2.5))]);
    feed.disconnected(&fault);
    assert_eq!(variable.get().status(), StatusCode::UNCERTAIN_LAST_USABLE_VALUE);
    // A connection that lasts, without an answer, does not end the outage either.
    feed.connected();
    feed.watch();
    assert_eq!(variable.get().status(), StatusCode::UNCERTAIN_LAST_USABLE_VALUE);
    sleep(400 * MS);
    feed.watch();
    assert_eq!(variable.get().status(), StatusCode::BAD_NO_COMMUNICATION);
    feed.deliver([(0, Reading::good(3.5))]);
    feed.watch();
    assert_eq!(variable.get().status(), StatusCode::GOOD);
}

#[test]
fn a_standby_gateway_sends_nothing_to_destinations() {
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
    // Neither Uncertain nor Bad: the other gateway supplies the values.
    feed.stand_by();
    for _ in 0..4 {
        sleep(300 * MS);
        feed.watch();
    }
    assert_eq!(feed.statistics().snapshot().lost, 1, "clients of this gateway see it");
    assert_eq!(told(), []);
    // The first value is sent even if it is unchanged.
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
    // If no value arrives, the destinations receive Bad once.
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
fn excess_values_are_replaced_and_counted_and_wrong_types_are_bad() {
    let (_server, feed, _writes, variable) = feed("values_per_second_max = 10", "");
    for number in 0..100 {
        feed.deliver([(0, Reading::good(f64::from(number)))]);
    }
    let counted = feed.statistics().snapshot();
    assert!((10..30).contains(&counted.values), "{counted:?}");
    // The newest reading is queued, and stored when the rate limit allows.
    assert_eq!((counted.values + counted.replaced, counted.dropped), (99, 0));
    sleep(200 * MS);
    assert!(!feed.store_waiting());
    assert_eq!(variable.get().value, Some(99.0.into()));
    assert_eq!(feed.statistics().snapshot().values, counted.values + 1);
    sleep(200 * MS);
    feed.deliver([(0, Reading::good("no number"))]);
    assert_eq!(variable.get().status(), StatusCode::BAD_TYPE_MISMATCH);
    assert_eq!(feed.statistics().snapshot().invalid, 1);
    // Unknown positions are ignored.
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
    // While the flood continues, the other tag's only value is not starved.
    let end = Instant::now() + Duration::from_secs(20);
    while quiet.get().value != Some(7.0.into()) {
        assert!(Instant::now() < end);
        feed.deliver((0..50).map(|number| (0, Reading::good(f64::from(number)))));
        sleep(5 * MS);
    }
    assert_eq!(quiet.get().source_timestamp, Some(sent));
    // The queued reading at the end of the connection is the last usable value.
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

/// At the end of a connection, the queued readings are stored in any case. They count for the next connection.
#[tokio::test(start_paused = true)]
async fn a_source_that_reconnects_keeps_its_rate_limit_and_recovers() {
    const TAGS: usize = 30;
    let tags = (0..TAGS).map(|at| format!("[[tag]]\nsource = \"s\"\nname = \"t{at}\"\n")).collect::<String>();
    let text = format!("[[source]]\nvalues_per_second_max = 10\n{tags}");
    let mut sections = Sections::parse(Path::new("g.toml"), &text).unwrap();
    let settings = SourceSettings::take(&mut sections.sources[0], "s".to_owned(), None).unwrap();
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = Arc::new(Plant::new(server.namespace("urn:test")));
    let (feed, _writes) = Feed::new(settings, plant, Vec::new());
    for tag in &mut sections.tags {
        feed.add(&Tag::take(tag).unwrap(), Kind::scalar(BuiltInType::Double)).unwrap();
    }
    let stored = || feed.statistics().snapshot().values;
    let mut number = 0.0;
    let mut session = async |seconds: u32| {
        feed.connected();
        for _ in 0..10 * seconds {
            number += 1.0;
            feed.deliver((0..TAGS).map(|position| (position, Reading::good(number))));
            feed.store_waiting();
            tokio::time::advance(100 * MS).await;
        }
    };
    for _ in 0..20 {
        session(5).await;
        feed.disconnected(&Fault::Closed { target: "device".to_owned() });
    }
    // 100 s, and at most a second of values and those of the last end beyond.
    assert!((900..=1_000 + 10 + TAGS as u64).contains(&stored()), "{}", stored());
    // A debt of 30 values is paid after 3 s.
    let before = stored();
    session(4).await;
    let recovered = stored() - before;
    assert!((5..=15).contains(&recovered), "{recovered}");
    let before = stored();
    session(4).await;
    assert!((35..=45).contains(&(stored() - before)), "{}", stored() - before);
}

#[test]
fn small_changes_are_not_stored_and_do_not_accumulate() {
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

#[test]
fn a_write_does_not_reach_the_next_variable_of_its_position() {
    let (_server, feed, mut writes, _variable) = feed("", "access = \"read-write\"");
    let good = StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY;
    let write = |name: &str, value: f64| feed.plant().write(name, value.into());
    feed.connected();
    assert_eq!(write("s/t", 1.0), good);
    feed.release(0, None);
    // The node is still there, and another one may take it over.
    assert_eq!(write("s/t", 2.0), StatusCode::BAD_NO_COMMUNICATION);
    let text = "[[source]]\n[[tag]]\nsource = \"s\"\nname = \"u\"\naccess = \"read-write\"\n";
    let mut sections = Sections::parse(Path::new("g.toml"), text).unwrap();
    let other = Tag::take(&mut sections.tags[0]).unwrap();
    let position = feed.add(&other, Kind::scalar(BuiltInType::Double)).unwrap();
    assert_eq!(position, 0, "the position is used again");
    assert_eq!(write("s/u", 3.0), good);
    assert_eq!(writes.try_next(), Some(Write { position, value: 3.0.into() }));
    assert_eq!(writes.try_next(), None);
    assert_eq!(feed.statistics().snapshot().write_errors, 1, "the write to the removed variable");
}

/// A value that has not changed for long was good until the connection was lost.
#[tokio::test(start_paused = true)]
async fn marks_do_not_change_the_past() {
    let long_ago = UtcTime::from_unix(Duration::from_secs(1_700_000_000));
    let (_server, feed, _writes, variable) = feed_of(None, "lost_after = \"10 s\"", "stale_after = \"1 s\"");
    feed.connected();
    feed.deliver([(0, Reading::good(1.0).at(Some(long_ago)))]);
    assert_eq!(variable.get().source_timestamp, Some(long_ago));
    let before = wall();
    for status in [StatusCode::UNCERTAIN_LAST_USABLE_VALUE, StatusCode::BAD_NO_COMMUNICATION] {
        tokio::time::advance(Duration::from_secs(6)).await;
        feed.watch();
        let mark = variable.get();
        assert_eq!((mark.status(), mark.source_timestamp), (status, mark.server_timestamp));
        assert!(mark.source_timestamp.unwrap() >= before, "{mark:?}");
    }
}
