//! Brings the server's subscriptions and items in line with what the application wants.

use crate::client::Client;
use crate::error::{ClientError, Misuse};
use crate::event::{Event, Sink, SubscriptionEvent};
use crate::link::Answer;
use crate::outstanding::Purpose;
use crate::split::BatchOwner;
use crate::subscription::{
    Item, ItemResult, ItemState, State, Subscription, SubscriptionHandle, SubscriptionParams,
};
use core::any::Any;
use taktwerk_schema::ids::{method_ids, object_ids};
use taktwerk_schema::{
    CallMethodRequest, CallRequest, CallResponse, CreateMonitoredItemsRequest, CreateMonitoredItemsResponse,
    CreateSubscriptionRequest, CreateSubscriptionResponse, DeleteMonitoredItemsRequest,
    DeleteSubscriptionsRequest, ModifySubscriptionRequest, ModifySubscriptionResponse,
    MonitoredItemCreateRequest, MonitoringMode, SetMonitoringModeRequest,
};
use taktwerk_types::{ArrayValues, Instant, NodeId, StatusCode, Variant};

impl Client {
    /// Adds a subscription. It is created when there is a session, and again whenever the server loses it. What becomes
    /// of it is told through [`SubscriptionEvent`].
    pub fn create_subscription(&mut self, params: SubscriptionParams, now: Instant) -> SubscriptionHandle {
        self.next_subscription = self.next_subscription.wrapping_add(1);
        let handle = SubscriptionHandle(self.next_subscription);
        self.subscriptions.push(Subscription::new(handle, params));
        self.pump(now);
        handle
    }

    /// Adds items. The client handle in each request is the application's choice; it names the item in notifications,
    /// whatever happens to the connection. An item with a known handle replaces the old one once that is deleted.
    ///
    /// # Errors
    /// [`Misuse::NoSuchSubscription`].
    pub fn add_items(
        &mut self,
        subscription: SubscriptionHandle,
        items: impl IntoIterator<Item = MonitoredItemCreateRequest>,
        now: Instant,
    ) -> Result<(), Misuse> {
        let known = self.subscription(subscription).ok_or(Misuse::NoSuchSubscription)?;
        let mut replaced = Vec::new();
        for request in items {
            let handle = request.requested_parameters.client_handle;
            if let Some(Item { state: ItemState::Live(id), .. }) =
                known.items.insert(handle, Item { request, state: ItemState::Wanted })
            {
                replaced.push(id);
            }
            known.wanted.push(handle);
        }
        self.delete_on_server(subscription, replaced);
        self.pump(now);
        Ok(())
    }

    /// Removes items by their client handles; unknown ones are left out.
    ///
    /// # Errors
    /// [`Misuse::NoSuchSubscription`].
    pub fn remove_items(
        &mut self,
        subscription: SubscriptionHandle,
        client_handles: &[u32],
        now: Instant,
    ) -> Result<(), Misuse> {
        let known = self.subscription(subscription).ok_or(Misuse::NoSuchSubscription)?;
        let removed = client_handles.iter().filter_map(|handle| known.items.remove(handle));
        let ids = removed.filter_map(|item| match item.state {
            ItemState::Live(id) => Some(id),
            ItemState::Wanted | ItemState::Creating | ItemState::Failed => None,
        });
        let ids: Vec<u32> = ids.collect();
        self.delete_on_server(subscription, ids);
        self.pump(now);
        Ok(())
    }

    /// Changes the monitoring mode of items, now and whenever they are created anew.
    ///
    /// # Errors
    /// [`Misuse::NoSuchSubscription`].
    pub fn set_monitoring_mode(
        &mut self,
        subscription: SubscriptionHandle,
        client_handles: &[u32],
        mode: MonitoringMode,
        now: Instant,
    ) -> Result<(), Misuse> {
        let known = self.subscription(subscription).ok_or(Misuse::NoSuchSubscription)?;
        let mut ids = Vec::new();
        for handle in client_handles {
            if let Some(item) = known.items.get_mut(handle) {
                item.request.monitoring_mode = mode;
                if let ItemState::Live(id) = item.state {
                    ids.push(id);
                }
            }
        }
        let subscription_id = known.server_id;
        if !ids.is_empty() {
            let request = SetMonitoringModeRequest {
                subscription_id,
                monitoring_mode: mode,
                monitored_item_ids: ids,
                ..SetMonitoringModeRequest::default()
            };
            self.start_batch(request, BatchOwner::Ignore);
        }
        self.pump(now);
        Ok(())
    }

