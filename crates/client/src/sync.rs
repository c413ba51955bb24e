//! Synchronizes the server's subscriptions and items with those the application wants.

use crate::batch::BatchOwner;
use crate::client::Client;
use crate::error::{ClientError, Misuse, is_busy};
use crate::event::{Event, Sink, SubscriptionEvent};
use crate::link::Answer;
use crate::namespaces::Namespaces;
use crate::outstanding::Purpose;
use crate::subscription::{
    Item, ItemResult, ItemState, PendingChanges, State, Subscription, SubscriptionHandle, SubscriptionParams,
    ToDo, WantedItem,
};
use core::any::Any;
use std::collections::BTreeMap;
use taktwerk_schema::ids::{method_ids, object_ids};
use taktwerk_schema::{
    BrowsePathResult, CallMethodRequest, CallRequest, CallResponse, CreateMonitoredItemsRequest,
    CreateMonitoredItemsResponse, CreateSubscriptionRequest, CreateSubscriptionResponse,
    DeleteMonitoredItemsRequest, DeleteSubscriptionsRequest, TranslateBrowsePathsToNodeIdsRequest,
    TranslateBrowsePathsToNodeIdsResponse,
};
use taktwerk_types::{ArrayValues, Instant, NodeId, StatusCode, UaString, Variant};

impl Client {
    /// Adds a subscription. It is created when there is a session, and again whenever the server has lost it.
    /// [`SubscriptionEvent`] reports the results.
    pub fn create_subscription(&mut self, params: SubscriptionParams, now: Instant) -> SubscriptionHandle {
        self.next_subscription = self.next_subscription.wrapping_add(1);
        let handle = SubscriptionHandle(self.next_subscription);
        self.subscriptions.push(Subscription::new(handle, params));
        self.pump(now);
        handle
    }

    /// Adds items. The application chooses the client handle in each request; it identifies the item in notifications,
    /// across reconnects. An item with an existing handle replaces the old one, which is deleted first.
    ///
    /// # Errors
    /// [`Misuse::NoSuchSubscription`].
    pub fn add_items(
        &mut self,
        subscription: SubscriptionHandle,
        items: impl IntoIterator<Item = impl Into<WantedItem>>,
        now: Instant,
    ) -> Result<(), Misuse> {
        let namespaces = self.learned.namespaces.clone();
        let known = self.subscription(subscription).ok_or(Misuse::NoSuchSubscription)?;
        let mut replaced = Vec::new();
        for wanted in items {
            let wanted = wanted.into();
            let handle = wanted.request.requested_parameters.client_handle;
            if let Some(Item { state: ItemState::Live(id), .. }) =
                known.items.insert(handle, Item::new(wanted, &namespaces))
            {
                replaced.push(id);
            }
            known.wanted.push(handle);
        }
        self.delete_on_server(subscription, replaced);
        self.pump(now);
        Ok(())
    }

    /// Removes items by their client handles; unknown handles are ignored.
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

