//! TransferSubscriptions between two shards, connected in memory, in virtual time.

use super::attribute::{add, variable};
use super::flow::{publish, subscribe, values};
use super::session::{login, with_users};
use super::*;
use schema::{
    CloseSessionRequest, DeleteSubscriptionsRequest, MonitoringMode, PublishResponse, RepublishRequest,
    SetMonitoringModeRequest, StatusChangeNotification, TransferResult, TransferSubscriptionsRequest,
    TransferSubscriptionsResponse,
};
use taktwerk_types::{BuiltInType, Variant};

/// One server of two shards, with the variable `ns=1;i=1` at 1.
pub(super) struct Pair {
    pub(super) shards: [Server; 2],
}

impl Pair {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let utc = UtcTime::parse("2026-01-01T00:00:00Z").unwrap();
        let mut config = ServerConfig::new("Test", APPLICATION, URL, utc);
        change(&mut config);
        let space = Arc::new(AddressSpace::new(2, 64, APPLICATION));
        let shared = ServerShared::new(config, Arc::clone(&space), 2, utc);
        let now = Now { instant: Instant::ZERO + Duration::from_secs(1), utc };
        let shards = [0, 1].map(|index| {
            let shard = Shard::new(index, Arc::clone(&shared), Box::new(SeededEntropy::new(index as u64)));
            Server { shard, space: Arc::clone(&space), now, from: None }
        });
        add(&shards[0], variable(1, BuiltInType::Double, 1.0));
        Self { shards }
    }

    /// Delivers messages between the shards until there are none.
    pub(super) fn deliver(&mut self) {
        loop {
            let message = self.shards.iter_mut().find_map(|server| server.shard.poll_message());
            let Some((to, message)) = message else { return };
            let server = &mut self.shards[to];
            server.shard.message(message, server.now);
        }
    }

    /// Advances the time on both shards.
    pub(super) fn pass(&mut self, ms: u64) {
        self.shards.iter_mut().for_each(|server| server.pass(Duration::from_millis(ms)));
    }

    pub(super) fn set(&self, value: f64) {
        let server = &self.shards[0];
        server.space.variable(&NodeId::numeric(1, 1)).unwrap().set_at(value, server.now.utc);
    }

    /// A session on shard 0 with a subscription that has reported 1, and its id.
    fn subscribed(&mut self) -> (Client, u32) {
        let mut client = self.shards[0].session();
        let id = subscribe(&mut client, &mut self.shards[0], NodeId::numeric(1, 1));
        assert_eq!(self.publish(&mut client, 0), [Variant::from(1.0)]);
        (client, id)
    }

    /// The values of the next message.
    fn publish(&mut self, client: &mut Client, at: usize) -> Vec<Variant> {
        let request = publish(client, &mut self.shards[at]);
        self.pass(200);
        client.drain(&mut self.shards[at]);
        values(&client.response::<PublishResponse>(request).unwrap().unwrap())
    }

    pub(super) fn ask(&mut self, client: &mut Client, at: usize, ids: &[u32]) -> u32 {
        let request = TransferSubscriptionsRequest {
            request_header: client.header(),
            subscription_ids: ids.to_vec(),
            send_initial_values: false,
        };
        client.send(&mut self.shards[at], TransferSubscriptionsRequest::BINARY_ENCODING_ID, &request)
    }

    pub(super) fn results(
        &mut self,
        client: &mut Client,
        at: usize,
        request: u32,
    ) -> Option<Vec<TransferResult>> {
        client.drain(&mut self.shards[at]);
        let response = client.response::<TransferSubscriptionsResponse>(request)?.unwrap();
        assert!(response.diagnostic_infos.is_empty());
        Some(response.results)
    }

    /// The statuses of a transfer, after the time it needs.
    pub(super) fn transfer(&mut self, client: &mut Client, at: usize, ids: &[u32]) -> Vec<StatusCode> {
        let request = self.ask(client, at, ids);
        self.deliver();
        let results = self.results(client, at, request).unwrap();
        results.into_iter().map(|result| result.status_code).collect()
    }

    fn close(&mut self, client: &mut Client, at: usize) {
        let request = CloseSessionRequest { request_header: client.header(), delete_subscriptions: false };
        client.call(&mut self.shards[at], &request).unwrap();
    }
}