    fn delete_on_server(&mut self, subscription: SubscriptionHandle, monitored_item_ids: Vec<u32>) {
        let Some(known) = self.subscription(subscription).filter(|known| known.is_live()) else { return };
        if monitored_item_ids.is_empty() {
            return;
        }
        let subscription_id = known.server_id;
        let request = DeleteMonitoredItemsRequest {
            subscription_id,
            monitored_item_ids,
            ..DeleteMonitoredItemsRequest::default()
        };
        self.start_batch(request, BatchOwner::Deleted(subscription));
    }

    /// Changes what is asked of a subscription. The timestamps apply to items that are created from now on.
    ///
    /// # Errors
    /// [`Misuse::NoSuchSubscription`].
    pub fn modify_subscription(
        &mut self,
        subscription: SubscriptionHandle,
        params: SubscriptionParams,
        now: Instant,
    ) -> Result<(), Misuse> {
        let known = self.subscription(subscription).ok_or(Misuse::NoSuchSubscription)?;
        let publishing_changed = known.params.publishing_enabled != params.publishing_enabled;
        known.params = params.clone();
        let (subscription_id, live) = (known.server_id, known.is_live());
        if !live {
            return Ok(());
        }
        let timeout = Some(self.config.request_timeout);
        let mut request = ModifySubscriptionRequest {
            subscription_id,
            requested_publishing_interval: params.publishing_interval_ms,
            requested_lifetime_count: params.lifetime_count,
            requested_max_keep_alive_count: params.keep_alive_count,
            max_notifications_per_publish: params.notifications_max,
            priority: params.priority,
            ..ModifySubscriptionRequest::default()
        };
        let handle = self.link.next_handle();
        // If the connection is gone, the new values count when the subscription is created anew.
        let _ = self.link.send(&mut request, handle, Purpose::ModifySubscription(subscription), timeout, now);
        if publishing_changed {
            let mut request = taktwerk_schema::SetPublishingModeRequest {
                publishing_enabled: params.publishing_enabled,
                subscription_ids: vec![subscription_id],
                ..Default::default()
            };
            let handle = self.link.next_handle();
            let _ = self.link.send(&mut request, handle, Purpose::Ignore, timeout, now);
        }
        Ok(())
    }

    /// Deletes a subscription. [`SubscriptionEvent::Deleted`] follows, unless it never existed on the server.
    ///
    /// # Errors
    /// [`Misuse::NoSuchSubscription`].
    pub fn delete_subscription(
        &mut self,
        subscription: SubscriptionHandle,
        now: Instant,
    ) -> Result<(), Misuse> {
        let known = self.subscription(subscription).ok_or(Misuse::NoSuchSubscription)?;
        match known.state {
            State::Live | State::Recovering => known.state = State::Deleting,
            State::Wanted | State::Failed => self.subscriptions.retain(|known| known.handle != subscription),
            // Deleted when its id is known.
            State::Creating => known.delete_when_created = true,
            State::Deleting => {}
        }
        self.pump(now);
        Ok(())
    }

    /// The server's id of a subscription, if it exists there.
    #[must_use]
    pub fn subscription_id(&self, subscription: SubscriptionHandle) -> Option<u32> {
        let known = self.subscriptions.iter().find(|known| known.handle == subscription)?;
        known.is_live().then_some(known.server_id)
    }

    /// The server's id of an item, if it exists there.
    #[must_use]
    pub fn monitored_item_id(&self, subscription: SubscriptionHandle, client_handle: u32) -> Option<u32> {
        let known = self.subscriptions.iter().find(|known| known.handle == subscription)?;
        match known.items.get(&client_handle)?.state {
            ItemState::Live(id) => Some(id),
            ItemState::Wanted | ItemState::Creating | ItemState::Failed => None,
        }
    }

    /// Sends what is missing on the server.
    pub(crate) fn sync_subscriptions(&mut self, now: Instant) {
        for at in 0..self.subscriptions.len() {
            let Some(known) = self.subscriptions.get_mut(at) else { break };
            match known.state {
                State::Wanted => self.send_create(at, now),
                State::Deleting => self.send_delete(at, now),
                State::Live if known.audit => self.send_audit(at, now),
                State::Live => {
                    let wanted = known.take_wanted();
                    if wanted.is_empty() {
                        continue;
                    }
                    let handles = wanted.iter().map(|item| item.requested_parameters.client_handle).collect();
                    let request = CreateMonitoredItemsRequest {
                        subscription_id: known.server_id,
                        timestamps_to_return: known.params.timestamps,
                        items_to_create: wanted,
                        ..CreateMonitoredItemsRequest::default()
                    };
                    let owner =
                        BatchOwner::Items { subscription: known.handle, server_id: known.server_id, handles };
                    self.start_batch(request, owner);
                }
                State::Creating | State::Failed | State::Recovering => {}
            }
        }
    }

