//! Receives the events of the clients, and counts notifications per item.

use super::clock::{Answer, Clock};
use super::written::Written;
use taktwerk_client::{
    ClientError, DataChanges, Event, Reply, RequestHandle, SubscriptionEvent, SubscriptionHandle,
};
use taktwerk_load::latency::Times;
use taktwerk_load::progress::{Progress, ProgressSummary};
use taktwerk_load::result::{Extent, Revised};
use taktwerk_load::steady::Slice;
use taktwerk_model::statistics;
use taktwerk_net::client::{FleetSink, MemberId};
use taktwerk_net::clock;
use taktwerk_schema::DataChangeNotification;
use taktwerk_types::{DataValue, Instant, StatusCode, UtcTime};

/// Counters for a fleet.
pub(crate) struct Observer {
    pub(crate) progress: Progress,
    /// Whether the load became steady; `None` if this was not awaited.
    pub(crate) steady: Option<bool>,
    pub(crate) revised: Revised,
    /// From the source timestamp to the application: one sample per message.
    pub(crate) delivery: Times,
    /// The same for every value, if it is measured.
    pub(crate) age: Option<Times>,
    /// Publish requests by a clock, if clients send them that way.
    pub(crate) clock: Option<Clock>,
    /// Statistics of values that contain their time of writing.
    pub(crate) written: Option<Written>,
    /// From the server's PublishTime to the application: one sample per message.
    pub(crate) transfer: Times,
    /// Everything received since the start, within the window or not.
    pub(crate) heard: Slice,
    /// Expected interval between two messages of a client in nanoseconds, and the deviation that counts as late.
    pub(crate) expected: (u64, u64),
    /// Interval between two messages of a client.
    pub(crate) intervals: Times,
    pub(crate) messages: u64,
    /// Messages with a null PublishTime, as node-opcua sends them.
    pub(crate) unstamped: u64,
    pub(crate) lost_messages: u64,
    /// Clients whose next message was overdue when the window closed.
    pub(crate) waiting: usize,
    pub(crate) lost_connections: usize,
    /// Clients that have just connected and have no subscription yet.
    pub(crate) connected_now: Vec<u32>,
    /// Subscriptions that have just been created and have no items yet.
    pub(crate) created_now: Vec<(u32, SubscriptionHandle)>,
    pub(crate) subscriptions: usize,
    pub(crate) items_answered: usize,
    pub(crate) items_refused: usize,
    pub(crate) first_refused: Option<StatusCode>,
    pub(crate) first_error: Option<ClientError>,
    last_message: Vec<u64>,
    /// When the last message of each client began, before the window.
    last_begun: Vec<u64>,
    is_open: bool,
    is_closed: bool,
    /// Wall-clock time at zero of the monotonic clock.
    origin: UtcTime,
}

impl Observer {
    pub(crate) fn new(clients: usize, items: usize) -> Self {
        Self {
            progress: Progress::new(items),
            steady: None,
            revised: Revised::default(),
            delivery: Times::new(),
            age: None,
            clock: None,
            written: None,
            transfer: Times::new(),
            heard: Slice::default(),
            expected: (0, u64::MAX),
            intervals: Times::new(),
            messages: 0,
            unstamped: 0,
            lost_messages: 0,
            waiting: 0,
            lost_connections: 0,
            connected_now: Vec::new(),
            created_now: Vec::new(),
            subscriptions: 0,
            items_answered: 0,
            items_refused: 0,
            first_refused: None,
            first_error: None,
            last_message: vec![0; clients],
            last_begun: vec![0; clients],
            is_open: false,
            is_closed: false,
            origin: clock::origin(),
        }
    }

    /// Starts the window.
    pub(crate) fn open(&mut self, now: u64) {
        self.progress.open(now);
        self.is_open = true;
        self.origin = clock::origin();
    }

    /// Records the transfer time of a message, if it has a PublishTime.
    fn stamped(&mut self, published: UtcTime, arrived: i128) {
        if published == UtcTime::NULL {
            self.unstamped += 1;
        } else {
            self.transfer.record(u64::try_from(arrived - published.unix_nanos()).unwrap_or(0));
        }
    }

    /// Ends a first window and starts another one. Returns the delivery times of the first.
    pub(crate) fn start_again(&mut self) -> Times {
        self.is_open = false;
        (self.messages, self.unstamped) = (0, 0);
        self.written = self.written.take().map(|_| Written::default());
        self.age = self.age.take().map(|_| Times::new());
        self.transfer = Times::new();
        self.intervals = Times::new();
        std::mem::take(&mut self.delivery)
    }

