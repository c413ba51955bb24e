//! Replacing imported files.

use super::*;
use crate::history::{MemoryStore, Rule};
use crate::space::build::Under;
use crate::space::node::NodeKind;
use std::sync::Arc;
use taktwerk_schema::AccessLevelType;
use taktwerk_types::QualifiedName;

const MODEL: &str = r#"<?xml version="1.0"?>
<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd">
  <NamespaceUris><Uri>urn:pumps</Uri></NamespaceUris>
  <Models><Model ModelUri="urn:pumps"><RequiredModel ModelUri="http://opcfoundation.org/UA/"/></Model></Models>
  <UAObjectType NodeId="ns=1;i=1" BrowseName="1:PumpType">
    <References><Reference ReferenceType="i=45" IsForward="false">i=58</Reference></References></UAObjectType>
  <UAObject NodeId="ns=1;i=2" BrowseName="1:Pump"><References>
      <Reference ReferenceType="i=35" IsForward="false">i=85</Reference>
      <Reference ReferenceType="i=40">ns=1;i=1</Reference></References></UAObject>
  <UAVariable NodeId="ns=1;i=3" BrowseName="1:Speed" DataType="i=11" AccessLevel="3"><References>
      <Reference ReferenceType="i=47" IsForward="false">ns=1;i=2</Reference>
      <Reference ReferenceType="i=40">i=63</Reference></References>
    <Value><Double xmlns="http://opcfoundation.org/UA/2008/02/Types.xsd">12.5</Double></Value></UAVariable>
  <UAVariable NodeId="ns=1;i=4" BrowseName="1:Level" DataType="i=11"><References>
      <Reference ReferenceType="i=47" IsForward="false">ns=1;i=2</Reference>
      <Reference ReferenceType="i=40">i=63</Reference></References></UAVariable>
</UANodeSet>"#;
const BUILT_ON_IT: &str = r#"<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd">
  <NamespaceUris><Uri>urn:more</Uri></NamespaceUris>
  <Models><Model ModelUri="urn:more"><RequiredModel ModelUri="urn:pumps"/></Model></Models>
</UANodeSet>"#;

const NOW: UtcTime = UtcTime::NULL;
const KIND: NodeId = NodeId::numeric(2, 1);
const PUMP: NodeId = NodeId::numeric(2, 2);
const SPEED: NodeId = NodeId::numeric(2, 3);
const LEVEL: NodeId = NodeId::numeric(2, 4);
/// The application's pump.
const OWN: NodeId = NodeId::numeric(1, 7);

fn file(text: &str) -> Vec<(String, String)> {
    vec![("pumps.xml".to_owned(), text.to_owned())]
}

/// A space with the model, and with a pump of the application below the model's.
fn loaded() -> (AddressSpace, Importer, Batch) {
    let space = AddressSpace::new(1, 16, "urn:test");
    let mut importer = Importer::new(TypeDictionary::default());
    let imported = importer.import(&space, &file(MODEL), NOW).unwrap();
    assert_eq!((imported.node_count, imported.warnings.len()), (4, 0));
    let spec = NodeSpec::object(OWN, QualifiedName::new(1, "Own"));
    let under =
        Under { parent: &PUMP, reference_type: &NodeId::numeric(0, 35), type_definition: Some(&KIND) };
    space.add_node(spec, under, NOW).unwrap();
    (space, importer, imported.batch)
}

fn replace(space: &AddressSpace, importer: &mut Importer, batch: Batch, text: &str) -> Imported {
    let prepared = importer.prepare(space, &file(text), Some(batch)).unwrap();
    importer.replace(space, prepared, NOW)
}

/// All references, with ids.
fn graph(space: &AddressSpace) -> BTreeSet<(NodeId, NodeId, bool, NodeId)> {
    let nodes = space.read();
    let mut all = BTreeSet::new();
    for id in [KIND, PUMP, SPEED, LEVEL, OWN, NodeId::numeric(0, 85), NodeId::numeric(0, 58)] {
        let Some(ix) = nodes.resolve(id.as_ref()) else { continue };
        nodes.references(ix, |reference| {
            let (kind, target) = (nodes.id_of(reference.reference_type), nodes.id_of(reference.target));
            assert!(
                all.insert((id.clone(), kind, reference.is_forward, target)),
                "a reference is there twice"
            );
            true
        });
    }
    all
}

