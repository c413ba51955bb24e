//! Loads and unloads NodeSets of a running server.

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::output::{Output, counted, in_line};
use crate::session::Session;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use taktwerk_schema::{CallMethodRequest, CallRequest};
use taktwerk_types::{ByteString, NodeId, StatusCode, UaString, Variant};

/// Longest file in bytes.
const FILE_LEN_MAX: u64 = 256 << 20;

/// Arguments of `taktwerk nodeset load`.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// The NodeSet2 file.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Only say whether the server would load it.
    #[arg(long)]
    check: bool,
}

/// Arguments of `taktwerk nodeset unload`.
#[derive(Debug, Args)]
pub(crate) struct UnloadArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// The URI of the namespace.
    #[arg(value_name = "URI")]
    namespace: String,
}

/// Loads a file.
pub(super) fn load(arguments: &LoadArgs, output: Output) -> Result<(), Failure> {
    let path = arguments.file.display();
    let bytes = taktwerk_config::file::read_text(&arguments.file, FILE_LEN_MAX)
        .map_err(|error| Failure::Usage(format!("{path}: {error}")))?
        .into_bytes();
    let mut session = Session::connect(&arguments.connection)?;
    let nodeset = || Variant::from(ByteString::from(bytes.clone()));
    let problem = if arguments.check {
        text(&call(&mut session, "CheckNodeSet", nodeset())?)
    } else {
        match call(&mut session, "LoadNodeSet", nodeset()) {
            Ok(results) => {
                session.close();
                return tell(&results, output);
            }
            // The reason is only in the answer of the check.
            Err(Failure::BadStatus(refused)) => match call(&mut session, "CheckNodeSet", nodeset()) {
                Ok(reason) if !text(&reason).is_empty() => format!("{refused} {}", text(&reason)),
                _ => refused,
            },
            Err(failure) => return Err(failure),
        }
    };
    session.close();
    if problem.is_empty() {
        return output.text(&format!("{path}: the server would load it"));
    }
    // The server names the file by the name of the argument.
    Err(Failure::BadStatus(problem.replace("NodeSet:", &format!("{path}:"))))
}

/// The first result, a text.
fn text(results: &[Variant]) -> String {
    let text = results.first().cloned().and_then(|value| UaString::try_from(value).ok()).unwrap_or_default();
    in_line(text.as_str()).into_owned()
}

/// Unloads a namespace.
pub(super) fn unload(arguments: &UnloadArgs, output: Output) -> Result<(), Failure> {
    let mut session = Session::connect(&arguments.connection)?;
    let results = call(&mut session, "UnloadNamespace", arguments.namespace.as_str().into())?;
    session.close();
    tell(&results, output)
}

fn tell(results: &[Variant], output: Output) -> Result<(), Failure> {
    let texts = |at: usize| -> Vec<String> {
        let texts = results.get(at).cloned().and_then(|value| Vec::<UaString>::try_from(value).ok());
        texts.unwrap_or_default().iter().map(|text| in_line(text.as_str()).into_owned()).collect()
    };
    let count = |at: usize| results.get(at).cloned().and_then(|it| u32::try_from(it).ok()).unwrap_or(0);
    let (namespaces, warnings) = (texts(0), texts(3));
    let (added, deleted) = (count(1), count(2));
    if output.is_json() {
        return output.document(&json!({
            "NamespaceUris": namespaces,
            "AddedNodes": added,
            "DeletedNodes": deleted,
            "Warnings": warnings,
        }));
    }
    for warning in warnings {
        tell!("warning: {warning}");
    }
    let nodes = |count: u32| counted(count as usize, "node");
    output.text(&format!("{}: {} added, {} deleted", namespaces.join(", "), nodes(added), nodes(deleted)))
}

/// Calls a Method of the server's NodeSets.
fn call(session: &mut Session, method: &str, input: Variant) -> Result<Vec<Variant>, Failure> {
    let call = CallMethodRequest {
        object_id: NodeId::string(1, "NodeSets"),
        method_id: NodeId::string(1, format!("NodeSets/{method}")),
        input_arguments: vec![input],
    };
    let response = session.request(CallRequest { methods_to_call: vec![call], ..Default::default() })?;
    let result = response.results.into_iter().next().unwrap_or_default();
    let status = result.status_code;
    if !status.is_bad() {
        return Ok(result.output_arguments);
    }
    let advice = match status {
        StatusCode::BAD_NODE_ID_UNKNOWN => {
            "the server does not load NodeSets with methods; set enabled = true in [nodeset_methods] of its \
             configuration, or use `nodesets` in [server]"
        }
        StatusCode::BAD_USER_ACCESS_DENIED => {
            "the user needs the role ConfigureAdmin or SecurityAdmin; connect with --user"
        }
        StatusCode::BAD_SECURITY_MODE_INSUFFICIENT => {
            "it needs an encrypted connection; connect with --policy best"
        }
        StatusCode::BAD_NOT_FOUND => {
            "no such namespace was loaded with `nodeset load`; those of the configuration are in `nodesets` in [server]"
        }
        StatusCode::BAD_INVALID_STATE => {
            "the configuration of the server refers to nodes of this namespace; remove these settings first (the server's log \
             names one)"
        }
        _ => status.description().unwrap_or_default(),
    };
    Err(Failure::BadStatus(format!("{method}: {status}: {advice}")))
}
