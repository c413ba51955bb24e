//! The application on each client: it subscribes or sends requests, counts, and checks what the server promises.

use super::clock::{self, Clock};
use super::events::{self, Arrival, Received};
use super::item::{Came, Item, Rule};
use super::outcome::LoadOutcome;
use super::site::FIRST;
use super::{Load, Operation, Pace, Requests, Subscription, durable, history};
use crate::client::Application;
use crate::plant::{monitor, value_of, variable_id};
use crate::signals::{Rhythm, value};
use core::cell::RefCell;
use core::time::Duration;
use std::collections::BTreeSet;
use std::rc::Rc;
use taktwerk_client::{
    Client, ClientError, Delivery, Event, OwnedReply, RequestHandle, SubscriptionEvent, SubscriptionHandle,
    SubscriptionParams,
};
use taktwerk_schema::{
    CallResponse, CreateSubscriptionRequest, HistoryReadResponse, MonitoredItemCreateRequest, ReadRequest,
    ReadResponse, TimestampsToReturn, WriteRequest, WriteResponse, WriteValue,
};
use taktwerk_server::Now;
use taktwerk_types::{DataValue, Instant, StatusCode, Variant};

/// InfoBits: type DataValue with Overflow set (Part 4 §7.39.1).
const OVERFLOW: u32 = 0x0480;
/// Longest queue: the maximum that a server with default limits grants.
const QUEUE_MAX: u32 = 10_000;
/// A client without a connection retries its request after this time.
const RETRY: Duration = Duration::from_millis(100);
/// How long a subscription survives without its client, unless configured otherwise.
const LIFETIME: Duration = Duration::from_secs(600);

/// The variables of a server as seen by its clients.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    /// By group of variables.
    pub(super) rhythms: Vec<Rhythm>,
    /// The group of each variable.
    pub(super) group_of: Vec<usize>,
    /// Number of values that the server stores of each variable.
    pub(super) history: u32,
    /// No process of the server ends before its values are stored.
    pub(super) has_complete_history: bool,
    /// Clients write the variables, so that any number of values may be stored in any time.
    pub(super) has_writers: bool,
    /// No clock is ever wrong, so that clients ask for the newest values when they ask until now.
    pub(super) has_true_clocks: bool,
}

/// State shared by all clients of a scenario.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// The first broken promise.
    pub(super) broken: RefCell<Option<String>>,
    /// Server and id of each subscription that has an owner.
    owned: RefCell<BTreeSet<(usize, u32)>>,
}

impl Board {
    fn fail(&self, text: String) {
        self.broken.borrow_mut().get_or_insert(text);
    }
}

/// The application of one client.
#[derive(Debug)]
pub(super) struct Worker {
    name: String,
    /// The index of its server.
    pub(super) site: usize,
    /// The index of its group.
    pub(super) group: usize,
    shape: Rc<Shape>,
    board: Rc<Board>,
    task: Task,
    /// Only values written or requests sent from the first of these times on, and before the second, are counted.
    pub(super) window: (Instant, Instant),
    pub(super) connecting_since: Instant,
    pub(super) is_up: bool,
    /// When the connection was lost.
    lost_at: Option<Instant>,
    /// It was told to disconnect.
    pub(super) is_leaving: bool,
    pub(super) outcome: LoadOutcome,
    /// The most recent problem.
    pub(super) trouble: Option<String>,
}

#[derive(Debug)]
enum Task {
    Subscribe(Subscriber),
    Request(Requester),
}

#[derive(Debug)]
struct Subscriber {
    settings: Subscription,
    /// Variables, by client handle.
    variables: Vec<u32>,
    items: Vec<Item>,
    /// The events of its event item, whose client handle is the number of variables.
    events: Received,
    id: Option<u32>,
    handle: Option<SubscriptionHandle>,
    /// The items were added to the subscription.
    has_items: bool,
    /// The pending SetSubscriptionDurable.
    making_durable: Option<RequestHandle>,
    /// Sends the Publish requests, if the client core does not.
    clock: Option<Box<Clock>>,
}