    fn send_create(&mut self, at: usize, now: Instant) {
        let handle = self.link.next_handle();
        let timeout = Some(self.config.request_timeout);
        let Some(known) = self.subscriptions.get_mut(at) else { return };
        let params = &known.params;
        let mut request = CreateSubscriptionRequest {
            requested_publishing_interval: params.publishing_interval_ms,
            requested_lifetime_count: params.lifetime_count,
            requested_max_keep_alive_count: params.keep_alive_count,
            max_notifications_per_publish: params.notifications_max,
            publishing_enabled: params.publishing_enabled,
            priority: params.priority,
            ..CreateSubscriptionRequest::default()
        };
        let purpose = Purpose::CreateSubscription(known.handle);
        if self.link.send(&mut request, handle, purpose, timeout, now).is_ok() {
            known.state = State::Creating;
        }
    }

    fn send_delete(&mut self, at: usize, now: Instant) {
        let handle = self.link.next_handle();
        let timeout = Some(self.config.request_timeout);
        let Some(known) = self.subscriptions.get_mut(at) else { return };
        let purpose = Purpose::DeleteSubscription(known.handle);
        if self.link.outstanding.has(|outstanding| outstanding == purpose) {
            return;
        }
        let mut request =
            DeleteSubscriptionsRequest { subscription_ids: vec![known.server_id], ..Default::default() };
        // If it cannot be sent, it is tried again when the connection is back.
        let _ = self.link.send(&mut request, handle, purpose, timeout, now);
    }

    /// Asks which items there are: those that were being created when the connection broke may exist or not, and
    /// creating them twice would double their notifications.
    fn send_audit(&mut self, at: usize, now: Instant) {
        let request_handle = self.link.next_handle();
        let timeout = Some(self.config.request_timeout);
        let Some(known) = self.subscriptions.get_mut(at) else { return };
        let purpose = Purpose::Audit(known.handle);
        if self.link.outstanding.has(|outstanding| outstanding == purpose) {
            return;
        }
        let call = CallMethodRequest {
            object_id: NodeId::numeric(0, object_ids::SERVER),
            method_id: NodeId::numeric(0, method_ids::SERVER_GET_MONITORED_ITEMS),
            input_arguments: vec![Variant::UInt32(known.server_id)],
        };
        let mut request = CallRequest { methods_to_call: vec![call], ..CallRequest::default() };
        // If it cannot be sent, it is tried again when the connection is back.
        let _ = self.link.send(&mut request, request_handle, purpose, timeout, now);
    }

    pub(crate) fn on_audited(
        &mut self,
        handle: SubscriptionHandle,
        result: Result<Answer<'_>, ClientError>,
        now: Instant,
    ) {
        let Some(known) = self.subscription(handle) else { return };
        // A server without the method leaves us guessing; the items are then created as if none of them existed.
        known.audit = false;
        let results =
            result.and_then(|answer| answer.read::<CallResponse>("Call")).map(|response| response.results);
        let outputs = results.ok().and_then(|results| Some(results.into_iter().next()?.output_arguments));
        let Some([Variant::Array(ids), Variant::Array(handles)]) = outputs.as_deref() else { return };
        let (ArrayValues::UInt32(ids), ArrayValues::UInt32(handles)) = (&ids.values, &handles.values) else {
            return;
        };
        let surplus = known.audited(ids.iter().copied().zip(handles.iter().copied()));
        self.delete_on_server(handle, surplus);
        self.pump(now);
    }

    /// Deletes a subscription that was created without our hearing of it.
    pub(crate) fn delete_orphan(&mut self, server_id: u32, now: Instant) {
        let deleting = |known: &Subscription| known.server_id == server_id && known.state == State::Deleting;
        if self.subscriptions.iter().any(deleting) {
            return;
        }
        let mut request =
            DeleteSubscriptionsRequest { subscription_ids: vec![server_id], ..Default::default() };
        let handle = self.link.next_handle();
        let timeout = Some(self.config.request_timeout);
        // If it cannot be sent, the subscription's lifetime ends it.
        let _ = self.link.send(&mut request, handle, Purpose::Ignore, timeout, now);
    }

