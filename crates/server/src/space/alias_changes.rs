//! The last change of aliases for each category (LastChange, Part 17 §6.3.1).
//!
//! Changes below a category, and changes of its aliases' targets, also change the categories that contain it. While the
//! nodes are locked, only the categories are recorded; [`AddressSpace::raise_model_changes`] writes LastChange.
//! References of other nodes cost one lookup in the set of categories.

use super::build::Under;
use super::error::NodeError;
use super::nodes::Nodes;
use super::spec::NodeSpec;
use super::{AddressSpace, NodeIx};
use std::collections::BTreeSet;
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::{
    data_type_ids, method_ids, object_ids, object_type_ids, reference_type_ids, variable_type_ids,
};
use taktwerk_types::{BuiltInType, NodeId, QualifiedName, UtcTime, Variant};

/// The categories of namespace 0. The first one contains the others.
pub(super) const CATEGORIES: [u32; 3] = [object_ids::ALIASES, object_ids::TAG_VARIABLES, object_ids::TOPICS];
/// The BrowseName of the Property.
const LAST_CHANGE: &str = "LastChange";

const fn ns0(id: u32) -> NodeId {
    NodeId::numeric(0, id)
}

/// A time as VersionTime: seconds since the beginning of 2000 (Part 4 §7.43).
fn version_time(time: UtcTime) -> u32 {
    let seconds = time.unix_nanos() / 1_000_000_000 - 946_684_800;
    u32::try_from(seconds).unwrap_or_default()
}

/// The alias categories, and those whose LastChange must be written.
#[derive(Debug)]
pub(super) struct AliasChanges {
    categories: BTreeSet<NodeIx>,
    changed: BTreeSet<NodeIx>,
}

impl Default for AliasChanges {
    fn default() -> Self {
        Self { categories: CATEGORIES.map(NodeIx::ns0).into(), changed: BTreeSet::new() }
    }
}

impl AliasChanges {
    /// Whether no LastChange must be written.
    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_empty()
    }

    /// The categories that have changed since the last call.
    pub(super) fn take(&mut self) -> BTreeSet<NodeIx> {
        core::mem::take(&mut self.changed)
    }
}

impl Nodes {
    /// All alias categories.
    pub(super) fn alias_categories(&self) -> impl Iterator<Item = NodeIx> {
        self.versions.aliases.categories.iter().copied()
    }

    fn is_alias_type(&self, kind: NodeIx, base: u32) -> bool {
        // Types of namespace 0 are not subtypes of these.
        if kind.index < NodeIx::DYNAMIC {
            kind.index == base
        } else {
            self.is_subtype(kind, NodeIx::ns0(base))
        }
    }

    /// A forward reference was added or will be removed: records the effect on aliases.
    pub(super) fn note_alias_reference(&mut self, at: NodeIx, reference_type: u32, target: NodeIx) {
        match reference_type {
            reference_type_ids::HAS_TYPE_DEFINITION
                if self.is_alias_type(target, object_type_ids::ALIAS_NAME_CATEGORY_TYPE) =>
            {
                self.versions.aliases.categories.insert(at);
                self.versions.aliases.changed.insert(at);
            }
            // The alias gets another target.
            _ if self.is_alias_for(reference_type) => {
                let above = self.categories_of(at);
                // An alias outside all categories counts as a change too (§9.2).
                let root = above.is_empty().then(|| NodeIx::ns0(object_ids::ALIASES));
                self.versions.aliases.changed.extend(above.into_iter().chain(root));
            }
            // Properties and Methods of a category are not aliases.
            _ if self.versions.aliases.categories.contains(&at)
                && self.view(target).is_some_and(|view| view.class() == NodeClass::OBJECT)
                && self.is_hierarchical(reference_type) =>
            {
                self.versions.aliases.changed.insert(at);
            }
            _ => {}
        }
    }

    /// A node will be removed. The changes of its parents are recorded with its references.
    pub(super) fn note_alias_deleted(&mut self, ix: NodeIx) {
        self.versions.aliases.categories.remove(&ix);
        self.versions.aliases.changed.remove(&ix);
    }

    /// Whether a ReferenceType leads to targets of aliases: AliasFor or a subtype (§6.2).
    fn is_alias_for(&self, reference_type: u32) -> bool {
        // Types of namespace 0 are not subtypes of it.
        if reference_type < NodeIx::DYNAMIC {
            return reference_type == reference_type_ids::ALIAS_FOR;
        }
        let alias_for = NodeIx::ns0(reference_type_ids::ALIAS_FOR);
        self.ix(reference_type).is_some_and(|kind| self.is_subtype(kind, alias_for))
    }

    fn is_hierarchical(&self, reference_type: u32) -> bool {
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        self.ix(reference_type).is_some_and(|kind| self.is_subtype(kind, hierarchical))
    }

