//! A subscription whose client sends Publish requests at fixed times, independent of responses.
//!
//! The client core manages its own subscriptions, so this one is created with plain requests. The server refuses
//! Publish requests beyond its limit (Bad_TooManyPublishRequests).

use super::Subscription;
use core::time::Duration;
use taktwerk_client::{Client, ClientError, OwnedReply, RequestHandle};
use taktwerk_schema::{
    CreateMonitoredItemsRequest, CreateMonitoredItemsResponse, CreateSubscriptionRequest,
    CreateSubscriptionResponse, DataChangeNotification, DeleteSubscriptionsRequest,
    MonitoredItemCreateRequest, PublishRequest, PublishResponse, SubscriptionAcknowledgement,
    TimestampsToReturn,
};
use taktwerk_server::Limits;
use taktwerk_types::{DataValue, Instant, StatusCode};

/// Timeout of Publish requests; they wait long in a full queue. The laboratory's clients have the same.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3_600);
/// Time until a subscription that could not be created is requested again.
const RETRY: Duration = Duration::from_secs(1);

/// What a response has brought.
#[derive(Debug)]
pub(super) enum Came {
    /// Nothing for the application.
    Nothing,
    /// The subscription exists, with this id.
    Created(u32),
    /// Values, with their client handles.
    Values(Vec<(u32, DataValue)>),
    /// A failure.
    Trouble(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Subscription,
    Items,
    Deletion,
}

/// The client's clock and its subscription.
#[derive(Debug)]
pub(super) struct Clock {
    every: Duration,
    /// When the next Publish request is due; `None` before the items exist.
    next_at: Option<Instant>,
    asked: Vec<(RequestHandle, Asked)>,
    id: Option<u32>,
    request: CreateSubscriptionRequest,
    items: Vec<MonitoredItemCreateRequest>,
    /// When the subscription is requested again.
    retry_at: Option<Instant>,
    acknowledgements: Vec<SubscriptionAcknowledgement>,
}

impl Clock {
    /// The clock of a subscription that has one.
    pub(super) fn of(settings: &Subscription) -> Option<Self> {
        let percent = settings.publish_every?;
        Some(Self {
            every: settings.publishing_interval * percent / 100,
            next_at: None,
            asked: Vec::new(),
            id: None,
            request: CreateSubscriptionRequest::default(),
            items: Vec::new(),
            retry_at: None,
            acknowledgements: Vec::new(),
        })
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.next_at.into_iter().chain(self.retry_at).min()
    }

    /// The connection is gone.
    pub(super) fn stop(&mut self) {
        (self.next_at, self.retry_at) = (None, None);
        self.asked.clear();
    }

    /// Creates a subscription, and then these items. An earlier one, which may still exist, is deleted before.
    pub(super) fn subscribe(
        &mut self,
        request: CreateSubscriptionRequest,
        items: Vec<MonitoredItemCreateRequest>,
        client: &mut Client,
        now: Instant,
    ) -> Result<(), ClientError> {
        self.stop();
        (self.request, self.items) = (request, items);
        self.create(client, now)
    }

    fn create(&mut self, client: &mut Client, now: Instant) -> Result<(), ClientError> {
        self.acknowledgements.clear();
        // A restored session has kept it, and it would take half of the Publish requests.
        if let Some(id) = self.id.take() {
            let mut delete = DeleteSubscriptionsRequest { subscription_ids: vec![id], ..Default::default() };
            let handle = client.request(&mut delete, None, now)?;
            self.asked.push((handle, Asked::Deletion));
        }
        let handle = client.request(&mut self.request.clone(), None, now)?;
        self.asked.push((handle, Asked::Subscription));
        Ok(())
    }

    /// Sends the requests that are due.
    pub(super) fn handle_timeout(&mut self, client: &mut Client, now: Instant) -> Result<(), ClientError> {
        if self.retry_at.take_if(|at| *at <= now).is_some() {
            self.create(client, now)?;
        }
        while let Some(at) = self.next_at.filter(|at| *at <= now) {
            self.next_at = Some(at + self.every);
            self.publish(client, now)?;
        }
        Ok(())
    }

