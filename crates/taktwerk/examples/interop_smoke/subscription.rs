//! Checks subscriptions with the plain services.

use crate::feed::{ABSOLUTE, ANSWER, CLOCK, COUNTER, Feed, ITEMS, PERCENT, PLAIN, UNKNOWN};
use crate::session::{Fault, Session};
use crate::smoke::{Smoke, attribute};
use std::time::Duration;
use taktwerk::schema::ids::{method_ids, object_ids, variable_ids};
use taktwerk::schema::{
    CreateMonitoredItemsRequest, DataChangeFilter, DataChangeTrigger, DeadbandType,
    DeleteMonitoredItemsRequest, DeleteSubscriptionsRequest, ModifyMonitoredItemsRequest,
    ModifySubscriptionRequest, MonitoredItemCreateRequest, MonitoredItemModifyRequest, MonitoringMode,
    MonitoringParameters, ReadValueId, RepublishRequest, SetMonitoringModeRequest, SetPublishingModeRequest,
    SetTriggeringRequest, SubscriptionAcknowledgement, TimestampsToReturn, TransferSubscriptionsRequest,
};
use taktwerk::types::{ExtensionObject, NodeId, StatusCode, Variant};
use tokio::time::Instant;

/// An id that no server has assigned.
const NOBODY: u32 = 4_000_000_000;

fn item(node_id: NodeId, handle: usize, sampling_ms: f64, queue_size: u32) -> MonitoredItemCreateRequest {
    MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId { node_id, attribute_id: attribute::VALUE, ..ReadValueId::default() },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: handle as u32,
            sampling_interval: sampling_ms,
            filter: ExtensionObject::default(),
            queue_size,
            discard_oldest: true,
        },
    }
}

fn filtered(
    mut item: MonitoredItemCreateRequest,
    trigger: DataChangeTrigger,
    deadband: DeadbandType,
    deadband_value: f64,
) -> MonitoredItemCreateRequest {
    let filter = DataChangeFilter { trigger, deadband_type: deadband.0 as u32, deadband_value };
    item.requested_parameters.filter = ExtensionObject::new(&filter);
    item
}

/// The single result of a request with one operation.
fn single(result: Result<Vec<StatusCode>, Fault>) -> StatusCode {
    match result {
        Ok(results) => results.first().copied().unwrap_or(StatusCode::BAD_UNEXPECTED_ERROR),
        Err(fault) => fault.status,
    }
}

impl Smoke {
    pub(crate) async fn subscriptions(&mut self) {
        let mut feed = Feed::new(self.session.clone());
        let created = match feed.create(100.0).await {
            Ok(created) => created,
            Err(fault) => {
                self.check("create-subscription", false, fault);
                return;
            }
        };
        let interval = created.revised_publishing_interval;
        let detail = format!("id {}, revised publishing {interval} ms", created.subscription_id);
        self.check("create-subscription", interval > 0.0, detail);
        self.create_items(&mut feed).await;
        self.notifications(&mut feed).await;
        self.monitoring_modes(&mut feed).await;
        self.modify_items(&mut feed).await;
        self.triggering(&mut feed).await;
        self.modify_subscription(&mut feed).await;
        self.retransmission(&mut feed).await;
        self.server_methods(&mut feed).await;
        self.transfer_subscriptions().await;
        self.queues().await;
        self.delete_all(&mut feed).await;
    }

