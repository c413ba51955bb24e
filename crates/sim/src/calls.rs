//! Time to open a session and to read blocks of variables over a link.
//!
//! [`call`] is a pure function, like [`simulate`](crate::publishing::simulate): it runs the production cores in virtual
//! time. Host profiles describe the processors of both ends. Client and server can ask certificate authorities before
//! they accept a certificate. Authorities are nodes with processors and links of their own.

use crate::authority::{Authority, Query, Unknown};
use crate::client::Application;
use crate::error::SimulateError;
use crate::host::{Costs, MachineId};
use crate::ids::NodeId;
use crate::network::{Path, Route, Transport};
use crate::pair::{NAME, Pair, Placed};
use crate::plant::{Plant, add_variable, value_of};
use crate::signals::value;
use crate::world::World;
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;
use taktwerk_client::{Client, Delivery, Event};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_model::HostProfile;
use taktwerk_netem::Profile;
use taktwerk_schema::{ReadRequest, ReadResponse, TimestampsToReturn};
use taktwerk_server::Now;
use taktwerk_types::Instant;

/// Timeout for a session, and for the answers to one block.
const PATIENCE: Duration = Duration::from_secs(600);
/// Pause before each block, so that no earlier block is in flight.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of variables per block.
const VARIABLES_MAX: u32 = 50_000;
/// Maximum size of the answer to a block that the server buffers, in bytes.
const ANSWER_MAX: usize = 64 << 20;

/// Maximum time that client and server wait for the answer of an authority.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(100);

/// An authority with its link and machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Remote {
    /// The authority.
    pub authority: Authority,
    /// The line that leads to it. All that ask it share this line.
    pub link: Profile,
    /// Costs of work on its machine; `None` for zero.
    pub host: Option<HostProfile>,
}

/// Who is asked whether a certificate is valid.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Checks {
    /// Nobody.
    #[default]
    None,
    /// Client and server each ask an authority on their own machine.
    Local(Authority),
    /// Client and server ask the same authorities, one after the other, the issuer first.
    Remote(Vec<Remote>),
}

/// The simulated system.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The link between client and server.
    pub link: Profile,
    /// Transport of the messages.
    pub transport: Transport,
    /// Policy and mode of the channel.
    pub security: (SecurityPolicy, MessageSecurityMode),
    /// Size of an application's certificate in bytes.
    pub certificate_len: usize,
    /// Costs of work on the server's machine; `None` for zero.
    pub server: Option<HostProfile>,
    /// Costs of work on the client's machine; `None` for zero.
    pub client: Option<HostProfile>,
    /// Maximum delay of TCP acknowledgements at both ends; `None` for Linux defaults.
    pub delayed_ack: Option<Duration>,
    /// Certificate authorities.
    pub checks: Checks,
    /// Number of other clients that open a session at the same time, each with a server of its own over a line of its
    /// own. They ask the same authorities.
    pub others: u32,
    /// Seed of all random decisions.
    pub seed: u64,
}

impl Setup {
    /// UA TCP without security between machines without processor costs.
    #[must_use]
    pub fn new(link: Profile) -> Self {
        Self {
            link,
            transport: Transport::UaTcp,
            security: (SecurityPolicy::None, MessageSecurityMode::None),
            certificate_len: 1_000,
            server: None,
            client: None,
            delayed_ack: None,
            checks: Checks::None,
            others: 0,
            seed: 1,
        }
    }
}

/// Variables that are read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Number of variables.
    pub variables: u32,
    /// Encoded size of each value: see [`Signals`](crate::publishing::Signals).
    pub value_len: usize,
    /// Maximum number of variables per request; the requests are sent without waiting. 0 means unlimited.
    pub per_request: u32,
}

impl Block {
    /// All variables in one request.
    #[must_use]
    pub const fn new(variables: u32, value_len: usize) -> Self {
        Self { variables, value_len, per_request: 0 }
    }
}

/// Results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calls {
    /// Time from the first packet until the session was activated; with others, until the last of all sessions was.
    pub session_up: Duration,
    /// Time from requesting a block until the client's application has all of it.
    pub round_trips: Vec<Duration>,
}

