//! Durable subscriptions of `taktwerk watch` (Part 4 §6.8), and what is told of a time without connection.

use crate::failure::Failure;
use crate::output::{Output, counted};
use crate::session::{self, Session};
use serde_json::json;
use std::time::Duration;
use taktwerk_client::{Delivery, Event, SubscriptionEvent};
use taktwerk_net::clock::{monotonic, wall};
use taktwerk_schema::ids::{method_ids, object_ids};
use taktwerk_schema::{CallMethodRequest, CallRequest};
use taktwerk_types::{DataValue, NodeId, StatusCode, UtcTime, Variant};

/// How long the server may take to create a subscription.
const CREATE_TIME: Duration = Duration::from_secs(60);

/// Waits until the subscription is there.
pub(super) fn created(session: &mut Session) -> Result<Event, Failure> {
    let end = monotonic() + CREATE_TIME;
    while let Some(delivery) = session.client().wait(end) {
        match delivery {
            Delivery::Event(event @ Event::Subscription(_, SubscriptionEvent::Created { .. })) => {
                return Ok(event);
            }
            Delivery::Event(Event::Subscription(_, SubscriptionEvent::CreateFailed(error))) => {
                return Err(session::failure(&error));
            }
            Delivery::Event(Event::Disconnected(Some(error))) => return Err(session::failure(&error)),
            _ => {}
        }
    }
    Err(Failure::Connect("the server did not create the subscription within a minute".to_owned()))
}

/// Calls SetSubscriptionDurable (Part 5 §9.2) and tells what the server grants.
pub(super) fn request(
    session: &mut Session,
    subscription_id: u32,
    hours: u32,
    queue: u32,
    output: Output,
) -> Result<(), Failure> {
    let call = CallMethodRequest {
        object_id: NodeId::numeric(0, object_ids::SERVER),
        method_id: NodeId::numeric(0, method_ids::SERVER_SET_SUBSCRIPTION_DURABLE),
        input_arguments: vec![subscription_id.into(), hours.into()],
    };
    let response = session.request(CallRequest { methods_to_call: vec![call], ..Default::default() })?;
    let result = response.results.into_iter().next().unwrap_or_default();
    let revised = match result.output_arguments.first() {
        _ if result.status_code.is_bad() => return Err(refused(result.status_code)),
        Some(Variant::UInt32(revised)) => *revised,
        _ => return Err(refused(StatusCode::BAD_UNEXPECTED_ERROR)),
    };
    if output.is_json() {
        return output.line(&json!({
            "Event": "Durable",
            "RequestedLifetimeInHours": hours,
            "RevisedLifetimeInHours": revised,
        }));
    }
    tell!("durable: requested {hours} h, revised {revised} h");
    if queue == 1 {
        tell!(
            "note: with --queue 1 the server keeps only the newest value of each item; --queue 1000 keeps more"
        );
    }
    Ok(())
}

fn refused(status: StatusCode) -> Failure {
    let why = status.description().unwrap_or_default();
    Failure::BadStatus(format!(
        "SetSubscriptionDurable: {status}: {why}. The server has no durable subscriptions, or not for this user. A Taktwerk \
         server has them with `serve --durable FILE` or [durable_subscriptions] in its configuration; without --durable, \
         watch works with any server"
    ))
}

/// What came of a time without connection.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// When the connection was lost, until it is back.
    is_lost: bool,
    /// Since the connection is back: the time, and the values from before it.
    counted: Option<(UtcTime, usize)>,
}

impl Kept {
    /// Tells what became of the connection and of the subscription.
    pub(super) fn on_event(&mut self, event: &Event, output: Output) -> Result<(), Failure> {
        let (name, text) = match event {
            // Only the first attempt that fails is news.
            Event::ConnectionLost { error, .. } if !core::mem::replace(&mut self.is_lost, true) => {
                ("ConnectionLost", format!("connection lost ({error}); connecting again"))
            }
            Event::Restored(..) => {
                (self.is_lost, self.counted) = (false, Some((wall(), 0)));
                return Ok(());
            }
            Event::Subscription(_, SubscriptionEvent::Kept) => {
                ("Kept", "connected again; the server kept the subscription".to_owned())
            }
            Event::Subscription(_, SubscriptionEvent::Transferred) => (
                "Transferred",
                "connected again in a new session; the subscription was transferred to it".to_owned(),
            ),
            Event::Subscription(_, SubscriptionEvent::Recreating(status)) => {
                self.counted = None;
                let text = format!(
                    "the server lost the subscription ({status}): it is created again and is not durable; changes meanwhile are lost"
                );
                ("Recreating", output.bad(&text))
            }
            _ => return Ok(()),
        };
        if output.is_json() {
            return output.line(&json!({ "Event": name }));
        }
        tell!("{text}");
        Ok(())
    }

    /// Counts the values that waited on the server, and tells their number once newer ones come.
    pub(super) fn count<'a>(
        &mut self,
        values: impl Iterator<Item = &'a DataValue>,
        output: Output,
    ) -> Result<(), Failure> {
        let Some((restored, mut count)) = self.counted else { return Ok(()) };
        let mut is_over = false;
        for value in values {
            match value.source_timestamp.or(value.server_timestamp) {
                Some(time) if time < restored => count += 1,
                _ => is_over = true,
            }
        }
        self.counted = (!is_over).then_some((restored, count));
        if !is_over {
            return Ok(());
        }
        if output.is_json() {
            return output.line(&json!({ "Event": "Resumed", "Values": count }));
        }
        tell!("{} from the time without connection", counted(count, "value"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::ColorChoice;

    #[test]
    fn values_of_the_time_without_connection_are_counted_once() {
        let output = Output::new(false, ColorChoice::Never);
        let at = |seconds: u64| DataValue {
            source_timestamp: Some(UtcTime::from_unix(Duration::from_secs(1_700_000_000 + seconds))),
            ..DataValue::default()
        };
        let restored = UtcTime::from_unix(Duration::from_secs(1_700_000_010));
        let mut kept = Kept { is_lost: false, counted: Some((restored, 0)) };
        kept.count([at(1), at(2)].iter(), output).unwrap();
        assert_eq!(kept.counted, Some((restored, 2)));
        kept.count([at(3), at(11)].iter(), output).unwrap();
        assert_eq!(kept.counted, None);
        let lost = Event::Subscription(
            taktwerk_client::SubscriptionHandle(1),
            SubscriptionEvent::Recreating(StatusCode::BAD_SUBSCRIPTION_ID_INVALID),
        );
        kept.counted = Some((restored, 5));
        kept.on_event(&lost, output).unwrap();
        assert_eq!(kept.counted, None, "the first values of a new subscription have waited nowhere");
    }
}
