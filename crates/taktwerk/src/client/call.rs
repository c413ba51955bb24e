//! Calling methods (Part 4 §5.12).

use super::{Client, Error, ToNodeId};
use crate::space::method::Arguments;
use crate::value::WrongType;
use taktwerk_schema::{CallMethodRequest, CallRequest};
use taktwerk_types::{NodeId, StatusCode, Variant};

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
    /// The method failed or refuses its arguments, its results are of other types, or there is no answer.
    pub async fn call<I: Arguments, O: Arguments>(
        &self,
        object: impl ToNodeId,
        method: impl ToNodeId,
        inputs: I,
    ) -> Result<O, Error> {
        let (object, method) = (self.resolve(object)?, self.resolve(method)?);
        let what = format!("call {method}");
        let outputs = self.call_variants(object, method, inputs.into_variants()).await?;
        let (wanted, found) = (O::types().len(), outputs.len());
        if found != wanted {
            let source = WrongType::count(wanted, found);
            return Err(Error::WrongType { what, source });
        }
        O::from_variants(outputs)
            .map_err(|(at, source)| Error::WrongType { what: format!("{what}: result {}", at + 1), source })
    }

    /// Calls a method with arguments and results as they are.
    ///
    /// # Errors
    /// The method failed or refuses its arguments, or there is no answer.
    pub async fn call_variants(
        &self,
        object_id: NodeId,
        method_id: NodeId,
        input_arguments: Vec<Variant>,
    ) -> Result<Vec<Variant>, Error> {
        let mut what = format!("call {method_id}");
        let method = CallMethodRequest { object_id, method_id, input_arguments };
        let request = CallRequest { methods_to_call: vec![method], ..CallRequest::default() };
        let result = self.operate(request).await?.results.pop().unwrap_or_default();
        if result.status_code.is_bad() {
            let refused = result.input_argument_results.iter().position(|status| status.is_bad());
            if let Some(at) = refused {
                let status = result.input_argument_results.get(at).copied().unwrap_or(StatusCode::GOOD);
                what = format!("{what}: argument {} ({status})", at + 1);
            }
            return Err(Error::status_of(what, result.status_code));
        }
        Ok(result.output_arguments)
    }
}
