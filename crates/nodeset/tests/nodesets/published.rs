//! The published companion specifications: parsed, ordered, remapped, and every value and definition read.
//!
//! They are not in the repository: `cargo xtask nodesets` fetches them. TAKTWERK_NODESETS sets another directory.

use crate::files::{directory, load};
use taktwerk_nodeset::{
    Budget, NodeClass, NodeSet, Problem, TypeDictionary, order_by_dependencies, outdated_models,
};
use taktwerk_types::{Decode, DecodeLimits, Decoder, NodeId, Variant};

const OPC_UA: &str = "http://opcfoundation.org/UA/";

/// The sets that the server must load, and those they depend on.
const COMPANIONS: [&str; 12] = [
    "Opc.Ua.PADIM.NodeSet2.xml",
    "Opc.Ua.MachineTool.NodeSet2.xml",
    "Opc.Ua.Machinery.NodeSet2.xml",
    "Opc.Ua.Machinery.Jobs.Nodeset2.xml",
    "opc.ua.isa95-jobcontrol.nodeset2.xml",
    "Opc.Ua.PackML.NodeSet2.xml",
    "Opc.Ua.IA.NodeSet2.xml",
    "Opc.Ua.Robotics.NodeSet2.xml",
    "Opc.Ua.AutoID.NodeSet2.xml",
    "Opc.Ua.IRDI.NodeSet2.xml",
    "Opc.Ua.Di.NodeSet2.xml",
    "Opc.Ua.Machinery_Result.NodeSet2.xml",
];

fn base_dictionary() -> TypeDictionary {
    let mut types = TypeDictionary::default();
    types.add(&load("Opc.Ua.NodeSet2.xml"));
    types
}

/// Loads files like a server; panics with the user's error message. Returns the number of values read.
fn import(names: &[&str]) -> usize {
    let mut sets: Vec<NodeSet> = names.iter().map(|name| load(name)).collect();
    let order = order_by_dependencies(&sets, &[OPC_UA]).unwrap_or_else(|error| panic!("{error}"));
    let mut types = base_dictionary();
    let mut namespaces = vec![OPC_UA.to_owned(), "urn:server".to_owned()];
    let mut values = 0;
    for index in order {
        let set = &mut sets[index];
        for uri in &set.namespace_uris {
            if !namespaces.contains(uri) {
                namespaces.push(uri.clone());
            }
        }
        let index_of = |uri: &str| namespaces.iter().position(|known| known == uri)?.try_into().ok();
        set.remap(index_of).unwrap_or_else(|error| panic!("{error}"));
        types.add(set);
        let budget = Budget::of(std::slice::from_ref(set));
        for node in &set.nodes {
            let value = set.value_within(node, &types, &budget);
            if let Some(value) = value.unwrap_or_else(|error| panic!("{error}")) {
                structures_decode(&value, &set.file);
                values += 1;
            }
            if let NodeClass::DataType { definition: Some(_), .. } = &node.class {
                let attribute = types.definition_attribute(&node.node_id);
                let attribute = attribute.unwrap_or_else(|error| panic!("{}: {error}", set.file)).unwrap();
                budget.charge(attribute.binary().unwrap().len()).unwrap();
            }
        }
    }
    values
}

/// Structures of namespace 0 in values must be decodable to the last byte.
fn structures_decode(value: &Variant, file: &str) {
    let Variant::Array(array) = value else { return };
    let taktwerk_types::ArrayValues::ExtensionObject(objects) = &array.values else { return };
    for object in objects {
        // Argument: Name, DataType, ValueRank, ArrayDimensions, Description.
        if object.type_id == NodeId::numeric(0, 298) {
            let mut decoder = Decoder::new(object.binary().unwrap(), DecodeLimits::DEFAULT);
            let read = |decoder: &mut Decoder<'_>| -> Result<(), taktwerk_types::DecodeError> {
                taktwerk_types::UaString::decode(decoder)?;
                NodeId::decode(decoder)?;
                i32::decode(decoder)?;
                Vec::<u32>::decode(decoder)?;
                taktwerk_types::LocalizedText::decode(decoder)?;
                Ok(())
            };
            read(&mut decoder).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert_eq!(decoder.remaining(), 0, "{file}");
        }
    }
}

#[test]
fn namespace_zero_reads() {
    let set = load("Opc.Ua.NodeSet2.xml");
    let types = base_dictionary();
    assert!(set.nodes.len() > 5000);
    let values = set.nodes.iter().filter_map(|node| set.value(node, &types).unwrap()).count();
    assert!(values > 1000, "{values}");
}

#[test]
fn companion_specifications_load_together() {
    assert!(import(&COMPANIONS) > 1000);
}

#[test]
fn each_loads_with_what_it_requires() {
    let di = "Opc.Ua.Di.NodeSet2.xml";
    let ia = "Opc.Ua.IA.NodeSet2.xml";
    let machinery = "Opc.Ua.Machinery.NodeSet2.xml";
    import(&[di]);
    import(&["Opc.Ua.PackML.NodeSet2.xml"]);
    import(&[ia, di]);
    import(&[machinery, ia, di]);
    import(&["Opc.Ua.Robotics.NodeSet2.xml", ia, di]);
    import(&["Opc.Ua.AutoID.NodeSet2.xml", di]);
    import(&["Opc.Ua.PADIM.NodeSet2.xml", "Opc.Ua.IRDI.NodeSet2.xml", di]);
    let jobs = ["opc.ua.isa95-jobcontrol.nodeset2.xml", "Opc.Ua.Machinery.Jobs.Nodeset2.xml"];
    import(&["Opc.Ua.MachineTool.NodeSet2.xml", jobs[0], jobs[1], machinery, ia, di]);
}

#[test]
fn a_missing_model_is_named_with_its_line() {
    let set = load("Opc.Ua.Machinery.NodeSet2.xml");
    let error = order_by_dependencies(&[set], &[OPC_UA]).unwrap_err();
    let text = error.to_string();
    assert!(matches!(*error.problem, Problem::MissingModel { .. }), "{text}");
    assert!(error.line > 1 && text.contains("http://opcfoundation.org/UA/DI/"), "{text}");
}

#[test]
fn older_publications_are_reported() {
    let mut sets = vec![load("Opc.Ua.Di.NodeSet2.xml"), load("Opc.Ua.IA.NodeSet2.xml")];
    assert_eq!(outdated_models(&sets, &[]), []);
    for model in &mut sets[0].models {
        model.publication_date = taktwerk_types::UtcTime::parse("2001-01-01T00:00:00Z");
    }
    let warnings = outdated_models(&sets, &[]);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].to_string().contains("2001-01-01"), "{}", warnings[0]);
}

/// The other sets of the package, with their values.
#[test]
fn all_published_sets_load_together() {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".xml") && name != "Opc.Ua.NodeSet2.xml" {
            names.push(name);
        }
    }
    assert!(names.len() >= 30, "{names:?}");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    import(&names);
}
