//! Receives the answers of a fleet that sends requests.

use super::Outcome;
use super::view::Checked;
use std::collections::VecDeque;
use taktwerk_client::{ClientError, DataChanges, Event, Reply, RequestHandle, SubscriptionHandle};
use taktwerk_net::client::{FleetSink, MemberId};
use taktwerk_types::Instant;

/// A request that waits for its answer.
#[derive(Debug, Clone, Copy)]
struct Pending {
    handle: RequestHandle,
    scheduled: u64,
    sent: u64,
}

/// Matches answers with requests and records their latency.
pub(crate) struct Answers {
    pending: Vec<VecDeque<Pending>>,
    check: fn(&Reply<'_>) -> Checked,
    /// Requests scheduled before this belong to the warm-up.
    window_start: u64,
    window_end: u64,
    pub(crate) outcome: Outcome,
    pub(crate) connected: usize,
    pub(crate) refused: Option<ClientError>,
    /// Clients whose request was answered and that have none in flight.
    pub(crate) idle: Vec<u32>,
}

impl Answers {
    pub(crate) fn new(clients: usize, check: fn(&Reply<'_>) -> Checked) -> Self {
        Self {
            pending: vec![VecDeque::new(); clients],
            check,
            window_start: u64::MAX,
            window_end: u64::MAX,
            outcome: Outcome::default(),
            connected: 0,
            refused: None,
            idle: Vec::new(),
        }
    }

    /// Counts requests that are scheduled between two times.
    pub(crate) fn window(&mut self, start: u64, end: u64) {
        (self.window_start, self.window_end) = (start, end);
    }

    /// Ends the window: later requests are not counted.
    pub(crate) fn close(&mut self, end: u64) {
        self.window_end = self.window_end.min(end);
    }

    fn is_counted(&self, scheduled: u64) -> bool {
        (self.window_start..self.window_end).contains(&scheduled)
    }

    /// Records a sent request.
    pub(crate) fn sent(&mut self, client: u32, handle: RequestHandle, scheduled: u64, sent: u64) {
        self.outcome.sent += u64::from(self.is_counted(scheduled));
        if let Some(pending) = self.pending.get_mut(client as usize) {
            pending.push_back(Pending { handle, scheduled, sent });
        }
    }

    /// Gives up on requests without an answer; those that count have waited at least until now.
    pub(crate) fn give_up(&mut self, now: u64) {
        let window = self.window_start..self.window_end;
        for Pending { scheduled, sent, .. } in self.pending.iter_mut().flat_map(|queue| queue.drain(..)) {
            if window.contains(&scheduled) {
                self.outcome.latency.record_unanswered(scheduled, sent, now);
            }
        }
    }

    /// Number of requests without an answer.
    pub(crate) fn in_flight(&self) -> usize {
        self.pending.iter().map(VecDeque::len).sum()
    }
}

impl FleetSink for Answers {
    fn event(&mut self, _: MemberId, event: Event, _: Instant) {
        match event {
            Event::Connected(_) => self.connected += 1,
            Event::Disconnected(error) => {
                self.outcome.lost += usize::from(self.connected > 0);
                self.refused = self.refused.take().or(error);
            }
            Event::ConnectionLost { error, .. } => {
                tracing::warn!(%error, "a connection was lost");
                self.outcome.lost += 1;
            }
            _ => {}
        }
    }

    fn response(
        &mut self,
        member: MemberId,
        handle: RequestHandle,
        result: Result<Reply<'_>, ClientError>,
        now: Instant,
    ) {
        let Some(queue) = self.pending.get_mut(member.0 as usize) else { return };
        // Usually the first one: servers answer in order.
        let Some(at) = queue.iter().position(|pending| pending.handle == handle) else { return };
        let Some(Pending { scheduled, sent, .. }) = queue.remove(at) else { return };
        if queue.is_empty() {
            self.idle.push(member.0);
        }
        let counted = self.is_counted(scheduled);
        match result {
            Ok(reply) if counted => {
                self.outcome.latency.record(scheduled, sent, now.as_nanos());
                self.outcome.answered += 1;
                let checked = (self.check)(&reply);
                self.outcome.count(checked);
            }
            Err(error) if counted => {
                if is_silence(&error) {
                    self.outcome.latency.record_unanswered(scheduled, sent, now.as_nanos());
                }
                self.outcome.fail_request(&error);
            }
            _ => {}
        }
    }

    fn data_changes(&mut self, _: MemberId, _: SubscriptionHandle, _: DataChanges<'_>, _: Instant) {}
}

/// Whether a request failed because there was no answer. It then counts with its waiting time, unlike a refused
/// request.
pub(super) fn is_silence(error: &ClientError) -> bool {
    matches!(error, ClientError::Timeout(_)) || error.is_connection()
}

impl Outcome {
    /// Counts a failed request; an event reports the end of the connection.
    fn fail_request(&mut self, error: &ClientError) {
        let lost = self.lost;
        self.fail(error);
        self.lost = lost;
    }
}
