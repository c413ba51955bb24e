//! `taktwerk nodeset`: exports address spaces to NodeSet2 files, and loads such files into a running server.

mod load;

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::node::NodeSpec;
use crate::output::{self, Output};
use crate::overwrite::Overwrite;
use crate::session::Session;
use crate::{resolve, walk};
use clap::{Args, Subcommand};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use taktwerk_nodeset::export::{ExportNode, Exported, attribute, export};
use taktwerk_schema::ReadValueId;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_types::{NodeId, Variant};

/// `taktwerk nodeset`
#[derive(Debug, Subcommand)]
pub(crate) enum NodeSetCommand {
    /// Write a node and everything below it to a NodeSet2 XML file.
    #[command(after_help = crate::examples::NODESET_EXPORT)]
    Export(ExportArgs),
    /// Load a NodeSet2 XML file into a running Taktwerk server, or replace the one with the same namespaces.
    ///
    /// The server needs [nodeset_methods] in its configuration, and the user the role ConfigureAdmin or SecurityAdmin.
    #[command(after_help = crate::examples::NODESET_LOAD)]
    Load(load::LoadArgs),
    /// Delete the nodes of a NodeSet that was loaded.
    #[command(after_help = crate::examples::NODESET_UNLOAD)]
    Unload(load::UnloadArgs),
}

/// Arguments of `taktwerk nodeset export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// The node: a NodeId or a browse path. For nodes of namespace 0, only their children are written.
    #[arg(value_name = "NODE")]
    node: NodeSpec,

    /// The file to write. Default: standard output.
    #[arg(short, long, value_name = "FILE")]
    to: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,

    /// Leave out the values of Variables.
    #[arg(long)]
    no_values: bool,
}

/// Nodes per request. It limits the delay of an interrupt.
const BATCH: usize = 500;

/// Runs one of the commands.
pub(crate) fn run(command: &NodeSetCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let arguments = match command {
        NodeSetCommand::Export(arguments) => arguments,
        NodeSetCommand::Load(arguments) => return load::load(arguments, output),
        NodeSetCommand::Unload(arguments) => return load::unload(arguments, output),
    };
    arguments.to.as_deref().map_or(Ok(()), |path| arguments.overwrite.check(path))?;
    let mut session = Session::connect(&arguments.connection)?;
    let root = resolve::one(&mut session, &arguments.node)?;
    let ids = below(&mut session, root, interrupt)?;
    if ids.is_empty() {
        return Err(Failure::BadStatus(format!(
            "{}: all nodes below are in namespace 0, which every server has. Name another node",
            arguments.node
        )));
    }
    let hierarchical = hierarchical_types(&mut session)?;
    let mut nodes = Vec::with_capacity(ids.len());
    for batch in ids.chunks(BATCH) {
        if interrupt.asked() {
            return Err(Failure::Interrupted);
        }
        nodes.extend(describe(&mut session, batch, &hierarchical, !arguments.no_values)?);
    }
    let namespaces = session.namespaces()?;
    session.close();
    let Exported { text, changed_ids, changed_texts } =
        export(&namespaces, &nodes, taktwerk_net::clock::wall());
    if !changed_ids.is_empty() {
        return Err(Failure::BadStatus(format!(
            "not written, because an import would change NodeIds or namespaces that end with white space or have control \
             characters. They are those of these nodes, or in their references or values: {}. Export nodes without these below them{}",
            some(&changed_ids),
            if arguments.no_values { "" } else { ", or leave out values with --no-values" }
        )));
    }
    if !changed_texts.is_empty() {
        tell!(
            "warning: names, descriptions or values have characters that XML does not allow. U+FFFD replaces them in: {}",
            some(&changed_texts)
        );
    }
    match &arguments.to {
        None => output.data(&text),
        Some(path) => {
            std::fs::write(path, text)
                .map_err(|error| Failure::Environment(format!("{}: {error}", path.display())))?;
            output.text(&format!("{} nodes written to {}", nodes.len(), path.display()))
        }
    }
}

/// Most nodes that a message names.
const NAMED_MAX: usize = 5;

/// The first of some nodes.
fn some(ids: &[NodeId]) -> String {
    let named: Vec<String> =
        ids.iter().take(NAMED_MAX).map(|id| output::in_line(&id.to_string()).into_owned()).collect();
    let more = ids.len().saturating_sub(NAMED_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    named.join(", ") + &more
}

/// A node and everything below it by hierarchical references. The children of nodes of namespace 0 that belong to the
/// specification are skipped, because every server has them.
fn below(session: &mut Session, root: NodeId, interrupt: &Interrupt) -> Result<Vec<NodeId>, Failure> {
    let mut seen = BTreeSet::from([root.clone()]);
    let mut found = vec![root];
    let mut done = 0;
    while done < found.len() {
        if interrupt.asked() {
            return Err(Failure::Interrupted);
        }
        let batch: Vec<NodeId> = found.iter().skip(done).take(BATCH).cloned().collect();
        done += batch.len();
        for children in walk::children(session, &batch)? {
            for child in children? {
                let id = child.node_id;
                if id.namespace_index != 0 && seen.insert(id.clone()) {
                    found.push(id);
                }
            }
        }
    }
    found.retain(|id| id.namespace_index != 0);
    Ok(found)
}

/// HierarchicalReferences with all subtypes.
fn hierarchical_types(session: &mut Session) -> Result<BTreeSet<NodeId>, Failure> {
    let mut all = BTreeSet::new();
    let mut next = vec![NodeId::numeric(0, reference_type_ids::HIERARCHICAL_REFERENCES)];
    while !next.is_empty() {
        let mut subtypes = Vec::new();
        for children in walk::children(session, &next)? {
            subtypes.extend(children?.into_iter().map(|child| child.node_id));
        }
        all.extend(next);
        subtypes.retain(|id| !all.contains(id));
        next = subtypes;
    }
    Ok(all)
}

/// Attributes of every node.
const COMMON: [u32; 4] = [2, 3, 4, 5];

/// Reads the attributes and references of nodes.
fn describe(
    session: &mut Session,
    ids: &[NodeId],
    hierarchical: &BTreeSet<NodeId>,
    with_values: bool,
) -> Result<Vec<ExportNode>, Failure> {
    let attributes: Vec<u32> = COMMON
        .into_iter()
        .chain(attribute::ALL)
        .filter(|attribute| with_values || *attribute != attribute::VALUE)
        .collect();
    let reads = ids.iter().flat_map(|id| {
        attributes.iter().map(|attribute| ReadValueId {
            node_id: id.clone(),
            attribute_id: *attribute,
            ..ReadValueId::default()
        })
    });
    let mut values = session.read(reads.collect())?.into_iter();
    let references = walk::references(session, ids)?;
    let mut nodes = Vec::with_capacity(ids.len());
    for (id, references) in ids.iter().zip(references) {
        let mut read: BTreeMap<u32, Variant> = BTreeMap::new();
        for attribute in &attributes {
            let value = values.next().unwrap_or_default();
            if !value.status().is_bad() {
                read.extend(value.value.map(|value| (*attribute, value)));
            }
        }
        let references =
            references.map_err(|status| Failure::BadStatus(format!("browsing {id}: {status}")))?;
        let node = ExportNode::of_client(id.clone(), read, references, |kind| hierarchical.contains(kind));
        let unreadable = || Failure::BadStatus(format!("{id}: the NodeClass cannot be read"));
        nodes.push(node.ok_or_else(unreadable)?);
    }
    Ok(nodes)
}