#[derive(Debug)]
struct Requester {
    settings: Requests,
    variables: Vec<u32>,
    /// Index in `variables` at which the next request begins.
    next: usize,
    /// When the next request is due.
    next_at: Option<Instant>,
    /// The pending request and the time at which it was due.
    waits: Option<(RequestHandle, Instant)>,
    /// When it was sent.
    sent_at: Instant,
    /// The variables of the pending request.
    asked: Vec<u32>,
    count: i64,
}

impl Worker {
    pub(super) fn new(
        name: String,
        (site, group): (usize, usize),
        load: &Load,
        variables: Vec<u32>,
        shape: Rc<Shape>,
        board: Rc<Board>,
    ) -> Self {
        let task = match load {
            Load::Subscribe(settings) => Task::Subscribe(Subscriber {
                settings: settings.clone(),
                items: vec![Item::default(); variables.len()],
                variables,
                events: Received::default(),
                id: None,
                handle: None,
                has_items: false,
                making_durable: None,
                clock: Clock::of(settings).map(Box::new),
            }),
            Load::Request(settings) => Task::Request(Requester {
                settings: settings.clone(),
                variables,
                next: 0,
                next_at: None,
                waits: None,
                sent_at: Instant::ZERO,
                asked: Vec::new(),
                count: 0,
            }),
        };
        Self {
            name,
            site,
            group,
            shape,
            board,
            task,
            window: (Instant::FAR, Instant::FAR),
            connecting_since: Instant::ZERO,
            is_up: false,
            lost_at: None,
            is_leaving: false,
            outcome: LoadOutcome::default(),
            trouble: None,
        }
    }

    /// Whether it has a session and, for a subscription, the first value of each item.
    pub(super) fn has_begun(&self) -> bool {
        match &self.task {
            Task::Subscribe(it) => self.is_up && it.items.iter().all(|item| item.last >= 0),
            Task::Request(_) => self.is_up,
        }
    }

    /// Describes what it still waits for: the values with the last numbers of the groups, and a later event than the
    /// one with this number, if the server raises events.
    pub(super) fn is_stuck(&self, last: &[i64], event: Option<i64>) -> Option<String> {
        let trouble = self.trouble.as_deref().unwrap_or("nothing was reported");
        match &self.task {
            Task::Subscribe(it) => {
                let late = it.variables.iter().zip(&it.items).filter(|(variable, item)| {
                    let group = self.shape.group_of.get(**variable as usize).copied().unwrap_or(0);
                    item.last < last.get(group).copied().unwrap_or(0)
                });
                let count = late.count();
                if count > 0 {
                    let (all, name) = (it.items.len(), &self.name);
                    return Some(format!(
                        "{name} has not got the last value of {count} of {all} items ({trouble})"
                    ));
                }
                let event =
                    event.filter(|event| it.settings.event_queue.is_some() && it.events.last <= *event)?;
                let (name, last) = (&self.name, it.events.last);
                Some(format!("{name} has got no event after {event}, the last one is {last} ({trouble})"))
            }
            Task::Request(it) => {
                it.waits.is_some().then(|| format!("{} waits for an answer ({trouble})", self.name))
            }
        }
    }

    /// Whether it is only late: it still sends requests that were due long ago, because it wants more requests than the
    /// line can carry one after the other, and the pending request was sent after this time.
    pub(super) fn is_behind(&self, since: Instant) -> bool {
        matches!(&self.task, Task::Request(it) if it.waits.is_some() && it.sent_at > since)
    }

    /// The number of its items in each group.
    pub(super) fn items_per_group(&self) -> Vec<u64> {
        let mut counts = vec![0; self.shape.rhythms.len()];
        if let Task::Subscribe(it) = &self.task {
            for variable in &it.variables {
                let group = self.shape.group_of.get(*variable as usize).copied();
                if let Some(count) = group.and_then(|group| counts.get_mut(group)) {
                    *count += 1;
                }
            }
        }
        counts
    }

