//! Invalid files: each is refused with its line and a hint, without panics.

use proptest::prelude::*;
use taktwerk_nodeset::{NodeSet, NodeSetError, TypeDictionary, order_by_dependencies};
use taktwerk_types::{Variant, variant::ArrayValues};

const GOOD: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd" xmlns:uax="http://opcfoundation.org/UA/2008/02/Types.xsd">
  <NamespaceUris><Uri>urn:a</Uri></NamespaceUris>
  <Models><Model ModelUri="urn:a" Version="1.0" PublicationDate="2024-01-01T00:00:00Z"/></Models>
  <Aliases><Alias Alias="HasComponent">i=47</Alias><Alias Alias="HasSubtype">i=45</Alias><Alias Alias="HasEncoding">i=38</Alias></Aliases>
  <UADataType NodeId="i=1" BrowseName="Boolean"/>
  <UADataType NodeId="i=6" BrowseName="Int32"/>
  <UADataType NodeId="i=12" BrowseName="String"/>
  <UADataType NodeId="i=22" BrowseName="Structure" IsAbstract="true"/>
  <UADataType NodeId="i=24" BrowseName="BaseDataType" IsAbstract="true"/>
  <UADataType NodeId="i=29" BrowseName="Enumeration" IsAbstract="true"/>
  <UADataType NodeId="i=12756" BrowseName="Union" IsAbstract="true">
    <References><Reference ReferenceType="HasSubtype" IsForward="false">i=22</Reference></References>
  </UADataType>
  <UADataType NodeId="ns=1;i=1" BrowseName="1:Colour">
    <References><Reference ReferenceType="HasSubtype" IsForward="false">i=29</Reference></References>
    <Definition Name="1:Colour"><Field Name="Red" Value="0"/><Field Name="Green" Value="1"/></Definition>
  </UADataType>
  <UADataType NodeId="ns=1;i=2" BrowseName="1:Point">
    <References><Reference ReferenceType="HasSubtype" IsForward="false">i=22</Reference></References>
    <Definition Name="1:Point">
      <Field Name="X" DataType="i=6"/><Field Name="Name" DataType="i=12" IsOptional="true"/>
      <Field Name="Colour" DataType="ns=1;i=1"/><Field Name="Any" DataType="i=24" IsOptional="true"/>
      <Field Name="List" DataType="i=6" ValueRank="1"/><Field Name="Grid" DataType="i=6" ValueRank="2"/>
    </Definition>
  </UADataType>
  <UADataType NodeId="ns=1;i=3" BrowseName="1:Choice">
    <References><Reference ReferenceType="HasSubtype" IsForward="false">i=12756</Reference></References>
    <Definition Name="1:Choice" IsUnion="true"><Field Name="A" DataType="i=6"/><Field Name="P" DataType="ns=1;i=2"/></Definition>
  </UADataType>
  <UAObject NodeId="ns=1;i=20" BrowseName="Default Binary">
    <References><Reference ReferenceType="HasEncoding" IsForward="false">ns=1;i=2</Reference></References>
  </UAObject>
  <UAObject NodeId="ns=1;i=30" BrowseName="Default Binary">
    <References><Reference ReferenceType="HasEncoding" IsForward="false">ns=1;i=3</Reference></References>
  </UAObject>
  <UAVariable NodeId="ns=1;s=V" BrowseName="1:V" DataType="i=24" ValueRank="-2" ArrayDimensions="2,3" AccessLevel="3">
    <DisplayName Locale="de">Wert</DisplayName>
    <References><Reference ReferenceType="HasComponent" IsForward="false">i=85</Reference></References>
    <Value>@VALUE@</Value>
  </UAVariable>
</UANodeSet>
"#;

fn with_value(value: &str) -> String {
    GOOD.replace("@VALUE@", value)
}

fn read(text: &str) -> Result<Option<Variant>, NodeSetError> {
    let mut set = NodeSet::parse("a.xml", text)?;
    // As in a server that has the file's namespace 1 at index 4.
    set.remap(|uri| if uri == "urn:a" { Some(4) } else { Some(0) })?;
    order_by_dependencies(std::slice::from_ref(&set), &["http://opcfoundation.org/UA/"])?;
    let mut types = TypeDictionary::default();
    types.add(&set);
    let mut last = None;
    for node in &set.nodes {
        last = set.value(node, &types)?.or(last);
    }
    Ok(last)
}

fn value(xml: &str) -> Variant {
    read(&with_value(xml)).unwrap_or_else(|error| panic!("{error}")).unwrap()
}

