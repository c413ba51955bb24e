//! `taktwerk write`: writes values.

use crate::attribute::Attribute;
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::node::Operand;
use crate::output::{self, Output};
use crate::session::{self, Session};
use crate::{resolve, value};
use clap::Args;
use serde_json::{Value, json};
use taktwerk_lab::table::{Align, Table};
use taktwerk_schema::{ReadValueId, WriteRequest, WriteValue};
use taktwerk_types::{BuiltInType, DataValue, NodeId, StatusCode, Variant};

/// Arguments of `taktwerk write`.
#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// Pairs NODE=VALUE, or one NODE and one VALUE. Arrays are [1, 2, 3], matrices [[1, 2], [3, 4]].
    #[arg(value_name = "NODE VALUE", required = true, num_args = 1.., allow_negative_numbers = true)]
    pairs: Vec<String>,

    /// Type of the values, such as Int32. Default: the node's DataType.
    #[arg(short, long, value_name = "TYPE", value_parser = built_in_type)]
    r#type: Option<BuiltInType>,

    /// Status to write with the values, such as UncertainLastUsableValue.
    #[arg(long, value_name = "STATUS", value_parser = status_code)]
    status: Option<StatusCode>,
}

pub(super) fn built_in_type(text: &str) -> Result<BuiltInType, String> {
    BuiltInType::ALL
        .into_iter()
        .find(|kind| kind.to_string().eq_ignore_ascii_case(text))
        .ok_or_else(|| format!("unknown built-in type {text}: write Double, Int32, String, …"))
}

fn status_code(text: &str) -> Result<StatusCode, String> {
    StatusCode::from_name(text)
        .ok_or_else(|| format!("unknown status {text}: write Good, BadSensorFailure, …"))
}

/// Splits the arguments into nodes and values.
fn pairs(arguments: &[String]) -> Result<Vec<(Operand, String)>, Failure> {
    let usage = |error: crate::node::ParseNodeError| Failure::Usage(error.to_string());
    if let [node, value] = arguments
        && let Ok(operand) = node.parse::<Operand>()
    {
        return Ok(vec![(operand, value.clone())]);
    }
    arguments
        .iter()
        .map(|pair| {
            split_pair(pair).map_or_else(|| Err(Failure::Usage(format!(
        "{pair:?} is not a pair NODE=VALUE: write 'ns=2;s=Speed=4.5', or NODE and VALUE as two arguments"
    ))), |(node, value)| Ok((node.parse().map_err(usage)?, value.to_owned())))
        })
        .collect()
}

/// Splits `ns=2;s=Speed=4.5`. NodeIds contain `=` themselves, so the value begins after the first `=` that leaves a
/// complete NodeId before it.
fn split_pair(pair: &str) -> Option<(&str, &str)> {
    pair.match_indices('=').find_map(|(at, _)| {
        let (node, value) = (pair.get(..at)?, pair.get(at + 1..)?);
        node.parse::<Operand>().is_ok().then_some((node, value))
    })
}