    fn subscribe(&mut self, client: &mut Client, now: Instant) {
        let Task::Subscribe(it) = &mut self.task else { return };
        let settings = &it.settings;
        let interval = settings.publishing_interval.as_secs_f64();
        let keep_alive_count = settings.keep_alive_count;
        let lifetime = (LIFETIME.as_secs_f64() / interval).ceil() as u32;
        let params = SubscriptionParams {
            publishing_interval_ms: interval * 1e3,
            keep_alive_count,
            lifetime_count: settings
                .lifetime_count
                .unwrap_or_else(|| lifetime.max(keep_alive_count.saturating_mul(3))),
            notifications_max: settings.notifications_max,
            timestamps: TimestampsToReturn::BOTH,
            ..SubscriptionParams::default()
        };
        let is_durable = settings.is_durable;
        if it.clock.is_some() {
            return self.subscribe_by_clock(&params, client, now);
        }
        it.handle = Some(client.create_subscription(params, now));
        (it.has_items, it.making_durable) = (false, None);
        // A subscription with items can no longer become durable (Part 5 §9.3).
        if !is_durable {
            self.add_items(client, now);
        }
    }

    /// Creates a subscription of a client with a clock.
    fn subscribe_by_clock(&mut self, params: &SubscriptionParams, client: &mut Client, now: Instant) {
        let Task::Subscribe(it) = &mut self.task else { return };
        let request = CreateSubscriptionRequest {
            requested_publishing_interval: params.publishing_interval_ms,
            requested_lifetime_count: params.lifetime_count,
            requested_max_keep_alive_count: params.keep_alive_count,
            max_notifications_per_publish: params.notifications_max,
            publishing_enabled: true,
            ..CreateSubscriptionRequest::default()
        };
        let items = it.items(&self.shape);
        let subscribed = it.clock.as_mut().map(|clock| clock.subscribe(request, items, client, now));
        if let Some(Err(error)) = subscribed {
            self.trouble = Some(error.to_string());
        }
    }

    fn response_by_clock(
        &mut self,
        handle: RequestHandle,
        result: Result<OwnedReply, ClientError>,
        client: &mut Client,
        now: Instant,
    ) {
        let Task::Subscribe(it) = &mut self.task else { return };
        let Some(clock) = &mut it.clock else { return };
        match clock.response(handle, result, client, now) {
            clock::Came::Nothing => {}
            clock::Came::Created(id) => self.own(id),
            clock::Came::Values(values) => self.data_changes(&values, now),
            clock::Came::Trouble(trouble) => self.trouble = Some(trouble),
        }
    }

    /// It has this subscription, which must not belong to another client.
    fn own(&mut self, id: u32) {
        let site = self.site;
        let Task::Subscribe(it) = &mut self.task else { return };
        let mut owned = self.board.owned.borrow_mut();
        if let Some(old) = it.id.take() {
            owned.remove(&(site, old));
        }
        it.id = Some(id);
        if !owned.insert((site, id)) {
            self.board.fail(format!("{}: subscription {id} belongs to another client", self.name));
        }
    }

    fn add_items(&mut self, client: &mut Client, now: Instant) {
        let Task::Subscribe(it) = &mut self.task else { return };
        let Some(subscription) = it.handle.filter(|_| !core::mem::replace(&mut it.has_items, true)) else {
            return;
        };
        let items = it.items(&self.shape);
        if let Err(error) = client.add_items(subscription, items, now) {
            self.trouble = Some(error.to_string());
        }
    }