    async fn create_items(&mut self, feed: &mut Feed) {
        let clock = NodeId::numeric(0, variable_ids::SERVER_SERVER_STATUS_CURRENT_TIME);
        let value = DataChangeTrigger::STATUS_VALUE;
        let items = vec![
            item(self.id("counter"), COUNTER, 100.0, 10),
            filtered(item(self.id("analog"), ABSOLUTE, 50.0, 1), value, DeadbandType::ABSOLUTE, 5.0),
            filtered(item(self.id("analog"), PERCENT, 50.0, 1), value, DeadbandType::PERCENT, 10.0),
            item(self.id("scalar/Double"), PLAIN, 50.0, 5),
            item(clock, CLOCK, 100.0, 1),
            filtered(
                item(self.id("the.answer"), ANSWER, 100.0, 1),
                DataChangeTrigger::STATUS_VALUE_TIMESTAMP,
                DeadbandType::NONE,
                0.0,
            ),
            item(self.id("no such node"), UNKNOWN, 100.0, 1),
        ];
        let request = CreateMonitoredItemsRequest {
            subscription_id: feed.subscription,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_create: items,
            ..CreateMonitoredItemsRequest::default()
        };
        let results = match self.session.request(request).await {
            Ok(response) => response.results,
            Err(fault) => {
                self.check("create-monitored-items", false, fault);
                return;
            }
        };
        self.check("create-monitored-items", results.len() == ITEMS, format!("{} results", results.len()));
        let names = [
            "item counter",
            "item absolute deadband",
            "item percent deadband",
            "item plain",
            "item server time",
            "item timestamp trigger",
            "item of an unknown node",
        ];
        for (handle, (name, result)) in names.iter().zip(&results).enumerate() {
            feed.items[handle].id = result.monitored_item_id;
            let wanted = if handle == UNKNOWN { StatusCode::BAD_NODE_ID_UNKNOWN } else { StatusCode::GOOD };
            let detail = format!(
                "{}, revised sampling {} ms, queue {}",
                result.status_code, result.revised_sampling_interval, result.revised_queue_size
            );
            self.check(*name, result.status_code == wanted, detail);
        }
    }

    async fn set_double(&self, id: &str, value: f64) -> StatusCode {
        self.write(id, value.into(), "").await
    }

    async fn notifications(&mut self, feed: &mut Feed) {
        feed.pump(1000).await;
        let missing = feed.items[..UNKNOWN].iter().filter(|item| item.count == 0).count();
        self.check(
            "initial-values",
            missing == 0,
            format!("{missing} of {UNKNOWN} items without a first value"),
        );

        let (before, from) = (feed.items[COUNTER].count, feed.items[COUNTER].last_f64().unwrap_or_default());
        feed.pump(1000).await;
        let (got, to) =
            (feed.items[COUNTER].count - before, feed.items[COUNTER].last_f64().unwrap_or_default());
        let ok = (7..=13).contains(&got) && to - from >= 7.0;
        self.check("counter-notifications", ok, format!("{got} in 1 s, {from} -> {to}"));

        // 50 -> 52 is inside both deadbands, 61 outside both, 67 outside the absolute one only.
        for (value, checks) in [
            (52.0, &[("deadband inside", Some(0), Some(0))][..]),
            (61.0, &[("deadband absolute", Some(1), None), ("deadband percent", None, Some(1))]),
            (67.0, &[("deadband between", Some(1), Some(0))]),
        ] {
            let (absolute, percent) = (feed.items[ABSOLUTE].count, feed.items[PERCENT].count);
            self.set_double("analog", value).await;
            feed.pump(500).await;
            let absolute = feed.items[ABSOLUTE].count - absolute;
            let percent = feed.items[PERCENT].count - percent;
            for (name, want_absolute, want_percent) in checks {
                let ok = want_absolute.is_none_or(|wanted| wanted == absolute)
                    && want_percent.is_none_or(|wanted| wanted == percent);
                self.check(*name, ok, format!("absolute +{absolute}, percent +{percent}"));
            }
        }
        self.set_double("analog", 50.0).await;

        let status = self.set_double("scalar/Double", 1234.5).await;
        feed.pump(500).await;
        let last = feed.items[PLAIN].last_f64();
        self.check("change-notification", last == Some(1234.5), format!("write {status}, last {last:?}"));
    }

    async fn set_mode(&self, feed: &Feed, item: u32, monitoring_mode: MonitoringMode) -> StatusCode {
        let request = SetMonitoringModeRequest {
            subscription_id: feed.subscription,
            monitoring_mode,
            monitored_item_ids: vec![item],
            ..SetMonitoringModeRequest::default()
        };
        single(self.session.request(request).await.map(|response| response.results))
    }