fn body(xml: &str) -> Vec<u8> {
    match value(xml) {
        Variant::ExtensionObject(object) => object.binary().unwrap().to_vec(),
        other => panic!("{other}"),
    }
}

#[test]
fn values_of_every_form() {
    assert_eq!(value("<uax:Int32> -7 </uax:Int32>"), Variant::from(-7i32));
    assert_eq!(value("<String> two  words </String>"), Variant::from(" two  words "));
    assert_eq!(value("<ListOfByte><Byte>1</Byte><Byte>2</Byte></ListOfByte>"), Variant::from(vec![1u8, 2]));
    assert_eq!(value("<ListOfString/>"), Variant::from(Vec::<taktwerk_types::UaString>::new()));
    assert_eq!(value("<NodeId><Identifier>ns=1;s=V</Identifier></NodeId>").to_string(), "ns=4;s=V");
    assert_eq!(
        value("<ExpandedNodeId><Identifier>nsu=urn:a;i=3</Identifier></ExpandedNodeId>").to_string(),
        "ns=4;i=3"
    );
    let name = "<QualifiedName><NamespaceIndex>1</NamespaceIndex><Name>N</Name></QualifiedName>";
    assert_eq!(value(name).to_string(), "4:N");
    assert_eq!(value("<Float>INF</Float>"), Variant::from(f32::INFINITY));
    assert_eq!(value("<StatusCode><Code>2147483648</Code></StatusCode>").to_string(), "Bad");
    let guid = "72962b91-fa75-4ae6-8d28-b404dc7daf63";
    assert_eq!(value(&format!("<Guid><String>{guid}</String></Guid>")).to_string(), guid);
    assert_eq!(value("<ByteString>AQID</ByteString>"), Variant::ByteString(vec![1, 2, 3].into()));
    assert_eq!(value("<XmlElement><a b='c'><d/></a></XmlElement>").to_string(), "<a b='c'><d/></a>");
    let matrix = "<Matrix><Dimensions><Int32>2</Int32><Int32>1</Int32></Dimensions><Elements><Int16>5</Int16>\
                  <Int16>6</Int16></Elements></Matrix>";
    assert_eq!(value(matrix).to_string(), "[[5], [6]]");
    let variants =
        "<ListOfVariant><Variant><Value><Int32>1</Int32></Value></Variant><Variant/></ListOfVariant>";
    match value(variants) {
        Variant::Array(array) => {
            assert_eq!(array.values, ArrayValues::from(vec![Variant::from(1i32), Variant::Empty]));
        }
        other => panic!("{other}"),
    }
    let data_value = "<DataValue><Value><Double>1.5</Double></Value><StatusCode><Code>0</Code></StatusCode>\
                      <SourceTimestamp>2024-01-01T00:00:00Z</SourceTimestamp></DataValue>";
    match value(data_value) {
        Variant::DataValue(value) => {
            assert_eq!(value.value, Some(Variant::from(1.5)));
            assert!(value.status.is_some() && value.source_timestamp.is_some());
        }
        other => panic!("{other}"),
    }
}

