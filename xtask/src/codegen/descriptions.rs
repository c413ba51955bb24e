//! Tables that describe the types at run time, for printing and dynamic decoding.

use super::output::Output;
use super::types::{Model, Structure};
use std::fmt::Write as _;

/// Line width inside macros, which rustfmt does not format.
const WIDTH: usize = 106;

/// Writes the tables.
pub(crate) fn generate(model: &Model, output: &mut Output) {
    let mut text =
        String::from("//! Descriptions of the data types of namespace 0, sorted by DataType id.\n\n");
    text.push_str("use taktwerk_types::BuiltInType;\n\ndescribe_structures! {\n");
    model.structures.iter().for_each(|structure| describe(structure, &mut text));
    text.push_str("}\n\ndescribe_enumerations! {\n");
    let mut all = Vec::new();
    for entry in &model.enumerations {
        let values: Vec<_> =
            entry.values.iter().map(|(name, value)| (name.as_str(), i64::from(*value))).collect();
        all.push((entry.id, entry.name.as_str(), "false", values));
    }
    for entry in &model.option_sets {
        let bits: Vec<_> = entry.bits.iter().map(|(name, bit)| (name.as_str(), i64::from(*bit))).collect();
        all.push((entry.id, entry.name.as_str(), "true", bits));
    }
    all.sort_by_key(|entry| entry.0);
    for (id, name, is_option_set, values) in all {
        let values = values.iter().map(|(name, value)| format!("{name:?} {value}"));
        wrapped(&format!("{name:?} {id} {is_option_set}"), values, &mut text);
    }
    text.push_str("}\n\n/// The built-in type of the values of all other data types.\n");
    text.push_str("pub(crate) static SIMPLE_TYPES: &[(u32, BuiltInType)] = &[\n");
    let option_sets = model.option_sets.iter().map(|entry| (entry.id, entry.bits_type));
    let mut simple: Vec<_> = model.simple.iter().map(|(id, kind)| (*id, *kind)).chain(option_sets).collect();
    simple.sort_unstable_by_key(|entry| entry.0);
    for (id, kind) in simple {
        let _ = writeln!(text, "({id}, BuiltInType::{kind}),");
    }
    text.push_str("];\n");
    output.rust("crates/schema/src/generated/descriptions.rs", text);
}

fn describe(structure: &Structure, text: &mut String) {
    let subtyped = structure.fields.iter().any(|field| field.allow_sub_types);
    let kind = match (structure.has_optional_fields(), subtyped) {
        (true, _) => "WithOptionalFields",
        (false, true) => "WithSubtypedValues",
        (false, false) => "Plain",
    };
    let encoding = structure.binary_encoding.unwrap_or(0);
    let fields = structure.fields.iter().map(|field| {
        let array = if field.is_array { " array" } else { "" };
        let optional = if field.is_optional || field.allow_sub_types { " optional" } else { "" };
        format!("{:?} {}{array}{optional}", field.name, field.type_id)
    });
    wrapped(&format!("{:?} {} {encoding} {kind}", structure.name, structure.id), fields, text);
}

/// Writes `head [item, item];` with line breaks.
fn wrapped(head: &str, items: impl Iterator<Item = String>, text: &mut String) {
    let mut line = format!("    {head} [");
    let mut items = items.peekable();
    while let Some(item) = items.next() {
        let separator = if items.peek().is_some() { ", " } else { "" };
        if line.len() + item.len() + separator.len() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = String::from("        ");
        }
        line.push_str(&item);
        line.push_str(separator);
    }
    let _ = writeln!(text, "{line}];");
}