    /// Ends the window; later changes of connections are caused by the load itself. A client that has waited for its
    /// next message for more than `patience` nanoseconds counts with that time. Otherwise a server that stalls until
    /// the end would have the best intervals.
    pub(crate) fn close(&mut self, now: u64, patience: u64) {
        self.progress.close(now);
        for waited in
            self.last_message.iter().filter(|last| **last != 0).map(|last| now.saturating_sub(*last))
        {
            if waited > patience {
                self.intervals.record(waited);
                self.waiting += 1;
            }
        }
        self.is_open = false;
        self.is_closed = true;
    }

    /// Counts a message before the window opens, and whether it arrived in time.
    fn pace(&mut self, member: MemberId, at: u64) {
        let Some(begun) = self.last_begun.get_mut(member.0 as usize) else { return };
        let (interval, slip) = self.expected;
        let gap = at.saturating_sub(*begun);
        // Some servers split what does not fit into one message and send the parts right after each other.
        if *begun != 0 && gap < interval.saturating_sub(slip).min(slip) {
            return;
        }
        self.heard.messages += 1;
        self.heard.irregular += u64::from(*begun != 0 && gap.abs_diff(interval) > slip);
        *begun = at;
    }

    /// The figures. If the update interval is unknown, the median item determines the expected number of values.
    pub(crate) fn summary(&self, update_ms: Option<f64>, seconds: f64) -> ProgressSummary {
        let sampling = self.revised.sampling_ms.map_or(0.0, |extent| extent.max);
        let expected = match update_ms {
            Some(update) => seconds * 1e3 / update.max(sampling).max(1e-3),
            None => statistics::median(&self.progress.counts()).unwrap_or(0.0),
        };
        // Only whole cycles can be received.
        self.progress.summary(expected.floor())
    }
}

/// A message that has just arrived.
struct Arrival<'a> {
    observer: &'a mut Observer,
    at: u64,
    /// Nanoseconds since 1970.
    arrived: i128,
    source: Option<UtcTime>,
}

impl Arrival<'_> {
    #[inline]
    fn value(&mut self, item: u32, value: &DataValue) {
        let (observer, arrived) = (&mut *self.observer, self.arrived);
        observer.heard.values += 1;
        observer.progress.notify(item as usize, self.at);
        if let Some(status) = value.status {
            if status.has_overflow() {
                observer.progress.overflow();
            }
            if status.is_bad() {
                observer.progress.bad();
            }
        }
        self.source = self.source.or(value.source_timestamp);
        if !observer.is_open {
            return;
        }
        if let Some(written) = &mut observer.written {
            written.arrived(value, arrived);
        }
        if let (Some(age), Some(source)) = (&mut observer.age, value.source_timestamp) {
            age.record(u64::try_from(arrived - source.unix_nanos()).unwrap_or(0));
        }
    }

    fn done(self, member: MemberId, published: UtcTime) {
        let Self { observer, at, arrived, source } = self;
        let Some(last) = observer.last_message.get_mut(member.0 as usize) else { return };
        let before = std::mem::replace(last, at);
        if !observer.is_open {
            observer.pace(member, at);
            return;
        }
        observer.messages += 1;
        if before != 0 {
            observer.intervals.record(at.saturating_sub(before));
        }
        observer.stamped(published, arrived);
        if let Some(source) = source {
            observer.delivery.record(u64::try_from(arrived - source.unix_nanos()).unwrap_or(0));
        }
    }
}

