//! AliasNames (Part 17): alternative names of nodes, which clients can find without browsing.
//!
//! An alias is an Object of the type AliasNameType below a category, with AliasFor references to its targets. FindAlias
//! searches the category and those below it on every call. So it finds aliases of NodeSets, of clients and of the
//! application alike, and nothing is stored except the times of the last changes (`alias_changes`).

use super::alias_changes::CATEGORIES;
use super::build::Under;
use super::error::NodeError;
use super::nodes::Nodes;
use super::spec::NodeSpec;
use super::{AddressSpace, NodeIx};
use crate::authorization::{Decisions, Grant};
use crate::callback::{CallContext, MethodCall, MethodHandler, MethodResult};
use crate::content_filter::like::Pattern;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_schema::ids::{method_ids, object_type_ids, reference_type_ids};
use taktwerk_schema::{AliasNameDataType, AliasNameVerboseDataType, NodeClass, PermissionType};
use taktwerk_types::{ExpandedNodeId, NodeId, QualifiedName, StatusCode, UaString, UtcTime, Variant};

/// Maximum number of aliases per call; beyond: Bad_ResponseTooLarge.
const FOUND_MAX: usize = 10_000;
/// Maximum number of their targets. An alias counts in each of its categories.
const TARGETS_MAX: usize = 50_000;
/// Longest pattern, in bytes.
const PATTERN_LEN_MAX: usize = 1024;
/// Maximum number of characters compared with the pattern per alias. Takes some ten microseconds.
const COMPARED_MAX: usize = 4096;
/// References followed before the nodes are unlocked for others.
const REFERENCES_AT_ONCE: usize = 1024;
/// The FindAlias methods: of the type, and of the categories of namespace 0.
const METHODS: [u32; 4] = [
    method_ids::ALIAS_NAME_CATEGORY_TYPE_FIND_ALIAS,
    method_ids::ALIASES_FIND_ALIAS,
    method_ids::TAG_VARIABLES_FIND_ALIAS,
    method_ids::TOPICS_FIND_ALIAS,
];

/// FindAliasVerbose of the type. The categories of namespace 0 refer to this one.
const VERBOSE: NodeId = NodeId::numeric(0, method_ids::ALIAS_NAME_CATEGORY_TYPE_FIND_ALIAS_VERBOSE);

impl AddressSpace {
    /// Adds an alias for a node in an alias category, such as TagVariables (i=23479) for Variables. If the alias
    /// exists, the node becomes a further target.
    ///
    /// # Errors
    /// The node or category does not exist, or the alias already refers to the node.
    pub fn add_alias(
        &self,
        category: &NodeId,
        alias: &str,
        node: &NodeId,
        now: UtcTime,
    ) -> Result<(), NodeError> {
        let name = QualifiedName::new(1, alias);
        let known = {
            let mut nodes = self.write();
            nodes.find(node)?;
            let category = nodes.find(category)?;
            // Categories can have thousands of aliases.
            nodes.child_indexed(category, &name).map(|known| nodes.id_of(known))
        };
        let id = known.unwrap_or_else(|| NodeId::string(1, format!("Aliases/{category}/{alias}")));
        if !self.contains(&id) {
            let under = Under {
                parent: category,
                reference_type: &NodeId::numeric(0, reference_type_ids::ORGANIZES),
                type_definition: Some(&NodeId::numeric(0, object_type_ids::ALIAS_NAME_TYPE)),
            };
            self.add_node(NodeSpec::object(id.clone(), name), under, now)?;
        }
        self.add_reference(&id, &NodeId::numeric(0, reference_type_ids::ALIAS_FOR), node)?;
        self.raise_model_changes(now);
        Ok(())
    }

