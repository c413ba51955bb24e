//! The client's application: subscribes, and counts delays instead of keeping values.

use super::histogram::Histogram;
use crate::client::Application;
use taktwerk_client::{Client, Delivery, Event, SubscriptionEvent, SubscriptionParams};
use taktwerk_schema::MonitoredItemCreateRequest;
use taktwerk_server::Now;
use taktwerk_types::{DataValue, Instant, UtcTime};

/// InfoBits: DataValue, and Overflow in it (Part 4 §7.39.1).
const OVERFLOW: u32 = 0x0480;

/// Delays of one group.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    pub(super) values: Histogram,
    pub(super) messages: u64,
    /// Sums over messages, in nanoseconds.
    pub(super) min: u128,
    pub(super) mean: f64,
    pub(super) max: u128,
    pub(super) arrived: u64,
    pub(super) overflows: u64,
}

/// What one message brings of a group.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
}

#[derive(Debug, Default)]
pub(super) struct Collector {
    pub(super) params: SubscriptionParams,
    pub(super) items: Vec<MonitoredItemCreateRequest>,
    /// The group of each client handle.
    pub(super) group_of: Vec<usize>,
    pub(super) groups: Vec<Group>,
    parts: Vec<Part>,
    /// Counts values that were written in this span only.
    pub(super) from: UtcTime,
    pub(super) until: UtcTime,
    pub(super) messages: u64,
    pub(super) connected_at: Option<Instant>,
    pub(super) trouble: Option<String>,
    pub(super) interval_ms: f64,
    pub(super) values: Histogram,
}

impl Collector {
    pub(super) fn new(params: SubscriptionParams, groups: usize) -> Self {
        Self { params, groups: vec![Group::default(); groups], ..Self::default() }
    }

    fn data_changes(&mut self, values: &[(u32, DataValue)], now: UtcTime) {
        self.parts.clear();
        self.parts.resize(self.groups.len(), Part::default());
        let mut counts = false;
        for (handle, value) in values {
            let group = self.group_of.get(*handle as usize).copied();
            let (Some(group), Some(written)) = (group, value.source_timestamp) else { continue };
            if written < self.from || written >= self.until {
                continue;
            }
            counts = true;
            let ticks = now.ticks().saturating_sub(written.ticks());
            let delay = u64::try_from(ticks).unwrap_or(0).saturating_mul(100);
            let (Some(part), Some(group)) = (self.parts.get_mut(group), self.groups.get_mut(group)) else {
                continue;
            };
            group.values.record(delay);
            self.values.record(delay);
            group.arrived += 1;
            let status = value.status.map_or(0, |status| status.0);
            group.overflows += u64::from(status & OVERFLOW == OVERFLOW);
            part.min = if part.count == 0 { delay } else { part.min.min(delay) };
            part.max = part.max.max(delay);
            part.sum += u128::from(delay);
            part.count += 1;
        }
        self.messages += u64::from(counts);
        for (part, group) in self.parts.iter().zip(&mut self.groups).filter(|(part, _)| part.count > 0) {
            group.messages += 1;
            group.min += u128::from(part.min);
            group.max += u128::from(part.max);
            group.mean += part.sum as f64 / part.count as f64;
        }
    }
}

impl Application for Collector {
    fn deliver(&mut self, delivery: Delivery, client: &mut Client, now: Now) {
        match delivery {
            Delivery::DataChanges { values, .. } => self.data_changes(&values, now.utc),
            Delivery::Event(Event::Connected(_)) => {
                if self.connected_at.is_none() {
                    self.connected_at = Some(now.instant);
                    let subscription = client.create_subscription(self.params.clone(), now.instant);
                    // It has just been created, so it is known.
                    let _ = client.add_items(subscription, core::mem::take(&mut self.items), now.instant);
                }
            }
            Delivery::Event(Event::Subscription(
                _,
                SubscriptionEvent::Created { publishing_interval_ms, .. },
            )) => {
                self.interval_ms = publishing_interval_ms;
            }
            Delivery::Event(event) => self.trouble = Some(format!("{event:?}")),
            Delivery::Response(..) | Delivery::Events { .. } => {}
        }
    }
}
