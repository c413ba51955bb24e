//! Annotations (Part 11 §5.1.2, §6.9.3): tests that every store must pass, directly and through the services of a server.

use std::sync::Arc;
use std::time::Duration;
use taktwerk::client::{HistoryQuery, HistoryRange};
use taktwerk::history::Aggregate;
use taktwerk::{Client, Server};
use taktwerk_schema::ids::variable_ids;
use taktwerk_schema::{Annotation, PerformUpdateType};
use taktwerk_server::history::{
    AnnotationKey, HistoryStore, MemoryStore, NodeKey, Order, Perform, ReadLimit, Span,
};
use taktwerk_types::{DataValue, NodeId, StatusCode, UtcTime};

type Annotated = (UtcTime, Annotation);

fn time(seconds: i64) -> UtcTime {
    UtcTime::from_ticks(UtcTime::parse("2026-01-01T00:00:00Z").unwrap().ticks() + seconds * 10_000_000)
}

fn annotated(at: i64, user: &str, text: &str) -> Annotated {
    (time(at), Annotation { message: text.into(), user_name: user.into(), annotation_time: time(1000) })
}

/// Who wrote what at which second.
fn shown(all: &[Annotated]) -> Vec<(i64, &str, &str)> {
    let mut shown = Vec::new();
    for (at, annotation) in all {
        let seconds = (at.ticks() - time(0).ticks()) / 10_000_000;
        shown.push((seconds, annotation.user_name.as_str(), annotation.message.as_str()));
    }
    shown
}

/// Pages of a store without gaps or repetitions, in both directions, also within one annotated time.
pub(crate) fn pages_are_complete(store: &dyn HistoryStore) {
    let node: NodeKey = "nsu=urn:test;s=annotated".into();
    let other: NodeKey = "nsu=urn:test;s=other".into();
    let all: Vec<Annotated> = [(10, "ann"), (10, "bob"), (10, "cid"), (20, "ann"), (30, "bob")]
        .into_iter()
        .map(|(at, user)| annotated(at, user, "text"))
        .collect();
    let statuses = store.annotate(&node, Perform::Insert, all.iter().rev().cloned().collect()).unwrap();
    assert!(statuses.iter().all(|status| *status == StatusCode::GOOD_ENTRY_INSERTED), "{statuses:?}");
    store.annotate(&other, Perform::Insert, vec![annotated(15, "eve", "of another")]).unwrap();
    let span = Span { first: time(10), last: time(20) };
    for page in [1, 2, 10] {
        for order in [Order::Forward, Order::Backward] {
            let (mut found, mut after): (Vec<Annotated>, Option<AnnotationKey>) = (Vec::new(), None);
            loop {
                let limit = ReadLimit::count(page);
                let part = store.annotations(&node, span, order, after.as_ref(), limit).unwrap();
                let Some((time, annotation)) = part.last() else { break };
                after = Some(AnnotationKey::of(*time, annotation));
                found.extend(part);
            }
            if order == Order::Backward {
                found.reverse();
            }
            assert_eq!(found, all[..4], "{order:?}, pages of {page}");
        }
    }
}

/// Writes and reads annotations through UpdateStructureData and ReadRaw of the Annotations Property.
pub(crate) fn are_kept_through_the_services(store: Arc<dyn HistoryStore>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The last owner must not be within the runtime: stores block.
    let kept = Arc::clone(&store);
    runtime.block_on(services(store));
    drop(kept);
}

