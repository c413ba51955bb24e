//! Rust types as OPC UA values: for Variables, Method arguments and read results.

use core::time::Duration;
use taktwerk_types::{
    Array, ArrayValues, BuiltInType, ByteString, DataValue, ExpandedNodeId, ExtensionObject, Guid,
    LocalizedText, NodeId, QualifiedName, StatusCode, Structure, UaString, UtcTime, Variant, XmlElement,
};

/// A Rust type that corresponds to an OPC UA DataType.
///
/// Implemented for the built-in types, `String`, [`Duration`] (milliseconds as a Double), [`Struct`] around generated
/// structures, [`Variant`] itself (BaseDataType), and vectors of all of them.
pub trait Value: Sized + Send + 'static {
    /// The DataType's id in namespace 0.
    const DATA_TYPE: u32;
    /// −1 for scalars, 1 for vectors, −2 for any.
    const VALUE_RANK: i32 = -1;

    /// The value as a Variant.
    fn into_variant(self) -> Variant;

    /// Reads a Variant.
    ///
    /// # Errors
    /// [`WrongType`] if the Variant holds another type.
    fn from_variant(value: Variant) -> Result<Self, WrongType>;
}

/// A value has another type than the program expects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongType(String);

impl WrongType {
    fn new(wanted: &str, found: &Variant) -> Self {
        Self(format!("the value is {}, not {wanted}", found.type_name()))
    }

    pub(crate) fn count(wanted: usize, found: usize) -> Self {
        Self(format!("there are {found} results, not {wanted}"))
    }

    /// Bad_TypeMismatch.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        StatusCode::BAD_TYPE_MISMATCH
    }
}

macro_rules! built_in {
    ($($type:ident),*) => {$(
        impl Value for $type {
            const DATA_TYPE: u32 = kind_of!($type).number() as u32;

            fn into_variant(self) -> Variant {
                self.into()
            }

            fn from_variant(value: Variant) -> Result<Self, WrongType> {
                Self::try_from(value).map_err(|error| WrongType(error.to_string()))
            }
        }

        impl Value for Vec<$type> {
            const DATA_TYPE: u32 = <$type as Value>::DATA_TYPE;
            const VALUE_RANK: i32 = 1;

            fn into_variant(self) -> Variant {
                self.into()
            }

            fn from_variant(value: Variant) -> Result<Self, WrongType> {
                Self::try_from(value).map_err(|error| WrongType(error.to_string()))
            }
        }
    )*};
}

macro_rules! kind_of {
    (bool) => {
        BuiltInType::Boolean
    };
    (i8) => {
        BuiltInType::SByte
    };
    (u8) => {
        BuiltInType::Byte
    };
    (i16) => {
        BuiltInType::Int16
    };
    (u16) => {
        BuiltInType::UInt16
    };
    (i32) => {
        BuiltInType::Int32
    };
    (u32) => {
        BuiltInType::UInt32
    };
    (i64) => {
        BuiltInType::Int64
    };
    (u64) => {
        BuiltInType::UInt64
    };
    (f32) => {
        BuiltInType::Float
    };
    (f64) => {
        BuiltInType::Double
    };
    (UaString) => {
        BuiltInType::String
    };
    (UtcTime) => {
        BuiltInType::DateTime
    };
    ($other:ident) => {
        BuiltInType::$other
    };
}

built_in! {
    bool, i8, u8, i16, u16, i32, u32, i64, u64, f32, f64, UaString, UtcTime, Guid, ByteString, XmlElement, NodeId,
    ExpandedNodeId, StatusCode, QualifiedName, LocalizedText
}

impl Value for String {
    const DATA_TYPE: u32 = UaString::DATA_TYPE;

    fn into_variant(self) -> Variant {
        self.into()
    }

    fn from_variant(value: Variant) -> Result<Self, WrongType> {
        UaString::from_variant(value).map(|text| text.as_str().to_owned())
    }
}

impl Value for Vec<String> {
    const DATA_TYPE: u32 = UaString::DATA_TYPE;
    const VALUE_RANK: i32 = 1;

    fn into_variant(self) -> Variant {
        self.into_iter().map(UaString::from).collect::<Vec<_>>().into()
    }

    fn from_variant(value: Variant) -> Result<Self, WrongType> {
        Ok(Vec::<UaString>::from_variant(value)?.iter().map(|text| text.as_str().to_owned()).collect())
    }
}

/// The DataType Duration: milliseconds as a Double (Part 3 §8.13).
impl Value for Duration {
    const DATA_TYPE: u32 = taktwerk_schema::ids::data_type_ids::DURATION;

    fn into_variant(self) -> Variant {
        (self.as_secs_f64() * 1000.0).into()
    }

    fn from_variant(value: Variant) -> Result<Self, WrongType> {
        let millis = f64::from_variant(value)?;
        Self::try_from_secs_f64(millis / 1000.0)
            .map_err(|_| WrongType(format!("{millis} ms is not a duration")))
    }
}

impl Value for ExtensionObject {
    const DATA_TYPE: u32 = taktwerk_schema::ids::data_type_ids::STRUCTURE;

    fn into_variant(self) -> Variant {
        self.into()
    }

    fn from_variant(value: Variant) -> Result<Self, WrongType> {
        Self::try_from(value).map_err(|error| WrongType(error.to_string()))
    }
}

