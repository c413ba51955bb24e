//! Interfaces and add-ins (Part 3 §4.10), by types and by services.

use super::node_management::{add_one, browse, delete, double, expanded, object, refer, reference, server};
use super::*;
use crate::space::NodeError;
use crate::space::import::Importer;
use crate::space::instance::{Walk, apply_interface, coverage};
use schema::{AddNodesItem, BrowseDirection, NodeClass};
use taktwerk_schema::ids::{data_type_ids, object_ids, object_type_ids, reference_type_ids as r};
use taktwerk_types::{QualifiedName, Variant};

/// An interface and its subtype, a type that has both, and an add-in with a default name.
const MODEL: &str = r#"<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd">
  <NamespaceUris><Uri>urn:machines</Uri></NamespaceUris><Models><Model ModelUri="urn:machines"/></Models>
  <UAObjectType NodeId="ns=1;i=1" BrowseName="1:ITagged" IsAbstract="true"><References>
    <Reference ReferenceType="i=45" IsForward="false">i=17602</Reference></References></UAObjectType>
  <UAVariable NodeId="ns=1;i=2" BrowseName="1:Serial" DataType="i=12"><References>
    <Reference ReferenceType="i=46" IsForward="false">ns=1;i=1</Reference>
    <Reference ReferenceType="i=40">i=68</Reference><Reference ReferenceType="i=37">i=78</Reference>
    </References></UAVariable>
  <UAObject NodeId="ns=1;i=3" BrowseName="1:Identification"><References>
    <Reference ReferenceType="i=47" IsForward="false">ns=1;i=1</Reference>
    <Reference ReferenceType="i=40">i=58</Reference><Reference ReferenceType="i=37">i=78</Reference>
    </References></UAObject>
  <UAVariable NodeId="ns=1;i=4" BrowseName="1:Maker" DataType="i=12"><References>
    <Reference ReferenceType="i=47" IsForward="false">ns=1;i=3</Reference>
    <Reference ReferenceType="i=40">i=63</Reference><Reference ReferenceType="i=37">i=78</Reference>
    </References></UAVariable>
  <UAVariable NodeId="ns=1;i=5" BrowseName="1:Note" DataType="i=12"><References>
    <Reference ReferenceType="i=47" IsForward="false">ns=1;i=1</Reference>
    <Reference ReferenceType="i=40">i=63</Reference><Reference ReferenceType="i=37">i=80</Reference>
    </References></UAVariable>
  <UAObjectType NodeId="ns=1;i=6" BrowseName="1:IResettable" IsAbstract="true"><References>
    <Reference ReferenceType="i=45" IsForward="false">ns=1;i=1</Reference></References></UAObjectType>
  <UAMethod NodeId="ns=1;i=7" BrowseName="1:Reset"><References>
    <Reference ReferenceType="i=47" IsForward="false">ns=1;i=6</Reference>
    <Reference ReferenceType="i=37">i=78</Reference></References></UAMethod>
  <UAReferenceType NodeId="ns=1;i=8" BrowseName="1:HasFeature"><References>
    <Reference ReferenceType="i=45" IsForward="false">i=17603</Reference></References></UAReferenceType>
  <UAObjectType NodeId="ns=1;i=10" BrowseName="1:MachineType"><References>
    <Reference ReferenceType="i=45" IsForward="false">i=58</Reference>
    <Reference ReferenceType="ns=1;i=8">ns=1;i=6</Reference></References></UAObjectType>
  <UAVariable NodeId="ns=1;i=11" BrowseName="1:Serial" DataType="i=7"><References>
    <Reference ReferenceType="i=46" IsForward="false">ns=1;i=10</Reference>
    <Reference ReferenceType="i=40">i=68</Reference><Reference ReferenceType="i=37">i=78</Reference>
    </References></UAVariable>
  <UAObject NodeId="ns=1;i=13" BrowseName="1:Lock"><References>
    <Reference ReferenceType="i=17604" IsForward="false">ns=1;i=10</Reference>
    <Reference ReferenceType="i=40">ns=1;i=20</Reference><Reference ReferenceType="i=37">i=78</Reference>
    </References></UAObject>
  <UAObjectType NodeId="ns=1;i=19" BrowseName="1:BaseLockType"><References>
    <Reference ReferenceType="i=45" IsForward="false">i=58</Reference></References></UAObjectType>
  <UAVariable NodeId="ns=1;i=21" BrowseName="0:DefaultInstanceBrowseName" DataType="i=20"><References>
    <Reference ReferenceType="i=46" IsForward="false">ns=1;i=19</Reference>
    <Reference ReferenceType="i=40">i=68</Reference></References>
    <Value><QualifiedName xmlns="http://opcfoundation.org/UA/2008/02/Types.xsd">
      <NamespaceIndex>1</NamespaceIndex><Name>Lock</Name></QualifiedName></Value></UAVariable>
  <UAObjectType NodeId="ns=1;i=20" BrowseName="1:LockType"><References>
    <Reference ReferenceType="i=45" IsForward="false">ns=1;i=19</Reference></References></UAObjectType>
  <UAVariable NodeId="ns=1;i=22" BrowseName="1:Locked" DataType="i=1"><References>
    <Reference ReferenceType="i=47" IsForward="false">ns=1;i=20</Reference>
    <Reference ReferenceType="i=40">i=63</Reference><Reference ReferenceType="i=37">i=78</Reference>
    </References></UAVariable>
