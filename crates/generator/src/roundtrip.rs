//! `bench roundtrip`: a client writes a payload and waits until its own subscription returns it (Rocha et al. 2019).

use crate::client::resolve;
use crate::client::session::{self, Session};
use crate::common::{Generator, environment};
use crate::context::Context;
use crate::error::GeneratorError;
use crate::report::Finished;
use crate::transaction::{self, Transactions};
use taktwerk_client::{
    ClientError, DataChanges, Event, Reply, RequestHandle, SubscriptionEvent, SubscriptionHandle,
};
use taktwerk_load::clock;
use taktwerk_load::result::{ReturnedRequested, Unit};
use taktwerk_load::specification::Roundtrip;
use taktwerk_model::figures;
use taktwerk_net::client::{Fleet, FleetSink, MemberId};
use taktwerk_types::{ByteString, Instant, NodeId, Variant};

/// Timeout for a value to return.
const PATIENCE: u64 = 20_000_000_000;

/// Receives the events of the single client.
#[derive(Default)]
struct Echo {
    connected: bool,
    subscription: Option<SubscriptionHandle>,
    ready: bool,
    refused: Option<String>,
    error: Option<ClientError>,
    revised_ms: f64,
    /// Number of the last received value, and its time.
    seen: Option<(u64, u64)>,
    write_refused: Option<String>,
}

impl FleetSink for Echo {
    fn event(&mut self, _: MemberId, event: Event, _: Instant) {
        match event {
            Event::Connected(_) => self.connected = true,
            Event::Disconnected(error) => self.error = error.or_else(|| self.error.take()),
            Event::ConnectionLost { error, .. } => self.error = Some(error),
            Event::Subscription(handle, SubscriptionEvent::Created { publishing_interval_ms, .. }) => {
                self.revised_ms = publishing_interval_ms;
                self.subscription = Some(handle);
            }
            Event::Subscription(_, SubscriptionEvent::CreateFailed(error)) => self.error = Some(error),
            Event::Subscription(_, SubscriptionEvent::Items(results)) => {
                self.ready = true;
                self.refused = results.iter().find(|item| item.status.is_bad()).map(|r| r.status.to_string());
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
                let checked = crate::request::check_write(&reply);
                if let Some(status) = checked.first {
                    self.write_refused = Some(status.to_string());
                }
            }
            Err(error) => self.error = Some(error),
        }
    }

    fn data_changes(&mut self, _: MemberId, _: SubscriptionHandle, changes: DataChanges<'_>, now: Instant) {
        for (_, value) in changes.flatten() {
            let number = match &value.value {
                Some(Variant::ByteString(bytes)) => number_of(bytes.as_bytes()),
                _ => None,
            };
            if let Some(number) = number {
                self.seen = Some((number, now.as_nanos()));
            }
        }
    }
}

fn number_of(bytes: &[u8]) -> Option<u64> {
    bytes.get(..8).and_then(|first| first.try_into().ok()).map(u64::from_le_bytes)
}

fn payload(number: u64, size: usize) -> Variant {
    let mut bytes = vec![0x5a; size];
    if let Some(first) = bytes.get_mut(..8) {
        first.copy_from_slice(&number.to_le_bytes());
    }
    Variant::ByteString(ByteString::from(bytes))
}

