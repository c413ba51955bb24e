//! Variables of the server's address space for a destination, in addition to tags or instead of them, selected by NodeId. They
//! are sampled; a value is new if its timestamps, status or content have changed.

use super::tap::{Tap, Tapped};
use crate::fields::{Fields, Mistake, Setting};
use crate::opcua::check_node;
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::Arc;
use taktwerk_net::clock::wall;
use taktwerk_server::space::{AddressSpace, VariableHandle};
use taktwerk_types::{BuiltInType, DataValue, ExpandedNodeId, NodeId, StatusCode, UtcTime, Variant};
use tokio::time::{MissedTickBehavior, interval};

/// Longest name of a field.
const NAME_LEN_MAX: usize = 1000;
/// Most fields.
const FIELDS_MAX: usize = 10_000;

/// A variable, and its name in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeField {
    /// The name, in place of a tag's path and name.
    pub name: Arc<str>,
    /// The variable.
    pub node: ExpandedNodeId,
    /// The line of the setting.
    pub line: usize,
}

impl NodeField {
    /// Takes the fields of a destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields) -> Result<Vec<Self>, Mistake> {
        let hint = "write fields = [{ name = \"Temperature\", node = \"nsu=urn:example:plant;s=Oven/Temperature\" }]";
        let Some((line, setting)) = fields.take("fields") else { return Ok(Vec::new()) };
        let Setting::List(entries) = setting else {
            return Err(fields.mistake_in(line, "fields", "this is no list of fields", hint));
        };
        if entries.len() > FIELDS_MAX {
            let problem = format!("{} fields are more than {FIELDS_MAX}", entries.len());
            return Err(fields.mistake_in(line, "fields", problem, "split them into several destinations"));
        }
        let mut names = BTreeSet::new();
        let mut found = Vec::new();
        for (line, entry) in entries {
            let Setting::Table(entries) = entry else {
                return Err(fields.mistake_in(line, "fields", "a field has a name and a node", hint));
            };
            let mut entry = fields.within(line, entries);
            let (line, name) = entry.required("name", "\"Temperature\"")?;
            let name = name.trim_matches('/').to_owned();
            if name.is_empty() || name.len() > NAME_LEN_MAX || name.chars().any(char::is_control) {
                let hint = "names have 1 to 1000 bytes and no control characters";
                return Err(entry.mistake_in(line, "name", format!("{name:?} is no name of a field"), hint));
            }
            if !names.insert(name.clone()) {
                let problem = format!("there are two fields {name:?}");
                return Err(entry.mistake_in(line, "name", problem, "give each a name of its own"));
            }
            let (line, node) = entry.required("node", "\"nsu=urn:example:plant;s=Oven/Temperature\"")?;
            check_node(&entry, line, "node", &node)?;
            entry.finish()?;
            // Has been checked above.
            let Ok(node) = node.parse() else { continue };
            found.push(Self { name: name.into(), node, line });
        }
        Ok(found)
    }
}

/// A sampled field.
struct Followed {
    name: Arc<str>,
    node: ExpandedNodeId,
    tapped: Tapped,
    handle: Option<VariableHandle>,
    last: Option<DataValue>,
    /// The last value passed to the destination.
    told: Option<(Variant, StatusCode)>,
}

/// Samples the fields of a destination.
pub(crate) struct Follower {
    space: Arc<AddressSpace>,
    fields: Vec<Followed>,
}

impl Follower {
    /// Samples fields. Their values go to the tap, regardless of its tag patterns.
    pub(crate) fn new(space: Arc<AddressSpace>, fields: &[NodeField], tap: &Arc<Tap>) -> Self {
        let follow = |field: &NodeField| Followed {
            name: Arc::clone(&field.name),
            node: field.node.clone(),
            tapped: Tap::add(tap),
            handle: None,
            last: None,
            told: None,
        };
        Self { space, fields: fields.iter().map(follow).collect() }
    }

