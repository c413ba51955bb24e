//! Non-hierarchical references between the nodes of a mirror.

use super::budget::{Budget, browse};
use super::translation::Translation;
use crate::plant::Plant;
use std::collections::{HashMap, HashSet};
use taktwerk::Client;
use taktwerk::client::{BrowseOptions, Error};
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_server::space::NodeError;
use taktwerk_types::NodeId;

/// Most nodes browsed per request.
const BROWSE_MAX: usize = 500;

/// A reference from a node to another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Link {
    pub(super) source: NodeId,
    pub(super) kind: NodeId,
    pub(super) target: NodeId,
}

/// Reads the non-hierarchical references between nodes.
pub(super) async fn related(
    client: &Client,
    nodes: Vec<NodeId>,
    visited: &HashSet<NodeId>,
    budget: &mut Budget,
) -> Result<Vec<Link>, Error> {
    let options = BrowseOptions {
        reference_type: NodeId::numeric(0, reference_type_ids::NON_HIERARCHICAL_REFERENCES),
        // References to types are handled separately.
        node_class_mask: (NodeClass::OBJECT.0 | NodeClass::VARIABLE.0).cast_unsigned(),
        ..BrowseOptions::default()
    };
    let mut links = Vec::new();
    for part in nodes.chunks(BROWSE_MAX) {
        let results = browse(client, part.to_vec(), &options, budget).await?;
        for (source, references) in part.iter().zip(results) {
            for reference in references {
                let Some(target) = reference.node_id.local() else { continue };
                if visited.contains(target) {
                    let (source, target) = (source.clone(), target.clone());
                    links.push(Link { source, kind: reference.reference_type_id, target });
                }
            }
        }
    }
    Ok(links)
}

/// Adds references if both nodes and the ReferenceType exist here. `paths` contains the local names of the nodes.
pub(super) fn add(links: &[Link], paths: &HashMap<NodeId, String>, plant: &Plant, translation: &Translation) {
    for link in links {
        let (Some(source), Some(target)) = (paths.get(&link.source), paths.get(&link.target)) else {
            continue;
        };
        let Some(kind) = translation.here(&link.kind) else { continue };
        match plant.space().add_reference(&plant.id(source), &kind, &plant.id(target)) {
            // It exists from an earlier connection, or one of the objects is not shown here.
            Ok(()) | Err(NodeError::ReferenceExists(..) | NodeError::Unknown(_)) => {}
            Err(error) => tracing::debug!(%error, source, target, "a reference is not mirrored"),
        }
    }
}