#[test]
fn identical_files_change_nothing() {
    let (space, mut importer, batch) = loaded();
    let speed = space.variable(&SPEED).unwrap();
    speed.set_at(99.0, NOW);
    let before = graph(&space);
    // Line numbers do not matter.
    let moved = MODEL.replace("  <UAObject ", "\n\n  <UAObject ");
    for text in [MODEL, &moved] {
        let imported = replace(&space, &mut importer, batch, text);
        assert_eq!((imported.node_count, imported.deleted_count, imported.batch), (0, 0, batch));
    }
    assert_eq!(graph(&space), before);
    assert_eq!(space.variable(&SPEED).unwrap().get().value, Some(99.0.into()));
}

#[test]
fn only_changed_nodes_are_recreated() {
    let (space, mut importer, batch) = loaded();
    let (speed, level) = (space.variable(&SPEED).unwrap(), space.variable(&LEVEL).unwrap());
    speed.set_at(99.0, NOW);
    level.set_at(1.0, NOW);
    let before = graph(&space);
    // The parent, the type and one of the variables change; the other variable does not.
    let text = MODEL
        .replace("BrowseName=\"1:PumpType\"", "BrowseName=\"1:PumpType\" IsAbstract=\"true\"")
        .replace("BrowseName=\"1:Pump\"", "BrowseName=\"1:Pump\" EventNotifier=\"1\"")
        .replace("\"1:Level\" DataType=\"i=11\"", "\"1:Level\" DataType=\"i=10\"");
    let imported = replace(&space, &mut importer, batch, &text);
    assert_eq!((imported.node_count, imported.deleted_count), (3, 3));
    assert_eq!(imported.warnings, [""; 0]);
    // All references are as before, including those of the application's pump.
    assert_eq!(graph(&space), before);
    assert_eq!(space.variable(&SPEED).unwrap().get().value, Some(99.0.into()));
    speed.set_at(100.0, NOW);
    assert_eq!(space.variable(&SPEED).unwrap().get().value, Some(100.0.into()), "the handle is still valid");
    assert_eq!(
        space.variable(&LEVEL).unwrap().get().value.unwrap_or_default(),
        taktwerk_types::Variant::Empty
    );
    // And back again.
    let imported = replace(&space, &mut importer, batch, MODEL);
    assert_eq!((imported.node_count, imported.deleted_count), (3, 3));
    assert_eq!(graph(&space), before);
}

#[test]
fn nodes_removed_from_all_files_are_deleted() {
    let (space, mut importer, batch) = loaded();
    let without = format!("{}</UANodeSet>", MODEL.split("  <UAVariable NodeId=\"ns=1;i=4\"").next().unwrap());
    let imported = replace(&space, &mut importer, batch, &without);
    assert_eq!((imported.node_count, imported.deleted_count), (0, 1));
    assert!(!space.contains(&LEVEL) && space.contains(&SPEED));
    // Without files, only the application's nodes remain.
    let prepared = importer.prepare(&space, &[], Some(batch)).unwrap();
    let imported = importer.replace(&space, prepared, NOW);
    assert_eq!((imported.node_count, imported.deleted_count), (0, 3));
    assert!(!space.contains(&KIND) && !space.contains(&PUMP) && space.contains(&OWN));
    let imported = replace(&space, &mut importer, batch, MODEL);
    assert_eq!((imported.node_count, imported.deleted_count), (4, 0));
}

#[test]
fn references_of_files_are_added_and_removed() {
    let (space, mut importer, batch) = loaded();
    let before = graph(&space);
    let organizes = r#"<Reference ReferenceType="i=35" IsForward="false">i=85</Reference>"#;
    replace(&space, &mut importer, batch, &MODEL.replace(organizes, ""));
    assert_eq!(graph(&space).len(), before.len() - 2);
    assert!(space.contains(&PUMP));
    replace(&space, &mut importer, batch, MODEL);
    assert_eq!(graph(&space), before);
}

#[test]
fn invalid_files_change_nothing() {
    let (space, mut importer, batch) = loaded();
    let before = (graph(&space), space.node_count());
    let refused = |importer: &mut Importer, files: &[(String, String)], instead| {
        importer.prepare(&space, files, instead).unwrap_err().to_string()
    };
    let text = refused(&mut importer, &file(&MODEL.replace("12.5", "fast")), Some(batch));
    assert!(text.starts_with("pumps.xml:"), "{text}");
    // Ids that are already in use.
    let text = refused(&mut importer, &file(MODEL), None);
    assert!(text.contains("ns=2;i=1"), "{text}");
    assert_eq!((graph(&space), space.node_count()), before);
    // A model that another one requires.
    importer.import(&space, &file(BUILT_ON_IT), NOW).unwrap();
    let text = importer.prepare(&space, &[], Some(batch)).unwrap_err().to_string();
    assert!(text.contains("urn:more") && text.contains("urn:pumps"), "{text}");
    assert!(importer.prepare(&space, &file(MODEL), Some(batch)).is_ok());
}