    /// Samples repeatedly, forever.
    pub(crate) async fn run(mut self, every: Duration) {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look(wall());
        }
    }

    /// Passes new values to the tap.
    pub(crate) fn look(&mut self, now: UtcTime) {
        for field in &mut self.fields {
            let id = resolve(&self.space, &field.node);
            // The handle of a deleted node reports that; its id may belong to another node now.
            let is_gone = |handle: &VariableHandle| handle.get().status() == StatusCode::BAD_NODE_ID_UNKNOWN;
            if field.handle.as_ref().is_none_or(is_gone) {
                field.handle = id.and_then(|id| self.space.variable(&id).ok());
            }
            let value = match &field.handle {
                Some(handle) => handle.get(),
                None => DataValue { status: Some(StatusCode::BAD_NODE_ID_UNKNOWN), ..DataValue::default() },
            };
            field.tell(value, now);
        }
    }
}

impl Followed {
    fn tell(&mut self, value: DataValue, now: UtcTime) {
        if self.last.as_ref().is_some_and(|last| is_same(last, &value)) {
            return;
        }
        let status = value.status();
        let content = value.value.clone().filter(|_| !status.is_bad()).unwrap_or_default();
        // Destinations cannot use the binary encoding of a structure.
        let is_structure = content.built_in_type() == Some(BuiltInType::ExtensionObject);
        let (content, status) =
            if is_structure { (Variant::Empty, StatusCode::BAD_NOT_SUPPORTED) } else { (content, status) };
        // Compare what was sent, not what is stored: a Bad value is sent without its content.
        let is_told = |(told, before): &(Variant, StatusCode)| *before == status && told.same_as(&content);
        let is_change = !self.told.as_ref().is_some_and(is_told);
        let time = value.source_timestamp.filter(|time| !time.is_null()).unwrap_or(now);
        self.tapped.push(&self.name, &content, status, (time, now), is_change);
        if is_change {
            self.told = Some((content, status));
        }
        self.last = Some(value);
    }
}

/// Whether nothing was stored in the meantime.
fn is_same(last: &DataValue, value: &DataValue) -> bool {
    let same_value = match (&last.value, &value.value) {
        (Some(last), Some(value)) => last.same_as(value),
        (last, value) => last.is_none() && value.is_none(),
    };
    same_value
        && last.status() == value.status()
        && last.source_timestamp == value.source_timestamp
        && last.server_timestamp == value.server_timestamp
}

