//! The RoleSet object of namespace 0 (Part 18 §4.2 to §4.4): shows the roles and the rules for granting them to clients
//! with permission. The methods of its objects are visible only to administrators, and executable if the application
//! implements them.

use super::nodes::Nodes;
use crate::authorization::{Authorization, Restriction, Role};
use crate::callback::{CallContext, WriteHandler};
use std::sync::Arc;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{EndpointType, IdentityMappingRuleType, MessageSecurityMode};
use taktwerk_types::{DataValue, QualifiedName, StatusCode, UaString, UtcTime, Variant};

/// The Properties that the specification makes writable (Part 18 §4.4.1).
const WRITABLE: [&str; 2] = ["ApplicationsExclude", "EndpointsExclude"];

/// Refuses writes if the application does not handle them: the value alone would have no effect.
struct Refuse;

impl WriteHandler for Refuse {
    fn write(&self, _: &CallContext, _: DataValue) -> Result<DataValue, StatusCode> {
        Err(StatusCode::BAD_NOT_WRITABLE)
    }
}

/// Writes the roles' data into the properties of their objects.
pub(crate) fn publish(authorization: &Authorization, nodes: &mut Nodes, time: UtcTime) {
    for role in &authorization.roles {
        for (name, value) in properties(role) {
            // Some roles lack the property, and the server's own roles need not have an object.
            let Some(property) = nodes.resolve(role.id.as_ref()).and_then(|object| {
                let name = QualifiedName::new(0, name);
                nodes.child_by(object, reference_type_ids::HAS_PROPERTY, &name)
            }) else {
                continue;
            };
            let slot = match nodes.id_of(property).ns0() {
                Some(id) => {
                    if WRITABLE.contains(&name) && nodes.write_handler(property).is_none() {
                        nodes.set_ns0_writer(id, Arc::new(Refuse));
                    }
                    Some(nodes.ns0_slot(id))
                }
                None => nodes.slot_handle(property),
            };
            if let Some(slot) = slot {
                slot.set(value, StatusCode::GOOD, time, time);
            }
        }
    }
}

fn properties(role: &Role) -> [(&'static str, Variant); 6] {
    let identities: Vec<_> = role
        .identities
        .iter()
        .map(|rule| {
            let (criteria_type, criteria) = rule.criteria();
            taktwerk_types::ExtensionObject::new(&IdentityMappingRuleType {
                criteria_type,
                criteria: criteria.into(),
            })
        })
        .collect();
    let (applications_exclude, applications) = parts(role.applications.as_ref());
    let applications: Vec<UaString> = applications.iter().map(|uri| uri.as_str().into()).collect();
    let (endpoints_exclude, endpoints) = parts(role.endpoints.as_ref());
    let endpoints: Vec<_> = endpoints
        .iter()
        .map(|endpoint| {
            taktwerk_types::ExtensionObject::new(&EndpointType {
                endpoint_url: endpoint.url.as_deref().unwrap_or_default().into(),
                security_mode: MessageSecurityMode(endpoint.mode.map_or(0, |mode| mode as i32)),
                security_policy_uri: endpoint.policy.map_or("", |policy| policy.uri()).into(),
                transport_profile_uri: UaString::NULL,
            })
        })
        .collect();
    [
        ("Identities", identities.into()),
        ("ApplicationsExclude", applications_exclude.into()),
        ("Applications", applications.into()),
        ("EndpointsExclude", endpoints_exclude.into()),
        ("Endpoints", endpoints.into()),
        // There are no identities besides those above.
        ("CustomConfiguration", false.into()),
    ]
}

/// Without a restriction nothing is excluded: an empty exclusion list.
fn parts<T>(restriction: Option<&Restriction<T>>) -> (bool, &[T]) {
    restriction.map_or((true, &[]), |restriction| (restriction.exclude, &restriction.list))
}
