//! Reads the types of another server that a mirror needs, with everything that they refer to, and adds them to this server.

use super::budget::{Budget, browse, read};
use super::translation::Translation;
use crate::catalogue::{self, Form, Learnt};
use crate::fault::Fault;
use crate::plant::Plant;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use taktwerk::Client;
use taktwerk::client::{Attribute, BrowseOptions, Error};
use taktwerk_nodeset::export::{ExportNode, ExportReference, attribute, export};
use taktwerk_schema::ids::{object_type_ids, reference_type_ids};
use taktwerk_schema::{Argument, BrowseDirection, NodeClass, StructureDefinition, StructureType};
use taktwerk_types::{ArrayValues, Encode, ExtensionObject, NodeId, QualifiedName, UaString, Variant};
use tokio::task::spawn_blocking;

/// The index of the application's own namespace (Part 5 §6.3.1, NamespaceArray).
const APPLICATION: u16 = 1;
/// Nodes per request.
const BATCH: usize = 100;
/// Most type nodes read for one mirror. The rest is omitted.
const NODES_MAX: usize = 20_000;
/// Most bytes of stored type nodes.
const BYTES_MAX: usize = 32 << 20;
/// Most variables stored per ObjectType, and their maximum depth.
const MEMBERS_MAX: usize = 500;
const MEMBER_DEPTH_MAX: usize = 4;
/// Most supertypes of a DataType.
const DEPTH_MAX: usize = 20;
/// The attributes read for each node.
const ATTRIBUTES: [Attribute; 18] = [
    Attribute::NodeClass,
    Attribute::BrowseName,
    Attribute::DisplayName,
    Attribute::Description,
    Attribute::IsAbstract,
    Attribute::Symmetric,
    Attribute::InverseName,
    Attribute::ContainsNoLoops,
    Attribute::EventNotifier,
    Attribute::Value,
    Attribute::DataType,
    Attribute::ValueRank,
    Attribute::ArrayDimensions,
    Attribute::AccessLevel,
    Attribute::MinimumSamplingInterval,
    Attribute::Historizing,
    Attribute::Executable,
    Attribute::DataTypeDefinition,
];
/// The references, besides hierarchical ones, from a type and its members to nodes that belong to them. Other references may lead
/// into the plant.
const BELONGING: [u32; 5] = [
    reference_type_ids::HAS_TYPE_DEFINITION,
    reference_type_ids::HAS_ENCODING,
    reference_type_ids::GENERATES_EVENT,
    reference_type_ids::ALWAYS_GENERATES_EVENT,
    reference_type_ids::HAS_INTERFACE,
];

/// The nodes read from the other server.
#[derive(Default)]
struct Found {
    nodes: Vec<ExportNode>,
    structures: HashMap<NodeId, StructureDefinition>,
    enumerations: HashSet<NodeId>,
    /// DataTypes by encoding.
    encodings: HashMap<NodeId, NodeId>,
    supertypes: HashMap<NodeId, NodeId>,
    /// The nodes that each node needs.
    needs: HashMap<NodeId, Vec<NodeId>>,
    is_cut: bool,
}

/// Adds types, with all types that they need, to this server unless they exist.
pub(super) async fn learn(
    client: &Client,
    target: &str,
    plant: &Arc<Plant>,
    seeds: impl IntoIterator<Item = NodeId>,
    budget: &mut Budget,
) -> Result<(), Fault> {
    let fail = |error: Error| Fault::other(target, error);
    let namespaces = client.namespaces();
    let seeds: BTreeSet<NodeId> = seeds.into_iter().filter(|seed| is_new(plant, &namespaces, seed)).collect();
    if seeds.is_empty() {
        return Ok(());
    }
    let found = collect(client, plant, seeds, budget).await.map_err(fail)?;
    let is_cut = found.is_cut;
    // Adding thousands of nodes takes long.
    let (own, name) = (Arc::clone(plant), target.to_owned());
    let added = spawn_blocking(move || add(&own, &namespaces, &name, found)).await;
    added.map_err(|_| Fault::other(target, "taking over its types panicked; please report this"))??;
    if is_cut {
        return Err(Fault::other(
            target,
            format!("more than {NODES_MAX} nodes or {BYTES_MAX} bytes of types; the rest is left out"),
        ));
    }
    Ok(())
}

