//! Checks a value against a DataType, a ValueRank and ArrayDimensions, for Write and for the arguments of Call.

use super::NodeIx;
use super::nodes::Nodes;
use super::view::NodeView;
use taktwerk_schema::ids::{data_type_ids, reference_type_ids};
use taktwerk_types::{
    Array, ArrayValues, BuiltInType, ByteString, ExtensionObject, NodeIdRef, StatusCode, Variant,
};

/// The requirements for a value.
#[derive(Debug)]
pub(crate) struct Expected {
    data_type: NodeIx,
    /// The built-in type of the DataType's values; `None` for abstract types, which allow several.
    built_in: Option<BuiltInType>,
    value_rank: i32,
    array_dimensions: Vec<u32>,
}

/// The result of a check.
#[derive(Debug, PartialEq)]
pub(crate) enum Fit {
    /// It fits, after a conversion that the specification requires.
    Yes(Variant),
    /// Its type, rank or number of dimensions is wrong.
    WrongType,
    /// An array dimension is too long.
    TooLong,
}

impl Expected {
    pub(crate) fn new(
        nodes: &Nodes,
        data_type: NodeIdRef<'_>,
        value_rank: i32,
        array_dimensions: Vec<u32>,
    ) -> Result<Self, StatusCode> {
        let data_type = nodes.resolve(data_type).ok_or(StatusCode::BAD_INTERNAL_ERROR)?;
        Ok(Self { data_type, built_in: built_in(nodes, data_type), value_rank, array_dimensions })
    }

    pub(crate) fn of_variable(nodes: &Nodes, view: &NodeView<'_>) -> Result<Self, StatusCode> {
        let data_type = view.data_type().ok_or(StatusCode::BAD_INTERNAL_ERROR)?;
        let value_rank = view.value_rank().unwrap_or(-2);
        let dimensions =
            if value_rank >= 0 { view.array_dimensions().unwrap_or_default() } else { Vec::new() };
        Self::new(nodes, data_type.as_ref(), value_rank, dimensions)
    }

    /// Checks a whole value.
    pub(crate) fn fit(&self, nodes: &Nodes, value: Variant) -> Fit {
        let value = self.convert(value);
        if value.is_empty() {
            // A null fits only BaseDataType.
            let any = self.data_type == NodeIx::ns0(data_type_ids::BASE_DATA_TYPE);
            return if any { Fit::Yes(value) } else { Fit::WrongType };
        }
        if !self.type_fits(nodes, &value) {
            return Fit::WrongType;
        }
        let dimensions = value.as_array().map(Array::shape);
        let rank_fits = match (self.value_rank, dimensions.as_deref()) {
            (-2, _) | (-3 | -1, None) => true,
            (-3, Some(dimensions)) => dimensions.len() == 1,
            (0, Some(_)) => true,
            (rank, Some(dimensions)) => usize::try_from(rank) == Ok(dimensions.len()),
            _ => false,
        };
        if !rank_fits {
            return Fit::WrongType;
        }
        let lengths = dimensions.iter().flatten().zip(&self.array_dimensions);
        // 0 means any length (Part 3 §5.6.2).
        if lengths.into_iter().any(|(length, max)| *max != 0 && length > max) {
            return Fit::TooLong;
        }
        Fit::Yes(value)
    }

    /// Converts a value that is written to a part of `present` to the form of `present`.
    pub(crate) fn part(&self, present: &Variant, written: Variant) -> Variant {
        match (present, written) {
            // A ByteString and an array of Byte are interchangeable (Part 4 §5.11.4.1).
            (Variant::Array(array), Variant::ByteString(bytes))
                if array.values.element_type() == BuiltInType::Byte =>
            {
                Variant::from(bytes.as_bytes().to_vec())
            }
            (Variant::ByteString(_), Variant::Array(array)) => match array.values {
                ArrayValues::Byte(bytes) => Variant::ByteString(bytes.into()),
                values => Variant::Array(Box::new(Array { values, dimensions: array.dimensions })),
            },
            (_, written) => written,
        }
    }

