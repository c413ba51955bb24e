//! Nearly valid queries, while nodes are added and deleted.

use super::server::finish;
use crate::input::Input;
use crate::server::Server;
use taktwerk_schema::service::Request;
use taktwerk_schema::{
    ActivateSessionRequest, AddNodesItem, AddNodesRequest, AttributeOperand, ContentFilter,
    ContentFilterElement, CreateSessionRequest, DeleteNodesItem, DeleteNodesRequest, ElementOperand,
    FilterOperator, LiteralOperand, NodeClass, NodeTypeDescription, QueryDataDescription, QueryFirstRequest,
    QueryNextRequest, RelativePath, RelativePathElement, RequestHeader, SimpleAttributeOperand,
    ViewDescription,
};
use taktwerk_sim::plant::variable_id;
use taktwerk_types::{
    ByteString, Decode, DecodeLimits, ExpandedNodeId, ExtensionObject, NodeId, QualifiedName, UaString,
    Variant,
};

/// A sequence of queries, with nodes added and deleted in between.
pub fn requests(data: &[u8]) {
    let mut input = Input::new(data);
    let mut scene = Scene::new();
    while !input.is_empty() {
        scene.act(&mut input);
    }
    finish(scene.server);
}

struct Scene {
    server: Server,
    client: usize,
    token: NodeId,
    handle: u32,
    points: Vec<ByteString>,
}

impl Scene {
    fn new() -> Self {
        let mut server = Server::with(|config| {
            config.node_management = true;
            config.limits.references_per_browse_max = 50;
            config.limits.browse_continuation_points_max = 3;
        });
        let client = server.connect();
        let mut scene = Self { server, client, token: NodeId::NULL, handle: 0, points: Vec::new() };
        let create = CreateSessionRequest { requested_session_timeout: 60_000.0, ..Default::default() };
        scene.token = scene.send(create).map(|response| response.authentication_token).unwrap_or_default();
        scene.send(ActivateSessionRequest::default());
        scene
    }

    fn send<R: Request>(&mut self, mut request: R) -> Option<R::Response> {
        self.handle += 1;
        *request.header_mut() = RequestHeader {
            authentication_token: self.token.clone(),
            request_handle: self.handle,
            timeout_hint: 5_000,
            ..RequestHeader::default()
        };
        self.server.call(self.client, &request)
    }

    fn act(&mut self, input: &mut Input<'_>) {
        match input.below(8) {
            0..4 => self.first(input),
            4..6 => self.next(input),
            6 => {
                let node = AddNodesItem {
                    parent_node_id: ExpandedNodeId::from(NodeId::numeric(0, 85)),
                    reference_type_id: NodeId::numeric(0, 35),
                    requested_new_node_id: ExpandedNodeId::from(NodeId::numeric(
                        1,
                        500 + u32::from(input.byte() % 8),
                    )),
                    browse_name: QualifiedName::new(1, format!("n{}", input.byte() % 8)),
                    node_class: NodeClass::OBJECT,
                    node_attributes: ExtensionObject::NULL,
                    type_definition: ExpandedNodeId::from(NodeId::numeric(0, input.pick(&[58, 61, 2391]))),
                };
                self.send(AddNodesRequest { nodes_to_add: vec![node], ..Default::default() });
            }
            _ => {
                let node_id = NodeId::numeric(1, 500 + u32::from(input.byte() % 8));
                let node = DeleteNodesItem { node_id, delete_target_references: true };
                self.send(DeleteNodesRequest { nodes_to_delete: vec![node], ..Default::default() });
            }
        }
    }

    fn first(&mut self, input: &mut Input<'_>) {
        let most = u32::from(input.byte() % 8);
        let request = QueryFirstRequest {
            view: ViewDescription {
                view_id: if input.one_in(8) { node(input) } else { NodeId::NULL },
                ..Default::default()
            },
            node_types: (0..input.below(4)).map(|_| node_type(input)).collect(),
            filter: ContentFilter { elements: (0..input.below(6)).map(|_| element(input)).collect() },
            max_data_sets_to_return: most,
            max_references_to_return: u32::from(input.byte() % 4),
            ..Default::default()
        };
        let Some(response) = self.send(request) else { return };
        assert!(most == 0 || response.query_data_sets.len() <= most as usize);
        if !response.continuation_point.as_bytes().is_empty() {
            assert!(!response.query_data_sets.is_empty());
            self.points.push(response.continuation_point);
        }
        if self.points.len() > 8 {
            self.points.drain(..4);
        }
    }

