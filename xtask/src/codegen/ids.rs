//! Constants for the numeric ids of namespace 0.
//!
//! Names follow the published list of ids: the symbolic name of a node after that of its parent. If that list has the
//! same id, the names must be equal.

use super::names::constant;
use super::node_ids::NodeIds;
use super::output::Output;
use crate::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use taktwerk_nodeset::{Node, NodeClass, NodeSet};

const HAS_ENCODING: u32 = 38;

/// A list of ids of the generated module: file, title, and the published list of the same nodes.
struct List {
    module: &'static str,
    title: &'static str,
    published: &'static str,
}

const LISTS: [List; 7] = [
    List { module: "object_ids", title: "Objects", published: "ObjectIds" },
    List { module: "variable_ids", title: "Variables", published: "VariableIds" },
    List { module: "method_ids", title: "Methods", published: "MethodIds" },
    List { module: "object_type_ids", title: "ObjectTypes", published: "ObjectTypeIds" },
    List { module: "variable_type_ids", title: "VariableTypes", published: "VariableTypeIds" },
    List {
        module: "data_type_ids",
        title: "DataTypes, including those that occur in services only",
        published: "DataTypeIds",
    },
    List { module: "reference_type_ids", title: "ReferenceTypes", published: "ReferenceTypeIds" },
];

/// Writes one file per node class and one for the encodings of data types.
pub(crate) fn generate(set: &NodeSet, published: &NodeIds, output: &mut Output) -> Result<(), Failure> {
    let names = symbolic_names(set)?;
    compare(&names, published)?;
    let mut index = String::from("//! Numeric ids of namespace 0, by node class.\n\n");
    for list in &LISTS {
        let mut ids: Vec<(String, u32)> = set
            .nodes
            .iter()
            .filter(|node| module(node) == Some(list.module))
            .filter_map(|node| {
                names.get(&node.node_id.ns0()?).map(|name| (name.clone(), node.node_id.ns0().unwrap_or(0)))
            })
            .filter(|(name, _)| !name.contains("_Encoding_Default"))
            .collect();
        // Published data types without a node occur only in services.
        if list.module == "data_type_ids" {
            let services = published.get(list.published).into_iter().flatten();
            ids.extend(
                services.filter(|(_, id)| !names.contains_key(id)).map(|(name, id)| (name.clone(), *id)),
            );
        }
        output.rust(
            &format!("crates/schema/src/generated/ids/{}.rs", list.module),
            format!("//! {}.\n\n{}", list.title, constants(ids)),
        );
        let _ = writeln!(index, "pub mod {};", list.module);
    }
    let objects = published.get("ObjectIds").into_iter().flatten();
    let all = objects
        .map(|(name, id)| (name.clone(), *id))
        .chain(names.iter().map(|(id, name)| (name.clone(), *id)));
    let encodings: BTreeSet<(String, u32)> = all
        .filter_map(|(name, id)| {
            let (data_type, encoding) = name.split_once("_Encoding_Default")?;
            Some((format!("{data_type}_{encoding}"), id))
        })
        .collect();
    output.rust(
        "crates/schema/src/generated/ids/encoding_ids.rs",
        format!("//! Encodings of data types.\n\n{}", constants(encodings.into_iter().collect())),
    );
    index.push_str("pub mod encoding_ids;\n");
    output.rust("crates/schema/src/generated/ids.rs", index);
    Ok(())
}

fn constants(mut ids: Vec<(String, u32)>) -> String {
    ids.sort_by_key(|(_, id)| *id);
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in &ids {
        *count.entry(constant(name)).or_default() += 1;
    }
    let mut text = String::from("#![allow(missing_docs)] // the names are the specification's\n\n");
    for (name, id) in ids {
        let name = constant(&name);
        // A name shared by two nodes is ambiguous and left out.
        if count.get(&name) == Some(&1) {
            let _ = writeln!(text, "pub const {name}: u32 = {id};");
        }
    }
    text
}

fn module(node: &Node) -> Option<&'static str> {
    Some(match node.class {
        NodeClass::Object { .. } => "object_ids",
        NodeClass::Variable { .. } => "variable_ids",
        NodeClass::Method { .. } => "method_ids",
        NodeClass::ObjectType { .. } => "object_type_ids",
        NodeClass::VariableType { .. } => "variable_type_ids",
        NodeClass::ReferenceType { .. } => "reference_type_ids",
        NodeClass::DataType { .. } => "data_type_ids",
        NodeClass::View { .. } => return None,
    })
}

/// The symbolic name of every node by id.
fn symbolic_names(set: &NodeSet) -> Result<BTreeMap<u32, String>, Failure> {
    let nodes: BTreeMap<u32, &Node> =
        set.nodes.iter().filter_map(|node| Some((node.node_id.ns0()?, node))).collect();
    let mut names = BTreeMap::new();
    for id in nodes.keys() {
        names.insert(*id, name_of(*id, &nodes, 0)?);
    }
    Ok(names)
}

fn name_of(id: u32, nodes: &BTreeMap<u32, &Node>, depth: usize) -> Result<String, Failure> {
    let node = nodes.get(&id).ok_or_else(|| format!("i={id} is the parent of a node but does not exist"))?;
    if depth > 64 {
        return Err(format!("i={id} is its own ancestor"));
    }
    let own = match &node.symbolic_name {
        Some(name) => name.clone(),
        None => node
            .browse_name
            .name
            .as_str()
            .chars()
            .filter(|character| character.is_alphanumeric() || *character == '_')
            .collect(),
    };
    let data_type = node
        .references
        .iter()
        .find(|reference| !reference.is_forward && reference.reference_type.ns0() == Some(HAS_ENCODING))
        .and_then(|reference| reference.target.ns0());
    if let Some(data_type) = data_type {
        return Ok(format!("{}_Encoding_{own}", name_of(data_type, nodes, depth + 1)?));
    }
    match node.parent.as_ref().and_then(taktwerk_types::NodeId::ns0) {
        Some(parent) => Ok(format!("{}_{own}", name_of(parent, nodes, depth + 1)?)),
        None => Ok(own),
    }
}

fn compare(names: &BTreeMap<u32, String>, published: &NodeIds) -> Result<(), Failure> {
    let mut differences = Vec::new();
    for (name, id) in published.values().flatten() {
        match names.get(id) {
            Some(own) if own != name => differences.push(format!("i={id}: published {name}, derived {own}")),
            _ => {}
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!("derived names of nodes differ from the published ones:\n{}", differences.join("\n")))
}
