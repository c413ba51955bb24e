//! `bench subscribe`: many clients monitor changing values; the received values of every item are checked.

mod clock;
mod heavy;
mod observer;
mod written;

use crate::account::Window;
use crate::client::session::{self, Session};
use crate::common::{Generator, environment};
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use crate::nodes;
use crate::report::{Finished, Report};
use crate::values;
use clock::Clock;
use heavy::Heavy;
use observer::Observer;
use std::time::Duration;
use taktwerk_client::{SubscriptionHandle, SubscriptionParams};
use taktwerk_load::clock as time;
use taktwerk_load::latency::Times;
use taktwerk_load::result::{Extent, Stalled, Subscribed, SubscribedRequested, Unit};
use taktwerk_load::specification::Subscribe;
use taktwerk_load::steady::{self, Slice, Steady};
use taktwerk_load::validity::Invalid;
use taktwerk_model::figures;
use taktwerk_net::client::{Fleet, MemberId};
use taktwerk_schema::MonitoredItemCreateRequest;
use taktwerk_schema::ids::variable_ids;
use taktwerk_types::{Instant, NodeId, Variant};
use written::Written;

/// Interval for checking whether to end.
const LOOK: u64 = 50_000_000;
/// Timeout without progress for creating subscriptions and items.
const PATIENCE: u64 = 30_000_000_000;
/// How long to wait for pending operations after a load has failed.
const SETTLE: u64 = 500_000_000;
/// Lifetime of a subscription without a Publish request.
const LIFETIME_MS: f64 = 120_000.0;
/// How long the first values may take after the warm-up: publishing intervals, and a minimum in nanoseconds.
const FIRST_VALUES: (u32, u64) = (3, 2_000_000_000);

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Subscribes, measures and reports.
pub(crate) fn run(arguments: &Subscribe, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    let common = &arguments.common;
    let server = common.begin()?;
    let found = find_nodes(arguments, context)?;
    let items = arguments.items.unwrap_or(u32::try_from(found.nodes.len()).unwrap_or(u32::MAX));
    let heavy = match arguments.heavy {
        Some(count) => Some(Heavy::start(arguments, count, context)?),
        None => None,
    };

    let mut observer = Observer::new(common.clients as usize, items as usize);
    observer.written = arguments.time_in_value.then(Written::default);
    observer.age = arguments.each_value.then(Times::new);
    observer.clock = arguments.publish_every.map(|share| Clock::new(share, common.clients as usize));
    let requests = arguments.publish_requests.map(|most| most as usize);
    let mut fleet = common.fleet_with(
        64,
        |config| config.publish_max = requests.unwrap_or(config.publish_max),
        context,
    )?;
    let target = common.target(context)?;
    for _ in 0..common.clients {
        fleet.add(target.clone());
    }
    let ready = set_up(arguments, &mut fleet, &mut observer, &found, items, context)
        .and_then(|()| warm_up(arguments, &mut fleet, &mut observer, context));
    if ready.is_err() {
        // Sessions of broken connections would stay on the server until their timeout and burden the next load. Pending
        // operations complete first, because a session that is being created cannot be closed. The error of the load is
        // already known.
        settle(&mut fleet, &mut observer);
        leave(&mut fleet, &mut observer, common.clients);
        settle(&mut fleet, &mut observer);
    }
    ready?;

    let mut before_stall = None;
    if let (Some(heavy), true) = (&heavy, arguments.stall) {
        let start = time::monotonic();
        observer.open(start);
        run_window(arguments, &mut fleet, &mut observer, start, context)?;
        before_stall = Some(observer.start_again());
        heavy.stop_reading();
    }
    let polled = fleet.stats().in_vain;
    let window = Window::open(server, common.port())?;
    let start = window.start();
    observer.open(start);
    run_window(arguments, &mut fleet, &mut observer, start, context)?;
    // Twice the interval, because a message may be in flight.
    let patience = nanos(pace(arguments, &observer)).saturating_mul(2);
    observer.close(time::monotonic(), patience);
    let account = window.close()?.polling(fleet.stats().in_vain.saturating_sub(polled));
    drop(heavy);
    leave(&mut fleet, &mut observer, common.clients);
    let mut report = report(arguments, &observer, &account, &found, items);
    if let Some(before) = before_stall {
        report.part(&Stalled { delivery_before_stall: before.summary() });
        report.times("delivery before the stall", &before);
    }
    Ok(report.finish(context, None))
}