#[test]
fn a_client_reconnecting_to_another_shard_gets_its_subscription() {
    let mut pair = Pair::new();
    let (lost, id) = pair.subscribed();
    let now = pair.shards[0].now;
    pair.shards[0].shard.closed(lost.connection, now);
    pair.set(2.0);
    let mut client = pair.shards[1].session();
    let request = pair.ask(&mut client, 1, &[id, 7, id, 8]);
    assert_eq!(pair.results(&mut client, 1, request), None);
    pair.set(3.0);
    pair.deliver();
    let results = pair.results(&mut client, 1, request).unwrap();
    let statuses: Vec<_> = results.iter().map(|result| result.status_code).collect();
    let invalid = StatusCode::BAD_SUBSCRIPTION_ID_INVALID;
    assert_eq!(statuses, [StatusCode::GOOD, invalid, StatusCode::BAD_NOTHING_TO_DO, invalid]);
    assert_eq!(results[0].available_sequence_numbers, [1]);
    assert_eq!(pair.publish(&mut client, 1), [Variant::from(3.0)]);
    // Sent messages can be republished, and items keep their ids.
    let request = RepublishRequest {
        request_header: client.header(),
        subscription_id: id,
        retransmit_sequence_number: 1,
    };
    let again = client.call(&mut pair.shards[1], &request).unwrap().notification_message;
    assert_eq!(again.sequence_number, 1);
    let request = SetMonitoringModeRequest {
        request_header: client.header(),
        subscription_id: id,
        monitoring_mode: MonitoringMode::REPORTING,
        monitored_item_ids: vec![1, 2],
    };
    let results = client.call(&mut pair.shards[1], &request).unwrap().results;
    assert_eq!(results, [StatusCode::GOOD, StatusCode::BAD_MONITORED_ITEM_ID_INVALID]);
    let counters = &pair.shards[0].shard.shared().live().counters;
    assert_eq!(counters.current_subscription_count.value(), 1);
    assert_eq!(counters.current_monitored_item_count.value(), 1);
    // Back to the first shard, and the end.
    let mut home = pair.shards[0].session();
    pair.set(4.0);
    assert_eq!(pair.transfer(&mut home, 0, &[id]), [StatusCode::GOOD]);
    assert_eq!(pair.publish(&mut home, 0), [Variant::from(4.0)]);
    let request = DeleteSubscriptionsRequest { request_header: home.header(), subscription_ids: vec![id] };
    assert_eq!(home.call(&mut pair.shards[0], &request).unwrap().results, [StatusCode::GOOD]);
    assert_eq!(pair.transfer(&mut client, 1, &[id]), [invalid]);
}

#[test]
fn the_previous_session_is_notified() {
    let mut pair = Pair::new();
    let (mut old, id) = pair.subscribed();
    let waiting = publish(&mut old, &mut pair.shards[0]);
    let mut client = pair.shards[1].session();
    assert_eq!(pair.transfer(&mut client, 1, &[id]), [StatusCode::GOOD]);
    old.drain(&mut pair.shards[0]);
    let response = old.response::<PublishResponse>(waiting).unwrap().unwrap();
    let change: StatusChangeNotification =
        response.notification_message.notification_data[0].decode().unwrap();
    assert_eq!((response.subscription_id, change.status), (id, StatusCode::GOOD_SUBSCRIPTION_TRANSFERRED));
}

#[test]
fn only_the_same_user_gets_it() {
    let check = |_: &str, _: &[u8]| Ok(());
    let mut pair = Pair::with(|config| with_users(config, Arc::new(check)));
    let session = |pair: &mut Pair, at: usize, name| {
        let mut client = pair.shards[at].connect();
        client.create(&mut pair.shards[at]).unwrap();
        let request = login(&mut client, name, "");
        client.call(&mut pair.shards[at], &request).unwrap();
        client
    };
    let mut owner = session(&mut pair, 0, "one");
    let id = subscribe(&mut owner, &mut pair.shards[0], NodeId::numeric(1, 1));
    let mut other = session(&mut pair, 1, "two");
    let denied = [StatusCode::BAD_USER_ACCESS_DENIED];
    assert_eq!(pair.transfer(&mut other, 1, &[id]), denied);
    pair.close(&mut owner, 0);
    assert_eq!(pair.transfer(&mut other, 1, &[id]), denied);
    let mut again = session(&mut pair, 1, "one");
    assert_eq!(pair.transfer(&mut again, 1, &[id]), [StatusCode::GOOD]);
    assert_eq!(pair.transfer(&mut other, 1, &[id]), denied);
}