#[derive(Debug, Default)]
struct Caller {
    connected_at: Option<Instant>,
    trouble: Option<String>,
    values: usize,
    refused: usize,
    requests: usize,
}

impl Application for Caller {
    fn deliver(&mut self, delivery: Delivery, _: &mut Client, now: Now) {
        match delivery {
            Delivery::Event(Event::Connected(_)) => {
                self.connected_at.get_or_insert(now.instant);
            }
            Delivery::Event(event) => self.trouble = Some(format!("{event:?}")),
            Delivery::Response(_, reply) => {
                self.requests = self.requests.saturating_sub(1);
                match reply.and_then(|reply| reply.decode::<ReadResponse>()) {
                    Ok(response) => {
                        let refused = response.results.iter().filter(|one| one.value.is_none()).count();
                        self.refused += refused;
                        self.values += response.results.len() - refused;
                    }
                    Err(error) => self.trouble = Some(error.to_string()),
                }
            }
            Delivery::DataChanges { .. } | Delivery::Events { .. } => {}
        }
    }
}

/// Opens a session and reads the blocks one after the other.
///
/// # Errors
/// [`SimulateError`]: a block that the server cannot have, or a link without a session or an answer.
pub fn call(setup: &Setup, blocks: &[Block]) -> Result<Calls, SimulateError> {
    if let Some(block) = blocks.iter().find(|block| !(1..=VARIABLES_MAX).contains(&block.variables)) {
        return Err(invalid("variables", block.variables, "from 1 to 50 000"));
    }
    if let Some(block) = blocks.iter().find(|block| block.value_len > 8 << 20) {
        return Err(invalid("value_len", block.value_len, "at most 8 MiB"));
    }
    let mut world: World<Caller> = World::new(setup.seed);
    let start = world.now().instant;
    let (placed, firsts) = place(&mut world, setup, NAME, blocks)?;
    let mut all = vec![placed];
    for number in 0..setup.others {
        all.push(place(&mut world, setup, &format!("{NAME}-{}", number + 2), &[])?.0);
    }
    add_authorities(&mut world, setup, &all)?;
    let is_up = |world: &World<Caller>| {
        all.iter().all(|one| world.client(one.client).application.connected_at.is_some())
    };
    if !world.run_while(PATIENCE, |world| !is_up(world))? {
        let trouble = all.iter().find_map(|one| world.client(one.client).application.trouble.clone());
        return Err(SimulateError::NoSession(PATIENCE, trouble.unwrap_or_else(|| "no answer".to_owned())));
    }
    let session_up = world.now().instant.since(start);
    let mut round_trips = Vec::new();
    for (block, first) in blocks.iter().zip(firsts) {
        world.run_for(PAUSE)?;
        let asked = world.now().instant;
        let numbers: Vec<u32> = (first..first + block.variables).collect();
        let at_once = if block.per_request == 0 { block.variables } else { block.per_request };
        world.client_mut(placed.client).application.values = 0;
        for part in numbers.chunks(at_once as usize) {
            let request = ReadRequest {
                timestamps_to_return: TimestampsToReturn::NEITHER,
                nodes_to_read: part.iter().map(|number| value_of(*number)).collect(),
                ..ReadRequest::default()
            };
            let sent = world.request(placed.client, request);
            sent.map_err(|error| SimulateError::NoSession(session_up, error.to_string()))?;
            world.client_mut(placed.client).application.requests += 1;
        }
        let answered = world.run_while(PATIENCE, |world| {
            let application = &world.client(placed.client).application;
            application.requests > 0
        })?;
        let application = &world.client(placed.client).application;
        if !answered || application.values != block.variables as usize {
            let trouble = application.trouble.clone().unwrap_or_else(|| {
                format!(
                    "{} of {} values, {} refused",
                    application.values, block.variables, application.refused
                )
            });
            return Err(SimulateError::NoAnswer(trouble));
        }
        round_trips.push(world.now().instant.since(asked));
    }
    Ok(Calls { session_up, round_trips })
}

