//! The publishing state machine of a Subscription: the state table of Part 4 §5.14.1.2, row by row.
//!
//! [`step`] is a pure function, so that a test covers every combination of its inputs. Rows of other services (create,
//! modify, transfer, delete: 1 to 3 and 18 to 26) do not depend on these variables and are implemented in the services.

/// The states of the table; Closed and Creating are the absence of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum State {
    /// Cycles run as requested by the client.
    Normal,
    /// A cycle found something to send and no Publish request.
    Late,
    /// Nothing to report: keep-alive messages only.
    KeepAlive,
}

/// An event for a Subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Event {
    /// A Publish request arrived and was assigned to this subscription.
    PublishReceived,
    /// The publishing timer expired.
    TimerExpired,
}

/// The state variables of Part 4 §5.14.1.3 that the table uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conditions {
    pub(crate) publishing_enabled: bool,
    pub(crate) notifications_available: bool,
    pub(crate) more_notifications: bool,
    pub(crate) request_queued: bool,
    pub(crate) message_sent: bool,
    /// Whether KeepAliveCounter has reached one.
    pub(crate) keep_alive_due: bool,
    /// Whether LifetimeCounter has reached one.
    pub(crate) lifetime_over: bool,
}

impl Conditions {
    /// There were no notifications after all.
    pub(crate) fn found_nothing(&mut self) {
        self.notifications_available = false;
        self.more_notifications = false;
    }
}

/// The action of a row, in addition to restarting the publishing timer, which every expiry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Action {
    /// Put the Publish request into the session's queue.
    Enqueue,
    /// Answer a Publish request with notifications; set MessageSent, reset the lifetime.
    ReturnNotifications,
    /// Answer a Publish request with a keep-alive; set MessageSent, reset both counters.
    ReturnKeepAlive,
    /// Nothing is due: reset KeepAliveCounter and count this cycle.
    ResetKeepAlive,
    /// Nothing is due: decrement KeepAliveCounter.
    CountKeepAlive,
    /// Something is due but no Publish request is queued: wait for one. Decrement the lifetime.
    Wait,
    /// The client is gone: delete the subscription and queue a StatusChangeNotification.
    Close,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its number in the specification.
    pub(crate) number: u8,
    pub(crate) action: Action,
    pub(crate) next: State,
}

const fn row(number: u8, action: Action, next: State) -> Row {
    Row { number, action, next }
}