    async fn monitoring_modes(&mut self, feed: &mut Feed) {
        for (name, mode, least, most) in [
            ("set-monitoring-mode disabled", MonitoringMode::DISABLED, 0, 0),
            ("set-monitoring-mode sampling", MonitoringMode::SAMPLING, 0, 0),
            ("set-monitoring-mode reporting", MonitoringMode::REPORTING, 3, usize::MAX),
        ] {
            let status = self.set_mode(feed, feed.items[COUNTER].id, mode).await;
            let got = feed.received_in(COUNTER, 600).await;
            let ok = status.is_good() && (least..=most).contains(&got);
            self.check(name, ok, format!("{status}, {got} notifications"));
        }
        let status = self.set_mode(feed, NOBODY, MonitoringMode::REPORTING).await;
        let wanted = &[StatusCode::BAD_MONITORED_ITEM_ID_INVALID];
        self.check_status("set-monitoring-mode of an unknown item", status, wanted);
    }

    async fn modify_items(&mut self, feed: &mut Feed) {
        let change = MonitoredItemModifyRequest {
            monitored_item_id: feed.items[COUNTER].id,
            requested_parameters: item(NodeId::default(), COUNTER, 250.0, 3).requested_parameters,
        };
        let request = ModifyMonitoredItemsRequest {
            subscription_id: feed.subscription,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_modify: vec![change],
            ..ModifyMonitoredItemsRequest::default()
        };
        let result = self.session.request(request).await.map(|response| response.results);
        let got = feed.received_in(COUNTER, 1000).await;
        let ok = matches!(result.as_deref(), Ok([one]) if one.status_code.is_good() && one.revised_queue_size == 3);
        let detail = format!("{result:?}, then {got} notifications in 1 s");
        self.check("modify-monitored-items", ok && (2..=6).contains(&got), detail);
    }

    async fn link(&self, feed: &Feed, adds: bool) -> StatusCode {
        let linked = vec![feed.items[PLAIN].id];
        let (links_to_add, links_to_remove) = if adds { (linked, Vec::new()) } else { (Vec::new(), linked) };
        let request = SetTriggeringRequest {
            subscription_id: feed.subscription,
            triggering_item_id: feed.items[COUNTER].id,
            links_to_add,
            links_to_remove,
            ..SetTriggeringRequest::default()
        };
        let response = self.session.request(request).await;
        single(response.map(|response| if adds { response.add_results } else { response.remove_results }))
    }

    async fn triggering(&mut self, feed: &mut Feed) {
        let plain = feed.items[PLAIN].id;
        self.set_mode(feed, plain, MonitoringMode::SAMPLING).await;
        feed.pump(300).await;
        let before = feed.items[PLAIN].count;
        self.set_double("scalar/Double", 7.25).await;
        feed.pump(600).await;
        let early = feed.items[PLAIN].count - before;
        let status = self.link(feed, true).await;
        self.set_double("scalar/Double", 7.75).await;
        feed.pump_until(1500, |feed| feed.items[PLAIN].last_f64() == Some(7.75)).await;
        let last = feed.items[PLAIN].last_f64();
        let ok = status.is_good() && early == 0 && last == Some(7.75);
        self.check("set-triggering", ok, format!("{status}, {early} before the link, last {last:?}"));

        let status = self.link(feed, false).await;
        self.set_double("scalar/Double", 8.25).await;
        let after = feed.received_in(PLAIN, 400).await;
        let detail = format!("{status}, {after} notifications after");
        self.check("set-triggering remove", status.is_good() && after == 0, detail);
        let again = self.link(feed, false).await;
        let wanted = &[StatusCode::BAD_MONITORED_ITEM_ID_INVALID];
        self.check_status("set-triggering remove twice", again, wanted);
        self.set_mode(feed, plain, MonitoringMode::REPORTING).await;
        self.set_double("scalar/Double", std::f64::consts::E).await;
    }

