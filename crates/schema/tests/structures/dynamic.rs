//! Structures known only at run time: round trips with generated definitions, and agreement with the generated Rust
//! types.

use crate::filler::Filler;
use proptest::prelude::*;
use taktwerk_schema::dynamic::{DynamicError, DynamicStructure, DynamicValue, TypeRegistry};
use taktwerk_schema::{
    Argument, EUInformation, EnumDefinition, EnumField, Range, StructureDefinition, StructureField,
    StructureType, description,
};
use taktwerk_types::{
    ArrayValues, BuiltInType, Decode, DecodeError, DecodeLimits, Decoder, Encode, ExtensionObject,
    LocalizedText, NodeId, Variant,
};

const LIMITS: DecodeLimits = DecodeLimits::DEFAULT;

fn id(number: u32) -> NodeId {
    NodeId::numeric(2, number)
}

fn field(name: &str, data_type: NodeId, value_rank: i32, is_optional: bool) -> StructureField {
    StructureField { name: name.into(), data_type, value_rank, is_optional, ..StructureField::default() }
}

fn definition(
    number: u32,
    structure_type: StructureType,
    fields: Vec<StructureField>,
) -> StructureDefinition {
    StructureDefinition {
        default_encoding_id: id(number + 1000),
        structure_type,
        fields,
        ..Default::default()
    }
}

fn register(types: &mut TypeRegistry, number: u32, kind: StructureType, fields: Vec<StructureField>) {
    let definition = ExtensionObject::new(&definition(number, kind, fields));
    types.add(id(number), &format!("T{number}"), &NodeId::from(22), &definition).unwrap();
}

/// Colour (1), Point (2), Choice (3), Everything (4), Loose (5).
fn plant() -> TypeRegistry {
    let mut types = TypeRegistry::new();
    let colours = ["Red", "Green"].into_iter().zip(0i64..).map(|(name, value)| EnumField {
        value,
        name: name.into(),
        display_name: name.into(),
        ..EnumField::default()
    });
    let colour = ExtensionObject::new(&EnumDefinition { fields: colours.collect() });
    types.add(id(1), "Colour", &NodeId::from(29), &colour).unwrap();
    let (double, int32, string) = (NodeId::from(11), NodeId::from(6), NodeId::from(12));
    register(
        &mut types,
        2,
        StructureType::STRUCTURE,
        vec![field("X", double.clone(), -1, false), field("Y", double.clone(), -1, false)],
    );
    register(
        &mut types,
        3,
        StructureType::UNION,
        vec![field("Number", int32.clone(), -1, false), field("Point", id(2), -1, false)],
    );
    register(
        &mut types,
        4,
        StructureType::STRUCTURE_WITH_OPTIONAL_FIELDS,
        vec![
            field("Colour", id(1), -1, false),
            field("Label", string, -1, true),
            field("Path", id(2), 1, false),
            field("Choice", id(3), -1, true),
            field("Matrix", double, 2, false),
            field("Any", NodeId::from(24), -1, true),
            field("Range", NodeId::from(884), -1, false),
            field("Colours", id(1), 1, false),
            field("Grid", id(2), 2, false),
        ],
    );
    register(
        &mut types,
        5,
        StructureType::STRUCTURE_WITH_SUBTYPED_VALUES,
        vec![
            field("Fixed", id(2), -1, false),
            field("Loose", id(2), -1, true),
            field("Value", int32, -1, true),
        ],
    );
    types
}

fn point(x: f64, y: f64) -> DynamicStructure {
    DynamicStructure::new(id(2), "T2").with("X", x).with("Y", y)
}

fn round_trip(types: &TypeRegistry, value: &DynamicStructure) -> DynamicStructure {
    let object = types.encode(value).unwrap();
    let back = types.decode(&object, LIMITS).unwrap();
    assert_eq!(types.encode(&back).unwrap(), object);
    back
}