/// Whether a node is in another server's namespace and has not been read. Namespaces of this gateway are excluded: the other
/// server's nodes could otherwise replace tags.
fn is_new(plant: &Plant, namespaces: &[UaString], node: &NodeId) -> bool {
    let here = Translation::new(namespaces, plant).here(node);
    let is_new = |here: NodeId| !is_own(plant, here.namespace_index) && !plant.catalogue().has(&here);
    node.namespace_index != 0 && here.is_none_or(is_new)
}

/// Whether a namespace belongs to the application or to the tags.
fn is_own(plant: &Plant, namespace_index: u16) -> bool {
    namespace_index == APPLICATION || namespace_index == plant.id("").namespace_index
}

/// Whether a reference would show a node of the other server below one of namespace 0, such as Objects or Server. Only subtypes
/// may be added there.
fn hangs_below_standard(reference: &ExportReference) -> bool {
    let is_subtype = reference.reference_type == NodeId::numeric(0, reference_type_ids::HAS_SUBTYPE);
    let is_standard =
        reference.target.node_id.namespace_index == 0 && reference.target.namespace_uri.is_null();
    reference.is_hierarchical && !reference.is_forward && is_standard && !is_subtype
}

async fn collect(
    client: &Client,
    plant: &Plant,
    seeds: BTreeSet<NodeId>,
    budget: &mut Budget,
) -> Result<Found, Error> {
    let hierarchical = hierarchical(client, budget).await?;
    let namespaces = client.namespaces();
    let mut found = Found::default();
    let mut seen = seeds.clone();
    let mut next: Vec<NodeId> = seeds.into_iter().collect();
    let mut left = BYTES_MAX;
    while !next.is_empty() {
        let rest = next.split_off(next.len().min(BATCH));
        let mut wanted = Vec::new();
        for node in describe(client, &next, &hierarchical, budget).await? {
            let bytes = size(&node);
            if bytes > left {
                found.is_cut = true;
                continue;
            }
            left -= bytes;
            let mut needed = Vec::new();
            needs(&node, &mut found, &mut needed);
            needed.retain(|need| need.namespace_index != 0);
            wanted.extend(needed.iter().cloned());
            found.needs.insert(node.node_id.clone(), needed);
            found.nodes.push(node);
        }
        next = rest;
        for node in wanted {
            if !is_new(plant, &namespaces, &node) || seen.contains(&node) {
                continue;
            }
            if seen.len() >= NODES_MAX {
                found.is_cut = true;
                continue;
            }
            seen.insert(node.clone());
            next.push(node);
        }
    }
    Ok(found)
}

/// The hierarchical ReferenceTypes.
async fn hierarchical(client: &Client, budget: &mut Budget) -> Result<HashSet<NodeId>, Error> {
    let options = BrowseOptions {
        reference_type: NodeId::numeric(0, reference_type_ids::HAS_SUBTYPE),
        ..BrowseOptions::default()
    };
    let mut all = HashSet::new();
    let mut next = vec![NodeId::numeric(0, reference_type_ids::HIERARCHICAL_REFERENCES)];
    while !next.is_empty() && all.len() < NODES_MAX {
        let results = browse(client, next.clone(), &options, budget).await?;
        all.extend(next);
        let subtypes = results.into_iter().flatten();
        let subtypes = subtypes.filter_map(|subtype| subtype.node_id.local().cloned());
        let new: BTreeSet<NodeId> = subtypes.filter(|node| !all.contains(node)).collect();
        next = new.into_iter().take(NODES_MAX - all.len().min(NODES_MAX)).collect();
    }
    Ok(all)
}

/// Approximate memory of a node in bytes.
fn size(node: &ExportNode) -> usize {
    let attributes: usize = node.attributes.values().map(|value| value.encode_to_vec().len()).sum();
    attributes + 128 * node.references.len() + 256
}

