//! AddAliasesToCategory and DeleteAliasesFromCategory (Part 17 §6.3.4, §6.3.5): clients change alias categories.
//!
//! Their aliases are nodes of clients, as those of AddNodes: they count for the same limits, and need the same
//! permissions. Aliases of the application and of NodeSets can be deleted only if RolePermissions grant it.

mod deleting;

use super::nodes::Nodes;
use super::spec::NodeSpec;
use super::{AddressSpace, NodeIx};
use crate::authorization::{Decisions, Grant};
use crate::callback::{CallContext, MethodHandler, MethodResult};
use crate::space::build::{Under, add_under};
use deleting::delete;
use std::collections::BTreeSet;
use std::sync::Arc;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_schema::ids::{method_ids, object_ids, object_type_ids, reference_type_ids};
use taktwerk_schema::{NodeClass, PermissionType};
use taktwerk_types::{ExpandedNodeId, NodeId, QualifiedName, StatusCode, UaString, UtcTime, Variant};

/// Maximum number of aliases per call.
const ALIASES_MAX: usize = 1_000;
/// Longest name, in bytes.
const NAME_LEN_MAX: usize = 512;
/// The methods of the type. Categories refer to them.
pub(super) const METHODS: [NodeId; 2] = [
    NodeId::numeric(0, method_ids::ALIAS_NAME_CATEGORY_TYPE_ADD_ALIASES_TO_CATEGORY),
    NodeId::numeric(0, method_ids::ALIAS_NAME_CATEGORY_TYPE_DELETE_ALIASES_FROM_CATEGORY),
];

/// An alias to be added or deleted.
struct Item<'a> {
    name: &'a str,
    target: &'a ExpandedNodeId,
}

impl AddressSpace {
    /// Offers the methods on all alias categories.
    pub fn set_alias_methods(&self, add: Arc<dyn MethodHandler>, delete: Arc<dyn MethodHandler>) {
        for (method, handler) in METHODS.iter().zip([add, delete]) {
            // Namespace 0 contains them.
            let _ = self.set_method(method, handler);
        }
        let categories: Vec<NodeId> = {
            let nodes = self.read();
            nodes.alias_categories().map(|category| nodes.id_of(category)).collect()
        };
        for category in categories {
            self.offer_alias_methods(&category);
        }
    }

    /// Offers the methods on a category, if there are any.
    pub(super) fn offer_alias_methods(&self, category: &NodeId) {
        let has_component = NodeId::numeric(0, reference_type_ids::HAS_COMPONENT);
        for method in &METHODS {
            let is_offered = {
                let nodes = self.read();
                nodes.resolve(method.as_ref()).is_some_and(|ix| nodes.method_handler(ix).is_some())
            };
            if is_offered {
                // It may have the reference already.
                let _ = self.add_reference(category, &has_component, method);
            }
        }
    }

    /// AddAliasesToCategory for a client. `own_uri` is the ApplicationUri of the server.
    ///
    /// # Errors
    /// Bad_InvalidArgument, Bad_TooManyOperations, Bad_NodeIdUnknown for the category, or a wrong ReferenceType. Each
    /// alias has its own status in the result.
    pub fn add_aliases_for(
        &self,
        caller: &CallContext,
        inputs: Vec<Variant>,
        own_uri: &str,
        now: UtcTime,
    ) -> MethodResult {
        let mut inputs = inputs.into_iter();
        let (names, targets) = arrays(&mut inputs)?;
        let servers =
            inputs.next().and_then(|value| Vec::<UaString>::try_from(value).ok()).unwrap_or_default();
        let kind = inputs.next().and_then(|value| NodeId::try_from(value).ok()).unwrap_or_default();
        if !servers.is_empty() && servers.len() != names.len() {
            return Err(StatusCode::BAD_INVALID_ARGUMENT);
        }
        let kind = self.alias_reference_type(&kind)?;
        let decisions = self.decisions_of(caller);
        let mut results = Vec::with_capacity(names.len());
        for (at, (name, target)) in names.iter().zip(&targets).enumerate() {
            let item = Item { name: name.as_str(), target };
            let server = servers.get(at).map_or("", UaString::as_str);
            let added = if server.is_empty() || server == own_uri {
                add(&mut self.write(), &decisions, &caller.object_id, &item, kind, now)
            } else {
                // The server stores no references to nodes of other servers.
                Err(StatusCode::BAD_REFERENCE_LOCAL_ONLY)
            };
            results.push(added.err().unwrap_or(StatusCode::GOOD));
            self.yield_to_readers();
        }
        self.raise_model_changes(now);
        Ok(vec![results.into()])
    }

