//! Resolves the user's node names to NodeIds: namespace URIs become indexes, and browse paths are followed.

use super::session::Session;
use super::walk;
use crate::error::GeneratorError;
use taktwerk_load::attribute::Attribute;
use taktwerk_load::node::{NodeSpec, Step};
use taktwerk_schema::ids::{object_ids, reference_type_ids};
use taktwerk_schema::{
    BrowsePath, NodeClass, RelativePath, RelativePathElement, TranslateBrowsePathsToNodeIdsRequest,
};
use taktwerk_types::{ExpandedNodeId, NodeId, QualifiedName};

/// Maximum number of alternatives in an error message.
const SUGGESTIONS: usize = 8;

/// All nodes that the specs name. A wild card may name several.
pub fn all(session: &mut Session, specs: &[NodeSpec]) -> Result<Vec<NodeId>, GeneratorError> {
    let mut ids = Vec::with_capacity(specs.len());
    for spec in specs {
        ids.extend(many(session, spec)?);
    }
    Ok(ids)
}

/// The single node that a spec names; an error if there are several.
pub fn one(session: &mut Session, spec: &NodeSpec) -> Result<NodeId, GeneratorError> {
    let mut ids = many(session, spec)?;
    match (ids.pop(), ids.len()) {
        (Some(id), 0) => Ok(id),
        (_, rest) => Err(GeneratorError::Usage(format!(
            "{spec} names {} nodes, but only one is allowed here",
            rest + 1
        ))),
    }
}

/// All nodes that a spec names: at least one.
pub fn many(session: &mut Session, spec: &NodeSpec) -> Result<Vec<NodeId>, GeneratorError> {
    match spec {
        NodeSpec::Id(id) => Ok(vec![local(session, id)?]),
        NodeSpec::Path(steps) if steps.iter().all(|step| step.plain().is_some()) => {
            Ok(vec![follow(session, spec, steps)?])
        }
        NodeSpec::Path(steps) => Ok(expand(session, spec, steps)?.into_iter().map(|(id, _)| id).collect()),
    }
}

/// All nodes that a spec names, for an operation on an attribute. If values are needed, a wild card names only nodes
/// with a value, because folders contain objects and methods in addition to variables.
pub fn with(
    session: &mut Session,
    spec: &NodeSpec,
    attribute: Attribute,
) -> Result<Vec<NodeId>, GeneratorError> {
    match spec {
        NodeSpec::Path(steps) if attribute == Attribute::VALUE => {
            if steps.iter().all(|step| step.plain().is_some()) {
                return many(session, spec);
            }
            let found = expand(session, spec, steps)?;
            // If no node has a value, use all; the server then reports what is wrong.
            let chosen: Vec<&Found> = match found.iter().any(|child| has_value(&child)) {
                true => found.iter().filter(has_value).collect(),
                false => found.iter().collect(),
            };
            Ok(chosen.into_iter().map(|(id, _)| id.clone()).collect())
        }
        _ => many(session, spec),
    }
}

/// The nodes with values that specs name.
#[derive(Debug, Default)]
pub struct WithValues {
    /// Nodes with values, and all nodes that are named without wild cards.
    pub ids: Vec<NodeId>,
    /// Number of nodes without a value that wild cards matched.
    pub skipped: usize,
}

/// All nodes with a value that the specs name: at least one. Wild cards skip other nodes and count them.
pub fn with_values(session: &mut Session, specs: &[NodeSpec]) -> Result<WithValues, GeneratorError> {
    let mut all = WithValues::default();
    for spec in specs {
        match spec {
            NodeSpec::Path(steps) if steps.iter().any(|step| step.plain().is_none()) => {
                let found = expand(session, spec, steps)?;
                let before = all.ids.len();
                all.ids.extend(found.iter().filter(has_value).map(|(id, _)| id.clone()));
                all.skipped += found.len() - (all.ids.len() - before);
            }
            _ => all.ids.extend(many(session, spec)?),
        }
    }
    if all.ids.is_empty() && all.skipped > 0 {
        let names: Vec<String> = specs.iter().map(ToString::to_string).collect();
        return Err(GeneratorError::Usage(format!(
            "{} matches no Variable, only {} other node{}. `taktwerk browse` shows the Variables below an Object",
            names.join(", "),
            all.skipped,
            if all.skipped == 1 { "" } else { "s" }
        )));
    }
    Ok(all)
}

/// A node and its class.
type Found = (NodeId, NodeClass);

fn has_value(found: &&Found) -> bool {
    matches!(found.1, NodeClass::VARIABLE | NodeClass::VARIABLE_TYPE)
}

