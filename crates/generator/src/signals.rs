//! The signals of servers under test: variables `ns=1;i=100000`…, as described in `interop/TESTNODES.md`.

use taktwerk::Server;
use taktwerk_load::signals::SignalSet;
use taktwerk_net::clock;
use taktwerk_schema::AccessLevelType;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids, variable_type_ids};
use taktwerk_server::space::build::Under;
use taktwerk_server::space::{NodeError, NodeSpec, VariableHandle};
use taktwerk_sim::publishing::value;
use taktwerk_types::{NodeId, QualifiedName, Variant};

/// The folder.
const FOLDER: u32 = 99_999;
/// The first signal.
const FIRST: u32 = 100_000;
/// The namespace of all these nodes.
const NAMESPACE: u16 = 1;

/// The folder of the signals.
#[must_use]
pub fn folder() -> NodeId {
    NodeId::numeric(NAMESPACE, FOLDER)
}

/// A signal.
#[must_use]
pub fn id(signal: u32) -> NodeId {
    id_in(NAMESPACE, signal)
}

/// A signal of a server that reserves namespace 1.
pub(crate) fn id_in(namespace: u16, signal: u32) -> NodeId {
    NodeId::numeric(namespace, FIRST + signal)
}

/// Adds `count` signals to a server.
///
/// # Errors
/// If the server already has such nodes.
pub fn add(server: &Server, count: u32) -> Result<Vec<VariableHandle>, NodeError> {
    add_with(server, (0..count).map(|signal| Variant::from(1.0 + f64::from(signal))))
}

/// Adds the signals of several sets to a server, one set after the other.
///
/// # Errors
/// If the server already has such nodes.
pub fn add_sets(server: &Server, sets: &[SignalSet]) -> Result<Vec<Vec<VariableHandle>>, NodeError> {
    let values = sets.iter().flat_map(|set| (0..set.count).map(|_| value(set.bytes, 0)));
    let mut handles = add_with(server, values)?.into_iter();
    Ok(sets.iter().map(|set| handles.by_ref().take(set.count as usize).collect()).collect())
}

fn add_with(
    server: &Server,
    values: impl Iterator<Item = Variant>,
) -> Result<Vec<VariableHandle>, NodeError> {
    let space = server.space();
    let now = clock::wall();
    let ns0 = |number| NodeId::numeric(0, number);
    let name = |text: String| QualifiedName::new(NAMESPACE, text);

    let folder = folder();
    let under_objects = Under {
        parent: &ns0(object_ids::OBJECTS_FOLDER),
        reference_type: &ns0(reference_type_ids::ORGANIZES),
        type_definition: Some(&ns0(object_type_ids::FOLDER_TYPE)),
    };
    space.add_node(NodeSpec::object(folder.clone(), name("signals".into())), under_objects, now)?;

    let read_write = AccessLevelType(AccessLevelType::CURRENT_READ.0 | AccessLevelType::CURRENT_WRITE.0);
    let mut count = 0;
    let signals = (0..).zip(values).map(|(signal, value)| {
        count = signal + 1;
        let shape = space.shape_of(&value);
        NodeSpec::variable(id(signal), name(format!("signal{signal}")), NodeId::NULL, Some(value))
            .shape(shape)
            .access_level(read_write)
    });
    let under_folder = Under {
        parent: &folder,
        reference_type: &ns0(reference_type_ids::HAS_COMPONENT),
        type_definition: Some(&ns0(variable_type_ids::BASE_DATA_VARIABLE_TYPE)),
    };
    space.add_nodes(signals, under_folder, now)?;

    (0..count).map(|signal| space.variable(&id(signal))).collect()
}
