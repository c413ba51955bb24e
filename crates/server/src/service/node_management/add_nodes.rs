//! AddNodes (Part 4 §5.8.2).

use super::super::Outcome;
use super::super::context::Context;
use super::super::gate::Caller;
use super::super::list::{Cursor, List};
use super::super::reply::Reply;
use super::super::request::Request;
use super::attributes::{Attributes, Inherited};
use super::constraints;
use super::{known, local, note};
use crate::audit::AuditItem;
use crate::authorization::Decisions;
use crate::error::Fault;
use crate::space::build::{Under, add_instance, add_under};
use crate::space::instance::{Walk, Wanted, default_name, has_mandatory_members};
use crate::space::nodes::Nodes;
use crate::space::{NodeError, NodeIx};
use crate::work::unit;
use taktwerk_schema::ids::{data_type_ids, reference_type_ids};
use taktwerk_schema::{AddNodesItem, AddNodesResponse, NodeClass, PermissionType};
use taktwerk_types::{Decode, Encode, Identifier, NodeId, StatusCode, UtcTime};

/// Smallest encoded AddNodesItem, in bytes.
pub(crate) const ITEM_LEN_MIN: usize = 2 + 2 + 2 + 6 + 4 + 3 + 2;
/// Longest BrowseName, and longest identifier chosen by a client, in bytes.
const NAME_LEN_MAX: usize = 512;

pub(crate) fn add_nodes(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    super::start::<AddNodesResponse>(cx, caller, request, (Cursor::AddNodes, false), reply)
}

pub(in super::super) fn work(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    list: &mut List<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Fault> {
    let space = cx.shared.space();
    // Most nodes of a batch have the same type, so whether it has members is looked up once.
    let mut plain_type = None;
    while list.goes_on(reply)? {
        let before = list.body.remaining();
        let item = AddNodesItem::decode(&mut list.body)?;
        let noted = cx.audit.notes_updates().then(|| AuditItem::of_node(&item));
        let mut walk = Walk::of_client();
        let (added, count) = {
            let mut nodes = space.write();
            let before = nodes.additions();
            let added = add(&mut nodes, &caller.decisions, item, &mut plain_type, (&mut walk, cx.now.utc));
            (added, nodes.additions() - before)
        };
        let (status, id) = match added {
            Ok(id) => (StatusCode::GOOD, id),
            Err(status) => (status, NodeId::NULL),
        };
        status.encode(reply.out());
        id.encode(reply.out());
        if let Some(item) = noted {
            note(cx, caller, request, status, id, || item);
        }
        list.done(
            unit::NODE * count.max(1) as i64 + unit::skimmed(walk.looked_at()),
            before - list.body.remaining(),
        );
        cx.shared.space().yield_to_readers();
    }
    space.raise_model_changes(cx.now.utc);
    Ok(())
}

/// Adds a node with the members of its type. Returns its id.
fn add(
    nodes: &mut Nodes,
    decisions: &Decisions,
    item: AddNodesItem,
    plain_type: &mut Option<NodeIx>,
    (walk, now): (&mut Walk, UtcTime),
) -> Result<NodeId, StatusCode> {
    let class = item.node_class;
    // The parent of a new node must exist on this server.
    let parent_id = local(nodes, &item.parent_node_id).ok_or(StatusCode::BAD_PARENT_NODE_ID_INVALID)?;
    let parent = known(nodes, decisions, &parent_id).ok_or(StatusCode::BAD_PARENT_NODE_ID_INVALID)?;
    decisions.check(nodes, parent, PermissionType::ADD_REFERENCE)?;
    let reference_type = constraints::reference_type(nodes, &item.reference_type_id)?;
    let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
    if !nodes.is_subtype(reference_type, hierarchical) {
        return Err(StatusCode::BAD_REFERENCE_NOT_ALLOWED);
    }
    if !matches!(
        class,
        NodeClass::OBJECT
            | NodeClass::VARIABLE
            | NodeClass::METHOD
            | NodeClass::OBJECT_TYPE
            | NodeClass::VARIABLE_TYPE
            | NodeClass::REFERENCE_TYPE
            | NodeClass::DATA_TYPE
            | NodeClass::VIEW
    ) {
        return Err(StatusCode::BAD_NODE_CLASS_INVALID);
    }
    let parent_class = nodes.view(parent).map(|view| view.class()).unwrap_or_default();
    constraints::allows(nodes, reference_type, parent_class, class)?;
    let type_id = local(nodes, &item.type_definition).ok_or(StatusCode::BAD_TYPE_DEFINITION_INVALID);
    let mut name = item.browse_name;
    if name.name.is_empty() && nodes.is_subtype(reference_type, NodeIx::ns0(reference_type_ids::HAS_ADD_IN)) {
        // An add-in has the name that its type recommends, unless the client chooses another one.
        let kind = type_id.as_ref().ok().and_then(|id| known(nodes, decisions, id));
        name = kind.and_then(|kind| default_name(nodes, kind)).unwrap_or(name);
    }
    if name.name.is_empty()
        || name.name.as_str().len() > NAME_LEN_MAX
        || usize::from(name.namespace_index) >= nodes.namespaces().len()
    {
        return Err(StatusCode::BAD_BROWSE_NAME_INVALID);
    }
    let wanted = local(nodes, &item.requested_new_node_id).ok_or(StatusCode::BAD_NODE_ID_REJECTED)?;
    let id = new_id(nodes, wanted, name.namespace_index)?;
    let silent = nodes.access().silent(id.namespace_index);
    if !decisions.of_set(silent).contains(PermissionType::ADD_NODE) {
        return Err(StatusCode::BAD_USER_ACCESS_DENIED);
    }
    let type_id = type_id?;
    let type_definition = type_definition(nodes, decisions, &type_id, class, parent_class)?;
    if nodes.child_indexed(parent, &name).is_some() {
        return Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED);
    }
    let inherited = inherited(nodes, type_definition, class, parent);
    let attributes = Attributes::read(&item.node_attributes, class)?;
    let spec = attributes.into_spec(nodes, id.clone(), name, class, inherited)?;
    let owner = nodes.added_account();
    let under = Under {
        parent: &parent_id,
        reference_type: &item.reference_type_id,
        type_definition: type_definition.map(|_| &type_id),
    };
    let status = |error: NodeError| error.status();
    let has_members = match type_definition {
        Some(kind) if *plain_type != Some(kind) => {
            has_mandatory_members(nodes, kind, walk).map_err(status)?
        }
        _ => false,
    };
    if has_members {
        let wanted = Wanted { optional: &[], owner: owner.as_ref(), now };
        add_instance(nodes, spec, under, wanted, walk).map_err(status)?;
    } else {
        *plain_type = type_definition;
        add_under(nodes, spec, under, owner.as_ref(), now).map_err(status)?;
    }
    Ok(id)
}

