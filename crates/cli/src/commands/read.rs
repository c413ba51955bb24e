//! `taktwerk read`: attributes of nodes.

use crate::attribute::Attribute;
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::node::{self, Operand};
use crate::output::{self, Output};
use crate::resolve;
use crate::session::{self, Session};
use clap::Args;
use serde_json::{Value, json};
use taktwerk_lab::table::{Align, Table};
use taktwerk_schema::ReadValueId;
use taktwerk_types::{DataValue, NodeId, StatusCode, Variant};

/// Arguments of `taktwerk read`.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// NodeIds or browse paths (with * and ?) to read. Append #Attribute or #Value[0:2] to choose an attribute or a
    /// range.
    #[arg(value_name = "NODE", required = true)]
    nodes: Vec<Operand>,

    /// Attribute to read for nodes without #Attribute.
    #[arg(short, long, value_name = "NAME", default_value = "Value", conflicts_with = "all")]
    attribute: Attribute,

    /// Read all attributes of the nodes.
    #[arg(long)]
    all: bool,

    /// Index range for nodes without one, such as 0:2 or 1,3.
    #[arg(short, long, value_name = "RANGE", default_value = "")]
    range: String,

    /// Maximum age of the values in milliseconds; 0 makes the server read the source.
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    max_age: f64,
}

/// An attribute to read.
struct Wanted {
    node: NodeId,
    attribute: Attribute,
    range: String,
}

/// Reads and prints.
pub(crate) fn run(arguments: &ReadArgs, output: Output) -> Result<(), Failure> {
    node::index_range(&arguments.range).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut session = Session::connect(&arguments.connection)?;
    let mut wanted = Vec::new();
    for operand in &arguments.nodes {
        let nodes = if arguments.all {
            resolve::many(&mut session, &operand.node)?
        } else {
            let attribute = operand.attribute.unwrap_or(arguments.attribute);
            resolve::with(&mut session, &operand.node, attribute)?
        };
        for node in nodes {
            match operand.attribute {
                None if arguments.all => wanted.extend(Attribute::all().map(|attribute| Wanted {
                    node: node.clone(),
                    attribute,
                    range: String::new(),
                })),
                attribute => wanted.push(Wanted {
                    node,
                    attribute: attribute.unwrap_or(arguments.attribute),
                    range: if operand.range.is_empty() {
                        arguments.range.clone()
                    } else {
                        operand.range.clone()
                    },
                }),
            }
        }
    }
    let request = wanted
        .iter()
        .map(|wanted| ReadValueId {
            node_id: wanted.node.clone(),
            attribute_id: wanted.attribute.id(),
            index_range: if wanted.range.is_empty() { None } else { Some(wanted.range.as_str()) }.into(),
            ..Default::default()
        })
        .collect();
    let results = session.read_aged(request, arguments.max_age)?;
    let mut rows: Vec<(Wanted, DataValue)> = wanted.into_iter().zip(results).collect();
    if arguments.all {
        // Attributes that the NodeClass does not have are omitted.
        rows.retain(|(_, value)| value.status() != StatusCode::BAD_ATTRIBUTE_ID_INVALID);
    }
    for (_, value) in &rows {
        session.learn_types(value.value.as_ref())?;
    }
    let result = print(&rows, &mut session, output);
    session.close();
    result?;
    let bad = rows.iter().filter(|(_, value)| value.status().is_bad()).count();
    match rows.iter().find(|(_, value)| value.status().is_bad()) {
        // With --all, a single missing attribute is not an error.
        Some(_) if arguments.all && bad < rows.len() => Ok(()),
        Some((wanted, value)) => {
            let status = value.status();
            let why = status.description().unwrap_or_default();
            Err(Failure::BadStatus(format!(
                "{bad} of {} reads failed; {}: {status}: {why}{}",
                rows.len(),
                output::in_line(&wanted.node.to_string()),
                // The attribute may be other than Value.
                if wanted.attribute == Attribute::VALUE || status == StatusCode::BAD_NODE_ID_UNKNOWN {
                    session::advice(&wanted.node, status)
                } else {
                    String::new()
                }
            )))
        }
        None => Ok(()),
    }
}

fn print(rows: &[(Wanted, DataValue)], session: &mut Session, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        let documents = rows.iter().map(|(wanted, value)| {
            let mut document = output::data_value(value);
            if let Some(object) = document.as_object_mut() {
                object.insert("NodeId".into(), json!(wanted.node.to_string()));
                object.insert("Attribute".into(), json!(wanted.attribute.name()));
                if !wanted.range.is_empty() {
                    object.insert("IndexRange".into(), json!(wanted.range));
                }
                if let Some(decoded) =
                    value.value.as_ref().and_then(|value| session.structure_document(value))
                {
                    object.insert("Decoded".into(), decoded);
                }
            }
            document
        });
        return output.document(&Value::Array(documents.collect()));
    }
    if let [(wanted, value)] = rows {
        return output.text(&single(wanted, value, session));
    }
    let mut table = Table::new(&[
        ("node", Align::Tail),
        ("attribute", Align::Left),
        ("value", Align::Left),
        ("type", Align::Left),
        ("status", Align::Left),
        ("source time", Align::Left),
    ]);
    for (wanted, value) in rows {
        table.row([
            output::in_line(&wanted.node.to_string()).into_owned(),
            wanted.attribute.name().to_owned(),
            output::in_line(&shown(wanted, value, session)).into_owned(),
            value.value.as_ref().map(Variant::type_name).unwrap_or_default(),
            value.status().to_string(),
            output::short(value.source_timestamp),
        ]);
    }
    output.text(&table.to_string())
}

fn shown(wanted: &Wanted, value: &DataValue, session: &Session) -> String {
    match &value.value {
        None => "–".to_owned(),
        Some(inner) if wanted.attribute == Attribute::NODE_CLASS => node_class(inner),
        Some(inner) => session.show(inner),
    }
}

/// A single value without truncation.
fn single(wanted: &Wanted, value: &DataValue, session: &Session) -> String {
    let mut text = format!("{}\n", shown(wanted, value, session));
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("  {name:<12} {value}\n"));
        }
    };
    let node = format!("{}#{}", wanted.node, wanted.attribute);
    line("node", output::in_line(&node).into_owned());
    line("type", value.value.as_ref().map(Variant::type_name).unwrap_or_default());
    line("status", value.status().to_string());
    line("source time", value.source_timestamp.map(|time| time.to_string()).unwrap_or_default());
    line("server time", value.server_timestamp.map(|time| time.to_string()).unwrap_or_default());
    text
}

/// The name of a NodeClass.
fn node_class(value: &Variant) -> String {
    match value {
        Variant::Int32(number) => taktwerk_schema::NodeClass(*number).to_string(),
        other => other.to_string(),
    }
}
