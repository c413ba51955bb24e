//! `taktwerk node`: adds nodes and references to a server, and deletes them.

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::node::NodeSpec;
use crate::output::{self, Output};
use crate::session::Session;
use crate::{resolve, value};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use taktwerk_client::NewNode;
use taktwerk_schema::ids::{object_type_ids, reference_type_ids, variable_type_ids};
use taktwerk_schema::{
    AddNodesRequest, AddReferencesItem, AddReferencesRequest, DeleteNodesItem, DeleteNodesRequest,
    DeleteReferencesItem, DeleteReferencesRequest, NodeClass,
};
use taktwerk_types::{BuiltInType, NodeId, QualifiedName, StatusCode};

/// `taktwerk node`
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Add an Object, or a Variable if there is a value or a type.
    #[command(after_help = crate::examples::NODE_ADD)]
    Add(AddArgs),
    /// Delete nodes with the parts that belong to them.
    #[command(after_help = crate::examples::NODE_DELETE)]
    Delete(DeleteArgs),
    /// Add a reference between two nodes.
    #[command(after_help = crate::examples::NODE_LINK)]
    Link(LinkArgs),
    /// Delete a reference between two nodes.
    #[command(after_help = crate::examples::NODE_LINK)]
    Unlink(LinkArgs),
}

/// Arguments of `taktwerk node add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// The parent: a NodeId or a browse path.
    #[arg(value_name = "PARENT")]
    parent: NodeSpec,

    /// The BrowseName, such as 2:Pump. Without an index it is in the namespace of the node.
    #[arg(value_name = "NAME")]
    name: String,

    /// The first value of a Variable. Arrays are [1, 2, 3].
    #[arg(value_name = "VALUE", allow_negative_numbers = true)]
    value: Option<String>,

    /// The built-in type of a Variable. Default with a VALUE: Boolean, Double or String, whatever VALUE looks like.
    #[arg(short, long, value_name = "TYPE", value_parser = super::write::built_in_type)]
    r#type: Option<BuiltInType>,

    /// The NodeId. Default: the server chooses one, in the namespace of the parent.
    #[arg(long, value_name = "ID")]
    id: Option<NodeId>,

    /// The ObjectType or VariableType. The server adds its mandatory children. Default: FolderType,
    /// BaseDataVariableType.
    #[arg(long, value_name = "NODE")]
    type_definition: Option<NodeSpec>,

    /// The ReferenceType from the parent. Default: HasComponent, for folders Organizes.
    #[arg(long, value_name = "NODE")]
    reference: Option<NodeSpec>,

    /// Add a Property.
    #[arg(long, conflicts_with_all = ["type_definition", "reference"])]
    property: bool,

    /// Let clients write the Variable.
    #[arg(long)]
    writable: bool,
}

/// Arguments of `taktwerk node delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// The nodes: NodeIds or browse paths.
    #[arg(value_name = "NODE", required = true)]
    nodes: Vec<NodeSpec>,
}

/// Arguments of `taktwerk node link` and `taktwerk node unlink`.
#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// The source: a NodeId or a browse path.
    #[arg(value_name = "SOURCE")]
    source: NodeSpec,

    /// The ReferenceType: a NodeId or a browse path, such as i=35 (Organizes).
    #[arg(value_name = "TYPE")]
    reference_type: NodeSpec,

    /// The target: a NodeId or a browse path.
    #[arg(value_name = "TARGET")]
    target: NodeSpec,
}

/// Runs one of the commands.
pub(crate) fn run(command: &NodeCommand, output: Output) -> Result<(), Failure> {
    match command {
        NodeCommand::Add(arguments) => add(arguments, output),
        NodeCommand::Delete(arguments) => delete(arguments, output),
        NodeCommand::Link(arguments) => link(arguments, output, true),
        NodeCommand::Unlink(arguments) => link(arguments, output, false),
    }
}

fn add(arguments: &AddArgs, output: Output) -> Result<(), Failure> {
    let kind = arguments.r#type.or_else(|| arguments.value.as_deref().map(guess));
    if kind.is_none() && (arguments.property || arguments.writable) {
        return Err(Failure::Usage("a Variable needs a VALUE or a --type".to_owned()));
    }
    let mut session = Session::connect(&arguments.connection)?;
    let parent = resolve::one(&mut session, &arguments.parent)?;
    let namespace = match (&arguments.id, parent.namespace_index) {
        (Some(id), _) => id.namespace_index,
        (None, 0) => 1,
        (None, index) => index,
    };
    let name = browse_name(&arguments.name, namespace);
    let mut node = match kind {
        None => NewNode::object(parent, name),
        Some(kind) => {
            let value = arguments.value.as_deref().map(|text| value::parse(text, kind, false)).transpose();
            let value = value.map_err(|error| Failure::Usage(error.to_string()))?;
            NewNode::variable(parent, name, kind, value)
        }
    };
    node = node.id(arguments.id.clone().unwrap_or(NodeId::numeric(namespace, 0)));
    if kind.is_none() {
        let organizes = NodeId::numeric(0, reference_type_ids::ORGANIZES);
        node =
            node.type_definition(NodeId::numeric(0, object_type_ids::FOLDER_TYPE)).reference_type(organizes);
    }
    if arguments.property {
        node = node
            .type_definition(NodeId::numeric(0, variable_type_ids::PROPERTY_TYPE))
            .reference_type(NodeId::numeric(0, reference_type_ids::HAS_PROPERTY));
    }
    if let Some(kind) = &arguments.type_definition {
        let component = NodeId::numeric(0, reference_type_ids::HAS_COMPONENT);
        node = node.type_definition(resolve::one(&mut session, kind)?).reference_type(component);
    }
    if let Some(kind) = &arguments.reference {
        node = node.reference_type(resolve::one(&mut session, kind)?);
    }
    if arguments.writable {
        node = node.writable();
    }
    let request = AddNodesRequest { nodes_to_add: vec![node.into()], ..Default::default() };
    let result = session.request(request)?.results.into_iter().next().unwrap_or_default();
    session.close();
    let status = result.status_code;
    if output.is_json() {
        output.document(&json!({
            "NodeId": result.added_node_id.to_string(),
            "StatusCode": output::status(status),
        }))?;
    } else if !status.is_bad() {
        output.text(&result.added_node_id.to_string())?;
    }
    refused(&format!("cannot add {}", arguments.name), status)
}