/// Converts a namespace URI in an id to an index.
fn local(session: &mut Session, id: &ExpandedNodeId) -> Result<NodeId, GeneratorError> {
    if id.server_index != 0 {
        return Err(GeneratorError::Usage(format!(
            "{id} is a node on another server: connect to that server"
        )));
    }
    let Some(uri) = id.namespace_uri.as_deref() else { return Ok(id.node_id.clone()) };
    let namespaces = session.namespaces()?;
    match namespaces.iter().position(|known| known == uri) {
        Some(index) => Ok(NodeId {
            namespace_index: u16::try_from(index).unwrap_or(u16::MAX),
            identifier: id.node_id.identifier.clone(),
        }),
        None => Err(GeneratorError::Usage(format!(
            "the server has no namespace {uri}; it has\n{}",
            namespaces.iter().enumerate().map(|(at, uri)| format!("  {at}  {uri}\n")).collect::<String>()
        ))),
    }
}

fn root() -> NodeId {
    NodeId::numeric(0, object_ids::ROOT_FOLDER)
}

/// Follows a path without wild cards with one request.
fn follow(session: &mut Session, spec: &NodeSpec, steps: &[Step]) -> Result<NodeId, GeneratorError> {
    if steps.is_empty() {
        return Ok(root());
    }
    let elements = steps.iter().map(|step| RelativePathElement {
        reference_type_id: NodeId::numeric(0, reference_type_ids::HIERARCHICAL_REFERENCES),
        is_inverse: false,
        include_subtypes: true,
        target_name: QualifiedName::new(step.namespace_index.unwrap_or(0), step.plain().unwrap_or_default()),
    });
    let path =
        BrowsePath { starting_node: root(), relative_path: RelativePath { elements: elements.collect() } };
    let request = TranslateBrowsePathsToNodeIdsRequest { browse_paths: vec![path], ..Default::default() };
    let response = session.request(request)?;
    let target = response
        .results
        .first()
        .filter(|result| !result.status_code.is_bad())
        .and_then(|result| result.targets.first())
        .filter(|target| target.remaining_path_index == u32::MAX)
        .and_then(|target| target.target_id.local());
    match target {
        Some(id) => Ok(id.clone()),
        None => Err(no_match(session, spec, steps)),
    }
}

/// Follows a path with wild cards by browsing.
fn expand(session: &mut Session, spec: &NodeSpec, steps: &[Step]) -> Result<Vec<Found>, GeneratorError> {
    let mut found = vec![(root(), NodeClass::OBJECT)];
    for step in steps {
        let mut next: Vec<Found> = Vec::new();
        let parents: Vec<NodeId> = found.into_iter().map(|(id, _)| id).collect();
        for children in walk::children(session, &parents)? {
            for child in children? {
                let name = &child.browse_name;
                let fits = match (step.plain(), step.namespace_index) {
                    // A plain name without a namespace is in namespace 0, as in paths without wild cards.
                    (Some(plain), None) => name.namespace_index == 0 && name.name == plain.as_str(),
                    _ => step.matches(name.namespace_index, name.name.as_str()),
                };
                if fits && !next.iter().any(|(id, _)| *id == child.node_id) {
                    next.push((child.node_id, child.node_class));
                }
            }
        }
        if next.is_empty() {
            return Err(no_match(session, spec, steps));
        }
        found = next;
    }
    Ok(found)
}

/// Finds the name at which a path fails, and alternatives for it.
fn no_match(session: &mut Session, spec: &NodeSpec, steps: &[Step]) -> GeneratorError {
    let mut at = root();
    for step in steps {
        let Ok(children) = walk::children(session, std::slice::from_ref(&at)) else { break };
        let Some(Ok(children)) = children.into_iter().next() else { break };
        let wanted = step.plain();
        let exact = children.iter().find(|child| {
            let name = &child.browse_name;
            name.namespace_index == step.namespace_index.unwrap_or(0)
                && Some(name.name.as_str()) == wanted.as_deref()
        });
        if let Some(child) = exact {
            at = child.node_id.clone();
            continue;
        }
        // A missing namespace is the most common mistake, so that alternative comes first.
        let mut names: Vec<(bool, String)> = children
            .iter()
            .map(|child| {
                let same = wanted
                    .as_deref()
                    .is_some_and(|name| child.browse_name.name.as_str().eq_ignore_ascii_case(name));
                (!same, child.browse_name.to_string())
            })
            .collect();
        names.sort();
        let names: Vec<String> = names.into_iter().map(|(_, name)| name).take(SUGGESTIONS).collect();
        let there = if names.is_empty() {
            "the node has no children".to_owned()
        } else {
            format!("there is {}", names.join(", "))
        };
        return GeneratorError::Usage(format!("{spec}: nothing matches {step}; {there}"));
    }
    GeneratorError::Usage(format!("{spec}: no such node"))
}
