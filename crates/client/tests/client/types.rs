//! Structures that only the server defines.

use crate::common::server::FakeType;
use crate::common::*;
use taktwerk_client::{ClientError, OwnedReply, TypeQuestion, TypeReader};
use taktwerk_schema::dynamic::DynamicValue;
use taktwerk_schema::{EnumDefinition, EnumField, StructureDefinition, StructureField, StructureType};
use taktwerk_types::{DecodeLimits, Encode, ExtensionObject, NodeId, Variant};

fn id(number: u32) -> NodeId {
    NodeId::numeric(1, number)
}

fn field(name: &str, data_type: NodeId) -> StructureField {
    StructureField { name: name.into(), data_type, value_rank: -1, ..Default::default() }
}

fn structure(encoding: NodeId, fields: Vec<StructureField>) -> Option<ExtensionObject> {
    let definition = StructureDefinition {
        default_encoding_id: encoding,
        base_data_type: NodeId::numeric(0, 22),
        structure_type: StructureType::STRUCTURE,
        fields,
    };
    Some(ExtensionObject::new(&definition))
}

fn known(
    number: u32,
    encoding: Option<u32>,
    base: NodeId,
    name: &'static str,
    definition: Option<ExtensionObject>,
) -> FakeType {
    FakeType { data_type: id(number), encoding: encoding.map(id), base, name, definition }
}

/// Outer { inner: Inner, mode: Mode, speed: Speed }, Inner { value: Double }, Mode an enumeration, Speed a Double.
fn types() -> Vec<FakeType> {
    let double = NodeId::numeric(0, 11);
    let structure_base = NodeId::numeric(0, 22);
    let mode =
        EnumDefinition { fields: vec![EnumField { value: 3, name: "Auto".into(), ..Default::default() }] };
    vec![
        known(
            10,
            Some(110),
            structure_base.clone(),
            "Outer",
            // A server that omits the encoding from the definition.
            structure(
                NodeId::NULL,
                vec![field("inner", id(11)), field("mode", id(12)), field("speed", id(13))],
            ),
        ),
        known(
            11,
            Some(111),
            structure_base,
            "Inner",
            structure(id(111), vec![field("value", double.clone())]),
        ),
        known(12, None, NodeId::numeric(0, 29), "Mode", Some(ExtensionObject::new(&mode))),
        known(13, None, id(14), "Speed", None),
        known(14, None, double, "Velocity", None),
    ]
}

/// Sends one request to the server. An error is a connection error.
fn ask(world: &mut World, reader: &mut TypeReader, question: TypeQuestion) -> Result<(), ClientError> {
    let handle = match &question {
        TypeQuestion::Browse(request) => world.client.operate(request.clone(), world.now)?,
        TypeQuestion::Read(request) => world.client.operate(request.clone(), world.now)?,
    };
    world.settle();
    let at = world.responses.iter().position(|(answered, _)| *answered == handle);
    let (_, result) = world.responses.remove(at.expect("every request is answered"));
    match question {
        TypeQuestion::Browse(_) => reader.browsed(result.and_then(OwnedReply::decode)),
        TypeQuestion::Read(_) => reader.read(result.and_then(OwnedReply::decode)),
    }
}

fn read_all(world: &mut World, reader: &mut TypeReader) {
    for _ in 0..20 {
        let Some(question) = reader.question() else {
            assert!(reader.is_done());
            return;
        };
        ask(world, reader, question).unwrap();
    }
    panic!("the reader never ends");
}

#[test]
fn a_structure_is_decoded_once_its_types_have_been_read() {
    let mut world = World::connected();
    world.server.types = types();
    let mut body = Vec::new();
    2.5f64.encode(&mut body);
    3i32.encode(&mut body);
    7.5f64.encode(&mut body);
    let object = ExtensionObject::from_binary(id(110), body);
    let mut reader = TypeReader::new();
    assert!(reader.registry().decode(&object, DecodeLimits::DEFAULT).is_err());
    assert!(reader.want(&object));
    assert!(!reader.want(&object));
    read_all(&mut world, &mut reader);
    let decoded = reader.registry().decode(&object, DecodeLimits::DEFAULT).unwrap();
    assert_eq!(&*decoded.type_name, "Outer");
    let Some(DynamicValue::Structure(inner)) = decoded.field("inner") else { panic!("{decoded:?}") };
    assert_eq!(inner.field("value"), Some(&Variant::Double(2.5).into()));
    let Some(DynamicValue::Enumeration { value: 3, name: Some(name) }) = decoded.field("mode") else {
        panic!("{decoded:?}")
    };
    assert_eq!(&**name, "Auto");
    assert_eq!(decoded.field("speed"), Some(&Variant::Double(7.5).into()));
    assert!(!reader.want(&object));
}

#[test]
fn unknown_types_end_the_search() {
    let mut world = World::connected();
    world.server.types =
        vec![known(10, Some(110), NodeId::NULL, "Loop", structure(id(110), vec![field("x", id(99))]))];
    let mut reader = TypeReader::new();
    assert!(reader.want_encoding(&id(110)));
    assert!(reader.want_encoding(&id(777)));
    read_all(&mut world, &mut reader);
    let object = ExtensionObject::from_binary(id(110), vec![]);
    assert!(reader.registry().decode(&object, DecodeLimits::DEFAULT).is_err());
    assert!(!reader.want_data_type(&id(99)));
}

/// Types that are supertypes of each other.
#[test]
fn circular_types_end_the_search() {
    let mut world = World::connected();
    world.server.types = vec![known(1, None, id(2), "A", None), known(2, None, id(1), "B", None)];
    let mut reader = TypeReader::new();
    assert!(reader.want_data_type(&id(1)));
    read_all(&mut world, &mut reader);
    assert!(!reader.registry().knows(&id(1)));
}

#[test]
fn the_request_is_repeated_after_a_lost_connection() {
    for cut in 0..8 {
        let mut world = World::connected();
        world.server.types = types();
        world.cut_after = Some(cut);
        let mut reader = TypeReader::new();
        assert!(reader.want_encoding(&id(110)));
        let mut failures = 0;
        while let Some(question) = reader.question() {
            if ask(&mut world, &mut reader, question).is_err() {
                failures += 1;
                assert!(failures < 20, "cut {cut}");
                world.seconds(1);
            }
        }
        assert!(reader.is_done() && reader.registry().structure(&id(11)).is_some(), "cut {cut}");
    }
}
