//! The job of a HistoryUpdate: changes the stored data and encodes the results.

use super::NodeHistory;
use super::event::StoredEvent;
use super::store::{HistoryValue, Modification, Order, Perform, ReadLimit, Sees, Span, StoreError};
use std::sync::Arc;
use taktwerk_schema::{Annotation, HistoryUpdateResult};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{ByteString, Encode, StatusCode, UtcTime};

/// Values deleted together by DeleteAtTime.
const DELETED_AT_ONCE: usize = 500;
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
                (StatusCode::GOOD, each(values, |values| store.update(key, perform, values, by))?)
            }
            Self::Events(perform, events) => {
                (StatusCode::GOOD, each(events, |events| store.update_events(key, perform, events, sees))?)
            }
            Self::DeleteEvents(ids) => (StatusCode::GOOD, store.delete_events(key, &ids, sees)?),
            Self::Annotations(perform, mut values) => {
                if matches!(perform, Perform::Insert | Perform::Update) {
                    values.iter_mut().flatten().for_each(|(_, annotation)| complete(annotation, by));
                }
                (StatusCode::GOOD, each(values, |values| store.annotate(key, perform, values))?)
            }
            // Part 11 §6.9.5.2: nothing to delete is Good_NoData.
            Self::Delete(span) => (deleted(store.delete(key, span, by)?), Vec::new()),
            Self::DeleteModified(span) => (deleted(store.delete_modified(key, span)?), Vec::new()),
            Self::DeleteAt(times) => {
                let mut results = Vec::with_capacity(times.len());
                // In parts, so that others can use the store in between.
                for times in times.chunks(DELETED_AT_ONCE) {
                    let found = store.delete_at(key, times, by)?;
                    let none = StatusCode::BAD_NO_ENTRY_EXISTS;
                    results.extend(
                        found.into_iter().map(|is_found| if is_found { StatusCode::GOOD } else { none }),
                    );
                }
                (StatusCode::GOOD, results)
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

/// Executes the valid entries of a list and merges in the statuses of the others.
fn each<T>(
    values: Vec<Result<T, StatusCode>>,
    run: impl FnOnce(Vec<T>) -> Result<Vec<StatusCode>, StoreError>,
) -> Result<Vec<StatusCode>, StoreError> {
    let mut refused = Vec::with_capacity(values.len());
    let mut good = Vec::with_capacity(values.len());
    for value in values {
        match value {
            Ok(value) => {
                good.push(value);
                refused.push(None);
            }
            Err(status) => refused.push(Some(status)),
        }
    }
    let mut results = if good.is_empty() { Vec::new() } else { run(good)? }.into_iter();
    let result = |refused: Option<StatusCode>| {
        refused.unwrap_or_else(|| results.next().unwrap_or(StatusCode::BAD_INTERNAL_ERROR))
    };
    Ok(refused.into_iter().map(result).collect())
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
}
