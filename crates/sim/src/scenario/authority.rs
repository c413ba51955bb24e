//! Certificate authorities of a plant, as described by a user.

use super::Scenario;
use super::application::Worker;
use super::build::{Built, LineOwner, Machines, Routes};
use super::fault::{Fault, FaultKind, NodeFault};
use super::outcome::AuthorityOutcome;
use super::text::Text;
use crate::authority::{self, AuthorityFigures, Protocol, Query, Responder, Unknown};
use crate::host::MachineId;
use crate::ids::NodeId;
use crate::network::{Path, Route};
use crate::node::Node;
use crate::world::World;
use core::cell::RefCell;
use core::time::Duration;
use std::rc::Rc;
use taktwerk_crypto::SecurityPolicy;
use taktwerk_types::Instant;

/// How long a process takes to start.
const START: Duration = Duration::from_millis(1);
/// Longest answer in bytes.
const RESPONSE_MAX: usize = 64 << 20;
/// Most authorities in a chain.
const CHAIN_MAX: usize = 16;

/// A certificate authority.
#[derive(Debug, Clone, PartialEq)]
pub struct Authority {
    /// Name.
    pub name: String,
    /// Its machine; `None` means that only `processing` takes time.
    pub host: Option<usize>,
    /// The link to it; `None` means a network without limits.
    pub link: Option<usize>,
    /// What it answers.
    pub protocol: Protocol,
    /// Bytes of an answer without HTTP headers.
    pub response_len: usize,
    /// Processor time for each answer, in addition to the prices of the host profile.
    pub processing: Duration,
    /// Maximum time that servers and clients wait for an answer.
    pub timeout: Duration,
    /// What happens to a certificate without an answer.
    pub unknown: Unknown,
}

impl Authority {
    /// An authority on its own, without a machine and a link. OCSP answers with the certificate of their signer have
    /// about 1 900 bytes.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            host: None,
            link: None,
            protocol: Protocol::Ocsp,
            response_len: 1_900,
            processing: Duration::ZERO,
            timeout: Duration::from_secs(5),
            unknown: Unknown::Refuse,
        }
    }

    fn process(&self) -> authority::Authority {
        authority::Authority {
            name: self.name.clone(),
            protocol: self.protocol,
            response_len: self.response_len,
            processing: self.processing,
        }
    }
}

/// An authority during a run.
#[derive(Debug, Clone)]
struct Part {
    id: NodeId,
    process: authority::Authority,
    figures: Rc<RefCell<AuthorityFigures>>,
}

/// The authorities during a run.
#[derive(Debug, Default)]
pub(super) struct Parts(Vec<Part>);

/// Creates the authorities, and a process that asks them for each server and each group of clients that has a chain.
pub(super) fn build(scenario: &Scenario, built: &mut Built, machines: &mut Machines, routes: &mut Routes) {
    for one in &scenario.authorities {
        let figures = Rc::default();
        let id = built.world.add_authority(one.process(), &figures);
        if let Some(host) = one.host {
            let machine = machines.shared(host, &mut built.world);
            built.world.place_node(id, machine);
        }
        built.authorities.0.push(Part { id, process: one.process(), figures });
    }
    let mut number = 0;
    for site in 0..built.sites.len() {
        let (Some(server), Some(kind)) =
            (built.sites.get(site).map(|site| site.borrow().id), built.kind_of.get(site))
        else {
            continue;
        };
        let chain = scenario.servers.get(*kind).map(|server| server.authorities.as_slice());
        let name = format!("checks of {}", built.world.server(server).name());
        let machine = built.world.server(server).machine();
        let owner = (LineOwner::Site(site), number);
        let asker =
            asker(chain.unwrap_or_default(), &name, owner, (scenario, &mut *built, &mut *routes), machine);
        if let Some(asker) = asker {
            built.world.check_at_server(server, asker);
            number += 1;
        }
    }
    for (group, clients) in scenario.clients.iter().enumerate() {
        let name = format!("checks of {}", clients.name);
        let host = clients.host.filter(|_| !clients.authorities.is_empty());
        let machine = host.map(|host| machines.shared(host, &mut built.world));
        let owner = (LineOwner::Clients(group), number);
        let asker = asker(&clients.authorities, &name, owner, (scenario, &mut *built, &mut *routes), machine);
        let Some(asker) = asker else { continue };
        for client in built.clients.get(group).into_iter().flatten() {
            built.world.check_at_client(*client, asker);
        }
        number += 1;
    }
}

/// The process that asks for a server or a group of clients; `None` without a chain.
fn asker(
    chain: &[usize],
    name: &str,
    (owner, number): (LineOwner, u32),
    (scenario, built, routes): (&Scenario, &mut Built, &mut Routes),
    machine: Option<MachineId>,
) -> Option<NodeId> {
    let (mut queries, mut figures) = (Vec::new(), Vec::new());
    for at in chain {
        let (one, part) = (scenario.authorities.get(*at)?, built.authorities.0.get(*at)?.clone());
        let line = routes.line(one.link, owner, scenario, built);
        let link = one.link.and_then(|link| scenario.links.get(link));
        let route = match (line, link) {
            (Some(line), Some(link)) => Route::on(line, &link.profile),
            _ => Route::symmetric(Path::IDEAL),
        };
        queries.push(Query {
            node: part.id,
            authority: part.process,
            route,
            timeout: one.timeout,
            unknown: one.unknown,
            numbers: (number, u32::try_from(*at).unwrap_or(u32::MAX)),
        });
        figures.push(part.figures);
    }
    (!queries.is_empty()).then(|| {
        let asker = built.world.add_asker(name, queries.into(), figures);
        if let Some(machine) = machine {
            built.world.place_node(asker, machine);
        }
        asker
    })
}