/// Measures and reports.
pub(crate) fn run(arguments: &Roundtrip, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    let common = &arguments.common;
    let server = common.begin()?;
    let node = {
        let mut session = Session::connect(&common.connection, context)?;
        let found = resolve::all(&mut session, std::slice::from_ref(&arguments.node))?;
        session.close();
        found.into_iter().next().ok_or_else(|| GeneratorError::Usage("--node names no node".to_owned()))?
    };
    let mut echo = Echo::default();
    let mut fleet = common.fleet(1, context)?;
    fleet.add(common.target(context)?);
    set_up(arguments, &mut fleet, &mut echo, &node, context)?;

    let mut number = 0u64;
    let transactions = Transactions::measure(
        common,
        server,
        arguments.count,
        "round trips",
        context,
        &mut fleet,
        |fleet| {
            number += 1;
            let revised_ms = echo.revised_ms;
            transaction::rest(fleet, &mut echo, number, revised_ms)?;
            one(arguments, fleet, &mut echo, &node, number, context)
        },
    )?;
    fleet.with(MemberId(0), |core, now| core.disconnect(now), &mut echo);

    let mut report = common.report("roundtrip");
    let requested = ReturnedRequested {
        payload_bytes: Some(arguments.payload),
        publishing_ms: arguments.interval.as_secs_f64() * 1e3,
        count: arguments.count,
        ..ReturnedRequested::default()
    };
    report.fact("payload", figures::bytes(f64::from(arguments.payload)));
    let times = ("write to own notification", Unit::RoundTrip);
    Ok(transactions.report(report, times, requested, echo.revised_ms, context))
}

/// One round trip of a value; `None` if interrupted.
fn one(
    arguments: &Roundtrip,
    fleet: &mut Fleet,
    echo: &mut Echo,
    node: &NodeId,
    number: u64,
    context: &Context<'_>,
) -> Result<Option<u64>, GeneratorError> {
    let mut request = transaction::write(node.clone(), payload(number, arguments.payload as usize));
    let begin = clock::monotonic();
    if let Some(Err(error)) = fleet.with(MemberId(0), |core, now| core.request(&mut request, None, now), echo)
    {
        return Err(session::failure(&error));
    }
    loop {
        if let Some((seen, at)) = echo.seen
            && seen == number
        {
            return Ok(Some(at.saturating_sub(begin)));
        }
        if let Some(error) = &echo.error {
            return Err(session::failure(error));
        }
        if let Some(status) = &echo.write_refused {
            return Err(GeneratorError::BadStatus(format!("writing to {node} failed: {status}")));
        }
        let now = clock::monotonic();
        if now - begin > PATIENCE {
            return Err(GeneratorError::Connect(format!("value {number} did not return within 20 s")));
        }
        if context.is_ended() {
            return Ok(None);
        }
        fleet.run_once(Instant::from_nanos(now + 100_000_000), echo).map_err(environment)?;
    }
}

fn set_up(
    arguments: &Roundtrip,
    fleet: &mut Fleet,
    echo: &mut Echo,
    node: &NodeId,
    context: &Context<'_>,
) -> Result<(), GeneratorError> {
    let params = transaction::subscription(arguments.interval);
    let item = transaction::item(node.clone(), 1);
    let (mut subscribing, mut adding) = (false, false);
    let begin = clock::monotonic();
    while !echo.ready {
        if let Some(error) = &echo.error {
            return Err(session::unreachable(&arguments.common.connection.endpoint, error));
        }
        if context.is_ended() {
            return Err(GeneratorError::Interrupted);
        }
        if clock::monotonic() - begin > PATIENCE {
            return Err(GeneratorError::Connect("the server did not create the subscription".to_owned()));
        }
        if echo.connected && !subscribing {
            subscribing = true;
            fleet.with(MemberId(0), |core, now| core.create_subscription(params.clone(), now), echo);
        }
        if let (Some(handle), false) = (echo.subscription, adding) {
            adding = true;
            let added =
                fleet.with(MemberId(0), |core, now| core.add_items(handle, [item.clone()], now), echo);
            if let Some(Err(error)) = added {
                return Err(GeneratorError::Connect(error.to_string()));
            }
        }
        let until = Instant::from_nanos(clock::monotonic() + 50_000_000);
        fleet.run_once(until, echo).map_err(environment)?;
    }
    match &echo.refused {
        Some(status) => Err(GeneratorError::BadStatus(format!("monitoring {node} was refused: {status}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_contain_their_number() {
        let Variant::ByteString(bytes) = payload(7, 16) else { panic!() };
        assert_eq!((bytes.as_bytes().len(), number_of(bytes.as_bytes())), (16, Some(7)));
        assert_eq!(number_of(&[1, 2, 3]), None);
    }
}
