//! Chooses the nodes of a load: the named ones, or ones found on the server.

use crate::client::Session;
use crate::client::{resolve, walk};
use crate::error::GeneratorError;
use crate::signals;
use crate::values;
use taktwerk_load::attribute::Attribute;
use taktwerk_load::node::NodeSpec;
use taktwerk_schema::ids::object_ids;
use taktwerk_schema::{NodeClass, ReadValueId};
use taktwerk_types::{NodeId, StatusCode};

/// Maximum number of signals to look for.
const SIGNALS_MAX: u32 = 8_000_000;
/// Number of values read at once when checking for values.
const READ_AT_ONCE: usize = 500;
/// Maximum depth when searching for variables.
const DEPTH_MAX: usize = 6;

/// Some stacks reserve namespace 1 and put their signals into a later one.
const NAMESPACES: std::ops::RangeInclusive<u16> = 1..=4;

/// Whether a node is one of the test signals.
#[must_use]
pub fn is_signal(node: &NodeId) -> bool {
    NAMESPACES.into_iter().any(|namespace| *node == signals::id_in(namespace, 0))
}

/// The named nodes; otherwise the signals `ns=1;i=100000`…; otherwise variables found by browsing. At most `wanted`.
///
/// # Errors
/// If no nodes are found, or the server does not answer.
pub fn find(
    session: &mut Session,
    named: &[NodeSpec],
    wanted: Option<u32>,
) -> Result<Vec<NodeId>, GeneratorError> {
    let most = wanted.map_or(usize::MAX, |wanted| wanted as usize);
    if !named.is_empty() {
        let mut nodes = resolve::with_values(session, named)?.ids;
        nodes.truncate(most);
        return Ok(nodes);
    }
    for namespace in NAMESPACES {
        let count = count_signals(session, namespace, wanted.unwrap_or(SIGNALS_MAX))?;
        if count > 0 {
            return Ok((0..count).map(|index| signals::id_in(namespace, index)).collect());
        }
    }
    let found = browse(session, most)?;
    if found.is_empty() {
        return Err(GeneratorError::Usage(
            "no variables were found below Objects: name some with --nodes".to_owned(),
        ));
    }
    Ok(found)
}

/// Number of signals, up to `most`. Their ids are consecutive, so a binary search finds the last one.
fn count_signals(session: &mut Session, namespace: u16, most: u32) -> Result<u32, GeneratorError> {
    if most == 0 || !exists(session, namespace, 0)? {
        return Ok(0);
    }
    if exists(session, namespace, most - 1)? {
        return Ok(most);
    }
    // An existing and a missing signal.
    let (mut low, mut high) = (0, most - 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if exists(session, namespace, middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low + 1)
}

fn exists(session: &mut Session, namespace: u16, index: u32) -> Result<bool, GeneratorError> {
    let id = ReadValueId {
        node_id: signals::id_in(namespace, index),
        attribute_id: Attribute::NODE_CLASS.id(),
        ..Default::default()
    };
    Ok(session.read(vec![id])?.first().is_some_and(|result| result.status() == StatusCode::GOOD))
}

/// Adds the Variables that have a value, until there are `most`.
fn add_with_values(
    session: &mut Session,
    variables: &[NodeId],
    found: &mut Vec<NodeId>,
    most: usize,
) -> Result<(), GeneratorError> {
    for some in variables.chunks(READ_AT_ONCE) {
        let values = session.read(some.iter().cloned().map(values::of).collect())?;
        let readable = some.iter().zip(&values).filter(|(_, value)| !value.status().is_bad());
        found.extend(readable.map(|(id, _)| id.clone()));
        if found.len() >= most {
            found.truncate(most);
            break;
        }
    }
    Ok(())
}

/// Variables below Objects that have a value, except those of the Server object, which describe the server itself.
fn browse(session: &mut Session, most: usize) -> Result<Vec<NodeId>, GeneratorError> {
    let server = NodeId::numeric(0, object_ids::SERVER);
    let mut found = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut level = vec![NodeId::numeric(0, object_ids::OBJECTS_FOLDER)];
    for _ in 0..DEPTH_MAX {
        let (mut next, mut variables) = (Vec::new(), Vec::new());
        for children in walk::children(session, &level)? {
            // Nodes that may not be browsed are skipped.
            for child in children.unwrap_or_default() {
                if child.node_id == server || !seen.insert(child.node_id.clone()) {
                    continue;
                }
                match child.node_class {
                    NodeClass::VARIABLE => variables.push(child.node_id),
                    NodeClass::OBJECT => next.push(child.node_id),
                    _ => {}
                }
            }
        }
        add_with_values(session, &variables, &mut found, most)?;
        if found.len() >= most {
            break;
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    Ok(found)
}
