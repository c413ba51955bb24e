//! Changes that the application makes to existing subscriptions. A change is recorded first and sent when possible. If
//! the connection breaks before the server has answered, the change is sent again on the next connection.

use crate::batch::BatchOwner;
use crate::client::Client;
use crate::error::{ClientError, Misuse};
use crate::event::{Event, Sink, SubscriptionEvent};
use crate::link::Answer;
use crate::outstanding::Purpose;
use crate::subscription::{ItemState, PendingChanges, State, SubscriptionHandle, SubscriptionParams};
use std::collections::BTreeSet;
use taktwerk_schema::{
    ModifySubscriptionRequest, ModifySubscriptionResponse, MonitoringMode, SetMonitoringModeRequest,
    SetPublishingModeRequest, SetPublishingModeResponse,
};
use taktwerk_types::Instant;

impl Client {
    /// Changes the monitoring mode of items, now and whenever they are created again.
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
        for handle in client_handles {
            if let Some(item) = known.items.get_mut(handle) {
                item.request.monitoring_mode = mode;
                known.pending.modes.insert(*handle);
            }
        }
        self.pump(now);
        Ok(())
    }

    /// Changes the parameters of a subscription. The timestamps apply to items that are created from now on. Returns
    /// true if a request will be sent; [`SubscriptionEvent::Modified`] or [`SubscriptionEvent::ModifyFailed`] follows
    /// then. Otherwise the change applies when the subscription is created or the connection is restored.
    ///
    /// # Errors
    /// [`Misuse::NoSuchSubscription`].
    pub fn modify_subscription(
        &mut self,
        subscription: SubscriptionHandle,
        params: SubscriptionParams,
        now: Instant,
    ) -> Result<bool, Misuse> {
        let known = self.subscription(subscription).ok_or(Misuse::NoSuchSubscription)?;
        known.pending.publishing |= known.params.publishing_enabled != params.publishing_enabled;
        known.pending.parameters = true;
        known.params = params;
        self.pump(now);
        let known = self.subscription(subscription);
        Ok(known.is_some_and(|known| known.is_live() && !known.pending.parameters))
    }

    /// Enables or disables publishing. Returns true if a request will be sent; [`SubscriptionEvent::PublishingModeSet`]
    /// or [`SubscriptionEvent::ModifyFailed`] follows then. Otherwise the change applies when the subscription is
    /// created or the connection is restored.
    ///
    /// # Errors
    /// [`Misuse::NoSuchSubscription`].
    pub fn set_publishing_mode(
        &mut self,
        subscription: SubscriptionHandle,
        enabled: bool,
        now: Instant,
    ) -> Result<bool, Misuse> {
        let known = self.subscription(subscription).ok_or(Misuse::NoSuchSubscription)?;
        known.params.publishing_enabled = enabled;
        known.pending.publishing = true;
        self.pump(now);
        let known = self.subscription(subscription);
        Ok(known.is_some_and(|known| known.is_live() && !known.pending.publishing))
    }

    /// Sends pending changes of a subscription that exists on the server.
    pub(crate) fn tell(&mut self, at: usize, now: Instant) {
        let Some(known) = self.subscriptions.get_mut(at) else { return };
        if known.state != State::Live || known.pending.is_empty() {
            return;
        }
        let PendingChanges { parameters, publishing, modes } = core::mem::take(&mut known.pending);
        let left = PendingChanges {
            parameters: parameters && !self.send_parameters(at, now),
            publishing: publishing && !self.send_publishing(at, now),
            modes: self.send_modes(at, modes),
        };
        if let Some(known) = self.subscriptions.get_mut(at) {
            known.pending = left;
        }
    }

    fn send_parameters(&mut self, at: usize, now: Instant) -> bool {
        let handle = self.link.next_handle();
        let timeout = Some(self.config.request_timeout);
        let Some(known) = self.subscriptions.get(at) else { return false };
        let mut request = ModifySubscriptionRequest {
            subscription_id: known.server_id,
            requested_publishing_interval: known.params.publishing_interval_ms,
            requested_lifetime_count: known.params.lifetime_count,
            requested_max_keep_alive_count: known.params.keep_alive_count,
            max_notifications_per_publish: known.params.notifications_max,
            priority: known.params.priority,
            ..ModifySubscriptionRequest::default()
        };
        let purpose = Purpose::ModifySubscription(known.handle);
        self.link.send(&mut request, handle, purpose, timeout, now).is_ok()
    }

    fn send_publishing(&mut self, at: usize, now: Instant) -> bool {
        let handle = self.link.next_handle();
        let timeout = Some(self.config.request_timeout);
        let Some(known) = self.subscriptions.get(at) else { return false };
        let enabled = known.params.publishing_enabled;
        let mut request = SetPublishingModeRequest {
            publishing_enabled: enabled,
            subscription_ids: vec![known.server_id],
            ..SetPublishingModeRequest::default()
        };
        let purpose = Purpose::SetPublishingMode(known.handle, enabled);
        self.link.send(&mut request, handle, purpose, timeout, now).is_ok()
    }

    /// Sends changed monitoring modes. Returns the items that are still being created: their modes are sent later.
    fn send_modes(&mut self, at: usize, modes: BTreeSet<u32>) -> BTreeSet<u32> {
        let Some(known) = self.subscriptions.get(at).filter(|_| !modes.is_empty()) else { return modes };
        let (subscription, subscription_id) = (known.handle, known.server_id);
        let mut later = BTreeSet::new();
        let mut changed: Vec<(MonitoringMode, Vec<u32>, Vec<u32>)> = Vec::new();
        for handle in modes {
            let Some(item) = known.items.get(&handle) else { continue };
            match item.state {
                ItemState::Creating => drop(later.insert(handle)),
                // The mode is part of their creation.
                ItemState::Wanted | ItemState::Failed => {}
                ItemState::Live(id) => {
                    let mode = item.request.monitoring_mode;
                    let at = changed.iter().position(|(other, ..)| *other == mode).unwrap_or_else(|| {
                        changed.push((mode, Vec::new(), Vec::new()));
                        changed.len() - 1
                    });
                    if let Some((_, handles, ids)) = changed.get_mut(at) {
                        handles.push(handle);
                        ids.push(id);
                    }
                }
            }
        }
        for (monitoring_mode, handles, monitored_item_ids) in changed {
            let request = SetMonitoringModeRequest {
                subscription_id,
                monitoring_mode,
                monitored_item_ids,
                ..SetMonitoringModeRequest::default()
            };
            self.start_batch(request, BatchOwner::Modes { subscription, handles });
        }
        later
    }

    /// The connection broke before a request was answered: its change is pending again.
    pub(crate) fn note_unanswered(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::ModifySubscription(handle) => {
                if let Some(known) = self.subscription(handle) {
                    known.pending.parameters = true;
                }
            }
            Purpose::SetPublishingMode(handle, _) => {
                if let Some(known) = self.subscription(handle) {
                    known.pending.publishing = true;
                }
            }
            _ => {}
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

    pub(crate) fn on_publishing_mode_set(
        &mut self,
        handle: SubscriptionHandle,
        enabled: bool,
        result: Result<Answer<'_>, ClientError>,
        sink: &mut dyn Sink,
    ) {
        if self.subscription(handle).is_none() {
            return;
        }
        let service = "SetPublishingMode";
        let response = result.and_then(|answer| answer.read::<SetPublishingModeResponse>(service));
        let status = response.map(|response| response.results.first().copied().unwrap_or_default());
        let event = match status {
            Ok(status) if status.is_bad() => {
                SubscriptionEvent::ModifyFailed(ClientError::Service { service, status })
            }
            Ok(_) => SubscriptionEvent::PublishingModeSet(enabled),
            Err(error) => SubscriptionEvent::ModifyFailed(error),
        };
        sink.event(Event::Subscription(handle, event));
    }
}