/// Waits for pending operations.
fn settle(fleet: &mut Fleet, observer: &mut Observer) {
    let end = time::monotonic() + SETTLE;
    // Errors are ignored: the load has failed already.
    let _ = fleet.run_until(Instant::from_nanos(end), observer);
}

/// Closes all sessions.
fn leave(fleet: &mut Fleet, observer: &mut Observer, clients: u32) {
    for member in 0..clients {
        fleet.with(MemberId(member), |core, now| core.disconnect(now), observer);
    }
}

/// Receives for the length of a window.
fn run_window(
    arguments: &Subscribe,
    fleet: &mut Fleet,
    observer: &mut Observer,
    start: u64,
    context: &Context<'_>,
) -> Result<(), GeneratorError> {
    let end = start + nanos(arguments.common.duration);
    let mut progress = context.time("measuring", arguments.common.duration);
    while time::monotonic() < end && !context.is_ended() {
        let until = end.min(time::monotonic() + 10 * LOOK);
        clock::run_until(fleet, observer, until)?;
        progress.at((time::monotonic() - start) / 1_000_000_000);
    }
    Ok(())
}

/// The monitored nodes.
struct Found {
    nodes: Vec<NodeId>,
    /// Items per request: as requested, or up to the server's limit.
    per_request: usize,
    /// Whether the server sets source timestamps when it samples.
    is_stamped_when_sampled: bool,
}

impl Found {
    fn node(&self, index: u32) -> Option<&NodeId> {
        self.nodes.get(index as usize % self.nodes.len().max(1))
    }

    /// A client's share of the items with their nodes. Client k has the items k, k + clients, k + 2 · clients, … If there
    /// are enough items, each client monitors all nodes.
    fn of_client(&self, member: u32, clients: u32, items: u32) -> impl Iterator<Item = (u32, &NodeId)> {
        let all_nodes = self.nodes.len() <= (items / clients.max(1)) as usize;
        let handles = (0u32..).zip((member..items).step_by(clients.max(1) as usize));
        handles.filter_map(move |(number, index)| {
            Some((index, self.node(if all_nodes { number } else { index })?))
        })
    }
}

fn find_nodes(arguments: &Subscribe, context: &Context<'_>) -> Result<Found, GeneratorError> {
    let per_request = arguments.per_request as usize;
    if arguments.items == Some(0) {
        return Ok(Found { nodes: Vec::new(), per_request, is_stamped_when_sampled: false });
    }
    let mut session = Session::connect(&arguments.common.connection, context)?;
    let wanted = arguments.items.into_iter().chain(arguments.heavy).max();
    let nodes = nodes::find(&mut session, &arguments.nodes, wanted)?;
    let taken = items_per_call(&mut session)?.unwrap_or(usize::MAX);
    let is_stamped_when_sampled = match nodes.first() {
        Some(node) => written::is_stamped_when_sampled(&mut session, node)?,
        None => false,
    };
    session.close();
    Ok(Found { nodes, per_request: per_request.min(taken), is_stamped_when_sampled })
}

/// MaxMonitoredItemsPerCall of a server, if it is set and not zero (Part 5 §6.3.11).
fn items_per_call(session: &mut Session) -> Result<Option<usize>, GeneratorError> {
    let limit = variable_ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_MONITORED_ITEMS_PER_CALL;
    let node_id = NodeId::numeric(0, limit);
    Ok(match session.read(vec![values::of(node_id)])?.first().and_then(|result| result.value.as_ref()) {
        Some(Variant::UInt32(limit @ 1..)) => usize::try_from(*limit).ok(),
        _ => None,
    })
}

/// The request for a monitored item.
fn item(arguments: &Subscribe, node: &NodeId, client_handle: u32) -> MonitoredItemCreateRequest {
    let sampling = arguments.sampling.unwrap_or(arguments.interval);
    values::monitored(node.clone(), client_handle, sampling, arguments.queue)
}

