//! Calls of the Methods of conditions (Part 9 §5.5 to §5.8).
//!
//! A Method is called on the condition, with the NodeId of the instance's Method or of the type's Method. Conditions
//! without nodes in the address space are called in the same way (§5.5.6). Methods of ShelvingState also accept the
//! ConditionId (§5.8.17).

use crate::alarm::operation::GROUP_MEMBERSHIPS;
use crate::alarm::{Method, Operation};
use crate::audit::AuditCondition;
use crate::authorization::Decisions;
use crate::space::nodes::Nodes;
use crate::space::{AddressSpace, NodeIx};
use taktwerk_schema::PermissionType;
use taktwerk_schema::ids::{method_ids, reference_type_ids};
use taktwerk_types::{LocalizedText, NodeId, QualifiedName, StatusCode, UtcTime, Variant};

/// A callable Method of a condition.
#[derive(Debug, Clone)]
pub(super) struct ConditionCall {
    condition: NodeId,
    /// `None`: GetGroupMemberships, which changes nothing (§5.8.16).
    method: Option<Method>,
    /// Whether it takes a comment as last argument.
    has_comment: bool,
}

/// The target of a call.
pub(super) struct Found {
    pub(super) call: ConditionCall,
    /// The node that the client calls.
    pub(super) method: NodeIx,
    /// The node with its arguments: an instance may omit those that its type declares.
    pub(super) arguments: NodeIx,
    /// The source of the condition.
    pub(super) source: NodeId,
}

/// Finds the condition Method for a call; `known` is the condition that the Object is or belongs to, with its source.
/// `None`: the Method is not a Method of conditions.
pub(super) fn find(
    nodes: &Nodes,
    known: (NodeId, NodeId),
    object: &NodeId,
    method: &NodeId,
) -> Option<Found> {
    let (condition, source) = known;
    let node = nodes.resolve(method.as_ref())?;
    let (kind, has_comment) = match method.ns0() {
        Some(GET_GROUP_MEMBERSHIPS) => (None, false),
        id => match id.and_then(Method::from_type) {
            Some((kind, has_comment)) => (Some(kind), has_comment),
            None => own_method(nodes, object, node)?,
        },
    };
    // On a ShelvingState, only the shelving Methods can be called.
    let is_shelving = matches!(kind, Some(Method::TimedShelve | Method::OneShotShelve | Method::Unshelve));
    if condition != *object && !is_shelving {
        return None;
    }
    let declared = kind.map_or(Some(GET_GROUP_MEMBERSHIPS), |kind| kind.type_id(has_comment));
    let arguments = match declared.map(NodeIx::ns0) {
        Some(declared) if nodes.child(node, &QualifiedName::new(0, "InputArguments")).is_none() => declared,
        _ => node,
    };
    let call = ConditionCall { condition, method: kind, has_comment };
    Some(Found { call, method: node, arguments, source })
}

const GET_GROUP_MEMBERSHIPS: u32 = method_ids::ALARM_CONDITION_TYPE_GET_GROUP_MEMBERSHIPS;

/// The Method of an instance, by its name; an inner `None` is GetGroupMemberships.
fn own_method(nodes: &Nodes, object: &NodeId, method: NodeIx) -> Option<(Option<Method>, bool)> {
    let object = nodes.resolve(object.as_ref())?;
    let component = NodeIx::ns0(reference_type_ids::HAS_COMPONENT);
    let mut is_own = false;
    nodes.references(object, |reference| {
        let is_below = reference.is_forward && nodes.is_subtype(reference.reference_type, component);
        if is_below && reference.target == method {
            is_own = true;
        } else if is_below {
            // A Method of its ShelvingState.
            nodes.references(reference.target, |inner| {
                is_own |= inner.is_forward && inner.target == method;
                !is_own
            });
        }
        !is_own
    });
    let name = nodes.view(method).filter(|_| is_own)?.browse_name();
    if name.namespace_index != 0 {
        return None;
    }
    let name = name.name.as_str();
    if name == GROUP_MEMBERSHIPS {
        return Some((None, false));
    }
    let (method, has_comment) = Method::from_name(name)?;
    Some((Some(method), has_comment))
}

/// Whether the caller may call it: Call on the Method, and on the condition or, if that has no node, on its source.
pub(super) fn check(
    nodes: &Nodes,
    decisions: &Decisions,
    object: &NodeId,
    method: NodeIx,
    source: &NodeId,
) -> Result<(), StatusCode> {
    let unknown = StatusCode::BAD_NODE_ID_UNKNOWN;
    let object = nodes.resolve(object.as_ref()).or_else(|| nodes.resolve(source.as_ref()));
    let object = object.ok_or(unknown)?;
    if !decisions.knows(nodes, object) {
        return Err(unknown);
    }
    decisions.check(nodes, object, PermissionType::CALL)?;
    decisions.check(nodes, method, PermissionType::CALL)
}

impl ConditionCall {
    /// The call in an audit record; `None` for GetGroupMemberships.
    pub(super) fn noted(&self, inputs: &[Variant]) -> Option<AuditCondition> {
        self.method.map(|method| AuditCondition::of(method, self.has_comment, inputs))
    }

    /// Executes the call.
    pub(super) fn run(
        self,
        space: &AddressSpace,
        decisions: &Decisions,
        user: &str,
        inputs: Vec<Variant>,
        now: UtcTime,
    ) -> Result<Vec<Variant>, StatusCode> {
        let Some(method) = self.method else {
            let mut groups = space.alarm_groups(&self.condition).ok_or(StatusCode::BAD_NODE_ID_INVALID)?;
            // A group can be in another namespace than the alarm.
            let nodes = space.read();
            groups.retain(|id| nodes.resolve(id.as_ref()).is_some_and(|ix| decisions.knows(&nodes, ix)));
            return Ok(vec![groups.into()]);
        };
        let mut operation = Operation::new(method).by(user);
        let mut inputs = inputs.into_iter();
        let invalid = StatusCode::BAD_INVALID_ARGUMENT;
        match method {
            Method::AddComment | Method::Acknowledge | Method::Confirm => {
                operation.event_id = match inputs.next() {
                    Some(Variant::ByteString(id)) => id,
                    _ => return Err(invalid),
                };
                operation.comment = Some(comment(inputs.next())?);
            }
            Method::TimedShelve => match inputs.next() {
                Some(Variant::Double(millis)) => operation.shelving_time = millis,
                _ => return Err(invalid),
            },
            Method::Respond => match inputs.next() {
                Some(Variant::Int32(response)) => operation.response = response,
                _ => return Err(invalid),
            },
            _ => {}
        }
        if self.has_comment {
            operation.comment = Some(comment(inputs.next())?);
        }
        space.operate_condition(&self.condition, &operation, now)?;
        Ok(Vec::new())
    }
}

/// Longest comment, in bytes: it is stored and is part of every event.
const COMMENT_LEN_MAX: usize = 4096;

fn comment(input: Option<Variant>) -> Result<LocalizedText, StatusCode> {
    match input {
        Some(Variant::LocalizedText(text)) => {
            let locale = text.locale.as_str().len();
            if text.text.as_str().len() > COMMENT_LEN_MAX || locale > 64 {
                return Err(StatusCode::BAD_OUT_OF_RANGE);
            }
            Ok(*text)
        }
        Some(Variant::Empty) => Ok(LocalizedText::default()),
        _ => Err(StatusCode::BAD_INVALID_ARGUMENT),
    }
}
