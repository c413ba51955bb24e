//! Raising events.

use super::{Node, now};
use taktwerk_schema::ids::object_type_ids;
use taktwerk_server::{FieldName, NewEvent};
use taktwerk_types::{ByteString, LocalizedText, NodeId, UtcTime, Variant};

/// Fields of an event; [`EventBuilder::emit`] raises it.
#[derive(Debug)]
#[must_use = "nothing is raised before emit()"]
pub struct EventBuilder {
    node: Node,
    event: NewEvent,
}

impl Node {
    /// Begins an event of this node. It is sent to clients that monitor the events of this node, of a node above it with an
    /// EventNotifier, or of the Server Object.
    ///
    /// ```
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = taktwerk::Server::builder().application_name("Pumps").bind("127.0.0.1:0").anonymous().build()?;
    /// let pump = server.namespace("urn:example:pumps").object("Pump").event_notifier().add()?;
    /// pump.event(2041u32).severity(700).message("Pump 7 has stopped").field("Reason", "no power").emit();
    /// # Ok(())
    /// # }
    /// ```
    pub fn event(&self, event_type: impl Into<NodeId>) -> EventBuilder {
        EventBuilder { node: self.clone(), event: NewEvent::new(event_type, self.id.clone()) }
    }

    /// Begins a ProgressEvent (OPC 10000-5 §6.4.34) with the progress of a long operation, from 0 to 100 percent. `context`
    /// identifies the operation if there are several.
    pub fn progress(&self, context: impl Into<Variant>, percent: u16) -> EventBuilder {
        self.event(NodeId::numeric(0, object_type_ids::PROGRESS_EVENT_TYPE))
            .field("Context", context)
            .field("Progress", percent.min(100))
    }

    /// Begins an event of BaseEventType.
    pub fn base_event(&self) -> EventBuilder {
        self.event(NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE))
    }
}

impl EventBuilder {
    /// The severity, from 1 to 1000. Default: 1.
    pub fn severity(mut self, severity: u16) -> Self {
        self.event = self.event.severity(severity);
        self
    }

    /// A readable description.
    pub fn message(mut self, message: impl Into<LocalizedText>) -> Self {
        self.event = self.event.message(message);
        self
    }

    /// When it happened. Default: now.
    pub fn time(mut self, time: UtcTime) -> Self {
        self.event = self.event.time(time);
        self
    }

    /// A field of the event type, by its path of BrowseNames: `2:Pressure`, `EnabledState/Id`.
    pub fn field(mut self, name: impl Into<FieldName>, value: impl Into<Variant>) -> Self {
        self.event = self.event.field(name, value);
        self
    }

    /// Raises the event. Returns its EventId if a client may need it. While no client monitors events, it only costs building the
    /// fields.
    pub fn emit(self) -> Option<ByteString> {
        self.node.space.raise(self.event, now())
    }
}