#[test]
fn nodes_that_are_removed_can_be_imported_again() {
    let (space, mut importer, batch) = loaded();
    assert_eq!(importer.vacant(), None);
    // The application's own node does not belong to the importer.
    let all = BTreeSet::from([KIND, PUMP, SPEED, LEVEL, OWN]);
    assert_eq!(importer.remove(&space, &all, NOW), 4);
    assert!([KIND, PUMP, SPEED, LEVEL].iter().all(|id| !space.contains(id)) && space.contains(&OWN));
    assert_eq!(importer.vacant(), Some(batch));
    assert_eq!(importer.remove(&space, &all, NOW), 0);
    let again = replace(&space, &mut importer, batch, &MODEL.replace("12.5", "13.5"));
    assert_eq!((again.node_count, again.deleted_count, again.warnings.len()), (4, 0, 0));
    assert_eq!((again.batch, importer.vacant()), (batch, None));
    // Removing a part: nodes that refer to it stay.
    assert_eq!(importer.remove(&space, &BTreeSet::from([SPEED]), NOW), 1);
    assert!(graph(&space).iter().all(|(from, _, _, to)| ![from, to].contains(&&SPEED)));
    let whole = replace(&space, &mut importer, batch, MODEL);
    assert_eq!((whole.node_count, whole.deleted_count), (1, 0));
}

#[test]
fn removed_data_types_are_unknown() {
    let text = MODEL.replace(
        "</UANodeSet>",
        r#"<UADataType NodeId="ns=1;i=9" BrowseName="1:Place"><References>
          <Reference ReferenceType="i=45" IsForward="false">i=22</Reference>
          <Reference ReferenceType="i=38">ns=1;i=10</Reference></References>
          <Definition Name="1:Place"><Field Name="X" DataType="i=11"/></Definition></UADataType>
        <UAObject NodeId="ns=1;i=10" BrowseName="Default Binary"><References>
          <Reference ReferenceType="i=40">i=76</Reference></References></UAObject></UANodeSet>"#,
    );
    let space = AddressSpace::new(1, 16, "urn:test");
    let mut importer = Importer::new(TypeDictionary::namespace_zero());
    importer.import(&space, &file(&text), NOW).unwrap();
    let (place, encoding) = (NodeId::numeric(2, 9), NodeId::numeric(2, 10));
    assert_eq!(importer.types().by_encoding(&encoding), Some(&place));
    assert_eq!(importer.remove(&space, &BTreeSet::from([place.clone(), encoding.clone()]), NOW), 2);
    assert!(importer.types().get(&place).is_none() && importer.types().by_encoding(&encoding).is_none());
}

#[test]
fn the_history_of_a_changed_variable_is_kept() {
    let (space, mut importer, batch) = loaded();
    space.set_history_store(Arc::new(MemoryStore::new(1)));
    let rule = Rule { deadband: 0.5, ..Rule::default() };
    space.historize(&LEVEL, true, rule, NOW).unwrap();
    let changed = MODEL.replace("\"1:Level\" DataType=\"i=11\"", "\"1:Level\" DataType=\"i=10\"");
    let imported = replace(&space, &mut importer, batch, &changed);
    assert_eq!((imported.node_count, imported.deleted_count), (1, 1));
    let recorded = |id: &NodeId| {
        let nodes = space.read();
        let node = nodes.find(id).unwrap();
        let historizing =
            nodes.dynamic(node).unwrap().variable_extra().is_some_and(|extra| extra.historizing);
        let NodeKind::Variable(variable) = &nodes.dynamic(node).unwrap().kind else { panic!("no Variable") };
        let bits = AccessLevelType::HISTORY_READ.0 | AccessLevelType::HISTORY_WRITE.0;
        (nodes.history(node).map(|history| history.rule), variable.access_level & bits == bits, historizing)
    };
    assert_eq!(recorded(&LEVEL), (Some(rule), true, true));
    assert_eq!(recorded(&SPEED), (None, false, false));
}

