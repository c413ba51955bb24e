//! Adding and deleting nodes and references (Part 4 §5.8).

use super::{Client, Error};
use taktwerk_schema::{
    AddNodesItem, AddNodesRequest, AddReferencesItem, AddReferencesRequest, DeleteNodesItem,
    DeleteNodesRequest, DeleteReferencesItem, DeleteReferencesRequest,
};
use taktwerk_types::{NodeId, StatusCode};

pub use taktwerk_client::NewNode;

impl Client {
    /// Adds nodes: [`NewNode`]s or whole items. Requests are split to respect the server's limits. Each result is the id of the
    /// new node, or a bad status.
    ///
    /// ```no_run
    /// # use taktwerk::{NodeId, client::NewNode};
    /// # async fn example(client: taktwerk::Client) -> Result<(), taktwerk::client::Error> {
    /// use taktwerk::types::{BuiltInType, QualifiedName};
    /// let objects = NodeId::numeric(0, 85);
    /// let speed = NewNode::variable(objects, QualifiedName::new(1, "Speed"), BuiltInType::Double, Some(1.5.into()));
    /// let added = client.add_nodes([speed.writable()]).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server does not support the service, or there is no answer.
    pub async fn add_nodes(
        &self,
        nodes: impl IntoIterator<Item = impl Into<AddNodesItem>>,
    ) -> Result<Vec<Result<NodeId, StatusCode>>, Error> {
        let nodes_to_add = nodes.into_iter().map(Into::into).collect();
        let response = self.operate(AddNodesRequest { nodes_to_add, ..Default::default() }).await?;
        let result = |status: StatusCode, id| if status.is_bad() { Err(status) } else { Ok(id) };
        Ok(response.results.into_iter().map(|one| result(one.status_code, one.added_node_id)).collect())
    }

    /// Deletes nodes and all references to them, and returns a status for each.
    ///
    /// # Errors
    /// The server does not support the service, or there is no answer.
    pub async fn delete_nodes(
        &self,
        nodes: impl IntoIterator<Item = NodeId>,
    ) -> Result<Vec<StatusCode>, Error> {
        let nodes =
            nodes.into_iter().map(|node_id| DeleteNodesItem { node_id, delete_target_references: true });
        let request = DeleteNodesRequest { nodes_to_delete: nodes.collect(), ..Default::default() };
        Ok(self.operate(request).await?.results)
    }

    /// Adds references, and returns a status for each.
    ///
    /// # Errors
    /// The server does not support the service, or there is no answer.
    pub async fn add_references(&self, references: Vec<AddReferencesItem>) -> Result<Vec<StatusCode>, Error> {
        let request = AddReferencesRequest { references_to_add: references, ..Default::default() };
        Ok(self.operate(request).await?.results)
    }

    /// Deletes references, and returns a status for each.
    ///
    /// # Errors
    /// The server does not support the service, or there is no answer.
    pub async fn delete_references(
        &self,
        references: Vec<DeleteReferencesItem>,
    ) -> Result<Vec<StatusCode>, Error> {
        let request = DeleteReferencesRequest { references_to_delete: references, ..Default::default() };
        Ok(self.operate(request).await?.results)
    }
}
