//! Clients that send Publish requests at fixed times instead of one for each answer.
//!
//! The client core always keeps a number of requests pending. So these clients create their subscription and send each
//! request themselves.

use super::{Found, Observer, environment, item, params};
use crate::error::GeneratorError;
use std::time::Duration;
use taktwerk_client::{ClientError, Reply, RequestHandle};
use taktwerk_load::clock;
use taktwerk_load::specification::Subscribe;
use taktwerk_net::client::{Fleet, MemberId};
use taktwerk_schema::{
    CreateMonitoredItemsRequest, CreateMonitoredItemsResponse, CreateSubscriptionRequest,
    CreateSubscriptionResponse, MonitoredItemCreateRequest, PublishRequest, PublishResponse,
    SubscriptionAcknowledgement,
};
use taktwerk_types::{Instant, StatusCode};

/// Publish requests sent before the first one by the clock: the limit of our server. A clock that is faster than the
/// messages fills the server's queue sooner or later. Figures must not depend on when this happens.
const AHEAD: u32 = 100;
/// Timeout of Publish requests; they wait long in a full queue.
const TIMEOUT: Duration = Duration::from_secs(3_600);

/// The clock of all clients, and their subscriptions.
#[derive(Debug)]
pub(crate) struct Clock {
    share: f64,
    /// Nanoseconds between two requests, and the time of the next one; zero before the start.
    every: u64,
    next: u64,
    members: Vec<Member>,
    /// Clients whose subscription has just been created.
    created_now: Vec<u32>,
    /// Requests that the server refused because there were too many.
    pub(crate) refused: u64,
}

/// A client.
#[derive(Debug, Clone, Default)]
struct Member {
    subscription: Option<RequestHandle>,
    items: Vec<RequestHandle>,
    subscription_id: u32,
    acknowledgements: Vec<SubscriptionAcknowledgement>,
}

/// The content of a response.
pub(crate) enum Answer {
    Subscription(Box<CreateSubscriptionResponse>),
    Items(Box<CreateMonitoredItemsResponse>),
    Message(Box<PublishResponse>),
    /// The server refused a Publish request because there were too many.
    Refused,
}

impl Clock {
    pub(crate) fn new(share: f64, clients: usize) -> Self {
        Self {
            share,
            every: 0,
            next: 0,
            members: vec![Member::default(); clients],
            created_now: Vec::new(),
            refused: 0,
        }
    }

    /// Decodes a response.
    pub(crate) fn answer(
        &mut self,
        member: MemberId,
        handle: RequestHandle,
        reply: Result<Reply<'_>, ClientError>,
    ) -> Result<Answer, ClientError> {
        let known = self.members.get_mut(member.0 as usize);
        let Some(own) = known else { return Ok(Answer::Refused) };
        if own.subscription == Some(handle) {
            let response: CreateSubscriptionResponse = reply?.decode()?;
            own.subscription_id = response.subscription_id;
            self.created_now.push(member.0);
            return Ok(Answer::Subscription(Box::new(response)));
        }
        if own.items.contains(&handle) {
            return Ok(Answer::Items(Box::new(reply?.decode()?)));
        }
        match reply.and_then(Reply::decode::<PublishResponse>) {
            Ok(response) => {
                let message = &response.notification_message;
                // Keep-alives are not acknowledged.
                if !message.notification_data.is_empty() {
                    own.acknowledgements.push(SubscriptionAcknowledgement {
                        subscription_id: response.subscription_id,
                        sequence_number: message.sequence_number,
                    });
                }
                Ok(Answer::Message(Box::new(response)))
            }
            Err(ClientError::Service { status: StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS, .. }) => {
                self.refused += 1;
                Ok(Answer::Refused)
            }
            Err(error) => Err(error),
        }
    }
}

