//! Numbered events of a server, and the promise of an item that monitors them: every event arrives, in order, or an
//! EventQueueOverflowEvent (Part 4 §7.22.3) or the loss of the subscription tells the application that some are missing.

use super::application::Worker;
use super::site::Site;
use crate::world::World;
use core::cell::RefCell;
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;
use taktwerk_schema::ids::{object_ids, object_type_ids};
use taktwerk_schema::{
    ContentFilter, ContentFilterElement, EventFilter, FilterOperator, LiteralOperand,
    MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, ReadValueId, SimpleAttributeOperand,
};
use taktwerk_server::{AddressSpace, NewEvent};
use taktwerk_types::{ExtensionObject, Instant, LocalizedText, NodeId, QualifiedName, UtcTime, Variant};

/// AttributeIds of EventNotifier and Value (Part 6 Annex A).
const EVENT_NOTIFIER: u32 = 12;
const VALUE: u32 = 13;
/// The SourceName of the numbered events: items filter by it, because the server also raises events of its own.
const SOURCE_NAME: &str = "counter";

/// The events of one server.
#[derive(Debug)]
pub(super) struct Emitter {
    period: Duration,
    /// Event number `n` is raised `n` periods after this time.
    start: Instant,
    /// The number of the last event that was due. If the server is down, it is not raised.
    pub(super) count: i64,
    /// Replaced when the server restarts.
    pub(super) space: Option<Arc<AddressSpace>>,
}

impl Emitter {
    pub(super) fn new(period: Duration, start: Instant) -> Self {
        Self { period, start, count: 0, space: None }
    }

    pub(super) fn raises(&self) -> bool {
        !self.period.is_zero()
    }

    fn next(&self) -> Option<Instant> {
        let count = u32::try_from(self.count + 1).ok()?;
        (!self.period.is_zero()).then(|| self.start + self.period * count)
    }

    fn tick(&mut self, is_up: bool, now: UtcTime) {
        self.count += 1;
        let Some(space) = self.space.as_ref().filter(|_| is_up) else { return };
        let server = NodeId::numeric(0, object_ids::SERVER);
        let event = NewEvent::new(NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE), server);
        let number = LocalizedText::from_text(self.count.to_string());
        space.raise(event.source_name(SOURCE_NAME).message(number), now);
    }
}

/// Schedules the next event of a server. Events continue until the end of the simulation.
pub(super) fn schedule(world: &mut World<Worker>, site: Rc<RefCell<Site>>) {
    let next = site.borrow().emitter.next();
    let Some(next) = next else { return };
    world.at(next, move |world| {
        let now = world.now().utc;
        {
            let mut site = site.borrow_mut();
            let is_up = site.is_up;
            site.emitter.tick(is_up, now);
        }
        schedule(world, site);
    });
}

/// An item for the numbered events.
pub(super) fn item(client_handle: u32, queue_size: u32) -> MonitoredItemCreateRequest {
    let field = |name: &str| SimpleAttributeOperand {
        type_definition_id: NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE),
        browse_path: vec![QualifiedName::new(0, name)],
        attribute_id: VALUE,
        ..SimpleAttributeOperand::default()
    };
    let is_numbered = ContentFilterElement {
        filter_operator: FilterOperator::EQUALS,
        filter_operands: vec![
            ExtensionObject::new(&field("SourceName")),
            ExtensionObject::new(&LiteralOperand { value: SOURCE_NAME.into() }),
        ],
    };
    let filter = EventFilter {
        select_clauses: vec![field("EventType"), field("Message")],
        where_clause: ContentFilter { elements: vec![is_numbered] },
    };
    MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: NodeId::numeric(0, object_ids::SERVER),
            attribute_id: EVENT_NOTIFIER,
            ..ReadValueId::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle,
            filter: ExtensionObject::new(&filter),
            queue_size,
            discard_oldest: true,
            ..MonitoringParameters::default()
        },
    }
}

/// The queue size that a server grants (Part 4 §7.21): at least 10, and 1 000 by default.
pub(super) fn granted(queue_size: u32) -> u32 {
    if queue_size == 0 { 1_000 } else { queue_size.max(10) }
}

/// What an application has received from an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    /// The number of the last event; negative before the first one.
    pub(super) last: i64,
    /// The application was told that events are missing: before one of this many next events.
    may_miss: u32,
}

impl Default for Received {
    fn default() -> Self {
        Self { last: -1, may_miss: 0 }
    }
}

/// A received event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The next one.
    Event,
    /// Events are missing.
    Overflow,
}

impl Received {
    /// The application was told that events may be missing.
    pub(super) fn lose(&mut self) {
        self.may_miss = self.may_miss.max(1);
    }

    /// An event arrives. An overflow tells that events are missing before one of the next `covered` events.
    ///
    /// # Errors
    /// The broken promise.
    pub(super) fn take(&mut self, fields: &[Variant], covered: u32) -> Result<Arrival, String> {
        let overflow = NodeId::numeric(0, object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE);
        let (kind, message) = match fields {
            [Variant::NodeId(kind), Variant::LocalizedText(message)] => (&**kind, message),
            _ => return Err(format!("an event has other fields than selected: {fields:?}")),
        };
        if *kind == overflow {
            self.may_miss = self.may_miss.max(covered);
            return Ok(Arrival::Overflow);
        }
        let number = message.text.as_deref().and_then(|text| text.parse::<i64>().ok());
        let Some(number) = number else {
            return Err(format!("an event arrived that the filter excludes: {fields:?}"));
        };
        let follows = self.last < 0 || number == self.last + 1 || (self.may_miss > 0 && number > self.last);
        if !follows {
            return Err(format!("event {number} arrived after {}, but no loss was reported", self.last));
        }
        (self.last, self.may_miss) = (number, self.may_miss.saturating_sub(1));
        Ok(Arrival::Event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_must_be_reported() {
        let event = |kind: u32, text: &str| {
            [NodeId::numeric(0, kind).into(), Variant::from(LocalizedText::from_text(text))]
        };
        let number = |number: i64| event(object_type_ids::BASE_EVENT_TYPE, &number.to_string());
        let overflow = event(object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE, "overflow");
        let mut received = Received::default();
        let mut take = |fields: &[Variant]| received.take(fields, 1);
        assert_eq!(take(&number(5)), Ok(Arrival::Event));
        assert_eq!(take(&number(6)), Ok(Arrival::Event));
        for wrong in [number(6), number(5), number(8), event(object_type_ids::BASE_EVENT_TYPE, "other")] {
            assert!(take(&wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(take(&overflow), Ok(Arrival::Overflow));
        assert!(take(&number(6)).is_err());
        assert_eq!(take(&number(9)), Ok(Arrival::Event));
        assert!(take(&number(11)).is_err());
        received.lose();
        assert_eq!(received.take(&number(11), 1), Ok(Arrival::Event));
        assert!(received.take(&[], 1).is_err());
        // An overflow covers a whole queue, and the event after it.
        assert_eq!(received.take(&overflow, 3), Ok(Arrival::Overflow));
        for (next, is_good) in [(12, true), (13, true), (20, true), (22, false)] {
            assert_eq!(received.take(&number(next), 3).is_ok(), is_good, "{next}");
        }
    }
}