    fn publish(&mut self, client: &mut Client, now: Instant) -> Result<(), ClientError> {
        let mut request = PublishRequest {
            subscription_acknowledgements: core::mem::take(&mut self.acknowledgements),
            ..PublishRequest::default()
        };
        client.request(&mut request, Some(TIMEOUT), now).map(|_| ())
    }

    /// Handles a response.
    pub(super) fn response(
        &mut self,
        handle: RequestHandle,
        reply: Result<OwnedReply, ClientError>,
        client: &mut Client,
        now: Instant,
    ) -> Came {
        let asked = self.asked.iter().position(|(asked, _)| *asked == handle);
        let asked = asked.map(|at| self.asked.swap_remove(at).1);
        let came = reply.and_then(|reply| match asked {
            Some(Asked::Subscription) => self.created(&reply.decode()?, client, now),
            Some(Asked::Items) => self.monitors(&reply.decode()?, client, now),
            Some(Asked::Deletion) => Ok(Came::Nothing),
            None => Ok(self.published(&reply.decode()?)),
        });
        match came {
            Ok(came) => came,
            // A clock that is faster than the server has more requests than the server keeps.
            Err(ClientError::Service { status: StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS, .. }) => {
                Came::Nothing
            }
            Err(error) => {
                if matches!(asked, Some(Asked::Subscription | Asked::Items)) {
                    self.retry_at = Some(now + RETRY);
                }
                Came::Trouble(error.to_string())
            }
        }
    }

    fn created(
        &mut self,
        response: &CreateSubscriptionResponse,
        client: &mut Client,
        now: Instant,
    ) -> Result<Came, ClientError> {
        for items in self.items.chunks(Limits::default().monitored_items_per_call_max as usize) {
            let mut request = CreateMonitoredItemsRequest {
                subscription_id: response.subscription_id,
                timestamps_to_return: TimestampsToReturn::BOTH,
                items_to_create: items.to_vec(),
                ..CreateMonitoredItemsRequest::default()
            };
            let handle = client.request(&mut request, None, now)?;
            self.asked.push((handle, Asked::Items));
        }
        self.id = Some(response.subscription_id);
        Ok(Came::Created(response.subscription_id))
    }

    fn monitors(
        &mut self,
        response: &CreateMonitoredItemsResponse,
        client: &mut Client,
        now: Instant,
    ) -> Result<Came, ClientError> {
        if let Some(bad) = response.results.iter().find(|one| one.status_code.is_bad()) {
            return Ok(Came::Trouble(format!("an item was refused: {}", bad.status_code)));
        }
        if self.asked.iter().any(|(_, asked)| *asked == Asked::Items) {
            return Ok(Came::Nothing);
        }
        // A clock that is faster than the server fills the server's queue eventually. With a full queue from the start,
        // the figures do not depend on the simulated time.
        for _ in 0..Limits::default().subscriptions.publish_requests_per_session_max {
            self.publish(client, now)?;
        }
        self.next_at = Some(now + self.every);
        Ok(Came::Nothing)
    }

    fn published(&mut self, response: &PublishResponse) -> Came {
        let message = &response.notification_message;
        // Keep-alives are not acknowledged, and an earlier subscription of the session does not count.
        if message.notification_data.is_empty() || Some(response.subscription_id) != self.id {
            return Came::Nothing;
        }
        self.acknowledgements.push(SubscriptionAcknowledgement {
            subscription_id: response.subscription_id,
            sequence_number: message.sequence_number,
        });
        let changes =
            message.notification_data.iter().flat_map(|data| data.decode::<DataChangeNotification>());
        let items = changes.flat_map(|changes| changes.monitored_items);
        Came::Values(items.map(|item| (item.client_handle, item.value)).collect())
    }
}