/// Reads nodes with all their forward and their hierarchical inverse references.
async fn describe(
    client: &Client,
    ids: &[NodeId],
    hierarchical: &HashSet<NodeId>,
    budget: &mut Budget,
) -> Result<Vec<ExportNode>, Error> {
    let references = BrowseOptions {
        reference_type: NodeId::numeric(0, reference_type_ids::REFERENCES),
        ..BrowseOptions::default()
    };
    let inverse = BrowseOptions { direction: BrowseDirection::INVERSE, ..BrowseOptions::default() };
    let forward = browse(client, ids.to_vec(), &references, budget).await?;
    let inverse = browse(client, ids.to_vec(), &inverse, budget).await?;
    let wanted = ids.iter().flat_map(|id| ATTRIBUTES.map(|attribute| (id.clone(), attribute)));
    let mut values = read(client, wanted.collect(), budget).await?.into_iter();
    let mut nodes = Vec::new();
    for ((id, forward), inverse) in ids.iter().zip(forward).zip(inverse) {
        let mut read: BTreeMap<u32, Variant> = BTreeMap::new();
        for attribute in ATTRIBUTES {
            let value = values.next().unwrap_or_default();
            if !value.status().is_bad() {
                read.extend(value.value.map(|value| (attribute as u32, value)));
            }
        }
        let all = forward.into_iter().chain(inverse);
        // A node without class was deleted in the meantime.
        nodes.extend(ExportNode::of_client(id.clone(), read, all, |kind| hierarchical.contains(kind)));
    }
    Ok(nodes)
}

/// Records what a node says about types, and appends the nodes that it needs to `wanted`.
fn needs(node: &ExportNode, found: &mut Found, wanted: &mut Vec<NodeId>) {
    let id = &node.node_id;
    for reference in &node.references {
        let (Some(target), kind) = (reference.target.local(), &reference.reference_type) else { continue };
        let is = |number: u32| kind.ns0() == Some(number);
        let is_needed = if is(reference_type_ids::HAS_SUBTYPE) {
            if !reference.is_forward {
                found.supertypes.insert(id.clone(), target.clone());
            }
            !reference.is_forward
        } else if reference.is_hierarchical {
            // Members of types only: nodes below an instance belong to the plant.
            reference.is_forward && is_of_type(node, found)
        } else {
            if is(reference_type_ids::HAS_ENCODING) && reference.is_forward {
                found.encodings.insert(target.clone(), id.clone());
            }
            reference.is_forward && kind.ns0().is_some_and(|kind| BELONGING.contains(&kind))
        };
        if is_needed {
            wanted.extend([target.clone(), kind.clone()]);
        }
    }
    if let Some(Variant::NodeId(data_type)) = node.attributes.get(&attribute::DATA_TYPE) {
        wanted.push((**data_type).clone());
    }
    if let Some(Variant::ExtensionObject(object)) = node.attributes.get(&attribute::DATA_TYPE_DEFINITION) {
        match object.decode::<StructureDefinition>() {
            Ok(definition) => {
                wanted.extend(definition.fields.iter().map(|field| field.data_type.clone()));
                found.structures.insert(id.clone(), definition);
            }
            Err(_) => drop(found.enumerations.insert(id.clone())),
        }
    }
    let arguments = node.attributes.get(&attribute::VALUE).and_then(arguments).unwrap_or_default();
    wanted.extend(arguments.into_iter().map(|argument| argument.data_type));
}

/// Whether a node is a type or a member of one. Only such nodes are reached from types.
fn is_of_type(node: &ExportNode, found: &Found) -> bool {
    let is_encoding = found.encodings.contains_key(&node.node_id)
        || node.references.iter().any(|reference| {
            let encoding = NodeId::numeric(0, object_type_ids::DATA_TYPE_ENCODING_TYPE);
            reference.target.local() == Some(&encoding)
        });
    !is_encoding && NodeClass(node.node_class) != NodeClass::REFERENCE_TYPE
}

/// The arguments in a value, if any.
fn arguments(value: &Variant) -> Option<Vec<Argument>> {
    match &value.as_array()?.values {
        ArrayValues::ExtensionObject(objects) if !objects.is_empty() => {
            objects.iter().map(|object| object.decode().ok()).collect()
        }
        _ => None,
    }
}

