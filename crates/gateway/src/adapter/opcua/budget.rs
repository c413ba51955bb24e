//! Limits the bytes and the time for reading another server's nodes, over all requests together. A server can return references
//! without end, although each answer is within the limits of a message.

use core::future::Future;
use core::time::Duration;
use std::mem::take;
use taktwerk::Client;
use taktwerk::client::{Attribute, BrowseOptions, Error};
use taktwerk_schema::{
    BrowseDescription, BrowseNextRequest, BrowseRequest, BrowseResult, ReferenceDescription,
};
use taktwerk_types::{DataValue, Encode, NodeId, StatusCode};
use tokio::time::{Instant, timeout_at};

/// References per node and request.
const PAGE: u32 = 1000;
/// Most attributes per request.
const READ_MAX: usize = 1000;
/// Bytes counted for a reference, a value or an empty answer in addition to its content.
const OVERHEAD: usize = 128;
/// All fields of a ReferenceDescription (Part 4 §5.9.2.2).
const RESULT_ALL: u32 = 0x3F;
/// Limits for a few requests outside of a mirror.
const SMALL: (usize, Duration) = (1 << 20, Duration::from_secs(10));

/// The remaining budget.
#[derive(Debug)]
pub(super) struct Budget {
    bytes_max: usize,
    left: usize,
    within: Duration,
    end: Instant,
    exceeded: Option<String>,
}

impl Budget {
    /// A budget of `bytes_max` bytes, and the time `within` from now.
    pub(super) fn new(bytes_max: usize, within: Duration) -> Self {
        Self { bytes_max, left: bytes_max, within, end: Instant::now() + within, exceeded: None }
    }

    /// A budget for a few requests.
    pub(super) fn small() -> Self {
        Self::new(SMALL.0, SMALL.1)
    }

    /// Takes bytes; false if there are not enough. Then no more requests are sent.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        if self.exceeded.is_some() {
            return false;
        }
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => {
                let most = self.bytes_max >> 20;
                self.exceeded = Some(format!("its nodes have more data than mirror_mb_max = {most} MiB"));
            }
        }
        self.exceeded.is_none()
    }

    /// Which limit was exceeded.
    pub(super) fn exceeded(&self) -> Option<&str> {
        self.exceeded.as_deref()
    }

    /// Runs a future in the remaining time; `None` if the time is not sufficient.
    async fn within<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        if self.exceeded.is_some() {
            return None;
        }
        let done = timeout_at(self.end, work).await.ok();
        if done.is_none() {
            let within = self.within;
            self.exceeded = Some(format!("its nodes could not be read within mirror_within = {within:?}"));
        }
        done
    }

    fn take_references(&mut self, references: &[ReferenceDescription]) -> bool {
        let size = |one: &ReferenceDescription| {
            OVERHEAD
                + one.browse_name.name.as_str().len()
                + one.display_name.text.as_str().len()
                + one.node_id.encode_to_vec().len()
                + one.type_definition.encode_to_vec().len()
        };
        references.iter().all(|one| self.take(size(one))) && self.take(OVERHEAD)
    }
}

/// The references of nodes, in order. Empty for nodes without references, and for those beyond the limit.
pub(super) async fn browse(
    client: &Client,
    nodes: Vec<NodeId>,
    options: &BrowseOptions,
    budget: &mut Budget,
) -> Result<Vec<Vec<ReferenceDescription>>, Error> {
    let count = nodes.len();
    let mut results = pages(client, nodes.clone(), options, budget).await?;
    // Servers have few continuation points. By now those of the other nodes are released.
    let crowded_out = results
        .iter()
        .zip(&nodes)
        .enumerate()
        .filter(|(_, (result, _))| result.status_code == StatusCode::BAD_NO_CONTINUATION_POINTS);
    let crowded_out: Vec<(usize, NodeId)> = crowded_out.map(|(at, (_, node))| (at, node.clone())).collect();
    for (at, node) in crowded_out {
        let again = pages(client, vec![node], options, budget).await?.pop();
        if let (Some(result), Some(again)) = (results.get_mut(at), again) {
            *result = again;
        }
    }
    let mut found: Vec<_> = results.into_iter().map(|result| result.references).collect();
    found.resize_with(count, Vec::new);
    Ok(found)
}

