//! The engine against scripts and against a reference model, in virtual time.

use super::filter::Filter;
use super::item::Trigger;
use super::manage::{ItemSpec, Settings};
use super::publish::{Responder, Ticket};
use super::subscription::Parameters;
use super::*;

mod groups;
mod item_table;
mod moving;
mod phase;
mod ready;
mod values;

use crate::authorization::{Decisions, Denial};
use crate::ids::ConnectionId;
use crate::now::Now;
use crate::space::{AddressSpace, NodeIx, NodeSpec, VariableHandle};
use proptest::prelude::*;
use taktwerk_schema::{DataChangeNotification, MonitoringMode, PublishResponse, StatusChangeNotification};
use taktwerk_types::{
    Decode, DecodeLimits, Decoder, NodeId, QualifiedName, StatusCode, TimestampsToReturn, UtcTime, Variant,
};

const MS: u64 = 1_000_000;

#[derive(Default)]
struct Recorder {
    responses: Vec<(u32, PublishResponse)>,
    faults: Vec<(u32, StatusCode)>,
    congested: bool,
    body_len_max: usize,
    /// Runs once, between the decision to send a message and its first byte.
    before_message: core::cell::RefCell<Option<Box<dyn Fn()>>>,
}

impl Responder for Recorder {
    fn is_congested(&self, _: ConnectionId) -> bool {
        self.congested
    }

    fn body_len_max(&self, _: ConnectionId) -> usize {
        if let Some(happens) = self.before_message.take() {
            happens();
        }
        if self.body_len_max == 0 { usize::MAX } else { self.body_len_max }
    }

    fn respond(&mut self, ticket: &Ticket, body: &mut dyn FnMut(&mut Vec<u8>)) {
        let mut out = Vec::new();
        body(&mut out);
        let mut decoder = Decoder::new(&out, DecodeLimits::DEFAULT);
        let type_id = NodeId::decode(&mut decoder).unwrap();
        assert_eq!(type_id, NodeId::from(taktwerk_schema::ids::encoding_ids::PUBLISH_RESPONSE_BINARY));
        let response = PublishResponse::decode(&mut decoder).unwrap();
        assert_eq!(decoder.remaining(), 0);
        assert_eq!(response.response_header.request_handle, ticket.request_handle);
        self.responses.push((ticket.request_handle, response));
    }

    fn fault(&mut self, ticket: &Ticket, status: StatusCode) {
        self.faults.push((ticket.request_handle, status));
    }
}

struct World {
    space: AddressSpace,
    engine: Engine,
    out: Recorder,
    now: u64,
    next_handle: u32,
    variables: Vec<(NodeIx, VariableHandle)>,
}

const SESSION: SessionKey = SessionKey(0);

impl World {
    fn new(variables: usize) -> Self {
        Self::with_shards(variables, 1)
    }

    fn with_shards(variables: usize, shards: usize) -> Self {
        let space = AddressSpace::new(shards, 4096, "urn:test");
        let variables = (0..variables)
            .map(|at| {
                let id = NodeId::numeric(1, 1000 + at as u32);
                let name = QualifiedName::new(1, format!("v{at}"));
                let spec = NodeSpec::variable(id, name, NodeId::from(11), Some(Variant::from(0.0)));
                let mut nodes = space.write();
                let ix = nodes.add(spec, UtcTime::from_ticks(1)).unwrap();
                let handle = VariableHandle::new(nodes.slot_handle(ix).unwrap());
                (ix, handle)
            })
            .collect();
        let locations = Arc::new(locations::Locations::new(shards));
        let (store, events) = (Arc::clone(space.slots()), Arc::clone(space.events()));
        let engine = Engine::new(0, SubscriptionLimits::default(), store, locations, events, 1);
        let now = 1_000 * MS;
        Self { space, engine, out: Recorder::default(), now, next_handle: 1, variables }
    }

    fn now(&self) -> Now {
        Now { instant: Instant::from_nanos(self.now), utc: UtcTime::from_ticks(self.now as i64 / 100) }
    }

