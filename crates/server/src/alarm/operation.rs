//! What operators do with conditions: the Methods of Part 9.

use taktwerk_schema::ids::method_ids as m;
use taktwerk_types::{ByteString, LocalizedText};

/// A Method of a condition, without its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// §5.5.5.
    Enable,
    /// §5.5.4.
    Disable,
    /// §5.5.6.
    AddComment,
    /// §5.7.3.
    Acknowledge,
    /// §5.7.4.
    Confirm,
    /// §5.8.17.4.
    TimedShelve,
    /// §5.8.17.6.
    OneShotShelve,
    /// §5.8.17.2.
    Unshelve,
    /// §5.8.8.
    Suppress,
    /// §5.8.10.
    Unsuppress,
    /// §5.8.12.
    RemoveFromService,
    /// §5.8.14.
    PlaceInService,
    /// §5.8.7.
    Silence,
    /// §5.8.5.
    Reset,
    /// §5.6.3.
    Respond,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Enable,
        Self::Disable,
        Self::AddComment,
        Self::Acknowledge,
        Self::Confirm,
        Self::TimedShelve,
        Self::OneShotShelve,
        Self::Unshelve,
        Self::Suppress,
        Self::Unsuppress,
        Self::RemoveFromService,
        Self::PlaceInService,
        Self::Silence,
        Self::Reset,
        Self::Respond,
    ];

    /// The BrowseName.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enable => "Enable",
            Self::Disable => "Disable",
            Self::AddComment => "AddComment",
            Self::Acknowledge => "Acknowledge",
            Self::Confirm => "Confirm",
            Self::TimedShelve => "TimedShelve",
            Self::OneShotShelve => "OneShotShelve",
            Self::Unshelve => "Unshelve",
            Self::Suppress => "Suppress",
            Self::Unsuppress => "Unsuppress",
            Self::RemoveFromService => "RemoveFromService",
            Self::PlaceInService => "PlaceInService",
            Self::Silence => "Silence",
            Self::Reset => "Reset",
            Self::Respond => "Respond",
        }
    }

    /// The path of names from the condition to the Method.
    #[must_use]
    pub fn path(self) -> String {
        match self {
            Self::TimedShelve | Self::OneShotShelve | Self::Unshelve => {
                format!("ShelvingState/{}", self.name())
            }
            _ => self.name().to_owned(),
        }
    }

    /// The Method and whether it has a comment behind its arguments, by the id that it has on a type of namespace 0.
    #[must_use]
    pub fn from_type(id: u32) -> Option<(Self, bool)> {
        Some(match id {
            m::CONDITION_TYPE_ENABLE => (Self::Enable, false),
            m::CONDITION_TYPE_DISABLE => (Self::Disable, false),
            m::CONDITION_TYPE_ADD_COMMENT => (Self::AddComment, false),
            m::ACKNOWLEDGEABLE_CONDITION_TYPE_ACKNOWLEDGE => (Self::Acknowledge, false),
            m::ACKNOWLEDGEABLE_CONDITION_TYPE_CONFIRM => (Self::Confirm, false),
            m::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVE
            | m::ALARM_CONDITION_TYPE_SHELVING_STATE_TIMED_SHELVE => (Self::TimedShelve, false),
            m::SHELVED_STATE_MACHINE_TYPE_ONE_SHOT_SHELVE
            | m::ALARM_CONDITION_TYPE_SHELVING_STATE_ONE_SHOT_SHELVE => (Self::OneShotShelve, false),
            m::SHELVED_STATE_MACHINE_TYPE_UNSHELVE | m::ALARM_CONDITION_TYPE_SHELVING_STATE_UNSHELVE => {
                (Self::Unshelve, false)
            }
            m::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVE2 => (Self::TimedShelve, true),
            m::SHELVED_STATE_MACHINE_TYPE_ONE_SHOT_SHELVE2 => (Self::OneShotShelve, true),
            m::SHELVED_STATE_MACHINE_TYPE_UNSHELVE2 => (Self::Unshelve, true),
            m::ALARM_CONDITION_TYPE_SUPPRESS => (Self::Suppress, false),
            m::ALARM_CONDITION_TYPE_SUPPRESS2 => (Self::Suppress, true),
            m::ALARM_CONDITION_TYPE_UNSUPPRESS => (Self::Unsuppress, false),
            m::ALARM_CONDITION_TYPE_UNSUPPRESS2 => (Self::Unsuppress, true),
            m::ALARM_CONDITION_TYPE_REMOVE_FROM_SERVICE => (Self::RemoveFromService, false),
            m::ALARM_CONDITION_TYPE_REMOVE_FROM_SERVICE2 => (Self::RemoveFromService, true),
            m::ALARM_CONDITION_TYPE_PLACE_IN_SERVICE => (Self::PlaceInService, false),
            m::ALARM_CONDITION_TYPE_PLACE_IN_SERVICE2 => (Self::PlaceInService, true),
            m::ALARM_CONDITION_TYPE_SILENCE => (Self::Silence, false),
            m::ALARM_CONDITION_TYPE_RESET => (Self::Reset, false),
            m::ALARM_CONDITION_TYPE_RESET2 => (Self::Reset, true),
            m::DIALOG_CONDITION_TYPE_RESPOND => (Self::Respond, false),
            m::DIALOG_CONDITION_TYPE_RESPOND2 => (Self::Respond, true),
            _ => return None,
        })
    }
}

/// What is done with a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Which Method.
    pub method: Method,
    /// Of AddComment, Acknowledge and Confirm: the event that is meant.
    pub event_id: ByteString,
    /// A comment, if one was given. An empty one leaves the comment as it is (§5.5.6, §5.7.3).
    pub comment: Option<LocalizedText>,
    /// Of TimedShelve, in milliseconds.
    pub shelving_time: f64,
    /// Of Respond: the index of the chosen response.
    pub response: i32,
    /// Who does it (ClientUserId).
    pub user: Box<str>,
}

impl Operation {
    /// One without arguments.
    #[must_use]
    pub fn new(method: Method) -> Self {
        Self {
            method,
            event_id: ByteString::default(),
            comment: None,
            shelving_time: 0.0,
            response: 0,
            user: Box::default(),
        }
    }

    /// The event that is meant.
    #[must_use]
    pub fn event(mut self, id: ByteString) -> Self {
        self.event_id = id;
        self
    }

    /// With a comment.
    #[must_use]
    pub fn comment(mut self, text: impl Into<LocalizedText>) -> Self {
        self.comment = Some(text.into());
        self
    }

    /// Who does it.
    #[must_use]
    pub fn by(mut self, user: &str) -> Self {
        self.user = user.into();
        self
    }

    /// The comment that is to be kept.
    pub(crate) fn new_comment(&self) -> Option<&LocalizedText> {
        self.comment.as_ref().filter(|comment| !comment.text.as_str().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::ns0::Ns0;

    #[test]
    fn the_methods_of_namespace_0_are_those_of_these_names() {
        let mut found = 0;
        for node in Ns0::get().nodes() {
            if let Some((method, is_second)) = Method::from_type(node.id()) {
                found += 1;
                let name = if is_second { format!("{}2", method.name()) } else { method.name().to_owned() };
                assert_eq!(node.browse_name(), name, "i={}", node.id());
            }
        }
        assert_eq!(found, 27);
    }
}