</UANodeSet>"#;

/// A node of the model, whose namespace has the index 2.
fn model(number: u32) -> NodeId {
    NodeId::numeric(2, number)
}

fn loaded() -> Server {
    loaded_from(MODEL)
}

fn loaded_from(text: &str) -> Server {
    let server = server();
    let mut importer = Importer::new(taktwerk_nodeset::TypeDictionary::namespace_zero());
    let files = [("machines.xml".to_owned(), text.to_owned())];
    let imported = importer.import(&server.space, &files, server.now.utc).unwrap();
    assert_eq!(imported.namespaces, [(2, "urn:machines".to_owned())]);
    assert_eq!(imported.warnings, [""; 0]);
    server
}

fn machine(id: NodeId, kind: u32) -> AddNodesItem {
    AddNodesItem { type_definition: expanded(model(kind)), ..object(id, "Machine") }
}

/// The children of a node: ReferenceType and name.
fn children(client: &mut Client, server: &mut Server, id: &NodeId) -> Vec<(u32, String)> {
    let found = browse(client, server, id.clone(), BrowseDirection::FORWARD);
    let child = |one: &schema::ReferenceDescription| {
        let kind = one.reference_type_id.ns0().filter(|kind| *kind != r::HAS_TYPE_DEFINITION)?;
        Some((kind, one.browse_name.to_string()))
    };
    let mut all: Vec<_> = found.iter().filter_map(child).collect();
    all.sort();
    all
}

fn names(all: &[(u32, &str)]) -> Vec<(u32, String)> {
    let mut all: Vec<_> = all.iter().map(|(kind, name)| (*kind, (*name).to_owned())).collect();
    all.sort();
    all
}

#[test]
fn an_instance_has_the_members_of_the_interfaces_and_add_ins_of_its_type() {
    let mut server = loaded();
    let mut client = server.session();
    let id = NodeId::string(1, "m");
    assert_eq!(add_one(&mut client, &mut server, machine(id.clone(), 10)).status_code, StatusCode::GOOD);
    let expected = names(&[
        (r::HAS_PROPERTY, "2:Serial"),
        (r::HAS_COMPONENT, "2:Identification"),
        (r::HAS_COMPONENT, "2:Reset"),
        (r::HAS_ADD_IN, "2:Lock"),
    ]);
    assert_eq!(children(&mut client, &mut server, &id), expected, "the optional Note is not there");
    let part = |path: &str| NodeId::string(1, format!("m/{path}"));
    let maker = children(&mut client, &mut server, &part("Identification"));
    assert_eq!(maker, names(&[(r::HAS_COMPONENT, "2:Maker")]));
    let locked = children(&mut client, &mut server, &part("Lock"));
    assert_eq!(locked, names(&[(r::HAS_COMPONENT, "2:Locked")]));
    // The type's own declaration overrides that of its interface.
    let (shape, _) = server.space.declared_shape(&part("Serial")).unwrap();
    assert_eq!(shape.data_type, NodeId::numeric(0, data_type_ids::U_INT32));
    assert_eq!(server.space.type_definition(&part("Lock")), Some(model(20)));
    // Interfaces are abstract.
    let status = add_one(&mut client, &mut server, machine(NodeId::string(1, "i"), 1)).status_code;
    assert_eq!(status, StatusCode::BAD_TYPE_DEFINITION_INVALID);
    assert_eq!(delete(&mut client, &mut server, &[id]), [StatusCode::GOOD]);
    assert_eq!((server.used(Category::AddedNodeCount), server.used(Category::AddedNodes)), (0, 0));
}