impl Value for Variant {
    const DATA_TYPE: u32 = taktwerk_schema::ids::data_type_ids::BASE_DATA_TYPE;
    const VALUE_RANK: i32 = -2;

    fn into_variant(self) -> Variant {
        self
    }

    fn from_variant(value: Variant) -> Result<Self, WrongType> {
        Ok(value)
    }
}

/// An array of values of any types.
impl Value for Vec<Variant> {
    const DATA_TYPE: u32 = Variant::DATA_TYPE;
    const VALUE_RANK: i32 = 1;

    fn into_variant(self) -> Variant {
        self.into()
    }

    fn from_variant(value: Variant) -> Result<Self, WrongType> {
        Self::try_from(value).map_err(|error| WrongType(error.to_string()))
    }
}

/// A structure of the schema as a value: `Struct(Range { low: 0.0, high: 100.0 })`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Struct<T>(pub T);

impl<T: Structure + Send + 'static> Value for Struct<T> {
    const DATA_TYPE: u32 = T::DATA_TYPE_ID;

    fn into_variant(self) -> Variant {
        Variant::from_structure(&self.0)
    }

    fn from_variant(value: Variant) -> Result<Self, WrongType> {
        let object = ExtensionObject::from_variant(value)?;
        structure(&object).map(Self)
    }
}

impl<T: Structure + Send + 'static> Value for Vec<Struct<T>> {
    const DATA_TYPE: u32 = T::DATA_TYPE_ID;
    const VALUE_RANK: i32 = 1;

    fn into_variant(self) -> Variant {
        Variant::from_structures(self.iter().map(|value| &value.0))
    }

    fn from_variant(value: Variant) -> Result<Self, WrongType> {
        match value {
            Variant::Array(array) => match array.values {
                ArrayValues::ExtensionObject(objects) => {
                    objects.iter().map(|object| structure(object).map(Struct)).collect()
                }
                values => {
                    let found = Variant::Array(Box::new(Array { values, dimensions: array.dimensions }));
                    Err(WrongType::new("an array of structures", &found))
                }
            },
            other => Err(WrongType::new("an array of structures", &other)),
        }
    }
}

fn structure<T: Structure>(object: &ExtensionObject) -> Result<T, WrongType> {
    object.decode().map_err(|error| WrongType(format!("a structure of type {}: {error}", object.type_id)))
}

/// An initial value of a Variable: any [`Value`], and string and array literals.
pub trait Initial {
    /// The type of the Variable.
    type Value: Value;

    /// The value.
    fn into_value(self) -> Self::Value;
}

impl<T: Value> Initial for T {
    type Value = T;

    fn into_value(self) -> T {
        self
    }
}

impl Initial for &str {
    type Value = String;

    fn into_value(self) -> String {
        self.to_owned()
    }
}

impl<T, const N: usize> Initial for [T; N]
where
    Vec<T>: Value,
{
    type Value = Vec<T>;

    fn into_value(self) -> Vec<T> {
        self.into()
    }
}

/// Converts a read value to a Rust type.
///
/// # Errors
/// The value's status if it is bad, Bad_NoData if there is no value, Bad_TypeMismatch if it is of another type.
pub fn typed<T: Value>(value: DataValue) -> Result<T, StatusCode> {
    if value.status().is_bad() {
        return Err(value.status());
    }
    let variant = value.value.ok_or(StatusCode::BAD_NO_DATA)?;
    T::from_variant(variant).map_err(|error| error.status())
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::Range;

    fn round_trip<T: Value + Clone + PartialEq + core::fmt::Debug>(value: T) {
        assert_eq!(T::from_variant(value.clone().into_variant()), Ok(value));
    }

    #[test]
    fn values_survive_a_round_trip() {
        round_trip(true);
        round_trip(-5i16);
        round_trip(vec![1.5f64, -2.5]);
        round_trip("text".to_owned());
        round_trip(vec!["a".to_owned(), String::new()]);
        round_trip(Duration::from_millis(1500));
        round_trip(Struct(Range { low: -1.0, high: 1.0 }));
        round_trip(vec![Struct(Range::default()), Struct(Range { low: 1.0, high: 2.0 })]);
        round_trip(vec![Variant::from(1), Variant::from("two")]);
        round_trip(NodeId::numeric(0, 85));
    }

    #[test]
    fn other_types_are_named() {
        let error = f64::from_variant(Variant::from(1i32)).unwrap_err();
        assert_eq!(error.to_string(), "the value is Int32, not Double");
        assert!(Vec::<Struct<Range>>::from_variant(vec![1.0].into()).is_err());
        assert!(Duration::from_variant((-1.0).into()).is_err());
        assert_eq!(
            typed::<f64>(DataValue::from_status(StatusCode::BAD_TIMEOUT)),
            Err(StatusCode::BAD_TIMEOUT)
        );
        assert_eq!(typed::<f64>(DataValue::default()), Err(StatusCode::BAD_NO_DATA));
    }

    #[test]
    fn literals_have_the_expected_types() {
        fn data_type<I: Initial>(_: I) -> (u32, i32) {
            (I::Value::DATA_TYPE, I::Value::VALUE_RANK)
        }
        assert_eq!(data_type(1.0), (11, -1));
        assert_eq!(data_type("text"), (12, -1));
        assert_eq!(data_type([1u8, 2]), (3, 1));
        assert_eq!(data_type(Struct(Range::default())), (884, -1));
        assert_eq!(data_type(Variant::Empty), (24, -2));
    }
}
