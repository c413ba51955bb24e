//! What applications change of subscriptions that exist. It is noted first and told when the server can be told, so that
//! it counts on the next connection, too, if this one breaks before the server has answered.

use crate::batch::BatchOwner;
use crate::client::Client;
use crate::error::{ClientError, Misuse};
use crate::event::{Event, Sink, SubscriptionEvent};
use crate::link::Answer;
use crate::outstanding::Purpose;
use crate::subscription::{ItemState, State, SubscriptionHandle, SubscriptionParams, Untold};
use std::collections::BTreeSet;
use taktwerk_schema::{
    ModifySubscriptionRequest, ModifySubscriptionResponse, MonitoringMode, SetMonitoringModeRequest,
    SetPublishingModeRequest, SetPublishingModeResponse,
};
use taktwerk_types::Instant;

impl Client {
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
        for handle in client_handles {
            if let Some(item) = known.items.get_mut(handle) {
                item.request.monitoring_mode = mode;
                known.untold.modes.insert(*handle);
            }
        }
        self.pump(now);
        Ok(())
    }

    /// Changes what is asked of a subscription. The timestamps apply to items that are created from now on. Says whether
    /// the server was asked: [`SubscriptionEvent::Modified`] or [`SubscriptionEvent::ModifyFailed`] follows then. Else it
    /// counts when the subscription is created, or is asked for when the connection is back.
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
        known.untold.publishing |= known.params.publishing_enabled != params.publishing_enabled;
        known.untold.parameters = true;
        known.params = params;
        self.pump(now);
        let known = self.subscription(subscription);
        Ok(known.is_some_and(|known| known.is_live() && !known.untold.parameters))
    }

    /// Switches publishing on or off. Says whether the server was asked: [`SubscriptionEvent::PublishingModeSet`] or
    /// [`SubscriptionEvent::ModifyFailed`] follows then. Else it counts when the subscription is created, or is asked for
    /// when the connection is back.
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
        known.untold.publishing = true;
        self.pump(now);
        let known = self.subscription(subscription);
        Ok(known.is_some_and(|known| known.is_live() && !known.untold.publishing))
    }

    /// Tells the server what it may not know of a subscription that it has.
    pub(crate) fn tell(&mut self, at: usize, now: Instant) {
        let Some(known) = self.subscriptions.get_mut(at) else { return };
        if known.state != State::Live || known.untold.is_empty() {
            return;
        }
        let Untold { parameters, publishing, modes } = core::mem::take(&mut known.untold);
        let left = Untold {
            parameters: parameters && !self.send_parameters(at, now),
            publishing: publishing && !self.send_publishing(at, now),
            modes: self.send_modes(at, modes),
        };
        if let Some(known) = self.subscriptions.get_mut(at) {
            known.untold = left;
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

    /// Returns the items that are being created: their modes are told when they exist.
    fn send_modes(&mut self, at: usize, modes: BTreeSet<u32>) -> BTreeSet<u32> {
        let Some(known) = self.subscriptions.get(at).filter(|_| !modes.is_empty()) else { return modes };
        let (subscription, subscription_id) = (known.handle, known.server_id);
        let mut later = BTreeSet::new();
        let mut told: Vec<(MonitoringMode, Vec<u32>, Vec<u32>)> = Vec::new();
        for handle in modes {
            let Some(item) = known.items.get(&handle) else { continue };
            match item.state {
                ItemState::Creating => drop(later.insert(handle)),
                // Created with it, if they are.
                ItemState::Wanted | ItemState::Failed => {}
                ItemState::Live(id) => {
                    let mode = item.request.monitoring_mode;
                    let at = told.iter().position(|(other, ..)| *other == mode).unwrap_or_else(|| {
                        told.push((mode, Vec::new(), Vec::new()));
                        told.len() - 1
                    });
                    if let Some((_, handles, ids)) = told.get_mut(at) {
                        handles.push(handle);
                        ids.push(id);
                    }
                }
            }
        }
        for (monitoring_mode, handles, monitored_item_ids) in told {
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

    /// The connection broke before a request was answered: what it asked for is asked for again.
    pub(crate) fn note_unanswered(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::ModifySubscription(handle) => {
                if let Some(known) = self.subscription(handle) {
                    known.untold.parameters = true;
                }
            }
            Purpose::SetPublishingMode(handle, _) => {
                if let Some(known) = self.subscription(handle) {
                    known.untold.publishing = true;
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
