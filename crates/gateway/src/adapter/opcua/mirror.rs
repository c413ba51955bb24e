//! Explores the nodes below a node of another server.

use super::bases::Bases;
use super::budget::{Budget, browse, read};
use super::relations::{Link, related};
use crate::fault::Fault;
use crate::opcua::kind_of;
use crate::plant::Signature;
use crate::value::Kind;
use std::collections::{HashMap, HashSet};
use taktwerk::Client;
use taktwerk::client::Attribute;
use taktwerk::client::BrowseOptions;
use taktwerk_schema::{Argument, EUInformation, NodeClass, Range};
use taktwerk_types::{ArrayValues, DataValue, NodeId, QualifiedName, Variant};

/// Most nodes browsed per request.
const BROWSE_MAX: usize = 500;
/// Most nodes of any kind that are visited: per wanted variable, and at least.
const VISITED_MAX: (usize, usize) = (4, 1000);
/// Most properties of one variable.
const PROPERTIES_MAX: usize = 100;
/// Longest name in bytes; longer ones are cut.
const NAME_LEN_MAX: usize = 200;

/// A variable of the other server.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) node: NodeId,
    /// The names from the root to the variable.
    pub(super) path: Vec<String>,
    /// The type of its values, if it is a built-in type.
    pub(super) kind: Option<Kind>,
    pub(super) data_type: NodeId,
    pub(super) is_array: bool,
    pub(super) nature: Nature,
    pub(super) is_writable: bool,
    pub(super) has_history: bool,
    pub(super) range: Option<(f64, f64)>,
    pub(super) units: Option<EUInformation>,
    pub(super) description: Option<String>,
    pub(super) value: Option<Variant>,
}

/// The type and name of a node.
#[derive(Debug, Clone, Default)]
pub(super) struct Nature {
    pub(super) type_definition: NodeId,
    pub(super) browse_name: QualifiedName,
}

/// An object of the other server.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) node: NodeId,
    /// The names from the root to the object.
    pub(super) path: Vec<String>,
    pub(super) nature: Nature,
}

struct Seen {
    node: NodeId,
    path: Vec<String>,
    nature: Nature,
    properties: HashMap<String, NodeId>,
}

impl Seen {
    /// Counts a node below it; false if it has too many.
    fn take(&mut self, name: String, node: NodeId) -> bool {
        let has_room = self.properties.len() < PROPERTIES_MAX;
        if has_room {
            self.properties.entry(name).or_insert(node);
        }
        has_room
    }
}

/// The nodes below a node.
#[derive(Debug, Default)]
pub(super) struct Subtree {
    pub(super) variables: Vec<Found>,
    pub(super) methods: Vec<Method>,
    /// The objects with their names from the root; the root has none.
    pub(super) objects: Vec<Object>,
    /// Whether there were more nodes than the limit. Nodes omitted because of the budget do not count.
    pub(super) is_cut: bool,
    /// The supertypes of the types of arguments.
    pub(super) bases: Bases,
    /// Non-hierarchical references between its nodes.
    pub(super) links: Vec<Link>,
}

/// A method of an object of the other server.
#[derive(Debug)]
pub(super) struct Method {
    pub(super) object: NodeId,
    pub(super) node: NodeId,
    /// The names from the root to the object.
    pub(super) path: Vec<String>,
    pub(super) name: String,
    pub(super) signature: Signature,
}

