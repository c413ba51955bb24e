//! The demo plant of `taktwerk serve`.
//!
//! Machines with simulated [`sensors`], counters, arrays and a matrix, structures and an enumeration with own DataTypes
//! (from `plant.NodeSet2.xml`), writable variables, methods, [`events`] and [`alarms`], a [`batch`] as a Program, and a
//! [`hatch`] as a state machine.

mod alarms;
mod batch;
mod events;
mod hatch;
mod sensors;
pub(crate) mod waveform;

use super::updater::Updater;
use alarms::Maintenance;
use batch::Batch;
use events::EventSources;
use sensors::SENSORS;
use std::sync::Arc;
use std::time::Duration;
use taktwerk::history::{HistoryStore, HistoryValue, NodeKey, Rule};
use taktwerk::{BuildError, Namespace, Node, Server, Unit, Variable};
use taktwerk_net::clock;
use taktwerk_nodeset::TypeDictionary;
use taktwerk_server::space::import::Importer;
use taktwerk_types::{Encode, ExtensionObject, NodeId, StatusCode, UaString, UtcTime, Variant};
use waveform::{Signal, Waveform};

/// The namespace of the plant.
pub(crate) const NAMESPACE: &str = "urn:taktwerk:demo-plant";
/// The hint for a configuration that refers to this namespace, but does not add the plant.
pub(super) const MISSING: &str = "it belongs to the demo plant: set simulated_plant = true under [server]";
const TYPES: &str = include_str!("plant.NodeSet2.xml");

/// Ids in `plant.NodeSet2.xml`.
const RECIPE_ENCODING: u32 = 5002;
const MODE_TYPE: u32 = 3003;

/// Interval of the simulation.
const PERIOD: Duration = Duration::from_millis(100);
/// Number of values of the spectrum.
const BINS: usize = 64;
/// Rows and columns of the temperature field.
const FIELD: (usize, usize) = (4, 8);

/// The simulated variables.
struct Moving {
    /// Simulated time before the first cycle, in seconds.
    time: f64,
    sensors: Vec<(Variable<f64>, Signal)>,
    cycles: Variable<u64>,
    parts_good: Variable<u32>,
    parts_rejected: Variable<u32>,
    operating_seconds: Variable<u64>,
    spectrum: Variable<Vec<f64>>,
    spectrum_signals: Vec<Signal>,
    histogram: Variable<Vec<u16>>,
    field: Variable<Variant>,
    field_signals: Vec<Signal>,
    happenings: EventSources,
    batch: Batch,
    maintenance: Maintenance,
}

/// Adds the plant to a server and starts it.
pub(crate) fn start(server: &Server, in_file: bool) -> Result<Updater, super::ServeError> {
    let files = [("plant.NodeSet2.xml".to_owned(), TYPES.to_owned())];
    Importer::new(TypeDictionary::namespace_zero()).import(server.space(), &files, clock::wall())?;
    let namespace = server.namespace(NAMESPACE);
    let plant = events::folder(server, &namespace)?;
    hatch::add(&namespace, &plant)?;
    let mut moving = Moving {
        time: 0.0,
        sensors: add_sensors(&plant)?,
        happenings: EventSources::of(&plant)?,
        batch: Batch::add(&plant)?,
        maintenance: Maintenance::add(&plant)?,
        cycles: plant.variable("Cycles", 0u64).add()?,
        parts_good: plant.variable("PartsGood", 0u32).units(Unit::PIECE).add()?,
        parts_rejected: plant.variable("PartsRejected", 0u32).units(Unit::PIECE).add()?,
        operating_seconds: plant.variable("OperatingSeconds", 0u64).units(Unit::SECOND).add()?,
        spectrum: plant.variable("Spectrum", vec![0.0f64; BINS]).add()?,
        spectrum_signals: (0..BINS as u64)
            .map(|bin| Signal::new(0.0, 1.0, Waveform::Noise, 1_000 + bin))
            .collect(),
        histogram: plant.variable("Histogram", vec![0u16; 16]).add()?,
        field: plant.variable("TemperatureField", matrix(&[0.0; FIELD.0 * FIELD.1])).add()?,
        field_signals: (0..(FIELD.0 * FIELD.1) as u64)
            .map(|cell| Signal::new(15.0, 95.0, Waveform::Walk { pace: 0.01 }, 2_000 + cell))
            .collect(),
    };
    if let Some(store) = server.space().history_store() {
        record(server, store, &mut moving, in_file)?;
        server.record_events(false).map_err(super::ServeError::from)?;
    }
    alarms::add(&moving.sensors)?;
    add_setpoints(&namespace, &plant)?;
    add_recipes(&namespace, &plant)?;
    add_methods(&plant)?;
    Ok(Updater::start("plant", nanos(PERIOD), move |cycle| moving.cycle(cycle))?)
}

