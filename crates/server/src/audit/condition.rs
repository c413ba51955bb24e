//! Calls of Methods of conditions in audit records (Part 9 §5.10).

use super::record::{AuditField, cut};
use crate::alarm::Method;
use crate::event::NewEvent;
use std::borrow::Cow;
use taktwerk_types::{ByteString, LocalizedText, NodeId, UaString, Variant};

/// Longest EventId in a record, in bytes.
const EVENT_ID_LEN_MAX: usize = 64;

/// The Method of a condition and its arguments. Only those that the Method has are set.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditCondition {
    /// The Method.
    pub method: Method,
    /// ConditionEventId: the event that the client acknowledges, confirms or comments; cut to 64 bytes.
    pub event_id: Option<ByteString>,
    /// The comment, cut to 128 bytes.
    pub comment: Option<LocalizedText>,
    /// ShelvingTime in milliseconds.
    pub shelving_time: Option<f64>,
    /// SelectedResponse of a dialog.
    pub selected_response: Option<i32>,
}

impl AuditCondition {
    /// Of a call with these arguments; `has_comment` if the last one is a comment.
    pub(crate) fn of(method: Method, has_comment: bool, inputs: &[Variant]) -> Self {
        let takes_event = matches!(method, Method::AddComment | Method::Acknowledge | Method::Confirm);
        let comment = match inputs.last() {
            Some(Variant::LocalizedText(text)) if takes_event || has_comment => Some(LocalizedText {
                // A null locale stays null.
                locale: if text.locale.is_null() {
                    UaString::NULL
                } else {
                    (&*cut(text.locale.as_str())).into()
                },
                text: (&*cut(text.text.as_str())).into(),
            }),
            _ => None,
        };
        let event_id = match inputs.first() {
            Some(Variant::ByteString(id)) if takes_event => {
                let bytes = id.as_bytes();
                Some(bytes.get(..EVENT_ID_LEN_MAX).unwrap_or(bytes).to_vec().into())
            }
            _ => None,
        };
        let shelving_time = match inputs.first() {
            Some(Variant::Double(time)) if method == Method::TimedShelve => Some(*time),
            _ => None,
        };
        let selected_response = match inputs.first() {
            Some(Variant::Int32(response)) if method == Method::Respond => Some(*response),
            _ => None,
        };
        Self { method, event_id, comment, shelving_time, selected_response }
    }

    /// Of a call with the Method's NodeId on a type of namespace 0; `None` for other Methods.
    pub(crate) fn of_type(method: &NodeId, inputs: &[Variant]) -> Option<Self> {
        let (method, has_comment) = Method::from_type(method.ns0()?)?;
        Some(Self::of(method, has_comment, inputs))
    }

    /// Adds the fields of the EventType. An argument that the client left out is null.
    pub(super) fn add_fields(&self, event: NewEvent) -> NewEvent {
        match self.method {
            Method::AddComment | Method::Acknowledge | Method::Confirm => event
                .field("ConditionEventId", self.event_id.clone().unwrap_or_default())
                .field("Comment", self.comment.clone().unwrap_or_default()),
            Method::TimedShelve => match self.shelving_time {
                Some(time) => event.field("ShelvingTime", time),
                None => event,
            },
            // The index of the response is Int32 in the Method, and UInt32 in the event.
            Method::Respond => {
                let response = self.selected_response.and_then(|response| u32::try_from(response).ok());
                event.field("SelectedResponse", response.unwrap_or(u32::MAX))
            }
            _ => event,
        }
    }

    /// The fields for a text, such as a line of the audit file.
    pub(super) fn fields<'a>(&'a self, all: &mut Vec<(&'static str, AuditField<'a>)>) {
        if let Some(id) = &self.event_id {
            let id = super::record::hexadecimal(id.as_bytes());
            all.push(("ConditionEventId", AuditField::Text(Cow::Owned(id.into()))));
        }
        if let Some(comment) = &self.comment {
            all.push(("Comment", AuditField::Text(Cow::Borrowed(comment.text.as_str()))));
        }
        if let Some(time) = self.shelving_time {
            all.push(("ShelvingTime", AuditField::Number(time)));
        }
        if let Some(response) = self.selected_response {
            all.push(("SelectedResponse", AuditField::Number(f64::from(response))));
        }
    }
}