#[test]
fn every_form_of_field() {
    let types = plant();
    let grid = DynamicValue::Array {
        values: vec![point(1.0, 2.0).into(), point(3.0, 4.0).into()],
        dimensions: vec![1, 2],
    };
    let value = DynamicStructure::new(id(4), "T4")
        .with("Colour", DynamicValue::Enumeration { value: 1, name: Some("Green".into()) })
        .with("Path", DynamicValue::structures(vec![point(0.5, 0.25)]))
        .with("Choice", DynamicStructure::new(id(3), "T3").with("Point", point(7.0, 8.0)))
        .with("Matrix", Variant::matrix(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], vec![3, 2]).unwrap())
        .with("Range", DynamicStructure::new(NodeId::from(884), "Range").with("Low", 0.0).with("High", 9.0))
        .with("Colours", DynamicValue::Array { values: vec![], dimensions: vec![] })
        .with("Grid", grid);
    assert_eq!(round_trip(&types, &value), value);
    let text = types.print(&Variant::from(types.encode(&value).unwrap())).to_string();
    assert_eq!(
        text,
        "T4 {Colour: Green, Path: [T2 {X: 0.5, Y: 0.25}], Choice: T3 {Point: T2 {X: 7, Y: 8}}, \
         Matrix: [[1, 2], [3, 4], [5, 6]], Range: Range {Low: 0, High: 9}, Colours: [], \
         Grid: [[T2 {X: 1, Y: 2}, T2 {X: 3, Y: 4}]]}"
    );
}

#[test]
fn the_wire_form_is_that_of_part_6() {
    let types = plant();
    let choice = DynamicStructure::new(id(3), "T3").with("Number", 7i32);
    assert_eq!(types.encode(&choice).unwrap().binary().unwrap(), [1, 0, 0, 0, 7, 0, 0, 0]);
    let null = DynamicStructure::new(id(3), "T3");
    assert_eq!(types.encode(&null).unwrap().binary().unwrap(), [0; 4]);
    assert_eq!(round_trip(&types, &null).fields, []);
    let loose = DynamicStructure::new(id(5), "T5").with("Loose", point(1.0, 2.0)).with("Value", 3u8);
    let object = types.encode(&loose).unwrap();
    let mut decoder = Decoder::new(object.binary().unwrap(), LIMITS);
    // A plain field in place, then an ExtensionObject, then a Variant.
    assert_eq!((f64::decode(&mut decoder), f64::decode(&mut decoder)), (Ok(0.0), Ok(0.0)));
    assert_eq!(<ExtensionObject as Decode>::decode(&mut decoder).unwrap().type_id, id(1002));
    assert_eq!(Variant::decode(&mut decoder).unwrap(), Variant::from(3u8));
    assert_eq!(decoder.remaining(), 0);
    let text = types.print(&Variant::from(object)).to_string();
    assert_eq!(text, "T5 {Fixed: T2 {X: 0, Y: 0}, Loose: T2 {X: 1, Y: 2}, Value: 3}");
}

#[test]
fn option_sets_and_simple_types() {
    let mut types = TypeRegistry::new();
    let bits = ExtensionObject::new(&EnumDefinition { fields: vec![EnumField::default()] });
    types.add(id(1), "Bits", &NodeId::from(5), &bits).unwrap();
    types.add(id(2), "LargeBits", &NodeId::from(12755), &bits).unwrap();
    types.add_subtype(id(3), &NodeId::from(290)).unwrap();
    let fields =
        vec![field("A", id(1), -1, false), field("B", id(2), -1, false), field("C", id(3), -1, false)];
    register(&mut types, 4, StructureType::STRUCTURE, fields);
    let value = DynamicStructure::new(id(4), "T4").with("A", 5u16).with("C", 2.5);
    let object = types.encode(&value).unwrap();
    // UInt16, two null ByteStrings, Double.
    assert_eq!(object.binary().unwrap().len(), 2 + 8 + 8);
    assert_eq!(
        types.print(&object.into()).to_string(),
        "T4 {A: 5, B: LargeBits {Value: null, ValidBits: null}, C: 2.5}"
    );
}

#[test]
fn missing_types_are_listed() {
    let mut types = TypeRegistry::new();
    register(
        &mut types,
        2,
        StructureType::STRUCTURE,
        vec![field("A", id(7), -1, false), field("B", id(8), 1, false)],
    );
    assert_eq!(types.missing().into_iter().collect::<Vec<_>>(), [id(7), id(8)]);
    let object = ExtensionObject::from_binary(id(1002), vec![0; 20]);
    assert_eq!(types.decode(&object, LIMITS), Err(DynamicError::UnknownType(id(7))));
    let unknown = ExtensionObject::from_binary(id(55), vec![]);
    assert_eq!(types.decode(&unknown, LIMITS), Err(DynamicError::UnknownType(id(55))));
    assert_eq!(types.print(&unknown.clone().into()).to_string(), Variant::from(unknown).to_string());
}