#[test]
fn an_object_that_gets_an_interface_gets_its_mandatory_members() {
    for kind in [NodeId::numeric(0, r::HAS_INTERFACE), model(8)] {
        let mut server = loaded();
        let mut client = server.session();
        let id = NodeId::string(1, "o");
        add_one(&mut client, &mut server, object(id.clone(), "Object"));
        // It has one of the members already, without the member of that.
        let own = AddNodesItem {
            browse_name: QualifiedName::new(2, "Identification"),
            parent_node_id: expanded(id.clone()),
            reference_type_id: r::HAS_COMPONENT.into(),
            ..object(NodeId::string(1, "own"), "")
        };
        assert_eq!(add_one(&mut client, &mut server, own).status_code, StatusCode::GOOD);
        let mut item = reference(id.clone(), 0, model(6));
        item.reference_type_id = kind.clone();
        assert_eq!(refer(&mut client, &mut server, item.clone()), StatusCode::GOOD, "{kind}");
        let found = children(&mut client, &mut server, &id);
        let expected = [
            (r::HAS_PROPERTY, "2:Serial"),
            (r::HAS_COMPONENT, "2:Identification"),
            (r::HAS_COMPONENT, "2:Reset"),
            (r::HAS_INTERFACE, "2:IResettable"),
        ];
        let is_standard = kind.namespace_index == 0;
        assert_eq!(found, names(&expected[..if is_standard { 4 } else { 3 }]), "{kind}");
        let maker = children(&mut client, &mut server, &NodeId::string(1, "own"));
        assert_eq!(maker, names(&[(r::HAS_COMPONENT, "2:Maker")]));
        let again = refer(&mut client, &mut server, item);
        assert_eq!(again, StatusCode::BAD_DUPLICATE_REFERENCE_NOT_ALLOWED);
        // A second interface whose members are all there adds nothing.
        let count = server.used(Category::AddedNodeCount);
        let item = reference(id.clone(), r::HAS_INTERFACE, model(1));
        assert_eq!(refer(&mut client, &mut server, item), StatusCode::GOOD);
        assert_eq!(server.used(Category::AddedNodeCount), count);
        assert_eq!(delete(&mut client, &mut server, &[id]), [StatusCode::GOOD]);
        assert_eq!((server.used(Category::AddedNodeCount), server.used(Category::AddedNodes)), (0, 0));
    }
}

#[test]
fn interfaces_that_cannot_be_applied_are_refused() {
    let mut server = loaded();
    let mut client = server.session();
    let (id, variable) = (NodeId::string(1, "o"), NodeId::string(1, "v"));
    add_one(&mut client, &mut server, object(id.clone(), "Object"));
    add_one(&mut client, &mut server, double(variable.clone(), object_ids::OBJECTS_FOLDER, "v", 1.0));
    // A child with the name of an optional member, but of another NodeClass.
    let note = AddNodesItem {
        browse_name: QualifiedName::new(2, "Note"),
        parent_node_id: expanded(id.clone()),
        ..object(NodeId::string(1, "note"), "")
    };
    assert_eq!(add_one(&mut client, &mut server, note).status_code, StatusCode::GOOD);
    let count = server.used(Category::AddedNodeCount);
    let not_allowed = StatusCode::BAD_REFERENCE_NOT_ALLOWED;
    for (source, target, why) in [
        (id.clone(), model(1), "a name collision"),
        (id.clone(), model(10), "the target is not an interface"),
        (id.clone(), NodeId::string(1, "note"), "the target is not a type"),
        (variable, model(1), "the source is a Variable"),
        (model(6), model(1), "the source is an interface"),
    ] {
        let item = reference(source, r::HAS_INTERFACE, target);
        assert_eq!(refer(&mut client, &mut server, item), not_allowed, "{why}");
    }
    assert_eq!(server.used(Category::AddedNodeCount), count);
    // An ObjectType only says what its next instances have.
    let item = reference(model(20), r::HAS_INTERFACE, model(6));
    assert_eq!(refer(&mut client, &mut server, item), StatusCode::GOOD);
    assert_eq!(server.used(Category::AddedNodeCount), count);
    let lock = NodeId::string(1, "lock");
    add_one(&mut client, &mut server, machine(lock.clone(), 20));
    let found = children(&mut client, &mut server, &lock);
    assert!(found.contains(&(r::HAS_COMPONENT, "2:Reset".to_owned())), "{found:?}");
}

