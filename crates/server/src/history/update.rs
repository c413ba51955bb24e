//! The job of a HistoryUpdate: changes the stored data and encodes the results.

use super::NodeHistory;
use super::event::StoredEvent;
use super::store::{HistoryValue, Modification, Order, Perform, ReadLimit, Sees, Span, StoreError};
use crate::account::HeapSize;
use std::sync::Arc;
use taktwerk_schema::{Annotation, HistoryUpdateResult};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{ByteString, Encode, StatusCode, UtcTime};

/// Most values or events of an operation that are changed together. In between, others can use the store: a transaction for half a
/// million values would keep the recorder and readers waiting.
const CHANGED_AT_ONCE: usize = 1_000;
/// Values and bytes that are read before an operation for the audit.
const OLD_VALUES_MAX: usize = 16;
const OLD_BYTES_MAX: usize = 64 << 10;

/// An owned [`Sees`], for a job.
pub(crate) type SeesOwned = Box<dyn Fn(&StoredEvent) -> bool + Send>;

/// One operation of a HistoryUpdate.
pub(crate) struct NodeUpdate {
    /// The history to change, or why it cannot be changed.
    pub(crate) target: Result<Arc<NodeHistory>, StatusCode>,
    pub(crate) change: Change,
    /// Which events the client may see at the node; it cannot change others.
    pub(crate) sees: Option<SeesOwned>,
}

/// The change.
#[derive(Debug)]
pub(crate) enum Change {
    /// Values, or the reason for refusing one.
    Values(Perform, Vec<Result<HistoryValue, StatusCode>>),
    /// Events, identified by their EventIds.
    Events(Perform, Vec<Result<StoredEvent, StatusCode>>),
    DeleteEvents(Vec<ByteString>),
    Annotations(Perform, Vec<Result<(UtcTime, Annotation), StatusCode>>),
    Delete(Span),
    DeleteModified(Span),
    DeleteAt(Vec<UtcTime>),
    /// The details are invalid.
    Nothing,
}

impl HeapSize for Change {
    fn heap_size(&self) -> usize {
        match self {
            Self::Values(_, values) => values.heap_size(),
            Self::Events(_, events) => events.heap_size(),
            Self::DeleteEvents(ids) => ids.heap_size(),
            Self::Annotations(_, annotations) => annotations.heap_size(),
            Self::DeleteAt(times) => times.heap_size(),
            Self::Delete(_) | Self::DeleteModified(_) | Self::Nothing => 0,
        }
    }
}

/// A HistoryUpdate.
pub(crate) struct UpdateJob {
    pub(crate) updates: Vec<NodeUpdate>,
    pub(crate) by: Modification,
    /// Read previous values for the audit.
    pub(crate) is_noted: bool,
}

/// The results of an [`UpdateJob`].
pub(crate) struct Updated {
    /// The encoded results.
    pub(crate) encoded: Vec<u8>,
    /// The status of each operation.
    pub(crate) statuses: Vec<StatusCode>,
    /// For the audit, for each operation: some of the values before it.
    pub(crate) old: Vec<Vec<HistoryValue>>,
}

impl UpdateJob {
    /// Executes all operations.
    pub(crate) fn run(self) -> Updated {
        let mut out = Vec::new();
        let mut old = Vec::new();
        encode_len(self.updates.len(), &mut out);
        let mut statuses = Vec::with_capacity(self.updates.len());
        for update in self.updates {
            let NodeUpdate { target, change, sees } = update;
            let sees = |event: &StoredEvent| sees.as_ref().is_some_and(|sees| sees(event));
            let is_noted = self.is_noted;
            let result = target.and_then(|target| {
                if is_noted {
                    old.resize_with(statuses.len(), Vec::new);
                    old.push(change.old_values(&target));
                }
                change.run(&target, &self.by, &sees).map_err(|error| {
                    tracing::warn!(node = &*target.key, %error, "history cannot be changed");
                    error.status
                })
            });
            let result = match result {
                Ok((status_code, operation_results)) => {
                    HistoryUpdateResult { status_code, operation_results, ..Default::default() }
                }
                Err(status_code) => HistoryUpdateResult { status_code, ..Default::default() },
            };
            statuses.push(result.status_code);
            result.encode(&mut out);
        }
        // There are no diagnostics.
        encode_len(0, &mut out);
        old.resize_with(statuses.len(), Vec::new);
        Updated { encoded: out, statuses, old }
    }
}