fn delete(arguments: &DeleteArgs, output: Output) -> Result<(), Failure> {
    let mut session = Session::connect(&arguments.connection)?;
    let nodes = resolve::all(&mut session, &arguments.nodes)?;
    let items =
        nodes.iter().map(|id| DeleteNodesItem { node_id: id.clone(), delete_target_references: true });
    let request = DeleteNodesRequest { nodes_to_delete: items.collect(), ..Default::default() };
    let results = session.request(request)?.results;
    session.close();
    if output.is_json() {
        let rows = nodes
            .iter()
            .zip(&results)
            .map(|(id, status)| json!({ "NodeId": id.to_string(), "StatusCode": output::status(*status) }));
        output.document(&Value::Array(rows.collect()))?;
    }
    match nodes.iter().zip(&results).find(|(_, status)| status.is_bad()) {
        Some((id, status)) => refused(&format!("cannot delete {id}"), *status),
        None => Ok(()),
    }
}

fn link(arguments: &LinkArgs, output: Output, adds: bool) -> Result<(), Failure> {
    let mut session = Session::connect(&arguments.connection)?;
    let source_node_id = resolve::one(&mut session, &arguments.source)?;
    let reference_type_id = resolve::one(&mut session, &arguments.reference_type)?;
    let target = resolve::one(&mut session, &arguments.target)?;
    let what = format!("the reference from {source_node_id} to {target}");
    let results = if adds {
        let item = AddReferencesItem {
            source_node_id,
            reference_type_id,
            is_forward: true,
            target_node_id: target.into(),
            target_node_class: NodeClass::UNSPECIFIED,
            ..Default::default()
        };
        session.request(AddReferencesRequest { references_to_add: vec![item], ..Default::default() })?.results
    } else {
        let item = DeleteReferencesItem {
            source_node_id,
            reference_type_id,
            is_forward: true,
            target_node_id: target.into(),
            delete_bidirectional: true,
        };
        let request = DeleteReferencesRequest { references_to_delete: vec![item], ..Default::default() };
        session.request(request)?.results
    };
    session.close();
    let status = results.into_iter().next().unwrap_or(StatusCode::BAD_UNEXPECTED_ERROR);
    if output.is_json() {
        output.document(&json!({ "StatusCode": output::status(status) }))?;
    }
    let verb = if adds { "add" } else { "delete" };
    refused(&format!("cannot {verb} {what}"), status)
}

/// The type that the text looks like.
fn guess(text: &str) -> BuiltInType {
    let first = text.trim().trim_start_matches('[').split([',', ']']).next().unwrap_or_default().trim();
    match first {
        "true" | "false" => BuiltInType::Boolean,
        text if text.parse::<f64>().is_ok() => BuiltInType::Double,
        _ => BuiltInType::String,
    }
}

/// Parses `2:Pump` or `Pump`.
fn browse_name(text: &str, namespace: u16) -> QualifiedName {
    let split = text.split_once(':').and_then(|(index, name)| Some((index.parse::<u16>().ok()?, name)));
    let (index, name) = split.unwrap_or((namespace, text));
    QualifiedName::new(index, name)
}

fn refused(what: &str, status: StatusCode) -> Result<(), Failure> {
    if !status.is_bad() {
        return Ok(());
    }
    let advice = match status {
        StatusCode::BAD_USER_ACCESS_DENIED => {
            "; the permissions AddNode, AddReference, DeleteNode and RemoveReference decide"
        }
        StatusCode::BAD_NO_DELETE_RIGHTS => "; clients can delete only what clients have added",
        _ => "",
    };
    Err(Failure::BadStatus(refusal(what, status, advice)))
}

/// A message with the refused operation, the reason and the advice. The advice replaces the full stop of the
/// description.
fn refusal(what: &str, status: StatusCode, advice: &str) -> String {
    let why = status.description().unwrap_or_default();
    let why = if advice.is_empty() { why } else { why.trim_end_matches('.') };
    format!("{what}: {status}: {why}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_end_with_the_advice() {
        let status = StatusCode::BAD_NO_DELETE_RIGHTS;
        let advised = refusal("cannot delete i=1", status, "; ask");
        assert!(advised.ends_with("to be deleted; ask"), "{advised}");
        assert!(refusal("cannot delete i=1", status, "").ends_with("to be deleted."));
    }

    #[test]
    fn types_are_guessed_from_values() {
        for (text, kind) in [
            ("1", BuiltInType::Double),
            ("-2.5e3", BuiltInType::Double),
            ("[1, 2]", BuiltInType::Double),
            ("true", BuiltInType::Boolean),
            ("[\"a\"]", BuiltInType::String),
            ("on", BuiltInType::String),
        ] {
            assert_eq!(guess(text), kind, "{text}");
        }
    }

    #[test]
    fn names_have_an_index_or_the_namespace_of_the_node() {
        assert_eq!(browse_name("2:Pump", 1), QualifiedName::new(2, "Pump"));
        assert_eq!(browse_name("Pump", 3), QualifiedName::new(3, "Pump"));
        assert_eq!(browse_name("a:b", 3), QualifiedName::new(3, "a:b"));
    }
}
