//! `taktwerk browse`: the address space as a tree or a list.

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::node::NodeSpec;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::session::{self, Session};
use crate::walk::{self, Child};
use crate::{attribute::Attribute, resolve};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use taktwerk_lab::table::{Align, Table, cut};
use taktwerk_schema::ReadValueId;
use taktwerk_types::NodeId;

/// Nodes per Browse request. The session splits it further if the server requires that.
const BATCH: usize = 500;

/// Arguments of `taktwerk browse`.
#[derive(Debug, Args)]
pub(crate) struct BrowseArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// Start node: a NodeId or a browse path.
    #[arg(value_name = "NODE", default_value = "/Objects")]
    node: NodeSpec,

    /// Browse recursively to the leaves.
    #[arg(short, long)]
    recursive: bool,

    /// How many levels to browse.
    #[arg(long, value_name = "LEVELS", conflicts_with = "recursive")]
    depth: Option<usize>,

    /// A list with one line per node instead of a tree.
    #[arg(short, long)]
    list: bool,
}

/// A node in the result.
struct Found {
    child: Child,
    depth: usize,
    parent: Option<usize>,
    /// Whether the node was found before. Its children are listed only at the first place.
    again: bool,
}

/// Browses and prints.
pub(crate) fn run(arguments: &BrowseArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut session = Session::connect(&arguments.connection)?;
    let start = resolve::one(&mut session, &arguments.node)?;
    let depth = if arguments.recursive { usize::MAX } else { arguments.depth.unwrap_or(1) };
    let root = describe(&mut session, &start)?;
    let (found, refused) = breadth_first(&mut session, &start, depth, interrupt)?;
    session.close();
    if output.is_json() {
        output.document(&tree_document(&root, &found))?;
    } else if arguments.list {
        output.text(&list(&found).to_string())?;
    } else {
        output.text(&tree(&root, &found, output))?;
    }
    if interrupt.asked() {
        return Err(Failure::Interrupted);
    }
    match refused.as_slice() {
        [] => Ok(()),
        [first, ..] => {
            Err(Failure::BadStatus(format!("{} nodes could not be browsed; {first}", refused.len())))
        }
    }
}

/// The BrowseName of the start node.
fn describe(session: &mut Session, node: &NodeId) -> Result<String, Failure> {
    let name = ReadValueId {
        node_id: node.clone(),
        attribute_id: Attribute::BROWSE_NAME.id(),
        ..Default::default()
    };
    let results = session.read(vec![name])?;
    let result = results.into_iter().next().unwrap_or_default();
    if result.status().is_bad() {
        let status = result.status();
        let why = status.description().unwrap_or_default();
        return Err(Failure::BadStatus(format!("{node}: {status}: {why}{}", session::advice(node, status))));
    }
    Ok(format!("{}  {node}", result.value.unwrap_or_default()))
}

/// Browses level by level, with many nodes per request. Each node is browsed once, so cycles end.
fn breadth_first(
    session: &mut Session,
    start: &NodeId,
    depth: usize,
    interrupt: &Interrupt,
) -> Result<(Vec<Found>, Vec<String>), Failure> {
    let mut found: Vec<Found> = Vec::new();
    let mut refused = Vec::new();
    let mut seen = BTreeSet::from([start.clone()]);
    let mut level: Vec<(Option<usize>, NodeId)> = vec![(None, start.clone())];
    let mut progress = Progress::new("browsing", 0);
    for at in 1..=depth {
        let mut next = Vec::new();
        for batch in level.chunks(BATCH) {
            if interrupt.asked() {
                return Ok((found, refused));
            }
            let nodes: Vec<NodeId> = batch.iter().map(|(_, node)| node.clone()).collect();
            for (children, (parent, _)) in walk::children(session, &nodes)?.into_iter().zip(batch) {
                let children = match children {
                    Ok(children) => children,
                    Err(error) => {
                        refused.push(error.to_string());
                        continue;
                    }
                };
                for child in children {
                    let again = !seen.insert(child.node_id.clone());
                    if !again {
                        next.push((Some(found.len()), child.node_id.clone()));
                    }
                    found.push(Found { child, depth: at, parent: *parent, again });
                }
            }
            progress.at(found.len() as u64);
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    Ok((found, refused))
}

/// The indexes of the children of each node, in order. The root is last.
fn children_of(found: &[Found]) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); found.len() + 1];
    for (index, node) in found.iter().enumerate() {
        if let Some(list) = children.get_mut(node.parent.unwrap_or(found.len())) {
            list.push(index);
        }
    }
    children
}

fn tree(root: &str, found: &[Found], output: Output) -> String {
    let children = children_of(found);
    let mut text = format!("{}\n", output::in_line(root));
    // With an explicit stack of (node, prefix, last), because the depth of a hostile address space is not limited.
    let mut stack: Vec<(usize, String, bool)> = Vec::new();
    let push = |stack: &mut Vec<(usize, String, bool)>, of: usize, prefix: &str| {
        let list = children.get(of).map_or(&[][..], Vec::as_slice);
        for (at, index) in list.iter().enumerate().rev() {
            stack.push((*index, prefix.to_owned(), at + 1 == list.len()));
        }
    };
    push(&mut stack, found.len(), "");
    while let Some((index, prefix, last)) = stack.pop() {
        let Some(node) = found.get(index) else { continue };
        let branch = if last { "└─ " } else { "├─ " };
        let name = node.child.browse_name.to_string();
        let name = cut(&output::in_line(&name), 60);
        let class = node.child.node_class.to_string();
        let again = if node.again { " ↑" } else { "" };
        let id = format!("{}  {class}{again}", node.child.node_id);
        let id = output.faint(&output::in_line(&id));
        text.push_str(&format!("{prefix}{branch}{name}  {id}\n"));
        push(&mut stack, index, &format!("{prefix}{}", if last { "   " } else { "│  " }));
    }
    text
}

fn list(found: &[Found]) -> Table {
    let mut table = Table::new(&[
        ("node id", Align::Tail),
        ("class", Align::Left),
        ("browse name", Align::Left),
        ("display name", Align::Left),
    ]);
    for node in found.iter().filter(|node| !node.again) {
        table.row([
            output::in_line(&node.child.node_id.to_string()).into_owned(),
            node.child.node_class.to_string(),
            output::in_line(&node.child.browse_name.to_string()).into_owned(),
            output::in_line(&node.child.display_name.to_string()).into_owned(),
        ]);
    }
    table
}

fn tree_document(root: &str, found: &[Found]) -> Value {
    let nodes: Vec<Value> = found
        .iter()
        .map(|node| {
            let parent =
                node.parent.and_then(|at| found.get(at)).map(|parent| parent.child.node_id.to_string());
            json!({
                "NodeId": node.child.node_id.to_string(),
                "BrowseName": node.child.browse_name.to_string(),
                "DisplayName": node.child.display_name.to_string(),
                "NodeClass": node.child.node_class.to_string(),
                "ReferenceType": node.child.reference_type.to_string(),
                "TypeDefinition": node.child.type_definition.to_string(),
                "Parent": parent,
                "Depth": node.depth,
            })
        })
        .collect();
    json!({ "Start": root.rsplit("  ").next(), "Nodes": nodes })
}