    /// Decisions that permit everything.
    fn decisions(&self) -> Arc<Decisions> {
        let grant = Decisions::nothing().grant;
        Arc::new(Decisions::new(self.space.read().access(), grant))
    }

    fn subscribe(&mut self, interval: f64, lifetime: u32, keep_alive: u32, max: u32) -> u32 {
        let parameters = Parameters {
            publishing_interval: interval,
            lifetime_count: lifetime,
            max_keep_alive_count: keep_alive,
            max_notifications: max,
            priority: 0,
        }
        .revise(&SubscriptionLimits::default());
        self.engine.create_subscription(SESSION, parameters, true, self.decisions(), self.now()).unwrap()
    }

    fn settings(sampling: f64, queue_size: u32) -> Settings {
        Settings {
            sampling_interval: sampling,
            minimum_sampling_interval: 0.0,
            queue_size,
            discard_oldest: true,
            filter: Filter::DEFAULT,
            aggregate: None,
        }
    }

    fn item(&mut self, place: u32, variable: usize, mode: MonitoringMode, settings: Settings) -> u32 {
        let (node, _) = self.variables[variable];
        let slot = self.space.read().slot_handle(node);
        assert!(slot.is_some());
        let spec = ItemSpec {
            node,
            attribute_id: 13,
            slot,
            is_polled: false,
            denial: Denial::No,
            mode,
            client_handle: variable as u32,
            timestamps: TimestampsToReturn::Both,
            index_range: None,
            settings,
        };
        self.engine.create_item(place, spec, self.now(), &self.space).unwrap().item_id
    }

    fn set(&self, variable: usize, value: f64) {
        self.variables[variable].1.set_at(value, self.now().utc);
    }

    fn publish(&mut self) -> Result<u32, StatusCode> {
        self.publish_until(Instant::FAR)
    }

    /// A Publish request whose client waits no longer than until `expires`.
    fn publish_until(&mut self, expires: Instant) -> Result<u32, StatusCode> {
        let handle = self.next_handle;
        self.next_handle += 1;
        let ticket = Ticket {
            connection: ConnectionId::default(),
            request_id: handle,
            request_handle: handle,
            expires,
            results: Default::default(),
            charge: None,
        };
        let now = self.now();
        self.engine.publish(SESSION, ticket, now, &mut self.out).map(|()| handle)
    }

    /// Advances virtual time, running the engine only at its deadlines.
    fn advance(&mut self, span: u64) {
        let end = self.now + span;
        while let Some(at) = self.engine.next_deadline().filter(|at| at.as_nanos() <= end) {
            self.now = self.now.max(at.as_nanos());
            let now = self.now();
            self.engine.run(now, &self.space, &mut self.out);
        }
        self.now = end;
    }

    /// The values of the last responses, by client handle, and their overflow bits.
    fn take_values(&mut self) -> Vec<(u32, f64, bool)> {
        let mut values = Vec::new();
        for (_, response) in self.out.responses.drain(..) {
            for data in &response.notification_message.notification_data {
                let Ok(change) = data.decode::<DataChangeNotification>() else { continue };
                for item in change.monitored_items {
                    let status = item.value.status();
                    let value = item.value.value.and_then(|value| value.as_f64()).unwrap_or(f64::NAN);
                    values.push((item.client_handle, value, status.has_overflow()));
                }
            }
        }
        values
    }
}

const REPORTING: MonitoringMode = MonitoringMode::REPORTING;

#[test]
fn first_value_then_changes_then_keep_alives() {
    let mut world = World::new(2);
    let place = world.subscribe(100.0, 30, 3, 0);
    world.item(place, 0, REPORTING, World::settings(100.0, 1));
    world.item(place, 1, REPORTING, World::settings(-1.0, 1));
    for _ in 0..3 {
        world.publish().unwrap();
    }
    assert!(world.out.responses.is_empty());
    world.advance(105 * MS);
    assert_eq!(world.take_values(), [(0, 0.0, false), (1, 0.0, false)]);
    world.set(1, 5.0);
    world.set(1, 6.0);
    world.advance(100 * MS);
    assert_eq!(world.take_values(), [(1, 6.0, false)]);
    // Nothing for three cycles: one keep-alive with the next sequence number.
    world.advance(300 * MS);
    assert_eq!(world.out.responses.len(), 1);
    let message = &world.out.responses[0].1.notification_message;
    assert!(message.notification_data.is_empty());
    assert_eq!(message.sequence_number, 3);
}