#[test]
fn an_add_in_has_the_default_name_of_its_type() {
    let mut server = loaded();
    let mut client = server.session();
    let id = NodeId::string(1, "o");
    add_one(&mut client, &mut server, object(id.clone(), "Object"));
    let mut number = 0;
    let mut add = |server: &mut Server, name: &str, change: &dyn Fn(&mut AddNodesItem)| {
        number += 1;
        let mut item = AddNodesItem {
            parent_node_id: expanded(id.clone()),
            reference_type_id: r::HAS_ADD_IN.into(),
            browse_name: if name.is_empty() { QualifiedName::default() } else { QualifiedName::new(1, name) },
            ..machine(NodeId::string(1, format!("a{number}")), 20)
        };
        change(&mut item);
        add_one(&mut client, server, item).status_code
    };
    let good = StatusCode::GOOD;
    assert_eq!(add(&mut server, "", &|_| ()), good);
    let name = QualifiedName::new(2, "Lock");
    assert_eq!(server.space.child(&id, &name), Some(NodeId::string(1, "a1")), "inherited from BaseLockType");
    // Only one in a parent has the default name.
    assert_eq!(add(&mut server, "", &|_| ()), StatusCode::BAD_BROWSE_NAME_DUPLICATED);
    assert_eq!(add(&mut server, "Second lock", &|_| ()), good);
    let invalid = StatusCode::BAD_BROWSE_NAME_INVALID;
    let by_component = |item: &mut AddNodesItem| item.reference_type_id = r::HAS_COMPONENT.into();
    assert_eq!(add(&mut server, "", &by_component), invalid, "it is not an add-in");
    let untold = |item: &mut AddNodesItem| item.type_definition = expanded(object_type_ids::FOLDER_TYPE);
    assert_eq!(add(&mut server, "", &untold), invalid, "the type recommends no name");
    // Part 3 §7.20: from Objects and ObjectTypes to Objects.
    let a_variable = |item: &mut AddNodesItem| {
        item.node_class = NodeClass::VARIABLE;
        item.type_definition = expanded(taktwerk_schema::ids::variable_type_ids::BASE_DATA_VARIABLE_TYPE);
    };
    assert_eq!(add(&mut server, "V", &a_variable), StatusCode::BAD_REFERENCE_NOT_ALLOWED);
    let of_variable =
        |item: &mut AddNodesItem| item.parent_node_id = expanded(NodeId::string(1, "a1/Locked"));
    assert_eq!(add(&mut server, "L", &of_variable), StatusCode::BAD_REFERENCE_NOT_ALLOWED);
    let locked = server.space.variable(&NodeId::string(1, "a3/Locked")).unwrap().get().value;
    assert_eq!(locked.unwrap_or_default(), Variant::Empty);
}

