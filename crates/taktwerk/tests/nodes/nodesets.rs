//! NodeSets at run time: published companion specifications, and structures that only the server defines.

use std::path::PathBuf;
use taktwerk::schema::dynamic::DynamicValue;
use taktwerk::{Client, NodeId, QualifiedName, Server, Variant};

/// The directory to which `cargo xtask nodesets` downloads the published files.
fn published() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let cache = target.join("codegen");
    let packages = std::fs::read_dir(&cache).into_iter().flatten().flatten();
    let found = packages
        .map(|entry| entry.path().join("package/nodesets"))
        .find(|path| path.join("Opc.Ua.Di.NodeSet2.xml").is_file());
    found.unwrap_or_else(|| panic!("no NodeSets in {}: run `cargo xtask nodesets`", cache.display()))
}

const COMPANIONS: [&str; 12] = [
    // Not in loading order: the importer sorts them.
    "Opc.Ua.MachineTool.NodeSet2.xml",
    "Opc.Ua.PADIM.NodeSet2.xml",
    "Opc.Ua.Robotics.NodeSet2.xml",
    "Opc.Ua.PackML.NodeSet2.xml",
    "Opc.Ua.AutoID.NodeSet2.xml",
    "Opc.Ua.Machinery.Jobs.Nodeset2.xml",
    "Opc.Ua.Machinery.NodeSet2.xml",
    "opc.ua.isa95-jobcontrol.nodeset2.xml",
    "Opc.Ua.IRDI.NodeSet2.xml",
    "Opc.Ua.IA.NodeSet2.xml",
    "Opc.Ua.Di.NodeSet2.xml",
    "Opc.Ua.NodeSet2.xml",
];

#[test]
fn companion_specifications_load_in_any_order_and_their_types_have_instances() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let directory = published();
    let before = server.space().node_count();
    let imported = server.import_nodesets(COMPANIONS.iter().map(|name| directory.join(name))).unwrap();
    assert_eq!(imported.warnings, [""; 0]);
    assert_eq!(imported.namespaces.len(), 11);
    assert!(imported.node_count > 3500);
    assert_eq!(server.space().node_count(), before + imported.node_count);

    // A machine with identification, as Machinery requires.
    let plant = server.namespace("urn:example:plant");
    let machinery = server.namespace("http://opcfoundation.org/UA/Machinery/").index();
    let di = server.namespace("http://opcfoundation.org/UA/DI/").index();
    let identification = NodeId::numeric(machinery, 1012);
    let machine = plant.object("Press").add().unwrap();
    let instance = machine.object("Identification").of_type(identification).with("Model").add().unwrap();
    let serial = instance.child_named(&QualifiedName::new(di, "SerialNumber")).unwrap();
    let serial = serial.as_variable::<String>().unwrap();
    serial.set("4711");
    assert_eq!(serial.get().as_deref(), Ok("4711"));
    assert!(instance.child_named(&QualifiedName::new(di, "Model")).is_ok());
    assert!(instance.child_named(&QualifiedName::new(di, "AssetId")).is_err());
}

#[test]
fn missing_models_are_named() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let directory = published();
    let before = server.space().node_count();
    let error = server.import_nodesets([directory.join("Opc.Ua.Machinery.NodeSet2.xml")]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("Opc.Ua.Machinery.NodeSet2.xml:") && text.contains("UA/DI/"), "{text}");
    assert_eq!(server.space().node_count(), before);
    let error = server.import_nodesets(["/nowhere/Model.xml"]).unwrap_err().to_string();
    assert!(error.contains("/nowhere/Model.xml"), "{error}");
    // Importing one after the other works too.
    for file in ["Opc.Ua.Di.NodeSet2.xml", "Opc.Ua.IA.NodeSet2.xml"] {
        server.import_nodesets([directory.join(file)]).unwrap();
    }
    server.import_nodesets([directory.join("Opc.Ua.Machinery.NodeSet2.xml")]).unwrap();
    let twice = server.import_nodesets([directory.join("Opc.Ua.Di.NodeSet2.xml")]).unwrap_err().to_string();
    assert!(twice.contains("exists already"), "{twice}");
}

