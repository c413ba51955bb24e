//! Methods with their refusals, browse paths, registered nodes.

use crate::smoke::{Smoke, attribute};
use taktwerk::schema::ids::{object_ids, reference_type_ids};
use taktwerk::schema::{
    BrowsePath, CallMethodRequest, CallMethodResult, CallRequest, RegisterNodesRequest, RelativePath,
    RelativePathElement, TranslateBrowsePathsToNodeIdsRequest, UnregisterNodesRequest,
};
use taktwerk::types::{NodeId, QualifiedName, StatusCode, Variant};

impl Smoke {
    pub(crate) async fn call(
        &self,
        object_id: NodeId,
        method_id: NodeId,
        inputs: Vec<Variant>,
    ) -> CallMethodResult {
        let call = CallMethodRequest { object_id, method_id, input_arguments: inputs };
        let request = CallRequest { methods_to_call: vec![call], ..CallRequest::default() };
        let failed = |status_code| CallMethodResult { status_code, ..CallMethodResult::default() };
        match self.session.request(request).await {
            Ok(mut response) => {
                response.results.pop().unwrap_or_else(|| failed(StatusCode::BAD_UNEXPECTED_ERROR))
            }
            Err(fault) => failed(fault.status),
        }
    }

    async fn call_test(&self, method: &str, inputs: Vec<Variant>) -> CallMethodResult {
        self.call(self.id("methods"), self.id(method), inputs).await
    }

    pub(crate) async fn calls(&mut self) {
        let (a, b) = (Variant::from(19i32), Variant::from(23i32));
        let result = self.call_test("method/add", vec![a.clone(), b]).await;
        let ok = result.status_code.is_good() && result.output_arguments == [42i32.into()];
        self.check("call add", ok, format!("{}: {:?}", result.status_code, result.output_arguments));

        let result = self.call_test("method/add", vec![a.clone()]).await;
        let missing = &[StatusCode::BAD_ARGUMENTS_MISSING];
        self.check_status("call with too few arguments", result.status_code, missing);

        let result = self.call_test("method/add", vec![a, "Welt".into()]).await;
        let each = &result.input_argument_results;
        let ok = result.status_code == StatusCode::BAD_INVALID_ARGUMENT
            && each[..] == [StatusCode::GOOD, StatusCode::BAD_TYPE_MISMATCH];
        self.check("call with a wrong argument type", ok, format!("{}: {each:?}", result.status_code));

        let result = self.call_test("method/hello", vec!["Welt".into()]).await;
        let ok = result.status_code.is_good() && result.output_arguments == ["Hello, Welt!".into()];
        self.check("call hello", ok, format!("{}: {:?}", result.status_code, result.output_arguments));

        let result = self.call_test("method/none", Vec::new()).await;
        let ok = result.status_code.is_good() && result.output_arguments.is_empty();
        self.check("call none", ok, format!("{}: {:?}", result.status_code, result.output_arguments));

        let result = self.call_test("method/fail", Vec::new()).await;
        self.check_status("call fail", result.status_code, &[StatusCode::BAD_INVALID_STATE]);
        let result = self.call_test("method/unknown", Vec::new()).await;
        let wanted = &[StatusCode::BAD_METHOD_INVALID, StatusCode::BAD_NODE_ID_UNKNOWN];
        self.check_status("call an unknown method", result.status_code, wanted);
    }

    pub(crate) async fn paths(&mut self) {
        for (name, last, wanted) in [
            ("translate-browse-path", "Int32", Some("scalar/Int32")),
            ("translate-browse-path no match", "nothing here", None),
        ] {
            let elements = ["interop", "scalar", last].map(|step| RelativePathElement {
                reference_type_id: NodeId::numeric(0, reference_type_ids::HIERARCHICAL_REFERENCES),
                is_inverse: false,
                include_subtypes: true,
                target_name: QualifiedName::new(self.ns, step),
            });
            let path = BrowsePath {
                starting_node: NodeId::numeric(0, object_ids::OBJECTS_FOLDER),
                relative_path: RelativePath { elements: elements.to_vec() },
            };
            let request = TranslateBrowsePathsToNodeIdsRequest {
                browse_paths: vec![path],
                ..TranslateBrowsePathsToNodeIdsRequest::default()
            };
            let result = self.session.request(request).await.map(|response| response.results);
            let wanted = wanted.map(|id| self.id(id));
            let ok = match (result.as_deref(), &wanted) {
                (Ok([result]), Some(wanted)) => {
                    result.status_code.is_good()
                        && result.targets.len() == 1
                        && result.targets[0].target_id.local() == Some(wanted)
                        && result.targets[0].remaining_path_index == u32::MAX
                }
                (Ok([result]), None) => result.status_code == StatusCode::BAD_NO_MATCH,
                _ => false,
            };
            self.check(name, ok, format!("{result:?}"));
        }
    }

    pub(crate) async fn registration(&mut self) {
        let nodes_to_register = vec![self.id("the.answer"), self.id("scalar/Int32")];
        let request = RegisterNodesRequest { nodes_to_register, ..RegisterNodesRequest::default() };
        let ids = match self.session.request(request).await {
            Ok(response) => response.registered_node_ids,
            Err(fault) => {
                self.check("register-nodes", false, fault);
                return;
            }
        };
        let value = match ids.first() {
            Some(id) => self.read_attribute(id.clone(), attribute::VALUE, "").await.value,
            None => None,
        };
        let ok = ids.len() == 2 && value == Some(43i32.into());
        self.check("register-nodes", ok, format!("{ids:?}, {value:?}"));
        let request =
            UnregisterNodesRequest { nodes_to_unregister: ids, ..UnregisterNodesRequest::default() };
        let outcome = self.session.request(request).await;
        let detail = outcome.as_ref().map_or_else(ToString::to_string, |_| "Good".to_owned());
        self.check("unregister-nodes", outcome.is_ok(), detail);
    }
}