fn params(arguments: &Subscribe) -> SubscriptionParams {
    let publishing_interval_ms = millis(arguments.interval);
    // Creating hundreds of thousands of items takes a while, during which no Publish request gets through.
    let lifetime_count = (LIFETIME_MS / publishing_interval_ms.max(1.0)).ceil().max(60.0) as u32;
    let usual = SubscriptionParams::default();
    let keep_alive_count = arguments.keep_alive_count.unwrap_or(usual.keep_alive_count);
    SubscriptionParams {
        publishing_interval_ms,
        // At least three times the other one (Part 4 §5.14.2.2).
        lifetime_count: lifetime_count.max(keep_alive_count.saturating_mul(3)),
        keep_alive_count,
        notifications_max: arguments.notifications_max.unwrap_or(0),
        ..usual
    }
}

/// Connects all clients and creates all subscriptions and items.
fn set_up(
    arguments: &Subscribe,
    fleet: &mut Fleet,
    observer: &mut Observer,
    found: &Found,
    items: u32,
    context: &Context<'_>,
) -> Result<(), GeneratorError> {
    let clients = arguments.common.clients;
    let mut progress = context.step("subscribing", u64::from(clients) + u64::from(items));
    let (mut done, mut since) = (0, time::monotonic());
    loop {
        if context.is_ended() {
            return Err(GeneratorError::Interrupted);
        }
        if let Some(error) = &observer.first_error {
            return Err(session::unreachable(&arguments.common.connection.endpoint, error));
        }
        if observer.clock.is_some() {
            clock::set_up(arguments, fleet, observer, found, items)?;
        }
        for member in std::mem::take(&mut observer.connected_now) {
            fleet.with(
                MemberId(member),
                |core, now| core.create_subscription(params(arguments), now),
                observer,
            );
        }
        for (member, handle) in std::mem::take(&mut observer.created_now) {
            add_items(arguments, fleet, observer, (member, handle), found, items)?;
        }
        let is_done = observer.subscriptions == clients as usize && observer.items_answered == items as usize;
        if is_done {
            break;
        }
        let now = time::monotonic();
        let progressed = observer.subscriptions + observer.items_answered;
        if progressed > done {
            (done, since) = (progressed, now);
        } else if now - since > PATIENCE {
            // `taktwerk lab capacity` recognises this message by its first words.
            return Err(GeneratorError::Connect(format!(
                "the server does not go on: {} of {clients} subscriptions and {} of {items} items after {} s without \
                 an answer",
                observer.subscriptions,
                observer.items_answered,
                PATIENCE / 1_000_000_000
            )));
        }
        progress.at(progressed as u64);
        fleet.run_once(Instant::from_nanos(now + LOOK), observer).map_err(environment)?;
    }
    match &observer.first_refused {
        Some(status) => Err(GeneratorError::BadStatus(format!(
            "{} of {items} monitored items were refused; the first: {status}",
            observer.items_refused
        ))),
        None => {
            clock::start(fleet, observer);
            Ok(())
        }
    }
}

/// Creates a client's share of the items.
fn add_items(
    arguments: &Subscribe,
    fleet: &mut Fleet,
    observer: &mut Observer,
    (member, handle): (u32, SubscriptionHandle),
    found: &Found,
    items: u32,
) -> Result<(), GeneratorError> {
    let requests: Vec<MonitoredItemCreateRequest> = found
        .of_client(member, arguments.common.clients, items)
        .map(|(handle, node)| item(arguments, node, handle))
        .collect();
    for part in requests.chunks(found.per_request) {
        let added =
            fleet.with(MemberId(member), |core, now| core.add_items(handle, part.to_vec(), now), observer);
        if let Some(Err(error)) = added {
            return Err(GeneratorError::Connect(error.to_string()));
        }
    }
    Ok(())
}

