//! Finds costs of slow jobs that a scenario needs and a host profile lacks: such jobs would seem to be free.

use super::{Load, Login, Operation, Scenario, Server};
use crate::host::costs::RECORDING;
use taktwerk_model::HostProfile;
use taktwerk_server::JobKind;

/// The first host with such a profile, and what to do about it.
pub(super) fn check(scenario: &Scenario) -> Result<(), (usize, String)> {
    for (kind, server) in scenario.servers.iter().enumerate() {
        let Some((at, host)) = server.host.and_then(|at| Some((at, scenario.hosts.get(at)?))) else {
            continue;
        };
        let profile = &host.profile;
        if *profile == HostProfile::free(profile.machine.cores) {
            continue;
        }
        for (what, names) in needed(scenario, kind, server) {
            if !names.iter().any(|name| profile.jobs.contains_key(name)) {
                let (name, key) = (&profile.name, names.join(" or jobs."));
                let problem = format!(
                    "the profile {name:?} has no cost of {what} (jobs.{key}). Run `taktwerk lab calibrate --host` \
                     again, or add it to the file in nanoseconds"
                );
                return Err((at, problem));
            }
        }
    }
    Ok(())
}

/// What a kind of server does for its clients, and the names of the costs of which one is needed.
fn needed(scenario: &Scenario, kind: usize, server: &Server) -> Vec<(&'static str, Vec<String>)> {
    let clients = || scenario.clients.iter().filter(|clients| clients.server == kind);
    let mut all = Vec::new();
    if clients().any(|clients| clients.login == Login::Password) {
        all.push(("checking a password", vec![JobKind::CheckCredential.name()]));
    }
    let reads =
        |load: &Load| matches!(load, Load::Request(it) if matches!(it.operation, Operation::ReadHistory(_)));
    if clients().any(|clients| reads(&clients.load)) {
        all.push(("reading history", vec![JobKind::ReadHistory.name()]));
    }
    if server.history > 0 {
        all.push(("recording history", vec![RECORDING.to_owned(), JobKind::UpdateHistory.name()]));
    }
    all
}
