//! One session's stream of Publish responses. The check decides on each Publish request, acknowledgement and sequence number. The
//! library's own subscriptions are checked elsewhere.

use crate::session::{Fault, Session};
use std::time::Duration;
use taktwerk::schema::{
    CreateSubscriptionRequest, CreateSubscriptionResponse, DataChangeNotification, PublishRequest,
    PublishResponse, StatusChangeNotification, SubscriptionAcknowledgement,
};
use taktwerk::types::{DataValue, StatusCode};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// The client handles of the items, which are also their indexes in [`Feed::items`].
pub(crate) const COUNTER: usize = 0;
pub(crate) const ABSOLUTE: usize = 1;
pub(crate) const PERCENT: usize = 2;
pub(crate) const PLAIN: usize = 3;
pub(crate) const CLOCK: usize = 4;
pub(crate) const ANSWER: usize = 5;
pub(crate) const UNKNOWN: usize = 6;
pub(crate) const ITEMS: usize = 7;

/// Publish requests queued at the server.
const OUTSTANDING: usize = 3;

/// Notifications of an item.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) count: usize,
    pub(crate) values: Vec<DataValue>,
    /// The server's id.
    pub(crate) id: u32,
}

impl Watch {
    pub(crate) fn last_f64(&self) -> Option<f64> {
        self.values.last()?.value.as_ref()?.as_f64()
    }
}

/// One session's stream of Publish responses.
pub(crate) struct Feed {
    pub(crate) session: Session,
    pub(crate) subscription: u32,
    publishes: JoinSet<Result<PublishResponse, Fault>>,
    pub(crate) acknowledgements: Vec<SubscriptionAcknowledgement>,
    /// Do not acknowledge notifications.
    pub(crate) holds: bool,
    pub(crate) messages: usize,
    pub(crate) keep_alives: usize,
    pub(crate) last_sequence: u32,
    /// The server has reported that the subscription was transferred to another session.
    pub(crate) is_transferred: bool,
    pub(crate) error: Option<StatusCode>,
    pub(crate) items: [Watch; ITEMS],
}

impl Feed {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            session,
            subscription: 0,
            publishes: JoinSet::new(),
            acknowledgements: Vec::new(),
            holds: false,
            messages: 0,
            keep_alives: 0,
            last_sequence: 0,
            is_transferred: false,
            error: None,
            items: Default::default(),
        }
    }

    pub(crate) async fn create(&mut self, interval_ms: f64) -> Result<CreateSubscriptionResponse, Fault> {
        let request = CreateSubscriptionRequest {
            requested_publishing_interval: interval_ms,
            requested_lifetime_count: 600,
            requested_max_keep_alive_count: 5,
            publishing_enabled: true,
            ..CreateSubscriptionRequest::default()
        };
        let response = self.session.request(request).await?;
        self.subscription = response.subscription_id;
        Ok(response)
    }

    pub(crate) fn send_publish(&mut self) {
        let request = PublishRequest {
            subscription_acknowledgements: std::mem::take(&mut self.acknowledgements),
            ..PublishRequest::default()
        };
        let session = self.session.clone();
        self.publishes.spawn(async move { session.request(request).await });
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.publishes.len()
    }

    /// Queues Publish requests at the server without processing answers.
    pub(crate) fn fill(&mut self) {
        while self.publishes.len() < OUTSTANDING {
            self.send_publish();
        }
    }

    /// Publishes for `millis` milliseconds.
    pub(crate) async fn pump(&mut self, millis: u64) {
        self.pump_until(millis, |_| false).await;
    }

    /// Publishes for `millis` milliseconds, or until `enough` says so.
    pub(crate) async fn pump_until(&mut self, millis: u64, enough: impl Fn(&Self) -> bool) -> bool {
        let deadline = Instant::now() + Duration::from_millis(millis);
        while !enough(self) {
            self.fill();
            if !self.take_one(deadline).await {
                return false;
            }
        }
        true
    }

    /// Processes one answer, if it arrives in time.
    pub(crate) async fn take_one(&mut self, deadline: Instant) -> bool {
        match timeout_at(deadline, self.publishes.join_next()).await {
            Ok(Some(Ok(Ok(response)))) => self.take(response),
            Ok(Some(Ok(Err(fault)))) => {
                self.error = Some(fault.status);
                // Do not flood a server that refuses immediately.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok(Some(Err(_)) | None) | Err(_) => return false,
        }
        true
    }

    fn take(&mut self, response: PublishResponse) {
        let message = response.notification_message;
        if message.notification_data.is_empty() {
            self.keep_alives += 1;
            return;
        }
        self.messages += 1;
        self.last_sequence = message.sequence_number;
        if !self.holds {
            self.acknowledgements.push(SubscriptionAcknowledgement {
                subscription_id: response.subscription_id,
                sequence_number: message.sequence_number,
            });
        }
        for data in &message.notification_data {
            if let Ok(changes) = data.decode::<DataChangeNotification>() {
                for change in changes.monitored_items {
                    if let Some(item) = self.items.get_mut(change.client_handle as usize) {
                        item.count += 1;
                        item.values.push(change.value);
                    }
                }
            } else if let Ok(change) = data.decode::<StatusChangeNotification>() {
                self.is_transferred |= change.status == StatusCode::GOOD_SUBSCRIPTION_TRANSFERRED;
            }
        }
    }

    /// Notifications of an item within `millis` after the end of the current cycle.
    pub(crate) async fn received_in(&mut self, item: usize, millis: u64) -> usize {
        self.pump(400).await;
        let before = self.items[item].count;
        self.pump(millis).await;
        self.items[item].count - before
    }
}