    /// Part 4 §5.11.4.1: a ByteString is accepted as an array of Byte and vice versa.
    fn convert(&self, value: Variant) -> Variant {
        match (self.built_in, value) {
            (Some(BuiltInType::Byte), Variant::ByteString(bytes)) if self.value_rank == 1 => {
                Variant::from(bytes.as_bytes().to_vec())
            }
            (Some(BuiltInType::ByteString), Variant::Array(array))
                if self.value_rank == -1
                    && array.dimensions.is_empty()
                    && array.values.element_type() == BuiltInType::Byte =>
            {
                match array.values {
                    ArrayValues::Byte(bytes) => Variant::ByteString(ByteString::from(bytes)),
                    values => Variant::Array(Box::new(Array { values, dimensions: Vec::new() })),
                }
            }
            (_, value) => value,
        }
    }

    fn type_fits(&self, nodes: &Nodes, value: &Variant) -> bool {
        let Some(kind) = value.built_in_type() else { return false };
        match (self.built_in, kind) {
            (Some(BuiltInType::ExtensionObject), BuiltInType::ExtensionObject) => {
                self.structures_fit(nodes, value)
            }
            // BaseDataType arrays hold Variants, whose contents are checked individually.
            (None, BuiltInType::Variant) => self.elements_fit(nodes, value),
            (Some(wanted), kind) => wanted == kind,
            (None, kind) => self.allows(nodes, kind),
        }
    }

    /// Whether an abstract DataType has this built-in type as a subtype.
    fn allows(&self, nodes: &Nodes, kind: BuiltInType) -> bool {
        let kind = NodeIx::ns0(u32::from(kind.number()));
        nodes.is_subtype(kind, self.data_type)
    }

    fn elements_fit(&self, nodes: &Nodes, value: &Variant) -> bool {
        match value.as_array().map(|array| &array.values) {
            Some(ArrayValues::Variant(values)) => values.iter().all(|value| {
                value
                    .built_in_type()
                    .is_none_or(|kind| kind == BuiltInType::Variant || self.allows(nodes, kind))
            }),
            _ => false,
        }
    }

    fn structures_fit(&self, nodes: &Nodes, value: &Variant) -> bool {
        let fits = |object: &ExtensionObject| {
            object.is_null()
                || structure_type(nodes, object).is_some_and(|kind| nodes.is_subtype(kind, self.data_type))
        };
        match value {
            Variant::ExtensionObject(object) => fits(object),
            Variant::Array(array) => match &array.values {
                ArrayValues::ExtensionObject(objects) => objects.iter().all(fits),
                _ => false,
            },
            _ => false,
        }
    }
}

/// The DataType of a structure, from the id of its encoding.
fn structure_type(nodes: &Nodes, object: &ExtensionObject) -> Option<NodeIx> {
    let encoding = nodes.resolve(object.type_id.as_ref())?;
    let mut found = None;
    nodes.references(encoding, |reference| {
        if !reference.is_forward && reference.reference_type.index == reference_type_ids::HAS_ENCODING {
            found = Some(reference.target);
        }
        found.is_none()
    });
    // Some clients send the id of the DataType itself, which is unambiguous.
    found.or(Some(encoding))
}

/// The built-in type of a DataType's values (Part 6 §5.1.2): the nearest one above it. `None` for the abstract types
/// above the built-in ones.
pub(crate) fn built_in(nodes: &Nodes, mut data_type: NodeIx) -> Option<BuiltInType> {
    for _ in 0..64 {
        match data_type.index {
            data_type_ids::BASE_DATA_TYPE
            | data_type_ids::NUMBER
            | data_type_ids::INTEGER
            | data_type_ids::U_INTEGER => return None,
            data_type_ids::ENUMERATION => return Some(BuiltInType::Int32),
            id if id < 24 || id == u32::from(BuiltInType::DiagnosticInfo.number()) => {
                return BuiltInType::from_number(u8::try_from(id).ok()?);
            }
            _ => {}
        }
        data_type = nodes.supertype(data_type)?;
    }
    None
}
