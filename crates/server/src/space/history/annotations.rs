//! The Annotations Property of Variables with history (Part 11 §5.1.2).

use crate::history::NodeHistory;
use crate::node_ix::NodeIx;
use crate::space::error::NodeError;
use crate::space::instance::child_id;
use crate::space::nodes::Nodes;
use crate::space::spec::NodeSpec;
use std::sync::Arc;
use taktwerk_schema::AccessLevelType;
use taktwerk_schema::ids::{data_type_ids, reference_type_ids, variable_type_ids};
use taktwerk_types::{NodeId, QualifiedName, UtcTime};

/// Its BrowseName in namespace 0.
const ANNOTATIONS: &str = "Annotations";

impl Nodes {
    /// Connects the Annotations Property of a Variable with its history. A Variable without the Property gets it if
    /// `writable`: clients may then annotate its history.
    ///
    /// The Property has no value: annotations are read and changed only as history.
    pub(super) fn set_annotations(
        &mut self,
        variable: NodeIx,
        history: &NodeHistory,
        writable: bool,
        now: UtcTime,
    ) -> Result<(), NodeError> {
        let property = match self.child(variable, &QualifiedName::new(0, ANNOTATIONS)) {
            Some(property) => property,
            None if writable => match self.add_annotations(variable, now) {
                // The client's nodes are at their limit: the Variable is recorded without annotations.
                Err(NodeError::Exhausted(_)) => return Ok(()),
                added => added?,
            },
            None => return Ok(()),
        };
        let mut access_level = AccessLevelType::HISTORY_READ.0;
        if writable {
            access_level |= AccessLevelType::HISTORY_WRITE.0;
        }
        // A Property of an imported type may exist; a node of namespace 0 cannot have a history.
        if let Some(property) = self.variable_mut(property) {
            property.access_level = access_level;
        }
        if let Some(extra) = self.variable_extra_mut(property) {
            extra.history = Some(Arc::new(NodeHistory { annotates: Some(variable), ..history.clone() }));
        }
        Ok(())
    }

    fn add_annotations(&mut self, variable: NodeIx, now: UtcTime) -> Result<NodeIx, NodeError> {
        let id = child_id(self, &self.id_of(variable), ANNOTATIONS);
        let mut spec = NodeSpec::variable(
            id,
            QualifiedName::new(0, ANNOTATIONS),
            NodeId::numeric(0, data_type_ids::ANNOTATION),
            None,
        );
        // Who may not see the Variable does not see its annotations.
        spec.access = self.access().own(self.access_set(variable)).cloned().unwrap_or_default();
        // The Property of a client's Variable is another node of clients.
        let owner = self.is_added(variable).then(|| self.added_account()).flatten();
        let property = self.add_owned(spec, owner.as_ref(), now)?;
        self.add_reference(variable, NodeIx::ns0(reference_type_ids::HAS_PROPERTY), property, true)?;
        let kind = NodeIx::ns0(variable_type_ids::PROPERTY_TYPE);
        self.add_reference(property, NodeIx::ns0(reference_type_ids::HAS_TYPE_DEFINITION), kind, false)?;
        self.note_added(property);
        Ok(property)
    }

    /// The Annotations Properties of Variables. They are deleted with them: a Property needs an owner (Part 3 §5.6.3).
    pub(in crate::space) fn annotations_of(&self, variables: &[NodeIx]) -> Vec<NodeIx> {
        let name = QualifiedName::new(0, ANNOTATIONS);
        let with_history = variables.iter().filter(|ix| self.history(**ix).is_some());
        let properties = with_history.filter_map(|ix| Some((*ix, self.child(*ix, &name)?)));
        let is_own = |(variable, property): &(NodeIx, NodeIx)| {
            self.history(*property).is_some_and(|history| history.annotates == Some(*variable))
        };
        properties.filter(is_own).map(|(_, property)| property).collect()
    }
}