    /// The subscription exists and has no items yet.
    fn make_durable(&mut self, id: u32, client: &mut Client, now: Instant) {
        let Task::Subscribe(it) = &mut self.task else { return };
        if !it.settings.is_durable || it.has_items {
            return;
        }
        match client.request(&mut durable::call(id), None, now) {
            Ok(handle) => it.making_durable = Some(handle),
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.add_items(client, now);
            }
        }
    }

    /// The response to SetSubscriptionDurable, if it is one. Without success the subscription works too.
    fn made_durable(
        &mut self,
        handle: RequestHandle,
        status: Result<StatusCode, String>,
        client: &mut Client,
        now: Instant,
    ) {
        let Task::Subscribe(it) = &mut self.task else { return };
        if it.making_durable.take_if(|making| *making == handle).is_none() {
            return;
        }
        match status {
            Ok(status) if status.is_good() => self.outcome.durable += 1,
            Ok(status) => self.trouble = Some(format!("SetSubscriptionDurable: {status}")),
            Err(error) => self.trouble = Some(error),
        }
        self.add_items(client, now);
    }

    fn events(&mut self, received: &[(u32, Vec<Variant>)]) {
        let Task::Subscribe(it) = &mut self.task else { return };
        for (handle, fields) in received {
            let size = it.settings.event_queue.filter(|_| *handle == event_handle(&it.variables));
            let taken = match size {
                // The overflow event comes first, wherever events are missing in the queue: those raised while a
                // subscription moves to another shard, for example, are missing at its end.
                Some(size) => it.events.take(fields, events::granted(size) + 1),
                None => Err(format!("received an event for client handle {handle}, which it never used")),
            };
            match taken {
                Ok(Arrival::Event) => self.outcome.events += 1,
                Ok(Arrival::Overflow) => self.outcome.event_overflows += 1,
                Err(problem) => self.board.fail(format!("{}: {problem}", self.name)),
            }
        }
    }

    fn rule(&self) -> Rule {
        match &self.task {
            Task::Subscribe(it)
                if it.settings.sampling_interval.is_zero() && it.settings.queue_size != Some(1) =>
            {
                Rule::Each
            }
            _ => Rule::Order,
        }
    }

    fn data_changes(&mut self, values: &[(u32, DataValue)], now: Instant) {
        let rule = self.rule();
        let Task::Subscribe(it) = &mut self.task else { return };
        let mut counts = false;
        for (handle, value) in values {
            let at = *handle as usize;
            let (Some(item), Some(variable)) = (it.items.get_mut(at), it.variables.get(at)) else {
                self.board.fail(format!(
                    "{}: received a value for client handle {handle}, which it never used",
                    self.name
                ));
                continue;
            };
            let group = self.shape.group_of.get(*variable as usize).copied().unwrap_or(0);
            let Some(rhythm) = self.shape.rhythms.get(group) else { continue };
            let Some(number) = value.value.as_ref().and_then(|value| rhythm.number(value, now)) else {
                self.board.fail(format!("{}: variable {variable} has no value: {value:?}", self.name));
                continue;
            };
            let status = value.status.map_or(0, |status| status.0);
            let overflow = status & OVERFLOW == OVERFLOW;
            if rhythm.period.is_zero() {
                // Several clients may write, each with its own counter.
                item.last = item.last.max(0);
                continue;
            }
            let before = item.last;
            let is_marked = overflow || it.settings.queue_size == Some(1);
            if it.settings.is_durable && is_marked && number == before {
                // A restarted server reports the present value once more: it cannot know which ones were sent. Queues of
                // size 1 have no Overflow bit (Part 4 §5.13.1.5).
                continue;
            }
            match item.take(number, overflow, rule) {
                Came::New => {}
                Came::Again => continue,
                Came::Wrong => {
                    self.board.fail(format!(
                        "{}: variable {variable} has value {number} after {before}, but no loss was reported",
                        self.name
                    ));
                    continue;
                }
            }
            let Some(written) = rhythm.written_at(number) else { continue };
            if written >= self.window.0 && written < self.window.1 {
                counts = true;
                self.outcome.arrived += 1;
                self.outcome.overflows += u64::from(overflow);
                self.outcome.times.record(nanos(now.since(written)));
            }
        }
        self.outcome.messages += u64::from(counts);
    }

    fn event(&mut self, event: &Event, client: &mut Client, now: Instant) {
        match event {
            Event::Connected(_) => {
                self.is_up = true;
                self.outcome.session_up = now.since(self.connecting_since).as_secs_f64();
                self.subscribe(client, now);
                if let Task::Request(it) = &mut self.task {
                    it.next_at = Some(now);
                }
            }
            Event::Restored(..) => {
                self.is_up = true;
                self.outcome.reconnects += 1;
                if let Some(lost_at) = self.lost_at.take() {
                    self.outcome.outage = self.outcome.outage.max(now.since(lost_at).as_secs_f64());
                }
                self.restart_clock(client, now);
            }
            Event::ConnectionLost { error, .. } | Event::ConnectFailed { error, .. } => {
                self.outcome.failed_attempts += u64::from(matches!(event, Event::ConnectFailed { .. }));
                if core::mem::take(&mut self.is_up) {
                    self.lost_at = Some(now);
                }
                if let Task::Subscribe(Subscriber { clock: Some(clock), .. }) = &mut self.task {
                    clock.stop();
                }
                self.trouble = Some(error.to_string());
            }
            Event::Disconnected(_) if self.is_leaving => self.is_up = false,
            Event::Disconnected(error) => {
                self.is_up = false;
                let why = error.as_ref().map_or_else(|| "it ended".to_owned(), ToString::to_string);
                self.board.fail(format!("{} gave up: {why}", self.name));
            }
            Event::Subscription(_, event) => self.subscription_event(event, client, now),
            Event::Note(_) => {}
        }
    }

    /// A client with a clock does not repair its subscription: it creates another one.
    fn restart_clock(&mut self, client: &mut Client, now: Instant) {
        let Task::Subscribe(it) = &mut self.task else { return };
        if it.clock.is_some() {
            self.outcome.losses += 1;
            it.items.iter_mut().for_each(Item::lose);
            self.subscribe(client, now);
        }
    }

    fn subscription_event(&mut self, event: &SubscriptionEvent, client: &mut Client, now: Instant) {
        let site = self.site;
        let Task::Subscribe(it) = &mut self.task else { return };
        match event {
            SubscriptionEvent::Created { subscription_id, .. } => {
                self.own(*subscription_id);
                self.make_durable(*subscription_id, client, now);
            }
            SubscriptionEvent::Transferred if it.settings.is_durable => self.outcome.transfers += 1,
            SubscriptionEvent::DataLost { .. } | SubscriptionEvent::Recreating(_) => {
                self.outcome.losses += 1;
                it.items.iter_mut().for_each(Item::lose);
                it.events.lose();
                if let (SubscriptionEvent::Recreating(_), Some(old)) = (event, it.id) {
                    it.id = None;
                    self.board.owned.borrow_mut().remove(&(site, old));
                }
            }
            SubscriptionEvent::Ended(status) => {
                self.trouble = Some(format!("the server ended the subscription: {status}"));
                self.outcome.losses += 1;
                it.items.iter_mut().for_each(Item::lose);
                it.events.lose();
                self.subscribe(client, now);
            }
            SubscriptionEvent::CreateFailed(error) => {
                self.trouble = Some(format!("the subscription could not be created: {error}"));
            }
            SubscriptionEvent::Items(results) => {
                let bad = results.iter().find(|result| result.status.is_bad());
                if let Some(bad) = bad {
                    self.trouble = Some(format!("item {}: {}", bad.client_handle, bad.status));
                }
            }
            _ => {}
        }
    }

    fn response(&mut self, handle: RequestHandle, problem: Option<String>, now: Instant) {
        let (from, until) = self.window;
        let Task::Request(it) = &mut self.task else { return };
        let Some((_, due)) = it.waits.take_if(|(waits, _)| *waits == handle) else { return };
        let counts = due >= from && due < until;
        match problem {
            None if counts => {
                self.outcome.arrived += 1;
                self.outcome.times.record(nanos(now.since(due)));
            }
            None => {}
            Some(problem) => {
                self.outcome.failed += u64::from(counts);
                self.trouble = Some(problem);
            }
        }
        let next = match it.settings.pace {
            Pace::Pause(pause) if self.is_up => now + pause,
            Pace::Pause(pause) => now + pause.max(RETRY),
            Pace::Every(period) => due + period,
        };
        it.next_at = (next < until).then_some(next);
    }

    /// The problem that a response reports, if any. A history that is not what was written breaks a promise.
    fn check(&self, reply: OwnedReply, now: Instant) -> Result<Option<String>, ClientError> {
        let Task::Request(it) = &self.task else { return Ok(None) };
        Ok(match it.check(reply, (&self.shape, self.window.1, now))? {
            None => None,
            Some(history::Wrong::Failed(problem)) => Some(problem),
            Some(history::Wrong::Broken(problem)) => {
                self.board.fail(format!("{}: {problem}", self.name));
                Some(problem)
            }
        })
    }

    fn ask(&mut self, client: &mut Client, Now { instant: now, utc, .. }: Now) {
        let (from, until) = self.window;
        let Task::Request(it) = &mut self.task else { return };
        let Some(due) = it.next_at.take() else { return };
        let counts = due >= from && due < until;
        self.outcome.due += u64::from(counts);
        let batch = it.settings.batch as usize;
        let chosen: Vec<u32> = it.variables.iter().cycle().skip(it.next).take(batch).copied().collect();
        it.next = (it.next + batch) % it.variables.len().max(1);
        let sent = match it.settings.operation {
            Operation::Write => {
                it.count += 1;
                let nodes_to_write =
                    chosen.iter().map(|variable| self.shape.write(*variable, it.count)).collect();
                client.request(&mut WriteRequest { nodes_to_write, ..WriteRequest::default() }, None, now)
            }
            Operation::Read => {
                let nodes_to_read = chosen.iter().map(|variable| value_of(FIRST + *variable)).collect();
                let timestamps_to_return = TimestampsToReturn::BOTH;
                let mut request =
                    ReadRequest { nodes_to_read, timestamps_to_return, ..ReadRequest::default() };
                client.request(&mut request, None, now)
            }
            Operation::ReadHistory(values) => {
                client.request(&mut history::request(&chosen, values, utc), None, now)
            }
        };
        it.asked = chosen;
        match sent {
            Ok(handle) => (it.waits, it.sent_at) = (Some((handle, due)), now),
            Err(error) => {
                self.outcome.failed += u64::from(counts);
                self.trouble = Some(error.to_string());
                let next = match it.settings.pace {
                    Pace::Pause(pause) => now + pause.max(RETRY),
                    Pace::Every(period) => due + period,
                };
                it.next_at = (next < until).then_some(next);
            }
        }
    }
}