impl Observer {
    fn arrival(&mut self, now: Instant) -> Arrival<'_> {
        // The time at which the application receives the value, as for PubSub; `now` was read when the bytes arrived.
        let given = clock::monotonic().as_nanos();
        let arrived = self.origin.unix_nanos() + i128::from(given);
        Arrival { observer: self, at: now.as_nanos(), arrived, source: None }
    }

    /// Takes a response to a client that sends its requests by a clock.
    fn answered(&mut self, member: MemberId, answer: Answer, now: Instant) {
        match answer {
            Answer::Subscription(response) => {
                Extent::widen(&mut self.revised.publishing_ms, response.revised_publishing_interval);
                self.subscriptions += 1;
            }
            Answer::Items(response) => {
                for result in &response.results {
                    self.item(
                        result.status_code,
                        result.revised_sampling_interval,
                        result.revised_queue_size,
                    );
                }
            }
            Answer::Message(response) => {
                let message = &response.notification_message;
                let changes = message.notification_data.iter();
                let mut changes =
                    changes.filter_map(|data| data.decode::<DataChangeNotification>().ok()).peekable();
                if changes.peek().is_none() {
                    return;
                }
                let mut arrival = self.arrival(now);
                for item in changes.flat_map(|changes| changes.monitored_items) {
                    arrival.value(item.client_handle, &item.value);
                }
                arrival.done(member, message.publish_time);
            }
            Answer::Refused => {}
        }
    }

    /// Counts an item that the server created or refused.
    fn item(&mut self, status: StatusCode, sampling_ms: f64, queue: u32) {
        self.items_answered += 1;
        if status.is_bad() {
            self.items_refused += 1;
            self.first_refused.get_or_insert(status);
        } else {
            Extent::widen(&mut self.revised.sampling_ms, sampling_ms);
            Extent::widen(&mut self.revised.queue, f64::from(queue));
        }
    }
}

impl FleetSink for Observer {
    fn event(&mut self, member: MemberId, event: Event, _: Instant) {
        tracing::debug!(?member, ?event);
        match event {
            Event::Connected(_) => self.connected_now.push(member.0),
            Event::Disconnected(error) if !self.is_closed => {
                self.lost_connections += usize::from(self.is_open);
                self.first_error = self.first_error.take().or(error);
            }
            Event::ConnectionLost { error, .. } if !self.is_closed => {
                tracing::warn!(%error, "a connection was lost");
                self.lost_connections += 1;
            }
            Event::Subscription(handle, event) => match event {
                SubscriptionEvent::Created { publishing_interval_ms, .. } => {
                    Extent::widen(&mut self.revised.publishing_ms, publishing_interval_ms);
                    self.subscriptions += 1;
                    self.created_now.push((member.0, handle));
                }
                SubscriptionEvent::CreateFailed(error) => self.first_error = Some(error),
                SubscriptionEvent::Items(results) => {
                    for result in results {
                        self.item(
                            result.status,
                            result.revised_sampling_interval_ms,
                            result.revised_queue_size,
                        );
                    }
                }
                SubscriptionEvent::DataLost { from, to } if self.is_open => {
                    self.lost_messages += u64::from(to.wrapping_sub(from)) + 1;
                }
                SubscriptionEvent::Ended(status) if !self.is_closed => {
                    tracing::warn!(%status, "the server ended a subscription");
                    self.lost_connections += 1;
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn response(
        &mut self,
        member: MemberId,
        handle: RequestHandle,
        reply: Result<Reply<'_>, ClientError>,
        now: Instant,
    ) {
        let Some(clock) = &mut self.clock else { return };
        match clock.answer(member, handle, reply) {
            Ok(answer) => self.answered(member, answer, now),
            Err(error) if !self.is_closed => {
                tracing::warn!(%error, "a request failed");
                self.first_error.get_or_insert(error);
            }
            Err(_) => {}
        }
    }

    #[inline]
    fn data_changes(
        &mut self,
        member: MemberId,
        _: SubscriptionHandle,
        changes: DataChanges<'_>,
        now: Instant,
    ) {
        let mut arrival = self.arrival(now);
        let published = changes.publish_time;
        changes.inspect_all(|item, value| arrival.value(item, value));
        arrival.done(member, published);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_publish_time_is_ignored() {
        let mut observer = Observer::new(1, 1);
        let arrived = 1_700_000_000_000_000_000;
        observer.stamped(UtcTime::NULL, arrived);
        assert_eq!((observer.unstamped, observer.transfer.count()), (1, 0));
        observer
            .stamped(UtcTime::from_unix(std::time::Duration::from_nanos(arrived as u64 - 5_000)), arrived);
        assert_eq!(
            (observer.unstamped, observer.transfer.count(), observer.transfer.max() / 100),
            (1, 1, 50)
        );
        observer.start_again();
        assert_eq!(observer.unstamped, 0);
    }

    #[test]
    fn overdue_messages_count_with_their_waiting_time() {
        let second = 1_000_000_000;
        let mut observer = Observer::new(3, 3);
        observer.open(second);
        // A client without any message, one that is silent for seven seconds, and one whose next message is in flight.
        observer.last_message = vec![0, 3 * second, 10 * second - 50_000_000];
        observer.close(10 * second, 200_000_000);
        assert_eq!((observer.waiting, observer.intervals.count()), (1, 1));
        assert!(observer.intervals.max() >= 7 * second);
    }
}
