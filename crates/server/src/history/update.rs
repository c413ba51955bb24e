//! The job of a HistoryUpdate: changes what the stores have and encodes the results.

use super::NodeHistory;
use super::event::StoredEvent;
use super::store::{HistoryValue, Modification, Perform, Sees, Span, StoreError};
use std::sync::Arc;
use taktwerk_schema::{Annotation, HistoryUpdateResult};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{ByteString, Encode, StatusCode, UtcTime};

/// [`Sees`] that goes with a job.
pub(crate) type SeesOwned = Box<dyn Fn(&StoredEvent) -> bool + Send>;

/// One operation of a HistoryUpdate.
pub(crate) struct NodeUpdate {
    /// The history to change, or why it cannot be changed.
    pub(crate) target: Result<Arc<NodeHistory>, StatusCode>,
    pub(crate) change: Change,
    /// Which events whoever asks sees at the node; they change no others.
    pub(crate) sees: Option<SeesOwned>,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Change {
    /// Values, or why one of them is not to be taken.
    Values(Perform, Vec<Result<HistoryValue, StatusCode>>),
    /// Events, which are told apart by their EventIds.
    Events(Perform, Vec<Result<StoredEvent, StatusCode>>),
    DeleteEvents(Vec<ByteString>),
    Annotations(Perform, Vec<Result<(UtcTime, Annotation), StatusCode>>),
    Delete(Span),
    DeleteModified(Span),
    DeleteAt(Vec<UtcTime>),
    /// It could not be understood.
    Nothing,
}

/// A HistoryUpdate.
pub(crate) struct UpdateJob {
    pub(crate) updates: Vec<NodeUpdate>,
    pub(crate) by: Modification,
}

impl UpdateJob {
    /// Does everything; gives the encoded results and the status of each operation.
    pub(crate) fn run(self) -> (Vec<u8>, Vec<StatusCode>) {
        let mut out = Vec::new();
        encode_len(self.updates.len(), &mut out);
        let mut statuses = Vec::with_capacity(self.updates.len());
        for update in self.updates {
            let NodeUpdate { target, change, sees } = update;
            let sees = |event: &StoredEvent| sees.as_ref().is_some_and(|sees| sees(event));
            let result = target.and_then(|target| {
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
        (out, statuses)
    }
}

impl Change {
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
            Self::Annotations(perform, values) => {
                (StatusCode::GOOD, each(values, |values| store.annotate(key, perform, values))?)
            }
            // Part 11 §6.9.5.2: nothing to delete is Good_NoData.
            Self::Delete(span) => (deleted(store.delete(key, span, by)?), Vec::new()),
            Self::DeleteModified(span) => (deleted(store.delete_modified(key, span)?), Vec::new()),
            Self::DeleteAt(times) => {
                let one = |time: UtcTime| {
                    let count = store.delete(key, Span { first: time, last: time }, by)?;
                    Ok(if count > 0 { StatusCode::GOOD } else { StatusCode::BAD_NO_ENTRY_EXISTS })
                };
                (StatusCode::GOOD, times.into_iter().map(one).collect::<Result<_, StoreError>>()?)
            }
        })
    }
}

fn deleted(count: u64) -> StatusCode {
    if count > 0 { StatusCode::GOOD } else { StatusCode::GOOD_NO_DATA }
}

/// Runs the good ones of a list, and puts the statuses of the others between theirs.
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