impl Change {
    /// Whether it is a change of what the node has: values, or annotations of an Annotations Property.
    ///
    /// # Errors
    /// Bad_HistoryOperationUnsupported.
    pub(crate) fn check(&self, target: &NodeHistory) -> Result<(), StatusCode> {
        let is_supported = match self {
            Self::Annotations(..) => target.store.capabilities().annotations,
            _ => target.annotates.is_none(),
        };
        if is_supported { Ok(()) } else { Err(StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED) }
    }

    /// Some of the values that will be replaced or deleted. Values that cannot be read are left out.
    fn old_values(&self, target: &NodeHistory) -> Vec<HistoryValue> {
        let limit = ReadLimit { count: OLD_VALUES_MAX, bytes: OLD_BYTES_MAX };
        let mut old = Vec::new();
        let mut read = |span: Span| {
            let limit = limit.behind(&old);
            if !limit.is_reached() {
                let _ = target.store.read(&target.key, span, Order::Forward, limit, &mut old);
            }
        };
        let at = |time: UtcTime| Span { first: time, last: time };
        match self {
            Self::Values(_, values) => {
                let times = values.iter().take(OLD_VALUES_MAX).flatten().map(|value| value.source);
                times.for_each(|time| read(at(time)));
            }
            Self::DeleteAt(times) => times.iter().take(OLD_VALUES_MAX).for_each(|time| read(at(*time))),
            Self::Delete(span) => read(*span),
            _ => {}
        }
        old
    }

    fn run(
        self,
        target: &NodeHistory,
        by: &Modification,
        sees: Sees<'_>,
    ) -> Result<(StatusCode, Vec<StatusCode>), StoreError> {
        let (store, key) = (&target.store, &target.key);
        Ok(match self {
            Self::Nothing => (StatusCode::BAD_HISTORY_OPERATION_INVALID, Vec::new()),
            Self::Values(perform, values) => {
                // In order of time: a store that keeps values in chunks then changes each chunk in one or two parts.
                let time = |value: &HistoryValue| value.source;
                (StatusCode::GOOD, each(values, time, |values| store.update(key, perform, values, by))?)
            }
            Self::Events(perform, events) => {
                let change = |events| store.update_events(key, perform, events, sees);
                (StatusCode::GOOD, each(events, |_| (), change)?)
            }
            Self::DeleteEvents(ids) => {
                (StatusCode::GOOD, in_parts(ids, |ids| store.delete_events(key, &ids, sees))?)
            }
            Self::Annotations(perform, mut values) => {
                if matches!(perform, Perform::Insert | Perform::Update) {
                    values.iter_mut().flatten().for_each(|(_, annotation)| complete(annotation, by));
                }
                (StatusCode::GOOD, each(values, |_| (), |values| store.annotate(key, perform, values))?)
            }
            // Part 11 §6.9.5.2: nothing to delete is Good_NoData.
            Self::Delete(span) => (deleted(store.delete(key, span, by)?), Vec::new()),
            Self::DeleteModified(span) => (deleted(store.delete_modified(key, span)?), Vec::new()),
            Self::DeleteAt(times) => {
                let status = |is_found: bool| {
                    if is_found { StatusCode::GOOD } else { StatusCode::BAD_NO_ENTRY_EXISTS }
                };
                let delete = |times: Vec<UtcTime>| {
                    Ok(store.delete_at(key, &times, by)?.into_iter().map(status).collect())
                };
                (StatusCode::GOOD, in_parts(times, delete)?)
            }
        })
    }
}

/// Adds the user, and the time if it has none. The user is the one known to the server (Part 11 §6.6.6): nobody writes in
/// the name of another one. Anonymous clients may name somebody.
fn complete(annotation: &mut Annotation, by: &Modification) {
    if !by.user.is_empty() {
        annotation.user_name = (&*by.user).into();
    }
    if annotation.annotation_time.is_null() {
        annotation.annotation_time = by.time;
    }
}

fn deleted(count: u64) -> StatusCode {
    if count > 0 { StatusCode::GOOD } else { StatusCode::GOOD_NO_DATA }
}

