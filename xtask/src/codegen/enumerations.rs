//! Enumerations and option sets.

use super::names::constant;
use super::output::Output;
use super::types::{Enumeration, Model, OptionSet, rust_type};
use std::fmt::Write as _;

/// Writes both files.
pub(crate) fn generate(model: &Model, output: &mut Output) {
    let mut text =
        String::from("//! Enumerations. Values that the specification does not define are preserved.\n");
    for entry in &model.enumerations {
        enumeration(entry, &mut text);
    }
    output.rust("crates/schema/src/generated/enums.rs", text);
    let mut text = String::from("//! Option sets: unsigned integers whose bits have names.\n");
    for entry in &model.option_sets {
        option_set(entry, &mut text);
    }
    output.rust("crates/schema/src/generated/option_sets.rs", text);
}

fn enumeration(entry: &Enumeration, text: &mut String) {
    let _ = writeln!(text, "\nenumeration! {{\n    /// `{}` (DataType i={}).", entry.name, entry.id);
    let _ = writeln!(text, "    pub struct {} = {} {{", entry.name, entry.id);
    for (name, value) in &entry.values {
        let _ = writeln!(text, "        {} = {value} {name:?},", constant(name));
    }
    text.push_str("    }\n}\n");
}

fn option_set(entry: &OptionSet, text: &mut String) {
    let bits_type = rust_type(entry.bits_type);
    let _ = writeln!(text, "\noption_set! {{\n    /// `{}` (DataType i={}).", entry.name, entry.id);
    let _ = writeln!(text, "    pub struct {}({bits_type}) = {} {{", entry.name, entry.id);
    for (name, bit) in &entry.bits {
        let _ = writeln!(text, "        {} = {bit} {name:?},", constant(name));
    }
    text.push_str("    }\n}\n");
}
