//! Attributes, references and methods.

use super::*;

impl Server {
    pub(super) fn read(
        &mut self,
        request: ReadRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<ReadResponse, StatusCode> {
        self.session_of(&request.request_header, id)?;
        if request.nodes_to_read.len() > self.knobs.enforced_max {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        let published = self.knobs.published_max;
        let value = |node: &ReadValueId| match node.node_id {
            _ if node.attribute_id == 23 || node.attribute_id == 3 => {
                match (self.types.iter().find(|known| known.data_type == node.node_id), node.attribute_id) {
                    (Some(known), 3) => DataValue::new(taktwerk_types::QualifiedName::new(1, known.name)),
                    (Some(FakeType { definition: Some(definition), .. }), _) => {
                        DataValue::new(definition.clone())
                    }
                    _ => DataValue::from_status(StatusCode::BAD_ATTRIBUTE_ID_INVALID),
                }
            }
            NodeId { namespace_index: 1, identifier: Identifier::Numeric(number) } => DataValue::new(number),
            NodeId { namespace_index: 2, identifier: Identifier::Numeric(size) } => {
                DataValue::new("x".repeat(size as usize))
            }
            NodeId { namespace_index: 0, identifier: Identifier::Numeric(number) } => match number {
                variable_ids::SERVER_NAMESPACE_ARRAY => {
                    let names: Vec<taktwerk_types::UaString> =
                        self.knobs.namespaces.iter().map(|uri| (*uri).into()).collect();
                    DataValue::new(Variant::from(names))
                }
                variable_ids::SERVER_SERVER_STATUS_STATE => DataValue::new(0i32),
                variable_ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_READ
                | variable_ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_MONITORED_ITEMS_PER_CALL => {
                    DataValue::new(published)
                }
                _ => DataValue::from_status(StatusCode::BAD_NODE_ID_UNKNOWN),
            },
            _ => DataValue::from_status(StatusCode::BAD_NODE_ID_UNKNOWN),
        };
        Ok(ReadResponse { results: request.nodes_to_read.iter().map(value).collect(), ..Default::default() })
    }

    pub(super) fn browse(
        &mut self,
        request: BrowseRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<BrowseResponse, StatusCode> {
        self.session_of(&request.request_header, id)?;
        let target = |node: &NodeId, name: &str| ReferenceDescription {
            node_id: node.clone().into(),
            browse_name: taktwerk_types::QualifiedName::new(0, name),
            ..Default::default()
        };
        let results = request.nodes_to_browse.iter().map(|description| {
            let inverse = description.browse_direction == BrowseDirection::INVERSE;
            let node = &description.node_id;
            let found =
                self.types.iter().find_map(|known| match (description.reference_type_id.ns0(), inverse) {
                    (Some(38), true) if known.encoding.as_ref() == Some(node) => {
                        Some(target(&known.data_type, known.name))
                    }
                    (Some(38), false) if known.data_type == *node => {
                        known.encoding.as_ref().map(|encoding| target(encoding, "Default Binary"))
                    }
                    (Some(45), true) if known.data_type == *node => Some(target(&known.base, "base")),
                    _ => None,
                });
            BrowseResult { references: found.into_iter().collect(), ..Default::default() }
        });
        Ok(BrowseResponse { results: results.collect(), ..Default::default() })
    }

    pub(super) fn translate(
        &mut self,
        request: TranslateBrowsePathsToNodeIdsRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<TranslateBrowsePathsToNodeIdsResponse, StatusCode> {
        self.session_of(&request.request_header, id)?;
        let results = request.browse_paths.iter().map(|path| {
            let last = path.relative_path.elements.last().unwrap();
            assert!(usize::from(last.target_name.namespace_index) < self.knobs.namespaces.len());
            match self.knobs.paths.get(last.target_name.name.as_str()) {
                Some(node_id) => BrowsePathResult {
                    targets: vec![BrowsePathTarget {
                        target_id: node_id.clone().into(),
                        remaining_path_index: u32::MAX,
                    }],
                    ..Default::default()
                },
                None => BrowsePathResult { status_code: StatusCode::BAD_NO_MATCH, ..Default::default() },
            }
        });
        Ok(TranslateBrowsePathsToNodeIdsResponse { results: results.collect(), ..Default::default() })
    }

    pub(super) fn write(
        &mut self,
        request: WriteRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<WriteResponse, StatusCode> {
        self.session_of(&request.request_header, id)?;
        let count = request.nodes_to_write.len();
        self.written.extend(request.nodes_to_write.into_iter().map(|write| (write.node_id, write.value)));
        Ok(WriteResponse { results: vec![StatusCode::GOOD; count], ..Default::default() })
    }

    pub(super) fn call(
        &mut self,
        request: CallRequest,
        id: ConnectionId,
        _: &mut Connection,
        _: u32,
        _: Instant,
    ) -> Result<CallResponse, StatusCode> {
        self.session_of(&request.request_header, id)?;
        for call in &request.methods_to_call {
            if let (Some(method_ids::SERVER_RESEND_DATA), [Variant::UInt32(id)]) =
                (call.method_id.ns0(), &call.input_arguments[..])
            {
                self.resends.push(*id);
            }
        }
        let mut results = vec![CallMethodResult::default(); request.methods_to_call.len()];
        for (call, result) in request.methods_to_call.iter().zip(&mut results) {
            if let (Some(method_ids::SERVER_GET_MONITORED_ITEMS), [Variant::UInt32(id)]) =
                (call.method_id.ns0(), &call.input_arguments[..])
            {
                self.audits += 1;
                let Some(subscription) = self.subscriptions.get(id) else { continue };
                let items = &subscription.items;
                let ids: Vec<u32> = items.keys().copied().collect();
                let handles: Vec<u32> =
                    items.values().map(|item| item.requested_parameters.client_handle).collect();
                result.output_arguments = vec![Variant::from(ids), Variant::from(handles)];
            }
        }
        Ok(CallResponse { results, ..Default::default() })
    }
}