async fn pages(
    client: &Client,
    nodes: Vec<NodeId>,
    options: &BrowseOptions,
    budget: &mut Budget,
) -> Result<Vec<BrowseResult>, Error> {
    let describe = |node_id| BrowseDescription {
        node_id,
        browse_direction: options.direction,
        reference_type_id: options.reference_type.clone(),
        include_subtypes: options.include_subtypes,
        node_class_mask: options.node_class_mask,
        result_mask: RESULT_ALL,
    };
    let request = BrowseRequest {
        nodes_to_browse: nodes.into_iter().map(describe).collect(),
        requested_max_references_per_node: PAGE,
        ..BrowseRequest::default()
    };
    let Some(response) = budget.within(client.operate(request)).await else { return Ok(Vec::new()) };
    let mut results = response?.results;
    let mut is_within = results.iter().all(|result| budget.take_references(&result.references));
    loop {
        let open = |result: &&mut BrowseResult| !result.continuation_point.as_bytes().is_empty();
        let mut waiting: Vec<&mut BrowseResult> = results.iter_mut().filter(open).collect();
        if waiting.is_empty() {
            return Ok(results);
        }
        let points = waiting.iter_mut().map(|result| take(&mut result.continuation_point));
        let request = BrowseNextRequest {
            // Release continuation points that are not followed.
            release_continuation_points: !is_within,
            continuation_points: points.collect(),
            ..BrowseNextRequest::default()
        };
        if !is_within {
            let release = client.operate(request);
            let _ = timeout_at(Instant::now() + SMALL.1, release).await;
            drop(waiting);
            return Ok(results);
        }
        let Some(next) = budget.within(client.operate(request)).await else {
            drop(waiting);
            return Ok(results);
        };
        for (result, next) in waiting.into_iter().zip(next?.results) {
            is_within &= budget.take_references(&next.references);
            result.references.extend(next.references);
            result.continuation_point = next.continuation_point;
            if next.status_code.is_bad() {
                result.status_code = next.status_code;
            }
        }
    }
}

/// Reads attributes, in order; fewer if the limit is reached.
pub(super) async fn read(
    client: &Client,
    wanted: Vec<(NodeId, Attribute)>,
    budget: &mut Budget,
) -> Result<Vec<DataValue>, Error> {
    let mut values: Vec<DataValue> = Vec::new();
    for part in wanted.chunks(READ_MAX) {
        let Some(read) = budget.within(client.read_many(part.iter().cloned())).await else { break };
        for value in read? {
            if !budget.take(OVERHEAD + value.encode_to_vec().len()) {
                return Ok(values);
            }
            values.push(value);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_to_the_end() {
        let mut budget = Budget::new(3 << 20, Duration::from_secs(60));
        assert!(budget.take(2 << 20) && budget.take(1 << 20) && budget.exceeded().is_none());
        assert!(!budget.take(1) && !budget.take(0));
        assert_eq!(budget.exceeded(), Some("its nodes have more data than mirror_mb_max = 3 MiB"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_counts_for_all_requests_together() {
        let mut budget = Budget::new(1000, Duration::from_secs(5));
        let slow = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        assert_eq!(budget.within(slow(3)).await, Some(()));
        assert_eq!(budget.within(slow(3)).await, None);
        assert_eq!(budget.within(async {}).await, None, "nothing more is asked");
        assert!(budget.exceeded().unwrap().contains("mirror_within = 5s"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn references_are_followed_until_there_are_too_many() {
        let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let plant = server.namespace("urn:example:plant").folder("Plant").unwrap();
        for number in 0..2500 {
            plant.object(&format!("O{number}")).add().unwrap();
        }
        let root = plant.id().clone();
        let server = server.spawn().unwrap();
        let client = Client::connect(&server.url()).await.unwrap();
        let options = BrowseOptions::default();
        let mut budget = Budget::new(100 << 20, Duration::from_secs(60));
        let found = browse(&client, vec![root.clone(), NodeId::numeric(0, 9_999_999)], &options, &mut budget);
        let found = found.await.unwrap();
        assert_eq!((found[0].len(), found[1].len(), budget.exceeded()), (2500, 0, None));
        // More nodes than the server has continuation points.
        let found = browse(&client, vec![root.clone(); 40], &options, &mut budget).await.unwrap();
        let counts: Vec<usize> = found.iter().map(Vec::len).collect();
        assert!(budget.exceeded().is_none() && counts.iter().all(|count| *count == 2500), "{counts:?}");
        // Reading stops in the middle, and the server must keep no continuation points.
        for _ in 0..100 {
            let mut small = Budget::new(300_000, Duration::from_secs(60));
            let found = browse(&client, vec![root.clone()], &options, &mut small).await.unwrap();
            assert!(found[0].len() <= 2500 && small.exceeded().is_some());
        }
        let values = vec![(root, Attribute::DisplayName); 2500];
        let mut small = Budget::new(200_000, Duration::from_secs(60));
        let read = read(&client, values, &mut small).await.unwrap();
        assert!((100..2500).contains(&read.len()) && small.exceeded().is_some(), "{}", read.len());
    }
}
