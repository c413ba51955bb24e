//! Values written to another OPC UA server: as values of its variables (Part 4 §5.11.4), or into their history (Part 11
//! §6.9.2, where a value that is sent again replaces itself).

use super::block::Record;
use super::settings::DestinationSettings;
use super::template::Template;
use super::{Batch, Sink, Taken};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::opcua::{Remote, check_node, kind_of};
use crate::value::Kind;
use core::time::Duration;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use taktwerk::Client;
use taktwerk::client::{Attribute, Error, ToNodeId};
use taktwerk_schema::PerformUpdateType;
use taktwerk_types::{DataValue, NodeId, StatusCode, Variant};

const NODE: &str = "nsu=urn:taktwerk:gateway;s={tag}";
/// Values in one request that updates a history.
const UPDATES_MAX: usize = 1000;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    Value,
    ValueAndTime,
    History,
}

/// A server that values are written to.
pub struct OpcUaSink {
    remote: Remote,
    session: String,
    node: Template,
    /// The nodes of tags that are named one by one.
    named: HashMap<String, String>,
    write: Write,
    deadline: Duration,
    link: Option<Link>,
    /// The records of the batch under way that the server has decided on, and whether it has refused them. When the batch
    /// is sent again, they are not: the variables would go back to older values.
    decided: BTreeMap<u64, bool>,
}

/// A connection, with what is known of the nodes.
struct Link {
    client: Client,
    nodes: HashMap<Arc<str>, Node>,
}

#[derive(Debug, Clone)]
struct Node {
    id: NodeId,
    /// The type of its values, if it is a plain one.
    kind: Option<Kind>,
}

/// A server that does not take a value now may take it later.
fn is_passing(status: StatusCode) -> bool {
    [
        StatusCode::BAD_NO_COMMUNICATION,
        StatusCode::BAD_NOT_CONNECTED,
        StatusCode::BAD_SHUTDOWN,
        StatusCode::BAD_SERVER_HALTED,
        StatusCode::BAD_TIMEOUT,
        StatusCode::BAD_RESOURCE_UNAVAILABLE,
        StatusCode::BAD_OUT_OF_MEMORY,
        StatusCode::BAD_TOO_MANY_OPERATIONS,
        StatusCode::BAD_OUT_OF_SERVICE,
    ]
    .contains(&status)
}

