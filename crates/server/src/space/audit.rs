//! Raising AuditEvents, and the rights to receive them.

use super::{AddressSpace, NodeIx};
use crate::audit::AuditRecord;
use crate::authorization::Access;
use taktwerk_schema::ids::object_type_ids;
use taktwerk_schema::ns0::Ns0;
use taktwerk_schema::{AccessRestrictionType, NodeClass};

impl AddressSpace {
    /// Raises the event for a record. `server` is its ServerId: the server's ApplicationUri. Costs one relaxed load
    /// while no client monitors events.
    pub fn raise_audit(&self, record: &AuditRecord, server: &str) {
        self.raise_with(record.time, || record.event(server));
    }

    /// Allows AuditEvents only over encrypted channels. Called once, if auditing is on.
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
            // All of them share one set, so a number is available.
            let _ = nodes.set_access(kind, restricted);
        }
    }
}
