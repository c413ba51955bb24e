//! Calling methods (Part 4 §5.12).

use super::{Client, Error, Namespaces, ToNodeId};
use crate::space::method::Arguments;
use crate::value::WrongType;
use taktwerk_schema::{CallMethodRequest, CallRequest, CallResponse};
use taktwerk_types::{NodeId, Variant};

impl Client {
    /// Calls a method of an object with typed arguments.
    ///
    /// ```no_run
    /// # async fn example(client: taktwerk::Client) -> Result<(), taktwerk::client::Error> {
    /// let (setpoint,): (f64,) =
    ///     client.call("ns=2;s=Boiler 1", "ns=2;s=Boiler 1/Heat up", (5.0,)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The method failed or rejected its arguments, its results have other types, or there is no answer.
    pub async fn call<I: Arguments, O: Arguments>(
        &self,
        object: impl ToNodeId,
        method: impl ToNodeId,
        inputs: I,
    ) -> Result<O, Error> {
        let inputs = inputs.into_variants();
        let call = |namespaces: &Namespaces| {
            let method_id = method.to_node_id(namespaces)?;
            let object_id = object.to_node_id(namespaces)?;
            Ok((call_request(object_id, method_id.clone(), inputs.clone()), method_id))
        };
        let (response, method_id) = self.operate_with(call).await?;
        let what = format!("call {method_id}");
        let outputs = outputs(response, &what)?;
        let (wanted, found) = (O::types().len(), outputs.len());
        if found != wanted {
            let source = WrongType::count(wanted, found);
            return Err(Error::WrongType { what, source });
        }
        O::from_variants(outputs)
            .map_err(|(at, source)| Error::WrongType { what: format!("{what}: result {}", at + 1), source })
    }

    /// Calls a method with arguments and results as Variants.
    ///
    /// # Errors
    /// The method failed or rejected its arguments, or there is no answer.
    pub async fn call_variants(
        &self,
        object_id: NodeId,
        method_id: NodeId,
        input_arguments: Vec<Variant>,
    ) -> Result<Vec<Variant>, Error> {
        let what = format!("call {method_id}");
        outputs(self.operate(call_request(object_id, method_id, input_arguments)).await?, &what)
    }
}

fn call_request(object_id: NodeId, method_id: NodeId, input_arguments: Vec<Variant>) -> CallRequest {
    let method = CallMethodRequest { object_id, method_id, input_arguments };
    CallRequest { methods_to_call: vec![method], ..CallRequest::default() }
}

/// The results of the only method in a response.
fn outputs(mut response: CallResponse, what: &str) -> Result<Vec<Variant>, Error> {
    let result = response.results.pop().unwrap_or_default();
    if !result.status_code.is_bad() {
        return Ok(result.output_arguments);
    }
    let mut refused = result.input_argument_results.iter().enumerate();
    let what = match refused.find(|(_, status)| status.is_bad()) {
        Some((at, status)) => format!("{what}: argument {} ({status})", at + 1),
        None => what.to_owned(),
    };
    Err(Error::status_of(what, result.status_code))
}