#[test]
fn structures_are_encoded() {
    let point = |fields: &str| {
        format!(
            "<ExtensionObject><TypeId><Identifier>ns=1;i=20</Identifier></TypeId><Body><Point>{fields}</Point></Body>\
             </ExtensionObject>"
        )
    };
    // Mask, X, Colour, List (empty), Grid (no dimensions): optional fields are left out.
    assert_eq!(body(&point("<X>1</X>")), [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let all = "<EncodingMask>3</EncodingMask><X>1</X><Name>n</Name><Colour>Green_1</Colour><Any><Value><Byte>9</Byte>\
               </Value></Any><List><Int32>5</Int32></List><Grid><Dimensions><Int32>1</Int32><Int32>1</Int32>\
               </Dimensions><Elements><Int32>6</Int32></Elements></Grid>";
    #[rustfmt::skip]
    assert_eq!(body(&point(all)), [
        3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, b'n', 1, 0, 0, 0, 3, 9, 1, 0, 0, 0, 5, 0, 0, 0,
        2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0,
    ]);
    let choice = "<ExtensionObject><TypeId><Identifier>ns=1;i=30</Identifier></TypeId><Body><Choice>\
                  <SwitchField>1</SwitchField><A>7</A></Choice></Body></ExtensionObject>";
    assert_eq!(body(choice), [1, 0, 0, 0, 7, 0, 0, 0]);
}

/// What a small file takes in memory is limited: aliases copy their ids, and omitted fields get their defaults.
#[test]
fn a_small_file_stays_small() {
    let id = |len: usize| format!("ns=1;s={}", "x".repeat(len));
    let alias = |id: String| with_value("<Int32>1</Int32>").replace("i=47</Alias>", &format!("{id}</Alias>"));
    let named = |id: String| with_value("<Int32>1</Int32>").replace("ns=1;s=V", &id);
    let opaque = |len: usize| format!("ns=1;b={}", "AAAA".repeat(len / 3));
    let refused = |text: String| read(&text).unwrap_err().to_string();
    read(&alias(id(249))).unwrap();
    let told = refused(alias(id(250)));
    assert!(told.starts_with("a.xml:5: ") && told.contains("at most 256 bytes for an alias"), "{told}");
    read(&named(id(4096))).unwrap();
    read(&named(opaque(4095))).unwrap();
    for long in [id(4097), opaque(4098)] {
        let told = refused(named(long));
        assert!(told.contains("at most 4096 characters") && told.len() < 300, "{told}");
    }
    // Each structure has ten of the next one, which is omitted.
    let structure = |number: u32| {
        let data_type = if number < 10 { format!("ns=1;i={}", 101 + number) } else { "i=6".to_owned() };
        let fields: String =
            (0..10).map(|at| format!("<Field Name=\"F{at}\" DataType=\"{data_type}\"/>")).collect();
        format!(
            "<UADataType NodeId=\"ns=1;i={}\" BrowseName=\"1:S\"><References><Reference ReferenceType=\"HasSubtype\" \
             IsForward=\"false\">i=22</Reference></References><Definition Name=\"S\">{fields}</Definition></UADataType>",
            100 + number
        )
    };
    let structures: String = (0..=10).map(structure).collect();
    let deep = |number: u32| {
        let encoding = format!(
            "<UAObject NodeId=\"ns=1;i=99\" BrowseName=\"Default Binary\"><References><Reference ReferenceType=\"i=38\" \
             IsForward=\"false\">ns=1;i={}</Reference></References></UAObject>",
            100 + number
        );
        let value = "<ExtensionObject><TypeId><Identifier>ns=1;i=99</Identifier></TypeId><Body><S/></Body></ExtensionObject>";
        with_value(value).replace("</Aliases>", &format!("</Aliases>{structures}{encoding}"))
    };
    assert!(read(&deep(8)).unwrap().is_some());
    let told = refused(deep(0));
    assert!(told.contains("values and data types would take more than"), "{told}");
}

#[test]
fn attributes_and_definitions() {
    let mut set = NodeSet::parse("a.xml", &with_value("<Int32>1</Int32>")).unwrap();
    set.remap(|uri| Some(if uri == "urn:a" { 4 } else { 0 })).unwrap();
    let node = set.nodes.last().unwrap();
    assert_eq!(node.node_id.to_string(), "ns=4;s=V");
    assert_eq!(node.browse_name.to_string(), "4:V");
    assert_eq!(node.display_names[0].locale, "de");
    let mut types = TypeDictionary::default();
    types.add(&set);
    let point = types.definition_attribute(&"ns=4;i=2".parse().unwrap()).unwrap().unwrap();
    assert_eq!(point.type_id.to_string(), "i=122");
    let colour = types.definition_attribute(&"ns=4;i=1".parse().unwrap()).unwrap().unwrap();
    assert_eq!(colour.type_id.to_string(), "i=123");
    assert!(types.definition_attribute(&"i=6".parse().unwrap()).unwrap().is_none());
}

/// Parses a file and checks a part of the message, and that its line is the one that contains `place`.
#[track_caller]
fn refused(text: &str, place: &str, part: &str) {
    let at = text.find(place).unwrap();
    let line = u32::try_from(text[..at].matches('\n').count() + 1).unwrap();
    let error = read(text).expect_err(part);
    assert_eq!(error.line, line, "{error}");
    assert!(error.to_string().contains(part), "{error}");
    assert!(error.to_string().starts_with(&format!("a.xml:{line}: ")), "{error}");
}

#[test]
fn problems_name_their_line() {
    let good = with_value("<Int32>1</Int32>");
    let change = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1)
    };
    refused("", "", "malformed");
    refused("<html/>", "<html", "<html>, not <UANodeSet>");
    let (start, _) = good.split_once(" ArrayDimensions").unwrap();
    refused(start, "ns=1;s=V", "truncated");
    refused(&change(" BrowseName=\"1:V\"", ""), "ns=1;s=V", "no attribute BrowseName");
    refused(&change("IsForward=\"false\">i=85", "IsForward=\"maybe\">i=85"), "maybe", "true or false");
    refused(&change(">i=85<", ">Objects<"), ">Objects<", "alias");
    refused(
        &change("DataType=\"i=24\" ValueRank", "DataType=\"ns=7;i=24\" ValueRank"),
        "ns=7",
        "namespace index 7",
    );
    refused(&change("ValueRank=\"-2\"", "ValueRank=\"many\""), "many", "ValueRank");
    refused(&change("ArrayDimensions=\"2,3\"", "ArrayDimensions=\"2;3\""), "2;3", "separated by commas");
    refused(&change("NodeId=\"i=12\"", "NodeId=\"i=6\""), "\"String\"", "already defined in line 7");
    refused(&change("2024-01-01T", "January "), "January", "PublicationDate");
    refused(&change("Value=\"1\"", "Value=\"one\""), "\"one\"", "number");
    refused(&change("<Int32>1<", "<Int32>one<"), ">one<", "whole number");
    let required =
        change("/></Models>", "><RequiredModel ModelUri=\"urn:b\" Version=\"2\"/></Model></Models>");
    refused(&required, "urn:b", "requires model urn:b (version 2)");
    let itself = change("<Uri>urn:a</Uri>", "");
    refused(&itself, "<Definition Name=\"1:Colour", "add the missing <Uri>");
    refused(&change(">i=29<", ">ns=1;i=1<"), "\"1:Colour", "derives from itself");
    // A loop of two types, and one that two References from the supertype make.
    let loop_of_two = change(">i=29<", ">ns=1;i=2<").replacen(
        "false\">i=22</Reference></References>\n    <Definition Name=\"1:Point",
        "false\">ns=1;i=1</Reference></References>\n    <Definition Name=\"1:Point",
        1,
    );
    refused(&loop_of_two, "\"1:Colour", "derives from itself");
    let forward = loop_of_two.replace("IsForward=\"false\">ns=1;i=", "IsForward=\"true\">ns=1;i=");
    refused(&forward, "\"1:Colour", "derives from itself");
}

