//! A subscription whose client sends Publish requests at fixed times, independent of responses.
//!
//! The client core manages its own subscriptions, so this one is created with plain requests. The server refuses
//! Publish requests beyond its limit (Bad_TooManyPublishRequests).

use super::Subscription;
use core::time::Duration;
use taktwerk_client::{Client, ClientError, OwnedReply, RequestHandle};
use taktwerk_schema::{
    CreateMonitoredItemsRequest, CreateMonitoredItemsResponse, CreateSubscriptionRequest,
    CreateSubscriptionResponse, DataChangeNotification, MonitoredItemCreateRequest, PublishRequest,
    PublishResponse, SubscriptionAcknowledgement, TimestampsToReturn,
};
use taktwerk_server::Limits;
use taktwerk_types::{DataValue, Instant, StatusCode};

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
}

/// The client's clock and its subscription.
#[derive(Debug)]
pub(super) struct Clock {
    every: Duration,
    /// When the next Publish request is due; `None` before the items exist.
    next_at: Option<Instant>,
    asked: Option<(RequestHandle, Asked)>,
    id: Option<u32>,
    /// To be created when the subscription exists.
    items: Vec<MonitoredItemCreateRequest>,
    acknowledgements: Vec<SubscriptionAcknowledgement>,
}

impl Clock {
    /// The clock of a subscription that has one.
    pub(super) fn of(settings: &Subscription) -> Option<Self> {
        let percent = settings.publish_every?;
        Some(Self {
            every: settings.publishing_interval * percent / 100,
            next_at: None,
            asked: None,
            id: None,
            items: Vec::new(),
            acknowledgements: Vec::new(),
        })
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.next_at
    }

    /// The connection is gone.
    pub(super) fn stop(&mut self) {
        (self.next_at, self.asked) = (None, None);
    }

    /// Creates a subscription, and then these items.
    pub(super) fn subscribe(
        &mut self,
        mut request: CreateSubscriptionRequest,
        items: Vec<MonitoredItemCreateRequest>,
        client: &mut Client,
        now: Instant,
    ) -> Result<(), ClientError> {
        self.stop();
        (self.id, self.items) = (None, items);
        self.acknowledgements.clear();
        let handle = client.request(&mut request, None, now)?;
        self.asked = Some((handle, Asked::Subscription));
        Ok(())
    }

    /// Sends the Publish requests that are due.
    pub(super) fn handle_timeout(&mut self, client: &mut Client, now: Instant) -> Result<(), ClientError> {
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
        client.request(&mut request, None, now).map(|_| ())
    }

    /// Handles a response.
    pub(super) fn response(
        &mut self,
        handle: RequestHandle,
        reply: Result<OwnedReply, ClientError>,
        client: &mut Client,
        now: Instant,
    ) -> Came {
        let asked = self.asked.take_if(|(asked, _)| *asked == handle).map(|(_, what)| what);
        let came = reply.and_then(|reply| match asked {
            Some(Asked::Subscription) => self.created(&reply.decode()?, client, now),
            Some(Asked::Items) => self.monitors(&reply.decode()?, client, now),
            None => Ok(self.published(&reply.decode()?)),
        });
        match came {
            Ok(came) => came,
            // A clock that is faster than the server has more requests than the server keeps.
            Err(ClientError::Service { status: StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS, .. }) => {
                Came::Nothing
            }
            Err(error) => Came::Trouble(error.to_string()),
        }
    }

    fn created(
        &mut self,
        response: &CreateSubscriptionResponse,
        client: &mut Client,
        now: Instant,
    ) -> Result<Came, ClientError> {
        let mut request = CreateMonitoredItemsRequest {
            subscription_id: response.subscription_id,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_create: core::mem::take(&mut self.items),
            ..CreateMonitoredItemsRequest::default()
        };
        let handle = client.request(&mut request, None, now)?;
        self.asked = Some((handle, Asked::Items));
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
