//! Durable subscriptions of `taktwerk watch` (Part 4 §6.8), and messages about values from the time without a
//! connection.

use crate::failure::Failure;
use crate::output::{Output, counted};
use crate::reconnection::Reconnection;
use crate::session::{self, Session};
use serde_json::json;
use std::time::Duration;
use taktwerk_client::{Delivery, Event, SubscriptionEvent};
use taktwerk_net::clock::{monotonic, wall};
use taktwerk_schema::ids::{method_ids, object_ids};
use taktwerk_schema::{CallMethodRequest, CallRequest};
use taktwerk_types::{DataValue, NodeId, StatusCode, UtcTime, Variant};

/// Timeout for creating a subscription.
const CREATE_TIME: Duration = Duration::from_secs(60);

/// Waits until the subscription is created.
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

/// Calls SetSubscriptionDurable (Part 5 §9.2) and prints the granted lifetime.
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

/// Tracks values from the time without a connection.
#[derive(Debug)]
pub(super) struct Kept {
    reconnection: Reconnection,
    /// Set after a reconnection: its time, and the number of values from before it.
    counted: Option<(UtcTime, usize)>,
}

impl Kept {
    pub(super) fn new(is_durable: bool) -> Self {
        let loss = if is_durable {
            " and is not durable; changes in between are lost"
        } else {
            "; changes in between are lost"
        };
        Self { reconnection: Reconnection::new(loss), counted: None }
    }

    /// Prints messages about the connection and the subscription.
    pub(super) fn on_event(&mut self, event: &Event, output: Output) -> Result<(), Failure> {
        match event {
            Event::Restored(..) => self.counted = Some((wall(), 0)),
            Event::Subscription(_, SubscriptionEvent::Recreating(_)) => self.counted = None,
            _ => {}
        }
        self.reconnection.notice(event).map_or(Ok(()), |notice| notice.print(output))
    }

    /// Counts values that the server had queued, and prints their number when newer ones arrive.
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
    fn queued_values_are_counted_once() {
        let output = Output::new(false, ColorChoice::Never);
        let at = |seconds: u64| DataValue {
            source_timestamp: Some(UtcTime::from_unix(Duration::from_secs(1_700_000_000 + seconds))),
            ..DataValue::default()
        };
        let restored = UtcTime::from_unix(Duration::from_secs(1_700_000_010));
        let mut kept = Kept { counted: Some((restored, 0)), ..Kept::new(true) };
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
        assert_eq!(kept.counted, None, "the first values of a new subscription were not queued");
    }
}