impl Subscriber {
    /// The items that it monitors.
    fn items(&self, shape: &Shape) -> Vec<MonitoredItemCreateRequest> {
        let items = (0..).zip(&self.variables).map(|(handle, variable)| {
            let group = shape.group_of.get(*variable as usize).copied().unwrap_or(0);
            let period = shape.rhythms.get(group).map_or(Duration::ZERO, |rhythm| rhythm.period);
            item(*variable, handle, &self.settings, period)
        });
        let queue = self.settings.event_queue;
        items.chain(queue.map(|size| events::item(event_handle(&self.variables), size))).collect()
    }
}

impl Requester {
    /// What is wrong with a response, if anything.
    fn check(
        &self,
        reply: OwnedReply,
        (shape, until, now): (&Shape, Instant, Instant),
    ) -> Result<Option<history::Wrong>, ClientError> {
        let bad = |status: StatusCode| status.is_bad().then(|| history::Wrong::Failed(status.to_string()));
        Ok(match self.settings.operation {
            Operation::Write => {
                reply.decode::<WriteResponse>()?.results.iter().find_map(|status| bad(*status))
            }
            Operation::Read => {
                reply.decode::<ReadResponse>()?.results.iter().find_map(|value| bad(value.status()))
            }
            Operation::ReadHistory(_) => {
                let times = history::Times { asked: self.sent_at, until, now };
                history::check(&reply.decode::<HistoryReadResponse>()?, &self.asked, shape, times).err()
            }
        })
    }
}