    /// The categories that contain an alias or a category.
    pub(super) fn categories_of(&self, ix: NodeIx) -> Vec<NodeIx> {
        let mut found = Vec::new();
        self.references(ix, |reference| {
            if !reference.is_forward
                && self.versions.aliases.categories.contains(&reference.target)
                && self.is_hierarchical(reference.reference_type.index)
            {
                found.push(reference.target);
            }
            true
        });
        found
    }

    /// The categories, those that contain them, and the root category.
    pub(super) fn with_categories_above(&self, changed: BTreeSet<NodeIx>) -> BTreeSet<NodeIx> {
        let mut all = BTreeSet::from([NodeIx::ns0(object_ids::ALIASES)]);
        let mut next: Vec<NodeIx> = changed.into_iter().collect();
        while let Some(ix) = next.pop() {
            if all.insert(ix) {
                next.extend(self.categories_of(ix));
            }
        }
        all
    }

    /// The LastChange Property of a category, if it exists and can hold a VersionTime.
    fn last_change_of(&self, category: NodeIx) -> Option<NodeId> {
        let property = self.child(category, &QualifiedName::new(0, LAST_CHANGE))?;
        let view = self.view(property).filter(|view| view.class() == NodeClass::VARIABLE)?;
        let kind = self.resolve(view.data_type()?.as_ref())?;
        let is_version_time = super::data_type::built_in(self, kind) == Some(BuiltInType::UInt32)
            && view.value_rank().is_none_or(|rank| rank < 0);
        is_version_time.then(|| self.id_of(property))
    }
}

impl AddressSpace {
    /// Adds an alias category with its own LastChange, and returns its id. Categories can be nested.
    ///
    /// # Errors
    /// The parent does not exist, or contains a category or alias with this name.
    pub fn add_alias_category(&self, parent: &NodeId, name: &str, now: UtcTime) -> Result<NodeId, NodeError> {
        let id = NodeId::string(1, format!("Aliases/{parent}/{name}"));
        let under = Under {
            parent,
            reference_type: &ns0(reference_type_ids::ORGANIZES),
            type_definition: Some(&ns0(object_type_ids::ALIAS_NAME_CATEGORY_TYPE)),
        };
        self.add_node(NodeSpec::object(id.clone(), QualifiedName::new(1, name)), under, now)?;
        for method in [
            method_ids::ALIAS_NAME_CATEGORY_TYPE_FIND_ALIAS,
            method_ids::ALIAS_NAME_CATEGORY_TYPE_FIND_ALIAS_VERBOSE,
        ] {
            self.add_reference(&id, &ns0(reference_type_ids::HAS_COMPONENT), &ns0(method))?;
        }
        self.offer_alias_methods(&id);
        self.add_last_change(&id, now)?;
        Ok(id)
    }

    /// Adds a LastChange to a category.
    pub(super) fn add_last_change(&self, category: &NodeId, now: UtcTime) -> Result<(), NodeError> {
        let id = super::instance::child_id(&self.read(), category, LAST_CHANGE);
        let under = Under {
            parent: category,
            reference_type: &ns0(reference_type_ids::HAS_PROPERTY),
            type_definition: Some(&ns0(variable_type_ids::PROPERTY_TYPE)),
        };
        let name = QualifiedName::new(0, LAST_CHANGE);
        let value = Some(Variant::UInt32(version_time(now)));
        self.add_node(NodeSpec::variable(id, name, ns0(data_type_ids::VERSION_TIME), value), under, now)
    }

    /// Sets the LastChange of all categories of namespace 0 to now.
    pub(super) fn begin_last_changes(&self, now: UtcTime) {
        for category in CATEGORIES {
            let id = self.read().last_change_of(NodeIx::ns0(category));
            match id.map(|id| self.variable(&id)) {
                // No client has seen another value yet, so aliases added before do not count separately.
                Some(Ok(last)) => last.set_at(version_time(now), now),
                _ => {
                    // Namespace 0 contains the category.
                    let _ = self.add_last_change(&ns0(category), now);
                }
            }
        }
    }

    /// Categories have changed: sets LastChange to a value that was never used before (Part 4 §7.43).
    pub(super) fn note_alias_changes(&self, changed: BTreeSet<NodeIx>, now: UtcTime) {
        let properties: Vec<NodeId> = {
            let nodes = self.read();
            let all = nodes.with_categories_above(changed);
            all.into_iter().filter_map(|category| nodes.last_change_of(category)).collect()
        };
        for last in properties.iter().filter_map(|id| self.variable(id).ok()) {
            let next = match last.get().value {
                Some(Variant::UInt32(before)) => before.saturating_add(1),
                _ => 0,
            };
            last.set_at(version_time(now).max(next), now);
        }
    }
}
