//! Errors of adding conditions and alarm groups.

use crate::alarm::limits::LimitsProblem;
use crate::space::NodeError;
use taktwerk_types::NodeId;

/// Why a condition or group cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum AlarmError {
    /// The limits of an alarm are invalid.
    #[error("the alarm {name}: {problem}")]
    Limits {
        /// ConditionName.
        name: Box<str>,
        /// The problem.
        problem: LimitsProblem,
    },
    /// The sound of an alarm is too long.
    #[error("the alarm {name}: its sound has {len} bytes; use one of at most 1048576 bytes")]
    Sound {
        /// ConditionName.
        name: Box<str>,
        /// Its size in bytes.
        len: usize,
    },
    /// The id is already in use.
    #[error("a condition with the id {0} exists already: give the alarm another name")]
    Taken(NodeId),
    /// The type of an alarm does not fit its kind.
    #[error("the alarm {name}: {type_id} is not a subtype of {base}, the type for this kind of alarm")]
    Type {
        /// ConditionName.
        name: Box<str>,
        /// The given type.
        type_id: NodeId,
        /// The type for its kind.
        base: NodeId,
    },
    /// The type of a condition has no instances.
    #[error("the condition {name}: its type {type_id} is abstract: give it a concrete subtype")]
    Abstract {
        /// ConditionName.
        name: Box<str>,
        /// The abstract type.
        type_id: NodeId,
    },
    /// A value is given for a field that the application cannot set.
    #[error(
        "the alarm {name}: {field} is not a field that {type_id} adds to {base}: other fields are set by the alarm itself"
    )]
    Field {
        /// ConditionName.
        name: Box<str>,
        /// The path of the field.
        field: String,
        /// The type of the alarm.
        type_id: NodeId,
        /// The type of its kind.
        base: NodeId,
    },
    /// A value does not have its field's type.
    #[error("the alarm {name}: {field} has the type {wanted}, not {found}: give a value of that type")]
    FieldType {
        /// ConditionName.
        name: Box<str>,
        /// The path of the field.
        field: String,
        /// The DataType of the field, and whether it is an array.
        wanted: String,
        /// The type of the value.
        found: String,
    },
    /// The node to be bound to an alarm is not an instance of a condition.
    #[error("{0} is not an Object of a ConditionType: name an instance from an imported NodeSet")]
    NoInstance(NodeId),
    /// A group has an invalid member.
    #[error("the group {group}: {member} is not an alarm{}. Add alarms before their groups",
        if *.suppresses { " and not a Boolean variable" } else { "" })]
    Member {
        /// The name of the group.
        group: Box<str>,
        /// The member.
        member: NodeId,
        /// Whether it is a suppression group, whose members may also be Variables.
        suppresses: bool,
    },
    /// A group has no member (§5.8.3).
    #[error("the group {0} has no alarms: add at least one")]
    Empty(Box<str>),
    /// Its nodes cannot be added, or a Variable does not exist.
    #[error(transparent)]
    Node(#[from] NodeError),
}
