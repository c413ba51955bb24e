//! NodeManagement: nodes and references are added, used and deleted again.

use crate::session::Session;
use crate::smoke::{Smoke, attribute};
use taktwerk::client::NewNode;
use taktwerk::schema::ids::{object_ids, reference_type_ids};
use taktwerk::schema::{
    AddNodesItem, AddNodesRequest, AddReferencesItem, AddReferencesRequest, BrowseDescription,
    BrowseDirection, BrowseRequest, DeleteNodesItem, DeleteNodesRequest, DeleteReferencesItem,
    DeleteReferencesRequest, NodeClass,
};
use taktwerk::types::{BuiltInType, ExpandedNodeId, NodeId, QualifiedName, StatusCode};

impl Smoke {
    pub(crate) async fn management(&mut self) {
        // Some servers let only this user add nodes.
        let session = match Session::connect(&self.url, Some(("user2", "password1"))).await {
            Ok(session) => session,
            Err(fault) => {
                self.check("add nodes", false, fault);
                return;
            }
        };
        self.manage(&session).await;
        session.close().await;
    }

    async fn manage(&mut self, session: &Session) {
        let objects = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);
        let (tank, level) = (self.id("added/Tank"), self.id("added/Tank/Level"));
        let name = |text: &str| QualifiedName::new(self.ns, text);
        let node = NewNode::object(objects.clone(), name("Tank")).id(tank.clone());
        let below = NewNode::variable(tank.clone(), name("Level"), BuiltInType::Double, Some(1.5.into()));
        let below = below.id(level.clone()).writable();
        let added = add(session, vec![node.clone().into(), below.into()]).await;
        let expected = [(StatusCode::GOOD, tank.clone()), (StatusCode::GOOD, level.clone())];
        self.check("add nodes", added == expected, format!("{added:?}"));

        let value = self.read_attribute(level.clone(), attribute::VALUE, "").await;
        self.check("read an added variable", value.value == Some(1.5.into()), format!("{value:?}"));
        let found = self.below(&tank).await;
        self.check("browse an added object", found == [level.clone()], format!("{found:?}"));

        let again = add(session, vec![node.into()]).await;
        let exists = again.iter().all(|(status, _)| *status == StatusCode::BAD_NODE_ID_EXISTS);
        self.check("add an existing node", exists && again.len() == 1, format!("{again:?}"));
        let nowhere = NewNode::object(self.id("added/nowhere"), QualifiedName::new(self.ns, "Lost"));
        let lost = add(session, vec![nowhere.into()]).await;
        let is_refused = lost.iter().all(|(status, _)| *status == StatusCode::BAD_PARENT_NODE_ID_INVALID);
        self.check("add below an unknown node", is_refused && lost.len() == 1, format!("{lost:?}"));

        let organizes = NodeId::numeric(0, reference_type_ids::ORGANIZES);
        let reference = AddReferencesItem {
            source_node_id: tank.clone(),
            reference_type_id: organizes.clone(),
            is_forward: true,
            target_node_id: ExpandedNodeId::from(self.id("scalar/Double")),
            target_node_class: NodeClass::VARIABLE,
            ..AddReferencesItem::default()
        };
        let request = AddReferencesRequest { references_to_add: vec![reference], ..Default::default() };
        let response = session.request(request).await;
        let statuses = response.map_or_else(|fault| vec![fault.status], |response| response.results);
        let found = self.below(&tank).await.len();
        self.check(
            "add a reference",
            statuses == [StatusCode::GOOD] && found == 2,
            format!("{statuses:?}, {found} nodes"),
        );

        let reference = DeleteReferencesItem {
            source_node_id: tank.clone(),
            reference_type_id: organizes,
            is_forward: true,
            target_node_id: ExpandedNodeId::from(self.id("scalar/Double")),
            delete_bidirectional: true,
        };
        let request = DeleteReferencesRequest { references_to_delete: vec![reference], ..Default::default() };
        let response = session.request(request).await;
        let statuses = response.map_or_else(|fault| vec![fault.status], |response| response.results);
        let found = self.below(&tank).await.len();
        self.check(
            "delete a reference",
            statuses == [StatusCode::GOOD] && found == 1,
            format!("{statuses:?}, {found} nodes"),
        );

        let delete =
            |node_id: &NodeId| DeleteNodesItem { node_id: node_id.clone(), delete_target_references: true };
        let request =
            DeleteNodesRequest { nodes_to_delete: vec![delete(&level), delete(&tank)], ..Default::default() };
        let response = session.request(request).await;
        let statuses = response.map_or_else(|fault| vec![fault.status], |response| response.results);
        self.check("delete nodes", statuses == [StatusCode::GOOD; 2], format!("{statuses:?}"));
        let value = self.read_attribute(level, attribute::VALUE, "").await;
        let status = value.status.unwrap_or_default();
        self.check_status("read a deleted variable", status, &[StatusCode::BAD_NODE_ID_UNKNOWN]);
    }

    /// The nodes to which hierarchical references lead.
    async fn below(&self, node: &NodeId) -> Vec<NodeId> {
        let description = BrowseDescription {
            node_id: node.clone(),
            browse_direction: BrowseDirection::FORWARD,
            reference_type_id: NodeId::numeric(0, reference_type_ids::HIERARCHICAL_REFERENCES),
            include_subtypes: true,
            result_mask: 63,
            ..BrowseDescription::default()
        };
        let request = BrowseRequest { nodes_to_browse: vec![description], ..BrowseRequest::default() };
        let results =
            self.session.request(request).await.map(|response| response.results).unwrap_or_default();
        results.into_iter().flat_map(|one| one.references).map(|it| it.node_id.node_id).collect()
    }
}

/// The result for each node; the fault of the service counts for all.
async fn add(session: &Session, nodes: Vec<AddNodesItem>) -> Vec<(StatusCode, NodeId)> {
    let count = nodes.len();
    let request = AddNodesRequest { nodes_to_add: nodes, ..AddNodesRequest::default() };
    match session.request(request).await {
        Ok(response) => {
            response.results.into_iter().map(|one| (one.status_code, one.added_node_id)).collect()
        }
        Err(fault) => vec![(fault.status, NodeId::NULL); count],
    }
}
