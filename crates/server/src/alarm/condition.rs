//! The definition of a condition, and a view of its current state.

use super::detector::{Kind, Severities};
use super::dialog::Dialog;
use super::machine::Rules;
use super::state::{OwnFields, State};
use crate::authorization::Access;
use taktwerk_schema::ids::object_type_ids;
use taktwerk_types::{ByteString, NodeId, QualifiedName, UtcTime};

/// The certificate of a CertificateExpirationAlarmType (Part 9 §5.8.24.7).
#[derive(Debug, Clone, PartialEq)]
pub struct Certified {
    /// CertificateType: a subtype of CertificateType (Part 12 §7.8.4).
    pub kind: NodeId,
    /// Certificate, DER.
    pub certificate: ByteString,
}

/// The definition of a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionSpec {
    /// ConditionId: the NodeId of its instance, even if the address space does not show it.
    pub id: NodeId,
    /// ConditionName (Part 9 §5.5.2).
    pub name: Box<str>,
    /// SourceNode. Clients that monitor it, or a node above it, receive the events.
    pub source: NodeId,
    /// SourceName.
    pub source_name: Box<str>,
    /// InputNode: the monitored Variable.
    pub input: Option<NodeId>,
    /// SetpointNode or TargetValueNode.
    pub target: Option<NodeId>,
    /// The kind of alarm: when the input is abnormal.
    pub kind: Kind,
    /// Its severities.
    pub severities: Severities,
    /// Its behaviour.
    pub rules: Rules,
    /// ConditionClassId: an ObjectType of namespace 0. Default: ProcessConditionClassType (§5.9.3).
    pub class: u32,
    /// The ObjectType, if it is not the one for the kind.
    pub type_id: Option<NodeId>,
    /// Values of fields that its type adds to the specification's types.
    pub own: OwnFields,
    /// The node with this id exists already, for example from an imported NodeSet. The condition gives it behaviour and
    /// takes over the node's type and, if a HasCondition reference leads to it, its source.
    pub is_bound: bool,
    /// The question, if it is a dialog.
    pub dialog: Option<Dialog>,
    /// Whether the address space shows its instance.
    pub is_shown: bool,
    /// The Object that its instance is a component of. Default: the source, or the nearest Object above it.
    pub parent: Option<NodeId>,
    /// The BrowseName of its instance. Default: its name in the namespace of its id.
    pub browse_name: Option<QualifiedName>,
    /// Access rights of the nodes of its instance. Default: those of their namespace.
    pub access: Access,
    /// The date of a date alarm that has no input Variable.
    pub date: Option<UtcTime>,
    /// The certificate that the date belongs to.
    pub certified: Option<Certified>,
    /// AudibleSound (§5.8.2): the file that clients play while the alarm is audible. Only the instance has it, not the
    /// events.
    pub sound: Option<ByteString>,
}

impl ConditionSpec {
    /// Creates a condition of a source.
    #[must_use]
    pub fn new(id: NodeId, name: &str, source: NodeId, kind: Kind) -> Self {
        Self {
            id,
            name: name.into(),
            source,
            source_name: Box::default(),
            input: None,
            target: None,
            kind,
            severities: Severities::default(),
            rules: Rules::default(),
            class: object_type_ids::PROCESS_CONDITION_CLASS_TYPE,
            type_id: None,
            own: OwnFields::new(),
            is_bound: false,
            dialog: None,
            is_shown: true,
            parent: None,
            browse_name: None,
            access: Access::default(),
            date: None,
            certified: None,
            sound: None,
        }
    }

    /// The ObjectType.
    #[must_use]
    pub fn type_id(&self) -> NodeId {
        self.type_id.clone().unwrap_or_else(|| self.kind_type_id())
    }

    /// The specification's ObjectType for its kind.
    pub(crate) fn kind_type_id(&self) -> NodeId {
        let dialog = self.dialog.as_ref().map(|_| object_type_ids::DIALOG_CONDITION_TYPE);
        NodeId::numeric(0, dialog.unwrap_or_else(|| self.kind.type_id()))
    }

    /// Whether it is a dialog.
    #[must_use]
    pub fn is_dialog(&self) -> bool {
        self.dialog.is_some()
    }
}

/// The current state of a condition or a branch, for lists.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ConditionView {
    /// ConditionId.
    pub id: NodeId,
    /// The number of the branch; 0 is the condition itself.
    pub branch: u32,
    /// ConditionName.
    pub name: Box<str>,
    /// SourceNode.
    pub source: NodeId,
    /// SourceName.
    pub source_name: Box<str>,
    /// The ObjectType.
    pub type_id: NodeId,
    /// EventId of the last event: the argument for Acknowledge, Confirm and AddComment.
    pub event_id: ByteString,
    /// Whether it supports Confirm.
    pub confirms: bool,
    /// The state.
    pub state: State,
}