/// The node with the server's namespace index, if the server has the namespace.
fn resolve(space: &AddressSpace, node: &ExpandedNodeId) -> Option<NodeId> {
    let mut id = node.node_id.clone();
    if !node.namespace_uri.as_str().is_empty() {
        id.namespace_index = space.namespace_index(node.namespace_uri.as_str())?;
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::block::decode;
    use crate::destination::counters::Counters;
    use crate::fields::Sections;
    use std::path::Path;
    use taktwerk::Server;

    fn take(text: &str) -> Result<Vec<NodeField>, String> {
        let text = format!("[[destination]]\n{text}\n");
        let mut fields = Sections::parse(Path::new("g.toml"), &text).unwrap().destinations.remove(0);
        NodeField::take(&mut fields).map_err(|error| error.to_string())
    }

    #[test]
    fn fields_have_names_and_nodes() {
        let found = take(
            "fields = [{ name = \"A/b\", node = \"nsu=urn:x;s=t\" }, { name = \"c\", node = \"i=2258\" }]",
        );
        let names: Vec<String> = found.unwrap().iter().map(|field| field.name.to_string()).collect();
        assert_eq!(names, ["A/b", "c"]);
        assert!(take("").unwrap().is_empty());
        for (text, said) in [
            ("fields = \"a\"", "no list of fields"),
            ("fields = [\"a\"]", "a field has a name and a node"),
            ("fields = [{ name = \"a\" }]", "node is missing"),
            ("fields = [{ node = \"i=1\" }]", "name is missing"),
            ("fields = [{ name = \"a\", node = \"x\" }]", "is not a NodeId"),
            ("fields = [{ name = \"/\", node = \"i=1\" }]", "no name of a field"),
            ("fields = [{ name = \"a\", node = \"i=1\", type = \"Int32\" }]", "type"),
            ("fields = [{ name = \"a\", node = \"i=1\" }, { name = \"a\", node = \"i=2\" }]", "two fields"),
        ] {
            let error = take(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn values_of_nodes_are_sent_on_change_while_the_node_exists() {
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let plant = server.namespace("urn:plant");
        let level = plant.variable("Level", 1.5).add().unwrap();
        let fields = take(
            "fields = [{ name = \"Tank\", node = \"nsu=urn:plant;s=Level\" }, { name = \"Later\", node = \"nsu=urn:plant;s=Later\" }]",
        );
        for every in [false, true] {
            let tap = Arc::new(Tap::new(Vec::new(), Vec::new(), every, Arc::new(Counters::default())));
            let mut follower = Follower::new(Arc::clone(server.space()), fields.as_ref().unwrap(), &tap);
            let now = UtcTime::from_unix(Duration::from_secs(1_700_000_000));
            let told = |follower: &mut Follower| -> Vec<(String, Variant, StatusCode)> {
                follower.look(now);
                let records = tap.take().into_iter().flat_map(|block| decode(&block.body, 0).unwrap());
                records.map(|record| (record.tag.to_string(), record.value, record.status)).collect()
            };
            let unknown = ("Later".to_owned(), Variant::Empty, StatusCode::BAD_NODE_ID_UNKNOWN);
            let of = |number: f64| ("Tank".to_owned(), Variant::from(number), StatusCode::GOOD);
            let begin = level.get().unwrap();
            assert_eq!(told(&mut follower), [of(begin), unknown]);
            assert_eq!(told(&mut follower), []);
            // An unchanged value is new only if every value is requested.
            level.set(begin);
            assert_eq!(told(&mut follower), if every { vec![of(begin)] } else { vec![] });
            level.set(begin + 1.0);
            assert_eq!(told(&mut follower), [of(begin + 1.0)]);
            // Repeatedly Bad.
            for (at, status) in [(1, StatusCode::BAD_DEVICE_FAILURE), (2, StatusCode::BAD_DEVICE_FAILURE)] {
                let time = UtcTime::from_unix(Duration::from_secs(1_700_000_000 + at));
                server.space().variable(level.id()).unwrap().set_with(begin, status, time, time);
                let failed = ("Tank".to_owned(), Variant::Empty, status);
                assert_eq!(told(&mut follower), if every || at == 1 { vec![failed] } else { vec![] });
            }
            level.set(begin);
            assert_eq!(told(&mut follower), [of(begin)]);
            // A node is added, deleted, and added again.
            let later = plant.variable("Later", 7.0).add().unwrap();
            let good = ("Later".to_owned(), Variant::from(7.0), StatusCode::GOOD);
            assert_eq!(told(&mut follower), [good]);
            server.space().delete_node(&NodeId::string(2, "Later")).unwrap();
            drop(later);
            let gone = ("Later".to_owned(), Variant::Empty, StatusCode::BAD_NODE_ID_UNKNOWN);
            assert_eq!(told(&mut follower), [gone]);
            plant.variable("Later", 8.0).add().unwrap();
            assert_eq!(told(&mut follower).len(), 1);
            // Deleted and added again between two samples.
            server.space().delete_node(&NodeId::string(2, "Later")).unwrap();
            plant.variable("Later", 9.0).add().unwrap();
            let found = told(&mut follower);
            assert_eq!(found, [("Later".to_owned(), Variant::from(9.0), StatusCode::GOOD)]);
            server.space().delete_node(&NodeId::string(2, "Later")).unwrap();
        }
    }
}