    /// DeleteAliasesFromCategory for a client.
    ///
    /// # Errors
    /// Bad_InvalidArgument, Bad_TooManyOperations, or Bad_NodeIdUnknown for the category. Each alias has its own status
    /// in the result.
    pub fn delete_aliases_for(
        &self,
        caller: &CallContext,
        inputs: Vec<Variant>,
        now: UtcTime,
    ) -> MethodResult {
        let (names, targets) = arrays(&mut inputs.into_iter())?;
        let decisions = self.decisions_of(caller);
        let mut results = Vec::with_capacity(names.len());
        for (name, target) in names.iter().zip(&targets) {
            let item = Item { name: name.as_str(), target };
            let deleted = delete(&mut self.write(), &decisions, &caller.object_id, &item);
            results.push(deleted.err().unwrap_or(StatusCode::GOOD));
            self.yield_to_readers();
        }
        self.raise_model_changes(now);
        Ok(vec![results.into()])
    }

    fn decisions_of(&self, caller: &CallContext) -> Decisions {
        let mode =
            if caller.encrypted { MessageSecurityMode::SignAndEncrypt } else { MessageSecurityMode::None };
        Decisions::new(self.read().access(), Grant::of_caller(caller, mode))
    }

    /// The type of references to targets: AliasFor, or a concrete subtype.
    fn alias_reference_type(&self, id: &NodeId) -> Result<NodeIx, StatusCode> {
        let alias_for = NodeIx::ns0(reference_type_ids::ALIAS_FOR);
        if id.is_null() {
            return Ok(alias_for);
        }
        let nodes = self.read();
        let found = nodes.resolve(id.as_ref()).filter(|ix| {
            let view = nodes.view(*ix).filter(|view| view.class() == NodeClass::REFERENCE_TYPE);
            view.is_some_and(|view| view.is_abstract() == Some(false)) && nodes.is_subtype(*ix, alias_for)
        });
        found.ok_or(StatusCode::BAD_REFERENCE_TYPE_ID_INVALID)
    }
}

/// The names and targets of a call: arrays of the same length.
fn arrays(
    inputs: &mut impl Iterator<Item = Variant>,
) -> Result<(Vec<UaString>, Vec<ExpandedNodeId>), StatusCode> {
    let invalid = StatusCode::BAD_INVALID_ARGUMENT;
    let names = inputs.next().and_then(|value| Vec::<UaString>::try_from(value).ok()).ok_or(invalid)?;
    let targets =
        inputs.next().and_then(|value| Vec::<ExpandedNodeId>::try_from(value).ok()).ok_or(invalid)?;
    match names.len() {
        len if len != targets.len() || len == 0 => Err(invalid),
        len if len > ALIASES_MAX => Err(StatusCode::BAD_TOO_MANY_OPERATIONS),
        _ => Ok((names, targets)),
    }
}

/// The category of a call.
fn category_of(nodes: &Nodes, decisions: &Decisions, id: &NodeId) -> Result<NodeIx, StatusCode> {
    let unknown = StatusCode::BAD_NODE_ID_UNKNOWN;
    let category = nodes.resolve(id.as_ref()).filter(|ix| decisions.knows(nodes, *ix)).ok_or(unknown)?;
    nodes.alias_categories().any(|known| known == category).then_some(category).ok_or(unknown)
}

/// A node of this server. The ServerIndex is ignored (§6.3.4).
fn target_of(nodes: &Nodes, decisions: &Decisions, id: &ExpandedNodeId) -> Result<NodeIx, StatusCode> {
    let unknown = StatusCode::BAD_NODE_ID_UNKNOWN;
    let mut local = id.node_id.clone();
    if !id.namespace_uri.is_empty() {
        let uri = id.namespace_uri.as_str();
        let index = nodes.namespaces().iter().position(|known| known == uri).ok_or(unknown)?;
        local.namespace_index = u16::try_from(index).map_err(|_| unknown)?;
    }
    nodes.resolve(local.as_ref()).filter(|ix| decisions.knows(nodes, *ix)).ok_or(unknown)
}

