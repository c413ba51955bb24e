//! The smoke client: calls every service once on a server with the interop test nodes.
//!
//! Usage: `interop_smoke URL`. Prints one JSON document on stdout in the common format of the smoke clients, and failed checks on
//! stderr. Exit code 0 if all checks pass, 1 if not, 2 for wrong usage.

mod browse;
mod calls;
mod data;
mod feed;
mod library;
mod management;
mod nodes;
mod proxy;
mod report;
mod session;
mod smoke;
mod subscription;

use crate::report::Report;
use crate::session::Session;
use crate::smoke::{Smoke, attribute};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;
use taktwerk::Client;
use taktwerk::schema::ids::variable_ids;
use taktwerk::schema::{FindServersRequest, ServerState, ServerStatusDataType};
use taktwerk::types::{ExtensionObject, NodeId, UaString, Variant};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), None) = (arguments.next(), arguments.next()) else {
        let _ = writeln!(io::stderr(), "usage: interop_smoke opc.tcp://HOST:PORT");
        return ExitCode::from(2);
    };
    let report = run(&url).await;
    let _ = writeln!(io::stdout(), "{}", report.to_json(&url));
    if report.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(url: &str) -> Report {
    let mut report = Report::default();
    endpoints(url, &mut report).await;
    let session = match Session::connect(url, None).await {
        Ok(session) => session,
        Err(fault) => {
            report.check("connect", false, fault);
            return report;
        }
    };
    report.check("connect", true, "anonymous, without security");
    let mut smoke = Smoke { url: url.to_owned(), session, report, ns: 0 };
    smoke.find_servers().await;
    smoke.server_object().await;
    smoke.browse_all().await;
    smoke.browse_steps().await;
    smoke.read_values().await;
    smoke.write_values().await;
    smoke.index_ranges().await;
    smoke.refusals().await;
    smoke.calls().await;
    smoke.paths().await;
    smoke.registration().await;
    smoke.management().await;
    smoke.subscriptions().await;
    smoke.library().await;
    let Smoke { session, mut report, .. } = smoke;
    let closing = tokio::time::timeout(Duration::from_secs(5), session.close()).await;
    report.check(
        "close-session",
        closing.is_ok(),
        if closing.is_ok() { "closed" } else { "no answer in 5 s" },
    );
    report
}

async fn endpoints(url: &str, report: &mut Report) {
    match Client::endpoints(url).await {
        Ok(endpoints) => {
            let names: Vec<String> = endpoints
                .iter()
                .map(|endpoint| {
                    let policy = endpoint.security_policy_uri.as_str();
                    let name = policy.rsplit_once('#').map_or(policy, |(_, name)| name);
                    format!("{name}/{}", endpoint.security_mode)
                })
                .collect();
            report.check("get-endpoints", !names.is_empty(), names.join(" "))
        }
        Err(error) => report.check("get-endpoints", false, error),
    };
}

impl Smoke {
    async fn find_servers(&mut self) {
        let request =
            FindServersRequest { endpoint_url: self.url.as_str().into(), ..FindServersRequest::default() };
        match self.session.request(request).await {
            Ok(response) => {
                let count = response.servers.len();
                self.check("find-servers", count > 0, format!("{count} servers"))
            }
            Err(fault) => self.check("find-servers", false, fault),
        };
    }

    async fn server_object(&mut self) {
        let id = NodeId::numeric(0, variable_ids::SERVER_SERVER_STATUS);
        let value = self.read_attribute(id, attribute::VALUE, "").await.value.unwrap_or_default();
        let status = ExtensionObject::try_from(value)
            .ok()
            .and_then(|object| object.decode::<ServerStatusDataType>().ok());
        let state = status.map(|status| status.state);
        self.check("server-status", state == Some(ServerState::RUNNING), format!("{state:?}"));

        let id = NodeId::numeric(0, variable_ids::SERVER_NAMESPACE_ARRAY);
        let value: Variant = self.read_attribute(id, attribute::VALUE, "").await.value.unwrap_or_default();
        let uris = Vec::<UaString>::try_from(value).unwrap_or_default();
        let index = uris.iter().position(|uri| uri.as_str() == nodes::NAMESPACE_URI);
        self.ns = index.and_then(|index| u16::try_from(index).ok()).unwrap_or_default();
        let detail = format!("{} has index {index:?} of {}", nodes::NAMESPACE_URI, uris.len());
        self.check("namespace-array", index.is_some(), detail);
    }
}
