//! Raising typed events.

use super::EventType;
use crate::space::{Node, now};
use taktwerk_server::space::EventTypeError;
use taktwerk_server::{FieldName, NewEvent};
use taktwerk_types::{ByteString, NodeId, StatusCode, UaString, Variant};

/// Why a typed event cannot be raised. No values can make it succeed: the server's types differ from those that the struct was
/// declared for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The server has no namespace of that URI.
    #[error("the server has no namespace {uri:?}: import the NodeSet that defines it first")]
    Namespace {
        /// The URI.
        uri: String,
    },
    /// The struct's id is invalid.
    #[error(
        "the event type's id {text:?} is not a NodeId without a namespace: write i=1001 or s=PumpStopped"
    )]
    Id {
        /// The id.
        text: String,
    },
    /// The server does not have the type or a field.
    #[error(transparent)]
    Type(#[from] EventTypeError),
}

impl EmitError {
    /// The corresponding status code.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Namespace { .. } | Self::Id { .. } => StatusCode::BAD_NODE_ID_INVALID,
            Self::Type(error) => error.status(),
        }
    }
}

/// The id of a type with the server's namespace index.
pub(super) fn type_id<E: EventType>(index: &impl Fn(&str) -> Option<u16>) -> Result<NodeId, EmitError> {
    let (uri, text) = E::TYPE;
    let namespace = index(uri).ok_or_else(|| EmitError::Namespace { uri: uri.to_owned() })?;
    let parsed = text.parse::<NodeId>().ok().filter(|id| id.namespace_index == 0);
    let mut id = parsed.ok_or_else(|| EmitError::Id { text: text.to_owned() })?;
    id.namespace_index = namespace;
    Ok(id)
}

impl Node {
    /// Raises a typed event of this node, as [`Node::event`] does. Returns its EventId if a client may need it.
    ///
    /// The server must have the type, and the fields that have values. This is checked on each call, even if no client monitors
    /// events.
    ///
    /// # Errors
    /// The server does not have the type or a field. Or it is a ConditionType: [alarms](Node::alarm) raise their events
    /// themselves.
    pub fn emit<E: EventType>(&self, event: E) -> Result<Option<ByteString>, EmitError> {
        let index = |uri: &str| self.space.namespace_index(uri);
        let event_type = type_id::<E>(&index)?;
        let (base, values) = event.into_parts();
        let mut fields = Vec::with_capacity(values.len());
        for (field, value) in E::FIELDS.iter().zip(values) {
            if field.is_optional() && value == Variant::Empty {
                continue;
            }
            let path = field.resolve(&index).map_err(|uri| EmitError::Namespace { uri: uri.to_owned() })?;
            fields.push((FieldName::new(&path), value));
        }
        self.space.check_event_type(&event_type, fields.iter().map(|(name, _)| name))?;
        let mut new =
            NewEvent::new(event_type, self.id.clone()).severity(base.severity).message(base.message);
        if !base.time.is_null() {
            new = new.time(base.time);
        }
        if !base.source_name.is_empty() {
            new = new.source_name(UaString::from(base.source_name));
        }
        if !base.event_id.is_null() {
            new = new.event_id(base.event_id);
        }
        let new = fields.into_iter().fold(new, |new, (name, value)| new.field(name, value));
        Ok(self.space.raise(new, now()))
    }
}