    /// Implements FindAlias and FindAliasVerbose, and initializes the LastChange of the categories.
    pub(crate) fn install_aliases(self: &Arc<Self>, now: UtcTime) {
        let find = |is_verbose| Arc::new(FindAlias { space: Arc::downgrade(self), is_verbose });
        let install = |id: NodeId, method: Arc<FindAlias>| {
            // Namespace 0 contains them.
            let _ = self.set_method(&id, method as Arc<dyn MethodHandler>);
        };
        for id in METHODS {
            install(NodeId::numeric(0, id), find(false));
        }
        install(VERBOSE, find(true));
        for category in CATEGORIES {
            let has_component = NodeId::numeric(0, reference_type_ids::HAS_COMPONENT);
            let _ = self.add_reference(&NodeId::numeric(0, category), &has_component, &VERBOSE);
        }
        self.begin_last_changes(now);
    }

    /// FindAlias (Part 17 §6.3.2), and FindAliasVerbose, which also returns the location of aliases (§6.3.3).
    fn find_alias(&self, caller: &CallContext, inputs: Vec<Variant>, is_verbose: bool) -> MethodResult {
        let invalid = StatusCode::BAD_INVALID_ARGUMENT;
        let mut inputs = inputs.into_iter();
        let pattern = inputs.next().and_then(|value| UaString::try_from(value).ok()).ok_or(invalid)?;
        let filter = inputs.next().and_then(|value| NodeId::try_from(value).ok()).unwrap_or_default();
        if pattern.as_str().is_empty() || pattern.as_str().len() > PATTERN_LEN_MAX {
            return Err(invalid);
        }
        let mut search = {
            let nodes = self.read();
            let mode = if caller.encrypted {
                MessageSecurityMode::SignAndEncrypt
            } else {
                MessageSecurityMode::None
            };
            let grant = Grant::of_caller(caller, mode);
            Search::new(
                &nodes,
                Decisions::new(nodes.access(), grant),
                &caller.object_id,
                &filter,
                pattern.as_str(),
            )?
        };
        loop {
            let is_done = search.go_on(&self.read())?;
            if is_done {
                break;
            }
            self.yield_to_readers();
        }
        if !is_verbose {
            let found: Vec<AliasNameDataType> = search.found.into_iter().map(|(_, alias)| alias).collect();
            return Ok(vec![Variant::from_structures(&found)]);
        }
        let nodes = self.read();
        let verbose = |(category, alias): (NodeIx, AliasNameDataType)| AliasNameVerboseDataType {
            alias_name: alias.alias_name,
            // All nodes are on this server, which is null (§7.3).
            server_uris: vec![UaString::NULL; alias.referenced_nodes.len()],
            referenced_nodes: alias.referenced_nodes,
            alias_name_category_id: nodes.id_of(category),
        };
        let found: Vec<AliasNameVerboseDataType> = search.found.into_iter().map(verbose).collect();
        Ok(vec![Variant::from_structures(&found)])
    }
}

/// Runs on a worker thread, because it may examine many nodes.
struct FindAlias {
    space: Weak<AddressSpace>,
    is_verbose: bool,
}

impl MethodHandler for FindAlias {
    fn call(&self, context: &CallContext, inputs: Vec<Variant>) -> MethodCall {
        let (space, context, is_verbose) = (self.space.upgrade(), context.clone(), self.is_verbose);
        MethodCall::Blocking(Box::new(move || {
            space.ok_or(StatusCode::BAD_SHUTDOWN)?.find_alias(&context, inputs, is_verbose)
        }))
    }

    fn may_block(&self) -> bool {
        true
    }
}

struct Search {
    decisions: Decisions,
    pattern: Pattern,
    reference_type: NodeIx,
    /// Remaining categories; the last one is being searched, at the reference with this number.
    left: Vec<NodeIx>,
    position: usize,
    seen: BTreeSet<NodeIx>,
    /// Aliases with their categories.
    found: Vec<(NodeIx, AliasNameDataType)>,
    /// Number of all their targets.
    targets: usize,
}

