//! Subscriptions, their items and messages.

use super::*;

impl Server {
    pub(super) fn create_subscription(
        &mut self,
        request: CreateSubscriptionRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        now: Instant,
    ) -> Result<CreateSubscriptionResponse, StatusCode> {
        let session = self.session_of(&request.request_header, id)?;
        self.next_subscription += 1;
        let subscription = Subscription {
            session,
            interval_ms: request.requested_publishing_interval,
            keep_alive_count: request.requested_max_keep_alive_count,
            // The first message is sent after one cycle, with or without data.
            idle: request.requested_max_keep_alive_count,
            next_cycle: now.plus_millis_f64(request.requested_publishing_interval),
            next_number: 1,
            items: BTreeMap::new(),
            pending: vec![],
            retransmission: BTreeMap::new(),
            status_change: None,
        };
        self.subscriptions.insert(self.next_subscription, subscription);
        Ok(CreateSubscriptionResponse {
            subscription_id: self.next_subscription,
            revised_publishing_interval: request.requested_publishing_interval,
            revised_lifetime_count: request.requested_lifetime_count,
            revised_max_keep_alive_count: request.requested_max_keep_alive_count,
            ..Default::default()
        })
    }

    pub(super) fn modify_subscription(
        &mut self,
        request: ModifySubscriptionRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<ModifySubscriptionResponse, StatusCode> {
        self.session_of(&request.request_header, id)?;
        Ok(ModifySubscriptionResponse {
            revised_publishing_interval: request.requested_publishing_interval,
            revised_lifetime_count: request.requested_lifetime_count,
            revised_max_keep_alive_count: request.requested_max_keep_alive_count,
            ..Default::default()
        })
    }

    pub(super) fn delete_subscriptions(
        &mut self,
        request: DeleteSubscriptionsRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<DeleteSubscriptionsResponse, StatusCode> {
        self.session_of(&request.request_header, id)?;
        let results = request.subscription_ids.iter().map(|id| match self.subscriptions.remove(id) {
            Some(_) => StatusCode::GOOD,
            None => StatusCode::BAD_SUBSCRIPTION_ID_INVALID,
        });
        let results = results.collect();
        Ok(DeleteSubscriptionsResponse { results, ..Default::default() })
    }

    pub(super) fn create_items(
        &mut self,
        request: CreateMonitoredItemsRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<CreateMonitoredItemsResponse, StatusCode> {
        self.session_of(&request.request_header, id)?;
        if request.items_to_create.len() > self.knobs.enforced_max {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        let subscription = self.subscriptions.get_mut(&request.subscription_id);
        let subscription = subscription.ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
        let mut results = vec![];
        for item in request.items_to_create {
            let unknown =
                usize::from(item.item_to_monitor.node_id.namespace_index) >= self.knobs.namespaces.len();
            self.next_item += 1;
            results.push(MonitoredItemCreateResult {
                status_code: if unknown { StatusCode::BAD_NODE_ID_UNKNOWN } else { StatusCode::GOOD },
                monitored_item_id: if unknown { 0 } else { self.next_item },
                revised_sampling_interval: item.requested_parameters.sampling_interval,
                revised_queue_size: item.requested_parameters.queue_size.max(1),
                ..Default::default()
            });
            if !unknown {
                subscription.items.insert(self.next_item, item);
            }
        }
        Ok(CreateMonitoredItemsResponse { results, ..Default::default() })
    }

    pub(super) fn delete_items(
        &mut self,
        request: DeleteMonitoredItemsRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<DeleteMonitoredItemsResponse, StatusCode> {
        self.session_of(&request.request_header, id)?;
        let subscription = self.subscriptions.get_mut(&request.subscription_id);
        let subscription = subscription.ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
        let results = request.monitored_item_ids.iter().map(|id| match subscription.items.remove(id) {
            Some(_) => StatusCode::GOOD,
            None => StatusCode::BAD_MONITORED_ITEM_ID_INVALID,
        });
        let results = results.collect();
        Ok(DeleteMonitoredItemsResponse { results, ..Default::default() })
    }

    pub(super) fn set_mode(
        &mut self,
        request: SetMonitoringModeRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<SetMonitoringModeResponse, StatusCode> {
        self.session_of(&request.request_header, id)?;
        let subscription = self.subscriptions.get_mut(&request.subscription_id);
        let subscription = subscription.ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
        for id in &request.monitored_item_ids {
            if let Some(item) = subscription.items.get_mut(id) {
                item.monitoring_mode = request.monitoring_mode;
            }
        }
        let results = vec![StatusCode::GOOD; request.monitored_item_ids.len()];
        Ok(SetMonitoringModeResponse { results, ..Default::default() })
    }

    pub(super) fn set_publishing_mode(
        &mut self,
        request: SetPublishingModeRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<SetPublishingModeResponse, StatusCode> {
        self.session_of(&request.request_header, id)?;
        let results = request.subscription_ids.iter().map(|id| match self.subscriptions.contains_key(id) {
            true => StatusCode::GOOD,
            false => StatusCode::BAD_SUBSCRIPTION_ID_INVALID,
        });
        Ok(SetPublishingModeResponse { results: results.collect(), ..Default::default() })
    }

    pub(super) fn publish(
        &mut self,
        request: PublishRequest,
        id: ConnectionId,
        _: &mut Connection,
        request_id: u32,
        _: Instant,
    ) -> Result<PublishResponse, StatusCode> {
        let token = self.session_of(&request.request_header, id)?;
        for acknowledgement in &request.subscription_acknowledgements {
            if let Some(subscription) = self.subscriptions.get_mut(&acknowledgement.subscription_id) {
                subscription.retransmission.remove(&acknowledgement.sequence_number);
            }
        }
        if !self.subscriptions.values().any(|subscription| subscription.session == token) {
            return Err(StatusCode::BAD_NO_SUBSCRIPTION);
        }
        let session = self.sessions.get_mut(&token).unwrap();
        if session.publish_queue.len() >= self.knobs.publish_max {
            return Err(StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS);
        }
        session.publish_queue.push_back((id, request_id, request.request_header.request_handle));
        Err(StatusCode::GOOD)
    }

    pub(super) fn republish(
        &mut self,
        request: RepublishRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<RepublishResponse, StatusCode> {
        let token = self.session_of(&request.request_header, id)?;
        let subscription = self.subscriptions.get(&request.subscription_id);
        let subscription = subscription.filter(|subscription| subscription.session == token);
        let subscription = subscription.ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
        let message = subscription.retransmission.get(&request.retransmit_sequence_number);
        let notification_message = message.ok_or(StatusCode::BAD_MESSAGE_NOT_AVAILABLE)?.clone();
        Ok(RepublishResponse { notification_message, ..Default::default() })
    }

    pub(super) fn transfer(
        &mut self,
        request: TransferSubscriptionsRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<TransferSubscriptionsResponse, StatusCode> {
        let token = self.session_of(&request.request_header, id)?;
        if !self.knobs.transfer {
            return Err(StatusCode::BAD_SERVICE_UNSUPPORTED);
        }
        let results = request.subscription_ids.iter().map(|id| match self.subscriptions.get_mut(id) {
            Some(subscription) => {
                subscription.session = token;
                let available_sequence_numbers = subscription.retransmission.keys().copied().collect();
                TransferResult { status_code: StatusCode::GOOD, available_sequence_numbers }
            }
            None => {
                TransferResult { status_code: StatusCode::BAD_SUBSCRIPTION_ID_INVALID, ..Default::default() }
            }
        });
        let results = results.collect();
        Ok(TransferSubscriptionsResponse { results, ..Default::default() })
    }
}
