//! Tests that every event store must pass. The store in memory is the reference.

use taktwerk_server::history::ReadLimit;
use taktwerk_server::history::{
    EventCursor, HistoryStore, MemoryStore, NodeKey, Order, Perform, Span, StoredEvent,
};
use taktwerk_types::{ByteString, LocalizedText, QualifiedName, StatusCode, UtcTime};

/// The node of the events.
pub(crate) const NODE: &str = "i=2253";

/// Three events have the same time.
pub(crate) fn event(number: i64, severity: u16) -> StoredEvent {
    let name = |text: &str| vec![QualifiedName::new(0, text)];
    let id = ByteString::from(number.to_be_bytes().to_vec());
    let fields = vec![
        (name("EventId"), id.into()),
        (name("Time"), UtcTime::from_ticks(number / 3).into()),
        (name("Severity"), severity.into()),
        (name("Message"), LocalizedText::new("en", format!("event {number}\0")).into()),
    ];
    StoredEvent { condition: None, fields }
}

/// The events between two times (in ticks), read in pages.
pub(crate) fn events_between(
    store: &dyn HistoryStore,
    (first, last): (i64, i64),
    order: Order,
    page: usize,
) -> Vec<StoredEvent> {
    let (mut after, mut found): (Option<EventCursor>, Vec<StoredEvent>) = (None, Vec::new());
    let span = Span { first: UtcTime::from_ticks(first), last: UtcTime::from_ticks(last) };
    loop {
        let mut batch = Vec::new();
        store.read_events(&NODE.into(), span, order, after, ReadLimit::count(page), &mut batch).unwrap();
        let Some((last, _)) = batch.last() else { return found };
        after = Some(*last);
        found.extend(batch.into_iter().map(|(_, event)| event));
    }
}

/// The number of events on the first page between the ticks 2 and 15.
pub(crate) fn read_page(store: &dyn HistoryStore, order: Order, limit: usize) -> usize {
    let span = Span { first: UtcTime::from_ticks(2), last: UtcTime::from_ticks(15) };
    let mut batch = Vec::new();
    store.read_events(&NODE.into(), span, order, None, ReadLimit::count(limit), &mut batch).unwrap();
    batch.len()
}

/// Applies the same changes to an empty store and to the store in memory, and compares them. Leaves 42 events between the ticks 2
/// and 15.
pub(crate) fn agrees_with_memory(store: &dyn HistoryStore) {
    let memory = MemoryStore::new(100_000);
    let node: NodeKey = NODE.into();
    let stores: [&dyn HistoryStore; 2] = [store, &memory];
    // Not in order of time.
    let events: Vec<StoredEvent> = (0..50).map(|at| event(at * 37 % 50, 5)).collect();
    let statuses = stores.map(|store| {
        store.append_events(&node, &events).unwrap();
        let changed = vec![event(7, 9), event(100, 9)];
        let replaced = store.update_events(&node, Perform::Replace, changed.clone(), &|_| true).unwrap();
        let inserted = store.update_events(&node, Perform::Insert, changed, &|_| true).unwrap();
        let ids = [event(3, 0).event_id(), event(3, 0).event_id()];
        // A user who may not see an event can neither change nor delete it.
        let hidden = [event(8, 0).event_id()];
        let unseen = store.delete_events(&node, &hidden, &|_| false).unwrap();
        let taken = store.update_events(&node, Perform::Update, vec![event(8, 1)], &|_| false).unwrap();
        let deleted = store.delete_events(&node, &ids, &|_| true).unwrap();
        [replaced, inserted, unseen, taken, deleted].concat()
    });
    assert_eq!(statuses[0], statuses[1]);
    use StatusCode as S;
    let expected = [
        S::GOOD_ENTRY_REPLACED,
        S::BAD_NO_ENTRY_EXISTS,
        S::BAD_ENTRY_EXISTS,
        S::GOOD_ENTRY_INSERTED,
        S::BAD_NO_ENTRY_EXISTS,
        S::BAD_ENTRY_EXISTS,
        S::GOOD,
        S::BAD_NO_ENTRY_EXISTS,
    ];
    assert_eq!(statuses[0], expected);
    for order in [Order::Forward, Order::Backward] {
        let whole = events_between(store, (2, 15), order, 1_000);
        assert_eq!(whole.len(), 42);
        for page in [1, 7, 1_000] {
            assert_eq!(events_between(store, (2, 15), order, page), whole, "{page}");
            assert_eq!(events_between(&memory, (2, 15), order, page), whole, "{page}");
        }
    }
}