/// Adds the nodes.
fn add(plant: &Plant, namespaces: &[UaString], target: &str, mut found: Found) -> Result<(), Fault> {
    let mut turn = plant.catalogue().turn();
    if found.nodes.len() > plant.catalogue().room() {
        let most = catalogue::NODES_MAX;
        return Err(Fault::other(
            target,
            format!("its types were not added: more than {most} type nodes of other servers are in use"),
        ));
    }
    for node in &found.nodes {
        if let Some(uri) = namespaces.get(usize::from(node.node_id.namespace_index)) {
            plant.space().add_namespace(uri.as_str());
        }
    }
    let translation = Translation::new(namespaces, plant);
    let mut learnt = Learnt::default();
    let forms = forms(&found, plant, &translation);
    learnt.members = members(&found.nodes, &translation);
    for node in &found.nodes {
        let Some(here) = translation.here(&node.node_id) else { continue };
        if NodeClass(node.node_class) == NodeClass::DATA_TYPE {
            learnt.forms.extend(forms.get(&node.node_id).map(|form| (here.clone(), *form)));
        }
        let needs = found.needs.remove(&node.node_id).unwrap_or_default();
        learnt.nodes.insert(here, needs.iter().filter_map(|need| translation.here(need)).collect());
    }
    for (encoding, data_type) in &found.encodings {
        // Encodings of namespace 0 are known already.
        if encoding.namespace_index != 0
            && forms.get(data_type) == Some(&Form::Structure { is_portable: true })
        {
            learnt.encodings.extend(translation.here(encoding));
        }
    }
    // Another source or an imported NodeSet may have added them.
    found
        .nodes
        .retain(|node| translation.here(&node.node_id).is_some_and(|here| !plant.space().contains(&here)));
    for node in &mut found.nodes {
        node.references.retain(|reference| !hangs_below_standard(reference));
        let Some(value) = node.attributes.remove(&attribute::VALUE) else { continue };
        let value = match arguments(&value) {
            Some(arguments) => Some(with_types_of(&translation, arguments)),
            None => is_plain(&value).then_some(value),
        };
        node.attributes.extend(value.map(|value| (attribute::VALUE, value)));
    }
    let text = (!found.nodes.is_empty()).then(|| {
        let uris: Vec<String> = namespaces.iter().map(|uri| uri.as_str().to_owned()).collect();
        let exported = export(&uris, &found.nodes, taktwerk_net::clock::wall());
        if let Some(id) = exported.changed_ids.first() {
            let id = id.to_string();
            tracing::warn!(
                source = target,
                id,
                "a type has NodeIds with control characters or white space at the end; they \
                 differ in this server"
            );
        }
        // Required models exist here already, or were omitted intentionally.
        let lines = exported.text.lines().filter(|line| !line.trim_start().starts_with("<RequiredModel "));
        lines.collect::<Vec<_>>().join("\n")
    });
    let added = plant.catalogue().add(&mut turn, plant.space(), target, text, learnt);
    added.map_err(|error| Fault::other(target, format!("its types cannot be added: {error}")))
}

/// The paths of the variables that ObjectTypes declare, including nested ones.
fn members(nodes: &[ExportNode], translation: &Translation) -> HashMap<NodeId, Vec<Vec<QualifiedName>>> {
    let known: HashMap<&NodeId, &ExportNode> = nodes.iter().map(|node| (&node.node_id, node)).collect();
    let class = |node: &ExportNode| NodeClass(node.node_class);
    let types = nodes.iter().filter(|node| class(node) == NodeClass::OBJECT_TYPE);
    let of_type = |node: &ExportNode| {
        let mut found: Vec<Vec<QualifiedName>> = Vec::new();
        let mut next: Vec<(Vec<QualifiedName>, &ExportNode)> = vec![(Vec::new(), node)];
        // Members may refer to each other in a cycle.
        let mut left = MEMBERS_MAX;
        while let Some((path, at)) = next.pop().filter(|_| left > 0) {
            left -= 1;
            let below =
                at.references.iter().filter(|reference| reference.is_hierarchical && reference.is_forward);
            for member in below.filter_map(|reference| known.get(reference.target.local()?)) {
                let is_variable = class(member) == NodeClass::VARIABLE;
                let Some(name) = translation.name(&member.browse_name) else { continue };
                if (is_variable || class(member) == NodeClass::OBJECT) && found.len() < MEMBERS_MAX {
                    let path: Vec<QualifiedName> = path.iter().cloned().chain([name]).collect();
                    found.extend(is_variable.then(|| path.clone()));
                    if path.len() < MEMBER_DEPTH_MAX && next.len() < MEMBERS_MAX {
                        next.push((path, member));
                    }
                }
            }
        }
        // Short paths first, because the number of event fields is limited.
        found.sort_by_key(Vec::len);
        Some((translation.here(&node.node_id)?, found)).filter(|(_, found)| !found.is_empty())
    };
    types.filter_map(of_type).collect()
}

