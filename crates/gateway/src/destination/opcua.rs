//! Writes values to another OPC UA server: as values of its variables (Part 4 §5.11.4), or into their history (Part 11 §6.9.2,
//! where a repeated value replaces itself).

use super::block::Record;
use super::isolation::{Isolation, Unanswered};
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
/// Most values in one history update request.
const UPDATES_MAX: usize = 1000;
/// ServerStatus.State, which every server has.
const STATE: NodeId = NodeId::numeric(0, 2259);

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    Value,
    ValueAndTime,
    History,
}

/// A server that receives values.
pub struct OpcUaSink {
    remote: Remote,
    session: String,
    node: Template,
    /// The nodes of individually configured tags.
    named: HashMap<String, String>,
    write: Write,
    deadline: Duration,
    link: Option<Link>,
    /// Records of the current batch with a result from the server, and whether they were rejected. When the batch is sent again
    /// they are skipped, because the variables would go back to older values.
    decided: BTreeMap<u64, bool>,
    /// The unresponsive nodes.
    isolation: Isolation,
}

/// A connection, with information about the nodes.
struct Link {
    client: Client,
    nodes: HashMap<Arc<str>, Node>,
}

#[derive(Debug, Clone)]
struct Node {
    id: NodeId,
    /// The type of its values, if it is a built-in type.
    kind: Option<Kind>,
}

/// Whether a status is temporary, so that the server may accept the value later.
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

