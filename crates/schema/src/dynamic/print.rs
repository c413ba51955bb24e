//! Prints values: structures with type and field names.

use super::{DynamicStructure, DynamicValue, TypeRegistry};
use core::fmt::{self, Display, Write as _};
use taktwerk_types::{ArrayValues, DecodeLimits, ExtensionObject, Variant};

/// Maximum nesting of ExtensionObjects that are decoded.
const DEPTH_MAX: usize = 16;

/// A value that prints with names: `Range {Low: 0, High: 100}`.
#[derive(Debug, Clone, Copy)]
pub struct Printed<'a> {
    types: &'a TypeRegistry,
    value: &'a Variant,
}

impl TypeRegistry {
    /// Prints a value; structures are decoded if their types are known.
    #[must_use]
    pub fn print<'a>(&'a self, value: &'a Variant) -> Printed<'a> {
        Printed { types: self, value }
    }
}

impl Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        variant(self.types, self.value, f, 0)
    }
}

impl Display for DynamicStructure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        structure(&TypeRegistry::default(), self, f, 0)
    }
}

fn variant(types: &TypeRegistry, value: &Variant, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
    match value {
        Variant::ExtensionObject(object) => extension_object(types, object, f, depth),
        Variant::Array(array) => match &array.values {
            ArrayValues::ExtensionObject(objects) => {
                list(objects, &array.dimensions, f, &|object, f| extension_object(types, object, f, depth))
            }
            ArrayValues::Variant(values) if depth < DEPTH_MAX => {
                list(values, &array.dimensions, f, &|value, f| variant(types, value, f, depth + 1))
            }
            _ => value.fmt(f),
        },
        _ => value.fmt(f),
    }
}

fn extension_object(
    types: &TypeRegistry,
    object: &ExtensionObject,
    f: &mut fmt::Formatter<'_>,
    depth: usize,
) -> fmt::Result {
    if object.is_null() {
        return f.write_str("null");
    }
    if depth < DEPTH_MAX
        && let Ok(value) = types.decode(object, DecodeLimits::DEFAULT)
    {
        return structure(types, &value, f, depth + 1);
    }
    Variant::from(object.clone()).fmt(f)
}

fn structure(
    types: &TypeRegistry,
    value: &DynamicStructure,
    f: &mut fmt::Formatter<'_>,
    depth: usize,
) -> fmt::Result {
    write!(f, "{} {{", value.type_name)?;
    for (index, (name, content)) in value.fields.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{name}: ")?;
        dynamic(types, content, f, depth)?;
    }
    f.write_char('}')
}

fn dynamic(
    types: &TypeRegistry,
    value: &DynamicValue,
    f: &mut fmt::Formatter<'_>,
    depth: usize,
) -> fmt::Result {
    match value {
        DynamicValue::Variant(value) => variant(types, value, f, depth),
        DynamicValue::Enumeration { name: Some(name), .. } => f.write_str(name),
        DynamicValue::Enumeration { value, name: None } => value.fmt(f),
        DynamicValue::Structure(value) => structure(types, value, f, depth),
        DynamicValue::Array { values, dimensions } => {
            list(values, dimensions, f, &|value, f| dynamic(types, value, f, depth))
        }
    }
}

/// Writes `[a, b]`, and a matrix as a list of lists.
fn list<T>(
    values: &[T],
    dimensions: &[u32],
    f: &mut fmt::Formatter<'_>,
    one: &dyn Fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    f.write_char('[')?;
    match dimensions {
        [_, inner @ ..] if !inner.is_empty() => {
            let width =
                inner.iter().fold(1usize, |width, length| width.saturating_mul(*length as usize)).max(1);
            for (index, row) in values.chunks(width).enumerate() {
                if index > 0 {
                    f.write_str(", ")?;
                }
                list(row, inner, f, one)?;
            }
        }
        _ => {
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    f.write_str(", ")?;
                }
                one(value, f)?;
            }
        }
    }
    f.write_char(']')
}