#[test]
fn values_in_transit_to_other_items_are_not_reported_to_a_new_item() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 30, 3, 0);
    world.item(place, 0, REPORTING, World::settings(0.0, 10));
    world.set(0, 1.0);
    world.set(0, 2.0);
    let late = world.subscribe(100.0, 30, 3, 0);
    world.item(late, 0, REPORTING, World::settings(0.0, 10));
    world.set(0, 3.0);
    world.publish().unwrap();
    world.publish().unwrap();
    world.advance(105 * MS);
    let mut values: Vec<Vec<f64>> = Vec::new();
    while !world.out.responses.is_empty() {
        let rest = world.out.responses.split_off(1);
        values.push(world.take_values().into_iter().map(|(_, value, _)| value).collect());
        world.out.responses = rest;
    }
    values.sort_by_key(Vec::len);
    assert_eq!(values, [vec![2.0, 3.0], vec![0.0, 1.0, 2.0, 3.0]]);
    // The same with ResendData.
    world.set(0, 4.0);
    world.set(0, 5.0);
    world.engine.resend_data(late);
    world.publish().unwrap();
    world.publish().unwrap();
    world.advance(100 * MS);
    assert_eq!(world.take_values().iter().map(|value| value.1).collect::<Vec<_>>(), [4.0, 5.0, 4.0, 5.0]);
}

#[test]
fn a_quiet_subscription_first_sends_a_keep_alive() {
    let mut world = World::new(0);
    world.subscribe(100.0, 30, 5, 0);
    world.publish().unwrap();
    world.advance(105 * MS);
    assert_eq!(world.out.responses.len(), 1);
    assert_eq!(world.out.responses[0].1.notification_message.sequence_number, 1);
}

#[test]
fn silent_cycles_count_keep_alives_and_answer_expired_requests() {
    let mut world = World::new(0);
    world.subscribe(10.0, 3000, 100, 0);
    world.publish().unwrap();
    world.advance(15 * MS);
    assert_eq!(world.out.responses.len(), 1, "the first keep-alive");
    let begin = world.now;
    let stale = world.publish_until(Instant::from_nanos(begin + 55 * MS)).unwrap();
    let fresh = world.publish().unwrap();
    world.advance(50 * MS);
    assert_eq!(world.out.faults, []);
    // Expired requests are checked at least every tenth of a second, even without notifications.
    world.advance(115 * MS);
    assert_eq!(world.out.faults, [(stale, StatusCode::BAD_TIMEOUT)]);
    world.advance(810 * MS);
    assert_eq!(world.out.responses.len(), 1, "a cycle too early");
    world.advance(30 * MS);
    assert_eq!(world.out.responses.len(), 2);
    assert_eq!(world.out.responses[1].0, fresh);
}

#[test]
fn late_subscriptions_take_the_next_request_at_once() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 30, 3, 0);
    world.item(place, 0, REPORTING, World::settings(100.0, 1));
    world.advance(250 * MS);
    assert!(world.engine.is_late(place));
    world.set(0, 1.0);
    world.publish().unwrap();
    // Values written since the last cycle wait for the next one; values found in it are sent.
    assert_eq!(world.take_values(), [(0, 1.0, false)]);
    assert!(!world.engine.is_late(place));
}

#[test]
fn an_expired_lifetime_ends_a_subscription_with_a_notification() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 9, 3, 0);
    world.item(place, 0, REPORTING, World::settings(100.0, 1));
    world.advance(2000 * MS);
    assert_eq!(world.engine.subscription_count(), 0);
    assert_eq!(world.engine.item_count(), 0);
    world.publish().unwrap();
    let change: StatusChangeNotification =
        world.out.responses[0].1.notification_message.notification_data[0].decode().unwrap();
    assert_eq!(change.status, StatusCode::BAD_TIMEOUT);
    assert_eq!(world.publish(), Err(StatusCode::BAD_NO_SUBSCRIPTION));
}

