//! One client and one server on a line: the common part of the fixed simulations.

use crate::client::Application;
use crate::error::SimulateError;
use crate::host::{Costs, MachineId};
use crate::ids::{ClientId, ServerId};
use crate::network::{LineId, Route, Transport};
use crate::plant::{Plant, url};
use crate::world::World;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_channel::ChannelConfig;
use taktwerk_client::{Client, ClientConfig, Security, Target};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_crypto_dummy::DummyProvider;
use taktwerk_model::HostProfile;
use taktwerk_netem::Profile;
use taktwerk_server::{EndpointConfig, ServerConfig, UserTokenConfig};

/// The usual name of the server.
pub(crate) const NAME: &str = "plant";
/// Bits of the RSA keys of dummy certificates, so that sizes on the wire are realistic.
const KEY_BITS: u16 = 2048;
/// Timeout for answers while connecting; certificate authorities can be slow.
const OPEN_MAX: Duration = Duration::from_secs(120);

/// The line and the machines of both.
#[derive(Debug)]
pub(crate) struct Pair<'a> {
    /// The server's name.
    pub(crate) name: &'a str,
    pub(crate) link: &'a Profile,
    /// Whether both directions share the line's capacity.
    pub(crate) is_half_duplex: bool,
    pub(crate) transport: Transport,
    pub(crate) security: (SecurityPolicy, MessageSecurityMode),
    pub(crate) certificate_len: usize,
    /// Host profiles; `None` needs no processor time.
    pub(crate) server: Option<&'a HostProfile>,
    pub(crate) client: Option<&'a HostProfile>,
    /// Maximum delay of TCP acknowledgements at both ends; `None` for the default.
    pub(crate) delayed_ack: Option<Duration>,
    pub(crate) publish_max: Option<usize>,
    /// Whether the client reads the server's limits after connecting.
    pub(crate) reads_limits: bool,
}

/// Their identifiers in the world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) client: ClientId,
    pub(crate) server: ServerId,
    pub(crate) client_machine: Option<MachineId>,
    pub(crate) server_machine: Option<MachineId>,
}

impl Pair<'_> {
    /// Configures a server for this security.
    pub(crate) fn configure(&self, config: &mut ServerConfig) {
        let (policy, mode) = self.security;
        if policy != SecurityPolicy::None {
            config.provider =
                Arc::new(DummyProvider::new("server", KEY_BITS).with_certificate_len(self.certificate_len));
            config.application_uri = "urn:dummy:server".to_owned();
        }
        config.channel.open_timeout = OPEN_MAX;
        config.endpoints = vec![EndpointConfig {
            url: url(self.name),
            policy,
            mode,
            user_tokens: vec![UserTokenConfig::anonymous()],
        }];
    }

    /// Adds both to a world. The client starts to connect at once.
    pub(crate) fn place<A: Application>(
        &self,
        world: &mut World<A>,
        plant: Plant,
        application: A,
    ) -> Result<Placed, SimulateError> {
        let server = world.add_server(self.name, plant.shard);
        let line = world.add_line(self.link, self.is_half_duplex);
        let provider = DummyProvider::new("client", KEY_BITS).with_certificate_len(self.certificate_len);
        let mut channel = ChannelConfig {
            provider: Arc::new(provider),
            utc_origin: world.utc_origin(),
            ..ChannelConfig::default()
        };
        channel.limits.open_timeout = OPEN_MAX;
        let mut config = ClientConfig {
            channel: Arc::new(channel),
            read_limits: self.reads_limits,
            request_timeout: OPEN_MAX,
            ..ClientConfig::default()
        };
        config.reconnect.retry_first = true;
        if let Some(most) = self.publish_max {
            config.publish_max = most;
        }
        let client = Client::new(Arc::new(config), Box::new(world.fork_entropy()));
        let client = world.add_client(client, application, self.route(line));
        let [server_machine, client_machine] = [self.server, self.client]
            .map(|profile| profile.map(|profile| Ok(world.add_machine(Arc::new(Costs::new(profile)?)))));
        let machine = |machine: Option<Result<MachineId, taktwerk_model::host::ProfileError>>| {
            machine.transpose().map_err(|error| SimulateError::Invalid {
                key: "host",
                value: error.to_string(),
                expected: "a host profile of this version",
            })
        };
        let (server_machine, client_machine) = (machine(server_machine)?, machine(client_machine)?);
        if let Some(machine) = server_machine {
            world.place_server(server, machine);
        }
        if let Some(machine) = client_machine {
            let thread = world.add_client_thread(machine);
            world.place_client(client, thread);
        }
        let mut target = Target::new(&url(self.name)).map_err(|error| SimulateError::Invalid {
            key: "name",
            value: error.to_string(),
            expected: "a host name",
        })?;
        target.security = Security::Exactly(self.security.0, self.security.1);
        let connected = world.with_client(client, |client, _, now| client.connect(target, now.instant));
        connected.map_err(|error| SimulateError::NoSession(Duration::ZERO, error.to_string()))?;
        Ok(Placed { client, server, client_machine, server_machine })
    }

    fn route(&self, line: LineId) -> Route {
        let mut route = Route { transport: self.transport, ..Route::on(line, self.link) };
        if let Some(delayed_ack) = self.delayed_ack {
            for path in [&mut route.to_server, &mut route.to_client] {
                path.delayed_ack = delayed_ack;
            }
        }
        route
    }
}
