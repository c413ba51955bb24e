//! Hides parts of the specification's ServerConfiguration that this server does not implement.

use crate::space::ns0;
use taktwerk_schema::ids::{method_ids, object_ids};
use taktwerk_server::AddressSpace;
use taktwerk_server::authorization::Access;
use taktwerk_server::space::NodeError;
use taktwerk_types::QualifiedName;

/// Never implemented.
const ALWAYS: [u32; 4] = [
    object_ids::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_HTTPS_GROUP,
    object_ids::SERVER_CONFIGURATION_CONFIGURATION_FILE,
    object_ids::SERVER_CONFIGURATION_TRANSACTION_DIAGNOSTICS,
    method_ids::SERVER_CONFIGURATION_RESET_TO_SERVER_DEFAULTS,
];

/// Parts of push management.
const PUSH: [u32; 7] = [
    method_ids::SERVER_CONFIGURATION_CREATE_SIGNING_REQUEST,
    method_ids::SERVER_CONFIGURATION_UPDATE_CERTIFICATE,
    method_ids::SERVER_CONFIGURATION_APPLY_CHANGES,
    method_ids::SERVER_CONFIGURATION_CANCEL_CHANGES,
    method_ids::SERVER_CONFIGURATION_GET_REJECTED_LIST,
    object_ids::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST,
    object_ids::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_USER_TOKEN_GROUP,
];

/// Hides what does not work: all of it, or only what is never implemented.
pub(in crate::server) fn leave_out(space: &AddressSpace, has_push: bool) -> Result<(), NodeError> {
    let push: &[u32] = if has_push { &[] } else { &PUSH };
    for id in ALWAYS.iter().chain(push) {
        space.set_access(&ns0(*id), Access::roles([]))?;
    }
    if !has_push {
        let get = QualifiedName::new(0, "GetCertificates");
        if let Some(method) = space.child(&ns0(object_ids::SERVER_CONFIGURATION), &get) {
            space.set_access(&method, Access::roles([]))?;
        }
    }
    Ok(())
}
