//! Requests split to fit the server's limits, with their responses joined in order.

use crate::error::ClientError;
use crate::event::{RequestHandle, Restored};
use crate::limits::OperationKind;
use crate::subscription::SubscriptionHandle;
use core::any::Any;
use std::collections::BTreeMap;
use taktwerk_schema::service::Request;
use taktwerk_schema::{
    AddNodesRequest, AddNodesResponse, AddReferencesRequest, AddReferencesResponse, DeleteNodesRequest,
    DeleteNodesResponse, DeleteReferencesRequest, DeleteReferencesResponse,
};
use taktwerk_schema::{
    BrowseNextRequest, BrowseNextResponse, BrowseRequest, BrowseResponse, CallRequest, CallResponse,
    CreateMonitoredItemsRequest, CreateMonitoredItemsResponse, DeleteMonitoredItemsRequest,
    DeleteMonitoredItemsResponse, ModifyMonitoredItemsRequest, ModifyMonitoredItemsResponse, ReadRequest,
    ReadResponse, RegisterNodesRequest, RegisterNodesResponse, RequestHeader, SetMonitoringModeRequest,
    SetMonitoringModeResponse, TranslateBrowsePathsToNodeIdsRequest, TranslateBrowsePathsToNodeIdsResponse,
    UnregisterNodesRequest, UnregisterNodesResponse, WriteRequest, WriteResponse,
};
use taktwerk_types::{Decode, DecodeLimits, Structure};

/// A request as the sender needs it: a header to fill in, and the encoding.
pub(crate) trait DynRequest {
    fn header_mut(&mut self) -> &mut RequestHeader;
    fn encoding_id(&self) -> u32;
    fn append(&self, out: &mut Vec<u8>);
}

impl<R: Request> DynRequest for R {
    #[inline]
    fn header_mut(&mut self) -> &mut RequestHeader {
        Request::header_mut(self)
    }

    #[inline]
    fn encoding_id(&self) -> u32 {
        R::BINARY_ENCODING_ID
    }

    #[inline]
    fn append(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }
}

/// A request with a list of operations, which can be split.
pub trait Splittable: Request<Response: Send + 'static> + Clone + Send + 'static {
    /// The limit that applies.
    const KIND: OperationKind;

    /// Number of operations.
    fn count(&self) -> usize;

    /// Splits off the operations from `at` on into a new request.
    #[must_use]
    fn split_off(&mut self, at: usize) -> Self;

    /// Whether a response has one result per operation of the request.
    fn is_answered_by(&self, response: &Self::Response) -> bool;

    /// Appends the results of the next part.
    fn join(joined: &mut Self::Response, next: Self::Response);
}

macro_rules! splittable {
    ($($request:ident $response:ident $kind:ident $operations:ident [$($results:ident),*];)*) => {$(
        impl Splittable for $request {
            const KIND: OperationKind = OperationKind::$kind;

            fn count(&self) -> usize {
                self.$operations.len()
            }

            fn split_off(&mut self, at: usize) -> Self {
                let tail = self.$operations.split_off(at.min(self.$operations.len()));
                // Clone only the fields other than the operations.
                let head = core::mem::take(&mut self.$operations);
                let mut rest = self.clone();
                self.$operations = head;
                rest.$operations = tail;
                rest
            }

            fn is_answered_by(&self, response: &$response) -> bool {
                let _ = response;
                true $(&& response.$results.len() == self.$operations.len())*
            }

            fn join(joined: &mut $response, next: $response) {
                let _ = (&joined, &next);
                $(joined.$results.extend(next.$results);)*
            }
        }
    )*};
}

splittable! {
    ReadRequest ReadResponse Read nodes_to_read [results];
    WriteRequest WriteResponse Write nodes_to_write [results];
    BrowseRequest BrowseResponse Browse nodes_to_browse [results];
    BrowseNextRequest BrowseNextResponse Browse continuation_points [results];
    CallRequest CallResponse Call methods_to_call [results];
    TranslateBrowsePathsToNodeIdsRequest TranslateBrowsePathsToNodeIdsResponse Translate browse_paths [results];
    RegisterNodesRequest RegisterNodesResponse Register nodes_to_register [registered_node_ids];
    UnregisterNodesRequest UnregisterNodesResponse Register nodes_to_unregister [];
    CreateMonitoredItemsRequest CreateMonitoredItemsResponse MonitoredItems items_to_create [results];
    ModifyMonitoredItemsRequest ModifyMonitoredItemsResponse MonitoredItems items_to_modify [results];
    DeleteMonitoredItemsRequest DeleteMonitoredItemsResponse MonitoredItems monitored_item_ids [results];
    SetMonitoringModeRequest SetMonitoringModeResponse MonitoredItems monitored_item_ids [results];
    AddNodesRequest AddNodesResponse NodeManagement nodes_to_add [results];
    AddReferencesRequest AddReferencesResponse NodeManagement references_to_add [results];
    DeleteNodesRequest DeleteNodesResponse NodeManagement nodes_to_delete [results];
    DeleteReferencesRequest DeleteReferencesResponse NodeManagement references_to_delete [results];
}

