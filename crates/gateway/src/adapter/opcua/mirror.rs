//! What there is below a node of another server.

use crate::fault::Fault;
use crate::opcua::kind_of;
use crate::value::Kind;
use std::collections::{HashMap, HashSet};
use taktwerk::Client;
use taktwerk::client::Attribute;
use taktwerk::client::BrowseOptions;
use taktwerk_schema::{EUInformation, NodeClass, Range};
use taktwerk_types::{DataValue, NodeId, Variant};

/// Nodes that are browsed in one request.
const BROWSE_MAX: usize = 500;
/// Names longer than this are cut.
const NAME_LEN_MAX: usize = 200;

/// A variable of the other server.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) node: NodeId,
    /// The names from the root to the variable.
    pub(super) path: Vec<String>,
    pub(super) kind: Kind,
    pub(super) is_writable: bool,
    pub(super) range: Option<(f64, f64)>,
    pub(super) units: Option<EUInformation>,
    pub(super) description: Option<String>,
    pub(super) value: Option<Variant>,
}

struct Seen {
    node: NodeId,
    path: Vec<String>,
    properties: HashMap<String, NodeId>,
}

/// The variables below a node, without those of namespace 0: every server has them, and nobody wants to see them twice. `full` says that there were more than `most`.
pub(super) async fn variables(
    client: &Client,
    target: &str,
    root: NodeId,
    depth_max: usize,
    most: usize,
) -> Result<(Vec<Found>, bool), Fault> {
    let fail = |error: taktwerk::client::Error| Fault::other(target, error);
    let mut seen: Vec<Seen> = Vec::new();
    let mut visited: HashSet<NodeId> = HashSet::from([root.clone()]);
    // The variable above, for properties; the path.
    let mut level: Vec<(NodeId, Option<usize>, Vec<String>)> = vec![(root, None, Vec::new())];
    let mut full = false;
    for _ in 0..depth_max {
        let mut next = Vec::new();
        for part in level.chunks(BROWSE_MAX) {
            let nodes = part.iter().map(|(node, ..)| node.clone());
            let results = client.browse_many(nodes, &BrowseOptions::default()).await.map_err(fail)?;
            for ((_, above, path), result) in part.iter().zip(results) {
                for reference in result.unwrap_or_default() {
                    let Some(node) = reference.node_id.local().cloned() else { continue };
                    let name = name_of(reference.browse_name.name.as_str());
                    if let Some(above) = above.and_then(|above: usize| seen.get_mut(above)) {
                        above.properties.entry(name).or_insert(node);
                        continue;
                    }
                    if node.ns0().is_some() || !visited.insert(node.clone()) {
                        continue;
                    }
                    let mut path = path.clone();
                    path.push(name);
                    match reference.node_class {
                        NodeClass::OBJECT => next.push((node, None, path)),
                        NodeClass::VARIABLE if seen.len() < most => {
                            next.push((node.clone(), Some(seen.len()), path.clone()));
                            seen.push(Seen { node, path, properties: HashMap::new() });
                        }
                        NodeClass::VARIABLE => full = true,
                        _ => {}
                    }
                }
            }
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    let found = describe(client, seen).await.map_err(fail)?;
    Ok((found, full))
}

/// A name that can stand in a path.
fn name_of(name: &str) -> String {
    let name: String =
        name.chars().map(|char| if char.is_control() || char == '/' { '_' } else { char }).collect();
    let mut end = name.len().min(NAME_LEN_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).filter(|name| !name.is_empty()).unwrap_or("_").to_owned()
}

/// Attributes that are read of each variable.
const ATTRIBUTES: [Attribute; 4] =
    [Attribute::DataType, Attribute::Value, Attribute::UserAccessLevel, Attribute::Description];

/// Servers refuse a request without operations.
async fn read(
    client: &Client,
    wanted: Vec<(NodeId, Attribute)>,
) -> Result<Vec<DataValue>, taktwerk::client::Error> {
    if wanted.is_empty() { Ok(Vec::new()) } else { client.read_many(wanted).await }
}

async fn describe(client: &Client, seen: Vec<Seen>) -> Result<Vec<Found>, taktwerk::client::Error> {
    let wanted = seen.iter().flat_map(|seen| ATTRIBUTES.map(|attribute| (seen.node.clone(), attribute)));
    let values = read(client, wanted.collect()).await?;
    let property = |seen: &Seen, name: &str| seen.properties.get(name).cloned().unwrap_or_default();
    let has_any =
        |seen: &&Seen| ["EURange", "EngineeringUnits"].iter().any(|name| seen.properties.contains_key(*name));
    let analog: Vec<&Seen> = seen.iter().filter(has_any).collect();
    let wanted = analog.iter().flat_map(|seen| {
        ["EURange", "EngineeringUnits"].map(|name| (property(seen, name), Attribute::Value))
    });
    let properties = read(client, wanted.collect()).await?;
    let analog: HashMap<NodeId, &[DataValue]> =
        analog.iter().map(|seen| seen.node.clone()).zip(properties.chunks(2)).collect();
    let mut found = Vec::new();
    for (seen, values) in seen.iter().zip(values.chunks(ATTRIBUTES.len())) {
        let [data_type, value, access, description] = values else { continue };
        let data_type = match &data_type.value {
            Some(Variant::NodeId(id)) => (**id).clone(),
            _ => NodeId::NULL,
        };
        let Some(kind) = kind_of(&data_type, value.value.as_ref()) else { continue };
        let properties = analog.get(&seen.node).copied().unwrap_or_default();
        let range: Option<Range> = properties.first().and_then(structure);
        let access = access.value.as_ref().and_then(Variant::as_f64).unwrap_or(0.0) as u8;
        found.push(Found {
            node: seen.node.clone(),
            path: seen.path.clone(),
            kind,
            // CurrentWrite (Part 3 §8.57).
            is_writable: access & 2 != 0,
            range: range.map(|range| (range.low, range.high)).filter(|(low, high)| low < high),
            units: properties.get(1).and_then(structure),
            description: match &description.value {
                Some(Variant::LocalizedText(text)) if !text.text.is_empty() => {
                    Some(text.text.as_str().to_owned())
                }
                _ => None,
            },
            value: value.value.clone(),
        });
    }
    Ok(found)
}

fn structure<T: taktwerk_types::Structure>(value: &DataValue) -> Option<T> {
    match &value.value {
        Some(Variant::ExtensionObject(object)) => object.decode().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_into_paths() {
        assert_eq!(name_of("Line 1"), "Line 1");
        assert_eq!(name_of("a/b\n"), "a_b_");
        assert_eq!(name_of(""), "_");
        assert_eq!(name_of(&"ä".repeat(200)).chars().count(), 100);
    }
}