    pub(crate) fn on_subscription_created(
        &mut self,
        handle: SubscriptionHandle,
        result: Result<Answer<'_>, ClientError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let slack = self.link.round_trip * 4 + self.config.request_timeout;
        let Some(known) = self.subscription(handle) else { return };
        let service = "CreateSubscription";
        match result.and_then(|answer| answer.read::<CreateSubscriptionResponse>(service)) {
            Ok(response) => {
                known.created(&response);
                known.heard(now, slack);
                if known.delete_when_created {
                    known.state = State::Deleting;
                }
                let created = SubscriptionEvent::Created {
                    subscription_id: response.subscription_id,
                    publishing_interval_ms: response.revised_publishing_interval,
                    lifetime_count: response.revised_lifetime_count,
                    keep_alive_count: response.revised_max_keep_alive_count,
                };
                sink.event(Event::Subscription(handle, created));
            }
            Err(error) => {
                known.state = State::Failed;
                if known.delete_when_created {
                    self.subscriptions.retain(|known| known.handle != handle);
                }
                sink.event(Event::Subscription(handle, SubscriptionEvent::CreateFailed(error)));
            }
        }
    }

    pub(crate) fn on_subscription_modified(
        &mut self,
        handle: SubscriptionHandle,
        result: Result<Answer<'_>, ClientError>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let slack = self.link.round_trip * 4 + self.config.request_timeout;
        let Some(known) = self.subscription(handle) else { return };
        let service = "ModifySubscription";
        match result.and_then(|answer| answer.read::<ModifySubscriptionResponse>(service)) {
            Ok(response) => {
                known.interval_ms = response.revised_publishing_interval;
                known.keep_alive_count = response.revised_max_keep_alive_count;
                known.heard(now, slack);
                let modified = SubscriptionEvent::Modified {
                    publishing_interval_ms: response.revised_publishing_interval,
                    lifetime_count: response.revised_lifetime_count,
                    keep_alive_count: response.revised_max_keep_alive_count,
                };
                sink.event(Event::Subscription(handle, modified));
            }
            Err(error) => sink.event(Event::Subscription(handle, SubscriptionEvent::ModifyFailed(error))),
        }
    }

    pub(crate) fn on_subscription_deleted(
        &mut self,
        handle: SubscriptionHandle,
        result: Result<Answer<'_>, ClientError>,
        _now: Instant,
        sink: &mut dyn Sink,
    ) {
        // Refused means that it is gone; a timeout leaves it to its lifetime.
        drop(result);
        self.subscriptions.retain(|known| known.handle != handle);
        sink.event(Event::Subscription(handle, SubscriptionEvent::Deleted));
    }

    pub(crate) fn on_items_created(
        &mut self,
        handle: SubscriptionHandle,
        server_id: u32,
        client_handles: &[u32],
        result: Result<Box<dyn Any + Send>, ClientError>,
        sink: &mut dyn Sink,
    ) {
        // The server may have lost the subscription meanwhile: then these items are gone with it.
        let known = self.subscription(handle).filter(|known| known.is_live() && known.server_id == server_id);
        let Some(known) = known else { return };
        let failed =
            |status| taktwerk_schema::MonitoredItemCreateResult { status_code: status, ..Default::default() };
        let results = match result.map(|joined| joined.downcast::<CreateMonitoredItemsResponse>()) {
            Ok(Ok(response)) => response.results,
            Ok(Err(_)) => vec![failed(StatusCode::BAD_UNEXPECTED_ERROR); client_handles.len()],
            Err(error) => vec![failed(error.status()); client_handles.len()],
        };
        let mut removed = Vec::new();
        let mut told = Vec::with_capacity(results.len());
        for (client_handle, result) in client_handles.iter().zip(results) {
            let created = !result.status_code.is_bad();
            match known.items.get_mut(client_handle) {
                Some(item) if item.state == ItemState::Creating => {
                    item.state =
                        if created { ItemState::Live(result.monitored_item_id) } else { ItemState::Failed };
                    told.push(ItemResult {
                        client_handle: *client_handle,
                        status: result.status_code,
                        monitored_item_id: result.monitored_item_id,
                        revised_sampling_interval_ms: result.revised_sampling_interval,
                        revised_queue_size: result.revised_queue_size,
                        filter_result: result.filter_result,
                    });
                }
                // Removed or replaced while it was being created.
                _ if created => removed.push(result.monitored_item_id),
                _ => {}
            }
        }
        if !told.is_empty() {
            sink.event(Event::Subscription(handle, SubscriptionEvent::Items(told)));
        }
        self.delete_on_server(handle, removed);
    }
}