#[test]
fn queued_requests_keep_a_subscription_alive() {
    let mut world = World::new(0);
    world.subscribe(100.0, 9, 3, 0);
    for _ in 0..50 {
        world.publish().unwrap();
    }
    world.advance(10_000 * MS);
    assert_eq!(world.engine.subscription_count(), 1);
    // One keep-alive at once, then one every third cycle.
    assert!((32..=34).contains(&world.out.responses.len()), "{}", world.out.responses.len());
}

#[test]
fn remaining_notifications_follow_with_the_next_request() {
    let mut world = World::new(10);
    let place = world.subscribe(100.0, 30, 3, 4);
    for variable in 0..10 {
        world.item(place, variable, REPORTING, World::settings(100.0, 1));
    }
    world.publish().unwrap();
    world.publish().unwrap();
    world.advance(105 * MS);
    assert_eq!(world.out.responses.len(), 2);
    assert!(world.out.responses.iter().all(|(_, response)| response.more_notifications));
    world.publish().unwrap();
    assert_eq!(world.out.responses.len(), 3);
    assert!(!world.out.responses[2].1.more_notifications);
    let handles: Vec<u32> = world.take_values().into_iter().map(|value| value.0).collect();
    assert_eq!(handles, (0..10).collect::<Vec<_>>());
}

#[test]
fn a_message_fits_the_client() {
    let mut world = World::new(500);
    world.out.body_len_max = 8192;
    let place = world.subscribe(100.0, 30, 3, 0);
    for variable in 0..500 {
        world.item(place, variable, REPORTING, World::settings(100.0, 1));
    }
    for _ in 0..5 {
        world.publish().unwrap();
    }
    world.advance(105 * MS);
    assert!(world.out.responses.len() >= 2);
    assert_eq!(world.take_values().len(), 500);
}

#[test]
fn a_congested_client_only_loses_old_values() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1000, 3, 0);
    world.item(place, 0, REPORTING, World::settings(100.0, 1));
    world.publish().unwrap();
    world.out.congested = true;
    for value in 0..5 {
        world.set(0, f64::from(value));
        world.advance(100 * MS);
    }
    assert!(world.out.responses.is_empty());
    world.out.congested = false;
    let now = world.now();
    world.engine.connection_ready(SESSION, now, &mut world.out);
    assert_eq!(world.take_values(), [(0, 4.0, false)]);
}

#[test]
fn slower_sampling_than_publishing() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    world.item(place, 0, REPORTING, World::settings(1000.0, 1));
    for _ in 0..40 {
        world.publish().unwrap();
    }
    let mut reports = 0;
    for step in 0..50 {
        world.set(0, f64::from(step + 1));
        world.advance(100 * MS);
        reports += world.take_values().len();
    }
    assert!((5..=6).contains(&reports), "{reports}");
}

#[test]
fn a_queue_collects_samples_between_publishes() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    world.item(place, 0, REPORTING, World::settings(10.0, 20));
    for _ in 0..40 {
        world.publish().unwrap();
    }
    world.advance(105 * MS);
    world.take_values();
    for step in 0..100 {
        world.set(0, f64::from(step + 1));
        world.advance(2 * MS);
    }
    let values = world.take_values();
    assert!((18..=21).contains(&values.len()), "{values:?}");
    assert!(values.windows(2).all(|pair| pair[0].1 < pair[1].1));
}