/// A split request of any type.
pub(crate) trait Batch: Send {
    fn kind(&self) -> OperationKind;

    /// The next part to send: its id and the request. It counts as sent from now on.
    fn next(&mut self) -> Option<(u32, &mut dyn DynRequest)>;

    /// Stores the response to a part.
    fn answer(
        &mut self,
        part: u32,
        type_id: u32,
        body: &[u8],
        limits: DecodeLimits,
    ) -> Result<(), ClientError>;

    /// Splits a part that the server found too large, to be sent again. Returns how many operations it had; `None` if
    /// it cannot be split further.
    fn halve(&mut self, part: u32) -> Option<usize>;

    /// The joined response, once all parts have been answered.
    fn finish(&mut self) -> Option<Box<dyn Any + Send>>;

    /// Whether the request was not split, so that the response to its only part is the result.
    fn is_whole(&self) -> bool;
}

enum State<R: Splittable> {
    Ready(R),
    /// Kept, in case it has to be split and sent again.
    Sent(R),
    Answered(R::Response),
}

/// The parts of a request, in order.
pub(crate) struct Parts<R: Splittable> {
    parts: Vec<(u32, State<R>)>,
    next_id: u32,
}

impl<R: Splittable> Parts<R> {
    /// Splits a request into parts of at most `max` operations.
    pub(crate) fn new(mut request: R, max: usize) -> Self {
        let max = max.max(1);
        let mut parts = Vec::with_capacity(request.count().div_ceil(max).max(1));
        let mut next_id = 0;
        loop {
            let rest = (request.count() > max).then(|| request.split_off(max));
            parts.push((next_id, State::Ready(request)));
            next_id += 1;
            match rest {
                Some(rest) => request = rest,
                None => return Self { parts, next_id },
            }
        }
    }

    fn position(&self, part: u32) -> Option<usize> {
        self.parts.iter().position(|(id, _)| *id == part)
    }
}

impl<R: Splittable> Batch for Parts<R> {
    fn kind(&self) -> OperationKind {
        R::KIND
    }

    fn next(&mut self) -> Option<(u32, &mut dyn DynRequest)> {
        let (id, state) = self.parts.iter_mut().find(|(_, state)| matches!(state, State::Ready(_)))?;
        // Moved out and back as sent; an empty request is in its place in between.
        if let State::Ready(request) = state {
            let whole = request.split_off(0);
            *state = State::Sent(whole);
        }
        match state {
            State::Sent(request) => Some((*id, request)),
            State::Ready(_) | State::Answered(_) => None,
        }
    }

    fn answer(
        &mut self,
        part: u32,
        type_id: u32,
        body: &[u8],
        limits: DecodeLimits,
    ) -> Result<(), ClientError> {
        let name = taktwerk_schema::message_name(R::BINARY_ENCODING_ID).unwrap_or("request");
        let unexpected = ClientError::UnexpectedResponse(name);
        let Some((_, state)) = self.position(part).and_then(|at| self.parts.get_mut(at)) else {
            return Err(unexpected);
        };
        let State::Sent(request) = state else { return Err(unexpected) };
        if type_id != <R::Response as Structure>::BINARY_ENCODING_ID {
            return Err(unexpected);
        }
        let response = R::Response::decode_from(body, limits)?;
        if !request.is_answered_by(&response) {
            return Err(unexpected);
        }
        *state = State::Answered(response);
        Ok(())
    }

    fn halve(&mut self, part: u32) -> Option<usize> {
        let at = self.position(part)?;
        let (_, state) = self.parts.get_mut(at)?;
        let State::Sent(request) = state else { return None };
        let count = request.count();
        if count < 2 {
            return None;
        }
        let second = request.split_off(count / 2);
        let first = request.split_off(0);
        *state = State::Ready(first);
        self.parts.insert(at + 1, (self.next_id, State::Ready(second)));
        self.next_id += 1;
        Some(count)
    }

    fn finish(&mut self) -> Option<Box<dyn Any + Send>> {
        if !self.parts.iter().all(|(_, state)| matches!(state, State::Answered(_))) {
            return None;
        }
        let mut responses = self.parts.drain(..).filter_map(|(_, state)| match state {
            State::Answered(response) => Some(response),
            State::Ready(_) | State::Sent(_) => None,
        });
        let mut joined = responses.next()?;
        responses.for_each(|next| R::join(&mut joined, next));
        Some(Box::new(joined))
    }

