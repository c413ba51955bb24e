//! Browsing (Part 4 §5.9).

use super::{Client, Error, Namespaces, ToNodeId};
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{
    BrowseDescription, BrowseDirection, BrowseNextRequest, BrowsePath, BrowseRequest, BrowseResult,
    ReferenceDescription, RelativePath, RelativePathElement, TranslateBrowsePathsToNodeIdsRequest,
};
use taktwerk_types::{ByteString, NodeId, QualifiedName, StatusCode};

/// Every field of a ReferenceDescription.
const RESULT_ALL: u32 = 0x3f;

/// Selects references.
#[derive(Debug, Clone, PartialEq)]
pub struct BrowseOptions {
    /// From the node, to it, or both. Default: from it.
    pub direction: BrowseDirection,
    /// The ReferenceType, its subtypes included. Default: HierarchicalReferences.
    pub reference_type: NodeId,
    /// Whether subtypes of the ReferenceType count. Default: true.
    pub include_subtypes: bool,
    /// NodeClass bits to include; 0, the default, includes all.
    pub node_class_mask: u32,
}

impl Default for BrowseOptions {
    fn default() -> Self {
        Self {
            direction: BrowseDirection::FORWARD,
            reference_type: NodeId::numeric(0, reference_type_ids::HIERARCHICAL_REFERENCES),
            include_subtypes: true,
            node_class_mask: 0,
        }
    }
}

/// A part of a node's references.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BrowsePage {
    /// The references.
    pub references: Vec<ReferenceDescription>,
    /// For [`Client::browse_next`], if there are more. Servers limit the number of these per session.
    pub next: Option<ByteString>,
}

impl Client {
    /// The first references of a node, at most `max`; the server may return fewer.
    ///
    /// # Errors
    /// The server refuses (the node does not exist, for example), or there is no answer.
    pub async fn browse_page(
        &self,
        node: impl ToNodeId,
        options: &BrowseOptions,
        max: u32,
    ) -> Result<BrowsePage, Error> {
        let browse = |namespaces: &Namespaces| {
            let id = node.to_node_id(namespaces)?;
            let request = browse_request([id.clone()], options);
            Ok((BrowseRequest { requested_max_references_per_node: max, ..request }, id))
        };
        let (mut response, id) = self.operate_with(browse).await?;
        page(response.results.pop(), || format!("browse {id}"))
    }

    /// The references after those of a page, at most as many as the first request asked for. With `release`, the server discards
    /// them instead.
    ///
    /// # Errors
    /// Bad_ContinuationPointInvalid if the server has discarded them, or there is no answer.
    pub async fn browse_next(&self, next: ByteString, release: bool) -> Result<BrowsePage, Error> {
        let request = BrowseNextRequest {
            release_continuation_points: release,
            continuation_points: vec![next],
            ..BrowseNextRequest::default()
        };
        let mut response = self.operate(request).await?;
        page(response.results.pop(), || "browse further".to_owned())
    }

    /// The children of a node: the targets of its hierarchical references.
    ///
    /// # Errors
    /// The server refuses (the node does not exist, for example), or there is no answer.
    pub async fn browse(&self, node: impl ToNodeId) -> Result<Vec<ReferenceDescription>, Error> {
        self.browse_with(node, &BrowseOptions::default()).await
    }

    /// The references of a node.
    ///
    /// # Errors
    /// The server refuses (the node does not exist, for example), or there is no answer.
    pub async fn browse_with(
        &self,
        node: impl ToNodeId,
        options: &BrowseOptions,
    ) -> Result<Vec<ReferenceDescription>, Error> {
        let browse = |namespaces: &Namespaces| {
            let id = node.to_node_id(namespaces)?;
            let request = browse_request([id.clone()], options);
            Ok((request.clone(), (request, id)))
        };
        let (response, (request, id)) = self.operate_with(browse).await?;
        let mut results = self.whole(&request, response.results).await?;
        results
            .pop()
            .unwrap_or(Err(StatusCode::BAD_UNEXPECTED_ERROR))
            .map_err(|status| Error::status_of(format!("browse {id}"), status))
    }