/// The aliases with a name in a category, whatever their namespaces (§6.2).
fn aliases_of(nodes: &mut Nodes, category: NodeIx, name: &str) -> Vec<NodeIx> {
    let count = u16::try_from(nodes.namespaces().len()).unwrap_or(u16::MAX);
    let alias_type = NodeIx::ns0(object_type_ids::ALIAS_NAME_TYPE);
    let mut found = Vec::new();
    for namespace in 0..count {
        let child = nodes.child_indexed(category, &QualifiedName::new(namespace, name));
        found.extend(child.filter(|child| {
            let kind = nodes.forward_target(*child, reference_type_ids::HAS_TYPE_DEFINITION);
            kind.is_some_and(|kind| nodes.is_subtype(kind, alias_type))
        }));
    }
    found
}

/// Whether aliases in a category can have a target: Variables in TagVariables (§9.3), PublishedDataSets in Topics (§9.4).
fn allows(nodes: &Nodes, categories: BTreeSet<NodeIx>, target: NodeIx) -> bool {
    let above = nodes.with_categories_above(categories);
    let is_in = |category: u32| above.contains(&NodeIx::ns0(category));
    let is_variable = || nodes.view(target).is_some_and(|view| view.class() == NodeClass::VARIABLE);
    let is_data_set = || {
        let kind = nodes.forward_target(target, reference_type_ids::HAS_TYPE_DEFINITION);
        let data_set = NodeIx::ns0(object_type_ids::PUBLISHED_DATA_SET_TYPE);
        kind.is_some_and(|kind| nodes.is_subtype(kind, data_set))
    };
    (!is_in(object_ids::TAG_VARIABLES) || is_variable()) && (!is_in(object_ids::TOPICS) || is_data_set())
}

fn add(
    nodes: &mut Nodes,
    decisions: &Decisions,
    category_id: &NodeId,
    item: &Item<'_>,
    kind: NodeIx,
    now: UtcTime,
) -> Result<(), StatusCode> {
    let category = category_of(nodes, decisions, category_id)?;
    if item.name.is_empty() || item.name.len() > NAME_LEN_MAX {
        return Err(StatusCode::BAD_BROWSE_NAME_INVALID);
    }
    let target = target_of(nodes, decisions, item.target)?;
    for ix in [category, target] {
        decisions.check(nodes, ix, PermissionType::ADD_REFERENCE)?;
    }
    let owner = nodes.added_account().ok_or(StatusCode::BAD_NOT_SUPPORTED)?;
    let alias = aliases_of(nodes, category, item.name).first().copied();
    // An alias can be in other categories, too.
    let others = alias.map(|alias| nodes.categories_of(alias)).unwrap_or_default();
    if !allows(nodes, others.into_iter().chain([category]).collect(), target) {
        return Err(StatusCode::BAD_REFERENCE_NOT_ALLOWED);
    }
    if let Some(alias) = alias {
        decisions.check(nodes, alias, PermissionType::ADD_REFERENCE)?;
        if nodes.has_reference(alias, kind, target) {
            return Err(StatusCode::BAD_DUPLICATE_REFERENCE_NOT_ALLOWED);
        }
        return nodes.add_client_reference(alias, kind, target).map_err(|error| error.status());
    }
    let name = QualifiedName::new(1, item.name);
    if nodes.child_indexed(category, &name).is_some() {
        // Such as a category below this one.
        return Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED);
    }
    if !decisions.of_set(nodes.access().silent(1)).contains(PermissionType::ADD_NODE) {
        return Err(StatusCode::BAD_USER_ACCESS_DENIED);
    }
    let id = nodes.unused_id(1).ok_or(StatusCode::BAD_RESOURCE_UNAVAILABLE)?;
    let under = Under {
        parent: category_id,
        reference_type: &NodeId::numeric(0, reference_type_ids::ORGANIZES),
        type_definition: Some(&NodeId::numeric(0, object_type_ids::ALIAS_NAME_TYPE)),
    };
    let spec = NodeSpec::object(id, name);
    let alias = add_under(nodes, spec, under, Some(&owner), now).map_err(|error| error.status())?;
    let refers = nodes.add_client_reference(alias, kind, target).map_err(|error| error.status());
    nodes.note_added(alias);
    if refers.is_err() {
        // An alias has a target (§6.2). It was just added, so this cannot fail.
        let _ = nodes.delete(alias);
    }
    refers
}
