//! Operations on conditions: the Methods of Part 9.

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
    /// All Methods.
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

    /// The path of BrowseNames from the condition to the Method.
    #[must_use]
    pub fn path(self) -> String {
        match self {
            Self::TimedShelve | Self::OneShotShelve | Self::Unshelve => {
                format!("ShelvingState/{}", self.name())
            }
            _ => self.name().to_owned(),
        }
    }

    /// The Method with the given id on a type of namespace 0, and whether it takes a comment as last argument.
    #[must_use]
    pub fn from_type(id: u32) -> Option<(Self, bool)> {
        let (_, method, has_comment) = *ON_TYPES.iter().find(|(known, ..)| *known == id)?;
        Some((method, has_comment))
    }

    /// The Method with the given BrowseName on instances, and whether it takes a comment as last argument.
    #[must_use]
    pub fn from_name(name: &str) -> Option<(Self, bool)> {
        let plain = name.strip_suffix('2').unwrap_or(name);
        let method = Self::ALL.into_iter().find(|method| method.name() == plain)?;
        let has_comment = plain != name;
        method.type_id(has_comment).map(|_| (method, has_comment))
    }

    /// Its id on the type of namespace 0 that declares it and its arguments.
    #[must_use]
    pub fn type_id(self, has_comment: bool) -> Option<u32> {
        let found = ON_TYPES.iter().find(|(_, method, comment)| (*method, *comment) == (self, has_comment));
        found.map(|(id, ..)| *id)
    }
}

/// An alarm Method that changes nothing and is therefore not listed above (§5.8.16).
pub(crate) const GROUP_MEMBERSHIPS: &str = "GetGroupMemberships";

/// The Methods on types of namespace 0, and whether they take a comment as last argument. For each Method, the type
/// that declares it comes before those that repeat it.
const ON_TYPES: [(u32, Method, bool); 27] = [
    (m::CONDITION_TYPE_ENABLE, Method::Enable, false),
    (m::CONDITION_TYPE_DISABLE, Method::Disable, false),
    (m::CONDITION_TYPE_ADD_COMMENT, Method::AddComment, false),
    (m::ACKNOWLEDGEABLE_CONDITION_TYPE_ACKNOWLEDGE, Method::Acknowledge, false),
    (m::ACKNOWLEDGEABLE_CONDITION_TYPE_CONFIRM, Method::Confirm, false),
    (m::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVE, Method::TimedShelve, false),
    (m::ALARM_CONDITION_TYPE_SHELVING_STATE_TIMED_SHELVE, Method::TimedShelve, false),
    (m::SHELVED_STATE_MACHINE_TYPE_ONE_SHOT_SHELVE, Method::OneShotShelve, false),
    (m::ALARM_CONDITION_TYPE_SHELVING_STATE_ONE_SHOT_SHELVE, Method::OneShotShelve, false),
    (m::SHELVED_STATE_MACHINE_TYPE_UNSHELVE, Method::Unshelve, false),
    (m::ALARM_CONDITION_TYPE_SHELVING_STATE_UNSHELVE, Method::Unshelve, false),
    (m::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVE2, Method::TimedShelve, true),
    (m::SHELVED_STATE_MACHINE_TYPE_ONE_SHOT_SHELVE2, Method::OneShotShelve, true),
    (m::SHELVED_STATE_MACHINE_TYPE_UNSHELVE2, Method::Unshelve, true),
    (m::ALARM_CONDITION_TYPE_SUPPRESS, Method::Suppress, false),
    (m::ALARM_CONDITION_TYPE_SUPPRESS2, Method::Suppress, true),
    (m::ALARM_CONDITION_TYPE_UNSUPPRESS, Method::Unsuppress, false),
    (m::ALARM_CONDITION_TYPE_UNSUPPRESS2, Method::Unsuppress, true),
    (m::ALARM_CONDITION_TYPE_REMOVE_FROM_SERVICE, Method::RemoveFromService, false),
    (m::ALARM_CONDITION_TYPE_REMOVE_FROM_SERVICE2, Method::RemoveFromService, true),
    (m::ALARM_CONDITION_TYPE_PLACE_IN_SERVICE, Method::PlaceInService, false),
    (m::ALARM_CONDITION_TYPE_PLACE_IN_SERVICE2, Method::PlaceInService, true),
    (m::ALARM_CONDITION_TYPE_SILENCE, Method::Silence, false),
    (m::ALARM_CONDITION_TYPE_RESET, Method::Reset, false),
    (m::ALARM_CONDITION_TYPE_RESET2, Method::Reset, true),
    (m::DIALOG_CONDITION_TYPE_RESPOND, Method::Respond, false),
    (m::DIALOG_CONDITION_TYPE_RESPOND2, Method::Respond, true),
];

/// An operation on a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// The Method.
    pub method: Method,
    /// For AddComment, Acknowledge and Confirm: the EventId.
    pub event_id: ByteString,
    /// A comment, if given. An empty one leaves the comment unchanged (§5.5.6, §5.7.3).
    pub comment: Option<LocalizedText>,
    /// For TimedShelve, in milliseconds.
    pub shelving_time: f64,
    /// For Respond: the index of the chosen response.
    pub response: i32,
    /// The operator (ClientUserId).
    pub user: Box<str>,
}

impl Operation {
    /// An operation without arguments.
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

    /// Sets the EventId.
    #[must_use]
    pub fn event(mut self, id: ByteString) -> Self {
        self.event_id = id;
        self
    }

    /// Sets the comment.
    #[must_use]
    pub fn comment(mut self, text: impl Into<LocalizedText>) -> Self {
        self.comment = Some(text.into());
        self
    }

    /// Sets the operator.
    #[must_use]
    pub fn by(mut self, user: &str) -> Self {
        self.user = user.into();
        self
    }

    /// The comment to store.
    pub(crate) fn new_comment(&self) -> Option<&LocalizedText> {
        self.comment.as_ref().filter(|comment| !comment.text.as_str().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::ns0::Ns0;

    #[test]
    fn method_ids_of_namespace_0_match_their_names() {
        let mut found = 0;
        for node in Ns0::get().nodes() {
            if let Some((method, is_second)) = Method::from_type(node.id()) {
                found += 1;
                let name = if is_second { format!("{}2", method.name()) } else { method.name().to_owned() };
                assert_eq!(node.browse_name(), name, "i={}", node.id());
                let declared = method.type_id(is_second).and_then(Method::from_type);
                assert_eq!(declared, Some((method, is_second)));
                assert_eq!(Method::from_name(&name), declared);
            }
        }
        assert_eq!(found, 27);
    }
}
