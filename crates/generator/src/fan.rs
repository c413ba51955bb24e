//! `bench fan`: one client writes; all others receive the value and answer with a write; the first client waits for all
//! answers (Rocha et al. 2019, Fig. 12).

use crate::client::session::{self, Session};
use crate::common::{Generator, environment};
use crate::context::Context;
use crate::error::GeneratorError;
use crate::nodes;
use crate::report::Finished;
use crate::transaction::{self, Transactions};
use taktwerk_client::{
    Client, ClientError, DataChanges, Event, Reply, RequestHandle, SubscriptionEvent, SubscriptionHandle,
};
use taktwerk_load::clock;
use taktwerk_load::result::{ReturnedRequested, Unit};
use taktwerk_load::specification::{Common, Fan};
use taktwerk_net::client::{Fleet, FleetSink, MemberId};
use taktwerk_types::{Instant, NodeId, Variant};

/// Timeout without progress for a transaction or the set-up.
const PATIENCE: u64 = 30_000_000_000;
/// Offset of transaction numbers, so that initial values are not mistaken for one.
const BASE: f64 = 1e9;

#[derive(Default)]
struct Star {
    connected: Vec<u32>,
    created: Vec<(u32, SubscriptionHandle)>,
    /// Number of monitored items.
    ready: usize,
    error: Option<ClientError>,
    refused: Option<String>,
    revised_ms: f64,
    transaction: f64,
    /// One signal per client; the others monitor the first client's signal.
    signals: Vec<NodeId>,
    /// Whether the current client has received the transaction and must answer.
    has_to_answer: bool,
    answered: usize,
    last_answer: u64,
}

impl FleetSink for Star {
    fn event(&mut self, member: MemberId, event: Event, _: Instant) {
        match event {
            Event::Connected(_) => self.connected.push(member.0),
            Event::Disconnected(error) => self.error = error.or_else(|| self.error.take()),
            Event::ConnectionLost { error, .. } => self.error = Some(error),
            Event::Subscription(handle, SubscriptionEvent::Created { publishing_interval_ms, .. }) => {
                self.revised_ms = publishing_interval_ms;
                self.created.push((member.0, handle));
            }
            Event::Subscription(_, SubscriptionEvent::CreateFailed(error)) => self.error = Some(error),
            Event::Subscription(_, SubscriptionEvent::Items(results)) => {
                self.ready += results.len();
                if let Some(bad) = results.iter().find(|item| item.status.is_bad()) {
                    self.refused = Some(bad.status.to_string());
                }
            }
            _ => {}
        }
    }

    fn response(
        &mut self,
        _: MemberId,
        _: RequestHandle,
        result: Result<Reply<'_>, ClientError>,
        _: Instant,
    ) {
        match result {
            Ok(reply) => {
                if let Some(status) = crate::request::check_write(&reply).first {
                    self.refused = Some(status.to_string());
                }
            }
            Err(error) => self.error = Some(error),
        }
    }

    fn data_changes(
        &mut self,
        member: MemberId,
        _: SubscriptionHandle,
        changes: DataChanges<'_>,
        now: Instant,
    ) {
        for (_, value) in changes.flatten() {
            let Some(Variant::Double(number)) = value.value else { continue };
            if number != self.transaction {
                continue;
            }
            if member.0 == 0 {
                self.answered += 1;
                self.last_answer = now.as_nanos();
            } else {
                self.has_to_answer = true;
            }
        }
    }

    fn react(&mut self, member: MemberId, client: &mut Client, now: Instant) {
        if std::mem::take(&mut self.has_to_answer) {
            let mut request = transaction::write(self.signal(member.0), Variant::Double(self.transaction));
            if let Err(error) = client.request(&mut request, None, now) {
                self.error = Some(error);
            }
        }
    }
}

impl Star {
    /// The signal of a client.
    fn signal(&self, client: u32) -> NodeId {
        self.signals.get(client as usize).cloned().unwrap_or_default()
    }
}

/// Measures and reports.
pub(crate) fn run(arguments: &Fan, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    let common = &arguments.common;
    if common.clients < 2 {
        return Err(GeneratorError::Usage("fan needs at least two clients: pass -c 2 or more".to_owned()));
    }
    let server = common.begin()?;
    let signals = find_signals(common, context)?;
    let mut star = Star { signals, ..Star::default() };
    let mut fleet = common.fleet(64, context)?;
    let target = common.target(context)?;
    for _ in 0..common.clients {
        fleet.add(target.clone());
    }
    set_up(arguments, &mut fleet, &mut star, context)?;
    let mut number = BASE;
    let transactions = Transactions::measure(
        common,
        server,
        arguments.count,
        "transactions",
        context,
        &mut fleet,
        |fleet| {
            number += 1.0;
            let revised_ms = star.revised_ms;
            transaction::rest(fleet, &mut star, (number - BASE) as u64, revised_ms)?;
            one(common, fleet, &mut star, number, context)
        },
    )?;
    for member in 0..common.clients {
        fleet.with(MemberId(member), |core, now| core.disconnect(now), &mut star);
    }
    let report = common.report("fan");
    let requested = ReturnedRequested {
        clients: Some(common.clients),
        publishing_ms: arguments.interval.as_secs_f64() * 1e3,
        count: arguments.count,
        ..ReturnedRequested::default()
    };
    let times = ("write to last answer", Unit::Transaction);
    Ok(transactions.report(report, times, requested, star.revised_ms, context))
}