/// Executes the valid entries of a list in the order of a key, and merges in the statuses of the others. Entries with the same key
/// stay in order.
fn each<T, K: Ord>(
    all: Vec<Result<T, StatusCode>>,
    key: impl Fn(&T) -> K,
    run: impl FnMut(Vec<T>) -> Result<Vec<StatusCode>, StoreError>,
) -> Result<Vec<StatusCode>, StoreError> {
    let mut statuses = Vec::with_capacity(all.len());
    let mut good = Vec::with_capacity(all.len());
    for (at, one) in all.into_iter().enumerate() {
        statuses.push(one.as_ref().err().copied().unwrap_or(StatusCode::BAD_INTERNAL_ERROR));
        good.extend(one.ok().map(|one| (at, one)));
    }
    good.sort_by_key(|(_, one)| key(one));
    let (places, good): (Vec<usize>, Vec<T>) = good.into_iter().unzip();
    for (at, status) in places.into_iter().zip(in_parts(good, run)?) {
        if let Some(place) = statuses.get_mut(at) {
            *place = status;
        }
    }
    Ok(statuses)
}

/// Executes a list in parts. If a part fails, the entries of this and of later parts have its status.
///
/// # Errors
/// The first part failed: nothing was changed.
fn in_parts<T>(
    all: Vec<T>,
    mut run: impl FnMut(Vec<T>) -> Result<Vec<StatusCode>, StoreError>,
) -> Result<Vec<StatusCode>, StoreError> {
    let count = all.len();
    let mut statuses = Vec::with_capacity(count);
    let mut all = all.into_iter();
    loop {
        let part: Vec<T> = all.by_ref().take(CHANGED_AT_ONCE).collect();
        if part.is_empty() {
            return Ok(statuses);
        }
        let end = statuses.len() + part.len();
        match run(part) {
            Ok(results) => statuses.extend(results),
            Err(error) if statuses.is_empty() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, changed = statuses.len(), of = count, "history: only a part is changed");
                statuses.resize(count, error.status);
                return Ok(statuses);
            }
        }
        statuses.resize(end, StatusCode::BAD_INTERNAL_ERROR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::HistoryUpdateType;

    #[test]
    fn an_annotation_has_the_user_that_the_server_knows() {
        for (user, expected) in [("olaf", "olaf"), ("", "admin")] {
            let by = Modification {
                time: UtcTime::from_ticks(7),
                kind: HistoryUpdateType::UPDATE,
                user: user.into(),
            };
            let mut annotation = Annotation { user_name: "admin".into(), ..Annotation::default() };
            complete(&mut annotation, &by);
            assert_eq!((annotation.user_name.as_str(), annotation.annotation_time), (expected, by.time));
        }
    }

    #[test]
    fn a_long_list_is_changed_in_parts_and_results_stay_in_place() {
        let mut parts = Vec::new();
        // Falling times, and one entry that is refused.
        let mut all: Vec<Result<i64, StatusCode>> = (0..2_500).rev().map(Ok).collect();
        all.insert(1, Err(StatusCode::BAD_INVALID_TIMESTAMP));
        let run = |part: Vec<i64>| {
            parts.push((part[0], part.len()));
            Ok(part.iter().map(|time| StatusCode(*time as u32)).collect())
        };
        let results = each(all, |time| *time, run).unwrap();
        assert_eq!(parts, [(0, 1_000), (1_000, 1_000), (2_000, 500)]);
        assert_eq!(results[..3], [StatusCode(2_499), StatusCode::BAD_INVALID_TIMESTAMP, StatusCode(2_498)]);
        assert_eq!(results.len(), 2_501);
        assert_eq!(results[2_500], StatusCode(0));
    }

    #[test]
    fn a_part_that_fails_is_not_done_and_those_before_are() {
        let run = |fails_from: usize| {
            move |part: Vec<usize>| match part[0] {
                first if first >= fails_from => Err(StoreError::unavailable("full")),
                _ => Ok(vec![StatusCode::GOOD_ENTRY_INSERTED; part.len()]),
            }
        };
        let all = || (0..3_000).collect::<Vec<_>>();
        assert!(in_parts(all(), run(0)).is_err());
        let results = in_parts(all(), run(1_000)).unwrap();
        assert!(results[..1_000].iter().all(|status| *status == StatusCode::GOOD_ENTRY_INSERTED));
        assert_eq!(results[1_000..], [StatusCode::BAD_RESOURCE_UNAVAILABLE; 2_000]);
    }
}