/// Creates the subscriptions of clients that have just connected, and the items of subscriptions that have just been
/// created.
pub(super) fn set_up(
    arguments: &Subscribe,
    fleet: &mut Fleet,
    observer: &mut Observer,
    found: &Found,
    items: u32,
) -> Result<(), GeneratorError> {
    let failed = |error: ClientError| GeneratorError::Connect(error.to_string());
    for member in std::mem::take(&mut observer.connected_now) {
        let params = params(arguments);
        let mut request = CreateSubscriptionRequest {
            requested_publishing_interval: params.publishing_interval_ms,
            requested_lifetime_count: params.lifetime_count,
            requested_max_keep_alive_count: params.keep_alive_count,
            max_notifications_per_publish: params.notifications_max,
            publishing_enabled: true,
            ..CreateSubscriptionRequest::default()
        };
        let sent = fleet.with(MemberId(member), |core, now| core.request(&mut request, None, now), observer);
        let handle = sent.transpose().map_err(failed)?;
        if let Some(own) = observer.member_of_clock(member) {
            own.subscription = handle;
        }
    }
    let created = observer.clock.as_mut().map(|clock| std::mem::take(&mut clock.created_now));
    for member in created.unwrap_or_default() {
        let requests: Vec<MonitoredItemCreateRequest> = found
            .of_client(member, arguments.common.clients, items)
            .map(|(handle, node)| item(arguments, node, handle))
            .collect();
        let subscription_id = observer.member_of_clock(member).map_or(0, |own| own.subscription_id);
        for part in requests.chunks(found.per_request) {
            let mut request = CreateMonitoredItemsRequest {
                subscription_id,
                timestamps_to_return: params(arguments).timestamps,
                items_to_create: part.to_vec(),
                ..CreateMonitoredItemsRequest::default()
            };
            let sent =
                fleet.with(MemberId(member), |core, now| core.request(&mut request, None, now), observer);
            let handle = sent.transpose().map_err(failed)?;
            if let Some(own) = observer.member_of_clock(member) {
                own.items.extend(handle);
            }
        }
    }
    Ok(())
}

/// Starts the clock: fills the queue of each session, then sends one request per interval of the clock.
pub(super) fn start(fleet: &mut Fleet, observer: &mut Observer) {
    let interval_ms = observer.revised.longest_ms().into_iter().flatten().next().unwrap_or(1_000.0);
    let Some(clock) = &mut observer.clock else { return };
    clock.every = ((interval_ms * 1e6 * clock.share) as u64).max(1);
    clock.next = clock::monotonic() + clock.every;
    for _ in 0..AHEAD {
        publish(fleet, observer);
    }
}

/// Receives until `until`, in nanoseconds of the monotonic clock. Sends the Publish requests that are due.
pub(super) fn run_until(
    fleet: &mut Fleet,
    observer: &mut Observer,
    until: u64,
) -> Result<(), GeneratorError> {
    while let Some(due) =
        observer.clock.as_ref().map(|clock| clock.next).filter(|due| (1..until).contains(due))
    {
        fleet.run_until(Instant::from_nanos(due), observer).map_err(environment)?;
        publish(fleet, observer);
        if let Some(clock) = &mut observer.clock {
            clock.next += clock.every;
        }
    }
    fleet.run_until(Instant::from_nanos(until), observer).map_err(environment)?;
    Ok(())
}

/// Sends a Publish request of each client, with the acknowledgements since the last one.
fn publish(fleet: &mut Fleet, observer: &mut Observer) {
    let members = observer.clock.as_ref().map_or(0, |clock| clock.members.len());
    for member in (0u32..).take(members) {
        let own = observer.member_of_clock(member);
        let acknowledgements = own.map(|own| std::mem::take(&mut own.acknowledgements)).unwrap_or_default();
        let mut request =
            PublishRequest { subscription_acknowledgements: acknowledgements, ..PublishRequest::default() };
        let sent = fleet.with(
            MemberId(member),
            |core, now| core.request(&mut request, Some(TIMEOUT), now),
            observer,
        );
        if let Some(Err(error)) = sent {
            tracing::warn!(%error, "a Publish request was not sent");
        }
    }
}

impl Observer {
    fn member_of_clock(&mut self, member: u32) -> Option<&mut Member> {
        self.clock.as_mut()?.members.get_mut(member as usize)
    }
}