#[test]
fn uris_and_models_are_limited() {
    let good = with_value("<uax:Int32>1</uax:Int32>");
    let uri = |text: &str| good.replace("<Uri>urn:a</Uri>", &format!("<Uri>urn:a</Uri><Uri>{text}</Uri>"));
    let model = |text: &str| good.replace("ModelUri=\"urn:a\"", &format!("ModelUri=\"{text}\""));
    let long = "x".repeat(1025);
    for text in ["", "  ", "a&#10;b", long.as_str()] {
        refused(&uri(text), "<NamespaceUris>", "Uri is");
        refused(&model(text), "<Models>", "ModelUri is");
    }
    assert!(NodeSet::parse("a.xml", &uri(&long[..1024])).is_ok());
    // Spaces around a URI do not belong to it.
    let set = NodeSet::parse("a.xml", &model(" urn:a ").replace("<Uri>urn:a<", "<Uri> urn:a <")).unwrap();
    assert_eq!((set.models[0].uri.as_str(), set.namespace_uris[1].as_str()), ("urn:a", "urn:a"));
    let many = |count: usize, element: &str| format!("<{element} ModelUri=\"urn:b\"/>").repeat(count);
    let models = |count: usize| good.replace("</Models>", &format!("{}</Models>", many(count, "Model")));
    let required = |count: usize| {
        let list = format!(">{}</Model></Models>", many(count, "RequiredModel"));
        good.replace("/></Models>", &list)
    };
    assert!(NodeSet::parse("a.xml", &models(99)).is_ok() && NodeSet::parse("a.xml", &required(100)).is_ok());
    refused(&models(100), "<Models>", "more than 100 <Model>");
    refused(&required(101), "<Models>", "more than 100 <Model>");
}