impl OpcUaSink {
    /// Takes the settings of a destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &DestinationSettings) -> Result<Self, Mistake> {
        let remote = Remote::take(fields)?;
        let node = fields.text_at("node")?;
        if let Some((line, text)) = &node {
            check_node(fields, *line, "node", text)?;
        }
        let mut named = HashMap::new();
        for entry in fields.texts("nodes")?.unwrap_or_default() {
            let Some((tag, node)) = entry.split_once(" = ") else {
                let hint = "write nodes = [\"Line 1/Temperature = nsu=urn:example:plant;s=T1\"]";
                return Err(fields.mistake(format!("{entry:?} names no tag and node"), hint));
            };
            check_node(fields, fields.line(), "nodes", node.trim())?;
            named.insert(tag.trim().trim_matches('/').to_owned(), node.trim().to_owned());
        }
        let writes =
            [("value", Write::Value), ("value-and-time", Write::ValueAndTime), ("history", Write::History)];
        Ok(Self {
            remote,
            session: format!("gateway destination {}", settings.name),
            node: Template::parse(node.as_ref().map_or(NODE, |(_, text)| text)),
            named,
            write: fields.word("write", &writes)?.unwrap_or(Write::Value),
            deadline: settings.deadline,
            link: None,
            decided: BTreeMap::new(),
        })
    }

    fn failed(&self, error: &Error) -> Fault {
        Fault::other(self.remote.target(), error)
    }

    /// Finds the nodes of tags that are new on this connection; gives those that are not there, with the reason.
    async fn find(&self, link: &mut Link, batch: &Batch) -> Result<HashMap<Arc<str>, String>, Fault> {
        let namespaces = link.client.namespaces();
        let mut missing = HashMap::new();
        let mut found: Vec<(Arc<str>, NodeId)> = Vec::new();
        for record in &batch.records {
            if link.nodes.contains_key(&record.tag) || missing.contains_key(&record.tag) {
                continue;
            }
            let text = match self.named.get(&*record.tag) {
                Some(node) => node.clone(),
                None => self.node.fill(batch, record, str::to_owned),
            };
            match text.as_str().to_node_id(&namespaces) {
                Ok(id) => {
                    link.nodes.insert(Arc::clone(&record.tag), Node { id: id.clone(), kind: None });
                    found.push((Arc::clone(&record.tag), id));
                }
                Err(error) => drop(missing.insert(Arc::clone(&record.tag), error.to_string())),
            }
        }
        if found.is_empty() {
            return Ok(missing);
        }
        let wanted = found
            .iter()
            .flat_map(|(_, id)| [(id.clone(), Attribute::DataType), (id.clone(), Attribute::Value)]);
        let values = link.client.read_many(wanted).await.map_err(|error| self.failed(&error))?;
        for ((tag, id), values) in found.into_iter().zip(values.chunks(2)) {
            let [data_type, value] = values else { continue };
            if data_type.status().is_bad() {
                link.nodes.remove(&tag);
                missing.insert(tag, format!("cannot find {id}: {}", data_type.status()));
                continue;
            }
            let kind = match &data_type.value {
                Some(Variant::NodeId(data_type)) => kind_of(data_type, value.value.as_ref()),
                _ => None,
            };
            link.nodes.insert(tag, Node { id, kind });
        }
        Ok(missing)
    }

    /// The value as it is written; `None` if it cannot be.
    fn value(&self, node: &Node, record: &Record) -> Option<DataValue> {
        let is_bare = self.write == Write::Value;
        if is_bare && record.status.is_bad() {
            return None;
        }
        let value = match node.kind {
            // A value that is of another type is refused by the server, which says so best.
            Some(kind) => kind.coerce(record.value.clone()).unwrap_or_else(|| record.value.clone()),
            None => record.value.clone(),
        };
        let mut data = DataValue::new(value);
        if !is_bare {
            data.status = Some(record.status);
            data.source_timestamp = Some(record.time);
        }
        Some(data)
    }

    async fn send_all(&mut self, batch: &Batch) -> Result<Taken, Fault> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => Link {
                client: self.remote.connect(&self.session, self.deadline).await?,
                nodes: HashMap::new(),
            },
        };
        let missing = self.find(&mut link, batch).await?;
        let first = batch.records.first().map_or(0, |record| record.number);
        self.decided.retain(|number, _| *number >= first);
        let mut taken =
            Taken { refused: self.decided.values().filter(|refused| **refused).count(), ..Taken::default() };
        let mut by_node: HashMap<&NodeId, usize> = HashMap::new();
        // Values of a node in one request may be written in any order, so each wave has one value of a node.
        let mut waves: Vec<Vec<(u64, NodeId, DataValue)>> = Vec::new();
        let mut histories: Vec<(NodeId, Vec<DataValue>)> = Vec::new();
        for record in batch.records.iter().filter(|record| !self.decided.contains_key(&record.number)) {
            let Some(node) = link.nodes.get(&record.tag) else {
                taken.refused += 1;
                taken.reason = missing.get(&record.tag).map(|reason| format!("{}: {reason}", record.tag));
                continue;
            };
            let Some(value) = self.value(node, record) else {
                taken.refused += 1;
                continue;
            };
            let next = by_node.entry(&node.id).or_insert(if self.write == Write::History {
                histories.len()
            } else {
                0
            });
            if self.write == Write::History {
                if *next == histories.len() {
                    histories.push((node.id.clone(), Vec::new()));
                }
                if let Some((_, values)) = histories.get_mut(*next) {
                    values.push(value);
                }
                continue;
            }
            if waves.len() <= *next {
                waves.push(Vec::new());
            }
            if let Some(wave) = waves.get_mut(*next) {
                wave.push((record.number, node.id.clone(), value));
            }
            *next += 1;
        }
        // Nodes that take no value now: their later values wait with it, those of others do not.
        let mut waiting: HashSet<NodeId> = HashSet::new();
        let mut failure = None;
        for wave in waves {
            let wave = wave.into_iter().filter(|(_, node, _)| !waiting.contains(node));
            let (written, values): (Vec<_>, Vec<_>) =
                wave.map(|(number, node, value)| ((number, node.clone()), (node, value))).unzip();
            if values.is_empty() {
                break;
            }
            let results = link.client.write_many(values).await.map_err(|error| self.failed(&error))?;
            for ((number, node), status) in written.into_iter().zip(results) {
                let refused = taken.refused;
                match self.judge(&mut taken, &node, status) {
                    Ok(()) => drop(self.decided.insert(number, taken.refused > refused)),
                    Err(fault) => {
                        waiting.insert(node);
                        failure.get_or_insert(fault);
                    }
                }
            }
        }
        if let Some(fault) = failure {
            self.link = Some(link);
            return Err(fault);
        }
        for (node, values) in histories {
            for part in values.chunks(UPDATES_MAX) {
                let update = PerformUpdateType::UPDATE;
                let results = link.client.update_history(node.clone(), update, part.to_vec()).await;
                match results {
                    Ok(results) => {
                        results.into_iter().try_for_each(|status| self.judge(&mut taken, &node, status))?
                    }
                    Err(error @ Error::Status { status, .. }) if !is_passing(status) => {
                        taken.refused += part.len();
                        taken.reason = Some(error.to_string());
                    }
                    Err(error) => return Err(self.failed(&error)),
                }
            }
        }
        self.link = Some(link);
        self.decided.clear();
        Ok(taken)
    }

    /// What a result of the server means for its value.
    fn judge(&self, taken: &mut Taken, node: &NodeId, status: StatusCode) -> Result<(), Fault> {
        if !status.is_bad() {
            return Ok(());
        }
        let told = format!("cannot write {node}: {status}");
        if is_passing(status) {
            return Err(Fault::other(self.remote.target(), told));
        }
        taken.refused += 1;
        taken.reason = Some(told);
        Ok(())
    }
}

impl Sink for OpcUaSink {
    fn describe(&self) -> String {
        self.remote.describe()
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        Box::pin(self.send_all(batch))
    }
}