/// Arguments with the local ids of their types.
fn with_types_of(translation: &Translation, arguments: Vec<Argument>) -> Variant {
    let translated = arguments.into_iter().map(|mut argument| {
        argument.data_type = translation.here(&argument.data_type).unwrap_or_default();
        ExtensionObject::new(&argument)
    });
    Variant::from(translated.collect::<Vec<_>>())
}

/// Whether a value has a built-in type, or is a structure of namespace 0.
fn is_plain(value: &Variant) -> bool {
    match value {
        Variant::ExtensionObject(object) => object.type_id.namespace_index == 0,
        Variant::Array(array) => match &array.values {
            ArrayValues::ExtensionObject(objects) => {
                objects.iter().all(|object| object.type_id.namespace_index == 0)
            }
            ArrayValues::Variant(values) => values.iter().all(is_plain),
            _ => true,
        },
        Variant::DataValue(_) => false,
        _ => true,
    }
}

/// Determines the forms of DataTypes. Each type is visited once, because the server controls how they refer to each other: all
/// structures begin as portable, then those with a field that is not portable are excluded.
fn forms(found: &Found, plant: &Plant, translation: &Translation) -> HashMap<NodeId, Form> {
    let unknown = Form::Structure { is_portable: false };
    let mut forms = HashMap::new();
    let mut users: HashMap<&NodeId, Vec<&NodeId>> = HashMap::new();
    let mut foreign: Vec<&NodeId> = Vec::new();
    let types = found.nodes.iter().filter(|node| NodeClass(node.node_class) == NodeClass::DATA_TYPE);
    let types =
        types.map(|node| &node.node_id).chain(found.structures.keys()).chain(found.encodings.values());
    for data_type in types {
        let is_portable = match shape(found, plant, translation, data_type) {
            Shape::Known(form) => {
                forms.insert(data_type.clone(), form);
                continue;
            }
            Shape::Structure(id, definition) => {
                let is_fixed = [
                    StructureType::STRUCTURE,
                    StructureType::STRUCTURE_WITH_OPTIONAL_FIELDS,
                    StructureType::UNION,
                ]
                .contains(&definition.structure_type);
                if id != data_type {
                    users.entry(id).or_default().push(data_type);
                }
                let mut is_portable = is_fixed;
                for field in &definition.fields {
                    match shape(found, plant, translation, &field.data_type) {
                        Shape::Known(form) => is_portable &= form.is_portable(),
                        Shape::Structure(used, _) => users.entry(used).or_default().push(data_type),
                    }
                }
                is_portable
            }
        };
        forms.insert(data_type.clone(), Form::Structure { is_portable });
        if !is_portable {
            foreign.push(data_type);
        }
    }
    while let Some(data_type) = foreign.pop() {
        for user in users.remove(data_type).unwrap_or_default() {
            forms.insert(user.clone(), unknown);
            foreign.push(user);
        }
    }
    forms
}

/// What is known of a DataType without its fields.
enum Shape<'a> {
    Known(Form),
    /// It depends on the fields of this type, which may be a supertype.
    Structure(&'a NodeId, &'a StructureDefinition),
}

fn shape<'a>(found: &'a Found, plant: &Plant, translation: &Translation, data_type: &'a NodeId) -> Shape<'a> {
    let mut at = data_type;
    for _ in 0..DEPTH_MAX {
        if let Some(number) = at.ns0() {
            if is_plain_type(number) {
                return Shape::Known(Form::Plain);
            }
            break;
        }
        if let Some((id, definition)) = found.structures.get_key_value(at) {
            return Shape::Structure(id, definition);
        }
        if found.enumerations.contains(at) {
            return Shape::Known(Form::Plain);
        }
        if let Some(known) = translation.here(at).and_then(|here| plant.catalogue().form(&here)) {
            return Shape::Known(known);
        }
        match found.supertypes.get(at) {
            Some(above) => at = above,
            None => break,
        }
    }
    Shape::Known(Form::Structure { is_portable: false })
}