#[test]
fn problems_in_values_name_their_line() {
    let structure = |id: &str, body: &str| {
        with_value(&format!(
            "<ExtensionObject>\n<TypeId><Identifier>{id}</Identifier></TypeId>\n<Body>\n<Point>\n{body}\n</Point></Body>\
             </ExtensionObject>"
        ))
    };
    refused(&with_value("\n<Colour>1</Colour>"), "<Colour>", "not a built-in type");
    refused(&structure("ns=1;i=99", ""), "<ExtensionObject>", "not defined by any loaded model");
    refused(&structure("ns=1;i=20", "<Y>1</Y>"), "<Y>", "no field <Y>");
    refused(&structure("ns=1;i=20", "<X>1</X>\n<Colour>Blue</Colour>"), "<Colour>Blue", "enumeration value");
    refused(&structure("ns=1;i=2", "<X/>"), "<X/>", "whole number");
    refused(&structure("i=6", ""), "<ExtensionObject>", "no Default Binary");
    refused(&with_value("<ByteString>%%</ByteString>"), "%%", "base64");
    refused(&with_value("<NodeId><Identifier>V</Identifier></NodeId>"), "<NodeId>", "NodeId such as");
    refused(
        &with_value("<NodeId><Identifier>ns=3;s=V</Identifier></NodeId>"),
        "<NodeId>",
        "namespace index 3",
    );
    refused(&with_value("<DateTime>now</DateTime>"), "now", "a time");
    refused(
        &with_value("<Matrix><Elements><Byte>1</Byte></Elements></Matrix>"),
        "<Matrix>",
        "no <Dimensions>",
    );
    let matrix = "<Matrix><Dimensions><Int32>3</Int32><Int32>2</Int32></Dimensions><Elements><Byte>1</Byte></Elements>\
                  </Matrix>";
    refused(&with_value(matrix), "<Matrix>", "dimensions");
}

#[test]
fn models_that_need_each_other() {
    let file = |own: &str, other: &str| {
        let text = format!(
            "<UANodeSet><Models><Model ModelUri=\"{own}\"><RequiredModel ModelUri=\"{other}\"/></Model></Models></UANodeSet>"
        );
        NodeSet::parse(own, &text).unwrap()
    };
    let error = order_by_dependencies(&[file("urn:a", "urn:b"), file("urn:b", "urn:a")], &[]).unwrap_err();
    assert!(error.to_string().contains("circle: urn:a, urn:b"), "{error}");
    let sets = [file("urn:b", "urn:a"), file("urn:a", "urn:0")];
    assert_eq!(order_by_dependencies(&sets, &["urn:0"]), Ok(vec![1, 0]));
    let error = order_by_dependencies(&[file("urn:a", "urn:a"), file("urn:a", "urn:a")], &[]).unwrap_err();
    assert!(error.to_string().contains("only one of the two files"), "{error}");
}

#[test]
fn hostile_files_are_refused() {
    let deep = format!("<UANodeSet>{}", "<a>".repeat(100_000));
    refused(&deep, "<a>", "nested more than");
    let entities = "<!DOCTYPE a [<!ENTITY b \"ccc\">]><UANodeSet>&b;</UANodeSet>";
    refused(entities, "<!DOCTYPE", "malformed");
    // A structure that contains itself has no default value.
    let endless = with_value(
        "<ExtensionObject><TypeId><Identifier>ns=1;i=20</Identifier></TypeId><Body><Point/></Body></ExtensionObject>",
    )
    .replace("<Field Name=\"X\" DataType=\"i=6\"/>", "<Field Name=\"X\" DataType=\"ns=1;i=2\"/>");
    refused(&endless, "<Point/>", "contains itself");
    // A type that is its own supertype has no root.
    let circle = with_value(
        "<ExtensionObject><TypeId><Identifier>ns=1;i=20</Identifier></TypeId><Body><Point><X/></Point></Body>\
         </ExtensionObject>",
    )
    .replace("IsForward=\"false\">i=29<", "IsForward=\"false\">ns=1;i=1<")
    .replace("<Field Name=\"X\" DataType=\"i=6\"/>", "<Field Name=\"X\" DataType=\"ns=1;i=1\"/>");
    refused(&circle, "\"1:Colour", "derives from itself");
}

proptest! {
    #[test]
    fn no_edit_makes_the_reader_panic(
        at in 0usize..6000, len in 0usize..40, insert in "[<>/\"=&;:!a-z0-9 -]{0,12}", which in 0usize..3
    ) {
        let values = [
            "<ListOfInt32><Int32>1</Int32></ListOfInt32>",
            "<ExtensionObject><TypeId><Identifier>ns=1;i=20</Identifier></TypeId><Body><Point><X>1</X></Point></Body>\
             </ExtensionObject>",
            "<Matrix><Dimensions><Int32>1</Int32></Dimensions><Elements><Float>1</Float></Elements></Matrix>",
        ];
        let mut text = with_value(values[which]);
        let at = at % text.len();
        let end = (at + len).min(text.len());
        if text.is_char_boundary(at) && text.is_char_boundary(end) {
            text.replace_range(at..end, &insert);
        }
        if let Err(error) = read(&text) {
            prop_assert!(error.line >= 1);
        }
    }
}