#[test]
fn monitoring_modes() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    let item = world.item(place, 0, MonitoringMode::DISABLED, World::settings(100.0, 1));
    for _ in 0..10 {
        world.publish().unwrap();
    }
    world.advance(205 * MS);
    assert_eq!(world.take_values(), []);
    let index = world.engine.find_item(place, item).unwrap();
    let mode = |world: &mut World, mode| {
        let now = world.now();
        world.engine.set_mode(index, mode, now, &world.space);
        let disabled = world.engine.subscription(place).unwrap().disabled_items();
        assert_eq!(disabled, u32::from(mode == MonitoringMode::DISABLED));
        world.advance(100 * MS);
        world.take_values()
    };
    assert_eq!(mode(&mut world, MonitoringMode::SAMPLING), []);
    world.set(0, 3.0);
    assert_eq!(mode(&mut world, REPORTING), [(0, 3.0, false)]);
    assert_eq!(mode(&mut world, MonitoringMode::DISABLED), []);
    world.set(0, 4.0);
    assert_eq!(mode(&mut world, REPORTING), [(0, 4.0, false)]);
}

#[test]
fn triggered_items_report_with_their_trigger() {
    let mut world = World::new(3);
    let place = world.subscribe(100.0, 1000, 100, 0);
    let trigger = world.item(place, 0, REPORTING, World::settings(100.0, 1));
    let linked = world.item(place, 1, MonitoringMode::SAMPLING, World::settings(100.0, 1));
    let index = world.engine.find_item(place, trigger).unwrap();
    let (added, _) = world.engine.set_triggering(place, index, &[linked, 99], &[]);
    assert_eq!(added, [StatusCode::GOOD, StatusCode::BAD_MONITORED_ITEM_ID_INVALID]);
    for _ in 0..10 {
        world.publish().unwrap();
    }
    world.advance(105 * MS);
    assert_eq!(world.take_values(), [(0, 0.0, false), (1, 0.0, false)]);
    world.set(1, 5.0);
    world.advance(100 * MS);
    assert_eq!(world.take_values(), []);
    world.set(0, 1.0);
    world.advance(100 * MS);
    assert_eq!(world.take_values(), [(0, 1.0, false), (1, 5.0, false)]);
    // Without its own change the linked item reports nothing.
    world.set(0, 2.0);
    world.advance(100 * MS);
    assert_eq!(world.take_values(), [(0, 2.0, false)]);
}

#[test]
fn acknowledge_and_republish() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    world.item(place, 0, REPORTING, World::settings(100.0, 1));
    for _ in 0..10 {
        world.publish().unwrap();
    }
    for value in 0..3 {
        world.set(0, f64::from(value + 1));
        world.advance(100 * MS);
    }
    let id = world.engine.subscription(place).unwrap().id;
    let available = world.out.responses[2].1.available_sequence_numbers.clone();
    assert_eq!(available, [1, 2, 3]);
    let waits = || -> Ticket { panic!("only messages of durable subscriptions wait") };
    assert!(world.engine.republish(place, 2, waits).is_ok());
    assert_eq!(world.engine.acknowledge(SESSION, id, 2), StatusCode::GOOD);
    assert_eq!(world.engine.acknowledge(SESSION, id, 2), StatusCode::BAD_SEQUENCE_NUMBER_UNKNOWN);
    assert_eq!(world.engine.acknowledge(SESSION, 77, 1), StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
    assert_eq!(world.engine.republish(place, 2, waits).unwrap_err(), StatusCode::BAD_MESSAGE_NOT_AVAILABLE);
}

#[test]
fn too_many_requests_push_the_oldest_out() {
    let mut world = World::new(0);
    world.subscribe(1000.0, 1000, 100, 0);
    for _ in 0..101 {
        world.publish().unwrap();
    }
    assert_eq!(world.out.faults, [(1, StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS)]);
    assert_eq!(world.engine.cancel(SESSION, 5, &mut world.out), 1);
    assert_eq!(world.out.faults[1], (5, StatusCode::BAD_REQUEST_CANCELLED_BY_CLIENT));
}