impl Search {
    fn new(
        nodes: &Nodes,
        decisions: Decisions,
        category: &NodeId,
        filter: &NodeId,
        pattern: &str,
    ) -> Result<Self, StatusCode> {
        let category = nodes.resolve(category.as_ref()).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let alias_for = NodeIx::ns0(reference_type_ids::ALIAS_FOR);
        let reference_type = if filter.is_null() {
            alias_for
        } else {
            let invalid = StatusCode::BAD_INVALID_ARGUMENT;
            let ix = nodes.resolve(filter.as_ref()).ok_or(invalid)?;
            let is_type = nodes.view(ix).is_some_and(|view| view.class() == NodeClass::REFERENCE_TYPE);
            if is_type { ix } else { return Err(invalid) }
        };
        Ok(Self {
            decisions,
            pattern: Pattern::new(pattern),
            reference_type,
            left: vec![category],
            position: 0,
            seen: BTreeSet::from([category]),
            found: Vec::new(),
            targets: 0,
        })
    }

    /// Follows some references; true at the end.
    fn go_on(&mut self, nodes: &Nodes) -> Result<bool, StatusCode> {
        let Some(category) = self.left.last().copied() else { return Ok(true) };
        let mut children = Vec::new();
        let mut position = self.position;
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        nodes.references_from(category, self.position, |at, reference| {
            position = at + 1;
            if reference.is_forward && nodes.is_subtype(reference.reference_type, hierarchical) {
                children.push(reference.target);
            }
            position - self.position < REFERENCES_AT_ONCE
        });
        let is_at_end = position - self.position < REFERENCES_AT_ONCE;
        self.position = position;
        if is_at_end {
            self.left.pop();
            self.position = 0;
        }
        // Categories found here are searched first: they are put on top, and the present one continues after them.
        let mut below = Vec::new();
        for child in children {
            if !self.decisions.allows(nodes, child, PermissionType::BROWSE) {
                continue;
            }
            let Some(kind) = nodes.forward_target(child, reference_type_ids::HAS_TYPE_DEFINITION) else {
                continue;
            };
            if nodes.is_subtype(kind, NodeIx::ns0(object_type_ids::ALIAS_NAME_TYPE)) {
                self.look_at(nodes, category, child);
            } else if nodes.is_subtype(kind, NodeIx::ns0(object_type_ids::ALIAS_NAME_CATEGORY_TYPE))
                && self.seen.insert(child)
            {
                below.push(child);
            }
        }
        // Below the current category, so that its position stays valid.
        let at = self.left.len() - usize::from(!is_at_end);
        self.left.splice(at..at, below);
        if self.found.len() > FOUND_MAX || self.targets > TARGETS_MAX {
            return Err(StatusCode::BAD_RESPONSE_TOO_LARGE);
        }
        Ok(self.left.is_empty())
    }

    fn look_at(&mut self, nodes: &Nodes, category: NodeIx, alias: NodeIx) {
        let Some(name) = nodes.view(alias).map(|view| view.browse_name()) else { return };
        // A name that takes longer does not match: clients choose names, too.
        if self.pattern.matches(name.name.as_str(), &mut { COMPARED_MAX }) != Some(true) {
            return;
        }
        let mut referenced_nodes = Vec::new();
        nodes.references(alias, |reference| {
            if reference.is_forward
                && nodes.is_subtype(reference.reference_type, self.reference_type)
                && self.decisions.allows(nodes, reference.target, PermissionType::BROWSE)
            {
                referenced_nodes.push(ExpandedNodeId::from(nodes.id_of(reference.target)));
            }
            self.targets + referenced_nodes.len() <= TARGETS_MAX
        });
        self.targets += referenced_nodes.len();
        // An alias without a reference of the requested type does not match.
        if !referenced_nodes.is_empty() {
            self.found.push((category, AliasNameDataType { alias_name: name, referenced_nodes }));
        }
    }
}