/// DataTypes of namespace 0 whose values have the same meaning on every server.
fn is_plain_type(number: u32) -> bool {
    // Built-in types without node ids and qualified names; numbers, Enumeration, Image; Duration and similar; Range and
    // EUInformation.
    // EUInformation.
    matches!(number, 1..=16 | 19 | 21 | 26..=30 | 288..=290 | 294 | 295 | 884 | 887)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::StructureField;

    #[test]
    fn types_with_node_ids_are_not_plain() {
        let plain = [1, 11, 12, 15, 19, 21, 26, 29, 290, 294, 884];
        assert!(plain.into_iter().all(is_plain_type));
        // NodeId, ExpandedNodeId, QualifiedName, Structure, DataValue, BaseDataType, Argument
        assert!([17, 18, 20, 22, 23, 24, 296].into_iter().all(|number| !is_plain_type(number)));
    }

    #[test]
    fn only_subtypes_are_added_below_namespace_zero() {
        let reference = |kind, is_forward, target: NodeId| ExportReference {
            reference_type: NodeId::numeric(0, kind),
            is_hierarchical: true,
            is_forward,
            target: target.into(),
        };
        let (subtype, organizes) = (reference_type_ids::HAS_SUBTYPE, reference_type_ids::ORGANIZES);
        let objects = NodeId::numeric(0, 85);
        assert!(hangs_below_standard(&reference(organizes, false, objects.clone())));
        assert!(!hangs_below_standard(&reference(subtype, false, NodeId::numeric(0, 58))));
        assert!(!hangs_below_standard(&reference(organizes, true, objects)));
        assert!(!hangs_below_standard(&reference(organizes, false, node(1))));
    }

    #[test]
    fn types_of_servers_are_limited() {
        let plant = plant();
        let most = catalogue::NODES_MAX as u32;
        let nodes = (0..most).map(|number| (NodeId::numeric(5, number), Vec::new())).collect();
        let learnt = Learnt { nodes, ..Learnt::default() };
        let catalogue = plant.catalogue();
        catalogue.add(&mut catalogue.turn(), plant.space(), "other", None, learnt).unwrap();
        assert_eq!(plant.catalogue().room(), 0);
        let uri = |text: &str| UaString::from(text);
        let namespaces = [uri("http://opcfoundation.org/UA/"), uri("urn:other"), uri("urn:new")];
        let node = ExportNode::of_client(
            NodeId::numeric(2, 1),
            BTreeMap::from([(2, Variant::Int32(NodeClass::OBJECT_TYPE.0))]),
            [],
            |_| true,
        );
        let found = Found { nodes: node.into_iter().collect(), ..Found::default() };
        let error = add(&plant, &namespaces, "other", found).unwrap_err().to_string();
        assert!(error.contains("100000 type nodes"), "{error}");
        assert!(!plant.space().namespaces().iter().any(|known| &**known == "urn:new"));
    }

    fn plant() -> Plant {
        let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        Plant::new(server.namespace("urn:taktwerk:gateway"))
    }

    fn node(number: usize) -> NodeId {
        NodeId::numeric(5, number as u32)
    }

    /// Structures with the types of their fields.
    fn found<const N: usize>(structures: [(usize, Vec<NodeId>); N]) -> Found {
        let mut found = Found::default();
        for (number, fields) in structures {
            let field = |data_type| StructureField { data_type, ..StructureField::default() };
            let fields = fields.into_iter().map(field).collect();
            let definition = StructureDefinition { fields, ..StructureDefinition::default() };
            found.structures.insert(node(number), definition);
        }
        found
    }

    #[test]
    fn the_time_for_nested_structures_is_bounded() {
        let plant = plant();
        let translation = Translation::new(&[], &plant);
        let mut all = found([]);
        for number in 0..18 {
            all.structures.extend(found([(number, vec![node(number + 1); 10])]).structures);
        }
        all.structures.extend(found([(18, vec![NodeId::numeric(0, 11)])]).structures);
        assert!(forms(&all, &plant, &translation).values().all(|form| form.is_portable()));
        // A non-portable structure at the end of the chain, and cycles.
        all.structures.extend(found([(18, vec![NodeId::numeric(0, 17)])]).structures);
        assert!(!forms(&all, &plant, &translation).values().any(|form| form.is_portable()));
        let circle = found([(1, vec![node(2)]), (2, vec![node(1), node(3)]), (3, vec![node(3)])]);
        assert!(forms(&circle, &plant, &translation).values().all(|form| form.is_portable()));
        let broken = found([(1, vec![node(2)]), (2, vec![node(1), node(3)])]);
        assert!(!forms(&broken, &plant, &translation).values().any(|form| form.is_portable()));
    }
}