    /// The references of many nodes, in the order of the list, or a bad status. Requests are split to respect the server's
    /// limits, and all continuation points are followed.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn browse_many(
        &self,
        nodes: impl IntoIterator<Item = NodeId>,
        options: &BrowseOptions,
    ) -> Result<Vec<Result<Vec<ReferenceDescription>, StatusCode>>, Error> {
        let request = browse_request(nodes, options);
        let results = self.operate(request.clone()).await?.results;
        self.whole(&request, results).await
    }

    /// The results of a request, with all continuation points followed.
    async fn whole(
        &self,
        request: &BrowseRequest,
        mut results: Vec<BrowseResult>,
    ) -> Result<Vec<Result<Vec<ReferenceDescription>, StatusCode>>, Error> {
        self.retry_crowded_out(request, &mut results).await?;
        self.follow(&mut results).await?;
        let open = |result: BrowseResult| {
            if result.status_code.is_bad() { Err(result.status_code) } else { Ok(result.references) }
        };
        Ok(results.into_iter().map(open).collect())
    }

    /// Browses nodes again that got no continuation point, after the other continuation points were released.
    async fn retry_crowded_out(
        &self,
        request: &BrowseRequest,
        results: &mut [BrowseResult],
    ) -> Result<(), Error> {
        let is_crowded_out =
            |result: &BrowseResult| result.status_code == StatusCode::BAD_NO_CONTINUATION_POINTS;
        if !results.iter().any(is_crowded_out) {
            return Ok(());
        }
        self.follow(results).await?;
        for (result, node) in results.iter_mut().zip(&request.nodes_to_browse) {
            if is_crowded_out(result) {
                let one = BrowseRequest { nodes_to_browse: vec![node.clone()], ..request.clone() };
                let mut again = self.operate(one).await?.results;
                self.follow(&mut again).await?;
                if let Some(again) = again.pop() {
                    *result = again;
                }
            }
        }
        Ok(())
    }

    /// Follows the continuation points.
    async fn follow(&self, results: &mut [BrowseResult]) -> Result<(), Error> {
        loop {
            let open = |result: &&mut BrowseResult| !result.continuation_point.as_bytes().is_empty();
            let mut waiting: Vec<&mut BrowseResult> = results.iter_mut().filter(open).collect();
            if waiting.is_empty() {
                return Ok(());
            }
            let points = waiting.iter_mut().map(|result| core::mem::take(&mut result.continuation_point));
            let request =
                BrowseNextRequest { continuation_points: points.collect(), ..BrowseNextRequest::default() };
            let next = self.operate(request).await?.results;
            for (result, next) in waiting.into_iter().zip(next) {
                result.references.extend(next.references);
                result.continuation_point = next.continuation_point;
                if next.status_code.is_bad() {
                    result.status_code = next.status_code;
                }
            }
        }
    }

    /// The node at a path of BrowseNames: `find("i=85", "2:Plant/2:Boiler 1/2:Temperature")`. Names without a number are in
    /// namespace 0.
    ///
    /// # Errors
    /// The path leads to no node, or there is no answer.
    pub async fn find(&self, start: impl ToNodeId, path: &str) -> Result<NodeId, Error> {
        let translate = |namespaces: &Namespaces| {
            let starting_node = start.to_node_id(namespaces)?;
            let what = format!("find {path} from {starting_node}");
            let browse_paths = vec![browse_path(starting_node, path)];
            let request = TranslateBrowsePathsToNodeIdsRequest { browse_paths, ..Default::default() };
            Ok((request, (what, namespaces.clone())))
        };
        let (mut response, (what, namespaces)) = self.operate_with(translate).await?;
        let result = response.results.pop().unwrap_or_default();
        if result.status_code.is_bad() {
            return Err(Error::status_of(what, result.status_code));
        }
        let target = result.targets.into_iter().find(|target| target.remaining_path_index == u32::MAX);
        match target {
            Some(target) => target.target_id.to_node_id(&namespaces),
            None => Err(Error::status_of(what, StatusCode::BAD_NO_MATCH)),
        }
    }
}

fn page(result: Option<BrowseResult>, what: impl Fn() -> String) -> Result<BrowsePage, Error> {
    let result = result.ok_or_else(|| Error::status_of(what(), StatusCode::BAD_UNEXPECTED_ERROR))?;
    if result.status_code.is_bad() {
        return Err(Error::status_of(what(), result.status_code));
    }
    let next = Some(result.continuation_point).filter(|point| !point.as_bytes().is_empty());
    Ok(BrowsePage { references: result.references, next })
}

fn browse_request(nodes: impl IntoIterator<Item = NodeId>, options: &BrowseOptions) -> BrowseRequest {
    let describe = |node_id| BrowseDescription {
        node_id,
        browse_direction: options.direction,
        reference_type_id: options.reference_type.clone(),
        include_subtypes: options.include_subtypes,
        node_class_mask: options.node_class_mask,
        result_mask: RESULT_ALL,
    };
    BrowseRequest { nodes_to_browse: nodes.into_iter().map(describe).collect(), ..BrowseRequest::default() }
}

/// A path of BrowseNames along hierarchical references: `2:Plant/2:Boiler 1`.
pub(super) fn browse_path(starting_node: NodeId, path: &str) -> BrowsePath {
    let element = |name| RelativePathElement {
        reference_type_id: NodeId::numeric(0, reference_type_ids::HIERARCHICAL_REFERENCES),
        is_inverse: false,
        include_subtypes: true,
        target_name: QualifiedName::parse(name),
    };
    let elements = path.split('/').filter(|name| !name.is_empty()).map(element).collect();
    BrowsePath { starting_node, relative_path: RelativePath { elements } }
}
