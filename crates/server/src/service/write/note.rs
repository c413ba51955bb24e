//! The audit record of a write.

use crate::audit::record::cut;
use crate::audit::{AuditAction, AuditValue};
use crate::service::audit::known_id;
use crate::space::nodes::Nodes;
use taktwerk_slots::SlotHandle;
use taktwerk_types::{DataValue, NodeIdRef, Variant};

/// The audit data of a write.
pub(super) struct Note(pub(super) AuditAction);

impl Note {
    pub(super) fn new(
        nodes: &Nodes,
        id: NodeIdRef<'_>,
        attribute_id: u32,
        index_range: &str,
        value: &DataValue,
    ) -> Self {
        Self(AuditAction::Write {
            node_id: known_id(nodes, id),
            attribute_id,
            index_range: cut(index_range),
            old_value: None,
            new_value: AuditValue::of(value.value.as_ref().unwrap_or(&Variant::Empty)),
        })
    }

    /// Records the value that a write replaces.
    pub(super) fn replaces(&mut self, slot: &SlotHandle) {
        if let AuditAction::Write { old_value, .. } = &mut self.0 {
            *old_value = Some(AuditValue::of(&slot.read().value()));
        }
    }
}