    fn next(&mut self, input: &mut Input<'_>) {
        let continuation_point = match input.below(4) {
            0 => input.piece().to_vec().into(),
            _ if self.points.is_empty() => return,
            _ => self.points.swap_remove(input.below(self.points.len())),
        };
        let request = QueryNextRequest {
            release_continuation_point: input.one_in(8),
            continuation_point,
            ..Default::default()
        };
        let Some(response) = self.send(request) else { return };
        if !response.revised_continuation_point.as_bytes().is_empty() {
            self.points.push(response.revised_continuation_point);
        }
    }
}

/// Types, ReferenceTypes, nodes of the server, and unknown ids.
fn node(input: &mut Input<'_>) -> NodeId {
    match input.below(16) {
        15 => NodeId::decode_from(input.piece(), DecodeLimits::DEFAULT).unwrap_or_default(),
        14 => NodeId::NULL,
        13 => variable_id(u32::from(input.byte() % 4)),
        12 => NodeId::numeric(1, 500 + u32::from(input.byte() % 8)),
        _ => NodeId::numeric(
            0,
            input.pick(&[58, 61, 62, 63, 68, 2004, 2391, 31, 33, 35, 45, 46, 47, 85, 87, 2253]),
        ),
    }
}

fn path(input: &mut Input<'_>) -> RelativePath {
    let step = |input: &mut Input<'_>| RelativePathElement {
        reference_type_id: NodeId::numeric(0, input.pick(&[0, 31, 33, 35, 40, 46, 47])),
        is_inverse: input.one_in(4),
        include_subtypes: input.flag(),
        target_name: match input.below(4) {
            0 => QualifiedName::default(),
            1 => QualifiedName::new(1, format!("n{}", input.byte() % 8)),
            _ => QualifiedName::new(0, input.pick(&["ServerStatus", "State", "FolderType", "Server"])),
        },
    };
    RelativePath { elements: (0..input.below(4)).map(|_| step(input)).collect() }
}

fn attribute(input: &mut Input<'_>) -> u32 {
    match input.byte() {
        255 => input.edgy_u32(),
        other => u32::from(other % 29),
    }
}

fn range(input: &mut Input<'_>) -> UaString {
    input.pick(&["", "", "", "0", "1:2", "x"]).into()
}

fn node_type(input: &mut Input<'_>) -> NodeTypeDescription {
    NodeTypeDescription {
        type_definition_node: ExpandedNodeId::from(node(input)),
        include_sub_types: input.flag(),
        data_to_return: (0..input.below(4))
            .map(|_| QueryDataDescription {
                relative_path: path(input),
                attribute_id: attribute(input),
                index_range: range(input),
            })
            .collect(),
    }
}

fn operand(input: &mut Input<'_>) -> ExtensionObject {
    match input.below(8) {
        0 => ExtensionObject::new(&ElementOperand { index: u32::from(input.byte() % 8) }),
        1 => ExtensionObject::new(&SimpleAttributeOperand {
            type_definition_id: node(input),
            browse_path: path(input).elements.into_iter().map(|step| step.target_name).collect(),
            attribute_id: attribute(input),
            index_range: range(input),
        }),
        2 | 3 => ExtensionObject::new(&AttributeOperand {
            node_id: node(input),
            alias: input.pick(&["", "", "a"]).into(),
            browse_path: if input.flag() { path(input) } else { RelativePath::default() },
            attribute_id: if input.flag() { 1 } else { attribute(input) },
            index_range: range(input),
        }),
        4 => ExtensionObject::new(&LiteralOperand { value: u32::from(input.byte() % 4).into() }),
        5 => ExtensionObject::new(&LiteralOperand { value: node(input).into() }),
        6 => ExtensionObject::new(&LiteralOperand { value: input.flag().into() }),
        _ => {
            let value = Variant::decode_from(input.piece(), DecodeLimits::DEFAULT).unwrap_or_default();
            ExtensionObject::new(&LiteralOperand { value })
        }
    }
}

fn element(input: &mut Input<'_>) -> ContentFilterElement {
    // Prefer RelatedTo.
    let number = if input.one_in(3) { 15 } else { i32::from(input.byte() % 19) };
    let operands: Vec<ExtensionObject> = if number == 15 && !input.one_in(8) {
        let id = |node_id| {
            ExtensionObject::new(&AttributeOperand { node_id, attribute_id: 1, ..Default::default() })
        };
        let kind = |input: &mut Input<'_>| NodeId::numeric(0, input.pick(&[58, 61, 2004, 2253]));
        let source = id(kind(input));
        let target = if input.one_in(3) { operand(input) } else { id(kind(input)) };
        let reference = id(NodeId::numeric(0, input.pick(&[33, 35, 47, 32])));
        let hops = ExtensionObject::new(&LiteralOperand { value: u32::from(input.byte() % 5).into() });
        vec![source, target, reference, hops]
    } else {
        (0..input.below(5)).map(|_| operand(input)).collect()
    };
    ContentFilterElement { filter_operator: FilterOperator(number), filter_operands: operands }
}
