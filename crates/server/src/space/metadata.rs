//! The NamespaceMetadata objects: they show the default access rights of namespaces to administrators (Part 3 §5.2.9 to
//! §5.2.11, Part 5 §6.3.14).
//!
//! Namespace 0 and most NodeSets of companion specifications have such an object. Other namespaces get one when needed.
//! DefaultUserRolePermissions would differ for each session and is omitted: the UserRolePermissions of nodes contain
//! the same information.

use super::NodeIx;
use super::attributes::structures;
use super::build::{Under, add_instance};
use super::error::NodeError;
use super::instance::{Walk, Wanted};
use super::nodes::Nodes;
use super::spec::NodeSpec;
use crate::authorization::Access;
use crate::authorization::role::well_known;
use taktwerk_schema::PermissionType;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids};
use taktwerk_types::{NodeId, QualifiedName, StatusCode, UtcTime, Variant};

const ROLE_PERMISSIONS: &str = "DefaultRolePermissions";
const ACCESS_RESTRICTIONS: &str = "DefaultAccessRestrictions";
const NAMESPACE_URI: &str = "NamespaceUri";

/// Updates the properties of all namespaces.
pub(crate) fn publish(nodes: &mut Nodes) {
    for index in 0..nodes.namespaces().len() {
        let Ok(index) = u16::try_from(index) else { return };
        if let Err(error) = publish_one(nodes, index) {
            tracing::warn!(%error, index, "cannot publish the default access rights of a namespace");
        }
    }
}

fn publish_one(nodes: &mut Nodes, index: u16) -> Result<(), NodeError> {
    let silent = nodes.access().silent(index);
    let permissions = nodes.access().role_permissions(silent).map(|all| structures(all, |_| true));
    let restrictions = nodes.access().access_restrictions(silent).map(|bits| Variant::from(bits.0));
    let says_something = permissions.is_some() || restrictions.is_some();
    let object = match metadata_of(nodes, index) {
        Some(object) => object,
        None if says_something => add_object(nodes, index)?,
        None => return Ok(()),
    };
    for (name, value) in [(ROLE_PERMISSIONS, permissions), (ACCESS_RESTRICTIONS, restrictions)] {
        let Some(property) = property(nodes, object, name) else { continue };
        if value.is_some() {
            // "Shall only be readable by administrators" (Part 3 §5.2.9).
            let look = PermissionType::BROWSE | PermissionType::READ;
            let admins = [well_known::SECURITY_ADMIN, well_known::CONFIGURE_ADMIN];
            let access = Access::roles(admins.map(|role| (NodeId::numeric(0, role), look)));
            nodes.set_access(property, access)?;
        }
        match value {
            Some(value) => set(nodes, property, value, StatusCode::GOOD),
            // No restrictions is a value. An empty permission list would mean that no role has access, which is not the
            // case.
            None if name == ACCESS_RESTRICTIONS => {
                set(nodes, property, Variant::from(0u16), StatusCode::GOOD)
            }
            None => set(nodes, property, Variant::Empty, StatusCode::BAD_NOT_SUPPORTED),
        }
    }
    Ok(())
}

/// The object of a namespace. Its BrowseName is in namespace 0 or in the namespace itself.
fn metadata_of(nodes: &Nodes, index: u16) -> Option<NodeIx> {
    let uri = nodes.namespaces().get(usize::from(index))?;
    let parent = NodeIx::ns0(object_ids::SERVER_NAMESPACES);
    [index, 0].into_iter().find_map(|own| nodes.child(parent, &QualifiedName::new(own, uri.as_str())))
}

fn add_object(nodes: &mut Nodes, index: u16) -> Result<NodeIx, NodeError> {
    let uri = nodes.namespaces().get(usize::from(index)).cloned().unwrap_or_default();
    let id = NodeId::string(1, format!("NamespaceMetadata/{uri}"));
    let spec = NodeSpec::object(id, QualifiedName::new(index, uri.as_str()));
    let under = Under {
        parent: &NodeId::numeric(0, object_ids::SERVER_NAMESPACES),
        reference_type: &NodeId::numeric(0, reference_type_ids::HAS_COMPONENT),
        type_definition: Some(&NodeId::numeric(0, object_type_ids::NAMESPACE_METADATA_TYPE)),
    };
    let optional = [ROLE_PERMISSIONS, ACCESS_RESTRICTIONS];
    let wanted = Wanted { optional: &optional, owner: None, now: UtcTime::NULL };
    let added = add_instance(nodes, spec, under, wanted, &mut Walk::unlimited())?;
    let (_, id, object) = added.into_iter().next().ok_or(NodeError::Unknown(NodeId::NULL))?;
    let property = property(nodes, object, NAMESPACE_URI).ok_or(NodeError::Unknown(id))?;
    set(nodes, property, uri.as_str().into(), StatusCode::GOOD);
    Ok(object)
}

fn property(nodes: &Nodes, object: NodeIx, name: &str) -> Option<NodeIx> {
    nodes.child_by(object, reference_type_ids::HAS_PROPERTY, &QualifiedName::new(0, name))
}

fn set(nodes: &mut Nodes, variable: NodeIx, value: Variant, status: StatusCode) {
    let slot = match nodes.id_of(variable).ns0() {
        Some(id) => Some(nodes.ns0_slot(id)),
        None => nodes.slot_handle(variable),
    };
    if let Some(slot) = slot {
        slot.set(value, status, UtcTime::NULL, UtcTime::NULL);
    }
}