/// Interval of recorded sensor values.
const EVERY: Duration = Duration::from_secs(1);
/// Length of the generated history, in seconds.
const PAST: i64 = 3_600;

/// Records sensors and counters. A history in memory starts with a generated hour of the same signals; a file contains
/// only real values.
fn record(
    server: &Server,
    store: &Arc<dyn HistoryStore>,
    moving: &mut Moving,
    in_file: bool,
) -> Result<(), super::ServeError> {
    let (space, now) = (server.space(), clock::wall());
    let rule = Rule { interval: EVERY, ..Rule::default() };
    if !in_file {
        moving.time = PAST as f64;
        for (variable, signal) in &mut moving.sensors {
            let node = space.node_key(variable.id());
            let values: Vec<_> = (0..PAST)
                .map(|second| {
                    let source = UtcTime::from_ticks(now.ticks() - (PAST - second) * 10_000_000);
                    let value = signal.at(second as f64).into();
                    let value = HistoryValue { source, server: source, status: StatusCode::GOOD, value };
                    (NodeKey::clone(&node), value)
                })
                .collect();
            store.append(&values).map_err(|error| super::ServeError::History(error.message))?;
        }
    }
    for (variable, _) in &moving.sensors {
        space.historize(variable.id(), true, rule, now)?;
    }
    let change = Rule { on_change: true, ..rule };
    for id in [moving.parts_good.id(), moving.parts_rejected.id()] {
        space.historize(id, true, change, now)?;
    }
    Ok(())
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn add_sensors(plant: &Node) -> Result<Vec<(Variable<f64>, Signal)>, BuildError> {
    let mut added = Vec::with_capacity(SENSORS.len());
    let mut machine: Option<(&str, Node)> = None;
    for (seed, sensor) in (0..).zip(SENSORS) {
        let node = match &machine {
            Some((name, node)) if *name == sensor.machine => node.clone(),
            _ => events::machine(plant, sensor.machine)?,
        };
        machine = Some((sensor.machine, node.clone()));
        let (low, high) = sensor.range;
        let mut signal = Signal::new(low, high, sensor.waveform, seed);
        let variable =
            node.variable(sensor.name, signal.at(0.0)).range(low..=high).units(sensor.unit).add()?;
        added.push((variable, signal));
    }
    Ok(added)
}

/// Writable variables.
fn add_setpoints(namespace: &Namespace, plant: &Node) -> Result<(), BuildError> {
    plant
        .variable("TemperatureSetpoint", 80.0)
        .range(20.0..=180.0)
        .units(Unit::CELSIUS)
        .description("Any value between 20 and 180 °C; others are refused")
        .on_write(
            |_, value: f64| {
                if (20.0..=180.0).contains(&value) { Ok(value) } else { Err(StatusCode::BAD_OUT_OF_RANGE) }
            },
        )
        .add()?;
    plant
        .variable("Mode", 2i32)
        .data_type(NodeId::numeric(namespace.index(), MODE_TYPE))
        .on_write(
            |_, mode: i32| if (0..=2).contains(&mode) { Ok(mode) } else { Err(StatusCode::BAD_OUT_OF_RANGE) },
        )
        .add()?;
    plant.variable("ShiftLeaders", ["Ada", "Grace", "Lise"].map(str::to_owned)).writable().add()?;
    plant.variable("Note", "").writable().add()?;
    Ok(())
}

/// Structures of the plant's own DataTypes.
fn add_recipes(namespace: &Namespace, plant: &Node) -> Result<(), BuildError> {
    let rinse = recipe(namespace.index(), 1, "Rinse", &[40.0, 40.0, 20.0]);
    let sterilise = recipe(namespace.index(), 2, "Sterilise", &[121.0, 121.0, 30.0]);
    plant.variable("Recipe", Variant::from(rinse.clone())).writable().add()?;
    plant.variable("Recipes", Variant::from(vec![rinse, sterilise])).add()?;
    Ok(())
}

/// Encodes a RecipeType: its fields in the order of `plant.NodeSet2.xml`.
fn recipe(namespace: u16, number: u32, name: &str, temperatures: &[f64]) -> ExtensionObject {
    let mut body = Vec::new();
    number.encode(&mut body);
    UaString::from(name).encode(&mut body);
    true.encode(&mut body);
    i32::try_from(temperatures.len()).unwrap_or(0).encode(&mut body);
    for (step, temperature) in ["heat", "hold", "cool"].into_iter().cycle().zip(temperatures) {
        UaString::from(step).encode(&mut body);
        temperature.encode(&mut body);
        (60 * number).encode(&mut body);
    }
    ExtensionObject::from_binary(NodeId::numeric(namespace, RECIPE_ENCODING), body)
}

fn add_methods(plant: &Node) -> Result<(), BuildError> {
    let methods = plant.object("Methods").add()?;
    methods
        .method("Add")
        .description("The sum of two numbers")
        .inputs(["a", "b"])
        .outputs(["sum"])
        .handler(|_, (a, b): (f64, f64)| Ok((a + b,)))?;
    methods
        .method("Hello")
        .description("A greeting")
        .inputs(["name"])
        .outputs(["greeting"])
        .handler(|_, (name,): (String,)| Ok((format!("Hello, {name}!"),)))?;
    methods
        .method("Wait")
        .description("Responds after the given milliseconds, at most 60 000, without delaying other clients")
        .inputs(["milliseconds"])
        .async_handler(|_, (milliseconds,): (u32,)| async move {
            if milliseconds > 60_000 {
                return Err(StatusCode::BAD_OUT_OF_RANGE);
            }
            tokio::time::sleep(Duration::from_millis(u64::from(milliseconds))).await;
            Ok(())
        })?;
    methods
        .method("Fail")
        .description("Always fails with BadInvalidState")
        .handler(|_, (): ()| -> Result<(), StatusCode> { Err(StatusCode::BAD_INVALID_STATE) })?;
    Ok(())
}

fn matrix(values: &[f32]) -> Variant {
    // All slices have the length of the matrix.
    Variant::matrix(values.to_vec(), vec![FIELD.0 as u32, FIELD.1 as u32]).unwrap_or_default()
}

impl Moving {
    /// One cycle of the simulation.
    fn cycle(&mut self, cycle: u64) {
        let now: UtcTime = clock::wall();
        let time = self.time + cycle as f64 * PERIOD.as_secs_f64();
        for (variable, signal) in &mut self.sensors {
            variable.set_at(signal.at(time), now);
        }
        self.cycles.set_at(cycle, now);
        if !cycle.is_multiple_of(10) {
            return;
        }
        let seconds = cycle / 10;
        self.operating_seconds.set_at(seconds, now);
        // A part every four seconds, one in fifty is bad. The counters wrap, like real ones.
        let parts = seconds / 4;
        self.parts_good.set_at((parts - parts / 50) as u32, now);
        self.parts_rejected.set_at((parts / 50) as u32, now);
        self.happenings.second(seconds, now);
        self.batch.second(now);
        self.maintenance.second(seconds, now);
        let spectrum: Vec<f64> = self.spectrum_signals.iter_mut().map(|signal| signal.at(time)).collect();
        let mut histogram = vec![0u16; 16];
        for value in &spectrum {
            if let Some(count) = histogram.get_mut((value * 15.99) as usize) {
                *count += 1;
            }
        }
        self.spectrum.set_at(spectrum, now);
        self.histogram.set_at(histogram, now);
        let field: Vec<f32> = self.field_signals.iter_mut().map(|signal| signal.at(time) as f32).collect();
        self.field.set_at(matrix(&field), now);
    }
}