/// Reads the data types of the nodes, writes, and prints the results.
pub(crate) fn run(arguments: &WriteArgs, output: Output) -> Result<(), Failure> {
    let pairs = pairs(&arguments.pairs)?;
    let mut session = Session::connect(&arguments.connection)?;
    let mut writes: Vec<WriteValue> = Vec::new();
    for (operand, text) in &pairs {
        let attribute = operand.attribute.unwrap_or(Attribute::VALUE);
        for node in resolve::with(&mut session, &operand.node, attribute)? {
            let value = typed(&mut session, &node, attribute, arguments.r#type, text)?;
            writes.push(WriteValue {
                node_id: node,
                attribute_id: attribute.id(),
                index_range: if operand.range.is_empty() { None } else { Some(operand.range.as_str()) }
                    .into(),
                value: DataValue { value: Some(value), status: arguments.status, ..DataValue::default() },
            });
        }
    }
    let response = session.request(WriteRequest { nodes_to_write: writes.clone(), ..Default::default() })?;
    let rows: Vec<(WriteValue, StatusCode)> = writes.into_iter().zip(response.results).collect();
    if output.is_json() {
        let documents = rows.iter().map(|(write, status)| {
            json!({
                "NodeId": write.node_id.to_string(),
                "Value": output::data_value(&write.value),
                "StatusCode": output::status(*status),
            })
        });
        output.document(&Value::Array(documents.collect()))?;
    } else {
        let mut table = Table::new(&[
            ("node", Align::Tail),
            ("value", Align::Left),
            ("type", Align::Left),
            ("result", Align::Left),
        ]);
        for (write, status) in &rows {
            let value = write.value.value.clone().unwrap_or_default();
            table.row([
                write.node_id.to_string(),
                session.show(&value),
                value.type_name(),
                status.to_string(),
            ]);
        }
        output.text(&table.to_string())?;
    }
    session.close();
    match rows.iter().find(|(_, status)| status.is_bad()) {
        Some((write, status)) => {
            let why = status.description().unwrap_or_default();
            let advice = session::advice(&write.node_id, *status);
            Err(Failure::BadStatus(format!("{}: {status}: {why}{advice}", write.node_id)))
        }
        None => Ok(()),
    }
}

/// Parses the value according to the node's DataType.
fn typed(
    session: &mut Session,
    node: &NodeId,
    attribute: Attribute,
    wanted: Option<BuiltInType>,
    text: &str,
) -> Result<Variant, Failure> {
    let usage = |error: value::ParseValueError| Failure::Usage(format!("{node}: {error}"));
    if let Some(kind) = wanted {
        return value::parse(text, kind, false).map_err(usage);
    }
    if attribute != Attribute::VALUE {
        // Other attributes keep the type of their current value.
        let now = read(session, node, attribute)?;
        let kind = now.built_in_type().ok_or_else(|| {
            Failure::Usage(format!("{node}: {attribute} has no value to take the type from: give --type"))
        })?;
        return value::parse(text, kind, now.as_array().is_none()).map_err(usage);
    }
    let rank = match read(session, node, Attribute::VALUE_RANK)? {
        Variant::Int32(rank) => rank,
        _ => -2,
    };
    let data_type = match read(session, node, Attribute::DATA_TYPE)? {
        Variant::NodeId(id) => *id,
        other => return Err(Failure::BadStatus(format!("{node}: its DataType is {other}"))),
    };
    let kind = match session.built_in_type(&data_type)? {
        // An abstract DataType (Number, BaseDataType): use the type of the current value.
        None | Some(BuiltInType::Variant) => {
            read(session, node, Attribute::VALUE)?.built_in_type().ok_or_else(|| {
                Failure::Usage(format!(
                    "{node}: its DataType {data_type} is abstract and it has no value: give --type"
                ))
            })?
        }
        Some(kind) => kind,
    };
    if kind == BuiltInType::ExtensionObject {
        return session.structure_from_json(&data_type, text);
    }
    value::parse(text, kind, rank == -1).map_err(usage)
}

fn read(session: &mut Session, node: &NodeId, attribute: Attribute) -> Result<Variant, Failure> {
    let id = ReadValueId { node_id: node.clone(), attribute_id: attribute.id(), ..Default::default() };
    let result = session.read(vec![id])?.into_iter().next().unwrap_or_default();
    if result.status().is_bad() {
        let status = result.status();
        let advice = session::advice(node, status);
        return Err(Failure::BadStatus(format!("{node}: reading its {attribute}: {status}.{advice}")));
    }
    Ok(result.value.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_split_after_the_node_id() {
        assert_eq!(split_pair("ns=2;s=Speed=4.5"), Some(("ns=2;s=Speed", "4.5")));
        assert_eq!(split_pair("i=7=x=y"), Some(("i=7", "x=y")));
        assert_eq!(split_pair("/Objects/2:A=1"), Some(("/Objects/2:A", "1")));
        assert_eq!(split_pair("Speed"), None);
        let two = pairs(&["ns=2;s=Speed".into(), "-4.5".into()]).unwrap();
        assert_eq!((two[0].0.node.to_string().as_str(), two[0].1.as_str()), ("ns=2;s=Speed", "-4.5"));
        assert_eq!(pairs(&["i=1=a".into(), "i=2=b".into()]).unwrap().len(), 2);
        assert!(pairs(&["i=1".into()]).is_err());
    }
}
