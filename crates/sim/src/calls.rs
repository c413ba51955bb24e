//! Time to open a session and to read blocks of variables over a link.
//!
//! [`call`] is a pure function, like [`simulate`](crate::publishing::simulate): it runs the production cores in virtual
//! time. Host profiles describe the processors of both ends. The answer times of certificate authorities
//! ([`Authority`](crate::authority::Authority)) are part of the profiles, as the cost of validation.

use crate::client::Application;
use crate::error::SimulateError;
use crate::network::Transport;
use crate::pair::{NAME, Pair};
use crate::plant::{Plant, add_variable, value_of};
use crate::publishing::value;
use crate::world::World;
use core::time::Duration;
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
    /// Time from the first packet until the session was activated.
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
    let pair = Pair {
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
    let plant = Plant::new(NAME, 0, origin, entropy, |config| {
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
    let start = world.now().instant;
    let placed = pair.place(&mut world, plant, Caller::default())?;
    world.server_mut(placed.server).response_len_max = ANSWER_MAX;
    let is_up = |world: &World<Caller>| world.client(placed.client).application.connected_at.is_some();
    if !world.run_while(PATIENCE, |world| !is_up(world))? {
        let trouble = world.client(placed.client).application.trouble.clone();
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

fn invalid(key: &'static str, value: impl core::fmt::Display, expected: &'static str) -> SimulateError {
    SimulateError::Invalid { key, value: value.to_string(), expected }
}