/// MODEL with another type between, its instance, and a Boolean DataType. Then changes, and the nodes that they affect.
#[test]
fn a_change_affects_nodes_that_cannot_be_used_as_before() {
    let more = r#"
  <UAObjectType NodeId="ns=1;i=5" BrowseName="1:FastPumpType">
    <References><Reference ReferenceType="i=45" IsForward="false">ns=1;i=1</Reference></References></UAObjectType>
  <UAObject NodeId="ns=1;i=6" BrowseName="1:FastPump"><References>
      <Reference ReferenceType="i=35" IsForward="false">i=85</Reference>
      <Reference ReferenceType="i=40">ns=1;i=5</Reference></References></UAObject>
  <UAObject NodeId="ns=1;i=7" BrowseName="1:Motor"><References>
      <Reference ReferenceType="i=47" IsForward="false">ns=1;i=1</Reference>
      <Reference ReferenceType="i=40">i=58</Reference></References></UAObject>
  <UAVariable NodeId="ns=1;i=8" BrowseName="1:Cause" DataType="ns=1;i=9"><References>
      <Reference ReferenceType="i=46" IsForward="false">ns=1;i=7</Reference>
      <Reference ReferenceType="i=40">i=68</Reference></References></UAVariable>
  <UADataType NodeId="ns=1;i=9" BrowseName="1:Flag"><References>
      <Reference ReferenceType="i=45" IsForward="false">i=1</Reference></References></UADataType>
  <UAObject NodeId="ns=1;i=10" BrowseName="1:Extra"><References>
      <Reference ReferenceType="i=47" IsForward="false">ns=1;i=2</Reference>
      <Reference ReferenceType="i=40">i=58</Reference></References></UAObject>
</UANodeSet>"#;
    let model = MODEL.replace("</UANodeSet>", more);
    let space = AddressSpace::new(1, 16, "urn:test");
    let mut importer = Importer::new(TypeDictionary::default());
    let batch = importer.import(&space, &file(&model), NOW).unwrap().batch;
    let types = [1, 2, 5, 6];
    let motor = model.find("  <UAObject NodeId=\"ns=1;i=7\"").unwrap()..model.find("  <UADataType").unwrap();
    let extra = model.find("  <UAObject NodeId=\"ns=1;i=10\"").unwrap()..model.find("</UANodeSet>").unwrap();
    let without = |range: core::ops::Range<usize>| [&model[..range.start], &model[range.end..]].concat();
    let fast = "BrowseName=\"1:FastPumpType\"";
    let cases: [(&str, String, &[u32]); 17] = [
        ("nothing", model.clone(), &[]),
        ("texts", model.replace("1:Pump\"><", "1:Pump\"><DisplayName>P</DisplayName><"), &[]),
        ("a value", model.replace("12.5", "13.5"), &[]),
        ("rights", model.replace("AccessLevel=\"3\"", "AccessRestrictions=\"3\""), &[]),
        ("a new member", model.replace("i=47\" IsForward=\"false\">ns=1;i=2", "i=47\" IsForward=\"false\">ns=1;i=1"), &[]),
        ("a member of an Object", without(extra), &[10]),
        ("a member of a type", without(motor), &[1, 2, 5, 6, 7, 8]),
        ("the name of a member", model.replace("1:Motor", "1:Drive"), &[1, 2, 5, 6, 7]),
        ("a member of a member", model.replace("1:Cause", "1:Reason"), &[1, 2, 5, 6, 8]),
        ("a supertype", model.replace("i=45\" IsForward=\"false\">i=58", "i=45\" IsForward=\"false\">i=61"), &types),
        ("no supertype", model.replace("<Reference ReferenceType=\"i=45\" IsForward=\"false\">ns=1;i=1</Reference>", ""), &[5, 6]),
        ("an abstract type", model.replace(fast, &format!("{fast} IsAbstract=\"true\"")), &[5, 6]),
        ("a type definition", model.replace("i=40\">ns=1;i=5", "i=40\">ns=1;i=1"), &[6]),
        ("a second type definition", model.replace("<Reference ReferenceType=\"i=40\">ns=1;i=5", "<Reference ReferenceType=\"i=40\">i=61</Reference><Reference ReferenceType=\"i=40\">ns=1;i=5"), &[6]),
        ("a DataType", model.replace("\"1:Speed\" DataType=\"i=11\" AccessLevel=\"3\"", "\"1:Speed\" DataType=\"i=10\""), &[3]),
        ("a ValueRank", model.replace("1:Level\"", "1:Level\" ValueRank=\"1\""), &[4]),
        ("a DataType's supertype", model.replace("i=45\" IsForward=\"false\">i=1<", "i=45\" IsForward=\"false\">i=6<"), &[1, 2, 5, 6, 8, 9]),
    ];
    for (what, text, expected) in cases {
        let text = if what == "a DataType" {
            text.replace("<Value><Double", "<Value><Float").replace("</Double>", "</Float>")
        } else {
            text
        };
        let mut expected: Vec<NodeId> = expected.iter().map(|id| NodeId::numeric(2, *id)).collect();
        expected.sort();
        let prepared = importer.prepare(&space, &file(&text), Some(batch)).unwrap();
        let removed: Vec<NodeId> = importer.removed(&space, &prepared).into_iter().cloned().collect();
        assert_eq!(removed, expected, "{what}");
    }
}

