//! Queries (Part 4 Annex B.2): find nodes by type, filtered by their attributes and relations.

use super::{Client, Error};
use taktwerk_schema::{
    ContentFilter, NodeTypeDescription, QueryDataDescription, QueryDataSet, QueryFirstRequest,
    QueryNextRequest, RelativePath, RelativePathElement, ids::reference_type_ids,
};
use taktwerk_types::{ExpandedNodeId, NodeId, QualifiedName, UaString};

/// The Value attribute.
const VALUE: u32 = 13;

/// A query: instances of types, the data to return for them, and a filter.
///
/// ```no_run
/// # use taktwerk::{NodeId, client::NodeQuery, types::QualifiedName};
/// # async fn example(client: taktwerk::Client) -> Result<(), taktwerk::client::Error> {
/// // All AnalogItemTypes with their EURange.
/// let query = NodeQuery::of_type(NodeId::numeric(0, 2368)).value([QualifiedName::new(0, "EURange")]);
/// for found in client.query(&query).await? {
///     println!("{}: {:?}", found.node_id, found.values);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NodeQuery {
    types: Vec<NodeTypeDescription>,
    filter: ContentFilter,
}

impl NodeQuery {
    /// Instances of a type and of its subtypes.
    #[must_use]
    pub fn of_type(kind: impl Into<NodeId>) -> Self {
        Self { types: vec![description(kind.into(), true)], filter: ContentFilter::default() }
    }

    /// Instances of exactly this type.
    #[must_use]
    pub fn of_exact_type(kind: impl Into<NodeId>) -> Self {
        Self { types: vec![description(kind.into(), false)], filter: ContentFilter::default() }
    }

    /// Adds instances of another type. Data requested after this call are returned for that type.
    #[must_use]
    pub fn or_of_type(mut self, kind: impl Into<NodeId>) -> Self {
        self.types.push(description(kind.into(), true));
        self
    }

    /// Returns the value of the node at a path of BrowseNames from the instance.
    #[must_use]
    pub fn value(self, path: impl IntoIterator<Item = QualifiedName>) -> Self {
        self.attribute(path, VALUE)
    }

    /// Returns an attribute of the node at a path of BrowseNames from the instance; an empty path means the instance itself.
    #[must_use]
    pub fn attribute(self, path: impl IntoIterator<Item = QualifiedName>, attribute_id: u32) -> Self {
        let step = |target_name| RelativePathElement {
            reference_type_id: NodeId::numeric(0, reference_type_ids::HIERARCHICAL_REFERENCES),
            is_inverse: false,
            include_subtypes: true,
            target_name,
        };
        let relative_path = RelativePath { elements: path.into_iter().map(step).collect() };
        self.data(QueryDataDescription { relative_path, attribute_id, index_range: UaString::NULL })
    }

    /// Returns data described in any way that the specification allows.
    #[must_use]
    pub fn data(mut self, data: QueryDataDescription) -> Self {
        if let Some(kind) = self.types.last_mut() {
            kind.data_to_return.push(data);
        }
        self
    }

    /// Restricts the result to instances that match the filter.
    #[must_use]
    pub fn filter(mut self, filter: ContentFilter) -> Self {
        self.filter = filter;
        self
    }
}

fn description(kind: NodeId, include_sub_types: bool) -> NodeTypeDescription {
    NodeTypeDescription {
        type_definition_node: ExpandedNodeId::from(kind),
        include_sub_types,
        data_to_return: Vec::new(),
    }
}

impl Client {
    /// Finds nodes, and follows all continuation points.
    ///
    /// # Errors
    /// The server refuses the query or does not support the service, or there is no answer.
    pub async fn query(&self, query: &NodeQuery) -> Result<Vec<QueryDataSet>, Error> {
        let request = QueryFirstRequest {
            node_types: query.types.clone(),
            filter: query.filter.clone(),
            ..QueryFirstRequest::default()
        };
        let first = self.request(request, None).await?;
        let mut found = first.query_data_sets;
        let mut point = first.continuation_point;
        while !point.as_bytes().is_empty() {
            let request = QueryNextRequest { continuation_point: point, ..QueryNextRequest::default() };
            let next = self.request(request, None).await?;
            found.extend(next.query_data_sets);
            point = next.revised_continuation_point;
        }
        Ok(found)
    }
}
