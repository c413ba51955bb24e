use super::*;
use taktwerk_schema::{
    FieldMetaData, StructureDefinition, StructureDescription, StructureField, StructureType,
};

fn field(name: &str, kind: BuiltInType) -> FieldMetaData {
    FieldMetaData {
        name: name.into(),
        built_in_type: kind.number(),
        data_type: NodeId::numeric(0, u32::from(kind.number())),
        value_rank: -1,
        ..FieldMetaData::default()
    }
}

fn encode(layout: &RawLayout, values: &[Variant]) -> Vec<u8> {
    let (mut scratch, mut out) = (Vec::new(), Vec::new());
    for (index, value) in values.iter().enumerate() {
        layout.encode_field(index, &DataValue::new(value.clone()), &mut scratch, &mut out).unwrap();
    }
    out
}

fn decode(layout: &RawLayout, bytes: &[u8]) -> Result<Vec<Variant>, DecodeError> {
    let mut fields = Vec::new();
    layout.decode(&mut Decoder::new(bytes, Default::default()), &mut fields)?;
    Ok(fields.into_iter().map(|field| field.value.value.unwrap()).collect())
}

#[test]
fn strings_and_arrays_are_padded() {
    let text = FieldMetaData { max_string_length: 6, ..field("text", BuiltInType::String) };
    let array =
        FieldMetaData { value_rank: 1, array_dimensions: vec![3], ..field("array", BuiltInType::UInt16) };
    let meta_data = DataSetMetaDataType {
        fields: vec![field("flag", BuiltInType::Boolean), text, array, field("last", BuiltInType::Byte)],
        ..Default::default()
    };
    let layout = RawLayout::new(&meta_data).unwrap();
    assert_eq!(layout.fixed_len(), Some(1 + 10 + 10 + 1));
    let values = [true.into(), "abc".into(), vec![1u16, 2].into(), 9u8.into()];
    let bytes = encode(&layout, &values);
    let expected = [1, 3, 0, 0, 0, b'a', b'b', b'c', 0, 0, 0, 2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 9];
    assert_eq!(bytes, expected);
    assert_eq!(decode(&layout, &bytes).unwrap(), values);
    for cut in 0..bytes.len() {
        assert!(decode(&layout, &bytes[..cut]).is_err());
    }
}

#[test]
fn values_that_do_not_fit_become_zeros_and_are_reported() {
    let text = FieldMetaData { max_string_length: 2, ..field("text", BuiltInType::String) };
    let meta_data = DataSetMetaDataType { fields: vec![text], ..Default::default() };
    let layout = RawLayout::new(&meta_data).unwrap();
    let (mut scratch, mut out) = (Vec::new(), Vec::new());
    for value in [
        DataValue::new("abc"),
        DataValue::new(1u8),
        DataValue::from_status(StatusCode::BAD_NOT_CONNECTED),
        DataValue::default(),
    ] {
        out.clear();
        assert!(layout.encode_field(0, &value, &mut scratch, &mut out).unwrap_err().is_bad());
        assert_eq!(out, [0; 6]);
    }
}

#[test]
fn matrices_round_trip() {
    let matrix =
        FieldMetaData { value_rank: 2, array_dimensions: vec![2, 3], ..field("matrix", BuiltInType::Int32) };
    let meta_data = DataSetMetaDataType { fields: vec![matrix], ..Default::default() };
    let layout = RawLayout::new(&meta_data).unwrap();
    let value = Variant::matrix(vec![1i32, 2, 3, 4], vec![2, 2]).unwrap();
    let bytes = encode(&layout, std::slice::from_ref(&value));
    assert_eq!(bytes.len(), 4 + 8 + 24);
    assert_eq!(decode(&layout, &bytes).unwrap(), [value]);
}

fn structure(kind: StructureType) -> (DataSetMetaDataType, NodeId) {
    let id = NodeId::numeric(1, 3000);
    let encoding = NodeId::numeric(1, 3001);
    let member = |name: &str, kind: BuiltInType, is_optional: bool| StructureField {
        name: name.into(),
        data_type: NodeId::numeric(0, u32::from(kind.number())),
        value_rank: -1,
        max_string_length: 4,
        is_optional,
        ..Default::default()
    };
    let definition = StructureDefinition {
        default_encoding_id: encoding.clone(),
        structure_type: kind,
        fields: vec![
            member("a", BuiltInType::UInt16, true),
            member("b", BuiltInType::String, false),
            member("c", BuiltInType::Double, true),
        ],
        ..Default::default()
    };
    let meta_data = DataSetMetaDataType {
        structure_data_types: vec![StructureDescription {
            data_type_id: id.clone(),
            structure_definition: definition,
            ..Default::default()
        }],
        fields: vec![FieldMetaData { data_type: id, ..field("s", BuiltInType::ExtensionObject) }],
        ..Default::default()
    };
    (meta_data, encoding)
}

#[test]
fn structures_optional_fields_and_unions() {
    let cases: [(StructureType, Vec<u8>, usize); 3] = [
        (StructureType::STRUCTURE, [&[1, 0, 1, 0, 0, 0, b'x'][..], &[7; 8]].concat(), 2 + 8 + 8),
        (
            StructureType::STRUCTURE_WITH_OPTIONAL_FIELDS,
            [&[2, 0, 0, 0, 1, 0, 0, 0, b'x'][..], &[7; 8]].concat(),
            4 + 2 + 8 + 8,
        ),
        (StructureType::UNION, vec![1, 0, 0, 0, 5, 5], 4 + 8),
    ];
    for (kind, body, raw_len) in cases {
        let (meta_data, encoding) = structure(kind);
        let layout = RawLayout::new(&meta_data).unwrap();
        assert_eq!(layout.fixed_len(), Some(raw_len));
        let value: Variant = ExtensionObject::from_binary(encoding, body).into();
        let bytes = encode(&layout, std::slice::from_ref(&value));
        assert_eq!(bytes.len(), raw_len);
        assert_eq!(decode(&layout, &bytes).unwrap(), [value]);
    }
}

#[test]
fn types_without_a_size_are_refused() {
    for kind in [BuiltInType::NodeId, BuiltInType::Variant, BuiltInType::LocalizedText] {
        let meta_data = DataSetMetaDataType { fields: vec![field("f", kind)], ..Default::default() };
        assert_eq!(RawLayout::new(&meta_data).unwrap_err().field, "f");
    }
    let (mut meta_data, _) = structure(StructureType::STRUCTURE);
    let own = meta_data.structure_data_types[0].data_type_id.clone();
    meta_data.structure_data_types[0].structure_definition.fields[0].data_type = own;
    assert!(RawLayout::new(&meta_data).unwrap_err().reason.contains("nested"));
}
