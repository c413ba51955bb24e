//! A condition of a server: what it is and watches, and how it is now.

use super::detector::{Kind, Severities};
use super::dialog::Dialog;
use super::machine::Rules;
use super::state::{OwnFields, State};
use crate::authorization::Access;
use taktwerk_schema::ids::object_type_ids;
use taktwerk_types::{ByteString, NodeId, QualifiedName, UtcTime};

/// The certificate that a CertificateExpirationAlarmType is about (Part 9 §5.8.24.7).
#[derive(Debug, Clone, PartialEq)]
pub struct Certified {
    /// CertificateType: a subtype of CertificateType (Part 12 §7.8.4).
    pub kind: NodeId,
    /// Certificate, DER.
    pub certificate: ByteString,
}

/// What a condition is to be.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionSpec {
    /// ConditionId: the NodeId of its instance, also where the address space does not show it.
    pub id: NodeId,
    /// ConditionName (Part 9 §5.5.2).
    pub name: Box<str>,
    /// SourceNode: clients that monitor it, or a node above it, get the events.
    pub source: NodeId,
    /// SourceName.
    pub source_name: Box<str>,
    /// InputNode: the Variable that is watched.
    pub input: Option<NodeId>,
    /// SetpointNode or TargetValueNode.
    pub target: Option<NodeId>,
    /// What is abnormal.
    pub kind: Kind,
    /// How urgent that is.
    pub severities: Severities,
    /// How it behaves.
    pub rules: Rules,
    /// ConditionClassId: an ObjectType of namespace 0. Default: ProcessConditionClassType (§5.9.3).
    pub class: u32,
    /// Another ObjectType than that of its kind.
    pub type_id: Option<NodeId>,
    /// Values of fields that its type has and the types of the specification have not.
    pub own: OwnFields,
    /// There is a node of this id already, as an imported NodeSet brings one: the condition gives it behaviour. Its type and,
    /// if a HasCondition reference leads to it, its source are those of the node.
    pub is_bound: bool,
    /// What it asks, if it is a dialog.
    pub dialog: Option<Dialog>,
    /// Whether the address space shows it.
    pub is_shown: bool,
    /// The Object that its instance is a component of. Default: the source, or the next Object above it.
    pub parent: Option<NodeId>,
    /// The BrowseName of its instance. Default: its name in the namespace of its id.
    pub browse_name: Option<QualifiedName>,
    /// Who may do what with the nodes of its instance. Default: what their namespace says.
    pub access: Access,
    /// The date of an alarm for dates that watches no Variable.
    pub date: Option<UtcTime>,
    /// The certificate whose date it is.
    pub certified: Option<Certified>,
    /// AudibleSound (§5.8.2): the file that clients play while the alarm is audible. Its instance shows it; events do not have it.
    pub sound: Option<ByteString>,
}

impl ConditionSpec {
    /// A condition of a source.
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

    /// The ObjectType of the specification for what it does.
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

/// A condition or a branch of it, as it is now: for lists.
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
    /// The last event: what Acknowledge, Confirm and AddComment want.
    pub event_id: ByteString,
    /// Whether it can be confirmed.
    pub confirms: bool,
    /// The state.
    pub state: State,
}