    fn is_whole(&self) -> bool {
        self.parts.len() == 1
    }
}

/// The receiver of the joined response.
#[derive(Debug, Clone)]
pub(crate) enum BatchOwner {
    /// The application.
    User(RequestHandle),
    /// OperationLimits and NamespaceArray, read after connecting.
    Limits(Restored),
    /// Resolving the nodes of items by their browse paths.
    Paths {
        subscription: SubscriptionHandle,
        /// The server's id of the subscription at that time.
        server_id: u32,
        /// Client handles in the order of the request.
        handles: Vec<u32>,
    },
    /// Creating items.
    Items {
        subscription: SubscriptionHandle,
        /// The server's id of the subscription at that time.
        server_id: u32,
        /// Client handles in the order of the request.
        handles: Vec<u32>,
    },
    /// Deleting items of this subscription; the response changes nothing.
    Deleted(SubscriptionHandle),
    /// Setting the monitoring mode of these items, by client handle.
    Modes { subscription: SubscriptionHandle, handles: Vec<u32> },
}

/// A split request in progress.
pub(crate) struct ActiveBatch {
    pub(crate) parts: Box<dyn Batch>,
    pub(crate) owner: BatchOwner,
    pub(crate) in_flight: usize,
}

/// The split requests in progress.
#[derive(Default)]
pub(crate) struct Batches {
    /// By number.
    pub(crate) active: BTreeMap<u32, ActiveBatch>,
    /// The last number used.
    pub(crate) last: u32,
    /// Those that could not be sent; reported at the next call with a sink.
    pub(crate) failed: Vec<(u32, ClientError)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::ReadValueId;
    use taktwerk_types::{DataValue, Encode, NodeId, Variant};

    fn request(count: u32) -> ReadRequest {
        let nodes_to_read = (0..count)
            .map(|id| ReadValueId { node_id: NodeId::numeric(1, id), attribute_id: 13, ..Default::default() })
            .collect();
        ReadRequest { nodes_to_read, max_age: 7.0, ..Default::default() }
    }

    /// Answers a part with the numbers of its nodes. Refuses more than `max` operations.
    fn serve(bytes: &[u8], max: usize) -> Option<Vec<u8>> {
        let request = ReadRequest::decode_from(bytes, DecodeLimits::DEFAULT).unwrap();
        assert_eq!(request.max_age, 7.0);
        let number = |node: &ReadValueId| match node.node_id.identifier {
            taktwerk_types::Identifier::Numeric(value) => DataValue::new(value),
            _ => panic!("numeric"),
        };
        let results: Vec<_> = request.nodes_to_read.iter().map(number).collect();
        (results.len() <= max).then(|| ReadResponse { results, ..Default::default() }.encode_to_vec())
    }

    #[test]
    fn results_are_in_order_after_any_number_of_splits() {
        for (count, believed, real) in
            [(0, 5, 5), (1, 5, 5), (5, 5, 5), (100, 7, 7), (1000, usize::MAX, 9), (33, 8, 1)]
        {
            let mut parts = Parts::new(request(count), believed);
            let mut waiting = Vec::new();
            loop {
                while let Some((id, part)) = parts.next() {
                    let mut bytes = Vec::new();
                    part.append(&mut bytes);
                    waiting.push((id, bytes));
                }
                // Answer in reverse order: the result must not depend on it.
                let Some((id, bytes)) = waiting.pop() else { break };
                match serve(&bytes, real) {
                    Some(answer) => parts
                        .answer(id, ReadResponse::BINARY_ENCODING_ID, &answer, DecodeLimits::DEFAULT)
                        .unwrap(),
                    None => assert!(parts.halve(id).is_some()),
                }
            }
            let joined = parts.finish().unwrap().downcast::<ReadResponse>().unwrap();
            let values: Vec<_> = joined.results.into_iter().map(|value| value.value).collect();
            assert_eq!(values, (0..count).map(|id| Some(Variant::UInt32(id))).collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_operation_cannot_be_halved_and_results_must_match() {
        let mut parts = Parts::new(request(1), 10);
        let (id, _) = parts.next().unwrap();
        assert!(parts.next().is_none());
        assert_eq!(parts.halve(id), None);
        let answer = ReadResponse::default().encode_to_vec();
        assert!(parts.answer(id, ReadResponse::BINARY_ENCODING_ID, &answer, DecodeLimits::DEFAULT).is_err());
        assert!(parts.answer(id, 1, &answer, DecodeLimits::DEFAULT).is_err());
    }
}