#[test]
fn a_subscription_that_expires_before_the_transfer_is_invalid() {
    let mut pair = Pair::new();
    let (mut owner, id) = pair.subscribed();
    let mut client = pair.shards[1].session();
    let request = pair.ask(&mut client, 1, &[id]);
    let delete = DeleteSubscriptionsRequest { request_header: owner.header(), subscription_ids: vec![id] };
    owner.call(&mut pair.shards[0], &delete).unwrap();
    pair.deliver();
    let results = pair.results(&mut client, 1, request).unwrap();
    assert_eq!(results[0].status_code, StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
}

#[test]
fn a_subscription_without_its_new_session_waits_for_another_one() {
    let mut pair = Pair::new();
    let (_, id) = pair.subscribed();
    let mut hasty = pair.shards[1].session();
    let request = pair.ask(&mut hasty, 1, &[id]);
    pair.close(&mut hasty, 1);
    let response = hasty.response::<TransferSubscriptionsResponse>(request);
    assert_eq!(response, Some(Err(StatusCode::BAD_SESSION_CLOSED)));
    pair.deliver();
    pair.set(2.0);
    let mut client = pair.shards[0].session();
    assert_eq!(pair.transfer(&mut client, 0, &[id]), [StatusCode::GOOD]);
    assert_eq!(pair.publish(&mut client, 0), [Variant::from(2.0)]);
    // The same if only the connection is lost: the client does not know that it has the subscription.
    let mut lost = pair.shards[1].session();
    pair.ask(&mut lost, 1, &[id]);
    let now = pair.shards[1].now;
    pair.shards[1].shard.closed(lost.connection, now);
    pair.deliver();
    let mut client = pair.shards[1].session();
    assert_eq!(pair.transfer(&mut client, 1, &[id]), [StatusCode::GOOD]);
}

#[test]
fn a_transfer_from_an_unresponsive_shard_times_out() {
    let mut pair = Pair::new();
    let (_, id) = pair.subscribed();
    let mut client = pair.shards[1].session();
    let own = subscribe(&mut client, &mut pair.shards[1], NodeId::numeric(1, 1));
    let request = pair.ask(&mut client, 1, &[own, id]);
    pair.pass(6_000);
    let results = pair.results(&mut client, 1, request).unwrap();
    let statuses: Vec<_> = results.iter().map(|result| result.status_code).collect();
    assert_eq!(statuses, [StatusCode::BAD_NOTHING_TO_DO, StatusCode::BAD_TIMEOUT]);
    // The subscription arrives later, and can be transferred at once.
    pair.deliver();
    let request = pair.ask(&mut client, 1, &[id]);
    assert_eq!(pair.results(&mut client, 1, request).unwrap()[0].status_code, StatusCode::GOOD);
}

#[test]
fn transfer_requests_follow_a_subscription() {
    let mut pair = Pair::new();
    let (_, id) = pair.subscribed();
    let mut away = pair.shards[1].session();
    let mut home = pair.shards[0].session();
    let first = pair.ask(&mut away, 1, &[id]);
    let (to, question) = pair.shards[1].shard.poll_message().unwrap();
    let now = pair.shards[0].now;
    pair.shards[to].shard.message(question, now);
    // While it is in transit, it is requested from its new shard, which receives the request before the subscription.
    let (to, given) = pair.shards[0].shard.poll_message().unwrap();
    let second = pair.ask(&mut home, 0, &[id]);
    pair.deliver();
    assert_eq!(pair.results(&mut home, 0, second), None);
    pair.shards[to].shard.message(given, now);
    pair.deliver();
    assert_eq!(pair.results(&mut away, 1, first).unwrap()[0].status_code, StatusCode::GOOD);
    assert_eq!(pair.results(&mut home, 0, second).unwrap()[0].status_code, StatusCode::GOOD);
    pair.set(5.0);
    assert_eq!(pair.publish(&mut home, 0), [Variant::from(5.0)]);
}

#[test]
fn sessions_that_were_never_activated_are_evicted_on_any_shard() {
    let mut pair = Pair::with(|config| config.limits.sessions_max = 3);
    let mut active = pair.shards[0].session();
    let mut idle: Vec<Client> = (0..2)
        .map(|_| {
            let mut client = pair.shards[1].connect();
            client.create(&mut pair.shards[1]).unwrap();
            client
        })
        .collect();
    // Shard 0 has no evictable session, shard 1 has two.
    let mut new: Vec<Client> = (0..3).map(|_| pair.shards[0].connect()).collect();
    new[0].create(&mut pair.shards[0]).unwrap();
    new[0].activate(&mut pair.shards[0]).unwrap();
    new[1].create(&mut pair.shards[0]).unwrap();
    new[1].activate(&mut pair.shards[0]).unwrap();
    let refused = new[2].create(&mut pair.shards[0]).map(|_| ());
    assert_eq!(refused, Err(StatusCode::BAD_TOO_MANY_SESSIONS), "nothing is claimed twice");
    pair.deliver();
    assert_eq!((pair.shards[0].shard.session_count(), pair.shards[1].shard.session_count()), (3, 0));
    let live = pair.shards[0].shard.shared().live();
    assert_eq!(live.counters.current_session_count.value(), 3);
    for client in &mut idle {
        let gone = client.activate(&mut pair.shards[1]).map(|_| ());
        assert_eq!(gone, Err(StatusCode::BAD_SESSION_ID_INVALID));
    }
    assert_eq!(new[2].create(&mut pair.shards[0]).map(|_| ()), Err(StatusCode::BAD_TOO_MANY_SESSIONS));
    // Both shards can use a freed session.
    let request = CloseSessionRequest { request_header: active.header(), delete_subscriptions: true };
    active.call(&mut pair.shards[0], &request).unwrap();
    idle[0].create(&mut pair.shards[1]).unwrap();
    idle[0].activate(&mut pair.shards[1]).unwrap();
    assert_eq!(idle[1].create(&mut pair.shards[1]).map(|_| ()), Err(StatusCode::BAD_TOO_MANY_SESSIONS));
}

#[test]
fn connections_without_a_session_are_evicted_on_any_shard() {
    let mut pair = Pair::with(|config| config.limits.connections_max = 3);
    let _active = pair.shards[0].session();
    let mut idle = pair.shards[1].connect();
    let _busy = pair.shards[1].session();
    let mut new = pair.shards[0].connect();
    pair.deliver();
    idle.drain(&mut pair.shards[1]);
    assert!(idle.closed);
    new.create(&mut pair.shards[0]).unwrap();
    new.activate(&mut pair.shards[0]).unwrap();
    let live = pair.shards[0].shard.shared().live();
    assert_eq!(live.counters.current_connection_count.value(), 3);
    // Every connection has a session now.
    let id = pair.shards[0].shard.opened(pair.shards[0].now);
    pair.deliver();
    assert!(pair.shards[0].shard.poll_transmit().is_some_and(|to| to == id), "it gets an Error message");
    assert_eq!(pair.shards[1].shard.connection_count(), 1);
}

/// Each operation can be a question to another shard.
#[test]
fn the_operations_of_a_transfer_are_limited() {
    let mut pair = Pair::new();
    let mut client = pair.shards[1].session();
    let missing = pair.transfer(&mut client, 1, &vec![77; 1_000]);
    assert!(missing.len() == 1_000 && missing.iter().all(|status| status.is_bad()));
    let request = pair.ask(&mut client, 1, &vec![77; 1_001]);
    pair.deliver();
    client.drain(&mut pair.shards[1]);
    let response = client.response::<TransferSubscriptionsResponse>(request).unwrap();
    assert_eq!(response.unwrap_err(), StatusCode::BAD_TOO_MANY_OPERATIONS);
}