/// Adds a client with its server, which has the variables of the blocks. Returns the number of the first variable of
/// each block, too.
fn place(
    world: &mut World<Caller>,
    setup: &Setup,
    name: &str,
    blocks: &[Block],
) -> Result<(Placed, Vec<u32>), SimulateError> {
    let pair = Pair {
        name,
        link: &setup.link,
        is_half_duplex: false,
        transport: setup.transport,
        security: setup.security,
        certificate_len: setup.certificate_len,
        server: setup.server.as_ref(),
        client: setup.client.as_ref(),
        delayed_ack: setup.delayed_ack,
        publish_max: None,
        reads_limits: false,
    };
    let entropy = Box::new(world.fork_entropy());
    let origin = world.utc_origin();
    let plant = Plant::new(name, 0, origin, entropy, |config| {
        pair.configure(config);
        config.limits.nodes_per_read_max = VARIABLES_MAX;
    });
    let plant = plant.map_err(|error| invalid("variables", error, "variables that the server can have"))?;
    let mut firsts = Vec::new();
    let mut number = 0;
    for block in blocks {
        firsts.push(number);
        for _ in 0..block.variables {
            add_variable(&plant.space, number, value(block.value_len, 0), origin)
                .map_err(|error| invalid("variables", error, "variables that the server can have"))?;
            number += 1;
        }
    }
    let placed = pair.place(world, plant, Caller::default())?;
    world.server_mut(placed.server).response_len_max = ANSWER_MAX;
    Ok((placed, firsts))
}

/// Adds the authorities, and lets clients and servers ask them.
fn add_authorities(world: &mut World<Caller>, setup: &Setup, all: &[Placed]) -> Result<(), SimulateError> {
    let query = |(node, authority, number): (NodeId, &Authority, usize), route, asker: u32| Query {
        node,
        authority: authority.clone(),
        route,
        timeout: ANSWER_TIME_MAX,
        unknown: Unknown::Refuse,
        numbers: (asker, u32::try_from(number).unwrap_or(u32::MAX)),
    };
    let mut known = Vec::new();
    if let Checks::Remote(remotes) = &setup.checks {
        for (number, remote) in remotes.iter().enumerate() {
            let node = world.add_authority(remote.authority.clone(), &Rc::default());
            if let Some(profile) = &remote.host {
                let costs = Costs::new(profile);
                let costs =
                    costs.map_err(|error| invalid("host", error, "a host profile of this version"))?;
                let machine = world.add_machine(Arc::new(costs));
                world.place_node(node, machine);
            }
            let line = world.add_line(&remote.link, false);
            known.push(((node, &remote.authority, number), Route::on(line, &remote.link)));
        }
    }
    for (number, placed) in (0..).zip(all) {
        let ends = [(placed.server_machine, 2 * number), (placed.client_machine, 2 * number + 1)];
        let askers = ends.map(|(machine, asker): (Option<MachineId>, u32)| {
            let place = |world: &mut World<Caller>, node| {
                if let Some(machine) = machine {
                    world.place_node(node, machine);
                }
                node
            };
            let chain: Rc<[Query]> = match &setup.checks {
                Checks::None => return None,
                Checks::Local(authority) => {
                    let node = world.add_authority(authority.clone(), &Rc::default());
                    let node = place(world, node);
                    [query((node, authority, 0), Route::symmetric(Path::IDEAL), asker)].into()
                }
                Checks::Remote(_) => known.iter().map(|(one, route)| query(*one, *route, asker)).collect(),
            };
            let node = world.add_asker("checks", chain, Vec::new());
            Some(place(world, node))
        });
        if let [Some(server), Some(client)] = askers {
            world.check_at_server(placed.server, server);
            world.check_at_client(placed.client, client);
        }
    }
    Ok(())
}

fn invalid(key: &'static str, value: impl core::fmt::Display, expected: &'static str) -> SimulateError {
    SimulateError::Invalid { key, value: value.to_string(), expected }
}