/// Runs until the warm-up is over and every item has had a value.
fn warm_up(
    arguments: &Subscribe,
    fleet: &mut Fleet,
    observer: &mut Observer,
    context: &Context<'_>,
) -> Result<(), GeneratorError> {
    let warm = time::monotonic() + nanos(arguments.common.warmup);
    let patience = nanos(arguments.interval * FIRST_VALUES.0).max(FIRST_VALUES.1);
    while !context.is_ended() {
        let now = time::monotonic();
        let is_late = now > warm + patience;
        // Items without any value are counted as silent in the window; more waiting would not help.
        if now >= warm && (observer.progress.all_heard() || is_late) {
            break;
        }
        let until = if now < warm { warm.min(now + 10 * LOOK) } else { now + LOOK };
        clock::run_until(fleet, observer, until)?;
    }
    if arguments.steady {
        observer.steady = Some(await_steady(arguments, fleet, observer, context)?);
    }
    Ok(())
}

/// Expected interval between messages of a client: the longest of the publishing, sampling and update intervals.
fn pace(arguments: &Subscribe, observer: &Observer) -> Duration {
    let known = observer.revised.longest_ms().into_iter().chain([arguments.update.map(millis)]).flatten();
    // Limit the waiting time to an hour.
    let slowest = known.fold(millis(arguments.interval), f64::max).clamp(1.0, 3_600_000.0);
    Duration::from_secs_f64(slowest / 1e3)
}

/// Runs until messages arrive in time, with as many values as the previous ones. Returns whether this happened.
fn await_steady(
    arguments: &Subscribe,
    fleet: &mut Fleet,
    observer: &mut Observer,
    context: &Context<'_>,
) -> Result<bool, GeneratorError> {
    let mut steady = Steady::new(steady::INTERVALS, 0.05);
    let pace = pace(arguments, observer);
    observer.expected = (nanos(pace), nanos(steady::slip(pace)));
    let slice = nanos(pace).max(LOOK);
    let mut until = time::monotonic();
    let end = until + nanos(steady::patience(pace));
    while until < end && !context.is_ended() {
        until += slice;
        observer.heard = Slice::default();
        clock::run_until(fleet, observer, until)?;
        if steady.observe(observer.heard) {
            return Ok(true);
        }
    }
    tracing::warn!("the load did not become steady; measuring anyway");
    Ok(false)
}