/// Whether a status concerns the node and not the server.
fn is_of_node(status: StatusCode) -> bool {
    [StatusCode::BAD_NO_COMMUNICATION, StatusCode::BAD_NOT_CONNECTED, StatusCode::BAD_OUT_OF_SERVICE]
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
            isolation: Isolation::default(),
        })
    }

    fn failed(&self, error: &Error) -> Fault {
        Fault::other(self.remote.target(), error)
    }

    fn unanswered(&self, unanswered: &Unanswered<Error>) -> Fault {
        match unanswered {
            Unanswered::Failed(error) => self.failed(error),
            Unanswered::Silent => {
                Fault::NoAnswer { target: self.remote.target().to_owned(), after: self.deadline }
            }
        }
    }

    /// Resolves the nodes of tags that are new on this connection. Returns missing ones with the reason and whether it is
    /// temporary.
    async fn find(
        &mut self,
        link: &mut Link,
        batch: &Batch,
    ) -> Result<HashMap<Arc<str>, (String, bool)>, Fault> {
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
                Err(error) => drop(missing.insert(Arc::clone(&record.tag), (error.to_string(), false))),
            }
        }
        if found.is_empty() {
            return Ok(missing);
        }
        // Several tags may share a node.
        let nodes: HashSet<&NodeId> = found.iter().map(|(_, id)| id).collect();
        let nodes: Vec<(NodeId, ())> = nodes.into_iter().map(|id| (id.clone(), ())).collect();
        let client = &link.client;
        let read = |questions: Vec<(NodeId, ())>| async move {
            let wanted = |(id, ()): (NodeId, ())| [(id.clone(), Attribute::DataType), (id, Attribute::Value)];
            let values = client.read_many(questions.into_iter().flat_map(wanted)).await?;
            let mut values = values.into_iter();
            Ok(core::iter::from_fn(|| Some((values.next()?, values.next()?))).collect::<Vec<_>>())
        };
        let answers = self.isolation.ask(self.deadline, nodes.clone(), read, answers(client)).await;
        let answers = answers.map_err(|silence| self.unanswered(&silence))?;
        let answers: HashMap<NodeId, _> = nodes.into_iter().map(|(id, ())| id).zip(answers).collect();
        for (tag, id) in found {
            let Some(Some((data_type, value))) = answers.get(&id) else {
                link.nodes.remove(&tag);
                missing.insert(tag, (format!("{id} does not answer"), true));
                continue;
            };
            if data_type.status().is_bad() {
                link.nodes.remove(&tag);
                let status = data_type.status();
                missing.insert(tag, (format!("cannot find {id}: {status}"), is_passing(status)));
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

    /// The value to write; `None` if it cannot be converted.
    fn value(&self, node: &Node, record: &Record) -> Option<DataValue> {
        let is_bare = self.write == Write::Value;
        if is_bare && record.status.is_bad() {
            return None;
        }
        let value = match node.kind {
            // Send a value of the wrong type unchanged: the server rejects it with the most precise status.
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
        let mut verdict = Verdict::default();
        let mut by_node: HashMap<&NodeId, Vec<(u64, DataValue)>> = HashMap::new();
        let mut order: Vec<&NodeId> = Vec::new();
        for record in &batch.records {
            if self.decided.contains_key(&record.number) {
                continue;
            }
            let Some(node) = link.nodes.get(&record.tag) else {
                let Some((reason, is_passing)) = missing.get(&record.tag) else { continue };
                let told = Some(format!("{}: {reason}", record.tag));
                if *is_passing {
                    verdict.waiting = told;
                } else {
                    verdict.reason = told;
                    self.decided.insert(record.number, true);
                }
                continue;
            };
            let Some(value) = self.value(node, record) else {
                self.decided.insert(record.number, true);
                continue;
            };
            by_node.entry(&node.id).or_insert_with(|| {
                order.push(&node.id);
                Vec::new()
            });
            if let Some(values) = by_node.get_mut(&node.id) {
                values.push((record.number, value));
            }
        }
        let values: Vec<_> =
            order.into_iter().filter_map(|node| Some((node.clone(), by_node.remove(node)?))).collect();
        match self.write {
            Write::History => self.write_histories(&link.client, values, &mut verdict).await?,
            Write::Value | Write::ValueAndTime => {
                self.write_values(&link.client, values, &mut verdict).await?
            }
        }
        self.link = Some(link);
        let numbers = || batch.records.iter().map(|record| record.number);
        let parked: Vec<u64> = numbers().filter(|number| !self.decided.contains_key(number)).collect();
        let is_any_taken = numbers().any(|number| self.decided.get(&number) == Some(&false));
        if let (Some(fault), false) = (verdict.server, is_any_taken) {
            // The server accepts nothing: the batch waits.
            return Err(fault);
        }
        let mut refused = 0;
        for number in numbers() {
            refused += usize::from(self.decided.remove(&number) == Some(true));
        }
        let reason = if parked.is_empty() { verdict.reason } else { verdict.waiting };
        Ok(Taken { refused, reason, parked })
    }

    /// Writes the values of nodes. The server may write values of the same node in one request in any order, so each request has
    /// only one of them.
    async fn write_values(
        &mut self,
        client: &Client,
        nodes: Vec<(NodeId, Vec<(u64, DataValue)>)>,
        verdict: &mut Verdict,
    ) -> Result<(), Fault> {
        let write = |values| client.write_many(values);
        let mut nodes: Vec<_> = nodes.into_iter().map(|(node, values)| (node, values.into_iter())).collect();
        while !nodes.is_empty() {
            let mut wave = Vec::new();
            let mut values = Vec::new();
            nodes.retain_mut(|(node, left)| match left.next() {
                Some((number, value)) => {
                    wave.push(number);
                    values.push((node.clone(), value));
                    true
                }
                None => false,
            });
            if values.is_empty() {
                break;
            }
            let results = self.isolation.ask(self.deadline, values, write, answers(client)).await;
            let results = results.map_err(|silence| self.unanswered(&silence))?;
            let mut results = wave.into_iter().zip(results);
            // Nodes that accept no value now: their later values are parked with it, those of other nodes are not.
            nodes.retain(|(node, _)| match results.next() {
                Some((number, Some(status))) => self.judge(verdict, node, number, status),
                Some((_, None)) => {
                    verdict.waiting.get_or_insert(format!("cannot write {node}: it does not answer"));
                    false
                }
                None => false,
            });
        }
        Ok(())
    }

    async fn write_histories(
        &mut self,
        client: &Client,
        nodes: Vec<(NodeId, Vec<(u64, DataValue)>)>,
        verdict: &mut Verdict,
    ) -> Result<(), Fault> {
        for (node, values) in nodes {
            for part in values.chunks(UPDATES_MAX) {
                let update = PerformUpdateType::UPDATE;
                let update = |questions: Vec<(NodeId, Vec<DataValue>)>| async move {
                    let mut all = Vec::new();
                    for (node, data) in questions {
                        let count = data.len();
                        all.push(match client.update_history(node, update, data).await {
                            Ok(results) => results,
                            Err(Error::Status { status, .. }) => vec![status; count],
                            Err(error) => return Err(error),
                        });
                    }
                    Ok(all)
                };
                let data = part.iter().map(|(_, value)| value.clone()).collect();
                let question = vec![(node.clone(), data)];
                let results = self.isolation.ask(self.deadline, question, update, answers(client)).await;
                let results = results.map_err(|silence| self.unanswered(&silence))?.pop().flatten();
                let Some(results) = results else {
                    verdict.waiting.get_or_insert(format!("cannot update the history of {node}: no answer"));
                    break;
                };
                let mut results = part.iter().zip(results);
                if !results.all(|((number, _), status)| self.judge(verdict, &node, *number, status)) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Evaluates the result for a value; false if it must be written later.
    fn judge(&mut self, verdict: &mut Verdict, node: &NodeId, number: u64, status: StatusCode) -> bool {
        if !status.is_bad() {
            self.decided.insert(number, false);
            return true;
        }
        let told = format!("cannot write {node}: {status}");
        if !is_passing(status) {
            self.decided.insert(number, true);
            verdict.reason = Some(told);
            return true;
        }
        if !is_of_node(status) && verdict.server.is_none() {
            verdict.server = Some(Fault::other(self.remote.target(), &told));
        }
        verdict.waiting.get_or_insert(told);
        false
    }
}

/// Whether the server answers at all.
async fn answers(client: &Client) -> bool {
    client.read_many([(STATE, Attribute::Value)]).await.is_ok()
}

/// Results of writing a batch.
#[derive(Default)]
struct Verdict {
    /// Why values were rejected.
    reason: Option<String>,
    /// Why values of single nodes are parked.
    waiting: Option<String>,
    /// An error of the server that does not concern a node.
    server: Option<Fault>,
}

impl Sink for OpcUaSink {
    fn describe(&self) -> String {
        self.remote.describe()
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        Box::pin(self.send_all(batch))
    }
}
