//! Lists the variables of a server, to help users write tags.

use super::OpcUa;
use super::budget::Budget;
use super::mirror::{self, Found};
use super::session::connect;
use crate::fault::Fault;
use crate::offer::{Offer, Question, quoted};
use crate::opcua::address;
use crate::value::{TYPES, to_json};
use taktwerk::client::ToNodeId;
use taktwerk_types::UaString;
use tokio::time::timeout;

/// The default starting point: the Objects folder.
const OBJECTS: &str = "i=85";

pub(super) async fn offers(server: &OpcUa, question: &Question) -> Result<Vec<Offer>, Fault> {
    let target = server.remote.target().to_owned();
    let deadline = question.settings.deadline;
    let client = match timeout(deadline, connect(server, &question.settings)).await {
        Err(_) => return Err(Fault::ConnectTimeout { target, after: deadline }),
        Ok(client) => client?,
    };
    let fail = |error: taktwerk::client::Error| Fault::other(target.as_str(), error);
    let namespaces = client.namespaces();
    let below = question.below.clone().into_iter();
    let roots = if question.below.is_some() { below.collect() } else { server.mirrors.clone() };
    let roots = if roots.is_empty() { vec![OBJECTS.to_owned()] } else { roots };
    let mut offers: Vec<Offer> = Vec::new();
    let mut budget = Budget::new(server.limits.0, server.limits.1);
    for root in roots {
        let root = root.to_node_id(&namespaces).map_err(fail)?;
        let most = question.most.saturating_sub(offers.len());
        let found = mirror::subtree(&client, &target, root, (server.depth_max, most), &mut budget).await?;
        offers.extend(found.variables.iter().filter_map(|found| offer(found, &namespaces)));
    }
    // Close the unused session, so that the server need not wait for its timeout.
    let _ = timeout(deadline, client.disconnect()).await;
    Ok(offers)
}

/// Only mirrors can show structures.
fn offer(found: &Found, namespaces: &[UaString]) -> Option<Offer> {
    let kind = found.kind?;
    let address = address(&found.node, namespaces);
    let mut settings = vec![("address", quoted(&address))];
    if !kind.is_array {
        settings.push(("type", quoted(&kind.element.to_string())));
    }
    if found.is_writable {
        settings.push(("access", quoted("read-write")));
    }
    if TYPES.iter().all(|(_, element)| *element != kind.element) {
        // Only mirrors can show it.
        settings.clear();
    }
    let (name, path) = match found.path.split_last() {
        Some((name, path)) => (name.clone(), path.to_vec()),
        None => ("Value".to_owned(), Vec::new()),
    };
    let value = found.value.as_ref().map(|value| to_json(value).to_string()).unwrap_or_default();
    Some(Offer { address, name, path, kind: kind.to_string(), value, settings })
}
