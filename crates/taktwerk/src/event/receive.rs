//! Receiving typed events.

use super::emit::type_id;
use super::{BaseEvent, EmitError, EventType, FieldValues};
use crate::client::{Error, EventQuery, Item, SubscriptionHandle, ToNodeId, Update};
use crate::value::WrongType;
use core::marker::PhantomData;
use taktwerk_schema::ids::object_type_ids;
use taktwerk_types::{NodeId, QualifiedName, StatusCode, Variant};

/// Why a received event cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadEventError {
    /// Not an event of the type, but a notice that earlier events were lost.
    #[error("events were lost because the queue of the monitored item was full: ask for a longer queue")]
    Lost,
    /// A required field has no value.
    #[error("the event has no value for {field}: declare the field as `Option` if events may lack it")]
    Missing {
        /// The field.
        field: String,
    },
    /// The server sent a status instead of a value.
    #[error("the server does not return the field {field}: {status}")]
    Refused {
        /// The field.
        field: String,
        /// The status.
        status: StatusCode,
    },
    /// A value has another type than the field.
    #[error("the field {field}: {source}")]
    WrongType {
        /// The field.
        field: String,
        /// The type that was found.
        source: WrongType,
    },
    /// There are fewer values than were selected.
    #[error("the server sent fewer fields than were selected")]
    Count,
}

/// A monitored item whose events are read as type `E`.
#[derive(Debug, Clone)]
pub struct TypedEvents<E> {
    item: u32,
    event: PhantomData<fn() -> E>,
}

impl<E: EventType> TypedEvents<E> {
    /// The item's number in its subscription.
    #[must_use]
    pub fn item(&self) -> u32 {
        self.item
    }

    /// The event, if the update belongs to this item. Servers send the events that frame a ConditionRefresh to every item,
    /// whatever its filter (Part 9 §5.5.7). They are skipped unless `E` is one of their types.
    ///
    /// # Errors
    /// The event cannot be read, or events were lost before it.
    pub fn read(&self, update: Update) -> Option<Result<E, ReadEventError>> {
        match update {
            Update::Event(item, fields) if item == self.item => read(fields).transpose(),
            _ => None,
        }
    }
}

fn read<E: EventType>(fields: Vec<Variant>) -> Result<Option<E>, ReadEventError> {
    // Check this first: some servers leave out the fields of this event.
    let lost = NodeId::numeric(0, object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE);
    let event_type = BaseEvent::NAMES.iter().position(|name| *name == "EventType");
    if event_type.and_then(|at| fields.get(at)).is_some_and(|value| *value == Variant::from(lost)) {
        return Err(ReadEventError::Lost);
    }
    let mut values = fields.into_iter();
    let base = BaseEvent::read(&mut values)?;
    if is_around_refresh(&base.event_type) && !E::FIELDS.is_empty() {
        return Ok(None);
    }
    E::from_parts(base, FieldValues::new(E::FIELDS, values)).map(Some)
}

/// Whether this is one of the two events that frame a refresh. They have no fields of their own.
fn is_around_refresh(event_type: &NodeId) -> bool {
    matches!(
        event_type.ns0(),
        Some(
            object_type_ids::REFRESH_START_EVENT_TYPE
                | object_type_ids::REFRESH_END_EVENT_TYPE
                | object_type_ids::REFRESH_REQUIRED_EVENT_TYPE
        )
    )
}

/// The selected fields of an event type, and a condition in addition to the type.
fn query<E: EventType>(index: &impl Fn(&str) -> Option<u16>, condition: &str) -> Result<EventQuery, Error> {
    let unknown = |uri: &str| Error::Namespace { uri: uri.to_owned(), known: Vec::new() };
    let id = type_id::<E>(index).map_err(|error| match error {
        EmitError::Namespace { uri } => unknown(&uri),
        other => Error::status_of(other.to_string(), other.status()),
    })?;
    let mut query = BaseEvent::NAMES.into_iter().fold(EventQuery::new(), |query, name| query.select(name));
    for field in E::FIELDS {
        let path: Vec<QualifiedName> = field.resolve(index).map_err(unknown)?;
        query = if path.is_empty() { query.select("ConditionId") } else { query.select_of(&id, path) };
    }
    query
        .of_type(id, condition)
        .map_err(|error| Error::status_of(error.to_string(), StatusCode::BAD_EVENT_FILTER_INVALID))
}

impl SubscriptionHandle {
    /// Monitors events of a type and its subtypes at a node with an EventNotifier, such as the Server Object `i=2253`. They
    /// arrive as updates, which the result [reads](TypedEvents::read). An empty condition is always true; for the syntax see
    /// [`EventQuery::filter`].
    ///
    /// ```no_run
    /// # async fn example(client: taktwerk::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use taktwerk::event::standard::AuditUpdateMethodEvent;
    ///
    /// let mut subscription = client.subscribe(Duration::from_millis(500)).await?;
    /// let calls = subscription.handle().monitor_events::<AuditUpdateMethodEvent>("i=2253", "severity > 1").await?;
    /// while let Some(update) = subscription.next().await {
    ///     if let Some(call) = calls.read(update) {
    ///         let call = call?;
    ///         println!("{} called {}", call.client_user_id, call.method_id);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server does not have the namespace of the type or of a field, refuses the item or does not answer, or the condition is
    /// invalid.
    pub async fn monitor_events<E: EventType>(
        &self,
        node: impl ToNodeId,
        condition: &str,
    ) -> Result<TypedEvents<E>, Error> {
        self.monitor_events_queued(node, condition, 0).await
    }

    /// The same with a queue of this many events at the server; with 0 the server decides.
    ///
    /// # Errors
    /// As [`Self::monitor_events`].
    pub async fn monitor_events_queued<E: EventType>(
        &self,
        node: impl ToNodeId,
        condition: &str,
        queue: u32,
    ) -> Result<TypedEvents<E>, Error> {
        let namespaces = self.client().namespaces();
        let node: NodeId = node.to_node_id(&namespaces)?;
        let index = |uri: &str| if uri == super::UA { Some(0) } else { namespaces.index(uri) };
        let query = query::<E>(&index, condition).map_err(|error| match error {
            Error::Namespace { uri, .. } => {
                let known = namespaces.iter().map(|uri| uri.as_str().to_owned()).collect();
                Error::Namespace { uri, known }
            }
            other => other,
        })?;
        let item = self.monitor_item(Item::events(node, query).queue(queue)).await?;
        Ok(TypedEvents { item, event: PhantomData })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflow_event_without_other_fields_reports_lost_events() {
        let of = |event_type: u32| {
            let all = BaseEvent::NAMES.into_iter().map(|name| match name {
                "EventType" => Variant::from(NodeId::numeric(0, event_type)),
                _ => Variant::Empty,
            });
            read::<BaseEvent>(all.collect())
        };
        assert_eq!(of(object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE), Err(ReadEventError::Lost));
        assert!(matches!(of(object_type_ids::BASE_EVENT_TYPE), Err(ReadEventError::Missing { .. })));
    }
}
