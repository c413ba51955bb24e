//! Names of service messages, and request and response pairs.

use super::output::Output;
use super::types::{Model, Structure};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Writes the table and the trait implementations.
pub(crate) fn generate(model: &Model, output: &mut Output) {
    let headed = |kind: &str| -> Vec<&Structure> {
        let first_is = |structure: &&Structure| {
            structure.fields.first().is_some_and(|field| field.rust_type == kind && !field.is_array)
        };
        model.structures.iter().filter(first_is).collect()
    };
    let (requests, responses) = (headed("RequestHeader"), headed("ResponseHeader"));
    let mut text = String::from("//! Service messages by the id of their binary encoding.\n\n");
    text.push_str("use super::structures::*;\n\n");
    for request in &requests {
        let answer = request.name.replace("Request", "Response");
        if responses.iter().any(|response| response.name == answer) {
            let _ = writeln!(text, "request!({} -> {answer});", request.name);
        }
    }
    for response in &responses {
        let _ = writeln!(text, "response!({});", response.name);
    }
    let messages: BTreeMap<u32, &str> = requests
        .iter()
        .chain(&responses)
        .filter_map(|message| Some((message.binary_encoding?, message.name.as_str())))
        .collect();
    text.push_str(
        "\n/// The name of a service message, from the id of its binary encoding: `ReadRequest` for 631.\n\
         #[must_use]\npub fn message_name(type_id: u32) -> Option<&'static str> {\n    Some(match type_id {\n",
    );
    for (id, name) in messages {
        let _ = writeln!(text, "{id} => {name:?},");
    }
    text.push_str("_ => return None,\n    })\n}\n");
    output.rust("crates/schema/src/generated/messages.rs", text);
}
