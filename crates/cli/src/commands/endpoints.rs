//! `taktwerk endpoints`: lists the endpoints of a server.

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::{self, policy_name};
use clap::Args;
use serde_json::{Value, json};
use taktwerk_lab::table::{Align, Table};
use taktwerk_schema::{EndpointDescription, MessageSecurityMode};

/// Arguments of `taktwerk endpoints`.
#[derive(Debug, Args)]
pub(crate) struct EndpointsArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Requests the endpoints and prints them.
pub(crate) fn run(arguments: &EndpointsArgs, output: Output) -> Result<(), Failure> {
    let endpoints = session::endpoints(&arguments.connection)?;
    if output.is_json() {
        return output.document(&Value::Array(endpoints.iter().map(document).collect()));
    }
    if let Some(server) = endpoints.first().map(|endpoint| &endpoint.server) {
        output.text(&format!(
            "{}  {}  {}\n",
            server.application_name,
            output.faint(server.application_uri.as_str()),
            server.application_type
        ))?;
    }
    let mut table = Table::new(&[
        ("endpoint", Align::Left),
        ("mode", Align::Left),
        ("policy", Align::Left),
        ("level", Align::Right),
        ("users", Align::Left),
    ]);
    for endpoint in &endpoints {
        table.row([
            endpoint.endpoint_url.as_str().to_owned(),
            endpoint.security_mode.to_string(),
            policy_name(endpoint).to_owned(),
            endpoint.security_level.to_string(),
            tokens(endpoint).join(", "),
        ]);
    }
    output.text(&table.to_string())?;
    if endpoints.iter().all(|endpoint| endpoint.security_mode != MessageSecurityMode::NONE) {
        output.text("\nThere is no endpoint without security: other commands need --policy best, if the server is on this machine.")?;
    }
    Ok(())
}

fn tokens(endpoint: &EndpointDescription) -> Vec<String> {
    let mut names: Vec<String> =
        endpoint.user_identity_tokens.iter().map(|token| token.token_type.to_string()).collect();
    names.dedup();
    names
}

fn document(endpoint: &EndpointDescription) -> Value {
    json!({
        "EndpointUrl": endpoint.endpoint_url.as_str(),
        "SecurityMode": endpoint.security_mode.to_string(),
        "SecurityPolicyUri": endpoint.security_policy_uri.as_str(),
        "SecurityLevel": endpoint.security_level,
        "TransportProfileUri": endpoint.transport_profile_uri.as_str(),
        "UserIdentityTokens": endpoint.user_identity_tokens.iter().map(|token| json!({
            "PolicyId": token.policy_id.as_str(),
            "TokenType": token.token_type.to_string(),
            "SecurityPolicyUri": token.security_policy_uri.as_deref(),
        })).collect::<Vec<_>>(),
        "ServerCertificateBytes": endpoint.server_certificate.as_bytes().len(),
        "Server": {
            "ApplicationUri": endpoint.server.application_uri.as_str(),
            "ProductUri": endpoint.server.product_uri.as_str(),
            "ApplicationName": endpoint.server.application_name.to_string(),
            "ApplicationType": endpoint.server.application_type.to_string(),
        },
    })
}
