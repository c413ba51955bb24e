//! ProgramDiagnostic: the creator of a Program and its last call (Part 10 §5.2.8).

use super::Command;
use super::builder::MethodArguments;
use crate::state_machine::Shown;
use taktwerk_schema::ProgramDiagnostic2DataType;
use taktwerk_server::callback::CallContext;
use taktwerk_types::{Encode, ExtensionObject, StatusCode, UaString, UtcTime, Variant};

/// Longest stored values of a call, in bytes. Longer ones become null, because clients choose them.
const VALUES_LEN_MAX: usize = 16 << 10;
/// Longest stored name of a client, in characters.
const CLIENT_NAME_LEN_MAX: usize = 256;

/// The shown structure.
#[derive(Debug, Clone)]
pub(super) struct Diagnostics(ProgramDiagnostic2DataType);

/// The values, or null for long ones.
fn kept(values: &[Variant]) -> Vec<Variant> {
    let mut bytes = Vec::new();
    for value in values {
        value.encode(&mut bytes);
        if bytes.len() > VALUES_LEN_MAX {
            return vec![Variant::Empty; values.len()];
        }
    }
    values.to_vec()
}

impl Diagnostics {
    /// The diagnostics of a new Program. A `creator` of `None` is the application.
    pub(super) fn created(creator: Option<&CallContext>, now: UtcTime) -> Self {
        let name = creator.and_then(CallContext::client_name).unwrap_or_default();
        let name: String = name.chars().take(CLIENT_NAME_LEN_MAX).collect();
        Self(ProgramDiagnostic2DataType {
            create_session_id: creator.map(|creator| creator.session_id.clone()).unwrap_or_default(),
            create_client_name: if name.is_empty() { UaString::NULL } else { name.as_str().into() },
            invocation_creation_time: now,
            ..ProgramDiagnostic2DataType::default()
        })
    }

    /// Records a transition.
    pub(super) fn made(&mut self, now: UtcTime) {
        self.0.last_transition_time = now;
    }

    /// Records a client's call of a Method.
    pub(super) fn called(
        &mut self,
        command: Command,
        context: &CallContext,
        declared: &MethodArguments,
        (inputs, result): (Vec<Variant>, &Result<Vec<Variant>, StatusCode>),
        began: UtcTime,
    ) {
        let last = &mut self.0;
        last.last_method_call = command.name().into();
        last.last_method_session_id = context.session_id.clone();
        last.last_method_input_arguments = declared.inputs.described();
        last.last_method_output_arguments = declared.outputs.described();
        last.last_method_input_values = kept(&inputs);
        last.last_method_output_values = result.as_ref().map(|outputs| kept(outputs)).unwrap_or_default();
        last.last_method_call_time = began;
        last.last_method_return_status = result.as_ref().err().copied().unwrap_or(StatusCode::GOOD);
    }

    /// Shows the structure and its fields.
    pub(super) fn show(&self, shown: &Shown) {
        let last = &self.0;
        let parts: [(&str, Variant); 12] = [
            ("CreateSessionId", last.create_session_id.clone().into()),
            ("CreateClientName", last.create_client_name.clone().into()),
            ("InvocationCreationTime", last.invocation_creation_time.into()),
            ("LastTransitionTime", last.last_transition_time.into()),
            ("LastMethodCall", last.last_method_call.clone().into()),
            ("LastMethodSessionId", last.last_method_session_id.clone().into()),
            ("LastMethodInputArguments", Variant::from_structures(&last.last_method_input_arguments)),
            ("LastMethodOutputArguments", Variant::from_structures(&last.last_method_output_arguments)),
            ("LastMethodInputValues", last.last_method_input_values.clone().into()),
            ("LastMethodOutputValues", last.last_method_output_values.clone().into()),
            ("LastMethodCallTime", last.last_method_call_time.into()),
            ("LastMethodReturnStatus", last.last_method_return_status.into()),
        ];
        for (name, value) in parts {
            shown.set(&["ProgramDiagnostic", name], value);
        }
        shown.set(&["ProgramDiagnostic"], ExtensionObject::new(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_too_long_are_not_kept() {
        let short = vec![Variant::from("x"), Variant::from(1.5)];
        assert_eq!(kept(&short), short);
        let long = vec![Variant::from(1.5), Variant::from("x".repeat(VALUES_LEN_MAX).as_str())];
        assert_eq!(kept(&long), [Variant::Empty, Variant::Empty]);
    }
}
