//! Shelving by the Methods of an alarm's ShelvingState.
//!
//! All servers shall accept the ConditionId as the ObjectId (OPC 10000-9 §5.8.17), as
//! [`calls::timed_shelve`](crate::condition::calls::timed_shelve) sends it. Some answer Bad_MethodInvalid.

use taktwerk_schema::ids::{method_ids, reference_type_ids};
use taktwerk_schema::{
    BrowsePath, CallMethodRequest, RelativePath, RelativePathElement, TranslateBrowsePathsToNodeIdsRequest,
    TranslateBrowsePathsToNodeIdsResponse,
};
use taktwerk_types::{NodeId, QualifiedName};

/// The Methods of the ShelvedStateMachineType by their BrowseNames.
const METHODS: [(u32, &str); 3] = [
    (method_ids::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVE, "TimedShelve"),
    (method_ids::SHELVED_STATE_MACHINE_TYPE_ONE_SHOT_SHELVE, "OneShotShelve"),
    (method_ids::SHELVED_STATE_MACHINE_TYPE_UNSHELVE, "Unshelve"),
];

/// Asks for the ShelvingState of the alarm in a call, and for its Method. `None` if the call does not shelve.
#[must_use]
pub fn paths(call: &CallMethodRequest) -> Option<TranslateBrowsePathsToNodeIdsRequest> {
    let (_, method) = METHODS.iter().find(|(id, _)| call.method_id == NodeId::numeric(0, *id))?;
    let path = |names: &[&str]| BrowsePath {
        starting_node: call.object_id.clone(),
        relative_path: RelativePath {
            elements: names
                .iter()
                .map(|name| RelativePathElement {
                    reference_type_id: NodeId::numeric(0, reference_type_ids::HAS_COMPONENT),
                    include_subtypes: true,
                    target_name: QualifiedName::new(0, *name),
                    ..Default::default()
                })
                .collect(),
        },
    };
    let browse_paths = vec![path(&["ShelvingState"]), path(&["ShelvingState", method])];
    Some(TranslateBrowsePathsToNodeIdsRequest { browse_paths, ..Default::default() })
}

/// The same call with the ids that the server has found. `None` if it has not found both.
#[must_use]
pub fn at_paths(
    call: CallMethodRequest,
    found: &TranslateBrowsePathsToNodeIdsResponse,
) -> Option<CallMethodRequest> {
    let mut ids = found.results.iter().map(|result| {
        let target = result.targets.first().filter(|_| result.status_code.is_good())?;
        // Otherwise, the path leads to another server.
        (target.remaining_path_index == u32::MAX && target.target_id.server_index == 0)
            .then(|| target.target_id.node_id.clone())
    });
    let (object_id, method_id) = (ids.next()??, ids.next()??);
    Some(CallMethodRequest { object_id, method_id, ..call })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::calls;
    use taktwerk_schema::{BrowsePathResult, BrowsePathTarget};
    use taktwerk_types::{ExpandedNodeId, StatusCode};

    fn names(request: &TranslateBrowsePathsToNodeIdsRequest) -> Vec<Vec<String>> {
        let path = |path: &BrowsePath| {
            path.relative_path.elements.iter().map(|element| element.target_name.to_string()).collect()
        };
        request.browse_paths.iter().map(path).collect()
    }

    #[test]
    fn the_methods_of_the_shelving_state_are_found_by_their_names() {
        let alarm = NodeId::numeric(2, 7);
        for (call, method) in [
            (calls::timed_shelve(&alarm, 5.0), "TimedShelve"),
            (calls::one_shot_shelve(&alarm), "OneShotShelve"),
            (calls::unshelve(&alarm), "Unshelve"),
        ] {
            let request = paths(&call).unwrap();
            assert!(request.browse_paths.iter().all(|path| path.starting_node == alarm));
            assert_eq!(names(&request), [vec!["ShelvingState"], vec!["ShelvingState", method]]);
        }
        assert!(paths(&calls::enable(&alarm, true)).is_none());
    }

    #[test]
    fn the_call_goes_to_the_nodes_that_were_found() {
        let call = calls::timed_shelve(&NodeId::numeric(2, 7), 5.0);
        let target = |id: u32| BrowsePathTarget {
            target_id: ExpandedNodeId::from(NodeId::numeric(2, id)),
            remaining_path_index: u32::MAX,
        };
        let elsewhere = BrowsePathTarget { remaining_path_index: 1, ..target(9) };
        let result = |targets: Vec<BrowsePathTarget>| BrowsePathResult {
            status_code: if targets.is_empty() { StatusCode::BAD_NO_MATCH } else { StatusCode::GOOD },
            targets,
        };
        let response = |results| TranslateBrowsePathsToNodeIdsResponse { results, ..Default::default() };
        let both = response(vec![result(vec![target(8)]), result(vec![target(9)])]);
        let sent = at_paths(call.clone(), &both).unwrap();
        assert_eq!(sent.object_id, NodeId::numeric(2, 8));
        assert_eq!(sent.method_id, NodeId::numeric(2, 9));
        assert_eq!(sent.input_arguments, call.input_arguments);
        for missing in [
            response(vec![result(vec![target(8)]), result(vec![])]),
            response(vec![result(vec![]), result(vec![target(9)])]),
            response(vec![result(vec![target(8)]), result(vec![elsewhere])]),
            response(vec![result(vec![target(8)])]),
            response(vec![]),
        ] {
            assert!(at_paths(call.clone(), &missing).is_none());
        }
    }
}
