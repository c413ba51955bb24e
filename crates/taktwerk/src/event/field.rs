//! Fields of events and their values.

use super::ReadEventError;
use crate::value::{Value, WrongType};
use core::fmt;
use taktwerk_schema::ids::data_type_ids;
use taktwerk_types::{
    ByteString, ExtensionObject, LocalizedText, NodeId, QualifiedName, StatusCode, UaString, Variant,
};

/// A field of an event type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    path: &'static [(&'static str, &'static str)],
    is_optional: bool,
}

impl Field {
    /// A field with values of type `T` at a path of BrowseNames with namespace URIs. An empty path is the ConditionId.
    #[must_use]
    pub const fn new<T: FieldValue>(path: &'static [(&'static str, &'static str)]) -> Self {
        Self { path, is_optional: T::IS_OPTIONAL }
    }

    /// The BrowseNames from the type to the field, with their namespace URIs.
    #[must_use]
    pub const fn path(&self) -> &'static [(&'static str, &'static str)] {
        self.path
    }

    /// Whether events may lack the field.
    #[must_use]
    pub const fn is_optional(&self) -> bool {
        self.is_optional
    }

    /// The path with the server's namespace indexes.
    ///
    /// # Errors
    /// The namespace URI that the server does not have.
    pub(super) fn resolve(
        &self,
        index: &impl Fn(&str) -> Option<u16>,
    ) -> Result<Vec<QualifiedName>, &'static str> {
        let name = |(uri, name): &(&'static str, &'static str)| {
            index(uri).map(|index| QualifiedName::new(index, *name)).ok_or(*uri)
        };
        self.path.iter().map(name).collect()
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str("ConditionId");
        }
        for (at, (_, name)) in self.path.iter().enumerate() {
            let between = if at > 0 { "/" } else { "" };
            write!(f, "{between}{name}")?;
        }
        Ok(())
    }
}

/// A type for fields of typed events: a [`Value`], or an `Option` of one.
pub trait FieldValue: Sized {
    /// Whether events may lack the field.
    const IS_OPTIONAL: bool;

    /// The value; Empty if there is none.
    fn into_field(self) -> Variant;

    /// Reads a value.
    ///
    /// # Errors
    /// The value has another type, or is Empty and not optional.
    fn from_field(value: Variant) -> Result<Self, WrongType>;
}

impl<T: Value> FieldValue for T {
    const IS_OPTIONAL: bool = false;

    fn into_field(self) -> Variant {
        self.into_variant()
    }

    /// Servers send null texts, ids and structures as Empty.
    fn from_field(value: Variant) -> Result<Self, WrongType> {
        match (value, T::VALUE_RANK) {
            (Variant::Empty, -1) => T::from_variant(null(T::DATA_TYPE)),
            (value, _) => T::from_variant(value),
        }
    }
}

impl<T: Value> FieldValue for Option<T> {
    const IS_OPTIONAL: bool = true;

    fn into_field(self) -> Variant {
        self.map_or(Variant::Empty, Value::into_variant)
    }

    fn from_field(value: Variant) -> Result<Self, WrongType> {
        match value {
            Variant::Empty => Ok(None),
            // A status in place of a value means that there is no such field (Part 4 §7.22.3).
            Variant::StatusCode(status) if status.is_bad() && T::DATA_TYPE != data_type_ids::STATUS_CODE => {
                Ok(None)
            }
            value => T::from_variant(value).map(Some),
        }
    }
}

/// The null value of a data type, if it has one.
fn null(data_type: u32) -> Variant {
    match data_type {
        data_type_ids::STRING => UaString::default().into(),
        data_type_ids::BYTE_STRING => ByteString::default().into(),
        data_type_ids::NODE_ID => NodeId::NULL.into(),
        data_type_ids::QUALIFIED_NAME => QualifiedName::default().into(),
        data_type_ids::LOCALIZED_TEXT => LocalizedText::default().into(),
        data_type_ids::STRUCTURE => ExtensionObject::NULL.into(),
        _ => Variant::Empty,
    }
}

/// The values of a received event, taken in order.
#[derive(Debug)]
pub struct FieldValues {
    fields: core::slice::Iter<'static, Field>,
    values: std::vec::IntoIter<Variant>,
}

impl FieldValues {
    pub(super) fn new(fields: &'static [Field], values: std::vec::IntoIter<Variant>) -> Self {
        Self { fields: fields.iter(), values }
    }

    /// The value of the next field.
    ///
    /// # Errors
    /// The value has another type, or is missing and not optional.
    pub fn take<T: FieldValue>(&mut self) -> Result<T, ReadEventError> {
        next(&mut self.fields, &mut self.values)
    }
}

/// Reads the next value.
pub(super) fn next<T: FieldValue>(
    names: &mut impl Iterator<Item = impl fmt::Display>,
    values: &mut impl Iterator<Item = Variant>,
) -> Result<T, ReadEventError> {
    let (Some(name), Some(value)) = (names.next(), values.next()) else { return Err(ReadEventError::Count) };
    let status = match value {
        Variant::StatusCode(status) => status,
        _ => StatusCode::GOOD,
    };
    let is_missing = value == Variant::Empty;
    T::from_field(value).map_err(|source| match name.to_string() {
        field if status.is_bad() => ReadEventError::Refused { field, status },
        field if is_missing => ReadEventError::Missing { field },
        field => ReadEventError::WrongType { field, source },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: FieldValue>(value: impl Into<Variant>) -> Result<T, ReadEventError> {
        next(&mut ["Field"].into_iter(), &mut [value.into()].into_iter())
    }

    #[test]
    fn values_of_the_wrong_type_are_named() {
        assert_eq!(read::<f64>(1.5), Ok(1.5));
        assert_eq!(read::<Option<f64>>(1.5), Ok(Some(1.5)));
        assert_eq!(read::<Option<f64>>(Variant::Empty), Ok(None));
        assert_eq!(read::<Option<f64>>(StatusCode::BAD_NOT_FOUND), Ok(None));
        assert_eq!(read::<Option<StatusCode>>(StatusCode::BAD_TIMEOUT), Ok(Some(StatusCode::BAD_TIMEOUT)));
        assert_eq!(read::<String>(Variant::Empty), Ok(String::new()));
        assert_eq!(read::<f64>(Variant::Empty), Err(ReadEventError::Missing { field: "Field".into() }));
        let error = read::<f64>(StatusCode::BAD_NOT_FOUND).unwrap_err();
        assert_eq!(
            error,
            ReadEventError::Refused { field: "Field".into(), status: StatusCode::BAD_NOT_FOUND }
        );
        assert!(matches!(read::<f64>("text"), Err(ReadEventError::WrongType { .. })));
        assert!(matches!(read::<Option<f64>>("text"), Err(ReadEventError::WrongType { .. })));
        let nothing = next::<f64>(&mut ["Field"].into_iter(), &mut core::iter::empty());
        assert_eq!(nothing, Err(ReadEventError::Count));
    }

    #[test]
    fn paths_are_resolved_by_their_uris() {
        const FIELD: Field = Field::new::<Option<f64>>(&[("urn:a", "A"), ("urn:b", "B")]);
        let index = |uri: &str| (uri == "urn:a").then_some(3);
        assert_eq!(FIELD.resolve(&index), Err("urn:b"));
        let path = FIELD.resolve(&|uri| Some(if uri == "urn:a" { 3 } else { 4 })).unwrap();
        assert_eq!(path, [QualifiedName::new(3, "A"), QualifiedName::new(4, "B")]);
        assert_eq!((FIELD.to_string().as_str(), FIELD.is_optional()), ("A/B", true));
    }
}