#[test]
fn transfer_moves_everything_and_notifies_the_old_session() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    world.item(place, 0, REPORTING, World::settings(100.0, 1));
    world.publish().unwrap();
    world.publish().unwrap();
    world.advance(105 * MS);
    world.take_values();
    let now = world.now();
    let available = world.engine.transfer(place, SessionKey(7), true, false, now, &mut world.out);
    assert_eq!(available, [1]);
    let change: StatusChangeNotification =
        world.out.responses[0].1.notification_message.notification_data[0].decode().unwrap();
    assert_eq!(change.status, StatusCode::GOOD_SUBSCRIPTION_TRANSFERRED);
    assert_eq!(world.engine.find(SessionKey(7), 1), Ok(place));
    assert_eq!(world.engine.find(SESSION, 1), Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID));
}

#[test]
fn a_returning_subscription_cancels_its_notification_and_notifications_are_bounded() {
    let mut world = World::new(0);
    let place = world.subscribe(100.0, 1000, 100, 0);
    let now = world.now();
    for session in [SessionKey(7), SESSION] {
        world.engine.transfer(place, session, false, false, now, &mut world.out);
    }
    world.publish().unwrap();
    world.advance(105 * MS);
    let message = &world.out.responses[0].1.notification_message;
    assert!(message.notification_data.is_empty(), "a keep-alive");
    let max = SubscriptionLimits::default().subscriptions_per_session_max as usize;
    for _ in 0..max * 2 {
        let place = world.subscribe(100.0, 1000, 100, 0);
        world.engine.transfer(place, SessionKey(7), false, false, now, &mut world.out);
        world.engine.delete_subscription(place, &mut world.out);
    }
    assert_eq!(world.engine.queues[SESSION.0 as usize].as_ref().unwrap().status_changes.len(), max);
}

#[test]
fn semantics_changed_bit_comes_once() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    world.item(place, 0, REPORTING, World::settings(100.0, 1));
    for _ in 0..5 {
        world.publish().unwrap();
    }
    world.advance(105 * MS);
    world.out.responses.clear();
    world.space.read().slot_handle(world.variables[0].0).unwrap().semantics_changed();
    world.advance(100 * MS);
    world.set(0, 1.0);
    world.advance(100 * MS);
    let bits: Vec<bool> = world
        .out
        .responses
        .iter()
        .map(|(_, response)| {
            let data = &response.notification_message.notification_data[0];
            let change: DataChangeNotification = data.decode().unwrap();
            change.monitored_items[0].value.status().0 & StatusCode::SEMANTICS_CHANGED != 0
        })
        .collect();
    assert_eq!(bits, [true, false]);
}

#[test]
fn deleting_items_and_reusing_their_indexes() {
    let mut world = World::new(4);
    let place = world.subscribe(100.0, 1000, 100, 0);
    let ids: Vec<u32> =
        (0..4).map(|variable| world.item(place, variable, REPORTING, World::settings(100.0, 1))).collect();
    for _ in 0..10 {
        world.publish().unwrap();
    }
    let index = world.engine.find_item(place, ids[1]).unwrap();
    world.engine.delete_item(index);
    assert_eq!(world.engine.find_item(place, ids[1]), Err(StatusCode::BAD_MONITORED_ITEM_ID_INVALID));
    let again = world.item(place, 1, REPORTING, World::settings(100.0, 1));
    assert_eq!(again, ids[1]);
    world.advance(105 * MS);
    let mut handles: Vec<u32> = world.take_values().into_iter().map(|value| value.0).collect();
    handles.sort_unstable();
    assert_eq!(handles, [0, 1, 2, 3]);
}

