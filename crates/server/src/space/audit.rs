//! AuditEvents: raising them, and who may receive them.

use super::{AddressSpace, NodeIx};
use crate::audit::AuditRecord;
use crate::authorization::Access;
use taktwerk_schema::ids::object_type_ids;
use taktwerk_schema::ns0::Ns0;
use taktwerk_schema::{AccessRestrictionType, NodeClass};

impl AddressSpace {
    /// Raises the event that tells of a record. `server` is its ServerId: the server's ApplicationUri. Costs one relaxed load
    /// while no client monitors events.
    pub fn raise_audit(&self, record: &AuditRecord, server: &str) {
        self.raise_with(record.time, || record.event(server));
    }

    /// Lets AuditEvents go only over channels that encrypt. Called once, if something is noted.
    pub(crate) fn restrict_audit_events(&self) {
        let mut nodes = self.write();
        let root = NodeIx::ns0(object_type_ids::AUDIT_EVENT_TYPE);
        for node in Ns0::get().nodes().filter(|node| node.class() == NodeClass::OBJECT_TYPE) {
            let kind = NodeIx::ns0(node.id());
            if !nodes.is_subtype(kind, root) {
                continue;
            }
            let own = nodes.access().own(nodes.access_set(kind)).cloned().unwrap_or_default();
            let restrictions = own.access_restrictions.unwrap_or_default();
            let restricted = Access {
                access_restrictions: Some(restrictions | AccessRestrictionType::ENCRYPTION_REQUIRED),
                ..own
            };
            // One set for all of them: there is room for it.
            let _ = nodes.set_access(kind, restricted);
        }
    }
}