    async fn set_publishing(&self, feed: &Feed, publishing_enabled: bool) -> StatusCode {
        let request = SetPublishingModeRequest {
            publishing_enabled,
            subscription_ids: vec![feed.subscription],
            ..SetPublishingModeRequest::default()
        };
        single(self.session.request(request).await.map(|response| response.results))
    }

    async fn modify_subscription(&mut self, feed: &mut Feed) {
        let request = ModifySubscriptionRequest {
            subscription_id: feed.subscription,
            requested_publishing_interval: 200.0,
            requested_lifetime_count: 600,
            requested_max_keep_alive_count: 3,
            ..ModifySubscriptionRequest::default()
        };
        match self.session.request(request).await {
            Ok(revised) => {
                let interval = revised.revised_publishing_interval;
                let detail = format!(
                    "revised publishing {interval} ms, lifetime {}, keep-alive {}",
                    revised.revised_lifetime_count, revised.revised_max_keep_alive_count
                );
                self.check("modify-subscription", interval == 200.0, detail)
            }
            Err(fault) => self.check("modify-subscription", false, fault),
        };

        let status = self.set_publishing(feed, false).await;
        feed.pump(400).await;
        let (messages, alive) = (feed.messages, feed.keep_alives);
        feed.pump(1600).await;
        let ok = status.is_good() && feed.messages == messages && feed.keep_alives > alive;
        let detail = format!(
            "{status}, {} messages, {} keep-alives",
            feed.messages - messages,
            feed.keep_alives - alive
        );
        self.check("set-publishing-mode off", ok, detail);
        let messages = feed.messages;
        let status = self.set_publishing(feed, true).await;
        feed.pump(1000).await;
        let ok = status.is_good() && feed.messages > messages;
        self.check("set-publishing-mode on", ok, format!("{status}, {} messages", feed.messages - messages));
    }

    /// The sequence number of the republished message.
    async fn republish(&self, feed: &Feed, sequence_number: u32) -> Result<u32, StatusCode> {
        let request = RepublishRequest {
            subscription_id: feed.subscription,
            retransmit_sequence_number: sequence_number,
            ..RepublishRequest::default()
        };
        let response = self.session.request(request).await.map_err(|fault| fault.status)?;
        Ok(response.notification_message.sequence_number)
    }

    async fn retransmission(&mut self, feed: &mut Feed) {
        let gone = Err(StatusCode::BAD_MESSAGE_NOT_AVAILABLE);
        let got = self.republish(feed, 3_000_000_000).await;
        self.check("republish unavailable", got == gone, format!("{got:?}"));
        feed.holds = true;
        let messages = feed.messages;
        feed.pump_until(2000, |feed| feed.messages > messages).await;
        let wanted = feed.last_sequence;
        let got = self.republish(feed, wanted).await;
        self.check("republish", got == Ok(wanted), format!("asked for {wanted}, got {got:?}"));
        feed.holds = false;
        feed.acknowledgements.push(SubscriptionAcknowledgement {
            subscription_id: feed.subscription,
            sequence_number: wanted,
        });
        // The acknowledgement is sent with the next Publish.
        feed.pump(1000).await;
        let got = self.republish(feed, wanted).await;
        self.check("republish acknowledged", got == gone, format!("{got:?}"));
    }

    async fn server_methods(&mut self, feed: &mut Feed) {
        let server = NodeId::numeric(0, object_ids::SERVER);
        let inputs = vec![Variant::from(feed.subscription)];
        let method = NodeId::numeric(0, method_ids::SERVER_GET_MONITORED_ITEMS);
        let result = self.call(server.clone(), method, inputs.clone()).await;
        let count = match &result.output_arguments[..] {
            [handles, _] => handles.as_array().map_or(0, |array| array.values.len()),
            _ => 0,
        };
        let ok = result.status_code.is_good() && count == UNKNOWN;
        self.check("get-monitored-items", ok, format!("{}, {count} items", result.status_code));

        let before = feed.items[ANSWER].count;
        let method = NodeId::numeric(0, method_ids::SERVER_RESEND_DATA);
        let result = self.call(server, method, inputs).await;
        let came = feed.pump_until(1000, |feed| feed.items[ANSWER].count > before).await;
        let detail = format!("{}, {} notifications", result.status_code, feed.items[ANSWER].count - before);
        self.check("resend-data", result.status_code.is_good() && came, detail);
    }

