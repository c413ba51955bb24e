//! Why a condition or a group of alarms is not added.

use crate::alarm::limits::LimitsProblem;
use crate::space::NodeError;
use taktwerk_types::NodeId;

/// Why a condition is not added.
#[derive(Debug, thiserror::Error)]
pub enum AlarmError {
    /// The limits of an alarm cannot be meant.
    #[error("the alarm {name}: {problem}")]
    Limits {
        /// ConditionName.
        name: Box<str>,
        /// What is wrong.
        problem: LimitsProblem,
    },
    /// The sound of an alarm is too long.
    #[error("the alarm {name}: its sound has {len} bytes, and 1048576 are allowed: use a shorter one")]
    Sound {
        /// ConditionName.
        name: Box<str>,
        /// Its bytes.
        len: usize,
    },
    /// There is a condition of this id.
    #[error("there is a condition {0} already: give the alarm another name")]
    Taken(NodeId),
    /// The type of an alarm does not say what the alarm does.
    #[error("the alarm {name}: {type_id} is no subtype of {base}, which an alarm that watches this has")]
    Type {
        /// ConditionName.
        name: Box<str>,
        /// The type that was given.
        type_id: NodeId,
        /// The type of its kind.
        base: NodeId,
    },
    /// A value is for a field that cannot have one.
    #[error(
        "the alarm {name}: {field} is no field that {type_id} adds to {base}: the alarm itself sets the others"
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
    /// A value has another type than its field.
    #[error(
        "the alarm {name}: {field} is a field of {wanted}, which {found} is not: give a value of that type"
    )]
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
    /// What is to get the behaviour of an alarm is no instance of a condition.
    #[error("{0} is no Object of a ConditionType: name an instance that an imported NodeSet has")]
    NoInstance(NodeId),
    /// A group has a member that it cannot have.
    #[error("the group {group}: {member} is no alarm{}. Add alarms before their groups",
        if *.suppresses { " and no Boolean variable" } else { "" })]
    Member {
        /// What the group is called.
        group: Box<str>,
        /// The member.
        member: NodeId,
        /// Whether it is a member of a group that suppresses, which may be a Variable too.
        suppresses: bool,
    },
    /// A group has no member (§5.8.3).
    #[error("the group {0} has no alarms: add at least one")]
    Empty(Box<str>),
    /// Its nodes cannot be added, or there is no such Variable.
    #[error(transparent)]
    Node(#[from] NodeError),
}