    /// Deletes a subscription. [`SubscriptionEvent::Deleted`] follows if it existed on the server.
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
            // It is deleted when its id is known.
            State::Creating => known.delete_when_created = true,
            State::Deleting => {}
        }
        self.pump(now);
        Ok(())
    }

    /// Whether there is such a subscription, including one that is not yet created or deleted.
    #[must_use]
    pub fn knows_subscription(&self, subscription: SubscriptionHandle) -> bool {
        self.subscriptions.iter().any(|known| known.handle == subscription)
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

    /// Sends the requests that are needed.
    pub(crate) fn sync_subscriptions(&mut self, now: Instant) {
        for at in 0..self.subscriptions.len() {
            self.tell(at, now);
            let Some(known) = self.subscriptions.get_mut(at) else { break };
            match known.state {
                State::Wanted if known.retry_at.is_some_and(|at| now < at) => {}
                State::Wanted => self.send_create(at, now),
                State::Deleting => self.send_delete(at, now),
                State::Live if known.audit => self.send_audit(at, now),
                State::Live => self.send_items(at),
                State::Creating | State::Failed | State::Recovering => {}
            }
        }
    }

    /// Creates the wanted items, or resolves their paths first.
    fn send_items(&mut self, at: usize) {
        let Some(known) = self.subscriptions.get_mut(at) else { return };
        let ToDo { create, find, unknown } = known.take_wanted(&self.learned.namespaces);
        let (subscription, server_id) = (known.handle, known.server_id);
        let timestamps_to_return = known.params.timestamps;
        if !unknown.is_empty() {
            self.tell_unknown(subscription, unknown);
        }
        if !find.is_empty() {
            let (handles, browse_paths) = find.into_iter().unzip();
            let request = TranslateBrowsePathsToNodeIdsRequest { browse_paths, ..Default::default() };
            self.start_batch(request, BatchOwner::Paths { subscription, server_id, handles });
        }
        if !create.is_empty() {
            let handles = create.iter().map(|item| item.requested_parameters.client_handle).collect();
            let request = CreateMonitoredItemsRequest {
                subscription_id: server_id,
                timestamps_to_return,
                items_to_create: create,
                ..CreateMonitoredItemsRequest::default()
            };
            self.start_batch(request, BatchOwner::Items { subscription, server_id, handles });
        }
    }

    /// Reports items whose namespaces the server does not have.
    fn tell_unknown(&mut self, subscription: SubscriptionHandle, unknown: Vec<(UaString, u32, NodeId)>) {
        let mut missing: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let mut results = Vec::with_capacity(unknown.len());
        for (uri, client_handle, node_id) in unknown {
            missing.entry(uri.as_str().to_owned()).or_default().push(client_handle);
            results.push(ItemResult::failed(client_handle, node_id, StatusCode::BAD_NODE_ID_UNKNOWN));
        }
        for (uri, client_handles) in missing {
            let namespace_uri = UaString::from(uri);
            let event = SubscriptionEvent::NamespaceMissing { namespace_uri, client_handles };
            self.pending_events.push(Event::Subscription(subscription, event));
        }
        self.pending_events.push(Event::Subscription(subscription, SubscriptionEvent::Items(results)));
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
            known.pending = PendingChanges::default();
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
        // If sending fails, it is tried again on the next connection.
        let _ = self.link.send(&mut request, handle, purpose, timeout, now);
    }

    /// Asks the server which items exist. Items that were being created when the connection broke may exist, and
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
        // If sending fails, it is tried again on the next connection.
        let _ = self.link.send(&mut request, request_handle, purpose, timeout, now);
    }

    pub(crate) fn on_audited(
        &mut self,
        handle: SubscriptionHandle,
        result: Result<Answer<'_>, ClientError>,
        now: Instant,
    ) {
        let Some(known) = self.subscription(handle) else { return };
        // If the server has no such method, assume that none of the items exists.
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

    /// Deletes a subscription that was created although its response was lost.
    pub(crate) fn delete_orphan(&mut self, server_id: u32, now: Instant) {
        let deleting = |known: &Subscription| known.server_id == server_id && known.state == State::Deleting;
        if self.subscriptions.iter().any(deleting) {
            return;
        }
        let mut request =
            DeleteSubscriptionsRequest { subscription_ids: vec![server_id], ..Default::default() };
        let handle = self.link.next_handle();
        let timeout = Some(self.config.request_timeout);
        // If sending fails, the subscription ends with its lifetime.
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
                self.publisher.created();
            }
            // It existed before, and the application expects it to continue.
            Err(error) if is_busy(error.status()) && known.is_recreated && !known.delete_when_created => {
                known.state = State::Wanted;
                known.refusals = known.refusals.saturating_add(1);
                let factor = 1u32 << known.refusals.min(20);
                let policy = &self.config.reconnect;
                let delay = policy.delay_min.saturating_mul(factor).min(policy.delay_max);
                let retry_at = now + self.jittered(delay);
                if let Some(known) = self.subscription(handle) {
                    known.retry_at = Some(retry_at);
                }
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

    pub(crate) fn on_subscription_deleted(
        &mut self,
        handle: SubscriptionHandle,
        result: Result<Answer<'_>, ClientError>,
        _now: Instant,
        sink: &mut dyn Sink,
    ) {
        // A refusal means that it does not exist; after a timeout it ends with its lifetime.
        drop(result);
        self.subscriptions.retain(|known| known.handle != handle);
        if self.subscriptions.is_empty() {
            // Earlier Publish faults were caused by the missing subscription.
            self.publisher.accepted();
        }
        sink.event(Event::Subscription(handle, SubscriptionEvent::Deleted));
    }

    /// The server has resolved the paths of items.
    pub(crate) fn on_paths_found(
        &mut self,
        handle: SubscriptionHandle,
        server_id: u32,
        client_handles: &[u32],
        result: Result<Box<dyn Any + Send>, ClientError>,
        sink: &mut dyn Sink,
    ) {
        let namespaces = self.learned.namespaces.clone();
        let known = self.subscription(handle).filter(|known| known.is_live() && known.server_id == server_id);
        let Some(known) = known else { return };
        let failed = |status| BrowsePathResult { status_code: status, ..Default::default() };
        type Response = TranslateBrowsePathsToNodeIdsResponse;
        let results = match result.map(|joined| joined.downcast::<Response>()) {
            Ok(Ok(response)) => response.results,
            Ok(Err(_)) => vec![failed(StatusCode::BAD_UNEXPECTED_ERROR); client_handles.len()],
            Err(error) => vec![failed(error.status()); client_handles.len()],
        };
        let mut reported = Vec::new();
        for (client_handle, result) in client_handles.iter().zip(results) {
            let item = known.items.get_mut(client_handle).filter(|item| item.state == ItemState::Creating);
            // Removed or replaced in the meantime.
            let Some(item) = item else { continue };
            match found_node(result, &namespaces) {
                Ok(node_id) => {
                    item.found(node_id);
                    known.wanted.push(*client_handle);
                }
                Err(status) => {
                    item.state = ItemState::Failed;
                    let node_id = item.request.item_to_monitor.node_id.clone();
                    reported.push(ItemResult::failed(*client_handle, node_id, status));
                }
            }
        }
        if !reported.is_empty() {
            sink.event(Event::Subscription(handle, SubscriptionEvent::Items(reported)));
        }
    }

    pub(crate) fn on_items_created(
        &mut self,
        handle: SubscriptionHandle,
        server_id: u32,
        client_handles: &[u32],
        result: Result<Box<dyn Any + Send>, ClientError>,
        sink: &mut dyn Sink,
    ) {
        // If the server has lost the subscription in the meantime, these items are lost, too.
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
        let mut reported = Vec::with_capacity(results.len());
        for (client_handle, result) in client_handles.iter().zip(results) {
            let created = !result.status_code.is_bad();
            match known.items.get_mut(client_handle) {
                Some(item) if item.state == ItemState::Creating => {
                    item.state =
                        if created { ItemState::Live(result.monitored_item_id) } else { ItemState::Failed };
                    reported.push(ItemResult {
                        client_handle: *client_handle,
                        node_id: item.request.item_to_monitor.node_id.clone(),
                        status: result.status_code,
                        monitored_item_id: result.monitored_item_id,
                        revised_sampling_interval_ms: result.revised_sampling_interval,
                        revised_queue_size: result.revised_queue_size,
                        filter_result: result.filter_result,
                    });
                }
                // Removed or replaced during its creation.
                _ if created => removed.push(result.monitored_item_id),
                _ => {}
            }
        }
        if !reported.is_empty() {
            sink.event(Event::Subscription(handle, SubscriptionEvent::Items(reported)));
        }
        self.delete_on_server(handle, removed);
    }
}

/// The target of a completely resolved path.
fn found_node(result: BrowsePathResult, namespaces: &Namespaces) -> Result<NodeId, StatusCode> {
    if result.status_code.is_bad() {
        return Err(result.status_code);
    }
    let whole = result.targets.into_iter().find(|target| target.remaining_path_index == u32::MAX);
    let target = whole.ok_or(StatusCode::BAD_NO_MATCH)?.target_id;
    let mut node_id = target.node_id;
    if let Some(uri) = target.namespace_uri.as_deref() {
        node_id.namespace_index = namespaces.index(uri).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    }
    Ok(node_id)
}