fn report(
    arguments: &Subscribe,
    observer: &Observer,
    account: &crate::account::Account,
    found: &Found,
    items: u32,
) -> Report {
    let common = &arguments.common;
    let mut report = common.report("subscribe");
    let requested_sampling = millis(arguments.sampling.unwrap_or(arguments.interval));
    let revised = &observer.revised;
    let summary = observer.summary(arguments.update.map(millis), account.seconds());
    let notifications = summary.notifications;
    let per_second = notifications as f64 / account.seconds().max(1e-9);
    let is_stamped_late = observer.written.as_ref().is_some_and(Written::is_stamped_late);
    let is_stamped_when_sampled = found.is_stamped_when_sampled || is_stamped_late;
    // A server without a PublishTime must not appear to have no delay.
    let has_transfer = observer.unstamped == 0 || observer.transfer.count() > 0;
    let written = observer.written.as_ref();
    report.part(&Subscribed {
        requested: SubscribedRequested {
            clients: common.clients,
            items,
            publishing_ms: millis(arguments.interval),
            sampling_ms: requested_sampling,
            queue: arguments.queue,
            update_ms: arguments.update.map(millis),
            duration_s: common.duration.as_secs_f64(),
            warmup_s: common.warmup.as_secs_f64(),
            heavy: arguments.heavy,
            stall: arguments.stall,
            time_in_value: arguments.time_in_value,
        },
        revised: *revised,
        nodes: found.nodes.len(),
        notifications,
        per_second,
        messages: observer.messages,
        lost_messages: observer.lost_messages,
        steady: observer.steady,
        waiting_at_end: observer.waiting,
        delivery: observer.delivery.summary(),
        age: observer.age.as_ref().map(Times::summary),
        publish_requests_refused: observer.clock.as_ref().map(|clock| clock.refused),
        source_timestamps_made_when_sampled: is_stamped_when_sampled,
        delay: written.map(|written| written.delay.summary()),
        write_to_source_timestamp: written.map(|written| written.stamped.summary()),
        values_without_time: written.map(|written| written.untold),
        message_interval: observer.intervals.summary(),
        unstamped_messages: observer.unstamped,
        transfer: has_transfer.then(|| observer.transfer.summary()),
        progress: summary.clone(),
        connections_lost: observer.lost_connections,
    });
    report.fact(
        "publishing interval",
        format!(
            "requested {} ms, revised {}",
            millis(arguments.interval),
            Extent::show(revised.publishing_ms, " ms")
        ),
    );
    if items > 0 {
        report.fact(
            "sampling interval",
            format!(
                "requested {requested_sampling} ms, revised {}",
                Extent::show(revised.sampling_ms, " ms")
            ),
        );
        report.fact(
            "queue size",
            format!("requested {}, revised {}", arguments.queue, Extent::show(revised.queue, "")),
        );
    }
    if observer.steady == Some(false) {
        report.fact("steady", "no: these figures include the start-up phase".to_owned());
    }
    if let Some(written) = written {
        report.histogram("delay", &written.delay);
    }
    report.histogram("delivery", &observer.delivery);
    if let Some(age) = &observer.age {
        report.histogram("age", age);
    }
    report.histogram("message_interval", &observer.intervals);
    if has_transfer {
        report.histogram("transfer", &observer.transfer);
    }
    report.histogram("cycle", observer.progress.cycles());
    if items > 0 {
        if let Some(written) = written {
            report.times("delay (write to here)", &written.delay);
            report.times("write to source time", &written.stamped);
        }
        report.times("delivery (source time to here)", &observer.delivery);
        if let Some(age) = &observer.age {
            report.times("the same for each value", age);
        }
        if is_stamped_when_sampled {
            report.fact(
                "source timestamps",
                "set when the server samples, not when values were written: delivery does not show the age of values",
            );
        }
        if has_transfer {
            report.times("transfer (publish time to here)", &observer.transfer);
        }
        if observer.unstamped > 0 {
            report.fact(
                "publish time",
                format!(
                    "null in {} of {} messages, which the server should stamp",
                    observer.unstamped, observer.messages
                ),
            );
        }
        report.times("between messages of a client", &observer.intervals);
        report.fact(
            "notifications",
            format!(
                "{}/s in {} messages/s ({} items, {} clients)",
                figures::number(per_second),
                figures::number(observer.messages as f64 / account.seconds().max(1e-9)),
                items,
                common.clients
            ),
        );
        report.fact(
            "worst item",
            format!(
                "{} of {} ({} %), mean {}; {} items below 99 % (one missing value is tolerated)",
                summary.min_per_item,
                figures::number(summary.expected_per_item),
                figures::number(summary.worst_item_ratio * 100.0),
                figures::number(summary.mean_per_item),
                summary.items_behind
            ),
        );
        report.fact(
            "time between an item's values",
            format!(
                "p50 {} ms, p99 {} ms, worst {} ms",
                figures::number(summary.cycle_p50_ms),
                figures::number(summary.cycle_p99_ms),
                figures::number(summary.worst_gap_ms)
            ),
        );
        report.fact(
            "lost or bad",
            format!(
                "{} overflows, {} messages lost, {} bad values, {} connections lost",
                summary.overflows, observer.lost_messages, summary.bad, observer.lost_connections
            ),
        );
    }
    if let Some(clock) = &observer.clock {
        report.fact(
            "Publish requests",
            format!("by a clock; the server refused {} because there were too many", clock.refused),
        );
    }
    if observer.waiting > 0 {
        report.fact(
            "overdue at the end",
            format!(
                "the next message of {} of {} clients, for more than two intervals; each counts with the time that it has \
                 waited",
                observer.waiting, common.clients
            ),
        );
    }
    report.account(account, Unit::Signal, notifications);
    if observer.lost_connections > 0 {
        report.invalid([Invalid::ConnectionsLost { lost: observer.lost_connections }]);
    }
    let tells_no_time = written.is_some_and(|written| written.delay.count() == 0);
    if items > 0 && (notifications == 0 || tells_no_time) {
        report.invalid([Invalid::NoSamples]);
    }
    report
}