#[derive(Debug, Clone)]
enum Step {
    Set(usize, u8),
    Publish,
    Advance(u8),
    Congest(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0usize..3, any::<u8>()).prop_map(|(variable, value)| Step::Set(variable, value)),
        2 => Just(Step::Publish),
        2 => (1u8..60).prop_map(Step::Advance),
        1 => any::<bool>().prop_map(Step::Congest),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No silent loss, correct order, and Overflow exactly where values are missing; compared with lists of the writes.
    #[test]
    fn queues_agree_with_a_reference_model(steps in steps(), queue_size in 2u32..6) {
        let mut world = World::new(3);
        let place = world.subscribe(50.0, 100_000, 10, 0);
        for variable in 0..3 {
            world.item(place, variable, REPORTING, World::settings(0.0, queue_size));
        }
        // Per variable: all distinct successive written values; the first is the initial value.
        let mut written = vec![vec![0.0f64]; 3];
        let mut received: Vec<Vec<(f64, bool)>> = vec![Vec::new(); 3];
        let mut take = |world: &mut World| {
            for (handle, value, overflow) in world.take_values() {
                received[handle as usize].push((value, overflow));
            }
        };
        for step in steps {
            match step {
                Step::Set(variable, value) => {
                    // Every value once, so that received values can be found among the written ones; sometimes the last
                    // one again, which is not a change.
                    let repeat = value < 64;
                    let count = written[variable].len();
                    let value = (if repeat { count - 1 } else { count }) as f64;
                    world.set(variable, value);
                    if !repeat {
                        written[variable].push(value);
                    }
                }
                Step::Publish => { let _ = world.publish(); }
                Step::Advance(ms) => world.advance(u64::from(ms) * MS),
                Step::Congest(on) => world.out.congested = on,
            }
            take(&mut world);
        }
        world.out.congested = false;
        for _ in 0..5 {
            let _ = world.publish();
            world.advance(50 * MS);
        }
        take(&mut world);
        for (written, received) in written.iter().zip(&received) {
            // Walk through the written values; one may be skipped only if the next received value has the Overflow bit.
            let mut at = 0;
            for (value, overflow) in received {
                if *overflow {
                    let found = written[at..].iter().position(|candidate| candidate == value);
                    prop_assert!(found.is_some(), "{written:?} {received:?}");
                    at += found.unwrap() + 1;
                } else {
                    prop_assert_eq!(written.get(at), Some(value), "{:?} {:?}", written, received);
                    at += 1;
                }
            }
            prop_assert_eq!(received.last().map(|last| last.0), written.last().copied());
        }
    }

    /// With queue size 1 the newest value always arrives, older values never follow newer ones, and nothing is sent
    /// twice.
    #[test]
    fn the_newest_value_always_arrives(steps in steps(), sampling in prop_oneof![Just(-1.0), Just(0.0), Just(10.0), Just(120.0)]) {
        let mut world = World::new(3);
        let place = world.subscribe(50.0, 100_000, 10, 0);
        for variable in 0..3 {
            world.item(place, variable, REPORTING, World::settings(sampling, 1));
        }
        let mut last = [0.0f64; 3];
        let mut seen: [Option<f64>; 3] = [None; 3];
        let mut check = |world: &mut World| {
            for (handle, value, overflow) in world.take_values() {
                assert!(!overflow);
                assert_ne!(seen[handle as usize], Some(value), "sent twice");
                seen[handle as usize] = Some(value);
            }
        };
        for step in steps {
            match step {
                Step::Set(variable, value) => {
                    last[variable] = f64::from(value);
                    world.set(variable, f64::from(value));
                }
                Step::Publish => { let _ = world.publish(); }
                Step::Advance(ms) => world.advance(u64::from(ms) * MS),
                Step::Congest(on) => world.out.congested = on,
            }
            check(&mut world);
        }
        world.out.congested = false;
        for _ in 0..6 {
            let _ = world.publish();
            world.advance(50 * MS);
        }
        check(&mut world);
        prop_assert_eq!(seen, last.map(Some));
    }
}

#[test]
fn the_status_trigger_ignores_values() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    let filter = Filter { trigger: Trigger::Status, deadband: None };
    world.item(place, 0, REPORTING, Settings { filter, ..World::settings(100.0, 1) });
    for _ in 0..5 {
        world.publish().unwrap();
    }
    world.advance(105 * MS);
    assert_eq!(world.take_values().len(), 1);
    world.set(0, 9.0);
    world.advance(100 * MS);
    assert_eq!(world.take_values(), []);
    let time = world.now().utc;
    world.variables[0].1.set_with(9.0, StatusCode::UNCERTAIN, time, time);
    world.advance(100 * MS);
    assert_eq!(world.take_values(), [(0, 9.0, false)]);
}
