//! A server with some variables and its clients, ready to run.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::print_stderr)] // tests fail by panicking and print the reason

use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use taktwerk_channel::ChannelConfig;
use taktwerk_client::{Client, ClientConfig, SubscriptionParams, Target};
use taktwerk_schema::MonitoredItemCreateRequest;
use taktwerk_server::ServerConfig;
use taktwerk_server::space::VariableHandle;
use taktwerk_sim::plant::{Plant, url};
use taktwerk_sim::{ClientId, Route, ServerId, Subscriber, World};

pub const SERVER: &str = "plant";

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A world with one server.
pub struct Site {
    pub world: World<Subscriber>,
    pub server: ServerId,
    pub variables: Vec<VariableHandle>,
    change: fn(&mut ServerConfig),
}

impl Site {
    pub fn new(seed: u64, variables: u32) -> Self {
        Self::with(seed, variables, |_| {})
    }

    pub fn with(seed: u64, variables: u32, change: fn(&mut ServerConfig)) -> Self {
        let mut world = World::new(seed);
        let plant = plant(&mut world, variables, change);
        let server = world.add_server(SERVER, plant.shard);
        Self { world, server, variables: plant.variables, change }
    }

    /// Adds a client that connects immediately and keeps retrying.
    pub fn client(&mut self, route: Route, subscriber: Subscriber) -> ClientId {
        self.client_with(route, subscriber, |_| {})
    }

    pub fn client_with(
        &mut self,
        route: Route,
        subscriber: Subscriber,
        change: impl FnOnce(&mut ClientConfig),
    ) -> ClientId {
        let channel = ChannelConfig { utc_origin: self.world.utc_origin(), ..ChannelConfig::default() };
        let mut config = ClientConfig { channel: Arc::new(channel), ..ClientConfig::default() };
        config.reconnect.retry_first = true;
        change(&mut config);
        let entropy = Box::new(self.world.fork_entropy());
        let client = Client::new(Arc::new(config), entropy);
        let id = self.world.add_client(client, subscriber, route);
        let target = Target::new(&url(SERVER)).unwrap();
        self.world.with_client(id, |client, _, now| client.connect(target, now.instant)).unwrap();
        id
    }

    /// The server's process dies and starts again immediately, with only its configuration.
    pub fn restart(&mut self) {
        let plant = plant(&mut self.world, self.variables.len() as u32, self.change);
        self.variables = plant.variables;
        self.world.restart(self.server, plant.shard);
    }

    pub fn write(&self, variable: usize, value: i64) {
        self.variables[variable].set_at(value, self.world.now().utc);
    }

    pub fn app(&self, client: ClientId) -> &Subscriber {
        &self.world.client(client).application
    }

    pub fn run(&mut self, span: Duration) {
        self.world.run_for(span).unwrap();
    }

    /// Runs until the client can send requests.
    pub fn until_up(&mut self, client: ClientId) {
        self.until("the client is up", secs(300), |world| world.client(client).client().is_up());
    }

    /// Runs until a condition holds.
    pub fn until(&mut self, what: &str, span: Duration, holds: impl Fn(&World<Subscriber>) -> bool) {
        let start = self.world.now().instant;
        let came = self.world.run_while(span, |world| !holds(world)).unwrap();
        assert!(came, "not within {span:?} from {start:?}: {what}");
    }
}

pub fn plant(world: &mut World<Subscriber>, variables: u32, change: fn(&mut ServerConfig)) -> Plant {
    let entropy = Box::new(world.fork_entropy());
    Plant::new(SERVER, variables, world.utc_origin(), entropy, change).unwrap()
}

pub fn subscription(publishing_ms: f64, items: Vec<MonitoredItemCreateRequest>) -> Subscriber {
    let params =
        SubscriptionParams { publishing_interval_ms: publishing_ms, ..SubscriptionParams::default() };
    Subscriber::new(params, items)
}

/// The same with a lifetime that is longer than every fault of the test.
pub fn lasting_subscription(publishing_ms: f64, items: Vec<MonitoredItemCreateRequest>) -> Subscriber {
    let params = SubscriptionParams {
        publishing_interval_ms: publishing_ms,
        lifetime_count: 100_000,
        ..SubscriptionParams::default()
    };
    Subscriber::new(params, items)
}

/// The numbers that were reported for an item.
pub fn numbers(subscriber: &Subscriber, client_handle: u32) -> Vec<i64> {
    let values = subscriber.values_of(client_handle).iter();
    values.map(|received| i64::try_from(received.value.value.clone().unwrap()).unwrap()).collect()
}

/// Runs a test with many seeds and prints the seed that failed. TAKTWERK_SIM_SEED selects one seed, TAKTWERK_SIM_SEEDS
/// sets the number of seeds.
pub fn for_seeds(count: u64, test: impl Fn(u64)) {
    let seeds = match number("TAKTWERK_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TAKTWERK_SIM_SEEDS").unwrap_or(count),
    };
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            eprintln!("failed with seed {seed}: run again with TAKTWERK_SIM_SEED={seed}");
            resume_unwind(panic);
        }
    }
}

/// Tests may read environment variables; the simulator may not.
#[allow(clippy::disallowed_methods)]
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}