/// The id of a new node: the requested one, or one chosen by the server in the requested namespace or that of the
/// BrowseName.
fn new_id(nodes: &mut Nodes, wanted: NodeId, name_namespace: u16) -> Result<NodeId, StatusCode> {
    let rejected = StatusCode::BAD_NODE_ID_REJECTED;
    if (NodeId { namespace_index: 0, identifier: wanted.identifier.clone() }).is_null() {
        // Namespace 0 is reserved for the specification.
        let namespaces = [wanted.namespace_index, name_namespace, 1];
        let namespace = namespaces.into_iter().find(|index| *index != 0).unwrap_or(1);
        if usize::from(namespace) >= nodes.namespaces().len() {
            return Err(rejected);
        }
        return nodes.unused_id(namespace).ok_or(StatusCode::BAD_RESOURCE_UNAVAILABLE);
    }
    let len = match &wanted.identifier {
        Identifier::String(text) => text.as_str().len(),
        Identifier::Opaque(bytes) => bytes.as_bytes().len(),
        Identifier::Numeric(_) | Identifier::Guid(_) => 0,
    };
    if wanted.namespace_index == 0
        || usize::from(wanted.namespace_index) >= nodes.namespaces().len()
        || len > NAME_LEN_MAX
    {
        return Err(rejected);
    }
    if nodes.resolve(wanted.as_ref()).is_some() {
        return Err(StatusCode::BAD_NODE_ID_EXISTS);
    }
    Ok(wanted)
}

/// The type of an Object or Variable; other classes have none.
fn type_definition(
    nodes: &Nodes,
    decisions: &Decisions,
    id: &NodeId,
    class: NodeClass,
    parent_class: NodeClass,
) -> Result<Option<NodeIx>, StatusCode> {
    let invalid = StatusCode::BAD_TYPE_DEFINITION_INVALID;
    let wanted = match class {
        NodeClass::OBJECT => NodeClass::OBJECT_TYPE,
        NodeClass::VARIABLE => NodeClass::VARIABLE_TYPE,
        _ if id.is_null() => return Ok(None),
        _ => return Err(invalid),
    };
    let ix = known(nodes, decisions, id).ok_or(invalid)?;
    let view = nodes.view(ix).filter(|view| view.class() == wanted).ok_or(invalid)?;
    // Declarations below a type may have an abstract type, instances may not (Part 3 §5.5.2).
    let is_declaration = matches!(parent_class, NodeClass::OBJECT_TYPE | NodeClass::VARIABLE_TYPE);
    if view.is_abstract() == Some(true) && !is_declaration {
        return Err(invalid);
    }
    Ok(Some(ix))
}

/// DataType and ValueRank of a Variable's type, or of the VariableType above a new one.
fn inherited(nodes: &Nodes, type_definition: Option<NodeIx>, class: NodeClass, parent: NodeIx) -> Inherited {
    let above = type_definition.or_else(|| (class == NodeClass::VARIABLE_TYPE).then_some(parent));
    let view = above.and_then(|ix| nodes.view(ix));
    let data_type = view.and_then(|view| view.data_type()).filter(|data_type| !data_type.is_null());
    Inherited {
        data_type: data_type.unwrap_or(NodeId::numeric(0, data_type_ids::BASE_DATA_TYPE)),
        value_rank: view.and_then(|view| view.value_rank()).unwrap_or(-2),
    }
}
