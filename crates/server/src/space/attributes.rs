//! Attributes that depend on the user (Part 3 §5.2.9 to §5.2.11, §5.6.2, §5.7).

use super::NodeIx;
use super::nodes::Nodes;
use super::view::{NodeView, attribute as a};
use crate::authorization::Decisions;
use taktwerk_schema::{AccessLevelType, PermissionType, RolePermissionType};
use taktwerk_types::{ExtensionObject, NodeId, StatusCode, Variant};

/// The permission required to read an attribute (Part 3 §8.55).
pub(crate) const fn attribute_permission(attribute_id: u32) -> PermissionType {
    match attribute_id {
        a::VALUE => PermissionType::READ,
        a::ROLE_PERMISSIONS => PermissionType::READ_ROLE_PERMISSIONS,
        _ => PermissionType::BROWSE,
    }
}

/// Any attribute but Value, as a session sees it.
///
/// # Errors
/// As [`Decisions::check`]; Bad_AttributeIdInvalid for attributes that the node does not have.
pub(crate) fn attribute(
    nodes: &Nodes,
    decisions: &Decisions,
    ix: NodeIx,
    view: &NodeView<'_>,
    attribute_id: u32,
) -> Result<Variant, StatusCode> {
    decisions.check(nodes, ix, attribute_permission(attribute_id))?;
    let missing = StatusCode::BAD_ATTRIBUTE_ID_INVALID;
    let mine = decisions.of(nodes, ix);
    let set = nodes.access_set(ix);
    Ok(match attribute_id {
        a::USER_ACCESS_LEVEL => user_access_level(view.access_level().ok_or(missing)?, mine).into(),
        a::USER_EXECUTABLE => {
            (view.executable().ok_or(missing)? && mine.contains(PermissionType::CALL)).into()
        }
        // Only values can be written.
        a::USER_WRITE_MASK => 0u32.into(),
        a::ROLE_PERMISSIONS => structures(nodes.access().role_permissions(set).ok_or(missing)?, |_| true),
        a::USER_ROLE_PERMISSIONS => {
            let all = nodes.access().role_permissions(set).ok_or(missing)?;
            structures(all, |role| decisions.grant.roles.contains(role))
        }
        a::ACCESS_RESTRICTIONS => nodes.access().access_restrictions(set).ok_or(missing)?.0.into(),
        other => view.attribute(other)?,
    })
}

/// The user's part of an AccessLevel (Part 3 §8.55: which permission affects which bit).
fn user_access_level(level: u8, mine: PermissionType) -> u8 {
    use AccessLevelType as L;
    use PermissionType as P;
    let change_history = P::INSERT_HISTORY | P::MODIFY_HISTORY | P::DELETE_HISTORY;
    let mut left = L::SEMANTIC_CHANGE.0;
    for (bits, has) in [
        (L::CURRENT_READ.0, mine.contains(P::READ)),
        (L::CURRENT_WRITE.0 | L::STATUS_WRITE.0 | L::TIMESTAMP_WRITE.0, mine.contains(P::WRITE)),
        (L::HISTORY_READ.0, mine.contains(P::READ_HISTORY)),
        (L::HISTORY_WRITE.0, mine.intersects(change_history)),
    ] {
        if has {
            left |= bits;
        }
    }
    level & left
}

pub(super) fn structures(all: &[(NodeId, PermissionType)], wanted: impl Fn(&NodeId) -> bool) -> Variant {
    let list: Vec<ExtensionObject> = all
        .iter()
        .filter(|(role, _)| wanted(role))
        .map(|(role, permissions)| {
            ExtensionObject::new(&RolePermissionType { role_id: role.clone(), permissions: *permissions })
        })
        .collect();
    list.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_permission_allows_its_own_bits() {
        use PermissionType as P;
        let left = |mine: P| user_access_level(0x7f, mine);
        assert_eq!(left(P::EMPTY), 0x10);
        assert_eq!(left(P::READ), 0x11);
        assert_eq!(left(P::WRITE), 0x72);
        assert_eq!(left(P::READ_HISTORY), 0x14);
        assert_eq!(left(P::DELETE_HISTORY), 0x18);
        assert_eq!(user_access_level(1, P::ALL_BITS), 1);
    }
}
