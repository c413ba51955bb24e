//! Runs a load in a separate process, pointed at a server and started with its specification.

use super::{Place, PlaceError, Server, Standing, bind_of, is_url, run};
use crate::program::Program;
use crate::scenario::Condition;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use taktwerk_load::Specification;
use taktwerk_load::result::Document;

impl Place {
    /// Sets the address, user and security of a load.
    pub(super) fn aim(
        &self,
        load: &mut Specification,
        condition: &Condition,
        server: &Server,
        link: Option<&Standing>,
    ) -> Result<(), PlaceError> {
        if let Specification::Mqtt(load) = load {
            load.url = Some(server.url.clone());
            load.server_pid = server.pid;
            return Ok(());
        }
        let of_others = self.client.as_ref().filter(|_| is_url(&condition.stack));
        if let (Specification::Subscribe(load), Some(client)) = (&mut *load, of_others) {
            load.nodes.clone_from(&client.nodes);
            load.per_request = client.per_request.unwrap_or(load.per_request);
        }
        if let Some(adapters) = condition.server.adapters.filter(|_| condition.signals() == 0) {
            match &mut *load {
                Specification::Read(load) | Specification::Write(load) | Specification::Browse(load) => {
                    load.nodes = adapters.nodes();
                }
                Specification::Subscribe(load) => load.nodes = adapters.nodes(),
                Specification::Probe(load) => load.nodes = adapters.nodes(),
                _ => {}
            }
        }
        let Some(common) = load.common() else { return Ok(()) };
        let no_server = |error| PlaceError::NoServer { url: server.url.clone(), why: format!("{error}") };
        common.connection.endpoint = server.url.parse().map_err(no_server)?;
        common.server_pid = server.pid;
        let security = &mut common.connection.security;
        if let Some(client) = of_others {
            let asked = std::mem::replace(security, client.security.clone());
            security.policy = security.policy.take().or(asked.policy);
            security.mode = security.mode.take().or(asked.mode);
        }
        if !condition.security.is_none() && condition.stack == "own" {
            let pair = self.certificates.pair(&self.exe, bind_of(link), &condition.security.policy)?;
            security.pki = Some(pair.client.clone());
        } else if !condition.security.is_none() && !is_url(&condition.stack) {
            security.pki = Some(self.certificates.of_load());
            security.trust_on_first_use = true;
        }
        if security.policy.is_none() && security.cert.is_none() {
            // Explicit, because the default depends on whether the server is on this machine.
            security.policy = Some("None".to_owned());
        }
        Ok(())
    }
}

/// Runs a load in a separate process.
pub(super) fn generate(
    program: Program,
    load: &Specification,
    limit: Duration,
    stop: Option<&AtomicBool>,
) -> Result<Document, PlaceError> {
    let unwritten = |error: serde_json::Error| PlaceError::Specification(error.to_string());
    let program = program.args(["bench", "specified"]).input(serde_json::to_string(load).map_err(unwritten)?);
    Ok(run(&program, &format!("bench {}", load.name()), limit, stop)?.into())
}