/// Explores the nodes below a node, without those of namespace 0, which every server has. At most `most` variables and as many
/// methods.
pub(super) async fn subtree(
    client: &Client,
    target: &str,
    root: NodeId,
    (depth_max, most): (usize, usize),
    budget: &mut Budget,
) -> Result<Subtree, Fault> {
    let fail = |error: taktwerk::client::Error| Fault::other(target, error);
    let mut seen: Vec<Seen> = Vec::new();
    let mut methods: Vec<Method> = Vec::new();
    let mut objects = vec![Object { node: root.clone(), path: Vec::new(), nature: Nature::default() }];
    let mut visited: HashSet<NodeId> = HashSet::from([root.clone()]);
    let mut paths: HashSet<Vec<String>> = HashSet::new();
    // Node, parent variable (for properties), and path.
    let mut level: Vec<(NodeId, Option<usize>, Vec<String>)> = vec![(root, None, Vec::new())];
    let mut is_cut = false;
    let mut links: Vec<Link> = Vec::new();
    let visited_max = most.saturating_mul(VISITED_MAX.0).saturating_add(VISITED_MAX.1);
    for _ in 0..depth_max {
        let mut next = Vec::new();
        for part in level.chunks(BROWSE_MAX) {
            let nodes = part.iter().map(|(node, ..)| node.clone()).collect();
            let results = browse(client, nodes, &BrowseOptions::default(), budget).await.map_err(fail)?;
            for ((parent, above, path), references) in part.iter().zip(results) {
                for reference in references {
                    let Some(node) = reference.node_id.local().cloned() else { continue };
                    let name = name_of(reference.browse_name.name.as_str());
                    let type_definition = reference.type_definition.local().cloned().unwrap_or_default();
                    let nature = Nature { type_definition, browse_name: reference.browse_name };
                    if let Some(above) = above.and_then(|above: usize| seen.get_mut(above)) {
                        is_cut |= !above.take(name, node);
                        continue;
                    }
                    if node.ns0().is_some() {
                        continue;
                    }
                    // Objects often share the method node of their type.
                    if reference.node_class == NodeClass::METHOD {
                        if methods.len() < most {
                            let signature = Signature::default();
                            let (object, path) = (parent.clone(), path.clone());
                            methods.push(Method { object, node, path, name, signature });
                        } else {
                            is_cut = true;
                        }
                        continue;
                    }
                    // The node has several parents.
                    if visited.contains(&node) {
                        let (source, kind) = (parent.clone(), reference.reference_type_id);
                        links.push(Link { source, kind, target: node });
                        continue;
                    }
                    // Objects are limited too: a server may return new ones without end.
                    if visited.len() >= visited_max {
                        is_cut = true;
                        continue;
                    }
                    let path = free(&paths, path, name, &node);
                    // The server determines the length of paths.
                    if !budget.take(path.iter().map(|name| name.len() + 24).sum()) {
                        continue;
                    }
                    visited.insert(node.clone());
                    paths.insert(path.clone());
                    match reference.node_class {
                        NodeClass::OBJECT => {
                            objects.push(Object { node: node.clone(), path: path.clone(), nature });
                            next.push((node, None, path));
                        }
                        NodeClass::VARIABLE if seen.len() < most => {
                            next.push((node.clone(), Some(seen.len()), path.clone()));
                            seen.push(Seen { node, path, nature, properties: HashMap::new() });
                        }
                        NodeClass::VARIABLE => is_cut = true,
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
    let variables = describe(client, seen, budget).await.map_err(fail)?;
    let mut bases = Bases::default();
    let methods = sign(client, methods, &mut bases, budget).await.map_err(fail)?;
    let nodes = objects.iter().map(|it| &it.node).chain(variables.iter().map(|it| &it.node));
    let nodes: Vec<NodeId> = nodes.cloned().collect();
    links.extend(related(client, nodes, &visited, budget).await.map_err(fail)?);
    Ok(Subtree { variables, methods, objects, is_cut, bases, links })
}

impl Subtree {
    /// The types of its nodes.
    pub(super) fn types(&self) -> impl Iterator<Item = NodeId> {
        let of_variables =
            self.variables.iter().flat_map(|found| [&found.data_type, &found.nature.type_definition]);
        let of_objects = self.objects.iter().map(|object| &object.nature.type_definition);
        let signatures = self.methods.iter().map(|method| &method.signature);
        let arguments = signatures.flat_map(|it| it.inputs.iter().chain(&it.outputs));
        let of_methods = arguments.map(|argument| &argument.data_type);
        let of_links = self.links.iter().map(|link| &link.kind);
        of_variables.chain(of_objects).chain(of_methods).chain(of_links).cloned()
    }
}

/// Reads the arguments of methods, and the supertypes of their types. Methods whose arguments cannot be read are skipped.
async fn sign(
    client: &Client,
    methods: Vec<Method>,
    bases: &mut Bases,
    budget: &mut Budget,
) -> Result<Vec<Method>, taktwerk::client::Error> {
    let mut found: HashMap<NodeId, Option<Signature>> = HashMap::new();
    let nodes: Vec<NodeId> =
        methods.iter().map(|method| method.node.clone()).collect::<HashSet<_>>().into_iter().collect();
    for part in nodes.chunks(BROWSE_MAX) {
        let results = browse(client, part.to_vec(), &BrowseOptions::default(), budget).await?;
        if budget.exceeded().is_some() {
            break;
        }
        for (node, references) in part.iter().zip(results) {
            let mut signature = Some(Signature::default());
            for reference in references {
                let Some(property) = reference.node_id.local().cloned() else { continue };
                let is_input = match reference.browse_name.name.as_str() {
                    "InputArguments" => true,
                    "OutputArguments" => false,
                    _ => continue,
                };
                let value = read(client, vec![(property, Attribute::Value)], budget).await?;
                // Beyond the limit they are unknown.
                let arguments = value.into_iter().next().and_then(arguments);
                for argument in arguments.iter().flatten() {
                    bases.of(client, &argument.data_type, budget).await?;
                }
                signature = signature.zip(arguments).map(|(signature, arguments)| match is_input {
                    true => Signature { inputs: arguments, ..signature },
                    false => Signature { outputs: arguments, ..signature },
                });
            }
            found.insert(node.clone(), signature);
        }
    }
    let signed = methods.into_iter().filter_map(|method| {
        let signature = found.get(&method.node)?.clone()?;
        Some(Method { signature, ..method })
    });
    Ok(signed.collect())
}

/// The arguments in the value of a property; `None` if they cannot be read.
fn arguments(value: DataValue) -> Option<Vec<Argument>> {
    match value.value {
        Some(Variant::Array(array)) => match &array.values {
            ArrayValues::ExtensionObject(objects) => {
                objects.iter().map(|object| object.decode::<Argument>().ok()).collect()
            }
            _ => None,
        },
        Some(Variant::Empty) | None => Some(Vec::new()),
        _ => None,
    }
}

/// The path of a child node. If a sibling has the same name, the identifier is appended, for example for two alarms of one
/// object, or names of two namespaces.
fn free(paths: &HashSet<Vec<String>>, above: &[String], name: String, node: &NodeId) -> Vec<String> {
    let mut path = above.to_vec();
    path.push(name);
    if paths.contains(&path) {
        let written = node.to_string();
        let identifier = written.rsplit_once(';').map_or(&*written, |(_, identifier)| identifier);
        let name = path.pop().unwrap_or_default();
        path.push(name_of(&format!("{name} ({identifier})")));
    }
    path
}

/// A name that is valid in a path.
fn name_of(name: &str) -> String {
    let name: String =
        name.chars().map(|char| if char.is_control() || char == '/' { '_' } else { char }).collect();
    let mut end = name.len().min(NAME_LEN_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).filter(|name| !name.is_empty()).unwrap_or("_").to_owned()
}

/// The attributes read for each variable.
const ATTRIBUTES: [Attribute; 5] = [
    Attribute::DataType,
    Attribute::Value,
    Attribute::UserAccessLevel,
    Attribute::Description,
    Attribute::ValueRank,
];

async fn describe(
    client: &Client,
    seen: Vec<Seen>,
    budget: &mut Budget,
) -> Result<Vec<Found>, taktwerk::client::Error> {
    let wanted = seen.iter().flat_map(|seen| ATTRIBUTES.map(|attribute| (seen.node.clone(), attribute)));
    let values = read(client, wanted.collect(), budget).await?;
    let property = |seen: &Seen, name: &str| seen.properties.get(name).cloned().unwrap_or_default();
    let has_any =
        |seen: &&Seen| ["EURange", "EngineeringUnits"].iter().any(|name| seen.properties.contains_key(*name));
    let analog: Vec<&Seen> = seen.iter().filter(has_any).collect();
    let wanted = analog.iter().flat_map(|seen| {
        ["EURange", "EngineeringUnits"].map(|name| (property(seen, name), Attribute::Value))
    });
    let properties = read(client, wanted.collect(), budget).await?;
    let analog: HashMap<NodeId, &[DataValue]> =
        analog.iter().map(|seen| seen.node.clone()).zip(properties.chunks(2)).collect();
    let mut found = Vec::new();
    for (seen, values) in seen.iter().zip(values.chunks(ATTRIBUTES.len())) {
        let [data_type, value, access, description, rank] = values else { continue };
        let data_type = match &data_type.value {
            Some(Variant::NodeId(id)) => (**id).clone(),
            _ => NodeId::NULL,
        };
        let kind = kind_of(&data_type, value.value.as_ref());
        // Types of the server's own namespaces may be structures.
        if kind.is_none() && data_type.namespace_index == 0 {
            continue;
        }
        let is_array = match &value.value {
            Some(value) if !value.is_empty() => value.as_array().is_some(),
            _ => rank.value.as_ref().and_then(Variant::as_f64).is_some_and(|rank| rank >= 0.0),
        };
        let properties = analog.get(&seen.node).copied().unwrap_or_default();
        let range: Option<Range> = properties.first().and_then(structure);
        let access = access.value.as_ref().and_then(Variant::as_f64).unwrap_or(0.0) as u8;
        found.push(Found {
            node: seen.node.clone(),
            path: seen.path.clone(),
            kind,
            data_type,
            is_array,
            nature: seen.nature.clone(),
            // CurrentWrite (Part 3 §8.57).
            is_writable: access & 2 != 0,
            // HistoryRead.
            has_history: access & 4 != 0,
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
    use core::time::Duration;

    #[test]
    fn data_from_a_server_is_limited() {
        let node = |number: usize| NodeId::numeric(1, number as u32);
        let mut seen =
            Seen { node: node(0), path: Vec::new(), nature: Nature::default(), properties: HashMap::new() };
        let taken = (0..2 * PROPERTIES_MAX).filter(|number| seen.take(number.to_string(), node(*number)));
        assert_eq!(taken.count(), PROPERTIES_MAX);
        assert_eq!(seen.properties.len(), PROPERTIES_MAX);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn endless_objects_are_limited() {
        let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let plant = server.namespace("urn:example:plant").folder("Plant").unwrap();
        for number in 0..1500 {
            plant.object(&format!("O{number}")).add().unwrap();
        }
        let root = plant.id().clone();
        let server = server.spawn().unwrap();
        let client = Client::connect(&server.url()).await.unwrap();
        let mut budget = Budget::new(64 << 20, Duration::from_secs(60));
        let found = subtree(&client, "plc", root.clone(), (5, 10), &mut budget).await.unwrap();
        // The root counts too.
        assert_eq!((found.objects.len(), found.is_cut), (1040, true));
        let found = subtree(&client, "plc", root.clone(), (5, 200), &mut budget).await.unwrap();
        assert_eq!((found.objects.len(), found.is_cut, budget.exceeded()), (1501, false, None));
        // Nodes within the budget are included.
        let mut budget = Budget::new(250_000, Duration::from_secs(60));
        let found = subtree(&client, "plc", root, (5, 200), &mut budget).await.unwrap();
        assert!(budget.exceeded().is_some() && found.objects.len() < 1501);
    }

    #[test]
    fn names_are_valid_in_paths() {
        assert_eq!(name_of("Line 1"), "Line 1");
        assert_eq!(name_of("a/b\n"), "a_b_");
        assert_eq!(name_of(""), "_");
        assert_eq!(name_of(&"ä".repeat(200)).chars().count(), 100);
    }
}