/// The first file is deleted and added again, and the second one still refers to its deleted nodes.
#[test]
fn files_whose_types_another_import_has_replaced_are_unchanged() {
    let (space, mut importer, batch) = loaded();
    let text = BUILT_ON_IT.replace("<Uri>urn:more</Uri>", "<Uri>urn:more</Uri><Uri>urn:pumps</Uri>").replace(
        "</UANodeSet>",
        "<UAObjectType NodeId=\"ns=1;i=1\" BrowseName=\"1:FastType\"><References>
           <Reference ReferenceType=\"i=45\" IsForward=\"false\">ns=2;i=1</Reference></References></UAObjectType>
         <UAObject NodeId=\"ns=1;i=2\" BrowseName=\"1:Fast\"><References>
           <Reference ReferenceType=\"i=35\" IsForward=\"false\">i=85</Reference>
           <Reference ReferenceType=\"i=40\">ns=2;i=1</Reference></References></UAObject></UANodeSet>",
    );
    let more = importer.import(&space, &file(&text), NOW).unwrap();
    assert_eq!((more.node_count, more.warnings), (2, Vec::new()));
    let told = MODEL.replace(
        "BrowseName=\"1:PumpType\">",
        "BrowseName=\"1:PumpType\"><Description>Moves water.</Description>",
    );
    replace(&space, &mut importer, batch, &told);
    let removed = |importer: &Importer, text: &str| -> Vec<NodeId> {
        let prepared = importer.prepare(&space, &file(text), Some(more.batch)).unwrap();
        importer.removed(&space, &prepared).into_iter().cloned().collect()
    };
    assert_eq!(removed(&importer, &text), []);
    let other = text.replace("i=40\">ns=2;i=1", "i=40\">i=61");
    assert_eq!(removed(&importer, &other), [NodeId::numeric(3, 2)]);
}

/// Permissions stay until the server ends, also those of deleted nodes.
#[test]
fn permissions_are_limited_before_a_node_is_skipped() {
    let space = AddressSpace::new(1, 16, "urn:test");
    let mut importer = Importer::new(TypeDictionary::default());
    let with = |uri: &str, count: u32| {
        let node = |number| {
            format!(
                "<UAObject NodeId=\"ns=1;i={number}\" BrowseName=\"1:N\" AccessRestrictions=\"{number}\"/>"
            )
        };
        let nodes: String = (1..=count).map(node).collect();
        let text = format!(
            "<UANodeSet><NamespaceUris><Uri>{uri}</Uri></NamespaceUris><Models><Model ModelUri=\"{uri}\"/></Models>{nodes}</UANodeSet>"
        );
        vec![("n.xml".to_owned(), text)]
    };
    let refused = importer.prepare(&space, &with("urn:a", 10_001), None).unwrap_err().to_string();
    assert!(refused.starts_with("n.xml:1: ") && refused.contains("more than 10000 different"), "{refused}");
    let (mut batch, mut refused) = (None, None);
    for number in 0..8 {
        match importer.prepare(&space, &with(&format!("urn:{number}"), 10_000), batch) {
            Ok(prepared) => {
                let imported = importer.replace(&space, prepared, NOW);
                assert_eq!((imported.node_count, imported.warnings), (10_000, Vec::new()));
                batch = Some(imported.batch);
            }
            Err(error) => refused = refused.or(Some((number, error.to_string()))),
        }
    }
    let (number, refused) = refused.unwrap();
    assert_eq!(number, 6, "{refused}");
    assert!(refused.contains("no room for 1000") && refused.contains("restart"), "{refused}");
    // Known ones need no room.
    importer.prepare(&space, &with("urn:5", 9_000), batch).unwrap();
}