#[test]
fn wrong_values_are_named() {
    let types = plant();
    let wrong = point(1.0, 2.0).with("Z", 3.0);
    assert_eq!(types.encode(&wrong).unwrap_err().to_string(), "T2 has no field Z");
    let wrong = DynamicStructure::new(id(2), "T2").with("X", "far");
    assert_eq!(types.encode(&wrong).unwrap_err().to_string(), "T2.X is Double, not String");
    let wrong = DynamicStructure::new(id(3), "T3").with("Number", 1i32).with("Point", point(0.0, 0.0));
    assert!(matches!(types.encode(&wrong), Err(DynamicError::NotOneField(_))));
    let wrong = DynamicStructure::new(id(4), "T4").with("Matrix", vec![1.0, 2.0]);
    assert!(types.encode(&wrong).unwrap_err().to_string().contains("dimensions match"));
}

#[test]
fn types_that_contain_themselves() {
    let mut types = TypeRegistry::new();
    register(&mut types, 2, StructureType::STRUCTURE, vec![field("Me", id(2), -1, false)]);
    let endless = types.encode(&DynamicStructure::new(id(2), "T2"));
    assert!(matches!(endless, Err(DynamicError::Endless(_))));
    let object = ExtensionObject::from_binary(id(1002), vec![0; 100]);
    let error = types.decode(&object, LIMITS).unwrap_err();
    assert!(
        matches!(error, DynamicError::Decode(DecodeError::Limit { what: "nesting depth", .. })),
        "{error}"
    );
    // A tree is valid: its arrays end the recursion.
    register(&mut types, 3, StructureType::STRUCTURE, vec![field("Children", id(3), 1, false)]);
    let leaf = || DynamicStructure::new(id(3), "T3").with("Children", DynamicValue::structures(vec![]));
    let tree =
        DynamicStructure::new(id(3), "T3").with("Children", DynamicValue::structures(vec![leaf(), leaf()]));
    assert_eq!(round_trip(&types, &tree), tree);
}

#[test]
fn claimed_values_are_not_allocated() {
    let mut types = TypeRegistry::new();
    register(&mut types, 2, StructureType::STRUCTURE, vec![]);
    register(&mut types, 3, StructureType::STRUCTURE, vec![field("Empties", id(2), 1, false)]);
    let mut claimed = 8_000_000i32.to_le_bytes().to_vec();
    let error = types.decode(&ExtensionObject::from_binary(id(1003), claimed.clone()), LIMITS).unwrap_err();
    assert!(
        matches!(error, DynamicError::Decode(DecodeError::Limit { what: "number of values", .. })),
        "{error}"
    );
    register(&mut types, 4, StructureType::STRUCTURE, vec![field("M", NodeId::from(3), 3, false)]);
    claimed = 3i32.to_le_bytes().to_vec();
    (0..3).for_each(|_| claimed.extend_from_slice(&100_000i32.to_le_bytes()));
    let error = types.decode(&ExtensionObject::from_binary(id(1004), claimed), LIMITS).unwrap_err();
    assert!(matches!(error, DynamicError::Decode(DecodeError::Limit { .. })), "{error}");
}

#[test]
fn generated_and_dynamic_agree_on_every_structure() {
    let types = TypeRegistry::new();
    for structure in description::structures().iter().filter(|structure| structure.binary_encoding_id != 0) {
        for seed in 0..20 {
            let mut bytes = Vec::new();
            Filler::new(seed).structure(structure, &mut bytes);
            let object =
                ExtensionObject::from_binary(NodeId::numeric(0, structure.binary_encoding_id), bytes);
            let value =
                types.decode(&object, LIMITS).unwrap_or_else(|error| panic!("{}: {error}", structure.name));
            assert_eq!(types.encode(&value).unwrap(), object, "{}", structure.name);
            assert!(types.print(&object.into()).to_string().starts_with(structure.name));
        }
    }
}