const RECIPES: &str = r#"<?xml version="1.0"?>
<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd">
  <NamespaceUris><Uri>urn:recipes</Uri></NamespaceUris>
  <Models><Model ModelUri="urn:recipes"><RequiredModel ModelUri="http://opcfoundation.org/UA/"/></Model></Models>
  <UADataType NodeId="ns=1;i=1" BrowseName="1:Step"><DisplayName>Step</DisplayName>
    <References><Reference ReferenceType="i=45" IsForward="false">i=22</Reference></References>
    <Definition Name="1:Step">
      <Field Name="Name" DataType="i=12"/><Field Name="Seconds" DataType="i=11"/>
      <Field Name="Kind" DataType="ns=1;i=5"/>
    </Definition></UADataType>
  <UAObject NodeId="ns=1;i=2" BrowseName="Default Binary" SymbolicName="DefaultBinary"><DisplayName>Default Binary</DisplayName>
    <References><Reference ReferenceType="i=38" IsForward="false">ns=1;i=1</Reference>
      <Reference ReferenceType="i=40">i=76</Reference></References></UAObject>
  <UADataType NodeId="ns=1;i=3" BrowseName="1:Recipe"><DisplayName>Recipe</DisplayName>
    <References><Reference ReferenceType="i=45" IsForward="false">i=22</Reference></References>
    <Definition Name="1:Recipe">
      <Field Name="Title" DataType="i=12"/><Field Name="Steps" DataType="ns=1;i=1" ValueRank="1"/>
    </Definition></UADataType>
  <UAObject NodeId="ns=1;i=4" BrowseName="Default Binary" SymbolicName="DefaultBinary"><DisplayName>Default Binary</DisplayName>
    <References><Reference ReferenceType="i=38" IsForward="false">ns=1;i=3</Reference>
      <Reference ReferenceType="i=40">i=76</Reference></References></UAObject>
  <UADataType NodeId="ns=1;i=5" BrowseName="1:Kind"><DisplayName>Kind</DisplayName>
    <References><Reference ReferenceType="i=45" IsForward="false">i=29</Reference></References>
    <Definition Name="1:Kind"><Field Name="Stir" Value="0"/><Field Name="Heat" Value="1"/></Definition></UADataType>
  <UAVariable NodeId="ns=1;i=10" BrowseName="1:Current" DataType="ns=1;i=3" AccessLevel="3"><DisplayName>Current</DisplayName>
    <References><Reference ReferenceType="i=35" IsForward="false">i=85</Reference>
      <Reference ReferenceType="i=40">i=63</Reference></References>
    <Value><ExtensionObject xmlns="http://opcfoundation.org/UA/2008/02/Types.xsd">
      <TypeId><Identifier>ns=1;i=3</Identifier></TypeId>
      <Body><Recipe xmlns="urn:recipes"><Title>Soup</Title><Steps>
        <Step><Name>boil</Name><Seconds>600</Seconds><Kind>Heat_1</Kind></Step>
        <Step><Name>wait</Name><Seconds>30.5</Seconds><Kind>Stir_0</Kind></Step>
      </Steps></Recipe></Body></ExtensionObject></Value></UAVariable>
</UANodeSet>"#;

#[tokio::test]
async fn structures_defined_by_the_server_are_decoded_and_encoded() {
    let path = std::env::temp_dir().join(format!("taktwerk-recipes-{}.xml", std::process::id()));
    std::fs::write(&path, RECIPES).unwrap();
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let _index = server.namespace("urn:something:else");
    let imported = server.import_nodesets([&path]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(imported.unwrap().namespaces, [(3, "urn:recipes".to_owned())]);
    let running = server.spawn().unwrap();

    let client = Client::connect(&running.url()).await.unwrap();
    let node = "nsu=urn:recipes;i=10";
    let value = client.read_value::<Variant>(node).await.unwrap();
    let printed = client.print(&value).await.unwrap();
    assert!(printed.contains("Soup") && printed.contains("boil") && printed.contains("Heat"), "{printed}");

    let Variant::ExtensionObject(object) = value else { panic!("{value:?}") };
    let recipe = client.decode(&object).await.unwrap();
    assert_eq!(&*recipe.type_name, "Recipe");
    assert_eq!(recipe.field("Title"), Some(&DynamicValue::from("Soup")));

    let changed = taktwerk::schema::dynamic::DynamicStructure::new(recipe.data_type.clone(), "Recipe")
        .with("Title", "Tea")
        .with("Steps", recipe.field("Steps").unwrap().clone());
    let encoded = client.encode(&changed).await.unwrap();
    client.write(node, encoded).await.unwrap();
    let again = client.read_value::<taktwerk::types::ExtensionObject>(node).await.unwrap();
    let again = client.decode(&again).await.unwrap();
    assert_eq!(again.field("Title"), Some(&DynamicValue::from("Tea")));
    assert_eq!(again.field("Steps"), recipe.field("Steps"));
}