/// One transaction; `None` if interrupted.
fn one(
    common: &Common,
    fleet: &mut Fleet,
    star: &mut Star,
    number: f64,
    context: &Context<'_>,
) -> Result<Option<u64>, GeneratorError> {
    (star.transaction, star.answered) = (number, 0);
    let begin = clock::monotonic();
    let mut request = transaction::write(star.signal(0), Variant::Double(number));
    if let Some(Err(error)) = fleet.with(MemberId(0), |core, now| core.request(&mut request, None, now), star)
    {
        return Err(session::failure(&error));
    }
    let wanted = common.clients as usize - 1;
    while star.answered < wanted {
        if let Some(error) = &star.error {
            return Err(session::failure(error));
        }
        if let Some(status) = &star.refused {
            return Err(GeneratorError::BadStatus(format!(
                "a write was refused with {status}: the server needs {} writable signals of type Double",
                common.clients
            )));
        }
        let now = clock::monotonic();
        if context.is_ended() {
            return Ok(None);
        }
        if now - begin > PATIENCE {
            return Err(GeneratorError::Connect(format!(
                "only {} of {wanted} responses arrived: other clients and the server must not write to the signals \
                 (use `serve --update 0`)",
                star.answered
            )));
        }
        if star.answered < wanted {
            fleet.run_once(Instant::from_nanos(now + 100_000_000), star).map_err(environment)?;
        }
    }
    Ok(Some(star.last_answer.saturating_sub(begin)))
}

/// One signal per client. Other variables are not written to, because that could have effects.
fn find_signals(common: &Common, context: &Context<'_>) -> Result<Vec<NodeId>, GeneratorError> {
    let mut session = Session::connect(&common.connection, context)?;
    let mut signals = nodes::find(&mut session, &[], Some(common.clients))?;
    session.close();
    if !signals.first().is_some_and(nodes::is_signal) {
        signals.clear();
    }
    if signals.len() < common.clients as usize {
        return Err(GeneratorError::Usage(format!(
            "a fan of {} clients needs a signal for each, i=100000 and on as `serve --signals {} --update 0` has them; this \
             server has {}",
            common.clients,
            common.clients,
            signals.len()
        )));
    }
    Ok(signals)
}

fn set_up(
    arguments: &Fan,
    fleet: &mut Fleet,
    star: &mut Star,
    context: &Context<'_>,
) -> Result<(), GeneratorError> {
    let clients = arguments.common.clients;
    let params = transaction::subscription(arguments.interval);
    // The first client monitors the answers of all others; each of the others monitors the first signal.
    let wanted = 2 * (clients as usize - 1);
    let begin = clock::monotonic();
    let mut progress = context.step("subscribing", wanted as u64);
    while star.ready < wanted {
        if let Some(error) = &star.error {
            return Err(session::unreachable(&arguments.common.connection.endpoint, error));
        }
        if context.is_ended() {
            return Err(GeneratorError::Interrupted);
        }
        if clock::monotonic() - begin > PATIENCE {
            return Err(GeneratorError::Connect(format!(
                "only {} of {wanted} items were created",
                star.ready
            )));
        }
        for member in std::mem::take(&mut star.connected) {
            fleet.with(MemberId(member), |core, now| core.create_subscription(params.clone(), now), star);
        }
        for (member, handle) in std::mem::take(&mut star.created) {
            let watched = if member == 0 { 1..clients } else { 0..1 };
            let items: Vec<_> = watched.map(|index| transaction::item(star.signal(index), index)).collect();
            let added = fleet.with(MemberId(member), |core, now| core.add_items(handle, items, now), star);
            if let Some(Err(error)) = added {
                return Err(GeneratorError::Connect(error.to_string()));
            }
        }
        progress.at(star.ready as u64);
        let until = Instant::from_nanos(clock::monotonic() + 50_000_000);
        fleet.run_once(until, star).map_err(environment)?;
    }
    match &star.refused {
        Some(status) => Err(GeneratorError::BadStatus(format!(
            "monitoring was refused with {status}: the server needs {clients} signals"
        ))),
        None => Ok(()),
    }
}