    async fn transfer_subscriptions(&mut self) {
        let mut outcome = self.transfer(None).await;
        let mut tried = String::new();
        if outcome.status.is_bad() {
            // A server may refuse this for anonymous sessions. A user of the test nodes then shows whether it supports transfers
            // at all.
            tried = format!("{} as anonymous, then as user1 ", outcome.status);
            outcome = self.transfer(Some(("user1", "password"))).await;
        }
        let detail = format!("{tried}{}, {} values after", outcome.status, outcome.values);
        self.check("transfer-subscriptions", outcome.status.is_good() && outcome.values >= 2, detail);
        let detail =
            if outcome.is_told { "the old session was told" } else { "the old session was not informed" };
        self.check("transfer status-change", outcome.is_told, detail);
    }

    async fn transfer(&self, user: Option<(&str, &str)>) -> Transfer {
        let mut transfer = Transfer { status: StatusCode::GOOD, values: 0, is_told: false };
        if let Err(fault) = self.try_transfer(user, &mut transfer).await {
            transfer.status = fault.status;
        }
        transfer
    }

    async fn try_transfer(&self, user: Option<(&str, &str)>, transfer: &mut Transfer) -> Result<(), Fault> {
        let mut from = Feed::new(Session::connect(&self.url, user).await?);
        let mut to = Feed::new(Session::connect(&self.url, user).await?);
        let subscription = from.create(100.0).await?.subscription_id;
        to.subscription = subscription;
        let request = CreateMonitoredItemsRequest {
            subscription_id: subscription,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_create: vec![item(self.id("counter"), COUNTER, 100.0, 10)],
            ..CreateMonitoredItemsRequest::default()
        };
        from.session.request(request).await?;
        from.holds = true;
        from.pump_until(1000, |feed| feed.messages >= 2).await;
        from.fill();

        let request = TransferSubscriptionsRequest {
            subscription_ids: vec![subscription],
            send_initial_values: true,
            ..TransferSubscriptionsRequest::default()
        };
        let response = to.session.request(request).await?;
        let result = response.results.first();
        transfer.status = result.map_or(StatusCode::BAD_UNEXPECTED_ERROR, |result| result.status_code);
        if transfer.status.is_good() {
            to.pump_until(2000, |feed| feed.items[COUNTER].count >= 3).await;
            transfer.values = to.items[COUNTER].count;
            let deadline = Instant::now() + Duration::from_millis(500);
            while !from.is_transferred && from.take_one(deadline).await {}
            transfer.is_told = from.is_transferred;
        }
        // The subscription is deleted with the session that owns it.
        from.session.close().await;
        to.session.close().await;
        Ok(())
    }

    /// A queue of three values that is written six times within one publishing interval keeps three values, in order, and reports
    /// lost values (Part 4 §5.13.1.5).
    async fn queues(&mut self) {
        for (name, discard_oldest, kept, marked) in [
            ("queue discards oldest", true, [4.0, 5.0, 6.0], 0),
            ("queue discards newest", false, [1.0, 2.0, 6.0], 2),
        ] {
            let values = match self.overflow(discard_oldest).await {
                Ok(values) => values,
                Err(fault) => {
                    self.check(name, false, fault);
                    continue;
                }
            };
            let got: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
            let flags: Vec<bool> = values.iter().map(|(_, overflow)| *overflow).collect();
            let ok = got == kept && flags.iter().enumerate().all(|(at, flag)| *flag == (at == marked));
            self.check(name, ok, format!("{values:?}"));
        }
        self.set_double("scalar/Double", std::f64::consts::E).await;
    }

