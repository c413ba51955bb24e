//! The server: written variables and polled variables.

use crate::common::{SERVER, millis};
use crate::device::Device;
use core::time::Duration;
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_server::source::group::{GroupSpec, ReadMany, Readings};
use taktwerk_server::space::VariableHandle;
use taktwerk_sim::plant::{Plant, variable_id};
use taktwerk_sim::{ServerId, Subscriber, World};
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// The variables by number: those that the application writes, those that clients write too, one with a separate
/// source, and those that share a source.
pub(crate) const PLAIN: u32 = 2;
pub(crate) const SHARED: core::ops::Range<u32> = PLAIN..PLAIN + 2;
const SOURCE: u32 = SHARED.end;
const GROUPED: core::ops::Range<u32> = SOURCE + 1..SOURCE + 3;
pub(crate) const VARIABLES: u32 = GROUPED.end;
pub(crate) const WRITTEN: core::ops::Range<u32> = 0..SHARED.end;
pub(crate) const POLLED: core::ops::Range<u32> = SOURCE..VARIABLES;

/// Offset of the numbers of a writer; the application is writer 0.
pub(crate) const WRITER: i64 = 1_000_000_000;

pub(crate) struct Site {
    pub(crate) world: World<Subscriber>,
    pub(crate) server: ServerId,
    pub(crate) devices: [Device; 2],
    variables: Vec<VariableHandle>,
    /// The last number that the application wrote.
    written: Vec<i64>,
    shards: u64,
    queued_changes_max: usize,
    interval: Duration,
}

impl Site {
    pub(crate) fn new(seed: u64, entropy: &mut SeededEntropy) -> Self {
        let mut world = World::new(seed);
        let devices = [Device::default(), Device::default()];
        let (shards, queued_changes_max) = (1 + entropy.below(3), 4 << entropy.below(6));
        let interval = millis(50 + entropy.below(300));
        let plant = plant(&mut world, shards, queued_changes_max);
        poll(&plant, &devices, interval);
        let variables = plant.variables.clone();
        let server = world.add_server_of(SERVER, plant.into_shards());
        let written = vec![0; VARIABLES as usize];
        Self { world, server, devices, variables, written, shards, queued_changes_max, interval }
    }

    /// The process dies and starts again. The application writes again; devices continue counting.
    pub(crate) fn restart(&mut self) {
        let plant = plant(&mut self.world, self.shards, self.queued_changes_max);
        poll(&plant, &self.devices, self.interval);
        self.variables = plant.variables.clone();
        self.world.restart_of(self.server, plant.into_shards());
        WRITTEN.for_each(|variable| self.write(variable));
    }

    /// The application writes its next number.
    pub(crate) fn write(&mut self, variable: u32) {
        let variable = variable as usize;
        self.written[variable] += 1;
        self.variables[variable].set_at(self.written[variable], self.world.now().utc);
    }

    pub(crate) fn written(&self, variable: u32) -> i64 {
        self.written[variable as usize]
    }
}

fn plant(world: &mut World<Subscriber>, shards: u64, queued_changes_max: usize) -> Plant {
    let more = (1..shards).map(|_| Box::new(world.fork_entropy()) as _).collect();
    let entropy = (Box::new(world.fork_entropy()) as _, more);
    Plant::with_queues(SERVER, VARIABLES, world.utc_origin(), entropy, queued_changes_max, |config| {
        config.limits.subscriptions.retransmission_len_max = 5;
        config.limits.send_budget = 4 << 10;
    })
    .unwrap()
}

fn poll(plant: &Plant, devices: &[Device; 2], interval: Duration) {
    plant.space.set_source(&variable_id(SOURCE), std::sync::Arc::new(devices[0].clone())).unwrap();
    let device = devices[1].clone();
    let read = ReadMany::Later(Box::new(move |mut readings: Readings| {
        let value = device.value();
        Box::pin(async move {
            let value = value.await;
            (0..readings.len()).for_each(|position| readings.set(position, value));
            Ok(readings)
        })
    }));
    // No value is known yet.
    let waiting = StatusCode::BAD_WAITING_FOR_INITIAL_DATA;
    for variable in &plant.variables[GROUPED.start as usize..] {
        variable.set_with(Variant::Empty, waiting, UtcTime::NULL, UtcTime::NULL);
    }
    let members = plant.variables[GROUPED.start as usize..].to_vec();
    let spec =
        GroupSpec { deadline: crate::device::DEADLINE, ..GroupSpec::new("device", members, interval, read) };
    let _handle = plant.space.sources().add(spec);
}