impl Shape {
    fn write(&self, variable: u32, count: i64) -> WriteValue {
        let group = self.group_of.get(variable as usize).copied().unwrap_or(0);
        let len = self.rhythms.get(group).map_or(8, |rhythm| rhythm.value_len);
        WriteValue {
            node_id: variable_id(FIRST + variable),
            attribute_id: value_of(FIRST + variable).attribute_id,
            value: DataValue::new(value(len, count)),
            ..WriteValue::default()
        }
    }
}

impl Application for Worker {
    fn deliver(&mut self, delivery: Delivery, client: &mut Client, now: Now) {
        match delivery {
            Delivery::DataChanges { values, .. } => self.data_changes(&values, now.instant),
            Delivery::Event(event) => self.event(&event, client, now.instant),
            Delivery::Response(handle, result)
                if matches!(self.task, Task::Subscribe(Subscriber { clock: Some(_), .. })) =>
            {
                self.response_by_clock(handle, result, client, now.instant);
            }
            Delivery::Response(handle, result) if matches!(self.task, Task::Subscribe(_)) => {
                let status = result.and_then(|reply| reply.decode::<CallResponse>());
                let status = status.map(|response| {
                    response.results.first().map_or(StatusCode::BAD_UNEXPECTED_ERROR, |one| one.status_code)
                });
                self.made_durable(handle, status.map_err(|error| error.to_string()), client, now.instant);
            }
            Delivery::Response(handle, result) => {
                let problem = result
                    .map_err(|error| error.to_string())
                    .and_then(|reply| self.check(reply, now.instant).map_err(|error| error.to_string()));
                let problem = problem.unwrap_or_else(Some);
                self.response(handle, problem, now.instant);
            }
            Delivery::Events { events, .. } => self.events(&events),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.task {
            Task::Request(it) if it.waits.is_none() => it.next_at,
            Task::Subscribe(it) => it.clock.as_ref().and_then(|clock| clock.poll_timeout()),
            Task::Request(_) => None,
        }
    }

    fn handle_timeout(&mut self, client: &mut Client, now: Now) {
        match &mut self.task {
            Task::Request(_) => self.ask(client, now),
            Task::Subscribe(it) => {
                let result = it.clock.as_mut().map(|clock| clock.handle_timeout(client, now.instant));
                if let Some(Err(error)) = result {
                    self.trouble = Some(error.to_string());
                }
            }
        }
    }
}

fn item(variable: u32, handle: u32, settings: &Subscription, period: Duration) -> MonitoredItemCreateRequest {
    let queue_size = settings.queue_size.unwrap_or_else(|| {
        let span = settings.publishing_interval.as_secs_f64() * 2.0 + 1.0;
        let period = period.as_secs_f64();
        // `as` saturates.
        if period > 0.0 { ((span / period).ceil() as u32).clamp(2, QUEUE_MAX) } else { 2 }
    });
    let mut item = monitor(FIRST + variable, queue_size);
    item.requested_parameters.client_handle = handle;
    item.requested_parameters.sampling_interval = settings.sampling_interval.as_secs_f64() * 1e3;
    item
}

/// The client handle of the event item.
fn event_handle(variables: &[u32]) -> u32 {
    u32::try_from(variables.len()).unwrap_or(u32::MAX)
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