#[test]
fn known_structures_print() {
    let types = TypeRegistry::new();
    let range = Variant::from_structure(&Range { low: 0.0, high: 1.5 });
    assert_eq!(types.print(&range).to_string(), "Range {Low: 0, High: 1.5}");
    let unit =
        EUInformation { unit_id: 4408652, display_name: LocalizedText::from("°C"), ..Default::default() };
    let text = types.print(&Variant::from_structures([&unit])).to_string();
    assert_eq!(text, "[EUInformation {NamespaceUri: , UnitId: 4408652, DisplayName: °C, Description: }]");
    let argument =
        Argument { name: "x".into(), data_type: NodeId::from(11), value_rank: -1, ..Argument::default() };
    assert!(
        types
            .print(&Variant::from_structure(&argument))
            .to_string()
            .starts_with("Argument {Name: x, DataType: i=11")
    );
}

/// A random definition: for each field its data type (built-in, or an earlier type), rank and flag.
#[derive(Debug, Clone)]
struct MadeUp {
    kind: i32,
    fields: Vec<(u32, i32, bool)>,
}

fn made_up() -> impl Strategy<Value = Vec<MadeUp>> {
    let field = (0u32..40, prop_oneof![3 => Just(-1), 2 => Just(1), 1 => Just(2)], any::<bool>());
    let one =
        (0i32..5, prop::collection::vec(field, 0..6)).prop_map(|(kind, fields)| MadeUp { kind, fields });
    prop::collection::vec(one, 1..6)
}

fn registry(made_up: &[MadeUp]) -> TypeRegistry {
    let mut types = TypeRegistry::new();
    for (number, entry) in (1u32..).zip(made_up) {
        let fields = entry.fields.iter().enumerate().map(|(at, (kind, rank, flag))| {
            let data_type = match kind {
                1..=25 => NodeId::numeric(0, *kind),
                26..=29 => NodeId::numeric(0, [884, 257, 290, 12755][(*kind - 26) as usize]),
                // Use an earlier type, so that no type contains itself.
                _ if number > 1 => id(1 + kind % (number - 1)),
                _ => NodeId::from(6),
            };
            field(&format!("F{at}"), data_type, *rank, *flag)
        });
        register(&mut types, number, StructureType(entry.kind), fields.collect());
    }
    types
}

/// Bytes that are likely to decode: small numbers, so that lengths, switches and masks are plausible.
fn plausible() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => (0i32..3).prop_map(|number| number.to_le_bytes().to_vec()),
        1 => Just((-1i32).to_le_bytes().to_vec()),
        2 => (0u8..26).prop_map(|byte| vec![byte]),
        1 => any::<[u8; 8]>().prop_map(|bytes| bytes.to_vec()),
    ];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn made_up_types_round_trip(made_up in made_up(), bytes in plausible(), tail in 0usize..4000) {
        let types = registry(&made_up);
        let number = u32::try_from(made_up.len()).unwrap();
        // Trailing zeros let most decodings finish.
        let mut body = bytes;
        body.resize(body.len() + tail, 0);
        let object = ExtensionObject::from_binary(id(number + 1000), body);
        if let Ok(value) = types.decode(&object, LIMITS) {
            let again = types.encode(&value).unwrap();
            let back = types.decode(&again, LIMITS).unwrap();
            prop_assert_eq!(types.encode(&back).unwrap().encode_to_vec(), again.encode_to_vec());
            let _ = types.print(&Variant::from(again)).to_string();
        }
        // Default values can be encoded without input bytes.
        let default = types.encode(&DynamicStructure::new(id(number), "T")).unwrap();
        prop_assert!(types.decode(&default, LIMITS).is_ok());
    }
}

#[test]
fn most_made_up_values_are_decoded() {
    // Guards the test above, which would show nothing if no value decoded.
    let types = plant();
    let object = ExtensionObject::from_binary(id(1004), vec![0; 200]);
    let value = types.decode(&object, LIMITS).unwrap();
    assert!(matches!(
        value.field("Matrix"),
        Some(DynamicValue::Variant(Variant::Array(array))) if array.values == ArrayValues::empty(BuiltInType::Double)
    ));
}