/// Two Objects for each of eight names. Each Object has a child of each name, and each child can be a member that has all of
/// them as members.
#[test]
fn members_that_many_paths_lead_to_are_compared_once_and_counted() {
    for rule in [object_ids::MODELLING_RULE_OPTIONAL, object_ids::MODELLING_RULE_MANDATORY] {
        let mut server = server();
        let mut client = server.session();
        let id = |name: &str| NodeId::string(1, name);
        let mut add = |client: &mut Client, item| {
            assert_eq!(add_one(client, &mut server, item).status_code, StatusCode::GOOD);
        };
        let kind = |name: &str, supertype: u32| AddNodesItem {
            parent_node_id: expanded(supertype),
            reference_type_id: r::HAS_SUBTYPE.into(),
            node_class: NodeClass::OBJECT_TYPE,
            type_definition: Default::default(),
            ..object(id(name), name)
        };
        let part = |parent: &str, name: &str, kind: &str| AddNodesItem {
            parent_node_id: expanded(id(parent)),
            reference_type_id: r::HAS_COMPONENT.into(),
            type_definition: expanded(id(kind)),
            ..object(id(&format!("{parent}/{name}")), name)
        };
        add(&mut client, kind("T", object_type_ids::BASE_OBJECT_TYPE));
        add(&mut client, kind("Leaf", object_type_ids::BASE_OBJECT_TYPE));
        add(&mut client, kind("I", object_type_ids::BASE_INTERFACE_TYPE));
        let names: Vec<String> = (0..8).map(|at| format!("a{at}")).collect();
        add(&mut client, part("I", "a0", "T"));
        add(&mut client, part("I", "leaf", "Leaf"));
        for name in &names {
            add(&mut client, part("T", name, "T"));
        }
        for folder in ["F", "G"] {
            add(&mut client, object(id(folder), folder));
            for name in &names {
                add(&mut client, part(folder, name, "Leaf"));
            }
        }
        let mut refer = |source: String, kind: u32, target: NodeId| {
            assert_eq!(
                refer(&mut client, &mut server, reference(id(&source), kind, target)),
                StatusCode::GOOD
            );
        };
        for name in &names {
            refer(format!("T/{name}"), r::HAS_MODELLING_RULE, rule.into());
            for (folder, other) in [("F", "G"), ("G", "F")] {
                for target in &names {
                    let target_folder = if name == target { other } else { folder };
                    refer(format!("{folder}/{name}"), r::ORGANIZES, id(&format!("{target_folder}/{target}")));
                }
            }
        }
        refer("I/a0".to_owned(), r::HAS_MODELLING_RULE, rule.into());
        refer("I/leaf".to_owned(), r::HAS_MODELLING_RULE, object_ids::MODELLING_RULE_MANDATORY.into());
        let count = server.space.node_count();
        server.shard.take_work();
        let item = reference(id("G/a0"), r::HAS_INTERFACE, id("I"));
        assert_eq!(super::node_management::refer(&mut client, &mut server, item), StatusCode::GOOD);
        assert_eq!(server.space.node_count(), count + 1, "the leaf");
        let units = server.shard.take_work().units;
        assert!((200..20_000).contains(&units), "{units}");
    }
}

/// What `coverage` and then `apply_interface` have looked at together, with a limit, and the number of added nodes.
fn applied(text: &str, max: usize) -> ([Result<usize, NodeError>; 2], usize) {
    let mut server = loaded_from(text);
    let mut client = server.session();
    let id = NodeId::string(1, "o");
    add_one(&mut client, &mut server, object(id.clone(), "Object"));
    let (count, now) = (server.space.node_count(), server.now.utc);
    let mut nodes = server.space.write();
    let (object, interface) = (nodes.find(&id).unwrap(), nodes.find(&model(6)).unwrap());
    let mut walk = Walk::up_to(max);
    let covered = coverage(&mut nodes, object, interface, &mut walk).map(|_| walk.looked_at());
    let applied = apply_interface(&mut nodes, object, interface, &mut walk, now).map(|_| walk.looked_at());
    drop(nodes);
    ([covered, applied], server.space.node_count() - count)
}

#[test]
fn the_members_that_one_operation_looks_at_are_limited() {
    let ([covered, all], added) = applied(MODEL, usize::MAX);
    let (covered, all) = (covered.unwrap(), all.unwrap());
    assert!(added > 3 && covered < all, "{covered} {all} {added}");
    assert_eq!(applied(MODEL, all), ([Ok(covered), Ok(all)], added));
    for max in [covered - 1, covered, (covered + all) / 2, all - 1] {
        let (results, added) = applied(MODEL, max);
        assert_eq!((results[0].is_ok(), added), (max >= covered, 0), "{max}");
        assert_eq!(results[1], Err(NodeError::InstanceTooLarge(max)));
    }
}

/// Names of 512 bytes are copied for each path.
#[test]
fn long_names_cost_more() {
    let cost = |name: &str| {
        let long = format!("\"1:{}\"", "x".repeat(512));
        applied(&MODEL.replace(&format!("\"1:{name}\""), &long), usize::MAX).0[1].clone().unwrap()
    };
    let (none, mandatory, optional) = (cost(""), cost("Serial"), cost("Note"));
    // Both functions collect the members. The path of an unwanted one is not built.
    assert_eq!((mandatory - none, optional - none), (3 * 512 / 64, 2 * 512 / 64));
}
