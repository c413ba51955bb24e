//! The PubSub components with their states (Part 14 §9.1), limited to those that the visitor may see.

use super::{Problem, Who};
use axum::Json;
use serde_json::{Value, json};
use taktwerk::client::{Attribute, BrowseOptions};
use taktwerk::{Client, NodeId};
use taktwerk_schema::ReferenceDescription;
use taktwerk_schema::ids::{object_ids, object_type_ids as types};

/// Maximum number of components.
const COMPONENTS_MAX: usize = 500;
/// Depth of the hierarchy: PublishSubscribe, connections, groups, writers and readers.
const LEVELS: usize = 4;
/// Names of PubSubState (Part 14 §6.2.1).
const STATES: [&str; 5] = ["Disabled", "Paused", "Operational", "Error", "PreOperational"];

/// Display names of components, by their type.
const KINDS: [(u32, &str); 5] = [
    (types::PUB_SUB_CONNECTION_TYPE, "Connection"),
    (types::WRITER_GROUP_TYPE, "WriterGroup"),
    (types::READER_GROUP_TYPE, "ReaderGroup"),
    (types::DATA_SET_WRITER_TYPE, "DataSetWriter"),
    (types::DATA_SET_READER_TYPE, "DataSetReader"),
];

#[derive(Debug)]
struct Component {
    node: NodeId,
    name: String,
    kind: &'static str,
    level: usize,
    /// NodeId of its State.
    status: Option<NodeId>,
    state: Option<&'static str>,
    children: Vec<usize>,
}

/// Lists all components, each after its parent.
pub(crate) async fn list(Who(visitor): Who) -> Result<Json<Value>, Problem> {
    let (mut all, is_cut) = components(&visitor.client).await?;
    states(&visitor.client, &mut all).await?;
    let mut shown = Vec::new();
    let mut next: Vec<usize> = all.first().map(|root| root.children.clone()).unwrap_or_default();
    next.reverse();
    while let Some(component) = next.pop().and_then(|at| all.get(at)) {
        next.extend(component.children.iter().rev());
        shown.push(json!({
            "id": component.node.to_string(),
            "name": component.name,
            "kind": component.kind,
            "level": component.level,
            "state": component.state,
        }));
    }
    let state = all.first().and_then(|root| root.state);
    Ok(Json(json!({ "state": state, "components": shown, "isCut": is_cut })))
}

/// Converts a reference to a component, if its target is one.
fn component(reference: &ReferenceDescription, level: usize) -> Option<Component> {
    let kind = reference.type_definition.local()?.ns0()?;
    let (_, kind) = KINDS.iter().find(|(known, _)| *known == kind)?;
    let node = reference.node_id.local()?.clone();
    let name = reference.browse_name.name.as_str().to_owned();
    Some(Component { node, name, kind, level, status: None, state: None, children: Vec::new() })
}

/// PublishSubscribe and the components below it, level by level, and whether the list is incomplete.
async fn components(client: &Client) -> Result<(Vec<Component>, bool), Problem> {
    let root = Component {
        node: NodeId::numeric(0, object_ids::PUBLISH_SUBSCRIBE),
        name: String::new(),
        kind: "PublishSubscribe",
        level: 0,
        status: None,
        state: None,
        children: Vec::new(),
    };
    let (mut all, mut first, mut is_cut) = (vec![root], 0, false);
    for level in 1..=LEVELS {
        let nodes: Vec<NodeId> = all.iter().skip(first).map(|component| component.node.clone()).collect();
        let results = client.browse_many(nodes, &BrowseOptions::default()).await?;
        let (parents, mut found) = (first, Vec::new());
        first = all.len();
        for (at, references) in (parents..).zip(results) {
            for reference in references.iter().flatten() {
                if reference.browse_name.name.as_str() == "Status"
                    && let Some(parent) = all.get_mut(at)
                {
                    parent.status = reference.node_id.local().cloned();
                }
                let Some(component) = component(reference, level) else { continue };
                if first + found.len() >= COMPONENTS_MAX {
                    is_cut = true;
                    continue;
                }
                if let Some(parent) = all.get_mut(at) {
                    parent.children.push(first + found.len());
                }
                found.push(component);
            }
        }
        all.append(&mut found);
        if first == all.len() {
            break;
        }
    }
    Ok((all, is_cut))
}

/// Reads the states. The state is missing if the visitor may not read it.
async fn states(client: &Client, all: &mut [Component]) -> Result<(), Problem> {
    let wanted = |(at, component): (usize, &Component)| Some((at, component.status.clone()?));
    let status: Vec<(usize, NodeId)> = all.iter().enumerate().filter_map(wanted).collect();
    let nodes = status.iter().map(|(_, node)| node.clone());
    let results = client.browse_many(nodes, &BrowseOptions::default()).await?;
    let state = |references: Vec<ReferenceDescription>| {
        let found = references.into_iter().find(|it| it.browse_name.name.as_str() == "State")?;
        found.node_id.local().cloned()
    };
    let found: Vec<(usize, NodeId)> = status
        .iter()
        .zip(results)
        .filter_map(|((at, _), references)| Some((*at, state(references.ok()?)?)))
        .collect();
    let values = client.read_many(found.iter().map(|(_, node)| (node.clone(), Attribute::Value))).await?;
    for ((at, _), value) in found.iter().zip(values) {
        let number = value.value.and_then(|value| i32::try_from(value).ok());
        let name = number.and_then(|number| STATES.get(usize::try_from(number).ok()?).copied());
        if let Some(component) = all.get_mut(*at) {
            component.state = name;
        }
    }
    Ok(())
}