    /// Values and Overflow bits that arrive for writes of 1 … 6.
    async fn overflow(&self, discard_oldest: bool) -> Result<Vec<(f64, bool)>, Fault> {
        let mut feed = Feed::new(Session::connect(&self.url, None).await?);
        let subscription = feed.create(1000.0).await?.subscription_id;
        let mut watched = item(self.id("scalar/Double"), PLAIN, 0.0, 3);
        watched.requested_parameters.discard_oldest = discard_oldest;
        let request = CreateMonitoredItemsRequest {
            subscription_id: subscription,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_create: vec![watched],
            ..CreateMonitoredItemsRequest::default()
        };
        let sampling = feed.session.request(request).await?.results;
        // A server that samples needs this time between writes to see each value.
        let pause =
            sampling.first().map_or(0.0, |result| result.revised_sampling_interval).clamp(0.0, 120.0) * 1.2;
        feed.pump_until(3000, |feed| feed.items[PLAIN].count > 0).await;
        let before = feed.items[PLAIN].count;
        for value in 1..=6 {
            self.set_double("scalar/Double", f64::from(value)).await;
            tokio::time::sleep(Duration::from_secs_f64(pause / 1000.0)).await;
        }
        feed.pump_until(3000, |feed| feed.items[PLAIN].count >= before + 3).await;
        feed.pump(200).await;
        let values = feed.items[PLAIN].values[before..].iter();
        let values = values.map(|value| {
            let number = value.value.as_ref().and_then(Variant::as_f64).unwrap_or(f64::NAN);
            (number, value.status().has_overflow())
        });
        let values = values.collect();
        feed.session.close().await;
        Ok(values)
    }

    async fn delete_all(&mut self, feed: &mut Feed) {
        let request = DeleteMonitoredItemsRequest {
            subscription_id: feed.subscription,
            monitored_item_ids: vec![feed.items[CLOCK].id, feed.items[ANSWER].id, NOBODY],
            ..DeleteMonitoredItemsRequest::default()
        };
        let results = self.session.request(request).await.map(|response| response.results);
        let wanted = [StatusCode::GOOD, StatusCode::GOOD, StatusCode::BAD_MONITORED_ITEM_ID_INVALID];
        let after = feed.received_in(CLOCK, 500).await;
        let ok = results.as_deref().is_ok_and(|results| results == wanted) && after == 0;
        self.check("delete-monitored-items", ok, format!("{results:?}, {after} notifications after"));

        let request = DeleteSubscriptionsRequest {
            subscription_ids: vec![feed.subscription, NOBODY],
            ..DeleteSubscriptionsRequest::default()
        };
        let results = self.session.request(request).await.map(|response| response.results);
        let wanted = [StatusCode::GOOD, StatusCode::BAD_SUBSCRIPTION_ID_INVALID];
        let ok = results.as_deref().is_ok_and(|results| results == wanted);
        self.check("delete-subscriptions", ok, format!("{results:?}"));

        // Queued requests must be answered, and a new Publish must be rejected.
        feed.acknowledgements.clear();
        feed.error = None;
        let deadline = Instant::now() + Duration::from_secs(1);
        while feed.outstanding() > 0 && feed.take_one(deadline).await {}
        let (left, queued) = (feed.outstanding(), feed.error.take());
        feed.send_publish();
        let deadline = Instant::now() + Duration::from_secs(1);
        while feed.error.is_none() && feed.take_one(deadline).await {}
        let ok = left == 0 && feed.error == Some(StatusCode::BAD_NO_SUBSCRIPTION);
        let detail = format!("{left} queued requests unanswered, queued: {queued:?}, new: {:?}", feed.error);
        self.check("publish without subscription", ok, detail);
    }
}

/// The result of a transfer.
struct Transfer {
    status: StatusCode,
    values: usize,
    is_told: bool,
}
