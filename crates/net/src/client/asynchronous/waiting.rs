//! Calls that wait for a change of a subscription: items created, settings changed, subscription deleted.

use std::collections::BTreeMap;
use taktwerk_client::{ClientError, ItemResult, SubscriptionEvent, SubscriptionHandle};
use tokio::sync::oneshot;

/// Where the result of a call is sent.
pub(super) type Answer<T> = oneshot::Sender<Result<T, ClientError>>;

/// What a call waits for, other than items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// CreateSubscription.
    Create,
    /// ModifySubscription.
    Modify,
    /// SetPublishingMode.
    Publishing,
    /// DeleteSubscriptions.
    Delete,
}

/// Items that a call is waiting for.
#[derive(Debug)]
struct Creating {
    subscription: SubscriptionHandle,
    /// Position of each client handle's result in the answer.
    places: BTreeMap<u32, usize>,
    results: Vec<Option<ItemResult>>,
    answer: Answer<Vec<ItemResult>>,
}

/// The waiting calls of a client.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    items: Vec<Creating>,
    /// In the order in which they were made.
    changes: Vec<(SubscriptionHandle, Change, Answer<()>)>,
}

impl Waiting {
    /// Registers a call that waits for items with these client handles.
    pub(super) fn items(
        &mut self,
        subscription: SubscriptionHandle,
        client_handles: impl Iterator<Item = u32>,
        answer: Answer<Vec<ItemResult>>,
    ) {
        let places: BTreeMap<u32, usize> = client_handles.zip(0..).collect();
        let results = vec![None; places.len()];
        self.items.push(Creating { subscription, places, results, answer });
        self.items.retain(|creating| !creating.answer.is_closed());
    }

    /// Registers a call that waits for a change.
    pub(super) fn change(&mut self, subscription: SubscriptionHandle, change: Change, answer: Answer<()>) {
        self.changes.retain(|(.., answer)| !answer.is_closed());
        self.changes.push((subscription, change, answer));
    }

    /// Completes the calls that an event answers. Returns what is also delivered to the stream.
    pub(super) fn take(
        &mut self,
        subscription: SubscriptionHandle,
        event: SubscriptionEvent,
    ) -> Option<SubscriptionEvent> {
        match event {
            SubscriptionEvent::Items(ref results) => {
                results.iter().for_each(|result| self.created(subscription, result));
                self.answer_items();
            }
            SubscriptionEvent::Created { .. } if self.answer(subscription, Change::Create, &Ok(())) => {
                return None;
            }
            SubscriptionEvent::Modified { .. } => _ = self.answer(subscription, Change::Modify, &Ok(())),
            SubscriptionEvent::PublishingModeSet(_) => {
                self.answer(subscription, Change::Publishing, &Ok(()));
            }
            SubscriptionEvent::ModifyFailed(ref error) => {
                let which = match error {
                    ClientError::Service { service: "SetPublishingMode", .. }
                    | ClientError::Timeout("SetPublishingMode") => Change::Publishing,
                    _ => Change::Modify,
                };
                self.answer(subscription, which, &Err(error.clone()));
            }
            SubscriptionEvent::CreateFailed(ref error) => self.fail(subscription, error),
            SubscriptionEvent::Deleted | SubscriptionEvent::Ended(_) => {
                self.answer(subscription, Change::Delete, &Ok(()));
                let gone = taktwerk_client::Misuse::NoSuchSubscription.into();
                self.fail(subscription, &gone);
            }
            _ => {}
        }
        Some(event)
    }

    /// Stores the result of an item.
    fn created(&mut self, subscription: SubscriptionHandle, result: &ItemResult) {
        for creating in self.items.iter_mut().filter(|creating| creating.subscription == subscription) {
            let place = creating.places.remove(&result.client_handle);
            if let Some(place) = place.and_then(|place| creating.results.get_mut(place)) {
                *place = Some(result.clone());
            }
        }
    }

    /// Answers the calls whose items all have a result.
    fn answer_items(&mut self) {
        for creating in self.items.extract_if(.., |creating| creating.places.is_empty()) {
            // The caller may have given up.
            let _ = creating.answer.send(Ok(creating.results.into_iter().flatten().collect()));
        }
    }

    /// Answers the first call that waits for a change. False if there is none.
    fn answer(
        &mut self,
        subscription: SubscriptionHandle,
        change: Change,
        result: &Result<(), ClientError>,
    ) -> bool {
        let at = self.changes.iter().position(|(of, wanted, _)| *of == subscription && *wanted == change);
        if let Some(at) = at {
            let (.., answer) = self.changes.remove(at);
            // The caller may have given up.
            let _ = answer.send(result.clone());
        }
        at.is_some()
    }

    /// Ends all calls about a subscription.
    fn fail(&mut self, subscription: SubscriptionHandle, error: &ClientError) {
        for creating in self.items.extract_if(.., |creating| creating.subscription == subscription) {
            let _ = creating.answer.send(Err(error.clone()));
        }
        for (.., answer) in self.changes.extract_if(.., |(of, ..)| *of == subscription) {
            let _ = answer.send(Err(error.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::{ExtensionObject, NodeId, StatusCode};

    fn result(client_handle: u32) -> ItemResult {
        ItemResult {
            client_handle,
            node_id: NodeId::numeric(1, client_handle),
            status: StatusCode::GOOD,
            monitored_item_id: 1,
            revised_sampling_interval_ms: 0.0,
            revised_queue_size: 1,
            filter_result: ExtensionObject::NULL,
        }
    }

    #[test]
    fn two_calls_get_their_own_items() {
        let (one, other) = (SubscriptionHandle(1), SubscriptionHandle(2));
        let mut waiting = Waiting::default();
        let (first, mut first_told) = oneshot::channel();
        let (second, mut second_told) = oneshot::channel();
        let (elsewhere, mut elsewhere_told) = oneshot::channel();
        waiting.items(one, [5, 6].into_iter(), first);
        waiting.items(one, [7].into_iter(), second);
        waiting.items(other, [5].into_iter(), elsewhere);
        // 7 and 9 come in one message with half of what the first call waits for.
        let both = SubscriptionEvent::Items(vec![result(9), result(6), result(7)]);
        assert_eq!(waiting.take(one, both.clone()), Some(both));
        assert_eq!(second_told.try_recv().unwrap().unwrap(), [result(7)]);
        assert!(first_told.try_recv().is_err());
        waiting.take(one, SubscriptionEvent::Items(vec![result(5)]));
        assert_eq!(
            first_told.try_recv().unwrap().unwrap(),
            [result(5), result(6)],
            "in the order of the call"
        );
        assert!(waiting.take(other, SubscriptionEvent::Ended(StatusCode::BAD_TIMEOUT)).is_some());
        assert!(elsewhere_told.try_recv().unwrap().is_err());
        assert!(waiting.items.is_empty());
    }
}
