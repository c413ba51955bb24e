//! Browses the children of nodes within the server's limits.

use super::session::Session;
use crate::error::GeneratorError;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{
    BrowseDescription, BrowseDirection, BrowseNextRequest, BrowseRequest, BrowseResult, NodeClass,
    ReferenceDescription,
};
use taktwerk_types::{LocalizedText, NodeId, QualifiedName, StatusCode};

/// Every field of a ReferenceDescription (Part 4 §5.9.2.2, resultMask).
const ALL_FIELDS: u32 = 0x3f;

/// Target of a forward hierarchical reference.
#[derive(Debug, Clone)]
pub struct Child {
    /// The node.
    pub node_id: NodeId,
    /// Its BrowseName.
    pub browse_name: QualifiedName,
    /// Its DisplayName.
    pub display_name: LocalizedText,
    /// Its NodeClass.
    pub node_class: NodeClass,
    /// The type of the reference.
    pub reference_type: NodeId,
    /// The type definition; null if the node has none.
    pub type_definition: NodeId,
}

/// The children of a node, or why they are unknown. A bad status does not stop the walk.
pub type Children = Result<Vec<Child>, GeneratorError>;

/// The children of each node, in the order of the nodes.
pub fn children(session: &mut Session, nodes: &[NodeId]) -> Result<Vec<Children>, GeneratorError> {
    let browsed = browse(session, nodes)?;
    Ok(browsed
        .into_iter()
        .zip(nodes)
        .map(|(result, node)| match result {
            Ok(references) => Ok(references.into_iter().filter_map(child).collect()),
            Err(status) => Err(GeneratorError::BadStatus(format!("browsing {node}: {status}"))),
        })
        .collect())
}

/// The forward hierarchical references of each node, or the server's status for it.
pub fn browse(
    session: &mut Session,
    nodes: &[NodeId],
) -> Result<Vec<Result<Vec<ReferenceDescription>, StatusCode>>, GeneratorError> {
    let request =
        BrowseRequest { nodes_to_browse: nodes.iter().map(description).collect(), ..Default::default() };
    let response = session.request(request)?;
    let mut complete = Vec::with_capacity(nodes.len());
    for result in response.results {
        complete.push(rest(session, result)?);
    }
    Ok(complete)
}

/// All references of each node in both directions, or the server's status for it.
pub fn references(
    session: &mut Session,
    nodes: &[NodeId],
) -> Result<Vec<Result<Vec<ReferenceDescription>, StatusCode>>, GeneratorError> {
    let nodes_to_browse = nodes.iter().map(|node| BrowseDescription {
        browse_direction: BrowseDirection::BOTH,
        reference_type_id: NodeId::NULL,
        ..description(node)
    });
    let request = BrowseRequest { nodes_to_browse: nodes_to_browse.collect(), ..Default::default() };
    let response = session.request(request)?;
    response.results.into_iter().map(|result| rest(session, result)).collect()
}

fn description(node: &NodeId) -> BrowseDescription {
    BrowseDescription {
        node_id: node.clone(),
        browse_direction: BrowseDirection::FORWARD,
        reference_type_id: NodeId::numeric(0, reference_type_ids::HIERARCHICAL_REFERENCES),
        include_subtypes: true,
        node_class_mask: 0,
        result_mask: ALL_FIELDS,
    }
}

/// Fetches the rest with BrowseNext.
fn rest(
    session: &mut Session,
    first: BrowseResult,
) -> Result<Result<Vec<ReferenceDescription>, StatusCode>, GeneratorError> {
    if first.status_code.is_bad() {
        return Ok(Err(first.status_code));
    }
    let mut references = first.references;
    let mut point = first.continuation_point;
    while !point.as_bytes().is_empty() {
        let request = BrowseNextRequest {
            release_continuation_points: false,
            continuation_points: vec![point],
            ..Default::default()
        };
        let Some(next) = session.request(request)?.results.into_iter().next() else { break };
        if next.status_code.is_bad() {
            return Ok(Err(next.status_code));
        }
        references.extend(next.references);
        point = next.continuation_point;
    }
    Ok(Ok(references))
}

/// Converts a reference to a child; `None` for nodes on other servers.
fn child(reference: ReferenceDescription) -> Option<Child> {
    Some(Child {
        node_id: reference.node_id.local()?.clone(),
        browse_name: reference.browse_name,
        display_name: reference.display_name,
        node_class: reference.node_class,
        reference_type: reference.reference_type_id,
        type_definition: reference.type_definition.node_id,
    })
}
