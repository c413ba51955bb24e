//! The interop test nodes, as `interop/TESTNODES.md` defines them.

mod alarms;
pub(crate) mod values;

use super::updater::Updater;
use taktwerk::{BuildError, Node, Server, Variable};
use taktwerk_schema::AccessLevelType;
use taktwerk_schema::ids::{object_type_ids, variable_type_ids};
use taktwerk_types::{BuiltInType, NodeId, StatusCode, Variant};

/// The namespace of the test nodes.
pub(crate) const NAMESPACE: &str = "urn:taktwerk:interop";
/// Users and passwords of the test programs.
pub(crate) const USERS: [(&str, &str); 2] = [("user1", "password"), ("user2", "password1")];

/// Period of the counter in nanoseconds: 100 ms.
const COUNTER_PERIOD_NS: u64 = 100_000_000;

/// Adds the nodes to a server and starts the counter.
pub(crate) fn start(server: &Server) -> Result<Updater, super::ServeError> {
    let namespace = server.namespace(NAMESPACE);
    let nodes = Nodes { index: namespace.index() };
    let root = nodes.folder(&namespace.objects(), "interop")?;
    let [scalar, array, matrix, structures] =
        ["scalar", "array", "matrix", "struct"].map(|name| nodes.folder(&root, name));
    let (scalar, array, matrix, structures) = (scalar?, array?, matrix?, structures?);
    for row in values::table(namespace.index()) {
        if row.kind == BuiltInType::Variant {
            nodes.any(&scalar, "scalar/Variant", row.scalar)?;
        } else {
            nodes.variable(&scalar, &format!("scalar/{}", row.kind), row.scalar)?;
        }
        nodes.variable(&array, &format!("array/{}", row.kind), row.array)?;
    }
    nodes.variable(&matrix, "matrix/Double", values::matrix())?;
    nodes.variable(&structures, "struct/Range", values::range())?;
    nodes.variable(&structures, "struct/EUInformation", values::unit())?;
    nodes.variable(&root, "the.answer", 43i32.into())?;
    root.variable("readonly", 17i32).node_id(nodes.id("readonly")).add()?;
    let write_only = root.variable("writeonly", 0i32).node_id(nodes.id("writeonly")).writable().add()?;
    server.space().set_access_level(write_only.id(), AccessLevelType::CURRENT_WRITE)?;
    nodes.analog(&root)?;
    alarms::add(&nodes, &namespace.objects())?;
    let counter = root.variable("counter", 0u32).node_id(nodes.id("counter")).add()?;
    let methods = root
        .object("methods")
        .node_id(nodes.id("methods"))
        .of_type(ns0(object_type_ids::BASE_OBJECT_TYPE))
        .organized();
    nodes.methods(&methods.add()?)?;
    Ok(count(counter)?)
}

fn ns0(id: u32) -> NodeId {
    NodeId::numeric(0, id)
}

fn count(counter: Variable<u32>) -> std::io::Result<Updater> {
    // The counter wraps, as the cycle number does.
    Updater::start("counter", COUNTER_PERIOD_NS, move |cycle| counter.set(cycle as u32))
}

/// Creates nodes with the ids of the test nodes.
struct Nodes {
    index: u16,
}

impl Nodes {
    fn id(&self, id: &str) -> NodeId {
        NodeId::string(self.index, id)
    }

    fn folder(&self, parent: &Node, id: &str) -> Result<Node, BuildError> {
        parent.object(id).node_id(self.id(id)).of_type(ns0(object_type_ids::FOLDER_TYPE)).organized().add()
    }

    /// A writable variable. Its DataType and ValueRank follow from its value.
    fn variable(&self, parent: &Node, id: &str, value: Variant) -> Result<(), BuildError> {
        let name = id.rsplit('/').next().unwrap_or(id);
        parent.variable(name, value).node_id(self.id(id)).writable().add()?;
        Ok(())
    }

    /// A writable variable for values of any type.
    fn any(&self, parent: &Node, id: &str, value: Variant) -> Result<(), BuildError> {
        let name = id.rsplit('/').next().unwrap_or(id);
        let variable = parent.variable_of::<Variant>(name).node_id(self.id(id)).writable().add()?;
        variable.set(value);
        Ok(())
    }

    fn analog(&self, root: &Node) -> Result<(), BuildError> {
        let range = 0.0..=100.0;
        root.variable("analog", 50.0f64)
            .node_id(self.id("analog"))
            .of_type(ns0(variable_type_ids::ANALOG_ITEM_TYPE))
            .range(range)
            .writable()
            .add()?;
        Ok(())
    }

    fn methods(&self, object: &Node) -> Result<(), BuildError> {
        object
            .method("add")
            .node_id(self.id("method/add"))
            .inputs(["a", "b"])
            .outputs(["sum"])
            .handler(|_, (a, b): (i32, i32)| Ok((a.wrapping_add(b),)))?;
        object
            .method("hello")
            .node_id(self.id("method/hello"))
            .inputs(["name"])
            .outputs(["greeting"])
            .handler(|_, (name,): (String,)| Ok((format!("Hello, {name}!"),)))?;
        object.method("none").node_id(self.id("method/none")).handler(|_, (): ()| Ok(()))?;
        object
            .method("fail")
            .node_id(self.id("method/fail"))
            .handler(|_, (): ()| -> Result<(), StatusCode> { Err(StatusCode::BAD_INVALID_STATE) })?;
        Ok(())
    }
}
