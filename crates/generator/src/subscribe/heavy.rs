//! One client with a large subscription in addition to the others, on its own thread. It can stop reading: then its
//! messages pile up in the kernel until the server cannot send any more. This must not affect the other clients.

use super::{Found, Subscribe, find_nodes, item, params};
use crate::client::session;
use crate::common::Generator;
use crate::context::Context;
use crate::error::GeneratorError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use taktwerk_client::{Delivery, Event, EventQueue, SubscriptionEvent};
use taktwerk_net::client::BlockingClient;
use taktwerk_net::clock::monotonic;
use taktwerk_schema::PublishRequest;

/// Publish requests sent before it stops reading, so that the server has requests to answer for a while. Servers accept
/// at least this many.
const REQUESTS_AHEAD: usize = 90;
/// Timeout for creating the items.
const SET_UP: Duration = Duration::from_secs(30);
/// Maximum duration of one turn of the reading loop.
const TURN: Duration = Duration::from_millis(50);

/// The client's thread.
pub(super) struct Heavy {
    stop_reading: Arc<AtomicBool>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Heavy {
    /// Connects, creates the items and starts reading.
    pub(super) fn start(
        arguments: &Subscribe,
        items: u32,
        context: &Context<'_>,
    ) -> Result<Self, GeneratorError> {
        let common = &arguments.common;
        let found = find_nodes(arguments, context)?;
        let connected = BlockingClient::connect(common.client_config(context)?, common.target(context)?);
        let (mut client, _) =
            connected.map_err(|error| session::unreachable(&common.connection.endpoint, &error))?;
        subscribe(&mut client, arguments, &found, items)?;
        let (stop_reading, end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (stopped, ended) = (Arc::clone(&stop_reading), Arc::clone(&end));
        let thread = std::thread::Builder::new().name("heavy".to_owned()).spawn(move || {
            let mut sink = EventQueue::default();
            while !ended.load(Ordering::Relaxed) && !stopped.load(Ordering::Relaxed) {
                client.run_until(monotonic() + TURN, &mut sink);
                sink.deliveries.clear();
            }
            if stopped.load(Ordering::Relaxed) {
                ask_ahead(&mut client);
            }
            while !ended.load(Ordering::Relaxed) {
                // The connection stays open, but is not read.
                std::thread::sleep(TURN);
            }
        });
        let thread =
            thread.map_err(|error| GeneratorError::Environment(format!("cannot start a thread: {error}")))?;
        Ok(Self { stop_reading, end, thread: Some(thread) })
    }

    /// Stops reading permanently.
    pub(super) fn stop_reading(&self) {
        self.stop_reading.store(true, Ordering::Relaxed);
    }
}

impl Drop for Heavy {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic has already been printed by the thread.
            let _ = thread.join();
        }
    }
}

fn subscribe(
    client: &mut BlockingClient,
    arguments: &Subscribe,
    found: &Found,
    items: u32,
) -> Result<(), GeneratorError> {
    let handle = client.core().create_subscription(params(arguments), monotonic());
    let end = monotonic() + SET_UP;
    let mut answered = 0;
    while answered < items as usize {
        if monotonic() >= end {
            return Err(GeneratorError::Connect(format!(
                "the server created only {answered} of {items} items of the heavy client"
            )));
        }
        match client.wait(end) {
            Some(Delivery::Event(Event::Subscription(_, SubscriptionEvent::Created { .. }))) => {
                let requests: Vec<_> = (0..items)
                    .filter_map(|index| found.node(index).map(|node| item(arguments, node, index)))
                    .collect();
                for part in requests.chunks(found.per_request) {
                    let added = client.core().add_items(handle, part.to_vec(), monotonic());
                    added.map_err(|error| GeneratorError::Connect(error.to_string()))?;
                }
            }
            Some(Delivery::Event(Event::Subscription(_, SubscriptionEvent::Items(results)))) => {
                answered += results.len();
            }
            Some(Delivery::Event(Event::Disconnected(Some(error)))) => {
                return Err(session::unreachable(&arguments.common.connection.endpoint, &error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sends many Publish requests without waiting for their answers.
fn ask_ahead(client: &mut BlockingClient) {
    for _ in 0..REQUESTS_AHEAD {
        if client.core().request(&mut PublishRequest::default(), None, monotonic()).is_err() {
            return;
        }
    }
    // One short turn, which sends and receives at most once.
    let mut sink = EventQueue::default();
    client.run_until(monotonic() + Duration::from_micros(1), &mut sink);
}