impl Parts {
    /// Schedules a fault; counting begins at `from`.
    pub(super) fn plan(&self, fault: &Fault, from: Instant, world: &mut World<Worker>) {
        let FaultKind::Node(_, which, what) = fault.kind else { return };
        let Some(part) = self.0.get(which.group).cloned() else { return };
        let (begin, end, id) = (from + fault.at, from + fault.at + fault.lasts, part.id);
        match what {
            NodeFault::Partition => {
                world.at(begin, move |world| world.partition_node(id));
                world.at(end, move |world| world.heal_node(id));
            }
            NodeFault::Slow(span) => {
                world.at(begin, move |world| world.set_node_slow(id, span));
                world.at(end, move |world| world.set_node_slow(id, Duration::ZERO));
            }
            NodeFault::Crash | NodeFault::Restart => {
                let end = if what == NodeFault::Crash { end } else { begin + START };
                world.at(begin, move |world| world.crash_node(id));
                world.at(end, move |world| {
                    let responder = Responder::new(part.process, part.figures);
                    world.start_node(id, Node::Responder(Box::new(responder)));
                });
            }
            // They do not apply: see `check`.
            NodeFault::Cut | NodeFault::Clock(_) | NodeFault::SlowReader | NodeFault::Storm => {}
        }
    }

    pub(super) fn readings(&self, world: &World<Worker>) -> Vec<Duration> {
        self.0.iter().map(|part| world.node_used(part.id)).collect()
    }

    pub(super) fn outcome(
        &self,
        authorities: &[Authority],
        (before, after): (&[Duration], &[Duration]),
        seconds: f64,
    ) -> Vec<AuthorityOutcome> {
        let used = before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before));
        let all = self.0.iter().zip(authorities).zip(used);
        all.map(|((part, one), used)| AuthorityOutcome {
            figures: part.figures.borrow().clone(),
            cpu: one.host.map(|_| used.as_secs_f64() / seconds),
        })
        .collect()
    }
}

/// Finds contradictions: the key and the problem.
pub(super) fn check(scenario: &Scenario) -> Result<(), (String, String)> {
    for (number, one) in scenario.authorities.iter().enumerate() {
        let wrong =
            |field: &str, problem: &str| Err((format!("authority.{number}.{field}"), problem.to_owned()));
        if scenario.authorities.iter().take(number).any(|other| other.name == one.name) {
            return wrong("name", "another authority has this name");
        }
        if one.host.is_some_and(|host| host >= scenario.hosts.len()) {
            return wrong("host", "there is no such host");
        }
        if one.link.is_some_and(|link| link >= scenario.links.len()) {
            return wrong("link", "there is no such link");
        }
        if !(1..=RESPONSE_MAX).contains(&one.response_len) {
            return wrong("response_bytes", "write 1 byte to 64 MiB");
        }
        if one.timeout.is_zero() {
            return wrong("timeout_s", "0 s: write how long to wait for an answer");
        }
    }
    let is_secured = |policy| policy != SecurityPolicy::None;
    for (number, server) in scenario.servers.iter().enumerate() {
        let key = format!("server.{number}.authorities");
        chain(&server.authorities, scenario).map_err(|problem| (key.clone(), problem))?;
        let mut clients = scenario.clients.iter().filter(|clients| clients.server == number);
        if !server.authorities.is_empty() && !clients.any(|clients| is_secured(clients.security.0)) {
            let problem = "no client of this server has a certificate: write policy for its clients";
            return Err((key, problem.to_owned()));
        }
    }
    for (number, clients) in scenario.clients.iter().enumerate() {
        let key = format!("client.{number}.authorities");
        chain(&clients.authorities, scenario).map_err(|problem| (key.clone(), problem))?;
        if !clients.authorities.is_empty() && !is_secured(clients.security.0) {
            let problem = "without a policy, servers have no certificate: write policy = \"Basic256Sha256\"";
            return Err((key, problem.to_owned()));
        }
    }
    Ok(())
}

fn chain(chain: &[usize], scenario: &Scenario) -> Result<(), String> {
    if chain.iter().any(|at| *at >= scenario.authorities.len()) {
        return Err("there is no such authority".to_owned());
    }
    if chain.len() > CHAIN_MAX {
        return Err(format!("{} authorities: write at most {CHAIN_MAX}", chain.len()));
    }
    Ok(())
}

/// Writes them to the file of a scenario.
pub(super) fn write(out: &mut Text, scenario: &Scenario) {
    for one in &scenario.authorities {
        out.section("[[authority]]");
        out.string("name", &one.name);
        out.name_of("host", &scenario.hosts, one.host, |host| &host.name);
        out.name_of("link", &scenario.links, one.link, |link| &link.name);
        if let Protocol::Crl(valid) = one.protocol {
            out.string("protocol", "crl");
            out.number("valid_s", valid.as_secs_f64());
        }
        out.number("response_bytes", one.response_len);
        out.ms("processing_ms", one.processing);
        out.number("timeout_s", one.timeout.as_secs_f64());
        if one.unknown == Unknown::Accept {
            out.string("on_failure", "accept");
        }
    }
}