/// Finds the row for an event.
pub(crate) const fn step(state: State, event: Event, c: Conditions) -> Row {
    // These two conditions are part of most rows of the table.
    let report = c.publishing_enabled && c.notifications_available;
    match (event, state) {
        (Event::PublishReceived, State::Normal) => {
            if c.publishing_enabled && c.more_notifications {
                row(5, Action::ReturnNotifications, State::Normal)
            } else {
                row(4, Action::Enqueue, State::Normal)
            }
        }
        (Event::PublishReceived, State::Late) => {
            if c.publishing_enabled && (c.notifications_available || c.more_notifications) {
                row(10, Action::ReturnNotifications, State::Normal)
            } else {
                row(11, Action::ReturnKeepAlive, State::KeepAlive)
            }
        }
        (Event::PublishReceived, State::KeepAlive) => row(13, Action::Enqueue, State::KeepAlive),
        // Row 27 precedes the other timer rows: the lifetime has expired and no request is queued.
        (Event::TimerExpired, _) if c.lifetime_over && !c.request_queued => {
            row(27, Action::Close, State::Late)
        }
        (Event::TimerExpired, State::Normal) => {
            if report {
                if c.request_queued {
                    row(6, Action::ReturnNotifications, State::Normal)
                } else {
                    row(8, Action::Wait, State::Late)
                }
            } else if c.message_sent {
                row(9, Action::ResetKeepAlive, State::KeepAlive)
            } else if c.request_queued {
                row(7, Action::ReturnKeepAlive, State::Normal)
            } else {
                row(8, Action::Wait, State::Late)
            }
        }
        // In the table a late subscription stays late. Here, a request that was held back because of a congested
        // connection is used as if it had just arrived (rows 10 and 11).
        (Event::TimerExpired, State::Late) => {
            if !c.request_queued {
                row(12, Action::Wait, State::Late)
            } else if report || (c.publishing_enabled && c.more_notifications) {
                row(10, Action::ReturnNotifications, State::Normal)
            } else {
                row(11, Action::ReturnKeepAlive, State::KeepAlive)
            }
        }
        (Event::TimerExpired, State::KeepAlive) => {
            if report {
                if c.request_queued {
                    row(14, Action::ReturnNotifications, State::Normal)
                } else {
                    row(17, Action::Wait, State::Late)
                }
            } else if !c.keep_alive_due {
                row(16, Action::CountKeepAlive, State::KeepAlive)
            } else if c.request_queued {
                row(15, Action::ReturnKeepAlive, State::KeepAlive)
            } else {
                row(17, Action::Wait, State::Late)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The specification's table: one independent condition per row.
    #[allow(clippy::nonminimal_bool)] // as in the specification
    fn rows_of_the_specification(state: State, event: Event, c: Conditions) -> Vec<(u8, State)> {
        use Event::{PublishReceived, TimerExpired};
        use State::{KeepAlive, Late, Normal};
        let (pe, na, mn, rq, ms) = (
            c.publishing_enabled,
            c.notifications_available,
            c.more_notifications,
            c.request_queued,
            c.message_sent,
        );
        let nothing = !pe || !na;
        let received = event == PublishReceived;
        let expired = event == TimerExpired && !(c.lifetime_over && !rq);
        let rows = [
            (4, received && state == Normal && (!pe || !mn), Normal),
            (5, received && state == Normal && pe && mn, Normal),
            (6, expired && state == Normal && rq && pe && na, Normal),
            (7, expired && state == Normal && rq && !ms && nothing, Normal),
            (8, expired && state == Normal && !rq && (!ms || (pe && na)), Late),
            (9, expired && state == Normal && ms && nothing, KeepAlive),
            (10, received && state == Late && pe && (na || mn), Normal),
            (11, received && state == Late && (!pe || (!na && !mn)), KeepAlive),
            (12, expired && state == Late && !rq, Late),
            (13, received && state == KeepAlive, KeepAlive),
            (14, expired && state == KeepAlive && pe && na && rq, Normal),
            (15, expired && state == KeepAlive && rq && c.keep_alive_due && nothing, KeepAlive),
            (16, expired && state == KeepAlive && !c.keep_alive_due && nothing, KeepAlive),
            (17, expired && state == KeepAlive && !rq && (c.keep_alive_due || (pe && na)), Late),
            (27, event == TimerExpired && c.lifetime_over && !rq, Late),
        ];
        rows.into_iter().filter(|row| row.1).map(|row| (row.0, row.2)).collect()
    }

    #[test]
    fn every_combination_selects_the_row_of_the_specification() {
        let mut seen = BTreeSet::new();
        for state in [State::Normal, State::Late, State::KeepAlive] {
            for event in [Event::PublishReceived, Event::TimerExpired] {
                for bits in 0..128u32 {
                    let bit = |at: u32| bits >> at & 1 == 1;
                    let conditions = Conditions {
                        publishing_enabled: bit(0),
                        notifications_available: bit(1),
                        more_notifications: bit(2),
                        request_queued: bit(3),
                        message_sent: bit(4),
                        keep_alive_due: bit(5),
                        lifetime_over: bit(6),
                    };
                    let taken = step(state, event, conditions);
                    let allowed = rows_of_the_specification(state, event, conditions);
                    seen.insert(taken.number);
                    if state == State::Late && event == Event::TimerExpired && bit(3) {
                        // Impossible by the table alone: a late subscription has used any queued request.
                        assert!(allowed.is_empty() && matches!(taken.number, 10 | 11));
                        continue;
                    }
                    assert_eq!(allowed, [(taken.number, taken.next)], "{state:?} {event:?} {conditions:?}");
                }
            }
        }
        assert_eq!(seen, BTreeSet::from([4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 27]));
    }

    /// Allows the engine to count a silent cycle without looking for a request.
    #[test]
    fn a_silent_cycle_does_not_depend_on_requests() {
        for bits in 0..16u32 {
            let bit = |at: u32| bits >> at & 1 == 1;
            let conditions = Conditions {
                publishing_enabled: bit(0),
                notifications_available: false,
                more_notifications: bit(1),
                request_queued: bit(2),
                message_sent: bit(3),
                keep_alive_due: false,
                lifetime_over: false,
            };
            let taken = step(State::KeepAlive, Event::TimerExpired, conditions);
            assert_eq!(taken, row(16, Action::CountKeepAlive, State::KeepAlive), "{conditions:?}");
        }
    }

    #[test]
    fn actions_fit_their_rows() {
        for bits in 0..128u32 {
            let bit = |at: u32| bits >> at & 1 == 1;
            let conditions = Conditions {
                publishing_enabled: bit(0),
                notifications_available: bit(1),
                more_notifications: bit(2),
                request_queued: bit(3),
                message_sent: bit(4),
                keep_alive_due: bit(5),
                lifetime_over: bit(6),
            };
            for state in [State::Normal, State::Late, State::KeepAlive] {
                let taken = step(state, Event::TimerExpired, conditions);
                match taken.action {
                    Action::ReturnNotifications => {
                        assert!(conditions.publishing_enabled && conditions.request_queued);
                    }
                    Action::ReturnKeepAlive => assert!(conditions.request_queued),
                    Action::Wait => assert!(!conditions.request_queued && taken.next == State::Late),
                    Action::Close => assert!(conditions.lifetime_over),
                    Action::ResetKeepAlive | Action::CountKeepAlive => {
                        assert_eq!(taken.next, State::KeepAlive);
                    }
                    Action::Enqueue => panic!("a timer enqueues nothing"),
                }
            }
        }
    }
}