async fn services(store: Arc<dyn HistoryStore>) {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().history(store).build().unwrap();
    let plant = server.namespace("urn:test:annotations");
    let fixed = plant.variable("Fixed", 1.0).historize().add().unwrap();
    let capability =
        NodeId::numeric(0, variable_ids::HISTORY_SERVER_CAPABILITIES_INSERT_ANNOTATION_CAPABILITY);
    let level = plant.variable("Level", 1.0).writable_history().add().unwrap();
    let server = server.spawn().unwrap();
    let client = Client::connect(&server.url()).await.unwrap();
    assert!(client.read_value::<bool>(&capability).await.unwrap());
    let level = level.id();

    // A history that clients cannot change has no Annotations.
    let none = client.annotate(fixed.id(), PerformUpdateType::INSERT, vec![annotated(1, "", "")]).await;
    assert_eq!(none.unwrap_err().status(), StatusCode::BAD_NO_MATCH);

    let new = vec![
        annotated(10, "ann", "valve stuck"),
        annotated(10, "bob", "no, it was the pump"),
        annotated(20, "ann", "repaired"),
    ];
    let annotate = async |perform, all| client.annotate(level, perform, all).await.unwrap();
    let inserted = annotate(PerformUpdateType::INSERT, new.clone()).await;
    assert_eq!(inserted, [StatusCode::GOOD_ENTRY_INSERTED; 3]);
    assert_eq!(annotate(PerformUpdateType::INSERT, new).await, [StatusCode::BAD_ENTRY_EXISTS; 3]);
    let read = async |range| client.annotations(level, range).await.unwrap();
    let range = HistoryRange::between(time(0), time(20));
    let expected = [(10, "ann", "valve stuck"), (10, "bob", "no, it was the pump")];
    assert_eq!(shown(&read(range).await), expected, "the end is exclusive");
    let last = read(HistoryRange::before(time(100), 2)).await;
    assert_eq!(shown(&last), [(20, "ann", "repaired"), (10, "bob", "no, it was the pump")]);

    let changes = vec![annotated(10, "ann", "valve closed"), annotated(30, "ann", "painted")];
    let replaced = annotate(PerformUpdateType::REPLACE, changes.clone()).await;
    assert_eq!(replaced, [StatusCode::GOOD_ENTRY_REPLACED, StatusCode::BAD_NO_ENTRY_EXISTS]);
    let updated = annotate(PerformUpdateType::UPDATE, changes).await;
    assert_eq!(updated, [StatusCode::GOOD_ENTRY_REPLACED, StatusCode::GOOD_ENTRY_INSERTED]);
    let gone = vec![annotated(10, "bob", ""), annotated(10, "bob", "")];
    let removed = annotate(PerformUpdateType::REMOVE, gone).await;
    assert_eq!(removed, [StatusCode::GOOD, StatusCode::BAD_NO_ENTRY_EXISTS]);
    let all = HistoryRange::between(time(0), time(100));
    let expected = [(10, "ann", "valve closed"), (20, "ann", "repaired"), (30, "ann", "painted")];
    assert_eq!(shown(&read(all).await), expected);

    // The server completes an annotation without user and time. A text may contain any character.
    let bare = Annotation { message: "a\0b".into(), ..Annotation::default() };
    let inserted = annotate(PerformUpdateType::INSERT, vec![(time(40), bare)]).await;
    assert_eq!(inserted, [StatusCode::GOOD_ENTRY_INSERTED]);
    let completed = read(HistoryRange::between(time(40), time(41))).await;
    assert!(!completed[0].1.annotation_time.is_null(), "{completed:?}");
    assert!(completed[0].1.message.as_str().starts_with('a'), "{completed:?}");

    // Annotations are no values, but there is an aggregate of them, for intervals with values.
    assert!(client.history(level, HistoryQuery::raw(all)).await.unwrap().is_empty());
    let values = [0, 50].map(|at| DataValue { source_timestamp: Some(time(at)), ..DataValue::new(1.0) });
    let inserted = client.update_history(level, PerformUpdateType::INSERT, values.to_vec()).await.unwrap();
    assert_eq!(inserted, [StatusCode::GOOD_ENTRY_INSERTED; 2]);
    let count = HistoryQuery::Processed {
        start: time(0),
        end: time(40),
        aggregate: Aggregate::AnnotationCount.node_id(),
        interval: Duration::from_secs(20),
        configuration: None,
    };
    let counts = client.history(level, count.clone()).await.unwrap().values;
    let counts: Vec<_> = counts.into_iter().map(|value| value.value.unwrap().as_f64().unwrap()).collect();
    assert_eq!(counts, [1.0, 2.0]);
    let property = client.find(level, "Annotations").await.unwrap();
    for (query, expected) in [
        (count, StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED),
        (HistoryQuery::Modified(all), StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED),
        (HistoryQuery::AtTimes(vec![time(10)]), StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED),
        (HistoryQuery::Raw { range: all, bounds: true }, StatusCode::BAD_BOUND_NOT_SUPPORTED),
    ] {
        let refused = client.history(&property, query.clone()).await.unwrap_err();
        assert_eq!(refused.status(), expected, "{query:?}");
    }
    let deleted = client.delete_history(&property, time(0), time(100), false).await.unwrap_err();
    assert_eq!(deleted.status(), StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED);
    client.disconnect().await;
    server.stop(Duration::from_secs(1));
}

#[test]
fn of_the_store_in_memory_are_kept_through_the_services() {
    are_kept_through_the_services(Arc::new(MemoryStore::new(1_000)));
    pages_are_complete(&MemoryStore::new(1_000));
}
